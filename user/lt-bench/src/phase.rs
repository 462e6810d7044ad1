// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The phases of a run: a single one, or a baseline and the phase compared with it.

use super::spin::Found;

/// The only phase of a run.
pub(super) const PLAIN: &str = "plain";
/// The phase without the requested trackers and flight recorder.
pub(super) const BASELINE: &str = "baseline";
/// The phase with the requested trackers and flight recorder.
pub(super) const ARMED: &str = "armed";

/// The results of a phase on each CPU.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) found: Vec<(u32, Found)>,
}
