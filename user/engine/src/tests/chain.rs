// SPDX-License-Identifier: GPL-2.0

//! The chains of the tracker `tree`: their steps always add up.

use crate::chain::{
    begin, cookie, each, note, of_preempted, of_split, place_of_name, settle, split, state, task,
    wait::LONGEST_WAIT, waker_of, Chain, Counts, Kind, Look, Origin, Rivals, Shown, Spent, State,
    Step, Words, COOKIE_MAX, LONGEST, MERGED, NOTES, PLACE, PLACES, SLEPT, STEPS, WAKER, WOKEN,
    WORDS,
};
use proptest::prelude::*;

/// An operation on a chain.
#[derive(Clone, Debug)]
enum Act {
    /// A step after this time; negative if the clock is behind.
    Step(i64, u32),
    Named(i64, [u64; 2]),
    /// A wait of this length for a CPU, with the activity of the CPU, and possibly a name.
    Waited(i64, Spent, Option<[u64; 2]>),
    /// The chain becomes the chain of a timer that was due after this many thousandths of the
    /// chain's time.
    Cut(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let time = prop_oneof![
        8 => -1000i64..1_000_000,
        1 => 0i64..1 << 50, // longer than there is room for in a step
        1 => Just(0),
    ];
    let name = any::<[u8; 15]>().prop_map(|bytes| {
        let mut name = [0; 16];
        name[..15].copy_from_slice(&bytes);
        // An empty name looks like no name.
        name[0] |= 1;
        let number = u128::from_le_bytes(name);
        [number as u64, (number >> 64) as u64]
    });
    prop_oneof![
        6 => (time.clone(), any::<u32>()).prop_map(|(time, tid)| Act::Step(time, tid)),
        3 => (time.clone(), name.clone()).prop_map(|(time, name)| Act::Named(time, name)),
        3 => (time, spent(), prop::option::of(name))
            .prop_map(|(time, spent, name)| Act::Waited(time, spent, name)),
        1 => (0u64..=1000).prop_map(Act::Cut),
    ]
}

/// Generates the activity of a CPU during a wait; each time is below 2^20 ns.
fn spent() -> impl Strategy<Value = Spent> {
    (0..1u64 << 20, 0..1u64 << 20, 0..1u64 << 20).prop_map(|(irq, softirq, idle)| Spent {
        irq,
        softirq,
        idle,
    })
}

/// Returns a reader's view of a chain in the words of an alert.
fn shown(chain: &Chain) -> Vec<Shown> {
    let (head, steps) = split(chain, 0);
    let (more, counts, ..) = of_split(&head);
    let mut seen = Vec::new();
    each(counts, more, steps, |one| seen.push(one));
    seen
}

fn total(chain: &Chain) -> u64 {
    let time = |one: &Shown| match one {
        Shown::Step(_, time, _) | Shown::More(_, time) => *time,
        Shown::Parts(..) | Shown::Rivals(_) => 0,
    };
    shown(chain).iter().map(time).sum()
}

const ORIGIN: Step = Step {
    kind: Kind::Irq,
    cpu: 8191,
    subject: 27,
};

fn begun(start: u64) -> Chain {
    let mut chain = [0; WORDS];
    chain.begin(start, Origin::Irq);
    chain.push(start, ORIGIN);
    chain
}

proptest! {
    #[test]
    fn steps_add_up_to_the_delay(acts in prop::collection::vec(act(), 0..60)) {
        let mut start = 1_000_000;
        let mut chain = begun(start);
        let mut taken = 1u64;
        for act in acts {
            let last = chain.last();
            let step = |subject: u32| Step { kind: Kind::Switch, cpu: 3, subject: subject.into() };
            match act {
                Act::Step(time, tid) => chain.push(last.saturating_add_signed(time), step(tid)),
                Act::Named(time, name) => {
                    chain.push_named(last.saturating_add_signed(time), step(7), name);
                    // Steps left out may be shown after it.
                    let seen = shown(&chain).into_iter().rev().find_map(|one| match one {
                        Shown::Step(_, _, name) => Some(name),
                        Shown::More(..) | Shown::Parts(..) | Shown::Rivals(_) => None,
                    });
                    prop_assert_eq!(seen, Some(name));
                }
                Act::Waited(time, spent, name) => {
                    const NONE: Spent = Spent { irq: 0, softirq: 0, idle: 0 };
                    let step = |kind| Step { kind, cpu: 3, subject: 9 };
                    chain.push(last, step(Kind::Waking));
                    chain.push_wait(3, NONE);
                    prop_assert!(chain.is_waiting());
                    prop_assert_eq!(total(&chain), last - start);
                    chain.push_waited(last.saturating_add_signed(time), step(Kind::Switch), name, spent, |_, _| Rivals::default());
                    prop_assert!(!chain.is_waiting());
                    let took = chain.last() - last;
                    let mut seen = shown(&chain).into_iter().rev().filter(|one| !matches!(one, Shown::More(..)));
                    if took <= LONGEST_WAIT {
                        let parts = NONE.until(spent, took).unwrap();
                        prop_assert_eq!(seen.next(), Some(Shown::Parts(parts, took)));
                        prop_assert_eq!(parts.irq + parts.softirq + parts.idle + parts.tasks(took), took);
                    }
                    let Some(Shown::Step(seen, _, seen_name)) = seen.next() else {
                        panic!("no switch");
                    };
                    prop_assert_eq!((seen, seen_name), (step(Kind::Switch), name.unwrap_or([0; 2])));
                    taken += 1;
                }
                Act::Cut(part) => {
                    let since = start + (last - start) / 1000 * part;
                    let mut cut = begun(since);
                    cut.append(start, &chain, since);
                    prop_assert!(cut.last() <= last.max(since));
                    (chain, start) = (cut, since);
                }
            }
            taken += 1;
            let counts = chain.counts();
            prop_assert!(counts.places() <= PLACES);
            prop_assert!(split(&chain, 0).1.len() <= STEPS);
            prop_assert!(counts.more() < taken);
            prop_assert_eq!(total(&chain), chain.last() - start);
            let (mut times, mut steps) = (0, 0);
            chain.each_time(chain.last() + 5, kind_of_step, |_, time| {
                times += time;
                steps += 1;
            });
            let seen = shown(&chain);
            let seen: Vec<_> = seen.into_iter().filter(|one| !matches!(one, Shown::Parts(..))).collect();
            let is_whole = !seen.iter().any(|one| matches!(one, Shown::More(..)));
            if is_whole {
                prop_assert_eq!((times, steps), (total(&chain) + 5, seen.len()));
            } else {
                prop_assert!(times <= total(&chain) + 5 && steps <= seen.len());
            }
        }
    }
}

/// Returns the kind of step with this number.
fn kind_of_step(number: u64) -> Option<u64> {
    (number <= Kind::LAST as u64).then_some(number)
}

/// Generates the steps after the first step of a chain: their times, and the names of some.
fn more_steps() -> impl Strategy<Value = Vec<(u64, Option<[u64; 2]>)>> {
    let time = prop_oneof![8 => 0..1_000_000u64, 1 => 0..4 * LONGEST];
    let name = prop::option::of((1..1u64 << 56, 0..1u64 << 56).prop_map(|(low, high)| [low, high]));
    prop::collection::vec((time, name), 0..PLACES)
}

/// Returns a chain with these steps; a step without a name is a preemption.
fn grown(start: u64, steps: &[(u64, Option<[u64; 2]>)]) -> Chain {
    let mut chain = begun(start);
    for &(time, name) in steps {
        let (now, cpu, subject) = (chain.last() + time, 3, 9);
        let step = |kind| Step { kind, cpu, subject };
        match name {
            Some(name) => chain.push_named(now, step(Kind::Switch), name),
            None => chain.push_and(now, step(Kind::Preempted), Counts::add_preempted),
        }
    }
    chain
}

/// The kinds that the tests below use.
const KINDS: [Kind; 6] = [
    Kind::Irq,
    Kind::Raise,
    Kind::Softirq,
    Kind::Waking,
    Kind::Switch,
    Kind::Preempted,
];

/// Returns the kinds and times of a chain that ends at `end`.
fn times(chain: &Chain, end: u64) -> Vec<(Kind, u64)> {
    let mut seen = Vec::new();
    chain.each_time(end, kind_of_step, |number, time| {
        let kind = KINDS.into_iter().find(|&kind| kind as u64 == number);
        seen.push((kind.expect("a kind"), time));
    });
    seen
}

#[test]
fn the_time_of_a_step_lasts_until_the_next_one() {
    let mut chain = begun(100);
    let step = |kind| Step {
        kind,
        cpu: 1,
        subject: 3,
    };
    chain.push(150, step(Kind::Raise));
    chain.push(170, step(Kind::Softirq));
    chain.push(200, step(Kind::Waking));
    let all = [
        (Kind::Irq, 50),
        (Kind::Raise, 20),
        (Kind::Softirq, 30),
        (Kind::Waking, 100),
    ];
    assert_eq!(times(&chain, 300), all);
    // A name is not a step.
    chain.push_named(300, step(Kind::Switch), [1, 2]);
    assert_eq!(
        times(&chain, 307)[3..],
        [(Kind::Waking, 100), (Kind::Switch, 7)]
    );
    // Steps left out, and the step before them, have no time; the steps after them have one.
    for at in 1..20 {
        chain.push(300 + at, step(Kind::Preempted));
    }
    let counts = chain.counts();
    assert!(counts.more() > 0);
    let seen = times(&chain, 1_319);
    assert_eq!(seen[..3], all[..3]);
    assert_eq!(seen.last(), Some(&(Kind::Preempted, 1_000)));
    assert!(seen[3..].iter().all(|(kind, _)| *kind == Kind::Preempted));
    assert_eq!(seen.len(), counts.places() - 1);
}

#[test]
fn the_first_and_the_last_steps_stay() {
    let mut chain = begun(100);
    for tid in 1..=30u32 {
        let step = Step {
            kind: Kind::Waking,
            cpu: 0,
            subject: tid.into(),
        };
        chain.push_named(
            100 + u64::from(tid) * 10,
            step,
            [u64::from(tid) << 8 | 1, 0],
        );
    }
    let seen: Vec<_> = shown(&chain)
        .into_iter()
        .map(|one| match one {
            Shown::Step(step, time, _) => (step.subject, time),
            Shown::More(steps, time) => (steps + 1000, time),
            Shown::Parts(..) | Shown::Rivals(_) => unreachable!(),
        })
        .collect();
    let last: Vec<_> = (27..=30).map(|tid| (tid, 10)).collect();
    // The number of the interrupt, and the two tasks whose names fit into the first places.
    let mut expected = vec![(27, 0), (1, 10), (2, 10), (1024, 10)];
    expected.extend(last);
    // The time since the first step left out.
    expected[4].1 = 240;
    assert_eq!(seen, expected);
    assert_eq!(chain.counts().more(), 24);
}

/// Returns a chain of which three steps are left out. The first of these started 2 ms after the
/// step before it, and together they took 7 ms.
fn with_more(start: u64) -> Chain {
    let mut chain = begun(start);
    let switch = |subject| Step {
        kind: Kind::Switch,
        cpu: 1,
        subject,
    };
    chain.push(start + 10, switch(1));
    chain.push(start + 20, switch(2));
    chain.push(start + 30, switch(3));
    chain.push(start + 2_000_030, switch(4));
    chain.push(start + 5_000_030, switch(5));
    chain.push(start + 9_000_030, switch(6));
    for nth in 0..10 {
        chain.push(start + 9_000_031 + nth, switch(7 + nth));
    }
    chain
}

#[test]
fn steps_left_out_have_a_time_of_their_own() {
    let chain = with_more(100);
    let seen: Vec<_> = shown(&chain)
        .into_iter()
        .map(|one| match one {
            Shown::Step(step, time, _) => (step.subject, time),
            Shown::More(steps, time) => (1000 + steps, time),
            Shown::Parts(..) | Shown::Rivals(_) => unreachable!(),
        })
        .collect();
    // Task 3 ran for 2 ms, until the first of the three steps left out. These lasted for 7 ms.
    assert_eq!(
        seen[..6],
        [
            (27, 0),
            (1, 10),
            (2, 10),
            (3, 10),
            (1003, 2_000_000),
            (7, 7_000_001)
        ]
    );
    assert_eq!(total(&chain), chain.last() - 100);
    // A timer was due before the chain started. The timer's chain has two steps of its own, and so
    // leaves out two more steps of the other chain: 3 and 7.
    let due = Step {
        kind: Kind::Due,
        cpu: 1,
        subject: 77,
    };
    let expire = (
        9_000_200,
        Step {
            kind: Kind::Expire,
            cpu: 1,
            subject: 77,
        },
    );
    let mut around: Chain = [0; WORDS];
    around.begin_around(Origin::Timer, (50, due), (100, &chain), expire);
    let seen: Vec<_> = shown(&around)
        .into_iter()
        .map(|one| match one {
            Shown::Step(step, time, _) => (step.subject, time),
            Shown::More(steps, time) => (1000 + steps, time),
            Shown::Parts(..) | Shown::Rivals(_) => unreachable!(),
        })
        .collect();
    assert_eq!(seen[..5], [(77, 0), (27, 50), (1, 10), (2, 10), (1005, 10)]);
    assert_eq!(seen[5], (8, 9_000_002));
    assert_eq!(total(&around), around.last() - 50);
}

proptest! {
    /// A cookie of any bytes may follow any chain, and the end of the work follows the cookie.
    #[test]
    fn a_cookie_is_read_as_written(
        bytes in prop::collection::vec(any::<u8>(), 1..=COOKIE_MAX),
        steps in 0..40u64,
        is_named: bool,
    ) {
        let mut chain = begun(100);
        let step = |kind, subject| Step { kind, cpu: 1, subject };
        for at in 1..=steps {
            if is_named {
                chain.push_named(100 + at, step(Kind::Switch, at), [at, at]);
            } else {
                chain.push(100 + at, step(Kind::Waking, at));
            }
        }
        let mut room = [0; COOKIE_MAX];
        prop_assert_eq!(cookie(split(&chain, 0).1, &mut room), b"");
        chain.push_cookie(200, step(Kind::Begin, begin(77, bytes.len())), &bytes);
        chain.push(300, step(Kind::Done, 78));
        prop_assert_eq!(cookie(split(&chain, 0).1, &mut room), &bytes[..]);
        prop_assert_eq!(total(&chain), 200);
        let seen = shown(&chain);
        let last: Vec<_> = seen.iter().rev().filter_map(|one| match one {
            Shown::Step(step, time, _) => Some((step.kind, *time)),
            Shown::More(..) | Shown::Parts(..) | Shown::Rivals(_) => None,
        }).take(2).collect();
        prop_assert_eq!(last[0], (Kind::Done, 100));
        prop_assert_eq!(last[1].0, Kind::Begin);
        prop_assert_eq!(seen[0], Shown::Step(ORIGIN, 0, [0; 2]));
    }
}

proptest! {
    /// The steps with which a chain starts equal pushed steps, even with a clock that is behind, and with times that
    /// are too long for a step.
    #[test]
    fn steps_at_the_start_equal_pushed_steps(
        start in 0..1u64 << 40,
        times in prop::array::uniform2(prop_oneof![0..1000u64, 0..4 * LONGEST]),
        behind in prop::array::uniform2(0..2000u64),
    ) {
        let step = |kind, subject| Step { kind, cpu: 8191, subject };
        let second = (start + times[0]).saturating_sub(behind[0]);
        let third = (second + times[1]).saturating_sub(behind[1]);
        let steps = [
            (start, step(Kind::Due, 1)),
            (second, step(Kind::Vector, u64::MAX)),
            (third, step(Kind::Expire, 1)),
        ];
        let mut at_once: Chain = [!0; WORDS];
        at_once.begin_with(Origin::Timer, steps);
        let mut pushed: Chain = [0; WORDS];
        pushed.begin(start, Origin::Timer);
        for (now, step) in steps {
            pushed.push(now, step);
        }
        prop_assert_eq!(shown(&at_once), shown(&pushed));
        prop_assert_eq!(at_once.last(), pushed.last());
        prop_assert_eq!(at_once.counts().places(), 3);
        prop_assert_eq!(at_once.counts().origin(), Origin::Timer);
        prop_assert_eq!(at_once.get(PLACE), 0);
    }
}

proptest! {
    /// A chain around another chain equals a chain that is built step by step, for any inner chain.
    #[test]
    fn a_chain_around_another_equals_one_built_step_by_step(
        start in 0..1u64 << 40,
        steps in more_steps(),
        earlier in prop_oneof![Just(0), 0..1000u64, 0..4 * LONGEST],
        is_earlier: bool,
        last in prop_oneof![0..1000u64, 0..4 * LONGEST],
    ) {
        let step = |kind, subject| Step { kind, cpu: 8191, subject };
        let base = grown(start, &steps);
        let since = if is_earlier { start.saturating_sub(earlier) } else { start + earlier };
        let (first, last) = ((since, step(Kind::Due, 1)), (base.last() + last, step(Kind::Expire, u64::MAX)));
        let mut around: Chain = [!0; WORDS];
        around.begin_around(Origin::Timer, first, (start, &base), last);
        let mut pushed: Chain = [0; WORDS];
        pushed.begin(since, Origin::Timer);
        pushed.push(first.0, first.1);
        pushed.append(start, &base, since);
        pushed.push(last.0, last.1);
        prop_assert_eq!(shown(&around), shown(&pushed));
        prop_assert_eq!(around.last(), pushed.last());
        prop_assert_eq!(around.counts(), pushed.counts());
        prop_assert_eq!(around.get(PLACE), 0);
        if since <= start {
            prop_assert_eq!(around.counts().preempted(), base.counts().preempted());
        }
    }

    /// Filling places at once has the same result as filling them step by step, even with a clock
    /// that is behind, or with times that are too long for a step. If other steps are left out to
    /// make room, at least the total and the last time are the same.
    #[test]
    fn a_row_equals_its_steps(
        start in 0..1u64 << 40,
        steps in more_steps(),
        times in prop::array::uniform3(prop_oneof![0..1000u64, 0..4 * LONGEST]),
        behind in prop::array::uniform3(0..2000u64),
    ) {
        let mut one_by_one = grown(start, &steps);
        let (mut at_once, mut now) = (one_by_one, one_by_one.last());
        let step = |kind| Step { kind, cpu: 3, subject: 7 };
        let name = [u64::from_le_bytes(*b"ktimers/"), u64::from_le_bytes(*b"0\0\0\0\0\0\0\0")];
        let mut at = [0; 3];
        for (nth, at) in at.iter_mut().enumerate() {
            now = (now + times[nth]).saturating_sub(behind[nth]);
            *at = now;
        }
        one_by_one.push(at[0], step(Kind::Waking));
        one_by_one.push_named(at[1], step(Kind::Switch), name);
        one_by_one.push(at[2], step(Kind::Softirq));
        let mut row = at_once.row::<4>();
        row.step(at[0], step(Kind::Waking));
        row.step(at[1], step(Kind::Switch));
        row.place(place_of_name(name));
        row.step(at[2], step(Kind::Softirq));
        row.end();
        prop_assert_eq!(total(&at_once), total(&one_by_one));
        prop_assert_eq!(at_once.last(), one_by_one.last());
        if one_by_one.counts().more() == 0 {
            prop_assert_eq!(shown(&at_once), shown(&one_by_one));
            prop_assert_eq!(at_once.counts(), one_by_one.counts());
        }
    }
}

#[test]
fn steps_before_a_timer_was_due_are_not_on_its_chain() {
    let step = |kind, subject| Step {
        kind,
        cpu: 0,
        subject,
    };
    let mut base = begun(100);
    base.push(200, step(Kind::Raise, 8));
    base.push(300, step(Kind::Softirq, 8));
    let mut chain: Chain = [0; WORDS];
    chain.begin(250, Origin::Timer);
    chain.push(250, step(Kind::Due, 1));
    chain.append(100, &base, 250);
    chain.push(400, step(Kind::Expire, 1));
    let seen = shown(&chain);
    let expected = [
        Shown::Step(step(Kind::Due, 1), 0, [0; 2]),
        Shown::Step(step(Kind::Softirq, 8), 50, [0; 2]),
        Shown::Step(step(Kind::Expire, 1), 100, [0; 2]),
    ];
    assert_eq!(seen, expected);
    assert_eq!(chain.counts().origin(), Origin::Timer);
}

/// A work item waits for a worker that was woken earlier for another item, or for this one.
#[test]
fn a_work_item_has_the_steps_of_its_worker_since_it_was_queued() {
    let step = |kind, subject| Step {
        kind,
        cpu: 0,
        subject,
    };
    let mut worker: Chain = [0; WORDS];
    worker.begin(100, Origin::Timer);
    worker.push(100, step(Kind::Due, 1));
    worker.push(200, step(Kind::Waking, 7));
    worker.push(300, step(Kind::Softirq, 8));
    worker.push(400, step(Kind::Waking, 9));
    worker.push_named(500, step(Kind::Switch, 9), [1, 2]);
    worker.push(600, step(Kind::Preempted, 5));
    let idle = |idle| Spent {
        irq: 0,
        softirq: 0,
        idle,
    };
    worker.push_wait(0, idle(70));
    worker.push_waited(700, step(Kind::Switch, 9), None, idle(100), |_, _| {
        Rivals::default()
    });
    assert_eq!(shown(&worker).last(), Some(&Shown::Parts(idle(30), 100)));
    assert_eq!(worker.last_of(Kind::Waking), 3);
    assert_eq!(worker.last_of(Kind::Queue), 0);
    for (queued, first) in [(350, 3), (150, 3), (450, 4), (800, 8)] {
        let mut chain = begun(50);
        chain.push(queued, step(Kind::Queue, 77));
        assert_eq!(chain.last_subject(), 77);
        chain.append_from(100, &worker, chain.last(), worker.last_of(Kind::Waking));
        let seen = shown(&chain);
        let expected: Vec<_> = shown(&worker).into_iter().skip(first).collect();
        let is_same = |pair: (&Shown, &Shown)| match pair {
            (Shown::Step(one, _, name), Shown::Step(other, _, other_name)) => {
                (one, name) == (other, other_name)
            }
            (one, other) => one == other,
        };
        assert_eq!(seen.len(), 2 + expected.len(), "queued at {queued}");
        assert!(seen[2..].iter().zip(&expected).all(is_same), "{seen:?}");
        assert_eq!(chain.last(), queued.max(700));
        assert_eq!(total(&chain), chain.last() - 50);
        assert_eq!(chain.counts().preempted(), u64::from(queued < 700));
    }
}

#[test]
fn the_function_of_a_work_item_is_known_on_the_chain_of_its_worker() {
    let step = |kind, subject| Step {
        kind,
        cpu: 0,
        subject,
    };
    let mut chain = begun(100);
    assert_eq!(chain.executed(), None);
    for item in [1, 2] {
        chain.push(110, step(Kind::Work, item));
        assert_eq!(chain.executed(), Some(item));
    }
    // The worker sleeps in the middle of the item. Then it wakes another worker, which does not execute that item.
    let mut woken = chain;
    for kind in [Kind::Sleep, Kind::Waking, Kind::Switch] {
        woken.push(120, step(kind, 3));
        assert_eq!(woken.executed(), Some(2));
    }
    for kind in [Kind::Waking, Kind::Switch, Kind::Sleep, Kind::Waking] {
        woken.push(130, step(kind, 4));
        assert_eq!(woken.executed(), None);
    }
    for at in 0..20 {
        chain.push(120 + at, step(Kind::Sleep, 0));
    }
    // Both work items are among the first steps, but a third one might be among the steps left out.
    assert!(chain.counts().more() > 0 && chain.last_of(Kind::Work) > 0);
    assert_eq!(chain.executed(), None);
    chain.push(200, step(Kind::Work, 4));
    assert_eq!(chain.executed(), Some(4));
}

#[test]
fn preemptions_that_were_left_out_count_on_a_continued_chain() {
    let mut chain = begun(100);
    for nth in 0..30 {
        let (kind, cpu, subject) = (Kind::Preempted, 1, nth);
        let step = Step { kind, cpu, subject };
        chain.push_and(110 + nth, step, Counts::add_preempted);
    }
    // The first three and the last ten have places. The steps left out are before 130.
    assert_eq!(
        (chain.counts().more(), chain.counts().preempted()),
        (17, 30)
    );
    for (since, preempted) in [(50, 30), (100, 30), (130, 10), (135, 5)] {
        let mut other = begun(since);
        other.append(100, &chain, since);
        assert_eq!(other.counts().preempted(), preempted, "since {since}");
    }
}

#[test]
fn a_refused_timer_stays_refused() {
    let mut counts = Counts(0);
    counts.set_origin(Origin::Wheel);
    counts.set_refused(true);
    counts.set_state(State::Queued);
    for target in [true, false] {
        counts.set_target(target);
        assert_eq!((counts.is_target(), counts.is_refused()), (target, true));
    }
    // Another timer that becomes the origin clears the mark.
    counts.set_target(true);
    counts.set_refused(false);
    assert_eq!((counts.is_target(), counts.is_refused()), (true, false));
    assert_eq!(
        (counts.origin(), counts.state()),
        (Origin::Wheel, State::Queued)
    );
}

#[test]
fn counts_saturate() {
    let mut counts = Counts(0);
    for _ in 0..300 {
        counts.add_merged(1);
    }
    assert_eq!(counts.merged(), 255);
    assert_eq!(
        (counts.more(), counts.places(), counts.preempted()),
        (0, 0, 0)
    );
    counts.set_begun();
    assert!(counts.has_begun() && !counts.is_target());
    counts.set_target(true);
    assert!(counts.is_target() && !counts.has_begun());
    assert_eq!(counts.merged(), 255);
    counts.add_merged(u64::MAX);
    assert_eq!((counts.merged(), counts.preempted()), (255, 0));
}

#[test]
fn a_reader_gets_the_name_of_the_action_and_nothing_after_it() {
    // The name, of this many bytes, is at the start of words with other bytes after it.
    let name = |len: usize| {
        let mut bytes = [b'x'; 32];
        bytes[..len].copy_from_slice(&b"an action that has a name too long"[..len]);
        if let Some(end) = bytes.get_mut(len) {
            *end = 0;
        }
        bytes
    };
    for len in 0..=32 {
        let bytes = name(len);
        let words = core::array::from_fn(|at| {
            u64::from_ne_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap())
        });
        let mut chain = [0; WORDS];
        let (kind, cpu, subject) = (Kind::Irq, 0, 27);
        chain.begin_with(Origin::Irq, [(5, Step { kind, cpu, subject })]);
        chain.set_action(words);
        let (.., action) = of_split(&split(&chain, 0).0);
        let shown: Vec<u8> = action.into_iter().flat_map(u64::to_ne_bytes).collect();
        let len = len.min(31);
        assert_eq!(shown[..len], bytes[..len]);
        assert_eq!(shown[len..], [0; 32][len..], "behind {len} bytes");
        // The name in a chain with another origin has no meaning.
        let mut counts = chain.counts();
        counts.set_origin(Origin::Timer);
        chain.set_counts(counts);
        let (.., action) = of_split(&split(&chain, 0).0);
        assert_eq!(action, [0; 4]);
    }
}

