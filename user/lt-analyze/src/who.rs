// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Who had the processor that a thread waited for.

use lt_model::{Model, Use};

use crate::path::{Cause, Piece};

/// What the processor did most while a thread waited for it, and how long; `None` for other pieces, and when it is not
/// known which processor that was.
#[must_use]
pub fn instead(model: &Model, piece: &Piece) -> Option<(Use, u64)> {
    if !matches!(piece.cause, Cause::Waiting | Cause::Preempted) {
        return None;
    }
    let processor = model.processors.get(piece.cpu? as usize)?;
    let mut sums: Vec<(Use, u64)> = Vec::new();
    for stretch in processor.between(piece.begin, piece.end) {
        let took = stretch.end.min(piece.end) - stretch.begin.max(piece.begin);
        match sums.iter_mut().find(|(used, _)| *used == stretch.used) {
            Some((_, sum)) => *sum += took,
            None => sums.push((stretch.used, took)),
        }
    }
    sums.into_iter().max_by_key(|(_, took)| *took)
}
