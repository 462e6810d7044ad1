// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads traces in the Common Trace Format: version 2, which LTTng has written since 2.15, and
//! version 1.8 of older tracers and of perf.
//!
//! ```text
//! metadata --metadata.rs--> Schema --program.rs--> steps of each event class
//! streams  --stream.rs----> packets, batches of events --reader.rs--> merged by time --event.rs--> fields
//! ```
//!
//! Files are read in windows, not mapped, since mapping a file is unsafe (stream/fill.rs). A window has up to 256 KiB,
//! or the size of an event that is larger. Memory use therefore does not depend on the size of the trace. No size or
//! offset in a file is trusted before it is checked against the file.
//!
//! # Examples
//!
//! Opens a trace and prints the thread that each switch starts. A field is looked up once in each
//! event class, by its name, and read by its index from each event. Losses are items, too:
//!
//! ```no_run
//! # use lt_ctf::{Item, Reader};
//! # fn main() -> Result<(), lt_ctf::Error> {
//! let mut reader = Reader::open("capture/trace".as_ref())?;
//! let next_tid: Vec<_> = reader.classes().map(|c| c.field("next_tid")).collect();
//! while let Some(item) = reader.next()? {
//!     match item {
//!         Item::Event(event) => {
//!             if let Some(field) = next_tid[event.class_index()] {
//!                 println!("{} {:?} {:?}", event.nanoseconds(), event.cpu(), event.signed(field));
//!             }
//!         }
//!         Item::Lost(lost) => eprintln!("{} lost ({:?})", lost.count, lost.what),
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod bits;
mod error;
mod event;
mod metadata;
mod program;
mod reader;
mod schema;
mod stream;
pub mod text;
mod trace;

pub use error::{Error, Result, What};
pub use event::{Event, Names, Part, Show, Value};
pub use reader::{Item, Options, Reader};
pub use schema::{Class, Clock, Field, FieldIndex, Schema, Scope};
pub use stream::{Lost, Missing, Span};
pub use trace::Trace;
