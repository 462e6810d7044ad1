// SPDX-License-Identifier: GPL-2.0

//! Prints the fields of a packet: its protocols, and why it was dropped.

use super::{Detail, DROPPED};
use crate::{
    record::{fields, say, How},
    sys::{
        bindings::{
            LT_IPPROTO_ICMP,
            LT_IPPROTO_ICMPV6,
            LT_IPPROTO_SCTP,
            LT_IPPROTO_TCP,
            LT_IPPROTO_UDP, //
        },
        net::DropReason, //
    },
};
use kernel::{bindings, fmt, prelude::*};

/// Prints why and where a packet was dropped, if it was.
pub(super) fn show_reason(detail: &Detail, _: &How, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if detail.end != DROPPED {
        return Ok(());
    }
    say("drop_reason", DropReason(detail.drop_reason), f)?;
    say("location", detail.location, f)
}

/// The values of `protocol=`; the first accepts any.
pub(super) const PROTOCOL_WORDS: [&str; 4] = ["all", "ip", "ipv6", "arp"];
const PROTOCOLS: [u16; 3] = [
    bindings::ETH_P_IP as u16,
    bindings::ETH_P_IPV6 as u16,
    bindings::ETH_P_ARP as u16,
];

/// The values of `transport=`; the first accepts any.
pub(super) const TRANSPORT_WORDS: [&str; 6] = ["all", "tcp", "udp", "icmp", "icmpv6", "sctp"];
const TRANSPORTS: [u8; 5] = [
    LT_IPPROTO_TCP as u8,
    LT_IPPROTO_UDP as u8,
    LT_IPPROTO_ICMP as u8,
    LT_IPPROTO_ICMPV6 as u8,
    LT_IPPROTO_SCTP as u8,
];

/// Returns the Ethernet protocol number for a value of `protocol=`, `None` for `all`.
pub(super) fn protocol(value: u64) -> Option<u16> {
    PROTOCOLS.get((value as usize).wrapping_sub(1)).copied()
}

/// Returns the IP protocol number for a value of `transport=`, `None` for `all`.
pub(super) fn transport(value: u64) -> Option<u8> {
    TRANSPORTS.get((value as usize).wrapping_sub(1)).copied()
}

/// A protocol, printed as a word, or as a number in hexadecimal.
#[derive(Clone, Copy, Default)]
pub(crate) struct Protocol(pub(super) u16);

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match PROTOCOLS.iter().position(|&number| number == self.0) {
            Some(at) => f.write_str(PROTOCOL_WORDS[at + 1]),
            None => f.write_fmt(fmt!("{:#06x}", self.0)),
        }
    }
}

/// A transport protocol, printed as a word, or as a number; `none` for 0: the packet is not IP, or
/// is IPv6 and has hop-by-hop options after the fixed header.
#[derive(Clone, Copy, Default)]
pub(crate) struct Transport(pub(super) u8);

fields! {
    Protocol, u16::BITS, |it| it.0.into(), |bits| Protocol(bits as u16), it, "u16" "%#06x";
    Transport, u8::BITS, |it| it.0.into(), |bits| Transport(bits as u8), it, "u8" "%u";
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match TRANSPORTS.iter().position(|&number| number == self.0) {
            Some(at) => f.write_str(TRANSPORT_WORDS[at + 1]),
            None if self.0 == 0 => f.write_str("none"),
            None => f.write_fmt(fmt!("{}", self.0)),
        }
    }
}
