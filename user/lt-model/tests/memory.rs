// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The memory of a model, as counted by the allocator. There is only one test here, in its own process, since other
//! tests would also be counted.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

use lt_model::{
    Access, Builder, CallFile, Event, FileEvent, FilePath, Kept, Sleep, SwitchedOut, ThreadId,
    Wanted, What,
};
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
    threads_in_turn();
    short_threads_with_files();
}

fn threads_in_turn() {
    let (whole, took, _) = fed(Builder::new());
    let events = TURNS * 9;
    // Nearly every event starts an interval and a stretch. In a trace, an event takes about 50 bytes.
    assert!(took as u64 / events <= 15, "{took} for {events} events");
    assert_eq!(whole.kept(), Kept::All);
    let whole = whole.finish();

    // Three fifths of the size suffice for the waits between threads. While a vector grows, it may exist twice.
    let limit = took / 5 * 3;
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

/// Time between two turns of [`Short`], ns: the upper 32 bits of the time change in every second turn.
const APART: u64 = 1 << 31;

/// The events of a turn, with calls that work on files.
struct Short<'a> {
    builder: &'a mut Builder,
    time: u64,
}

impl Short<'_> {
    fn feed(&mut self, what: What<'_>) {
        self.time += 1;
        let (time, cpu) = (self.time, 0);
        self.builder.feed(&Event { time, cpu, what });
    }

    fn feed_file(&mut self, event: &FileEvent<'_>) {
        self.builder.feed_file(self.time, 0, event);
    }

    fn begins(&mut self, call: &[u8], access: Access<'_>) {
        self.feed(What::Call { name: call });
        self.feed_file(&FileEvent::Call { call, access });
    }

    fn ends(&mut self, call: &[u8], result: i64) {
        self.feed(What::Return);
        let (call, result) = (Some(call), Some(result));
        self.feed_file(&FileEvent::Return { call, result });
    }

    /// The current thread opens, reads and closes a file. Returns the start and the end of the call of `read`.
    fn reads(&mut self, file: &str) -> (u64, u64) {
        let text = file.as_bytes();
        let path = FilePath {
            text,
            directory: None,
        };
        let closes = Some(true);
        self.begins(b"openat", Access::Open { path, closes });
        self.ends(b"openat", 3);
        self.begins(b"read", Access::On(3));
        let begin = self.time;
        self.ends(b"read", 1);
        let end = self.time;
        self.begins(b"close", Access::Close(3));
        self.ends(b"close", 0);
        (begin, end)
    }

    fn switch(&mut self, prev: i32, out: SwitchedOut, next: i32) {
        self.feed(What::Switch {
            prev,
            prev_name: b"",
            out,
            next,
            next_name: b"",
            prev_prio: None,
            next_prio: None,
        });
    }

    /// One of [`THREADS`] threads reads a file, and creates a process, which reads the file, wakes the next thread and
    /// exits. Returns the start and the end of the second call of `read`.
    fn turn(&mut self, number: u64, file: &str) -> (u64, u64) {
        let (prev, next) = (
            number as i32 % THREADS + 1,
            (number + 1) as i32 % THREADS + 1,
        );
        let child = child(number);
        self.reads(file);
        self.begins(b"clone", Access::Clone(Some(0)));
        let name = b"short";
        self.feed(What::Fork { child, name });
        let is_thread = Some(false);
        self.feed_file(&FileEvent::Fork { child, is_thread });
        self.ends(b"clone", child.into());
        self.switch(prev, SwitchedOut::Blocked(Sleep::Interruptible), child);
        let read = self.reads(file);
        self.feed(What::Waking {
            tid: next,
            name: b"",
            target: 0,
        });
        self.feed(What::Exit);
        self.switch(child, SwitchedOut::Dead, next);
        read
    }
}

/// The number of the process that is created in this turn.
fn child(number: u64) -> i32 {
    THREADS + 1 + number as i32
}

fn short_threads_with_files() {
    let mut builder = Builder::new();
    builder.has_all_calls();
    let before = HEAP.current_usage();
    let mut reads = Vec::with_capacity(TURNS as usize);
    let of_reads = HEAP.current_usage() - before;
    for number in 0..TURNS {
        let mut short = Short {
            builder: &mut builder,
            time: number * APART,
        };
        let file = format!("/var/lib/file-{}", number % 100);
        reads.push(short.turn(number, &file));
        drop(file);
        if number % 1000 == 0 {
            let now = HEAP.current_usage() - before - of_reads;
            let counted = builder.bytes();
            assert!(now <= counted, "{now} {counted} in turn {number}");
        }
    }
    // If the files were not found, the calls would take no memory, and the test would prove nothing.
    let model = builder.finish();
    for number in [0, TURNS / 2, TURNS - 1] {
        let thread = model.by_tid(child(number)).next().unwrap();
        let (begin, end) = reads[number as usize];
        let file = model.file(thread, begin, end).and_then(CallFile::name);
        let expected = format!("/var/lib/file-{}", number % 100);
        assert_eq!(file.map(|file| model.file_name(file)), Some(&expected[..]));
    }
}
