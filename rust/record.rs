// SPDX-License-Identifier: GPL-2.0

//! The fields of a tracker's events, declared once by [`record!`].
//!
//! ```text
//!   record! { struct Detail {                 words of an event, of an alert     pack, unpack
//!       irq: u32 at 0,                  --->  fields of a line                   show
//!       on: u16 at 0:32,                      the trace event alert_TRACKER      scripts/trackers
//!       action: Name32 at 1,                  its page of the ABI                scripts/trackers
//!       ret: u16 at 0:48 in RETURNS,
//!   } }
//! ```
//!
//! A field starts `at WORD:BIT`, and its type defines its number of bits. A line has the fields in
//! the order of the declaration.
//!
//! # Contexts
//!
//! Packing and unpacking: any. Text is generated only when it is read.

use crate::{
    alert::record::{actor::Actor, Alert, Owner, DETAIL, ID_BITS},
    text::{Escaped, Quoted},
};
use kernel::{
    fmt::{self, Write},
    prelude::*, //
};

// Fields that only the kernel can print; user/engine tests the others.
#[cfg(CONFIG_RUST)]
#[path = "record/kinds.rs"]
mod kinds;
#[cfg(CONFIG_RUST)]
pub(crate) use kinds::{Address, Func, Location, Policy};

/// The kind of line, and the reader, for which fields are shown.
pub(crate) struct How {
    is_alert: bool,
    is_end: bool,
    is_trusted: bool,
}

impl How {
    /// Returns how a label is shown. Many events share a label, so no reader may see addresses of
    /// user space in it.
    pub(crate) fn of_label() -> Self {
        Self {
            is_alert: true,
            is_end: true,
            is_trusted: false,
        }
    }

    /// Returns how an event in `pending`, which has not ended, is shown. `is_trusted`: whether the
    /// reader may see addresses of user space.
    pub(crate) fn of_pending(is_trusted: bool) -> Self {
        Self {
            is_alert: false,
            is_end: false,
            is_trusted,
        }
    }

    /// Whether this is an alert, and not a pending event.
    pub(crate) fn alert(&self) -> bool {
        self.is_alert
    }

    /// Whether the fields of the end are shown: in all alerts except a timeout, but not in
    /// `pending`.
    pub(crate) fn end(&self) -> bool {
        self.is_end
    }

    pub(crate) fn pending(&self) -> bool {
        !self.is_alert
    }

    /// Returns `false`: no line has fields that only the trace event has.
    pub(crate) fn traced(&self) -> bool {
        false
    }

    /// Returns `false`: no line has fields that only an event keeps.
    pub(crate) fn kept(&self) -> bool {
        false
    }
}

/// The task of a late event, and the tracker's own fields of its alert.
pub(crate) struct Details {
    /// The task that the event belongs to.
    pub(crate) owner: Owner,
    /// The tracker's own words.
    pub(crate) words: [u64; DETAIL],
}

/// The name and the place of a field, see [`record!`].
#[derive(Clone, Copy)]
pub(crate) struct FieldInfo {
    /// The name in the line.
    pub(crate) name: &'static str,
    /// The position in the words, in bits.
    pub(crate) at: usize,
    /// Number of bits; 0 for a field that is only in the line, and derived from others. Labels show
    /// such a field after the field that it follows.
    pub(crate) bits: usize,
    /// See [`Field::SPARE`].
    pub(crate) spare: usize,
    /// Whether every alert line has the field, even one about an event that has not ended.
    pub(crate) is_usual: bool,
}

/// The fields of a tracker, see [`record!`].
pub(crate) trait Record: Sized + 'static {
    /// Number of words of the fields.
    const WORDS: usize;

    /// The fields, in the order of the line.
    const FIELDS: &'static [FieldInfo] = &[];

    /// Stores the fields in words that are 0.
    fn pack(&self, words: &mut [u64]);
    fn unpack(words: &[u64]) -> Self;

    /// Returns the first words of the fields.
    #[inline(always)]
    fn words<const N: usize>(&self) -> [u64; N] {
        let mut words = [0; N];
        self.pack(&mut words);
        words
    }

    /// Prints the fields as part of a line, each with a space before it.
    fn show(&self, how: &How, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Prints one field of [`Record::FIELDS`], with a space before it.
    fn show_field(&self, _nth: usize, _how: &How, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    /// Prints the fields of an alert, as part of its line.
    fn print(alert: &Alert, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = How {
            is_alert: true,
            is_end: alert.reason.is_end(),
            is_trusted: alert.is_trusted,
        };
        Self::unpack(&alert.detail).show(&how, f)
    }

    /// Returns the details of an alert.
    fn details(&self, owner: Owner) -> Details {
        let words = self.words();
        Details { owner, words }
    }
}

/// Fields as text.
pub(crate) struct Shown<'a, T>(pub(crate) &'a T, pub(crate) How);

