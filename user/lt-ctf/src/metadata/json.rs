// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Properties of the objects that metadata consist of.

use serde_json::{Map, Value};

pub(super) type Object = Map<String, Value>;

/// The property `key`, when it is there; an error when it is no text.
pub(super) fn text<'a>(object: &'a Object, key: &str) -> Result<Option<&'a str>, String> {
    let wrong = || format!("`{key}` is not text");
    let text = |v: &'a Value| v.as_str().ok_or_else(wrong);
    object.get(key).map(text).transpose()
}

/// The property `key`, when it is there; an error when it is no unsigned number.
pub(super) fn unsigned(object: &Object, key: &str) -> Result<Option<u64>, String> {
    let wrong = || format!("`{key}` is not an unsigned integer");
    let number = |v: &Value| v.as_u64().ok_or_else(wrong);
    object.get(key).map(number).transpose()
}
