// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Identifiers with which the threads and wakers of a model refer to each other.

/// The number of a thread in [`crate::Model::threads`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub u32);

/// The number of a waker in [`crate::Model::wakers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WakerId(pub u32);
