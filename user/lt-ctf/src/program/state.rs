// SPDX-License-Identifier: GPL-2.0 OR MIT

//! State while a packet is read: the values that lengths and selectors are taken from, the anchors of the current
//! event, and the values in headers.

use crate::bits;
use crate::schema::Role;

/// State while a packet is read.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The values of lengths and selectors.
    pub(crate) slots: Vec<u64>,
    /// Positions of the anchors of the current event, in bits of the window.
    pub(crate) anchors: Vec<u64>,
    pub(crate) roles: Roles,
    pub(crate) fuel: u32,
}

/// Values in headers.
#[derive(Debug, Default, Clone)]
pub(crate) struct Roles {
    pub(crate) magic: Option<u64>,
    pub(crate) uuid: Option<[u8; 16]>,
    pub(crate) stream_class: Option<u64>,
    pub(crate) stream: Option<u64>,
    pub(crate) total: Option<u64>,
    pub(crate) content: Option<u64>,
    pub(crate) end: Option<u64>,
    pub(crate) number: Option<u64>,
    pub(crate) discarded: Option<u64>,
    pub(crate) event: Option<u64>,
    /// The value of the clock, in cycles.
    pub(crate) time: u64,
    pub(crate) timed: bool,
}

/// Updates the clock with `value`, its new lowest `len` bits. With fewer than 64 bits, the clock never goes back.
#[inline]
pub(crate) fn tick(clock: u64, value: u64, len: u32) -> u64 {
    let mask = bits::mask(len);
    let new = (clock & !mask) | value;
    if new < clock && len < 64 {
        new.wrapping_add(mask.wrapping_add(1))
    } else {
        new
    }
}

impl Roles {
    pub(super) fn take(&mut self, role: Role, value: u64, len: u32) {
        match role {
            Role::Magic => self.magic = Some(value),
            Role::Uuid => {}
            Role::StreamClass => self.stream_class = Some(value),
            Role::Stream => self.stream = Some(value),
            Role::PacketTotal => self.total = Some(value),
            Role::PacketContent => self.content = Some(value),
            Role::PacketEnd => self.end = Some(tick(self.time, value, len)),
            Role::PacketNumber => self.number = Some(value),
            Role::Discarded => self.discarded = Some(value),
            Role::EventClass => self.event = Some(value),
            Role::Time => {
                self.time = tick(self.time, value, len);
                self.timed = true;
            }
        }
    }
}
