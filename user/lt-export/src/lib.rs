// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What the instances count, for a Prometheus: a page of OpenMetrics text, and a small server for it.
//!
//! ```text
//!  /proc/latency_tracker  ->  page()   counters, gauges and a histogram for each instance
//!                             Server   GET /metrics, a few connections at a time, each for some seconds
//! ```

mod metrics;
mod server;

pub use metrics::page;
pub use server::{CONNECTIONS, CONTENT_TYPE, Server};