impl<T: Record> fmt::Display for Shown<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show(&self.1, f)
    }
}

/// Returns the task at the start of an event's data.
#[inline(always)]
pub(crate) fn owner<const D: usize>(data: &[u64; D]) -> Owner {
    data.first_chunk()
        .map_or_else(Owner::default, |words| Owner::from_words(*words))
}

/// Returns the data of an event: the task that it belongs to, and the known fields of its alert.
#[inline(always)]
pub(crate) fn data<const D: usize>(owner: Owner, known: &impl Record) -> [u64; D] {
    let mut data = [0; D];
    if let Some((head, rest)) = data.split_first_chunk_mut() {
        *head = owner.to_words();
        known.pack(rest);
    }
    data
}

/// Returns the known fields of an event's alert, from data that [`data`] made.
#[inline(always)]
pub(crate) fn known<const D: usize, T: Record>(data: &[u64; D]) -> T {
    T::unpack(data.get(Owner::WORDS..).unwrap_or_default())
}

/// Returns the known fields of an event whose key is their first word, and whose data is the
/// remaining words.
pub(crate) fn keyed<T: Record>(key: &[u64; 1], data: &[u64]) -> T {
    let mut words = [0; DETAIL];
    [words[0]] = *key;
    for (to, word) in words.iter_mut().skip(1).zip(data) {
        *to = *word;
    }
    T::unpack(&words)
}

/// A field of a record, at a position in words, which is counted in bits.
pub(crate) trait Field: Copy + Default {
    /// Number of bits: at most a word, or whole words.
    const BITS: usize;
    /// Number of high bits of its first word that other fields may use.
    const SPARE: usize = 0;

    /// Stores the field where the words are 0.
    fn put(self, words: &mut [u64], at: usize);
    fn take(words: &[u64], at: usize) -> Self;

