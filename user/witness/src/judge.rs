// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Compares the slow requests of the trace with the alerts, one by one.
//!
//! Requests and alerts are grouped by place, which is a sector of a device, a thread or a key of a
//! rule, and taken in order of their ends. Two probes on one tracepoint run microseconds apart, and
//! the host of a virtual machine may widen the gap: an emulated processor may lose its turn there. So,
//! by default, nine in ten delays may differ by up to 200 us, and the others by up to 2 ms. If one
//! thread causes both start and end, each time of an alert must also lie between the neighbouring
//! events of that thread in the trace (`Request::within`), however long the gap is. Nothing else may
//! differ, unless the request has an alternative (`Request::or`).

use std::collections::BTreeMap;

use lt_proc::Nanos;

use crate::alerts::Reported;
use crate::pair::{Pairing, Place, Request};

/// The tolerances.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) threshold: u64,
    pub(crate) expect_at_least: usize,
    /// Maximum difference of nine in ten delays, ns.
    pub(crate) usual: u64,
    /// Maximum difference of any delay, ns.
    pub(crate) most: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            threshold: 0,
            expect_at_least: 1,
            usual: 200_000,
            most: 2_000_000,
        }
    }
}

/// Whether fewer than nine in ten of `all` operations are close. Emulated processors take turns, and a turn that ends
/// between two probes widens their gap. A turn may end at any instruction, since the host's disk ends some turns. The
/// limit is therefore far above the share of turns that end between two probes: a higher share has another cause.
pub(crate) fn are_too_few(close: usize, all: usize) -> bool {
    (all - close) * 10 > all
}

/// The outcome.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    summary: String,
    /// Errors; empty if the alerts are exact.
    pub(crate) faults: Vec<String>,
    matches: Vec<String>,
}

impl Verdict {
    /// Returns the outcome of a comparison made elsewhere.
    pub(crate) fn new(summary: String, faults: Vec<String>) -> Self {
        let matches = Vec::new();
        Self {
            summary,
            faults,
            matches,
        }
    }

    /// Whether the alerts exactly match the slow requests.
    pub(crate) fn exact(&self) -> bool {
        self.faults.is_empty()
    }

    /// Adds a word to the summary.
    pub(crate) fn note(&mut self, word: &str) {
        self.summary = format!("{} {word}", self.summary);
    }

    /// Returns the faults, then the verdict line; with `verbose` the matches first.
    pub(crate) fn lines(&self, verbose: bool) -> impl Iterator<Item = String> {
        let matches = if verbose {
            self.matches.clone()
        } else {
            Vec::new()
        };
        let faults = self.faults.iter().map(|f| format!("fault: {f}"));
        let word = if self.exact() { "EXACT" } else { "WRONG" };
        let last = format!(
            "witness: {word} {} faults={}",
            self.summary,
            self.faults.len()
        );
        let lines: Vec<String> = matches.into_iter().chain(faults).chain([last]).collect();
        lines.into_iter()
    }
}

/// The delays at one place, in the trace and in the alerts.
type Group<'a> = (Vec<&'a Request>, Vec<&'a Reported>);

