// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Packets: in the backlog of a CPU, from reception to their reader, as the tracker `net` measures them, and on their
//! way to a driver (`transmit.rs`).
//!
//! ```text
//! netif_rx               netif_receive_skb                      skb_copy_datagram_iovec, consume_skb,
//!    |------ backlog ------->|------ protocols, socket ------>| kfree_skb, or a function that frees it
//! ```
//!
//! A packet is identified by the address of its `sk_buff`, which another packet may get as soon as this one is freed.
//! So an end belongs to a start only if no free in between can be missing:
//!
//! - A packet leaves a backlog when it is received, or dropped by `kfree_skb`. The device that receives it, and its
//!   length, must be those of the start.
//! - Acknowledgements, data that TCP has read or merged, and datagrams are freed by functions without a tracepoint, and
//!   `skb_copy_datagram_iovec` also reports packets of Unix sockets. So received packets are followed only if the calls
//!   of these functions are recorded ([`PacketEvents::frees`]).
//! - GRO frees the packets that it merges, by yet other functions. Usually, they have not been received yet. A tunnel or
//!   a veth pair passes packets to GRO that another device has received; such a packet is forgotten at
//!   `napi_gro_receive_entry`, and received again unless it is merged.
//! - perf enables one event after another, on one CPU after another. A packet that is received before all are enabled may
//!   be freed unseen. So packets are followed only some time after the first event ([`PacketEvents::settle`]).
//!
//! An end without a start is not counted: most packets are received without a backlog, and most frees are of packets
//! that were sent.

use foldhash::{HashMap, HashSet};

use super::Machine;
use super::ground::{Ground, Mark};
use super::group::{By, Extra, Kind, Object};
use super::step::{Packet, PacketEnd, PacketStage, Seen, Step};
use super::table::{Range, Table, Why};
use super::transmit::Transmit;
use crate::event::What;
use crate::names::Name;

/// The recorded events that show the ends of packets, and their threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketEvents {
    /// `net_dev_start_xmit`.
    pub starts: bool,
    /// Every end of a received packet, with the calls of the functions that free a packet without a tracepoint, and with
    /// `napi_gro_receive_entry`.
    pub frees: bool,
    /// Starts and ends of softirqs. Without them, no thread is known to have sent or read a packet: a softirq may have
    /// interrupted it. Interrupt handlers need not be recorded, since few drivers pass packets on in them.
    pub softirqs: bool,
    /// Time from the first event until all events are certainly recorded, ns.
    pub settle: u64,
}

/// A packet in a backlog.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    since: Mark,
    device: Name,
    len: u64,
    /// The thread that sent it, if known.
    tid: Option<i32>,
}

/// A packet that was received.
#[derive(Debug, Clone, Copy)]
struct Received {
    since: Mark,
    device: Name,
}

#[derive(Debug)]
pub(super) struct Packets {
    backlog: Table,
    receive: Table,
    transmit: Transmit,
    events: PacketEvents,
    /// The time of the first event.
    first: Option<u64>,
    /// By the address of the packet.
    waiting: HashMap<u64, Waiting>,
    received: HashMap<u64, Received>,
    /// Whether a CPU runs a softirq, if known.
    in_softirq: HashMap<u32, bool>,
    /// The CPUs that run an interrupt handler.
    in_handler: HashSet<u32>,
    /// CPUs and threads that were preempted in a softirq, as on PREEMPT_RT.
    preempted: HashSet<(u32, i32)>,
}

impl Packets {
    pub(super) fn new(range: Range, by: Option<By>, events: PacketEvents) -> Self {
        let by = by.unwrap_or(By::Device);
        Self {
            backlog: Table::new(Kind::Backlog, range, by),
            receive: Table::new(Kind::Receive, range, by),
            transmit: Transmit::new(Table::new(Kind::Transmit, range, by), events.starts),
            events,
            first: None,
            waiting: HashMap::default(),
            received: HashMap::default(),
            in_softirq: HashMap::default(),
            in_handler: HashSet::default(),
            preempted: HashSet::default(),
        }
    }

