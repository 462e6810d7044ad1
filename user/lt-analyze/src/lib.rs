// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Answers from what threads and processors did (lt-model). Each analysis is a function of a model; how its result is
//! shown, and where the events come from, is for others.

mod causes;
mod path;
mod unusual;
mod who;

pub use causes::{Sum, causes};
pub use path::{Cause, Leaf, Piece, Place, Wait, path, waits, wanted};
pub use unusual::{Worker, Working, unusual};
pub use who::{instead, thread_in, used};
