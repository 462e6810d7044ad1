// SPDX-License-Identifier: GPL-2.0

//! A safe interface to include/latency_tracker.h for Rust modules.
//!
//! Include it in your module with `#[path = ".../latency_tracker.rs"] mod latency_tracker;` and
//! link against latency_tracker's symbols (`KBUILD_EXTRA_SYMBOLS`). The header documents each
//! function and the contexts in which it may be called.
//!
//! Probes can share a [`Tracker`]. Dropping a tracker destroys it. An [`Event`] is a reference
//! that borrows its tracker, so no reference outlives the tracker.

#![allow(dead_code, reason = "not every module needs all of it")]

use core::{
    ffi::CStr,
    marker::PhantomData,
    ptr::{null_mut, NonNull},
};
use kernel::{
    ffi::{c_char, c_int, c_void},
    prelude::*,
};

#[repr(C)]
struct RawTracker {
    _private: [u8; 0],
}

#[repr(C)]
struct RawEvent {
    _private: [u8; 0],
}

#[repr(C)]
struct RawReport {
    tracker: *mut RawTracker,
    private: *mut c_void,
    key: *const c_void,
    data: *const c_void,
    start: u64,
    end: u64,
    delay: u64,
    threshold: u64,
    id: u64,
    key_size: u32,
    data_size: u32,
    reason: u32,
}

#[repr(C)]
struct RawConfig {
    size: usize,
    owner: *mut c_void,
    name: *const c_char,
    private: *mut c_void,
    callback: Option<unsafe extern "C" fn(*const RawReport)>,
    threshold: u64,
    timeout: u64,
    min_event_timeout: u64,
    key_size: u32,
    data_size: u32,
    capacity: u32,
    max_capacity: u32,
    flags: u32,
}

extern "C" {
    fn latency_tracker_create(config: *const RawConfig) -> *mut RawTracker;
    fn latency_tracker_destroy(tracker: *mut RawTracker);
    fn latency_tracker_event_in_at(
        tracker: *mut RawTracker,
        key: *const c_void,
        key_size: usize,
        data: *const c_void,
        start: u64,
        timeout: u64,
    ) -> c_int;
    fn latency_tracker_event_in_get(
        tracker: *mut RawTracker,
        key: *const c_void,
        key_size: usize,
        data: *const c_void,
        start: u64,
        timeout: u64,
    ) -> *mut RawEvent;
    fn latency_tracker_event_out_at(
        tracker: *mut RawTracker,
        key: *const c_void,
        key_size: usize,
        id: u64,
        end: u64,
    ) -> c_int;
    fn latency_tracker_event_out_event(
        tracker: *mut RawTracker,
        event: *mut RawEvent,
        id: u64,
        end: u64,
    ) -> c_int;
    fn latency_tracker_lookup(
        tracker: *mut RawTracker,
        key: *const c_void,
        key_size: usize,
    ) -> *mut RawEvent;
    fn latency_tracker_event_put(tracker: *mut RawTracker, event: *mut RawEvent);
    fn latency_tracker_event_is_live(tracker: *mut RawTracker, event: *mut RawEvent) -> bool;
    fn latency_tracker_event_start(tracker: *mut RawTracker, event: *mut RawEvent) -> u64;
    fn latency_tracker_event_data(
        tracker: *mut RawTracker,
        event: *mut RawEvent,
        data: *mut c_void,
        size: usize,
    ) -> c_int;
    fn latency_tracker_set_threshold(tracker: *mut RawTracker, ns: u64);
    fn latency_tracker_synchronize(tracker: *mut RawTracker) -> c_int;
}

/// A key has at most one live event: a second start replaces it.
pub(crate) const UNIQUE: u32 = 1 << 0;
/// Only new worst cases are reported.
pub(crate) const WORST: u32 = 1 << 1;
/// Keys may be shorter than `key_size`.
pub(crate) const VARIABLE_KEYS: u32 = 1 << 2;
/// Keys appear in /proc as they are.
pub(crate) const SHOW_KEYS: u32 = 1 << 3;

/// The configuration of a tracker: some of the fields of `struct latency_tracker_config`.
pub(crate) struct Options {
    pub(crate) key_size: u32,
    pub(crate) capacity: u32,
    pub(crate) threshold: u64,
    pub(crate) timeout: u64,
    pub(crate) min_event_timeout: u64,
    pub(crate) flags: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            key_size: size_of::<usize>() as u32,
            capacity: 4096,
            threshold: 1_000_000,
            timeout: 0,
            min_event_timeout: 0,
            flags: 0,
        }
    }
}

