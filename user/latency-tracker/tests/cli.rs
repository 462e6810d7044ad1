// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The command from outside, against a tree that looks like /proc/latency_tracker: what it prints, its
//! exit status, its width, its silence when the reader leaves. The real tree is tested in the VM.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const STATS: &str = "attempts 12\nstarted 12\nfull 0\nfiltered 0\noff 0\nended 10\npending 2\nreplaced 0\ncleared 0\n\
    gone 0\nunmatched 0\nnegative 0\ntimed_out 0\nlate 0\nalerts 1\nalerts_lost 0\nwakes 1\nwakes_suppressed 0\n\
    min 2000\nmean 2400\nmax 20400123\ncapacity 4096\nfree 4094\n";

const ALERT: &str = "seq=17 time=1234567890123 instance=slow tracker=block reason=threshold delay=10412345 \
    threshold=10000000 cpu=1 pid=812 tid=812 comm=\"fio\" dev=8:0 disk=\"sda\" op=\"WS\" sector=2048 bytes=4096 \
    queue=0 device=10412345 requeues=0\n";

/// A tree of its own for each test.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("lt-cli-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("slow")).unwrap();
        let file = |path: &str, text: &str| fs::write(root.join(path), text).unwrap();
        file("version", "latency_tracker 0.1.0 abi=1 kernel=test\n");
        file(
            "control",
            "slow block enabled=1 threshold=10000000 dev=all\n",
        );
        file(
            "trackers",
            "block: block I/O\n  threshold=10000000 duration: the limit\n",
        );
        file(
            "alerts",
            &format!("{ALERT}lost=3\n{}", ALERT.replace("seq=17", "seq=21")),
        );
        file("slow/alerts", ALERT);
        file("slow/stats", STATS);
        file(
            "slow/histogram",
            "1920 2048 4\n2048 2304 5\n18874368 20971520 1\n",
        );
        file(
            "slow/pending",
            "age=5000 start=7 rq=0x1 pid=1 tid=2 comm=\"a b\" dev=8:0 sector=8\n",
        );
        Self(root)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_latency-tracker"));
        command.env("LATENCY_TRACKER_PROC_ROOT", &self.0).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn everything_a_person_reads_fits_80_columns() {
    let tree = Tree::new("width");
    for args in [
        &["list"][..],
        &["list", "--trackers"],
        &["hist"],
        &["hist", "slow", "-m", "-T"],
        &["pending"],
        &["watch", "-T"],
        &["watch", "slow"],
    ] {
        let (_, out, _) = tree.run(args);
        assert!(!out.is_empty(), "{args:?}");
        for line in out.lines() {
            assert!(line.chars().count() < 80, "{args:?}: {line}");
            assert!(!line.contains('\x1b'), "colour without a terminal: {line}");
        }
    }
}

#[test]
fn list_shows_state_and_counters() {
    let (status, out, _) = Tree::new("list").run(&["list"]);
    assert_eq!(status, 0);
    let row: Vec<&str> = out.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(
        row,
        ["slow", "block", "on", "10ms", "12", "2", "1", "0", "0"]
    );
}

#[test]
fn json_is_one_object_a_line() {
    let tree = Tree::new("json");
    for (args, lines) in [
        (&["list", "--json"][..], 1),
        (&["list", "--trackers", "--json"], 1),
        (&["hist", "--json"], 1),
        (&["pending", "--json"], 1),
        (&["watch", "--json"], 3),
        (&["check", "--json"], 8),
    ] {
        let (_, out, _) = tree.run(args);
        let values: Vec<serde_json::Value> = out
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(values.len(), lines, "{args:?}");
        assert!(values.iter().all(serde_json::Value::is_object));
    }
    let (_, out, _) = tree.run(&["watch", "--json"]);
    assert!(out.contains("{\"lost\":3}"));
}

#[test]
fn watch_says_what_was_lost_and_ends_with_2() {
    let (status, out, err) = Tree::new("watch").run(&["watch"]);
    assert_eq!(status, 2);
    assert_eq!(out.lines().count(), 3);
    assert!(err.contains("lost=3"), "{err}");
}

