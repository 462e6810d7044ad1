// SPDX-License-Identifier: GPL-2.0

//! Text for files under /proc: quoted strings, and words that hold bytes.

use kernel::{
    fmt::{self, Write},
    prelude::*, //
};

/// Bytes in double quotes, with C escapes for quotes, backslashes and unprintable bytes.
pub(crate) struct Quoted<'a>(Bytes<'a>);

enum Bytes<'a> {
    Slice(&'a [u8]),
    Words(&'a [u64]),
}

impl<'a> Quoted<'a> {
    pub(crate) fn bytes(bytes: &'a [u8]) -> Self {
        Self(Bytes::Slice(bytes))
    }

    /// Quotes the bytes packed in words, up to the first NUL.
    pub(crate) fn words(words: &'a [u64]) -> Self {
        Self(Bytes::Words(words))
    }
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        match self.0 {
            Bytes::Slice(bytes) => bytes.iter().try_for_each(|&b| escape(f, b))?,
            Bytes::Words(words) => unpack(words).try_for_each(|b| escape(f, b))?,
        }
        f.write_char('"')
    }
}

/// Escapes text whose quotes are written elsewhere.
pub(crate) struct Escaped<'a, 'b>(pub(crate) &'a mut fmt::Formatter<'b>);

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().try_for_each(|byte| escape(self.0, byte))
    }
}

fn escape(f: &mut fmt::Formatter<'_>, byte: u8) -> fmt::Result {
    match byte {
        b'"' => f.write_str("\\\""),
        b'\\' => f.write_str("\\\\"),
        b'\n' => f.write_str("\\n"),
        b' '..=b'~' => f.write_char(byte as char),
        _ => f.write_fmt(fmt!("\\x{byte:02x}")),
    }
}

/// ASCII text packed in words, printed unchanged up to the first NUL.
pub(crate) struct Plain<'a>(pub(crate) &'a [u64]);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        unpack(self.0).try_for_each(|byte| f.write_char(byte as char))
    }
}

/// Compares two texts at compile time.
pub(crate) const fn is_equal(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// Packs bytes into words, the first byte lowest, padded with NUL, cut to fit.
pub(crate) fn pack<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = [0u64; N];
    for (i, &byte) in bytes.iter().take(N * 8).enumerate() {
        words[i / 8] |= u64::from(byte) << (8 * (i % 8));
    }
    words
}

/// Returns the bytes packed in words, up to the first NUL.
pub(crate) fn unpack(words: &[u64]) -> impl Iterator<Item = u8> + '_ {
    words
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .take_while(|&byte| byte != 0)
}
