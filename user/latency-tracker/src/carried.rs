// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Alerts and their evidence as events of LTTng's logger. `record --url` writes the events, and `explain` reads them from
//! a trace without alert.json or evidence.json.
//!
//! A text is split into events of at most 1,024 bytes:
//!
//! ```text
//! latency-tracker PID CAPTURE SEQ      PART PARTS TEXT      TEXT: a part of the alert's line, as in `alerts`
//! latency-tracker PID CAPTURE evidence PART PARTS TEXT      TEXT: a part of evidence.json
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use lt_common::out::note;
use lt_ctf::{Item, Reader};
use lt_proc::evidence::Evidence;
use lt_proc::{Alert, StreamLine};

/// Each write to this file is an event.
pub(crate) const LOGGER: &str = "/dev/lttng-logger";

/// The name of the event that a write causes.
pub(crate) const EVENT: &str = "lttng_logger";

const WORD: &str = "latency-tracker";

/// Replaces an alert's number in an event that carries evidence.
const EVIDENCE: &str = "evidence";

/// Maximum number of bytes of TEXT in an event: the logger takes 1,024, and the head has a word and five numbers.
const MOST: usize = 900;

/// Splits an alert of capture number `capture` into the texts of events. `pid` is the recorder.
pub(crate) fn pieces(pid: u32, capture: u64, alert: &Alert) -> Vec<String> {
    split(pid, capture, &alert.seq.to_string(), &alert.to_string())
}

/// Splits the evidence of capture number `capture` into the texts of events. `pid` is the recorder.
pub(crate) fn evidence_pieces(pid: u32, capture: u64, evidence: &Evidence) -> Result<Vec<String>> {
    let text = serde_json::to_string(evidence)?;
    Ok(split(pid, capture, EVIDENCE, &text))
}

fn split(pid: u32, capture: u64, what: &str, text: &str) -> Vec<String> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let end = (0..=rest.len().min(MOST)).rfind(|i| rest.is_char_boundary(*i));
        let (part, more) = rest.split_at(end.unwrap_or(rest.len()));
        parts.push(part);
        rest = more;
    }
    let n = parts.len();
    let piece = |(i, part)| format!("{WORD} {pid} {capture} {what} {i} {n} {part}");
    parts.into_iter().enumerate().map(piece).collect()
}

/// The alerts and the evidence that a trace carries; empty unless a recorder sent the trace.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// The alerts, in the order of their numbers.
    pub(crate) alerts: Vec<Alert>,
    pub(crate) evidence: Option<Evidence>,
}

/// A text that was split: recorder, capture, and number of the alert; `None` for the evidence.
type Key = (u32, u64, Option<u64>);

/// Collects the pieces of the texts in a trace.
#[derive(Debug, Default)]
struct Pieces {
    /// The recorder and the capture of the last piece.
    last: Option<(u32, u64)>,
    /// The number of parts of each text, and the parts that were seen.
    parts: BTreeMap<Key, (usize, BTreeMap<usize, String>)>,
}

impl Pieces {
    /// Takes a text of the logger. Ignores a text that is not a piece written by `record`.
    fn see(&mut self, text: &str) -> Option<()> {
        let mut words = text.splitn(7, ' ');
        words.next().filter(|word| *word == WORD)?;
        let (pid, capture) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let seq = match words.next()? {
            EVIDENCE => None,
            seq => Some(seq.parse().ok()?),
        };
        let (part, parts) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        self.last = Some((pid, capture));
        let text = self.parts.entry((pid, capture, seq)).or_default();
        text.0 = parts;
        text.1.insert(part, words.next()?.to_string());
        Some(())
    }

    /// Joins the pieces of the last capture. The buffers may still have pieces of earlier captures.
    fn join(self) -> Carried {
        let mut carried = Carried::default();
        for ((pid, capture, seq), (parts, seen)) in self.parts {
            if Some((pid, capture)) != self.last {
                continue;
            }
            let whole = seen.len() == parts;
            let text: String = seen.into_values().collect();
            match (seq, StreamLine::parse(&text)) {
                (None, _) => match serde_json::from_str(&text) {
                    Ok(evidence) if whole => carried.evidence = Some(evidence),
                    _ => note("the evidence in the trace is incomplete, and is not used"),
                },
                (Some(_), Ok(StreamLine::Alert(alert))) if whole => carried.alerts.push(*alert),
                _ => {}
            }
        }
        carried
    }
}

