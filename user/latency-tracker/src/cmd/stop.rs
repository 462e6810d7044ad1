// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `stop`: removes instances. A failure to remove one does not prevent the removal of the others.

use anyhow::Result;
use lt_common::Outcome;
use lt_common::out;
use lt_proc::{ProcError, ProcRoot};

use crate::cli::StopArgs;

pub(crate) fn run(root: &ProcRoot, args: &StopArgs) -> Result<Outcome> {
    let names = if args.all {
        super::names(root, None)?
    } else {
        args.names.clone()
    };
    let remove = |name: &str| root.instance(name).and_then(|_| root.remove(name));
    let (outcome, hints) = stop(&names, remove);
    for hint in hints {
        out::note(&hint);
    }
    Ok(outcome)
}

/// Calls `remove` for each instance and reports its errors. Returns the hints for them, each once.
fn stop(
    names: &[String],
    remove: impl Fn(&str) -> Result<(), ProcError>,
) -> (Outcome, Vec<String>) {
    let mut outcome = Outcome::Fine;
    let mut hints: Vec<String> = Vec::new();
    for name in names {
        if let Err(error) = remove(name) {
            let error = anyhow::Error::from(error);
            out::note(&format!("{error:#}"));
            if let Some(hint) = super::hint(&error)
                && !hints.contains(&hint)
            {
                hints.push(hint);
            }
            outcome = Outcome::Wrong;
        }
    }
    (outcome, hints)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn refused(name: &str, why: io::ErrorKind) -> ProcError {
        ProcError::Refused {
            line: format!("-{name}"),
            tracker: String::new(),
            source: why.into(),
        }
    }

    #[test]
    fn each_hint_is_printed_once_whatever_error_follows() {
        let names = ["a", "b", "busy"].map(String::from);
        let (outcome, hints) = stop(&names, |name| match name {
            "busy" => Err(refused(name, io::ErrorKind::ResourceBusy)),
            _ => Err(ProcError::NoInstance(name.into())),
        });
        assert_eq!(outcome, Outcome::Wrong);
        assert_eq!(hints, ["`latency-tracker list` shows the instances"]);
    }
}
