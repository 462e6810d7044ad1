// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `start`: creates an instance, or changes one; loads the module when it is missing.

use anyhow::{Context, Result, bail};
use lt_proc::{ProcError, ProcRoot, Setting, valid_name};

use crate::Outcome;
use crate::cli::StartArgs;
use crate::exec::Exec;
use crate::kmsg::Kmsg;
use crate::out;

pub(crate) fn run(root: &ProcRoot, args: &StartArgs) -> Result<Outcome> {
    load_module(root)?;
    create(root, &args.name, &args.tracker, &args.settings)?;
    out::line(&root.instance(&args.name)?.to_string())?;
    Ok(Outcome::Fine)
}

/// Loads the module unless it is there.
pub(crate) fn load_module(root: &ProcRoot) -> Result<()> {
    if root.is_loaded() {
        return Ok(());
    }
    let loaded = Exec::new("modprobe", ["latency_tracker"]).output();
    loaded.context("the latency_tracker module is not loaded and could not be; `latency-tracker check` tells more")?;
    if !root.is_loaded() {
        bail!(
            "the module is loaded, but {} is not there",
            root.path().display()
        );
    }
    out::note("loaded the latency_tracker module");
    Ok(())
}

/// Writes the control line; a refusal comes with what the kernel log says about it.
pub(crate) fn create(
    root: &ProcRoot,
    name: &str,
    tracker: &str,
    settings: &[Setting],
) -> Result<()> {
    if !valid_name(name) {
        bail!(
            "{name:?}: expected a name of up to 31 letters, digits, _ or -, starting with a letter or _, \
             that is not a file of {} itself",
            root.path().display()
        );
    }
    let mut log = Kmsg::from_now();
    let result = root.create(name, tracker, settings);
    if let Err(ProcError::Refused { .. }) = &result {
        for line in log.said() {
            out::note(&format!("kernel: {line}"));
        }
    }
    Ok(result?)
}
