// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tests of packets, losses, order, seeking, and files that grow or end too early.

use std::fs;

use lt_ctf::{Item, Options, Reader, Span};
use serde_json::{Value, json};

use crate::made::*;

fn number() -> Value {
    structure(&[("n", int(8, false, false))])
}

fn numbered(facts: Packet, times: &[u64]) -> Vec<u8> {
    packet(facts, |bits| {
        for time in times {
            event(bits, 0, *time).u8(*time as u8);
        }
    })
}

#[test]
fn a_loss_is_reported_where_it_occurred() {
    let dir = Dir::new();
    let facts = |number, lost, begin, end| Packet {
        number,
        lost,
        begin,
        end,
        cpu: 2,
        padding: 5,
        ..Packet::default()
    };
    let stream = [
        numbered(facts(4, 100, 10, 20), &[10, 20]),
        numbered(facts(5, 103, 30, 40), &[31]),
        numbered(facts(8, 104, 50, 60), &[55]),
    ];
    write(&dir.0, &metadata(&[("e", number())]), &[stream.concat()]);
    let told = told(&dir.0, false).unwrap();
    let short: Vec<_> = told
        .iter()
        .map(|t| {
            if t.starts_with('[') {
                &t[19..21]
            } else {
                t.as_str()
            }
        })
        .collect();
    // Losses before the first packet are unknown.
    assert_eq!(
        short,
        [
            "10",
            "20",
            "31",
            "lost 3 events 31..50 cpu Some(2)",
            "lost 2 packets 40..50 cpu Some(2)",
            "55",
            "lost 1 events 55..60 cpu Some(2)"
        ]
    );
}

/// The counters of discarded events continue in the next chunk of a session that rotates.
#[test]
fn a_loss_in_the_first_packet_of_a_chunk_is_reported() {
    let dir = Dir::new();
    let facts = |number, lost, begin| Packet {
        number,
        lost,
        begin,
        end: begin + 10,
        ..Packet::default()
    };
    let chunks = [
        [
            numbered(facts(0, 2, 10), &[11]),
            numbered(facts(1, 5, 20), &[21]),
        ]
        .concat(),
        numbered(facts(2, 9, 30), &[31]),
        // The packet before this one is missing, so its counter is not known.
        numbered(facts(4, 20, 50), &[51]),
    ];
    let preamble = format!("\"preamble\",\"uuid\":{:?}", [7u8; 16]);
    let text = metadata(&[("e", number())]).replace("\"preamble\"", &preamble);
    for (name, chunk) in ["a", "b", "c"].into_iter().zip(chunks) {
        write(&dir.0.join(name), &text, &[chunk]);
    }
    let mut reader = Reader::open(&dir.0).unwrap();
    let told = rest(&mut reader);
    let is_loss = |line: &&str| line.starts_with("lost ");
    let losses: Vec<_> = told.iter().map(String::as_str).filter(is_loss).collect();
    assert_eq!(
        losses,
        [
            "lost 2 events 11..20 cpu Some(0)",
            "lost 3 events 21..30 cpu Some(0)",
            "lost 4 events 31..40 cpu Some(0)"
        ]
    );
    reader.seek(i64::MIN).unwrap();
    assert_eq!(rest(&mut reader), told);
}

#[test]
fn streams_and_traces_are_merged_by_time() {
    let dir = Dir::new();
    let streams: Vec<_> = (0..5u64)
        .map(|i| {
            let times: Vec<_> = (0..40).map(|n| 5 * n * (i + 1) % 200 + i).collect();
            let mut times = times;
            times.sort_unstable();
            let half = |n, times: &[u64]| {
                numbered(
                    Packet {
                        instance: i as u8,
                        number: n,
                        begin: times[0],
                        end: times[times.len() - 1],
                        ..Packet::default()
                    },
                    times,
                )
            };
            [half(0, &times[..20]), half(1, &times[20..])].concat()
        })
        .collect();
    write(
        &dir.0.join("a"),
        &metadata(&[("e", number())]),
        &streams[..3],
    );
    write(
        &dir.0.join("b/c"),
        &metadata(&[("e", number())]),
        &streams[3..],
    );
    let mut reader = Reader::open(&dir.0).unwrap();
    assert_eq!((reader.traces().len(), reader.streams()), (2, 5));
    let all = times(&mut reader);
    assert_eq!(all.len(), 200);
    assert!(all.is_sorted());
    // Seeking to any time works, forward and back.
    for from in [0, 17, 199, 60, 3, 500] {
        reader.seek(5_000_000_007 + from).unwrap();
        let expected: Vec<_> = all.iter().copied().filter(|t| *t as i64 >= from).collect();
        assert_eq!(times(&mut reader), expected, "from {from}");
    }
}

