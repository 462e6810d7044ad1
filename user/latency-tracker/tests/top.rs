// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tests `top` from outside, with a directory in place of /proc/latency_tracker: tables, JSON, and
//! the live view. The live view runs on a real terminal, which must be restored whatever ends the
//! program. The real files are tested in the VM.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod terminal;

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::fcntl::OFlag;
use nix::pty::{PtyMaster, grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, Termios, tcgetattr};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::Value;

const STATS: &str = "attempts 12\nstarted 12\nfull 0\nended 10\npending 2\nalerts 1\nalerts_lost 0\nmin 2000\n\
    mean 2400\nmax 20400123\n";

const ALERT: &str = "seq=17 time=1234567890 instance=slow tracker=block reason=threshold delay=10412345 \
    threshold=10000000 cpu=1 pid=812 tid=812 comm=\"fio\" dev=8:0 disk=\"sda\" op=\"WS\" sector=2048 bytes=4096\n";

/// The sequences that enter and leave the alternate screen.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// A separate tree for each test.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("lt-top-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("slow")).unwrap();
        let tree = Self(root);
        tree.write(
            "control",
            "slow block enabled=1 threshold=10000000 dev=all\n",
        );
        tree.write("alerts", ALERT);
        tree.write("slow/stats", STATS);
        tree.write(
            "slow/histogram",
            "1920 2048 4\n2048 2304 5\n18874368 20971520 1\n",
        );
        let pending =
            "age=5000000000 start=7 rq=0x1 pid=1 tid=2 comm=\"a\\x1bb\" dev=8:0 sector=8\n";
        tree.write("slow/pending", pending);
        tree
    }

    /// Replaces a file; a reader sees the old or the new one, never a part.
    fn write(&self, path: &str, text: &str) {
        fs::write(self.0.join("new"), text).unwrap();
        fs::rename(self.0.join("new"), self.0.join(path)).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_latency-tracker"));
        self.prepare(&mut command);
        command.arg("top").args(args);
        command
    }

    fn prepare(&self, command: &mut Command) {
        command.env("LATENCY_TRACKER_PROC_ROOT", &self.0);
        command.env("TERM", "xterm").env("LANG", "C.UTF-8");
        for name in ["COLUMNS", "NO_COLOR", "LC_ALL", "LC_CTYPE"] {
            command.env_remove(name);
        }
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let output = self.command(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code().unwrap(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    /// Starts the live view on a separate terminal.
    fn live(&self, args: &[&str], no_color: bool) -> Live {
        // The programs of other tests must not inherit the terminal: they would keep it alive.
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let master = posix_openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .custom_flags(OFlag::O_NOCTTY.bits());
        let slave = options.open(ptsname_r(&master).unwrap()).unwrap();
        let copy = || Stdio::from(slave.try_clone().unwrap());
        let sized = Command::new("stty")
            .args(["cols", "80", "rows", "24"])
            .stdin(copy())
            .status();
        assert!(sized.unwrap().success());
        let before = tcgetattr(&slave).unwrap();
        // The terminal becomes the controlling terminal, as for a shell.
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .arg(env!("CARGO_BIN_EXE_latency-tracker"));
        self.prepare(&mut command);
        if no_color {
            command.env("NO_COLOR", "1");
        }
        command.arg("top").args(args);
        command.stdin(copy()).stdout(copy()).stderr(copy());
        let child = command.spawn().unwrap();
        Live {
            child,
            master,
            slave: Some(slave),
            before,
            shown: String::new(),
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A program on a terminal.
struct Live {
    child: Child,
    master: PtyMaster,
    /// Kept open, so that the terminal stays.
    slave: Option<File>,
    before: Termios,
    /// Output of the program that has not been examined yet.
    shown: String,
}

impl Live {
    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    fn mode(&self) -> Termios {
        tcgetattr(self.slave.as_ref().unwrap()).unwrap()
    }

    fn is_raw(&self) -> bool {
        !self.mode().local_flags.contains(LocalFlags::ICANON)
    }

    fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for a text without styles; returns the bytes up to its end.
    fn wait_for(&mut self, text: &str) -> String {
        let mut part = [0; 4096];
        loop {
            if plain(&self.shown).contains(text) {
                return std::mem::take(&mut self.shown);
            }
            let read = self.master.read(&mut part).unwrap();
            self.shown += &String::from_utf8_lossy(&part[..read]);
        }
    }

    /// Waits for the end; returns the exit status and everything that was printed.
    fn ends(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        assert_eq!(self.mode(), self.before, "the mode of the terminal");
        drop(self.slave.take());
        let mut part = [0; 4096];
        // The last read fails with EIO.
        while let Ok(read) = self.master.read(&mut part) {
            self.shown += &String::from_utf8_lossy(&part[..read]);
        }
        (status.code(), self.shown)
    }
}

/// Text without styles. The view jumps over blanks instead of writing them, so each jump becomes a blank.
fn plain(shown: &str) -> String {
    let mut parts = shown.split("\x1b[");
    let mut text = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = part
            .find(|c: char| c.is_ascii_alphabetic())
            .map_or(part.len(), |end| end + 1);
        let (sequence, rest) = part.split_at(end);
        match sequence.chars().last() {
            Some('m') => {}
            Some('H') if sequence != "H" => text.push(' '),
            _ => text += &format!("\x1b[{sequence}"),
        }
        text += rest;
    }
    text
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn once_prints_the_contents_of_the_files() {
    let tree = Tree::new("once");
    let (status, out, err) = tree.run(&["--once"]);
    assert_eq!((status, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    assert!(
        lines[0].ends_with("1 instance, since the start of each instance"),
        "{out}"
    );
    let headings = [
        "NAME", "TRACKER", "RATE", "P50", "P99", "MAX", "ALERTS", "PENDING", "OLDEST",
    ];
    assert_eq!(words(lines[1]), headings);
    let row = [
        "slow", "block", "-", "2.30us", "20.40ms", "20.40ms", "1", "2", "5.00s",
    ];
    assert_eq!(words(lines[2]), row);
    assert!(out.contains("fio/812  sda WS sector 2048 4K"), "{out}");
    assert!(out.contains("a?b/2") && !out.contains('\u{1b}'), "{out}");
    // The percentiles equal the percentiles of `hist`.
    let (_, out, _) = tree.run(&["--once", "--json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    let mut hist = Command::new(env!("CARGO_BIN_EXE_latency-tracker"));
    tree.prepare(&mut hist);
    hist.args(["hist", "slow", "--json"]);
    let hist: Value = serde_json::from_slice(&hist.output().unwrap().stdout).unwrap();
    let one = &json["instances"][0];
    assert_eq!(one["p50"], hist["percentiles"]["p50"]);
    assert_eq!(one["p99"], hist["percentiles"]["p99"]);
    assert_eq!(
        (&one["ended"], &one["max"]),
        (&hist["stats"]["ended"], &hist["stats"]["max"])
    );
    assert_eq!(
        (&one["interval"], &one["rate"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(json["alerts"][0]["delay"], 10_412_345);
    assert_eq!(json["pending"][0]["instance"], "slow");
    assert_eq!(json["pending"][0]["age"], 5_000_000_000_u64);
    assert_eq!(one["is_old"], false);
    assert_eq!(json["dropped"], 0);
}

#[test]
fn alerts_that_json_leaves_out_are_counted() {
    let tree = Tree::new("many");
    let alert = |seq: u64| ALERT.replace("seq=17", &format!("seq={seq}"));
    tree.write("alerts", &(1..=300).map(alert).collect::<String>());
    let (_, out, _) = tree.run(&["--json", "-n", "1"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["alerts"].as_array().unwrap().len(), 256);
    assert_eq!(json["alerts"][0]["seq"], 45);
    assert_eq!(json["dropped"], 44);
    assert_eq!(json["missed"], 0);
    assert!(json.get("groups").is_none(), "{json}");
    // The groups include the alerts that `alerts` leaves out.
    let (_, out, _) = tree.run(&["--json", "-n", "1", "--by", "task"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["groups"][0]["count"], 300);
    assert_eq!(json["dropped"], 44);
}

#[test]
fn late_operations_are_grouped_by_task_subject_and_stack() {
    let tree = Tree::new("groups");
    let alert = |reason: &str, time: u64, delay: u64, more: &str| {
        let raised = format!("{reason} delay={delay}");
        let line = ALERT.replace("threshold delay=10412345", &raised);
        let line = line.replace("time=1234567890", &format!("time={time}"));
        line.replace('\n', &format!("{more}\n"))
    };
    let stack = " stack=\"bio_await+0x79/0xb0,ext4_sync+0x1/0x2 [ext4]\"";
    let mut alerts = vec![
        ALERT.to_string(),
        alert("timeout", 2_000_000_000, 1_000_000_000, stack),
        // The end of the same operation.
        alert("late", 2_500_000_000, 1_500_000_000, ""),
    ];
    tree.write("alerts", &format!("lost=9\n{}", alerts.concat()));
    let total = 1_500_000_000 + 10_412_345;
    let json = |by: &str| -> Value {
        let (_, out, _) = tree.run(&["--once", "--json", "--by", by]);
        serde_json::from_str(&out).unwrap()
    };
    let by_task = json("task");
    assert_eq!(by_task["missed"], 9);
    assert_eq!(by_task["alerts"].as_array().unwrap().len(), 3);
    let expected = serde_json::json!([{
        "instance": "slow", "pid": 812, "tid": 812, "comm": "fio", "count": 2, "total": total,
        "longest": 1_500_000_000_u64, "last": 2_500_000_000_u64, "is_at_least": false,
    }]);
    assert_eq!(by_task["groups"], expected);
    assert_eq!(json("subject")["groups"][0]["subject"], "sda");
    assert_eq!(json("subject")["groups"][0]["total"], total);
    let by_stack = json("stack");
    let stack = serde_json::json!(["bio_await", "ext4_sync [ext4]"]);
    assert_eq!(by_stack["groups"][0]["stack"], stack);
    assert_eq!(by_stack["groups"][1]["stack"], serde_json::json!([]));

    let row = |by: &str, at: usize| {
        let (status, out, err) = tree.run(&["--once", "--by", by]);
        assert_eq!((status, err.as_str()), (0, ""));
        assert!(out.contains("lost: 9 alerts overwritten"), "{out}");
        assert!(!out.contains("ALERTS (newest first)"), "{out}");
        let title = format!("BY {} (longest total first)", by.to_uppercase());
        let mut lines = out.lines().skip_while(|line| !line.ends_with(&title));
        let row = words(lines.nth(1 + at).unwrap()).join(" ");
        // The first word is the time since the last alert.
        row.split_once(' ').unwrap().1.to_string()
    };
    assert_eq!(row("task", 0), "1.51s slow 2 1.50s fio/812");
    assert_eq!(row("subject", 0), "1.51s slow 2 1.50s sda");
    assert_eq!(
        row("stack", 0),
        "1.50s slow 1 1.50s bio_await <- ext4_sync [ext4]"
    );
    assert_eq!(row("stack", 1), "10.41ms slow 1 10.41ms [no stack]");
    // An operation that has not ended is at least this long.
    alerts.truncate(2);
    tree.write("alerts", &format!("lost=9\n{}", alerts.concat()));
    assert_eq!(row("task", 0), ">1.01s slow 2 >1.00s fio/812");
    assert_eq!(json("task")["groups"][0]["is_at_least"], true);
    // More groups than lines.
    let many = |tid: u64| ALERT.replace("tid=812", &format!("tid={tid}"));
    tree.write("alerts", &(1..=13).map(many).collect::<String>());
    let (_, out, _) = tree.run(&["--once", "--by", "task"]);
    assert!(out.contains("\nand 3 more; --json has all\n"), "{out}");
    assert_eq!(json("task")["groups"].as_array().unwrap().len(), 13);
}

#[test]
fn a_key_groups_the_alerts_of_the_live_view() {
    let tree = Tree::new("group-key");
    let mut live = tree.live(&["-i", "1h"], false);
    live.wait_for("ALERTS (newest first)");
    for title in [
        "BY TASK (",
        "BY SUBJECT (",
        "BY STACK (",
        "ALERTS (newest first)",
    ] {
        live.press("t\x0c");
        live.wait_for(title);
    }
    live.press("q");
    assert_eq!(live.ends().0, Some(0));
    let mut live = tree.live(&["-i", "1h", "--by", "subject"], false);
    let shown = plain(&live.wait_for("IN FLIGHT"));
    let (_, after) = shown.split_once("BY SUBJECT (").unwrap();
    assert!(
        after.contains("10.41ms") && after.contains("sda"),
        "{shown:?}"
    );
    // F5
    live.press("\x1b[15~\x0c");
    live.wait_for("BY STACK (");
    live.press("q");
    assert_eq!(live.ends().0, Some(0));
}

#[test]
fn what_was_lost_is_shown_by_its_counter() {
    let tree = Tree::new("lost");
    let lost = STATS
        .replace("full 0", "full 3")
        .replace("alerts_lost 0", "alerts_lost 4");
    tree.write("slow/stats", &lost);
    tree.write("alerts", &format!("lost=9\n{ALERT}"));
    let (_, out, _) = tree.run(&["-b", "-n", "1"]);
    assert!(
        out.contains("lost: slow full=3 alerts_lost=4; 9 alerts overwritten"),
        "{out}"
    );
    assert!(out.lines().any(|line| line.ends_with(" 7")), "{out}");
    let (_, out, _) = tree.run(&["--json", "-n", "1"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["instances"][0]["lost"]["alerts_lost"], 4);
    assert_eq!(json["missed"], 9);
}

#[test]
fn a_table_fits_on_a_terminal_and_is_whole_in_a_pipe() {
    let tree = Tree::new("width");
    let name = "n".repeat(31);
    tree.write(
        "control",
        &format!("{name} workqueue enabled=1 threshold=10000000\n"),
    );
    fs::rename(tree.0.join("slow"), tree.0.join(&name)).unwrap();
    let (status, shown, _) = terminal::on_a_terminal(tree.command(&["--once"]), 79);
    assert_eq!(status, 0);
    let row = shown.lines().nth(2).unwrap();
    assert!(row.starts_with("nnn") && !row.contains(&name), "{shown}");
    assert!(
        shown.lines().all(|line| line.chars().count() < 80),
        "{shown}"
    );
    assert!(tree.run(&["--once"]).1.contains(&name));
}

#[test]
fn errors_and_empty_trees_name_the_next_step() {
    let tree = Tree::new("empty");
    let (status, _, err) = tree.run(&["nosuch", "--once"]);
    assert_eq!(status, 1);
    assert!(
        err.contains("no instance named \"nosuch\"") && err.contains("latency-tracker list"),
        "{err}"
    );
    for wrong in [
        &["-i", "0", "--once"][..],
        &["--sort", "size"],
        &["--once", "--by", "disk"],
        &["--once", "-n", "2"],
        &["-i", "x"],
    ] {
        let (status, _, err) = tree.run(wrong);
        assert_eq!(status, 1, "{wrong:?}");
        assert!(!err.is_empty(), "{wrong:?}");
    }
    tree.write("control", "");
    let (status, out, err) = tree.run(&["--once"]);
    assert_eq!(status, 0);
    assert!(
        err.contains("no instances; start one: latency-tracker start"),
        "{err}"
    );
    assert!(out.contains("0 instances"), "{out}");
    let (_, out, _) = tree.run(&["--once", "--json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["instances"].as_array().unwrap().len(), 0);
    fs::remove_file(tree.0.join("control")).unwrap();
    let (status, out, err) = tree.run(&["--once"]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(
        err.contains("is not loaded") && err.contains("make install"),
        "{err}"
    );
}

#[test]
fn intervals_add_up_and_instances_may_disappear_and_return() {
    let tree = Tree::new("sum");
    let mut command = tree.command(&["--json", "-i", "20ms"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let first = next();
    assert_eq!(first["instances"][0]["ended"], 10);
    assert_eq!(first["alerts"].as_array().unwrap().len(), 1);
    let second = next();
    assert_eq!(second["instances"][0]["ended"], 0);
    assert_eq!(second["alerts"].as_array().unwrap().len(), 0);
    tree.write(
        "slow/histogram",
        "1920 2048 4\n2048 2304 305\n18874368 20971520 1\n",
    );
    let grown = STATS
        .replace("ended 10", "ended 310")
        .replace("alerts 1\n", "alerts 3\n");
    tree.write("slow/stats", &grown);
    let (mut ended, mut alerts) = (0, 0);
    while ended < 300 || alerts < 2 {
        let one = next()["instances"][0].clone();
        ended += one["ended"].as_u64().unwrap();
        alerts += one["new_alerts"].as_u64().unwrap();
        if one["ended"] != 0 {
            let (rate, interval) = (
                one["rate"].as_f64().unwrap(),
                one["interval"].as_u64().unwrap(),
            );
            let expected = one["ended"].as_f64().unwrap() * 1e9 / interval as f64;
            assert!((rate / expected - 1.0).abs() < 1e-6, "{rate} {expected}");
        }
    }
    assert_eq!((ended, alerts), (300, 2));
    // The instance vanishes and returns, and then the module is removed.
    fs::rename(tree.0.join("slow"), tree.0.join("gone")).unwrap();
    while !next()["instances"].as_array().unwrap().is_empty() {}
    fs::rename(tree.0.join("gone"), tree.0.join("slow")).unwrap();
    while next()["instances"].as_array().unwrap().is_empty() {}
    fs::remove_file(tree.0.join("control")).unwrap();
    // Reads the remaining output.
    while lines.next().is_some() {}
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(
        err.contains("the latency_tracker module was removed"),
        "{err}"
    );
}

#[test]
fn the_live_view_obeys_keys_and_restores_the_terminal() {
    let tree = Tree::new("keys");
    for keys in ["q", "\x1b[21~", "\x1b", "\x03"] {
        let mut live = tree.live(&["-i", "50ms"], false);
        let first = live.wait_for("Quit");
        assert!(live.is_raw());
        assert!(first.contains(ENTER) && first.contains("slow"), "{first:?}");
        let text = plain(&first);
        assert!(
            text.contains("IN FLIGHT") && text.contains("since their start"),
            "{text:?}"
        );
        // The terminal is not queried.
        assert!(
            !first.contains("\x1b[6n") && !first.contains("\x1b[c"),
            "{first:?}"
        );
        // ^L draws everything again, not only the changes.
        live.press("\r\x0c");
        live.wait_for("counters since its start");
        live.press("h\x0c");
        live.wait_for("any key goes back");
        live.press("x/zz\x0c");
        live.wait_for("no instance passes the filter");
        // Esc discards the new filter, but only once no more bytes of an escape sequence can follow.
        live.press("\x1b");
        live.wait_for("slow");
        live.press("p\x0c");
        live.wait_for("PAUSED");
        live.press(keys);
        let (status, rest) = live.ends();
        assert_eq!(status, Some(0), "{keys:?}");
        assert!(rest.ends_with(LEAVE), "{keys:?}: {rest:?}");
    }
}

#[test]
fn the_live_view_follows_the_size_of_the_terminal() {
    let tree = Tree::new("size");
    let mut live = tree.live(&["-i", "1h"], false);
    live.wait_for("Quit");
    for (columns, rows) in [("120", "40"), ("20", "5"), ("200", "60")] {
        let slave = live.slave.as_ref().unwrap().try_clone().unwrap();
        let mut resize = Command::new("stty");
        resize.args(["cols", columns, "rows", rows]).stdin(slave);
        assert!(resize.status().unwrap().success());
        match columns {
            "20" => live.wait_for("too small: 20x5"),
            _ => live.wait_for("Quit"),
        };
    }
    kill(live.pid(), Signal::SIGTERM).unwrap();
    let (status, rest) = live.ends();
    assert_eq!(status, Some(0));
    assert!(rest.ends_with(LEAVE), "{rest:?}");
}

#[test]
fn suspending_restores_the_terminal_until_the_program_continues() {
    let tree = Tree::new("suspend");
    let mut live = tree.live(&["-i", "1h"], false);
    live.wait_for("Quit");
    for by_key in [true, false] {
        match by_key {
            true => live.press("\x1a"),
            false => kill(live.pid(), Signal::SIGTSTP).unwrap(),
        }
        let stopped = waitpid(live.pid(), Some(WaitPidFlag::WUNTRACED)).unwrap();
        assert_eq!(stopped, WaitStatus::Stopped(live.pid(), Signal::SIGSTOP));
        assert_eq!(live.mode(), live.before);
        live.wait_for(LEAVE);
        kill(live.pid(), Signal::SIGCONT).unwrap();
        let again = live.wait_for("Quit");
        assert!(again.contains(ENTER) && again.contains("slow"), "{again:?}");
        assert!(live.is_raw());
    }
    live.press("q");
    assert_eq!(live.ends().0, Some(0));
}

#[test]
fn the_live_view_ends_with_the_module_and_with_its_terminal() {
    let tree = Tree::new("removed");
    let mut live = tree.live(&["-i", "1h"], false);
    live.wait_for("Quit");
    fs::rename(tree.0.join("control"), tree.0.join("away")).unwrap();
    let (status, rest) = live.ends();
    assert_eq!(status, Some(0));
    let (_, after) = rest.split_once(LEAVE).unwrap();
    assert!(
        after.contains("the latency_tracker module was removed"),
        "{rest:?}"
    );

    fs::rename(tree.0.join("away"), tree.0.join("control")).unwrap();
    let mut live = tree.live(&["-i", "1h"], false);
    live.wait_for("Quit");
    let Live {
        mut child,
        master,
        slave,
        ..
    } = live;
    drop((master, slave));
    // The program neither uses a CPU forever nor is killed by SIGHUP.
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn colours_are_left_out_on_request() {
    let tree = Tree::new("colours");
    for no_color in [false, true] {
        let mut live = tree.live(&["-i", "1h"], no_color);
        let shown = live.wait_for("Quit");
        live.press("q");
        live.ends();
        // Red or yellow, alone or with other attributes.
        let coloured = ["\x1b[31m", ";31m", "\x1b[38;5;1", "\x1b[38;5;3", "\x1b[33m"];
        assert_eq!(
            coloured.iter().any(|code| shown.contains(code)),
            !no_color,
            "{shown:?}"
        );
    }
}

#[test]
fn without_a_terminal_or_on_a_dumb_one_it_prints_tables() {
    let tree = Tree::new("dumb");
    let (_, out, _) = tree.run(&["-n", "2", "-i", "10ms"]);
    assert_eq!(out.matches("NAME").count(), 2, "{out}");
    assert!(
        out.contains("since the start of each instance") && out.contains("instance, over "),
        "{out}"
    );
    let mut command = tree.command(&["-n", "1"]);
    command.env("TERM", "dumb");
    let (status, out, _) = terminal::on_a_terminal(command, 80);
    assert_eq!(status, 0);
    assert!(out.contains("NAME") && !out.contains(ENTER), "{out:?}");
}
