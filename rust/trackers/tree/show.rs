// SPDX-License-Identifier: GPL-2.0

//! The fields of an alert of `tree`, and the text of a chain.
//!
//! ```text
//!   path="irq:27@0+0 raise:NET_RX@0+12222 softirq:NET_RX@0+34652 waking:1935@0+41657 ..."
//!         kind:subject@CPU+nanoseconds since the step before, and for a step that ends a wait,
//!         with interference=1: {irq:NS,softirq:NS,tasks:NS,idle:NS;irq/27(NAME)=NS}
//! ```
//!
//! The functions that print may sleep.

use super::{
    chain::{
        self, cookie, each, of_split, of_task,
        rivals::{Rival, Rivals, Sort},
        split, Counts, Kind, Origin, Shown, Spent, State, Step, COOKIE_MAX,
    },
    owner,
    totals::KINDS,
    Data, Details, CHAIN_AT, VECTORS,
};
use crate::{
    alert::record::{actor::Place, Alert, DETAIL},
    record::{record, say, How, Name32, Policy, Record, Register, Times16, Times8, U4},
    sys::symbol::FunctionName,
    text::{unpack, Escaped, Quoted},
};
use kernel::{
    fmt::{self, Write},
    prelude::*, //
};

/// How the chain ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// The chain has not ended.
    None = 0,
    /// The target was switched in.
    Switch = 1,
    /// The target returned to user space.
    User = 2,
    /// The target waits again.
    Blocked = 3,
    /// The work that the target began is done.
    Work = 4,
}

const ENDS: [&str; 5] = ["none", "switch", "user", "blocked", "work"];
/// Names of the values of [`State`], except the last two: see [`state`].
const STATES: [&str; 5] = ["woken", "running", "waiting", "working", "queued"];
/// Names of the values of [`Origin`].
const ORIGINS: [&str; 6] = ["none", "irq", "vector", "timer", "work", "wheel"];

/// The position of the first step's subject in the details, after the first part of [`split`].
const FIRST: usize = chain::SPLIT;

record! {
    /// The fields of an alert except the chain. The second word is a [`Counts`].
    pub(super) struct Detail {
        end: U4 at 1:60 in ENDS,
        state: U4 at 1:48 in STATES => show_state,
        origin: U4 at 1:52 in ORIGINS,
        irq = |it, _| if it.origin.0 == Origin::Irq as u8 { it.subject as i64 } else { -1 },
        action: Name32 at 3,
        target_cpu: u32 at 2,
        prio: i16 at 2:32,
        policy: Policy at 2:48,
        preempted: Times16 at 1:24,
        merged: Times8 at 1:40,
        more: Times16 at 1:8,
        more_ns: u64 at 0 if traced,
        subject: Register at 7 if traced,
    }
    stored: prio policy end state origin subject action target_cpu preempted merged more more_ns;
    printed: end state origin subject action target_cpu prio policy preempted merged more more_ns;
    tail: steps;
}

const _: () = assert!(<Detail as Record>::WORDS == FIRST + 1);

record! {
    /// The only field of a chain, besides the fields of its task, by which delays can be counted.
    /// It is in the word of the chain's [`Counts`]. Other fields are complete only at the end, or
    /// depend on the origin.
    pub(super) struct Label {
        origin: U4 at 0:52 in ORIGINS,
    }
}

/// Returns the label of an event with this data.
pub(super) fn label(_: &[u64; 1], data: &Data) -> Label {
    Label::unpack(&data[CHAIN_AT + chain::COUNTS..])
}

/// Returns the details of an alert about an event with this data, which has no notes.
pub(super) fn details(data: &Data, end: End) -> Details {
    let mut words = [0; DETAIL];
    if let Some(chain) = chain_of(data) {
        let (head, steps) = split(chain, end as u64);
        words[..chain::SPLIT].copy_from_slice(&head);
        words[FIRST] = steps.get(1).copied().unwrap_or(0);
    }
    Details {
        owner: owner(data),
        words,
    }
}

/// Returns the chain in the data of an event.
fn chain_of(data: &[u64]) -> Option<&chain::Chain> {
    data.get(CHAIN_AT..)?.first_chunk()
}

