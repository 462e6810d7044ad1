// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Answers from what threads and processors did (lt-model). Each analysis is a function of a model; how its result is
//! shown, and where the events come from, is for others.

mod beside;
mod cause;
mod causes;
mod path;
mod runnable;
mod unusual;
mod who;

pub use beside::{Beside, Nothing, Quota, Slept};
pub use cause::{Cause, Leaf, Limit, Place};
pub use causes::{Sum, causes};
pub use path::{Piece, Wait, handled, path, path_beside, waits, wanted};
pub use runnable::looks_like_a_quota;
pub use unusual::{Worker, Working, unusual};
pub use who::{instead, thread_in, used};
