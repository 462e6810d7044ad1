// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The analyses that print tables, from outside: on real traces (lt-ctf's testdata), on parts of them, and with options
//! that are wrong.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// Size of each packet of the trace `compact`, in bytes.
const PACKET: usize = 16384;

/// The traces of lt-ctf's tests.
fn traces(archive: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lt-ctf/testdata");
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(dir.path()).arg("-xJf");
    assert!(tar.arg(traces.join(archive)).status().unwrap().success());
    dir
}

/// Exit status, output and messages of an analysis.
fn analyze(dir: &TempDir, analysis: &str, trace: &str, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_latency-tracker"));
    command.args(["analyze", analysis, trace]).args(args);
    let output = command.current_dir(dir.path()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let status = output.status.code().unwrap();
    (status, text(output.stdout), text(output.stderr))
}

fn json(dir: &TempDir, analysis: &str, trace: &str, args: &[&str]) -> Value {
    let args = [args, &["--json"]].concat();
    let (status, out, said) = analyze(dir, analysis, trace, &args);
    assert_eq!(status, 0, "{said}");
    serde_json::from_str(&out).unwrap()
}

fn table<'a>(json: &'a Value, name: &str) -> &'a Value {
    let tables = json["tables"].as_array().unwrap();
    tables.iter().find(|table| table["table"] == name).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// An event as babeltrace2 prints it: time, CPU, name, fields as text.
type Line = (u64, u64, String, String);

fn lines(dir: &TempDir, trace: &str) -> Vec<Line> {
    let text = fs::read_to_string(dir.path().join(format!("{trace}.txt"))).unwrap();
    let line = |line: &str| {
        let (time, rest) = line.strip_prefix('[')?.split_once("] ")?;
        let (head, fields) = rest.split_once(": { cpu_id = ")?;
        let (cpu, fields) = fields.split_once(' ')?;
        let name = head.rsplit(' ').next()?;
        Some((
            time.parse().ok()?,
            cpu.parse().ok()?,
            name.to_string(),
            fields.to_string(),
        ))
    };
    text.lines().filter_map(line).collect()
}

fn field(fields: &str, name: &str) -> String {
    let after = fields.split(&format!(" {name} = ")).nth(1).unwrap();
    after.split([',', ' ']).next().unwrap().to_string()
}

/// Durations by vector, from the text of the trace. A start is paired with the next end of the same vector on the same
/// CPU.
fn pairs(lines: &[Line], start: &str, end: &str) -> BTreeMap<u64, Vec<u64>> {
    let mut open: BTreeMap<(u64, String), u64> = BTreeMap::new();
    let mut found: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (time, cpu, name, fields) in lines {
        if name != start && name != end {
            continue;
        }
        let key = (*cpu, field(fields, "vec"));
        if name == start {
            // The first raise counts.
            open.entry(key).or_insert(*time);
        } else if let Some(begin) = open.remove(&key) {
            found
                .entry(key.1.parse().unwrap())
                .or_default()
                .push(time - begin);
        }
    }
    found
}

#[test]
fn softirqs_of_a_trace_match_its_text() {
    let dir = traces("traces.tar.xz");
    let lines = lines(&dir, "compact");
    let found = json(&dir, "irq", "compact", &[]);
    for (name, start, end) in [
        ("softirq", "irq_softirq_entry", "irq_softirq_exit"),
        ("raise", "irq_softirq_raise", "irq_softirq_entry"),
    ] {
        let expected = pairs(&lines, start, end);
        let rows = table(&found, name)["rows"].as_array().unwrap();
        assert_eq!(rows.len(), expected.len());
        for row in rows {
            let mut all = expected[&number(&row["vector"])].clone();
            all.sort_unstable();
            let of = |name: &str| number(&row[name]);
            assert_eq!(of("count"), all.len() as u64, "{name} {row}");
            assert_eq!(of("sum"), all.iter().sum::<u64>(), "{name} {row}");
            assert_eq!((of("min"), of("max")), (all[0], all[all.len() - 1]));
            assert_eq!(of("p50"), all[all.len().div_ceil(2) - 1]);
            assert_eq!(row["exact"], true);
        }
    }
    // The trace has the starts of interrupt handlers, but not their ends.
    assert_eq!(found["tables"].as_array().unwrap().len(), 2);
    let (_, _, said) = analyze(&dir, "irq", "compact", &[]);
    assert!(
        said.contains("no interrupt handlers; record with -e 'irq_handler_*'"),
        "{said}"
    );
}

