// SPDX-License-Identifier: GPL-2.0

//! Trackers of other modules as instances: created, listed, changed and removed.
//!
//! Only the module that created a tracker removes it. If the module is unloaded without doing so,
//! its trackers are removed, and the log names them. All functions may sleep.

use super::{
    any::{each_class, Any},
    Config,
};
use crate::{
    alert::{
        record::{self, Name},
        stream::Alerts,
    },
    control::Number,
    engine::{event::EventCopy, platform::Platform},
    instance::{
        common,
        kind::Kind,
        pending::{Batch, Lines},
        Changes, Instance, MadeBy, Values,
    },
    sys::{module::Owner, periodic::PeriodicWork, platform::Kernel, procfs::Records, tracepoint},
    text::Plain,
    trackers::module::{KEY_MAX, KIND},
};
use kernel::{
    new_mutex,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{Arc, Mutex}, //
};

/// A tracker of another module.
#[pin_data]
pub(crate) struct ModuleTracker {
    any: Arc<Any>,
    owner: Owner,
    name: Name,
    /// Whether the tracker is on; the lock also serialises changes.
    #[pin]
    state: Mutex<State>,
}

enum State {
    Off,
    On(PeriodicWork<Any>),
    /// Removed, for good.
    Retired,
}

impl ModuleTracker {
    /// Creates a disabled tracker. Fails with `EINVAL` or `ENOMEM`.
    pub(crate) fn new(
        name: Name,
        owner: Owner,
        values: &Values,
        config: Config,
        all: Arc<Alerts>,
    ) -> Result<Arc<Self>> {
        let any = Arc::new(Any::new(name, values, config, all)?, GFP_KERNEL)?;
        each_class!(&*any, client => client.config.callback.bind(&any));
        Arc::pin_init(
            pin_init!(Self {
                any,
                owner,
                name,
                state <- new_mutex!(State::Off),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the tracker that the module uses.
    pub(crate) fn any(&self) -> &Arc<Any> {
        &self.any
    }

    /// Turns the tracker off, waits for its users, and drops pending events.
    fn detach(&self, state: &mut State, next: State) {
        each_class!(&*self.any, client => client.core.set_enabled(false));
        // A caller that found the tracker on has preemption off, or is in a probe.
        tracepoint::synchronize();
        // Waits for the worker.
        *state = next;
        self.any.clear();
    }
}

impl Instance for ModuleTracker {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn made_by(&self) -> Option<MadeBy> {
        Some(MadeBy {
            handle: Arc::as_ptr(&self.any).addr(),
            module: self.owner.address(),
        })
    }

    fn alerts(&self) -> Arc<Alerts> {
        each_class!(&*self.any, client => client.core.alerts().clone())
    }

    fn value(&self, param: usize) -> Number {
        each_class!(&*self.any, client => client.core.shown(param))
    }

    fn apply(&self, changes: &Changes) -> Result {
        let mut state = self.state.lock();
        let values = &changes.over(each_class!(&*self.any, client => client.core.values())?);
        let enable = values[common::ENABLED] != 0;
        let work = match &*state {
            State::Retired => return Err(ENODEV),
            State::Off if enable => Some(PeriodicWork::new(self.any.clone())?),
            _ => None,
        };
        if !enable && matches!(*state, State::On(_)) {
            self.detach(&mut state, State::Off);
        }
        each_class!(&*self.any, client => client.core.set_values(values, changes));
        if let Some(work) = work {
            each_class!(&*self.any, client => client.core.set_enabled(true));
            *state = State::On(work);
        }
        // The timeout may be new, or shorter.
        if let State::On(work) = &*state {
            work.kick();
        }
        Ok(())
    }

    fn shut_down(&self) {
        let mut state = self.state.lock();
        if matches!(*state, State::Retired) {
            return;
        }
        self.detach(&mut state, State::Retired);
        let held = self.any.holders();
        if held > 0 {
            pr_err!(
                "{}: module {} has not returned {held} references: their memory is lost, and \
                 latency_tracker stays loaded\n",
                Plain(&self.name),
                self.owner
            );
            // The module may still use these references, or the tracker.
            core::mem::forget(self.any.clone());
            self.owner.pin_forever();
        }
    }

    fn maintain(&self) -> Option<u64> {
        each_class!(&*self.any, client => client.core.maintain())
    }

    fn show_stats(&self, out: &SeqFile) {
        each_class!(&*self.any, client => client.core.show_stats(None, out));
    }

    fn show_histogram(&self, out: &SeqFile) {
        each_class!(&*self.any, client => client.core.show_histogram(None, out));
    }

    fn pending(&self) -> Result<Lines> {
        let capacity = each_class!(&*self.any, client => client.core.engine().capacity());
        let (any, batch) = (self.any.clone(), Batch::new(capacity));
        let lines: Lines = KBox::new(Pending { any, batch }, GFP_KERNEL)?;
        Ok(lines)
    }
}

/// Number of words for the longest key and its length.
const KEY_WORDS: usize = 1 + KEY_MAX / 8;

/// The content of an open `pending` file. Keys of any class are padded with zeroes to one length.
struct Pending {
    any: Arc<Any>,
    batch: Batch<KEY_WORDS, 0>,
}

impl Records for Pending {
    fn rewind(&mut self) {
        self.batch.rewind();
    }

    fn next(&mut self) -> Result<usize> {
        let any = &*self.any;
        self.batch.next(|see| {
            each_class!(any, client => client.core.engine().each_pending(|event| see(EventCopy {
                start: event.start,
                found: event.found,
                key: core::array::from_fn(|at| event.key.get(at).copied().unwrap_or(0)),
                data: [],
            })))
        })
    }

    fn show(&self, nth: usize, _is_trusted: bool, out: &SeqFile) {
        if let Some(event) = self.batch.get(nth) {
            each_class!(&*self.any, client => show_pending(client, event, out));
        }
    }
}

fn show_pending<const K: usize, const D: usize>(
    client: &super::Client<K, D>,
    event: &EventCopy<KEY_WORDS, 0>,
    out: &SeqFile,
) {
    let start = event.start;
    let key: [u64; K] = core::array::from_fn(|at| event.key.get(at).copied().unwrap_or(0));
    let shown = client.shown(&key);
    let age = Kernel::now().saturating_sub(start);
    let owner = record::Owner::default();
    seq_print!(out, "age={age} start={start} {shown} {owner}\n");
}
