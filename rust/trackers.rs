// SPDX-License-Identifier: GPL-2.0

//! The trackers: what each is called, takes and adds to an alert.

pub(crate) mod accept;
pub(crate) mod block;
mod func;
pub(crate) mod io;
pub(crate) mod irq;
pub(crate) mod module;
pub(crate) mod net;
pub(crate) mod offcpu;
mod pair;
pub(crate) mod runqueue;
pub(crate) mod softirq;
pub(crate) mod syscall;
mod tasks;
pub(crate) mod wakeup;
pub(crate) mod workqueue;

use crate::{
    alerts::Alerts,
    control::Param,
    instance::{Instance, Values},
    record::{Alert, Name},
    sys::symbol::Symbol,
    text::{Escaped, Plain}, //
};
use core::ffi::CStr;
use kernel::{
    fmt::{self, Write},
    prelude::*,
    sync::Arc, //
};

/// Makes an instance from its name, its values and the alerts of all.
type Create = fn(Name, &Values, Arc<Alerts>) -> Result<Arc<dyn Instance>>;

/// A kind of tracker, of which there can be any number of instances.
pub(crate) struct Kind {
    /// As it is written in the control language.
    pub(crate) name: &'static str,
    /// The same for C.
    pub(crate) c_name: &'static CStr,
    /// What it measures, in a line.
    pub(crate) help: &'static str,
    /// Its parameters; the first are those of [`crate::instance`], common to all.
    pub(crate) params: &'static [Param],
    /// Counters of its own, after the common ones in `stats`.
    pub(crate) counters: &'static [&'static str],
    /// The words of [`Alert::detail`] that it uses.
    pub(crate) detail_words: usize,
    /// Prints its fields of an alert line.
    pub(crate) detail: fn(&Alert, &mut fmt::Formatter<'_>) -> fmt::Result,
    /// What this kernel lacks to run it, if anything: mostly the name of a tracepoint.
    pub(crate) missing: fn() -> Option<&'static CStr>,
    /// Makes an instance, not enabled yet. Sleeps. `None` if a line of the control language can
    /// not make one.
    pub(crate) create: Option<Create>,
}

impl Kind {
    /// What is wrong with an instance of these values, which are right one by one, if anything:
    /// the parameter, and why.
    pub(crate) fn check(&self, values: &Values) -> Option<(usize, &'static str)> {
        core::ptr::eq(self, &pair::KIND)
            .then(|| pair::check(values))
            .flatten()
    }
}

/// All trackers. The position is the number of the tracker in a record.
pub(crate) static ALL: [&Kind; 14] = [
    &block::KIND,
    &module::KIND,
    &wakeup::KIND,
    &runqueue::KIND,
    &offcpu::KIND,
    &io::KIND,
    &func::KIND,
    &pair::KIND,
    &irq::KIND,
    &softirq::KIND,
    &syscall::KIND,
    &workqueue::KIND,
    &net::KIND,
    &accept::KIND,
];

/// Finds a tracker by name.
pub(crate) fn find(name: &[u8]) -> Option<(usize, &'static Kind)> {
    ALL.iter()
        .enumerate()
        .find(|(_, kind)| kind.name.as_bytes() == name)
        .map(|(number, kind)| (number, *kind))
}

/// The line of an alert, as a person or a program reads it.
pub(crate) struct Line<'a> {
    pub(crate) alert: &'a Alert,
    /// Addresses to return to, the innermost first.
    pub(crate) stack: &'a [u64],
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
        StackField(self.stack).fmt(f)
    }
}

/// A stack as a field of a line, with a space before it; nothing if it is empty. Addresses to
/// return to, the innermost first.
pub(crate) struct StackField<'a>(pub(crate) &'a [u64]);

impl fmt::Display for StackField<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        f.write_str(" stack=\"")?;
        for (i, &address) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            Escaped(f).write_fmt(fmt!("{comma}{}", Symbol(address)))?;
        }
        f.write_str("\"")
    }
}