/// A wakeup lasts from the waking of a thread that has been switched out until the thread is switched in.
#[test]
fn wakeups_of_a_trace_match_its_text() {
    let dir = traces("traces.tar.xz");
    let found = json(&dir, "wakeups", "compact", &["-n", "100000"]);
    let table = table(&found, "wakeup");
    let worst = table["worst"].as_array().unwrap();
    assert_eq!(number(&table["all"]["count"]), worst.len() as u64);
    assert!(worst.len() > 500, "{}", worst.len());
    let lines = lines(&dir, "compact");
    for case in worst {
        let (tid, begin, end) = (
            case["thread"]["tid"].to_string(),
            number(&case["begin"]),
            number(&case["end"]),
        );
        let is_of =
            |line: &&Line, name: &str, of: &str| line.2 == name && field(&line.3, of) == tid;
        let between = lines
            .iter()
            .filter(|(time, ..)| begin <= *time && *time <= end);
        let wakings: Vec<_> = between
            .clone()
            .filter(|l| is_of(l, "sched_waking", "tid"))
            .collect();
        let switches: Vec<_> = between
            .filter(|l| is_of(l, "sched_switch", "next_tid"))
            .collect();
        assert_eq!((wakings.len(), switches.len()), (1, 1), "{case}");
        assert_eq!((wakings[0].0, switches[0].0), (begin, end));
        assert_eq!(switches[0].1, number(&case["cpu"]));
    }
}

/// A sleep starts when the thread is switched out, and ends when it is woken. The thread does not run meanwhile.
#[test]
fn sleeps_of_a_trace_match_its_text() {
    let dir = traces("traces.tar.xz");
    let found = json(&dir, "sleeps", "compact", &["-n", "100000"]);
    let table = table(&found, "sleep");
    let worst = table["worst"].as_array().unwrap();
    assert_eq!(number(&table["all"]["count"]), worst.len() as u64);
    assert!(worst.len() > 300, "{}", worst.len());
    let lines = lines(&dir, "compact");
    for case in worst {
        let tid = case["thread"]["tid"].to_string();
        let (begin, end) = (number(&case["begin"]), number(&case["end"]));
        let of = |name: &str, of: &str| -> Vec<_> {
            let is_in = |time: u64| begin <= time && time <= end;
            let is = |line: &&Line| line.2 == name && is_in(line.0) && field(&line.3, of) == tid;
            lines.iter().filter(is).collect()
        };
        let out = of("sched_switch", "prev_tid");
        let back = of("sched_switch", "next_tid");
        let wakings = of("sched_waking", "tid");
        assert_eq!((out.len(), back.len(), wakings.len()), (1, 0, 1), "{case}");
        assert_eq!((out[0].0, wakings[0].0), (begin, end));
        assert_eq!(wakings[0].1, number(&case["cpu"]));
    }
    // The trace has no ends of interrupt handlers, so no thread is known to be the waker.
    let kinds = json(&dir, "sleeps", "compact", &["--by", "kind"]);
    let rows = self::table(&kinds, "sleep")["rows"].as_array().unwrap();
    let sum = |name: &str| rows.iter().map(|row| number(&row[name])).sum::<u64>();
    assert_eq!(sum("sum"), number(&table["all"]["sum"]));
    assert_eq!(sum("unknown"), number(&table["all"]["unknown"]));
    let has = |kind: &str| rows.iter().any(|row| row["waker"] == kind);
    assert!(
        has("thread-or-irq") && has("timer") && !has("thread"),
        "{rows:?}"
    );
    let (_, _, said) = analyze(&dir, "sleeps", "compact", &[]);
    assert!(said.contains("a waker is the named thread, "), "{said}");
}

/// A thread sleeps in the call that it has started last, unless that call has ended.
#[test]
fn the_calls_of_sleeps_match_the_text() {
    let dir = traces("traces.tar.xz");
    let found = json(&dir, "sleeps", "all", &["--by", "call", "-n", "1000"]);
    let table = table(&found, "sleep");
    let lines = lines(&dir, "all");
    let mut known = 0;
    for case in table["worst"].as_array().unwrap() {
        let (tid, begin) = (case["thread"]["tid"].to_string(), number(&case["begin"]));
        let is_call = |line: &&Line| {
            line.0 <= begin && line.2.starts_with("syscall_") && field(&line.3, "tid") == tid
        };
        let last = lines.iter().rfind(is_call);
        let last = last.and_then(|line| line.2.strip_prefix("syscall_entry_"));
        match case.get("call") {
            // Not recorded.
            Some(Value::Null) => {}
            call => {
                assert_eq!(call.and_then(Value::as_str), last, "{case}");
                known += u64::from(call.is_some());
            }
        }
    }
    assert!(known >= 3, "{known}");
    let rows = table["rows"].as_array().unwrap();
    let named = rows.iter().filter(|row| row["call"].is_string());
    assert_eq!(named.map(|row| number(&row["count"])).sum::<u64>(), known);
    let sum: u64 = rows.iter().map(|row| number(&row["sum"])).sum();
    assert_eq!(sum, number(&table["all"]["sum"]));
}