#[test]
fn the_end_of_a_chain_leaves_its_other_bits_alone() {
    // The address of a function keeps all its bits.
    let mut chain = [0; WORDS];
    chain.begin(5, Origin::Timer);
    let subject = 0xffff_ffff_8123_4567;
    let (kind, cpu) = (Kind::Due, 8191);
    chain.push(5, Step { kind, cpu, subject });
    let (head, steps) = split(&chain, 3);
    let (_, counts, ..) = of_split(&head);
    assert_eq!((counts.end(), counts.origin()), (3, Origin::Timer));
    assert_eq!(counts.places(), 1);
    assert_eq!(steps[1], subject);
    assert_eq!(chain.counts().end(), 0);
}

#[test]
fn notes_become_steps_in_their_order() {
    let step = |kind, cpu| Step {
        kind,
        cpu,
        subject: 77,
    };
    let mut chain = begun(100);
    chain.push(200, step(Kind::Switch, 1));
    let mut counts = chain.counts();
    counts.set_state(State::Running);
    chain.set_counts(counts);

    let mut notes = [0; NOTES];
    assert_eq!(state(chain.counts(), &notes), State::Running);
    // The wakeup has an earlier time than the sleep: the waker was faster, or its clock is behind.
    notes[WOKEN] = note(Kind::Waking, 3, chain.last(), 290);
    notes[SLEPT] = note(Kind::Lock, 1, chain.last(), 300);
    notes[MERGED] = 2;
    assert_eq!(state(chain.counts(), &notes), State::Waking);
    settle(&mut chain, &mut notes, 77);
    assert_eq!(notes, [0; NOTES]);
    assert_eq!(chain.counts().state(), State::Waking);
    assert_eq!(chain.counts().merged(), 2);
    let expected = [
        Shown::Step(ORIGIN, 0, [0; 2]),
        Shown::Step(step(Kind::Switch, 1), 100, [0; 2]),
        Shown::Step(step(Kind::Lock, 1), 100, [0; 2]),
        Shown::Step(step(Kind::Waking, 3), 0, [0; 2]),
    ];
    assert_eq!(shown(&chain), expected);
    assert_eq!(total(&chain), chain.last() - 100);

    notes[SLEPT] = note(Kind::Sleep, 1, chain.last(), 350);
    assert_eq!(state(chain.counts(), &notes), State::Waiting);
}

