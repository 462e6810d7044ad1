// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Sums up the pieces of a path by thread and cause.

use foldhash::HashMap;

use crate::ThreadId;

use super::cause::Cause;
use super::path::Piece;

/// The pieces of a path of one thread and one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// The thread.
    pub thread: ThreadId,
    /// The cause.
    pub cause: Cause,
    /// Total time, ns.
    pub time: u64,
    /// Number of pieces.
    pub count: u64,
    /// Length of the longest piece, ns.
    pub longest: u64,
}

/// Sums up the pieces by thread and cause, longest total first.
#[must_use]
pub fn causes(pieces: &[Piece]) -> Vec<Sum> {
    let mut sums: Vec<Sum> = Vec::new();
    let mut places = HashMap::default();
    for piece in pieces {
        let (thread, cause) = (piece.thread, piece.cause);
        let place = *places.entry((thread, cause)).or_insert_with(|| {
            sums.push(Sum {
                thread,
                cause,
                time: 0,
                count: 0,
                longest: 0,
            });
            sums.len() - 1
        });
        let sum = &mut sums[place];
        let took = piece.end - piece.begin;
        sum.time += took;
        sum.count += 1;
        sum.longest = sum.longest.max(took);
    }
    // Stable: equal times stay in the order of the path.
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.time));
    sums
}
