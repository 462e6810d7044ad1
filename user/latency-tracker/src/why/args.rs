// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The options of `why`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use lt_common::pids::{named, with_part};
use lt_common::seconds::some_time;
use lt_proc::Nanos;

use crate::completion;

pub(crate) const EXAMPLES: &str = "\
Exit status: 0 nothing was late, 1 error, 2 something was late.

Examples:
  latency-tracker why
  latency-tracker why -p 812
  latency-tracker why -p postgres --over 50ms -d 10m
  latency-tracker why -- tar -xf backup.tar
  latency-tracker why --unit nginx.service
  latency-tracker why --disk sda --worst -d 1m

Loads the module if needed. Watches system calls, uninterruptible sleeps, and
waits for a CPU; with --disk, the requests of that disk; without a target, all
processes and all disks. At the end, everything that was set up is removed
again.

Only an operation that ends during the run is explained. If none was late, up
to five that have not ended are listed. Disk requests and tasks that hang in
the kernel come first; a task may have hung since before the start.
`latency-tracker captures` shows what a recorder saved earlier.

Without --over, up to 5 seconds are spent on measuring the usual delays. The
threshold is then half of the longest delay, but at least 1ms; 10ms if nothing
ended. Whenever a quarter of the time of -d has passed (without -d: 5 seconds)
and nothing was late, the threshold is lowered to half of the longest delay
since it was set. For a COMMAND, nothing is measured first, and the threshold
is 1ms. A threshold that --over sets never changes.

With --disk, waits before a request exists are not seen: for a free tag
(blk_mq_get_tag), or for throttling (rq_qos_wait). `why -p` and `why` without a
target show them, as part of the system call or of the sleep.

The processes of the run itself are left out: this command, those that it runs,
and LTTng's session daemon with its helpers, unless -p or --unit names them.

The first line of an explanation ends with the time of day of the alert, in UTC
as in `watch -T`, if it is known.

A disk has a limited number of tags, and a request needs one of them from its
allocation to its completion. While other requests have all tags, a thread
waits for a free tag. The explanation then counts the requests that the disk
served meanwhile, and names up to four of their threads: `archiver (193, 195)`
are the threads 193 and 195, both called archiver. `and 2 other threads` counts
those that are not named. A thread without such a request is not included, even
if it has the same name.

`By the end of the wait, disk sda had been busy for 8.95s, since 10:13:39.094,
with no pause longer than 4.41ms; before that, it had been idle for 18.40ms`:
from that time of day on (in UTC), the disk always had a request, except in
short pauses. With `at least` or `or earlier`, it may have been busy before,
which the trace does not show. The sentence follows only a wait for a free tag,
or for a free request, whose reason is a lack of tags or throttling.

`Still running: archiver (193, 195), process start 10:13:38`: of the threads
with such requests, these still exist at the end of the run; up to four are
named. Their processes started at that time of day (in UTC).

Up to five other threads that were late in the same 100 ms are listed below the
explanation, each with its longest operation; not with --worst or a COMMAND.
The explained thread itself may be listed, too: as `late again`, with the time
of day, if that was later.

Calls that are meant to wait, such as epoll_wait, futex and nanosleep, do not
count, because a server without work is not late. --waits includes these calls.
For a COMMAND they always count, and the longest operation of its whole run is
explained.

With LTTng, a trace of the delay shows the cause. Without LTTng, only the
contents of the alert are shown. The trace is removed at the end; -o DIR keeps
it, with the alerts (alert.json), for `explain` and `analyze path`.

A unit that restarts has a new cgroup: --unit and --cgroup notice this within
about a second, and show how long operations may not have been seen.";

