// SPDX-License-Identifier: GPL-2.0 OR MIT

//! One late event: the line of `alerts` and `wakeup`.
//!
//! ```text
//! seq=17 time=1234567890123 instance=slow_disk tracker=block reason=threshold delay=10412345
//!   threshold=10000000 cpu=1 pid=812 tid=812 comm="fio" ... fields of the tracker ...
//! ```
//!
//! The first eleven fields are the same for every tracker and come in this order; all others are
//! kept as they come, so that lines of a newer module can be read, too. A field `stack="..."` has
//! the functions in which the task was, the innermost first.

use std::fmt;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::ParseError;
use crate::fields::{Field, Fields, SINCE, Value};
use crate::user_stack::{USTACK, USTACK_END, UserNames};

/// Why the line was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The event ended, later than the threshold.
    Threshold,
    /// The event has not ended within the timeout.
    Timeout,
    /// The end of an event that had timed out.
    Late,
    /// The stack of the task, for an event that is late and has not ended.
    Stack,
    /// A word of a newer module.
    Other(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Threshold => "threshold",
            Reason::Timeout => "timeout",
            Reason::Late => "late",
            Reason::Stack => "stack",
            Reason::Other(word) => word,
        })
    }
}

impl From<&str> for Reason {
    fn from(word: &str) -> Self {
        match word {
            "threshold" => Reason::Threshold,
            "timeout" => Reason::Timeout,
            "late" => Reason::Late,
            "stack" => Reason::Stack,
            _ => Reason::Other(word.to_string()),
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d).map(|word| Reason::from(word.as_str()))
    }
}

/// A late event.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Alert {
    /// Number of the alert in its instance; a missing number is a lost alert.
    pub seq: u64,
    /// When the operation ended, `CLOCK_MONOTONIC` ns; for a timeout, when it was noticed; for a
    /// stack, when the task was switched in.
    pub time: u64,
    /// The instance that raised it.
    pub instance: String,
    /// The tracker of the instance.
    pub tracker: String,
    /// Why it was raised.
    pub reason: Reason,
    /// The delay, ns; the delay so far if the operation has not ended.
    pub delay: u64,
    /// The threshold of the instance at that time, ns, which a delay with the reason `late` need not
    /// exceed; for a timeout, the timeout.
    pub threshold: u64,
    /// The CPU that saw the operation end; for a stack, the CPU that switched the task in; for a
    /// timeout, any CPU.
    pub cpu: u64,
    /// The process that owns the operation.
    pub pid: u64,
    /// The thread that owns the operation.
    pub tid: u64,
    /// The name of the thread that owns the operation.
    #[serde(serialize_with = "as_text")]
    pub comm: Value,
    /// Fields of the tracker.
    #[serde(flatten)]
    pub fields: Fields,
    /// Names that the reader found for the addresses of `ustack`; not part of the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ustack_names: Option<UserNames>,
}

fn as_text<S: Serializer>(value: &Value, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&value.text())
}

impl Alert {
    /// Parses one line.
    ///
    /// # Errors
    /// Names the word that is missing, misplaced or of the wrong kind.
    pub fn parse(line: &str) -> Result<Self, ParseError> {
        let mut words = Fields::parse(line)?.0.into_iter();
        let alert = Self {
            seq: number(&mut words, "seq")?,
            time: number(&mut words, "time")?,
            instance: word(&mut words, "instance")?,
            tracker: word(&mut words, "tracker")?,
            reason: Reason::from(word(&mut words, "reason")?.as_str()),
            delay: number(&mut words, "delay")?,
            threshold: number(&mut words, "threshold")?,
            cpu: number(&mut words, "cpu")?,
            pid: number(&mut words, "pid")?,
            tid: number(&mut words, "tid")?,
            comm: next(&mut words, "comm")?.value,
            fields: Fields(words.collect()),
            ustack_names: None,
        };
        match alert.comm {
            Value::Quoted(_) => Ok(alert),
            Value::Bare(b) => Err(ParseError::new(format!("comm={b}"), "comm=\"...\"")),
        }
    }

