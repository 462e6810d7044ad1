// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `check`: checks whether this machine is ready. Each row is ok, warn or bad; a row that is not ok shows what to do.
//! With `--rt`, checks whether the machine is ready for real-time work: [`lt_readiness`].

mod config;

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use anyhow::Result;
use lt_common::Outcome;
use lt_common::exec::{self, Exec};
use lt_common::group::{self, Groups};
use lt_common::module;
use lt_common::out::{self, Colour};
use lt_proc::{Instance, ProcRoot};
use lt_readiness::{Line, State};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use crate::cli::CheckArgs;
use crate::record::CAPTURES;

#[derive(Debug)]
struct Answer {
    state: State,
    what: &'static str,
    found: String,
    /// How to fix the fault; empty if ok.
    todo: Cow<'static, str>,
    /// The command that fixes the fault, if there is one.
    fix: Option<&'static str>,
}

fn answer(
    state: State,
    what: &'static str,
    found: impl Into<String>,
    todo: impl Into<Cow<'static, str>>,
) -> Answer {
    Answer {
        state,
        what,
        found: found.into(),
        todo: match state {
            State::Ok => Cow::default(),
            _ => todo.into(),
        },
        fix: None,
    }
}

impl Answer {
    /// Adds the command that fixes the fault, unless the state is ok.
    fn by(mut self, command: &'static str) -> Self {
        if self.state != State::Ok {
            self.todo = command.into();
            self.fix = Some(command);
        }
        self
    }
}

pub(crate) fn run(root: &ProcRoot, args: &CheckArgs) -> Result<Outcome> {
    if let Some(cpus) = &args.real_time.rt {
        return lt_readiness::run(&args.real_time, cpus, args.json);
    }
    if let Some(paths) = &args.config {
        return show(config::answers(root, paths), args.json);
    }
    let questions: [&dyn Fn() -> Answer; 7] = [
        &user,
        &|| the_module(root),
        &|| instances(root, &mut Groups::find()),
        &lttng,
        &kernel_tracer,
        &real_time,
        &disk,
    ];
    show(questions.iter().map(|question| question()), args.json)
}

/// Prints each answer as soon as it is known.
fn show(answers: impl IntoIterator<Item = Answer>, json: bool) -> Result<Outcome> {
    let mut outcome = Outcome::Fine;
    for answer in answers {
        if answer.state == State::Bad {
            outcome = Outcome::Wrong;
        }
        if json {
            out::json(&Line {
                group: "recording",
                row: answer.what,
                state: answer.state,
                found: &answer.found,
                why: &answer.todo,
                fix: answer.fix.map(String::from).into_iter().collect(),
                cpus: String::new(),
            })?;
            continue;
        }
        let (word, colour) = match answer.state {
            State::Ok => ("ok  ", Colour::Green),
            State::Warn => ("warn", Colour::Yellow),
            State::Bad | State::Unknown => ("bad ", Colour::Red),
        };
        out::line(&format!(
            "{} {:<13} {}",
            out::paint(colour, word),
            answer.what,
            answer.found
        ))?;
        if !answer.todo.is_empty() {
            let mut lines = out::wrap(&answer.todo, 22);
            if let Some(first) = lines.first_mut() {
                first.replace_range(19..21, "->");
            }
            for line in lines {
                out::line(&line)?;
            }
        }
    }
    Ok(outcome)
}

fn user() -> Answer {
    let root = nix::unistd::geteuid().is_root();
    let (state, found) = if root {
        (State::Ok, "root")
    } else {
        (State::Bad, "not root")
    };
    answer(state, "user", found, "run it as root, or with sudo")
}

fn the_module(root: &ProcRoot) -> Answer {
    if let Ok(version) = root.version() {
        return answer(State::Ok, "module", version, "");
    }
    if root.is_loaded() {
        let found = "loaded, but this user may not use it";
        let todo = module::how_to_be_let_in(root.path());
        return answer(State::Bad, "module", found, todo);
    }
    if module::is_installed("latency_tracker") {
        let found = "not loaded, but installed";
        return answer(State::Warn, "module", found, "").by("modprobe latency_tracker");
    }
    let todo = "as root: install the package latency-tracker-dkms (`dkms status` lists the kernels \
                with a module), or run make install in the source";
    answer(State::Bad, "module", "neither loaded nor installed", todo)
}