/// Watches everything, a process, a unit, a disk or a command until an operation is late, and explains the delay.
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// Watch the process with this PID, or with this name if no other process has it.
    #[arg(short, long, value_name = "PID|NAME", group = "target", value_parser = process, add = ArgValueCompleter::new(completion::pids_and_names))]
    pub(crate) pid: Option<u32>,
    /// Watch the processes of this systemd unit.
    #[arg(long, value_name = "UNIT", group = "target")]
    pub(crate) unit: Option<String>,
    /// Watch the processes of this cgroup and its descendants; the path starts with a slash.
    #[arg(long, value_name = "PATH", group = "target", add = ArgValueCompleter::new(completion::cgroups))]
    pub(crate) cgroup: Option<String>,
    /// Watch the requests of this disk.
    #[arg(long, value_name = "DISK", group = "target", add = ArgValueCompleter::new(completion::disks))]
    pub(crate) disk: Option<String>,
    /// Run this command, and watch it and all its descendants until it ends.
    #[arg(last = true, value_name = "COMMAND", group = "target")]
    pub(crate) command: Vec<OsString>,
    /// Explain an operation that takes longer than this.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) over: Option<Nanos>,
    /// End after this time (10s, 5m; a bare number is seconds). The default is 1 minute, and no limit for a COMMAND.
    #[arg(short, long, value_parser = some_time)]
    pub(crate) duration: Option<Nanos>,
    /// Explain the longest late operation of the whole run, instead of the first.
    #[arg(long)]
    pub(crate) worst: bool,
    /// Include calls that are meant to wait, and every sleep.
    #[arg(long)]
    pub(crate) waits: bool,
    /// Record no trace, even if LTTng is installed.
    #[arg(long)]
    pub(crate) no_trace: bool,
    /// Keep the trace, the alerts and the explanation as a capture in this directory.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// Reads a PID, or the name of a process.
fn process(text: &str) -> Result<u32, String> {
    let pid = text.parse::<u32>();
    pid.or_else(|_| process_in(Path::new("/proc"), text))
}

/// The only process with this name.
fn process_in(proc: &Path, name: &str) -> Result<u32, String> {
    let found = named(proc, name);
    match (found.first(), found.len()) {
        (None, _) => {
            let others = with_part(proc, name).filter(|(_, pids)| !pids.is_empty());
            let others = others.map_or_else(String::new, |(part, pids)| {
                format!("; PIDs with the name {part}: {}", list(&pids))
            });
            Err(format!("no process has the name {name}{others}"))
        }
        (Some(pid), 1) => Ok(*pid),
        (_, n) => Err(format!(
            "{n} processes have the name {name}: use one of the PIDs {}, or --unit or --cgroup for all",
            list(&found)
        )),
    }
}

fn list(pids: &BTreeSet<u32>) -> String {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    pids.join(", ")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use clap::Parser;

    use super::{process, process_in};
    use crate::cli::{Cli, Command};

    #[test]
    fn a_process_has_a_pid_or_a_name() {
        assert_eq!(process("812"), Ok(812));
        let refused = process("no such process").unwrap_err();
        assert_eq!(refused, "no process has the name no such process");
        // These two processes may take a moment to get the name.
        let mut two = [(); 2].map(|()| {
            let mut sleep = std::process::Command::new("/bin/sleep");
            sleep.arg("1000").spawn().unwrap()
        });
        let has_both = |text: &str| two.iter().all(|one| text.contains(&one.id().to_string()));
        let (start, mut refused) = (Instant::now(), String::new());
        while !has_both(&refused) && start.elapsed() < Duration::from_secs(60) {
            refused = process("sleep").err().unwrap_or_default();
        }
        let has_both = has_both(&refused);
        for one in &mut two {
            one.kill().unwrap();
            one.wait().unwrap();
        }
        assert!(
            has_both && refused.contains(" processes have the name sleep: "),
            "{refused}"
        );
    }

    #[test]
    fn processes_with_the_part_of_a_name_that_the_kernel_keeps_are_named() {
        let proc = tempfile::tempdir().unwrap();
        for pid in ["12", "13"] {
            let own = proc.path().join(pid);
            std::fs::create_dir(&own).unwrap();
            std::fs::write(own.join("comm"), "unattended-upgr\n").unwrap();
        }
        let refused = |name| process_in(proc.path(), name).unwrap_err();
        assert_eq!(
            refused("unattended-upgrade"),
            "no process has the name unattended-upgrade; PIDs with the name unattended-upgr: 12, 13"
        );
        assert_eq!(
            refused("unattended-downgrade"),
            "no process has the name unattended-downgrade"
        );
        assert_eq!(
            refused("unattended-upgr"),
            "2 processes have the name unattended-upgr: use one of the PIDs 12, 13, or --unit or --cgroup for all"
        );
    }

    #[test]
    fn there_is_at_most_one_target() {
        let parse = |words: &[&str]| Cli::try_parse_from(["lt", "why"].iter().chain(words));
        for fine in [
            &["-p", "1"][..],
            &["--disk", "sda", "--worst"],
            &["--over", "5ms", "--", "ls", "-l"],
            &[],
        ] {
            assert!(matches!(parse(fine).unwrap().command, Command::Why(_)));
        }
        for bad in [
            &["-p", "1", "--disk", "sda"][..],
            &["-p", "1", "--", "ls"],
            &["--over", "0", "-p", "1"],
            &["ls"],
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
