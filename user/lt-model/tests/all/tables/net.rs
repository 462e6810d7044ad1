// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Packets.

use super::*;
use PacketStage::{
    Backlog, Consumed, Copied, Dropped, Freed, Gro, Merged, Queued, Received, Sent, Started,
};

/// What LTTng records of packets.
pub(super) const LTTNG: PacketEvents = PacketEvents {
    starts: false,
    frees: false,
    softirqs: true,
    settle: 0,
};

/// What perf records of packets.
pub(super) const PERF: PacketEvents = PacketEvents {
    starts: true,
    frees: true,
    softirqs: true,
    settle: 0,
};

fn on(
    time: u64,
    cpu: u32,
    stage: PacketStage,
    skb: u64,
    device: &'static [u8],
    len: u64,
) -> Seen<'static> {
    let packet = Packet {
        stage,
        skb,
        device,
        len,
        result: 0,
    };
    seen(time, cpu, Step::Packet(packet))
}

/// A step of the packet at an address, of 100 bytes, on `eth0`.
fn step(time: u64, cpu: u32, stage: PacketStage, skb: u64) -> Seen<'static> {
    on(time, cpu, stage, skb, b"eth0", 100)
}

/// The driver returns `result`.
fn returns(time: u64, cpu: u32, skb: u64, result: i64) -> Seen<'static> {
    let Step::Packet(packet) = step(time, cpu, Sent, skb).step else {
        unreachable!()
    };
    seen(time, cpu, Step::Packet(Packet { result, ..packet }))
}

fn softirq(time: u64, cpu: u32) -> Seen<'static> {
    of(at(time, cpu, What::Softirq { vector: 2 }))
}

fn softirq_end(time: u64, cpu: u32) -> Seen<'static> {
    of(at(time, cpu, What::SoftirqEnd { vector: 2 }))
}

