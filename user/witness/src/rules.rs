// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Rules: which raw events of a trace start and end an operation, in one line each.
//!
//! ```text
//!   syscall   last  sys_enter(tid; number:#1 arg0:0x#2) -> sys_exit(tid; ret:#3) ! sched_process_exit(tid:pid=)
//!   name      mode  begin    (key; said              ) -> end                     drop
//! ```
//!
//! *To add a rule*, add a line to [`TABLE`] and a unit test below, with lines copied from a real trace. A test in
//! tests/vm may also pass its own rule: `--rule 'last foo(tid) -> bar(tid)'`.
//!
//! - Events are named as in the trace; `a|b` is either of two, with the same fields.
//! - `key` identifies one of several open operations; start, end and drop name the same fields. `said` is compared with
//!   the alert, as text.
//! - A field is `NAME:SOURCE`, where NAME is the name of the *alert's* field. SOURCE is its place in the trace: `xyz=`
//!   the word after the last `xyz=`; `#2` the word with that number, from 0; `xyz=..` everything after the first
//!   `xyz=`, and `#2..` everything from that word on; `@tid`, `@cpu`, `@context` from the head of the line. Commas,
//!   colons and brackets around a word are dropped, and so are the leading zeros of `@cpu`. A `0x` before a source
//!   means that the alert's value starts with `0x` and the trace's does not. `tid` alone is `tid:@tid`; likewise `cpu`
//!   and `context`.
//! - `EVENT.SOURCE` takes the field from the latest EVENT of the same task. It uses that EVENT up:
//!   a later line needs another one, or is not a step of the rule. One start can thus combine the
//!   arguments of a function with the result of the system call that called it.
//! - The mode defines the meaning of a start whose key is already open: with `last`, the earlier start does not count;
//!   with `first`, the later start does not count; with `nest`, an end belongs to the latest start, with `each`, to the
//!   earliest.
//!
//! Pointers in the text of a trace are hashed, unless the option `hash-ptr` of tracefs is 0.

mod field;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

use crate::lines::Line;
use crate::rules::field::Field;
pub(crate) use crate::rules::field::Seen;

/// The named rules.
const TABLE: &str = "
    syscall  last   sys_enter(tid; number:#1 arg0:0x#2 arg1:0x#3 arg2:0x#4) -> sys_exit(tid; ret:#3) \
                    ! sched_process_exit(tid:pid=)
    irq      last   irq_handler_entry(on:@cpu irq:irq=; action:name=..) -> irq_handler_exit(on:@cpu irq:irq=)
    softirq  last   softirq_entry(tid on:@cpu vec:vec=) -> softirq_exit(tid on:@cpu vec:vec=)
    accept   last   sys_exit(socket:accepted.socket=; tid fd:#3 port:accepted.port= remote:accepted.remote=) \
                    -> sent(socket:socket=; bytes:bytes=) ! closed(socket:socket=)
";

/// The effect of a start while the key is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Last,
    First,
    Nest,
    Each,
}

/// A rule. See the head of this file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) mode: Mode,
    pub(crate) begin: Step,
    pub(crate) end: Step,
    /// The step that drops an open operation without an end.
    pub(crate) drop: Option<Step>,
}

/// An event of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    events: Vec<String>,
    key: Vec<Field>,
    said: Vec<Field>,
}

impl Rule {
    /// Finds a rule by its name, or parses its text.
    pub(crate) fn find(text: &str) -> Result<Self> {
        let named = TABLE.lines().filter_map(|line| {
            let (name, rule) = line.trim().split_once(' ')?;
            Some((name, rule.trim()))
        });
        let mut names = Vec::new();
        for (name, rule) in named {
            if name == text.trim() {
                return Self::parse(rule).with_context(|| format!("rule {name}"));
            }
            names.push(name);
        }
        ensure!(
            text.contains("->"),
            "{text:?}: no such rule; there are {}",
            names.join(", ")
        );
        Self::parse(text)
    }

    fn parse(text: &str) -> Result<Self> {
        let (mode, rest) = text
            .trim()
            .split_once(' ')
            .context("expected MODE BEGIN -> END")?;
        let mode = match mode {
            "last" => Mode::Last,
            "first" => Mode::First,
            "nest" => Mode::Nest,
            "each" => Mode::Each,
            _ => bail!("{mode:?}: expected last, first, nest or each"),
        };
        let (begin, rest) = rest
            .split_once("->")
            .context("expected -> after the begin")?;
        let (end, drop) = match rest.split_once('!') {
            Some((end, drop)) => (end, Some(Step::parse(drop)?)),
            None => (rest, None),
        };
        let (begin, end) = (Step::parse(begin)?, Step::parse(end)?);
        for other in [Some(&end), drop.as_ref()].into_iter().flatten() {
            ensure!(
                other
                    .key
                    .iter()
                    .map(|f| &f.name)
                    .eq(begin.key.iter().map(|f| &f.name)),
                "{} and {} have keys of different fields",
                begin.events.join("|"),
                other.events.join("|")
            );
        }
        Ok(Self {
            mode,
            begin,
            end,
            drop,
        })
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        let steps = [Some(&self.begin), Some(&self.end), self.drop.as_ref()];
        steps.into_iter().flatten()
    }

