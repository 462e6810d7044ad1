// SPDX-License-Identifier: GPL-2.0

//! Interrupts and NMIs in the middle of an engine operation on the same CPU, at each of its atomic
//! operations.
//!
//! The stand-in for the kernel's atomics calls a hook before each operation. An interrupt at any
//! other point sees the same memory as an interrupt before the next operation, so the hook covers
//! all points.

use crate::{
    alert::ring::{Read, Ring, WORDS},
    engine::{hash::Seed, platform::Platform, stats::Counter, Begin, Ended, Late, Verdict},
    host::{Host, Machine},
};
use kernel::{
    hook::interrupted,
    sync::atomic::{Atomic, Relaxed},
};
use std::{cell::Cell, cell::RefCell, rc::Rc};

type Cpu = Host<2, 2, 0x10>;
/// A time later than all starts.
const END: u64 = 1 << 40;

type Engine = crate::engine::Engine<1, 1, Cpu>;

fn engine(capacity: u32) -> Rc<Engine> {
    Rc::new(Engine::new(capacity, 0, Seed::new(0x1111_2222, 0x3333_4445)).unwrap())
}

/// An action of an interrupted context or of an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    In(u64),
    Unique(u64),
    Out(u64),
    Keep(u64),
    Clear,
    Expire,
}

/// The events that have ended, and the events that have timed out, by their data. Neither may
/// happen to an event twice.
#[derive(Default)]
struct Ends(RefCell<Vec<u64>>, RefCell<Vec<u64>>);

impl Ends {
    fn note(&self, data: u64) {
        assert!(!self.0.borrow().contains(&data), "{data} has ended twice");
        self.0.borrow_mut().push(data);
    }

    fn note_timeout(&self, data: u64) {
        assert!(!self.1.borrow().contains(&data), "{data} times out twice");
        self.1.borrow_mut().push(data);
    }
}

fn act(engine: &Engine, ends: &Ends, serial: &Cell<u64>, action: Action) {
    let guard = Cpu::guard();
    serial.set(serial.get() + 1);
    let data = serial.get();
    match action {
        Action::In(key) => {
            engine.event_in(&guard, &[key], data, &[data]);
        }
        Action::Unique(key) => {
            engine.event_in_unique(&guard, &[key], data, &[data]);
        }
        Action::Out(key) => {
            out(engine, ends, key);
        }
        Action::Keep(key) => {
            engine.update(&guard, &[key], |open| {
                let data = open.data();
                open.set_data(&data);
                Verdict::Keep
            });
        }
        Action::Clear => {
            engine.clear();
        }
        Action::Expire => {
            let report = |_: &_, late: &Late<1, 1>, (): &()| {
                assert_eq!(
                    late.delay,
                    END - late.data[0],
                    "start and data of two events"
                );
                ends.note_timeout(late.data[0]);
            };
            engine.expire(END, 0, |_| 0, || (), |_| (), report);
        }
    }
}

fn out(engine: &Engine, ends: &Ends, key: u64) -> Option<u64> {
    let guard = Cpu::guard();
    let mut data = None;
    let known = engine.event_out(
        &guard,
        &[key],
        END,
        |_| true,
        |late| {
            assert_eq!(
                late.delay,
                END - late.data[0],
                "start and data of two events"
            );
            data = Some(late.data[0]);
        },
    );
    assert_eq!(known, data.is_some());
    data.inspect(|&data| ends.note(data))
}

fn sums_hold(engine: &Engine) {
    let total = |counter| engine.stats().total(counter);
    let pending = engine.pending_count();
    assert_eq!(
        total(Counter::Attempts),
        total(Counter::Started) + total(Counter::Full)
    );
    assert_eq!(
        total(Counter::Started),
        total(Counter::Ended) + pending + total(Counter::Replaced) + total(Counter::Cleared)
    );
    assert_eq!(engine.free(), u64::from(engine.capacity()) - pending);
}