/// A packet is in a backlog from net_if_rx to net_if_receive_skb. Between these, no other packet has its address.
#[test]
fn packets_in_backlogs_of_a_trace_match_its_text() {
    let dir = traces("traces.tar.xz");
    let metadata = dir.path().join("rare/kernel/metadata");
    let text = fs::read_to_string(&metadata).unwrap();
    // No packet was dropped from a backlog. As far as the metadata shows, drops are recorded.
    let address = serde_json::json!({
        "type": "fixed-length-unsigned-integer", "length": 64, "byte-order": "little-endian",
    });
    let member = serde_json::json!({"name": "skbaddr", "field-class": address});
    let class = serde_json::json!({
        "type": "event-record-class", "data-stream-class-id": 0, "id": 29, "name": "skb_kfree",
        "payload-field-class": {"type": "structure", "member-classes": [member]},
    });
    fs::write(&metadata, format!("{text}\x1e{class}\n")).unwrap();
    let found = json(&dir, "net", "rare", &["-n", "100000"]);
    assert_eq!(found["tables"].as_array().unwrap().len(), 1);
    let table = table(&found, "backlog");
    let worst = table["worst"].as_array().unwrap();
    let times = |case: &Value| (number(&case["begin"]), number(&case["end"]));
    let mut times: Vec<_> = worst.iter().map(times).collect();
    times.sort_unstable();
    let mut waiting = BTreeMap::new();
    let mut expected = Vec::new();
    for (time, _, name, fields) in lines(&dir, "rare") {
        let skb = |fields: &str| field(fields, "skbaddr");
        match name.as_str() {
            "net_if_rx" => assert_eq!(waiting.insert(skb(&fields), time), None),
            "net_if_receive_skb" => expected.push((waiting.remove(&skb(&fields)).unwrap(), time)),
            _ => {}
        }
    }
    expected.sort_unstable();
    assert_eq!((times.len(), missed(table)), (50, 0));
    assert_eq!(times, expected);
    assert!(worst.iter().all(|case| case["device"] == "lo"));
}

#[test]
fn time_on_cpus_is_all_that_was_recorded() {
    let dir = traces("traces.tar.xz");
    for trace in ["compact", "snapshot", "all"] {
        let [by_cpu, by_thread, by_process] =
            ["cpu", "thread", "process"].map(|by| json(&dir, "cpu", trace, &["--by", by]));
        let (cpus, threads) = (table(&by_cpu, "run"), table(&by_thread, "run"));
        let processes = table(&by_process, "run");
        assert_eq!(cpus["all"], threads["all"], "{trace}");
        assert_eq!(processes["all"], threads["all"], "{trace}");
        let sum = |table: &Value| {
            let rows = table["rows"].as_array().unwrap();
            rows.iter().map(|row| number(&row["sum"])).sum::<u64>()
        };
        assert_eq!((sum(cpus), sum(processes)), (sum(threads), sum(threads)));
        let length = number(&by_cpu["to"]) - number(&by_cpu["from"]);
        for row in cpus["rows"].as_array().unwrap() {
            let (time, share) = (number(&row["sum"]), row["share"].as_f64().unwrap());
            assert!(
                time <= length && (0.0..=1.0).contains(&share),
                "{trace}: {row}"
            );
        }
        let parts = json(&dir, "cpu", trace, &["--by", "cpu", "-i", "7ms"]);
        assert_eq!(sum(table(&parts, "run")), sum(cpus), "{trace}");
    }
}

#[test]
fn the_order_of_streams_changes_nothing() {
    let dir = traces("traces.tar.xz");
    let before: Vec<_> = ["wakeups", "cpu", "irq"]
        .map(|of| json(&dir, of, "compact", &[]))
        .into();
    let of = |name: &str| dir.path().join("compact/kernel").join(name);
    fs::rename(of("channel_0"), of("other")).unwrap();
    fs::rename(of("channel_1"), of("channel_0")).unwrap();
    fs::rename(of("other"), of("channel_1")).unwrap();
    for (analysis, before) in ["wakeups", "cpu", "irq"].into_iter().zip(&before) {
        assert_eq!(&json(&dir, analysis, "compact", &[]), before);
    }
}

