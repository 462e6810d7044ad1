// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Alerts that are events of a trace, recorded by LTTng's probe of the module (`lttng/`).
//!
//! Each alert has the event `latency_tracker_alert`, and most trackers have `latency_tracker_alert_TRACKER` too, with the
//! tracker's own fields by name. Either may be disabled.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use lt_common::out;
use lt_ctf::{Class, Event, FieldIndex, Item, Part, Reader, Scope};
use lt_proc::{Alert, Field, Fields, Reason, Value};

const EVENT: &str = "latency_tracker_alert";

/// The second event of an alert is matched against at most this many of the latest alerts.
const NEAR: usize = 64;

/// The events of one class.
struct Kind {
    /// The tracker that this event belongs to; `None` for the common event.
    tracker: Option<String>,
    fields: Vec<(FieldIndex, String)>,
}

impl Kind {
    /// Returns `None` for an event that is not an alert.
    fn of(class: &Class) -> Option<Self> {
        let rest = class.name.strip_prefix(EVENT)?;
        let tracker = match rest {
            "" => None,
            _ => Some(rest.strip_prefix('_')?.to_string()),
        };
        let fields = class.fields().filter(|(_, f)| f.scope == Scope::Payload);
        Some(Self {
            tracker,
            fields: fields.map(|(i, f)| (i, f.name.clone())).collect(),
        })
    }

    /// The alert of an event; `None` if it lacks a field that every alert has.
    fn alert(&self, event: &Event<'_>) -> Option<Alert> {
        let values = self.fields.iter().filter_map(|(index, name)| {
            let value = value(event, *index)?;
            Some((name.as_str(), value))
        });
        alert(self.tracker.as_deref(), event.cpu()?, values)
    }
}

/// Builds an alert from the fields of an event; the tracker's own fields keep their order.
fn alert<'a>(
    tracker: Option<&str>,
    cpu: u32,
    values: impl Iterator<Item = (&'a str, Value)>,
) -> Option<Alert> {
    let mut common: BTreeMap<&str, Value> = BTreeMap::new();
    let mut own: Vec<(&str, Value)> = Vec::new();
    for (key, value) in values {
        match key {
            "seq" | "time" | "instance" | "tracker" | "reason" | "delay" | "threshold" | "pid"
            | "tid" | "comm" => {
                common.insert(key, value);
            }
            "before_start" if value.number() == Some(0) => {}
            "before_start" => own.push(("since", Value::Bare("before-start".into()))),
            _ if tracker == Some("block") => own.extend(of_request(key, value)),
            // `args` and `stack` of the common event are numbers without names.
            _ if tracker.is_none() => {}
            _ => own.push((key, value)),
        }
    }
    let number = |key: &str| common.get(key).and_then(Value::number);
    let text = |key: &str| Some(common.get(key)?.text().into_owned());
    let fields = own.into_iter().map(|(key, value)| Field {
        key: key.into(),
        value,
    });
    Some(Alert {
        seq: number("seq")?,
        time: number("time")?,
        instance: text("instance")?,
        tracker: match tracker {
            Some(tracker) => tracker.into(),
            None => text("tracker")?,
        },
        reason: Reason::from(text("reason")?.as_str()),
        delay: number("delay")?,
        threshold: number("threshold")?,
        cpu: cpu.into(),
        pid: number("pid")?,
        tid: number("tid")?,
        fields: Fields(fields.collect()),
        ustack_names: None,
        comm: common.remove("comm")?,
    })
}

/// Converts a field of a request to its form in the line of an alert.
fn of_request(key: &str, value: Value) -> Option<(&str, Value)> {
    const MINOR_BITS: u32 = 20;
    let number = value.number();
    Some(match (key, number) {
        ("dev", Some(dev)) => {
            let (major, minor) = (dev >> MINOR_BITS, dev & ((1 << MINOR_BITS) - 1));
            ("dev", Value::Bare(format!("{major}:{minor}")))
        }
        ("cmd_flags", Some(flags)) => ("op", Value::Quoted(operation(flags).into_bytes())),
        ("cmd_flags", None) => return None,
        _ => (key, value),
    })
}

