// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Loads the module for the duration of one run.

use anyhow::Result;
use lt_proc::ProcRoot;

use super::load_module;
use crate::exec::Exec;
use crate::out::note;

/// The module; unloaded when dropped, if it was loaded here and has no instance.
#[derive(Debug)]
pub struct Loaded<'a> {
    root: &'a ProcRoot,
    ours: bool,
}

impl<'a> Loaded<'a> {
    /// Loads the module unless it is loaded.
    pub fn load(root: &'a ProcRoot) -> Result<Self> {
        let ours = !root.is_loaded();
        load_module(root)?;
        Ok(Self { root, ours })
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        // Unloading would remove the instances of other users.
        let is_unused = self.root.instances().is_ok_and(|all| all.is_empty());
        if self.ours
            && is_unused
            && let Err(error) = Exec::modprobe(["-r", "latency_tracker"]).output()
        {
            note(&format!("the module stays loaded: {error:#}"));
        }
    }
}
