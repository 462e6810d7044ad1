// SPDX-License-Identifier: GPL-2.0

//! Follows packets from their entry into the network layer to their end.
//!
//! ```text
//!   netif_receive_skb           skb_copy_datagram_iovec                    copied to user space
//!   --------------------> skb ------------------------------------------>
//!                             consume_skb, __kfree_skb, skb_attempt_defer_free    consumed
//!                             kfree_skb                                           dropped
//!                             kfree_skb_partial                    now part of another skb
//!                             napi_gro_receive_entry       to be merged, or received again
//! ```
//!
//! The names with `__`, `defer` and `partial` belong to functions that free packets without a
//! tracepoint.
//!
//! C headers: [`include/linux/skbuff.h`](srctree/include/linux/skbuff.h),
//! [`include/trace/events/net.h`](srctree/include/trace/events/net.h),
//! [`include/trace/events/skb.h`](srctree/include/trace/events/skb.h)
//!
//! # GRO
//!
//! GRO merges packets into other packets. It frees most merged packets in functions that are not
//! followed (`__napi_kfree_skb`, `napi_skb_free_stolen_head`). It appends the others to the packet
//! that they are merged into: they are freed with that packet, often as dropped. Drivers pass
//! packets to GRO that have not been received yet. But tunnels (`gro_cells_receive`), veth pairs
//! and XDP's cpumap also pass packets that another device has received. They all call
//! `gro_receive_skb`, which hits `napi_gro_receive_entry` before it can free or keep the packet.
//! GRO's other entry, `napi_gro_frags`, is not followed: it takes only packets that GRO itself has
//! allocated. A packet that GRO delivers hits `netif_receive_skb`.
//!
//! # Contexts
//!
//! Receiving, and GRO: softirqs, and tasks with softirqs off (tun, cpumap); on PREEMPT_RT with
//! preemption on. The ends: any but NMI.

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
use core::{ffi::CStr, mem::MaybeUninit, ptr::NonNull};
use kernel::{
    bindings,
    ffi::{c_int, c_void},
    fmt,
    prelude::*,
    sync::Arc, //
};

/// A packet that is being received.
///
/// # Invariants
///
/// The pointer is valid.
pub(crate) struct Packet(NonNull<bindings::sk_buff>);

/// Properties of a packet at its reception.
pub(crate) use helpers::lt_packet as Received;

impl Packet {
    /// Returns a number that identifies the packet while it lives.
    pub(crate) fn id(&self) -> u64 {
        self.0.as_ptr() as u64
    }

    pub(crate) fn describe(&self) -> Received {
        let mut out = MaybeUninit::<Received>::zeroed();
        // SAFETY: The packet is valid by the type invariant, and has a device while it is received;
        // the function fills the structure, which consists of numbers.
        unsafe {
            helpers::lt_packet(self.0.as_ptr(), out.as_mut_ptr());
            out.assume_init()
        }
    }
}

/// How a packet ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Data of the packet was copied to user space.
    Copied,
    /// The packet was consumed: normal end of its processing.
    Consumed,
    /// The packet was dropped, for a reason (`enum skb_drop_reason`), at an address.
    Dropped { reason: u32, location: u64 },
}

/// Receives the events of packets. See "Contexts" above. The ends of all packets are reported,
/// including sent packets, and several ends for one packet.
pub(crate) trait Observer: Target {
    /// Called when a device has received a packet, or another layer passes it in again.
    fn received(&self, packet: &Packet);
    /// Called at an end of a packet.
    fn ended(&self, packet: u64, end: End);
    /// Called when the data of a packet now belongs to the preceding packet.
    fn merged(&self, packet: u64);
    /// Called when a packet is passed to GRO, usually before it is received for the first time. GRO
    /// may merge it into another packet; otherwise, the packet is received or dropped.
    fn passed_to_gro(&self, packet: u64);
}

