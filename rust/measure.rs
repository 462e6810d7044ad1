// SPDX-License-Identifier: GPL-2.0

//! `measure=`: the cost of the probes themselves, on the hardware that they run on.
//!
//! ```text
//!   measure=cycles,branch-misses     a parameter of the module: without it none of this exists
//!        |
//!   Measure ---> a Point for each tracker and hook (tracepoint, function), made at its attachment
//!                  |
//!                  +-- transition: runs in which an event began or ended  --+-- a Tally each
//!                  +-- none: all other runs                               --+
//! ```
//!
//! sys/measure.rs reads the counters around a run. The cost of reading them is measured with the
//! probe `empty`, which does nothing.
//!
//! All functions may sleep, except [`Meter::take`].

pub(crate) mod tally;

use crate::sys::{
    atomic::{Atomic, Relaxed},
    measure::{self, around, Counting, Meter, Missing, Values},
    platform::{online_cpus, Kernel, PreemptGuard},
};
use core::ffi::CStr;
use kernel::{
    fmt::{self, Write},
    new_mutex,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    str::CString,
    sync::{Arc, Mutex}, //
};
use tally::{Chosen, Tally, COUNTERS, CYCLES, EVENTS};

const _: () = assert!(COUNTERS == measure::COUNTERS);

/// Maximum number of points: `pair` and `func` have a point for each name that users choose.
const POINTS: usize = 512;

/// Number of runs of the empty probe.
const EMPTY_RUNS: u32 = 1000;

/// A measured probe, over all instances of a tracker.
pub(crate) struct Point {
    tracker: &'static str,
    /// The tracepoint or the function.
    hook: CString,
    transition: Tally,
    none: Tally,
}

impl Point {
    fn new(tracker: &'static str, hook: &CStr, chosen: Chosen) -> Result<Arc<Self>> {
        let tally = || Tally::new::<Kernel>(chosen.counters());
        let this = Self {
            tracker,
            hook: CString::try_from_fmt(fmt!("{}", hook.to_str()?))?,
            transition: tally()?,
            none: tally()?,
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    fn show(&self, chosen: Chosen, out: &SeqFile) {
        let hook = self.hook.to_str().unwrap_or("?");
        for (kind, tally) in [("transition", &self.transition), ("none", &self.none)] {
            let (samples, discarded) = (tally.samples(), tally.discarded());
            seq_print!(
                out,
                "probe {} {hook} {kind} samples={samples} discarded={discarded}\n",
                self.tracker
            );
            if samples > 0 {
                // Cannot fail: when a file's buffer is too small, the content is printed again.
                let _ = tally.print(chosen.names(), &mut Printed(out));
            }
        }
    }
}

impl Meter for Point {
    fn take(&self, guard: &PreemptGuard, has_changed: bool, values: Option<&Values>) {
        let tally = if has_changed {
            &self.transition
        } else {
            &self.none
        };
        tally.take::<Kernel>(guard, values);
    }
}

/// Text that is printed to a file.
struct Printed<'a>(&'a SeqFile);

impl Write for Printed<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        seq_print!(self.0, "{text}");
        Ok(())
    }
}

/// All measurements.
#[pin_data]
pub(crate) struct Measure {
    chosen: Chosen,
    counting: Counting,
    empty: Arc<Point>,
    /// Number of times that a probe was attached without being measured, because memory was short
    /// or there were too many points.
    unmeasured: Atomic<u64>,
    #[pin]
    points: Mutex<KVec<Arc<Point>>>,
}

impl Measure {
    /// Starts counting the events that the module parameter names; `None` if it is empty. Fails
    /// with `EINVAL` for a word that is not a counter, `ENOMEM`, or the error of [`Counting::new`].
    pub(crate) fn start() -> Result<Option<Arc<Self>>> {
        let text = measure::parameter().to_str()?;
        if text.is_empty() {
            return Ok(None);
        }
        let chosen = Chosen::parse(text).map_err(|word| {
            let [a, b, c, d, e, f] = EVENTS;
            pr_err!(
                "measure: no counter '{word}'; expected some of {CYCLES},{a},{b},{c},{d},{e},{f}\n"
            );
            EINVAL
        })?;
        let mut numbers = [0; EVENTS.len()];
        let numbered = numbers.iter_mut().zip(chosen.numbers());
        let len = numbered.map(|(to, nth)| *to = nth as u32).count();
        let counting = Counting::new(numbers.get(..len).unwrap_or_default())?;
        let empty = Point::new("empty", c"-", chosen)?;
        for _ in 0..EMPTY_RUNS {
            around(&*empty, |_| 0, || ());
        }
        let this = Arc::pin_init(
            pin_init!(Self {
                chosen,
                counting,
                empty,
                unmeasured: Atomic::new(0),
                points <- new_mutex!(KVec::new()),
            }),
            GFP_KERNEL,
        )?;
        Ok(Some(this))
    }

    /// Returns the point for the probe of a tracker at a tracepoint or a function.
    pub(crate) fn point(&self, tracker: &'static str, hook: &CStr) -> Option<Arc<Point>> {
        let mut points = self.points.lock();
        let is_it = |point: &&Arc<Point>| {
            point.tracker == tracker && point.hook.to_bytes() == hook.to_bytes()
        };
        if let Some(point) = points.iter().find(is_it) {
            return Some(point.clone());
        }
        let is_room = points.len() < POINTS;
        let made = is_room.then(|| Point::new(tracker, hook, self.chosen).ok());
        let added = made.flatten().and_then(|point| {
            points.push(point.clone(), GFP_KERNEL).ok()?;
            Some(point)
        });
        if added.is_none() {
            // Relaxed: the number is only displayed.
            self.unmeasured.add(1, Relaxed);
        }
        added
    }

    pub(crate) fn show(&self, out: &SeqFile) {
        seq_print!(out, "counter {CYCLES} counted cpus={}\n", online_cpus());
        for (name, state) in self.chosen.names().zip(self.counting.states()) {
            match state {
                Ok(cpus) => seq_print!(out, "counter {name} counted cpus={cpus}\n"),
                Err(Missing::Absent) => seq_print!(out, "counter {name} missing why=absent\n"),
                Err(Missing::Busy) => seq_print!(out, "counter {name} missing why=busy\n"),
                Err(Missing::Error(error)) => {
                    seq_print!(out, "counter {name} missing why=error{error}\n");
                }
            }
        }
        seq_print!(out, "unmeasured {}\n", self.unmeasured.load(Relaxed));
        self.empty.show(self.chosen, out);
        for point in self.points.lock().iter() {
            point.show(self.chosen, out);
        }
    }
}
