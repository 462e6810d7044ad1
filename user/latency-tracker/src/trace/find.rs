// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Finds events by name while a trace is read, and relates the trace's clock to the time of day.

use lt_ctf::Reader;
use lt_model::{Model, State, ThreadId, Use};

use super::beside::Beside;
use super::identity;
use super::several::SECOND;
use super::when::Mark;

const DAY: i128 = 86_400 * SECOND as i128;

/// The times and CPUs of events with certain names.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    names: Vec<String>,
    /// The place in `names`, by the number of the event class.
    classes: Vec<Option<usize>>,
    found: Vec<Vec<(u64, u32)>>,
    /// Difference between the time since 1970 and the trace's clock, ns; `None` if the trace does not record it.
    epoch: Option<i128>,
}

impl Finder {
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let names: Vec<_> = names.into_iter().collect();
        Self {
            found: vec![Vec::new(); names.len()],
            names,
            ..Self::default()
        }
    }

    /// The first event `mark` from `from` on: its time, and the thread that was running, if any.
    pub(crate) fn first(
        &self,
        model: &Model,
        mark: &Mark,
        from: u64,
    ) -> Option<(u64, Option<ThreadId>)> {
        let place = self.names.iter().position(|name| *name == mark.name)?;
        let found = self.found.get(place)?.iter();
        let mut later = found.filter(|(time, _)| *time >= from);
        let Some(tid) = mark.tid else {
            let (time, cpu) = *later.next()?;
            return Some((time, running(model, cpu, time)));
        };
        let threads: Vec<_> = model.by_tid(tid).collect();
        later.find_map(|(time, cpu)| {
            let thread = threads.iter().find(|id| has(model, **id, *cpu, *time))?;
            Some((*time, Some(*thread)))
        })
    }

    /// The first time from `start` on at which the time of day is `time_of_day`, ns since midnight in UTC.
    pub(crate) fn at(&self, time_of_day: u64, start: u64) -> Option<u64> {
        let since = (i128::from(start) + self.epoch?).rem_euclid(DAY);
        let more = (i128::from(time_of_day) - since).rem_euclid(DAY);
        start.checked_add(u64::try_from(more).ok()?)
    }
}

/// The thread that was running on the CPU just before an event, unless the CPU was in an interrupt.
fn running(model: &Model, cpu: u32, time: u64) -> Option<ThreadId> {
    let processor = model.processors.get(cpu as usize)?;
    let before = time.saturating_sub(1);
    match processor.between(before, before + 1).next()?.used {
        Use::Thread(id) => Some(id),
        _ => None,
    }
}

/// Whether a thread had the CPU just before an event, perhaps interrupted.
fn has(model: &Model, id: ThreadId, cpu: u32, time: u64) -> bool {
    let before = time.saturating_sub(1);
    let thread = model.thread(id);
    let last = thread.and_then(|thread| thread.between(before, before + 1).next());
    last.is_some_and(|last| {
        let runs = matches!(last.state, State::Running(_) | State::Interrupted(_));
        runs && last.cpu == Some(cpu)
    })
}

impl Beside for Finder {
    fn begin(&mut self, reader: &Reader) {
        let place = |name: &str| self.names.iter().position(|of| of == name);
        self.classes = reader.classes().map(|class| place(&class.name)).collect();
        self.epoch = identity::epoch(reader);
    }

    fn see(&mut self, time: u64, event: &lt_ctf::Event<'_>) {
        let place = self.classes.get(event.class_index()).copied().flatten();
        let (Some(place), Some(cpu)) = (place, event.cpu()) else {
            return;
        };
        if let Some(found) = self.found.get_mut(place) {
            found.push((time, cpu));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use lt_ctf::{Item, Reader};
    use lt_proc::evidence::Evidence;

    use super::super::feed::{Keep, read_beside, tests::traces};
    use super::*;

    #[test]
    fn an_event_is_found_by_its_name_its_thread_and_the_time_of_day() {
        let dir = traces();
        let trace = dir.path().join("compact");
        let mut finder = Finder::new(["irq_softirq_raise".to_string(), "sched_switch".to_string()]);
        let never = AtomicBool::new(false);
        let told = read_beside(
            &trace,
            Keep::All,
            &Evidence::default(),
            &[],
            &never,
            Some(&mut finder),
        );
        let model = told.unwrap().model;
        // The expected result, from the trace itself: a switch names the thread that was running.
        let mut reader = Reader::open(&trace).unwrap();
        let mut switches = Vec::new();
        while let Some(item) = reader.next().unwrap() {
            let Item::Event(event) = item else { continue };
            if event.name() == "sched_switch" {
                let field = event.class().field("prev_tid").unwrap();
                let tid = event.signed(field).unwrap() as i32;
                switches.push((event.cycles(), event.nanoseconds(), tid));
            }
        }
        let find = |tid, from| {
            let name = "sched_switch".to_string();
            finder.first(&model, &Mark { name, tid }, from)
        };
        let (first, ..) = switches[0];
        assert_eq!(find(None, 0).unwrap().0, first);
        let mut threads = 0;
        for (time, since_1970, tid) in switches.into_iter().skip(10) {
            let of_day = since_1970.rem_euclid(86_400_000_000_000) as u64;
            assert_eq!(finder.at(of_day, first), Some(time));
            if tid > 0 {
                let (found, thread) = find(Some(tid), time).unwrap();
                let thread = thread
                    .and_then(|id| model.thread(id))
                    .map(|thread| thread.tid);
                assert_eq!((found, thread), (time, Some(tid)));
                threads += 1;
            }
        }
        assert!(threads > 10, "{threads}");
        assert!(find(Some(1 << 22), 0).is_none());
        let none = Mark {
            name: "no_such_event".into(),
            tid: None,
        };
        assert!(finder.first(&model, &none, 0).is_none());
    }
}
