// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Keys from the bytes of a terminal.
//!
//! Knows the sequences of xterm, the Linux console and rxvt. A sequence may arrive in parts. An Esc
//! that nothing follows within [`ESC_TIME`] is the key Esc; the caller provides the clock
//! ([`Decoder::due`], [`Decoder::finish`]).
//!
//! crossterm's reader is not used: it retries as long as a read fails, so it would use a whole CPU once the
//! terminal is gone.

use std::time::{Duration, Instant};

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    /// A lower-case letter, with Ctrl.
    Ctrl(char),
    F(u8),
    Enter,
    Esc,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
}

const ESC: u8 = 0x1b;

/// Longest incomplete sequence that is kept; a longer one is dropped.
const LONGEST: usize = 16;

/// Maximum time between two parts of a sequence.
const ESC_TIME: Duration = Duration::from_millis(50);

/// The bytes of an incomplete key.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    partial: Vec<u8>,
    /// When the next part of an incomplete key must have arrived.
    due: Option<Instant>,
}

impl Decoder {
    /// Adds bytes that were read at this time, and returns the complete keys.
    pub(super) fn add(&mut self, bytes: &[u8], now: Instant) -> Vec<Key> {
        self.partial.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((key, length)) = first(&self.partial) {
            keys.extend(key);
            self.partial.drain(..length);
        }
        if self.partial.len() > LONGEST {
            self.partial.clear();
        }
        self.due = (!self.partial.is_empty()).then(|| now + ESC_TIME);
        keys
    }

    /// The time at which to call [`Decoder::finish`], if a key is incomplete.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Drops an incomplete sequence if its next part is overdue, and returns the key Esc if there is only an Esc.
    pub(super) fn finish(&mut self, now: Instant) -> Option<Key> {
        self.due.take_if(|due| *due <= now)?;
        let partial = std::mem::take(&mut self.partial);
        (partial == [ESC]).then_some(Key::Esc)
    }
}

/// Returns the first key, if it has a meaning, and its number of bytes; `None` if it is incomplete.
fn first(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let key = match *bytes.first()? {
        ESC => return sequence(bytes),
        b'\r' | b'\n' => Key::Enter,
        0x08 | 0x7f => Key::Backspace,
        byte @ 0x01..=0x1a => Key::Ctrl(char::from(byte + b'a' - 1)),
        byte if byte < b' ' => return Some((None, 1)),
        byte if byte.is_ascii() => Key::Char(char::from(byte)),
        byte => {
            let length = match byte {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => return Some((None, 1)),
            };
            let text = std::str::from_utf8(bytes.get(..length)?);
            return Some(match text.ok().and_then(|text| text.chars().next()) {
                Some(c) => (Some(Key::Char(c)), length),
                None => (None, 1),
            });
        }
    };
    Some((Some(key), 1))
}

/// Returns the first key of bytes that start with Esc, and its number of bytes. See [`first`].
fn sequence(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    match *bytes.get(1)? {
        // The Linux console: F1 to F5.
        b'[' if bytes.get(2) == Some(&b'[') => {
            let key = match bytes.get(3)? {
                letter @ b'A'..=b'E' => Some(Key::F(letter - b'A' + 1)),
                _ => None,
            };
            Some((key, 4))
        }
        b'[' => {
            let end = 2 + bytes[2..]
                .iter()
                .position(|byte| (0x40..=0x7e).contains(byte))?;
            let parameters = &bytes[2..end];
            let digits = parameters.iter().take_while(|byte| byte.is_ascii_digit());
            let number = digits.fold(0u32, |n, digit| {
                n.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
            });
            let key = match bytes[end] {
                b'~' => numbered(number),
                letter => lettered(letter),
            };
            Some((key, end + 1))
        }
        b'O' => Some((lettered(*bytes.get(2)?), 3)),
        // Two keys; the second one may start a sequence.
        ESC => Some((Some(Key::Esc), 1)),
        // A key with Alt, which is ignored.
        _ => Some((None, 2)),
    }
}

fn lettered(letter: u8) -> Option<Key> {
    Some(match letter {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'F' => Key::End,
        b'H' => Key::Home,
        b'M' => Key::Enter,
        b'P'..=b'S' => Key::F(letter - b'P' + 1),
        _ => return None,
    })
}

fn numbered(number: u32) -> Option<Key> {
    Some(match number {
        1 | 7 => Key::Home,
        4 | 8 => Key::End,
        5 => Key::PageUp,
        6 => Key::PageDown,
        n @ 11..=15 => Key::F((n - 10) as u8),
        n @ 17..=21 => Key::F((n - 11) as u8),
        n @ 23..=24 => Key::F((n - 12) as u8),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        Decoder::default().add(bytes, Instant::now())
    }

    #[test]
    fn keys_of_the_usual_terminals_are_known() {
        for (bytes, key) in [
            (&b"q"[..], Key::Char('q')),
            (b"\x03", Key::Ctrl('c')),
            (b"\x1a", Key::Ctrl('z')),
            (b"\r", Key::Enter),
            (b"\x7f", Key::Backspace),
            (b"\x1b[A", Key::Up),
            (b"\x1bOB", Key::Down),
            (b"\x1b[1;5C", Key::Right),
            (b"\x1b[5~", Key::PageUp),
            (b"\x1bOP", Key::F(1)),
            (b"\x1b[[A", Key::F(1)),
            (b"\x1b[11~", Key::F(1)),
            (b"\x1b[17~", Key::F(6)),
            (b"\x1b[21~", Key::F(10)),
            ("é".as_bytes(), Key::Char('é')),
        ] {
            assert_eq!(keys(bytes), [key], "{bytes:?}");
        }
        assert_eq!(keys(b"\x1b[200~\x1bx\x1b[99~"), []);
    }

    #[test]
    fn a_sequence_may_come_in_parts_and_a_lone_esc_is_a_key() {
        let now = Instant::now();
        let mut decoder = Decoder::default();
        assert_eq!(decoder.add(b"j\x1b", now), [Key::Char('j')]);
        assert_eq!(decoder.due(), Some(now + ESC_TIME));
        assert_eq!(decoder.add(b"[2", now), []);
        assert_eq!(decoder.add(b"1~k", now), [Key::F(10), Key::Char('k')]);
        assert_eq!(decoder.due(), None);
        assert_eq!(decoder.add(b"\x1b", now), []);
        assert_eq!(decoder.finish(now + ESC_TIME), Some(Key::Esc));
        assert_eq!(decoder.finish(now + ESC_TIME), None);
        assert_eq!(decoder.add(b"\x1b\x1b[A", now), [Key::Esc, Key::Up]);
    }

    #[test]
    fn a_tick_between_two_parts_cuts_no_sequence() {
        let now = Instant::now();
        let tick = now + ESC_TIME / 2;
        let mut decoder = Decoder::default();
        assert_eq!(decoder.add(b"\x1b", now), []);
        assert_eq!(decoder.finish(tick), None);
        assert_eq!(decoder.add(b"[A", tick), [Key::Up]);
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(bytes: Vec<u8>, at: usize) {
            let at = at % (bytes.len() + 1);
            let (mut decoder, now) = (Decoder::default(), Instant::now());
            let mut parts = decoder.add(&bytes[..at], now);
            // Which part of an overlong sequence is dropped depends on the cut.
            prop_assume!(!bytes.contains(&ESC) || bytes.len() < LONGEST);
            parts.extend(decoder.add(&bytes[at..], now));
            prop_assert_eq!(parts, keys(&bytes));
        }
    }
}