/// Checks at the end of a run that pending events can be ended, that the pool is complete, and that
/// the table is empty.
fn drain(engine: &Engine, ends: &Ends, keys: u64) {
    sums_hold(engine);
    for key in 0..keys {
        while out(engine, ends, key).is_some() {}
    }
    assert_eq!(engine.pending_count(), 0, "an event that is not found");
    sums_hold(engine);
    // All cells of the pool and all slots of the table can be used.
    let guard = Cpu::guard();
    for i in 0..u64::from(engine.capacity()) {
        let data = 1 << 30 | i;
        assert_eq!(engine.event_in(&guard, &[i], data, &[data]), Begin::Started);
    }
    for i in 0..u64::from(engine.capacity()) {
        assert!(out(engine, ends, i).is_some());
    }
}

/// Runs `outer` in a prepared engine with `inner` as an interrupt before atomic operation number
/// `at`, and the action of `nmi` as an NMI before the atomic operation of `inner` whose number `nmi`
/// gives. Returns whether the two places exist.
fn run(
    capacity: u32,
    outer: Action,
    inner: Action,
    at: usize,
    nmi: Option<(Action, usize)>,
) -> (bool, bool) {
    let _seat = Machine::new().pin(0);
    let engine = engine(capacity);
    let ends = Rc::new(Ends::default());
    let serial = Rc::new(Cell::new(0));
    let fired = Rc::new(Cell::new((false, nmi.is_none())));
    // Key 0 is live, key 1 was live before.
    act(&engine, &ends, &serial, Action::In(0));
    act(&engine, &ends, &serial, Action::In(1));
    act(&engine, &ends, &serial, Action::Out(1));

    let mut count = 0;
    let hook = {
        let (engine, ends, serial, fired) =
            (engine.clone(), ends.clone(), serial.clone(), fired.clone());
        move || {
            count += 1;
            if count != at + 1 {
                return;
            }
            fired.set((true, fired.get().1));
            let Some((action, within)) = nmi else {
                return act(&engine, &ends, &serial, inner);
            };
            let mut count = 0;
            let nmi = {
                let (engine, ends, serial, fired) =
                    (engine.clone(), ends.clone(), serial.clone(), fired.clone());
                move || {
                    count += 1;
                    if count == within + 1 {
                        fired.set((true, true));
                        act(&engine, &ends, &serial, action);
                    }
                }
            };
            interrupted(nmi, || act(&engine, &ends, &serial, inner));
        }
    };
    interrupted(hook, || act(&engine, &ends, &serial, outer));
    drain(&engine, &ends, 4);
    fired.get()
}

const ACTIONS: [Action; 9] = [
    Action::In(0),
    Action::In(1),
    Action::Unique(0),
    Action::Out(0),
    Action::Out(1),
    Action::Keep(0),
    Action::Clear,
    Action::Expire,
    Action::Out(3),
];

#[test]
fn an_interrupt_may_come_anywhere() {
    let mut places = 0;
    for capacity in [2, 3, 8] {
        for outer in ACTIONS {
            for inner in ACTIONS {
                for at in 0.. {
                    if !run(capacity, outer, inner, at, None).0 {
                        break;
                    }
                    places += 1;
                }
            }
        }
    }
    println!("{places} places");
    assert!(places > 1000);
}

#[test]
fn an_nmi_may_come_anywhere_in_an_interrupt() {
    let mut places = 0;
    let actions = [
        Action::In(0),
        Action::Unique(0),
        Action::Out(0),
        Action::Keep(0),
        Action::Expire,
    ];
    for capacity in [2, 3] {
        for outer in actions {
            for inner in actions {
                for innermost in [Action::In(1), Action::Out(0), Action::Expire] {
                    for at in 0.. {
                        let mut exists = false;
                        for within in 0.. {
                            let fired = run(capacity, outer, inner, at, Some((innermost, within)));
                            exists = fired.0;
                            if fired != (true, true) {
                                break;
                            }
                            places += 1;
                        }
                        if !exists {
                            break;
                        }
                    }
                }
            }
        }
    }
    println!("{places} places");
    assert!(places > 10_000);
}