/// Reads the trace without a packet, and then with a part of that packet unreadable. Operations that the gap hides are
/// not measured, and each duration that is measured is also one of the whole trace.
#[test]
fn what_spans_a_gap_is_counted_and_not_measured() {
    let dir = traces("traces.tar.xz");
    let whole: Vec<_> = ["wakeups", "cpu", "irq"]
        .map(|of| json(&dir, of, "compact", &["-n", "100000"]))
        .into();
    let file = dir.path().join("compact/kernel/channel_0");
    let bytes = fs::read(&file).unwrap();
    let mut missing = bytes.clone();
    missing.drain(2 * PACKET..3 * PACKET);
    let mut damaged = bytes.clone();
    damaged[2 * PACKET + 8000..2 * PACKET + 9000].fill(0xff);
    for (bytes, why) in [(missing, "1 packet"), (damaged, "cannot be read")] {
        fs::write(&file, bytes).unwrap();
        for (analysis, whole) in ["wakeups", "cpu", "irq"].into_iter().zip(&whole) {
            let part = json(&dir, analysis, "compact", &["-n", "100000"]);
            let caveats = part["caveats"].to_string();
            assert!(caveats.contains(why), "{caveats}");
            let mut hidden = 0;
            let tables = [&part, whole].map(|of| of["tables"].as_array().unwrap());
            for (part, whole) in tables[0].iter().zip(tables[1]) {
                let all = whole["worst"].as_array().unwrap();
                for case in part["worst"].as_array().unwrap() {
                    assert!(all.contains(case), "{analysis}: {case}");
                }
                hidden += number(&part["not_measured"]["lost"]);
            }
            let (status, out, said) = analyze(&dir, analysis, "compact", &[]);
            assert!(status == 0 && said.contains(why), "{said}");
            // A softirq does not necessarily span the gap.
            if analysis != "irq" {
                assert!(hidden > 0, "{analysis}");
                assert!(
                    out.contains(" not measured: their start, their end or"),
                    "{out}"
                );
            }
        }
    }
}

#[test]
fn what_perf_recorded_is_read_too() {
    let dir = traces("perf.tar.xz");
    let calls = json(&dir, "syscalls", "perf", &[]);
    let rows = table(&calls, "call")["rows"].as_array().unwrap();
    let sleep = rows
        .iter()
        .find(|row| row["call"] == "clock_nanosleep")
        .unwrap();
    // Five children sleep for 20 ms each.
    assert_eq!((number(&sleep["count"]), number(&sleep["errors"])), (5, 0));
    assert!(number(&sleep["min"]) >= 20_000_000, "{sleep}");
    let by_thread = json(&dir, "syscalls", "perf", &["--by", "thread"]);
    assert_eq!(
        table(&by_thread, "call")["all"],
        table(&calls, "call")["all"]
    );
    // Each event has the process of the thread that makes the call.
    let by_process = json(&dir, "syscalls", "perf", &["--by", "process"]);
    let by_process = table(&by_process, "call");
    assert_eq!(by_process["all"], table(&calls, "call")["all"]);
    let is_recorded = |row: &Value| number(&row["process"]["tid"]) > 0;
    let rows = by_process["rows"].as_array().unwrap();
    assert!(rows.iter().all(is_recorded), "{rows:?}");
    // A stack has the process and the thread.
    let by_stack = json(&dir, "sleeps", "perf", &["--by", "stack"]);
    let rows = table(&by_stack, "sleep")["rows"].as_array().unwrap();
    let tid = |row: &Value, of: &str| row[of]["tid"].as_u64();
    let has_both = |row: &Value| tid(row, "process").is_some() && tid(row, "thread").is_some();
    assert!(rows.iter().any(has_both), "{rows:?}");
    let (status, _, said) = analyze(&dir, "syscalls", "perf", &["--by", "file"]);
    let needs = "--by file needs all system calls and sched_process_fork; record with";
    assert!(status == 1 && said.contains(needs), "{said}");
    let (status, _, said) = analyze(&dir, "sleeps", "perf", &["--by", "call"]);
    let needs = "--by call needs all system calls; record with latency-tracker record --events-for";
    assert!(status == 1 && said.contains(needs), "{said}");
    for analysis in ["wakeups", "sleeps", "cpu", "irq"] {
        let found = json(&dir, analysis, "perf", &[]);
        for table in found["tables"].as_array().unwrap() {
            assert!(number(&table["all"]["count"]) > 0, "{table}");
        }
    }
}

