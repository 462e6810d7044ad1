// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Interrupt handlers, softirqs, and the time from a softirq's raise to its start.
//!
//! A handler is identified by its CPU and line, as by the tracker `irq`, since handlers that share a line run one after
//! the other. A softirq is identified by its CPU, its vector and the thread that it runs in, as by the tracker
//! `softirq`, since PREEMPT_RT preempts softirqs. If a softirq is raised again before it starts, its wait starts with
//! the first raise.

use super::Machine;
use super::ground::{Ground, Mark};
use super::group::{By, Kind, Object};
use super::step::{Seen, Step};
use super::table::{Range, Table};
use crate::context::Vector;
use crate::event::What;

/// A handler or softirq that runs.
#[derive(Debug, Clone, Copy)]
struct Open {
    cpu: u32,
    object: Object,
    /// The interrupted thread.
    tid: Option<i32>,
    since: Mark,
}

#[derive(Debug)]
pub(super) struct Irq {
    handlers: Table,
    softirqs: Table,
    raises: Table,
    open: Vec<Open>,
    raised: Vec<Open>,
}

/// Whether the object is a handler of this line, with any name.
fn is_line(object: Object, number: i32) -> bool {
    matches!(object, Object::Line(line, _) if line == number)
}

impl Irq {
    pub(super) fn new(range: Range, by: Option<By>) -> Self {
        let by = by.unwrap_or(By::Object);
        Self {
            handlers: Table::new(Kind::Handler, range, by),
            softirqs: Table::new(Kind::Softirq, range, by),
            raises: Table::new(Kind::Raise, range, by),
            open: Vec::new(),
            raised: Vec::new(),
        }
    }

    fn table(&mut self, object: Object) -> &mut Table {
        match object {
            Object::Line(..) => &mut self.handlers,
            _ => &mut self.softirqs,
        }
    }

    /// Starts a handler or softirq. If `is` matches an open handler or softirq, its end is missing.
    fn start(&mut self, ground: &mut Ground, open: Open, is: impl Fn(&Open) -> bool) {
        if let Some(place) = self.open.iter().position(is) {
            let earlier = self.open.remove(place);
            let who = earlier.tid.map(|tid| ground.named(tid));
            let why = ground.why_on(open.cpu);
            self.table(earlier.object).miss(open.since.time, who, why);
        }
        self.open.push(open);
    }

    /// Ends the handler or softirq that `is` matches. If there is none, its start is missing; `object` is `None` for a
    /// handler.
    fn end(
        &mut self,
        ground: &mut Ground,
        seen: &Seen<'_>,
        object: Option<Object>,
        is: impl Fn(&Open) -> bool,
    ) {
        let Some(place) = self.open.iter().rposition(is) else {
            let why = ground.why_on(seen.cpu);
            let who = ground.who(seen).map(|tid| ground.named(tid));
            let table = match object {
                Some(_) => &mut self.softirqs,
                None => &mut self.handlers,
            };
            return table.miss(seen.time, who, why);
        };
        let open = self.open.remove(place);
        let times = (open.since.time, seen.time);
        let case = ground.case(times, seen.cpu, open.tid, Some(open.object));
        match ground.spans_on(seen.cpu, open.since) {
            true => self
                .table(open.object)
                .miss_case(&case, ground.why_on(seen.cpu)),
            false => self.table(open.object).measure(&case),
        }
    }

    /// Ends the wait of a raised softirq, which starts now.
    fn raised(&mut self, ground: &mut Ground, seen: &Seen<'_>, object: Object) {
        let is = |open: &Open| open.cpu == seen.cpu && open.object == object;
        let who = ground.who(seen);
        let Some(place) = self.raised.iter().position(is) else {
            let why = ground.why_on(seen.cpu);
            let who = who.map(|tid| ground.named(tid));
            return self.raises.miss(seen.time, who, why);
        };
        let raise = self.raised.remove(place);
        let times = (raise.since.time, seen.time);
        let case = ground.case(times, seen.cpu, who, Some(object));
        match ground.spans_on(seen.cpu, raise.since) {
            true => self.raises.miss_case(&case, ground.why_on(seen.cpu)),
            false => self.raises.measure(&case),
        }
    }
}

impl Machine for Irq {
    fn see(&mut self, ground: &mut Ground, seen: &Seen<'_>) {
        let cpu = seen.cpu;
        let tid = ground.who(seen);
        let new = |ground: &Ground, object| Open {
            cpu,
            object,
            tid,
            since: ground.mark_on(cpu, seen.time),
        };
        match seen.step {
            Step::Known(What::Irq { number, name }) => {
                let name = ground.names.number(name);
                let open = new(ground, Object::Line(number, name));
                let is = |open: &Open| open.cpu == cpu && is_line(open.object, number);
                self.start(ground, open, is);
            }
            Step::Known(What::IrqEnd { number }) => {
                let is = |open: &Open| open.cpu == cpu && is_line(open.object, number);
                self.end(ground, seen, None, is);
            }
            Step::Known(What::Raise { vector }) => {
                let object = Object::Vector(Vector(vector));
                let is = |open: &Open| open.cpu == cpu && open.object == object;
                let open = new(ground, object);
                match self.raised.iter_mut().find(|open| is(open)) {
                    // A softirq that was raised before the gap may have run in it.
                    Some(earlier) if ground.spans_on(cpu, earlier.since) => {
                        let who = tid.map(|tid| ground.named(tid));
                        self.raises.miss(seen.time, who, ground.why_on(cpu));
                        *earlier = open;
                    }
                    Some(_) => {}
                    None => self.raised.push(open),
                }
            }
            Step::Known(What::Softirq { vector }) => {
                let object = Object::Vector(Vector(vector));
                self.raised(ground, seen, object);
                let is = |open: &Open| open.cpu == cpu && open.object == object && open.tid == tid;
                let open = new(ground, object);
                self.start(ground, open, is);
            }
            Step::Known(What::SoftirqEnd { vector }) => {
                let object = Object::Vector(Vector(vector));
                let is = |open: &Open| open.cpu == cpu && open.object == object && open.tid == tid;
                self.end(ground, seen, Some(object), is);
            }
            _ => {}
        }
    }

    fn finish(&mut self, ground: &mut Ground, _time: u64) {
        let why = |open: &Open| ground.why_on_since(open.cpu, open.since);
        for open in std::mem::take(&mut self.open) {
            let who = open.tid.map(|tid| (tid, None));
            self.table(open.object)
                .miss_open(open.since.time, who, why(&open));
        }
        for open in std::mem::take(&mut self.raised) {
            let who = open.tid.map(|tid| (tid, None));
            self.raises.miss_open(open.since.time, who, why(&open));
        }
    }

    fn growing(&mut self) -> Vec<&mut Table> {
        vec![&mut self.handlers, &mut self.softirqs, &mut self.raises]
    }

    fn tables(self: Box<Self>) -> Vec<Table> {
        vec![self.handlers, self.softirqs, self.raises]
    }
}
