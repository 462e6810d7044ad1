// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `start`: creates an instance, or changes one. First loads the module, unless it is loaded.

use anyhow::Result;
use lt_common::Outcome;
use lt_common::instance::{create, load_module};
use lt_common::out;
use lt_proc::ProcRoot;

use crate::cli::StartArgs;

pub(crate) fn run(root: &ProcRoot, args: &StartArgs) -> Result<Outcome> {
    load_module(root)?;
    create(root, &args.name, &args.tracker, &args.settings, &out::note)?;
    out::line(&root.instance(&args.name)?.to_string())?;
    Ok(Outcome::Fine)
}
