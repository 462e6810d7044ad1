// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Alerts as events of a trace, by LTTng's logger: `record --url` writes them, and `explain` reads them where a trace has
//! no alert.json beside it.
//!
//! The line of an alert is split into events of at most 1,024 bytes:
//!
//! ```text
//! latency-tracker PID CAPTURE SEQ PART PARTS TEXT      TEXT: a part of the line, as in `alerts`
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use lt_ctf::{Item, Reader};
use lt_proc::{Alert, StreamLine};

/// Each write to this file is an event.
pub(crate) const LOGGER: &str = "/dev/lttng-logger";

/// The event of a write.
pub(crate) const EVENT: &str = "lttng_logger";

const WORD: &str = "latency-tracker";

/// Bytes of the text of an event: the logger takes 1,024, and the head has a word and five numbers.
const MOST: usize = 900;

/// The texts that carry an alert of this capture, by the recorder `pid`.
pub(crate) fn pieces(pid: u32, capture: u64, alert: &Alert) -> Vec<String> {
    let line = alert.to_string();
    let (mut parts, mut rest) = (Vec::new(), line.as_str());
    while !rest.is_empty() {
        let end = (0..=rest.len().min(MOST)).rfind(|i| rest.is_char_boundary(*i));
        let (part, more) = rest.split_at(end.unwrap_or(rest.len()));
        parts.push(part);
        rest = more;
    }
    let (seq, n) = (alert.seq, parts.len());
    let piece = |(i, part)| format!("{WORD} {pid} {capture} {seq} {i} {n} {part}");
    parts.into_iter().enumerate().map(piece).collect()
}

/// An alert: recorder, capture, and number of the alert.
type Key = (u32, u64, u64);

/// Collects the pieces of a trace.
#[derive(Debug, Default)]
struct Carried {
    /// The recorder and the capture of the last piece.
    last: Option<(u32, u64)>,
    /// The number of parts of each alert, and those that were seen.
    parts: BTreeMap<Key, (usize, BTreeMap<usize, String>)>,
}

impl Carried {
    /// Takes a text of the logger; other texts are ignored.
    fn see(&mut self, text: &str) -> Option<()> {
        let mut words = text.splitn(7, ' ');
        words.next().filter(|word| *word == WORD)?;
        let (pid, capture) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let seq = words.next()?.parse().ok()?;
        let (part, parts) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        self.last = Some((pid, capture));
        let alert = self.parts.entry((pid, capture, seq)).or_default();
        alert.0 = parts;
        alert.1.insert(part, words.next()?.to_string());
        Some(())
    }

    /// The complete alerts of the last capture, by number. The buffers may still have those of earlier captures.
    fn alerts(self) -> Vec<Alert> {
        let of_last = |(pid, capture, _): &Key| Some((*pid, *capture)) == self.last;
        let whole = self
            .parts
            .iter()
            .filter(|(key, (parts, seen))| of_last(key) && seen.len() == *parts);
        let line = whole.map(|(_, (_, seen))| seen.values().cloned().collect::<String>());
        let alert = line.filter_map(|line| match StreamLine::parse(&line) {
            Ok(StreamLine::Alert(alert)) => Some(*alert),
            _ => None,
        });
        alert.collect()
    }
}

/// The alerts that a trace carries for the capture it was sent for; none if it was not sent by a recorder.
pub(crate) fn alerts(trace: &Path) -> Result<Vec<Alert>> {
    let mut reader = Reader::open(trace)?;
    let text = |class: &lt_ctf::Class| (class.name == EVENT).then(|| class.field("msg"))?;
    let fields: Vec<_> = reader.classes().map(text).collect();
    let mut carried = Carried::default();
    while let Some(item) = reader.next()? {
        if let Item::Event(event) = item
            && let Some(Some(field)) = fields.get(event.class_index())
            && let Some(text) = event.text(*field)
        {
            let _ = carried.see(&text);
        }
    }
    Ok(carried.alerts())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(seq: u64, comm: &str) -> Alert {
        let line = format!(
            "seq={seq} time=900 instance=slow tracker=block reason=threshold delay=20 threshold=10 cpu=1 pid=4 tid=5 \
             comm=\"{comm}\" dev=8:0 sector=64"
        );
        Alert::parse(&line).unwrap()
    }

    #[test]
    fn alerts_arrive_whole_and_those_of_the_last_capture_alone() {
        let long = "\u{e9}".repeat(1500);
        let (first, second) = (alert(7, "a b"), alert(8, &long));
        let mut carried = Carried::default();
        for piece in pieces(4, 1, &alert(6, "old")) {
            carried.see(&piece);
        }
        let mut texts: Vec<String> = [&first, &second]
            .into_iter()
            .flat_map(|alert| pieces(4, 2, alert))
            .collect();
        assert!(texts.len() > 3 && texts.iter().all(|text| text.len() <= 1024));
        // Events of two CPUs may be in another order, and those of other programs are between them.
        texts.reverse();
        texts.push("latency-tracker has 7 words in this text".into());
        for text in &texts {
            carried.see(text);
        }
        let alerts = carried.alerts();
        assert_eq!(alerts.len(), 2);
        for (got, sent) in alerts.iter().zip([first, second]) {
            assert_eq!(got.to_string(), sent.to_string());
        }
    }

    #[test]
    fn an_alert_with_a_part_missing_is_not_made_up() {
        let mut carried = Carried::default();
        for text in pieces(4, 2, &alert(8, &"x".repeat(2000))).iter().skip(1) {
            carried.see(text);
        }
        assert!(carried.alerts().is_empty());
    }
}
