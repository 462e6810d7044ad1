// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The surroundings: the threads and CPUs with lanes, and the arrows between lanes.

use std::collections::{HashMap, HashSet};

use lt_common::out;
use lt_model::{Class, Interval, ThreadId};
use lt_proc::Nanos;

use super::Scene;
use crate::html::{Arrow, View};

/// Maximum number of lanes for threads of the path, for CPUs, and for other threads.
const PATH: usize = 48;
const CPUS: usize = 32;
const OTHERS: usize = 24;
/// Maximum number of arrows.
const ARROWS: usize = 4000;

/// The lane of each thread and of each CPU.
#[derive(Default)]
pub(super) struct Places {
    pub(super) threads: HashMap<u32, usize>,
    pub(super) cpus: HashMap<u32, usize>,
}

impl Scene<'_> {
    /// The threads with lanes: the threads of the path, and the others that were awake the longest.
    pub(super) fn threads(&self, left_out: &mut Vec<String>) -> (Vec<ThreadId>, Vec<ThreadId>) {
        let (from, to) = self.range;
        let mut seen = HashSet::new();
        let mut mine = self.threads.clone();
        mine.retain(|id| seen.insert(*id));
        if mine.len() > PATH {
            left_out.push(format!(
                "Of {} threads of the path, only the first {PATH} have lanes of their own.",
                mine.len()
            ));
            mine.truncate(PATH);
        }
        let is_awake = |i: &Interval| !matches!(i.state.class(), Class::Blocked | Class::Unknown);
        let awake = |id: ThreadId| -> u64 {
            let thread = self.model.thread(id);
            let all = thread.into_iter().flat_map(|t| t.between(from, to));
            let part = |i: Interval| i.end.min(to) - i.begin.max(from);
            all.filter(is_awake).map(part).sum()
        };
        let all = (0..self.model.threads.len() as u32).map(ThreadId);
        let others = all.filter(|id| !seen.contains(id));
        let mut others: Vec<_> = others.map(|id| (id, awake(id))).collect();
        others.retain(|(_, time)| *time > 0);
        others.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let rest = others.split_off(others.len().min(OTHERS));
        if !rest.is_empty() {
            left_out.push(format!(
                "Of {} other threads that were awake, only the {OTHERS} that were awake the longest have lanes; the \
                 remaining {} were awake for {} in all.",
                OTHERS + rest.len(),
                rest.len(),
                Nanos(rest.iter().map(|(_, time)| time).sum())
            ));
        }
        (mine, others.into_iter().map(|(id, _)| id).collect())
    }

    /// The CPUs with lanes.
    pub(super) fn processors(&self, left_out: &mut Vec<String>) -> Vec<usize> {
        let (from, to) = self.range;
        let is_there = |cpu: &usize| {
            let cpu = self.model.processors.get(*cpu);
            cpu.is_some_and(|p| p.between(from, to).next().is_some())
        };
        let mut cpus: Vec<_> = (0..self.model.processors.len()).filter(is_there).collect();
        if cpus.len() > CPUS {
            left_out.push(format!(
                "Only {CPUS} of {} CPUs have lanes: those of the path first.",
                cpus.len()
            ));
            let of_path: HashSet<usize> = self.cpus.iter().map(|cpu| *cpu as usize).collect();
            cpus.sort_by_key(|cpu| (!of_path.contains(cpu), *cpu));
            cpus.truncate(CPUS);
            cpus.sort_unstable();
        }
        cpus
    }

    /// Adds an arrow from each recorded waker to the end of the wait, for waits of the path first.
    pub(super) fn arrows(&self, places: &Places, view: &mut View) {
        let (from, to) = self.range;
        let of_path: HashSet<_> = self.waits.iter().map(|w| (w.thread, w.until)).collect();
        let mut all = Vec::new();
        for (id, lane) in &places.threads {
            let id = ThreadId(*id);
            let thread = self.model.thread(id);
            for interval in thread.into_iter().flat_map(|t| t.between(from, to)) {
                let Some(waker) = interval.waker.and_then(|waker| self.model.waker(waker)) else {
                    continue;
                };
                let begin = match waker.by() {
                    Some(by) => places.threads.get(&by.0),
                    None => places.cpus.get(&waker.cpu),
                };
                let is_there = waker.time >= from && interval.end < to;
                if let Some(begin) = begin.filter(|begin| is_there && *begin != lane) {
                    let is_of_path = of_path.contains(&(id, interval.end));
                    let (time, end) = (waker.time - from, interval.end - from);
                    all.push(Arrow(time, *begin, end, *lane, is_of_path));
                }
            }
        }
        all.sort_by_key(|Arrow(begin, lane, end, to, of_path)| {
            (!of_path, *end, *to, *begin, *lane)
        });
        if all.len() > ARROWS {
            view.left_out.push(format!(
                "Only {} of {} wakeups have arrows: those of the path first.",
                out::thousands(ARROWS as u64),
                out::thousands(all.len() as u64)
            ));
            all.truncate(ARROWS);
        }
        view.arrows = all;
    }
}
