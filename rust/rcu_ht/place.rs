// SPDX-License-Identifier: GPL-2.0

//! Where in the table an event is, as the event knows it and as a search has found it.
//!
//! Pure functions, for any context.

use super::{Bucket, SLOTS};
use core::ptr;

/// Where an event sits: the address of its bucket, whose low bits are free, and the slot. Kept by
/// the event, given back to [`super::Table::remove`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place(u64);

impl Place {
    /// As a word, for the event to keep.
    #[inline(always)]
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    /// Back from [`Place::to_bits`].
    #[inline(always)]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline(always)]
    pub(super) fn of(bucket: &Bucket, slot: usize) -> Self {
        let address = ptr::from_ref(bucket).expose_provenance() as u64;
        // A bucket is aligned to more than there are slots.
        Self(address | slot as u64)
    }

    #[inline(always)]
    pub(super) fn bucket(self) -> *const Bucket {
        ptr::with_exposed_provenance((self.0 & !(SLOTS as u64 - 1)) as usize)
    }

    #[inline(always)]
    pub(super) fn slot(self) -> u32 {
        self.0 as u32 & (SLOTS as u32 - 1)
    }
}

/// No place.
pub(super) const NOWHERE: Place = Place(0);

/// A slot that may hold the event that is searched for.
#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    /// The cell.
    pub(crate) cell: u32,
    /// The slot in which it was seen, if that is in the home bucket of the current level.
    pub(super) seen: Place,
}

impl Candidate {
    /// A cell of which it is not known where it sits.
    pub(crate) fn anywhere(cell: u32) -> Self {
        Self {
            cell,
            seen: NOWHERE,
        }
    }
}
