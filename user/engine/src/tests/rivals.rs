// SPDX-License-Identifier: GPL-2.0

//! The users of the CPU while a task waited for it. While the log has room, the times are exact to
//! the nanosecond, even if waits overlap. A rival is named only if it is certainly among the longest
//! three.

use crate::chain::{
    each,
    log::{Log, Sums, LOG},
    of_split,
    rivals::{cut, who, Rival, Rivals, Sort, Table},
    split, Chain, Kind, Look, Origin, Shown, Spent, Step, Words, PLACES, WORDS,
};
use crate::sys::atomic::Atomic;
use proptest::prelude::*;
use std::{array, collections::HashMap};

/// A wait: its start, and the users of the CPU since then.
struct Wait {
    since: u64,
    truth: HashMap<u64, u64>,
}

/// Runs these slices: each has a rival, a length, and possibly the percentage of the slice after
/// which a wait starts. Returns the log, the waits, and the end.
fn run(slices: &[(u64, u64, Option<u64>)]) -> ((Log, Sums), Vec<Wait>, u64) {
    let word = |_| Atomic::new(0);
    let sums: Sums = array::from_fn(|_| array::from_fn(word));
    let (log, mut waits) = (Log::new(), Vec::<Wait>::new());
    let mut now = 1000;
    for &(who, time, begins) in slices {
        let (before, number) = (waits.len(), waits.len() as u64);
        if let Some(part) = begins {
            let truth = HashMap::new();
            waits.push(Wait {
                since: now + time * part / 100,
                truth,
            });
        }
        now += time;
        for wait in &mut waits {
            *wait.truth.entry(who).or_default() += time.min(now - wait.since);
        }
        let number = number + (waits.len() - before) as u64;
        log.add(&sums, number, [who, 0, 0], time, now);
    }
    ((log, sums), waits, now)
}

fn divided((log, sums): &(Log, Sums), wait: &Wait, now: u64) -> (HashMap<u64, u64>, u64) {
    let mut found = HashMap::new();
    let rest = log.divide(sums, wait.since, now - wait.since, |[who, ..], time| {
        *found.entry(who).or_default() += time;
    });
    (found, rest)
}

proptest! {
    #[test]
    fn each_wait_is_divided_among_the_users_of_the_cpu(
        slices in prop::collection::vec(
            (0..6u64, 1..1000u64, prop::option::weighted(0.1, 0..100u64)),
            0..100,
        ),
    ) {
        let (log, waits, now) = run(&slices);
        // The log has at most a sum for each rival in each segment. Its overflow has a test of its own.
        prop_assume!((waits.len() + 1) * 6 <= LOG);
        for wait in &waits {
            let (found, rest) = divided(&log, wait, now);
            let truth: HashMap<_, _> = wait.truth.iter().filter(|(_, time)| **time > 0).collect();
            prop_assert_eq!(found.iter().collect::<HashMap<_, _>>(), truth);
            prop_assert_eq!(rest, 0);
        }
    }

    #[test]
    fn time_without_room_in_the_log_belongs_to_no_rival(
        slices in prop::collection::vec(
            (0..40u64, 1..1000u64, prop::option::weighted(0.2, 0..100u64)),
            100..400,
        ),
    ) {
        let (log, waits, now) = run(&slices);
        for wait in &waits {
            let (found, rest) = divided(&log, wait, now);
            prop_assert_eq!(found.values().sum::<u64>() + rest, now - wait.since);
            for (who, time) in &found {
                prop_assert!(time <= &wait.truth[who]);
            }
        }
    }

    /// Whatever the table has dropped, a named rival is one of the longest three, and had the CPU
    /// for at least the time that is shown.
    #[test]
    fn only_a_rival_certainly_among_the_longest_three_is_named(
        times in prop::collection::vec((0..20u32, 0..10_000u64), 1..60),
        rest in 0..5_000u64,
    ) {
        let mut table = Table::new();
        let mut truth = HashMap::<u32, u64>::new();
        for &(id, time) in &times {
            table.add([who(Sort::Task, id), id.into(), 0], time);
            *truth.entry(id).or_default() += time;
        }
        table.add_rest(rest);
        let wait = truth.values().sum::<u64>() + rest;
        for (nth, rival) in table.most(wait).named.iter().enumerate() {
            let Some(rival) = rival else { continue };
            prop_assert!(rival.time <= truth[&rival.id] && rival.time >= wait / 64);
            // Not checked if time remains: another rival may have had all of it.
            let ahead = truth.iter().filter(|(id, time)| **id != rival.id && **time + rest > truth[&rival.id]);
            prop_assert!(rest > 0 || ahead.count() < 3, "{nth}: {rival:?} {truth:?}");
            prop_assert_eq!(rival.name, [rival.id.into(), 0]);
        }
    }

    #[test]
    fn a_name_is_cut_where_it_ends(bytes in any::<[u8; 16]>()) {
        let number = u128::from_le_bytes(bytes);
        let [low, high] = cut([number as u64, (number >> 64) as u64]);
        let len = bytes.iter().take(15).take_while(|byte| **byte != 0).count();
        let mut expected = [0; 16];
        expected[..len].copy_from_slice(&bytes[..len]);
        prop_assert_eq!(u128::from(high) << 64 | u128::from(low), u128::from_le_bytes(expected));
    }
}

