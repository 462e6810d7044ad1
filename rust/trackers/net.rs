// SPDX-License-Identifier: GPL-2.0

//! `net`: how long received packets take to reach their reader, or to be consumed or dropped.
//!
//! ```text
//!   device      netif_receive_skb                                   end
//!   ------------------>|--- protocols --- queue of the socket --->| copied to user space, by its reader
//!                      |------------------------------------------| consumed
//!                      |------------------------------------------| dropped, for a reason
//!                      |<---------------- delay ----------------->|
//! ```
//!
//! The key is the address of the packet. Addresses are reused, even for packets that are sent, and
//! an event whose end is missed would stay live until another packet at its address ends. So each
//! end must be seen:
//!
//! - tracepoints report most copied, consumed and dropped packets. Data that TCP has read,
//!   acknowledgements, and datagrams after the copy are freed by functions without a tracepoint,
//!   which are traced instead;
//! - a packet that is appended to its predecessor in a socket's queue is `gone` (`merged`): its
//!   data will be read with that packet;
//! - a packet that is received again, by another device or namespace, starts again (`replaced`);
//! - a received packet that a tunnel or a veth pair passes to GRO is `gone` (`gro`): if GRO merges
//!   the packet, no tracepoint shows its end. A packet that GRO delivers is received again, and
//!   starts then.
//!
//! Only starts are filtered. Ends without an event are not counted: most are ends of packets that
//! were sent, not received.
//!
//! # Contexts
//!
//! See sys/net.rs: usually softirqs, preemptible on PREEMPT_RT, so each probe takes the guard.

mod packet;

use self::packet::{show_reason, Protocol, Transport};
use super::declare::*;
use crate::{
    record::{self, Location, Name16},
    sys::{
        net::{self, End, Packet, Received},
        task, //
    },
};

/// The ends of a packet.
const ENDS: [&str; 4] = ["none", "copied", "consumed", "dropped"];
const COPIED: u8 = 1;
const CONSUMED: u8 = 2;
const DROPPED: u8 = 3;

tracker! {
    net: "received packets, until copied to user space, consumed or dropped (key: the packet)";
    key: 1;
    threshold: 10_000_000;
    counters {
        /// Packets copied to user space; included in `ended`.
        copied,
        /// Packets consumed; included in `ended`.
        consumed,
        /// Packets dropped; included in `ended`.
        dropped,
        /// Packets that became part of another packet; included in `gone`.
        merged,
        /// Received packets that were passed to GRO, to be merged or received again; included in
        /// `gone`.
        gro,
    }
    params {
        dev: ParamKind::NetDevice => 0,
            "only packets that this network device receives, in any namespace";
        protocol: ParamKind::Word(&packet::PROTOCOL_WORDS) => 0, "only packets of this protocol";
        transport: ParamKind::Word(&packet::TRANSPORT_WORDS) => 0,
            "only IP packets of this transport protocol";
    }
    keeps: [5];
    stored: skb dev ifindex netns len protocol transport end drop_reason location;
    alert {
        /// 16 hexadecimal digits that stand for the packet, as %p prints its address.
        skb: Address at 0,
        /// The device that received it.
        dev: Name16 at 1,
        /// The number of that device.
        ifindex: u32 at 3:32,
        /// The network namespace in which the device has this name and number.
        netns: u32 at 5,
        /// The protocol: ip, ipv6, arp, or the Ethernet type, 0x and 4 digits.
        protocol: Protocol at 4:16,
        /// The transport protocol: tcp, udp, icmp, icmpv6, sctp, or a number, also the number of an
        /// IPv6 extension header; none if it is not IP, or IPv6 with hop-by-hop options.
        transport: Transport at 4,
        /// The length in bytes, without the link header.
        len: u32 at 3,
        /// How it ended: copied, consumed, dropped; none with a timeout.
        end: u8 at 6:32 in ENDS if alert,
        /// `drop_reason`, `location`: only if it was dropped: why, by the kernel's name or a
        /// number, and the function that dropped it.
        drop_reason: u32 at 6 if alert => show_reason,
        /// Where the packet was dropped.
        location: Location at 7 if traced,
    }
    attach: net::Attachment<Probes> = net::Attachment::new, net::missing::<Probes>;
    impl {
        const LABELS: labels::Rules = labels::Rules {
            has_owner: false,
            // Both are known only at the end.
            excluded: &["end", "drop_reason"],
            ..labels::Rules::ALL
        };

        const IS_OF_TASKS: bool = true;

        fn owner(_: &[u64; WORDS]) -> Owner {
            Owner::default()
        }
    }
}