/// The tables of these events. Threads 7 and 8 run on CPUs 0 and 1.
fn found(events: PacketEvents, by: By, all: &[Seen<'static>]) -> Tables {
    let threads = [of(switch(0, 0, 0, R, 7)), of(switch(0, 1, 0, R, 8))];
    let all = [&threads[..], all].concat();
    tables_of(Analysis::Net(events), Range::all(9), Some(by), &all)
}

fn table(events: PacketEvents, kind: Kind, all: &[Seen<'static>]) -> Table {
    let found = found(events, By::Device, all);
    find(&found.tables, kind).clone()
}

/// One operation was not measured, since its end may be the end of another packet.
fn other() -> Missed {
    Missed {
        identical: 1,
        ..missed(0, 0)
    }
}

#[test]
fn a_packet_waits_in_a_backlog_until_it_is_received() {
    let all = [
        step(10, 0, Backlog, 1),
        on(11, 0, Backlog, 2, b"lo", 60),
        step(15, 1, Received, 1),
        on(31, 0, Received, 2, b"lo", 60),
        // Most packets are received without a backlog.
        step(32, 0, Received, 3),
        step(40, 0, Backlog, 1),
        step(41, 0, Dropped, 1),
        // The address is used again.
        step(50, 0, Backlog, 1),
        step(53, 0, Received, 1),
        step(60, 0, Backlog, 4),
    ];
    let found = found(LTTNG, By::Device, &all);
    let backlog = find(&found.tables, Kind::Backlog);
    assert_eq!(took(backlog), [(10, 5), (11, 20), (50, 3)]);
    assert_eq!(backlog.missed, missed(0, 1));
    assert_eq!(backlog.whole.extra(Extra::Dropped), 1);
    let row = |((_, key), row): (&(u64, Key), &Row)| match key {
        Key::Network(device) => (found.text(*device).to_string(), row.sums.sum),
        other => panic!("{other:?}"),
    };
    let mut rows: Vec<_> = backlog.rows.iter().map(row).collect();
    rows.sort_unstable();
    assert_eq!(rows, [("eth0".to_string(), 8), ("lo".to_string(), 20)]);
}

#[test]
fn a_packet_in_a_backlog_that_may_be_another_one_is_not_measured() {
    let (begin, end) = (step(10, 0, Backlog, 1), step(20, 0, Received, 1));
    for (between, expected) in [
        (on(15, 0, Received, 1, b"eth1", 100), vec![]),
        (on(15, 0, Received, 1, b"eth0", 101), vec![]),
        (step(15, 0, Consumed, 1), vec![]),
        (step(15, 0, Backlog, 1), vec![(15, 5)]),
    ] {
        let backlog = table(LTTNG, Kind::Backlog, &[begin, between, end]);
        let found = (took(&backlog), backlog.missed);
        assert_eq!(found, (expected, other()), "{between:?}");
    }
    let backlog = table(LTTNG, Kind::Backlog, &[begin, lost(15, 1, 16), end]);
    assert_eq!((took(&backlog), backlog.missed), (vec![], missed(1, 0)));
}

#[test]
fn a_received_packet_ends_when_it_is_copied_consumed_or_dropped() {
    let all = [
        step(10, 0, Received, 1),
        step(11, 0, Received, 2),
        step(12, 0, Received, 3),
        step(13, 0, Received, 4),
        step(14, 0, Received, 5),
        step(15, 0, Merged, 5),
        // Thread 8 reads the packet, which is freed later.
        step(30, 1, Copied, 1),
        step(31, 1, Freed, 1),
        step(32, 0, Consumed, 2),
        step(33, 0, Dropped, 3),
        step(34, 0, Freed, 4),
        // A packet that was not received.
        step(35, 0, Copied, 6),
        step(36, 0, Freed, 6),
        // A bridge passes the packet on.
        step(40, 0, Received, 7),
        on(42, 0, Received, 7, b"br0", 100),
        step(49, 0, Consumed, 7),
        // This packet is not read.
        step(50, 0, Received, 8),
    ];
    let found = found(PERF, By::Object, &all);
    let receive = find(&found.tables, Kind::Receive);
    let expected = [(10, 20), (11, 21), (12, 21), (13, 21), (42, 7)];
    assert_eq!(took(receive), expected);
    assert_eq!(receive.missed, missed(0, 1));
    let counts = [Extra::Merges, Extra::Replaced].map(|of| receive.whole.extra(of));
    assert_eq!(counts, [1, 1]);
    let mut sums = [0; 3];
    for ((_, key), row) in &receive.rows {
        if let Key::Object(Object::Packet(_, Some(end))) = key {
            sums[*end as usize] += row.sums.sum;
        }
    }
    assert_eq!(sums[PacketEnd::Copied as usize], 20);
    assert_eq!(sums[PacketEnd::Consumed as usize], 49);
    assert_eq!(sums[PacketEnd::Dropped as usize], 21);
    let read = receive.worst.iter().find(|case| case.begin == 10).unwrap();
    assert_eq!(found.task(read.thread.unwrap()), (8, Some("hog")));
}

/// Acknowledgements, among others, are freed without an event, and another packet gets the address.
#[test]
fn received_packets_are_followed_only_if_all_frees_are_recorded() {
    let all = [
        step(10, 0, Received, 1),
        step(30, 1, Copied, 1),
        step(40, 0, Received, 1),
        step(41, 0, Received, 1),
    ];
    let receive = table(LTTNG, Kind::Receive, &all);
    assert_eq!((took(&receive), receive.missed), (vec![], missed(0, 0)));
    assert_eq!(receive.whole.extra(Extra::Replaced), 0);
}

/// A tunnel passes a packet to GRO, which merges it into another packet without an event. The address is used again.
#[test]
fn a_received_packet_that_is_passed_to_gro_ends_only_if_it_is_received_again() {
    let all = [
        // The driver passes the packet to GRO before it is received.
        step(9, 0, Gro, 1),
        step(10, 0, Received, 1),
        step(12, 0, Gro, 1),
        step(20, 1, Queued, 1),
        step(30, 1, Consumed, 1),
        // This packet is not merged.
        step(40, 0, Received, 2),
        step(42, 0, Gro, 2),
        on(44, 0, Received, 2, b"gre1", 80),
        step(49, 1, Copied, 2),
    ];
    let receive = table(PERF, Kind::Receive, &all);
    assert_eq!(took(&receive), [(44, 5)]);
    assert_eq!(receive.missed, missed(0, 0));
    assert_eq!(receive.whole.extra(Extra::Replaced), 2);
}

/// perf enables one event after another, so the ends of the first packets may be missing.
#[test]
fn packets_are_followed_once_all_events_are_recorded() {
    let events = PacketEvents { settle: 9, ..PERF };
    let all = [
        step(1, 0, Received, 1),
        step(2, 0, Backlog, 2),
        step(3, 0, Queued, 3),
        step(30, 0, Consumed, 1),
        step(31, 0, Received, 2),
        step(32, 0, Started, 3),
        step(33, 0, Sent, 3),
        step(40, 0, Consumed, 2),
    ];
    let found = found(events, By::Device, &all);
    let of = |kind| took(find(&found.tables, kind));
    assert_eq!(of(Kind::Backlog), []);
    assert_eq!(of(Kind::Receive), [(31, 9)]);
    assert_eq!(of(Kind::Transmit), []);
}

#[test]
fn a_received_packet_over_a_gap_is_counted() {
    for end in [Copied, Consumed, Dropped, Freed, Merged, Gro, Received] {
        let all = [
            step(10, 0, Received, 1),
            lost(15, 1, 16),
            step(20, 0, end, 1),
        ];
        let receive = table(PERF, Kind::Receive, &all);
        // The last packet of the last round does not end.
        let expected = missed(1, u64::from(end == Received));
        assert_eq!((took(&receive), receive.missed), (vec![], expected));
    }
}

#[test]
fn a_packet_is_sent_when_its_driver_has_taken_it() {
    for events in [LTTNG, PERF] {
        let started = |event: Seen<'static>| events.starts.then_some(event);
        let sends = |time: u64, skb| {
            let start = started(step(time - 1, 0, Started, skb));
            start.into_iter().chain([step(time, 0, Sent, skb)])
        };
        let mut all = vec![step(10, 0, Queued, 1)];
        all.extend(sends(14, 1));
        // The driver is busy, and gives the packet back.
        all.push(step(20, 0, Queued, 1));
        all.extend(started(step(21, 0, Started, 1)));
        all.push(returns(22, 0, 1, 16));
        all.extend(sends(29, 1));
        all.push(step(30, 0, Queued, 2));
        all.push(step(31, 0, Dropped, 2));
        // The packet is cut into segments, which are not queued.
        all.push(step(32, 0, Queued, 3));
        all.push(step(33, 0, Consumed, 3));
        all.extend(sends(35, 4));
        // A VLAN tag is inserted.
        all.push(step(40, 0, Queued, 5));
        all.extend(started(on(45, 0, Started, 5, b"eth0", 104)));
        all.push(on(46, 0, Sent, 5, b"eth0", 104));
        all.push(step(50, 0, Queued, 6));
        let transmit = table(events, Kind::Transmit, &all);
        assert_eq!(took(&transmit), [(10, 4), (20, 9), (40, 6)]);
        assert_eq!(transmit.missed, missed(0, 1));
        let count = |which| transmit.whole.extra(which);
        assert_eq!((count(Extra::Requeues), count(Extra::Errors)), (1, 0));
        assert_eq!((count(Extra::Dropped), count(Extra::Consumed)), (1, 1));
    }
}

/// A device passes its packets on to the device below it.
#[test]
fn a_packet_may_be_in_the_queues_of_two_devices() {
    let bond = |time, stage| on(time, 0, stage, 1, b"bond0", 100);
    let all = [
        bond(10, Queued),
        bond(11, Started),
        step(12, 0, Queued, 1),
        step(14, 0, Started, 1),
        step(15, 0, Sent, 1),
        bond(18, Sent),
    ];
    for events in [LTTNG, PERF] {
        let transmit = table(events, Kind::Transmit, &all);
        assert_eq!(took(&transmit), [(10, 8), (12, 3)]);
        assert_eq!(transmit.missed, missed(0, 0));
    }
}

/// The first packet is freed while its driver still sends it, and another packet gets its address.
#[test]
fn the_end_of_a_packet_that_has_been_freed_ends_no_other_packet() {
    let all = [
        step(10, 0, Queued, 1),
        step(12, 0, Started, 1),
        step(13, 1, Freed, 1),
        step(14, 1, Queued, 1),
        step(15, 0, Sent, 1),
        step(16, 1, Started, 1),
        step(18, 1, Sent, 1),
    ];
    let transmit = table(PERF, Kind::Transmit, &all);
    assert_eq!(took(&transmit), [(10, 5), (14, 4)]);
    assert_eq!(transmit.missed, missed(0, 0));
    // LTTng records neither the free nor the starts. The thread on CPU 0 may have been in the driver since before the
    // second packet was queued.
    let is_recorded = |seen: &Seen<'static>| match seen.step {
        Step::Packet(packet) => packet.stage != Freed && packet.stage != Started,
        _ => true,
    };
    let all: Vec<_> = all.into_iter().filter(is_recorded).collect();
    let transmit = table(LTTNG, Kind::Transmit, &all);
    let expected = Missed {
        identical: 2,
        ..other()
    };
    assert_eq!((took(&transmit), transmit.missed), (vec![], expected));
}

/// A CPU queues a packet, and another CPU passes it to the driver.
#[test]
fn another_cpu_sends_a_packet_if_it_was_outside_of_the_driver() {
    let sent = |time| step(time, 1, Sent, 2);
    for (event, is_known) in [
        (sent(15), true),
        (softirq(15, 1), true),
        (softirq_end(15, 1), true),
        // Before the packet was queued.
        (sent(5), false),
        (softirq(5, 1), false),
        // On another device, on another CPU, and of another thread.
        (on(15, 1, Sent, 2, b"lo", 100), false),
        (softirq(15, 0), false),
        (of(switch(15, 1, 8, R, 9)), false),
    ] {
        let mut all = [event, step(10, 0, Queued, 1), step(20, 1, Sent, 1)];
        all.sort_by_key(|seen| seen.time);
        let transmit = table(LTTNG, Kind::Transmit, &all);
        let expected = match is_known {
            true => (vec![(10, 10)], missed(0, 0)),
            false => (vec![], other()),
        };
        assert_eq!((took(&transmit), transmit.missed), expected, "{event:?}");
    }
}

#[test]
fn a_packet_to_send_that_may_be_another_one_is_not_measured() {
    let begin = step(10, 0, Queued, 1);
    let gap = lost(15, 1, 16);
    for (rest, expected) in [
        // The device is renamed.
        (
            vec![on(20, 0, Sent, 1, b"eth1", 100)],
            (vec![], missed(0, 1)),
        ),
        (vec![on(20, 0, Sent, 1, b"eth0", 1500)], (vec![], other())),
        (vec![gap, step(20, 0, Sent, 1)], (vec![], missed(1, 0))),
        (vec![gap, step(20, 0, Dropped, 1)], (vec![], missed(1, 0))),
        // The end of the first packet is missing.
        (
            vec![step(20, 0, Queued, 1), step(25, 0, Sent, 1)],
            (vec![(20, 5)], other()),
        ),
    ] {
        let all = [&[begin][..], &rest].concat();
        let transmit = table(LTTNG, Kind::Transmit, &all);
        assert_eq!((took(&transmit), transmit.missed), expected, "{rest:?}");
    }
}

/// The starts of the packets that were sent, with their threads.
fn senders(events: PacketEvents, all: &[Seen<'static>]) -> Vec<(u64, Option<i32>)> {
    let found = found(events, By::Thread, all);
    let transmit = find(&found.tables, Kind::Transmit);
    let thread = |case: &Case| (case.begin, case.who.map(|(tid, _)| tid));
    let mut threads: Vec<_> = transmit.worst.iter().map(thread).collect();
    threads.sort_unstable();
    threads
}

#[test]
fn a_packet_belongs_to_no_thread_that_a_softirq_interrupted() {
    let sends = |time| [step(time, 0, Queued, 1), step(time + 1, 0, Sent, 1)];
    let all = [
        &sends(10)[..],
        &[softirq(20, 0)],
        &sends(21),
        &[softirq_end(25, 0)],
        &sends(26),
        // Which thread runs is not known, nor whether the softirq has ended.
        &[softirq(30, 0), lost(31, 0, 32)],
        &sends(40),
        &[of(switch(50, 0, 7, R, 9))],
        &sends(51),
    ]
    .concat();
    let expected = [(10, Some(7)), (21, None), (26, Some(7)), (51, Some(9))];
    assert_eq!(senders(LTTNG, &all), expected);
    let unknown = PacketEvents {
        softirqs: false,
        ..LTTNG
    };
    let expected = expected.map(|(time, _)| (time, None));
    assert_eq!(senders(unknown, &all), expected);
}

/// The handler of a driver without NAPI passes a packet to the backlog.
#[test]
fn a_packet_belongs_to_no_thread_that_a_handler_interrupted() {
    let (number, name) = (9, &b"can0"[..]);
    let all = [
        step(10, 0, Backlog, 1),
        of(at(11, 0, What::Irq { number, name })),
        step(12, 0, Backlog, 2),
        of(at(13, 0, What::IrqEnd { number })),
        step(14, 0, Backlog, 3),
        step(20, 1, Received, 1),
        step(21, 1, Received, 2),
        step(22, 1, Received, 3),
    ];
    let found = found(LTTNG, By::Thread, &all);
    let backlog = find(&found.tables, Kind::Backlog);
    let thread = |case: &Case| (case.begin, case.who.map(|(tid, _)| tid));
    let mut threads: Vec<_> = backlog.worst.iter().map(thread).collect();
    threads.sort_unstable();
    assert_eq!(threads, [(10, Some(7)), (12, None), (14, Some(7))]);
}

/// PREEMPT_RT preempts a softirq together with the thread that it runs in.
#[test]
fn a_preempted_softirq_continues_with_its_thread() {
    let sends = |time| [step(time, 0, Queued, 1), step(time + 1, 0, Sent, 1)];
    let all = [
        &[softirq(10, 0), of(switch(11, 0, 7, R, 9))][..],
        &sends(12),
        &[of(switch(14, 0, 9, S, 7))],
        &sends(15),
        &[softirq_end(17, 0)],
        &sends(18),
    ]
    .concat();
    let expected = [(12, Some(9)), (15, None), (18, Some(7))];
    assert_eq!(senders(LTTNG, &all), expected);
}
