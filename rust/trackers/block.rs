// SPDX-License-Identifier: GPL-2.0

//! `block`: how long block I/O requests take.
//!
//! ```text
//!   created ------> inserted ------> issued ------> completed        the life of a request
//!   (submitter)     (scheduler)      (driver)       (interrupt)
//!                   |---- queue -----|--- device ---|
//!                                    |<- delay ---->|                from=issue
//!                   |<----------- delay ----------->|                from=insert
//! ```
//!
//! An event begins when somebody submits the request (`block_io_start`): `current` is then who
//! submits, which for buffered writes is a writeback worker. The filter is applied here and
//! nowhere else. The steps that follow stamp the event; a request that goes to the driver
//! directly is never inserted. The key is the request itself, of which there is one at a time:
//!
//! - *requeued* requests go on, from their first issue: that is how long the submitter waits;
//! - *merged* requests cease to exist (`gone`, `merged`);
//! - *partial* completions are counted, the last one ends the event;
//! - requests that complete without ever having been issued have no delay to measure (`gone`,
//!   `unissued`): an empty flush, as fsync makes it, is such a request. If the disk has a cache,
//!   the block layer issues a flush of its own for it; that one is measured, and has no
//!   submitter (pid 0);
//! - a write that is part of a flush sequence completes twice: its data, which is measured, and
//!   the whole sequence, which is not a request's end (no bytes) and is not counted;
//! - requests that leave without completing (`block_io_done` alone) are `gone`, `aborted`;
//! - a request that is issued twice without having been requeued is another one at the same
//!   address, whose predecessor left unseen (`replaced`).
//!
//! # Contexts
//!
//! Probes run in tasks, softirqs and hard interrupts, mostly preemptible, so each takes the
//! engine's guard.

mod probes;
mod steps;

use self::{
    probes::Probes,
    steps::{Detail, Steps},
};
use crate::{
    alerts::Alerts,
    control::{Kind as ParamKind, Param, ALL_DEVICES},
    instance::{common, params, Changes, Core, Instance, Values},
    platform::Platform,
    record::Name,
    sys::{
        block::{self as requests, Attachment},
        platform::Kernel,
        ticker::Ticker,
    },
    trackers::Kind, //
};
use kernel::{
    new_mutex,
    prelude::*,
    rbtree::RBTree,
    seq_file::SeqFile,
    seq_print,
    sync::{Arc, Mutex}, //
};

const FROM: usize = common::COUNT;
const DEV: usize = FROM + 1;
const FROM_INSERT: u64 = 1;

static PARAMS: [Param; common::COUNT + 2] = params(
    10_000_000,
    [
        Param {
            name: "from",
            kind: ParamKind::Word(&["issue", "insert"]),
            default: 0,
            fixed: true,
            help: "measure from the issue to the driver, or from the insertion before it",
        },
        Param {
            name: "dev",
            kind: ParamKind::Disk,
            default: ALL_DEVICES,
            fixed: false,
            help: "only this disk: its name under /dev, or MAJOR:MINOR",
        },
    ],
);

/// The tracker.
pub(crate) static KIND: Kind = Kind {
    name: "block",
    c_name: c"block",
    help: "block I/O requests, from issue or insertion to completion (key: the request)",
    params: &PARAMS,
    counters: &probes::COUNTERS,
    detail_words: Detail::WORDS,
    detail: |alert, f| f.write_fmt(fmt!(" {}", Detail::from_words(&alert.detail))),
    missing: requests::missing,
    create: Some(Block::create),
};

/// An instance of this tracker.
#[pin_data]
struct Block {
    probes: Arc<Probes>,
    /// The lock also serialises changes.
    #[pin]
    state: Mutex<State>,
}

/// Whether the probes are attached.
enum State {
    Off,
    On {
        #[expect(dead_code, reason = "held to be dropped")]
        attachment: Attachment<Probes>,
        /// Looks for what has timed out.
        ticker: Ticker<Probes>,
    },
    /// Removed; there is no way back.
    Retired,
}

impl Block {
    fn create(name: Name, values: &Values, all: Arc<Alerts>) -> Result<Arc<dyn Instance>> {
        let core = Core::new(name, &KIND, values, all)?;
        let probes = Arc::new(Probes { core }, GFP_KERNEL)?;
        let instance = Arc::pin_init(
            pin_init!(Self {
                probes,
                state <- new_mutex!(State::Off),
            }),
            GFP_KERNEL,
        )?;
        Ok(instance)
    }

    /// Detaches the probes if they are attached, and drops what is pending.
    fn detach(&self, state: &mut State, next: State) {
        let core = &self.probes.core;
        core.set_enabled(false);
        *state = next;
        core.tracker().clear();
    }
}

impl Instance for Block {
    fn kind(&self) -> &'static Kind {
        self.probes.core.kind()
    }

    fn alerts(&self) -> Arc<Alerts> {
        self.probes.core.alerts().clone()
    }

    fn value(&self, param: usize) -> u64 {
        self.probes.core.shown(param)
    }

    fn apply(&self, changes: &Changes) -> Result {
        let core = &self.probes.core;
        let mut state = self.state.lock();
        let values = &changes.over(core.values());
        let enable = values[common::ENABLED] != 0;
        match *state {
            State::Retired => return Err(ENODEV),
            State::Off if enable => {
                let ticker = Ticker::new(self.probes.clone())?;
                let attachment = Attachment::new(self.probes.clone())?;
                core.set_values(values, changes);
                core.set_enabled(true);
                *state = State::On { attachment, ticker };
            }
            _ => core.set_values(values, changes),
        }
        // The timeout may be new, or shorter.
        if let State::On { ticker, .. } = &*state {
            ticker.kick();
        }
        if !enable {
            self.detach(&mut state, State::Off);
        }
        Ok(())
    }

    fn retire(&self) {
        self.detach(&mut self.state.lock(), State::Retired);
    }

    fn tend(&self) -> Option<u64> {
        self.probes.core.tend()
    }

    fn show_stats(&self, out: &SeqFile) {
        self.probes.core.show_stats(out);
    }

    fn show_histogram(&self, out: &SeqFile) {
        self.probes.core.show_histogram(out);
    }

    fn show_pending(&self, out: &SeqFile) -> Result {
        let now = Kernel::now();
        let mut events = RBTree::new();
        self.probes.core.tracker().each_pending(|event| {
            // Oldest first; two that began together differ by their request.
            events.try_create_and_insert((event.start, event.key), event, GFP_KERNEL)?;
            Ok(())
        })?;
        for event in events.values() {
            let steps = Steps::from_words(event.data);
            let state = match (steps.inserted, steps.issued) {
                (_, 1..) => "issued",
                (1.., 0) => "inserted",
                (0, 0) => "created",
            };
            seq_print!(
                out,
                "age={} start={} rq={:#x} {} {} state={state} requeues={}\n",
                now.saturating_sub(event.start),
                event.start,
                // Not the address: that is nobody's business.
                self.probes.core.tracker().pseudonym(&event.key),
                steps.owner,
                steps.operation(),
                steps.requeues
            );
        }
        Ok(())
    }
}