    /// The current thread, unless a handler has interrupted it, or a softirq may have.
    fn who(&self, ground: &Ground, seen: &Seen<'_>) -> Option<i32> {
        let is_in_softirq = self.in_softirq.get(&seen.cpu) != Some(&false);
        let is_interrupted = is_in_softirq || self.in_handler.contains(&seen.cpu);
        ground.who(seen).filter(|_| !is_interrupted)
    }

    /// Notes whether the CPU runs a softirq, if their starts and ends are recorded.
    fn note(&mut self, cpu: u32, in_softirq: bool) {
        if self.events.softirqs {
            self.in_softirq.insert(cpu, in_softirq);
        }
    }

    /// Notes whether the CPU runs an interrupt handler.
    fn handler(&mut self, cpu: u32, runs: bool) {
        match runs {
            true => self.in_handler.insert(cpu),
            false => self.in_handler.remove(&cpu),
        };
    }

    /// A softirq starts or ends, so the thread that it may have interrupted is not in a driver.
    fn softirq(&mut self, ground: &Ground, seen: &Seen<'_>, starts: bool) {
        self.note(seen.cpu, starts);
        self.transmit.outside(ground, seen, None);
    }

    /// A CPU switches to another thread. A softirq that is preempted continues when its thread does.
    fn switch(&mut self, cpu: u32, prev: i32, next: i32) {
        // The end of a handler may not be recorded.
        self.handler(cpu, false);
        if self.in_softirq.get(&cpu) == Some(&true) {
            self.preempted.insert((cpu, prev));
        }
        let continues = self.preempted.remove(&(cpu, next));
        self.note(cpu, continues);
    }

    fn wait(&mut self, ground: &mut Ground, seen: &Seen<'_>, packet: &Packet<'_>) {
        let waiting = Waiting {
            since: ground.mark(seen.time),
            device: ground.names.number(packet.device),
            len: packet.len,
            tid: self.who(ground, seen),
        };
        if let Some(earlier) = self.waiting.insert(packet.skb, waiting) {
            // The end of the earlier packet at this address is missing.
            self.give_up(ground, seen.time, &earlier);
        }
    }

    /// Counts a packet in a backlog whose end is missing.
    fn give_up(&mut self, ground: &mut Ground, time: u64, waiting: &Waiting) {
        let who = waiting.tid.map(|tid| ground.named(tid));
        let why = ground.why_gone(waiting.since);
        self.backlog.miss(time, who, why);
    }

    fn receive(&mut self, ground: &mut Ground, seen: &Seen<'_>, packet: &Packet<'_>) {
        let device = ground.names.number(packet.device);
        if let Some(waiting) = self.waiting.remove(&packet.skb) {
            let object = Some(Object::Packet(waiting.device, None));
            let times = (waiting.since.time, seen.time);
            let case = ground.case(times, seen.cpu, waiting.tid, object);
            // Another packet, or the device was renamed.
            let is_other = (waiting.device, waiting.len) != (device, packet.len);
            if is_other || ground.spans(waiting.since) {
                let why = ground.why_gone(waiting.since);
                self.backlog.miss_case(&case, why);
            } else {
                self.backlog.measure(&case);
            }
        }
        if !self.events.frees {
            return;
        }
        // Any free would have been seen: an earlier packet at this address was passed on to this device.
        self.forget(ground, seen, packet.skb, Extra::Replaced);
        let since = ground.mark(seen.time);
        self.received.insert(packet.skb, Received { since, device });
    }

    /// Ends a received packet, if it is known.
    fn end(&mut self, ground: &mut Ground, seen: &Seen<'_>, skb: u64, end: PacketEnd) {
        let Some(received) = self.received.remove(&skb) else {
            return;
        };
        let who = self.who(ground, seen);
        let object = Some(Object::Packet(received.device, Some(end)));
        let times = (received.since.time, seen.time);
        let case = ground.case(times, seen.cpu, who, object);
        match ground.spans(received.since) {
            true => self.receive.miss_case(&case, ground.why()),
            false => self.receive.measure(&case),
        }
    }

    /// Forgets a received packet that was passed on to another device, or became a part of another packet, with which
    /// its data will be read.
    fn forget(&mut self, ground: &mut Ground, seen: &Seen<'_>, skb: u64, which: Extra) {
        let Some(received) = self.received.remove(&skb) else {
            return;
        };
        if ground.spans(received.since) {
            return self.receive.miss(seen.time, None, ground.why());
        }
        let object = Some(Object::Packet(received.device, None));
        let case = ground.case((seen.time, seen.time), seen.cpu, None, object);
        self.receive.note(&case, which);
    }

