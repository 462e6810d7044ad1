// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Disk requests.

use super::*;
use BlockStage::{Completed, Inserted, Issued, Merged, Requeued};

const SDA: Disk = Disk(8 << 20);

fn block(time: u64, stage: BlockStage, sector: u64, sectors: u64) -> Seen<'static> {
    let block = Block {
        stage,
        disk: SDA,
        sector,
        sectors,
        operation: Operation::Read,
        failed: false,
    };
    seen(time, 0, Step::Block(block))
}

fn both(all: &[Seen<'static>]) -> (Table, Table) {
    let found = tables(Analysis::Io, all);
    (
        find(&found, Kind::Queue).clone(),
        find(&found, Kind::Device).clone(),
    )
}

#[test]
fn a_request_is_queued_and_then_at_the_device() {
    let (queue, device) = both(&[
        block(1, Inserted, 0, 8),
        block(5, Issued, 0, 8),
        block(9, Issued, 8, 8),
        block(20, Completed, 0, 8),
        block(30, Completed, 8, 8),
    ]);
    assert_eq!(took(&queue), [(1, 4)]);
    assert_eq!(took(&device), [(5, 15), (9, 21)]);
    assert_eq!((queue.missed, device.missed), (missed(0, 0), missed(0, 0)));
}

#[test]
fn a_request_counts_on_the_cpu_of_its_issue_and_of_its_completion() {
    let on = |cpu, seen: Seen<'static>| Seen { cpu, ..seen };
    let all = [
        on(1, block(1, Inserted, 0, 8)),
        on(2, block(5, Issued, 0, 8)),
        on(3, block(20, Completed, 0, 8)),
    ];
    let expected = [(Kind::Queue, 2, 4), (Kind::Device, 3, 15)];
    assert_eq!(by_cpu(Analysis::Io, &all), expected);
}

#[test]
fn parts_requeues_and_merges_are_followed() {
    let (queue, device) = both(&[
        block(1, Inserted, 0, 8),
        block(2, Inserted, 8, 8),
        block(3, Merged, 8, 8),
        // The request has grown.
        block(4, Issued, 0, 16),
        block(5, Requeued, 0, 16),
        block(6, Inserted, 0, 16),
        block(7, Issued, 0, 16),
        block(8, Completed, 0, 8),
        block(9, Completed, 8, 8),
    ]);
    assert_eq!(took(&queue), [(1, 3)]);
    assert_eq!(took(&device), [(4, 5)]);
    let counts = [Extra::Parts, Extra::Requeues, Extra::Merges].map(|of| device.whole.extra(of));
    assert_eq!(counts, [1, 1, 1]);
    assert_eq!((queue.missed, device.missed), (missed(0, 0), missed(0, 0)));
}

#[test]
fn a_request_that_the_driver_gives_back_before_it_starts_it_is_in_the_queue() {
    let (queue, device) = both(&[
        // It went to the driver without being inserted.
        block(1, Requeued, 0, 8),
        block(3, Requeued, 0, 8),
        block(4, Inserted, 0, 8),
        block(7, Issued, 0, 8),
        block(9, Completed, 0, 8),
        // It was inserted, and may be inserted again.
        block(20, Inserted, 80, 8),
        block(22, Requeued, 80, 8),
        block(23, Inserted, 80, 8),
        block(30, Issued, 80, 8),
        block(31, Completed, 80, 8),
        // It has grown since it was inserted.
        block(40, Inserted, 808, 8),
        block(45, Requeued, 800, 16),
        block(50, Issued, 800, 16),
        block(60, Completed, 800, 16),
    ]);
    assert_eq!(took(&queue), [(1, 6), (20, 10), (40, 10)]);
    assert_eq!(took(&device), [(7, 2), (30, 1), (50, 10)]);
    assert_eq!(device.whole.extra(Extra::Requeues), 4);
    assert_eq!((queue.missed, device.missed), (missed(0, 0), missed(0, 0)));
    let (queue, _) = both(&[
        block(1, Requeued, 0, 8),
        lost(2, 3, 3),
        block(7, Issued, 0, 8),
        block(8, Requeued, 80, 8),
    ]);
    assert_eq!((took(&queue), queue.missed), (vec![], missed(1, 1)));
}

/// An interrupt handler may give a request back. The thread that it has interrupted is not the request's.
#[test]
fn a_request_that_was_given_back_first_is_of_the_thread_that_issues_it() {
    let by = |tid, seen: Seen<'static>| Seen {
        tid: Some(tid),
        ..seen
    };
    let (queue, _) = both(&[
        by(9, block(1, Requeued, 0, 8)),
        by(7, block(5, Issued, 0, 8)),
    ]);
    assert_eq!(queue.worst[0].who, Some((7, None)));
}

#[test]
fn identical_requests_in_flight_at_once_are_not_measured() {
    let (_, device) = both(&[
        block(1, Issued, 0, 8),
        block(2, Issued, 0, 8),
        block(10, Completed, 0, 8),
        block(30, Completed, 0, 8),
        // Consecutive requests are measured.
        block(40, Issued, 0, 8),
        block(41, Completed, 0, 8),
        // One of these two requests does not end.
        block(50, Issued, 0, 8),
        block(51, Issued, 0, 8),
        block(60, Completed, 0, 8),
    ]);
    assert_eq!(took(&device), [(40, 1)]);
    assert_eq!((device.missed.identical, device.missed.outside), (3, 1));
}

