// SPDX-License-Identifier: GPL-2.0

//! Stress tests with real threads at full speed, millions of events and all counters: too large for
//! a model.

#![cfg(not(loom))]
#![deny(unsafe_op_in_unsafe_fn)]
#![expect(dead_code, reason = "the module uses more of its engine")]
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

include!("../src/engine.rs");

#[path = "../src/host.rs"]
mod host;
#[path = "../src/sys.rs"]
mod sys;

use engine::hash::Seed;
use engine::histogram::BUCKETS;
use engine::platform::Platform;
use engine::stats::Counter;
use engine::{
    held::{Lookup, Reference},
    Begin, Engine, Late, Verdict, Why,
};
use host::{Host, Machine};
use std::{
    cell::RefCell,
    sync::{
        atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering},
        mpsc, Arc,
    },
    thread,
};

type Two = Host<2>;
/// Two nodes of two CPUs.
type Numa = Host<4, 2, 0x1100>;

fn engine<const K: usize, const D: usize, P: Platform>(capacity: u32) -> Arc<Engine<K, D, P>> {
    let seed = Seed::new(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3211);
    Arc::new(Engine::new(capacity, u64::MAX, seed).unwrap())
}

/// Returns words that differ for each key.
fn derived(key: u64) -> [u64; 4] {
    [
        key,
        key.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        !key,
        key.rotate_left(17),
    ]
}

/// Checks the sums of stats.rs, while no operation is running.
fn sums_hold<const K: usize, const D: usize, P: Platform>(engine: &Engine<K, D, P>) {
    let total = |counter| engine.stats().total(counter);
    let pending = engine.pending_count();
    assert_eq!(
        total(Counter::Attempts),
        total(Counter::Started)
            + total(Counter::Full)
            + total(Counter::Filtered)
            + total(Counter::Off)
            + total(Counter::Crowded)
    );
    assert_eq!(
        total(Counter::Started),
        total(Counter::Ended)
            + pending
            + total(Counter::Replaced)
            + total(Counter::Cleared)
            + total(Counter::Gone)
    );
    let histogram: u64 = (0..BUCKETS)
        .map(|bucket| engine.stats().bucket(bucket))
        .sum();
    assert_eq!(total(Counter::Ended), total(Counter::Negative) + histogram);
    assert_eq!(engine.free(), u64::from(engine.capacity()) - pending);
}

