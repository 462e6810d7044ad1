// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Cleans up if this process is killed: a shell reads from a pipe that only this process holds open
//! for writing.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result};
use lt_common::lttng;

/// Waits for a line that reports a regular end. If the pipe ends without this line, removes the named
/// items.
/// $1 is the control file, $2 the session, $3 the session daemon that was started, $4 a directory;
/// the instances follow.
const GUARD: &str = r#"
trap '' INT TERM HUP
read -r word && [ "$word" = done ] && exit 0
control=$1 session=$2 daemon=$3 directory=$4
shift 4
for name; do echo "-$name" >"$control"; done
[ -z "$session" ] || lttng --no-sessiond destroy "$session"
[ -z "$daemon" ] || [ -n "$(lttng --no-sessiond --mi xml list | grep '<session>')" ] || kill "$daemon"
[ -z "$directory" ] || rm -rf -- "$directory"
"#;

/// The resources that the guard removes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Guarded<'a> {
    /// The control file, for the instances.
    pub(super) control: Option<&'a Path>,
    pub(super) instances: &'a [String],
    pub(super) session: Option<&'a str>,
    /// The session daemon that we started.
    pub(super) daemon: Option<i32>,
    /// A directory that this process created.
    pub(super) directory: Option<&'a Path>,
}

/// A process that cleans up if this one is killed.
#[derive(Debug)]
pub(super) struct Guard {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    pub(super) fn start(guarded: &Guarded<'_>) -> Result<Self> {
        let nothing = Path::new("");
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "latency-tracker-guard"]);
        command
            .arg(guarded.control.unwrap_or(nothing))
            .arg(guarded.session.unwrap_or(""))
            .arg(guarded.daemon.map_or(String::new(), |pid| pid.to_string()))
            .arg(guarded.directory.unwrap_or(nothing))
            .args(guarded.instances);
        command.env("LTTNG_HOME", lttng::run_dir());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Signals from the terminal, which end this process, do not reach the guard.
        command.process_group(0);
        let mut child = command.spawn().context("cannot start a guard with `sh`")?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            let _ = pipe.write_all(b"done\n");
        }
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Ends a guard by `end`. Returns what the control file then contains, and whether the directory still exists.
    fn guarded(end: impl FnOnce(Guard)) -> (String, bool) {
        let dir = tempfile::tempdir().unwrap();
        let (control, traces) = (dir.path().join("control"), dir.path().join("traces"));
        fs::write(&control, "untouched\n").unwrap();
        fs::create_dir_all(traces.join("kernel")).unwrap();
        let guard = Guard::start(&Guarded {
            control: Some(&control),
            instances: &["bench_1_irq".to_string()],
            directory: Some(&traces),
            ..Guarded::default()
        });
        end(guard.unwrap());
        (fs::read_to_string(&control).unwrap(), traces.exists())
    }

    #[test]
    fn a_guard_cleans_up_unless_the_end_is_regular() {
        assert_eq!(guarded(drop), ("untouched\n".to_string(), true));
        // The pipe ends, as if the process were killed.
        let killed = guarded(|mut guard| {
            drop(guard.pipe.take());
            guard.child.wait().unwrap();
        });
        assert_eq!(killed, ("-bench_1_irq\n".to_string(), false));
    }
}
