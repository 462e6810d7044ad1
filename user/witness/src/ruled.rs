// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Pairs starts and ends by a rule.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use anyhow::{Context, Result};

use crate::alerts::Reported;
use crate::lines::{self, Line, Marks};
use crate::pair::{Pairing, Place, Request};
use crate::rules::{Mode, Rule};

/// An open operation: its start, and the fields that the alert must have about the start.
struct Open {
    start: u64,
    said: String,
    /// See [`brackets`].
    within: Option<RangeInclusive<u64>>,
}

/// The open operations of each key, earliest first.
type All = BTreeMap<String, VecDeque<Open>>;

/// The latest line of each task that a later line of the task may need.
type Recent<'a> = BTreeMap<u32, &'a Line<'a>>;

/// Resolution of the times of the trace, ns.
const MICROSECOND: u64 = 1_000;

/// Finds all operations that started and ended between the marks, and the marks.
///
/// An end without an open operation is ignored: the trace may have started in the middle of the operation.
pub(crate) fn pair(text: &str, rule: &Rule) -> Result<(Pairing, Marks)> {
    let (lines, marks) = lines::read(text, |event| rule.has(event))?;
    let mut pairing = Pairing::default();
    let (mut all, mut recent) = (All::new(), Recent::new());
    let within = match rule.is_of_thread() {
        true => brackets(&lines),
        false => Vec::new(),
    };
    for (at, line) in lines.iter().enumerate() {
        let ended = step(&mut all, &mut recent, rule, line, within.get(at));
        let ended = ended.with_context(|| format!("{line:?}"))?;
        let is_meant = |ended: &Request| marks.has(ended.end - ended.delay, ended.end);
        pairing.finished.extend(ended.filter(is_meant));
    }
    pairing.pending = all.values().map(|open| open.len() as u64).sum();
    Ok((pairing, marks))
}

/// Returns for each line when the module must have seen its event, ns: after the trace's probe for the event before it
/// in the same thread and context, and before the probe for the event after it. The probes of one thread run one after
/// another, regardless of how long the host stops a processor in between.
fn brackets(lines: &[Line<'_>]) -> Vec<RangeInclusive<u64>> {
    let mut within = vec![0..=u64::MAX; lines.len()];
    let mut latest = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(before) = latest.insert((line.current, line.context), at) {
            within[before] = *within[before].start()..=line.time + MICROSECOND;
            within[at] = lines[before].time.saturating_sub(MICROSECOND)..=u64::MAX;
        }
    }
    within
}

/// Returns the operation that a line ends, if any. `within` is the line's bracket.
fn step<'a>(
    all: &mut All,
    recent: &mut Recent<'a>,
    rule: &Rule,
    line: &'a Line<'a>,
    within: Option<&RangeInclusive<u64>>,
) -> Result<Option<Request>> {
    if let Some(drop) = &rule.drop
        && let Some(seen) = drop.seen(line, recent)
    {
        all.remove(&drop.key(&seen)?);
    }
    // One event may be both the end of one operation and the start of the next.
    let mut ended = None;
    if let Some(seen) = rule.end.seen(line, recent) {
        let key = rule.end.key(&seen)?;
        let open = all.get_mut(&key);
        let found = open.and_then(|open| match rule.mode {
            Mode::Nest => open.pop_back(),
            Mode::Last | Mode::First | Mode::Each => open.pop_front(),
        });
        if let Some(open) = found {
            let said = format!("{} {}", open.said, rule.end.said(&seen)?);
            ended = Some(Request {
                place: Place::Key(key),
                delay: line.time - open.start,
                end: line.time,
                said: said.trim().to_string(),
                or: None,
                within: open.within.zip(within.cloned()),
            });
        }
    }
    if let Some(seen) = rule.begin.seen(line, recent) {
        let open = all.entry(rule.begin.key(&seen)?).or_default();
        let said = rule.begin.said(&seen)?;
        let begun = Open {
            start: line.time,
            said,
            within: within.cloned(),
        };
        match rule.mode {
            Mode::Last => *open = [begun].into(),
            Mode::First if !open.is_empty() => {}
            Mode::First | Mode::Nest | Mode::Each => open.push_back(begun),
        }
    }
    if rule.remembers(line.event) {
        recent.insert(line.current, line);
    }
    Ok(ended)
}