#[test]
fn one_of_an_end_and_an_end_that_interrupts_it_wins() {
    let mut inner_wins = 0;
    for at in 0.. {
        let _seat = Machine::new().pin(0);
        let engine = engine(1);
        let ends = Rc::new(Ends::default());
        let serial = Cell::new(0);
        act(&engine, &ends, &serial, Action::In(0));
        let (mut count, inner) = (0, Rc::new(Cell::new(None)));
        let hook = {
            let (engine, ends, inner) = (engine.clone(), ends.clone(), inner.clone());
            move || {
                count += 1;
                if count == at + 1 {
                    inner.set(Some(out(&engine, &ends, 0)));
                }
            }
        };
        let outer = interrupted(hook, || out(&engine, &ends, 0));
        let Some(inner) = inner.get() else { break };
        assert!(outer.is_some() != inner.is_some(), "not one winner at {at}");
        inner_wins += u32::from(inner.is_some());
        assert_eq!(engine.pending_count(), 0);
        assert_eq!(engine.free(), 1);
    }
    assert!(inner_wins > 1, "interrupts before the loads win");
}

#[test]
fn nothing_is_lost_to_a_timeout_that_interrupts() {
    for action in [Action::Out(0), Action::Keep(0), Action::Clear] {
        let mut timed_out = 0;
        for at in 0.. {
            let _seat = Machine::new().pin(0);
            let engine = engine(1);
            let ends = Rc::new(Ends::default());
            let serial = Rc::new(Cell::new(0));
            act(&engine, &ends, &serial, Action::In(0));
            let (mut count, fired) = (0, Rc::new(Cell::new(false)));
            let hook = {
                let (engine, ends) = (engine.clone(), ends.clone());
                let (serial, fired) = (serial.clone(), fired.clone());
                move || {
                    count += 1;
                    if count == at + 1 {
                        fired.set(true);
                        act(&engine, &ends, &serial, Action::Expire);
                    }
                }
            };
            // Whether the only event was found.
            let found = interrupted(hook, || match action {
                Action::Out(key) => out(&engine, &ends, key).is_some(),
                Action::Keep(key) => engine
                    .update(&Cpu::guard(), &[key], |_| Verdict::Keep)
                    .is_some(),
                _ => engine.clear() == 1,
            });
            assert!(found, "{action:?} with a time-out at {at}");
            if !fired.get() {
                break;
            }
            let reported = ends.1.borrow().len() as u64;
            assert_eq!(engine.stats().total(Counter::TimedOut), reported);
            let late = engine.stats().total(Counter::Late);
            let ended = engine.stats().total(Counter::Ended);
            assert_eq!(late, reported * ended, "late if it has ended");
            timed_out += reported;
        }
        assert!(timed_out > 1, "{action:?}: a time-out before the loads");
    }
}

#[test]
fn no_report_starts_or_runs_after_an_end_that_is_over() {
    let (mut over, mut reporting) = (0, 0);
    for at in 0.. {
        let _seat = Machine::new().pin(0);
        let engine = engine(1);
        let serial = Cell::new(0);
        act(&engine, &Ends::default(), &serial, Action::In(0));
        let ended = Rc::new(Cell::new(None));
        let (mut count, fired) = (0, Rc::new(Cell::new(false)));
        let hook = {
            let (engine, ended, fired) = (engine.clone(), ended.clone(), fired.clone());
            move || {
                count += 1;
                if count == at + 1 {
                    fired.set(true);
                    let guard = Cpu::guard();
                    ended.set(engine.event_out_if_known(&guard, &[0], END, |_| true, |_| ()));
                    assert!(ended.get().is_some(), "an end is lost at {at}");
                }
            }
        };
        // The first and the last operation of a report, so that an interrupt can come before each.
        let first_and_last = [0, 0].map(Atomic::<u64>::new);
        let report = |_: &_, _: &Late<1, 1>, (): &()| {
            for step in &first_and_last {
                step.load(Relaxed);
                assert_ne!(ended.get(), Some(Ended::Over), "at {at}");
            }
        };
        interrupted(hook, || {
            engine.expire(END, 0, |_| 0, || (), |_| (), report);
        });
        if !fired.get() {
            break;
        }
        match ended.get() {
            Some(Ended::Over) => over += 1,
            Some(Ended::Reporting) => reporting += 1,
            None => (),
        }
        assert_eq!((engine.pending_count(), engine.free()), (0, 1), "at {at}");
    }
    // `reporting` counts at least the interrupts before these two operations, and before the first
    // check of the mark after them.
    assert!(reporting >= 3 && over >= 3, "{reporting} {over}");
}