/// An event may have the time at which the next packet starts. A loss is the difference of the counters of two packets.
#[test]
fn after_seeking_no_event_and_no_loss_is_missing() {
    let dir = Dir::new();
    let facts = |number, lost, begin, end| Packet {
        number,
        lost,
        begin,
        end,
        ..Packet::default()
    };
    let stream = [
        numbered(facts(4, 100, 10, 20), &[10, 20]),
        numbered(facts(5, 103, 20, 40), &[20, 31, 40]),
        numbered(facts(6, 107, 40, 60), &[40, 55]),
        numbered(facts(9, 108, 70, 80), &[70]),
    ];
    write(&dir.0, &metadata(&[("e", number())]), &[stream.concat()]);
    let mut reader = Reader::open(&dir.0).unwrap();
    let all = rest(&mut reader);
    let time = |line: &str| -> Option<i64> { line.strip_prefix('[')?.get(..20)?.parse().ok() };
    assert_eq!(all.iter().filter(|line| time(line).is_none()).count(), 4);
    for from in [10, 11, 20, 31, 40, 41, 55, 70] {
        reader.seek(5_000_000_007 + from).unwrap();
        let first = all.iter().position(|line| time(line) >= Some(from));
        assert_eq!(rest(&mut reader), all[first.unwrap()..], "from {from}");
    }
}

#[test]
fn seeking_beyond_an_unreadable_packet_does_not_read_it() {
    let dir = Dir::new();
    let facts = |number, begin| Packet {
        number,
        begin,
        end: begin + 10,
        ..Packet::default()
    };
    let damaged = [numbered(facts(0, 10), &[10, 20]), vec![0; 2 * HEADER]];
    let next = [
        numbered(facts(1, 30), &[30, 40]),
        numbered(facts(2, 50), &[50, 60]),
    ];
    let files = [damaged.concat(), next.concat()];
    write(&dir.0, &metadata(&[("e", number())]), &files);
    let mut reader = Reader::open(&dir.0).unwrap();
    assert_eq!(reader.streams(), 1);
    let all = rest(&mut reader);
    let errors = all.iter().filter(|line| line.starts_with("error "));
    assert_eq!((errors.count(), all.len()), (1, 7), "{all:?}");
    for (from, expected) in [(40, &[40, 50, 60][..]), (55, &[60])] {
        reader.seek(5_000_000_007 + from).unwrap();
        assert_eq!(times(&mut reader), expected);
    }
}

#[test]
fn traces_of_one_clock_are_in_the_order_of_its_values() {
    let facts = |times: &[u64]| Packet {
        begin: times[0],
        end: times[1],
        ..Packet::default()
    };
    let text = metadata(&[("e", number())]);
    let with = |uid: &str| text.replace("\"id\":\"c\",", &format!("\"id\":\"c\",{uid}"));
    // Before the second recording, the time of day was set back by a second.
    let (first, next) = ([10, 20], [30, 40]);
    for (uids, is_one) in [
        (["\"uid\":\"boot\",", "\"uid\":\"boot\","], true),
        (["\"uid\":\"boot\",", "\"uid\":\"other\","], false),
        (["", ""], false),
    ] {
        let dir = Dir::new();
        let [a, b] = uids.map(with);
        let back = b.replace("\"seconds\":5", "\"seconds\":4");
        assert_ne!(b, back);
        write(&dir.0.join("a"), &a, &[numbered(facts(&first), &first)]);
        write(&dir.0.join("b"), &back, &[numbered(facts(&next), &next)]);
        let found = times(&mut Reader::open(&dir.0).unwrap());
        let expected = if is_one {
            [first, next].concat()
        } else {
            [next, first].concat()
        };
        assert_eq!(found, expected, "{uids:?}");
    }
}

