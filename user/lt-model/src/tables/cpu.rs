// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Time on CPUs, and the waits of threads that were switched out while runnable.
//!
//! The time of a thread on a CPU is the sum of all recorded parts of runs, cut at gaps and at the ends of the range.
//! Only complete runs are counted, and enter the percentiles.

use foldhash::HashMap;

use super::Machine;
use super::ground::{Ground, Mark};
use super::group::{By, Case, Extra, Kind};
use super::step::{Seen, Step};
use super::table::{Range, Table, Why};
use crate::event::{Priority, What};
use crate::sleep::SwitchedOut;

/// A thread on a CPU.
#[derive(Debug, Clone, Copy)]
struct Running {
    tid: i32,
    since: u64,
    priority: Option<Priority>,
}

/// A thread that was switched out while runnable.
#[derive(Debug, Clone, Copy)]
struct Out {
    since: Mark,
    /// The CPU that it left.
    cpu: u32,
}

#[derive(Debug)]
pub(super) struct Cpu {
    runs: Table,
    waits: Table,
    running: HashMap<u32, Running>,
    out: HashMap<i32, Out>,
    /// The CPU where each thread ran last, and when it left.
    last: HashMap<i32, (u32, Mark)>,
}

impl Cpu {
    pub(super) fn new(range: Range, by: Option<By>) -> Self {
        let by = by.unwrap_or(By::Thread);
        Self {
            runs: Table::new(Kind::Run, range, by),
            waits: Table::new(Kind::Preempted, range, by),
            running: HashMap::default(),
            out: HashMap::default(),
            last: HashMap::default(),
        }
    }

    /// The run of a thread up to now, unless the CPU was idle.
    fn run(ground: &mut Ground, of: Running, time: u64, cpu: u32) -> Option<Case> {
        let mut case = ground.case((of.since, time), cpu, Some(of.tid), None);
        case.priority = of.priority;
        (of.tid != 0).then_some(case)
    }

    fn leaves(
        &mut self,
        ground: &mut Ground,
        (time, cpu): (u64, u32),
        (tid, out, priority): (i32, SwitchedOut, Option<Priority>),
    ) {
        let of = self.running.remove(&cpu);
        // Without an earlier switch, the thread has run for as long as the CPU has been recorded.
        let since = of.map_or_else(|| ground.since(cpu), |of| Some(of.since));
        let run = since.map(|since| Running {
            // An exec may have changed the number of the thread meanwhile.
            tid: of.map_or(tid, |of| of.tid),
            since,
            priority: of.and_then(|of| of.priority).or(priority),
        });
        if let Some(case) = run.and_then(|run| Self::run(ground, run, time, cpu)) {
            self.runs.spend(&case);
            match of {
                Some(_) => self.runs.count(&case),
                None => self.runs.miss_case(&case, ground.why_on(cpu)),
            }
        }
        if tid == 0 {
            return;
        }
        let since = ground.mark(time);
        match out {
            SwitchedOut::Preempted => {
                self.out.insert(tid, Out { since, cpu });
            }
            SwitchedOut::Blocked(_) | SwitchedOut::Dead => {
                self.out.remove(&tid);
            }
        }
        match out {
            SwitchedOut::Dead => self.last.remove(&tid),
            _ => self.last.insert(tid, (cpu, since)),
        };
    }

    fn enters(
        &mut self,
        ground: &mut Ground,
        (time, cpu): (u64, u32),
        (tid, priority): (i32, Option<Priority>),
    ) {
        let run = Running {
            tid,
            since: time,
            priority,
        };
        self.running.insert(cpu, run);
        if tid == 0 {
            return;
        }
        if let Some((last, since)) = self.last.get(&tid).copied()
            && last != cpu
            && !ground.spans(since)
            && let Some(case) = Self::run(ground, run, time, cpu)
        {
            self.runs.note(&case, Extra::Migrations);
        }
        if let Some(out) = self.out.remove(&tid) {
            let mut case = ground.case((out.since.time, time), out.cpu, Some(tid), None);
            case.priority = priority;
            match ground.spans(out.since) {
                true => self.waits.miss_case(&case, ground.why()),
                false => self.waits.measure(&case),
            }
        }
    }
}

impl Machine for Cpu {
    fn see(&mut self, ground: &mut Ground, seen: &Seen<'_>) {
        match seen.step {
            Step::Known(What::Switch {
                prev,
                out,
                prev_prio,
                next,
                next_prio,
                ..
            }) => {
                let place = (seen.time, seen.cpu);
                self.leaves(ground, place, (prev, out, prev_prio));
                self.enters(ground, place, (next, next_prio));
            }
            Step::Known(What::Fork { child, .. }) | Step::New { tid: child, .. } => {
                self.out.remove(&child);
                self.last.remove(&child);
            }
            _ => {
                if let Some((old, tid)) = ground.renumbers(seen) {
                    let place = (seen.time, seen.cpu);
                    self.leaves(ground, place, (old, SwitchedOut::Dead, None));
                    self.enters(ground, place, (tid, None));
                }
            }
        }
    }

    fn lost(&mut self, ground: &mut Ground, time: u64, cpu: u32, why: Why) {
        if let Some(since) = ground.since(cpu).filter(|since| *since < time) {
            self.runs.record(cpu, since, time);
        }
        if let Some(of) = self.running.remove(&cpu)
            && let Some(case) = Self::run(ground, of, time, cpu)
        {
            self.runs.spend(&case);
            self.runs.miss_case(&case, why);
        }
    }

    fn finish(&mut self, ground: &mut Ground, time: u64) {
        for cpu in 0..ground.cpus() {
            if let Some(since) = ground.since(cpu).filter(|since| *since < time) {
                self.runs.record(cpu, since, time);
            }
        }
        for (cpu, of) in std::mem::take(&mut self.running) {
            if let Some(case) = Self::run(ground, of, time, cpu) {
                self.runs.spend(&case);
                self.runs.miss_case(&case, Why::Outside);
            }
        }
        for (tid, out) in std::mem::take(&mut self.out) {
            let why = ground.why_since(out.since);
            self.waits.miss_open(out.since.time, Some((tid, None)), why);
        }
        if ground.absent.is_some() {
            self.waits.give_up();
        }
    }

    fn growing(&mut self) -> Vec<&mut Table> {
        vec![&mut self.runs, &mut self.waits]
    }

    fn tables(self: Box<Self>) -> Vec<Table> {
        vec![self.runs, self.waits]
    }
}
