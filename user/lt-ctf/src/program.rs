// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Skips the fields of an event, by a short list of steps from their start to their end. The list
//! is made once for each class.
//!
//! ```text
//! sched_switch           char[16] i32 i32 i64 char[16] i32 i32   ->  448 bits
//! syscall_entry_openat   i32 string i32 u16                      ->  32 bits; Text, anchor 1, 48 bits
//! ```
//!
//! Consecutive fields of fixed size are one step. Each such field is at a fixed distance from an
//! *anchor*: the start of the event's fields, or the end of the last field or padding of variable
//! size. A step that needs bytes beyond the window stops with [`Stop::More`]; the caller reads more
//! and runs the program again.

mod lower;
mod state;
mod walk;
mod window;

pub(crate) use self::lower::lower;
pub(crate) use self::state::{Roles, State, tick};
pub(crate) use self::walk::{is_there, keep, leb, selected, slot_of, walk};
pub(crate) use self::window::{Stop, Window, align};

use self::walk::array;
use crate::schema::{Op, Program, Schema};

/// Maximum number of fields walked in one event: without a limit, a small trace could have huge
/// arrays of empty arrays.
pub(crate) const FUEL: u32 = 1 << 22;

impl Program {
    /// Runs the program from `pos`; returns where the event ends.
    #[inline]
    pub(crate) fn run(
        &self,
        schema: &Schema,
        window: Window<'_>,
        pos: u64,
        state: &mut State,
    ) -> Result<u64, Stop> {
        if let Some(first) = state.anchors.first_mut() {
            *first = pos;
        }
        let mut pos = window.after(pos, self.head)?;
        for step in &self.steps {
            pos = match step.op {
                Op::Align(mask) => align(pos, mask + 1),
                Op::Text => window.text(pos, 1)?,
                Op::Keep(int, slot) => {
                    let end = window.after(pos, u64::from(int.len))?;
                    keep(&mut state.slots, slot, window.integer(pos, int)?);
                    end
                }
                Op::Bytes(slot) => {
                    window.after(pos, slot_of(&state.slots, slot).saturating_mul(8))?
                }
                Op::Array { slot, stride, own } => {
                    let count = slot_of(&state.slots, slot);
                    window.after(pos, array(count, stride, own))?
                }
                Op::Node(node) => walk(schema, window, node, pos, state)?,
            };
            // There are as many anchors as in the largest program.
            if step.anchor > 0
                && let Some(place) = state.anchors.get_mut(step.anchor as usize)
            {
                *place = pos;
            }
            pos = window.after(pos, step.skip)?;
        }
        Ok(pos)
    }
}
