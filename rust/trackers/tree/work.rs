// SPDX-License-Identifier: GPL-2.0

//! Work that programs mark: the chain of a task continues under a cookie until the work is done.
//!
//! ```text
//!   interrupt --> ... --> switch --> (tip of the task) ----> its next sleep
//!                                          | begin COOKIE
//!                                          +-----> (work) ---------------> alert
//!                                                            done COOKIE, in any task
//! ```
//!
//! Work has its own engine. The key is the cookie. Programs with write access can exhaust the
//! capacity of this engine (`work_events`), but not the capacity for tips. The data has the layout
//! of a tip's data; the chain in it also has the cookie, for alerts.
//!
//! # Contexts
//!
//! A system call of the task that writes the mark. Functions that take a guard run under it, and so
//! does `Probes::jobs`. Turning the instance off waits for the holders of the guard, and then drops
//! the work, so no work remains once the instance is off.

use super::{
    chain::{self, begin, task, Kind, Look, Origin, State, Step, Words, PLACE},
    owner,
    show::{details, End},
    tasks, Data, Guard, InData, Probes, DATA, PARAM_WORK_EVENTS, WORK,
};
use crate::{
    engine::{
        event::{Event, EventCopy},
        hash::Seed,
        platform::Platform,
        stats::{Counter, Stats},
        step::Next,
        Begin, Engine, Late,
    },
    instance::{
        work::{Cookie, Work, COOKIE_MAX},
        Second, Values,
    },
    sys::{memory, platform::Kernel, random, task::TaskRef},
    text::pack,
};
use kernel::{prelude::*, seq_file::SeqFile, seq_print};

/// Number of words of the key: the bytes, and their number.
const KEY: usize = COOKIE_MAX / 8 + 1;
const _: () = assert!(COOKIE_MAX == chain::COOKIE_MAX);

type Key = [u64; KEY];

fn key(cookie: Cookie<'_>) -> Key {
    let mut key: Key = pack(cookie.bytes());
    key[KEY - 1] = cookie.bytes().len() as u64;
    key
}

/// The unfinished work of an instance.
pub(super) struct Jobs {
    engine: Engine<KEY, DATA, Kernel>,
}

impl Jobs {
    /// Creates the engine of an instance with `end=work`; `None` for any other instance. May sleep;
    /// fails with `ENOMEM`.
    pub(super) fn new(values: &Values) -> Result<Option<KBox<Self>>> {
        if values[super::PARAM_END] != u128::from(WORK) {
            return Ok(None);
        }
        let events = values[PARAM_WORK_EVENTS] as u32;
        memory::check(events as usize * size_of::<Event<KEY, DATA>>())?;
        let [a, b] = random::words();
        let jobs = try_init!(Self {
            // The threshold is set before it is used.
            engine: Engine::growing(events, events, 0, Seed::new(a, b), false)?,
        }? Error);
        Ok(Some(KBox::init(jobs, GFP_KERNEL)?))
    }

    /// Drops all work, while the instance is off.
    pub(super) fn clear(&self) {
        self.engine.clear();
    }

    /// Takes back the cells that an offline CPU has cached.
    pub(super) fn cpu_gone(&self, cpu: usize) {
        self.engine.cpu_gone(cpu);
    }

    /// Passes a copy of each unit of work to `see`, in the form of a tip.
    pub(super) fn each(&self, see: &mut dyn FnMut(EventCopy<1, DATA>) -> Result) -> Result {
        self.engine.each_pending(|event| {
            see(EventCopy {
                start: event.start,
                found: event.found,
                key: [event.key[0]],
                data: event.data,
            })
        })
    }
}

impl Second for Jobs {
    fn stats(&self) -> &Stats {
        self.engine.stats()
    }

    fn pending(&self) -> u64 {
        self.engine.pending_count()
    }

    fn show(&self, out: &SeqFile) {
        for (counter, name) in [
            (Counter::Started, "work_begun"),
            (Counter::Ended, "work_done"),
            (Counter::Full, "work_full"),
            (Counter::Unmatched, "work_unmatched"),
        ] {
            seq_print!(out, "{name} {}\n", self.stats().total(counter));
        }
        seq_print!(out, "work_pending {}\n", self.pending());
        seq_print!(out, "work_free {}\n", self.engine.free());
    }
}