impl Detail {
    /// Returns the fields of an event. An event keeps the words of the fields except the first,
    /// which is the key.
    fn of(key: &[u64; 1], data: &[u64; WORDS]) -> Self {
        record::keyed(key, data)
    }

    fn of_received(packet: &Received) -> Self {
        Self {
            dev: packet.dev,
            ifindex: packet.ifindex,
            netns: packet.netns,
            protocol: Protocol(packet.protocol),
            transport: Transport(packet.transport),
            len: packet.len,
            ..Self::default()
        }
    }

    fn set_end(&mut self, end: End) {
        self.end = match end {
            End::Copied => COPIED,
            End::Consumed => CONSUMED,
            End::Dropped { reason, location } => {
                (self.drop_reason, self.location) = (reason, Location(location));
                DROPPED
            }
        };
    }
}

impl Probes {
    fn is_wanted(&self, packet: &Received) -> bool {
        let dev = self.core.halves(PARAM_DEV);
        let protocol = packet::protocol(self.core.value(PARAM_PROTOCOL));
        let transport = packet::transport(self.core.value(PARAM_TRANSPORT));
        (dev == [0; 2] || dev == packet.dev)
            && protocol.is_none_or(|wanted| wanted == packet.protocol)
            && transport.is_none_or(|wanted| wanted == packet.transport)
    }

    /// Drops the event of a packet, and counts it. Does nothing if the packet is not tracked.
    #[inline(always)]
    fn forget(&self, packet: u64, counter: usize) {
        let guard = Kernel::guard();
        let engine = self.core.engine();
        if engine
            .update(&guard, &[packet], |_| Verdict::Gone)
            .is_some()
        {
            self.core.count_extra(&guard, counter);
        }
    }
}

impl net::Observer for Probes {
    fn received(&self, packet: &Packet) {
        let guard = Kernel::guard();
        let engine = self.core.engine();
        let received = packet.describe();
        if !self.is_wanted(&received) {
            engine.filtered(&guard);
            return;
        }
        let [_, data @ ..] = Detail::of_received(&received).words::<{ 1 + WORDS }>();
        engine.event_in_unique(&guard, &[packet.id()], Kernel::now(), &data);
    }

    fn ended(&self, packet: u64, end: End) {
        let guard = Kernel::guard();
        let engine = self.core.engine();
        let ended = engine.event_out_if_known(
            &guard,
            &[packet],
            Kernel::now,
            |_| true,
            |late| {
                let owner = task::current().map_or(Owner::default(), |task| Owner::from(&task));
                let mut detail = Detail::of(&late.key, &late.data);
                detail.set_end(end);
                report::<_, _, _, Tracked>(&self.core, &guard, late, owner, detail);
            },
        );
        if ended.is_some() {
            let counter = match end {
                End::Copied => COUNT_COPIED,
                End::Consumed => COUNT_CONSUMED,
                End::Dropped { .. } => COUNT_DROPPED,
            };
            self.core.count_extra(&guard, counter);
        }
    }

    fn merged(&self, packet: u64) {
        self.forget(packet, COUNT_MERGED);
    }

    fn passed_to_gro(&self, packet: u64) {
        self.forget(packet, COUNT_GRO);
    }
}
