// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Integers of 1 to 64 bits at any bit of a buffer, in both byte orders.
//!
//! ```text
//! byte        0                 1
//! little:  7 6 5 4 3 2 1 0   7 6 5 4 ...     the first bit is bit 0 of the byte, and bit 0 of the integer
//! big:     0 1 2 3 4 5 6 7   0 1 2 3 ...     the first bit is bit 7 of the byte, and the highest of the integer
//! ```

/// Byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

/// Reads `len` (1 to 64) bits from bit `pos`; `None` if the buffer ends first.
#[inline]
pub(crate) fn read(buf: &[u8], pos: usize, len: u32, order: Order) -> Option<u64> {
    let byte = pos >> 3;
    let shift = (pos & 7) as u32;
    // Fast path: eight bytes at once, if they suffice and are in the buffer.
    if shift + len <= 64
        && let Some(eight) = buf.get(byte..).and_then(<[u8]>::first_chunk::<8>)
    {
        return Some(match order {
            Order::Little => (u64::from_le_bytes(*eight) >> shift) & mask(len),
            Order::Big => (u64::from_be_bytes(*eight) << shift) >> (64 - len),
        });
    }
    let last = (pos + len as usize - 1) >> 3;
    let bytes = buf.get(byte..=last)?;
    let mut value = 0u128;
    match order {
        Order::Little => {
            for (i, b) in bytes.iter().enumerate() {
                value |= u128::from(*b) << (8 * i);
            }
            value >>= shift;
        }
        Order::Big => {
            for b in bytes {
                value = value << 8 | u128::from(*b);
            }
            value >>= 8 * bytes.len() - shift as usize - len as usize;
        }
    }
    // The mask keeps at most 64 bits.
    Some(value as u64 & mask(len))
}

/// Returns a mask of the lowest `len` (1 to 64) bits.
#[inline]
pub(crate) const fn mask(len: u32) -> u64 {
    u64::MAX >> (64 - len)
}

/// Sign-extends `value` of `len` (1 to 64) bits.
#[inline]
pub(crate) const fn sign(value: u64, len: u32) -> i64 {
    let shift = 64 - len;
    ((value << shift) as i64) >> shift
}

/// Reads a LEB128 number at byte `at`: returns its value and its size in bytes. `None` if the
/// buffer ends first; `Some(None)` if the number has more than 64 bits.
pub(crate) fn leb128(buf: &[u8], at: usize, signed: bool) -> Option<Option<(u64, usize)>> {
    // The bits of the tenth byte if the highest bit of the number is set.
    let all = if signed { 0x7f } else { 1 };
    let mut value = 0u64;
    for (i, byte) in buf.get(at..)?.iter().enumerate() {
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * i as u32;
        match shift {
            0..=56 => value |= bits << shift,
            // One bit is left. The bits above it must be 0 or, in a signed number, repeat the sign.
            63 if bits == 0 || bits == all => value |= bits << 63,
            _ => return Some(None),
        }
        if byte & 0x80 == 0 {
            if signed && shift + 7 < 64 {
                value = sign(value, shift + 7) as u64;
            }
            return Some(Some((value, i + 1)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads bit by bit, as in the drawing at the top of the file.
    fn slow(buf: &[u8], pos: usize, len: u32, order: Order) -> u64 {
        (0..len as usize).fold(0, |value, i| {
            let byte = u64::from(buf[(pos + i) / 8]);
            match order {
                Order::Little => value | (byte >> ((pos + i) % 8) & 1) << i,
                Order::Big => value << 1 | (byte >> (7 - (pos + i) % 8) & 1),
            }
        })
    }

    #[test]
    fn hand_made_bytes_are_read() {
        let buf = [0x12, 0x34, 0x56, 0x78, 0x9a];
        assert_eq!(read(&buf, 0, 32, Order::Little), Some(0x7856_3412));
        assert_eq!(read(&buf, 0, 32, Order::Big), Some(0x1234_5678));
        assert_eq!(read(&buf, 4, 12, Order::Little), Some(0x341));
        assert_eq!(read(&buf, 4, 12, Order::Big), Some(0x234));
        assert_eq!(read(&buf, 39, 1, Order::Little), Some(1));
        assert_eq!(read(&buf, 39, 1, Order::Big), Some(0));
        assert_eq!(read(&buf, 39, 2, Order::Big), None);
        assert_eq!(sign(0b101, 3), -3);
        assert_eq!(sign(u64::MAX, 64), -1);
    }

    #[test]
    fn leb128_numbers_are_read() {
        assert_eq!(
            leb128(&[0xe5, 0x8e, 0x26], 0, false),
            Some(Some((624_485, 3)))
        );
        assert_eq!(
            leb128(&[0xc0, 0xbb, 0x78], 0, true),
            Some(Some(((-123_456i64) as u64, 3)))
        );
        let max = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(leb128(&max, 0, false), Some(Some((u64::MAX, 10))));
        assert_eq!(leb128(&max, 0, true), Some(None));
        assert_eq!(leb128(&[0xff; 10], 0, false), Some(None));
        let tenth = |last| {
            let mut bytes = [0x80; 10];
            bytes[9] = last;
            leb128(&bytes, 0, true)
        };
        assert_eq!(tenth(0x7f), Some(Some((i64::MIN as u64, 10))));
        assert_eq!(tenth(0), Some(Some((0, 10))));
        assert_eq!(tenth(1), Some(None));
        assert_eq!(tenth(0x7e), Some(None));
        assert_eq!(leb128(&[0x80; 3], 0, false), None);
        assert_eq!(leb128(&[0x7f], 0, true), Some(Some((u64::MAX, 1))));
    }

    proptest! {
        #[test]
        fn every_place_and_length_agrees_with_bit_by_bit(
            buf in prop::collection::vec(any::<u8>(), 24), pos in 0usize..128, len in 1u32..=64, big: bool, tail in 0usize..16
        ) {
            let order = if big { Order::Big } else { Order::Little };
            let end = (pos + len as usize).div_ceil(8);
            // The number of bytes after the integer selects the fast path or the slow path.
            let buf = &buf[..(end + tail).min(24)];
            prop_assert_eq!(read(buf, pos, len, order), Some(slow(buf, pos, len, order)));
            prop_assert_eq!(read(&buf[..end - 1], pos, len, order), None);
        }
    }
}
