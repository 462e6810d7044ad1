// SPDX-License-Identifier: GPL-2.0

//! The periods of an instance, and the lock that their readers share.
//!
//! Probes count without the lock, and know nothing of periods. All functions sleep.

use super::{
    labels::{show_delays, Labelled},
    Instance,
};
use crate::{
    engine::{
        delays::Delays,
        histogram,
        labels::{Labels, LABELS_MAX},
        periods::{Periods, Which},
        platform::Platform,
        stats::Stats,
    },
    sys::{periodic::cond_resched, platform::Kernel},
};
use kernel::{
    new_mutex,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{Arc, Mutex}, //
};

/// Maximum number of sets of delays: a row for each label, and the unlabelled ones.
const SETS_MAX: usize = Stats::set_of(LABELS_MAX as usize);

/// The periods of an instance.
#[pin_data]
pub(crate) struct InstancePeriods {
    instance: Arc<dyn Instance>,
    #[pin]
    periods: Mutex<Periods>,
}

impl InstancePeriods {
    /// Creates the periods of an instance that has not counted anything yet; the first one starts
    /// now. Fails with `ENOMEM`.
    pub(crate) fn new(instance: Arc<dyn Instance>) -> Result<Arc<Self>> {
        let periods = Periods::new(Kernel::now());
        Arc::pin_init(
            pin_init!(Self {
                instance,
                periods <- new_mutex!(periods),
            }),
            GFP_KERNEL,
        )
    }

    /// Ends the current period, and starts the next. Fails with `ENOMEM`, and has then changed
    /// nothing.
    pub(crate) fn reset(&self) -> Result {
        let stats = self.instance.stats();
        let mut periods = self.periods.lock();
        periods.reset(stats, Kernel::now(), cond_resched)
    }

    /// Prints a period: its times, all delays and, if they are counted by label, each row. All are
    /// from the same snapshots, so the rows add up to the whole. Fails with `ENOMEM`.
    pub(crate) fn show(&self, which: Which, out: &SeqFile) -> Result {
        let mut buckets = KVVec::from_elem(0, histogram::BUCKETS, GFP_KERNEL)?;
        let stats = self.instance.stats();
        let mut periods = self.periods.lock();
        let period = periods.get(which, stats, Kernel::now(), cond_resched)?;
        let (begin, end) = period.times();
        let labelled = Labelled::of(&*self.instance, stats);
        let used = stats.labels().map_or(0, Labels::used);
        seq_print!(out, "begin={begin} end={end}");
        if let Some(labelled) = &labelled {
            seq_print!(out, " ");
            labelled.show_head(used, out);
        }
        seq_print!(out, "\nall");
        let all = 0..stats.sets();
        show_delays(&period.of(all.clone()), None, &mut buckets, out);
        let Some(labelled) = labelled else {
            return Ok(());
        };
        let mut is_shown = [false; SETS_MAX];
        for row in 0..used {
            let set = Stats::set_of(row);
            let delays = period.of(set..set + 1);
            if delays.count() == 0 {
                continue;
            }
            // The delays of a label that is not visible yet are in `other`.
            if let Some((label, _)) = labelled.labels.labelled(row) {
                labelled.show_label(&label, out);
                show_delays(&delays, None, &mut buckets, out);
                is_shown[set] = true;
            }
            cond_resched();
        }
        let others = all.filter(|&set| !is_shown[set]);
        seq_print!(out, "other");
        show_delays(&period.of(others), None, &mut buckets, out);
        Ok(())
    }
}
