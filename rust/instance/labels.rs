// SPDX-License-Identifier: GPL-2.0

//! The labels of an instance (`by=`): their parameters, and the file `labels`.
//!
//! labels/by.rs finds the fields that can be labels; the engine counts delays by label.
//!
//! # Contexts
//!
//! All functions sleep.

use super::{
    kind::{Kind, Labelling},
    Instance,
};
use crate::{
    control::{Kind as ParamKind, Param},
    engine::{
        delays::{quotient, Delays, Parts},
        hash::Seed,
        histogram,
        labels::{Labels, LABEL, LABELS_MAX, LABELS_MIN},
        platform::Platform,
        stats::Stats,
    },
    sys::{
        memory,
        periodic::cond_resched,
        platform::Kernel,
        random, //
    }, //
};
use kernel::{
    fmt,
    prelude::*,
    seq_file::SeqFile,
    seq_print, //
};

mod by;

pub(crate) use by::{show, source, Rules};

/// Number of the parameters, which come last in a tracker's list.
pub(crate) const PARAMS: usize = 2;

/// The default of `max_labels`.
const LABELS: u64 = 16;

/// Returns the parameters; `names` are the names of the values of `by`.
pub(crate) const fn params(names: &'static [&'static str]) -> [Param; PARAMS] {
    [
        Param {
            name: "by",
            kind: ParamKind::Word(names),
            default: 0,
            fixed: true,
            help: "count delays by this field as well, in the file labels",
        },
        Param {
            name: "max_labels",
            kind: ParamKind::Count {
                min: LABELS_MIN as u64,
                max: LABELS_MAX as u64,
            },
            default: LABELS,
            fixed: true,
            help: "number of values of by that have their own counters",
        },
    ]
}

impl Kind {
    /// Returns the positions of `by` and `max_labels`, if the tracker has them.
    pub(crate) fn label_params(&self) -> Option<(usize, usize)> {
        let first = self.params.len().checked_sub(PARAMS)?;
        self.labels.is_some().then_some((first, first + 1))
    }
}

/// Creates the labels of an instance with these values of `by` and `max_labels`, if it has any.
/// Sleeps; fails with `ENOMEM`, or `EINVAL` if an event does not keep the field.
pub(super) fn create(kind: &Kind, by: u64, labels: u64) -> Result<Option<Labels>> {
    let Some(Labelling { source, .. }) = kind.labels.filter(|_| by != 0) else {
        return Ok(None);
    };
    let source = source(by as usize).ok_or(EINVAL)?;
    let labels = labels as u32;
    memory::check(Labels::bytes(labels, Kernel::cpus()))?;
    let [a, b] = random::words();
    Labels::new::<Kernel>(source, labels, Seed::new(a, b)).map(Some)
}

/// A sum of nanoseconds in decimal: kernels cannot print 128 bits.
struct Decimal(u128);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HALF: u64 = 1_000_000_000_000_000_000;
        let upper = quotient(self.0, HALF);
        let lower = (self.0 as u64).wrapping_sub(upper.wrapping_mul(HALF));
        match upper {
            0 => f.write_fmt(fmt!("{lower}")),
            _ => f.write_fmt(fmt!("{upper}{lower:018}")),
        }
    }
}

/// Prints the counts of a row, each with a space before it. The buckets are copied first, and their
/// sum is printed as the number of delays, so that both agree. Prints the extremes if they are
/// known.
pub(super) fn show_delays(
    delays: &impl Delays,
    extremes: Option<(u64, u64)>,
    buckets: &mut [u64],
    out: &SeqFile,
) {
    let count = delays.copy(buckets);
    let sum = Decimal(delays.sum());
    seq_print!(out, " count={count} sum={sum}");
    if let Some((min, max)) = extremes {
        seq_print!(out, " min={min} max={max}");
    }
    seq_print!(out, " buckets=");
    let mut comma = "";
    for (bucket, &count) in buckets.iter().enumerate() {
        if count != 0 {
            let (low, high) = histogram::bounds(bucket);
            seq_print!(out, "{comma}{low}-{high}:{count}");
            comma = ",";
        }
    }
    seq_print!(out, "\n");
}

/// As [`show_delays`], for delays counted since the creation; min and max are 0 if there is none.
fn show_all_delays(delays: &impl Parts, buckets: &mut [u64], out: &SeqFile) {
    let extremes = delays.extremes().unwrap_or_default();
    show_delays(delays, Some(extremes), buckets, out);
}

/// The labels of an instance that has some: the table, and what is needed to print it.
pub(super) struct Labelled<'a> {
    pub(super) labels: &'a Labels,
    instance: &'a dyn Instance,
    labelling: Labelling,
    /// The position of the parameter `by`.
    by: usize,
}

impl<'a> Labelled<'a> {
    /// Returns the labels of an instance; `None` if it does not count by label.
    pub(super) fn of(instance: &'a dyn Instance, stats: &'a Stats) -> Option<Self> {
        let labels = stats.labels()?;
        let labelling = instance.kind().labels?;
        let (by, _) = instance.kind().label_params()?;
        Some(Self {
            labels,
            instance,
            labelling,
            by,
        })
    }

    /// Prints the field and that `used` labels have a row, as fields of a line.
    pub(super) fn show_head(&self, used: usize, out: &SeqFile) {
        let max = self.labels.max();
        let by = self.instance.kind().params[self.by].display(self.instance.value(self.by));
        let full = u8::from(used == max);
        seq_print!(out, "by={by} labels={used} max_labels={max} full={full}");
    }

    /// Prints the start of the line of a label.
    pub(super) fn show_label(&self, label: &[u64; LABEL], out: &SeqFile) {
        let shown = Shown {
            labelling: self.labelling,
            by: self.instance.value(self.by) as usize,
            label,
        };
        seq_print!(out, "label{shown}");
    }
}

/// A label as fields of a line.
struct Shown<'a> {
    labelling: Labelling,
    by: usize,
    label: &'a [u64; LABEL],
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.labelling.show)(self.by, self.label, f)
    }
}

/// Prints `labels`. Sleeps; fails with `ENOMEM`.
pub(crate) fn show_labels(instance: &dyn Instance, out: &SeqFile) -> Result {
    let stats = instance.stats();
    let Some(labelled) = Labelled::of(instance, stats) else {
        return Ok(());
    };
    let labels = labelled.labels;
    let used = labels.used();
    let mut buckets = KVVec::from_elem(0, histogram::BUCKETS, GFP_KERNEL)?;
    let memory = Labels::bytes(labels.max() as u32, Kernel::cpus());
    labelled.show_head(used, out);
    seq_print!(out, " memory={memory}\n");
    for row in 0..used {
        // Not published yet: its first delay is not counted yet, either.
        let Some((label, delays)) = labels.labelled(row) else {
            continue;
        };
        labelled.show_label(&label, out);
        show_all_delays(delays, &mut buckets, out);
        cond_resched();
    }
    seq_print!(out, "other");
    show_all_delays(&stats.unlabelled(), &mut buckets, out);
    Ok(())
}
