// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `analyze` from outside: on a real trace (lt-ctf's testdata), on what is none, and interrupted.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// A directory of its own for each test.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lt-analyze-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// With the traces of lt-ctf's tests.
    fn with_traces(name: &str) -> Self {
        let dir = Self::new(name);
        let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lt-ctf/testdata/traces.tar.xz");
        let mut tar = Command::new("tar");
        let done = tar.arg("-C").arg(&dir.0).arg("-xJf").arg(traces).status();
        assert!(done.unwrap().success());
        dir
    }

    fn path(&self, trace: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_latency-tracker"));
        command.args(["analyze", "path"]).arg(self.0.join(trace));
        command.args(args).env_remove("COLUMNS");
        command
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(command: &mut Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// The threads that ran the most, of the error that names them.
fn busiest(dir: &Dir, trace: &str) -> Vec<String> {
    let (status, _, error) = run(&mut dir.path(trace, &["--tid", "4194304"]));
    assert_eq!(status, 1, "{error}");
    let (_, names) = error.split_once("those that ran the most: ").unwrap();
    let tid = |name: &str| name.trim().rsplit('/').next().unwrap().to_string();
    names.split(", ").map(tid).collect()
}

#[test]
fn the_pieces_of_every_path_tile_its_time() {
    let dir = Dir::with_traces("tile");
    let (mut deep, mut causes) = (0, 0);
    for trace in ["compact", "snapshot"] {
        for tid in busiest(&dir, trace) {
            let (status, json, error) = run(&mut dir.path(trace, &["--tid", &tid, "--json"]));
            assert_eq!(status, 0, "{error}");
            let json: Value = serde_json::from_str(&json).unwrap();
            assert_eq!(json["thread"]["tid"].to_string(), tid);
            let number = |value: &Value| value.as_u64().unwrap();
            let (from, to) = (number(&json["from"]), number(&json["to"]));
            let mut at = from;
            for step in json["path"].as_array().unwrap() {
                assert_eq!(number(&step["begin"]), at);
                at = number(&step["end"]);
                // One on another thread explains a wait: it is no deeper than there are waits.
                let own = step["thread"]["tid"] == json["thread"]["tid"];
                assert_eq!(own, number(&step["depth"]) == 0, "{step}");
                deep += u64::from(!own);
            }
            assert_eq!(at, to);
            let sums = json["causes"].as_array().unwrap();
            assert_eq!(
                sums.iter().map(|s| number(&s["time"])).sum::<u64>(),
                to - from
            );
            causes += sums.len();
            // Asked for its second half, where the first is forgotten, it says the same of that.
            let middle = from + (to - from) / 2;
            let args = ["--tid", &tid, "--json", "--from", &middle.to_string()];
            let (_, half, _) = run(&mut dir.path(trace, &args));
            let half: Value = serde_json::from_str(&half).unwrap();
            assert_eq!(steps(&half, middle), steps(&json, middle));
        }
    }
    assert!(deep > 20 && causes > 20, "{deep} {causes}");
}

/// What each step after `from` is: its begin, its end, its thread and its cause.
fn steps(json: &Value, from: u64) -> Vec<(u64, u64, String, String)> {
    let step = |step: &Value| {
        let begin = step["begin"].as_u64().unwrap().max(from);
        let end = step["end"].as_u64().unwrap();
        (
            begin,
            end,
            step["thread"].to_string(),
            step["cause"].to_string(),
        )
    };
    let all = json["path"].as_array().unwrap().iter().map(step);
    all.filter(|(begin, end, ..)| begin < end).collect()
}

#[test]
fn a_person_reads_a_table_and_then_the_path() {
    let dir = Dir::with_traces("text");
    let tid = &busiest(&dir, "compact")[0];
    let args = ["--tid", tid.as_str(), "--from", "+0", "--verbose"];
    let (status, text, said) = run(dir.path("compact", &args).env("COLUMNS", "80"));
    assert_eq!(status, 0, "{said}");
    let parts: Vec<_> = text.split("\n\n").collect();
    assert_eq!(parts.len(), 3, "{text}");
    assert!(parts[0].contains(&format!("/{tid} from ")), "{text}");
    assert!(parts[1].trim_start().starts_with("TIME"), "{text}");
    assert!(parts[2].trim_start().starts_with("AT"), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    assert!(
        said.contains("events in ") && said.contains(" a second"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_answered_is_said() {
    let dir = Dir::with_traces("bad");
    let wrong = |trace: &str, args: &[&str]| {
        let (status, out, error) = run(&mut dir.path(trace, args));
        assert_eq!((status, out.as_str()), (1, ""), "{error}");
        error
    };
    assert!(wrong("ust", &["--tid", "1"]).contains("no event sched_switch"));
    assert!(wrong("nothing", &["--tid", "1"]).contains("No such file"));
    assert!(wrong("compact", &["--tid", "1", "--from", "2s"]).contains("expected a time"));
    let tid = &busiest(&dir, "compact")[0];
    let before = wrong("compact", &["--tid", tid, "--to", "5"]);
    assert!(before.contains("and not then"), "{before}");
    let turned = wrong("compact", &["--tid", tid, "--from", "+2ms", "--to", "+1ms"]);
    assert!(
        turned.contains("there is no time between") || turned.contains("not then"),
        "{turned}"
    );
}

/// Ctrl-C while babeltrace2 converts an older trace: nothing is left, neither files nor a process.
#[test]
fn ctrl_c_during_a_conversion_leaves_nothing_behind() {
    let dir = Dir::new("interrupt");
    let (bin, temporary, old) = (dir.0.join("bin"), dir.0.join("tmp"), dir.0.join("old"));
    for made in [&bin, &temporary, &old] {
        fs::create_dir(made).unwrap();
    }
    fs::write(old.join("metadata"), b"\xc1\x1f\xc1\x75 CTF 1.8").unwrap();
    let started = dir.0.join("started");
    // Begins to write where it was told, and takes its time.
    let script = format!(
        "#!/bin/sh\nfor last; do :; done\nto=${{last#*\\\"}}\nto=${{to%%\\\"*}}\nmkdir -p \"$to\"\n\
         echo half >\"$to/stream\"\necho $$ >{0}.part\nmv {0}.part {0}\nexec sleep 60\n",
        started.display()
    );
    fs::write(bin.join("babeltrace2"), script).unwrap();
    fs::set_permissions(bin.join("babeltrace2"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = dir.path("old", &["--tid", "1"]);
    let command = command.env("PATH", path).env("TMPDIR", &temporary);
    let child = command
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while !started.exists() {
        assert!(begin.elapsed() < Duration::from_secs(30), "not converted");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 1);
    let sleeper: i32 = fs::read_to_string(&started)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("interrupted"), "{said}");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    assert!(kill(Pid::from_raw(sleeper), None).is_err(), "it goes on");
    assert!(begin.elapsed() < Duration::from_secs(50));
}
