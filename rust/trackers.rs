// SPDX-License-Identifier: GPL-2.0

//! The list of the trackers, and the line of an alert: the common fields, then the tracker's own.

mod declare;
mod stock;
mod tasks;

use crate::{
    alert::record::{user::UserField, Alert, BEFORE_START},
    instance::kind::Kind,
    sys::symbol::StackField,
    text::Plain, //
};
use kernel::{
    fmt::{self, Write},
    prelude::*, //
};

/// A tracker that is not part of this module.
pub(crate) struct Absent {
    pub(crate) name: &'static str,
    /// The kernel options that it needs, but that this kernel was built without. If there are none,
    /// `TRACKERS=` of the build left it out.
    pub(crate) lacks: &'static [&'static str],
}

/// Declares the trackers, each a file in trackers/, with the kernel options that each needs. With
/// `TRACKERS=`, the build sets `only` and the name of each selected tracker (Kbuild).
macro_rules! list {
    ($($tracker:ident $(if $($option:ident)+)?),* $(,)?) => {
        $(
            #[cfg(all(any(not(only), $tracker), $($($option),+)?))]
            pub(crate) mod $tracker;
        )*

        /// All trackers. A tracker's position is its number in a record.
        pub(crate) static ALL: &[&Kind] = &[$(
            #[cfg(all(any(not(only), $tracker), $($($option),+)?))]
            &$tracker::KIND,
        )*];

        /// The trackers that the kernel's options or `TRACKERS=` leave out.
        pub(crate) static ABSENT: &[Absent] = &[$(
            #[cfg(not(all(any(not(only), $tracker), $($($option),+)?)))]
            Absent {
                name: stringify!($tracker),
                lacks: &[$($(#[cfg(not($option))] stringify!($option),)+)?],
            },
        )*];
    };
}

list! {
    block if CONFIG_BLOCK,
    module,
    wakeup,
    runqueue,
    offcpu,
    io if CONFIG_BLOCK,
    func if CONFIG_FPROBE,
    pair,
    irq,
    softirq,
    syscall,
    workqueue,
    net if CONFIG_NET CONFIG_FPROBE,
    accept if CONFIG_INET CONFIG_FPROBE,
    reclaim,
    lock,
    tree,
}

/// Finds a tracker by name.
pub(crate) fn find(name: &[u8]) -> Option<(usize, &'static Kind)> {
    ALL.iter()
        .enumerate()
        .find(|(_, kind)| kind.name.as_bytes() == name)
        .map(|(number, kind)| (number, *kind))
}

/// Whether a tracker of this name is left out of this module.
pub(crate) fn is_absent(name: &[u8]) -> bool {
    ABSENT.iter().any(|absent| absent.name.as_bytes() == name)
}

/// Prints the line of an alert, without a newline. `tail` has the tracker's own words, the stack as
/// return addresses, innermost first, and the stack in user space.
pub(crate) fn line(alert: &Alert, tail: &[u64], out: &mut dyn Write) -> fmt::Result {
    let line = Line { alert, tail };
    out.write_fmt(fmt!("{line}"))
}

struct Line<'a> {
    alert: &'a Alert,
    tail: &'a [u64],
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alert = self.alert;
        let Some(kind) = ALL.get(alert.tracker) else {
            return Err(fmt::Error);
        };
        f.write_fmt(fmt!(
            "seq={} time={} instance={} tracker={} reason={} delay={} threshold={} cpu={} {}",
            alert.seq,
            alert.time,
            Plain(&alert.instance),
            kind.name,
            alert.reason.name().to_str().unwrap_or("?"),
            alert.delay,
            alert.threshold,
            alert.cpu,
            alert.owner
        ))?;
        (kind.detail)(alert, f)?;
        let mut stack = self.tail;
        if let Some(tail) = &kind.tail {
            let len = (tail.len)(alert).min(self.tail.len());
            let (own, rest) = self.tail.split_at(len);
            (tail.show)(alert, own, f)?;
            stack = rest;
        }
        let user = stack.len().saturating_sub(alert.user.len());
        let (stack, entries) = stack.split_at(user);
        StackField(stack).fmt(f)?;
        UserField {
            entries,
            mark: alert.user,
            is_trusted: alert.is_trusted,
        }
        .fmt(f)?;
        f.write_str(if alert.before_start { BEFORE_START } else { "" })
    }
}
