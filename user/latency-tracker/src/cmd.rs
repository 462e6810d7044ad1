// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The short commands, one file each.

pub(crate) mod check;
pub(crate) mod generate;
pub(crate) mod hist;
pub(crate) mod list;
pub(crate) mod pending;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod watch;

use lt_proc::{ProcError, ProcRoot};

/// The names a command is about: the one that was given, or all there are.
pub(crate) fn names(root: &ProcRoot, name: Option<&str>) -> Result<Vec<String>, ProcError> {
    match name {
        Some(name) => Ok(vec![root.instance(name)?.name]),
        None => Ok(root.instances()?.into_iter().map(|i| i.name).collect()),
    }
}

/// What to do about an error.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    let known = error.chain().find_map(|e| e.downcast_ref::<ProcError>())?;
    let hint = match known {
        ProcError::NotLoaded(_) => {
            "load it with `modprobe latency_tracker`; `latency-tracker check` tells more"
        }
        ProcError::NoInstance(_) => "`latency-tracker list` shows the instances",
        ProcError::Refused { .. } => "`latency-tracker list --trackers` shows what is possible",
        ProcError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            "only root may do that; try sudo"
        }
        ProcError::Io { .. } => return None,
        ProcError::Parse { .. } => {
            "is the module newer than this command? compare `--version` with the file version"
        }
    };
    Some(hint.to_string())
}

/// The time of day, for `-T`.
pub(crate) fn clock() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = now.map_or(0, |d| d.as_secs()) % 86_400;
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}
