// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The phases of a run: one, or a baseline and what is compared with it.

use super::spin::Found;

/// The only one.
pub(super) const PLAIN: &str = "plain";
/// Without what the options arm.
pub(super) const BASELINE: &str = "baseline";
/// With it.
pub(super) const ARMED: &str = "armed";

/// What a phase has found on each CPU.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) found: Vec<(u32, Found)>,
}