    /// Returns the time at which the operation started, `CLOCK_MONOTONIC` ns; for an operation that
    /// was in flight before the instance started, the time at which it was found.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.time.saturating_sub(self.delay)
    }

    /// Returns a short phrase for the late operation, for a column on a terminal.
    #[must_use]
    pub fn subject(&self) -> String {
        let get = |key| self.fields.text(key);
        match (get("disk").or_else(|| get("dev")), get("sector")) {
            (Some(disk), Some(sector)) => {
                let op = get("op").unwrap_or_default();
                let size = match self.fields.number("bytes") {
                    Some(bytes) if bytes > 0 && bytes % 1024 == 0 => format!(" {}K", bytes / 1024),
                    Some(bytes) if bytes > 0 => format!(" {bytes}B"),
                    _ => String::new(),
                };
                format!("{disk} {op} sector {sector}{size}")
            }
            _ => {
                let columns = [STACK, WAKER_STACK, USTACK, USTACK_END, PATH, SINCE];
                format!("{}{}", self.fields.since(), self.fields.phrase(&columns))
            }
        }
    }

    /// Returns the stack of the task in the kernel, the innermost function first; empty if not
    /// recorded.
    #[must_use]
    pub fn stack(&self) -> Vec<String> {
        frames(&self.fields, STACK)
    }

    /// Returns the stack of the waker, the innermost function first; empty if not recorded.
    #[must_use]
    pub fn waker_stack(&self) -> Vec<String> {
        frames(&self.fields, WAKER_STACK)
    }
}

pub(crate) const STACK: &str = "stack";
const WAKER_STACK: &str = "waker_stack";
/// The field of the wake chain: see [`crate::chain()`].
pub(crate) const PATH: &str = "path";

/// Returns the functions of a stack, the innermost first.
pub(crate) fn frames(fields: &Fields, key: &str) -> Vec<String> {
    let text = fields.text(key).unwrap_or_default();
    let frames = text.split(',').filter(|frame| !frame.is_empty());
    frames.map(str::to_string).collect()
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seq={} time={} instance={} tracker={} reason={} delay={} threshold={} cpu={} pid={} tid={} comm={}",
            self.seq,
            self.time,
            self.instance,
            self.tracker,
            self.reason,
            self.delay,
            self.threshold,
            self.cpu,
            self.pid,
            self.tid,
            self.comm
        )?;
        if !self.fields.0.is_empty() {
            write!(f, " {}", self.fields)?;
        }
        Ok(())
    }
}

fn next(words: &mut impl Iterator<Item = Field>, key: &str) -> Result<Field, ParseError> {
    let found = words.next();
    match found {
        Some(field) if field.key == key => Ok(field),
        Some(field) => Err(ParseError::new(
            format!("{}={}", field.key, field.value),
            format!("{key}=..."),
        )),
        None => Err(ParseError::new(
            "",
            format!("{key}=... before the end of the line"),
        )),
    }
}

fn number(words: &mut impl Iterator<Item = Field>, key: &str) -> Result<u64, ParseError> {
    let field = next(words, key)?;
    let word = || format!("{key}={}", field.value);
    field
        .value
        .number()
        .ok_or_else(|| ParseError::new(word(), "a number from 0 to 2^64-1"))
}

fn word(words: &mut impl Iterator<Item = Field>, key: &str) -> Result<String, ParseError> {
    match next(words, key)?.value {
        Value::Bare(word) if !word.is_empty() => Ok(word),
        value => Err(ParseError::new(
            format!("{key}={value}"),
            "a word without quotes",
        )),
    }
}

/// A line of the `alerts` stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamLine {
    /// A late event.
    Alert(Box<Alert>),
    /// This many alerts are missing here: they were overwritten before this reader read them, or
    /// found no place in the ring.
    Lost(u64),
}