fn instances(root: &ProcRoot, groups: &mut Groups) -> Answer {
    match root.instances() {
        Ok(all) => {
            let missing = all.iter().filter(|one| groups.missing(one).is_some());
            let missing: Vec<&Instance> = missing.collect();
            let names: Vec<&str> = missing.iter().map(|one| one.name.as_str()).collect();
            let running = format!("{} running", all.len());
            match missing.first() {
                None => answer(State::Ok, "instances", running, ""),
                Some(first) => {
                    let found = format!("{running}; their cgroup is gone: {}", names.join(", "));
                    answer(State::Warn, "instances", found, group::remedy(first))
                }
            }
        }
        Err(error) => answer(
            State::Warn,
            "instances",
            error.to_string(),
            "see the line above",
        ),
    }
}

const TOOLS: &str = "apt-get install lttng-tools";

fn lttng() -> Answer {
    if !exec::exists("lttng") || !exec::exists("lttng-sessiond") {
        return answer(
            State::Bad,
            "lttng",
            "lttng or lttng-sessiond is missing",
            "",
        )
        .by(TOOLS);
    }
    match Exec::new("lttng", ["--version"]).output() {
        Ok(version) => answer(State::Ok, "lttng", version.trim(), ""),
        Err(error) => answer(State::Bad, "lttng", error.to_string(), "").by(TOOLS),
    }
}

fn kernel_tracer() -> Answer {
    let todo = "apt-get install lttng-modules-dkms, with the headers of this kernel";
    if Path::new("/sys/module/lttng_tracer").exists() {
        return answer(State::Ok, "lttng modules", "loaded", "");
    }
    match module::is_installed("lttng_tracer") || module::is_built_in("lttng_tracer") {
        true => answer(State::Ok, "lttng modules", "installed for this kernel", ""),
        false => answer(
            State::Bad,
            "lttng modules",
            "not installed for this kernel",
            todo,
        ),
    }
}

fn real_time() -> Answer {
    let todo = "raise `rtprio` and `memlock` in /etc/security/limits.conf, or run as root";
    if nix::unistd::geteuid().is_root() {
        let throttled =
            fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
        let note = if throttled.trim() == "0" {
            "root, but sched_rt_runtime_us is 0"
        } else {
            "root: allowed"
        };
        let state = if throttled.trim() == "0" {
            State::Warn
        } else {
            State::Ok
        };
        return answer(state, "real time", note, "").by("sysctl kernel.sched_rt_runtime_us=950000");
    }
    let limit = |r| getrlimit(r).map_or(0, |(soft, _)| soft);
    let (rtprio, memlock) = (
        limit(Resource::RLIMIT_RTPRIO),
        limit(Resource::RLIMIT_MEMLOCK),
    );
    let state = if rtprio > 0 && memlock == RLIM_INFINITY {
        State::Ok
    } else {
        State::Warn
    };
    answer(
        state,
        "real time",
        format!("rtprio limit {rtprio}, memlock limit {memlock}"),
        todo,
    )
}

fn disk() -> Answer {
    // The directory may not exist yet.
    let there = Path::new(CAPTURES).ancestors().find(|path| path.exists());
    match nix::sys::statvfs::statvfs(there.unwrap_or(Path::new("/"))) {
        Ok(fs) => {
            let free = fs.blocks_available() * fs.fragment_size();
            let state = if free < 1 << 30 {
                State::Warn
            } else {
                State::Ok
            };
            let found = format!("{} free for {CAPTURES}", out::bytes(free));
            answer(
                state,
                "disk",
                found,
                "captures take space: use record -o elsewhere, or --disk-budget",
            )
        }
        Err(error) => answer(
            State::Warn,
            "disk",
            format!("{CAPTURES}: {error}"),
            "record -o DIR on a disk with space",
        ),
    }
}
