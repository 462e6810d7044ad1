// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The common form of a record: `key=value key="quoted value" ...` on one line.
//!
//! A quoted value may contain any bytes: `\"`, `\\`, `\n`, `\t`, `\r` and `\xHH` are escapes. A
//! bare value ends at the next space. The order of the fields is part of the format, and is kept.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::{Nanos, ParseError};

/// Fields that are durations in nanoseconds.
const DURATIONS: [&str; 6] = ["delay", "threshold", "queue", "device", "queued", "running"];

/// The value after `=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Without quotes: numbers, words, `8:0`.
    Bare(String),
    /// Between quotes, unescaped; a task's name may be any bytes.
    Quoted(Vec<u8>),
}

impl Value {
    /// Returns the text to print; bytes that are not UTF-8 stay visible as `\xHH`.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Value::Bare(s) => Cow::Borrowed(s),
            Value::Quoted(bytes) => match std::str::from_utf8(bytes) {
                Ok(s) => Cow::Borrowed(s),
                Err(_) => Cow::Owned(escape(bytes)),
            },
        }
    }

    /// Returns the number, if it is a bare decimal number from 0 to 2^64-1.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match self {
            Value::Bare(s) => s.parse().ok(),
            Value::Quoted(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bare(s) => f.write_str(s),
            Value::Quoted(bytes) => write!(f, "\"{}\"", escape(bytes)),
        }
    }
}

impl Serialize for Value {
    /// Writes a bare number as a JSON number, and everything else as a string. That includes digits
    /// after a leading zero, such as a pseudonym (`%p`) that happens to have no letters.
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if let Value::Bare(text) = self {
            match (text.parse::<u64>(), text.parse::<i64>()) {
                (Ok(n), _) if n.to_string() == *text => return s.serialize_u64(n),
                (_, Ok(n)) if n.to_string() == *text => return s.serialize_i64(n),
                _ => {}
            }
        }
        s.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for Value {
    /// Reads the output of [`Value::serialize`]. Numbers become bare. Strings become quoted, even
    /// if the value was a bare word.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a string")
            }
            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Value, E> {
                Ok(Value::Bare(n.to_string()))
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Value, E> {
                Ok(Value::Bare(n.to_string()))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Quoted(text.as_bytes().to_vec()))
            }
        }
        d.deserialize_any(Read)
    }
}

/// A `key=value` field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Letters, digits, `_`.
    pub key: String,
    /// Its value.
    pub value: Value,
}

/// Fields in the order of the line; serialised as a map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(pub Vec<Field>);

impl Fields {
    /// Parses a whole line.
    ///
    /// # Errors
    /// Names the word that is not `key=value`, or whose quotes or escapes are broken.
    pub fn parse(line: &str) -> Result<Self, ParseError> {
        let mut rest = line.trim_matches(' ');
        let mut fields = Vec::new();
        while !rest.is_empty() {
            let (field, after) = parse_field(rest)?;
            fields.push(field);
            rest = after.trim_start_matches(' ');
        }
        Ok(Self(fields))
    }

