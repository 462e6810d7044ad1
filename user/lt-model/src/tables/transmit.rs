// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Packets to send, from `net_dev_queue` until the driver has taken them.
//!
//! ```text
//! net_dev_queue                     net_dev_start_xmit                net_dev_xmit
//!      |------ queue of the device ------->|------ driver's function ----->|
//!      `- freed: dropped, or cut into segments                             `- busy: back into the queue
//! ```
//!
//! A packet is identified by its address and its device. At `net_dev_start_xmit`, which only perf records, it still
//! exists. At `net_dev_xmit`, it may have been sent and freed, and its address may be that of another packet:
//!
//! ```text
//! CPU 0   net_dev_queue A     driver: sends A                                 net_dev_xmit A
//! CPU 1                                         A is freed    net_dev_queue A
//! ```
//!
//! If `net_dev_start_xmit` is recorded, `net_dev_xmit` ends the packet that this thread passed to the driver. Otherwise
//! it ends a packet only if an event shows that the thread was outside of the driver after that packet was queued. An
//! event of the same device shows this, since no driver's function sends through its own device, and so does the start
//! or the end of a softirq, since drivers run with softirqs disabled.
//!
//! One error remains possible without `net_dev_start_xmit`: the packet may have been freed without an event, although
//! its driver's function has not returned. If a segment, which has no `net_dev_queue`, then gets its address, and has
//! its device and length, the end of the segment counts as the end of the packet: too early by at most the time until
//! the function returns.

use foldhash::HashMap;

use super::ground::{Ground, Mark};
use super::group::{Case, Extra, Object};
use super::step::{Packet, Seen};
use super::table::Table;
use crate::names::Name;

/// Results from here on mean that the driver did not take the packet (`NET_XMIT_MASK`).
const BUSY: i64 = 15;
/// Bytes of a VLAN tag, which may be inserted while the packet is queued.
const TAG: u64 = 4;
/// Minimum number of entries in [`Transmit::outside`] at which useless ones are removed.
const MANY: usize = 1024;
/// Maximum number of entries in [`Transmit::outside`].
const MOST: usize = 64 << 10;

/// A packet on its way to the driver.
#[derive(Debug, Clone, Copy)]
struct Queued {
    since: Mark,
    device: Name,
    len: u64,
    /// The thread that sent it, if known.
    tid: Option<i32>,
}

impl Queued {
    /// Whether a packet of this length may be this packet.
    fn is_like(&self, packet: &Packet<'_>) -> bool {
        packet.len == self.len || packet.len == self.len.saturating_add(TAG)
    }

    fn case(&self, ground: &mut Ground, seen: &Seen<'_>) -> Case {
        let object = Some(Object::Packet(self.device, None));
        ground.case((self.since.time, seen.time), seen.cpu, self.tid, object)
    }
}

/// A CPU, and the thread that it runs. A thread stays on its CPU while it is in a driver.
type Place = (u32, Option<i32>);

#[derive(Debug)]
pub(super) struct Transmit {
    pub(super) table: Table,
    /// Whether `net_dev_start_xmit` is recorded.
    starts: bool,
    /// The queued packets by address, each for one device: a device may pass its packet on to the device below it.
    queued: HashMap<u64, Vec<Queued>>,
    /// The packets that a driver is sending.
    sending: HashMap<(Place, u64, Name), Queued>,
    /// When a thread was last outside of the drivers of a device, or of all devices.
    outside: HashMap<(Place, Option<Name>), u64>,
    /// Number of entries in `outside` at which useless ones are removed.
    full: usize,
}

impl Transmit {
    pub(super) fn new(table: Table, starts: bool) -> Self {
        Self {
            table,
            starts,
            queued: HashMap::default(),
            sending: HashMap::default(),
            outside: HashMap::default(),
            full: MANY,
        }
    }

    fn place(ground: &Ground, seen: &Seen<'_>) -> Place {
        (seen.cpu, ground.who(seen))
    }

