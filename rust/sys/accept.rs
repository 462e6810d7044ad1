// SPDX-License-Identifier: GPL-2.0

//! Follows sockets: accepts, sends, and closes.
//!
//! ```text
//!   __sys_accept4 returns          sock_send_length            sock_close
//!   -----------------------> fd -------------------> ... ------------------>
//! ```
//!
//! Only sock_send_length is a tracepoint; the other two are functions. C headers:
//! [`include/linux/net.h`](srctree/include/linux/net.h),
//! [`include/trace/events/sock.h`](srctree/include/trace/events/sock.h)
//!
//! # Contexts
//!
//! The task that accepts, sends, or closes. Preemption is off at an accept and at a close.

use crate::sys::{
    bindings as helpers,
    fprobe::{
        self,
        calls::{Calls, What}, //
    },
    measure::Target,
    symbol,
    tracepoint::{self, callbacks, probe, Probe}, //
};
use core::{ffi::CStr, mem::MaybeUninit};
use kernel::{
    bindings,
    ffi::c_int,
    fmt,
    prelude::*,
    sync::Arc, //
};

/// An accepted socket. Its `id` identifies it while it is open.
pub(crate) use helpers::lt_socket as Socket;

/// An address of a socket.
pub(crate) struct Address {
    /// `AF_...`
    pub(crate) family: u16,
    pub(crate) port: u16,
    /// The bytes, in network order.
    pub(crate) bytes: [u64; 2],
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (family, bytes, port) = (self.family, self.bytes.as_ptr(), self.port);
        // SAFETY: Writes at most `size` bytes, terminated; reads at most as many as `bytes` has.
        let write =
            |out, size| unsafe { helpers::lt_socket_address(out, size, family, bytes, port) };
        symbol::written::<64, _>(write, |text| f.write_str(text.unwrap_or_default()))
    }
}

pub(crate) fn family_name(family: u16) -> &'static str {
    match family.into() {
        bindings::AF_UNIX => "unix",
        bindings::AF_INET => "ip",
        bindings::AF_INET6 => "ipv6",
        _ => "other",
    }
}

/// Receives the events of sockets. See "Contexts" above. Sends and closes of all sockets are
/// reported.
pub(crate) trait Observer: Target {
    /// Called when the current task has accepted a connection, with its file descriptor.
    fn accepted(&self, fd: i32, socket: &Socket);
    /// Called when the current task has sent this many bytes, at least one.
    fn sent(&self, socket: u64, bytes: u32);
    /// Called when the last reference to the file of the socket is dropped.
    fn closed(&self, socket: u64);
    /// Called by [`Attachment::collect_missed`] and when the [`Attachment`] is dropped, with the
    /// number of calls of accept(2) that were missed since the last time. May sleep.
    fn missed(&self, calls: u64);
}

callbacks! {
    fn accepted<T: Observer>(observer, result: u64) {
        let fd = result as c_int;
        if fd < 0 {
            return;
        }
        let mut socket = MaybeUninit::<Socket>::zeroed();
        // SAFETY: Called in a task that returns from accept(2). Any `fd` is valid; the function
        // fills the structure, which consists of numbers.
        let (file, socket) = unsafe {
            let file = helpers::lt_socket_get(fd, socket.as_mut_ptr());
            (file, socket.assume_init())
        };
        if file.is_null() {
            return;
        }
        if socket.id != 0 {
            observer.accepted(fd, &socket);
        }
        // Another thread may close the file at any time. Its close comes after the call above.
        // SAFETY: The reference is ours.
        unsafe { helpers::lt_socket_put(file) };
    }

    fn sent<T: Observer>(observer, sk: *mut bindings::sock, result: c_int, _flags: c_int) {
        if result > 0 {
            observer.sent(sk as u64, result as u32);
        }
    }

    fn closed<T: Observer>(observer, inode: u64) {
        // SAFETY: It is the inode of a socket.
        observer.closed(unsafe { helpers::lt_socket_of_inode(inode) });
    }
}

/// The probe of sends.
fn probes<T: Observer>() -> [Probe<'static, T>; 1] {
    // SAFETY: The probe has the arguments of this tracepoint, and does not dereference the socket.
    [unsafe { probe!(sock_send_length: sent::<T>) }]
}

/// Returns the first required feature that this kernel lacks, if any.
pub(crate) fn missing<T: Observer>() -> Option<&'static CStr> {
    fprobe::missing().or_else(|| tracepoint::missing(probes::<T>()))
}

/// An attached observer, until dropped; the probe of accepts is detached first. Dropping may sleep.
pub(crate) struct Attachment<T: Observer> {
    accepts: Calls<T>,
    _sends: tracepoint::Attachment<T>,
    _closes: Calls<T>,
}

impl<T: Observer> Attachment<T> {
    /// Attaches an observer. May sleep. Fails with `ENOSYS` if the kernel lacks the tracepoint, or
    /// `ENOENT` if it lacks a function, and then leaves nothing attached.
    pub(crate) fn new(observer: Arc<T>) -> Result<Self> {
        let (argument, result) = (What::Argument, What::Result(T::missed));
        // The start is attached last, so that no end is missed.
        // SAFETY: The first argument of sock_close() is the inode of a socket.
        let closes =
            unsafe { Calls::new([c"sock_close"], argument, closed::<T>, observer.clone())? };
        let sends = tracepoint::Attachment::new(observer.clone(), probes())?;
        // SAFETY: __sys_accept4() returns to the task that has called it.
        let accepts = unsafe { Calls::new([c"__sys_accept4"], result, accepted::<T>, observer)? };
        Ok(Self {
            accepts,
            _sends: sends,
            _closes: closes,
        })
    }

    /// Passes to the observer the number of calls of accept(2) that were missed since the last
    /// time.
    pub(crate) fn collect_missed(&mut self) {
        self.accepts.collect_missed();
    }
}