#[test]
fn few_rows_are_shown_and_all_are_written() {
    let dir = traces("traces.tar.xz");
    let found = json(&dir, "syscalls", "all", &[]);
    let rows = table(&found, "call")["rows"].as_array().unwrap().len();
    assert!(rows > 10);
    let (_, text, _) = analyze(&dir, "syscalls", "all", &[]);
    assert!(
        text.contains(&format!("System calls (by call, 5 of {rows})")),
        "{text}"
    );
    assert!(text.contains("the longest 5\n"), "{text}");
    let (_, text, _) = analyze(&dir, "syscalls", "all", &["-n", "7"]);
    assert!(
        text.contains(&format!("(by call, 7 of {rows})")) && text.contains("the longest 7\n"),
        "{text}"
    );
    let (_, csv, _) = analyze(&dir, "syscalls", "all", &["--csv"]);
    assert_eq!(csv.lines().count(), rows + 1);
    // The columns keep their names and places; new columns go last.
    let names = csv.lines().next().unwrap();
    assert_eq!(
        names,
        "table,from,by,group,count,sum,min,p50,p90,p99,max,exact,errors,migrations,parts,\
         requeues,merges,share,unknown,consumed,dropped,replaced"
    );
    let columns = names.split(',').count();
    assert!(
        csv.lines().all(|line| line.split(',').count() == columns),
        "{csv}"
    );
    // The largest sum comes first.
    let sums: Vec<u64> = csv
        .lines()
        .skip(1)
        .map(|l| l.split(',').nth(5).unwrap().parse().unwrap())
        .collect();
    assert!(sums.is_sorted_by(|a, b| a >= b), "{sums:?}");
    let few = json(&dir, "syscalls", "all", &["-n", "2"]);
    assert_eq!(table(&few, "call")["rows"].as_array().unwrap().len(), 2);
}