    /// Prints the field as part of a line.
    fn show(&self, name: &str, how: &How, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// Prints a field of a line.
pub(crate) fn say(name: &str, value: impl fmt::Display, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_fmt(fmt!(" {name}={value}"))
}

#[inline(always)]
pub(crate) fn put(words: &mut [u64], at: usize, bits: u64) {
    if let Some(word) = words.get_mut(at / 64) {
        *word |= bits << (at % 64);
    }
}

#[inline(always)]
pub(crate) fn take(words: &[u64], at: usize) -> u64 {
    words.get(at / 64).map_or(0, |word| word >> (at % 64))
}

/// The bits of a field, and the compiler's messages if it does not fit, or if its bits are not
/// free.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) at: usize,
    pub(crate) bits: usize,
    /// See [`Field::SPARE`].
    pub(crate) spare: usize,
    pub(crate) misfit: &'static str,
    pub(crate) overlap: &'static str,
}

/// Returns the number of words up to the end of the last field. Panics, at compile time, if a field
/// crosses the end of a word or of an alert's details, or uses a bit of an earlier field.
#[inline] // Only the compiler calls it, so it generates no code.
pub(crate) const fn words_of(fields: &[Span]) -> usize {
    let mut taken = [0u64; DETAIL];
    let (mut words, mut nth) = (0, 0);
    while nth < fields.len() {
        let field = fields[nth];
        let (mut word, first) = (field.at / 64, field.at % 64);
        let end = (field.at + field.bits).div_ceil(64);
        let is_whole = first + field.bits <= 64 || first == 0;
        assert!(is_whole && end <= DETAIL, "{}", field.misfit);
        let mut bits = if field.bits < 64 {
            (1 << field.bits) - 1
        } else {
            u64::MAX
        } >> field.spare;
        bits <<= first;
        while word < end {
            assert!(taken[word] & bits == 0, "{}", field.overlap);
            taken[word] |= bits;
            bits = u64::MAX;
            word += 1;
        }
        words = if end > words { end } else { words };
        nth += 1;
    }
    words
}

/// Implements [`Field`] for number types: `TYPE, BITS, conversion to a number, conversion from a
/// number, shown value`. For the trace event, which scripts/trackers generates, a C type and its
/// format follow. If the trace event's field is not the number itself, two more may follow: the
/// conversion from the word, and the value in the text, in which `X` stands for the entry's field.
///
/// A type that implements [`Field`] elsewhere, or another name of a type, has a row of its own
/// without the conversions. If the trace event shows it as several fields or as text, the row has
/// these pieces of C: the entry, the assignment, the format, the values, LTTng's fields, and
/// `FIELD: TYPE; PLACE` for each row in the page of the ABI. `NAME` stands for the field, `WORDS`
/// for its words, `WORD` for the first word, and `NEXT` for the words after the first.
macro_rules! fields {
    ($(
        $type:ty, $bits:expr, |$it:ident| $number:expr, |$taken:ident| $made:expr, $shown:expr
        $(, $($_c:literal)+)?;
    )*) => {
        $(impl $crate::record::Field for $type {
            const BITS: usize = $bits as usize;

            #[inline(always)]
            fn put(self, words: &mut [u64], at: usize) {
                let $it = self;
                $crate::record::put(words, at, $number);
            }

            #[inline(always)]
            fn take(words: &[u64], at: usize) -> Self {
                let $taken = $crate::record::take(words, at);
                $made
            }

            fn show(
                &self,
                name: &str,
                _: &$crate::record::How,
                f: &mut ::kernel::fmt::Formatter<'_>,
            ) -> ::kernel::fmt::Result {
                let $it = *self;
                $crate::record::say(name, $shown, f)
            }
        })*
    };
    ($($type:ty, $bits:literal $(, $($_c:literal)+)?;)*) => {
        $(const _: () = assert!(<$type as $crate::record::Field>::BITS == $bits);)*
    };
}
pub(crate) use fields;

impl From<U4> for usize {
    fn from(it: U4) -> Self {
        it.0.into()
    }
}

/// A number of occurrences: 32 bits in the trace event.
pub(crate) type Times8 = u8;
pub(crate) type Times16 = u16;

#[derive(Clone, Copy, Default)]
pub(crate) struct U4(pub(crate) u8);

/// 20 bits, which an [`Actor`] leaves free.
#[derive(Clone, Copy, Default)]
pub(crate) struct U20(pub(crate) u32);

#[derive(Clone, Copy, Default)]
pub(crate) struct U31(pub(crate) u32);

fields! {
    u8, u8::BITS, |it| it.into(), |bits| bits as u8, it, "u8" "%u";
    u16, u16::BITS, |it| it.into(), |bits| bits as u16, it, "u16" "%u";
    u32, u32::BITS, |it| it.into(), |bits| bits as u32, it, "u32" "%u";
    u64, u64::BITS, |it| it, |bits| bits, it, "u64" "%llu";
    i16, i16::BITS, |it| (it as u16).into(), |bits| bits as i16, it, "int" "%d" "(s16)";
    i32, i32::BITS, |it| (it as u32).into(), |bits| bits as i32, it, "int" "%d";
    i64, i64::BITS, |it| it as u64, |bits| bits as i64, it, "s64" "%lld";
    bool, 1, |it| it.into(), |bits| bits & 1 != 0, u32::from(it), "bool" "%d" "1 & ";
    U4, 4, |it| (it.0 & 0xf).into(), |bits| U4(bits as u8 & 0xf), it.0, "u8" "%u" "0xf & ";
    U20, 20, |it| (it.0 & 0xf_ffff).into(), |bits| U20(bits as u32 & 0xf_ffff), it.0;
    U31, 31, |it| (it.0 & 0x7fff_ffff).into(), |bits| U31(bits as u32 & 0x7fff_ffff), it.0,
        "u32" "%u" "0x7fffffff & ";
}

/// Text in quotes.
pub(crate) struct InQuotes<T>(pub(crate) T);

impl<T: fmt::Display> fmt::Display for InQuotes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        Escaped(f).write_fmt(fmt!("{}", self.0))?;
        f.write_char('"')
    }
}

/// A name, padded with NUL.
pub(crate) type Name16 = [u64; 2];
pub(crate) type Name32 = [u64; 4];
/// An IPv6 or IPv4 address, in network byte order.
pub(crate) type Ip = [u64; 2];
/// The registers of the first three arguments of a call.
pub(crate) type Registers = [u64; 3];
/// A register.
pub(crate) type Register = u64;