    /// Notes that the current thread is outside of the driver of a device, or of all drivers.
    pub(super) fn outside(&mut self, ground: &Ground, seen: &Seen<'_>, device: Option<Name>) {
        if self.starts {
            return;
        }
        if self.outside.len() >= self.full {
            self.forget();
        }
        let place = Self::place(ground, seen);
        self.outside.insert((place, device), seen.time);
    }

    /// Removes the entries of `outside` that are older than all queued packets. They show nothing about these packets,
    /// nor about later ones. If too many are left, removes the older half: a packet without an end stays queued, and
    /// would keep all later entries. A packet that needs a removed entry counts as not measured.
    fn forget(&mut self) {
        let since = |queued: &Queued| queued.since.time;
        let oldest = self.queued.values().flatten().map(since).min();
        let is_useful = |last: u64| oldest.is_some_and(|oldest| last >= oldest);
        self.outside.retain(|_, last| is_useful(*last));
        if self.outside.len() > MOST / 2 {
            let mut times: Vec<u64> = self.outside.values().copied().collect();
            let half = times.len() / 2;
            let middle = *times.select_nth_unstable(half).1;
            self.outside.retain(|_, last| *last > middle);
        }
        self.full = (2 * self.outside.len()).max(MANY);
    }

    /// Whether the current thread has been outside of the driver since `since`.
    fn was_outside(&self, place: Place, device: Name, since: Mark) -> bool {
        let was = |device| {
            let last = self.outside.get(&(place, device));
            last.is_some_and(|last| *last >= since.time)
        };
        place.1.is_some() && (was(Some(device)) || was(None))
    }

    fn take(&mut self, skb: u64, device: Name) -> Option<Queued> {
        let here = self.queued.get_mut(&skb)?;
        let place = here.iter().position(|queued| queued.device == device)?;
        let queued = here.remove(place);
        if here.is_empty() {
            self.queued.remove(&skb);
        }
        Some(queued)
    }

    fn put(&mut self, skb: u64, queued: Queued) {
        self.queued.entry(skb).or_default().push(queued);
    }

    /// Counts a packet whose end is missing.
    fn give_up(&mut self, ground: &mut Ground, time: u64, queued: &Queued) {
        let who = queued.tid.map(|tid| ground.named(tid));
        let why = ground.why_gone(queued.since);
        self.table.miss(time, who, why);
    }

    /// A packet is about to be queued.
    pub(super) fn queue(
        &mut self,
        ground: &mut Ground,
        seen: &Seen<'_>,
        packet: &Packet<'_>,
        tid: Option<i32>,
    ) {
        let device = ground.names.number(packet.device);
        let queued = Queued {
            since: ground.mark(seen.time),
            device,
            len: packet.len,
            tid,
        };
        if let Some(earlier) = self.take(packet.skb, device) {
            self.give_up(ground, seen.time, &earlier);
        }
        self.put(packet.skb, queued);
        self.outside(ground, seen, Some(device));
    }

    /// A packet is passed to the driver.
    pub(super) fn start(&mut self, ground: &mut Ground, seen: &Seen<'_>, packet: &Packet<'_>) {
        if !self.starts {
            return;
        }
        let device = ground.names.number(packet.device);
        let place = Self::place(ground, seen);
        let key = (place, packet.skb, device);
        // A packet without net_dev_queue, such as a segment, may be at the address of an earlier packet.
        if let Some(earlier) = self.sending.remove(&key) {
            self.give_up(ground, seen.time, &earlier);
        }
        let Some(queued) = self.take(packet.skb, device) else {
            return;
        };
        if queued.is_like(packet) {
            self.sending.insert(key, queued);
        } else {
            self.give_up(ground, seen.time, &queued);
        }
    }

