// SPDX-License-Identifier: GPL-2.0

use super::{off_guard, on, Numa};
use crate::{
    engine::{
        platform::Platform,
        profile::{row_of, Class, Counts, History, Span, CLASSES, ROWS, WINDOWS},
    },
    host::Machine,
};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn counts() -> Counts {
    off_guard(|| Counts::new::<Numa>().unwrap())
}

fn count(counts: &Counts, cpu: usize, class: Class, delay: u64) {
    on::<Numa, _>(cpu, |guard| counts.count::<Numa>(guard, class, delay));
}

/// Returns the number of operations of a class in a span.
fn number(history: &mut History, counts: &Counts, span: Span, now: u64, class: Class) -> u64 {
    let profile = history.profile(counts, span, now);
    (0..ROWS).map(|row| profile.count(class, row)).sum()
}

#[test]
fn a_row_holds_a_power_of_two() {
    assert_eq!(row_of(0), 0);
    for bit in 0..64usize {
        let power = 1u64 << bit;
        assert_eq!(row_of(power), bit.min(ROWS - 1), "2^{bit}");
        assert_eq!(row_of(power | (power - 1)), bit.min(ROWS - 1), "2^{bit}");
    }
    // The last but one row starts at 2^40 ns.
    assert_eq!(row_of((1 << 41) - 1), ROWS - 2);
}

#[test]
fn every_class_is_counted_on_every_cpu_in_its_own_column() {
    let counts = counts();
    let mut history = History::new(0).unwrap();
    for (number, class) in Class::ALL.into_iter().enumerate() {
        assert_eq!(Class::from_number(number as u64), Some(class));
        for cpu in 0..Numa::cpus() {
            for _ in 0..=number {
                count(&counts, cpu, class, 1 << (3 * number));
            }
        }
    }
    assert_eq!(Class::from_number(CLASSES as u64), None);
    let profile = history.profile(&counts, Span::SinceReset, 1);
    for (number, class) in Class::ALL.into_iter().enumerate() {
        for row in 0..ROWS {
            let expected = if row == 3 * number {
                4 * (number as u64 + 1)
            } else {
                0
            };
            assert_eq!(profile.count(class, row), expected, "{class:?} {row}");
        }
    }
}

