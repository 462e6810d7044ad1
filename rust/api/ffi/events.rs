// SPDX-License-Identifier: GPL-2.0

//! The functions of include/latency_tracker.h that start, end and look up events, in any context.
//!
//! A pointer to a `struct latency_tracker_event` is not an address but the index of a cell plus
//! one, so it is never NULL.

use super::{ended_or_errno, error_pointer, or_errno, tracker, RawTracker};
use crate::{api::Any, engine::held::Reference, sys::bindings, trackers::module::KEY_MAX};
use core::ptr;
use kernel::{
    ffi::{c_int, c_void},
    prelude::*,
};

type RawEvent = bindings::latency_tracker_event;

/// # Safety
///
/// `data` is null, or points to `size` bytes that can be read until `'a` ends.
#[inline(always)]
unsafe fn bytes<'a>(data: *const c_void, size: usize) -> Option<&'a [u8]> {
    // SAFETY: The function's contract.
    (!data.is_null()).then(|| unsafe { core::slice::from_raw_parts(data.cast(), size) })
}

/// # Safety
///
/// `data` is null, or points to `size` bytes that can be read until `'a` ends.
#[inline(always)]
unsafe fn key<'a>(data: *const c_void, size: usize) -> Result<&'a [u8]> {
    if size > KEY_MAX {
        return Err(EINVAL);
    }
    // SAFETY: The function's contract.
    unsafe { bytes(data, size) }.ok_or(EINVAL)
}

/// Returns a caller's reference, which the caller keeps. Fails with `EINVAL` for NULL, error
/// pointers, and numbers that name no cell, or a cell without a reference.
fn event(tracker: &Any, raw: *mut RawEvent) -> Result<Reference> {
    let number = raw.addr().checked_sub(1).ok_or(EINVAL)?;
    let number = u32::try_from(number).map_err(|_| EINVAL)?;
    tracker.reference(number).ok_or(EINVAL)
}

fn into_raw(event: Reference) -> *mut RawEvent {
    lent(&event)
}

/// Returns the raw form of a reference that the receiver does not own.
fn lent(event: &Reference) -> *mut RawEvent {
    ptr::without_provenance_mut(event.index().to_raw() as usize + 1)
}

fn count_or_errno(result: Result<u64>) -> c_int {
    result.map_or_else(
        |error| error.to_errno(),
        |count| count.min(c_int::MAX as u64) as c_int,
    )
}

/// Copies the `size` bytes stored in words, or as many as fit, to a buffer of `room` bytes. Returns
/// `size`.
///
/// # Safety
///
/// `to` points to `room` bytes that can be written, and `words` has `size` bytes.
unsafe fn copy(words: &[u64], size: usize, to: *mut c_void, room: usize) -> usize {
    // SAFETY: The function's contract.
    unsafe { ptr::copy_nonoverlapping(words.as_ptr().cast::<u8>(), to.cast(), size.min(room)) };
    size
}

// The functions that follow are documented in include/latency_tracker.h. They share these
// contracts: a pointer to a tracker comes from `latency_tracker_create`, and the tracker is not
// destroyed before the call returns; a reference was handed out and has not been returned; keys and
// data have the size given in the arguments or the configuration.

#[no_mangle]
unsafe extern "C" fn latency_tracker_event_in_at(
    raw: *mut RawTracker,
    k: *const c_void,
    key_size: usize,
    data: *const c_void,
    start: u64,
    timeout: u64,
) -> c_int {
    // SAFETY: The contracts above.
    or_errno(unsafe { tracker(raw) }.and_then(|tracker| {
        // SAFETY: The contracts above.
        let (key, data) = unsafe { (key(k, key_size)?, bytes(data, tracker.data_size())) };
        tracker.event_in(key, data, start, timeout)
    }))
}

#[no_mangle]
unsafe extern "C" fn latency_tracker_event_in_get(
    raw: *mut RawTracker,
    k: *const c_void,
    key_size: usize,
    data: *const c_void,
    start: u64,
    timeout: u64,
) -> *mut RawEvent {
    // SAFETY: The contracts above.
    let event = unsafe { tracker(raw) }.and_then(|tracker| {
        // SAFETY: The contracts above.
        let (key, data) = unsafe { (key(k, key_size)?, bytes(data, tracker.data_size())) };
        tracker.event_in_held(key, data, start, timeout)
    });
    event.map_or_else(error_pointer, into_raw)
}

#[no_mangle]
unsafe extern "C" fn latency_tracker_event_out_at(
    raw: *mut RawTracker,
    k: *const c_void,
    key_size: usize,
    id: u64,
    end: u64,
) -> c_int {
    // SAFETY: The contracts above.
    ended_or_errno(unsafe { tracker(raw) }.and_then(|tracker| {
        // SAFETY: The contracts above.
        tracker.event_out(unsafe { key(k, key_size) }?, id, end)
    }))
}