#[test]
fn a_stream_in_several_files_is_one() {
    let dir = Dir::new();
    let file = |n: u32, times: &[u64]| {
        numbered(
            Packet {
                number: n,
                begin: times[0],
                end: times[1],
                ..Packet::default()
            },
            times,
        )
    };
    // As with --tracefile-count, the oldest file was overwritten.
    write(
        &dir.0,
        &metadata(&[("e", number())]),
        &[file(2, &[50, 60]), file(0, &[1, 2]), file(1, &[30, 40])],
    );
    let mut reader = Reader::open(&dir.0).unwrap();
    assert_eq!(reader.streams(), 1);
    assert_eq!(times(&mut reader), [1, 2, 30, 40, 50, 60]);
}

#[test]
fn a_time_of_few_bits_continues_after_a_wraparound() {
    let header = structure(&[
        ("id", role(int(5, false, false), "event-record-class-id")),
        ("t", role(int(11, false, false), "default-clock-timestamp")),
    ]);
    let dir = Dir::new();
    let bytes = packet(
        Packet {
            begin: 2040,
            ..Packet::default()
        },
        |bits| {
            for time in [2041u64, 2047, 2048, 4000, 4100] {
                bits.put(0, 5, false).put(time & 2047, 11, false);
            }
        },
    );
    write(
        &dir.0,
        &metadata_with(header, &[("e", structure(&[]))]),
        &[bytes],
    );
    assert_eq!(
        times(&mut Reader::open(&dir.0).unwrap()),
        [2041, 2047, 2048, 4000, 4100]
    );
}

/// Returns LTTng's compact or large header, with its escape, as in LTTng's metadata.
fn lttng_header(compact: bool, align: u64) -> Value {
    let aligned = |class, align: u64| with(class, "alignment", json!(align));
    let (id, time, last) = match compact {
        true => (int(5, false, false), int(27, false, false), 31),
        false => (
            aligned(int(16, false, false), align),
            aligned(int(32, false, false), align),
            65535,
        ),
    };
    let id = with(
        id,
        "mappings",
        json!({"compact": [[0, last - 1]], "extended": [[last, last]]}),
    );
    let short = structure(&[("timestamp", role(time, "default-clock-timestamp"))]);
    let long = structure(&[
        (
            "id",
            role(
                aligned(int(32, false, false), align),
                "event-record-class-id",
            ),
        ),
        (
            "timestamp",
            role(
                aligned(int(64, false, false), align),
                "default-clock-timestamp",
            ),
        ),
    ]);
    let variant = json!({"type": "variant", "selector-field-location": path(&["id"]), "options": [
        {"name": "compact", "selector-field-ranges": [[0, last - 1]], "field-class": short},
        {"name": "extended", "selector-field-ranges": [[last, last]], "field-class": long},
    ]});
    with(
        structure(&[("id", role(id, "event-record-class-id")), ("v", variant)]),
        "minimum-alignment",
        json!(align),
    )
}

/// Reads a stream whose events have this header, on the fast path and on the slow path; checks that
/// the results are equal, and returns them.
fn quick_and_slow(header: Value, stream: &Vec<u8>) -> Vec<String> {
    let read = |header| {
        let dir = Dir::new();
        write(
            &dir.0,
            &metadata_with(header, &[("a", number()), ("b", number())]),
            std::slice::from_ref(stream),
        );
        told(&dir.0, false).unwrap()
    };
    // An additional member, of size 0, keeps the reader from recognising the header.
    let mut odd = header.clone();
    odd["member-classes"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "x", "field-class": structure(&[])}));
    let quick = read(header);
    assert_eq!(quick, read(odd));
    quick
}

