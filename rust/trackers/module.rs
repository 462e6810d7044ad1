// SPDX-License-Identifier: GPL-2.0

//! `module`: latencies measured by other kernel modules, see include/latency_tracker.h and api.rs.
//!
//! The measuring module creates and removes the instances of this tracker; users cannot. If the
//! module is unloaded without removing an instance, the instance is removed then. Any user with
//! write access may change the parameters that are not fixed, such as `threshold` and `enabled`. An
//! alert has the id passed at the event's end, and the key, or a number that stands for the key if
//! the module does not allow it to be shown.

use crate::{
    alert::record::DETAIL, //
    control::Param,
    instance::{
        common,
        kind::{all_right, Kind, NOT_RECORDED},
        params,
    },
};
use kernel::{fmt, prelude::*};

/// The tracker's own counters.
#[derive(Clone, Copy)]
pub(crate) enum Extra {
    /// References that were refused because there were too many.
    Busy,
    /// Callbacks that were skipped because too many were nested.
    Nested,
}

static PARAMS: [Param; common::COUNT] = {
    let mut params = params(1_000_000);
    // No stack by default: the task that an event belongs to is not known.
    params[common::STACK].default = 0;
    params
};

/// The entry in the list of trackers.
pub(crate) static KIND: Kind = Kind {
    name: "module",
    c_name: c"module",
    help: "operations of another kernel module, which alone creates the instance",
    params: &PARAMS,
    counters: &["busy", "nested"],
    detail_words: WORDS,
    tail: None,
    no_user_stack: NOT_RECORDED,
    keeps_user_stack: false,
    labels: None,
    detail: |alert, f| {
        let [id, len, first, ..] = alert.detail;
        let key = match len {
            0 => Key::Hidden(first as u32),
            len => Key::Shown(&alert.detail[2..WORDS], len as usize),
        };
        f.write_fmt(fmt!(" {key} id={id}"))
    },
    check: all_right,
    missing: || None,
    lacks: None,
    create: None,
};

/// Maximum length of a key, in bytes.
pub(crate) const KEY_MAX: usize = 64;

/// Number of words of the id, the length of the key, and the key.
const WORDS: usize = 2 + KEY_MAX / 8;

/// The visible form of a key.
pub(crate) enum Key<'a> {
    /// A number that stands for the key.
    Hidden(u32),
    /// Words of the key, and its length in bytes.
    Shown(&'a [u64], usize),
}

/// Returns the detail words of an alert.
pub(crate) fn detail(key: &Key<'_>, id: u64) -> [u64; DETAIL] {
    let mut words = [0; DETAIL];
    let [to_id, to_len, to_key @ ..] = &mut words;
    *to_id = id;
    match key {
        Key::Hidden(number) => to_key[0] = u64::from(*number),
        Key::Shown(key, len) => {
            *to_len = *len as u64;
            to_key
                .iter_mut()
                .zip(*key)
                .for_each(|(to, from)| *to = *from);
        }
    }
    words
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Hidden(number) => f.write_fmt(fmt!("key=#{number:08x}")),
            // A key of this size is printed as a number. On big-endian machines, its bytes are the
            // high bytes of the word.
            Key::Shown([word, ..], len @ (1 | 2 | 4 | 8)) => {
                let unused = 64 - 8 * *len as u32;
                let number = if cfg!(target_endian = "big") {
                    word >> unused
                } else {
                    *word
                };
                f.write_fmt(fmt!("key={number:#x}"))
            }
            Key::Shown(words, len) => {
                f.write_str("key=")?;
                let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
                bytes
                    .take(*len)
                    .try_for_each(|byte| f.write_fmt(fmt!("{byte:02x}")))
            }
        }
    }
}
