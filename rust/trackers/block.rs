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
//! An event begins when a task submits the request (`block_io_start`): `current` is then the
//! submitter, which for buffered writes is a writeback worker. The filter is applied here and
//! nowhere else. The steps that follow stamp the event; a request that goes to the driver directly
//! is never inserted. The key is the request itself; only one request has this key at a time:
//!
//! - *requeued* requests continue, from their first issue: that is how long the submitter waits;
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

pub(crate) mod probes;
pub(crate) mod steps;

use self::{
    probes::{Block, Probes, COUNTERS},
    steps::Detail,
};
use crate::{
    control::{Kind as ParamKind, Param, ALL_DEVICES},
    instance::{
        common,
        kind::{all_right, Kind},
        params,
        probed::Probed, //
    },
    sys::block, //
};
use kernel::prelude::*;

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
            help: "start of the delay: issue to the driver, or insertion before it",
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

/// The entry in the list of trackers.
pub(crate) static KIND: Kind = Kind {
    name: "block",
    c_name: c"block",
    help: "block I/O requests, from issue or insertion to completion (key: the request)",
    params: &PARAMS,
    counters: &COUNTERS,
    detail_words: Detail::WORDS,
    tail: None,
    detail: |alert, f| f.write_fmt(fmt!(" {}", Detail::from_words(&alert.detail))),
    check: all_right,
    missing: block::missing::<Probes>,
    create: Some(Probed::<Block, _, _>::create),
};
