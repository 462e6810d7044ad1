// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Most of the commands, one module each.

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

use std::fs::{File, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result};
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

/// Creates a file if it does not exist, and locks it until the result is dropped. Only its owner may open the file,
/// since a process that can open it can lock it, too, and block the caller.
fn lock(path: &Path) -> Result<File> {
    let about = || path.display().to_string();
    let mut options = File::options();
    options.write(true).truncate(true).create(true).mode(0o600);
    let file = options.open(path).with_context(about)?;
    // An existing file may have another mode.
    let private = Permissions::from_mode(0o600);
    file.set_permissions(private).with_context(about)?;
    file.lock().with_context(about)?;
    Ok(file)
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
            "is the module newer? compare `--version` with /proc/latency_tracker/version"
        }
    };
    Some(hint.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_can_hold_a_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        File::create(&path).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        // An existing file, then a new one.
        for _ in 0..2 {
            let locked = lock(&path).unwrap();
            let mode = locked.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o600);
            assert!(File::open(&path).unwrap().try_lock_shared().is_err());
            std::fs::remove_file(&path).unwrap();
        }
    }
}