/// Converts the event of a unit of work to the event of a tip. The data does not depend on the key.
fn as_tip(late: &Late<KEY, DATA>) -> Late<1, DATA> {
    late.with_key([0])
}

impl Work for Probes {
    fn begin(&self, cookie: Cookie<'_>) -> Result {
        let guard = Kernel::guard();
        let jobs = self.jobs()?;
        TaskRef::with_current(|current| self.begin_work(&guard, jobs, &current, cookie))
    }

    fn done(&self, cookie: Cookie<'_>) -> Result {
        let guard = Kernel::guard();
        let jobs = self.jobs()?;
        TaskRef::with_current(|current| self.end_work(&guard, jobs, &current, cookie));
        Ok(())
    }
}

impl Probes {
    /// Returns the unfinished work, if the instance has `end=work` and is on. Requires the guard,
    /// see the head of this file.
    fn jobs(&self) -> Result<&Jobs> {
        let jobs = self.own.jobs.as_deref();
        jobs.filter(|_| self.core.is_enabled()).ok_or(ENODEV)
    }

    fn begin_work(
        &self,
        guard: &Guard,
        jobs: &Jobs,
        current: &TaskRef<'_>,
        cookie: Cookie<'_>,
    ) -> Result {
        let (core, now, cpu) = (&self.core, Kernel::now(), tasks::this_cpu(guard));
        let mut data: Data = [0; DATA];
        let mut chain = InData(&mut data);
        let taken = self.take_along(guard, current, &mut chain);
        let (start, from) = match taken {
            Some(start) => (start, chain.first_cpu()),
            None => {
                chain.begin(now, Origin::Work);
                chain.set(PLACE, tasks::place(current, cpu).to_word());
                (now, cpu)
            }
        };
        let is_wanted = tasks::may_be_wanted(core, current)
            && tasks::is_wanted(core, current, from)
            && self.is_urgent(current)
            && self.is_origin_wanted(&chain);
        if !is_wanted {
            jobs.engine.filtered(guard);
            return Ok(());
        }
        let bytes = cookie.bytes();
        let (kind, subject) = (Kind::Begin, begin(current.tid(), bytes.len()));
        chain.push_cookie(now, Step { kind, cpu, subject }, bytes);
        let mut counts = chain.counts();
        counts.set_state(State::Working);
        counts.set_target(true);
        chain.set_counts(counts);
        let words = tasks::owner(current).to_words();
        data[..words.len()].copy_from_slice(&words);
        match jobs
            .engine
            .event_in_unique(guard, &key(cookie), start, &data)
        {
            Begin::Started => {
                if taken.is_some() {
                    self.has_begun_work(guard, current);
                }
                Ok(())
            }
            Begin::Full | Begin::Crowded => Err(ENOSPC),
        }
    }

    fn end_work(&self, guard: &Guard, jobs: &Jobs, current: &TaskRef<'_>, cookie: Cookie<'_>) {
        let (now, cpu) = (Kernel::now(), tasks::this_cpu(guard));
        let (engine, threshold) = (&jobs.engine, self.core.engine().threshold());
        if engine.threshold() != threshold {
            engine.set_threshold(threshold);
        }
        let (kind, subject) = (Kind::Done, task(current.tid(), current.prio()));
        let step = Step { kind, cpu, subject };
        let found = engine.step(
            guard,
            &key(cookie),
            |_| true,
            |work| {
                let mut data = work.data();
                let chain = InData(&mut data);
                let end = now.max(chain.last());
                self.own.totals.count(guard, &chain, end);
                Next::End(end)
            },
            |late| {
                self.report(guard, &as_tip(late), End::Work, |chain, end| {
                    chain.push(end, step)
                })
            },
        );
        if found.is_none() {
            engine.unmatched(guard);
        }
    }

    /// Reports work that has timed out. Returns the nanoseconds until the next search.
    pub(super) fn expire_work(&self) -> Option<u64> {
        let jobs = self.own.jobs.as_deref()?;
        let details =
            |late: &Late<1, DATA>, _| tasks::reported(&self.core, details(&late.data, End::None));
        let all = |_: &Data| true;
        self.core
            .expire_in(&jobs.engine, as_tip, owner, all, super::settle, details)
    }
}