fn words(name: &str) -> [u64; 2] {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    let number = u128::from_le_bytes(bytes);
    [number as u64, (number >> 64) as u64]
}

fn rival(sort: Sort, id: u32, name: &str, time: u64) -> Option<Rival> {
    let name = words(name);
    Some(Rival {
        sort,
        id,
        name,
        time,
    })
}

#[test]
fn the_thread_of_an_interrupt_counts_as_the_interrupt() {
    let entry = |sort, id, name: &str| {
        let [low, high] = words(name);
        [who(sort, id), low, high]
    };
    for first in [true, false] {
        let mut table = Table::new();
        let handler = entry(Sort::Irq, 30, "lt_threaded");
        if first {
            table.add(handler, 100);
        }
        table.add(entry(Sort::Thread, 191, "irq/30-lt_threa"), 900);
        if !first {
            table.add(handler, 100);
        }
        // Another action of the interrupt, and a task with an odd name.
        table.add(entry(Sort::Irq, 30, "eth0"), 800);
        table.add(entry(Sort::Thread, 7, "irq/x"), 700);
        let named = table.most(2500).named;
        assert_eq!(
            named,
            [
                rival(Sort::Irq, 30, "lt_threaded", 1000),
                rival(Sort::Irq, 30, "eth0", 800),
                rival(Sort::Task, 7, "irq/x", 700),
            ]
        );
    }
    // The thread's name is not truncated, so it stands only for an action with exactly this name.
    let mut table = Table::new();
    table.add(entry(Sort::Thread, 191, "irq/30-eth0"), 900);
    table.add(entry(Sort::Irq, 30, "eth0-tx"), 800);
    assert_eq!(
        table.most(1700).named[..2],
        [
            rival(Sort::Irq, 30, "eth0", 900),
            rival(Sort::Irq, 30, "eth0-tx", 800)
        ]
    );
}

#[test]
fn rivals_with_less_than_the_remaining_time_are_not_named() {
    let mut table = Table::new();
    for (id, time) in [(1, 5000), (2, 3000), (3, 1000), (4, 900)] {
        table.add([who(Sort::Task, id), id.into(), 0], time);
    }
    table.add_rest(150);
    let most = table.most(10_050);
    let ids = most.named.map(|rival| rival.map_or(0, |rival| rival.id));
    // The fourth rival could have had all of the remaining time, and thus more than the third.
    assert_eq!((ids, most.at_least), ([1, 2, 0], false));
}

const NONE: Spent = Spent {
    irq: 0,
    softirq: 0,
    idle: 0,
};

