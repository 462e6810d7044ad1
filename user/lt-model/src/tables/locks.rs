// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Contended locks of the kernel, and calls of `futex`.
//!
//! The key of a wait is the lock and the waiting thread, or the thread that the waiting interrupt has interrupted, as
//! for the tracker `lock`. A waiter for a mutex starts a new wait whenever it switches between spinning and sleeping;
//! all these waits count as one. A wait inside a wait at the same address belongs to the outer wait, since semaphores
//! and rt_mutexes have an internal spinlock.

use foldhash::HashMap;

use super::Machine;
use super::calls::Calls;
use super::ground::{Ground, Mark};
use super::group::{By, Kind, Object};
use super::step::{Seen, Step};
use super::table::{Range, Table};
use crate::event::What;

/// `LCB_F_MUTEX`
const MUTEX: u32 = 32;

/// The kind of a lock, as the tracker `lock` calls it. The flags are LCB_F_SPIN, _READ, _WRITE, _RT, _PERCPU and
/// _MUTEX, 1 to 32.
fn kind(flags: u32) -> &'static str {
    match flags {
        0 => "semaphore",
        1 => "spinlock",
        3 => "rwlock:R",
        5 => "rwlock:W",
        2 => "rwsem:R",
        4 => "rwsem:W",
        8 => "rtmutex",
        10 => "rwlock-rt:R",
        12 => "rwlock-rt:W",
        18 => "pcpu-sem:R",
        20 => "pcpu-sem:W",
        flags if flags & MUTEX != 0 => "mutex",
        _ => "other",
    }
}

/// The waiter: a thread, or the idle thread of a CPU.
type Waiter = Result<i32, u32>;

#[derive(Debug, Clone, Copy)]
struct Open {
    kind: &'static str,
    since: Mark,
    /// Number of open waits inside this wait.
    inside: u32,
}

#[derive(Debug)]
pub(super) struct Locks {
    table: Table,
    open: HashMap<(u64, Waiter), Open>,
    futexes: Calls,
}

impl Locks {
    pub(super) fn new(range: Range, by: Option<By>) -> Self {
        Self {
            table: Table::new(Kind::Contention, range, by.unwrap_or(By::Object)),
            open: HashMap::default(),
            futexes: Calls::of_futex(range, by),
        }
    }

    fn waiter(ground: &Ground, seen: &Seen<'_>) -> Option<Waiter> {
        let tid = ground.who(seen)?;
        Some(if tid == 0 { Err(seen.cpu) } else { Ok(tid) })
    }

    fn begin(&mut self, ground: &Ground, seen: &Seen<'_>, lock: u64, flags: u32) {
        let Some(waiter) = Self::waiter(ground, seen) else {
            return;
        };
        let since = ground.mark(seen.time);
        let new = Open {
            kind: kind(flags),
            since,
            inside: 0,
        };
        match self.open.get_mut(&(lock, waiter)) {
            // The wait continues. If there was a gap, this may be another wait, but then its end counts as missed.
            Some(_) if flags & MUTEX != 0 => {}
            // The earlier wait may have ended in the gap.
            Some(open) if ground.spans(open.since) => {
                *open = new;
                let who = waiter.ok().map(|tid| (tid, None));
                self.table.miss(seen.time, who, ground.why());
            }
            Some(open) => open.inside += 1,
            None => {
                self.open.insert((lock, waiter), new);
            }
        }
    }

    fn end(&mut self, ground: &mut Ground, seen: &Seen<'_>, lock: u64) {
        let waiter = Self::waiter(ground, seen);
        let open = waiter.and_then(|waiter| self.open.get_mut(&(lock, waiter)));
        let Some((waiter, open)) = waiter.zip(open) else {
            let why = ground.why();
            let who = waiter.and_then(Result::ok).map(|tid| ground.named(tid));
            return self.table.miss(seen.time, who, why);
        };
        let is_lost = ground.spans(open.since);
        if open.inside > 0 && !is_lost {
            open.inside -= 1;
            return;
        }
        let times = (open.since.time, seen.time);
        let object = Object::Lock(open.kind, lock);
        self.open.remove(&(lock, waiter));
        let tid = Some(waiter.unwrap_or(0));
        let case = ground.case(times, seen.cpu, tid, Some(object));
        match is_lost {
            true => self.table.miss_case(&case, ground.why()),
            false => self.table.measure(&case),
        }
    }
}

impl Machine for Locks {
    fn see(&mut self, ground: &mut Ground, seen: &Seen<'_>) {
        match seen.step {
            Step::Contended { lock, flags } => self.begin(ground, seen, lock, flags),
            Step::Acquired { lock } => self.end(ground, seen, lock),
            Step::Known(What::Fork { child, .. }) => {
                self.open.retain(|(_, waiter), _| *waiter != Ok(child));
            }
            _ => {}
        }
        self.futexes.see(ground, seen);
    }

    fn finish(&mut self, ground: &mut Ground, time: u64) {
        for ((_, waiter), open) in std::mem::take(&mut self.open) {
            let why = ground.why_since(open.since);
            let who = waiter.ok().map(|tid| (tid, None));
            self.table.miss_open(open.since.time, who, why);
        }
        if ground.absent.is_some() {
            self.table.give_up();
        }
        self.futexes.finish(ground, time);
    }

    fn growing(&mut self) -> Vec<&mut Table> {
        vec![&mut self.table, self.futexes.table()]
    }

    fn tables(self: Box<Self>) -> Vec<Table> {
        vec![self.table, self.futexes.into_table()]
    }
}