#[test]
fn the_fast_and_the_slow_path_read_the_headers_of_lttng_alike() {
    for (compact, align) in [(true, 8), (false, 8), (true, 32), (false, 32)] {
        let header = lttng_header(compact, align);
        let align = align as usize;
        let stream = packet(
            Packet {
                begin: 1 << 40,
                ..Packet::default()
            },
            |bits| {
                for (id, time) in [(0u64, 5u64), (1, 9), (0, 3), (1, 1 << 26)] {
                    bits.align(align);
                    match compact {
                        true => bits.put(id, 5, false).put(time, 27, false),
                        false => bits.put(id, 16, false).align(align).put(time, 32, false),
                    };
                    bits.u8(id as u8);
                    // The extended header has the same fields.
                    bits.align(align);
                    match compact {
                        true => bits.put(31, 5, false),
                        false => bits.put(65535, 16, false),
                    };
                    bits.align(align)
                        .put(id, 32, false)
                        .align(align)
                        .put((1 << 41) + time, 64, false)
                        .u8(id as u8);
                }
            },
        );
        let quick = quick_and_slow(header, &stream);
        assert_eq!(quick.len(), 8, "{quick:?}");
        assert!(
            quick[0].starts_with("[00000001099511627781] made a:"),
            "{quick:?}"
        );
        assert!(
            quick[1].starts_with("[00000002199023255557] made a:"),
            "{quick:?}"
        );
    }
}

/// The stream is larger than a window, so that headers cross its end. Times that go back need a
/// full clock value.
#[test]
fn the_fast_and_the_slow_path_read_the_header_of_babeltrace2_alike() {
    for align in [8, 32, 64] {
        let part = |role_of: &str| {
            role(
                with(int(64, false, false), "alignment", json!(align)),
                role_of,
            )
        };
        let header = with(
            structure(&[
                ("id", part("event-record-class-id")),
                ("timestamp", part("default-clock-timestamp")),
            ]),
            "minimum-alignment",
            json!(align),
        );
        let stream = packet(Packet::default(), |bits| {
            for number in 0..40_000u64 {
                let time = if number % 3 == 2 {
                    7
                } else {
                    (1 << 40) + number
                };
                bits.align(align).put(number % 2, 64, false);
                bits.put(time, 64, false).u8(number as u8);
            }
        });
        let quick = quick_and_slow(header, &stream);
        assert_eq!(quick.len(), 40_000);
        assert!(
            quick[3].starts_with("[00000001099511627779] made b:"),
            "{}",
            quick[3]
        );
    }
}

#[test]
fn packets_larger_than_the_window_are_read() {
    // Texts before and after the end of a window, and one larger than a window.
    let payload = structure(&[
        ("n", int(16, false, false)),
        ("t", json!({"type": "null-terminated-string"})),
        ("x", with(int(32, false, false), "alignment", json!(64))),
    ]);
    let dir = Dir::new();
    let lengths: Vec<usize> = (0..3000)
        .map(|i| if i == 1500 { 700_000 } else { i * 7 % 500 })
        .collect();
    let bytes = packet(Packet::default(), |bits| {
        for (i, length) in lengths.iter().enumerate() {
            event(bits, 0, i as u64)
                .align(64)
                .u16(i as u16)
                .raw(&vec![b'a' + (i % 26) as u8; *length])
                .u8(0);
            bits.align(64).u32(*length as u32);
        }
    });
    write(&dir.0, &metadata(&[("e", payload)]), &[bytes]);
    let mut reader = Reader::open(&dir.0).unwrap();
    let class = reader.classes().next().unwrap();
    let [n, t, x] = ["n", "t", "x"].map(|name| class.field(name).unwrap());
    for (i, length) in lengths.iter().enumerate() {
        let Some(Item::Event(event)) = reader.next().unwrap() else {
            panic!("{i} events");
        };
        assert_eq!(event.unsigned(n), Some(i as u64));
        assert_eq!(event.unsigned(x), Some(*length as u64));
        let text = event.bytes(t).unwrap();
        assert!(text.len() == *length && text.iter().all(|b| *b == b'a' + (i % 26) as u8));
    }
    assert!(reader.next().unwrap().is_none());
}