fn most(times: [u64; 3]) -> Rivals {
    Rivals {
        named: [
            rival(Sort::Irq, 30, "lt_threaded", times[0]),
            rival(Sort::Softirq, 3, "", times[1]),
            rival(Sort::Task, 4_194_303, "fifteen_letters", times[2]),
        ],
        at_least: true,
    }
}

/// Adds a wait of this length to a chain.
fn waited(chain: &mut Chain, wait: u64, rivals: Rivals) {
    let step = |kind| Step {
        kind,
        cpu: 3,
        subject: 9,
    };
    let last = chain.last();
    chain.push(last, step(Kind::Waking));
    chain.push_wait(3, NONE);
    chain.push_waited(
        last + wait,
        step(Kind::Switch),
        None,
        NONE,
        |since, noted| {
            assert_eq!((since, noted), (last, NONE));
            rivals
        },
    );
}

/// Returns a chain of this many steps.
fn chain_of(steps: u64) -> Chain {
    let mut chain: Chain = [0; WORDS];
    let step = |subject| Step {
        kind: Kind::Irq,
        cpu: 3,
        subject,
    };
    chain.begin_with(Origin::Irq, [(100, step(27))]);
    for subject in 1..steps {
        chain.push(100 + subject, step(subject));
    }
    chain
}

fn shown(chain: &Chain) -> Vec<Shown> {
    let (head, steps) = split(chain, 0);
    let (more, counts, ..) = of_split(&head);
    let mut seen = Vec::new();
    each(counts, more, steps, |one| seen.push(one));
    seen
}

fn rivals_of(chain: &Chain) -> Vec<Rivals> {
    let seen = shown(chain).into_iter();
    seen.filter_map(|one| match one {
        Shown::Rivals(rivals) => Some(rivals),
        _ => None,
    })
    .collect()
}

#[test]
fn the_longest_wait_of_a_chain_has_rivals() {
    let mut chain = chain_of(1);
    let (long, longer) = (most([900, 600, 500]), most([1 << 35, 70, 60]));
    waited(&mut chain, 2000, long);
    assert_eq!(rivals_of(&chain), [long]);
    waited(&mut chain, 100, most([50, 20, 10]));
    assert_eq!(rivals_of(&chain), [long]);
    waited(&mut chain, 3000, longer);
    assert_eq!(rivals_of(&chain), [longer]);
    let names = shown(&chain).into_iter().filter_map(|one| match one {
        Shown::Step(_, _, name) => Some(name),
        _ => None,
    });
    assert!(names.clone().count() == 7 && names.clone().all(|name| name == [0; 2]));
    assert_eq!(chain.counts().places(), PLACES);
    // A later step needs their places.
    let last = chain.last();
    chain.push(
        last,
        Step {
            kind: Kind::Waking,
            cpu: 3,
            subject: 1,
        },
    );
    assert_eq!((rivals_of(&chain), chain.counts().more()), (vec![], 0));
}

#[test]
fn a_rival_with_an_empty_name_does_not_get_another_name() {
    let mut chain = chain_of(1);
    let mut rivals = most([900, 600, 500]);
    rivals.named[0] = rival(Sort::Task, 7, "", 900);
    waited(&mut chain, 2000, rivals);
    assert_eq!(rivals_of(&chain), [rivals]);
}

#[test]
fn as_many_rivals_are_named_as_fit_besides_all_steps() {
    let three = most([900, 600, 500]);
    // With the wait, a chain has three more places than these steps.
    for (steps, named) in [(7, 3), (8, 2), (9, 2), (10, 0)] {
        let mut chain = chain_of(steps);
        waited(&mut chain, 2000, three);
        let seen = rivals_of(&chain);
        let expected = three.named.iter().take(named).flatten();
        let seen = seen.iter().flat_map(|rivals| rivals.named.iter().flatten());
        assert!(seen.eq(expected), "{steps}: {:?}", rivals_of(&chain));
        assert_eq!(chain.counts().more(), 0);
    }
}