/// Returns the operation and the flags of a request as letters, like the kernel's `blk_fill_rwbs()`.
fn operation(flags: u64) -> String {
    let has = |bit: u32| flags & 1 << bit != 0;
    let operation = match flags & 0xff {
        0 => "R",
        1 => "W",
        2 => "F",
        3 => "D",
        5 => "DE",
        7 => "ZA",
        9 => "WZ",
        11 => "ZO",
        13 => "ZC",
        15 => "ZF",
        17 => "ZR",
        19 => "ZRA",
        _ => "N",
    };
    let letters = [(17, 'F'), (19, 'A'), (11, 'S'), (12, 'M')];
    let letters = letters.iter().filter(|(bit, _)| has(*bit));
    let before = if has(18) { "F" } else { "" };
    format!("{before}{operation}") + &letters.map(|(_, letter)| letter).collect::<String>()
}

/// The value of a field that is a number or text.
fn value(event: &Event<'_>, index: FieldIndex) -> Option<Value> {
    let (mut value, mut parts) = (None, 0);
    let number = |number: i128, names: lt_ctf::Names<'_>| {
        let name = names.of(number).next().map(str::to_string);
        Value::Bare(name.unwrap_or_else(|| number.to_string()))
    };
    event.visit(index, &mut |part| {
        parts += 1;
        value = match part {
            Part::Unsigned(n, _, names) => Some(number(n.into(), names)),
            Part::Signed(n, _, names) => Some(number(n.into(), names)),
            Part::Text(text) => Some(Value::Quoted(text.into_owned())),
            _ => None,
        };
    });
    value.filter(|_| parts == 1)
}

/// Adds an alert. If it is known from another event, adds only the fields that are still missing.
fn add(alerts: &mut Vec<Alert>, alert: Alert) {
    let is_same = |other: &&mut Alert| {
        (other.seq, other.time, &other.instance) == (alert.seq, alert.time, &alert.instance)
    };
    match alerts.iter_mut().rev().take(NEAR).find(is_same) {
        Some(known) => {
            // An event may be in several channels.
            let mut new = alert.fields.0;
            new.retain(|field| known.fields.get(&field.key).is_none());
            known.fields.0.extend(new);
        }
        None => alerts.push(alert),
    }
}

/// Chooses the alerts to explain: the alerts with these numbers; without numbers, the newest alert.
pub(super) fn alerts(trace: &Path, seq: &[u64], interrupted: &AtomicBool) -> Result<Vec<Alert>> {
    let Some(all) = all(trace, interrupted)? else {
        bail!(
            "{}: neither a capture of `latency-tracker record`, which has a file alert.json, nor a trace with events of \
             latency_tracker, which LTTng's probe records; for another trace, name the alerts with --alerts",
            trace.display()
        );
    };
    choose(trace, all, seq)
}

/// All alerts of a trace; `None` if the trace has no event for alerts.
pub(super) fn all(trace: &Path, interrupted: &AtomicBool) -> Result<Option<Vec<Alert>>> {
    let mut reader = Reader::open(trace)?;
    let kinds: Vec<_> = reader.classes().map(Kind::of).collect();
    if kinds.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut all = Vec::new();
    loop {
        if interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        match reader.next() {
            Ok(None) => break,
            Ok(Some(Item::Event(event))) => {
                let kind = kinds.get(event.class_index()).and_then(Option::as_ref);
                if let Some(alert) = kind.and_then(|kind| kind.alert(&event)) {
                    add(&mut all, alert);
                }
            }
            // Missing events are reported when the trace is read for the explanation.
            Ok(Some(Item::Lost(_))) | Err(_) => {}
        }
    }
    Ok(Some(all))
}

fn choose(trace: &Path, all: Vec<Alert>, seq: &[u64]) -> Result<Vec<Alert>> {
    if all.is_empty() {
        bail!(
            "{}: no alert in this trace, although it records the events latency_tracker_*",
            trace.display()
        );
    }
    let has = listed(&all);
    if seq.is_empty() {
        let count = all.len();
        let newest = all.into_iter().max_by_key(|alert| alert.time);
        if count > 1 {
            out::note(&format!(
                "the newest of {count} alerts in this trace; --seq explains others: {has}"
            ));
        }
        return Ok(newest.into_iter().collect());
    }
    let chosen = all.into_iter().filter(|alert| seq.contains(&alert.seq));
    let chosen: Vec<_> = chosen.collect();
    if chosen.is_empty() {
        bail!(
            "{}: no alert has that number; the trace has {has}",
            trace.display()
        );
    }
    Ok(chosen)
}

