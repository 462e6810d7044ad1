// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `analyze --parquet` and `explain --parquet` from outside: each row is one of the durations or steps of `--json`, on
//! real traces (lt-ctf's testdata) and on made-up ones of disk requests, locks, work items, reclaim and packets. Also
//! what a second run, a killed run, a failed write and a wrong option leave. `tests/host/fleet.sh` runs SQL queries on
//! such files.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod ctf;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// Size of each packet of the trace `compact`, in bytes.
const PACKET: usize = 16384;

/// A directory with traces, and with the tables that were written to `fleet`.
struct Dir(TempDir);

/// The columns of a row that are not null.
type Row = BTreeMap<String, Value>;

impl Dir {
    /// The traces of lt-ctf's tests.
    fn with(archive: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lt-ctf/testdata");
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(dir.path()).arg("-xJf");
        assert!(tar.arg(traces.join(archive)).status().unwrap().success());
        Self(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Exit status, output and messages of an analysis.
    fn analyze(&self, args: &[&str]) -> (i32, String, String) {
        self.run(&[&["analyze"], args].concat())
    }

    /// Exit status, output and messages of a command.
    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_latency-tracker"));
        command.args(args);
        let output = command.current_dir(self.path()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let status = output.status.code().unwrap();
        (status, text(output.stdout), text(output.stderr))
    }

    /// The JSON of an analysis that also wrote files.
    fn written(&self, args: &[&str]) -> Value {
        let args = [args, &["--json", "--parquet", "fleet"]].concat();
        let (status, out, said) = self.analyze(&args);
        assert_eq!(status, 0, "{said}");
        serde_json::from_str(&out).unwrap()
    }

    /// Removes bytes of a stream of the trace `compact`.
    fn cut(&self, channel: &str, range: Range<usize>) {
        let file = self.path().join("compact/kernel").join(channel);
        let mut bytes = fs::read(&file).unwrap();
        bytes.drain(range);
        fs::write(&file, bytes).unwrap();
    }

    /// The files and the rows of each table.
    fn everything(&self) -> Vec<(Vec<PathBuf>, Vec<Row>)> {
        let tables = lt_parquet::TABLES.iter();
        let of = |table: &str| (self.files(table), self.rows(table));
        tables.map(|(table, _)| of(table)).collect()
    }

    /// The gaps of an analysis: CPU, reason, start and end.
    fn gaps(&self, analysis: &str) -> Vec<(u64, String, u64, u64)> {
        let rows = self.rows("gaps").into_iter();
        let rows = rows.filter(|row| row["analysis"] == analysis);
        let gap = |row: Row| {
            (
                number(&row["cpu"]),
                row["why"].as_str().unwrap().to_string(),
                number(&row["start_ns"]),
                number(&row["end_ns"]),
            )
        };
        rows.map(gap).collect()
    }

    /// The files of a table, including hidden files.
    fn files(&self, table: &str) -> Vec<PathBuf> {
        let hosts = fs::read_dir(self.path().join("fleet").join(table));
        let hosts = hosts.into_iter().flatten().map(|host| host.unwrap().path());
        let files = hosts.flat_map(|host| fs::read_dir(host).unwrap());
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        files
    }

    /// The rows of a table, as a reader in another language gets them, with the host of the directory.
    fn rows(&self, table: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        for file in self.files(table) {
            let host = file
                .parent()
                .unwrap()
                .file_name()
                .unwrap()
                .to_str()
                .unwrap();
            let host = host.strip_prefix("host=").unwrap();
            let reader = SerializedFileReader::new(File::open(&file).unwrap()).unwrap();
            for row in reader.get_row_iter(None).unwrap() {
                let row = row.unwrap();
                let values = row.get_column_iter().filter_map(|(name, field)| {
                    let value = match field {
                        Field::Null => return None,
                        Field::Long(number) | Field::TimestampMicros(number) => json!(number),
                        Field::Str(text) => json!(text),
                        Field::Bool(flag) => json!(flag),
                        other => unreachable!("{name}: {other:?}"),
                    };
                    Some((name.clone(), value))
                });
                let mut row: Row = values.collect();
                row.insert("host".into(), json!(host));
                rows.push(row);
            }
        }
        rows
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The values of a row in these columns.
fn columns(row: &Row, names: &[&str]) -> Vec<Value> {
    let value = |name: &&str| row.get(*name).cloned().unwrap_or_default();
    names.iter().map(value).collect()
}

/// The values in all rows, as text and sorted, so that the order of the rows does not matter.
fn sorted(rows: impl IntoIterator<Item = Vec<Value>>) -> Vec<String> {
    let rows = rows.into_iter().map(|row| json!(row).to_string());
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows
}

const OPERATION: [&str; 24] = [
    "duration_ns",
    "start_ns",
    "end_ns",
    "cpu",
    "tid",
    "prio",
    "line",
    "vector",
    "name",
    "call",
    "device",
    "disk",
    "operation",
    "lock",
    "state",
    "waker",
    "woken_by_tid",
    "function",
    "workqueue",
    "reclaim",
    "file",
    "ended",
    "queuer",
    "queued_by_tid",
];

/// An operation of the JSON in the order of `OPERATION`, then the kind of a lock.
fn operation(case: &Value) -> Vec<Value> {
    let names = [
        "took",
        "begin",
        "end",
        "cpu",
        "",
        "prio",
        "line",
        "vector",
        "name",
        "call",
        "device",
        "disk",
        "operation",
        "lock",
        "state",
        "waker",
        "woken_by",
        "function",
        "workqueue",
        "reclaim",
        "file",
        "ended",
        "queuer",
        "queued_by",
    ];
    let value = |name: &str| match name {
        "" => case["thread"]["tid"].clone(),
        "woken_by" | "queued_by" => case[name]["tid"].clone(),
        name => case[name].clone(),
    };
    let mut values: Vec<_> = names.into_iter().map(value).collect();
    values.push(case["kind"].clone());
    values
}

/// Compares the rows of an analysis with its JSON. Returns the number of rows.
fn compare(dir: &Dir, analysis: &str, trace: &str, args: &[&str]) -> usize {
    let all = [&[analysis, trace], args, &["-n", "1000000"]].concat();
    let found = dir.written(&all);
    let by_name = dir.written(
        &[
            &all[..],
            &["--by", if analysis == "irq" { "cpu" } else { "name" }],
        ]
        .concat(),
    );
    let is_of = |row: &&Row| row["analysis"] == analysis;
    let rows = dir.rows("intervals");
    let coverage = dir.rows("coverage");
    let mut count = 0;
    for (place, table) in list(&found["tables"]).iter().enumerate() {
        let kind = &table["table"];
        let rows: Vec<&Row> = rows
            .iter()
            .filter(is_of)
            .filter(|row| row["kind"] == *kind)
            .collect();
        let written = rows
            .iter()
            .map(|row| columns(row, &[&OPERATION[..], &["lock_kind"]].concat()));
        let worst = list(&table["worst"]);
        assert_eq!(
            sorted(written),
            sorted(worst.iter().map(operation)),
            "{analysis} {kind}"
        );
        count += worst.len();
        let mut covered = coverage
            .iter()
            .filter(is_of)
            .filter(|row| row["kind"] == *kind);
        let (covered, none) = (covered.next().unwrap(), covered.next());
        assert_eq!(none, None);
        let sum: u64 = worst.iter().map(|case| number(&case["took"])).sum();
        let expected = [
            json!(worst.len()),
            json!(sum),
            table["not_measured"]["lost"].clone(),
            table["not_measured"]["outside"].clone(),
            table["not_measured"]["identical"].clone(),
            found["from"].clone(),
            found["to"].clone(),
        ];
        let names = [
            "measured",
            "sum_ns",
            "not_measured_lost",
            "not_measured_outside",
            "not_measured_identical",
            "start_ns",
            "end_ns",
        ];
        assert_eq!(columns(covered, &names), expected, "{analysis} {kind}");
        let caveats: Vec<&str> = list(&found["caveats"])
            .iter()
            .map(|c| c.as_str().unwrap())
            .collect();
        let said = covered
            .get("caveats")
            .map_or("", |text| text.as_str().unwrap());
        assert_eq!(said, caveats.join("\n"));
        // The names of the threads are those by which `--by name` groups.
        if analysis == "irq" {
            continue;
        }
        let mut groups: BTreeMap<String, u64> = BTreeMap::new();
        for row in &rows {
            let comm = row.get("comm").cloned().unwrap_or_default();
            *groups.entry(comm.to_string()).or_default() += 1;
        }
        let of_names = list(&by_name["tables"][place]["rows"]).iter();
        let of_names = of_names.map(|row| (row["comm"].to_string(), number(&row["count"])));
        let of_names: BTreeMap<_, _> = of_names.filter(|(_, count)| *count > 0).collect();
        assert_eq!(groups, of_names, "{analysis} {kind}");
    }
    count
}

#[test]
fn rows_are_the_durations_of_the_json() {
    let dir = Dir::with("traces.tar.xz");
    let mut counts = Vec::new();
    for (analysis, trace) in [
        ("wakeups", "compact"),
        ("sleeps", "compact"),
        ("cpu", "compact"),
        ("irq", "compact"),
        ("syscalls", "all"),
        ("locks", "all"),
    ] {
        counts.push(compare(&dir, analysis, trace, &[]));
        fs::remove_dir_all(dir.path().join("fleet")).unwrap();
    }
    assert!(
        counts.iter().take(5).all(|count| *count > 100),
        "{counts:?}"
    );
    // A part of a trace.
    assert!(
        compare(
            &dir,
            "wakeups",
            "compact",
            &["--from", "+200ms", "--to", "+600ms"]
        ) > 50
    );
}

#[test]
fn requests_have_the_name_of_their_disk_wherever_the_trace_has_it() {
    let dir = Dir(tempfile::tempdir().unwrap());
    ctf::requests(&dir.path().join("trace"));
    assert_eq!(compare(&dir, "io", "trace", &[]), 6);
    let rows = dir.rows("intervals");
    // The name of the disk is the last event.
    assert!(
        rows.iter()
            .all(|row| row["disk"] == "vda" && row["device"] == "253:0")
    );
    assert!(rows.iter().all(|row| row["host"] == "disks-1"));
    for row in &rows {
        for (utc, ns) in [("start_utc", "start_ns"), ("end_utc", "end_ns")] {
            assert_eq!(
                number(&row[utc]),
                ctf::SECONDS * 1_000_000 + number(&row[ns]) / 1000
            );
        }
    }
    let covered = &dir.rows("coverage")[0];
    assert_eq!(
        number(&covered["utc_offset_ns"]),
        ctf::SECONDS * 1_000_000_000
    );
    assert_eq!(covered["boot"], ctf::BOOT);
}

#[test]
fn waits_for_locks_match_the_json() {
    let dir = Dir(tempfile::tempdir().unwrap());
    ctf::locks(&dir.path().join("trace"));
    assert_eq!(compare(&dir, "locks", "trace", &[]), 4);
    let rows = dir.rows("intervals");
    let kinds = rows.iter();
    let kinds = kinds.map(|row| columns(row, &["kind", "lock_kind", "comm"]));
    let expected = ["mutex", "mutex", "spinlock", "spinlock"];
    let expected = expected.map(|kind| vec![json!("contention"), json!(kind), json!("server")]);
    assert_eq!(sorted(kinds), sorted(expected));
}

#[test]
fn work_items_match_the_json() {
    let dir = Dir(tempfile::tempdir().unwrap());
    ctf::works(&dir.path().join("trace"));
    assert_eq!(compare(&dir, "work", "trace", &[]), 8);
    let rows = dir.rows("intervals");
    let functions = rows.iter();
    let functions = functions.map(|row| columns(row, &["kind", "function", "name", "comm"]));
    let expected = ["queued", "work"].into_iter().flat_map(|kind| {
        ["0xa0", "0xb0", "0xa0", "0xb0"].map(|function| {
            // No kernel has a function there, and the trace is of another boot.
            vec![json!(kind), json!(function), Value::Null, json!("server")]
        })
    });
    assert_eq!(sorted(functions), sorted(expected));
    // The trace has no events of interrupt handlers.
    let names = ["queuer", "queued_by_tid", "queued_by_name"];
    let by = json!(["thread-or-irq", 77, "server"]);
    assert!(rows.iter().all(|row| json!(columns(row, &names)) == by));
    let (_, text, said) = dir.analyze(&["work", "trace", "--by", "queuer"]);
    assert!(
        text.contains("  server/77 or an interrupt\n")
            && text.contains("  0xa0, queued by server/77 or an interrupt\n"),
        "{text}"
    );
    let hint = ": a queuer is the named thread, or an interrupt of it; record with ";
    assert!(said.contains(hint), "{said}");
}

#[test]
fn reclaim_matches_the_json() {
    let dir = Dir(tempfile::tempdir().unwrap());
    ctf::reclaims(&dir.path().join("trace"));
    assert_eq!(compare(&dir, "reclaim", "trace", &[]), 3);
    let rows = dir.rows("intervals");
    let found = rows.iter();
    let found = found.map(|row| columns(row, &["reclaim", "comm", "duration_ns"]));
    let expected = [
        ("direct", "server", 1000),
        ("direct", "server", 1000),
        ("kswapd", "kswapd0", 2000),
    ];
    let expected = expected.map(|(kind, comm, took)| vec![json!(kind), json!(comm), json!(took)]);
    assert_eq!(sorted(found), sorted(expected));
}

#[test]
fn packets_match_the_json() {
    let dir = Dir(tempfile::tempdir().unwrap());
    ctf::packets(&dir.path().join("trace"));
    assert_eq!(compare(&dir, "net", "trace", &[]), 8);
    let rows = dir.rows("intervals");
    let found = rows.iter();
    let found = found.map(|row| columns(row, &["kind", "ended", "duration_ns"]));
    let expected = [
        ("backlog", None, 2000),
        ("backlog", None, 2000),
        ("backlog", None, 2000),
        ("receive", Some("consumed"), 9000),
        ("receive", Some("copied"), 12000),
        ("transmit", None, 3000),
        ("transmit", None, 3000),
        ("transmit", None, 3000),
    ];
    let expected = expected.map(|(kind, end, took)| vec![json!(kind), json!(end), json!(took)]);
    assert_eq!(sorted(found), sorted(expected));
    assert!(rows.iter().all(|row| row["device"] == "lo"));
    let by_end = dir.written(&["net", "trace", "--by", "end"]);
    let receive = &by_end["tables"][1];
    assert_eq!(receive["by"], "end");
    assert_eq!(receive["all"]["merges"], 1);
    assert_eq!(receive["all"]["replaced"], 1);
    let rows = list(&receive["rows"]).iter();
    let found = rows.map(|row| vec![row["ended"].clone(), row["count"].clone()]);
    let expected = [(Some("copied"), 1), (Some("consumed"), 1), (None, 0)];
    let expected = expected.map(|(end, count)| vec![json!(end), json!(count)]);
    assert_eq!(sorted(found), sorted(expected));
    // Merged and replaced packets have no thread.
    let of_thread = dir.written(&["net", "trace", "--tid", "77"]);
    let receive = &of_thread["tables"][1]["all"];
    assert_eq!(receive["merges"], 0);
    assert_eq!(receive["replaced"], 0);
    let caveat = "MERGES and REPLACED of received packets are 0 with --tid";
    assert!(of_thread["caveats"].to_string().contains(caveat));
    assert!(!by_end["caveats"].to_string().contains(caveat));
}

#[test]
fn waits_have_the_name_of_their_disk_wherever_the_trace_has_it() {
    let dir = Dir(tempfile::tempdir().unwrap());
    ctf::waits(&dir.path().join("trace"));
    dir.written(&["path", "trace", "--tid", "77"]);
    dir.written(&["delays", "trace", "--tid", "77"]);
    dir.written(&["wakeups", "trace"]);
    let is_wait = |row: &&Row| row.get("cause_by").is_some_and(|by| *by == "disk");
    for (table, analysis, name) in [
        ("edges", "path", "cause_name"),
        ("intervals", "delays", "name"),
    ] {
        let rows = dir.rows(table);
        let rows = rows.iter().filter(|row| row["analysis"] == analysis);
        let waits = rows.filter(is_wait);
        let waits: Vec<_> = waits.map(|row| columns(row, &[name, "disk"])).collect();
        let expected = [json!("253:0"), json!("vda")];
        assert!(
            waits.len() >= 3 && waits.iter().all(|of| *of == expected),
            "{analysis}: {waits:?}"
        );
    }
    // Everything is recorded.
    assert!(dir.files("gaps").is_empty());
}

#[test]
fn edges_and_states_match_the_json() {
    let dir = Dir::with("perf.tar.xz");
    let path = dir.written(&["path", "perf", "--tid", "177"]);
    let names = [
        "start_ns",
        "end_ns",
        "depth",
        "tid",
        "comm",
        "cpu",
        "cause",
        "cause_by",
        "cause_known",
        "call",
        "instead_ns",
        "file",
        "descriptor",
    ];
    let values = |edge: &Value, cause: &Value, call: &Value| {
        vec![
            edge["begin"].clone(),
            edge["end"].clone(),
            edge["depth"].clone(),
            edge["thread"]["tid"].clone(),
            edge["thread"]["comm"].clone(),
            edge["cpu"].clone(),
            cause["kind"].clone(),
            cause["by"].clone(),
            cause["known"].clone(),
            call.clone(),
            edge["instead"]["time"].clone(),
            edge["file"].clone(),
            edge["descriptor"].clone(),
        ]
    };
    let of_json = |edge: &Value| {
        let (cause, own) = (&edge["cause"], &edge["syscall"]);
        let call = if own.is_null() {
            &cause["syscall"]
        } else {
            own
        };
        values(edge, cause, call)
    };
    let written = |dir: &Dir| -> Vec<Vec<Value>> {
        let rows = dir.rows("edges");
        rows.iter().map(|row| columns(row, &names)).collect()
    };
    let steps: Vec<_> = list(&path["path"]).iter().map(of_json).collect();
    assert!(steps.len() > 100);
    assert_eq!(written(&dir), steps);
    let sum: u64 = dir
        .rows("edges")
        .iter()
        .map(|row| number(&row["duration_ns"]))
        .sum();
    assert_eq!(sum, number(&path["to"]) - number(&path["from"]));
    fs::remove_dir_all(dir.path().join("fleet")).unwrap();

    let delays = dir.written(&["delays", "perf", "--tid", "179"]);
    let segments = list(&delays["segments"]);
    assert!(segments.len() > 1);
    let waits = segments.iter().flat_map(|segment| list(&segment["waits"]));
    let waits: Vec<_> = waits.map(of_json).collect();
    assert!(!waits.is_empty());
    assert_eq!(written(&dir), waits);
    let rows = dir.rows("intervals");
    let states: Vec<_> = segments
        .iter()
        .flat_map(|segment| {
            list(&segment["states"]).iter().map(|state| {
                let open = json!(state["open"] == true);
                [
                    &segment["thread"]["tid"],
                    &state["begin"],
                    &state["end"],
                    &state["class"],
                    &state["cause"]["kind"],
                    &open,
                    &state["woken_by"]["tid"],
                    &state["file"],
                    &state["descriptor"],
                ]
                .map(Clone::clone)
                .to_vec()
            })
        })
        .collect();
    let names = [
        "tid",
        "start_ns",
        "end_ns",
        "class",
        "cause",
        "open",
        "woken_by_tid",
        "file",
        "descriptor",
    ];
    let written: Vec<_> = rows.iter().map(|row| columns(row, &names)).collect();
    assert_eq!(written, states);
    // The rows of an ancestor, too, name the thread that is analyzed.
    let edges = dir.rows("edges");
    let mut all = rows.iter().chain(&edges);
    assert!(all.all(|row| row["analyzed_tid"] == 179));
    // This trace does not record the time of day.
    assert!(rows.iter().all(|row| !row.contains_key("start_utc")));
}

#[test]
fn what_is_missing_has_rows() {
    let dir = Dir::with("traces.tar.xz");
    dir.cut("channel_0", 2 * PACKET..3 * PACKET);
    assert!(compare(&dir, "wakeups", "compact", &[]) > 100);
    let covered = &dir.rows("coverage")[0];
    assert_eq!(number(&covered["packets_lost"]), 1);
    assert!(number(&covered["not_measured_lost"]) > 0);
    assert!(covered["caveats"].as_str().unwrap().contains("1 packet"));
    let gaps = dir.rows("gaps");
    let lost: Vec<_> = gaps.iter().filter(|gap| gap["why"] == "lost").collect();
    assert_eq!(lost.len(), 1, "{gaps:?}");
    let (from, to) = (number(&lost[0]["start_ns"]), number(&lost[0]["end_ns"]));
    assert!(from < to && number(&lost[0]["cpu"]) == 0);
    // No operation of a thread spans the gap.
    let spans = |row: &&Row| number(&row["start_ns"]) <= from && number(&row["end_ns"]) >= to;
    assert_eq!(dir.rows("intervals").iter().find(spans), None);
}

/// The first packet of CPU 0 was overwritten. The file of CPU 1 ends earlier.
#[test]
fn only_gaps_in_the_range_are_rows() {
    let dir = Dir::with("traces.tar.xz");
    dir.cut("channel_0", 0..PACKET);
    for args in [
        &["wakeups", "compact"][..],
        &["path", "compact", "--tid", "15"],
        &["delays", "compact", "--tid", "15"],
    ] {
        let run = |more: &[&str]| {
            dir.written(&[args, more].concat());
            let coverage = dir.rows("coverage").into_iter();
            let mut coverage = coverage.filter(|row| row["analysis"] == args[0]);
            let covered = coverage.next().unwrap();
            let range = (number(&covered["start_ns"]), number(&covered["end_ns"]));
            // Each gap names the thread of its analysis, if there is one.
            let of = |row: &Row| (row["analysis"] == args[0]).then(|| row.get("tid").cloned());
            let tids = dir.rows("gaps").iter().filter_map(of).collect::<Vec<_>>();
            let tid = args.get(3).map(|_| json!(15));
            assert!(tids.iter().all(|of| *of == tid), "{tids:?}");
            (dir.gaps(args[0]), range)
        };
        let (gaps, (from, to)) = run(&["--from", "+1ns"]);
        let [later, earlier] = &gaps[..] else {
            unreachable!("{gaps:?}");
        };
        let (begin, end) = (later.3, earlier.2);
        assert!(from < begin && begin < end && end < to, "{gaps:?}");
        assert_eq!(*later, (0, "starts-later".to_string(), from, begin));
        assert_eq!(*earlier, (1, "ends-earlier".to_string(), end, to));
        let middle = (end + to) / 2;
        let texts = [begin, end, middle].map(|time| time.to_string());
        let [first, second, third] = texts.each_ref().map(String::as_str);
        let (gaps, _) = run(&["--from", first, "--to", second]);
        assert!(gaps.is_empty(), "{gaps:?}");
        let (gaps, _) = run(&["--from", first, "--to", third]);
        assert_eq!(gaps, [(1_u64, "ends-earlier".to_string(), end, middle)]);
    }
}

#[test]
fn a_limit_on_memory_changes_no_row() {
    let dir = Dir::with("traces.tar.xz");
    dir.cut("channel_0", 2 * PACKET..3 * PACKET);
    let args = ["path", "compact", "--tid", "15", "--parquet", "fleet"];
    assert_eq!(dir.analyze(&args).0, 0);
    let whole = dir.everything();
    let gaps = dir.gaps("path");
    assert!(gaps.iter().any(|gap| gap.1 == "lost"), "{gaps:?}");
    let (status, _, said) = dir.analyze(&[&args[..], &["--low-memory"]].concat());
    assert_eq!(status, 0, "{said}");
    assert_eq!(dir.everything(), whole, "--low-memory");
    let mut smaller = 0;
    for limit in ["50K", "100K", "200K", "400K", "600K"] {
        let (status, _, said) = dir.analyze(&[&args[..], &["--max-memory", limit]].concat());
        if status == 0 {
            assert_eq!(dir.everything(), whole, "{limit}");
            smaller += 1;
        } else {
            assert!(said.contains("of memory is not enough"), "{said}");
        }
    }
    assert!(smaller > 0);
}

#[test]
fn the_time_between_two_traces_is_not_lost() {
    let dir = Dir::with("traces.tar.xz");
    let whole = dir.path().join("compact/kernel");
    for (name, is_first) in [("first", true), ("second", false)] {
        let part = dir.path().join("parts").join(name);
        fs::create_dir_all(&part).unwrap();
        fs::copy(whole.join("metadata"), part.join("metadata")).unwrap();
        for channel in ["channel_0", "channel_1"] {
            let bytes = fs::read(whole.join(channel)).unwrap();
            let middle = bytes.len() / PACKET / 2 * PACKET;
            let bytes = match is_first {
                true => &bytes[..middle],
                false => &bytes[middle + PACKET..],
            };
            fs::write(part.join(channel), bytes).unwrap();
        }
    }
    let between = |args: &[&str]| {
        dir.written(&[args, &["--from", "+1ns"]].concat());
        let mut gaps = dir.gaps(args[0]);
        assert!(gaps.iter().all(|gap| gap.1 != "lost"), "{gaps:?}");
        gaps.retain(|gap| gap.1 == "between-traces");
        gaps
    };
    let gaps = between(&["wakeups", "parts"]);
    let cpus: Vec<_> = gaps.iter().map(|gap| gap.0).collect();
    assert_eq!(cpus, [0, 1], "{gaps:?}");
    assert_eq!(between(&["path", "parts", "--tid", "15"]), gaps);
}

#[test]
fn alerts_match_the_capture() {
    let dir = Dir::with("traces.tar.xz");
    let capture = dir.path().join("0001");
    fs::create_dir(&capture).unwrap();
    fs::rename(dir.path().join("compact"), capture.join("trace")).unwrap();
    let line = "seq=17 time=21758900000 instance=slow tracker=block reason=threshold delay=34 threshold=10 cpu=1 pid=8 tid=9 \
                comm=\"fio\" disk=\"vda\" bytes=4096";
    let alert = lt_proc::Alert::parse(line).unwrap();
    fs::write(
        capture.join("alert.json"),
        json!({"alerts": [alert]}).to_string(),
    )
    .unwrap();
    dir.written(&["wakeups", "0001/trace"]);
    dir.written(&["cpu", "0001/trace"]);
    let rows = dir.rows("alerts");
    // The alert has one row, though both analyses write it.
    assert_eq!(rows.len(), 1);
    // The capture is found by the real path of the trace.
    std::os::unix::fs::symlink("0001/trace", dir.path().join("link")).unwrap();
    dir.written(&["wakeups", "link", "--host", "other"]);
    let others = dir.rows("alerts").into_iter();
    assert_eq!(others.filter(|row| row["host"] == "other").count(), 1);
    let names = [
        "seq",
        "time_ns",
        "instance",
        "tracker",
        "reason",
        "delay_ns",
        "threshold_ns",
        "cpu",
        "pid",
        "tid",
        "comm",
    ];
    let expected = json!([
        17,
        21_758_900_000_u64,
        "slow",
        "block",
        "threshold",
        34,
        10,
        1,
        8,
        9,
        "fio"
    ]);
    assert_eq!(json!(columns(&rows[0], &names)), expected);
    let fields: Map<String, Value> =
        serde_json::from_str(rows[0]["fields"].as_str().unwrap()).unwrap();
    assert_eq!(fields["disk"], "vda");
    let offset = number(&dir.rows("coverage")[0]["utc_offset_ns"]);
    assert_eq!(
        number(&rows[0]["time_utc"]),
        (offset + 21_758_900_000) / 1000
    );
}

/// Each step has the key of its alert. An alert without a path, or without an explanation, has no steps.
#[test]
fn the_paths_of_alerts_match_the_json() {
    let dir = Dir::with("traces.tar.xz");
    let capture = dir.path().join("0001");
    fs::create_dir(&capture).unwrap();
    fs::rename(dir.path().join("compact"), capture.join("trace")).unwrap();
    let alert = |seq: u64, tracker: &str| {
        let line = format!(
            "seq={seq} time=22672338106 instance=late tracker={tracker} reason=threshold delay=300000000 threshold=1 \
             cpu=0 pid=187 tid=195 comm=\"lttng-consumerd\""
        );
        lt_proc::Alert::parse(&line).unwrap()
    };
    // The first alert was read twice; the second one is of a CPU.
    let alerts = [(1, "offcpu"), (2, "irq"), (3, "offcpu"), (1, "offcpu")];
    let alerts = alerts.map(|(seq, tracker)| alert(seq, tracker));
    let json = json!({ "alerts": alerts }).to_string();
    fs::write(capture.join("alert.json"), json).unwrap();
    let explain = |more: &[&str]| -> Vec<Value> {
        let args = ["explain", "0001", "--json", "--parquet", "fleet"];
        let (status, out, said) = dir.run(&[&args, more].concat());
        assert_eq!(status, 0, "{said}");
        let objects = out.lines();
        let objects = objects.map(|line| serde_json::from_str(line).unwrap());
        objects.collect()
    };
    let reports = explain(&["--seq", "1", "--seq", "2"]);
    assert_eq!(reports.len(), 3);
    assert!(reports[1].get("path").is_none(), "{}", reports[1]);
    let path = &reports[0]["path"];
    let steps = list(&path["path"]).iter();
    let steps = steps.map(|step| {
        let cause = &step["cause"];
        vec![
            step["begin"].clone(),
            step["end"].clone(),
            step["depth"].clone(),
            step["thread"]["tid"].clone(),
            cause["kind"].clone(),
            cause["by"].clone(),
            cause["held"].clone(),
            json!("explain"),
            json!("late"),
            json!(1),
            json!(22_372_338_106_u64),
            json!(22_672_338_106_u64),
            json!(195),
        ]
    });
    let steps: Vec<_> = steps.collect();
    let names = [
        "start_ns",
        "end_ns",
        "depth",
        "tid",
        "cause",
        "cause_by",
        "held",
        "analysis",
        "instance",
        "seq",
        "range_start_ns",
        "range_end_ns",
        "target_tid",
    ];
    let edges = dir.rows("edges");
    let written: Vec<_> = edges.iter().map(|row| columns(row, &names)).collect();
    assert!(!steps.is_empty());
    assert_eq!(written, steps);
    let sum: u64 = edges.iter().map(|row| number(&row["duration_ns"])).sum();
    assert_eq!(sum, 300_000_000);
    let keys = ["trace", "instance", "seq", "time_ns"];
    let alerts = dir.rows("alerts");
    let of_edge = columns(&edges[0], &["trace", "instance", "seq", "range_end_ns"]);
    let joined = alerts.iter().filter(|row| columns(row, &keys) == of_edge);
    // The alert that was read twice has one row.
    assert_eq!((alerts.len(), joined.count()), (3, 1));
    let coverage = dir.rows("coverage");
    assert_eq!(coverage.len(), 1);
    let expected = json!(["explain", "edge", steps.len(), sum]);
    let names = ["analysis", "kind", "measured", "sum_ns"];
    assert_eq!(json!(columns(&coverage[0], &names)), expected);
    assert!(!coverage[0].contains_key("tid"));
    // The second run replaces the first.
    explain(&[]);
    let of_seq = |seq: u64| {
        let rows = dir.rows("edges");
        rows.iter().filter(|row| row["seq"] == seq).count()
    };
    let counts = [1, 2, 3].map(of_seq);
    assert_eq!(counts, [steps.len(), 0, steps.len()]);
    // The alerts of a file are not the alerts of the trace.
    let args = ["explain", "0001", "--alerts", "late", "--parquet", "fleet"];
    let (status, _, said) = dir.run(&args);
    assert!(
        status != 0 && said.contains("cannot be used with"),
        "{status} {said}"
    );
}

#[test]
fn a_second_run_replaces_the_first() {
    let dir = Dir::with("traces.tar.xz");
    dir.cut("channel_0", 2 * PACKET..3 * PACKET);
    let runs = [
        &["irq", "compact"][..],
        &["wakeups", "compact"],
        &["path", "compact", "--tid", "15"],
        &["delays", "compact", "--tid", "15"],
    ];
    for run in runs {
        dir.written(run);
    }
    let before = dir.everything();
    for run in runs {
        let (status, _, said) = dir.analyze(&[run, &["--parquet", "fleet"]].concat());
        assert!(
            status == 0 && said.contains("; they replace those of an earlier run for this trace"),
            "{said}"
        );
        assert_eq!(dir.everything(), before, "{run:?}");
    }
    // No file remains for a part without softirqs.
    let part = [
        "irq",
        "compact",
        "--from",
        "+1us",
        "--to",
        "+2us",
        "--parquet",
        "fleet",
    ];
    let (status, _, said) = dir.analyze(&part);
    assert_eq!(status, 0, "{said}");
    let rows = dir.rows("intervals");
    let is_of = |row: &&Row, analysis: &str| row["analysis"] == analysis;
    let count = |analysis| rows.iter().filter(|row| is_of(row, analysis)).count();
    assert!(count("irq") == 0 && count("wakeups") > 0 && count("delays") > 0);
    // A trace that was moved replaces its own rows; another host has separate rows.
    fs::rename(dir.path().join("compact"), dir.path().join("moved")).unwrap();
    dir.written(&["wakeups", "moved"]);
    assert_eq!(dir.rows("intervals"), rows);
    dir.written(&["wakeups", "moved", "--host", "other"]);
    let of_both = rows.len() + count("wakeups");
    assert_eq!(dir.rows("intervals").len(), of_both);
}

#[test]
fn overlapping_traces_are_reported() {
    let dir = Dir::with("traces.tar.xz");
    let (status, _, said) = dir.analyze(&["wakeups", "compact", "--parquet", "fleet"]);
    assert!(status == 0 && !said.contains("overlaps"), "{said}");
    // A later snapshot of the same session, in which the buffer of CPU 1 has not wrapped.
    dir.cut("channel_0", 0..PACKET);
    let (status, _, said) = dir.analyze(&["wakeups", "compact", "--parquet", "fleet"]);
    assert!(
        status == 0
            && said.contains(": this trace overlaps the trace ")
            && said.contains(" in time: an operation in both has two rows"),
        "{said}"
    );
    let traces: std::collections::BTreeSet<_> = dir
        .rows("coverage")
        .iter()
        .map(|row| row["trace"].to_string())
        .collect();
    assert_eq!(traces.len(), 2);
}

#[test]
fn what_a_killed_run_leaves_is_hidden_and_removed_by_the_next_run() {
    let dir = Dir::with("traces.tar.xz");
    // The kernel kills the process at its first write to a file.
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 0; ulimit -c 0; exec \"$@\"", "sh"]);
    limited.arg(env!("CARGO_BIN_EXE_latency-tracker"));
    limited.args(["analyze", "wakeups", "compact", "--parquet", "fleet"]);
    let done = limited.current_dir(dir.path()).output().unwrap();
    let signal = nix::sys::signal::Signal::SIGXFSZ as i32;
    assert_eq!(done.status.signal(), Some(signal), "{done:?}");
    let files = dir.files("intervals");
    let hidden = |file: &PathBuf| file.file_name().unwrap().to_str().unwrap().starts_with('.');
    assert!(!files.is_empty() && files.iter().all(hidden), "{files:?}");
    assert!(dir.files("coverage").is_empty());
    // The next run removes what is left.
    let (status, _, said) = dir.analyze(&["wakeups", "compact", "--parquet", "fleet"]);
    let removed = "fleet: removed 1 unfinished file that a killed run left";
    assert!(status == 0 && said.contains(removed), "{said}");
    assert!(!dir.files("intervals").iter().any(hidden));
}

/// Without the signal, each write to a file fails, as on a full disk.
#[test]
fn what_cannot_be_written_is_reported_and_removed() {
    let dir = Dir::with("traces.tar.xz");
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"]);
    limited.arg(env!("CARGO_BIN_EXE_latency-tracker"));
    limited.args(["analyze", "wakeups", "compact", "--parquet", "fleet"]);
    let done = limited.current_dir(dir.path()).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(
        done.status.code() == Some(1)
            && said.contains("fleet/intervals/host=")
            && said.contains("File too large"),
        "{said}"
    );
    for (table, _) in lt_parquet::TABLES {
        assert!(dir.files(table).is_empty(), "{table}");
    }
}

#[test]
fn a_wrong_place_or_host_changes_nothing() {
    let dir = Dir::with("traces.tar.xz");
    fs::write(dir.path().join("file"), "kept").unwrap();
    for (args, expected) in [
        (&["--parquet", "file"][..], "Not a directory"),
        (
            &["--parquet", "fleet", "--host", "a/b"],
            "expected the name of a host",
        ),
        (&["--host", "web3"], "--parquet <DIR>"),
    ] {
        let (status, _, said) = dir.analyze(&[&["wakeups", "compact"], args].concat());
        assert!(status != 0 && said.contains(expected), "{status} {said}");
    }
    let (status, _, said) = dir.analyze(&["wakeups", "nothing", "--parquet", "fleet"]);
    assert!(
        status == 1 && said.contains("nothing: No such file"),
        "{said}"
    );
    let metadata = dir.path().join("compact/kernel/metadata");
    let mut text = fs::read(&metadata).unwrap();
    let place = text
        .windows(10)
        .position(|window| window == b"\"hostname\"")
        .unwrap();
    text[place..place + 10].copy_from_slice(b"\"hostnome\"");
    fs::write(&metadata, text).unwrap();
    let (status, _, said) = dir.analyze(&["wakeups", "compact", "--parquet", "fleet"]);
    assert!(
        status == 1 && said.contains("the trace does not name its host; name it with --host"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(dir.path().join("file")).unwrap(), "kept");
    assert!(!dir.path().join("fleet").exists());
}

/// The guide has a table of the columns, with their types.
#[test]
fn the_guide_has_every_column() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Documentation/guide/fleet-sql.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, columns) = page.split_once("\n## Columns\n").unwrap();
    let mut found = Vec::new();
    for line in columns.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            found.push((name.to_string(), Vec::new()));
        } else if let Some(row) = line.strip_prefix("| `") {
            let mut cells = row.split(" | ");
            let name = cells.next().unwrap().trim_end_matches('`').to_string();
            found
                .last_mut()
                .unwrap()
                .1
                .push((name, cells.next().unwrap().to_string()));
        }
    }
    let of = |column: &lt_parquet::Column| {
        let of = match column.of {
            lt_parquet::Type::Int => "BIGINT",
            lt_parquet::Type::Text => "STRING",
            lt_parquet::Type::Flag => "BOOLEAN",
            lt_parquet::Type::Time => "TIMESTAMP",
        };
        (column.name.to_string(), of.to_string())
    };
    let expected = lt_parquet::TABLES.iter().map(|(name, columns)| {
        let host = ("host".to_string(), "partition".to_string());
        let columns = std::iter::once(host)
            .chain(columns.iter().map(of))
            .collect();
        (name.to_string(), columns)
    });
    assert_eq!(found, expected.collect::<Vec<_>>());
}