impl<const N: usize> Field for [u64; N]
where
    Self: Default,
{
    const BITS: usize = 64 * N;

    #[inline(always)]
    fn put(self, words: &mut [u64], at: usize) {
        for (nth, word) in self.into_iter().enumerate() {
            put(words, at + 64 * nth, word);
        }
    }

    #[inline(always)]
    fn take(words: &[u64], at: usize) -> Self {
        core::array::from_fn(|nth| take(words, at + 64 * nth))
    }

    fn show(&self, name: &str, _: &How, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        say(name, Quoted::words(self), f)
    }
}

impl Field for Actor {
    const BITS: usize = 64 * Self::WORDS;
    const SPARE: usize = 64 - 2 * ID_BITS as usize;

    #[inline(always)]
    fn put(self, words: &mut [u64], at: usize) {
        self.to_words().put(words, at);
    }

    #[inline(always)]
    fn take(words: &[u64], at: usize) -> Self {
        Self::from_words(Field::take(words, at))
    }

    fn show(&self, role: &str, _: &How, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Actor { pid, tid, comm } = self;
        let comm = Quoted::words(comm);
        f.write_fmt(fmt!(
            " {role}_pid={pid} {role}_tid={tid} {role}_comm={comm}"
        ))
    }
}

fields! {
    Times8, 8, "u32" "%u" "(u8)";
    Times16, 16, "u32" "%u" "(u16)";
    Register, 64, "u64" "%#llx";
    Name16, 128, "__array(char, NAME, 16)"
        "memcpy(__entry->NAME, WORDS, 16); __entry->NAME[15] = '\\0';" "NAME=%s" "__entry->NAME"
        "ctf_array_text(char, NAME, (const char *)(WORDS), 16)" "NAME: char[16]; WORDS";
    Name32, 256, "__array(char, NAME, 32)"
        "memcpy(__entry->NAME, WORDS, 32); __entry->NAME[31] = '\\0';" "NAME=%s" "__entry->NAME"
        "ctf_array_text(char, NAME, (const char *)(WORDS), 32)" "NAME: char[32]; WORDS";
    Ip, 128, "__array(u8, NAME, 16)" "memcpy(__entry->NAME, WORDS, 16);" "NAME=%*phN"
        "__entry->family == AF_INET6 ? 16 : 4, __entry->NAME"
        "ctf_array_hex(u8, NAME, (const u8 *)(WORDS), 16)" "NAME: u8[16]; WORDS";
    Registers, 192, "__array(u64, NAME, 3)" "memcpy(__entry->NAME, WORDS, sizeof(__entry->NAME));"
        "NAME0=%#llx NAME1=%#llx NAME2=%#llx"
        "__entry->NAME[0], __entry->NAME[1], __entry->NAME[2]"
        "ctf_array_hex(u64, NAME, WORDS, 3)" "NAME: u64[3]; WORDS";
    Actor, 192, "LT_TASK_FIELDS(NAME)" "LT_TASK_ASSIGN(NAME, WORDS);"
        "NAME_pid=%u NAME_tid=%u NAME_comm=%s"
        "__entry->NAME_pid, __entry->NAME_tid, __entry->NAME_comm"
        "ctf_integer(u32, NAME_pid, 0x3fffff & (WORD >> 22)) \
         ctf_integer(u32, NAME_tid, 0x3fffff & WORD) \
         ctf_array_text(char, NAME_comm, (const char *)(NEXT), TASK_COMM_LEN)"
        "NAME_pid: u32; bits 22 to 43 of WORD" "NAME_tid: u32; bits 0 to 21 of WORD"
        "NAME_comm: char[16]; NEXT";
}

