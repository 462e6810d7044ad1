// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `stop`: removes instances. A failure to remove one does not prevent the removal of the others.

use anyhow::Result;
use lt_common::Outcome;
use lt_common::out;
use lt_proc::ProcRoot;

use crate::cli::StopArgs;

pub(crate) fn run(root: &ProcRoot, args: &StopArgs) -> Result<Outcome> {
    let names = if args.all {
        super::names(root, None)?
    } else {
        args.names.clone()
    };
    let mut outcome = Outcome::Fine;
    let mut hint = None;
    for name in names {
        if let Err(error) = root.instance(&name).and_then(|_| root.remove(&name)) {
            let error = anyhow::Error::from(error);
            out::note(&format!("{error:#}"));
            hint = super::hint(&error);
            outcome = Outcome::Wrong;
        }
    }
    if let Some(hint) = hint {
        out::note(&hint);
    }
    Ok(outcome)
}
