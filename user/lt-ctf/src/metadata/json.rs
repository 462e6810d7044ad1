// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Properties of the JSON objects in metadata.

use serde_json::{Map, Value};

pub(super) type Object = Map<String, Value>;

/// Returns the property `key`, if present; fails if it is not text.
pub(super) fn text<'a>(object: &'a Object, key: &str) -> Result<Option<&'a str>, String> {
    let wrong = || format!("`{key}` is not text");
    let text = |v: &'a Value| v.as_str().ok_or_else(wrong);
    object.get(key).map(text).transpose()
}

/// Returns the property `key`, if present; fails if it is not an unsigned number.
pub(super) fn unsigned(object: &Object, key: &str) -> Result<Option<u64>, String> {
    let wrong = || format!("`{key}` is not an unsigned integer");
    let number = |v: &Value| v.as_u64().ok_or_else(wrong);
    object.get(key).map(number).transpose()
}