/// With this number of streams, doubling a window does not lead to the size of the largest event.
#[test]
fn the_largest_event_is_read_however_small_windows_are() {
    let text = json!({"type": "null-terminated-string"});
    let long = |length: usize| {
        packet(Packet::default(), |bits| {
            event(bits, 0, 1);
            bits.bytes.resize(bits.bytes.len() + length, b'x');
            bits.bits += 8 * length;
            bits.u8(0);
        })
    };
    let stream = |instance| Packet {
        instance,
        ..Packet::default()
    };
    for (length, whole) in [(15 << 20, true), (17 << 20, false)] {
        let dir = Dir::new();
        let mut streams = vec![long(length)];
        streams.extend((1..200).map(|i| {
            packet(stream(i), |bits| {
                event(bits, 0, 2).u8(0);
            })
        }));
        write(
            &dir.0,
            &metadata(&[("e", structure(&[("t", text.clone())]))]),
            &streams,
        );
        // With threads, windows are smaller, and doubling does lead to that size.
        let mut reader = Options::default().threads(0).open(&dir.0).unwrap();
        let field = reader.classes().next().unwrap().field("t").unwrap();
        match reader.next() {
            Ok(Some(Item::Event(event))) => {
                assert!(whole && event.bytes(field).unwrap().len() == length);
            }
            other => assert!(!whole && other.is_err(), "{length}"),
        }
    }
}

/// By default, a process may have 1,024 open files.
#[test]
fn hundreds_of_streams_are_read_with_few_open_files() {
    const STREAMS: u64 = 600;
    let dir = Dir::new();
    let all: Vec<u64> = (0..STREAMS).collect();
    for (trace, of_trace) in all.chunks(200).enumerate() {
        let stream = |(i, time): (u8, &u64)| {
            let facts = Packet {
                instance: i,
                ..Packet::default()
            };
            numbered(facts, &[*time])
        };
        let streams: Vec<_> = (0..).zip(of_trace).map(stream).collect();
        let to = dir.0.join(trace.to_string());
        write(&to, &metadata(&[("e", number())]), &streams);
    }
    let at = fs::canonicalize(&dir.0).unwrap();
    let is_of_trace =
        |fd: &fs::DirEntry| fs::read_link(fd.path()).is_ok_and(|to| to.starts_with(&at));
    let mut reader = Options::default().threads(0).open(&dir.0).unwrap();
    assert!(matches!(reader.next(), Ok(Some(Item::Event(_)))));
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    assert_eq!(open.filter(is_of_trace).count(), 0);
    assert!(times(&mut reader).into_iter().eq(1..STREAMS));
}

/// The size of an event of [`numbered`], bytes.
const EVENT: usize = 10;

/// Returns the two packets of a growing stream. The tests cut off the second one or a part of it.
fn two_packets() -> [Vec<u8>; 2] {
    let facts = Packet {
        number: 1,
        begin: 4,
        end: 5,
        ..Packet::default()
    };
    [
        numbered(Packet::default(), &[1, 2, 3]),
        numbered(facts, &[4, 5]),
    ]
}

