// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tests the command from outside, with a directory in place of /proc/latency_tracker: its output
//! and width, its exit status, and its silence when the reader of a pipe exits. The real files are
//! tested in the VM.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod program;
mod terminal;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use program::program;

const STATS: &str = "attempts 12\nstarted 12\nfull 0\nfiltered 0\noff 0\nended 10\npending 2\nreplaced 0\ncleared 0\n\
    gone 0\nunmatched 0\nnegative 0\ntimed_out 0\nlate 0\nalerts 1\nalerts_lost 0\nwakes 1\nwakes_suppressed 0\n\
    min 2000\nmean 2400\nmax 20400123\ncapacity 4096\nfree 4094\n";

const ALERT: &str = "seq=17 time=1234567890123 instance=slow tracker=block reason=threshold delay=10412345 \
    threshold=10000000 cpu=1 pid=812 tid=812 comm=\"fio\" dev=8:0 disk=\"sda\" op=\"WS\" sector=2048 bytes=4096 \
    queue=0 device=10412345 requeues=0\n";

/// A separate tree for each test.
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
        command.env_remove("COLUMNS");
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

/// An alert of `wakeup` that is longer than any terminal is wide.
const WAKEUP: &str = "seq=1 time=1234567890123 instance=an_instance_with_quite_a_name_x tracker=wakeup \
    reason=threshold delay=419200 threshold=1 cpu=1 pid=40 tid=40 comm=\"kcompactd0\" prio=120 policy=other \
    target=1 migrated=0 waker_pid=4711 waker_tid=4711 waker_comm=\"the waker\" context=hardirq prev_pid=9 \
    prev_tid=9 prev_comm=\"before\"\n";

