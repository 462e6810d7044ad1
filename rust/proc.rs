// SPDX-License-Identifier: GPL-2.0

//! The user interface under /proc/latency_tracker: the registry holds the instances, and the
//! files show and change them.

pub(crate) mod files;
pub(crate) mod registry;