#[test]
fn the_calls_on_a_file_match_the_text() {
    let dir = traces("traces.tar.xz");
    let whole = json(&dir, "syscalls", "all", &["--by", "file"]);
    let found = table(&whole, "call");
    let by_call = json(&dir, "syscalls", "all", &[]);
    assert_eq!(found["all"], table(&by_call, "call")["all"]);
    // Thread 178 opens the file, works on it and closes it, and does so again, before other files get descriptor 77.
    let mut path = String::new();
    let mut calls = 0;
    for (_, _, name, fields) in lines(&dir, "all") {
        if !name.starts_with("syscall_entry_") || field(&fields, "tid") != "178" {
            continue;
        }
        let is_open = name == "syscall_entry_openat";
        if is_open {
            path = field(&fields, "filename");
        }
        let is_on = is_open || fields.contains(" fd = 77 ") || fields.contains(" fd = 77,");
        calls += u64::from(is_on && path == "\"/etc/passwd\"");
    }
    assert!(calls > 10, "{calls}");
    let rows = found["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["file"] == "/etc/passwd");
    assert_eq!(number(&row.unwrap()["count"]), calls);
    // A relative name may stand for several files.
    let mut names = rows.iter().filter_map(|row| row["file"].as_str());
    let is_relative = names.any(|name| !name.starts_with('/'));
    let caveats = whole["caveats"].to_string();
    let is_said = caveats.contains("a row may be several files");
    assert_eq!(is_said, is_relative, "{caveats}");
    assert!(!by_call["caveats"].to_string().contains("several files"));
}

/// The number of operations that were not measured.
fn missed(table: &Value) -> u64 {
    let missed = table["not_measured"].as_object().unwrap();
    missed.values().map(number).sum()
}

/// Analyses, each with a trace of its operations. No trace has all events of `io`, `reclaim` or `net`.
const EACH: [(&str, &str); 7] = [
    ("wakeups", "compact"),
    ("sleeps", "compact"),
    ("cpu", "compact"),
    ("irq", "compact"),
    ("syscalls", "all"),
    ("locks", "all"),
    ("work", "all"),
];

#[test]
fn stacks_add_up_to_the_tables() {
    let dir = traces("traces.tar.xz");
    for (analysis, trace) in EACH {
        let found = json(&dir, analysis, trace, &[]);
        let (status, stacks, said) = analyze(&dir, analysis, trace, &["--folded"]);
        assert_eq!(status, 0, "{said}");
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for line in stacks.lines() {
            let (frames, ns) = line.rsplit_once(' ').unwrap();
            let (table, _) = frames.split_once(';').unwrap();
            *sums.entry(table).or_default() += ns.parse::<u64>().unwrap();
        }
        for table in found["tables"].as_array().unwrap() {
            let name = table["table"].as_str().unwrap();
            let sum = sums.remove(name).unwrap_or(0);
            assert_eq!(sum, number(&table["all"]["sum"]), "{analysis} {name}");
            let is_said = said.contains(&format!(": {name}: "));
            assert_eq!(missed(table) > 0, is_said, "{said}");
        }
        assert!(sums.is_empty(), "{sums:?}");
    }
    let dir = traces("perf.tar.xz");
    let (_, stacks, _) = analyze(&dir, "syscalls", "perf", &["--folded"]);
    let sleeps = stacks.lines().filter(|line| {
        line.starts_with("call;python3/") && line.contains(";python3;clock_nanosleep ")
    });
    assert_eq!(sleeps.count(), 5, "{stacks}");
}

/// The number of operations in the cells of a heat map.
fn drawn(picture: &str) -> u64 {
    let title = |line: &str| {
        let (count, _) = line.strip_prefix("<title>")?.split_once(" of ")?;
        count.replace(',', "").parse::<u64>().ok()
    };
    picture.lines().filter_map(title).sum()
}

#[test]
fn a_heat_map_has_every_operation() {
    let dir = traces("traces.tar.xz");
    for (analysis, trace) in EACH {
        for args in [&[][..], &["-i", "10ms"]] {
            let args = [args, &["--svg", "it.svg"]].concat();
            let found = json(&dir, analysis, trace, &args);
            let picture = fs::read_to_string(dir.path().join("it.svg")).unwrap();
            let tables = found["tables"].as_array().unwrap();
            let expected: u64 = tables.iter().map(|t| number(&t["all"]["count"])).sum();
            assert_eq!(drawn(&picture), expected, "{analysis}");
            let is_missed = tables.iter().any(|table| missed(table) > 0);
            assert_eq!(is_missed, picture.contains(" not measured: "), "{analysis}");
        }
    }
    // A packet is missing: its time is not recorded.
    let grey = || {
        json(&dir, "wakeups", "compact", &["--svg", "it.svg"]);
        let picture = fs::read_to_string(dir.path().join("it.svg")).unwrap();
        picture.matches("<title>not recorded</title>").count()
    };
    let before = grey();
    let file = dir.path().join("compact/kernel/channel_0");
    let mut bytes = fs::read(&file).unwrap();
    bytes.drain(2 * PACKET..3 * PACKET);
    fs::write(&file, bytes).unwrap();
    assert!(grey() > before);
}

/// The page that was written, and the data that its script reads.
fn written(dir: &TempDir) -> (String, Value) {
    let page = fs::read_to_string(dir.path().join("it.html")).unwrap();
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let data = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    (page, data)
}

/// The cells of a column of a table of a page.
fn column<'a>(table: &'a Value, name: &str) -> Vec<&'a Value> {
    let columns = table["columns"].as_array().unwrap();
    let place = columns.iter().position(|of| of[0] == name).unwrap();
    let rows = table["rows"].as_array().unwrap();
    rows.iter().map(|row| &row[0][place]).collect()
}

/// The bars of a histogram that are not empty: the shortest duration, and the number of durations.
fn bars(histogram: &Value) -> BTreeMap<u64, u64> {
    let bars = histogram.as_array().unwrap().iter();
    let bars = bars.map(|bar| (number(&bar[0]), number(&bar[1])));
    bars.filter(|(_, count)| *count > 0).collect()
}