#[test]
fn a_pool_is_full_for_an_interrupt_only_while_the_cell_is_in_hand() {
    // A pool of one cell, whose event ends. Until the cell is returned, an interrupt finds the pool
    // full.
    let (mut early, mut late) = (0, 0);
    for at in 0.. {
        let _seat = Machine::new().pin(0);
        let engine = engine(1);
        let ends = Rc::new(Ends::default());
        act(&engine, &ends, &Cell::new(0), Action::In(0));
        let (mut count, begun) = (0, Rc::new(Cell::new(None)));
        let hook = {
            let (engine, begun) = (engine.clone(), begun.clone());
            move || {
                count += 1;
                if count == at + 1 {
                    begun.set(Some(engine.event_in(&Cpu::guard(), &[9], 9, &[9])));
                }
            }
        };
        interrupted(hook, || out(&engine, &ends, 0));
        match begun.get() {
            None => break,
            Some(Begin::Full) => {
                early += 1;
                assert_eq!(late, 0, "not full, and full again");
            }
            Some(Begin::Started) => late += 1,
            Some(Begin::Crowded) => panic!("a crowd of one"),
        }
    }
    assert!(early > 0 && late > 0, "{early} {late}");
}

#[test]
fn an_alert_may_come_anywhere_in_an_alert() {
    for len in [1, 2, 4] {
        for at in 0.. {
            let ring = Rc::new(Ring::new(len, 0).unwrap());
            let alert = |number: u64| [number; WORDS];
            ring.push(alert, &[]).unwrap();
            let fired = Rc::new(Cell::new(None));
            let mut count = 0;
            let hook = {
                let (ring, fired) = (ring.clone(), fired.clone());
                move || {
                    count += 1;
                    if count == at + 1 {
                        fired.set(Some(ring.push(alert, &[])));
                    }
                }
            };
            let outer = interrupted(hook, || ring.push(alert, &[]));
            let Some(inner) = fired.get() else { break };
            for pushed in [outer, inner] {
                let (Ok(number) | Err(number)) = pushed;
                match ring.read(number, &mut []) {
                    Read::Ready(words) => {
                        assert_eq!(words, alert(number));
                        assert!(pushed.is_ok());
                    }
                    Read::Lost => {
                        assert!(pushed.is_err() || number + u64::from(len) <= ring.head())
                    }
                    Read::NotYet => panic!("a reader waits forever"),
                }
            }
            assert!(outer.is_ok() || inner.is_ok());
        }
    }
}

#[test]
fn interrupts_come_and_go_at_random() {
    let _seat = Machine::new().pin(1);
    let engine = engine(6);
    let ends = Rc::new(Ends::default());
    let serial = Rc::new(Cell::new(0));
    let random = Rc::new(Cell::new(0x2545_f491_4f6c_dd1d_u64));
    let next = move || {
        let mut x = random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        random.set(x);
        x
    };
    let action = |x: u64| {
        let key = x >> 8 & 3;
        match x & 15 {
            0..6 => Action::In(key),
            6 => Action::Unique(key),
            7 => Action::Expire,
            8..14 => Action::Out(key),
            14 => Action::Keep(key),
            _ => Action::Clear,
        }
    };
    let hook = {
        let (engine, ends, serial, next) =
            (engine.clone(), ends.clone(), serial.clone(), next.clone());
        move || {
            let x = next();
            if x % 8 == 0 {
                act(&engine, &ends, &serial, action(x >> 20));
            }
        }
    };
    interrupted(hook, || {
        for _ in 0..200_000 {
            // the list of ends only needs to find recent duplicates
            if ends.0.borrow().len() > 200 {
                ends.0.borrow_mut().clear();
                ends.1.borrow_mut().clear();
            }
            act(&engine, &ends, &serial, action(next() >> 20));
        }
    });
    drain(&engine, &ends, 4);
    let ended = engine.stats().total(Counter::Ended);
    assert!(ended > 50_000, "{ended}");
    assert!(
        engine.stats().total(Counter::Full) > 0,
        "a pool that is never full proves little"
    );
}