/// Returns a chain in which task 7 runs and is preempted `times` times: by task 20, and once, for
/// longer, by task 21. The tasks have names.
fn preempted(times: u64, parts: Option<Spent>) -> Chain {
    let mut chain = begun(0);
    let step = |kind, subject| Step {
        kind,
        cpu: 1,
        subject,
    };
    chain.push_named(10, step(Kind::Switch, task(7, 120)), [7, 0]);
    const NONE: Spent = Spent {
        irq: 0,
        softirq: 0,
        idle: 0,
    };
    let mut spent = NONE;
    for nth in 0..times {
        let (by, took) = if nth == 5 { (21, 3_000) } else { (20, 1_000) };
        chain.push_named(
            chain.last() + 500,
            step(Kind::Preempted, task(by, -1)),
            [by.into(), 0],
        );
        let mut counts = chain.counts();
        counts.add_preempted();
        chain.set_counts(counts);
        if let Some(parts) = parts {
            chain.push_wait(1, spent);
            spent = spent.and(parts).unwrap();
        }
        chain.push_waited(
            chain.last() + took,
            step(Kind::Switch, task(7, 120)),
            None,
            spent,
            |_, _| Rivals::default(),
        );
    }
    chain
}

#[test]
fn preemptions_of_one_task_become_one_step_before_steps_are_left_out() {
    let parts = Spent {
        irq: 100,
        softirq: 0,
        idle: 5,
    };
    for parts in [None, Some(parts)] {
        let mut chain = preempted(40, parts);
        chain.push(
            chain.last() + 9,
            Step {
                kind: Kind::Waking,
                cpu: 1,
                subject: 8,
            },
        );
        chain.push(
            chain.last() + 9,
            Step {
                kind: Kind::Switch,
                cpu: 1,
                subject: 8,
            },
        );
        let counts = chain.counts();
        assert_eq!((counts.more(), counts.preempted()), (0, 40));
        assert_eq!(total(&chain), chain.last());
        let mut other = begun(0);
        other.append(0, &chain, 0);
        assert_eq!(other.counts().preempted(), 40);
        let (mut times, mut ran, mut waited, mut spent) = (0, 0, 0, 0);
        let mut longest = 0;
        let mut names = Vec::new();
        for one in shown(&chain) {
            match one {
                Shown::Step(step, time, name) if step.kind == Kind::Preempted => {
                    let told = of_preempted(step.subject);
                    assert_eq!((told.prio, u64::from(told.tid)), (-1, name[0]));
                    times += told.times;
                    longest = longest.max(told.times);
                    ran += time;
                    names.push(told.tid);
                }
                Shown::Step(step, time, _)
                    if step.subject == task(7, 120) && step.kind == Kind::Switch =>
                {
                    waited += time
                }
                Shown::Parts(parts, wait) => {
                    spent += parts.irq;
                    assert_eq!(parts.irq + parts.idle + parts.tasks(wait), wait);
                }
                _ => (),
            }
        }
        assert_eq!((times, ran, waited), (40, 40 * 500, 10 + 42_000));
        assert_eq!(spent, if parts.is_some() { 4_000 } else { 0 });
        // The step is named after the thread of the longest single preemption.
        assert!(longest > 30 && names[0] == 21, "{names:?}");
    }
}

