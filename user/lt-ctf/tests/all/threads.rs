// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tests that threads change nothing: not the items, the errors, or their order.

use std::path::Path;

use lt_ctf::{Options, Reader};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::made::*;
use crate::real::unpack;

/// The time of the clock's value 0 in [`metadata`], ns since the clock's origin.
const ORIGIN: i64 = 5_000_000_007;

/// Returns the payloads of three event classes: of fixed size; with lengths of its own; with a length in the packet's
/// context.
fn classes() -> [(&'static str, Value); 3] {
    let byte = || int(8, false, false);
    let blob =
        |location: Value| json!({"type": "dynamic-length-blob", "length-field-location": location});
    let array = json!({"type": "dynamic-length-array", "element-field-class": byte(),
        "length-field-location": path(&["n"])});
    let own = [
        ("n", byte()),
        ("blob", blob(path(&["n"]))),
        ("text", json!({"type": "null-terminated-string"})),
        ("array", array),
        ("end", byte()),
    ];
    let cpu = json!({"origin": "packet-context", "path": ["cpu_id"]});
    [
        ("fixed", structure(&[("n", byte())])),
        ("own", structure(&own)),
        ("packet", structure(&[("blob", blob(cpu)), ("end", byte())])),
    ]
}

/// A packet: its events (class, time since the last one, content), and how many packets and events are lost before it.
type Made = (Vec<(u8, u64, u8)>, u32, u32);

fn packets() -> impl Strategy<Value = Vec<Made>> {
    let event = (0..3u8, 0..20u64, any::<u8>());
    let packet = (prop::collection::vec(event, 0..20), 0..2u32, 0..3u32);
    prop::collection::vec(packet, 1..6)
}

/// Returns a stream of these packets.
fn stream(instance: u8, packets: &[Made]) -> Vec<u8> {
    let cpu = u32::from(instance) % 3;
    let mut facts = Packet {
        instance,
        cpu,
        ..Packet::default()
    };
    let mut stream = Vec::new();
    for (events, packets_lost, events_lost) in packets {
        facts.number += packets_lost;
        facts.lost += events_lost;
        facts.begin = facts.end;
        facts.end += events.iter().map(|(_, since, _)| since).sum::<u64>();
        let mut time = facts.begin;
        let packet = packet(facts, |bits| {
            for (class, since, content) in events {
                time += since;
                let n = content % 5;
                let bytes = vec![*content; usize::from(n)];
                let bits = event(bits, *class, time);
                match class {
                    0 => bits.u8(*content),
                    1 => bits.u8(n).raw(&bytes).raw(b"text\0").raw(&bytes).u8(1),
                    _ => bits.raw(&vec![*content; cpu as usize]).u8(2),
                };
            }
        });
        stream.extend(packet);
        facts.number += 1;
    }
    stream
}

/// Returns everything that a reader reports: a few items at the start and after each seek, and then all.
fn story(at: &Path, threads: usize, few: usize, seeks: &[i64]) -> Vec<String> {
    let mut reader = Options::default().threads(threads).open(at).unwrap();
    let mut told = some(&mut reader, few);
    for seek in seeks {
        told.push(format!("{:?}", reader.spans()));
        let sought = reader.seek(ORIGIN + seek);
        told.extend(sought.err().map(|error| error.to_string()));
        told.extend(some(&mut reader, few));
    }
    told.extend(rest(&mut reader));
    told.push(format!("{:?} {}", reader.progress(), reader.grew()));
    // This reader is dropped while its threads are busy.
    let mut reader = Options::default().threads(threads).open(at).unwrap();
    told.extend(some(&mut reader, few));
    told
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_number_of_threads_reports_the_same(
        streams in prop::collection::vec(packets(), 1..6),
        damage in prop::collection::vec((any::<u8>(), any::<u16>(), any::<u8>()), 0..4),
        cut in prop::option::of((any::<u8>(), any::<u16>())),
        few in 0..60usize,
        seeks in prop::collection::vec(0..300i64, 0..3),
    ) {
        let mut streams: Vec<_> = (0u8..).zip(&streams).map(|(i, s)| stream(i, s)).collect();
        let count = streams.len();
        for (of, at, byte) in damage {
            let bytes = &mut streams[usize::from(of) % count];
            let at = usize::from(at) % bytes.len();
            bytes[at] = byte;
        }
        if let Some((of, at)) = cut {
            let bytes = &mut streams[usize::from(of) % count];
            bytes.truncate(usize::from(at) % bytes.len());
        }
        let dir = Dir::new();
        // Half of the streams are in another trace.
        let (one, other) = streams.split_at(count / 2);
        write(&dir.0.join("a"), &metadata(&classes()), one);
        write(&dir.0.join("b"), &metadata(&classes()), other);
        let alone = story(&dir.0, 0, few, &seeks);
        for threads in [1, 3] {
            prop_assert_eq!(&story(&dir.0, threads, few, &seeks), &alone, "{} threads", threads);
        }
    }
}

/// The traces are read as one: they have several streams each, of several classes.
#[test]
fn real_traces_are_read_by_threads() {
    let dir = unpack();
    let read = |threads| rest(&mut Options::default().threads(threads).open(&dir.0).unwrap());
    let alone = read(0);
    assert!(alone.len() > 1000, "{} lines", alone.len());
    for threads in [1, 3] {
        assert!(read(threads) == alone, "{threads} threads");
    }
}

/// The events take two bytes each, so a batch is full before its window ends.
#[test]
fn small_events_are_read_by_threads() {
    const STREAMS: u64 = 3;
    const EVENTS: u64 = 40_000;
    let header = structure(&[
        ("id", role(int(5, false, false), "event-record-class-id")),
        ("t", role(int(11, false, false), "default-clock-timestamp")),
    ]);
    let streams = (0..STREAMS).map(|stream| {
        let facts = Packet {
            instance: stream as u8,
            ..Packet::default()
        };
        packet(facts, |bits| {
            for number in 0..EVENTS {
                let time = STREAMS * number + stream;
                bits.put(0, 5, false).put(time & 2047, 11, false);
            }
        })
    });
    let dir = Dir::new();
    write(
        &dir.0,
        &metadata_with(header, &[("e", structure(&[]))]),
        &streams.collect::<Vec<_>>(),
    );
    for threads in [0, 1, 3] {
        let mut reader = Options::default().threads(threads).open(&dir.0).unwrap();
        assert!(times(&mut reader).into_iter().eq(0..STREAMS * EVENTS));
    }
}

/// A batch ends after a number of losses and empty packets, even if it has no event.
#[test]
fn many_losses_are_read_by_threads() {
    const STREAMS: u8 = 3;
    const PACKETS: usize = 300;
    let mut packets: Vec<Made> = vec![(Vec::new(), 1, 0); PACKETS];
    packets.push((vec![(0, 5, 1)], 0, 0));
    let streams: Vec<_> = (0..STREAMS).map(|i| stream(i, &packets)).collect();
    let dir = Dir::new();
    write(&dir.0, &metadata(&classes()), &streams);
    // What is lost before the first packet is unknown.
    let losses = usize::from(STREAMS) * (PACKETS - 1);
    for threads in [0, 1, 3] {
        let mut reader = Options::default().threads(threads).open(&dir.0).unwrap();
        let told = rest(&mut reader);
        let (lost, events) = told.split_at(losses);
        assert!(lost.iter().all(|line| line.starts_with("lost 1 packets ")));
        assert_eq!(events.len(), usize::from(STREAMS), "{events:?}");
        assert!(events.iter().all(|line| line.starts_with('[')));
    }
}

/// With threads, a packet has more than one window. One event is larger than a window.
#[test]
fn large_events_are_read_by_threads() {
    const STREAMS: usize = 20;
    let payload = structure(&[
        ("t", json!({"type": "null-terminated-string"})),
        ("n", int(8, false, false)),
    ]);
    let streams = (0..STREAMS).map(|stream| {
        let facts = Packet {
            instance: stream as u8,
            ..Packet::default()
        };
        packet(facts, |bits| {
            for number in 0..300 {
                let length = match (stream, number) {
                    (7, 150) => 700_000,
                    _ => (stream * 31 + number * 7) % 1000,
                };
                event(bits, 0, (STREAMS * number + stream) as u64);
                bits.bytes.resize(bits.bytes.len() + length, b'x');
                bits.bits += 8 * length;
                bits.u8(0).u8(number as u8);
            }
        })
    });
    let dir = Dir::new();
    write(
        &dir.0,
        &metadata(&[("e", payload)]),
        &streams.collect::<Vec<_>>(),
    );
    let alone = rest(&mut Options::default().threads(0).open(&dir.0).unwrap());
    assert_eq!(alone.len(), 300 * STREAMS);
    assert!(alone.iter().all(|line| line.starts_with('[')));
    for threads in [1, 3] {
        let mut reader = Options::default().threads(threads).open(&dir.0).unwrap();
        assert!(rest(&mut reader) == alone, "{threads} threads");
    }
    assert!(rest(&mut Reader::open(&dir.0).unwrap()) == alone);
}
