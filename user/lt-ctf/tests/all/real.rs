// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Real traces of a kernel and of a program (testdata/make): every event and field as babeltrace2 prints it.

use std::path::Path;
use std::process::Command;

use lt_ctf::{Item, Missing, Reader, text};

use crate::made::Dir;

pub fn unpack() -> Dir {
    let dir = Dir::new();
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/traces.tar.xz");
    let done = Command::new("tar")
        .arg("-C")
        .arg(&dir.0)
        .arg("-xJf")
        .arg(traces)
        .status()
        .unwrap();
    assert!(done.success());
    dir
}

/// The text of a trace, and what was lost, as counts of events and packets.
fn read(trace: &Path) -> (Vec<String>, [u64; 2]) {
    let mut reader = Reader::open(trace).unwrap();
    let (mut lines, mut lost) = (Vec::new(), [0, 0]);
    let mut last = i64::MIN;
    while let Some(item) = reader.next().unwrap() {
        match item {
            Item::Event(event) => {
                let mut line = Vec::new();
                assert!(text::line(&event, &mut line));
                lines.push(
                    String::from_utf8_lossy(&line)
                        .trim_end_matches('\n')
                        .to_string(),
                );
                assert!(event.nanoseconds() >= last);
                last = event.nanoseconds();
            }
            Item::Lost(what) => lost[usize::from(what.what == Missing::Packets)] += what.count,
        }
    }
    (lines, lost)
}

/// What babeltrace2 says was lost: `Tracer discarded 17 events between ...`.
fn lost(said: &str) -> [u64; 2] {
    let mut lost = [0, 0];
    for line in said.lines() {
        if let Some((_, rest)) = line.split_once("Tracer discarded ") {
            let mut words = rest.split(' ');
            let count: u64 = words.next().unwrap().parse().unwrap();
            lost[usize::from(words.next().unwrap().starts_with("packet"))] += count;
        }
    }
    lost
}

#[test]
fn every_event_and_field_is_what_babeltrace2_prints() {
    let dir = unpack();
    let mut traces = 0;
    for entry in std::fs::read_dir(&dir.0).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|e| e == "txt") && !name.ends_with("-1.8") {
            compare(&dir.0, name);
            traces += 1;
        }
    }
    assert!(traces >= 2, "{traces} traces");
}

#[test]
fn a_trace_of_the_older_format_is_converted() {
    let dir = unpack();
    for trace in ["ust-1.8", "rare-1.8"] {
        compare(&dir.0, trace);
    }
}

/// Several at a time: each stays what it is called, between those that need no conversion.
#[test]
fn many_traces_of_the_older_format_are_converted_together() {
    let dir = unpack();
    let many = dir.0.join("many");
    let mut expected = 0;
    for number in 0..12 {
        let trace = ["ust-1.8", "rare-1.8", "rare"][number % 3];
        let text = std::fs::read_to_string(dir.0.join(format!("{trace}.txt"))).unwrap();
        expected += text.lines().count();
        let to = many.join(format!("{number:02}"));
        std::fs::create_dir_all(&to).unwrap();
        let mut copy = Command::new("cp");
        assert!(
            copy.arg("-r")
                .arg(dir.0.join(trace))
                .arg(&to)
                .status()
                .unwrap()
                .success()
        );
    }
    let mut reader = Reader::open(&many).unwrap();
    let order: Vec<_> = reader
        .traces()
        .iter()
        .map(|trace| {
            let below = trace.directory.strip_prefix(&many).unwrap();
            let name = below.components().nth(1).unwrap().as_os_str();
            let tracer = trace.schema.environment("domain");
            assert_eq!(
                tracer,
                Some(if name == "ust-1.8" { "ust" } else { "kernel" }),
                "{below:?}"
            );
            below.components().next().unwrap().as_os_str().to_owned()
        })
        .collect();
    assert_eq!(order.len(), 12);
    assert!(order.is_sorted(), "{order:?}");
    let mut events = 0;
    while let Some(item) = reader.next().unwrap() {
        events += usize::from(matches!(item, Item::Event(_)));
    }
    assert_eq!(events, expected);
    // One that cannot be converted is named.
    let bad = many.join("04");
    let mut find = Command::new("find");
    let found = find
        .arg(&bad)
        .args(["-name", "metadata"])
        .output()
        .unwrap()
        .stdout;
    let metadata = String::from_utf8(found).unwrap();
    std::fs::write(metadata.trim(), "/* CTF 1.8 */\n\ntrace { broken").unwrap();
    let error = Reader::open(&many).err().unwrap().to_string();
    assert!(
        error.contains("many/04/rare-1.8/kernel: ") && error.contains("babeltrace2 cannot convert"),
        "{error}"
    );
}

fn compare(dir: &Path, trace: &str) {
    let (lines, gone) = read(&dir.join(trace));
    let expected = std::fs::read(dir.join(format!("{trace}.txt"))).unwrap();
    let expected: Vec<_> = String::from_utf8_lossy(&expected)
        .lines()
        .map(str::to_string)
        .collect();
    assert!(expected.len() > 100, "{trace}: {} events", expected.len());
    for (i, (ours, theirs)) in lines.iter().zip(&expected).enumerate() {
        assert_eq!(sorted(ours), sorted(theirs), "{trace}, event {i}");
    }
    assert_eq!(lines.len(), expected.len(), "{trace}");
    let said = std::fs::read_to_string(dir.join(format!("{trace}.err"))).unwrap();
    assert_eq!(gone, lost(&said), "{trace}: {said}");
    println!("{trace}: {} events, {gone:?} lost", lines.len());
}

/// babeltrace2 gives several names of one value in no order: `( { "b", "a" } : container = 3 )`.
fn sorted(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("( { \"") {
        let Some((names, after)) = after.split_once("\" } : container") else {
            break;
        };
        let mut names: Vec<_> = names.split("\", \"").collect();
        names.sort_unstable();
        out += &format!("{before}( {{ \"{}\" }} : container", names.join("\", \""));
        rest = after;
    }
    out + rest
}
