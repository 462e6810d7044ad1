// SPDX-License-Identifier: GPL-2.0

//! The place of an event in the table: as its cell keeps it, and as a search has found it.
//!
//! Pure functions, for any context.

use super::{Bucket, SLOTS};
use crate::{
    engine::freelist::{Index, Link},
    sys::memory::ADDRESS_MARK,
};
use core::{marker::PhantomData, ptr};

/// The place of an event: the address of its bucket, whose low bits are free, and the slot. Created
/// only by the table, and kept in the cell's link.
///
/// # Invariants
///
/// The highest bit is set, or the place is [`NOWHERE`] or from the link of a cell that is not in
/// the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place(u64);

impl Place {
    #[inline(always)]
    pub(super) fn of(bucket: &Bucket, slot: usize) -> Self {
        let address = ptr::from_ref(bucket).expose_provenance() as u64;
        // The alignment of a bucket is greater than the number of slots.
        // INVARIANT: An address with the mark has the bit.
        Self(address | slot as u64 | ADDRESS_MARK)
    }

    /// Stores the place in the link of the cell at this place.
    #[inline(always)]
    pub(super) fn keep_in(self, link: &Link) {
        // SAFETY: Only places made by `of` are kept, and they have the highest bit set.
        unsafe { link.keep(self.0) };
    }

    /// Returns the place in a link. For a cell that is not in the table it may be anything.
    #[inline(always)]
    pub(super) fn kept_in(link: &Link) -> Self {
        // INVARIANT: Kept by `keep_in`, or the cell is not in the table.
        Self(link.kept())
    }

    #[inline(always)]
    pub(super) fn bucket(self) -> *const Bucket {
        let address = self.0 & !((SLOTS as u64 - 1) | ADDRESS_MARK);
        ptr::with_exposed_provenance(address as usize)
    }

    #[inline(always)]
    pub(super) fn slot(self) -> u32 {
        self.0 as u32 & (SLOTS as u32 - 1)
    }
}

/// No place. No link has this value: a place in a link has the highest bit set, and a free cell
/// that links to another one has a depth greater than 0 in the high bits.
pub(super) const NOWHERE: Place = Place(1);

/// A slot that may hold the wanted event.
///
/// # Invariants
///
/// `seen` is [`NOWHERE`], or in a bucket that lives for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'a> {
    /// The cell.
    pub(crate) cell: Index,
    /// The slot in which the cell was seen, if the slot is in the home bucket of the current level.
    seen: Place,
    bucket: PhantomData<&'a Bucket>,
}

impl<'a> Candidate<'a> {
    /// Describes a cell whose slot is not known.
    #[inline(always)]
    pub(crate) fn anywhere(cell: Index) -> Self {
        // INVARIANT: Nowhere.
        Self {
            cell,
            seen: NOWHERE,
            bucket: PhantomData,
        }
    }

    /// Describes a cell that was seen in a slot.
    #[inline(always)]
    pub(super) fn seen_in(cell: Index, bucket: &'a Bucket, slot: usize) -> Self {
        // INVARIANT: The place is in `bucket`, which lives for `'a`.
        Self {
            cell,
            seen: Place::of(bucket, slot),
            bucket: PhantomData,
        }
    }

    /// Returns the bucket in which the cell was seen, if the cell was seen at `place`.
    #[inline(always)]
    pub(super) fn bucket_if_at(&self, place: Place) -> Option<&'a Bucket> {
        // SAFETY: By the type invariant; no link has the value `NOWHERE`, so `seen` is in a bucket.
        (place == self.seen).then(|| unsafe { &*place.bucket() })
    }
}

/// A cell, and the slot in which its index was seen.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    /// The cell.
    pub(crate) cell: Index,
    place: Place,
}

/// The form in which a search that may leave the home bucket offers a cell.
pub(super) trait Offered<'a> {
    /// Describes a cell whose index was seen in a slot.
    fn offered(bucket: &'a Bucket, slot: usize, cell: Index) -> Self;
}

impl<'a> Offered<'a> for Candidate<'a> {
    #[inline(always)]
    fn offered(_: &'a Bucket, _: usize, cell: Index) -> Self {
        Self::anywhere(cell)
    }
}

impl<'a> Offered<'a> for Seen {
    #[inline(always)]
    fn offered(bucket: &'a Bucket, slot: usize, cell: Index) -> Self {
        let place = Place::of(bucket, slot);
        Self { cell, place }
    }
}

impl Seen {
    /// Whether the event with the cell's `link` is in this slot. If not, the index was stale.
    ///
    /// For holders of a reference to the event.
    pub(crate) fn is_place_of(&self, link: &Link) -> bool {
        self.place == Place::kept_in(link)
    }
}
