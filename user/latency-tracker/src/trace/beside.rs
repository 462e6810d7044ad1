// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Consumers of the events of a trace, as the trace has them.

use lt_ctf::Reader;

/// Another consumer of the events of a trace while it is read.
pub(crate) trait Beside {
    /// Called once, before the first event.
    fn begin(&mut self, reader: &Reader);
    /// Called with each event.
    fn see(&mut self, event: &lt_ctf::Event<'_>);
    /// Called where the events of a CPU begin to be missing, with the end of that time, ns.
    fn lost(&mut self, _time: u64, _cpu: u32, _until: u64) {}
}