impl StreamLine {
    /// Parses one line of `alerts` or `wakeup`.
    ///
    /// # Errors
    /// As [`Alert::parse`].
    pub fn parse(line: &str) -> Result<Self, ParseError> {
        match line.trim().strip_prefix("lost=") {
            Some(count) => count
                .parse()
                .map(StreamLine::Lost)
                .map_err(|_| ParseError::new(line.trim(), "lost=N alone on the line")),
            None => Ok(StreamLine::Alert(Box::new(Alert::parse(line)?))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "seq=17 time=1234567890123 instance=slow_disk tracker=block reason=threshold \
        delay=10412345 threshold=10000000 cpu=1 pid=812 tid=813 comm=\"fio\" dev=8:0 disk=\"sda\" \
        op=\"WS\" sector=2048 bytes=4096 queue=0 device=10412345 requeues=0 shade=blue";

    #[test]
    fn the_documented_line_is_read_and_written_back() {
        let alert = Alert::parse(LINE).unwrap();
        assert_eq!(alert.delay, 10_412_345);
        assert_eq!(alert.reason, Reason::Threshold);
        assert_eq!(alert.fields.text("shade").unwrap(), "blue");
        assert_eq!(alert.subject(), "sda WS sector 2048 4K");
        assert_eq!(alert.start(), 1_234_557_477_778);
        assert_eq!(alert.to_string(), LINE);
    }

    #[test]
    fn a_stack_is_read_function_by_function() {
        let alert = Alert::parse(LINE).unwrap();
        assert!(alert.stack().is_empty());
        let stack = "stack=\"bio_await+0x79/0xb0,ext4_sync+0x1/0x2 [ext4],?\"";
        let alert = Alert::parse(&format!("{LINE} {stack}")).unwrap();
        let functions = ["bio_await+0x79/0xb0", "ext4_sync+0x1/0x2 [ext4]", "?"];
        assert_eq!(alert.stack(), functions);
        let unknown = format!("{LINE} {stack}").replace("sector=", "where=");
        let alert = Alert::parse(&unknown).unwrap();
        assert!(!alert.subject().contains("bio_await"), "not a column");
    }

    #[test]
    fn json_is_read_back() {
        let line = format!("{LINE} count=-3 skb=0000000095721804 stack=\"a+0x1/0x2,?\"");
        let alert = Alert::parse(&line).unwrap();
        let json = serde_json::to_string(&alert).unwrap();
        let back: Alert = serde_json::from_str(&json).unwrap();
        assert_eq!(back.reason, alert.reason);
        assert_eq!(back.comm, alert.comm);
        assert_eq!(back.subject(), alert.subject());
        assert_eq!(back.stack(), alert.stack());
        let other = line
            .replace("sector=", "where=")
            .replace("blue", "dark blue");
        let other = Alert::parse(&other.replace("shade=dark blue", "shade=\"dark blue\"")).unwrap();
        let other_json = serde_json::to_string(&other).unwrap();
        let other_back: Alert = serde_json::from_str(&other_json).unwrap();
        assert_eq!(other_back.subject(), other.subject());
        assert!(other.subject().contains("disk=sda op=WS where=2048"));
        assert!(
            other
                .subject()
                .ends_with("shade=\"dark blue\" count=-3 skb=0000000095721804")
        );
        assert_eq!(serde_json::to_string(&back).unwrap(), json);
        assert!(serde_json::from_str::<Alert>("{\"seq\": 1}").is_err());
        assert!(serde_json::from_str::<Alert>(&json.replace(":17,", ":[],")).is_err());
    }

    #[test]
    fn json_is_flat_and_in_order() {
        let json = serde_json::to_string(&Alert::parse(LINE).unwrap()).unwrap();
        assert!(json.starts_with(r#"{"seq":17,"time":1234567890123,"instance":"slow_disk""#));
        assert!(
            json.ends_with(r#""device":10412345,"requeues":0,"shade":"blue"}"#),
            "{json}"
        );
    }

    #[test]
    fn every_missing_or_moved_core_field_is_named() {
        for key in [
            "seq",
            "time",
            "instance",
            "tracker",
            "reason",
            "delay",
            "threshold",
            "cpu",
            "pid",
            "tid",
            "comm",
        ] {
            let without: Vec<&str> = LINE
                .split(' ')
                .filter(|w| !w.starts_with(&format!("{key}=")))
                .collect();
            let err = Alert::parse(&without.join(" ")).unwrap_err();
            assert_eq!(err.expected, format!("{key}=..."), "{key}");
        }
    }

    #[test]
    fn wrong_values_are_named() {
        for (from, to) in [
            ("delay=10412345", "delay=-1"),
            ("seq=17", "seq=x"),
            ("comm=\"fio\"", "comm=fio"),
            ("instance=slow_disk", "instance=\"a\""),
        ] {
            let err = Alert::parse(&LINE.replace(from, to)).unwrap_err();
            assert_eq!(err.word, to);
        }
    }

    #[test]
    fn a_loss_is_a_line_of_its_own() {
        assert_eq!(StreamLine::parse("lost=12\n"), Ok(StreamLine::Lost(12)));
        assert_eq!(
            StreamLine::parse("lost=12 seq=1").unwrap_err().word,
            "lost=12 seq=1"
        );
    }

    proptest! {
        #[test]
        fn alerts_round_trip(seq: u64, time: u64, delay: u64, comm: Vec<u8>, reason in "[a-z]{1,9}", extra in "[a-z0-9:]{1,9}") {
            let alert = Alert {
                seq, time, delay, threshold: 1, cpu: 2, pid: 3, tid: 4,
                instance: "i".into(), tracker: "t".into(),
                reason: Reason::from(reason.as_str()),
                comm: Value::Quoted(comm),
                fields: Fields(vec![Field { key: "x".into(), value: Value::Bare(extra) }]),
                ustack_names: None,
            };
            prop_assert_eq!(Alert::parse(&alert.to_string()), Ok(alert));
        }
    }
}