    /// The driver's function has returned.
    pub(super) fn end(&mut self, ground: &mut Ground, seen: &Seen<'_>, packet: &Packet<'_>) {
        let device = ground.names.number(packet.device);
        let place = Self::place(ground, seen);
        let queued = match self.starts {
            true => self.sending.remove(&(place, packet.skb, device)),
            false => self.take(packet.skb, device),
        };
        let Some(queued) = queued else {
            return self.outside(ground, seen, Some(device));
        };
        let is_known = self.starts || self.was_outside(place, device, queued.since);
        self.outside(ground, seen, Some(device));
        let case = queued.case(ground, seen);
        if !is_known || !queued.is_like(packet) {
            let why = ground.why_gone(queued.since);
            return self.table.miss_case(&case, why);
        }
        if packet.result >= BUSY {
            self.table.note(&case, Extra::Requeues);
            return self.put(packet.skb, queued);
        }
        match ground.spans(queued.since) {
            true => self.table.miss_case(&case, ground.why()),
            false => self.table.measure(&case),
        }
        if packet.result != 0 {
            self.table.note(&case, Extra::Errors);
        }
    }

    /// Forgets the packet at an address, because it is freed.
    pub(super) fn free(
        &mut self,
        ground: &mut Ground,
        seen: &Seen<'_>,
        skb: u64,
        is_dropped: bool,
    ) {
        for queued in self.queued.remove(&skb).unwrap_or_default() {
            if ground.spans(queued.since) {
                self.give_up(ground, seen.time, &queued);
                continue;
            }
            let case = queued.case(ground, seen);
            let which = match is_dropped {
                true => Extra::Dropped,
                false => Extra::Consumed,
            };
            self.table.note(&case, which);
        }
    }

    pub(super) fn finish(&mut self, ground: &Ground) {
        let queued = self.queued.values().flatten();
        for Queued { since, tid, .. } in queued.chain(self.sending.values()) {
            let who = tid.map(|tid| (tid, None));
            self.table
                .miss_open(since.time, who, ground.why_since(*since));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::group::{By, Kind};
    use super::super::step::Step;
    use super::super::table::Range;
    use super::*;

    #[test]
    fn only_times_before_all_queued_packets_are_forgotten() {
        let mut ground = Ground::default();
        let device = ground.names.number(b"eth0");
        let table = Table::new(Kind::Transmit, Range::all(0), By::Device);
        let mut transmit = Transmit::new(table, false);
        let place = |tid: i32| (0, Some(tid));
        for (tid, time) in (0..).zip(0..MANY as u64) {
            transmit.outside.insert((place(tid), Some(device)), time);
        }
        let since = ground.mark(1000);
        let queued = Queued {
            since,
            device,
            len: 100,
            tid: None,
        };
        transmit.put(1, queued);
        transmit.forget();
        assert_eq!(transmit.outside.len(), MANY - 1000);
        assert!(transmit.was_outside(place(1000), device, since));
        transmit.take(1, device);
        transmit.forget();
        assert_eq!((transmit.outside.len(), transmit.full), (0, MANY));
    }

    #[test]
    fn a_packet_without_an_end_does_not_keep_all_times() {
        let mut ground = Ground::default();
        let device = ground.names.number(b"eth0");
        let table = Table::new(Kind::Transmit, Range::all(0), By::Device);
        let mut transmit = Transmit::new(table, false);
        let since = ground.mark(0);
        let never = Queued {
            since,
            device,
            len: 100,
            tid: None,
        };
        transmit.put(1, never);
        let end = 3 * MOST as u64;
        for (tid, time) in (0..).zip(0..end) {
            let seen = Seen {
                time,
                cpu: 0,
                tid: Some(tid),
                process: None,
                file: None,
                step: Step::File,
            };
            transmit.outside(&ground, &seen, Some(device));
            assert!(transmit.outside.len() <= MOST);
            // The packet that was queued just before is still measured, even if entries were removed since.
            let before = ground.mark(time.saturating_sub(1));
            let last = (0, Some((tid - 1).max(0)));
            assert!(transmit.was_outside(last, device, before));
        }
    }
}
