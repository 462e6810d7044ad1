// SPDX-License-Identifier: GPL-2.0

//! Where in the table an event is, as its cell keeps it and as a search has found it.
//!
//! Pure functions, for any context.

use super::{Bucket, SLOTS};
use crate::{
    engine::freelist::{Index, Link},
    sys::memory::ADDRESS_MARK,
};
use core::{marker::PhantomData, ptr};

/// Where an event sits: the address of its bucket, whose low bits are free, and the slot. Made by
/// the table only, and kept in the cell's link.
///
/// # Invariants
///
/// The highest bit is set, or it is [`NOWHERE`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place(u64);

impl Place {
    #[inline(always)]
    pub(super) fn of(bucket: &Bucket, slot: usize) -> Self {
        let address = ptr::from_ref(bucket).expose_provenance() as u64;
        // A bucket is aligned to more than there are slots.
        // INVARIANT: An address with the mark has the bit.
        Self(address | slot as u64 | ADDRESS_MARK)
    }

    /// Writes it to the link of the cell that is in this place.
    #[inline(always)]
    pub(super) fn keep_in(self, link: &Link) {
        // SAFETY: By the type invariant; only `of` makes what is kept.
        unsafe { link.keep(self.0) };
    }

    /// What a link says. Of a cell that is not in the table that may be anything.
    #[inline(always)]
    pub(super) fn kept_in(link: &Link) -> Self {
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

/// No place: no link says this. The pool's links of cells with a next one have a depth.
pub(super) const NOWHERE: Place = Place(1);

/// A slot that may hold the event that is searched for.
///
/// # Invariants
///
/// `seen` is [`NOWHERE`], or in a bucket that lives for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'a> {
    /// The cell.
    pub(crate) cell: Index,
    /// The slot in which it was seen, if that is in the home bucket of the current level.
    seen: Place,
    bucket: PhantomData<&'a Bucket>,
}

impl<'a> Candidate<'a> {
    /// A cell of which it is not known where it sits.
    #[inline(always)]
    pub(crate) fn anywhere(cell: Index) -> Self {
        // INVARIANT: Nowhere.
        Self {
            cell,
            seen: NOWHERE,
            bucket: PhantomData,
        }
    }

    /// A cell that was seen in a slot.
    #[inline(always)]
    pub(super) fn seen_in(cell: Index, bucket: &'a Bucket, slot: usize) -> Self {
        // INVARIANT: As the reference says.
        Self {
            cell,
            seen: Place::of(bucket, slot),
            bucket: PhantomData,
        }
    }

    /// The bucket in which it was seen, if that was in this place.
    #[inline(always)]
    pub(super) fn bucket_if_at(&self, place: Place) -> Option<&'a Bucket> {
        // SAFETY: By the type invariant; no link says `NOWHERE`, so it is not that.
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

/// How a search that may leave the home bucket offers a cell.
pub(super) trait Offered<'a> {
    /// A cell whose index was seen in a slot.
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
    /// Whether the event with this link, that of the cell, is in this slot. Otherwise the index was
    /// an old one.
    ///
    /// For holders of a reference to the event.
    pub(crate) fn is_place_of(&self, link: &Link) -> bool {
        self.place == Place::kept_in(link)
    }
}