#[test]
fn a_growing_stream_is_read_to_its_last_complete_event() {
    let dir = Dir::new();
    let [first, second] = two_packets();
    let both = [first.clone(), second.clone()].concat();
    let metadata = metadata(&[("e", number())]);
    write(&dir.0, &metadata, std::slice::from_ref(&both));
    let whole = told(&dir.0, false).unwrap();
    for cut in 0..second.len() {
        let there = &both[..first.len() + cut];
        write(&dir.0, &metadata, &[there.to_vec()]);
        let growing = told(&dir.0, true).unwrap();
        assert_eq!(growing.len(), 3, "{cut}: {growing:?}");
        // Unless the trace may grow, the cut is an error, which comes after all complete events,
        // including events of the truncated packet.
        let mut ended = told(&dir.0, false).unwrap();
        let events = ended.iter().filter(|line| line.starts_with('[')).count();
        let own = ended[3..]
            .iter()
            .filter(|line| line.starts_with('['))
            .count();
        assert_eq!(own, cut.saturating_sub(HEADER) / EVENT, "{cut}: {ended:?}");
        assert_eq!(ended[..events], whole[..events]);
        ended.drain(3..events);
        assert_eq!(ended[..3], growing[..3]);
        assert_eq!(
            ended.len(),
            match cut {
                0 => 3,
                1..HEADER => 4,
                // The rest of the packet is lost.
                _ => 5,
            },
            "{ended:?}"
        );
        // The range of a stream ends at the last event in the file.
        let spans = Reader::open(&dir.0).unwrap().spans();
        let last = [0, 4][cut.saturating_sub(HEADER) / EVENT];
        assert!(
            spans.len() == 1 && spans[0].cycles == (0, last),
            "{spans:?}"
        );
        if cut > 0 {
            let place = format!("error stream_0:{}: the packet has ", first.len());
            let size = if cut < HEADER {
                String::new()
            } else {
                format!(
                    "{} bytes, and the file ends after {cut} of them",
                    second.len()
                )
            };
            assert!(
                ended[3].starts_with(&place) && ended[3].ends_with(&size),
                "{}",
                ended[3]
            );
        }
    }
    // An unfinished last fragment of the metadata is ignored, too.
    let fragment = format!("{metadata}\x1e{{\"type\": \"event-record-cl");
    write(&dir.0, &fragment, &[first]);
    assert_eq!(told(&dir.0, true).unwrap().len(), 3);
    assert!(told(&dir.0, false).is_err());
}

#[test]
fn losses_before_a_cut_packet_do_not_change_how_the_packet_is_read() {
    let dir = Dir::new();
    let first = numbered(Packet::default(), &[1, 2]);
    let facts = Packet {
        number: 2,
        begin: 10,
        end: 20,
        ..Packet::default()
    };
    let mut second = numbered(facts, &[10, 11, 12]);
    second.truncate(HEADER + 2 * EVENT + 1);
    write(
        &dir.0,
        &metadata(&[("e", number())]),
        &[[first.clone(), second].concat()],
    );
    let told = told(&dir.0, false).unwrap();
    assert_eq!(told.len(), 7, "{told:?}");
    assert_eq!(told[2], "lost 1 packets 2..10 cpu Some(0)");
    assert!(told[3].starts_with("[00000000000000000010]"), "{told:?}");
    assert!(told[4].starts_with("[00000000000000000011]"), "{told:?}");
    let place = format!("error stream_0:{}: the packet has ", first.len());
    assert!(told[5].starts_with(&place), "{told:?}");
    assert_eq!(told[6], "lost rest 11..20 cpu Some(0)");
}

#[test]
fn growth_while_reading_is_no_error() {
    let dir = Dir::new();
    let [first, second] = two_packets();
    let both = [first.clone(), second.clone()].concat();
    for cut in 0..second.len() {
        let there = &both[..first.len() + cut];
        write(&dir.0, &metadata(&[("e", number())]), &[there.to_vec()]);
        let mut reader = Reader::open(&dir.0).unwrap();
        assert_eq!(reader.progress(), (0, there.len() as u64));
        fs::write(dir.0.join("stream_0"), &both).unwrap();
        assert_eq!(times(&mut reader), [1, 2, 3], "{cut}");
        assert!(reader.grew());
        assert_eq!(reader.progress(), (there.len() as u64, there.len() as u64));
    }
    let mut reader = Reader::open(&dir.0).unwrap();
    assert_eq!(times(&mut reader), [1, 2, 3, 4, 5]);
    assert!(!reader.grew());
    // The first packet is treated like any other.
    for cut in 1..first.len() {
        write(
            &dir.0,
            &metadata(&[("e", number())]),
            &[first[..cut].to_vec()],
        );
        let mut reader = Reader::open(&dir.0).unwrap();
        fs::write(dir.0.join("stream_0"), &both).unwrap();
        assert_eq!(times(&mut reader), [0u64; 0], "{cut}");
        assert!(reader.grew(), "{cut}");
    }
}