callbacks! {
    fn received<T: Observer>(observer, skb: *mut bindings::sk_buff) {
        // SAFETY: The packet is valid, and has a device.
        let skb = unsafe { NonNull::new_unchecked(skb) };
        // INVARIANT: As above.
        observer.received(&Packet(skb));
    }

    fn copied<T: Observer>(observer, skb: *const bindings::sk_buff, _len: c_int) {
        observer.ended(skb as u64, End::Copied);
    }

    fn consumed<T: Observer>(observer, skb: *mut bindings::sk_buff, _location: *mut c_void) {
        observer.ended(skb as u64, End::Consumed);
    }

    fn dropped<T: Observer>(
        observer,
        skb: *mut bindings::sk_buff,
        location: *mut c_void,
        reason: bindings::skb_drop_reason,
        _sk: *const bindings::sock,
    ) {
        let location = location as u64;
        observer.ended(skb as u64, End::Dropped { reason, location });
    }

    fn passed_to_gro<T: Observer>(observer, skb: *const bindings::sk_buff) {
        observer.passed_to_gro(skb as u64);
    }

    fn freed<T: Observer>(observer, skb: u64) {
        observer.ended(skb, End::Consumed);
    }

    fn merged<T: Observer>(observer, skb: u64) {
        observer.merged(skb);
    }
}

/// The probes, the start last, so that no end is missed.
fn probes<T: Observer>() -> [Probe<'static, T>; 5] {
    // SAFETY: The probes have the arguments of these tracepoints. Of these, only the packet that is
    // received is accessed, and that packet is valid.
    unsafe {
        [
            probe!(kfree_skb: dropped::<T>),
            probe!(consume_skb: consumed::<T>),
            probe!(skb_copy_datagram_iovec: copied::<T>),
            probe!(napi_gro_receive_entry: passed_to_gro::<T>),
            probe!(netif_receive_skb: received::<T>),
        ]
    }
}

/// The functions that free a consumed packet.
const FREES: [&CStr; 2] = [c"__kfree_skb", c"skb_attempt_defer_free"];

/// The function that frees a packet whose data was merged into another packet.
const MERGES: [&CStr; 1] = [c"kfree_skb_partial"];

/// Returns the first required feature that this kernel lacks, if any: `fprobe` or a tracepoint.
pub(crate) fn missing<T: Observer>() -> Option<&'static CStr> {
    fprobe::missing().or_else(|| tracepoint::missing(probes::<T>()))
}

/// An attached observer, until dropped; the probe of the start is detached first. Dropping may
/// sleep.
pub(crate) struct Attachment<T: Observer> {
    _probes: tracepoint::Attachment<T>,
    _merges: Calls<T>,
    _frees: Calls<T>,
}

impl<T: Observer> Attachment<T> {
    /// Attaches an observer. May sleep. Fails with `ENOSYS` if the kernel lacks a tracepoint, or
    /// `ENOENT` if it lacks a function, and then leaves nothing attached.
    pub(crate) fn new(observer: Arc<T>) -> Result<Self> {
        // SAFETY: The callbacks may be called with a valid `T`; of a packet they use only the
        // address.
        let (frees, merges) = unsafe {
            (
                Calls::new(FREES, What::Argument, freed::<T>, observer.clone())?,
                Calls::new(MERGES, What::Argument, merged::<T>, observer.clone())?,
            )
        };
        Ok(Self {
            _probes: tracepoint::Attachment::new(observer, probes())?,
            _merges: merges,
            _frees: frees,
        })
    }
}

/// The kernel's word for the reason why a packet was dropped; a number if the reason has no word,
/// or no longer has one.
pub(crate) struct DropReason(pub(crate) u32);

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: Writes at most `size` bytes, terminated.
        let write = |out, size| unsafe { helpers::lt_drop_reason(out, size, self.0) };
        symbol::written::<64, _>(write, |text| f.write_str(text.unwrap_or("?")))
    }
}
