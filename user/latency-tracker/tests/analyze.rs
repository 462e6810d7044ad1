// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `analyze` and `explain` from outside: on real traces (lt-ctf's testdata), on things that are not a
//! trace, and with a signal while `explain` waits.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

#[path = "analyze/drawn.rs"]
mod drawn;
#[expect(
    clippy::panic,
    clippy::expect_used,
    reason = "it is part of the command, too"
)]
#[path = "../src/analyze/picture/pftrace.rs"]
mod pftrace;
mod terminal;

use pftrace::Pftrace;

/// Size of each packet of the trace `compact`, in bytes.
const PACKET: usize = 16384;

/// A separate directory for each test.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lt-analyze-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Returns a directory with the traces of lt-ctf's tests.
    fn with_traces(name: &str) -> Self {
        Self::with("traces.tar.xz", name)
    }

    /// Returns a directory with the traces of an archive of lt-ctf's tests.
    fn with(archive: &str, name: &str) -> Self {
        let dir = Self::new(name);
        let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lt-ctf/testdata");
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(&dir.0).arg("-xJf");
        assert!(tar.arg(traces.join(archive)).status().unwrap().success());
        dir
    }

    fn path(&self, trace: &str, args: &[&str]) -> Command {
        self.of_trace(&["analyze", "path"], trace, args)
    }

    fn delays(&self, trace: &str, args: &[&str]) -> Command {
        self.of_trace(&["analyze", "delays"], trace, args)
    }

    fn of_trace(&self, what: &[&str], trace: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_latency-tracker"));
        command.args(what).arg(self.0.join(trace)).args(args);
        command.env_remove("COLUMNS").current_dir(&self.0);
        command
    }

    fn read(&self, file: &str) -> Pftrace {
        Pftrace::read(&fs::read(self.0.join(file)).unwrap())
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

/// Returns the threads that ran the most, from the error that names them.
fn busiest(dir: &Dir, trace: &str) -> Vec<String> {
    let (status, _, error) = run(&mut dir.path(trace, &["--tid", "4194304"]));
    assert_eq!(status, 1, "{error}");
    let (_, names) = error.split_once("the threads that ran the most: ").unwrap();
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
                // Exactly the steps of other threads, which explain a wait, are deeper than 0.
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
            // A request for the second half alone drops the first half, and gives the same steps for the second.
            let middle = from + (to - from) / 2;
            let args = ["--tid", &tid, "--json", "--from", &middle.to_string()];
            let (_, half, _) = run(&mut dir.path(trace, &args));
            let half: Value = serde_json::from_str(&half).unwrap();
            assert_eq!(steps(&half, middle), steps(&json, middle));
        }
    }
    assert!(deep > 20 && causes > 20, "{deep} {causes}");
}

/// Returns begin, end, thread and cause of each step after `from`.
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

/// A trace of perf, with perf's names of events and fields: a program waits for five children, one
/// after the other. Each sleeps for 20 ms.
#[test]
fn what_perf_recorded_is_read_too() {
    let dir = Dir::with("perf.tar.xz", "perf");
    let (status, json, error) = run(&mut dir.path("perf", &["--tid", "177", "--json"]));
    assert_eq!((status, error.as_str()), (0, ""));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["thread"]["comm"], "python3");
    let ms = |step: &Value| {
        let number = |name: &str| step[name].as_u64().unwrap();
        (number("end") - number("begin")) / 1_000_000
    };
    let steps = json["path"].as_array().unwrap();
    let causes: Vec<_> = steps.iter().map(|s| s["cause"].to_string()).collect();
    let sleeps = steps.iter().filter(|step| {
        step["thread"]["tid"] != 177
            && step["cause"]["by"] == "timer"
            && step["cause"]["syscall"] == "clock_nanosleep"
            && (15..25).contains(&ms(step))
    });
    assert_eq!(sleeps.count(), 5, "{causes:?}");
    for of in ["virtio1-req.0", "read", "softirq", "interrupted"] {
        assert!(
            causes.iter().any(|cause| cause.contains(of)),
            "no {of}: {causes:?}"
        );
    }
    // The name of a thread that existed before the trace comes from a separate event, at an earlier time.
    let (_, text, _) = run(&mut dir.path("perf", &["--tid", "42"]));
    assert!(text.starts_with("khugepaged/42 from 134"), "{text}");
}