    /// Forgets a packet in a backlog, or on its way to the driver, because it is freed.
    fn free(&mut self, ground: &mut Ground, seen: &Seen<'_>, skb: u64, is_dropped: bool) {
        self.transmit.free(ground, seen, skb, is_dropped);
        let Some(waiting) = self.waiting.remove(&skb) else {
            return;
        };
        if !is_dropped || ground.spans(waiting.since) {
            // A packet that is still in a backlog can only be dropped, so this is another packet.
            return self.give_up(ground, seen.time, &waiting);
        }
        let object = Some(Object::Packet(waiting.device, None));
        let case = ground.case((seen.time, seen.time), seen.cpu, waiting.tid, object);
        self.backlog.note(&case, Extra::Dropped);
    }

    fn step(&mut self, ground: &mut Ground, seen: &Seen<'_>, packet: &Packet<'_>) {
        let skb = packet.skb;
        match packet.stage {
            PacketStage::Backlog => self.wait(ground, seen, packet),
            PacketStage::Received => self.receive(ground, seen, packet),
            PacketStage::Copied => self.end(ground, seen, skb, PacketEnd::Copied),
            PacketStage::Consumed | PacketStage::Freed => {
                self.end(ground, seen, skb, PacketEnd::Consumed);
                self.free(ground, seen, skb, false);
            }
            PacketStage::Dropped => {
                self.end(ground, seen, skb, PacketEnd::Dropped);
                self.free(ground, seen, skb, true);
            }
            PacketStage::Merged => {
                self.forget(ground, seen, skb, Extra::Merges);
                self.free(ground, seen, skb, false);
            }
            PacketStage::Gro => self.forget(ground, seen, skb, Extra::Replaced),
            PacketStage::Queued => {
                let tid = self.who(ground, seen);
                self.transmit.queue(ground, seen, packet, tid);
            }
            PacketStage::Started => self.transmit.start(ground, seen, packet),
            PacketStage::Sent => self.transmit.end(ground, seen, packet),
        }
    }
}

impl Machine for Packets {
    fn see(&mut self, ground: &mut Ground, seen: &Seen<'_>) {
        let first = *self.first.get_or_insert(seen.time);
        match seen.step {
            Step::Packet(_) if seen.time - first < self.events.settle => {}
            Step::Packet(packet) => self.step(ground, seen, &packet),
            Step::Known(What::Irq { .. }) => self.handler(seen.cpu, true),
            Step::Known(What::IrqEnd { .. }) => self.handler(seen.cpu, false),
            Step::Known(What::Softirq { .. }) => self.softirq(ground, seen, true),
            Step::Known(What::SoftirqEnd { .. }) => self.softirq(ground, seen, false),
            Step::Known(What::Switch { prev, next, .. }) => self.switch(seen.cpu, prev, next),
            _ => {}
        }
    }

    fn lost(&mut self, _ground: &mut Ground, _time: u64, cpu: u32, _why: Why) {
        self.in_softirq.remove(&cpu);
        self.in_handler.remove(&cpu);
        self.preempted.retain(|(of, _)| *of != cpu);
    }

    fn finish(&mut self, ground: &mut Ground, _time: u64) {
        for waiting in self.waiting.values() {
            let (since, who) = (waiting.since, waiting.tid.map(|tid| (tid, None)));
            self.backlog
                .miss_open(since.time, who, ground.why_since(since));
        }
        for Received { since, .. } in self.received.values() {
            self.receive
                .miss_open(since.time, None, ground.why_since(*since));
        }
        self.transmit.finish(ground);
        if ground.absent.is_some() {
            self.growing().into_iter().for_each(Table::give_up);
        }
    }

    fn growing(&mut self) -> Vec<&mut Table> {
        vec![
            &mut self.backlog,
            &mut self.receive,
            &mut self.transmit.table,
        ]
    }

    fn tables(self: Box<Self>) -> Vec<Table> {
        vec![self.backlog, self.receive, self.transmit.table]
    }
}