/// Returns the words of the steps in the data of an event, which has no notes.
pub(super) fn steps_of(data: &[u64]) -> &[u64] {
    chain_of(data).map_or(&[], |chain| split(chain, 0).1)
}

fn counts(words: &[u64]) -> Counts {
    of_split(words).1
}

/// Returns the number of words of the chain's steps in an alert.
pub(super) fn words_of(alert: &Alert) -> usize {
    2 * counts(&alert.detail).places()
}

/// Prints the chain in the tail of an alert.
pub(super) fn chain(alert: &Alert, steps: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (words, is_over) = (&alert.detail, counts(&alert.detail).end() != 0);
    // The step that is still missing takes the remaining delay.
    let rest = (!is_over).then_some((alert.owner.tid, alert.delay));
    f.write_fmt(fmt!("{}", Chain { words, steps, rest }))
}

/// Returns the word for a [`State`], by its number.
fn state(number: usize) -> &'static str {
    const DOUBTED: usize = State::Doubted as usize;
    const LEAVING: usize = State::Leaving as usize;
    match number {
        DOUBTED => "awake",
        LEAVING => STATES[State::Running as usize],
        _ => STATES.get(number).copied().unwrap_or("?"),
    }
}

fn show_state(it: &Detail, _: &How, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    say("state", state(it.state.into()), f)
}

/// The names of softirqs, as in /proc/softirqs.
const SOFTIRQS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// Prints the field with the chain, and the field with the cookie of its work, if any.
pub(super) struct Chain<'a> {
    /// The words of an alert, without its steps.
    pub(super) words: &'a [u64; DETAIL],
    pub(super) steps: &'a [u64],
    /// If the chain has not ended: the thread that has its tip, and the delay up to now.
    pub(super) rest: Option<(u32, u64)>,
}

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (more, counts, place, _) = of_split(self.words);
        f.write_str(" path=\"")?;
        let (mut result, mut space, mut total) = (Ok(()), "", 0u64);
        let (mut last, mut took) = (0, 0);
        each(counts, more, self.steps, |shown| {
            match shown {
                Shown::Step(step, time, _) => (last, took) = (step.subject, time),
                Shown::More(_, time) => took = time,
                Shown::Parts(parts, wait) => {
                    result = result.and_then(|()| write_parts(f, parts, wait));
                    space = "} ";
                    return;
                }
                Shown::Rivals(rivals) => {
                    result = result.and_then(|()| write_rivals(f, &rivals));
                    return;
                }
            }
            total = total.wrapping_add(took);
            if result.is_ok() {
                result = f.write_str(space).and_then(|()| write(f, shown));
                space = " ";
            }
        });
        result?;
        f.write_str(space.trim_end())?;
        if let Some((tid, delay)) = self.rest {
            let time = delay.saturating_sub(total);
            let cpu = Place::from_word(place).cpu;
            f.write_fmt(fmt!(" {}:", state(counts.state() as usize)))?;
            if counts.state() == State::Queued {
                // No task is involved yet.
                Escaped(&mut *f).write_fmt(fmt!("{}", FunctionName(last)))?;
            } else {
                f.write_fmt(fmt!("{tid}"))?;
            }
            f.write_fmt(fmt!("@{cpu}+{time}"))?;
        }
        f.write_char('"')?;
        let mut room = [0; COOKIE_MAX];
        match cookie(self.steps, &mut room) {
            [] => Ok(()),
            cookie => f.write_fmt(fmt!(" cookie={}", Quoted::bytes(cookie))),
        }
    }
}

/// Returns the word for a step of this kind.
fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::User => "user",
        Kind::Done => "done",
        Kind::Block => "blocked",
        _ => {
            let found = KINDS.iter().find(|(one, _)| *one == kind);
            found.map_or("?", |&(_, word)| word)
        }
    }
}