#[test]
fn a_person_reads_a_sentence_a_table_and_then_the_path() {
    let dir = Dir::with_traces("text");
    let tid = &busiest(&dir, "compact")[0];
    let args = ["--tid", tid.as_str(), "--from", "+0", "--verbose"];
    let (status, text, said) = terminal::on_a_terminal(dir.path("compact", &args), 80);
    assert_eq!(status, 0, "{said}");
    let parts: Vec<_> = text.split("\n\n").collect();
    assert_eq!(parts.len(), 4, "{text}");
    assert!(parts[0].contains(&format!("/{tid} from ")), "{text}");
    assert!(parts[1].contains(" % of the time ("), "{text}");
    assert!(parts[2].trim_start().starts_with("TIME"), "{text}");
    assert!(parts[3].trim_start().starts_with("AT"), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    assert!(
        said.contains("events in ") && said.contains(" a second"),
        "{said}"
    );
}

#[test]
fn a_long_path_is_folded_unless_all_steps_are_requested() {
    let dir = Dir::with_traces("fold");
    let shown = |tid: &str, args: &[&str]| {
        let (status, text, said) = run(&mut dir.path("compact", &[&["--tid", tid], args].concat()));
        assert_eq!((status, said.as_str()), (0, ""), "{args:?}");
        let path = text.split("\n\n").nth(3).unwrap();
        path.lines().skip(1).map(str::to_string).collect::<Vec<_>>()
    };
    let summed = |lines: &[String]| -> usize {
        let last = lines.last().unwrap();
        let Some((left, _)) = last.split_once(" steps are summed up; --all shows them") else {
            return 0;
        };
        left.split(' ')
            .next()
            .unwrap()
            .replace(',', "")
            .parse()
            .unwrap()
    };
    let mut long = 0;
    for tid in busiest(&dir, "compact") {
        let (_, json, _) = run(&mut dir.path("compact", &["--tid", &tid, "--json"]));
        let json: Value = serde_json::from_str(&json).unwrap();
        let steps = json["path"].as_array().unwrap();
        let all = shown(&tid, &["--all"]);
        assert_eq!((all.len(), summed(&all)), (steps.len(), 0));
        let few = shown(&tid, &[]);
        assert!(few.len() <= 25 + 26 + 1, "{few:?}");
        long += usize::from(summed(&few) > 0);
        let none = shown(&tid, &["--min", "1h"]);
        match steps.len() {
            1 => assert_eq!(none, all),
            n => assert_eq!((none.len(), summed(&none)), (2, n)),
        }
        let own = shown(&tid, &["--all", "--depth", "0"]);
        let deeper = steps.iter().filter(|s| s["depth"] != 0).count();
        assert_eq!(summed(&own), deeper);
    }
    assert!(long > 0);
}

#[test]
fn what_cannot_be_answered_is_reported() {
    let dir = Dir::with_traces("bad");
    let wrong = |trace: &str, args: &[&str]| {
        let (status, out, error) = run(&mut dir.path(trace, args));
        assert_eq!((status, out.as_str()), (1, ""), "{error}");
        error
    };
    assert!(wrong("ust", &["--tid", "1"]).contains("no event sched_switch"));
    let nothing = wrong("nothing", &["--tid", "1"]);
    assert!(nothing.contains("nothing: No such file"), "{nothing}");
    fs::create_dir(dir.0.join("empty")).unwrap();
    let empty = wrong("empty", &["--tid", "1"]);
    assert!(empty.contains("empty: no trace: there is"), "{empty}");
    assert!(wrong("compact", &["--tid", "1", "--from", "2s"]).contains("expected a time"));
    // These traces are from two boots.
    let several = wrong(".", &["--tid", "1"]);
    assert!(
        several.contains("from several boots or machines")
            && several.contains("./all/kernel (of vm) or ")
            && several.contains("/rare"),
        "{several}"
    );
    let tid = &busiest(&dir, "compact")[0];
    let before = wrong("compact", &["--tid", tid, "--to", "5"]);
    assert!(
        before.contains("does not cover the requested time"),
        "{before}"
    );
    let after = wrong("compact", &["--tid", tid, "--from", "18446744073709551615"]);
    assert!(
        after.contains("does not cover the requested time"),
        "{after}"
    );
    let turned = wrong("compact", &["--tid", tid, "--from", "+2ms", "--to", "+1ms"]);
    assert!(
        turned.contains("is empty") || turned.contains("not in the requested range"),
        "{turned}"
    );
}

/// If a request covers more time than the trace, the remaining time is an unknown part of the path, and a message
/// reports this.
#[test]
fn what_is_outside_of_the_trace_is_not_known() {
    let dir = Dir::with_traces("outside");
    let tid = &busiest(&dir, "compact")[0];
    let to = u64::MAX.to_string();
    let args = ["--tid", tid, "--from", "0", "--to", &to, "--json"];
    let (status, json, said) = run(&mut dir.path("compact", &args));
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("the trace covers only "), "{said}");
    let json: Value = serde_json::from_str(&json).unwrap();
    let steps = json["path"].as_array().unwrap();
    assert_eq!(steps[0]["begin"].as_u64(), Some(0));
    assert_eq!(steps.last().unwrap()["end"].as_u64(), Some(u64::MAX));
    assert_eq!(steps[0]["cause"]["kind"], "unknown");
    let (_, _, said) = run(&mut dir.path("compact", &["--tid", tid, "--json"]));
    assert_eq!(said, "");
}

