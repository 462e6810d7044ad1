// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads the output of `babeltrace2 convert --clock-cycles` for an LTTng kernel trace: the witness must not depend on
//! the reader that the commands use (lt-ctf).
//!
//! ```text
//! [00000000008793453632] (+000000084796) host sched_waking: { cpu_id = 0 }, { comm = "a", tid = 15 }
//!  `- CLOCK_MONOTONIC ns                      `- event        `- all scopes, flattened in order
//! ```
//!
//! LTTng's clock counts nanoseconds of `CLOCK_MONOTONIC`; babeltrace2 adds the offset to the wall clock unless
//! `--clock-cycles` requests the clock's own value, as in an alert's `time=`.

mod event;
mod line;

pub(crate) use self::event::Dev;
pub(crate) use self::line::{discarded, parse_line};
