// SPDX-License-Identifier: GPL-2.0

//! The module's own tracepoints: `latency_tracker:alert`, and one for each tracker that declares
//! its alert.
//!
//! C header: include/trace/events/latency_tracker.h

use crate::sys::bindings;
use core::ffi::CStr;

/// A tracker's own tracepoint, if it has one.
#[derive(Clone, Copy)]
pub(crate) struct Traced(bindings::lt_traced);

impl Traced {
    /// Returns the tracepoint of the tracker with this name.
    pub(crate) fn of(tracker: &CStr) -> Self {
        // SAFETY: The name is a C string that outlives the call.
        Self(unsafe { bindings::lt_traced_of(tracker.as_ptr().cast()) })
    }
}

/// The fields of the tracepoints; times and durations in nanoseconds.
pub(crate) struct AlertEvent<'a> {
    pub(crate) traced: Traced,
    pub(crate) seq: u64,
    pub(crate) time: u64,
    pub(crate) delay: u64,
    pub(crate) threshold: u64,
    /// Packed bytes, with a NUL in the last word at the latest.
    pub(crate) instance: &'a [u64; 4],
    pub(crate) tracker: &'static CStr,
    pub(crate) reason: &'static CStr,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    /// Packed bytes, with a NUL in the last word at the latest.
    pub(crate) comm: &'a [u64; 2],
    pub(crate) args: &'a [u64],
    /// Return addresses, innermost first.
    pub(crate) stack: &'a [u64],
    /// Whether the operation was in flight when the instance started, and took at least `delay`.
    pub(crate) before_start: bool,
}

/// Whether `latency_tracker:alert` or the tracker's own tracepoint is enabled.
pub(crate) fn alert_enabled(traced: Traced) -> bool {
    // SAFETY: Reads static keys.
    unsafe { bindings::lt_trace_alert_enabled(traced.0) }
}

/// Emits `latency_tracker:alert`, and the tracker's own tracepoint, if any. Any context.
pub(crate) fn alert(event: &AlertEvent<'_>) {
    // Strings end at a NUL: names are shorter than their words, and the kernel truncates comm.
    // Clearing the last byte guarantees the NUL.
    let mut instance = *event.instance;
    instance[3] &= !(0xff << 56);
    let mut comm = *event.comm;
    comm[1] &= !(0xff << 56);
    let raw = bindings::lt_alert {
        seq: event.seq,
        time: event.time,
        delay: event.delay,
        threshold: event.threshold,
        instance: instance.as_ptr().cast(),
        tracker: event.tracker.as_ptr().cast(),
        reason: event.reason.as_ptr().cast(),
        pid: event.pid,
        tid: event.tid,
        comm: comm.as_ptr().cast(),
        args: event.args.as_ptr(),
        nr_args: event.args.len() as u32,
        stack: event.stack.as_ptr(),
        nr_stack: event.stack.len() as u32,
        before_start: event.before_start,
    };
    // SAFETY: All pointers are valid for the call, the strings are terminated.
    unsafe { bindings::lt_trace_alert(event.traced.0, &raw) };
}