/// The reason for a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    Threshold,
    Timeout,
    /// The end of an event that had timed out. If the end precedes the start, the delay is 0.
    Late,
}

/// How an event ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// No callback for the event is running or will start.
    Over,
    /// The callback for its timeout is running or about to start: free the object behind the
    /// event after an RCU grace period, or after [`Tracker::synchronize`].
    Reporting,
}

/// A report: some of the fields of `struct latency_tracker_report`.
pub(crate) struct Report<'a, const D: usize> {
    pub(crate) reason: Reason,
    pub(crate) key: &'a [u8],
    pub(crate) data: &'a [u64; D],
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) delay: u64,
    pub(crate) threshold: u64,
    pub(crate) id: u64,
}

/// Handles late events with `D` words of data.
pub(crate) trait Late<const D: usize>: 'static {
    /// Called with each report, in any context; must not sleep.
    fn late(report: &Report<'_, D>);
}

/// A tracker whose events have `D` words of data. Dropping it may sleep.
///
/// # Invariants
///
/// `raw` is a tracker that was created and has not been destroyed.
pub(crate) struct Tracker<const D: usize, L: Late<D>> {
    raw: NonNull<RawTracker>,
    late: PhantomData<fn() -> L>,
}

// SAFETY: Any thread may call the functions.
unsafe impl<const D: usize, L: Late<D>> Send for Tracker<D, L> {}
// SAFETY: The functions may be called concurrently.
unsafe impl<const D: usize, L: Late<D>> Sync for Tracker<D, L> {}

impl<const D: usize, L: Late<D>> Tracker<D, L> {
    /// Creates an enabled tracker. Fails as `latency_tracker_create` does. May sleep.
    pub(crate) fn new(module: &ThisModule, name: &CStr, options: &Options) -> Result<Self> {
        let config = RawConfig {
            size: size_of::<RawConfig>(),
            owner: module.as_ptr().cast(),
            name: name.as_ptr().cast(),
            private: null_mut(),
            callback: Some(Self::call),
            threshold: options.threshold,
            timeout: options.timeout,
            min_event_timeout: options.min_event_timeout,
            key_size: options.key_size,
            data_size: (8 * D) as u32,
            capacity: options.capacity,
            max_capacity: 0,
            flags: options.flags,
        };
        // SAFETY: `config` and its name are valid until the call returns. `call` may be called with
        // a valid report of this tracker, in any context, until the tracker is destroyed.
        let raw = from_err_ptr(unsafe { latency_tracker_create(&config) })?;
        // INVARIANT: Just created.
        Ok(Self {
            raw,
            late: PhantomData,
        })
    }

    /// # Safety
    ///
    /// `report` is a valid report of a tracker with `D` words of data.
    unsafe extern "C" fn call(report: *const RawReport) {
        // SAFETY: The function's contract.
        let (report, key, data) = unsafe {
            let report = &*report;
            let key = core::slice::from_raw_parts(report.key.cast(), report.key_size as usize);
            (report, key, &*report.data.cast::<[u64; D]>())
        };
        L::late(&Report {
            reason: match report.reason {
                1 => Reason::Timeout,
                2 => Reason::Late,
                _ => Reason::Threshold,
            },
            key,
            data,
            start: report.start,
            end: report.end,
            delay: report.delay,
            threshold: report.threshold,
            id: report.id,
        });
    }

    /// Starts an operation now. Any context.
    pub(crate) fn event_in(&self, key: &[u8], data: &[u64; D]) -> Result {
        let (bytes, len, data) = (key.as_ptr().cast(), key.len(), data.as_ptr().cast());
        // SAFETY: By the type invariant; key and data have the given lengths.
        to_result(unsafe { latency_tracker_event_in_at(self.raw.as_ptr(), bytes, len, data, 0, 0) })
    }

