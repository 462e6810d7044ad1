// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `stop`: removes instances. A failure to remove one does not prevent the removal of the others.

use std::io;

use anyhow::Result;
use lt_common::Outcome;
use lt_common::instance;
use lt_common::out;
use lt_proc::{ProcError, ProcRoot};

use crate::cli::StopArgs;

pub(crate) fn run(root: &ProcRoot, args: &StopArgs) -> Result<Outcome> {
    let names = if args.all {
        super::names(root, None)?
    } else {
        args.names.clone()
    };
    let remove = |name: &str| -> Result<()> {
        root.instance(name)?;
        instance::remove(root, name)
    };
    let (outcome, hints) = stop(&names, args.all, remove);
    for hint in hints {
        out::note(&hint);
    }
    Ok(outcome)
}

/// Calls `remove` for each instance and reports the errors. Returns the hints for the errors, each
/// hint once. If the command is for `all` instances, an instance that was removed meanwhile is no
/// error.
fn stop(
    names: &[String],
    all: bool,
    remove: impl Fn(&str) -> Result<()>,
) -> (Outcome, Vec<String>) {
    let mut outcome = Outcome::Fine;
    let mut hints: Vec<String> = Vec::new();
    for name in names {
        let Err(error) = remove(name) else { continue };
        if all && is_gone(&error) {
            continue;
        }
        out::note(&format!("{error:#}"));
        if let Some(hint) = super::hint(&error)
            && !hints.contains(&hint)
        {
            hints.push(hint);
        }
        outcome = Outcome::Wrong;
    }
    (outcome, hints)
}

/// Whether an error only means that there is no such instance.
fn is_gone(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<ProcError>() {
        Some(ProcError::NoInstance(_)) => true,
        Some(ProcError::Refused { source, .. }) => source.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, why: io::ErrorKind) -> anyhow::Error {
        let refused = ProcError::Refused {
            line: format!("-{name}"),
            tracker: String::new(),
            source: why.into(),
        };
        refused.into()
    }

    #[test]
    fn each_hint_is_printed_once_whatever_error_follows() {
        let names = ["a", "b", "busy"].map(String::from);
        let (outcome, hints) = stop(&names, false, |name| match name {
            "busy" => Err(refused(name, io::ErrorKind::ResourceBusy)),
            _ => Err(ProcError::NoInstance(name.into()).into()),
        });
        assert_eq!(outcome, Outcome::Wrong);
        assert_eq!(hints, ["`latency-tracker list` shows the instances"]);
    }

    #[test]
    fn with_all_an_instance_that_was_removed_meanwhile_is_no_error() {
        let names = ["before", "between", "here"].map(String::from);
        let remove = |name: &str| match name {
            "before" => Err(ProcError::NoInstance(name.into()).into()),
            "between" => Err(refused(name, io::ErrorKind::NotFound)),
            _ => Ok(()),
        };
        assert_eq!(stop(&names, true, remove), (Outcome::Fine, Vec::new()));
        assert_eq!(stop(&names, false, remove).0, Outcome::Wrong);
        let busy = |name: &str| Err(refused(name, io::ErrorKind::ResourceBusy));
        assert_eq!(stop(&names, true, busy).0, Outcome::Wrong);
    }
}