/// Rows, histograms and worst cases of a page match the JSON, which has every operation as a worst case.
#[test]
fn a_page_has_every_row_and_every_operation() {
    let dir = traces("traces.tar.xz");
    for (analysis, trace) in EACH {
        for interval in [&[][..], &["-i", "10ms"]] {
            let args = [interval, &["-n", "100000", "--html", "it.html"]].concat();
            let found = json(&dir, analysis, trace, &args);
            let (page, data) = written(&dir);
            json(&dir, analysis, trace, &args);
            assert_eq!(written(&dir).0, page, "a second page is the same");
            let view = &data["views"][0];
            let command = format!(
                "latency-tracker analyze {analysis} {trace} {} --json",
                args.join(" ")
            );
            let facts = view["facts"].as_array().unwrap();
            assert!(facts.contains(&serde_json::json!(["Trace", trace])));
            assert!(facts.contains(&serde_json::json!(["Command", command])));
            let tables = found["tables"].as_array().unwrap();
            let all: u64 = tables.iter().map(|t| number(&t["all"]["count"])).sum();
            assert_eq!(drawn(&page), all, "{analysis}");
            let is_missed = tables.iter().any(|table| missed(table) > 0);
            let notes = view["notes"].to_string();
            assert_eq!(notes.contains(" not measured: "), is_missed, "{notes}");

            let mut shown = view["tables"].as_array().unwrap().iter();
            for table in tables {
                let rows = table["rows"].as_array().unwrap();
                let worst = table["worst"].as_array().unwrap();
                if rows.is_empty() {
                    continue;
                }
                let sheet = shown.next().unwrap();
                let (sum, count) = match table["table"].as_str().unwrap() {
                    "run" => ("Time", "Runs"),
                    _ => ("Sum", "Count"),
                };
                let of = |name: &str| column(sheet, name).into_iter().map(number);
                // The first row is for all, if there are several.
                let first = usize::from(rows.len() > 1);
                let sums: Vec<u64> = of(sum).collect();
                assert!(sums.is_sorted_by(|a, b| a >= b), "{sums:?}");
                let mut expected: Vec<_> = rows.iter().map(|row| number(&row["sum"])).collect();
                expected.sort_unstable_by_key(|sum| std::cmp::Reverse(*sum));
                assert_eq!(sums[first..], expected, "{analysis}");
                assert_eq!(sums[0], number(&table["all"]["sum"]));

                let histograms = column(sheet, "Durations");
                let histograms: Vec<_> = histograms.into_iter().map(bars).collect();
                for (histogram, count) in histograms.iter().zip(of(count)) {
                    assert_eq!(histogram.values().sum::<u64>(), count, "{analysis}");
                }
                let mut octaves: BTreeMap<u64, u64> = BTreeMap::new();
                for case in worst {
                    let exponent = number(&case["took"]).checked_ilog2().unwrap_or(0);
                    let low = if exponent == 0 { 0 } else { 1 << exponent };
                    *octaves.entry(low).or_default() += 1;
                }
                assert_eq!(histograms[0], octaves, "{analysis}");

                if !worst.is_empty() {
                    let begins = column(shown.next().unwrap(), "From");
                    let begins = begins.into_iter().map(|begin| begin.as_str().unwrap());
                    let expected = worst.iter().map(|case| case["begin"].to_string());
                    assert!(begins.eq(expected), "{analysis}");
                }
            }
            assert!(shown.next().is_none());
        }
    }
}

