// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Finds events by name while a trace is read, and relates the trace's clock to the time of day.

use lt_ctf::Reader;
use lt_model::{Model, ThreadId, Use};

use super::feed::Beside;
use super::several::{self, SECOND, nanoseconds};

const DAY: i128 = 86_400 * SECOND as i128;

/// Events to find: their name, and the thread that was running, if only its events count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) tid: Option<i32>,
}

/// The times and processors of events with certain names.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    names: Vec<String>,
    /// The place in `names`, by the number of the event class.
    classes: Vec<Option<usize>>,
    frequencies: Vec<u64>,
    found: Vec<Vec<(u64, u32)>>,
    /// What the trace's clock, in ns, lacks to the time since 1970; `None` if the trace does not record it.
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

    /// The first such event from `from` on: its time, and the thread that was running, if any.
    pub(crate) fn first(
        &self,
        model: &Model,
        wanted: &Wanted,
        from: u64,
    ) -> Option<(u64, Option<ThreadId>)> {
        let place = self.names.iter().position(|name| *name == wanted.name)?;
        let later = self.found.get(place)?.iter().filter(|(time, _)| *time >= from);
        let mut events = later.map(|(time, cpu)| (*time, running(model, *cpu, *time)));
        events.find(|(_, thread)| {
            let tid = thread.and_then(|id| model.thread(id)).map(|thread| thread.tid);
            wanted.tid.is_none_or(|of| tid == Some(of))
        })
    }

    /// The first time from `start` on at which the time of day is `time_of_day`, ns since midnight in UTC.
    pub(crate) fn at(&self, time_of_day: u64, start: u64) -> Option<u64> {
        let since = (i128::from(start) + self.epoch?).rem_euclid(DAY);
        let more = (i128::from(time_of_day) - since).rem_euclid(DAY);
        start.checked_add(u64::try_from(more).ok()?)
    }
}

/// The thread that was running there just before an event.
fn running(model: &Model, cpu: u32, time: u64) -> Option<ThreadId> {
    let processor = model.processors.get(cpu as usize)?;
    let before = time.saturating_sub(1);
    match processor.between(before, before + 1).next()?.used {
        Use::Thread(id) => Some(id),
        _ => None,
    }
}

impl Beside for Finder {
    fn begin(&mut self, reader: &Reader) {
        let place = |name: &str| self.names.iter().position(|of| of == name);
        self.classes = reader.classes().map(|class| place(&class.name)).collect();
        self.frequencies = several::frequencies(reader);
        let kernels = several::kernels(reader);
        let traces = reader.traces().iter().zip(kernels);
        let mut clocks = traces.filter_map(|(trace, is)| trace.schema.clocks().first().filter(|_| is));
        // A clock without an offset counts since the boot.
        let clock = clocks.next().filter(|clock| clock.offset_seconds > 0);
        self.epoch = clock.map(|clock| {
            let cycles = i128::from(clock.offset_cycles) * i128::from(SECOND);
            i128::from(clock.offset_seconds) * i128::from(SECOND)
                + cycles / i128::from(clock.frequency.max(1))
        });
    }

    fn see(&mut self, event: &lt_ctf::Event<'_>) {
        let place = self.classes.get(event.class_index()).copied().flatten();
        let (Some(place), Some(cpu)) = (place, event.cpu()) else {
            return;
        };
        let frequency = self.frequencies.get(event.trace()).copied();
        let time = nanoseconds(event.cycles(), frequency.unwrap_or(SECOND));
        if let Some(found) = self.found.get_mut(place) {
            found.push((time, cpu));
        }
    }
}
