// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `record` from outside, as far as possible without LTTng: invalid requests are refused before
//! anything is started. The VM tests cover everything else.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod program;

use std::fs;
use std::process::Command;

use program::program;

#[test]
fn what_is_wrong_is_refused_before_anything_starts() {
    let dir = std::env::temp_dir().join(format!("lt-record-{}", std::process::id()));
    let (tree, bin, log) = (dir.join("tree"), dir.join("bin"), dir.join("log"));
    fs::create_dir_all(&tree).unwrap();
    fs::create_dir_all(&bin).unwrap();
    fs::write(
        tree.join("control"),
        "old wakeup enabled=1 threshold=1000\n",
    )
    .unwrap();
    let trackers = "block: block I/O\n  threshold=10000000 duration: the limit\n  dev=all disk: which\n\
        func: not part of this module\n  unavailable: this kernel is built without CONFIG_FPROBE\n";
    fs::write(tree.join("trackers"), trackers).unwrap();
    for name in ["lttng", "lttng-sessiond"] {
        let script = format!("#!/bin/sh\necho {name} $* >>{}\nexit 1\n", log.display());
        program(&bin.join(name), script);
    }
    let refusal = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_latency-tracker"));
        command.env("LATENCY_TRACKER_PROC_ROOT", &tree);
        let path = format!("{}:/usr/bin:/bin", bin.display());
        command.env("PATH", path).arg("record");
        command.arg("-o").arg(dir.join("captures")).args(args);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for (args, expected) in [
        (&["x", "blok"][..], "did you mean block?"),
        (
            &["x", "block", "treshold=1ms"],
            "block has no parameter \"treshold\"; did you mean threshold=?",
        ),
        (
            &["x", "func", "threshold=1ms"],
            "tracker func: this kernel is built without CONFIG_FPROBE",
        ),
        (&["none"], "no instance named \"none\""),
        (&["old", "block"], "old exists with tracker wakeup"),
        (
            &["--disk-budget", "0", "old"],
            "expected a size greater than 0",
        ),
        (
            &["--duration", "0", "old"],
            "expected a duration greater than 0; leave the option out",
        ),
    ] {
        let said = refusal(args);
        assert!(said.contains(expected), "{args:?}: {said}");
        let ran = fs::read_to_string(&log).unwrap_or_default();
        let looks = |line: &str| line.starts_with("lttng --no-sessiond --mi xml list");
        assert!(ran.lines().all(looks), "{args:?} started LTTng: {ran}");
        assert!(!said.contains("measuring"), "{args:?}: {said}");
    }
    fs::remove_dir_all(&dir).unwrap();
}