/// The end of the first request may be lost, or may be the first end after the gap. The requests are alike, as all
/// flushes are.
#[test]
fn requests_that_a_gap_confuses_count_as_lost_and_not_as_identical() {
    let (_, device) = both(&[
        block(1, Issued, 0, 0),
        lost(2, 3, 3),
        block(10, Issued, 0, 0),
        block(20, Completed, 0, 0),
        block(30, Issued, 0, 0),
        block(40, Completed, 0, 0),
        // Other requests are measured.
        block(50, Issued, 8, 8),
        block(51, Completed, 8, 8),
    ]);
    assert_eq!(
        (took(&device), device.missed),
        (vec![(50, 1)], missed(3, 0))
    );
}

#[test]
fn a_read_and_a_write_of_one_place_are_two_requests() {
    let write = |time, stage| {
        let Step::Block(block) = block(time, stage, 0, 8).step else {
            unreachable!()
        };
        let operation = Operation::Write;
        seen(time, 0, Step::Block(Block { operation, ..block }))
    };
    let (queue, device) = both(&[
        block(1, Inserted, 0, 8),
        write(2, Inserted),
        write(5, Issued),
        block(9, Issued, 0, 8),
        block(10, Completed, 0, 8),
        write(30, Completed),
    ]);
    assert_eq!(took(&queue), [(1, 8), (2, 3)]);
    assert_eq!(took(&device), [(5, 25), (9, 1)]);
    // The write is requeued, not the read that was issued first.
    let (_, device) = both(&[
        block(1, Issued, 0, 8),
        write(2, Issued),
        write(3, Requeued),
        block(10, Completed, 0, 8),
        write(20, Issued),
        write(30, Completed),
    ]);
    assert_eq!(took(&device), [(1, 9), (2, 28)]);
}

#[test]
fn a_part_belongs_to_a_request_of_its_operation() {
    let write = |time, stage, sector, sectors| {
        let Step::Block(block) = block(time, stage, sector, sectors).step else {
            unreachable!()
        };
        let operation = Operation::Write;
        seen(time, 0, Step::Block(Block { operation, ..block }))
    };
    let (_, device) = both(&[
        block(1, Issued, 0, 16),
        write(2, Issued, 0, 16),
        write(5, Completed, 0, 8),
        write(9, Completed, 8, 8),
        block(20, Completed, 0, 16),
    ]);
    assert_eq!(took(&device), [(1, 19), (2, 7)]);
    // Which of two reads has completed a part is not recorded.
    let (_, device) = both(&[
        block(1, Issued, 0, 16),
        block(2, Issued, 0, 32),
        block(5, Completed, 0, 8),
        block(9, Completed, 8, 8),
        block(20, Completed, 0, 32),
    ]);
    assert_eq!((took(&device), device.missed.identical), (vec![], 2));
}

#[test]
fn a_request_that_hangs_throughout_the_range_is_counted() {
    let range = Range {
        from: 5,
        to: 20,
        ..Range::all(5)
    };
    let all = [
        // This request never ends.
        block(1, Issued, 0, 8),
        block(6, Issued, 80, 8),
        lost(7, 3, 8),
        // The end of this request is after the range.
        block(30, Completed, 80, 8),
        block(40, Issued, 800, 8),
    ];
    let found = tables_of(Analysis::Io, range, None, &all).tables;
    let device = find(&found, Kind::Device);
    assert_eq!((took(device), device.missed), (vec![], missed(1, 1)));
}

#[test]
fn missing_starts_missing_ends_and_gaps_are_counted() {
    let (queue, device) = both(&[
        block(1, Completed, 0, 8),
        block(2, Issued, 8, 8),
        // A flush that was not issued itself.
        block(3, Completed, 0, 0),
        block(4, Inserted, 80, 8),
        lost(5, 3, 6),
        block(7, Issued, 80, 8),
        block(9, Completed, 80, 8),
        block(10, Inserted, 800, 8),
    ]);
    assert_eq!(took(&device), [(7, 2)]);
    assert_eq!((took(&queue), queue.missed), (vec![], missed(1, 1)));
    assert_eq!(device.missed, missed(1, 1));
}

#[test]
fn a_failed_request_is_measured_and_counted() {
    let failed = Block {
        stage: Completed,
        disk: SDA,
        sector: 0,
        sectors: 8,
        operation: Operation::Read,
        failed: true,
    };
    let (_, device) = both(&[block(1, Issued, 0, 8), seen(4, 0, Step::Block(failed))]);
    assert_eq!(
        (took(&device), device.whole.extra(Extra::Errors)),
        (vec![(1, 3)], 1)
    );
}

/// A write that waited for a flush, or a read or a write of which a SCSI disk has done nothing, shows no sectors.
#[test]
fn a_completion_without_sectors_does_not_end_a_flush_or_a_command() {
    let step = |time, stage, sectors, operation| {
        let Step::Block(block) = block(time, stage, 0, sectors).step else {
            unreachable!()
        };
        seen(time, 0, Step::Block(Block { operation, ..block }))
    };
    for alike in [Operation::Flush, Operation::Other] {
        let (_, device) = both(&[
            step(1, Issued, 0, alike),
            step(2, Issued, 8, Operation::Write),
            step(3, Completed, 0, Operation::Write),
            step(4, Requeued, 0, Operation::Write),
            step(5, Completed, 0, Operation::Read),
            step(6, Completed, 0, Operation::Discard),
            step(9, Completed, 8, Operation::Write),
            step(20, Completed, 0, alike),
        ]);
        assert_eq!(took(&device), [(1, 19), (2, 7)]);
        assert_eq!(device.missed, missed(0, 0));
    }
    // A flush is not a command.
    let (_, device) = both(&[
        step(1, Issued, 0, Operation::Flush),
        step(3, Completed, 0, Operation::Other),
        step(9, Completed, 0, Operation::Flush),
    ]);
    assert_eq!(took(&device), [(1, 8)]);
}
