// SPDX-License-Identifier: GPL-2.0

//! `net`: how long received packets take to their reader, or to any other end.
//!
//! ```text
//!   device      netif_receive_skb                                   end
//!   ------------------>|--- protocols --- queue of the socket --->| copied to user space, by its reader
//!                      |------------------------------------------| consumed
//!                      |------------------------------------------| dropped, for a reason
//!                      |<---------------- delay ----------------->|
//! ```
//!
//! The key is the packet, by its address. An address is reused, also for packets that are sent, so
//! each end has to be seen, or the event would stay live until the end of another packet:
//!
//! - tracepoints report copied, consumed and dropped packets, but not all: data that TCP has read,
//!   acknowledgements, and datagrams after the copy are freed by functions, which are followed
//!   instead;
//! - a packet that is appended to the one before it in a socket's queue is `gone` (`merged`): its
//!   data will be read with the other's;
//! - a packet that is received again, by another device or namespace, begins again (`replaced`).
//!
//! Begins are filtered. Most ends are of packets that were sent, not received: they are not
//! counted.
//!
//! # Contexts
//!
//! See sys/net.rs: mostly softirqs, preemptible on PREEMPT_RT, so each probe takes the guard.

mod packet;

use self::packet::{Detail, Skb, WORDS};
use super::tasks;
use crate::{
    alert::record::Owner,
    control::{Kind as ParamKind, Param},
    engine::{
        event::EventCopy,
        platform::Platform,
        tracker::{Late, Verdict},
    },
    instance::{
        common,
        kind::{all_right, Kind},
        params,
        probed::{self, Live, Probed},
        Core,
        Details, //
    },
    sys::{
        net::{self, Attachment, End, Packet, Received},
        platform::Kernel,
        task, //
    }, //
};
use kernel::{prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

const DEV: usize = common::COUNT;
const PROTOCOL: usize = DEV + 1;
const TRANSPORT: usize = PROTOCOL + 1;

static PARAMS: [Param; TRANSPORT + 1] = params(
    10_000_000,
    [
        Param {
            name: "dev",
            kind: ParamKind::NetDevice,
            default: 0,
            fixed: false,
            help: "only packets that this network device receives, in any namespace",
        },
        Param {
            name: "protocol",
            kind: ParamKind::Word(&packet::PROTOCOL_WORDS),
            default: 0,
            fixed: false,
            help: "only packets of this protocol",
        },
        Param {
            name: "transport",
            kind: ParamKind::Word(&packet::TRANSPORT_WORDS),
            default: 0,
            fixed: false,
            help: "only IP packets of this transport protocol",
        },
    ],
);

/// The entry in the list of trackers.
pub(crate) static KIND: Kind = Kind {
    name: "net",
    c_name: c"net",
    help: "received packets, until copied to user space, consumed or dropped (key: the packet)",
    params: &PARAMS,
    counters: &[tasks::READERS, "copied", "consumed", "dropped", "merged"],
    detail_words: Detail::WORDS,
    tail: None,
    detail: |alert, f| f.write_fmt(fmt!(" {}", Detail::from_words(&alert.detail))),
    check: all_right,
    missing: net::missing::<Probes>,
    create: Some(Probed::<Net, _, _>::create),
};

/// Our own counters, after the common one.
#[derive(Clone, Copy)]
enum Extra {
    /// Of ended: by each kind of end.
    Copied = 1,
    Consumed = 2,
    Dropped = 3,
    /// Of gone: became part of another one.
    Merged = 4,
}

struct Net;

type Probes = Live<Net, 1, WORDS>;

impl Probes {
    fn is_wanted(&self, packet: &Received) -> bool {
        let dev = self.core.halves(DEV);
        let protocol = packet::protocol(self.core.value(PROTOCOL));
        let transport = packet::transport(self.core.value(TRANSPORT));
        (dev == [0; 2] || dev == packet.dev)
            && protocol.is_none_or(|wanted| wanted == packet.protocol)
            && transport.is_none_or(|wanted| wanted == packet.transport)
    }
}

impl net::Observer for Probes {
    fn received(&self, packet: &Packet) {
        let guard = Kernel::guard();
        let tracker = self.core.tracker();
        let received = packet.describe();
        if !self.is_wanted(&received) {
            tracker.filtered(&guard);
            return;
        }
        let (key, skb) = ([packet.id()], Skb(received));
        tracker.event_in_unique(&guard, &key, Kernel::now(), &skb.to_words());
    }

    fn ended(&self, packet: u64, end: End) {
        let guard = Kernel::guard();
        let tracker = self.core.tracker();
        let known = tracker.event_out_if_known(
            &guard,
            &[packet],
            Kernel::now,
            |_| true,
            |late| {
                let owner = task::current().map_or(Owner::default(), |task| Owner::from(&task));
                let words = Detail::new(packet, Skb::from_words(&late.data), Some(end)).to_words();
                tasks::raise(&self.core, &guard, late, &Details { owner, words }, &[]);
            },
        );
        if known {
            let counter = match end {
                End::Copied => Extra::Copied,
                End::Consumed => Extra::Consumed,
                End::Dropped { .. } => Extra::Dropped,
            };
            self.core.count_extra(&guard, counter as usize);
        }
    }

    fn merged(&self, packet: u64) {
        let guard = Kernel::guard();
        let tracker = self.core.tracker();
        if tracker
            .update(&guard, &[packet], |_| Verdict::Gone)
            .is_some()
        {
            self.core.count_extra(&guard, Extra::Merged as usize);
        }
    }
}

impl probed::Probes<1, WORDS> for Net {
    type Attachment = Attachment<Probes>;

    fn kind() -> &'static Kind {
        &KIND
    }

    fn attach(live: Arc<Probes>) -> Result<Self::Attachment> {
        Attachment::new(live)
    }

    fn owner(_: &[u64; WORDS]) -> Owner {
        Owner::default()
    }

    fn details(_: &Core<1, WORDS>, late: &Late<1, WORDS>, _: u64) -> Option<Details> {
        let [packet] = late.key;
        let detail = Detail::new(packet, Skb::from_words(&late.data), None);
        Some(Details {
            owner: Owner::default(),
            words: detail.to_words(),
        })
    }

    fn show_fields(_: &Core<1, WORDS>, event: &EventCopy<1, WORDS>, out: &SeqFile) {
        let [packet] = event.key;
        let detail = Detail::new(packet, Skb::from_words(&event.data), None);
        seq_print!(out, "{} {}", Owner::default(), detail.named());
    }
}