    /// Returns the value of the first field named `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|f| f.key == key).map(|f| &f.value)
    }

    /// Returns the value of `key` as a number.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(Value::number)
    }

    /// Returns all fields except `without`, as text to print. Durations have units, and the three
    /// fields of a task (`waker_pid=`, `waker_tid=`, `waker_comm=`) become one word
    /// (`waker=bash/812`). A task with thread id 0 and an empty name is left out. Nothing is assumed
    /// about unknown fields. Quotes are left out where they separate nothing, so fields from JSON,
    /// in which all words are quoted, print like the original.
    #[must_use]
    pub fn phrase(&self, without: &[&str]) -> String {
        let mut words = Vec::new();
        for field in self.0.iter().filter(|f| !without.contains(&f.key.as_str())) {
            let key = field.key.as_str();
            let (role, part) = key.rsplit_once('_').unwrap_or((key, ""));
            let tid = self.text(&format!("{role}_tid"));
            let comm = self.text(&format!("{role}_comm"));
            match (part, comm, tid) {
                ("pid" | "tid", Some(_), Some(_)) => {}
                ("comm", Some(comm), Some(tid)) if comm.is_empty() && tid == "0" => {}
                ("comm", Some(comm), Some(tid)) => words.push(format!("{role}={comm}/{tid}")),
                _ => words.push(match field.value.number() {
                    Some(ns) if DURATIONS.contains(&key) => format!("{key}={}", Nanos(ns)),
                    _ => format!("{key}={}", plain(&field.value)),
                }),
            }
        }
        words.join(" ")
    }

    /// Whether the operation started before the instance did, so that the delay is a lower bound.
    #[must_use]
    pub fn is_at_least(&self) -> bool {
        self.text(SINCE)
            .is_some_and(|since| since == "before-start")
    }

    /// Returns words to print before an operation whose delay is a lower bound; empty for others.
    pub(crate) fn since(&self) -> &'static str {
        if self.is_at_least() {
            "began before the start: "
        } else {
            ""
        }
    }

    /// Returns the value of `key` as text to print.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        self.get(key).map(Value::text)
    }
}

/// The field of [`Fields::is_at_least`].
pub(crate) const SINCE: &str = "since";

/// Formats a value to print, with quotes only if its end would be unclear without them.
fn plain(value: &Value) -> Cow<'_, str> {
    let text = value.text();
    let graphic = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
    if !text.is_empty() && text.chars().all(graphic) {
        return text;
    }
    Cow::Owned(value.to_string())
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, field) in self.0.iter().enumerate() {
            let space = if i == 0 { "" } else { " " };
            write!(f, "{space}{}={}", field.key, field.value)?;
        }
        Ok(())
    }
}

impl Serialize for Fields {
    /// Writes a map. `key` is always a string, since its form depends on the data: a key in
    /// hexadecimal may happen to have no letters.
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(self.0.len()))?;
        for Field { key, value } in &self.0 {
            match key.as_str() {
                "key" => map.serialize_entry(key, &value.text())?,
                _ => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Fields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of numbers and strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some((key, value)) = map.next_entry()? {
                    fields.push(Field { key, value });
                }
                Ok(Fields(fields))
            }
        }
        d.deserialize_map(Read)
    }
}

fn parse_field(text: &str) -> Result<(Field, &str), ParseError> {
    let word = || text.split(' ').next().unwrap_or("");
    let (key, rest) = text
        .split_once('=')
        .ok_or_else(|| ParseError::new(word(), "key=value"))?;
    if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(ParseError::new(word(), "key=value"));
    }
    let (value, after) = match rest.strip_prefix('"') {
        Some(quoted) => parse_quoted(word(), quoted)?,
        None => {
            let end = rest.find(' ').unwrap_or(rest.len());
            (Value::Bare(rest[..end].to_string()), &rest[end..])
        }
    };
    let key = key.to_string();
    Ok((Field { key, value }, after))
}

/// Parses `text`, which starts after the opening quote; also returns what follows the closing
/// quote.
fn parse_quoted<'a>(word: &str, text: &'a str) -> Result<(Value, &'a str), ParseError> {
    let bytes = text.as_bytes();
    let mut value = Vec::new();
    let mut i = 0;
    while let Some(&b) = bytes.get(i) {
        i += 1;
        match b {
            b'"' => {
                let after = &text[i..];
                if !after.is_empty() && !after.starts_with(' ') {
                    return Err(ParseError::new(word, "a space after the closing quote"));
                }
                return Ok((Value::Quoted(value), after));
            }
            b'\\' => {
                let (byte, used) = unescape(&bytes[i..])
                    .ok_or_else(|| ParseError::new(word, "\\\", \\\\, \\n, \\r, \\t or \\xHH"))?;
                value.push(byte);
                i += used;
            }
            _ => value.push(b),
        }
    }
    Err(ParseError::new(word, "a closing quote"))
}