/// Compares the slow requests of a trace with the alerts.
pub(crate) fn judge(paired: &Pairing, alerts: &[Reported], limits: &Limits) -> Verdict {
    let mut verdict = Verdict::default();
    let slow: Vec<&Request> = paired
        .finished
        .iter()
        .filter(|r| r.delay > limits.threshold)
        .collect();
    let mut groups: BTreeMap<Place, Group<'_>> = BTreeMap::new();
    for request in &slow {
        groups
            .entry(request.place.clone())
            .or_default()
            .0
            .push(request);
    }
    for alert in alerts {
        groups.entry(alert.place.clone()).or_default().1.push(alert);
    }
    let mut differences = Vec::new();
    for (place, (mut seen, mut told)) in groups {
        seen.sort_by_key(|r| r.end);
        told.sort_by_key(|a| a.time);
        for request in seen.iter().skip(told.len()) {
            verdict.faults.push(format!(
                "no alert for {place}, {} at {}{}",
                Nanos(request.delay),
                request.end,
                near(request.delay, limits)
            ));
        }
        for alert in told.iter().skip(seen.len()) {
            verdict.faults.push(format!(
                "alert seq={} for {place}, {}: no such slow request{}",
                alert.seq,
                Nanos(alert.delay),
                near(alert.delay, limits)
            ));
        }
        for (request, alert) in seen.iter().zip(&told) {
            let difference = request.delay.abs_diff(alert.delay);
            differences.push(difference);
            verdict.matches.push(format!(
                "{place}: trace {} alert {} differ by {}",
                request.delay,
                alert.delay,
                Nanos(difference)
            ));
            if request.said != alert.said && request.or.as_ref() != Some(&alert.said) {
                verdict.faults.push(format!(
                    "alert seq={} for {place} says {:?}, the trace {:?}",
                    alert.seq, alert.said, request.said
                ));
            }
            let began = alert.time.saturating_sub(alert.delay);
            if let Some((start, end)) = &request.within
                && !(start.contains(&began) && end.contains(&alert.time))
            {
                verdict.faults.push(format!(
                    "alert seq={} for {place} lasts from {began} to {}, but its thread's neighbouring events in the \
                     trace allow only a start in {start:?} and an end in {end:?}",
                    alert.seq, alert.time
                ));
            }
            if difference > limits.most {
                verdict.faults.push(format!(
                    "alert seq={} for {place} says {}, the trace {}",
                    alert.seq,
                    Nanos(alert.delay),
                    Nanos(request.delay)
                ));
            }
        }
    }
    let matched = differences.len();
    let usual = differences.iter().filter(|d| **d <= limits.usual).count();
    if are_too_few(usual, matched) {
        let limit = Nanos(limits.usual).exact();
        verdict.faults.push(format!(
            "only {usual} of {matched} delays agree within {limit}"
        ));
    }
    if slow.len() < limits.expect_at_least {
        let (found, wanted) = (slow.len(), limits.expect_at_least);
        verdict.faults.push(format!(
            "the trace holds {found} slow requests, expected at least {wanted}"
        ));
    }
    verdict.summary = format!(
        "requests={} slow={} alerts={} matched={matched} worst={} usual={usual} ambiguous={} pending={} \
         requeued={} merged={} partial={}",
        paired.finished.len(),
        slow.len(),
        alerts.len(),
        Nanos(differences.iter().copied().max().unwrap_or(0)),
        paired.ambiguous,
        paired.pending,
        paired.requeued,
        paired.merged,
        paired.partial,
    );
    verdict
}