#[test]
fn preemptions_of_different_tasks_are_not_folded() {
    let mut chain = begun(0);
    let step = |kind, subject| Step {
        kind,
        cpu: 1,
        subject,
    };
    for tid in 1..20 {
        chain.push(chain.last() + 10, step(Kind::Switch, task(tid, 120)));
        chain.push(chain.last() + 10, step(Kind::Preempted, task(99, 49)));
    }
    assert!(chain.counts().more() > 0);
    assert_eq!(total(&chain), chain.last());
}

#[test]
fn a_waker_that_is_a_task_is_named() {
    let mut chain = begun(100);
    let mut notes = [0; NOTES];
    notes[SLEPT] = note(Kind::Lock, 1, chain.last(), 300);
    notes[WOKEN] = note(Kind::Waking, 3, chain.last(), 400);
    let name = [u64::from_le_bytes(*b"holder\0\0"), 0];
    notes[WAKER..WOKEN].copy_from_slice(&[305, name[0], name[1]]);
    settle(&mut chain, &mut notes, task(77, 120));
    let seen = shown(&chain);
    let Some(Shown::Step(step, 100, told)) = seen.last() else {
        panic!("{seen:?}");
    };
    assert_eq!(
        (step.kind, step.subject as u32, waker_of(step.subject)),
        (Kind::Waking, 77, 305)
    );
    assert_eq!(*told, name);
    assert_eq!(notes, [0; NOTES]);
    // The earlier sleep has no name.
    assert_eq!(
        seen[1],
        Shown::Step(
            Step {
                kind: Kind::Lock,
                cpu: 1,
                subject: task(77, 120)
            },
            200,
            [0; 2]
        )
    );
}

proptest! {
    /// The steps of a chain add up after any notes are settled, as in the alert of a timeout.
    #[test]
    fn steps_add_up_with_notes(slept in any::<u64>(), woken in any::<u64>(), merged: u64) {
        let mut chain = begun(100);
        chain.push(1000, ORIGIN);
        let last = chain.last();
        let mut notes = [0; NOTES];
        notes[SLEPT] = note(Kind::Sleep, 1, last, slept);
        notes[WOKEN] = note(Kind::Waking, 2, last, woken);
        notes[MERGED] = merged;
        // Times are limited, and a clock that is behind counts as standing still.
        let longest = last.saturating_add((1 << 46) - 1);
        let until = slept.max(woken).clamp(last, longest);
        settle(&mut chain, &mut notes, 77);
        prop_assert_eq!(chain.last(), until);
        prop_assert_eq!(total(&chain), chain.last() - 100);
        prop_assert_eq!(chain.counts().merged(), merged.min(255));
    }
}
