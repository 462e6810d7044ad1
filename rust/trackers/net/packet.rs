// SPDX-License-Identifier: GPL-2.0

//! The data of an event of the `net` tracker, and the fields of its alerts.

use crate::{
    alert::record::DETAIL,
    sys::{
        bindings::{
            LT_IPPROTO_ICMP,
            LT_IPPROTO_ICMPV6,
            LT_IPPROTO_SCTP,
            LT_IPPROTO_TCP,
            LT_IPPROTO_UDP, //
        },
        net::{DropReason, End, Received},
        symbol::{Hashed, Symbol}, //
    },
    text::{Escaped, Quoted}, //
};
use kernel::{
    bindings,
    fmt::{self, Write},
    prelude::*, //
};

/// What is noted about a packet when it is received.
#[derive(Clone, Copy, Default)]
pub(super) struct Skb(pub(super) Received);

/// The words of [`Skb`].
pub(super) const WORDS: usize = 5;

impl Skb {
    /// Packs it for an event.
    pub(super) fn to_words(self) -> [u64; WORDS] {
        let Received {
            dev: [d0, d1],
            ifindex,
            netns,
            len,
            protocol,
            transport,
        } = self.0;
        [
            d0,
            d1,
            u64::from(ifindex) << 32 | u64::from(len),
            u64::from(protocol) << 16 | u64::from(transport),
            netns.into(),
        ]
    }

    /// The inverse of [`Skb::to_words`].
    pub(super) fn from_words(words: &[u64; WORDS]) -> Self {
        let [d0, d1, sizes, protocols, netns] = *words;
        Self(Received {
            dev: [d0, d1],
            ifindex: (sizes >> 32) as u32,
            netns: netns as u32,
            len: sizes as u32,
            protocol: (protocols >> 16) as u16,
            transport: protocols as u8,
        })
    }
}

/// Our fields of an alert.
pub(super) struct Detail {
    /// The address of the packet.
    packet: u64,
    skb: Skb,
    /// `None` if the end has not come.
    end: Option<End>,
}

/// The upper half of the word for the end.
const COPIED: u64 = 1;
const CONSUMED: u64 = 2;
const DROPPED: u64 = 3;

impl Detail {
    /// The words of an alert that it uses.
    pub(super) const WORDS: usize = 1 + WORDS + 2;

    pub(super) fn new(packet: u64, skb: Skb, end: Option<End>) -> Self {
        Self { packet, skb, end }
    }

    /// Packs it for an alert.
    pub(super) fn to_words(&self) -> [u64; DETAIL] {
        let (how, reason, location) = match self.end {
            None => (0, 0, 0),
            Some(End::Copied) => (COPIED, 0, 0),
            Some(End::Consumed) => (CONSUMED, 0, 0),
            Some(End::Dropped { reason, location }) => (DROPPED, reason, location),
        };
        let [w0, w1, w2, w3, w4] = self.skb.to_words();
        let how = how << 32 | u64::from(reason);
        let used: [u64; Self::WORDS] = [self.packet, w0, w1, w2, w3, w4, how, location];
        let mut words = [0; DETAIL];
        words[..Self::WORDS].copy_from_slice(&used);
        words
    }

    /// The inverse of [`Detail::to_words`].
    pub(super) fn from_words(words: &[u64; DETAIL]) -> Self {
        let [packet, w0, w1, w2, w3, w4, how, location, ..] = *words;
        let reason = how as u32;
        Self {
            packet,
            skb: Skb::from_words(&[w0, w1, w2, w3, w4]),
            end: match how >> 32 {
                COPIED => Some(End::Copied),
                CONSUMED => Some(End::Consumed),
                DROPPED => Some(End::Dropped { reason, location }),
                _ => None,
            },
        }
    }

    /// What is known before the end, as fields of a line.
    pub(super) fn named(&self) -> impl fmt::Display + '_ {
        Named(self)
    }
}

struct Named<'a>(&'a Detail);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packet = &self.0.skb.0;
        f.write_fmt(fmt!(
            "skb={} dev={} ifindex={} netns={} protocol={} transport={} len={}",
            Hashed(self.0.packet),
            Quoted::words(&packet.dev),
            packet.ifindex,
            packet.netns,
            Protocol(packet.protocol),
            Transport(packet.transport),
            packet.len
        ))
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.named();
        let (end, reason) = match self.end {
            None => ("none", None),
            Some(End::Copied) => ("copied", None),
            Some(End::Consumed) => ("consumed", None),
            Some(End::Dropped { reason, location }) => ("dropped", Some((reason, location))),
        };
        f.write_fmt(fmt!("{named} end={end}"))?;
        let Some((reason, location)) = reason else {
            return Ok(());
        };
        let reason = DropReason(reason);
        f.write_fmt(fmt!(" drop_reason={reason} location=\""))?;
        Escaped(f).write_fmt(fmt!("{}", Symbol(location)))?;
        f.write_char('"')
    }
}

/// The words of `protocol=`; the first is all.
pub(super) const PROTOCOL_WORDS: [&str; 4] = ["all", "ip", "ipv6", "arp"];
const PROTOCOLS: [u16; 3] = [
    bindings::ETH_P_IP as u16,
    bindings::ETH_P_IPV6 as u16,
    bindings::ETH_P_ARP as u16,
];

/// The words of `transport=`; the first is all.
pub(super) const TRANSPORT_WORDS: [&str; 6] = ["all", "tcp", "udp", "icmp", "icmpv6", "sctp"];
const TRANSPORTS: [u8; 5] = [
    LT_IPPROTO_TCP as u8,
    LT_IPPROTO_UDP as u8,
    LT_IPPROTO_ICMP as u8,
    LT_IPPROTO_ICMPV6 as u8,
    LT_IPPROTO_SCTP as u8,
];

/// The number behind a value of `protocol=`, `None` for all.
pub(super) fn protocol(value: u64) -> Option<u16> {
    PROTOCOLS.get((value as usize).wrapping_sub(1)).copied()
}

/// The number behind a value of `transport=`, `None` for all.
pub(super) fn transport(value: u64) -> Option<u8> {
    TRANSPORTS.get((value as usize).wrapping_sub(1)).copied()
}

/// As its word, or as a number in hexadecimal.
struct Protocol(u16);

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match PROTOCOLS.iter().position(|&number| number == self.0) {
            Some(at) => f.write_str(PROTOCOL_WORDS[at + 1]),
            None => f.write_fmt(fmt!("{:#06x}", self.0)),
        }
    }
}

/// As its word, or as a number; `none` if it is not IP.
struct Transport(u8);

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match TRANSPORTS.iter().position(|&number| number == self.0) {
            Some(at) => f.write_str(TRANSPORT_WORDS[at + 1]),
            None if self.0 == 0 => f.write_str("none"),
            None => f.write_fmt(fmt!("{}", self.0)),
        }
    }
}
