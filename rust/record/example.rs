// SPDX-License-Identifier: GPL-2.0

use crate::record::{fields, record, Name16};
use kernel::prelude::*;

const RETURNS: [&str; 2] = ["none", "handled"];

/// The lower twelve bits of a status register, shown in hexadecimal.
#[derive(Clone, Copy, Default)]
pub(crate) struct Status(pub(crate) u16);

fields! {
    Status, 12, |it| (it.0 & 0xfff).into(), |bits| Status(bits as u16 & 0xfff), fmt!("{:#x}", it.0);
}

record! {
    /// The fields of an alert about an interrupt.
    pub(crate) struct Detail {
        /// The number of the interrupt.
        irq: u32 at 0,
        /// Whether it is one of the first sixteen: not stored, since it follows from `irq`.
        isa = |it, _| u8::from(it.irq < 16),
        /// The CPU that it ran on, `cpu` in the trace event.
        cpu: u16 at 0:32 as on,
        /// The name of the handler.
        action: Name16 at 1,
        /// The device's status.
        status: Status at 0:49,
        /// The handler's result, if it has returned.
        ret: bool at 0:48 in RETURNS if end,
    }
}
