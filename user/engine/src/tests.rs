// SPDX-License-Identifier: GPL-2.0

//! Unit tests, one file for each of the engine's.

#![allow(clippy::unwrap_used)]

mod freelist;
