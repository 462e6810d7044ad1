// SPDX-License-Identifier: GPL-2.0

//! The labels of an instance (`by=`): their parameters, and the file `labels`.
//!
//! labels/by.rs finds the fields that can be labels; the engine counts delays by label.
//!
//! # Contexts
//!
//! All functions may sleep.

use super::{
    kind::{Kind, Labelling},
    param_list, Core,
};
use crate::{
    control::{Kind as ParamKind, Number, Param},
    engine::{
        delays::{quotient, Delays},
        hash::Seed,
        histogram,
        labels::{Labels, Source, LABEL, LABELS_MAX, LABELS_MIN, STACK},
        platform::Platform,
    },
    sys::{
        memory,
        periodic::cond_resched,
        platform::Kernel,
        procfs::is_full,
        random,
        stack::DEPTH_MAX,
        symbol::StackField, //
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

/// Number of parameters for labels, which come last in a tracker's list.
pub(crate) const PARAMS: usize = 2;

/// The default of `max_labels`.
const LABELS: u64 = 16;

/// The default of `max_labels` with `by=stack`.
pub(super) const STACKS: u64 = 256;

const _: () = assert!(STACK == DEPTH_MAX);

/// Returns the parameters for labels; `names` are the names of the values of `by`.
pub(crate) const fn params(names: &'static [&'static str]) -> [Param; PARAMS] {
    param_list! {
        by: ParamKind::Word(names) => 0,
            "count delays by this field as well, in the file labels", fixed;
        max_labels: ParamKind::Count { min: LABELS_MIN as u64, max: LABELS_MAX as u64 } => LABELS,
            "most values of the field that get their own counters", fixed;
    }
}

impl Kind {
    /// Returns the positions of `by` and `max_labels`, if the tracker has them.
    pub(crate) fn label_params(&self) -> Option<(usize, usize)> {
        let first = self.params.len().checked_sub(PARAMS)?;
        self.labels.is_some().then_some((first, first + 1))
    }

    /// Whether this value of `by` makes stacks the labels.
    pub(super) fn is_by_stack(&self, by: Number) -> bool {
        let source = self.labels.and_then(|labels| (labels.source)(by as usize));
        matches!(source, Some(Source::Stack(_)))
    }
}

/// Creates the labels of an instance with these values of `by`, `max_labels` and `stack`, if it has
/// any. May sleep; fails with `ENOMEM`, or `EINVAL` if an event does not keep the field.
// In a box, and not inlined, for the reasons given at `Followed::create`.
#[inline(never)]
pub(super) fn create(
    kind: &Kind,
    by: u64,
    labels: u32,
    depth: usize,
) -> Result<Option<KBox<Labels>>> {
    let Some(Labelling { source, .. }) = kind.labels.filter(|_| by != 0) else {
        return Ok(None);
    };
    let source = source(by as usize).ok_or(EINVAL)?;
    let depth = match source {
        Source::Stack(_) => depth,
        Source::Cpu | Source::Cgroup(_) | Source::Event(_) => 0,
    };
    memory::check(Labels::bytes(labels, Kernel::cpus(), depth))?;
    let [a, b] = random::words();
    let mut created = Labels::new::<Kernel>(source, labels, Seed::new(a, b))?;
    if depth != 0 {
        created = created.with_stacks(depth)?;
    }
    Ok(Some(KBox::new(created, GFP_KERNEL)?))
}

/// A sum of nanoseconds, printed in decimal without a 128-bit division.
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
/// sum is printed as the number of delays, so that both agree.
fn show_delays(delays: &impl Delays, buckets: &mut [u64], out: &SeqFile) {
    let count = delays.copy(buckets);
    let (min, max) = delays.extremes().unwrap_or_default();
    let sum = Decimal(delays.sum());
    seq_print!(out, " count={count} sum={sum} min={min} max={max} buckets=");
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

/// Prints a stack that is a label, with a space before it. As in an alert, addresses are printed as
/// names only.
fn show_stack(addresses: &[u64], is_cut: bool, out: &SeqFile) {
    let stack = StackField(addresses);
    if stack.entries().is_empty() {
        seq_print!(out, " stack=\"\"");
    } else {
        seq_print!(out, "{stack}");
    }
    if is_cut {
        seq_print!(out, " cut_off=1");
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

impl<const K: usize, const D: usize> Core<K, D> {
    /// Whether delays are counted by label.
    pub(crate) fn has_labels(&self) -> bool {
        self.engine.stats().labels().is_some()
    }

    /// Prints `labels`. May sleep; fails with `ENOMEM`.
    pub(crate) fn show_labels(&self, out: &SeqFile) -> Result {
        let stats = self.engine.stats();
        let (Some(labels), Some(labelling)) = (stats.labels(), self.kind.labels) else {
            return Ok(());
        };
        let Some((param, _)) = self.kind.label_params() else {
            return Ok(());
        };
        let mut buckets = KVVec::from_elem(0, histogram::BUCKETS, GFP_KERNEL)?;
        let by = self.value(param) as usize;
        let (used, max) = (labels.used(), labels.max());
        seq_print!(
            out,
            "by={} labels={used} max_labels={max} full={} memory={}\n",
            self.kind.params[param].display(self.shown(param)),
            u8::from(used == max),
            Labels::bytes(max as u32, Kernel::cpus(), labels.depth())
        );
        for row in 0..used {
            if is_full(out) {
                return Ok(());
            }
            // A row that is not published yet has no delays.
            let Some((label, delays)) = labels.labelled(row) else {
                continue;
            };
            let label = &label;
            let shown = Shown {
                labelling,
                by,
                label,
            };
            seq_print!(out, "label{shown}");
            if let Some(stack) = labels.stack(row) {
                show_stack(stack.addresses(), stack.is_cut, out);
            }
            show_delays(delays, &mut buckets, out);
            cond_resched();
        }
        seq_print!(out, "other");
        show_delays(&stats.unlabelled(), &mut buckets, out);
        Ok(())
    }
}