#[test]
fn the_table_is_the_documented_one() {
    let counts = counts();
    let mut history = History::new(5).unwrap();
    count(&counts, 0, Class::Read, 0);
    count(&counts, 1, Class::BlockWrite, 1 << 20);
    count(&counts, 2, Class::Close, u64::MAX);
    let text = history.profile(&counts, Span::SinceReset, 7).to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2 + ROWS);
    assert_eq!(lines[0], "# begin=5 end=7");
    let head = "range s_read s_write s_rw s_sync s_open s_close b_read b_write";
    assert_eq!(
        lines[1].split_whitespace().collect::<Vec<_>>().join(" "),
        head
    );
    let labels: Vec<&str> = lines[2..].iter().map(|line| &line[..15]).collect();
    for (row, label) in [
        (0, "[1ns,2ns[      "),
        (9, "[512ns,1us[    "),
        (10, "[1us,2us[      "),
        (29, "[512ms,1s[     "),
        (38, "[256s,512s[    "),
        (40, "[1024s,2048s[  "),
        (41, "[2048s,inf[    "),
    ] {
        assert_eq!(labels[row], label);
    }
    let cells = |row: usize| {
        let cells = lines[2 + row][15..].split_whitespace();
        cells
            .map(|cell| cell.parse().unwrap())
            .collect::<Vec<u64>>()
    };
    assert_eq!(cells(0), [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(cells(20), [0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(cells(41), [0, 0, 0, 0, 0, 1, 0, 0]);
    assert!(lines[1..].iter().all(|line| line.len() == lines[1].len()));
}

#[test]
fn a_reset_ends_one_profile_and_starts_the_next() {
    let counts = counts();
    let mut history = History::new(0).unwrap();
    let sync = Class::Sync;
    assert_eq!(number(&mut history, &counts, Span::Previous, 1, sync), 0);
    for _ in 0..3 {
        count(&counts, 0, sync, 100);
    }
    history.reset(&counts, 10);
    count(&counts, 1, sync, 100);
    assert_eq!(number(&mut history, &counts, Span::Previous, 15, sync), 3);
    assert_eq!(number(&mut history, &counts, Span::SinceReset, 15, sync), 1);
    assert_eq!(
        history.profile(&counts, Span::Previous, 15).times(),
        (0, 10)
    );
    assert_eq!(
        history.profile(&counts, Span::SinceReset, 15).times(),
        (10, 15)
    );
    history.reset(&counts, 20);
    assert_eq!(number(&mut history, &counts, Span::Previous, 25, sync), 1);
    assert_eq!(number(&mut history, &counts, Span::SinceReset, 25, sync), 0);
    assert_eq!(
        history.profile(&counts, Span::Previous, 25).times(),
        (10, 20)
    );
    // A reset does not affect windows.
    assert_eq!(number(&mut history, &counts, Span::Window(0), 25, sync), 4);
}

/// One operation ends each second, and the worker runs as often as it requests. At any time, a
/// window has the operations that ended in it, and at most a twelfth more.
#[test]
fn windows_are_at_most_a_twelfth_longer_than_their_names() {
    let counts = counts();
    let mut history = History::new(0).unwrap();
    let mut due = 0;
    for second in 1..=3000 {
        let now = second * SECOND;
        count(&counts, 0, Class::Open, 1000);
        if now >= due {
            due = now + history.take_due(&counts, now);
        }
        for (at, minutes) in WINDOWS.into_iter().enumerate() {
            let length = minutes * 60;
            let (begin, end) = history.profile(&counts, Span::Window(at), now).times();
            let covered = (end - begin) / SECOND;
            let seen = number(&mut history, &counts, Span::Window(at), now, Class::Open);
            assert_eq!(end, now);
            assert_eq!(seen, covered, "one a second");
            assert!(covered >= length.min(second), "{minutes} min at {second}");
            assert!(
                covered <= length + length / 12,
                "{minutes} min at {second}: {covered}"
            );
        }
    }
}

#[test]
fn the_worker_runs_again_when_the_next_snapshot_is_due() {
    let counts = counts();
    let mut history = History::new(0).unwrap();
    assert_eq!(history.take_due(&counts, 0), 5 * SECOND);
    assert_eq!(history.take_due(&counts, 2 * SECOND), 3 * SECOND);
    assert_eq!(history.take_due(&counts, 5 * SECOND), 5 * SECOND);
    // The worker is late. The next snapshot is a whole step later, so that the stored snapshots
    // still cover the whole window.
    assert_eq!(history.take_due(&counts, 13 * SECOND), 5 * SECOND);
}

#[test]
fn after_a_long_pause_a_window_shows_its_real_length() {
    let counts = counts();
    let mut history = History::new(0).unwrap();
    for step in 1..100 {
        history.take_due(&counts, step * 5 * SECOND);
    }
    count(&counts, 0, Class::Open, 1);
    let now = 5000 * SECOND;
    let (begin, end) = history.profile(&counts, Span::Window(0), now).times();
    assert_eq!((begin, end), (495 * SECOND, now));
    assert_eq!(
        number(&mut history, &counts, Span::Window(0), now, Class::Open),
        1
    );
}

#[test]
fn concurrent_reading_and_resetting_lose_no_count() {
    const EACH: u64 = 200_000;
    let counts = counts();
    let machine = Machine::new();
    let mut seen = 0;
    let mut history = History::new(0).unwrap();
    std::thread::scope(|scope| {
        let (counts, machine) = (&counts, &machine);
        let threads: Vec<_> = (0..Numa::cpus())
            .map(|cpu| {
                scope.spawn(move || {
                    let _seat = machine.pin(cpu);
                    for number in 0..EACH {
                        let guard = Numa::guard();
                        counts.count::<Numa>(&guard, Class::Write, number % 4096);
                    }
                })
            })
            .collect();
        let mut now = 0;
        let mut last = 0;
        while threads.iter().any(|thread| !thread.is_finished()) {
            now += 1;
            let running = number(&mut history, counts, Span::SinceReset, now, Class::Write);
            assert!(running >= last, "a profile only grows");
            last = running;
            if now % 3 == 0 {
                history.reset(counts, now);
                let ended = number(&mut history, counts, Span::Previous, now, Class::Write);
                assert!(ended >= last, "what was seen is in what ended");
                seen += ended;
                last = 0;
            }
        }
    });
    seen += number(
        &mut history,
        &counts,
        Span::SinceReset,
        u64::MAX,
        Class::Write,
    );
    assert_eq!(seen, EACH * Numa::cpus() as u64);
}

#[test]
fn without_memory_there_is_no_profile() {
    use crate::sys::memory::with_budget;
    assert!(with_budget(0, || off_guard(
        || Counts::new::<Numa>().is_err()
    )));
    assert!(with_budget(0, || History::new(0).is_err()));
}

proptest! {
    #[test]
    fn any_delay_is_between_the_bounds_of_its_row(delay: u64, shift in 0u32..64) {
        let delay = delay >> shift;
        let row = row_of(delay);
        prop_assert!(row < ROWS);
        prop_assert!(row == 0 || delay >= 1 << row);
        prop_assert!(row == ROWS - 1 || delay < 1 << (row + 1));
    }
}
