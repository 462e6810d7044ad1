// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The memory of a model, as counted by the allocator. This test has its own process, since other tests would also be
//! counted.

use lt_model::{Builder, Event, Kept, Sleep, SwitchedOut, ThreadId, Wanted, What};
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const THREADS: i32 = 200;
const TURNS: u64 = 40_000;

/// Threads in turn: each makes system calls, is interrupted, wakes the next one and sleeps. Nine events per turn.
fn turn(builder: &mut Builder, number: u64) {
    let (prev, next) = (
        number as i32 % THREADS + 1,
        (number + 1) as i32 % THREADS + 1,
    );
    let names: Vec<String> = [prev, next]
        .iter()
        .map(|tid| format!("thread-{tid}"))
        .collect();
    let what = [
        What::Call { name: b"write" },
        What::Irq {
            number: 24,
            name: b"disk",
        },
        What::IrqEnd { number: 24 },
        What::Return,
        What::Call { name: b"read" },
        What::Waking {
            tid: next,
            name: names[1].as_bytes(),
            target: 0,
        },
        What::Timer { function: None },
        What::TimerEnd,
        What::Switch {
            prev,
            prev_name: names[0].as_bytes(),
            out: SwitchedOut::Blocked(Sleep::Interruptible),
            next,
            next_name: names[1].as_bytes(),
            prev_prio: None,
            next_prio: None,
        },
    ];
    for (i, what) in (0..).zip(what) {
        builder.feed(&Event {
            time: number * 100 + i,
            cpu: 0,
            what,
        });
    }
}

fn fed(mut builder: Builder) -> (Builder, usize, usize) {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    for number in 0..TURNS {
        turn(&mut builder, number);
        if number % 1000 == 0 {
            // The reported size is an upper bound.
            assert!(HEAP.current_usage() - before <= builder.bytes());
        }
    }
    let (now, peak) = (HEAP.current_usage() - before, HEAP.peak_usage() - before);
    assert!(
        now <= builder.bytes() && builder.bytes() < 3 * now / 2 + 200_000,
        "{now} {}",
        builder.bytes()
    );
    (builder, now, peak)
}

#[test]
fn the_memory_of_a_model_is_known_small_and_limited() {
    let (whole, took, _) = fed(Builder::new());
    let events = TURNS * 9;
    // Nearly every event starts an interval and a stretch. In a trace, an event takes about 50 bytes.
    assert!(took as u64 / events <= 18, "{took} for {events} events");
    assert_eq!(whole.kept(), Kept::All);
    let whole = whole.finish();

    // Half of the size suffices for the waits between threads. While a vector grows, it may exist twice.
    let limit = took / 2;
    let mut builder = Builder::new();
    builder.limit(limit);
    let (waits, _, peak) = fed(builder);
    assert_eq!(waits.kept(), Kept::Waits);
    assert!(waits.bytes() <= limit);
    assert!(peak <= limit + limit / 2, "{peak} {limit}");
    drop(waits);

    // The wanted parts of one thread are small, and equal to the parts of the complete model.
    let (from, to) = (TURNS * 50, TURNS * 50 + 100_000);
    let mut wanted = Wanted::default();
    wanted.thread(ThreadId(7), from, to);
    let mut builder = Builder::new();
    builder.limit(limit / 8);
    builder.keep_only(wanted);
    let (part, ..) = fed(builder);
    assert_eq!(part.kept(), Kept::All);
    let part = part.finish();
    let of = |m: &lt_model::Model| {
        let thread = m.thread(ThreadId(7)).unwrap();
        let told = thread.between(from, to).map(|i| (i.begin, i.end, i.state));
        let wakers = thread
            .between(from, to)
            .map(|i| i.waker.and_then(|w| m.waker(w)));
        (told.collect::<Vec<_>>(), wakers.collect::<Vec<_>>())
    };
    assert_eq!(of(&part), of(&whole));
    assert!(of(&part).0.len() > 20);

    // With a limit too small for the waits, `Kept::Nothing` has the size needed, which suffices.
    let mut builder = Builder::new();
    builder.limit(200_000);
    let (nothing, now, _) = fed_only_counted(builder);
    let Kept::Nothing(bytes) = nothing.kept() else {
        panic!("{:?}", nothing.kept());
    };
    assert!(now <= 300_000, "{now}");
    let mut builder = Builder::new();
    builder.limit(bytes);
    assert_eq!(fed(builder).0.kept(), Kept::Waits);
}

fn fed_only_counted(mut builder: Builder) -> (Builder, usize, usize) {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    (0..TURNS).for_each(|number| turn(&mut builder, number));
    (
        builder,
        HEAP.current_usage() - before,
        HEAP.peak_usage() - before,
    )
}
