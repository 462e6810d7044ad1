// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Compares real traces of a kernel and of a program (testdata/make) with babeltrace2's text: every
//! event and field.

use std::path::Path;
use std::process::Command;

use lt_ctf::{Event, Item, Missing, Part, Reader, Value, text};

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

/// Compares the values of all fields with the parts that `visit` reports, which it decodes on another path.
pub fn check_values(event: &Event<'_>) {
    let mut fields = event.class().fields();
    event.values(|field, value| {
        assert_eq!(fields.next().map(|(index, _)| index), Some(field));
        let mut parts = Vec::new();
        assert!(event.visit(field, &mut |part| parts.push(part)));
        let is_same = match (value, parts.as_slice()) {
            (Some(Value::Unsigned(value)), [Part::Bool(part)]) => (value != 0) == *part,
            (Some(Value::Unsigned(value)), [Part::Bits(part, _)]) => value == *part,
            (Some(Value::Unsigned(value)), [Part::Unsigned(part, ..)]) => value == *part,
            (Some(Value::Signed(value)), [Part::Signed(part, ..)]) => value == *part,
            (Some(Value::Float(value)), [Part::Single(part)]) => {
                value.to_bits() == f64::from(*part).to_bits()
            }
            (Some(Value::Float(value)), [Part::Double(part)]) => value.to_bits() == part.to_bits(),
            (Some(Value::Bytes(bytes)), [Part::Text(part)]) => *bytes == **part,
            (Some(Value::Bytes(bytes)), [Part::Blob(part)]) => bytes == *part,
            // A container.
            (
                None,
                [
                    Part::Struct | Part::Array(_) | Part::Variant(_) | Part::Optional(_),
                    ..,
                ],
            ) => {
                event.unsigned(field).is_none()
                    && event.signed(field).is_none()
                    && event.float(field).is_none()
                    && event.bytes(field).is_none()
            }
            _ => false,
        };
        assert!(is_same, "{value:?}, but {parts:?}");
    });
    assert!(fields.next().is_none());
}

