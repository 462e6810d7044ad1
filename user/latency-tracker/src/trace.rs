// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads a kernel trace, however it was recorded, into a model.
//!
//! ```text
//! directory --lt_ctf, several.rs--> events --kinds.rs, files.rs, feed.rs--> lt_model::Model
//! ```

mod beside;
pub(crate) mod evidence;
mod feed;
mod files;
mod find;
mod identity;
mod kinds;
mod several;
mod steps;
mod told;
mod when;

pub(crate) use self::beside::Beside;
pub(crate) use self::feed::{Keep, read, read_beside, read_in_parts, read_within, scan};
pub(crate) use self::find::Finder;
pub(crate) use self::identity::Identity;
pub(crate) use self::steps::{FUTEXES, Need, Sink};
pub(crate) use self::told::{Saved, Told};
pub(crate) use self::when::{Mark, Point, When, event};

#[cfg(test)]
pub(crate) use self::feed::tests::traces as test_traces;
