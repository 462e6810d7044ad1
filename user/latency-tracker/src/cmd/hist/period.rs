// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `hist --since-reset` and `hist --reset`: the delays of one period.

use anyhow::{Result, ensure};
use lt_proc::{Period, ProcRoot};

use crate::cli::HistArgs;

/// Returns the period that the arguments select, after a reset if they request one. `None`: since
/// the start of the instance.
pub(super) fn wanted(root: &ProcRoot, args: &HistArgs, name: &str) -> Result<Option<Period>> {
    if !args.reset && !args.since_reset {
        return Ok(None);
    }
    ensure!(
        root.has_period(name),
        "{name} has no file `period`: the loaded module is older than this command; load the new \
         one"
    );
    let current = root.period(name)?;
    if !args.reset {
        return Ok(Some(current));
    }
    // Exactly the period that this ends is shown. Another program may reset before or after it.
    root.reset_period(name)?;
    let ended = root.previous_period(name)?;
    ensure!(
        ended.begin == current.begin,
        "another program reset {name} at the same moment: the period that started at {} ns cannot \
         be shown; `latency-tracker hist {name}` still counts its operations",
        current.begin
    );
    Ok(Some(ended))
}