fn write(f: &mut fmt::Formatter<'_>, shown: Shown) -> fmt::Result {
    let (Step { kind, cpu, subject }, time, name) = match shown {
        Shown::Step(step, time, name) => (step, time, name),
        Shown::More(steps, time) => return f.write_fmt(fmt!("more({steps})+{time}")),
        Shown::Parts(..) | Shown::Rivals(_) => return Ok(()),
    };
    let (tid, prio) = of_task(subject);
    f.write_fmt(fmt!("{}:", word(kind)))?;
    match kind {
        Kind::Irq => f.write_fmt(fmt!("{subject}"))?,
        Kind::Vector => f.write_str(VECTORS.get(subject as usize).unwrap_or(&"?"))?,
        Kind::Due
        | Kind::Wheel
        | Kind::Expire
        | Kind::Queue
        | Kind::Work
        | Kind::Call
        | Kind::Called => Escaped(f).write_fmt(fmt!("{}", FunctionName(subject)))?,
        Kind::Raise | Kind::Softirq => {
            f.write_str(SOFTIRQS.get(subject as usize).unwrap_or(&"?"))?;
        }
        Kind::Waking => {
            f.write_fmt(fmt!("{tid}"))?;
            // Only a waker that is not on the chain has a name here.
            if name != [0; 2] {
                f.write_fmt(fmt!(",by:{}", chain::waker_of(subject)))?;
                write_named(f, &name, b' ')?;
            }
        }
        Kind::Switch => {
            f.write_fmt(fmt!("{tid}"))?;
            write_named(f, &name, b' ')?;
            f.write_fmt(fmt!("/{prio}"))?;
        }
        Kind::Preempted => {
            let chain::Preempted {
                tid, prio, times, ..
            } = chain::of_preempted(subject);
            f.write_fmt(fmt!("{tid}"))?;
            write_named(f, &name, b' ')?;
            f.write_fmt(fmt!("/{prio}"))?;
            if times > 1 {
                f.write_fmt(fmt!("*{times}"))?;
            }
        }
        _ => f.write_fmt(fmt!("{tid}"))?,
    }
    f.write_fmt(fmt!("@{cpu}+{time}"))
}

/// Prints the activity of the CPU during a wait of this length; the brace remains open.
fn write_parts(f: &mut fmt::Formatter<'_>, parts: Spent, wait: u64) -> fmt::Result {
    let Spent { irq, softirq, idle } = parts;
    let tasks = parts.tasks(wait);
    f.write_fmt(fmt!(
        "{{irq:{irq},softirq:{softirq},tasks:{tasks},idle:{idle}"
    ))
}

/// Prints the tasks, interrupts and softirqs that had the CPU.
fn write_rivals(f: &mut fmt::Formatter<'_>, rivals: &Rivals) -> fmt::Result {
    let is = if rivals.at_least { ">=" } else { "=" };
    for Rival {
        sort,
        id,
        name,
        time,
    } in rivals.named.iter().flatten()
    {
        let of = |names: &[&'static str]| names.get(*id as usize).copied().unwrap_or("?");
        match sort {
            Sort::Irq => f.write_fmt(fmt!(";irq/{id}"))?,
            Sort::Vector => f.write_fmt(fmt!(";vector/{}", of(&VECTORS)))?,
            Sort::Softirq => f.write_fmt(fmt!(";softirq/{}", of(&SOFTIRQS)))?,
            Sort::Task | Sort::Thread => f.write_fmt(fmt!(";task/{id}"))?,
            Sort::Nmi => f.write_str(";nmi")?,
        }
        // The time of a step follows its last plus sign, so the name must not contain one.
        write_named(f, name, b'+')?;
        f.write_fmt(fmt!("{is}{time}"))?;
    }
    Ok(())
}

/// Prints a name in parentheses, if there is one, with blanks, parentheses, quotes, backslashes,
/// unprintable bytes and `but` written as `\xHH`.
fn write_named(f: &mut fmt::Formatter<'_>, name: &[u64; 2], but: u8) -> fmt::Result {
    if *name == [0; 2] {
        return Ok(());
    }
    f.write_char('(')?;
    unpack(name).try_for_each(|byte| match byte {
        _ if byte == but => Escaped(f).write_fmt(fmt!("\\x{byte:02x}")),
        b' ' | b'(' | b')' | b'"' | b'\\' | 0x7f.. | ..=0x1f => {
            Escaped(f).write_fmt(fmt!("\\x{byte:02x}"))
        }
        _ => f.write_char(byte as char),
    })?;
    f.write_char(')')
}