#[test]
fn ten_million_pairs_through_a_pool_of_64_are_all_found() {
    const PAIRS: u64 = 5_000_000;
    const LIVE: u64 = 32;
    let engine = engine::<1, 1, Two>(64);
    let machine = Machine::new();
    let threads: Vec<_> = (0..2)
        .map(|cpu| {
            let (engine, machine) = (engine.clone(), machine.clone());
            thread::spawn(move || {
                let _seat = machine.pin(cpu);
                let key = |i: u64| [i << 1 | cpu as u64];
                for i in 0..PAIRS + LIVE {
                    let guard = Two::guard();
                    if i >= LIVE {
                        let known = engine.event_out(&guard, &key(i - LIVE), i, |_| true, |_| ());
                        assert!(known, "an event is lost");
                    }
                    if i < PAIRS {
                        let begun = engine.event_in(&guard, &key(i), i, &[i]);
                        assert_eq!(begun, Begin::Started, "full with a free cell");
                    }
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    sums_hold(&engine);
    let total = |counter| engine.stats().total(counter);
    assert_eq!(total(Counter::Started), 2 * PAIRS);
    assert_eq!(total(Counter::Ended), 2 * PAIRS);
    assert_eq!((total(Counter::Full), total(Counter::Unmatched)), (0, 0));
    let summary = engine.stats().summary();
    assert_eq!((summary.min, summary.mean, summary.max), (LIVE, LIVE, LIVE));
}

#[test]
fn events_start_on_one_cpu_and_end_on_another() {
    const EVENTS: u64 = 500_000;
    const LIVE: usize = 100;
    let engine = engine::<1, 4, Numa>(2 * LIVE as u32);
    let machine = Machine::new();
    let mut threads = Vec::new();
    for pair in 0..2 {
        // A bounded channel: at most LIVE events of each pair are live. The producer is on node 0,
        // the consumer on node 1.
        let (begun, ended) = (mpsc::sync_channel(LIVE - 2), pair);
        let (sender, receiver) = begun;
        let (e, m) = (engine.clone(), machine.clone());
        threads.push(thread::spawn(move || {
            let _seat = m.pin(pair);
            for i in 0..EVENTS {
                let key = i << 1 | pair as u64;
                let begun = e.event_in(&Numa::guard(), &[key], 0, &derived(key));
                assert_eq!(begun, Begin::Started, "full with a free cell");
                sender.send(key).unwrap();
            }
        }));
        let (e, m) = (engine.clone(), machine.clone());
        threads.push(thread::spawn(move || {
            let _seat = m.pin(2 + ended);
            for key in receiver {
                let whole = |open: &engine::Open<'_, 1, 4>| {
                    assert_eq!(open.data(), derived(key), "another event's data");
                    true
                };
                let known = e.event_out(&Numa::guard(), &[key], 100, whole, |_| ());
                assert!(known, "an event is lost");
            }
        }));
    }
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    sums_hold(&engine);
    assert_eq!(engine.stats().total(Counter::Ended), 2 * EVENTS);
    assert_eq!(engine.stats().total(Counter::Full), 0);
}

#[test]
fn of_two_cpus_that_end_the_same_keys_one_wins_each() {
    const EVENTS: u64 = 500_000;
    let engine = engine::<1, 4, Host<3>>(64);
    let machine = Machine::new();
    let (wins, begun) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let ends: Vec<_> = (1..3)
        .map(|cpu| {
            let (engine, machine) = (engine.clone(), machine.clone());
            let (wins, begun) = (wins.clone(), begun.clone());
            thread::spawn(move || {
                let _seat = machine.pin(cpu);
                for key in 0..EVENTS {
                    while begun.load(Ordering::Acquire) <= key {
                        thread::yield_now();
                    }
                    let whole = |open: &engine::Open<'_, 1, 4>| {
                        assert_eq!(open.data(), derived(key), "another event's data");
                        true
                    };
                    if engine.event_out(&Host::<3>::guard(), &[key], 1, whole, |_| ()) {
                        wins.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    {
        let _seat = machine.pin(0);
        for key in 0..EVENTS {
            while engine.event_in(&Host::<3>::guard(), &[key], 0, &derived(key)) == Begin::Full {
                thread::yield_now();
            }
            begun.store(key + 1, Ordering::Release);
        }
    }
    ends.into_iter().for_each(|thread| thread.join().unwrap());
    sums_hold(&engine);
    assert_eq!(wins.load(Ordering::Relaxed), EVENTS);
    assert_eq!(engine.stats().total(Counter::Ended), EVENTS);
    assert_eq!(engine.stats().total(Counter::Unmatched), EVENTS);
}

/// A pool of one cell, which is usually exhausted, and three CPUs. Two of the CPUs alternate: each starts an event when
/// the cell is free. The third CPU tries to start an event all the time, and ends it at once. Once the only event has
/// ended, the next CPU in turn must not find the pool full forever.
#[test]
fn a_pool_is_not_exhausted_once_an_event_has_ended() {
    const ROUNDS: u64 = 200_000;
    type Three = Host<3>;
    let engine = engine::<1, 4, Three>(1);
    let machine = Machine::new();
    let turn = Arc::new(AtomicU64::new(0));
    let asks = {
        let (engine, machine, turn) = (engine.clone(), machine.clone(), turn.clone());
        thread::spawn(move || {
            let _seat = machine.pin(2);
            let mut full = 0u64;
            while turn.load(Ordering::Relaxed) < ROUNDS {
                let begun = engine.event_in(&Three::guard(), &[2], 0, &derived(2));
                if begun == Begin::Started {
                    assert!(engine.event_out(&Three::guard(), &[2], 1, |_| true, |_| ()));
                } else {
                    full += 1;
                }
            }
            full
        })
    };
    let players: Vec<_> = (0..2)
        .map(|cpu| {
            let (engine, machine, turn) = (engine.clone(), machine.clone(), turn.clone());
            thread::spawn(move || {
                let _seat = machine.pin(cpu as usize);
                for round in (cpu..ROUNDS).step_by(2) {
                    while turn.load(Ordering::Acquire) != round {
                        thread::yield_now();
                    }
                    let mut tries = 0u64;
                    while engine.event_in(&Three::guard(), &[cpu], 0, &derived(cpu)) == Begin::Full
                    {
                        tries += 1;
                        assert!(tries < 10_000_000, "full with a free cell");
                        thread::yield_now();
                    }
                    // This thread has the only cell.
                    let other = engine.event_in(&Three::guard(), &[3], 0, &derived(3));
                    assert_eq!(other, Begin::Full, "a second event in a pool of one");
                    assert!(engine.event_out(&Three::guard(), &[cpu], 1, |_| true, |_| ()));
                    turn.store(round + 1, Ordering::Release);
                }
            })
        })
        .collect();
    players
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert!(asks.join().unwrap() > 0, "never full");
    sums_hold(&engine);
    assert_eq!(engine.free(), 1);
}

#[test]
fn a_copy_is_never_torn() {
    const ROUNDS: u64 = 1_000_000;
    let engine = engine::<1, 4, Host<2>>(4);
    let machine = Machine::new();
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (engine, done) = (engine.clone(), done.clone());
            thread::spawn(move || {
                let mut copies = 0u64;
                while !done.load(Ordering::Relaxed) {
                    let whole = engine.each_pending(|copy| {
                        let serial = copy.data[0];
                        assert_eq!(copy.data, derived(serial), "a mixture of two events");
                        assert_eq!((copy.key[0], copy.start), (serial % 7, serial));
                        copies += 1;
                        Ok(())
                    });
                    assert_eq!(whole, Ok(()));
                }
                copies
            })
        })
        .collect();
    {
        let _seat = machine.pin(0);
        for serial in 0..ROUNDS {
            let guard = Host::<2>::guard();
            let key = [serial % 7];
            engine.event_in(&guard, &key, serial, &derived(serial));
            if serial % 3 == 0 {
                // another life of the same cell: same key, other data
                let serial = serial + 7 * ROUNDS;
                engine.update(&guard, &key, |open| {
                    open.set_start(serial);
                    open.set_data(&derived(serial));
                    Verdict::Keep
                });
            }
            let key = [(serial + 4) % 7];
            engine.event_out(&guard, &key, u64::MAX >> 1, |_| true, |_| ());
        }
    }
    done.store(true, Ordering::Relaxed);
    let copies: u64 = readers
        .into_iter()
        .map(|reader| reader.join().unwrap())
        .sum();
    assert!(copies > 0);
    sums_hold(&engine);
}

/// The fate of each event of [`any_operation`], by its number.
struct Fates {
    next: AtomicU64,
    fates: Vec<AtomicU8>,
}

impl Fates {
    const TIMED_OUT: u8 = 1;
    const ENDED: u8 = 2;
    const LATE: u8 = 4;

    /// Number of changes of one event until its data repeat.
    const CHANGES: u64 = 1 << 16;

    fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            next: AtomicU64::new(0),
            fates: (0..most).map(|_| AtomicU8::new(0)).collect(),
        })
    }

    /// Returns the data of a new event.
    fn begin(&self) -> [u64; 4] {
        derived(self.next.fetch_add(1, Ordering::Relaxed) * Self::CHANGES)
    }

    /// Returns changed data of the same event.
    fn changed(data: [u64; 4]) -> [u64; 4] {
        let (event, change) = (data[0] / Self::CHANGES, data[0] % Self::CHANGES);
        derived(event * Self::CHANGES + (change + 1) % Self::CHANGES)
    }

    /// Records a fate, which an event can have at most once.
    fn note(&self, data: [u64; 4], fate: u8) {
        assert_eq!(data, derived(data[0]), "a mixture of two events");
        let before =
            self.fates[(data[0] / Self::CHANGES) as usize].fetch_or(fate, Ordering::Relaxed);
        assert_eq!(before & fate, 0, "the same event twice: {fate}");
    }

    /// Returns the number of events whose fates `of` accepts. Only while no operation is running.
    fn count(&self, of: impl Fn(u8) -> bool) -> u64 {
        let fates = self.fates.iter().map(|fate| fate.load(Ordering::Relaxed));
        fates.filter(|fate| of(*fate)).count() as u64
    }
}

/// Runs all operations concurrently: in threads that migrate, in interrupts (in debug builds), and
/// with a thread that searches for timeouts all the time.
#[test]
fn all_operations_at_once_add_up() {
    const STEPS: u64 = 300_000;
    let engine = engine::<1, 4, Numa>(32);
    let machine = Machine::new();
    let fates = Fates::new(1 << 24);
    let done = Arc::new(AtomicBool::new(false));
    let search = {
        let (engine, machine) = (engine.clone(), machine.clone());
        let (fates, done) = (fates.clone(), done.clone());
        thread::spawn(move || {
            let _seat = machine.roam(4, 5);
            while !done.load(Ordering::Relaxed) {
                // Expires events whose start is in the first half of the range 0..END.
                let report = |_: &_, late: &Late<1, 4>, (): &()| {
                    assert_eq!(late.why, Why::Timeout);
                    fates.note(late.data, Fates::TIMED_OUT);
                };
                engine.expire(END, END / 2, |_| END / 2, thread::yield_now, |_| (), report);
            }
        })
    };
    let threads: Vec<_> = (0..4u64)
        .map(|number| {
            let (engine, machine, fates) = (engine.clone(), machine.clone(), fates.clone());
            thread::spawn(move || {
                let _seat = machine.roam(4, number + 1);
                let step = {
                    let (engine, fates) = (engine.clone(), fates.clone());
                    let mut random = 0x2545_f491_4f6c_dd1d ^ number;
                    move || {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        any_operation(&engine, &fates, random);
                    }
                };
                with_interrupts(step, STEPS);
                while let Some(held) = HELD.with_borrow_mut(Vec::pop) {
                    engine.put_ref(&Numa::guard(), held);
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    done.store(true, Ordering::Relaxed);
    search.join().unwrap();
    sums_hold(&engine);
    assert_eq!(engine.holders(), 0);
    assert!(engine.stats().total(Counter::Full) > 0);
    assert!(engine.stats().total(Counter::Cleared) > 0);
    let _seat = machine.pin(0);
    let left = engine.pending_count();
    let mut ended = 0;
    for key in 0..16 {
        while end(&engine, &fates, key, END, true) {
            ended += 1;
        }
    }
    assert_eq!(ended, left, "an event that is not found");
    sums_hold(&engine);
    assert_eq!(engine.free(), 32);

    let timed_out = fates.count(|fate| fate & Fates::TIMED_OUT != 0);
    let late = fates.count(|fate| fate & Fates::LATE != 0);
    let total = |counter| engine.stats().total(counter);
    assert!(late > 0);
    assert_eq!(total(Counter::TimedOut), timed_out);
    assert_eq!(total(Counter::Late), late);
    let both = Fates::TIMED_OUT | Fates::ENDED;
    assert_eq!(
        fates.count(|fate| fate & both == both),
        fates.count(|fate| fate == both | Fates::LATE),
        "an end that did not know of the time-out"
    );
    // Some events were ended by reference, which is not recorded.
    assert!(fates.count(|fate| fate & Fates::ENDED != 0) <= total(Counter::Ended));
    println!("{timed_out} timed out, {late} of them ended");
}

/// Runs `step` this many times; in debug builds, another `step` occasionally interrupts it.
fn with_interrupts(mut step: impl FnMut() + Clone + 'static, steps: u64) {
    #[cfg(debug_assertions)]
    {
        let mut interrupt = step.clone();
        let mut count = 0u32;
        let hook = move || {
            count = count.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if count >> 27 == 0 {
                interrupt();
            }
        };
        kernel::hook::interrupted(hook, || (0..steps).for_each(|_| step()));
    }
    #[cfg(not(debug_assertions))]
    (0..steps).for_each(|_| step());
}

/// All starts of [`any_operation`] are before this time; no end is.
const END: u64 = 64;

/// Ends an event if `is` is true; otherwise drops it as gone.
fn end(engine: &Engine<1, 4, Numa>, fates: &Fates, key: u64, end: u64, is: bool) -> bool {
    let is_end = |open: &engine::Open<'_, 1, 4>| {
        assert_eq!(
            open.data(),
            derived(open.data()[0]),
            "a mixture of two events"
        );
        if is {
            fates.note(open.data(), Fates::ENDED);
        }
        is
    };
    let late = |late: &Late<1, 4>| {
        assert_eq!(late.why, Why::LateEnd, "no delay exceeds the threshold");
        fates.note(late.data, Fates::LATE);
    };
    engine.event_out(&Numa::guard(), &[key], end, is_end, late)
}

thread_local! {
    /// References that are held for a long time.
    static HELD: RefCell<Vec<Reference>> = const { RefCell::new(Vec::new()) };
}

/// Takes a reference to an event of this key. Then duplicates the reference, ends the event by it, or keeps it. Gives
/// back the oldest kept reference if there are more than three.
fn references(engine: &Engine<1, 4, Numa>, fates: &Fates, key: u64, serial: u64) {
    let guard = Numa::guard();
    if let Lookup::Found(held) = engine.lookup(&Numa::guard(), &[key]) {
        assert_eq!(engine.view(&held).key, [key], "another event");
        match serial % 4 {
            0 => {
                let again = engine.get_ref_again(&held).expect("not too many");
                engine.put_ref(&guard, held);
                assert_eq!(engine.view(&again).key, [key], "another event");
                engine.put_ref(&guard, again);
            }
            1 => {
                // The operation does not return which event it ended, so the end is not noted. The
                // data of a late event must be consistent.
                let end = |late: &Late<1, 4>| {
                    assert_eq!(late.key, [key], "another event");
                    assert_eq!(late.data, derived(late.data[0]), "a mixture of two events");
                    if late.why == Why::LateEnd {
                        fates.note(late.data, Fates::LATE);
                    }
                };
                let _ = engine.event_out_held(&guard, &held, END + (serial & 0xffff), end);
                engine.put_ref(&guard, held);
            }
            _ => HELD.with_borrow_mut(|all| all.push(held)),
        }
    }
    let old = HELD.with_borrow_mut(|all| (all.len() > 3).then(|| all.remove(0)));
    if let Some(old) = old {
        let before = engine.view(&old);
        assert_eq!(engine.view(&old).key, before.key, "another event");
        engine.put_ref(&guard, old);
    }
    engine.each_of(&guard, &[key], |held| {
        assert_eq!(engine.view(held).key, [key], "another event");
        !serial.is_multiple_of(16)
    });
}

fn any_operation(engine: &Engine<1, 4, Numa>, fates: &Fates, random: u64) {
    let guard = Numa::guard();
    let key = random >> 32 & 15;
    let serial = random >> 8;
    let consistent = |data: [u64; 4]| assert_eq!(data, derived(data[0]), "a mixture of two events");
    match random & 31 {
        0..12 => drop(engine.event_in(&guard, &[key], serial % END, &fates.begin())),
        12..14 => drop(engine.event_in_unique(&guard, &[key], serial % END, &fates.begin())),
        14..26 => {
            let at = END + (serial & 0xffff);
            end(engine, fates, key, at, !serial.is_multiple_of(8));
        }
        26 => references(engine, fates, key, serial),
        27..29 => {
            engine.update(&guard, &[key], |open| {
                consistent(open.data());
                let (verdict, data) = match serial % 8 {
                    0 => (Verdict::Gone, fates.begin()),
                    1 => (Verdict::Renewed, fates.begin()),
                    _ => (Verdict::Keep, Fates::changed(open.data())),
                };
                open.set_data(&data);
                verdict
            });
        }
        29 => engine.filtered(&guard),
        30 => engine.off(&guard),
        _ if serial.is_multiple_of(64) => drop(engine.clear()),
        _ => {
            let seen = engine.each_pending(|copy| {
                consistent(copy.data);
                Ok(())
            });
            assert_eq!(seen, Ok(()));
        }
    }
}

/// Two CPUs repeatedly start the same key at the same time: only the later event stays.
#[test]
fn of_two_concurrent_starts_the_later_stays() {
    const ROUNDS: u64 = 300_000;
    let engine = engine::<1, 1, Two>(4);
    let machine = Machine::new();
    // The progress of each CPU. The CPUs wait for each other before and after the starts of every
    // round, without sleeping. A waiting thread yields now and then, in case the other one is not
    // running.
    let rounds: Arc<[AtomicU64; 2]> = Arc::new([const { AtomicU64::new(0) }; 2]);
    let threads: Vec<_> = (0..2usize)
        .map(|cpu| {
            let (engine, machine, rounds) = (engine.clone(), machine.clone(), rounds.clone());
            thread::spawn(move || {
                let _seat = machine.pin(cpu);
                let guard = Two::guard();
                for round in 1..ROUNDS {
                    let meet = |step: u64| {
                        rounds[cpu].store(2 * round + step, Ordering::Release);
                        let mut tries = 0;
                        while rounds[1 - cpu].load(Ordering::Acquire) < 2 * round + step {
                            tries += 1;
                            if tries % 1000 == 0 {
                                thread::yield_now();
                            }
                            std::hint::spin_loop();
                        }
                    };
                    meet(0);
                    // The CPUs take turns to start the later event.
                    let start = 4 * round + (cpu as u64 ^ (round & 1));
                    let begun = engine.event_in_unique(&guard, &[7], start, &[start]);
                    assert_eq!(begun, Begin::Started);
                    meet(1);
                    if cpu == 0 {
                        let mut live = Vec::new();
                        let seen = engine.each_pending(|copy| {
                            live.push(copy.start);
                            Ok(())
                        });
                        assert_eq!(seen, Ok(()));
                        assert_eq!(live, [4 * round + 1], "round {round}");
                    }
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    sums_hold(&engine);
    let total = |counter| engine.stats().total(counter);
    assert_eq!(total(Counter::Replaced), 2 * (ROUNDS - 1) - 1);
}

#[test]
fn alerts_of_many_writers_reach_every_reader_or_are_counted() {
    use alert::ring::{Read, Ring, WORDS};
    const ALERTS: u64 = 100_000;
    let ring = Arc::new(Ring::new(256, 2).unwrap());
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (ring, done) = (ring.clone(), done.clone());
            thread::spawn(move || {
                let (mut next, mut read, mut lost) = (1, 0u64, 0u64);
                loop {
                    let last = done.load(Ordering::Acquire);
                    let mut tail = [0; 2];
                    match ring.read(next, &mut tail) {
                        Read::NotYet if last => break,
                        Read::NotYet => thread::yield_now(),
                        Read::Ready(words) => {
                            let [serial, ..] = words;
                            assert_eq!(words, [serial; WORDS], "a mixture of two alerts");
                            assert_eq!(tail, [serial; 2], "the tail of another alert");
                            read += 1;
                            next += 1;
                        }
                        Read::Lost => {
                            let on = ring.tail().max(next + 1);
                            lost += on - next;
                            next = on;
                        }
                    }
                }
                assert_eq!(read + lost, ring.head());
                read
            })
        })
        .collect();
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let ring = ring.clone();
            thread::spawn(move || {
                let serials = writer * ALERTS..(writer + 1) * ALERTS;
                let pushed = serials.map(|serial| ring.push(|_| [serial; WORDS], &[serial; 2]));
                pushed.filter(|pushed| pushed.is_err()).count()
            })
        })
        .collect();
    let lost: usize = writers
        .into_iter()
        .map(|writer| writer.join().unwrap())
        .sum();
    done.store(true, Ordering::Release);
    for reader in readers {
        assert!(reader.join().unwrap() > 0);
    }
    assert_eq!(ring.head(), 3 * ALERTS);
    println!("{lost} found their slot taken");
}