#[test]
fn watch_stops_after_the_count_and_after_actions_without_continue() {
    let tree = Tree::new("actions");
    let (status, out, _) = tree.run(&["watch", "-n", "1"]);
    assert_eq!((status, out.lines().count()), (2, 2));
    let (status, out, _) = tree.run(&["watch", "--on-alert", "shell,command=echo got $LT_DELAY"]);
    assert_eq!((status, out.matches("got 10412345").count()), (2, 1));
    let goes_on = [
        "watch",
        "--on-alert",
        "shell,command=echo got",
        "--on-alert",
        "continue",
    ];
    assert_eq!(tree.run(&goes_on).1.matches("got").count(), 2);
    let (status, _, err) = tree.run(&["watch", "--on-alert", "shell,command=exit 7"]);
    assert_eq!(status, 1);
    assert!(err.contains("exit status: 7"), "{err}");
}

#[test]
fn a_watch_without_alerts_ends_with_0() {
    let tree = Tree::new("quiet");
    fs::write(tree.0.join("alerts"), "").unwrap();
    assert_eq!(tree.run(&["watch"]).0, 0);
}

#[test]
fn hist_prints_percentiles_and_losses() {
    let (status, out, _) = Tree::new("hist").run(&["hist", "slow"]);
    assert_eq!(status, 0);
    assert!(
        out.contains("     usecs               : count    distribution\n"),
        "{out}"
    );
    assert!(
        out.contains(
            "         2 -> 3          : 5        |****************************************|"
        ),
        "{out}"
    );
    assert!(out.contains("p50 2.30us  p90 2.30us  p99 20.40ms"), "{out}");
    assert!(
        out.contains("min 2.00us  mean 2.40us  max 20.40ms"),
        "{out}"
    );
    assert!(
        out.contains("lost: alerts 0, events 0 (pool full)"),
        "{out}"
    );
}

#[test]
fn errors_end_with_1_and_say_what_to_do() {
    let tree = Tree::new("errors");
    for (args, text) in [
        (
            &["hist", "nosuch"][..],
            "`latency-tracker list` shows the instances",
        ),
        (&["stop", "nosuch"], "no instance named \"nosuch\""),
        (&["start", "a/b", "block"], "expected a name"),
        (&["start", "a", "block", "oops"], "expected key=value"),
        (&["record", "nosuch"], "no instance named"),
        (&["frobnicate"], "unrecognized subcommand"),
    ] {
        let (status, _, err) = tree.run(args);
        assert_eq!(status, 1, "{args:?}");
        assert!(err.contains(text), "{args:?}: {err}");
    }
    fs::write(tree.0.join("slow/stats"), "attempts twelve\n").unwrap();
    let (status, _, err) = tree.run(&["hist", "slow"]);
    assert_eq!(status, 1);
    assert!(
        err.contains("slow/stats: line 1: \"twelve\": expected a number"),
        "{err}"
    );
    fs::remove_file(tree.0.join("control")).unwrap();
    let (status, _, err) = tree.run(&["list"]);
    assert_eq!(status, 1);
    assert!(
        err.contains("not loaded") && err.contains("modprobe"),
        "{err}"
    );
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let tree = Tree::new("pipe");
    let mut child = tree
        .command(&["hist", "slow", "-i", "10ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut byte = [0];
    child.stdout.take().unwrap().read_exact(&mut byte).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn man_pages_and_completions_are_generated() {
    let tree = Tree::new("man");
    let directory = tree.0.join("man");
    let (status, _, _) = tree.run(&["man", directory.to_str().unwrap()]);
    assert_eq!(status, 0);
    for page in [
        "latency-tracker.1",
        "latency-tracker-record.1",
        "latency-tracker-watch.1",
    ] {
        let text = fs::read_to_string(directory.join(page)).unwrap();
        assert!(
            text.contains(".TH") && !text.contains("proc-root"),
            "{page}"
        );
    }
    for shell in ["bash", "zsh", "fish"] {
        let (status, out, _) = tree.run(&["completions", shell]);
        assert_eq!(status, 0);
        assert!(
            out.contains("--on-alert") || out.contains("on-alert"),
            "{shell}"
        );
    }
}