    /// Whether each operation starts and ends in one thread, which is its key.
    pub(crate) fn is_of_thread(&self) -> bool {
        let is_thread = |step: &Step| matches!(&step.key[..], [field] if field.is_tid());
        is_thread(&self.begin) && is_thread(&self.end)
    }

    /// Whether the rule uses lines with this event.
    pub(crate) fn has(&self, event: &str) -> bool {
        self.remembers(event) || self.steps().any(|step| step.is(event))
    }

    /// Whether a later line of the same task may need a line with this event.
    pub(crate) fn remembers(&self, event: &str) -> bool {
        self.steps()
            .any(|step| step.earlier().iter().any(|one| one == event))
    }

    /// Returns the fields of an alert that form its key.
    pub(crate) fn key(&self) -> impl Iterator<Item = &str> {
        self.begin.key.iter().map(|field| field.name.as_str())
    }

    /// Returns the compared fields of an alert, fields of the start first.
    pub(crate) fn said(&self) -> impl Iterator<Item = &str> {
        let fields = self.begin.said.iter().chain(&self.end.said);
        fields.map(|field| field.name.as_str())
    }
}

impl Step {
    fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let expected = || format!("{text:?}: expected EVENT(KEY; SAID)");
        let (events, fields) = text.split_once('(').with_context(expected)?;
        let fields = fields.strip_suffix(')').with_context(expected)?;
        let (key, said) = fields.split_once(';').unwrap_or((fields, ""));
        let fields = |text: &str| -> Result<Vec<Field>> {
            text.split_whitespace().map(Field::parse).collect()
        };
        let step = Self {
            events: events
                .split('|')
                .map(|event| event.trim().to_string())
                .collect(),
            key: fields(key)?,
            said: fields(said)?,
        };
        ensure!(!step.events.iter().any(String::is_empty), expected());
        let of_earlier = step.fields().filter(|field| !field.earlier.is_empty());
        ensure!(
            of_earlier
                .map(|field| &field.earlier)
                .all(|events| events == step.earlier()),
            "{text:?}: earlier events of more than one kind"
        );
        Ok(step)
    }

    /// Whether the step has this event.
    fn is(&self, event: &str) -> bool {
        self.events.iter().any(|one| one == event)
    }

    fn fields(&self) -> impl Iterator<Item = &Field> {
        self.key.iter().chain(&self.said)
    }

    /// Returns the earlier events of which the task must have had one; empty if none is required.
    fn earlier(&self) -> &[String] {
        let mut fields = self.fields();
        let found = fields.find(|field| !field.earlier.is_empty());
        found.map_or(&[], |field| &field.earlier)
    }

    /// Returns the line as this step, if it is one. `recent` has the latest remembered line of each task.
    pub(crate) fn seen<'a>(
        &self,
        line: &'a Line<'a>,
        recent: &mut BTreeMap<u32, &'a Line<'a>>,
    ) -> Option<Seen<'a>> {
        if !self.is(line.event) {
            return None;
        }
        let mut earlier = None;
        if !self.earlier().is_empty() {
            let found = recent.remove(&line.current)?;
            earlier = Some(found);
            if !self.earlier().iter().any(|one| one == found.event) {
                return None;
            }
        }
        Some(Seen { line, earlier })
    }

    /// Returns the key as an alert would show it.
    pub(crate) fn key(&self, seen: &Seen<'_>) -> Result<String> {
        text_of(&self.key, seen)
    }

    /// Returns the compared fields as an alert would show them.
    pub(crate) fn said(&self, seen: &Seen<'_>) -> Result<String> {
        text_of(&self.said, seen)
    }
}