    /// Starts an operation at `start` (0 for now), with its own timeout (0 for the tracker's
    /// timeout), and returns a reference to the event. Any context.
    pub(crate) fn event_in_get(
        &self,
        key: &[u8],
        data: &[u64; D],
        start: u64,
        timeout: u64,
    ) -> Result<Event<'_, D, L>> {
        let (bytes, len, data) = (key.as_ptr().cast(), key.len(), data.as_ptr().cast());
        // SAFETY: As in `event_in`.
        let raw = unsafe {
            latency_tracker_event_in_get(self.raw.as_ptr(), bytes, len, data, start, timeout)
        };
        self.event(raw)
    }

    /// Ends an operation now. Fails with `ENOENT` if no event with this key is live. Any context.
    pub(crate) fn event_out(&self, key: &[u8], id: u64) -> Result<Ended> {
        let (bytes, len) = (key.as_ptr().cast(), key.len());
        // SAFETY: By the type invariant; the key has the given length.
        to_ended(unsafe { latency_tracker_event_out_at(self.raw.as_ptr(), bytes, len, id, 0) })
    }

    /// Waits until the callbacks of all events that ended before the call have returned. Fails with
    /// `EDEADLK` in a callback. May sleep.
    pub(crate) fn synchronize(&self) -> Result {
        // SAFETY: By the type invariant.
        to_result(unsafe { latency_tracker_synchronize(self.raw.as_ptr()) })
    }

    /// Returns a reference to a live event. Fails with `ENOENT`, `EBUSY` or `EINVAL`. Any context.
    pub(crate) fn lookup(&self, key: &[u8]) -> Result<Event<'_, D, L>> {
        let (bytes, len) = (key.as_ptr().cast(), key.len());
        // SAFETY: By the type invariant; the key has the given length.
        self.event(unsafe { latency_tracker_lookup(self.raw.as_ptr(), bytes, len) })
    }

    /// Changes the threshold. Any context.
    pub(crate) fn set_threshold(&self, ns: u64) {
        // SAFETY: By the type invariant.
        unsafe { latency_tracker_set_threshold(self.raw.as_ptr(), ns) };
    }

    fn event(&self, raw: *mut RawEvent) -> Result<Event<'_, D, L>> {
        // INVARIANT: `raw` is a new reference from this tracker.
        from_err_ptr(raw).map(|raw| Event { raw, tracker: self })
    }
}

impl<const D: usize, L: Late<D>> Drop for Tracker<D, L> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; the tracker is no longer used, and no event borrows it.
        unsafe { latency_tracker_destroy(self.raw.as_ptr()) };
    }
}

/// A reference to an event. Dropping it returns the reference. Any context.
///
/// # Invariants
///
/// `raw` is a reference that `tracker` gave out and that has not been returned.
pub(crate) struct Event<'a, const D: usize, L: Late<D>> {
    raw: NonNull<RawEvent>,
    tracker: &'a Tracker<D, L>,
}

impl<const D: usize, L: Late<D>> Event<'_, D, L> {
    /// Whether the event has not ended.
    pub(crate) fn is_live(&self) -> bool {
        // SAFETY: By the type invariants.
        unsafe { latency_tracker_event_is_live(self.tracker.raw.as_ptr(), self.raw.as_ptr()) }
    }

    /// Start of the event, in nanoseconds.
    pub(crate) fn start(&self) -> u64 {
        // SAFETY: By the type invariants.
        unsafe { latency_tracker_event_start(self.tracker.raw.as_ptr(), self.raw.as_ptr()) }
    }

    /// The event's data.
    pub(crate) fn data(&self) -> [u64; D] {
        let mut data = [0; D];
        // SAFETY: By the type invariants; the buffer has this many bytes.
        unsafe {
            latency_tracker_event_data(
                self.tracker.raw.as_ptr(),
                self.raw.as_ptr(),
                data.as_mut_ptr().cast(),
                size_of_val(&data),
            )
        };
        data
    }

    /// Ends the event now. Fails with `ENOENT` if it has already ended.
    pub(crate) fn end(&self, id: u64) -> Result<Ended> {
        // SAFETY: By the type invariants.
        to_ended(unsafe {
            latency_tracker_event_out_event(self.tracker.raw.as_ptr(), self.raw.as_ptr(), id, 0)
        })
    }
}

impl<const D: usize, L: Late<D>> Drop for Event<'_, D, L> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants; returned once.
        unsafe { latency_tracker_event_put(self.tracker.raw.as_ptr(), self.raw.as_ptr()) };
    }
}

fn to_result(code: c_int) -> Result {
    kernel::error::to_result(code)
}

fn to_ended(code: c_int) -> Result<Ended> {
    to_result(code)?;
    Ok(match code {
        0 => Ended::Over,
        _ => Ended::Reporting,
    })
}

/// Returns the pointer, unless it is an error pointer.
fn from_err_ptr<T>(raw: *mut T) -> Result<NonNull<T>> {
    let address = raw.addr() as isize;
    if (-4095..0).contains(&address) {
        return Err(Error::from_errno(address as c_int));
    }
    NonNull::new(raw).ok_or(EINVAL)
}
