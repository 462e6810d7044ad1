// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reclaim and compaction of memory, as the tracker `reclaim` measures them, and the activity of kswapd.
//!
//! A thread does one operation of each kind at a time. kswapd has an event each time it starts to reclaim, and another
//! event when it goes to sleep until it is needed again. It is active from the first start after a sleep to the next
//! sleep.

use foldhash::HashMap;

use super::Machine;
use super::ground::{Ground, Mark};
use super::group::{By, Kind, Object};
use super::step::{Reclaim, Seen, Step};
use super::table::{Range, Table};
use crate::event::What;

#[derive(Debug)]
pub(super) struct Reclaims {
    table: Table,
    open: HashMap<(i32, Reclaim), Mark>,
}

impl Reclaims {
    pub(super) fn new(range: Range, by: Option<By>) -> Self {
        Self {
            table: Table::new(Kind::Reclaim, range, by.unwrap_or(By::Process)),
            open: HashMap::default(),
        }
    }

    fn begin(&mut self, ground: &mut Ground, seen: &Seen<'_>, kind: Reclaim) {
        let Some(tid) = ground.who(seen) else {
            return;
        };
        let since = ground.mark(seen.time);
        let Some(earlier) = self.open.insert((tid, kind), since) else {
            return;
        };
        if kind == Reclaim::Kswapd && !ground.spans(earlier) {
            self.open.insert((tid, kind), earlier);
        } else {
            // The end of the earlier operation is missing.
            let who = ground.named(tid);
            self.table.miss(seen.time, Some(who), ground.why());
        }
    }

    fn end(&mut self, ground: &mut Ground, seen: &Seen<'_>, kind: Reclaim) {
        let who = ground.who(seen);
        let Some(since) = who.and_then(|tid| self.open.remove(&(tid, kind))) else {
            let who = who.map(|tid| ground.named(tid));
            return self.table.miss(seen.time, who, ground.why());
        };
        let times = (since.time, seen.time);
        let case = ground.case(times, seen.cpu, who, Some(Object::Reclaim(kind)));
        match ground.spans(since) {
            true => self.table.miss_case(&case, ground.why()),
            false => self.table.measure(&case),
        }
    }
}

impl Machine for Reclaims {
    fn see(&mut self, ground: &mut Ground, seen: &Seen<'_>) {
        match seen.step {
            Step::Reclaims(kind) => self.begin(ground, seen, kind),
            Step::Reclaimed(kind) => self.end(ground, seen, kind),
            Step::Known(What::Fork { child, .. }) => {
                // An older thread had this number, and its end is missing.
                for _ in self.open.extract_if(|(tid, _), _| *tid == child) {
                    let who = Some((child, None));
                    self.table.miss(seen.time, who, ground.why());
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, ground: &mut Ground, _time: u64) {
        for ((tid, _), since) in &self.open {
            let why = ground.why_since(*since);
            self.table.miss_open(since.time, Some((*tid, None)), why);
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