fn unescape(after_backslash: &[u8]) -> Option<(u8, usize)> {
    match *after_backslash.first()? {
        b @ (b'"' | b'\\') => Some((b, 1)),
        b'n' => Some((b'\n', 1)),
        b'r' => Some((b'\r', 1)),
        b't' => Some((b'\t', 1)),
        b'x' => {
            let hex = std::str::from_utf8(after_backslash.get(1..3)?).ok()?;
            if !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
                return None;
            }
            Some((u8::from_str_radix(hex, 16).ok()?, 3))
        }
        _ => None,
    }
}

fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &b in bytes {
        match b {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            0x20..=0x7e => out.push(char::from(b)),
            _ => out.push_str(&format!("\\x{b:02x}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn order_quotes_and_escapes_are_kept() {
        let line = r#"b=2 a=1 comm="a \"b\" \\ c\n\x01" dev=8:0 empty= none="""#;
        let fields = Fields::parse(line).unwrap();
        assert_eq!(fields.to_string(), line);
        assert_eq!(fields.text("comm").unwrap(), "a \"b\" \\ c\n\u{1}");
        assert_eq!(fields.number("a"), Some(1));
        assert_eq!(fields.get("empty"), Some(&Value::Bare(String::new())));
    }

    #[test]
    fn json_keeps_numbers_and_order() {
        let fields = Fields::parse(r#"z=18446744073709551615 delta=-5 comm="é\xff""#);
        let json = serde_json::to_string(&fields.unwrap()).unwrap();
        assert_eq!(
            json,
            r#"{"z":18446744073709551615,"delta":-5,"comm":"\\xc3\\xa9\\xff"}"#
        );
    }

    #[test]
    fn a_key_is_a_string_in_json_whatever_its_digits_are() {
        for key in ["112233", "1122aa", "0x4d2", "155", "1,3"] {
            let fields = Fields::parse(&format!("key={key} id=3")).unwrap();
            let json = serde_json::to_string(&fields).unwrap();
            assert_eq!(json, format!(r#"{{"key":"{key}","id":3}}"#));
            let back: Fields = serde_json::from_str(&json).unwrap();
            assert_eq!(back.phrase(&[]), fields.phrase(&[]));
        }
    }

    #[test]
    fn a_phrase_has_units_and_tasks_as_one_word() {
        let line = "prio=120 queued=1500000 waker_pid=1 waker_tid=2 waker_comm=\"a b\" context=task \
            prev_pid=0 prev_tid=0 prev_comm=\"\" new_comm=\"x\" shade=5 stack=\"f+0x1\"";
        let fields = Fields::parse(line).unwrap();
        assert_eq!(
            fields.phrase(&["stack"]),
            "prio=120 queued=1.50ms waker=a b/2 context=task new_comm=x shade=5"
        );
    }

    #[test]
    fn the_word_at_fault_is_named() {
        for (line, word) in [
            ("a=1 oops c=3", "oops"),
            ("a=1 =3", "=3"),
            (r#"a=1 comm="x"#, r#"comm="x"#),
            (r#"comm="\q""#, r#"comm="\q""#),
            (r#"comm="\x1""#, r#"comm="\x1""#),
            (r#"comm="\x+1""#, r#"comm="\x+1""#),
            (r#"comm="x"y"#, r#"comm="x"y"#),
            ("a b=1", "a"),
        ] {
            assert_eq!(Fields::parse(line).unwrap_err().word, word, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_round_trip(comm: Vec<u8>, n: u64, word in "[a-z0-9:._-]{0,12}") {
            let fields = Fields(vec![
                Field { key: "n".into(), value: Value::Bare(n.to_string()) },
                Field { key: "comm".into(), value: Value::Quoted(comm) },
                Field { key: "w".into(), value: Value::Bare(word) },
            ]);
            prop_assert_eq!(Fields::parse(&fields.to_string()), Ok(fields));
        }

        #[test]
        fn no_line_panics(line in ".{0,80}") {
            let _ = Fields::parse(&line);
        }
    }
}
