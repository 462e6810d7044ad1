// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Long lists, which grow by a quarter.

use std::ops::Range;

/// Adds an element, growing a full vector by a quarter: doubling would leave up to half of it unused.
pub(crate) fn push<T>(list: &mut Vec<T>, value: T) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 4).max(4));
    }
    list.push(value);
}

/// Memory that [`push()`] or a [`Long`] list needs for elements of this total size.
pub(crate) fn with_room(bytes: usize) -> usize {
    bytes + bytes / 4 + 64
}

/// A list in parts. Full parts do not move: while a [`Vec`] grows, it may exist twice.
#[derive(Debug, Clone)]
pub(crate) struct Long<T> {
    full: Vec<Box<[T]>>,
    /// The last part; empty only if the list is empty.
    last: Vec<T>,
}

impl<T> Default for Long<T> {
    fn default() -> Self {
        Self {
            full: Vec::new(),
            last: Vec::new(),
        }
    }
}

impl<T> Long<T> {
    /// Number of elements of a full part.
    const PART: usize = 1 << 10;

    /// Adds an element. The unused room is limited as in [`push()`].
    pub(crate) fn push(&mut self, value: T) {
        if self.last.len() == Self::PART {
            let part = std::mem::take(&mut self.last);
            push(&mut self.full, part.into_boxed_slice());
        }
        let used = self.last.len();
        if used == self.last.capacity() {
            let more = (self.len() / 4).max(4);
            self.last.reserve_exact(more.min(Self::PART - used));
        }
        self.last.push(value);
    }

    pub(crate) fn len(&self) -> usize {
        Self::PART * self.full.len() + self.last.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        match self.full.get(index / Self::PART) {
            Some(part) => part.get(index % Self::PART),
            None => self.last.get(index - Self::PART * self.full.len()),
        }
    }

    /// Replaces the element at an index, if there is one.
    pub(crate) fn set(&mut self, index: usize, value: T) {
        let before = Self::PART * self.full.len();
        let place = match self.full.get_mut(index / Self::PART) {
            Some(part) => part.get_mut(index % Self::PART),
            None => self.last.get_mut(index - before),
        };
        if let Some(place) = place {
            *place = value;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let full = self.full.iter().flat_map(|part| part.iter());
        full.chain(&self.last)
    }

    /// The last elements: at least one, unless the list is empty.
    pub(crate) fn tail(&self) -> &[T] {
        &self.last
    }

    /// The index of the first element of a range for which `is` is false; the end of the range if there is none. `is`
    /// must also be false for all elements after the first such element.
    pub(crate) fn partition_point(&self, range: Range<usize>, is: impl Fn(&T) -> bool) -> usize {
        let Range { mut start, mut end } = range;
        while start < end {
            let middle = start + (end - start) / 2;
            match self.get(middle).is_some_and(&is) {
                true => start = middle + 1,
                false => end = middle,
            }
        }
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_in_parts_is_as_a_plain_list_and_has_little_unused_room() {
        let mut list = Long::default();
        for i in 0..3000 {
            list.push(i);
            let room = list.full.len() * Long::<usize>::PART + list.last.capacity();
            assert_eq!((list.len(), list.tail().last()), (i + 1, Some(&i)));
            assert!(room <= list.len() + list.len() / 4 + 4);
        }
        for (index, value) in [(1023, 7), (2999, 8), (3000, 9)] {
            list.set(index, value);
        }
        let mut plain: Vec<_> = (0..3000).collect();
        (plain[1023], plain[2999]) = (7, 8);
        assert!(list.iter().eq(&plain));
        for index in [0, 1023, 1024, 2047, 2048, 2999, 3000, 5000] {
            assert_eq!(list.get(index), plain.get(index), "{index}");
        }
    }

    #[test]
    fn the_first_other_element_of_a_range_is_found() {
        let mut list = Long::default();
        (0..3000).for_each(|i| list.push(i));
        for least in [900, 1023, 1024, 2100, 2500, 4000] {
            let found = list.partition_point(1000..2500, |of| *of < least);
            assert_eq!(found, least.clamp(1000, 2500));
        }
    }

    #[test]
    fn a_growing_list_has_little_unused_room() {
        let mut list = Vec::new();
        for i in 0..1000 {
            push(&mut list, i);
            assert!(list.capacity() <= list.len() + list.len() / 4 + 4);
        }
        assert!(list.into_iter().eq(0..1000));
    }
}