#[test]
fn what_is_under_way_is_below_its_root() {
    let tree = Tree::new("tree");
    let (code, _, err) = tree.run(&["tree", "slow"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("slow is of the tracker block")
            && err.contains("latency-tracker start chain tree"),
        "{err}"
    );
    let (code, _, err) = tree.run(&["tree", "none"]);
    assert_eq!(code, 1);
    assert!(err.contains("`latency-tracker list`"), "{err}");
    let file = |path: &str, text: &str| fs::write(tree.0.join(path), text).unwrap();
    file("control", "slow tree enabled=1 threshold=5000000\n");
    let tip = "age=4000 start=6000 task=0x1 pid=812 tid=812 comm=\"nginx\" end=none state=woken \
        origin=irq irq=27 action=\"eth0\" target_cpu=2 path=\"irq:27@0+0 waking:812@0+1000\"\n";
    file("slow/pending", tip);
    // Without a terminal, the tree is printed once.
    for args in [&["tree", "slow"][..], &["tree", "slow", "--live"]] {
        let (code, out, _) = tree.run(args);
        assert_eq!(code, 0);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(
            lines,
            [
                "slow: 1 wake chain in flight from 1 origin",
                "irq:27 eth0 @0, 4.00us ago",
                "  nginx/812 (CPU 2) has been woken, and waits for a CPU, for 3.00us",
                "    irq:27@0 25%, waking:812@0 75%",
            ]
        );
    }
    let (_, out, _) = tree.run(&["tree", "slow", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["root"], "irq:27");
    assert_eq!(json["tips"][0]["steps"][1]["percent"], 75);
    file("slow/pending", "");
    let (code, _, err) = tree.run(&["tree", "slow"]);
    assert_eq!(code, 0);
    assert!(err.contains("slow: no wake chain is in flight"), "{err}");
    let (code, _, err) = tree.run(&["tree", "slow", "--live", "--interval", "0"]);
    assert_eq!(code, 1);
    assert!(err.contains("--interval"), "{err}");
}

#[test]
fn stacks_of_an_instance_or_a_file_are_summed() {
    let tree = Tree::new("stacks");
    let before = fs::read_to_string(tree.0.join("control")).unwrap();
    let (code, out, _) = tree.run(&["stacks", "slow", "-d", "0"]);
    assert_eq!(code, 2);
    for words in [
        "slow (block), as recorded: 1 late operation in 0 stacks, 10.41ms in all\n",
        "Only delays above the threshold (10ms) are in here.\n",
        "    [no stack]\n",
        "  no_stack      1  late operations without a stack: this tracker records one only on timeout (timeout=)\n",
        "  older        16  ",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert_eq!(
        fs::read_to_string(tree.0.join("control")).unwrap(),
        before,
        "the instance is not changed"
    );
    // Other parameters would need another instance.
    let (code, _, err) = tree.run(&["stacks", "slow", "threshold=1ms"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("threshold=1ms: slow is an instance, which is not changed"),
        "{err}"
    );
    let file = tree.0.join("alerts");
    let file = file.to_str().unwrap();
    let (code, out, err) = tree.run(&["stacks", "--alerts", file, "--folded"]);
    assert_eq!((code, out.as_str()), (0, "fio;[no stack] 20825\n"));
    assert!(err.contains("unread=3: alerts overwritten"), "{err}");
    fs::write(file, "seq=x\n").unwrap();
    let (code, _, err) = tree.run(&["stacks", "--alerts", file]);
    assert_eq!(code, 1);
    assert!(err.contains("line 1"), "{err}");
}

#[test]
fn steps_are_a_table_with_bars() {
    let tree = Tree::new("steps");
    let (code, _, err) = tree.run(&["steps", "slow"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("slow has no steps; only instances of the tracker `tree` have them"),
        "{err}"
    );
    let (code, _, err) = tree.run(&["steps"]);
    assert_eq!(code, 1);
    assert!(err.contains("latency-tracker start chain tree"), "{err}");
    let text = "step count mean p99 max\nirq 3 1000 1200 1300\nwaking 1000 9 15 2000\n";
    fs::write(tree.0.join("slow/steps"), text).unwrap();
    let (code, out, _) = tree.run(&["steps"]);
    assert_eq!(code, 0);
    let rows: Vec<Vec<&str>> = out
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["slow"]);
    assert_eq!(rows[1][..6], ["STEP", "COUNT", "MEAN", "P99", "MAX", "%"]);
    assert_eq!(
        rows[2][..7],
        [
            "irq",
            "3",
            "1.00us",
            "1.20us",
            "1.30us",
            "25",
            "####............"
        ]
    );
    assert_eq!(
        rows[3][..7],
        [
            "waking",
            "1,000",
            "9ns",
            "15ns",
            "2.00us",
            "75",
            "############...."
        ]
    );
    assert!(out.contains("woken, and waiting for a CPU"), "{out}");
    let (_, out, _) = tree.run(&["steps", "slow", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["instance"], "slow");
    assert_eq!(json["steps"][1]["p99"], 15);
    fs::write(tree.0.join("slow/steps"), "step count mean p99 max\n").unwrap();
    let (_, out, _) = tree.run(&["steps"]);
    assert!(out.contains("no wake chain has ended yet"), "{out}");
}

#[test]
fn in_a_pipe_lines_are_whole() {
    let tree = Tree::new("whole");
    fs::write(tree.0.join("alerts"), WAKEUP).unwrap();
    let long = "an_instance_with_quite_a_name_x";
    let rename = |file: &str| {
        let path = tree.0.join(file);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("slow block", &format!("{long} block"))).unwrap();
    };
    rename("control");
    fs::rename(tree.0.join("slow"), tree.0.join(long)).unwrap();
    let (_, out, _) = tree.run(&["watch"]);
    for word in [long, "waker=the waker/4711", "prev=before/9"] {
        assert!(out.contains(word), "{word}: {out}");
    }
    assert_eq!(out.lines().count(), 2, "{out}");
    let (_, out, _) = tree.run(&["list"]);
    let row: Vec<&str> = out.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[0], long);
    assert_eq!(row.len(), 9, "{out}");
    let stack = format!(
        "stack=\"{}\"",
        "a_function_of_quite_some_length+0x1/0x2 [and_its_module],".repeat(2)
    );
    let line = format!("{} {}\n", WAKEUP.trim_end(), stack);
    fs::write(tree.0.join("alerts"), line).unwrap();
    let (_, out, _) = tree.run(&["watch"]);
    assert!(out.contains("+0x1/0x2 [and_its_module]\n"), "{out}");
}

#[test]
fn in_a_pipe_a_name_is_whole_whatever_the_value_of_columns() {
    let tree = Tree::new("piped");
    let name = "n".repeat(31);
    fs::rename(tree.0.join("slow"), tree.0.join(&name)).unwrap();
    let line = format!("{name} block enabled=1 threshold=10000000 dev=all\n");
    fs::write(tree.0.join("control"), line).unwrap();
    let mut command = tree.command(&["list"]);
    let piped = command.env("COLUMNS", "80").output().unwrap();
    let piped = String::from_utf8(piped.stdout).unwrap();
    assert!(piped.contains(&format!("{name} ")), "{piped}");
    let (_, shown, _) = terminal::on_a_terminal(tree.command(&["list"]), 80);
    assert!(!shown.contains(&name), "{shown}");
    assert!(shown.lines().all(|l| l.chars().count() <= 80), "{shown}");
}

#[test]
fn columns_sets_the_width_of_a_line() {
    let tree = Tree::new("columns");
    fs::write(tree.0.join("alerts"), WAKEUP).unwrap();
    for columns in [80, 120] {
        let (_, out, _) = terminal::on_a_terminal(tree.command(&["watch"]), columns);
        let widest = out.lines().map(|l| l.chars().count()).max().unwrap();
        assert!(
            widest <= columns && widest > columns - 40,
            "{columns}: {out}"
        );
        let text = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("waker=the waker/4711 context=hardirq prev=before/9"),
            "{out}"
        );
    }
}

#[test]
fn everything_a_person_reads_fits_80_columns() {
    let tree = Tree::new("width");
    for args in [
        &["list"][..],
        &["list", "--trackers"],
        &["list", "--trackers", "block"],
        &["list", "slow"],
        &["hist"],
        &["hist", "slow", "-m", "-T"],
        &["pending"],
        &["top", "--once"],
        &["watch", "-T"],
        &["watch", "slow"],
        &["recipes"],
        &["recipes", "dns"],
    ] {
        let (_, out, _) = terminal::on_a_terminal(tree.command(args), 79);
        assert!(!out.is_empty(), "{args:?}");
        for line in out.lines() {
            assert!(line.chars().count() < 80, "{args:?}: {line}");
        }
        let (_, out, _) = tree.run(args);
        assert!(!out.contains('\x1b'), "colour without a terminal: {out}");
    }
}

#[test]
fn recipes_are_listed_shown_and_replaced_and_a_typo_gets_a_suggestion() {
    let tree = Tree::new("recipes");
    let own = tree.0.join("own");
    fs::create_dir(&own).unwrap();
    let run = |args: &[&str]| {
        let mut command = tree.command(args);
        let Output {
            status,
            stdout,
            stderr,
        } = command
            .env("LATENCY_TRACKER_RECIPES", &own)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    };
    let (code, out, err) = run(&["recipes"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let lines = out.lines().count();
    assert!(lines > 24 && out.contains("\nfsync "), "{out}");
    let (_, out, _) = run(&["recipes", "--json"]);
    assert_eq!(out.lines().count(), lines - 1);
    // A word that is only in the name, only in the line, or only in a sentence.
    for (word, some, other) in [
        ("SCSI-", "scsi-command", "nvme"),
        ("from=insert", "disk-queue", "disk-flush"),
        ("Memory.Max", "oom-kill", "swap-in"),
    ] {
        let (code, out, err) = run(&["recipes", "--about", word]);
        let has = |name: &str| out.contains(&format!("\n{name} "));
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(has(some) && !has(other), "{word}: {out}");
    }
    let (_, out, _) = run(&["recipes", "--about", "from=insert", "--json"]);
    assert_eq!(out.lines().count(), 1, "{out}");
    let (code, out, err) = run(&["recipes", "--about", "nosuchword"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("no recipe has \"nosuchword\""), "{err}");
    let (code, out, _) = run(&["recipes", "fsync"]);
    assert!(
        code == 0 && out.contains("run       syscall calls=fsync,"),
        "{out}"
    );
    for title in ["question", "normal", "next"] {
        assert!(out.contains(&format!("\n  {title} ")), "{title}: {out}");
    }
    let (code, _, err) = run(&["recipes", "fsnc"]);
    assert!(code == 1 && err.contains("did you mean fsync"), "{err}");

    let file = own.join("fsync.recipe");
    let mine = "question: Mine?\nrun: block threshold=1ms\nnormal: N.\nnext: X.\n";
    fs::write(&file, mine).unwrap();
    let (_, out, _) = run(&["recipes", "fsync"]);
    let from = format!("from      {}", file.display());
    assert!(out.contains("Mine?") && out.contains(&from), "{out}");
    fs::write(&file, mine.replace("next", "then")).unwrap();
    let fault = format!("{}:4: \"then: X.\"", file.display());
    for args in [&["recipes"][..], &["recipes", "fsync"], &["run", "fsync"]] {
        let (code, _, err) = run(args);
        assert!(code == 1 && err.contains(&fault), "{args:?}: {err}");
    }

    // Trackers and recipes share one namespace.
    for (word, meant) in [("blok", "block"), ("disk-queu", "disk-queue")] {
        let (code, _, err) = run(&["run", word]);
        let text = format!("unknown tracker or recipe {word:?}; did you mean {meant}");
        assert!(code == 1 && err.contains(&text), "{err}");
        assert!(err.contains("`latency-tracker recipes` lists"), "{err}");
    }
    // A parameter of the user is checked against the recipe's tracker.
    let (code, _, err) = run(&["run", "disk", "treshold=1ms"]);
    assert!(
        code == 1 && err.contains("did you mean threshold=?"),
        "{err}"
    );

    // The recipes of the machine cannot be read, so the requested recipe may be among them.
    fs::remove_dir_all(&own).unwrap();
    fs::write(&own, "").unwrap();
    let fault = format!("cannot read {}: ", own.display());
    let (code, _, err) = run(&["recipes", "fsync"]);
    assert!(code == 0 && err.contains(&fault), "{err}");
    let (code, _, err) = run(&["run", "blok"]);
    assert!(code == 1 && err.contains(&fault), "{err}");
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
fn a_list_leaves_out_only_what_was_removed() {
    let tree = Tree::new("list-unread");
    fs::write(tree.0.join("slow/stats"), "started many\n").unwrap();
    for args in [&["list"][..], &["list", "--json"]] {
        let (status, out, err) = tree.run(args);
        assert_eq!((status, out.as_str()), (1, ""), "{err}");
        assert!(err.contains("slow/stats: line 1: \"many\""), "{err}");
    }
    fs::remove_file(tree.0.join("slow/stats")).unwrap();
    let (status, _, err) = tree.run(&["list"]);
    assert!(status == 0 && err.contains("no instances"), "{err}");
}

#[test]
fn json_is_one_object_a_line() {
    let tree = Tree::new("json");
    for (args, lines) in [
        (&["list", "--json"][..], 1),
        (&["list", "slow", "--json"], 1),
        (&["list", "--trackers", "--json"], 1),
        (&["list", "--trackers", "block", "--json"], 1),
        (&["hist", "--json"], 1),
        (&["pending", "--json"], 1),
        (&["watch", "--json"], 3),
        (&["check", "--json"], 7),
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
    // Both checks have the same schema.
    for args in [&["check", "--json"][..], &["check", "--json", "--rt", "0"]] {
        let (_, out, _) = tree.run(args);
        for line in out.lines() {
            let row: serde_json::Map<_, _> = serde_json::from_str(line).unwrap();
            let keys: Vec<&str> = row.keys().map(String::as_str).collect();
            let schema = ["group", "row", "state", "found", "why", "fix", "cpus"];
            assert_eq!(keys, schema, "{line}");
            let state = row["state"].as_str().unwrap();
            assert!(["ok", "warn", "bad", "n/a"].contains(&state), "{line}");
        }
    }
}

#[test]
fn watch_reports_losses_and_ends_with_2() {
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
    // An alert that was lost is an alert.
    fs::write(tree.0.join("alerts"), "lost=3\n").unwrap();
    let (status, _, err) = tree.run(&["watch"]);
    assert!(status == 2 && err.contains("lost=3 alerts"), "{err}");
}

#[test]
fn the_end_of_a_watch_has_its_reason() {
    let tree = Tree::new("ends");
    let (_, _, err) = tree.run(&["watch", "slow"]);
    assert!(
        err.ends_with("latency-tracker: the instance slow was removed\n"),
        "{err}"
    );
    let (_, _, err) = tree.run(&["watch"]);
    assert!(
        err.contains("latency-tracker: the latency_tracker module was unloaded\n"),
        "{err}"
    );
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
fn errors_end_with_1_and_name_the_fix() {
    let tree = Tree::new("errors");
    let file = &tree.0.join("new").display().to_string();
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
        (&["list", "nosuch"], "no instance named \"nosuch\""),
        (&["list", "--trackers", "blok"], "did you mean block?"),
        (&["list", "--trackers", "zzz"], "there are block"),
        // This is refused before anything is measured.
        (&["run", "block", "-o", "-"], "-: expected the name of a"),
        (&["stacks", "block", "-o", "no/a"], "no/a: No such file"),
        (
            &["profile", "record", "-o", "no/a"],
            "no/a: No such file or directory",
        ),
        (
            &["profile", "record", "-o", file, "--svg", file],
            "new: named for two outputs",
        ),
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
        err.contains("is not loaded") && err.contains("make install"),
        "{err}"
    );
}

#[test]
fn what_stops_or_limits_the_exporter_is_one_line() {
    let tree = Tree::new("export");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (status, out, err) = tree.run(&["export", "--listen", &address]);
    assert_eq!((status, out.as_str()), (1, ""));
    let expected = format!(
        "latency-tracker: cannot listen on {address}: Address already in use (os error 98); \
         choose another address with --listen\n"
    );
    assert_eq!(err, expected);
    // A directory of captures that not even root can read: the exporter runs without it.
    let captures = tree.0.join("version").display().to_string();
    let args = ["export", "--listen", "127.0.0.1:0", "--captures", &captures];
    let mut command = tree.command(&args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut first = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut first).unwrap();
    assert!(first.starts_with("http://127.0.0.1:"), "{first}");
    child.kill().unwrap();
    let err = child.wait_with_output().unwrap().stderr;
    let expected =
        format!("latency-tracker: no exemplars: {captures}: Not a directory (os error 20)\n");
    assert_eq!(String::from_utf8(err).unwrap(), expected);
}

#[test]
fn metrics_that_cannot_be_sent_are_reported_with_the_cause() {
    let tree = Tree::new("unsent");
    let mut command = tree.command(&[
        "export",
        "--listen",
        "127.0.0.1:0",
        "--otlp",
        "http://127.0.0.1:1",
        "--interval",
        "1s",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The exporter has read the files before it prints its address.
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    fs::write(tree.0.join("new"), "attempts twelve\n").unwrap();
    fs::rename(tree.0.join("new"), tree.0.join("slow/stats")).unwrap();
    let err = BufReader::new(child.stderr.take().unwrap());
    let mut notes = err.lines().map(Result::unwrap);
    let note = notes.find(|note| note.contains("no metrics: ")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let cause = "slow/stats: line 1: \"twelve\": expected a number from 0 to 2^64-1";
    assert!(note.ends_with(cause), "{note}");
}

#[test]
fn not_permitted_is_not_missing() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    let tree = Tree::new("denied");
    // Modes do not restrict root, so root runs a copy of the program as another user. The original may be in a
    // directory that this user may not enter.
    let root = nix::unistd::geteuid().is_root();
    let bin = std::env::temp_dir().join(format!("lt-cli-denied-bin-{}", std::process::id()));
    program(
        &bin,
        fs::read(env!("CARGO_BIN_EXE_latency-tracker")).unwrap(),
    );
    let mode = |mode| fs::set_permissions(&tree.0, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o500);
    let run = |args: &[&str]| {
        let mut command = Command::new(&bin);
        command.env("LATENCY_TRACKER_PROC_ROOT", &tree.0).args(args);
        if root {
            command.uid(65534).gid(65534);
        }
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    if !root {
        mode(0o000);
    }
    let all: [&[&str]; 12] = [
        &["list"],
        &["list", "slow"],
        &["list", "--trackers"],
        &["start", "a", "block"],
        &["run", "block"],
        &["stop", "slow"],
        &["watch"],
        &["hist"],
        &["pending", "slow"],
        &["profile", "show", "slow"],
        &["top"],
        &["record", "slow"],
    ];
    for args in all {
        let (status, _, err) = run(args);
        assert_eq!(status, Some(1), "{args:?}");
        assert!(
            err.contains("is loaded, but this user may not"),
            "{args:?}: {err}"
        );
        assert!(err.contains("run it as root"), "{args:?}: {err}");
        assert!(
            !err.contains("not loaded") && !err.contains("install"),
            "{args:?}: {err}"
        );
    }
    let (_, out, _) = run(&["check"]);
    assert!(
        out.contains("loaded, but this user may not use it"),
        "{out}"
    );
    assert!(!out.contains("neither"), "{out}");
    let disk = " free for /var/lib/latency-tracker/captures";
    assert!(out.contains(disk), "{out}");
    mode(0o700);
    fs::remove_dir_all(&tree.0).unwrap();
    for args in all {
        let (status, _, err) = run(args);
        assert_eq!(status, Some(1), "{args:?}");
        assert!(
            err.contains("the latency_tracker module is not loaded"),
            "{args:?}: {err}"
        );
        assert!(!err.contains("may not"), "{args:?}: {err}");
    }
    fs::remove_file(&bin).unwrap();
}

#[test]
fn list_shows_everything_about_one_instance_or_one_tracker() {
    let tree = Tree::new("one");
    let (status, out, _) = tree.run(&["list", "slow"]);
    assert_eq!(status, 0);
    for line in [
        "threshold 10ms the limit",
        "gone 0 dropped: their object is gone without an end",
        "replaced 0 dropped: their key started again",
        "filtered 0 of attempts: refused by a filter",
        "max 20.40ms the longest delay",
    ] {
        let words = |l: &str| l.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(out.lines().any(|l| words(l) == line), "{line}:\n{out}");
    }
    let about = "Note: operations in flight before its start are not tracked.";
    assert!(out.contains(about), "{out}");
    let trackers = "block: block I/O\n  threshold=1 duration: x\nother: y\n  from=a b: z\n";
    fs::write(tree.0.join("trackers"), trackers).unwrap();
    let (_, out, _) = tree.run(&["list", "--trackers", "other"]);
    assert!(out.contains("from=a") && !out.contains("block"), "{out}");
}

#[test]
fn each_example_of_a_tracker_starts_an_instance_of_it() {
    let tree = Tree::new("examples");
    let file = |path: &str, text: &str| fs::write(tree.0.join(path), text).unwrap();
    // The trackers of the module, with their parameters.
    let abi = include_str!("../../../tests/abi.txt");
    let sections: Vec<&str> = abi
        .split("\n\n")
        .filter(|section| section.contains("\n  alert: "))
        .collect();
    assert!(sections.len() > 15, "{sections:?}");
    let described = |line: &str| match line.contains(": ") {
        true => String::new(),
        false => format!("{line}: x\n"),
    };
    let lines = sections.iter().flat_map(|section| section.lines());
    file("trackers", &lines.map(described).collect::<String>());
    for section in sections {
        let tracker = section.lines().next().unwrap();
        let (status, out, err) = tree.run(&["list", "--trackers", tracker]);
        assert_eq!((status, err.as_str()), (0, ""), "{tracker}");
        let (_, examples) = out.split_once("  Examples:\n").unwrap_or_default();
        assert!(
            examples.lines().all(|line| line.chars().count() < 80),
            "{out}"
        );
        // Other modules create the instances of `module`.
        assert_eq!(examples.is_empty(), tracker == "module", "{out}");
        for command in examples.replace(" \\\n", " ").lines() {
            let words: Vec<&str> = command.split_whitespace().collect();
            assert_eq!(words[..2], ["latency-tracker", "start"], "{out}");
            file("control", "");
            let (status, out, err) = tree.run(&words[1..]);
            assert_eq!(status, 0, "{command}: {err}");
            assert_eq!(out.trim_end(), words[2..].join(" "));
            assert_eq!(words[3], tracker, "{command}");
        }
    }
    let (_, out, _) = tree.run(&["list", "--trackers"]);
    assert!(!out.contains("Examples:"), "{out}");
    // This kernel cannot run the tracker.
    file("trackers", "net: x\n  unavailable: no such tracepoint\n");
    let (_, out, _) = tree.run(&["list", "--trackers", "net"]);
    assert!(
        out.contains("no such tracepoint") && !out.contains("Examples:"),
        "{out}"
    );
}

#[test]
fn pending_shows_what_began_before_the_start_and_notes_what_is_not_tracked() {
    let tree = Tree::new("stock");
    let (status, _, err) = tree.run(&["pending"]);
    assert_eq!(status, 0);
    let about = "slow (block): operations in flight before its start are not tracked";
    assert!(err.contains(about), "{err}");
    let file = |path: &str, text: &str| fs::write(tree.0.join(path), text).unwrap();
    file("control", "slow offcpu enabled=1 threshold=10000000\n");
    file(
        "slow/stats",
        &format!("{STATS}before_start 1\nbefore_start_ended 0\n"),
    );
    let line = "age=2500000000 start=7 pid=1 tid=2 comm=\"a b\" state=D stack=\"f+0x1\" since=before-start\n";
    file("slow/pending", line);
    let (status, out, err) = tree.run(&["pending", "slow"]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(
        out.contains(">2.50s")
            && out.contains("began before the start: state=D")
            && !out.contains("since="),
        "{out}"
    );
}

#[test]
fn watch_begins_with_recorded_alerts() {
    // A file is read from its start, like the kernel's file after a seek to the start. vm/command
    // tests the real file, and --new.
    let tree = Tree::new("recorded");
    let (status, out, _) = tree.run(&["watch", "slow"]);
    assert_eq!((status, out.lines().count()), (2, 2));
}

#[test]
fn watch_separates_old_alerts_from_new_ones_for_a_person() {
    let tree = Tree::new("parts");
    let at = |time: u64| ALERT.replace("time=1234567890123", &format!("time={time}"));
    let alerts = [at(1), at(2), at(u64::MAX)].concat();
    fs::write(tree.0.join("alerts"), alerts).unwrap();
    let notes = "latency-tracker: alerts from before watch started (--new leaves them out):\n\
        latency-tracker: alerts since watch started:\n";
    let (_, out, err) = tree.run(&["watch"]);
    assert!(out.lines().count() == 4 && err.starts_with(notes), "{err}");
    for option in ["--json", "--new"] {
        let (_, _, err) = tree.run(&["watch", option]);
        assert!(!err.contains("watch started"), "{option}: {err}");
    }
}

/// Runs the action that `--help` shows, for an alert with a name that a user chose.
#[test]
fn the_example_of_the_help_passes_a_name_on_as_one_word() {
    let tree = Tree::new("injection");
    let (_, help, _) = tree.run(&["watch", "--help"]);
    let (_, rest) = help.split_once("shell,command='").unwrap();
    let (command, _) = rest.split_once('\'').unwrap();
    let bin = tree.0.join("bin");
    fs::create_dir(&bin).unwrap();
    let log = tree.0.join("log");
    let script = format!(
        "#!/bin/sh\nfor word; do printf '<%s>\\n' \"$word\"; done >{}\n",
        log.display()
    );
    program(&bin.join("logger"), script);
    let alert = ALERT.replace("comm=\"fio\"", "comm=\"x -f /etc/issue \"");
    fs::write(tree.0.join("slow/alerts"), &alert).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let action = format!("shell,command={command}");
    let mut run = tree.command(&["watch", "slow", "--on-alert", &action]);
    let status = run.env("PATH", path).status().unwrap();
    assert_eq!(status.code(), Some(2));
    let words = fs::read_to_string(log).unwrap();
    assert_eq!(words, format!("<-->\n<{}>\n", alert.trim_end()));
}

#[test]
fn counters_are_shown_with_their_rates() {
    let tree = Tree::new("rates");
    let (status, out, _) = tree.run(&["list", "slow", "-i", "10ms", "2"]);
    assert_eq!(status, 0);
    let line = |start: &str| out.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((line("slow, in "), line("  COUNTER")), (2, 2), "{out}");
    // Nothing has happened meanwhile. A counter that is not a sum, such as `max`, has no rate.
    let words = |key: &str| {
        let row = out
            .lines()
            .find(|line| line.starts_with(&format!("  {key} ")));
        row.unwrap()
            .split_whitespace()
            .map(String::from)
            .collect::<Vec<_>>()
    };
    assert_eq!(words("alerts")[..4], ["alerts", "1", "0", "alerts"]);
    assert_eq!(words("max")[..3], ["max", "20.40ms", "the"]);
    let (status, out, _) = tree.run(&["list", "slow", "-i", "10ms", "1", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, &report["per_second"]["alerts"]), (0, &0.0.into()));
    let (status, _, error) = tree.run(&["list", "-i", "1"]);
    assert_eq!(status, 1);
    assert!(error.contains("NAME"), "{error}");
    let (status, _, error) = tree.run(&["list", "slow", "-i", "0"]);
    assert_eq!(status, 1);
    assert!(error.contains("greater than 0"), "{error}");
}

#[test]
fn a_reader_that_exits_is_no_error() {
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
fn a_watch_ends_when_its_reader_exits_even_without_an_alert() {
    let tree = Tree::new("reader");
    let alerts = tree.0.join("slow/alerts");
    fs::remove_file(&alerts).unwrap();
    mkfifo(&alerts, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    // The file does not end while a process can write to it.
    let mut open = fs::OpenOptions::new();
    let writer = open.read(true).write(true).open(&alerts).unwrap();
    let begun = Instant::now();
    let mut child = tree
        .command(&["watch", "slow", "--new", "-d", "120"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut heading = String::new();
    reader.read_line(&mut heading).unwrap();
    assert!(heading.starts_with("INSTANCE "), "{heading}");
    drop(reader);
    let output = child.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(120), "ended by -d");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
    drop(writer);
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
        "latency-tracker-analyze-path.1",
        "latency-tracker-analyze-delays.1",
        "latency-tracker-analyze-wakeups.1",
        "latency-tracker-analyze-sleeps.1",
        "latency-tracker-analyze-cpu.1",
        "latency-tracker-analyze-irq.1",
        "latency-tracker-analyze-syscalls.1",
        "latency-tracker-analyze-io.1",
        "latency-tracker-analyze-locks.1",
        "latency-tracker-analyze-work.1",
        "latency-tracker-analyze-reclaim.1",
        "latency-tracker-analyze-net.1",
        "latency-tracker-watch.1",
        "latency-tracker-top.1",
    ] {
        let text = fs::read_to_string(directory.join(page)).unwrap();
        assert!(
            text.contains(".TH") && !text.contains("proc-root"),
            "{page}"
        );
        assert!(
            !text.contains("EXTRA") && text.contains(".SH SEE ALSO"),
            "{page}"
        );
    }
    let page = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    let (main, record) = (page("latency-tracker.1"), page("latency-tracker-record.1"));
    for section in ["EXIT STATUS", "QUESTIONS", "FILES", "SEE ALSO", "TRACKERS"] {
        assert!(main.contains(&format!(".SH {section}\n")), "{section}");
    }
    assert!(main.contains("\\fBoffcpu\\fR\nhow long tasks are off the CPU"));
    assert!(record.contains(".SH FILES\n") && record.contains("\\fBlatency\\-tracker\\fR(1)"));
    for shell in ["bash", "zsh", "fish"] {
        let (status, out, _) = tree.run(&["completions", shell]);
        assert_eq!(status, 0);
        assert!(
            out.contains(&format!("LATENCY_TRACKER_COMPLETE={shell}")),
            "{shell}"
        );
    }
    // The completion scripts ask in this way.
    let mut asks = tree.command(&[]);
    asks.args(["--", "latency-tracker", "record", "--"])
        .env("LATENCY_TRACKER_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", "2")
        .env("_CLAP_IFS", "\n");
    let out = String::from_utf8(asks.output().unwrap().stdout).unwrap();
    let has = |option: &str| out.lines().any(|line| line == option);
    assert!(has("--events-for"), "{out}");
    assert!(!has("--proc-root"), "a hidden option is offered");
}
