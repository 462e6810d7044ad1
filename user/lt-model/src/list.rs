// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Long lists, which grow by a quarter.

/// Adds an element, growing a full vector by a quarter: doubling would leave up to half of it unused.
pub(crate) fn push<T>(list: &mut Vec<T>, value: T) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 4).max(4));
    }
    list.push(value);
}

/// Memory that [`push`] needs for elements of this total size.
pub(crate) fn with_room(bytes: usize) -> usize {
    bytes + bytes / 4 + 64
}

#[cfg(test)]
mod tests {
    use super::*;

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