/// Returns a remark if the delay is near the threshold, else nothing. The probes read the clock separately,
/// so such a delay may be on either side.
fn near(delay: u64, limits: &Limits) -> &'static str {
    if delay.abs_diff(limits.threshold) <= limits.usual {
        " (near the threshold: the load must leave a gap there)"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn place(sector: u64) -> Place {
        let (major, minor) = (254, 1);
        Place::Disk(crate::babeltrace::Dev { major, minor }, sector)
    }

    fn request(sector: u64, delay: u64, end: u64) -> Request {
        Request {
            place: place(sector),
            delay,
            end,
            said: "x=1".into(),
            or: None,
            within: None,
        }
    }

    /// 200 requests, every tenth slow, and another slow one at the sector of the first.
    fn truth() -> (Pairing, Vec<Reported>) {
        let mut finished: Vec<Request> = (0..200)
            .map(|i| {
                request(
                    i * 8,
                    if i % 10 == 0 { 20 * MS + i } else { 2 * MS },
                    i * MS,
                )
            })
            .collect();
        finished.push(request(0, 25 * MS, 999 * MS));
        let slow = finished.iter().filter(|r| r.delay > 10 * MS);
        let alerts = slow.enumerate().map(|(i, r)| Reported {
            seq: i as u64,
            place: r.place.clone(),
            delay: r.delay + 3_000,
            time: r.end + 5_000,
            said: r.said.clone(),
        });
        let alerts = alerts.collect();
        (
            Pairing {
                finished,
                ..Pairing::default()
            },
            alerts,
        )
    }

    fn limits() -> Limits {
        Limits {
            threshold: 10 * MS,
            expect_at_least: 21,
            ..Limits::default()
        }
    }

    fn faults(change: impl FnOnce(&mut Vec<Reported>)) -> Vec<String> {
        let (paired, mut alerts) = truth();
        change(&mut alerts);
        judge(&paired, &alerts, &limits()).faults
    }

    #[test]
    fn the_truth_is_accepted_in_any_order() {
        assert_eq!(faults(|_| ()), [""; 0]);
        assert_eq!(faults(|alerts| alerts.reverse()), [""; 0]);
    }

    #[test]
    fn a_missing_alert_is_rejected() {
        for i in 0..21 {
            let found = faults(|alerts| {
                alerts.remove(i);
            });
            assert!(!found.is_empty(), "without alert {i}");
        }
    }

    #[test]
    fn an_invented_alert_is_rejected() {
        let found = faults(|alerts| {
            let copy = alerts[3].clone();
            alerts.push(copy);
        });
        assert!(found[0].contains("no such slow request"), "{found:?}");
        assert!(!faults(|alerts| alerts[3].place = place(7)).is_empty());
        assert!(!faults(|alerts| alerts[3].place = Place::Task(9)).is_empty());
    }

    #[test]
    fn a_wrong_delay_is_rejected() {
        let found = faults(|alerts| alerts[3].delay += 3 * MS);
        assert!(found[0].contains("says"), "{found:?}");
        // The differences are below 2 ms, but more than one delay in ten differs by more than 200 us.
        let found = faults(|alerts| {
            for alert in &mut alerts[3..6] {
                alert.delay += MS;
            }
        });
        assert_eq!(found, ["only 18 of 21 delays agree within 200us"]);
    }

    #[test]
    fn a_wrong_word_is_rejected() {
        let found = faults(|alerts| alerts[3].said = "x=2".into());
        assert!(
            found[0].contains(r#"says "x=2", the trace "x=1""#),
            "{found:?}"
        );
        // If the request has an alternative, either value is accepted, and no third value.
        for (word, right) in [("x=1", true), ("x=2", true), ("x=3", false)] {
            let (mut paired, mut alerts) = truth();
            for request in &mut paired.finished {
                request.or = Some("x=2".into());
            }
            alerts[3].said = word.into();
            let found = judge(&paired, &alerts, &limits()).faults;
            assert_eq!(found.is_empty(), right, "{found:?}");
        }
    }

    #[test]
    fn delays_swapped_at_one_sector_are_rejected() {
        let found = faults(|alerts| {
            let last = alerts.len() - 1;
            let (a, b) = (alerts[0].delay, alerts[last].delay);
            (alerts[0].delay, alerts[last].delay) = (b, a);
        });
        assert!(!found.is_empty());
    }

    #[test]
    fn one_in_ten_may_be_late_by_up_to_2ms() {
        let finished: Vec<Request> = (0..100).map(|i| request(i, 20 * MS, i)).collect();
        let told = finished.iter().map(|r| Reported {
            seq: 0,
            place: r.place.clone(),
            delay: r.delay,
            time: r.end,
            said: r.said.clone(),
        });
        let mut told: Vec<Reported> = told.collect();
        let paired = Pairing {
            finished,
            ..Pairing::default()
        };
        for alert in &mut told[5..15] {
            alert.delay += MS;
        }
        assert!(judge(&paired, &told, &limits()).exact());
        told[15].delay += MS;
        assert!(!judge(&paired, &told, &limits()).exact());
    }

    #[test]
    fn an_alert_lies_between_the_neighbouring_events_of_its_thread() {
        let mut one = request(0, 20 * MS, 100 * MS);
        one.within = Some((79 * MS..=81 * MS, 99 * MS..=101 * MS));
        let paired = Pairing {
            finished: vec![one],
            ..Pairing::default()
        };
        let faults = |start: u64, end: u64| {
            let alert = Reported {
                seq: 0,
                place: place(0),
                delay: end - start,
                time: end,
                said: "x=1".into(),
            };
            judge(&paired, &[alert], &Limits::default()).faults
        };
        assert_eq!(faults(80 * MS, 100 * MS), [""; 0]);
        assert_eq!(faults(79 * MS, 99 * MS), [""; 0]);
        // The delay is right, but both times are wrong.
        for (start, end) in [(78 * MS, 98 * MS), (82 * MS, 102 * MS)] {
            let found = faults(start, end);
            assert!(found[0].contains("neighbouring events"), "{found:?}");
            assert_eq!(found.len(), 1);
        }
        // One time is wrong.
        let found = faults(79 * MS - 1, 99 * MS);
        assert!(found[0].contains("neighbouring events"), "{found:?}");
        let found = faults(81 * MS, 101 * MS + 1);
        assert!(found[0].contains("neighbouring events"), "{found:?}");
    }

    #[test]
    fn a_comparison_of_nothing_is_rejected() {
        assert!(!judge(&Pairing::default(), &[], &limits()).exact());
        let (paired, _) = truth();
        assert!(!judge(&paired, &[], &limits()).exact());
        assert!(!judge(&Pairing::default(), &truth().1, &limits()).exact());
    }
}
