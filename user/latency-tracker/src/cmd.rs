// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The smaller commands, one module each.

pub(crate) mod apply;
pub(crate) mod captures;
pub(crate) mod check;
pub(crate) mod generate;
pub(crate) mod hist;
pub(crate) mod list;
pub(crate) mod measure;
pub(crate) mod pending;
pub(crate) mod recipes;
pub(crate) mod start;
pub(crate) mod steps;
pub(crate) mod stop;
pub(crate) mod top;
pub(crate) mod tree;
mod unseen;
pub(crate) mod watch;

use std::time::Duration;

use lt_common::instance::Refusal;
use lt_common::module;
use lt_proc::{Fields, Nanos, ProcError, ProcRoot};

/// The instances that a command applies to: the given one, or all.
pub(crate) fn names(root: &ProcRoot, name: Option<&str>) -> Result<Vec<String>, ProcError> {
    match name {
        Some(name) => Ok(vec![root.instance(name)?.name]),
        None => Ok(root.instances()?.into_iter().map(|i| i.name).collect()),
    }
}

/// The note about an instance that was removed, and created again under the same name.
pub(crate) fn restarted(name: &str) -> String {
    format!("{name} was removed and started again: it counts from 0")
}

/// Formats a time, with a leading `>` if the operation began before its instance, and thus took longer.
pub(crate) fn at_least(ns: u64, fields: &Fields) -> String {
    let longer = if fields.is_at_least() { ">" } else { "" };
    format!("{longer}{}", Nanos(ns))
}

/// The remedy for an error.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    if let Some(refusal) = error.chain().find_map(|e| e.downcast_ref::<Refusal>()) {
        return Some(refusal.hint.clone());
    }
    let known = error.chain().find_map(|e| e.downcast_ref::<ProcError>())?;
    let hint = match known {
        ProcError::NotLoaded(_) => module::how_to_load(),
        ProcError::Denied(path) => return Some(module::how_to_be_let_in(path)),
        ProcError::NoInstance(_) => "`latency-tracker list` shows the instances",
        ProcError::Refused { tracker, .. } if !tracker.is_empty() => {
            return Some(format!(
                "`latency-tracker list --trackers {tracker}` shows what is possible"
            ));
        }
        ProcError::Refused { .. } | ProcError::Io { .. } => return None,
        ProcError::Parse { .. } => {
            "is the module newer than this command? compare `--version` with the file version"
        }
    };
    Some(hint.to_string())
}

/// The time of day, for `-T`, in UTC.
pub(crate) fn clock() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    time_of_day(now.map_or(0, |d| d.as_secs()))
}

/// The time of day of an instant of the kernel's `CLOCK_MONOTONIC`, ns; in UTC.
pub(crate) fn clock_of(monotonic: u64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap_or_default();
    let since_boot = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)
        .map_or(Duration::ZERO, Duration::from);
    // A suspend or a step of the clock since then shifts the result; the alert's `time` stays exact.
    let ago = since_boot.saturating_sub(Duration::from_nanos(monotonic));
    time_of_day(now.saturating_sub(ago).as_secs())
}

fn time_of_day(seconds: u64) -> String {
    let seconds = seconds % 86_400;
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_an_alert_is_that_of_a_day() {
        assert_eq!(time_of_day(86_400 + 3_723), "01:02:03");
        let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
        let (before, of, after) = (
            clock(),
            clock_of(Duration::from(now).as_nanos() as u64),
            clock(),
        );
        assert!(of == before || of == after, "{before} {of} {after}");
    }
}