#[test]
fn the_span_of_each_stream_is_reported() {
    let dir = Dir::new();
    let facts = |instance, number, begin, end, cpu| Packet {
        instance,
        number,
        begin,
        end,
        cpu,
        ..Packet::default()
    };
    let streams = [
        [
            numbered(facts(3, 4, 10, 20, 1), &[11]),
            numbered(facts(3, 5, 20, 25, 1), &[21, 22]),
            numbered(facts(3, 7, 30, 40, 1), &[]),
        ]
        .concat(),
        numbered(facts(2, 9, 5, 6, 0), &[5]),
        Vec::new(),
    ];
    write(&dir.0, &metadata(&[("e", number())]), &streams);
    let mut reader = Reader::open(&dir.0).unwrap();
    let span = |id, cpu, cycles, numbers| Span {
        trace: 0,
        stream: (0, Some(id)),
        cpu: Some(cpu),
        cycles,
        numbers: Some(numbers),
        discarded: Some(0),
    };
    let spans = [span(2, 0, (5, 6), (9, 9)), span(3, 1, (10, 40), (4, 7))];
    assert_eq!(reader.spans(), spans);
    let trace = &reader.traces()[0];
    let names: Vec<_> = trace.schema.classes_of(0).map(|c| &c.name).collect();
    assert_eq!(names, ["e"]);
    // `spans` has consumed no event.
    assert_eq!(times(&mut reader), [5, 11, 21, 22]);
}

#[test]
fn the_events_after_a_fault_are_lost_and_the_next_packet_is_read() {
    let dir = Dir::new();
    let mut bad = numbered(
        Packet {
            number: 1,
            begin: 10,
            end: 20,
            cpu: 3,
            ..Packet::default()
        },
        &[10, 11, 12],
    );
    // An event class that does not exist.
    bad[HEADER + 10] = 77;
    let first = numbered(
        Packet {
            end: 3,
            ..Packet::default()
        },
        &[1, 2, 3],
    );
    let last = numbered(
        Packet {
            number: 2,
            begin: 30,
            end: 40,
            ..Packet::default()
        },
        &[30, 31],
    );
    write(
        &dir.0,
        &metadata(&[("e", number())]),
        &[[first.clone(), bad, last].concat()],
    );
    let told = told(&dir.0, false).unwrap();
    assert_eq!(told.len(), 8, "{told:?}");
    let place = first.len() + HEADER + 10;
    assert_eq!(
        told[4],
        format!("error stream_0:{place}: an event of class 77, which is not in the metadata")
    );
    assert_eq!(told[5], "lost rest 10..20 cpu Some(3)");
    // After seeking back to the start, the result is the same.
    let mut reader = Reader::open(&dir.0).unwrap();
    assert_eq!(rest(&mut reader), told);
    reader.seek(0).unwrap();
    assert_eq!(rest(&mut reader), told);
}

#[test]
fn a_file_that_is_no_stream_is_named_and_the_others_are_read() {
    let dir = Dir::new();
    write(
        &dir.0,
        &metadata(&[("e", number())]),
        &[numbered(Packet::default(), &[1, 2])],
    );
    fs::write(
        dir.0.join("notes"),
        "these are notes, and they are longer than a packet's header is",
    )
    .unwrap();
    fs::write(dir.0.join("empty"), "").unwrap();
    fs::write(dir.0.join(".hidden"), "hidden").unwrap();
    fs::create_dir(dir.0.join("index")).unwrap();
    let told = told(&dir.0, false).unwrap();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(
        told[0].starts_with("error notes:0: no packet begins here"),
        "{told:?}"
    );
}

#[test]
fn nothing_to_read_is_an_error_that_says_so() {
    let dir = Dir::new();
    let error = Reader::open(&dir.0).err().unwrap().to_string();
    assert!(error.contains("there is no file `metadata`"), "{error}");
    let error = Reader::open(&dir.0.join("x")).err().unwrap().to_string();
    assert!(error.contains("No such file"), "{error}");
}