fn text_of(fields: &[Field], line: &Seen<'_>) -> Result<String> {
    let values: Result<Vec<String>> = fields
        .iter()
        .map(|field| {
            let value = field.value(line);
            let value = value.with_context(|| format!("no {} in {line:?}", field.name))?;
            Ok(format!("{}={value}", field.name))
        })
        .collect();
    Ok(values?.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line<'a>(event: &'a str, fields: &'a str) -> Line<'a> {
        Line {
            time: 1,
            current: 7,
            cpu: 1,
            context: "task",
            event,
            fields,
        }
    }

    fn alone<'a>(line: &'a Line<'a>) -> Seen<'a> {
        let earlier = None;
        Seen { line, earlier }
    }

    #[test]
    fn all_rules_of_the_table_are_valid() {
        let names = TABLE.lines().filter_map(|line| line.trim().split_once(' '));
        for (name, _) in names {
            Rule::find(name).unwrap();
        }
    }

    #[test]
    fn system_calls_are_read() {
        let rule = Rule::find("syscall").unwrap();
        let enter = line("sys_enter", "NR 257 (ffffff9c, 7ffe10, 80000, 0, 0, 0)");
        assert!(rule.begin.is("sys_enter") && rule.has("sys_exit") && !rule.has("sys_enter_x"));
        assert_eq!(rule.begin.key(&alone(&enter)).unwrap(), "tid=7");
        let said = "number=257 arg0=0xffffff9c arg1=0x7ffe10 arg2=0x80000";
        assert_eq!(rule.begin.said(&alone(&enter)).unwrap(), said);
        let exit = line("sys_exit", "NR 257 = -2");
        assert_eq!(rule.end.said(&alone(&exit)).unwrap(), "ret=-2");
        let gone = line(
            "sched_process_exit",
            "comm=a b pid=9 prio=120 group_dead=true",
        );
        assert_eq!(
            rule.drop.as_ref().unwrap().key(&alone(&gone)).unwrap(),
            "tid=9"
        );
        let names: Vec<&str> = rule.said().collect();
        assert_eq!(names, ["number", "arg0", "arg1", "arg2", "ret"]);
    }

    #[test]
    fn interrupts_are_read() {
        let rule = Rule::find("irq").unwrap();
        let entry = line("irq_handler_entry", "irq=25 name=virtio0-req.0 two words");
        assert_eq!(rule.begin.key(&alone(&entry)).unwrap(), "on=1 irq=25");
        let said = "action=virtio0-req.0 two words";
        assert_eq!(rule.begin.said(&alone(&entry)).unwrap(), said);
        let exit = line("irq_handler_exit", "irq=25 ret=handled");
        assert_eq!(rule.end.key(&alone(&exit)).unwrap(), "on=1 irq=25");
        let rule = Rule::find("softirq").unwrap();
        let entry = line("softirq_entry", "vec=1 [action=TIMER]");
        assert_eq!(rule.begin.key(&alone(&entry)).unwrap(), "tid=7 on=1 vec=1");
    }

    #[test]
    fn a_rule_can_be_given_as_text() {
        let rule = "nest a|b(context work:struct=; x:0xb= y:#2) -> c(context:@context work:#2)";
        let rule = Rule::find(rule).unwrap();
        let begin = line("b", "work struct=ff (b=2) xb=3 rest");
        assert_eq!(
            rule.begin.key(&alone(&begin)).unwrap(),
            "context=task work=ff"
        );
        assert_eq!(rule.begin.said(&alone(&begin)).unwrap(), "x=0x2 y=b=2");
        assert_eq!(
            rule.end
                .key(&alone(&line("c", "work struct ff: function x")))
                .unwrap(),
            "context=task work=ff"
        );
        assert!(
            rule.begin
                .key(&alone(&line("b", "work struct ff")))
                .is_err()
        );
    }

    #[test]
    fn an_earlier_event_is_used_once() {
        let rule = Rule::find("accept").unwrap();
        let fields = "(inet_csk_accept+0x1/0x2) socket=ffff8880 port=80 remote=4242";
        let accepted = line("accepted", fields);
        let exit = line("sys_exit", "NR 288 = 6");
        assert!(rule.has("accepted") && rule.remembers("accepted") && !rule.remembers("sent"));
        let mut recent = BTreeMap::from([(7, &accepted)]);
        let seen = rule.begin.seen(&exit, &mut recent).unwrap();
        assert_eq!(rule.begin.key(&seen).unwrap(), "socket=ffff8880");
        let said = "tid=7 fd=6 port=80 remote=4242";
        assert_eq!(rule.begin.said(&seen).unwrap(), said);
        // The event is used up, so the next call that returns has none. The event of another task does not count.
        assert!(rule.begin.seen(&exit, &mut recent).is_none());
        recent.insert(8, &accepted);
        assert!(rule.begin.seen(&exit, &mut recent).is_none());
        assert_eq!(recent.len(), 1);
    }

    #[test]
    fn an_invalid_rule_is_refused() {
        let fault = |text: &str| format!("{:#}", Rule::find(text).unwrap_err());
        assert!(fault("sysccall").contains("there are syscall, irq"));
        assert!(fault("some a(tid) -> b(tid)").contains("\"some\""));
        assert!(fault("last a(tid) -> b(cpu)").contains("different fields"));
        assert!(fault("last a -> b(tid)").contains("EVENT(KEY"));
        assert!(fault("last a(what) -> b(tid)").contains("\"what\""));
        assert!(fault("last a(tid; b:#x) -> b(tid)").contains("b:#x"));
        assert!(fault("last a(x:e.#1 y:f.#1) -> b(x:#1 y:#2)").contains("more than one kind"));
    }
}
