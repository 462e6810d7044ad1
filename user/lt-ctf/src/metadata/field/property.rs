// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The properties of a field class: lengths, alignments, names of values, roles.

use serde_json::Value;

use super::ALIGN;
use crate::bits::Order;
use crate::metadata::json::{Object, text, unsigned};
use crate::schema::{Encoding, Int, Mappings, Role};

pub(super) fn fixed(class: &Object, signed: bool, align: &mut u32) -> Result<Int, String> {
    let len = length(class)?;
    let len = u32::try_from(len).ok().filter(|len| (1..=64).contains(len));
    let order = match text(class, "byte-order")? {
        Some("little-endian") => Order::Little,
        Some("big-endian") => Order::Big,
        other => return Err(format!("byte order {other:?}")),
    };
    match (text(class, "bit-order")?, order) {
        (None, _)
        | (Some("first-to-last"), Order::Little)
        | (Some("last-to-first"), Order::Big) => {}
        (other, _) => {
            return Err(format!(
                "bit order {other:?} with this byte order is not supported"
            ));
        }
    }
    *align = alignment(class, "alignment")?;
    Ok(Int {
        len: len.ok_or("a length of 0 or of more than 64 bits")?,
        order,
        signed,
    })
}

pub(super) fn alignment(class: &Object, key: &str) -> Result<u32, String> {
    let align = unsigned(class, key)?.unwrap_or(1);
    let fits = |a: &u32| a.is_power_of_two() && *a <= ALIGN;
    let align = u32::try_from(align).ok().filter(fits);
    align.ok_or_else(|| format!("`{key}` is not a power of two up to {ALIGN}"))
}

pub(super) fn base(class: &Object) -> Result<u8, String> {
    match unsigned(class, "preferred-display-base")?.unwrap_or(10) {
        base @ (2 | 8 | 10 | 16) => Ok(base as u8),
        other => Err(format!("display base {other}")),
    }
}

pub(super) fn length(class: &Object) -> Result<u64, String> {
    unsigned(class, "length")?.ok_or_else(|| "no `length`".into())
}

pub(super) fn encoding(class: &Object) -> Result<Encoding, String> {
    Ok(match text(class, "encoding")?.unwrap_or("utf-8") {
        "utf-8" => Encoding::Utf8,
        "utf-16le" => Encoding::Utf16(Order::Little),
        "utf-16be" => Encoding::Utf16(Order::Big),
        "utf-32le" => Encoding::Utf32(Order::Little),
        "utf-32be" => Encoding::Utf32(Order::Big),
        other => return Err(format!("encoding {other:?}")),
    })
}

pub(super) fn mappings(class: &Object, key: &str) -> Result<Mappings, String> {
    let Some(mappings) = class.get(key) else {
        return Ok(Vec::new());
    };
    let mappings = mappings
        .as_object()
        .ok_or_else(|| format!("`{key}` is not an object"))?;
    let pair = |(name, value): (&String, &Value)| Ok((name.clone(), ranges(value)?));
    mappings.iter().map(pair).collect()
}

/// Parses `[[low, high], ...]`; a single number stands for both ends.
pub(super) fn ranges(value: &Value) -> Result<Vec<(i128, i128)>, String> {
    let wrong = || format!("{value} is not a set of integer ranges");
    let number = |v: &Value| {
        let signed = v.as_i64().map(i128::from);
        signed
            .or_else(|| v.as_u64().map(i128::from))
            .ok_or_else(wrong)
    };
    let range = |v: &Value| match v.as_array().map(Vec::as_slice) {
        Some([low, high]) => Ok((number(low)?, number(high)?)),
        Some(_) => Err(wrong()),
        None => Ok((number(v)?, number(v)?)),
    };
    value
        .as_array()
        .ok_or_else(wrong)?
        .iter()
        .map(range)
        .collect()
}

/// Returns the first known role.
pub(super) fn role(class: &Object) -> Result<Option<Role>, String> {
    let Some(roles) = class.get("roles") else {
        return Ok(None);
    };
    let roles = roles.as_array().ok_or("`roles` is not an array")?;
    Ok(roles.iter().filter_map(Value::as_str).find_map(|role| {
        Some(match role {
            "packet-magic-number" => Role::Magic,
            "metadata-stream-uuid" => Role::Uuid,
            "data-stream-class-id" => Role::StreamClass,
            "data-stream-id" => Role::Stream,
            "packet-total-length" => Role::PacketTotal,
            "packet-content-length" => Role::PacketContent,
            "packet-end-default-clock-timestamp" => Role::PacketEnd,
            "packet-sequence-number" => Role::PacketNumber,
            "discarded-event-record-counter-snapshot" => Role::Discarded,
            "default-clock-timestamp" => Role::Time,
            "event-record-class-id" => Role::EventClass,
            _ => return None,
        })
    }))
}
