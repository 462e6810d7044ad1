// SPDX-License-Identifier: GPL-2.0

//! Block requests, and the tracepoints in their life.
//!
//! C headers: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h),
//! [`include/trace/events/block.h`](srctree/include/trace/events/block.h)

use crate::sys::{
    bindings as helpers,
    measure::Target,
    tracepoint::{callbacks, probe, Probe}, //
};
use core::{ffi::CStr, mem::MaybeUninit, ptr::addr_of};
use kernel::{
    bindings,
    error::to_result,
    ffi::c_uint,
    fmt,
    prelude::*, //
};

/// A request, during a tracepoint.
pub(crate) struct Request<'a> {
    raw: &'a kernel::types::Opaque<bindings::request>,
}

/// The operation of a request, on a whole disk.
pub(crate) use helpers::lt_block_request as Operation;

/// The direction of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Transfer {
    /// From the disk.
    Read,
    /// To the disk: a write, a write of zeroes, or an append to a zone.
    Write,
}

impl Transfer {
    /// Returns the direction, from the operation and flags of a request, see [`Operation::flags`].
    pub(crate) fn of(flags: u32) -> Option<Self> {
        match flags & ((1 << bindings::REQ_OP_BITS) - 1) {
            bindings::req_op_REQ_OP_READ => Some(Transfer::Read),
            bindings::req_op_REQ_OP_WRITE
            | bindings::req_op_REQ_OP_WRITE_ZEROES
            | bindings::req_op_REQ_OP_ZONE_APPEND => Some(Transfer::Write),
            _ => None,
        }
    }
}

impl Request<'_> {
    /// # Safety
    ///
    /// `raw` is valid for the duration of `'a`.
    unsafe fn from_raw<'a>(raw: *mut bindings::request) -> Request<'a> {
        Request {
            // SAFETY: The caller's promise; `Opaque` is transparent.
            raw: unsafe { &*raw.cast() },
        }
    }

    /// Returns a number that identifies the request while it is in flight.
    pub(crate) fn id(&self) -> u64 {
        self.raw.get() as u64
    }

    /// Returns the whole disk of the request, as in [`Operation::dev`].
    pub(crate) fn dev(&self) -> u32 {
        // SAFETY: The request is valid, and so is its queue during the tracepoint.
        unsafe { helpers::lt_block_dev(self.raw.get()) }
    }

    /// Returns the operation of the request, or the part of it that remains.
    pub(crate) fn operation(&self) -> Operation {
        let mut out = MaybeUninit::<Operation>::uninit();
        // SAFETY: The request is valid; the function fills the structure.
        unsafe {
            helpers::lt_block_request(self.raw.get(), out.as_mut_ptr());
            out.assume_init()
        }
    }

    /// Returns the direction in which the request moves data; `None` for a flush or a discard, for
    /// example.
    pub(crate) fn transfer(&self) -> Option<Transfer> {
        // SAFETY: The request is valid, and the field is a number.
        let flags = unsafe { addr_of!((*self.raw.get()).cmd_flags).read_volatile() };
        Transfer::of(flags)
    }

    /// Returns the name of the request's disk, 32 bytes padded with NUL.
    pub(crate) fn disk_name(&self) -> [u64; 4] {
        let mut name = [0; 4];
        // SAFETY: The request is valid, and so is its disk during the tracepoint.
        unsafe { helpers::lt_block_disk_name(self.raw.get(), name.as_mut_ptr()) };
        name
    }

    /// Whether the request is a flush; only the block layer itself creates such requests.
    pub(crate) fn is_flush(&self) -> bool {
        // SAFETY: The request is valid.
        unsafe { helpers::lt_block_is_flush(self.raw.get()) }
    }

    /// Whether completing `bytes` completes the request.
    pub(crate) fn is_last(&self, bytes: u32) -> bool {
        // SAFETY: The request is valid.
        unsafe { helpers::lt_block_last_bytes(self.raw.get(), bytes) }
    }
}

/// Operation flags as `blktrace` and the tracepoints print them: `R`, `WS`, `FWFSM`, ...
#[derive(Clone, Copy, Default)]
pub(crate) struct Rwbs(pub(crate) u32);

impl fmt::Display for Rwbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; 16];
        // SAFETY: Fills at most 16 bytes, terminated.
        unsafe { helpers::lt_block_rwbs(text.as_mut_ptr().cast(), self.0) };
        let len = text.iter().position(|&b| b == 0).unwrap_or(text.len());
        f.write_str(core::str::from_utf8(&text[..len]).unwrap_or("?"))
    }
}

/// Returns the whole disk at a device path, as in [`Operation::dev`].
///
/// May sleep. Fails with `ENOTBLK` for a partition, or if the path is not a block device, and with
/// `ENOTSUPP` for a disk whose driver uses no requests.
pub(crate) fn lookup(path: &CStr) -> Result<u32> {
    let mut dev = 0;
    // SAFETY: The path is a C string; the function writes `dev` on success.
    to_result(unsafe { helpers::lt_block_lookup(path.as_ptr().cast(), &mut dev) })?;
    Ok(dev)
}

/// Checks a device number, as in [`Operation::dev`]. Fails as [`lookup`] does, or with `ENXIO` if
/// there is no such device. May sleep.
pub(crate) fn check(dev: u32) -> Result {
    // SAFETY: Any number is valid.
    to_result(unsafe { helpers::lt_block_look(dev) })
}

/// Receives the events of requests. Called in any context but NMI, usually with preemption on.
pub(crate) trait Observer: Target {
    /// The submitter has created the request; not called for the block layer's own requests.
    fn created(&self, rq: &Request<'_>);
    /// The request enters the I/O scheduler or a queue.
    fn inserted(&self, rq: &Request<'_>);
    /// The request is issued to the driver.
    fn issued(&self, rq: &Request<'_>);
    /// The driver has returned the request; it will be issued again.
    fn requeued(&self, rq: &Request<'_>);
    /// The request has become part of another request and will not complete.
    fn merged(&self, rq: &Request<'_>);
    /// `bytes` of the request are complete.
    fn completed(&self, rq: &Request<'_>, bytes: u32);
    /// The request is returned to the block layer, usually after its completion.
    fn done(&self, rq: &Request<'_>);
}

macro_rules! on_request {
    ($($name:ident),*) => {
        callbacks! {$(
            fn $name<T: Observer>(observer, rq: *mut bindings::request) {
                // SAFETY: The request is valid.
                observer.$name(&unsafe { Request::from_raw(rq) });
            }
        )*}
    };
}

on_request!(created, inserted, issued, requeued, merged, done);

callbacks! {
    fn completed<T: Observer>(
        observer,
        rq: *mut bindings::request,
        _error: bindings::blk_status_t,
        bytes: c_uint,
    ) {
        // SAFETY: The request is valid.
        observer.completed(&unsafe { Request::from_raw(rq) }, bytes);
    }
}

/// The probes, the last step of a request's life first, so that no end is missed.
pub(crate) fn probes<T: Observer>() -> [Probe<'static, T>; 7] {
    // SAFETY: The probes have the arguments of these tracepoints, of which the first is a valid
    // request.
    unsafe {
        [
            probe!(block_io_done: done::<T>),
            probe!(block_rq_complete: completed::<T>),
            probe!(block_rq_merge: merged::<T>),
            probe!(block_rq_requeue: requeued::<T>),
            probe!(block_rq_issue: issued::<T>),
            probe!(block_rq_insert: inserted::<T>),
            probe!(block_io_start: created::<T>),
        ]
    }
}
