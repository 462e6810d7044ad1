// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Wakeups: from `sched_waking` to the switch to the woken thread, as the tracker `wakeup` measures it. Without
//! `sched_waking`, a wakeup starts at `sched_wakeup`.
//!
//! A thread may be woken while it still runs. If its own CPU wakes it, the thread continues without a wait. If another
//! CPU wakes it, the thread may be about to sleep: the wakeup counts if the thread is then switched out asleep, and is
//! void if the thread stays runnable.

use foldhash::HashMap;

use super::Machine;
use super::ground::{Ground, Mark};
use super::group::{By, Kind};
use super::step::{Seen, Step};
use super::table::{Range, Table, Why};
use crate::event::What;
use crate::sleep::SwitchedOut;

/// The known state of a thread.
#[derive(Debug, Default)]
struct Thread {
    /// Set from the wakeup on.
    woken: Option<Woken>,
    asleep: bool,
}

#[derive(Debug, Clone, Copy)]
struct Woken {
    since: Mark,
    /// Whether the thread was still running when it was woken; false once it is switched out asleep.
    awake: bool,
}

#[derive(Debug)]
pub(super) struct Wakeups {
    table: Table,
    threads: HashMap<i32, Thread>,
    /// Whether `sched_waking` is recorded.
    wakings: bool,
}

impl Wakeups {
    pub(super) fn new(range: Range, by: Option<By>, wakings: bool) -> Self {
        Self {
            table: Table::new(Kind::Wakeup, range, by.unwrap_or(By::Thread)),
            threads: HashMap::default(),
            wakings,
        }
    }

    fn wake(&mut self, ground: &mut Ground, seen: &Seen<'_>, tid: i32) {
        if tid == 0 || ground.who(seen) == Some(tid) {
            return;
        }
        let awake = ground.runs(tid);
        if awake && !self.wakings {
            return;
        }
        let thread = self.threads.entry(tid).or_default();
        let since = ground.mark(seen.time);
        let earlier = thread.woken.replace(Woken { since, awake });
        if earlier.is_some_and(|earlier| !earlier.awake) {
            // Only a sleeping thread is woken, so it has run since the earlier wakeup.
            let who = ground.named(tid);
            self.table.miss(seen.time, Some(who), ground.why());
        }
    }

    fn leaves(&mut self, ground: &mut Ground, time: u64, tid: i32, out: SwitchedOut) {
        if tid == 0 {
            return;
        }
        if out == SwitchedOut::Dead {
            self.threads.remove(&tid);
            return;
        }
        let thread = self.threads.entry(tid).or_default();
        thread.asleep = matches!(out, SwitchedOut::Blocked(_));
        match &mut thread.woken {
            Some(woken) if woken.awake && thread.asleep => woken.awake = false,
            Some(woken) => {
                if !woken.awake {
                    // The switch to the thread is missing.
                    let who = ground.named(tid);
                    self.table.miss(time, Some(who), ground.why());
                }
                thread.woken = None;
            }
            None => {}
        }
    }
}

impl Machine for Wakeups {
    fn see(&mut self, ground: &mut Ground, seen: &Seen<'_>) {
        match seen.step {
            Step::Known(What::Waking { tid, .. }) if self.wakings => self.wake(ground, seen, tid),
            Step::Known(What::Wakeup { tid, .. }) if !self.wakings => {
                self.wake(ground, seen, tid);
            }
            Step::Known(What::Wakeup { tid, .. }) => {
                // The thread does not go to sleep.
                if let Some(thread) = self.threads.get_mut(&tid)
                    && ground.runs(tid)
                {
                    thread.woken = thread.woken.filter(|woken| !woken.awake);
                }
            }
            Step::New { tid, .. } => {
                self.threads.remove(&tid);
                self.wake(ground, seen, tid);
            }
            Step::Known(What::Fork { child, .. }) => {
                self.threads.remove(&child);
            }
            Step::Known(What::Switch {
                prev,
                out,
                next,
                next_prio,
                ..
            }) => {
                self.leaves(ground, seen.time, prev, out);
                if next == 0 {
                    return;
                }
                let thread = self.threads.entry(next).or_default();
                let was_asleep = std::mem::take(&mut thread.asleep);
                let Some(woken) = thread.woken.take() else {
                    if was_asleep {
                        let who = ground.named(next);
                        self.table.miss(seen.time, Some(who), ground.why());
                    }
                    return;
                };
                let times = (woken.since.time, seen.time);
                let mut case = ground.case(times, seen.cpu, Some(next), None);
                case.priority = next_prio;
                match (woken.awake, ground.spans(woken.since)) {
                    (_, true) => self.table.miss_case(&case, ground.why()),
                    // The switch from the thread is missing.
                    (true, false) => self.table.miss_case(&case, Why::Lost),
                    (false, false) => self.table.measure(&case),
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, ground: &mut Ground, _time: u64) {
        for woken in self.threads.iter().filter_map(|(tid, thread)| {
            let woken = thread.woken.filter(|woken| !woken.awake)?;
            Some((*tid, woken))
        }) {
            let (tid, woken) = woken;
            let why = ground.why_since(woken.since);
            self.table
                .miss_open(woken.since.time, Some((tid, None)), why);
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
