// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Finds threads and interrupts that used the processors more in a given time than in the rest of the trace.

use foldhash::HashMap;

use crate::{Model, Stretch, ThreadId, Use};

use super::cause::Leaf;

/// A user of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Worker {
    /// A thread.
    Thread(ThreadId),
    /// An interrupt.
    Leaf(Leaf),
}

/// A user's share of the processors' time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Working {
    /// The user.
    pub who: Worker,
    /// Share in the requested time: 1.0 is one processor all the time.
    pub then: f64,
    /// Share outside of the requested time.
    pub otherwise: f64,
}

/// Users that used at least `least` processors more between two times than in the rest of the recorded time, largest
/// difference first. The rest is measured for each processor separately: a busy processor fills its buffer sooner, so
/// its events may cover less time. Users of a processor that has no recorded time in this rest are left out.
#[must_use]
pub fn unusual(model: &Model, from: u64, to: u64, least: f64) -> Vec<Working> {
    /// Working time inside the range, share outside of it, and whether each processor that the user used has recorded
    /// time outside.
    type Sum = (u64, f64, bool);
    let mut sums: HashMap<Worker, Sum> = HashMap::default();
    let (from, to) = (from.max(model.span.0), to.min(model.span.1));
    if from >= to {
        return Vec::new();
    }
    let share = |time: u64, of: u64| time as f64 / of as f64;
    for processor in &model.processors {
        // Time of a stretch inside and outside of the range.
        let parts = |stretch: &Stretch| {
            let inside = stretch.end.min(to).saturating_sub(stretch.begin.max(from));
            (inside, stretch.end - stretch.begin - inside)
        };
        let known = || {
            let all = processor.stretches.iter();
            all.filter(|stretch| stretch.used != Use::Unknown)
        };
        let rest: u64 = known().map(|stretch| parts(&stretch).1).sum();
        for stretch in known() {
            let who = match stretch.used {
                Use::Unknown | Use::Idle => continue,
                Use::Thread(thread) => Worker::Thread(thread),
                Use::Context(context) => Worker::Leaf(context.into()),
            };
            let (inside, outside) = parts(&stretch);
            let (then, otherwise, is_known) = sums.entry(who).or_insert((0, 0.0, true));
            *then += inside;
            *otherwise += share(outside, rest.max(1));
            *is_known &= rest > 0;
        }
    }
    let all = sums.into_iter().filter(|(_, (.., is_known))| *is_known);
    let all = all.map(|(who, (then, otherwise, _))| Working {
        who,
        then: share(then, to - from),
        otherwise,
    });
    let more = |w: &Working| w.then - w.otherwise;
    let mut list: Vec<_> = all.filter(|w| more(w) >= least).collect();
    list.sort_by(|a, b| more(b).total_cmp(&more(a)).then(a.who.cmp(&b.who)));
    list
}
