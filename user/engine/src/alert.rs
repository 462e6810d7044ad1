// SPDX-License-Identifier: GPL-2.0

//! The files of rust/alert that do not need a kernel.

#[path = "../../../rust/alert/record.rs"]
pub(crate) mod record;
#[path = "../../../rust/alert/ring.rs"]
pub(crate) mod ring;