#[test]
fn what_cannot_be_explained_is_reported() {
    let dir = Dir::with_traces("unexplained");
    let wrong = |what: &str, args: &[&str]| {
        let (status, out, error) = run(&mut dir.of_trace(&["explain"], what, args));
        assert_eq!((status, out.as_str()), (1, ""), "{error}");
        error
    };
    let nothing = wrong("nothing", &[]);
    assert!(nothing.contains("nothing: No such file"), "{nothing}");
    assert!(wrong("compact", &[]).contains("name the alerts with --alerts"));
    fs::write(dir.0.join("words"), "\nno alert\n").unwrap();
    let words = wrong("compact", &["--alerts", "words"]);
    assert!(words.contains("words: line 2: \"no\": expected"), "{words}");
    fs::write(dir.0.join("bytes"), [0x9f; 5000]).unwrap();
    let bytes = wrong("compact", &["--alerts", "bytes"]);
    assert!(
        bytes.contains("bytes: line 1:") && bytes.len() < 1000,
        "{bytes}"
    );
    fs::write(dir.0.join("none"), "").unwrap();
    assert!(wrong("compact", &["--alerts", "none"]).contains("no such alert"));
    // Impossible times, a thread that does not exist and a missing CPU are no reason to give
    // up.
    let lines = "seq=1 time=18446744073709551615 instance=a tracker=wakeup reason=threshold \
        delay=18446744073709551615 threshold=0 cpu=99999 pid=1 tid=1 comm=\"x\"\n\
        seq=2 time=0 instance=a tracker=syscall reason=timeout delay=0 threshold=0 cpu=0 pid=0 tid=0 comm=\"\"\n\
        seq=3 time=18446744073709551615 instance=a tracker=block reason=threshold delay=18446744073709551615 \
        threshold=1 cpu=0 pid=1 tid=1 comm=\"x\" dev=8:0 disk=\"sda\" op=\"R\" sector=0 bytes=1\n";
    fs::write(dir.0.join("strange"), lines).unwrap();
    let args = [
        "--alerts",
        "strange",
        "--json",
        "--perfetto",
        "strange.pftrace",
    ];
    let (status, out, error) = run(&mut dir.of_trace(&["explain"], "compact", &args));
    assert_eq!((status, out.lines().count()), (0, 3), "{error}");
    dir.read("strange.pftrace");
}