#[no_mangle]
unsafe extern "C" fn latency_tracker_event_out_all(
    raw: *mut RawTracker,
    k: *const c_void,
    key_size: usize,
    id: u64,
    end: u64,
) -> c_int {
    // SAFETY: The contracts above.
    count_or_errno(unsafe { tracker(raw) }.and_then(|tracker| {
        // SAFETY: The contracts above.
        tracker.event_out_all(unsafe { key(k, key_size) }?, id, end)
    }))
}

#[no_mangle]
unsafe extern "C" fn latency_tracker_event_out_event(
    raw: *mut RawTracker,
    held: *mut RawEvent,
    id: u64,
    end: u64,
) -> c_int {
    // SAFETY: The contracts above.
    ended_or_errno(
        unsafe { tracker(raw) }
            .and_then(|tracker| tracker.event_out_held(&event(tracker, held)?, id, end)),
    )
}

#[no_mangle]
unsafe extern "C" fn latency_tracker_lookup(
    raw: *mut RawTracker,
    k: *const c_void,
    key_size: usize,
) -> *mut RawEvent {
    // SAFETY: The contracts above.
    let event = unsafe { tracker(raw) }.and_then(|tracker| {
        // SAFETY: The contracts above.
        tracker.lookup(unsafe { key(k, key_size) }?)
    });
    event.map_or_else(error_pointer, into_raw)
}

#[no_mangle]
unsafe extern "C" fn latency_tracker_event_get(raw: *mut RawTracker, held: *mut RawEvent) -> c_int {
    // SAFETY: The contracts above.
    or_errno(unsafe { tracker(raw) }.and_then(|tracker| {
        // The caller now holds two references, with the same number.
        tracker.get_ref_again(&event(tracker, held)?).map(|_| ())
    }))
}

#[no_mangle]
unsafe extern "C" fn latency_tracker_event_put(raw: *mut RawTracker, held: *mut RawEvent) {
    // SAFETY: The contracts above.
    if let Ok(tracker) = unsafe { tracker(raw) } {
        let _ = event(tracker, held).map(|event| tracker.put_ref(event));
    }
}

#[no_mangle]
unsafe extern "C" fn latency_tracker_event_is_live(
    raw: *mut RawTracker,
    held: *mut RawEvent,
) -> bool {
    // SAFETY: The contracts above.
    let live = unsafe { tracker(raw) }
        .and_then(|tracker| event(tracker, held).map(|event| tracker.is_live(&event)));
    live.unwrap_or(false)
}

#[no_mangle]
unsafe extern "C" fn latency_tracker_event_start(raw: *mut RawTracker, held: *mut RawEvent) -> u64 {
    // SAFETY: The contracts above.
    let start = unsafe { tracker(raw) }
        .and_then(|tracker| event(tracker, held).map(|event| tracker.start(&event)));
    start.unwrap_or(0)
}

#[no_mangle]
unsafe extern "C" fn latency_tracker_event_key(
    raw: *mut RawTracker,
    held: *mut RawEvent,
    to: *mut c_void,
    room: usize,
) -> c_int {
    // SAFETY: The contracts above.
    count_or_errno(unsafe { tracker(raw) }.and_then(|tracker| {
        // SAFETY: The contracts above; `words` has at least `size` bytes.
        let copy = |words: &[u64], size| unsafe { copy(words, size, to, room) };
        Ok(tracker.with_key(&event(tracker, held)?, copy) as u64)
    }))
}

#[no_mangle]
unsafe extern "C" fn latency_tracker_event_data(
    raw: *mut RawTracker,
    held: *mut RawEvent,
    to: *mut c_void,
    room: usize,
) -> c_int {
    // SAFETY: The contracts above.
    count_or_errno(unsafe { tracker(raw) }.and_then(|tracker| {
        // SAFETY: The contracts above; `words` has at least `size` bytes.
        let copy = |words: &[u64], size| unsafe { copy(words, size, to, room) };
        Ok(tracker.with_data(&event(tracker, held)?, copy) as u64)
    }))
}

/// The callback of `latency_tracker_for_each`; C may pass NULL.
type Visit = Option<unsafe extern "C" fn(*mut RawTracker, *mut RawEvent, *mut c_void) -> c_int>;

#[no_mangle]
unsafe extern "C" fn latency_tracker_for_each(
    raw: *mut RawTracker,
    k: *const c_void,
    key_size: usize,
    visit: Visit,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: The contracts above.
    count_or_errno(unsafe { tracker(raw) }.and_then(|tracker| {
        // SAFETY: The contracts above.
        let key = unsafe { key(k, key_size) }?;
        let visit = visit.ok_or(EINVAL)?;
        tracker.each_of(key, |event| {
            let held = lent(event);
            // SAFETY: The caller's promise: `visit` may be called with `arg` until this function
            // returns. `raw` and `held` are valid during the call.
            unsafe { visit(raw, held, arg) == 0 }
        })
    }))
}
