// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What threads and their wakers are called in a model: threads name their wakers, and wakers threads.

/// The number of a thread in [`crate::Model::threads`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub u32);

/// The number of a waker in [`crate::Model::wakers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WakerId(pub u32);
