// SPDX-License-Identifier: GPL-2.0

//! The fields of an event of `pair`, and of its alert.

use super::WORDS;
use crate::{
    alert::record::Owner,
    control::fields::FIELDS,
    record::{record, How, Record},
    sys::{symbol::Raw, task::Context},
};
use kernel::{
    fmt::{self, Write},
    prelude::*, //
};

/// The values that were taken at a point.
pub(super) type FieldValues = [u64; FIELDS];

record! {
    /// The start of an operation, and its end if there was one.
    pub(crate) struct Detail {
        /// The context of the CPU at the start.
        context: Context at 0,
        /// Number of fields of the key, and the fields.
        keys: u8 at 0:8 if kept,
        key: FieldValues at 1 => show_key,
        /// Number of values to show of the start, and the values.
        begins: u8 at 0:16 if kept,
        begin: FieldValues at 3 => show_begin,
        /// Number of values to show of the end, and the values. An event has only their number.
        ends: u8 at 0:24 if kept,
        end: FieldValues at 5 if end => show_end,
    }
}

impl Detail {
    /// Returns the fields of an event, which keeps the owner, the first word and the values of the
    /// start.
    pub(super) fn of(key: &FieldValues, data: &[u64; WORDS]) -> Self {
        let [.., begin0, begin1] = *data;
        Self {
            key: *key,
            begin: [begin0, begin1],
            ..Self::unpack(&data[Owner::WORDS..=Owner::WORDS])
        }
    }

    #[inline(always)]
    pub(super) fn data(&self, owner: Owner) -> [u64; WORDS] {
        let [o0, o1, o2] = owner.to_words();
        let ([note], [b0, b1]) = (self.words(), self.begin);
        [o0, o1, o2, note, b0, b1]
    }
}

fn show_key(it: &Detail, how: &How, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    show("key", it.key, it.keys, how, f)
}

fn show_begin(it: &Detail, how: &How, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    show("begin", it.begin, it.begins, how, f)
}

fn show_end(it: &Detail, how: &How, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    show("end", it.end, it.ends, how, f)
}

fn show(
    name: &str,
    values: FieldValues,
    count: u8,
    how: &How,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for (at, &value) in values.iter().take(usize::from(count)).enumerate() {
        if at == 0 {
            f.write_fmt(fmt!(" {name}="))?;
        } else {
            f.write_char(',')?;
        }
        f.write_fmt(fmt!("{}", Raw::new(value, how.limit_of_part())))?;
    }
    Ok(())
}
