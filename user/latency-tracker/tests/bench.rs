// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `bench` from outside: the real loop on this machine, and refused options. No test depends on how long
//! a loop takes, since this machine has other work to do. As an ordinary task the loop needs no
//! permission. As root it is tried at a real-time priority, too.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// A threshold that no loop on this machine exceeds.
const CALM: [&str; 2] = ["--threshold", "1h"];

fn bench(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_latency-tracker"));
    command.arg("bench").args(args).env_remove("COLUMNS");
    command
}

/// Returns `bench loop` as an ordinary task, with the threshold of [`CALM`] unless the arguments
/// set another threshold.
fn loops(args: &[&str]) -> Command {
    let mut command = bench(&["loop", "--priority", "0", "--dma-latency", "none"]);
    if !args.contains(&"--threshold") {
        command.args(CALM);
    }
    command.args(args);
    command
}

fn run(mut command: Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// Returns the number of CPUs that the loop can choose from here.
fn cpus() -> usize {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    stat.lines()
        .filter(|l| l.starts_with("cpu") && !l.starts_with("cpu "))
        .count()
}

/// Returns whether a loop can run here: it takes a CPU, and leaves at least one to the system. If
/// it cannot, checks that the command reports this.
fn can_run() -> bool {
    let affinity = nix::sched::sched_getaffinity(Pid::from_raw(0)).unwrap();
    let allowed = (0..nix::sched::CpuSet::count()).filter(|cpu| affinity.is_set(*cpu).unwrap());
    if cpus() >= 2 && allowed.count() == cpus() {
        return true;
    }
    let (status, _, said) = run(loops(&["-l", "10"]));
    assert_eq!(status, 1, "{said}");
    assert!(
        said.contains("the rest of the system needs it") || said.contains("cgroup"),
        "{said}"
    );
    false
}

#[test]
fn a_timer_names_what_it_lacks() {
    let timer = |args: &[&str]| bench(&[&["timer", "--priority", "0"], args].concat());
    for (args, says) in [
        (&["--cpu", "1000"][..], "CPU 1000 is not online"),
        (&["-i", "1s"], "100.0ms"),
        (&["-o", "run.png"], ".json, .svg, .txt"),
    ] {
        let (status, out, said) = run(timer(args));
        assert_eq!((status != 0, out.as_str()), (true, ""), "{args:?}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
    if !can_run() {
        return;
    }
    let mut without = timer(&["--compare"]);
    without.env("PATH", "/nowhere");
    let (status, _, said) = run(without);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("install the package rt-tests"), "{said}");
    // The command needs the tracker.
    if !std::path::Path::new("/proc/latency_tracker").exists() {
        let (status, _, said) = run(timer(&["-l", "10"]));
        assert_eq!(status, 1, "{said}");
        assert!(said.contains("latency_tracker"), "{said}");
    }
}

#[test]
fn a_rate_names_what_it_lacks() {
    let rate = |args: &[&str]| bench(&[&["rate"], args].concat());
    for (args, says) in [
        (&["--cpu", "1000"][..], "CPU 1000 is not online"),
        (&["-b", "3x4M"], "powers of two"),
        (&["-o", "run.png"], ".json, .svg, .txt"),
        (&["--rate", "10", "--min", "5"], "cannot be used with"),
    ] {
        let (status, out, said) = run(rate(args));
        assert_eq!((status, out.as_str()), (1, ""), "{args:?}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
    if !can_run() {
        return;
    }
    let mut without = rate(&["-b", "2x4K"]);
    without.env("PATH", "/nowhere");
    let (status, _, said) = run(without);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("install the package lttng-tools"), "{said}");
    let (status, _, said) = run(rate(&["-b", "4096x1G"]));
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("choose others with --buffers"), "{said}");
}

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lt-bench-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_string()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Properties of every histogram, independent of the machine.
fn invariants(report: &Value) {
    for series in report["series"].as_array().unwrap() {
        let number = |key: &str| series[key].as_f64().unwrap();
        let bins = series["bins"].as_array().unwrap();
        let count: u64 = bins.iter().map(|bin| bin["count"].as_u64().unwrap()).sum();
        assert_eq!(
            count,
            series["loops"].as_u64().unwrap(),
            "bins add up to the loops"
        );
        let product = number("mean") * number("loops");
        assert!(
            (product - number("sum")).abs() <= number("sum") * 1e-9,
            "sum = mean x loops"
        );
        let square = number("deviation") * number("deviation");
        assert!(
            (square - number("variance")).abs() <= number("variance") * 1e-9,
            "variance = sigma squared"
        );
        assert!(number("min") <= number("mean") && number("mean") <= number("max"));
        let percentiles: Vec<u64> = series["percentiles"]
            .as_object()
            .unwrap()
            .values()
            .map(|v| v.as_u64().unwrap())
            .collect();
        assert_eq!(percentiles.len(), 5);
        assert!(percentiles.iter().all(|p| *p as f64 <= number("max")));
    }
}

#[test]
fn a_run_has_as_many_loops_as_asked_for_and_keeps_the_invariants() {
    if !can_run() {
        return;
    }
    let (status, out, said) = run(loops(&["-l", "50000", "--json"]));
    assert_eq!(status, 0, "{said}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["series"][0]["loops"], 50_000);
    assert_eq!(
        (&report["complete"], &report["passed"]),
        (&Value::Bool(true), &Value::Bool(true))
    );
    assert!(report["clock"]["resolution"].as_u64().unwrap() > 0);
    invariants(&report);
    assert!(said.contains("holds CPU"), "{said}");
}

#[test]
fn a_loop_reports_what_it_holds_at_a_real_time_priority() {
    if !can_run() || !nix::unistd::geteuid().is_root() {
        return;
    }
    let mut command = bench(&["loop", "-l", "20000", "--json", "-p", "50"]);
    command.args(CALM);
    let (status, out, said) = run(command);
    // In a container, root may not be allowed to set that priority.
    if status == 1 && said.contains("SCHED_FIFO 50 is not allowed") {
        return;
    }
    assert_eq!(status, 0, "{said}");
    assert!(
        said.contains("holds SCHED_FIFO 50 for the loop on CPU"),
        "{said}"
    );
    invariants(&serde_json::from_str(&out).unwrap());
}

#[test]
fn every_loop_above_the_threshold_is_a_peak_with_a_cause() {
    if !can_run() {
        return;
    }
    // Every loop takes at least 1 ns.
    let (status, out, said) = run(loops(&[
        "-l",
        "300",
        "--threshold",
        "1ns",
        "--max-causes",
        "20",
        "--json",
    ]));
    assert_eq!(status, 2, "{said}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["series"][0]["loops"], 300);
    let counted = report["series"][0]["peaks"].as_u64().unwrap();
    let peaks = report["peaks"].as_array().unwrap();
    assert_eq!(peaks.len(), 20);
    assert_eq!(report["lost"]["peaks"].as_u64().unwrap(), counted - 20);
    assert_eq!(report["complete"], false);
    for peak in peaks {
        assert!(!peak["cause"].as_str().unwrap().is_empty());
        assert!(
            peak["window"].as_u64().unwrap() > 0,
            "the counters were read before: {peak}"
        );
    }
    // The time spent on handling the peaks is in no sample, but is reported.
    assert!(report["series"][0]["away"].as_u64().unwrap() > 0);
    invariants(&report);
}

#[test]
fn a_loop_ends_at_the_first_peak_on_request() {
    if !can_run() {
        return;
    }
    let (status, out, said) = run(loops(&[
        "-d",
        "1h",
        "--threshold",
        "1ns",
        "--stop",
        "--json",
    ]));
    assert_eq!(status, 2, "{said}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["peaks"].as_array().unwrap().len(), 1);
}

#[test]
fn events_keep_to_bursts_and_both_kinds_of_windows_are_shown() {
    if !can_run() {
        return;
    }
    let args = [
        "-l", "200000", "-e", "syscall", "-r", "100000", "-b", "1ms,1ms", "--json",
    ];
    let (status, out, said) = run(loops(&args));
    assert_eq!(status, 0, "{said}");
    let report: Value = serde_json::from_str(&out).unwrap();
    let names: Vec<&str> = report["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["name"].as_str().unwrap())
        .collect();
    assert!(names[0].starts_with("CPU "), "{names:?}");
    let loops: u64 = report["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["loops"].as_u64().unwrap())
        .sum();
    assert_eq!(loops, 200_000, "in bursts and between them");
    assert!(report["series"][0]["events"].as_u64().unwrap() > 0);
    invariants(&report);
}

#[test]
fn a_signal_ends_a_loop_with_the_result_so_far() {
    if !can_run() {
        return;
    }
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let mut child = loops(&["-d", "1h", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("running; Ctrl-C ends it")));
        kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
        let rest = std::thread::spawn(move || lines.for_each(drop));
        let output = child.wait_with_output().unwrap();
        rest.join().unwrap();
        assert_eq!(output.status.code(), Some(0), "{signal}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        invariants(&report);
    }
}

#[test]
fn files_are_written_and_read_back_and_compared() {
    if !can_run() {
        return;
    }
    let dir = Dir::new("files");
    let (json, svg, txt) = (
        dir.file("one.json"),
        dir.file("one.svg"),
        dir.file("one.txt"),
    );
    let (status, out, said) = run(loops(&["-l", "20000", "-o", &json, "-o", &svg, "-o", &txt]));
    assert_eq!(status, 0, "{said}");
    assert!(
        out.contains("20,000") && out.contains("p99.99") && out.contains("passed"),
        "{out}"
    );
    assert!(fs::read_to_string(&svg).unwrap().starts_with("<svg"));
    invariants(&serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap());
    let both = dir.file("both.svg");
    let (status, out, said) = run(bench(&["plot", &json, &txt, "-o", &both]));
    assert_eq!(status, 0, "{said}");
    let rows: Vec<&str> = out.lines().skip(1).collect();
    let values = |row: &str| {
        row.split_whitespace()
            .skip_while(|w| !w.contains(','))
            .map(str::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(rows.len(), 2);
    assert_eq!(
        values(rows[0]),
        values(rows[1]),
        "the table says the same as the JSON"
    );
    assert_eq!(
        fs::read_to_string(&both)
            .unwrap()
            .matches("<polyline")
            .count(),
        2
    );
}

#[test]
fn results_of_other_tools_are_compared_and_other_files_are_refused() {
    let dir = Dir::new("others");
    let cyclictest = dir.file("cyclictest.txt");
    fs::write(
        &cyclictest,
        "# Histogram\n000001 000090\n000002 000010\n# Max Latencies: 00002\n",
    )
    .unwrap();
    let (status, out, said) = run(bench(&["plot", &cyclictest]));
    assert_eq!(status, 0, "{said}");
    assert!(
        out.lines()
            .nth(1)
            .unwrap()
            .starts_with("cyclictest column 1"),
        "{out}"
    );
    let odd = dir.file("odd.txt");
    fs::write(&odd, "hello\n").unwrap();
    let (status, _, said) = run(bench(&["plot", &cyclictest, &odd]));
    assert_eq!(status, 1);
    assert!(
        said.contains("odd.txt") && said.contains("no known histogram"),
        "{said}"
    );
    let (status, _, said) = run(bench(&["plot", &dir.file("missing")]));
    assert_eq!(status, 1);
    assert!(said.contains("missing"), "{said}");
}

#[test]
fn impossible_requests_are_refused_before_anything_is_held() {
    for (args, says) in [
        (&["-c", "8191"][..], "is not online"),
        (&["-o", "/nowhere/at/all/x.svg"], "there is no directory"),
    ] {
        let (status, out, said) = run(loops(args));
        assert_eq!((status, out.as_str()), (1, ""), "{args:?}: {said}");
        // On a machine with one CPU, this is the first error.
        assert!(said.contains(says) || cpus() < 2, "{args:?}: {said}");
        assert!(!said.contains("holds"), "{said}");
    }
    let all = format!("0-{}", cpus() - 1);
    let (status, _, said) = run(loops(&["-c", &all]));
    assert_eq!(status, 1);
    assert!(
        said.contains("the rest of the system needs") || said.contains("not online"),
        "{said}"
    );
}
