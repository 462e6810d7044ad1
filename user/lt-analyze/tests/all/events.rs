// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Paths from events: who is named, and who had the processor.

use lt_analyze::{Cause, Leaf, instead, path};
use lt_model::{Builder, Event, Model, Sleep, SwitchedOut, ThreadId, Use, What};

const S: SwitchedOut = SwitchedOut::Blocked(Sleep::Interruptible);
const R: SwitchedOut = SwitchedOut::Preempted;

fn switch(time: u64, cpu: u32, prev: i32, out: SwitchedOut, next: i32) -> Event<'static> {
    let what = What::Switch {
        prev,
        prev_name: b"",
        out,
        next,
        next_name: b"",
    };
    Event { time, cpu, what }
}

fn waking(time: u64, cpu: u32, tid: i32, target: u32) -> Event<'static> {
    Event {
        time,
        cpu,
        what: What::Waking {
            tid,
            name: b"",
            target,
        },
    }
}

fn at(time: u64, cpu: u32, what: What<'static>) -> Event<'static> {
    Event { time, cpu, what }
}

fn model(events: &[Event<'_>]) -> Model {
    let mut builder = Builder::new();
    events.iter().for_each(|e| builder.feed(e));
    builder.finish()
}

fn of(m: &Model, tid: i32) -> ThreadId {
    m.by_tid(tid).next().unwrap()
}

#[test]
fn a_chain_ends_at_a_device() {
    let call = |time, name| at(time, 0, What::Call { name });
    let m = model(&[
        switch(0, 0, 0, R, 7),
        call(1, b"fsync"),
        // 7 waits for 8, which waits for the disk.
        switch(3, 0, 7, S, 8),
        switch(5, 0, 8, S, 0),
        at(
            9,
            0,
            What::Irq {
                number: 24,
                name: b"disk",
            },
        ),
        waking(10, 0, 8, 0),
        at(11, 0, What::IrqEnd { number: 24 }),
        switch(12, 0, 0, R, 8),
        waking(15, 0, 7, 0),
        switch(18, 0, 8, S, 7),
        switch(20, 0, 7, S, 0),
    ]);
    let told: Vec<_> = path(&m, of(&m, 7), 0, 20)
        .iter()
        .map(|p| (m.threads[p.thread.0 as usize].tid, p.end, p.depth))
        .collect();
    assert_eq!(
        told,
        [
            (7, 1, 0),
            (7, 3, 0),
            (8, 5, 1),
            (8, 10, 1),
            (8, 12, 1),
            (8, 15, 1),
            (7, 18, 0),
            (7, 20, 0)
        ]
    );
    let pieces = path(&m, of(&m, 7), 0, 20);
    assert!(
        matches!(pieces[3].cause, Cause::For(Leaf::Irq(24, name), _) if m.names.text(name) == "disk")
    );
    assert!(matches!(pieces[1].cause, Cause::Running(Some(call)) if m.names.text(call) == "fsync"));
    // Asked for a part of the wait, it tells of that part.
    let part = path(&m, of(&m, 7), 8, 13);
    let ends: Vec<_> = part.iter().map(|p| (p.begin, p.end)).collect();
    assert_eq!(ends, [(8, 10), (10, 12), (12, 13)]);
}

#[test]
fn who_had_the_processor_is_named() {
    let m = model(&[
        switch(0, 1, 7, S, 8),
        waking(2, 0, 7, 1),
        switch(3, 1, 8, R, 9),
        switch(9, 1, 9, S, 7),
        switch(12, 1, 7, R, 8),
    ]);
    let pieces = path(&m, of(&m, 7), 0, 12);
    let waits = pieces.iter().find(|p| p.cause == Cause::Waiting).unwrap();
    assert_eq!((waits.begin, waits.end, waits.cpu), (2, 9, Some(1)));
    assert_eq!(instead(&m, waits), Some((Use::Thread(of(&m, 9)), 6)));
    assert_eq!(instead(&m, &pieces[0]), None);
}

#[test]
fn before_a_thread_was_made_its_maker_had_to_make_it() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        // 7 waits for a thread that 8 makes at 4.
        switch(1, 0, 7, S, 0),
        at(
            4,
            1,
            What::Fork {
                child: 9,
                name: b"",
            },
        ),
        switch(5, 1, 8, S, 9),
        waking(8, 1, 7, 0),
        switch(9, 0, 0, R, 7),
        switch(10, 0, 7, S, 0),
    ]);
    let told: Vec<_> = path(&m, of(&m, 7), 0, 10)
        .iter()
        .map(|p| {
            (
                m.threads[p.thread.0 as usize].tid,
                p.end,
                p.cause == Cause::Running(None),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (7, 1, true),
            (8, 4, true),
            (9, 5, false),
            (9, 8, true),
            (7, 9, false),
            (7, 10, true)
        ]
    );
}