/// Two threads get hostile names: one would end the script, the other would create an element.
#[test]
fn no_name_on_a_page_is_markup_and_nothing_is_loaded() {
    const NAMES: [(&str, &str); 2] = [("kdamond.0", "</script>"), ("rcu_preempt", "<img src=x>")];
    let dir = traces("perf.tar.xz");
    for file in fs::read_dir(dir.path().join("perf")).unwrap() {
        let file = file.unwrap().path();
        let mut bytes = fs::read(&file).unwrap();
        for (name, hostile) in NAMES {
            let places = bytes.windows(name.len()).enumerate();
            let places = places.filter(|(_, part)| *part == name.as_bytes());
            let places: Vec<_> = places.map(|(place, _)| place).collect();
            for place in places {
                bytes[place..place + name.len()].copy_from_slice(hostile.as_bytes());
            }
        }
        fs::write(&file, bytes).unwrap();
    }
    json(&dir, "cpu", "perf", &["-n", "1000", "--html", "it.html"]);
    let (page, data) = written(&dir);
    let names = column(&data["views"][0]["tables"][0], "thread");
    for (_, hostile) in NAMES {
        let start = format!("{hostile}/");
        let has_it = |name: &&Value| name.as_str().unwrap().starts_with(&start);
        assert!(names.iter().any(has_it), "{names:?}");
        let start = start.replace('<', "&lt;").replace('>', "&gt;");
        assert!(page.contains(&start), "{start}");
    }
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(!page.contains("<img"));
    // The name of SVG's XML namespace looks like an address, but is not loaded.
    let page = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for reference in ["://", " src=\"", " href=", "url(", "@import"] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn a_range_and_a_thread_select_a_part() {
    let dir = traces("traces.tar.xz");
    let whole = json(&dir, "wakeups", "compact", &["-n", "100000"]);
    let all = table(&whole, "wakeup")["worst"].as_array().unwrap();
    let (from, to) = (number(&whole["from"]), number(&whole["to"]));
    let (from, to) = (from + (to - from) / 4, from + (to - from) / 2);
    let tid = &all[0]["thread"]["tid"];
    let range = [
        "--from",
        &from.to_string(),
        "--to",
        &to.to_string(),
        "-n",
        "100000",
    ];
    let part = json(
        &dir,
        "wakeups",
        "compact",
        &[&range[..], &["--tid", &tid.to_string()]].concat(),
    );
    let is_in = |case: &&Value| {
        &case["thread"]["tid"] == tid
            && number(&case["begin"]) >= from
            && number(&case["end"]) <= to
    };
    let expected: Vec<_> = all.iter().filter(is_in).collect();
    let found: Vec<_> = table(&part, "wakeup")["worst"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert!(!expected.is_empty());
    assert_eq!(found, expected);
    let rows = table(&part, "wakeup")["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1);
}

#[test]
fn what_cannot_be_analyzed_is_reported_in_one_line() {
    let dir = traces("traces.tar.xz");
    let wrong = |analysis: &str, trace: &str, args: &[&str], expected: &str| {
        let (status, out, error) = analyze(&dir, analysis, trace, args);
        assert_eq!((status, out.as_str()), (1, ""), "{analysis}: {error}");
        assert!(error.contains(expected), "{analysis}: {error}");
        error
    };
    for (analysis, trace, expected) in [
        ("wakeups", "ust", "record with -e sched_switch"),
        ("sleeps", "ust", "record with -e sched_switch"),
        (
            "cpu",
            "ust",
            "no event sched_switch; record with -e sched_switch",
        ),
        (
            "irq",
            "ust",
            "record with -e 'irq_handler_*' -e 'irq_softirq_*'",
        ),
        (
            "syscalls",
            "compact",
            "no system calls; record with latency-tracker record --events-for syscalls",
        ),
        (
            "io",
            "compact",
            "block_rq_complete are not both in this trace; record with -e 'block_rq_*'",
        ),
        (
            "locks",
            "compact",
            "latency-tracker record --events-for locks",
        ),
        ("work", "compact", "record with -e 'workqueue_*'"),
        ("reclaim", "compact", "-e 'mm_vmscan_*reclaim_*'"),
        (
            "net",
            "rare",
            "record with latency-tracker record --events-for net",
        ),
        ("cpu", "nothing", "nothing: No such file"),
    ] {
        assert_eq!(wrong(analysis, trace, &[], expected).lines().count(), 1);
    }
    for (args, expected) in [
        (&["-i", "0"][..], "expected a duration greater than 0"),
        (
            &["-i", "1ns"],
            "more than 10,000 intervals; choose a longer one",
        ),
        (
            &["--by", "line"],
            "[possible values: thread, process, name, cpu, priority]",
        ),
        (&["--json", "--csv"], "cannot be used with"),
        (&["--json", "--folded"], "cannot be used with"),
        (&["--csv", "--folded"], "cannot be used with"),
        (&["--folded", "--by", "name"], "cannot be used with"),
        (&["--folded", "-i", "1s"], "cannot be used with"),
        (&["--folded", "-n", "3"], "cannot be used with"),
        (&["--folded", "--html", "it"], "cannot be used with"),
        (&["--svg", "-"], "-: expected the name of a file"),
        (&["--svg", "no/it.svg"], "no/it.svg: No such file"),
        (&["--svg", "/dev/full"], "/dev/full: not a regular file"),
        (&["--html", "no/it.html"], "no/it.html: No such file"),
        (&["--html", "/dev/full"], "/dev/full: not a regular file"),
        (
            &["--html", "it", "--svg", "./it"],
            "it: named for two outputs",
        ),
        (&["--from", "2s"], "expected a time"),
        (&["--from", "+1h"], "does not cover the requested time"),
        (&["--to", "5"], "does not cover the requested time"),
        (
            &["--from", "+2ms", "--to", "+1ms"],
            "there is no time between",
        ),
    ] {
        wrong("wakeups", "compact", args, expected);
    }
    let (status, _, said) = analyze(&dir, "wakeups", "compact", &["--from", "0"]);
    assert!(
        status == 0 && said.contains("the trace covers only "),
        "{said}"
    );
}
