// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Consumers of the undecoded events of a trace.

use lt_ctf::Reader;

/// Another consumer of the events of a trace while it is read.
pub(crate) trait Beside {
    /// Called once, before the first event.
    fn begin(&mut self, reader: &Reader);
    /// Called with the time of each event, ns, and the event.
    fn see(&mut self, time: u64, event: &lt_ctf::Event<'_>);
    /// Called only by `scan`, if events of a CPU are missing from `_time` to
    /// `_until`, ns.
    fn lost(&mut self, _time: u64, _cpu: u32, _until: u64) {}
}

/// Consumes nothing.
impl Beside for () {
    fn begin(&mut self, _reader: &Reader) {}
    fn see(&mut self, _time: u64, _event: &lt_ctf::Event<'_>) {}
}
