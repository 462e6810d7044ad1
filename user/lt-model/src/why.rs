// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Explanations from the activity of threads and processors. Each analysis is a function of a model. Callers supply
//! the events, and show the results.

mod beside;
mod cause;
mod causes;
mod delays;
mod path;
mod runnable;
mod search;
mod stays;
mod totals;
mod unusual;
mod who;

pub use beside::{Beside, Nothing, Quota, Slept};
pub use cause::{Cause, Leaf, Limit, Place};
pub use causes::{Sum, causes};
pub use delays::{Segment, delays, own_states, states};
pub use path::{Piece, Wait, Waited, handled, path, path_beside, waits};
pub use runnable::looks_like_a_quota;
pub use search::Search;
pub use stays::{Stay, Stays};
pub use totals::{Total, totals};
pub use unusual::{Worker, Working, unusual};
pub use who::{busy, instead, served, thread_in, used, woken_by};