/// Reads the alerts and the evidence of the capture that the trace was sent for.
///
/// # Errors
/// If the trace cannot be opened, or if `interrupted`.
pub(crate) fn read(trace: &Path, interrupted: &AtomicBool) -> Result<Carried> {
    let mut reader = Reader::open(trace)?;
    let text = |class: &lt_ctf::Class| (class.name == EVENT).then(|| class.field("msg"))?;
    let fields: Vec<_> = reader.classes().map(text).collect();
    if fields.iter().all(Option::is_none) {
        return Ok(Carried::default());
    }
    let mut pieces = Pieces::default();
    loop {
        if interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        match reader.next() {
            Ok(None) => break,
            Ok(Some(Item::Event(event))) => {
                if let Some(Some(field)) = fields.get(event.class_index())
                    && let Some(text) = event.text(*field)
                {
                    let _ = pieces.see(&text);
                }
            }
            // Missing events are reported when the trace is read for the explanation.
            Ok(Some(Item::Lost(_))) | Err(_) => {}
        }
    }
    Ok(pieces.join())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn alert(seq: u64, comm: &str) -> Alert {
        let line = format!(
            "seq={seq} time=900 instance=slow tracker=block reason=threshold delay=20 threshold=10 cpu=1 pid=4 tid=5 \
             comm=\"{comm}\" dev=8:0 sector=64"
        );
        Alert::parse(&line).unwrap()
    }

    #[test]
    fn alerts_arrive_whole_and_only_from_the_last_capture() {
        let long = "\u{e9}".repeat(1500);
        let (first, second) = (alert(7, "a b"), alert(8, &long));
        let mut collected = Pieces::default();
        let old = evidence_pieces(4, 1, &Evidence::default()).unwrap();
        for piece in pieces(4, 1, &alert(6, "old")).iter().chain(&old) {
            collected.see(piece);
        }
        let mut texts: Vec<String> = [&first, &second]
            .into_iter()
            .flat_map(|alert| pieces(4, 2, alert))
            .collect();
        assert!(texts.len() > 3 && texts.iter().all(|text| text.len() <= 1024));
        // Events of two CPUs may come in any order, with events of other programs between them.
        texts.reverse();
        texts.push("latency-tracker has 7 words in this text".into());
        for text in &texts {
            collected.see(text);
        }
        let carried = collected.join();
        assert_eq!(carried.alerts.len(), 2);
        for (got, sent) in carried.alerts.iter().zip([first, second]) {
            assert_eq!(got.to_string(), sent.to_string());
        }
        assert_eq!(carried.evidence, None);
    }

    /// The metadata of a trace that has only texts of the logger, without headers.
    const METADATA: &str = "/* CTF 1.8 */\ntrace { byte_order = le; };\nstream { id = 0; };\n\
        event { name = lttng_logger; id = 0; stream_id = 0; fields := struct { string msg; }; };\n";

    #[test]
    fn what_cannot_be_read_costs_no_alert() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("metadata"), METADATA).unwrap();
        let mut texts = pieces(4, 2, &alert(8, "a b")).join("\0");
        // The last text has no end.
        texts.push_str("\0latency-tracker 4");
        fs::write(dir.path().join("stream_0"), texts).unwrap();
        let carried = read(dir.path(), &AtomicBool::new(false)).unwrap();
        assert_eq!(carried.alerts.len(), 1);
    }

    #[test]
    fn a_signal_ends_the_reading() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("metadata"), METADATA).unwrap();
        let error = read(dir.path(), &AtomicBool::new(true)).unwrap_err();
        assert_eq!(error.to_string(), "interrupted");
    }

    #[test]
    fn an_alert_with_a_missing_part_is_dropped() {
        let mut collected = Pieces::default();
        for text in pieces(4, 2, &alert(8, &"x".repeat(2000))).iter().skip(1) {
            collected.see(text);
        }
        assert!(collected.join().alerts.is_empty());
    }

    #[test]
    fn evidence_arrives_whole_or_not_at_all() {
        let function = |number| lt_proc::evidence::Function {
            name: format!("function_{number}"),
            address: u64::MAX - number,
        };
        let sent = Evidence {
            functions: (0..100).map(function).collect(),
            ..Evidence::default()
        };
        let texts = evidence_pieces(4, 2, &sent).unwrap();
        assert!(texts.len() > 3 && texts.iter().all(|text| text.len() <= 1024));
        for missing in 0..=texts.len() {
            let mut collected = Pieces::default();
            for piece in pieces(4, 2, &alert(8, "a b")) {
                collected.see(&piece);
            }
            for (i, text) in texts.iter().enumerate().rev() {
                if i != missing {
                    collected.see(text);
                }
            }
            let carried = collected.join();
            assert_eq!(carried.alerts.len(), 1);
            let expected = (missing == texts.len()).then_some(&sent);
            assert_eq!(carried.evidence.as_ref(), expected, "{missing}");
        }
    }
}