/// Returns the text of a trace, and the numbers of lost events and packets.
fn read(trace: &Path) -> (Vec<String>, [u64; 2]) {
    let mut reader = Reader::open(trace).unwrap();
    let (mut lines, mut lost) = (Vec::new(), [0, 0]);
    let mut last = i64::MIN;
    while let Some(item) = reader.next().unwrap() {
        match item {
            Item::Event(event) => {
                check_values(&event);
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

/// Returns the losses that babeltrace2 prints: `Tracer discarded 17 events between ...`.
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
    let (mut traces, mut old) = (0, 0);
    for entry in std::fs::read_dir(&dir.0).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|e| e == "txt") {
            compare(&dir.0, name);
            traces += 1;
            old += usize::from(name.contains("-1.8"));
        }
    }
    assert!(
        traces - old >= 2 && old >= 4,
        "{traces} traces, {old} of CTF 1.8"
    );
}

/// The traces of one program or kernel in both formats of LTTng have classes with the same names
/// and fields.
#[test]
fn both_formats_have_the_same_classes() {
    let dir = unpack();
    let classes = |trace: &str| {
        let reader = Reader::open(&dir.0.join(trace)).unwrap();
        let fields = |c: &lt_ctf::Class| {
            c.fields()
                .map(|(_, f)| f.name.replace(['$', '.', ':'], "_"))
                .collect()
        };
        let mut classes: Vec<(String, Vec<String>)> = reader
            .classes()
            .map(|c| (c.name.clone(), fields(c)))
            .collect();
        classes.sort();
        classes
    };
    for trace in ["ust", "rare"] {
        let (new, old) = (classes(trace), classes(&format!("{trace}-1.8")));
        assert_eq!(new, old, "{trace}");
    }
}

/// Several traces are read together, and their events keep their names. A trace with unreadable
/// metadata is named in an error, and does not affect the others.
#[test]
fn a_damaged_trace_does_not_affect_the_others() {
    let dir = unpack();
    let many = dir.0.join("many");
    let mut expected = 0;
    for number in 0..6 {
        let trace = ["ust-1.8", "rare-1.8", "rare"][number % 3];
        let text = std::fs::read_to_string(dir.0.join(format!("{trace}.txt"))).unwrap();
        expected += text.lines().count() * usize::from(number != 4);
        let to = many.join(format!("{number:02}"));
        std::fs::create_dir_all(&to).unwrap();
        let mut copy = Command::new("cp");
        let copied = copy.arg("-r").arg(dir.0.join(trace)).arg(&to).status();
        assert!(copied.unwrap().success());
    }
    let bad = many.join("04/rare-1.8/kernel/metadata");
    std::fs::write(&bad, "/* CTF 1.8 */\n\ntrace { broken").unwrap();
    // This is not a trace.
    std::fs::write(many.join("metadata"), "title: a foreign file").unwrap();
    let mut reader = Reader::open(&many).unwrap();
    let order: Vec<_> = reader
        .traces()
        .iter()
        .map(|t| t.directory.clone())
        .collect();
    assert_eq!(order.len(), 5);
    assert!(order.is_sorted(), "{order:?}");
    let (mut events, mut errors) = (0, Vec::new());
    loop {
        match reader.next() {
            Ok(None) => break,
            Ok(Some(item)) => events += usize::from(matches!(item, Item::Event(_))),
            Err(error) => errors.push(error.to_string()),
        }
    }
    assert_eq!(events, expected);
    let [error] = errors.as_slice() else {
        panic!("{errors:#?}");
    };
    assert!(
        error.contains("many/04/rare-1.8/kernel/metadata: byte ") && error.contains("is expected"),
        "{error}"
    );
}

/// In each stream of a damaged trace, the events before the fault equal the events of the intact
/// trace.
#[test]
fn the_events_before_a_fault_are_read() {
    let dir = unpack();
    for trace in ["ust-1.8/ust/uid/0/64-bit", "rare-1.8/kernel", "rare/kernel"] {
        let at = dir.0.join(trace);
        let whole = read(&at).0;
        let file = ["channel_0", "channel_1"].map(|f| at.join(f));
        let file = file
            .iter()
            .max_by_key(|f| f.metadata().unwrap().len())
            .unwrap();
        let bytes = std::fs::read(file).unwrap();
        let half = bytes.len() / 2;
        for cut in [false, true] {
            let mut damaged = bytes.clone();
            if cut {
                damaged.truncate(half + 1000);
            } else {
                damaged[half + 100..half + 300].fill(0xff);
            }
            std::fs::write(file, damaged).unwrap();
            let mut reader = Reader::open(&at).unwrap();
            let (mut lines, mut errors) = (Vec::new(), Vec::new());
            loop {
                match reader.next() {
                    Ok(None) => break,
                    Ok(Some(Item::Event(event))) => {
                        let mut line = Vec::new();
                        text::line(&event, &mut line);
                        lines.push(String::from_utf8_lossy(&line).trim_end().to_string());
                    }
                    Ok(Some(Item::Lost(_))) => {}
                    Err(error) => errors.push(error.to_string()),
                }
            }
            let name = file.display().to_string();
            println!(
                "{trace} {cut}: {} of {}, {errors:#?}",
                lines.len(),
                whole.len()
            );
            assert!(
                errors
                    .iter()
                    .all(|e| e.starts_with(&name) && e.contains("(packet at byte "))
            );
            // Overwritten bytes may be decoded as events that were never recorded.
            let known = lines.iter().filter(|line| whole.contains(line)).count();
            let made = if cut { 0 } else { 12 };
            assert!(known >= lines.len() - made, "{known} of {}", lines.len());
            assert!(known > whole.len() / 3 && known < whole.len());
            assert!(!errors.is_empty());
        }
        std::fs::write(file, bytes).unwrap();
    }
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

/// Sorts the names of a value, since babeltrace2 prints them in no particular order: `( { "b", "a"
/// } : container = 3 )`.
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
