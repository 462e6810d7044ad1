// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Sleeps: from a thread's switch-out to its wakeup, with the kind of the sleep and what ended it.
//!
//! ```text
//! running    switched out, asleep    woken         running
//! ---------->|-------- sleep ------->|-- wakeup -->|------>
//! ```
//!
//! A thread that is woken on its way to sleep, before it is switched out, does not sleep. If it is woken once more before
//! it runs, the first wakeup was void, and the second one ends the sleep. `trigger.rs` finds the waker.

use foldhash::HashMap;

use super::Machine;
use super::ground::{Ground, Mark};
use super::group::{By, Extra, InCall, Kind, Object, Trigger};
use super::step::{Seen, Step};
use super::table::{Range, Table, Why};
use super::trigger::{Recorded, Triggers};
use crate::event::{Priority, What};
use crate::sleep::{Sleep, SwitchedOut};

#[derive(Debug, Clone, Copy)]
enum State {
    /// Runs, or was switched out while runnable. `woken`: another CPU has woken it since it began to run.
    Awake { woken: bool },
    /// Switched out asleep. `woken`: it seems to have been woken just before.
    Asleep {
        sleep: Sleep,
        priority: Option<Priority>,
        woken: bool,
    },
    /// Has been woken, and has not run since.
    Woken,
}

/// The known state of a thread, and its start.
#[derive(Debug, Clone, Copy)]
struct Thread {
    state: State,
    since: Mark,
}

impl Thread {
    fn is_asleep(&self) -> bool {
        matches!(self.state, State::Asleep { woken: false, .. })
    }
}

#[derive(Debug)]
pub(super) struct Sleeps {
    table: Table,
    threads: HashMap<i32, Thread>,
    /// The system call that each thread is in, and since when; only for [`By::Call`].
    calls: Option<HashMap<i32, (InCall, Mark)>>,
    /// Whether `sched_waking` is recorded; otherwise `sched_wakeup` ends a sleep.
    wakings: bool,
    triggers: Triggers,
}

impl Sleeps {
    pub(super) fn new(range: Range, by: Option<By>, recorded: Recorded) -> Self {
        let follows_calls = by == Some(By::Call) && recorded.calls;
        Self {
            table: Table::new(Kind::Sleep, range, by.unwrap_or(By::Thread)),
            threads: HashMap::default(),
            calls: follows_calls.then(HashMap::default),
            wakings: recorded.wakings,
            triggers: Triggers::new(recorded),
        }
    }

    /// Follows which system call each thread is in.
    fn follow_calls(&mut self, ground: &mut Ground, seen: &Seen<'_>) {
        let Some(calls) = &mut self.calls else {
            return;
        };
        let who = ground.who(seen);
        let (tid, call) = match seen.step {
            // The end of this call is not recorded: a thread returns to where a signal interrupted it.
            Step::Known(What::Call {
                name: b"rt_sigreturn" | b"sigreturn",
            }) => (who, InCall::Unknown),
            Step::Known(What::Call { name }) => (who, InCall::Named(ground.names.number(name))),
            Step::Known(What::Futex { .. }) => (who, InCall::Named(ground.names.number(b"futex"))),
            Step::Return { .. } => (who, InCall::Outside),
            // A new thread returns from the call of its creator, which is no call of its own.
            Step::Known(What::Fork { child, .. }) => (Some(child), InCall::Outside),
            Step::Known(What::Exec { tid, old }) => {
                if let Some(call) = calls.remove(&old) {
                    calls.insert(tid, call);
                }
                return;
            }
            Step::Known(What::Switch {
                prev,
                out: SwitchedOut::Dead,
                ..
            }) => {
                calls.remove(&prev);
                return;
            }
            _ => return,
        };
        if let Some(tid) = tid.filter(|tid| *tid != 0) {
            calls.insert(tid, (call, ground.mark(seen.time)));
        }
    }

    /// The system call that a thread is in, if calls are followed.
    fn call_of(&self, ground: &Ground, tid: i32) -> Option<InCall> {
        let calls = self.calls.as_ref()?;
        Some(match calls.get(&tid) {
            // The thread may have left the call, or started another one, in a gap.
            Some((call, since)) if !ground.spans(*since) => *call,
            _ => InCall::Unknown,
        })
    }