/// The numbers of the alerts of each instance: `slow 3 to 17, late 1`.
fn listed(alerts: &[Alert]) -> String {
    let mut instances: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for alert in alerts {
        let range = instances.entry(&alert.instance);
        let range = range.or_insert((alert.seq, alert.seq));
        *range = (range.0.min(alert.seq), range.1.max(alert.seq));
    }
    let words = instances.iter().map(|(name, (first, last))| {
        let name = out::printable(name);
        match first == last {
            true => format!("{name} {first}"),
            false => format!("{name} {first} to {last}"),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "seq=17 time=1234 instance=slow tracker=block reason=threshold delay=34 threshold=10 cpu=1 pid=8 \
                        tid=9 comm=\"fio\"";

    fn values(text: &str) -> Vec<(String, Value)> {
        let fields = Fields::parse(text).unwrap().0.into_iter();
        fields.map(|field| (field.key, field.value)).collect()
    }

    /// The alert of an event with these fields.
    fn of(tracker: Option<&str>, text: &str) -> Option<Alert> {
        let values = values(text);
        let values = values.iter().filter(|(key, _)| key != "cpu");
        alert(tracker, 1, values.map(|(k, v)| (k.as_str(), v.clone())))
    }

    #[test]
    fn both_events_of_an_alert_are_its_line() {
        let own = "dev=8388609 disk=\"sda1\" cmd_flags=2049 sector=2048 bytes=4096 queue=0 device=34 requeues=0";
        let line = format!(
            "{LINE} dev=8:1 disk=\"sda1\" op=\"WS\" sector=2048 bytes=4096 queue=0 device=34 requeues=0"
        );
        let of_block = || of(Some("block"), &format!("{LINE} {own}")).unwrap();
        let of_all = || of(None, &format!("{LINE} before_start=0 words=3")).unwrap();
        assert_eq!(of_block().to_string(), line);
        assert_eq!(of_all().to_string(), LINE);
        for two in [[of_all(), of_block()], [of_block(), of_all()]] {
            let mut alerts = vec![of(None, &LINE.replace("seq=17", "seq=16")).unwrap()];
            let again = two[1].clone();
            two.into_iter().for_each(|alert| add(&mut alerts, alert));
            add(&mut alerts, again);
            assert_eq!(alerts.len(), 2);
            assert_eq!(alerts[1].to_string(), line);
        }
        let before = of(None, &format!("{LINE} before_start=1")).unwrap();
        assert!(before.fields.is_at_least());
    }

    #[test]
    fn an_event_that_lacks_a_field_is_no_alert() {
        for key in ["seq", "time", "instance", "delay", "tid", "comm"] {
            let words = LINE.split(' ').filter(|word| !word.starts_with(key));
            let line = words.collect::<Vec<_>>().join(" ");
            assert_eq!(of(None, &line), None, "{key}");
        }
    }

    #[test]
    fn operations_have_the_letters_of_the_kernel() {
        for (flags, letters) in [
            (0, "R"),
            (1 << 11, "RS"),
            (1 << 19, "RA"),
            (1 | 1 << 11 | 1 << 17 | 1 << 18, "FWFS"),
            (2 | 1 << 18, "FF"),
            (1 | 1 << 12, "WM"),
            (34, "N"),
        ] {
            assert_eq!(operation(flags), letters, "{flags:#x}");
        }
    }

    #[test]
    fn the_newest_is_chosen_unless_numbers_are_given() {
        let alert = |instance: &str, seq: u64, time: u64| {
            let line = LINE.replace("=slow", &format!("={instance}"));
            let line = line.replace("seq=17", &format!("seq={seq}"));
            of(None, &line.replace("1234", &time.to_string())).unwrap()
        };
        let all = || vec![alert("a", 3, 10), alert("b", 1, 30), alert("a", 4, 20)];
        let trace = Path::new("t");
        let chosen = |seq: &[u64]| choose(trace, all(), seq).unwrap();
        assert_eq!(chosen(&[]), [alert("b", 1, 30)]);
        assert_eq!(chosen(&[4, 1]), [alert("b", 1, 30), alert("a", 4, 20)]);
        let none = choose(trace, all(), &[7]).unwrap_err().to_string();
        assert!(none.ends_with("the trace has a 3 to 4, b 1"), "{none}");
        assert!(choose(trace, Vec::new(), &[]).is_err());
    }
}
