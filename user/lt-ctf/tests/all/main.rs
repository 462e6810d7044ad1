// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tests with traces made by hand, byte by byte; with real traces, compared with babeltrace2; and
//! with damaged and hostile traces.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(unreachable_pub, reason = "shorter, and no other crate sees it")]

mod damage;
mod fields;
mod hostile;
mod kinds;
mod made;
mod real;
mod streams;
mod threads;
mod tsdl;