    fn wake(&mut self, ground: &mut Ground, seen: &Seen<'_>, tid: i32, name: &[u8]) {
        if tid == 0 || ground.who(seen) == Some(tid) {
            return;
        }
        let since = ground.mark(seen.time);
        if ground.runs(tid) {
            // The thread may be on its way to sleep.
            let woken = self.wakings;
            let state = State::Awake { woken };
            self.threads.insert(tid, Thread { state, since });
            return;
        }
        let state = State::Woken;
        match self.threads.insert(tid, Thread { state, since }) {
            Some(Thread {
                state: State::Asleep {
                    sleep, priority, ..
                },
                since,
            }) => {
                let woken_by = self.triggers.waker(ground, seen, (tid, name));
                let times = (since.time, seen.time);
                let object = Some(Object::Sleep(sleep, woken_by));
                let mut case = ground.case(times, seen.cpu, Some(tid), object);
                case.priority = priority;
                case.call = self.call_of(ground, tid);
                if ground.spans(since) {
                    return self.table.miss_case(&case, ground.why());
                }
                self.table.measure(&case);
                if woken_by == Trigger::Unrecorded && self.table.is_inside(&case) {
                    self.table.note(&case, Extra::Unknown);
                }
            }
            // A preempted thread that was on its way to sleep.
            Some(Thread {
                state: State::Awake { .. },
                since,
            }) if !ground.spans(since) => {}
            // Only a sleeping thread is woken, so the switch-out of this thread is missing.
            _ => {
                let who = ground.named(tid);
                self.table.miss(seen.time, Some(who), ground.why());
            }
        }
    }

    /// Sets the state of a thread; `None` if it has ended. If the thread was asleep, its wakeup is missing.
    fn go(&mut self, ground: &mut Ground, time: u64, tid: i32, state: Option<State>) {
        if tid == 0 {
            return;
        }
        let since = ground.mark(time);
        let before = match state {
            Some(state) => self.threads.insert(tid, Thread { state, since }),
            None => self.threads.remove(&tid),
        };
        if before.is_some_and(|before| before.is_asleep()) {
            let who = ground.named(tid);
            self.table.miss(time, Some(who), ground.why());
        }
    }
}

impl Machine for Sleeps {
    fn see(&mut self, ground: &mut Ground, seen: &Seen<'_>) {
        let wakings = self.wakings;
        match seen.step {
            Step::Known(What::Waking { tid, name, .. }) if wakings => {
                self.wake(ground, seen, tid, name);
            }
            Step::Known(What::Wakeup { tid, name, .. }) if !wakings => {
                self.wake(ground, seen, tid, name);
            }
            Step::Known(What::Wakeup { tid, .. }) => {
                // A running thread does not go to sleep.
                if let Some(thread) = self.threads.get_mut(&tid)
                    && ground.runs(tid)
                {
                    thread.state = State::Awake { woken: false };
                }
            }
            Step::New { tid, .. } | Step::Known(What::Fork { child: tid, .. }) => {
                self.go(ground, seen.time, tid, Some(State::Woken));
            }
            Step::Known(What::Switch {
                prev,
                out,
                prev_prio,
                next,
                ..
            }) => {
                let before = self.threads.get(&prev).map(|thread| thread.state);
                let state = match out {
                    SwitchedOut::Preempted => Some(State::Awake { woken: false }),
                    SwitchedOut::Blocked(sleep) => Some(State::Asleep {
                        sleep,
                        priority: prev_prio,
                        woken: matches!(before, Some(State::Awake { woken: true })),
                    }),
                    SwitchedOut::Dead => None,
                };
                self.go(ground, seen.time, prev, state);
                let state = State::Awake { woken: false };
                self.go(ground, seen.time, next, Some(state));
            }
            _ => {}
        }
        self.follow_calls(ground, seen);
        self.triggers.follow(seen);
    }

    fn lost(&mut self, _ground: &mut Ground, time: u64, cpu: u32, _why: Why) {
        self.triggers.lost(time, cpu);
    }

    fn finish(&mut self, ground: &mut Ground, _time: u64) {
        let asleep = self.threads.iter();
        for (tid, thread) in asleep.filter(|(_, thread)| thread.is_asleep()) {
            let why = ground.why_since(thread.since);
            self.table
                .miss_open(thread.since.time, Some((*tid, None)), why);
        }
        if ground.absent.is_some() {
            self.table.give_up();
        }
    }

    fn growing(&mut self) -> Vec<&mut Table> {
        vec![&mut self.table]
    }

    fn tables(self: Box<Self>) -> Vec<Table> {
        vec![self.table]
    }
}
