// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Waits for disk requests, by the stage of the request.

use lt_model::why::{
    Beside, Cause, Leaf, Nothing, Piece, Place, Quota, Slept, busy, path, path_beside, served,
};
use lt_model::{
    Before, Builder, Busy, Disk, Event, Interval, Kind, Model, NOWHERE, Served, ServedFor, Sleep,
    Stage, SwitchedOut, ThreadId, Wanted, What,
};

use crate::made::{R, at, completed, model, request, switch, waking};

const S: SwitchedOut = SwitchedOut::Blocked(Sleep::Uninterruptible);
const DISK: Disk = Disk(253 << 20);
const PARTITION: Disk = Disk(259 << 20 | 1);
const MAPPED: Disk = Disk(254 << 20);

/// Explains the sleep of thread 7 from 10 to 100, when a completion of sectors 64 to 71 wakes it.
fn parts(events: &[Event<'static>]) -> String {
    let (disk, range) = (DISK, Some((64, 8)));
    let mut all = vec![switch(0, 0, 0, R, 7)];
    all.extend(events.iter().filter(|e| e.time < 10));
    all.push(switch(10, 0, 7, S, 0));
    all.extend(events.iter().filter(|e| (10..100).contains(&e.time)));
    all.extend([
        at(99, 0, What::Timer { function: None }),
        completed(99, disk, range),
        waking(100, 0, 7),
        at(101, 0, What::TimerEnd),
        switch(102, 0, 0, R, 7),
    ]);
    all.extend(events.iter().filter(|e| e.time > 102));
    all.push(switch(110, 0, 7, S, 0));
    let m = model(&all);
    let pieces = path(&m, m.by_tid(7).next().unwrap(), 10, 100);
    let words = |p: &Piece| match p.cause {
        Cause::Held(disk, place, None) => {
            assert_eq!(disk, DISK);
            format!("{place:?} {}", p.end)
        }
        Cause::For(Leaf::Disk(Some(disk)), None) => {
            assert_eq!(disk, DISK);
            format!("disk {}", p.end)
        }
        Cause::For(Leaf::Others(disk, of), None) => {
            assert_eq!(disk, DISK);
            format!("{}'s {}", m.thread(of).unwrap().tid, p.end)
        }
        Cause::For(Leaf::Completion(_), None) => format!("completion {}", p.end),
        other => format!("{other:?} {}", p.end),
    };
    pieces.iter().map(words).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_wait_for_a_request_is_split_by_the_stages_of_the_request() {
    // The thread's own read, which is issued at once.
    let own = [
        request(5, Stage::Queued, DISK, 64),
        request(6, Stage::Allocated, DISK, 64),
        request(7, Stage::Issued, DISK, 64),
    ];
    assert_eq!(parts(&own), "disk 100");
    // A cgroup's limit holds the request back, and it is submitted later.
    let limited = own.map(|e| Event {
        time: e.time + 90,
        ..e
    });
    assert_eq!(
        parts(&limited),
        "Unsubmitted 95, Unallocated 96, Queued 97, disk 100"
    );
    // The request waits for a tag, and then in the queue of the I/O scheduler.
    let mut queued = own;
    (queued[1].time, queued[2].time) = (40, 80);
    assert_eq!(parts(&queued), "Unallocated 40, Queued 80, disk 100");
    // The driver returned the request, and it was issued again.
    let again = [&own[..], &[request(50, Stage::Issued, DISK, 64)]].concat();
    assert_eq!(parts(&again), "Queued 50, disk 100");
}

/// Eight sectors of a bio are passed on, at 60.
fn remap(from: (Disk, u64), to: (Disk, u64)) -> Event<'static> {
    let sectors = 8;
    at(60, 0, What::Remap { from, to, sectors })
}

#[test]
fn a_bio_of_a_partition_or_a_stacked_device_is_followed_to_the_disk() {
    let own = [
        request(5, Stage::Queued, DISK, 64),
        request(6, Stage::Allocated, DISK, 64),
        request(30, Stage::Issued, DISK, 64),
    ];
    let partition = [Event {
        time: 5,
        ..remap((PARTITION, 8), (DISK, 64))
    }];
    let of_partition = [&partition[..], &own].concat();
    assert_eq!(parts(&of_partition), "Queued 30, disk 100");
    let lower = [
        request(60, Stage::Queued, DISK, 64),
        request(61, Stage::Allocated, DISK, 64),
        request(62, Stage::Issued, DISK, 64),
    ];
    let entered = [request(5, Stage::Queued, MAPPED, 0)];
    // The stacked device is on the whole disk, or on a partition.
    for passed_on in [
        &[remap((MAPPED, 0), (DISK, 64))][..],
        &[
            remap((MAPPED, 0), (DISK, 8)),
            remap((PARTITION, 8), (DISK, 64)),
        ],
    ] {
        assert_eq!(
            parts(&[&entered[..], passed_on, &lower].concat()),
            "Stacked 60, Unallocated 61, Queued 62, disk 100"
        );
    }
    // Either of the two bios may have been issued, unless one has no request.
    let bio = [Stage::Queued, Stage::Allocated].map(|stage| request(4, stage, DISK, 64));
    let two = [&bio[..1], &own].concat();
    assert_eq!(parts(&two), "Queued 30, disk 100");
    let two = [&bio[..], &own].concat();
    assert_eq!(parts(&two), "Unrecorded 30, disk 100");
}

/// 7 and 9 read the same sectors at once, so each event may be of either request.
#[test]
fn the_threads_of_identical_requests_are_not_confused() {
    let bio = |time| {
        [
            request(time, Stage::Queued, DISK, 64),
            request(time + 1, Stage::Allocated, DISK, 64),
        ]
    };
    let of_nine = |sectors| {
        let issued = What::Request {
            stage: Stage::Issued,
            disk: DISK,
            sector: 64,
            sectors,
        };
        let [queued, allocated] = bio(21);
        [
            switch(20, 0, 0, R, 9),
            queued,
            allocated,
            at(23, 0, issued),
            switch(24, 0, 9, S, 0),
        ]
    };
    let [queued, allocated] = bio(5);
    let own = [queued, allocated, request(7, Stage::Issued, DISK, 64)];
    let with = |own: &[Event<'static>], sectors| parts(&[own, &of_nine(sectors)].concat());
    assert_eq!(with(&own, 8), "completion 100");
    assert_eq!(with(&own, 16), "disk 100");
    // The request of 7 has ended before.
    let ended = [&own[..], &[completed(15, DISK, Some((64, 8)))]].concat();
    assert_eq!(with(&ended, 8), "9's 100");
    // Either bio may have been issued, unless the bio of 7 has no request.
    assert_eq!(with(&own[..2], 8), "Unrecorded 23, disk 100");
    assert_eq!(with(&own[..1], 8), "9's 100");
}

/// A stacked device splits a bio of 7. An earlier bio, of 9, was for the sectors of the second part.
#[test]
fn a_passed_on_bio_is_not_of_the_thread_that_used_its_sectors_before() {
    let passed_on = |time, sector| {
        [
            Event {
                time,
                ..remap((MAPPED, 8), (DISK, sector))
            },
            request(time, Stage::Queued, DISK, sector),
            request(time, Stage::Allocated, DISK, sector),
            request(time, Stage::Issued, DISK, sector),
        ]
    };
    let events = [
        &[switch(1, 0, 7, R, 9), request(1, Stage::Queued, MAPPED, 8)][..],
        &passed_on(2, 64),
        &[
            completed(3, DISK, Some((64, 8))),
            switch(4, 0, 9, S, 7),
            request(5, Stage::Queued, MAPPED, 0),
        ],
        &passed_on(6, 64),
    ]
    .concat();
    assert_eq!(parts(&events), "disk 100");
}

#[test]
fn a_bio_of_another_disk_is_not_issued_to_this_one() {
    let bio_of = |disk| {
        [
            request(5, Stage::Queued, disk, 64),
            request(6, Stage::Allocated, disk, 64),
            request(30, Stage::Issued, DISK, 64),
        ]
    };
    // Some of these numbers may belong to partitions. No bio has the number of a partition.
    for other in [MAPPED, PARTITION, Disk(DISK.0 + 1), Disk(DISK.0 + 16)] {
        assert_eq!(parts(&bio_of(other)), "Unrecorded 30, disk 100");
    }
}

#[test]
fn the_stages_of_a_request_are_not_known_without_its_events() {
    assert_eq!(parts(&[]), "completion 100");
    let issued = [request(97, Stage::Issued, DISK, 64)];
    assert_eq!(parts(&issued), "Unrecorded 97, disk 100");
    // The bio was merged into another request, and has no request of its own.
    let merged = [request(5, Stage::Queued, DISK, 64), issued[0]];
    assert_eq!(parts(&merged), "Unrecorded 97, disk 100");
    // Requests for other sectors or disks do not count, nor does a request whose events may be lost.
    let another = [
        request(5, Stage::Issued, DISK, 72),
        request(5, Stage::Issued, MAPPED, 64),
    ];
    assert_eq!(parts(&another), "completion 100");
    let lost = [
        request(5, Stage::Issued, DISK, 64),
        at(8, 0, What::Lost { until: 9 }),
    ];
    assert_eq!(parts(&lost), "completion 100");
}

/// 7 waits for a tag, or for a page that 9 reads. The request of 9 completes; its stages do not show the
/// stages of 7's request.
#[test]
fn another_threads_request_does_not_show_the_place_of_the_sleepers_request() {
    let by_nine = |first: u64| {
        [
            switch(first - 1, 0, 0, R, 9),
            request(first, Stage::Queued, DISK, 64),
            request(first + 1, Stage::Allocated, DISK, 64),
            request(first + 2, Stage::Issued, DISK, 64),
            switch(first + 3, 0, 9, S, 0),
        ]
    };
    assert_eq!(parts(&by_nine(60)), "9's 100");
    let own = [request(5, Stage::Queued, DISK, 128)];
    assert_eq!(parts(&[&own[..], &by_nine(60)].concat()), "9's 100");
    // The thread then gets a request, for its earlier bio.
    let after = |sector| [request(103, Stage::Allocated, DISK, sector)];
    let waits = [&own[..], &by_nine(60), &after(128)].concat();
    assert_eq!(parts(&waits), "Unallocated 100");
    let another = [&own[..], &by_nine(60), &after(256)].concat();
    assert_eq!(parts(&another), "9's 100");
    let then = [
        &by_nine(60)[..],
        &own.map(|e| Event { time: 103, ..e }),
        &after(128),
    ]
    .concat();
    assert_eq!(parts(&then), "9's 100");
    // A stacked device passes the bio on.
    let mut stacked = by_nine(60).to_vec();
    stacked[1] = request(60, Stage::Queued, MAPPED, 0);
    stacked.insert(2, remap((MAPPED, 0), (DISK, 64)));
    stacked.insert(3, request(60, Stage::Queued, DISK, 64));
    assert_eq!(parts(&stacked), "9's 100");
}

/// 7 gets a request for the first part of a bio, or for another bio. Its driver may sleep while 7 issues that request.
#[test]
fn a_sleep_between_two_requests_need_not_be_a_wait_for_the_second_one() {
    let whole = What::Request {
        stage: Stage::Queued,
        disk: DISK,
        sector: 128,
        sectors: 16,
    };
    let first = [Stage::Allocated, Stage::Issued].map(|stage| request(6, stage, DISK, 128));
    let of_nine = [
        switch(59, 0, 0, R, 9),
        request(60, Stage::Queued, DISK, 64),
        request(61, Stage::Allocated, DISK, 64),
        request(62, Stage::Issued, DISK, 64),
        switch(63, 0, 9, S, 0),
    ];
    for bios in [
        &[at(5, 0, whole)][..],
        &[
            request(5, Stage::Queued, DISK, 128),
            request(5, Stage::Queued, DISK, 136),
        ],
    ] {
        let second = [request(103, Stage::Allocated, DISK, 136)];
        let waits = [bios, &first, &of_nine, &second].concat();
        assert_eq!(parts(&waits), "9's 100");
        // 7 has not issued the first request: a worker will.
        let waits = [bios, &first[..1], &of_nine, &second].concat();
        assert_eq!(parts(&waits), "Unallocated 100");
        // 7 issues a waiting request once it is woken, before it gets its own.
        let waiting = [request(103, Stage::Issued, DISK, 512)];
        let second = [request(104, Stage::Allocated, DISK, 136)];
        let waits = [bios, &first[..1], &of_nine, &waiting, &second].concat();
        assert_eq!(parts(&waits), "Unallocated 100");
        // A flush also counts as a request that 7 issues.
        let flush = [at(7, 0, What::Flush { disk: DISK })];
        let waits = [bios, &first[..1], &flush, &of_nine, &second].concat();
        assert_eq!(parts(&waits), "9's 100");
    }
}

/// 7's bio became a part of 9's request, so 7 waits for 9's request.
#[test]
fn the_stages_of_a_request_with_parts_of_two_threads_are_not_known() {
    let merged = [
        request(5, Stage::Queued, DISK, 68),
        switch(20, 0, 0, R, 9),
        request(21, Stage::Queued, DISK, 64),
        request(22, Stage::Allocated, DISK, 64),
        request(23, Stage::Issued, DISK, 64),
        switch(24, 0, 9, S, 0),
    ];
    assert_eq!(parts(&merged), "Unrecorded 23, disk 100");
}

/// A worker of the device mapper submits 7's bio, or an interrupt does, whichever thread it interrupts.
#[test]
fn a_request_that_a_worker_passes_on_is_of_the_thread_that_has_entered_it() {
    let worker = [
        request(5, Stage::Queued, MAPPED, 0),
        switch(20, 0, 0, R, 9),
        remap((MAPPED, 0), (DISK, 64)),
        request(60, Stage::Queued, DISK, 64),
        request(61, Stage::Allocated, DISK, 64),
        request(62, Stage::Issued, DISK, 64),
        switch(63, 0, 9, S, 0),
    ];
    assert_eq!(
        parts(&worker),
        "Stacked 60, Unallocated 61, Queued 62, disk 100"
    );
    let interrupt = [
        switch(20, 0, 0, R, 9),
        at(30, 0, What::Softirq { vector: 4 }),
        request(31, Stage::Queued, DISK, 64),
        at(32, 0, What::SoftirqEnd { vector: 4 }),
        request(33, Stage::Issued, DISK, 64),
        switch(34, 0, 9, S, 0),
    ];
    assert!(!parts(&interrupt).contains("9's"), "{}", parts(&interrupt));
}

/// 9 is the worker of a loop device. It reads the file, which is on another disk, and then raises the softirq that
/// completes the request of 7.
#[test]
fn a_request_that_a_worker_serves_is_what_the_worker_waited_for() {
    const LOOP: Disk = Disk(7 << 20);
    const BLOCK: u32 = 4;
    let completed = |time, disk, sector| completed(time, disk, Some((sector, 8)));
    let path_of = |raised: &[Event<'static>]| {
        let begin = [
            switch(0, 0, 0, R, 7),
            request(5, Stage::Issued, LOOP, 64),
            switch(10, 0, 7, S, 9),
            request(15, Stage::Issued, DISK, 640),
            switch(20, 0, 9, S, 0),
            at(60, 0, What::Timer { function: None }),
            completed(61, DISK, 640),
            waking(62, 0, 9),
            at(63, 0, What::TimerEnd),
            switch(65, 0, 0, R, 9),
        ];
        let end = [
            switch(75, 0, 9, S, 0),
            at(76, 0, What::Softirq { vector: BLOCK }),
            completed(77, LOOP, 64),
            waking(78, 0, 7),
            at(79, 0, What::SoftirqEnd { vector: BLOCK }),
            switch(80, 0, 0, R, 7),
        ];
        let m = model(&[&begin[..], raised, &end].concat());
        let words = |p: &Piece| {
            let tid = m.thread(p.thread).unwrap().tid;
            let what = match p.cause {
                Cause::For(Leaf::Disk(Some(disk)), _) => format!("disk {disk}"),
                Cause::Running(_) => "runs".into(),
                Cause::Waiting => "waits".into(),
                other => format!("{other:?}"),
            };
            format!("{tid} {what} {}", p.end)
        };
        let pieces = path(&m, m.by_tid(7).next().unwrap(), 10, 78);
        pieces.iter().map(words).collect::<Vec<_>>().join(", ")
    };
    let raise = at(70, 0, What::Raise { vector: BLOCK });
    assert_eq!(
        path_of(&[raise]),
        "9 runs 20, 9 disk 253:0 62, 9 waits 65, 9 runs 70, 7 disk 7:0 78"
    );
    // A device completes the request in an interrupt, which is not work of the interrupted thread.
    let handler = What::Irq {
        number: 5,
        name: b"disk",
    };
    let interrupt = [
        at(69, 0, handler),
        raise,
        at(71, 0, What::IrqEnd { number: 5 }),
    ];
    for other in [
        &interrupt[..],
        &[],
        &[raise, interrupt[0], raise, interrupt[2]],
    ] {
        assert_eq!(path_of(other), "7 disk 7:0 78");
    }
}

/// The disk has one tag: first for a request of 8 at 64, then for a request of 9 at 128. 7 sleeps from 10 to 91, and
/// then gets the tag. The bio of 8 is seen only with `has_eight`.
fn one_tag(has_eight: bool) -> Vec<Event<'static>> {
    let timer = |time| at(time, 0, What::Timer { function: None });
    let mut all = vec![switch(0, 0, 0, R, 8)];
    if has_eight {
        all.push(request(1, Stage::Queued, DISK, 64));
    }
    all.extend([
        request(2, Stage::Allocated, DISK, 64),
        request(3, Stage::Issued, DISK, 64),
        switch(4, 0, 8, S, 9),
        request(5, Stage::Queued, DISK, 128),
        switch(6, 0, 9, S, 7),
        request(8, Stage::Queued, DISK, 256),
        switch(10, 0, 7, S, 0),
        timer(40),
        completed(40, DISK, Some((64, 8))),
        waking(41, 0, 9),
        at(42, 0, What::TimerEnd),
        switch(43, 0, 0, R, 9),
        request(44, Stage::Allocated, DISK, 128),
        request(45, Stage::Issued, DISK, 128),
        switch(46, 0, 9, S, 0),
        timer(90),
        completed(90, DISK, Some((128, 8))),
        waking(91, 0, 7),
        at(92, 0, What::TimerEnd),
        switch(93, 0, 0, R, 7),
        request(94, Stage::Allocated, DISK, 256),
        request(95, Stage::Issued, DISK, 256),
        switch(110, 0, 7, S, 0),
    ]);
    all
}

/// A stack shows that 7 slept in blk_mq_get_tag.
struct InGetTag;

impl Beside for InGetTag {
    fn quota(&self, _: ThreadId, _: &Interval) -> Quota {
        Quota::Open
    }

    fn slept(&self, _: ThreadId, _: &Interval) -> Option<Slept> {
        let leaf = Leaf::Resource(&("blk_mq_get_tag", "a full queue"));
        Some(Slept { leaf, alone: false })
    }
}

/// The place of the request of 7 while it sleeps, and what the disk serves meanwhile: the number of requests, the time,
/// and each thread with its requests and their time.
type Meanwhile = (Place, Option<(u64, u64, Vec<(i32, u64, u64)>)>);

fn meanwhile(m: &Model, beside: &dyn Beside) -> Meanwhile {
    meanwhile_at(m, beside, DISK)
}

fn meanwhile_at(m: &Model, beside: &dyn Beside, expected: Disk) -> Meanwhile {
    let seven = m.by_tid(7).next().unwrap();
    let pieces = path_beside(m, beside, seven, 10, 91);
    let [piece] = &pieces[..] else {
        panic!("{pieces:?}");
    };
    let Cause::Held(held, place, None) = piece.cause else {
        panic!("{pieces:?}");
    };
    let (disk, served) = served(m, &pieces).unwrap();
    assert_eq!((held, disk), (expected, expected));
    let tid = |id: Option<ThreadId>| id.map_or(0, |id| m.thread(id).unwrap().tid);
    let by = |by: &ServedFor| (tid(by.thread), by.requests, by.time);
    let all = |served: Served| {
        let by = served.by.iter().map(by).collect();
        (served.requests, served.time, by)
    };
    (place, served.map(all))
}

#[test]
fn the_requests_that_a_disk_serves_while_another_lacks_a_tag_are_known() {
    let events = one_tag(true);
    let m = model(&events);
    let by = vec![(9, 1, 45), (8, 1, 30)];
    let known = Some((2, 75, by));
    let without = meanwhile(&m, &Nothing);
    assert_eq!(without, (Place::Unallocated, known.clone()));
    // The stack shows the reason.
    assert_eq!(meanwhile(&m, &InGetTag), (Place::NoTag, known.clone()));
    // Only what explains 7 is kept.
    let mut wanted = Wanted::default();
    wanted.thread(m.by_tid(7).next().unwrap(), 10, 91);
    let mut builder = Builder::new();
    builder.keep_only(wanted);
    events.iter().for_each(|event| builder.feed(event));
    let part = meanwhile(&builder.finish(), &Nothing);
    assert_eq!(part, (Place::Unallocated, known));
}

/// The disk completes the request of 8 in two parts: three sectors, and then the other five.
#[test]
fn a_request_that_is_completed_in_parts_is_one_request() {
    let issued = |sector, sectors| What::Request {
        stage: Stage::Issued,
        disk: DISK,
        sector,
        sectors,
    };
    let known = (2, 75, vec![(9, 1, 45), (8, 1, 30)]);
    // The driver gives the rest back, to be issued again, or completes it without that.
    for again in [&[at(25, 0, issued(67, 5))][..], &[]] {
        let mut events = one_tag(true);
        let whole = completed(40, DISK, Some((64, 8))).what;
        events.retain(|event| event.what != whole);
        events.push(completed(20, DISK, Some((64, 3))));
        events.extend(again);
        events.push(completed(40, DISK, Some((67, 5))));
        events.sort_by_key(|event| event.time);
        let found = meanwhile(&model(&events), &Nothing);
        assert_eq!(found, (Place::Unallocated, Some(known.clone())));
    }
    // A thread may wait for the first part only.
    let own = [
        request(5, Stage::Queued, DISK, 64),
        request(6, Stage::Allocated, DISK, 64),
        at(7, 0, issued(64, 16)),
    ];
    assert_eq!(parts(&own), "disk 100");
}

/// 8 and 9 read the same sectors at once. Which of the two requests ends first does not matter for their total time.
#[test]
fn served_identical_requests_are_of_an_unknown_thread() {
    let mut events = one_tag(true);
    let stages = [Stage::Queued, Stage::Allocated, Stage::Issued];
    events.extend(stages.map(|stage| request(5, stage, DISK, 64)));
    events.push(completed(50, DISK, Some((64, 8))));
    events.sort_by_key(|event| event.time);
    let by = vec![(9, 1, 45), (0, 2, 40)];
    let found = meanwhile(&model(&events), &Nothing);
    assert_eq!(found, (Place::Unallocated, Some((3, 80, by))));
}

#[test]
fn a_served_request_of_an_unknown_thread_counts_as_such() {
    let m = model(&one_tag(false));
    let by = vec![(9, 1, 45), (0, 1, 30)];
    let known = Some((2, 75, by));
    assert_eq!(meanwhile(&m, &Nothing), (Place::Unallocated, known));
}

/// Two disks of a controller share the tag: a completion of one disk ends the wait for a request of the other disk. By
/// its number, the other disk could also be a partition. The second number belongs to an NVMe namespace.
#[test]
fn a_request_without_a_tag_is_of_its_own_disk_even_if_another_disk_frees_the_tag() {
    for other in [Disk(DISK.0 + 1), Disk(259 << 20 | 1)] {
        let mut events = one_tag(true);
        for event in &mut events {
            if let What::Request {
                disk, sector: 256, ..
            } = &mut event.what
            {
                *disk = other;
            }
        }
        let m = model(&events);
        let none: Meanwhile = (Place::Unallocated, Some((0, 0, vec![])));
        assert_eq!(meanwhile_at(&m, &Nothing, other), none);
        assert_eq!(meanwhile_at(&m, &InGetTag, other), (Place::NoTag, none.1));
    }
}

/// The disk may have had another request, at 512, while 7 sleeps.
#[test]
fn what_a_disk_served_is_a_lower_bound_if_a_request_is_not_fully_recorded() {
    let issued = |time| request(time, Stage::Issued, DISK, 512);
    let done = completed(120, DISK, Some((512, 8)));
    let gap = at(115, 1, What::Lost { until: 116 });
    for (more, expected) in [
        (vec![], (2, false)),
        (vec![issued(20), done], (3, false)),
        // The request is issued after the sleep.
        (vec![issued(96)], (2, false)),
        // The completion is not recorded.
        (vec![issued(20)], (2, true)),
        (vec![issued(20), gap], (2, true)),
        // The issue is not recorded.
        (vec![done], (2, true)),
    ] {
        let mut events = [one_tag(true), more].concat();
        events.sort_by_key(|event| event.time);
        let m = model(&events);
        let pieces = path(&m, m.by_tid(7).next().unwrap(), 10, 91);
        let (_, served) = served(&m, &pieces).unwrap();
        let served = served.unwrap();
        let found = (served.requests, served.is_least);
        assert_eq!(found, expected, "{events:?}");
    }
}

#[test]
fn what_a_disk_served_is_not_known_if_events_were_lost() {
    let mut events = one_tag(true);
    events.push(at(50, 1, What::Lost { until: 50 }));
    events.sort_by_key(|event| event.time);
    // Only the stack shows that 7 had no request.
    let lost = meanwhile(&model(&events), &InGetTag);
    assert_eq!(lost, (Place::NoTag, None));
}

/// The busy time of the disk at the end of the wait of 7. All events of [`one_tag`] except the first happen `shift`
/// later, after the events of `before`.
fn busy_time(shift: u64, before: &[Event<'static>]) -> Busy {
    let mut all = one_tag(true);
    for event in all.iter_mut().skip(1) {
        event.time += shift;
    }
    all.splice(1..1, before.iter().copied());
    let m = model(&all);
    let seven = m.by_tid(7).next().unwrap();
    let (disk, busy) = busy(&m, &path(&m, seven, shift + 10, shift + 91)).unwrap();
    assert_eq!((disk, busy.until), (DISK, shift + 91));
    busy
}

#[test]
fn the_start_of_a_busy_time_is_known_if_the_disk_was_idle_before() {
    const MS: u64 = 1_000_000;
    let found = |shift, before: &[Event<'static>]| {
        let busy = busy_time(shift, before);
        (busy.since, busy.pause, busy.before)
    };
    let (start, idle) = (400 * MS + 3, Before::Idle);
    assert_eq!(found(400 * MS, &[]), (start, 5, idle(None)));
    // The trace may start in the middle of the busy time.
    assert_eq!(found(0, &[]), (3, 5, Before::Unrecorded));
    let close = 90 * MS;
    assert_eq!(found(close, &[]), (close + 3, 5, Before::Unrecorded));
    // A lost event of another CPU may belong to a request.
    let lost = at(350 * MS, 1, What::Lost { until: 360 * MS });
    assert_eq!(found(400 * MS, &[lost]), (start, 5, Before::Missing));
    let earlier = at(280 * MS, 1, What::Lost { until: 290 * MS });
    assert_eq!(found(400 * MS, &[earlier]), (start, 5, idle(None)));
    // The length of the idle time is known if no event since the previous request is missing.
    let issued = request(200 * MS, Stage::Issued, DISK, 512);
    let done = completed(210 * MS, DISK, Some((512, 8)));
    let known = (start, 5, idle(Some(190 * MS + 3)));
    assert_eq!(found(400 * MS, &[issued, done]), known);
    let unknown = (start, 5, idle(None));
    assert_eq!(found(400 * MS, &[issued, done, earlier]), unknown);
    // A request that never completes may have been at the disk.
    let never = request(200 * MS, Stage::Issued, DISK, 512);
    assert_eq!(found(400 * MS, &[never]), (start, 5, Before::Missing));
    // The disk writes out its cache until just before its first request.
    let (disk, range, kind) = (DISK, None, Kind::Flush);
    let flush = [
        at(200 * MS, 0, What::Flush { disk }),
        at(400 * MS, 0, What::Completed { disk, range, kind }),
    ];
    assert_eq!(found(400 * MS, &flush), (200 * MS, 5, idle(None)));
    // A command, of the disk or of its controller.
    let command = |disk| {
        let (sector, sectors, kind) = (NOWHERE, 0, Kind::Other);
        let issued = What::Request {
            stage: Stage::Issued,
            disk,
            sector,
            sectors,
        };
        let range = Some((sector, sectors));
        [
            at(200 * MS, 0, issued),
            at(400 * MS, 0, What::Completed { disk, range, kind }),
        ]
    };
    let of_disk = command(DISK);
    assert_eq!(found(400 * MS, &of_disk), (200 * MS, 5, idle(None)));
    for never in [&of_disk[..1], &command(Disk(0))[..1]] {
        assert_eq!(found(400 * MS, never), (start, 5, Before::Missing));
    }
    // The driver gives a flush, or a command, back. It is issued twice, and ends once.
    let again = |[issued, ended]: [Event<'static>; 2], range| {
        let back = What::Requeued { disk, range };
        let events = [
            issued,
            at(201 * MS, 0, back),
            at(205 * MS, 0, issued.what),
            at(210 * MS, 0, ended.what),
        ];
        found(400 * MS, &events)
    };
    assert_eq!(again(flush, None), known);
    assert_eq!(again(of_disk, Some((NOWHERE, 0))), known);
}

/// After 7 has its tag, 8 waits for another one, and the disk pauses meanwhile.
#[test]
fn a_busy_time_does_not_depend_on_whose_waits_are_kept() {
    let mut events = one_tag(true);
    events.extend([
        waking(111, 0, 8),
        switch(112, 0, 0, R, 8),
        request(113, Stage::Queued, DISK, 384),
        switch(114, 0, 8, S, 0),
        at(120, 0, What::Timer { function: None }),
        completed(120, DISK, Some((256, 8))),
        waking(121, 0, 8),
        at(122, 0, What::TimerEnd),
        switch(123, 0, 0, R, 8),
        request(140, Stage::Issued, DISK, 512),
        completed(145, DISK, Some((512, 8))),
        request(150, Stage::Allocated, DISK, 384),
        switch(160, 0, 8, S, 0),
    ]);
    let whole = model(&events);
    let seven = whole.by_tid(7).next().unwrap();
    let found = |m: &Model| busy(m, &path(m, seven, 10, 91)).unwrap();
    let expected = found(&whole);
    assert_eq!((expected.1.since, expected.1.pause), (3, 20));
    let mut wanted = Wanted::default();
    wanted.thread(seven, 10, 91);
    let mut builder = Builder::new();
    builder.keep_only(wanted);
    events.iter().for_each(|event| builder.feed(event));
    assert_eq!(found(&builder.finish()), expected);
}

/// 7 sleeps from 10 to 100, when a request of this `range` and `kind` completes. Returns the last part of the sleep.
fn ends(before: &[Event<'static>], range: Option<(u64, u32)>, kind: Kind) -> (Cause, u64) {
    let disk = DISK;
    let mut all = vec![switch(0, 0, 0, R, 7), switch(10, 0, 7, S, 0)];
    all.extend(before);
    all.extend([
        at(99, 0, What::Timer { function: None }),
        at(99, 0, What::Completed { disk, range, kind }),
        waking(100, 0, 7),
        at(101, 0, What::TimerEnd),
        switch(110, 0, 0, R, 7),
    ]);
    let m = model(&all);
    let pieces = path(&m, m.by_tid(7).next().unwrap(), 10, 100);
    pieces.last().map(|p| (p.cause, p.begin)).unwrap()
}

/// The requests that waited for a flush end just after it. Another flush may have been issued by then.
#[test]
fn a_request_that_waited_for_a_flush_does_not_end_another_one() {
    let disk = DISK;
    let ends = |kind| What::Completed {
        disk,
        range: (kind == Kind::Plain).then_some((0, 0)),
        kind,
    };
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(10, 0, 7, S, 0),
        at(30, 1, What::Flush { disk }),
        at(97, 0, What::Timer { function: None }),
        at(97, 0, ends(Kind::Flush)),
        at(98, 1, What::Flush { disk }),
        at(99, 0, ends(Kind::Plain)),
        waking(100, 0, 7),
        at(101, 0, What::TimerEnd),
        switch(110, 0, 0, R, 7),
    ]);
    let pieces = path(&m, m.by_tid(7).next().unwrap(), 10, 100);
    let last = pieces.last().unwrap();
    let flush = Cause::For(Leaf::Special(disk, Kind::Flush), None);
    assert_eq!((last.cause, last.begin), (flush, 30));
}

#[test]
fn the_kind_of_a_request_that_does_not_just_read_or_write_is_known() {
    let disk = DISK;
    let of = |kind| Cause::For(Leaf::Special(disk, kind), None);
    let flush = |time| at(time, 0, What::Flush { disk });
    assert_eq!(ends(&[flush(30)], None, Kind::Flush), (of(Kind::Flush), 30));
    // The disk has two such requests: which request ends, and when it was issued, is not known.
    let unknown = Cause::For(Leaf::Completion(disk), None);
    assert_eq!(
        ends(&[flush(30), flush(40)], None, Kind::Flush),
        (unknown, 10)
    );
    assert_eq!(ends(&[], None, Kind::Flush), (unknown, 10));
    let issued = [request(20, Stage::Issued, DISK, 64)];
    for kind in [Kind::Discard, Kind::Other] {
        assert_eq!(ends(&issued, Some((64, 8)), kind), (of(kind), 20));
    }
    let plain = Cause::For(Leaf::Disk(Some(disk)), None);
    assert_eq!(ends(&issued, Some((64, 8)), Kind::Plain), (plain, 20));
}

/// A SCSI disk reports a unit attention: the completion of a request without sectors, and without an error. The request
/// is then issued again.
#[test]
fn a_completion_without_sectors_does_not_end_a_request_that_has_sectors() {
    let disk = DISK;
    let nothing = |time, kind| {
        let range = Some((64, 0));
        at(time, 0, What::Completed { disk, range, kind })
    };
    let range = Some((64, 8));
    let back = at(51, 0, What::Requeued { disk, range });
    let issued = |time| request(time, Stage::Issued, disk, 64);
    let special = |kind| Cause::For(Leaf::Special(disk, kind), None);
    for kind in [Kind::Plain, Kind::Discard, Kind::Other] {
        // No thread waits for it.
        let (cause, _) = ends(&[issued(20)], Some((64, 0)), kind);
        let is_of_disk = matches!(
            cause,
            Cause::For(Leaf::Disk(_) | Leaf::Completion(_) | Leaf::Special(..), _)
        );
        assert!(!is_of_disk, "{cause:?}");
        let again = [issued(20), nothing(50, kind), back, issued(60)];
        let ended = match kind {
            Kind::Plain => Cause::For(Leaf::Disk(Some(disk)), None),
            kind => special(kind),
        };
        assert_eq!(ends(&again, range, kind), (ended, 60));
        // A flush and a command are at the driver, too.
        let (sector, sectors, stage) = (NOWHERE, 0, Stage::Issued);
        let command = What::Request {
            stage,
            disk,
            sector,
            sectors,
        };
        let others = [
            at(20, 0, What::Flush { disk }),
            at(25, 0, command),
            issued(30),
            nothing(50, kind),
            back,
        ];
        let flush = (special(Kind::Flush), 20);
        assert_eq!(ends(&others, None, Kind::Flush), flush);
        let command = (special(Kind::Other), 25);
        assert_eq!(ends(&others, Some((NOWHERE, 0)), Kind::Other), command);
    }
}