/// Reads the alerts of an instance that are above the threshold and whose operations lie between the
/// marks.
pub(crate) fn alerts(text: &str, rule: &Rule, marks: Marks) -> Result<Vec<Reported>> {
    lines::alerts(text, marks, |alert| {
        let key = lines::said(alert, rule.key())?;
        Ok((Place::Key(key), lines::said(alert, rule.said())?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(lines: &[(u32, &str)]) -> String {
        let mut text = "# entries-in-buffer/entries-written: 9/9   #P:2\n".to_string();
        let mark = "  sh-1  [000] .....  1.0: tracing_mark_write: lt-witness begin\n";
        text += mark;
        for (i, (tid, event)) in lines.iter().enumerate() {
            text += &format!("  a b-{tid}  [001] d..1.  2.00000{i}: {event}\n");
        }
        text + &mark.replace("1.0:", "9.0:").replace("begin", "end")
    }

    fn delays(rule: &str, lines: &[(u32, &str)]) -> Vec<(String, u64, String)> {
        let (pairing, _) = pair(&trace(lines), &Rule::find(rule).unwrap()).unwrap();
        let found = pairing.finished.into_iter();
        found
            .map(|r| (r.place.to_string(), r.delay / 1000, r.said))
            .collect()
    }

    fn one(key: &str, delay: u64, said: &str) -> (String, u64, String) {
        (key.into(), delay, said.into())
    }

    #[test]
    fn calls_of_two_tasks_are_kept_apart() {
        let found = delays(
            "syscall",
            &[
                (7, "sys_enter: NR 0 (3, 7f, 10, 0, 0, 0)"),
                (8, "sys_enter: NR 1 (1, 7e, 20, 0, 0, 0)"),
                (7, "sys_exit: NR 0 = 16"),
                // A new task returns from a call that it did not enter.
                (9, "sys_exit: NR 56 = 0"),
                (8, "sys_exit: NR 1 = 32"),
            ],
        );
        let read = "number=0 arg0=0x3 arg1=0x7f arg2=0x10 ret=16";
        let write = "number=1 arg0=0x1 arg1=0x7e arg2=0x20 ret=32";
        assert_eq!(found, [one("tid=7", 2, read), one("tid=8", 3, write)]);
    }

    #[test]
    fn a_dropped_operation_does_not_end() {
        let lines = [
            (7, "sys_enter: NR 60 (0, 0, 0, 0, 0, 0)"),
            (
                7,
                "sched_process_exit: comm=a pid=7 prio=120 group_dead=true",
            ),
            (7, "sys_exit: NR 56 = 0"),
        ];
        assert_eq!(delays("syscall", &lines), []);
        assert_eq!(delays("syscall", &[lines[0], lines[2]]).len(), 1);
    }

    #[test]
    fn the_mode_selects_the_start_of_an_end() {
        let lines = [(7, "in: x"), (7, "in: y"), (7, "out: "), (7, "out: ")];
        let found = |mode: &str| {
            let rule = format!("{mode} in(tid; n:#0) -> out(tid)");
            let found = delays(&rule, &lines).into_iter();
            found
                .map(|(_, delay, said)| (delay, said))
                .collect::<Vec<_>>()
        };
        let of = |delay: u64, said: &str| (delay, said.to_string());
        assert_eq!(found("last"), [of(1, "n=y")]);
        assert_eq!(found("first"), [of(2, "n=x")]);
        assert_eq!(found("nest"), [of(1, "n=y"), of(3, "n=x")]);
        assert_eq!(found("each"), [of(2, "n=x"), of(2, "n=y")]);
    }

    #[test]
    fn an_event_lies_between_its_neighbours_in_the_thread() {
        let lines = [
            (7, "in: x"),
            (8, "in: x"),
            (7, "in: x"),
            (7, "out: "),
            (7, "out: "),
        ];
        let within = |key: &str| {
            let rule = Rule::find(&format!("nest in({key}) -> out({key})")).unwrap();
            let (pairing, _) = pair(&trace(&lines), &rule).unwrap();
            let found = pairing.finished.into_iter();
            found.map(|r| r.within).collect::<Vec<_>>()
        };
        // The time of a line; brackets are wider by the resolution of the trace.
        let at = |line: u64| 2_000_000_000 + line * MICROSECOND;
        let inner = (at(0) - MICROSECOND..=at(4), at(2) - MICROSECOND..=at(5));
        let outer = (0..=at(3), at(3) - MICROSECOND..=u64::MAX);
        assert_eq!(within("tid"), [Some(inner), Some(outer)]);
        // Another thread may cause the end.
        assert_eq!(within("cpu"), [None, None]);
    }

    #[test]
    fn an_earlier_event_of_a_task_belongs_to_its_next_step() {
        let lines = [
            (7, "accepted: socket=a port=80 remote=1"),
            (8, "accepted: socket=b port=80 remote=2"),
            (8, "sys_exit: NR 288 = 5"),
            (7, "sys_exit: NR 288 = 6"),
            // This call of accept failed.
            (7, "sys_exit: NR 288 = -11"),
            (8, "sent: socket=a bytes=10"),
            (8, "sent: socket=a bytes=11"),
            (9, "closed: socket=b"),
            (9, "sent: socket=b bytes=12"),
        ];
        let said = "tid=7 fd=6 port=80 remote=1 bytes=10";
        assert_eq!(delays("accept", &lines), [one("socket=a", 2, said)]);
    }

    #[test]
    fn an_event_may_end_one_operation_and_start_the_next() {
        let lines = [(7, "turn: x"), (7, "turn: y")];
        let found = delays("last turn(tid; n:#0) -> turn(tid)", &lines);
        assert_eq!(found, [one("tid=7", 1, "n=x")]);
    }

    #[test]
    fn alerts_have_the_same_key() {
        let line = "seq=1 time=99 instance=a tracker=irq reason=threshold delay=10 threshold=0 cpu=1 pid=9 tid=9 \
                    comm=\"x\" irq=25 on=1 action=\"two words\"\n";
        let rule = Rule::find("irq").unwrap();
        let marks = Marks { begin: 0, end: 99 };
        let alerts_of = |text: &str| alerts(text, &rule, marks);
        let found = alerts_of(line).unwrap();
        assert_eq!(found[0].place, Place::Key("on=1 irq=25".into()));
        assert_eq!(found[0].said, "action=two words");
        assert!(alerts_of(&line.replace("irq=25", "ir=25")).is_err());
    }
}