/// Declares the fields of a tracker, in the order of its line: for each its type, and its position
/// `at` WORD or WORD:BIT. After that it may have, in this order:
///
/// - `in NAMES`: the field is a number that is shown as one of these words;
/// - `as NAME`: the field has this name in the line, and its own name in the trace event;
/// - `if alert`, `if end`, `if pending`: the field is only in these lines, see [`How`];
/// - `if traced`, `if kept`: the field is in no line;
/// - `= |it, how| VALUE`: the field is shown as this value; without a type it is only in the line;
/// - `=> FUNCTION`: this function prints the field, with its name and a space before it.
///
/// The parts `stored` and `printed` of `tracker!` may follow, and `tail`: the trace event's name
/// for the alert's words after these fields.
///
/// A field that does not fit, or that overlaps an earlier field, does not compile.
///
/// # Examples
///
/// ```ignore
#[cfg_attr(doc, doc = include_str!("record/example.rs"))]
/// ```
macro_rules! record {
    (
        $(#[$attr:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[$_doc:meta])*
                $field:ident
                $(: $type:ident at $word:literal $(: $bit:literal)? $(in $names:ident)?)?
                $(as $shown:ident)?
                $(if $when:ident)?
                $(= |$it:pat_param, $how:pat_param| $line:expr)?
                $(=> $with:path)?
            ),* $(,)?
        }
        $(stored: $($_stored:ident)*;)?
        $(printed: $($_printed:ident)*;)?
        $(tail: $_tail:ident;)?
    ) => {
        $(#[$attr])*
        #[derive(Clone, Copy, Default)]
        $vis struct $name {
            $($(pub(crate) $field: $type,)?)*
        }

        impl $crate::record::Record for $name {
            const WORDS: usize = $crate::record::words_of(&[
                $($($crate::record::Span {
                    at: 64 * $word $(+ $bit)?,
                    bits: <$type as $crate::record::Field>::BITS,
                    spare: <$type as $crate::record::Field>::SPARE,
                    misfit: concat!("`", stringify!($field), "` crosses the end of its word, or of an alert"),
                    overlap: concat!("`", stringify!($field), "` overlaps a field before it"),
                },)?)*
            ]);

            const FIELDS: &'static [$crate::record::FieldInfo] = &[$(
                $crate::record::FieldInfo {
                    name: $crate::record::first!($(stringify!($shown),)? stringify!($field)),
                    at: $crate::record::first!($(64 * $word $(+ $bit)?,)? 0),
                    bits: $crate::record::first!(
                        $(<$type as $crate::record::Field>::BITS,)?
                        0
                    ),
                    spare: $crate::record::first!(
                        $(<$type as $crate::record::Field>::SPARE,)?
                        0
                    ),
                    is_usual: matches!(
                        $crate::record::first!($(stringify!($when),)? "alert").as_bytes(),
                        b"alert"
                    ),
                },
            )*];

            #[inline(always)]
            fn pack(&self, words: &mut [u64]) {
                $($($crate::record::Field::put(self.$field, words, 64 * $word $(+ $bit)?);
                    let _: $type = self.$field;)?)*
            }

            #[inline(always)]
            fn unpack(words: &[u64]) -> Self {
                Self {
                    $($($field: <$type as $crate::record::Field>::take(
                        words,
                        64 * $word $(+ $bit)?,
                    ),)?)*
                }
            }

            fn show(
                &self,
                how: &$crate::record::How,
                f: &mut ::kernel::fmt::Formatter<'_>,
            ) -> ::kernel::fmt::Result {
                (0..Self::FIELDS.len()).try_for_each(|nth| self.show_field(nth, how, f))
            }

            fn show_field(
                &self,
                nth: usize,
                how: &$crate::record::How,
                f: &mut ::kernel::fmt::Formatter<'_>,
            ) -> ::kernel::fmt::Result {
                // Unused if each field of the record is shown as one of its names (`in NAMES`).
                let _ = how;
                let mut fields = 0..;
                $(
                    if fields.next() == Some(nth) && $crate::record::first!($(how.$when(),)? true) {
                        let name = $crate::record::first!($(stringify!($shown),)? stringify!($field));
                        $crate::record::first!(
                            $({
                                let ($it, $how) = (self, how);
                                $crate::record::say(name, $line, f)?
                            },)?
                            $({ let _ = name; $with(self, how, f)? },)?
                            $(
                                $({
                                    let word = $names.get(usize::from(self.$field));
                                    $crate::record::say(name, word.unwrap_or(&"?"), f)?
                                },)?
                                <$type as $crate::record::Field>::show(&self.$field, name, how, f)?
                            )?
                        );
                    }
                )*
                Ok(())
            }
        }

        // Compiles only if each field has its place.
        const _: usize = <$name as $crate::record::Record>::WORDS;
    };
}
pub(crate) use record;

/// Returns the first of the arguments.
macro_rules! first {
    ($first:expr $(, $_other:expr)* $(,)?) => {
        $first
    };
}
pub(crate) use first;