/// SIGTERM ends the wait for alerts from a FIFO. A shell makes its background processes ignore
/// SIGINT, so SIGINT would not do here.
#[test]
fn a_signal_ends_the_wait_for_alerts() {
    let dir = Dir::new("awaited");
    let fifo = dir.0.join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut command = dir.of_trace(&["explain"], "any", &["--alerts", "fifo"]);
    let mut child = command.spawn().unwrap();
    let begin = Instant::now();
    let goes_on = || assert!(begin.elapsed() < Duration::from_secs(30), "it goes on");
    // The FIFO can be opened in this way once there is a reader.
    let open = || {
        let mut options = fs::OpenOptions::new();
        options.write(true).custom_flags(nix::libc::O_NONBLOCK);
        options.open(&fifo)
    };
    let writer = loop {
        match open() {
            Ok(writer) => break writer,
            Err(_) => goes_on(),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    while child.try_wait().unwrap().is_none() {
        goes_on();
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(writer);
}

/// With less memory than the whole model takes, the path and the delays are the same. With too little memory, the error
/// states how much is needed.
#[test]
fn a_limit_on_memory_changes_nothing_or_is_reported_as_too_low() {
    let dir = Dir::with_traces("memory");
    for (what, form) in [
        ("path", "--json"),
        ("delays", "--json"),
        ("delays", "--all"),
        ("delays", "--csv"),
        ("delays", "--folded"),
    ] {
        let mut smaller = 0;
        for tid in busiest(&dir, "compact") {
            let analyze = |more: &[&str]| {
                let args = [&["--tid", &tid, form], more].concat();
                run(&mut dir.of_trace(&["analyze", what], "compact", &args))
            };
            let (status, whole, _) = analyze(&[]);
            assert_eq!(status, 0);
            for limit in ["30K", "50K", "100K", "150K", "200K", "400K", "1G"] {
                let (status, found, error) = analyze(&["--max-memory", limit]);
                if status == 0 {
                    assert_eq!(found, whole, "{what} {form} {limit}");
                    smaller += u64::from(limit != "1G");
                    continue;
                }
                assert!(
                    error.contains("of memory is not enough: set --max-memory 1M"),
                    "{error}"
                );
                assert_eq!((found.as_str(), limit != "1G"), ("", true));
            }
            let (status, _, error) = analyze(&["--max-memory", "1K"]);
            assert!(
                status == 1 && error.contains("1 KiB of memory is not enough"),
                "{error}"
            );
        }
        assert!(smaller > 0, "{what} {form}");
    }
    let from = [
        "--tid",
        "1",
        "--from",
        "sched_switch:1",
        "--max-memory",
        "1G",
    ];
    let (status, _, error) = run(&mut dir.delays("compact", &from));
    assert!(
        status == 1 && error.contains("sched_switch:1 cannot be found with --max-memory"),
        "{error}"
    );
}

/// With --low-memory, the path and the delays are the same.
#[test]
fn low_memory_changes_nothing() {
    let dir = Dir::with_traces("low-memory");
    for trace in ["compact", "snapshot"] {
        for tid in busiest(&dir, trace).iter().take(4) {
            let (status, json, error) = run(&mut dir.path(trace, &["--tid", tid, "--json"]));
            assert_eq!(status, 0, "{error}");
            let json: Value = serde_json::from_str(&json).unwrap();
            let time = |name: &str| json[name].as_u64().unwrap();
            let (from, to) = (time("from"), time("to"));
            let third = (to - from) / 3;
            let [from, to] = [from + third, to - third].map(|time| time.to_string());
            let range = ["--from", &from, "--to", &to];
            for (what, form) in [
                ("path", &["--all"][..]),
                ("path", &["--json"]),
                ("path", &range),
                ("delays", &["--all"]),
                ("delays", &["--json"]),
                ("delays", &["--folded"]),
                ("delays", &range),
            ] {
                let analyze = |more: &[&str]| {
                    let args = [&["--tid", tid][..], form, more].concat();
                    run(&mut dir.of_trace(&["analyze", what], trace, &args))
                };
                let whole = analyze(&[]);
                assert_eq!(whole.0, 0, "{}", whole.2);
                assert_eq!(analyze(&["--low-memory"]), whole, "{what} {form:?}");
            }
        }
    }
    for (args, expected) in [
        (&["--low-memory"][..], "--tid <TID|NAME>"),
        (
            &["--low-memory", "--max-memory", "1G", "--tid", "1"],
            "cannot be used with",
        ),
        (
            &["--low-memory", "--tid", "1", "--from", "sched_switch:1"],
            "sched_switch:1 cannot be found with --low-memory",
        ),
    ] {
        let (status, found, error) = run(&mut dir.delays("compact", args));
        assert!(error.contains(expected), "{error}");
        assert!(status != 0 && found.is_empty(), "{status} {found}");
    }
    // The activity of other threads is not kept, so the error does not name the busiest ones.
    let args = ["--low-memory", "--tid", "4194304"];
    let (status, _, error) = run(&mut dir.path("compact", &args));
    let expected = "no thread 4194304 in the trace";
    assert!(
        status == 1 && error.trim_end().ends_with(expected),
        "{error}"
    );
}

/// Checks that the parts of a list follow each other without gaps, from `from` to `to`.
fn tile(list: &Value, from: u64, to: u64) {
    let time = |part: &Value, name: &str| part[name].as_u64().unwrap();
    let (mut at, list) = (from, list.as_array().unwrap());
    for part in list {
        let begin = if part["begin"].is_null() {
            "from"
        } else {
            "begin"
        };
        assert_eq!(time(part, begin), at, "{part}");
        at = time(part, if begin == "from" { "to" } else { "end" });
    }
    assert_eq!(at, to);
}

#[test]
fn the_states_of_every_thread_add_up_to_its_time() {
    let dir = Dir::with_traces("sums");
    let (mut below, mut woken) = (0, 0);
    for trace in ["all", "compact", "snapshot"] {
        for tid in busiest(&dir, trace) {
            let args = ["--tid", &tid];
            let run = |more: &[&str]| {
                let (status, out, error) = run(&mut dir.delays(trace, &[&args, more].concat()));
                assert_eq!(status, 0, "{error}");
                out
            };
            let json: Value = serde_json::from_str(&run(&["--json"])).unwrap();
            let number = |value: &Value| value.as_u64().unwrap();
            let (from, to) = (number(&json["from"]), number(&json["to"]));
            tile(&json["segments"], from, to);
            let mut blocked = 0;
            for segment in json["segments"].as_array().unwrap() {
                let (from, to) = (number(&segment["from"]), number(&segment["to"]));
                tile(&segment["states"], from, to);
                let sums = segment["sums"].as_object().unwrap();
                assert_eq!(sums.values().map(number).sum::<u64>(), to - from);
                let waits = segment["waits"].as_array().unwrap();
                let own = waits.iter().filter(|wait| wait["depth"] == 0);
                let took = |wait: &Value| number(&wait["end"]) - number(&wait["begin"]);
                assert_eq!(own.clone().map(took).sum::<u64>(), number(&sums["blocked"]));
                below += waits.len() - own.clone().count();
                woken += waits
                    .iter()
                    .filter(|wait| wait["woken_by"].is_object())
                    .count();
                blocked += own.count();
            }
            let folded = run(&["--folded"]);
            let time = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
            assert_eq!(folded.lines().map(time).sum::<u64>(), to - from, "{folded}");
            // Lines are short even in a pipe, and with every wait.
            for args in [&[][..], &["--all"], &["--top", "0", "--min", "0"]] {
                let text = run(args);
                assert!(text.lines().all(|l| l.chars().count() < 80), "{text}");
                assert!(
                    blocked > 0 || text.contains("No wait is recorded."),
                    "{text}"
                );
            }
        }
    }
    assert!(below > 0 && woken > 20, "{below} {woken}");
}

/// A program waits for five children, which sleep for 20 ms each. The delays of the first child include the
/// delays of its parent before the fork.
#[test]
fn what_a_program_was_blocked_for_leads_to_the_sleep_of_its_children() {
    let dir = Dir::with("perf.tar.xz", "chain");
    let delays = |args: &[&str]| {
        let (status, json, error) = run(&mut dir.delays("perf", &[args, &["--json"]].concat()));
        assert_eq!((status, error.as_str()), (0, ""));
        serde_json::from_str::<Value>(&json).unwrap()
    };
    let json = delays(&["--tid", "177"]);
    let ms = |wait: &Value| {
        (wait["end"].as_u64().unwrap() - wait["begin"].as_u64().unwrap()) / 1_000_000
    };
    let waits = json["segments"][0]["waits"].as_array().unwrap();
    let is_read =
        |wait: &&Value| wait["syscall"] == "read" && wait["woken_by"]["comm"] == "python3";
    let reads = waits.iter().filter(is_read);
    assert!(
        reads
            .clone()
            .all(|wait| wait["depth"] == 0 && (17..30).contains(&ms(wait)))
    );
    assert_eq!(reads.count(), 5);
    let below = waits
        .iter()
        .filter(|wait| wait["syscall"] == "clock_nanosleep");
    assert!(
        below
            .clone()
            .all(|wait| wait["depth"] == 1 && wait["cause"]["by"] == "timer" && ms(wait) >= 15)
    );
    assert_eq!(below.count(), 5);
    // The stacks lead there, too.
    let (_, stacks, _) = run(&mut dir.delays("perf", &["--tid", "177", "--folded"]));
    let slept = stacks.lines().filter(|line| {
        line.starts_with("python3/177;blocked;in read;woken by python3/")
            && line.contains(";waits in clock_nanosleep for ")
    });
    assert_eq!(slept.count(), 5, "{stacks}");
    let (_, rows, _) = run(&mut dir.delays("perf", &["--tid", "177", "--csv"]));
    let states = json["segments"][0]["states"].as_array().unwrap();
    assert_eq!(rows.lines().count(), 1 + states.len() + waits.len());

    let json = delays(&["--tid", "179"]);
    let segments = json["segments"].as_array().unwrap();
    let tids: Vec<_> = segments
        .iter()
        .map(|segment| segment["thread"]["tid"].as_i64())
        .collect();
    assert_eq!(tids, [Some(177), Some(179)]);
    // Up to an event of the child, which also selects the thread.
    let until = delays(&["--event", "syscalls:sys_enter_clock_nanosleep:179"]);
    assert_eq!(until["thread"]["tid"], 179);
    assert_eq!(until["segments"][0], json["segments"][0]);
    let calls = |json: &Value| json["segments"][1].to_string().contains("clock_nanosleep");
    assert!(calls(&json) && !calls(&until), "{until}");
    let from = json["segments"][1]["from"].to_string();
    assert_eq!(
        delays(&["--tid", "179", "--from", &from])["segments"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

/// Runs `analyze delays` without a thread.
fn of_threads(dir: &Dir, trace: &str, args: &[&str]) -> String {
    let (status, out, error) = run(&mut dir.delays(trace, args));
    assert_eq!(status, 0, "{error}");
    out
}

/// The time of each thread adds up, the one with the longest wait is first, and the report on one thread has the same
/// sums and the same longest wait.
#[test]
fn without_a_thread_all_threads_have_rows() {
    let dir = Dir::with_traces("threads");
    let number = |value: &Value| value.as_u64().unwrap();
    for trace in ["all", "compact", "snapshot"] {
        let json: Value = serde_json::from_str(&of_threads(&dir, trace, &["--json"])).unwrap();
        let threads = json["threads"].as_array().unwrap();
        let wait = |row: &Value| match &row["longest"] {
            Value::Null => 0,
            wait => number(&wait["end"]) - number(&wait["begin"]),
        };
        let waits: Vec<u64> = threads.iter().map(wait).collect();
        assert!(waits.is_sorted_by(|a, b| a >= b), "{waits:?}");
        for row in threads {
            let (from, to) = (number(&row["from"]), number(&row["to"]));
            assert!(number(&json["from"]) <= from && to <= number(&json["to"]));
            let sums = row["sums"].as_object().unwrap();
            assert_eq!(sums.values().map(number).sum::<u64>(), to - from, "{row}");
            if let Some(longest) = row["longest"].as_object() {
                let (begin, end) = (number(&longest["begin"]), number(&longest["end"]));
                tile(&longest["states"], begin, end);
            }
        }
        for tid in busiest(&dir, trace) {
            let mut rows = threads.iter();
            let row = rows.find(|row| row["thread"]["tid"].as_u64() == tid.parse().ok());
            let row = row.unwrap();
            let (from, to) = (row["from"].to_string(), row["to"].to_string());
            let args = ["--tid", &tid, "--from", &from, "--to", &to, "--json"];
            let one = of_threads(&dir, trace, &args);
            let one: Value = serde_json::from_str(&one).unwrap();
            let segment = &one["segments"][0];
            assert_eq!(segment["sums"], row["sums"], "{tid}");
            let states = segment["states"].as_array().unwrap();
            let took = |state: &&Value| number(&state["end"]) - number(&state["begin"]);
            let blocked = states.iter().filter(|state| state["class"] == "blocked");
            let longest = blocked.max_by_key(took);
            assert!(longest.is_none_or(|state| took(&state) <= wait(row)));
            let Some(wait) = row["longest"]["states"].as_array() else {
                continue;
            };
            let keys = ["begin", "end", "class", "cause", "woken_by"];
            for state in wait {
                let same = |of: &Value| keys.iter().all(|key| of[*key] == state[*key]);
                assert!(states.iter().any(same), "{state}");
            }
        }
        // A line for each thread, below the names of the columns.
        let rows = of_threads(&dir, trace, &["--csv"]);
        assert_eq!(rows.lines().count(), 1 + threads.len());
    }
}

/// Each child of the program sleeps for 20 ms; the program waits in `read` for one child after the other.
#[test]
fn the_longest_waits_of_a_program_and_of_its_children_are_known() {
    let dir = Dir::with("perf.tar.xz", "longest");
    let json: Value = serde_json::from_str(&of_threads(&dir, "perf", &["--json"])).unwrap();
    let threads = json["threads"].as_array().unwrap();
    let of = |tid: u64| {
        let mut rows = threads.iter();
        rows.find(|row| row["thread"]["tid"] == tid).unwrap()
    };
    let longest = &of(177)["longest"];
    assert_eq!(longest["begin"].as_u64(), Some(14_879_963_766));
    assert_eq!(longest["end"].as_u64(), Some(14_904_670_301));
    assert_eq!(longest["states"][0]["woken_by"]["tid"], 182);
    for child in 179..184 {
        let cause = &of(child)["longest"]["states"][0]["cause"];
        assert_eq!(cause["syscall"], "clock_nanosleep", "{child}: {cause}");
        assert_eq!(cause["by"], "timer", "{child}: {cause}");
    }
    let text = of_threads(&dir, "perf", &["--all"]);
    assert!(text.contains("python3/177 in read: woken by"), "{text}");
    // The path of the command is complete, so it can be pasted anywhere.
    let last = text.lines().last().unwrap();
    let words: Vec<_> = last.split(' ').collect();
    let path = dir.0.join("perf").display().to_string();
    assert_eq!(
        words[..5],
        ["next:", "latency-tracker", "analyze", "delays", &path]
    );
    let (status, report, error) = run(&mut dir.delays("perf", &words[5..]));
    assert_eq!(status, 0, "{error}");
    let name = text.lines().nth(4).unwrap();
    let name = report.split(' ').next().map(|first| name.contains(first));
    assert_eq!(name, Some(true), "{text}\n{report}");
}

#[test]
fn threads_that_are_not_shown_are_counted() {
    let dir = Dir::with_traces("top");
    let json: Value = serde_json::from_str(&of_threads(&dir, "compact", &["--json"])).unwrap();
    let all = json["threads"].as_array().unwrap().len();
    let heading = "Time of these threads by state";
    for (args, count) in [
        (&["--top", "2"][..], 2),
        (&[], all.min(20)),
        (&["--all"], all),
        (&["--min", "1h"], 0),
        (&["--top", "0"], 0),
    ] {
        let text = of_threads(&dir, "compact", args);
        assert!(text.starts_with(&format!("{all} threads from ")), "{text}");
        let below = text.lines().skip_while(|line| *line != heading).skip(2);
        let rows = below.take_while(|line| !line.is_empty()).count();
        assert_eq!(rows, count, "{text}");
        let what = match count {
            0 => "threads",
            _ => "more threads",
        };
        let others = format!("\nNot shown: {} {what}, ", all - count);
        assert_eq!(text.contains(&others), count < all, "{text}");
        let next = "\nnext: latency-tracker analyze delays /";
        assert!(text.contains(next), "{text}");
    }
    of_threads(&dir, "compact", &["--html", "threads.html"]);
    let page = fs::read_to_string(dir.0.join("threads.html")).unwrap();
    assert!(page.contains("Delays of all threads"), "{page}");
}

/// The times of the intervals add up to the times of the range, and the rows and the text have the same intervals.
#[test]
fn each_interval_of_the_range_has_a_report() {
    let dir = Dir::with_traces("intervals");
    let number = |value: &Value| value.as_u64().unwrap();
    let json = |args: &[&str]| -> Value {
        let out = of_threads(&dir, "compact", &[args, &["--json"]].concat());
        serde_json::from_str(&out).unwrap()
    };
    let (whole, divided) = (json(&[]), json(&["-i", "100ms"]));
    assert_eq!(number(&divided["interval"]), 100_000_000);
    let (from, to) = (number(&whole["from"]), number(&whole["to"]));
    tile(&divided["intervals"], from, to);
    let intervals = divided["intervals"].as_array().unwrap();
    assert!(intervals.len() > 10, "{}", intervals.len());
    let sum = |report: &Value, class: &str| -> u64 {
        let threads = report["threads"].as_array().unwrap().iter();
        threads.map(|row| number(&row["sums"][class])).sum()
    };
    for class in ["working", "interrupted", "blocked", "unknown"] {
        let each = intervals.iter().map(|interval| sum(interval, class));
        assert_eq!(each.sum::<u64>(), sum(&whole, class), "{class}");
    }
    let rows = of_threads(&dir, "compact", &["-i", "100ms", "--csv"]);
    assert_eq!(rows.matches("interval_ns\n").count(), 1);
    let text = of_threads(&dir, "compact", &["-i", "100ms"]);
    for interval in intervals {
        let begin = format!(",{}", interval["from"]);
        let rows = rows.lines().filter(|row| row.ends_with(&begin)).count();
        let threads = interval["threads"].as_array().unwrap().len();
        assert_eq!(rows, threads, "{begin}");
        let head = format!(
            "{threads} threads from {} to {}: ",
            interval["from"], interval["to"]
        );
        assert!(text.contains(&head), "{head}: {text}");
    }
}

/// The steps of a path, or the states of all segments.
fn parts(json: &Value) -> Vec<&Value> {
    if let Some(steps) = json["path"].as_array() {
        return steps.iter().collect();
    }
    let segments = json["segments"].as_array().unwrap();
    let states = segments
        .iter()
        .map(|segment| segment["states"].as_array().unwrap());
    states.flatten().collect()
}

/// The end of a packet cannot be read. Its time is a gap, and all other parts are those of the whole trace. The loss is
/// reported once, and is no error.
#[test]
fn a_damaged_packet_hides_only_its_own_time() {
    let dir = Dir::with_traces("damaged");
    let analyze = |what: &str, args: &[&str], losses: usize| {
        let (status, out, said) = run(&mut dir.of_trace(&["analyze", what], "compact", args));
        let reported = said.matches("cannot be read").count();
        assert_eq!((status, reported), (0, losses), "{said}");
        assert_eq!(said.matches("channel_0: byte ").count(), losses, "{said}");
        out
    };
    let json = |what: &str, args: &[&str], losses: usize| {
        let out = analyze(what, &[args, &["--json"]].concat(), losses);
        serde_json::from_str::<Value>(&out).unwrap()
    };
    let time = |part: &Value, name: &str| part[name].as_u64().unwrap();
    let tids = busiest(&dir, "compact");
    let mut whole = Vec::new();
    for what in ["path", "delays"] {
        for tid in &tids {
            whole.push((what, tid, json(what, &["--tid", tid], 0)));
        }
    }
    let all = json("delays", &[], 0);

    let file = dir.0.join("compact/kernel/channel_0");
    let mut bytes = fs::read(&file).unwrap();
    // These bytes include the header of an event, whose class becomes unknown.
    bytes[2 * PACKET + 8000..2 * PACKET + 9000].fill(0xff);
    fs::write(&file, bytes).unwrap();
    let (mut from, mut to) = (u64::MAX, 0);
    for (what, tid, whole) in &whole {
        let found = json(what, &["--tid", tid], 1);
        let (mut found, mut whole) = (parts(&found), parts(whole));
        let lost = found.iter().filter(|part| part["cause"]["why"] == "lost");
        let begin = lost.clone().map(|part| time(part, "begin")).min().unwrap();
        let end = lost.map(|part| time(part, "end")).max().unwrap();
        (from, to) = (from.min(begin), to.max(end));
        let is_before = |part: &&Value| time(part, "end") < begin;
        let is_after = |part: &&Value| end < time(part, "begin");
        found.retain(|part| is_before(part) || is_after(part));
        whole.retain(|part| is_before(part) || is_after(part));
        assert!(found == whole, "{what} {tid}");
        let has_both = found.iter().any(is_before) && found.iter().any(is_after);
        assert!(has_both, "{what} {tid}");
    }
    let found = json("delays", &[], 1);
    let rows = [&found, &all].map(|of| of["threads"].as_array().unwrap());
    assert_eq!(rows[0].len(), rows[1].len());
    let mut most = 0;
    for row in rows[0] {
        let mut of_whole = rows[1].iter();
        let whole = of_whole.find(|of| of["thread"] == row["thread"]);
        let whole = whole.unwrap();
        assert_eq!((&row["from"], &row["to"]), (&whole["from"], &whole["to"]));
        let sums = [row, whole].map(|of| &of["sums"]);
        for class in ["working", "interrupted", "blocked"] {
            assert!(time(sums[0], class) <= time(sums[1], class), "{row}");
        }
        most = most.max(time(sums[0], "unknown") - time(sums[1], "unknown"));
    }
    assert_eq!(most, to - from);
    let tid = ["--tid", tids[0].as_str()];
    let damaged = "part of the trace of CPU 0 cannot be read";
    for (what, args, expected) in [
        ("path", &tid[..], damaged),
        ("delays", &tid, damaged),
        ("delays", &[], "NOT RECORDED"),
    ] {
        let text = analyze(what, args, 1);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{text}");
        // Larger buffers do not help against damage.
        assert!(!text.contains("larger buffers"), "{text}");
    }
}

#[test]
fn a_trace_without_a_readable_event_is_an_error() {
    let dir = Dir::with_traces("unreadable");
    for channel in ["channel_0", "channel_1"] {
        let file = dir.0.join("compact/kernel").join(channel);
        fs::write(file, [0xff; PACKET]).unwrap();
    }
    for (what, args) in [
        ("path", &["--tid", "1"][..]),
        ("delays", &[]),
        ("wakeups", &[]),
    ] {
        let (status, out, error) = run(&mut dir.of_trace(&["analyze", what], "compact", args));
        assert_eq!((status, out.as_str()), (1, ""), "{what}: {error}");
        assert!(error.contains("/kernel/channel_"), "{what}: {error}");
    }
}

/// The stacks of a path add up to its time, and its rows are its steps.
#[test]
fn stacks_and_rows_of_a_path_are_its_steps() {
    let dir = Dir::with_traces("columns");
    for trace in ["compact", "snapshot"] {
        for tid in busiest(&dir, trace).into_iter().take(3) {
            let of = |form: &str| {
                let (status, out, error) = run(&mut dir.path(trace, &["--tid", &tid, form]));
                assert_eq!(status, 0, "{error}");
                out
            };
            let json: Value = serde_json::from_str(&of("--json")).unwrap();
            let (from, to) = (json["from"].as_u64().unwrap(), json["to"].as_u64().unwrap());
            let stacks = of("--folded");
            let time = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
            assert_eq!(stacks.lines().map(time).sum::<u64>(), to - from, "{stacks}");
            let rows = of("--csv");
            let row = |line: &str| {
                let mut cells = line.split(',').skip(1).map(|cell| cell.parse().unwrap());
                (cells.next().unwrap(), cells.next().unwrap())
            };
            let rows: Vec<(u64, u64)> = rows.lines().skip(1).map(row).collect();
            let steps = steps(&json, 0);
            let steps: Vec<_> = steps.iter().map(|step| (step.0, step.1)).collect();
            assert_eq!(rows, steps);
        }
    }
    for (form, other) in [
        ("--folded", "--json"),
        ("--csv", "--json"),
        ("--csv", "--folded"),
        ("--csv", "--all"),
        ("--folded", "--depth=1"),
        ("--csv", "--min=1ms"),
    ] {
        for what in ["path", "delays"] {
            let args = ["--tid", "1", form, other];
            let (status, out, error) = run(&mut dir.of_trace(&["analyze", what], "no", &args));
            assert_eq!((status, out.as_str()), (1, ""), "{form} {other}");
            assert!(error.contains("cannot be used with"), "{error}");
        }
    }
}

#[test]
fn delays_that_cannot_be_shown_are_refused() {
    let dir = Dir::with_traces("refused");
    let wrong = |trace: &str, args: &[&str]| {
        let (status, out, error) = run(&mut dir.delays(trace, args));
        assert_eq!((status, out.as_str()), (1, ""), "{error}");
        error
    };
    for (args, expected) in [
        (
            &["--tid", "nobody"][..],
            "no thread named nobody in the trace; the threads that ran the most: ",
        ),
        (
            &["--tid", "find", "--to", "+1us"],
            "thread find/201 is in the trace, but has another name at ",
        ),
        (
            &["--tid", "lttng-consumerd"],
            "threads are named lttng-consumerd: use the number of one with --tid: ",
        ),
        (
            &["--tid", "1", "--to", "no_such_event"],
            "no event no_such_event in the trace from ",
        ),
        (
            &["--tid", "1", "--from", "+1h"],
            "does not cover the requested time",
        ),
        (&["--tid", "1", "--from", "2s"], "expected a time"),
        (
            &["--event", "sched_switch:99999"],
            "no event sched_switch of thread 99999 in the trace",
        ),
        (&["--from", "+1ms", "--to", "+1ms"], "is empty"),
        (
            &["--folded"],
            "--folded needs a thread: name one with --tid or --event",
        ),
        (
            &["--max-memory", "1G"],
            "--max-memory needs a thread: name one with --tid or --event",
        ),
        (
            &["--perfetto", "all.pftrace"],
            "--perfetto needs a thread: name one with --tid or --event",
        ),
        (
            &["-i", "1us"],
            "--interval 1us: more than 10,000 intervals; choose a longer one",
        ),
    ] {
        let error = wrong("compact", args);
        assert!(error.contains(expected), "{args:?}: {error}");
    }
    // A path finds the thread in the same way.
    let (status, _, error) = run(&mut dir.path("compact", &["--tid", "nobody"]));
    let expected = "no thread named nobody in the trace; ";
    assert!(status == 1 && error.contains(expected), "{error}");
    let by = |tid: &str| run(&mut dir.path("compact", &["--tid", tid, "--json"]));
    assert_eq!(by("find"), by("201"));
    assert_eq!(by("find").0, 0);
    let error = wrong("ust", &["--tid", "1"]);
    assert!(
        error.contains("no event sched_switch in this trace"),
        "{error}"
    );
    assert!(
        error.trim_end().ends_with("record with -e sched_switch"),
        "{error}"
    );
    let tid = &busiest(&dir, "snapshot")[0];
    let (status, _, note) = run(&mut dir.delays("snapshot", &["--tid", tid]));
    assert!(
        status == 0
            && note.contains("no system calls in this trace")
            && note.contains("--events-for delays"),
        "{note}"
    );
}
