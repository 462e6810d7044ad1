// SPDX-License-Identifier: GPL-2.0

//! How a tracker of tracepoints is declared: [`tracker!`], which generates all that is mechanical.
//!
//! ```text
//!   tracker! { name, key, parameters, fields of an alert, tracepoints }
//!        |                                           |
//!        +--> KIND, PARAMS, Detail, Tracked, Probes  +--> scripts/trackers:
//!             the probes, their attaching                 trace event, types of the arguments,
//!                                                         page of the ABI
//! ```
//!
//! What remains to be written are the functions that the tracepoints call: they turn arguments into
//! a key, and begin or end an event by [`Events::begin`] and [`Events::end`].
//!
//! The words of an alert follow from its fields: each field takes the next bits of a word, the
//! lowest first, or begins the next word if it does not fit.
//!
//! # Contexts
//!
//! The functions of tracepoints: those of the tracepoint, with preemption off.

#[allow(unused_imports, reason = "not every tracker needs all of it")]
pub(super) use super::tasks::{self, Guard};
#[allow(unused_imports, reason = "as above")]
pub(super) use crate::{
    alert::record::{Owner, ID_BITS},
    control::{Kind as ParamKind, ALL},
    engine::{
        platform::Platform,
        tracker::{Open, Verdict},
    },
    sys::{
        platform::Kernel,
        task::{Context, TaskRef},
        waker::is_waking,
    },
};

use crate::{
    alert::record::{Alert, DETAIL},
    control::Param,
    engine::{event::EventCopy, tracker::Late},
    instance::{
        common,
        kind::Kind,
        probed::{Live, Probes},
        Core,
        Details, //
    },
    sys::{
        stack::Stack,
        symbol::Hashed,
        tracepoint::{Attachment, Probe},
    },
};
use kernel::{fmt, prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

/// A field of an alert: some bits of a word.
pub(super) trait Field: Copy {
    /// How many bits.
    const BITS: u32;

    fn to_bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
}

macro_rules! fields {
    ($($type:ident as $unsigned:ident),*) => {
        $(impl Field for $type {
            const BITS: u32 = $type::BITS;

            #[inline(always)]
            fn to_bits(self) -> u64 {
                u64::from(self as $unsigned)
            }

            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as $type
            }
        })*
    };
}
fields!(u8 as u8, u16 as u16, u32 as u32, u64 as u64, i32 as u32);

/// The address of an object of the kernel, shown as a pseudonym.
#[derive(Clone, Copy, Default)]
pub(super) struct Address(pub(super) u64);

impl Field for Address {
    const BITS: u32 = u64::BITS;

    #[inline(always)]
    fn to_bits(self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hashed(self.0).fmt(f)
    }
}

/// The position of the next field in words.
#[derive(Clone, Copy)]
pub(super) struct At(u32);

impl At {
    pub(super) const START: Self = Self(0);

    /// The position of a field of this many bits, and the position after it.
    pub(super) const fn next(self, bits: u32) -> (Self, Self) {
        let is_room = self.0 % u64::BITS + bits <= u64::BITS;
        let at = if is_room {
            self.0
        } else {
            self.0.next_multiple_of(u64::BITS)
        };
        (Self(at), Self(at + bits))
    }

    /// The words up to here.
    pub(super) const fn words(self) -> usize {
        self.0.div_ceil(u64::BITS) as usize
    }

    /// Stores a field; returns the position after it.
    #[inline(always)]
    pub(super) fn put<F: Field>(self, words: &mut [u64], field: F) -> Self {
        let (at, behind) = self.next(F::BITS);
        if let Some(word) = words.get_mut((at.0 / u64::BITS) as usize) {
            *word |= field.to_bits() << (at.0 % u64::BITS);
        }
        behind
    }

    /// Reads a field.
    #[inline(always)]
    pub(super) fn take<F: Field>(self, words: &[u64]) -> (F, Self) {
        let (at, behind) = self.next(F::BITS);
        let word = words.get((at.0 / u64::BITS) as usize);
        (
            F::from_bits(word.map_or(0, |word| word >> (at.0 % u64::BITS))),
            behind,
        )
    }
}

/// The own fields of an alert of a declared tracker.
pub(super) trait Fields: fmt::Display + Sized + 'static {
    /// How many words they take.
    const WORDS: usize;

    /// Stores them in words that are 0.
    fn pack(&self, words: &mut [u64]);
    fn unpack(words: &[u64]) -> Self;

    /// Prints them as fields of an alert's line.
    fn print(alert: &Alert, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Self::unpack(&alert.detail).fmt(f)
    }
}

/// A tracker that is declared by [`tracker!`], whose events have keys of `K` and data of `D` words.
pub(super) trait Declared<const K: usize, const D: usize>:
    Sized + Send + Sync + 'static
{
    /// Whether it follows tasks, and so raises no alerts about readers of alerts.
    const IS_OF_TASKS: bool;

    /// Whether the alert of an end has the stack of where it ended.
    const HAS_STACK: bool;

    /// Whether [`Declared::take_stock`] does something.
    const TAKES_STOCK: bool;

    /// See [`Probes::take_stock`].
    fn take_stock(live: &Live<Self, K, D>);

    /// The own fields of an alert.
    type Detail: Fields;

    fn kind() -> &'static Kind;

    /// The fields of the alert of an event that has not ended.
    fn detail(key: &[u64; K], data: &[u64; D]) -> Self::Detail;

    /// The probes, the end first: nothing begins whose end would be missed.
    fn probes() -> impl IntoIterator<Item = Probe<'static, Live<Self, K, D>>>;
}

/// The task at the start of an event's data.
#[inline(always)]
fn owner<const D: usize>(data: &[u64; D]) -> Owner {
    data.first_chunk()
        .map_or_else(Owner::default, |words| Owner::from_words(*words))
}

/// The data of an event: the task that it belongs to, and the known fields of its alert.
#[inline(always)]
pub(super) fn data<const D: usize>(owner: Owner, detail: &impl Fields) -> [u64; D] {
    let mut data = [0; D];
    if let Some((head, rest)) = data.split_first_chunk_mut() {
        *head = owner.to_words();
        detail.pack(rest);
    }
    data
}

/// The known fields of the alert of an event with such data.
pub(super) fn detail<const D: usize, T: Fields>(data: &[u64; D]) -> T {
    T::unpack(data.get(Owner::WORDS..).unwrap_or_default())
}

fn details(owner: Owner, detail: &impl Fields) -> Details {
    let mut words = [0; DETAIL];
    detail.pack(&mut words);
    Details { owner, words }
}

/// The operations on events for the functions that tracepoints call.
pub(super) trait Events<const K: usize> {
    type Detail: Fields;

    /// The owner of an event that begins here, in the current task or an interrupt on top of it.
    /// `None` if the filter of tasks refuses it, which is counted.
    fn caller(&self, guard: &Guard, task: &TaskRef<'_>) -> Option<Owner>;

    /// An event begins, with the known fields of its alert.
    fn begin(&self, guard: &Guard, key: &[u64; K], owner: Owner, known: &Self::Detail);

    /// The known fields of the alert of an event change; returns whether there is such an event.
    fn change(&self, guard: &Guard, key: &[u64; K], change: impl FnOnce(&mut Self::Detail))
        -> bool;

    /// An event ends; `finish` completes the fields of its alert. Returns whether there was one.
    fn end(&self, guard: &Guard, key: &[u64; K], finish: impl FnOnce(&mut Self::Detail)) -> bool;
}

impl<const K: usize, const D: usize, T: Declared<K, D>> Events<K> for Live<T, K, D> {
    type Detail = T::Detail;

    #[inline(always)]
    fn caller(&self, guard: &Guard, task: &TaskRef<'_>) -> Option<Owner> {
        let cpu = tasks::this_cpu(guard);
        let caller = tasks::caller(&self.core, task, Context::current(), cpu);
        if caller.is_none() {
            self.core.tracker().filtered(guard);
        }
        caller
    }

    #[inline(always)]
    fn begin(&self, guard: &Guard, key: &[u64; K], owner: Owner, known: &T::Detail) {
        let tracker = self.core.tracker();
        tracker.event_in(guard, key, Kernel::now(), &data::<D>(owner, known));
    }

    #[inline(always)]
    fn change(&self, guard: &Guard, key: &[u64; K], change: impl FnOnce(&mut T::Detail)) -> bool {
        let found = self.core.tracker().update(guard, key, |event| {
            let old = event.data();
            let mut known = detail::<D, T::Detail>(&old);
            change(&mut known);
            event.set_data(&data::<D>(owner(&old), &known));
            Verdict::Keep
        });
        found.is_some()
    }

    #[inline(always)]
    fn end(&self, guard: &Guard, key: &[u64; K], finish: impl FnOnce(&mut T::Detail)) -> bool {
        self.core.tracker().event_out_if_known(
            guard,
            key,
            Kernel::now,
            |_| true,
            |late| {
                let mut detail = T::detail(&late.key, &late.data);
                finish(&mut detail);
                let details = details(owner(&late.data), &detail);
                report::<K, D, T>(&self.core, guard, late, &details);
            },
        )
    }
}

/// Raises the alert of an end.
#[cold]
fn report<const K: usize, const D: usize, T: Declared<K, D>>(
    core: &Core<K, D>,
    guard: &Guard,
    late: &Late<K, D>,
    details: &Details,
) {
    if T::IS_OF_TASKS && !tasks::is_reported(core, guard, &details.owner) {
        return;
    }
    let stack = if T::HAS_STACK && core.may_raise() {
        Stack::here(core.depth())
    } else {
        Stack::EMPTY
    };
    let now = late.start.wrapping_add(late.delay);
    core.raise(guard, now, late, details, stack.entries());
}

impl<const K: usize, const D: usize, T: Declared<K, D>> Probes<K, D> for T {
    type Attachment = Attachment<Live<T, K, D>>;

    fn kind() -> &'static Kind {
        T::kind()
    }

    fn attach(live: Arc<Live<T, K, D>>) -> Result<Self::Attachment> {
        Attachment::new(live, T::probes())
    }

    const TAKES_STOCK: bool = T::TAKES_STOCK;

    fn take_stock(live: &Live<T, K, D>) {
        T::take_stock(live);
    }

    fn owner(data: &[u64; D]) -> Owner {
        owner(data)
    }

    fn details(core: &Core<K, D>, late: &Late<K, D>, _: u64) -> Option<Details> {
        let details = details(owner(&late.data), &T::detail(&late.key, &late.data));
        if T::IS_OF_TASKS {
            tasks::reported(core, details)
        } else {
            Some(details)
        }
    }

    fn show_fields(_: &Core<K, D>, event: &EventCopy<K, D>, out: &SeqFile) {
        let (owner, detail) = (owner(&event.data), T::detail(&event.key, &event.data));
        seq_print!(out, "{owner}{detail}");
    }
}

/// A list of parameters: the common ones, those that filter tasks if it has any, its own.
pub(super) const fn params<const N: usize>(
    threshold: u64,
    filter: &[Param],
    own: &[Param],
) -> [Param; N] {
    let common: [Param; common::COUNT] = crate::instance::params(threshold, []);
    let mut all = [common[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < common::COUNT {
            common[at]
        } else if at < common::COUNT + filter.len() {
            filter[at - common::COUNT]
        } else {
            own[at - common::COUNT - filter.len()]
        };
        at += 1;
    }
    all
}

/// A tracker of tracepoints. In order:
///
/// - its name, and what it measures; the words of a key; the threshold, in nanoseconds;
/// - `tasks`, if it has the filter of tasks: whether threads of the kernel pass it by default;
///   `stack`, if the alert of an end has the stack of where it ended; `stock`, the function that
///   begins events for what is under way when an instance starts;
/// - its own parameters, each with its kind, its default and its help; the position of `vec`
///   becomes `PARAM_VEC`;
/// - what an event keeps: its `owner`, or also the known fields of its alert, its `detail`. In the
///   first case `Detail::of(key)` makes them;
/// - the fields of an alert with their types, `u8` to `u64`, `i32` and [`Address`]; `in NAMES` is a
///   number that is shown as one of these words. A field with `=` is in the line only. The comment
///   before it describes it, for the page of the ABI;
/// - the header of the tracepoints, their arguments with the types of C, and the function of
///   `Probes` that is called with the resulting values, each a `u64`. The end comes first: nothing
///   begins whose end would be missed. There may be several headers. A tracepoint that depends on
///   the kernel's configuration has `#[cfg(CONFIG_...)]` before it.
///
/// scripts/trackers reads this, too: run it after a change of fields or tracepoints.
macro_rules! tracker {
    (
        $name:ident: $help:literal;
        key: $key:literal;
        threshold: $threshold:expr;
        $(tasks: $kthreads:literal;)?
        $(stack: $stack:literal;)?
        $(stock: $stock:path;)?
        params {
            $($param:ident: $takes:expr => $default:expr, $says:literal;)*
        }
        keeps: $keeps:ident;
        alert {
            $(
                $(#[$_doc:meta])*
                $field:ident $(: $type:ident $(in $names:ident)?)? $(= |$it:ident| $line:expr)?,
            )*
        }
        $(
            probes $_header:ident {
                $(
                    $(#[$cfg:meta])*
                    $tracepoint:ident($($arg:ident: $_type:tt),*) => $method:ident($($given:expr),*);
                )*
            }
        )*
    ) => {
        const FILTER: &[$crate::control::Param] =
            $crate::trackers::declare::first!($(&tasks::filter($kthreads),)? &[]);

        ::kernel::macros::paste! {
            #[allow(non_camel_case_types)]
            enum Own {
                $([<$param>],)*
                Count,
            }
            $(const [<PARAM_ $param:upper>]: usize =
                $crate::instance::common::COUNT + FILTER.len() + Own::[<$param>] as usize;)*
        }

        static PARAMS: [
            $crate::control::Param;
            $crate::instance::common::COUNT + FILTER.len() + Own::Count as usize
        ] = $crate::trackers::declare::params($threshold, FILTER, &[
            $($crate::control::Param {
                name: stringify!($param),
                kind: $takes,
                default: $default,
                fixed: false,
                help: $says,
            },)*
        ]);

        pub(crate) static KIND: $crate::instance::kind::Kind = $crate::instance::kind::Kind {
            name: stringify!($name),
            c_name: $crate::instance::kind::c_name!($name),
            help: $help,
            params: &PARAMS,
            counters: &$crate::trackers::declare::first!(
                $({ let _: bool = $kthreads; [tasks::READERS] },)? []
            ),
            detail_words: <Detail as $crate::trackers::declare::Fields>::WORDS,
            tail: None,
            detail: <Detail as $crate::trackers::declare::Fields>::print,
            check: $crate::instance::kind::all_right,
            missing: || $crate::sys::tracepoint::missing(
                <Tracked as $crate::trackers::declare::Declared<$key, WORDS>>::probes()
            ),
            create: Some($crate::instance::probed::Probed::<Tracked, _, _>::create),
        };

        /// The own fields of an alert.
        struct Detail {
            $($($field: $type,)?)*
        }

        impl $crate::trackers::declare::Fields for Detail {
            const WORDS: usize = {
                use $crate::trackers::declare::{At, Field};
                let at = At::START;
                $($(let (_, at) = at.next(<$type as Field>::BITS);)?)*
                assert!(at.words() <= $crate::alert::record::DETAIL);
                at.words()
            };

            #[inline(always)]
            fn pack(&self, words: &mut [u64]) {
                let at = $crate::trackers::declare::At::START;
                $($(let at = at.put::<$type>(words, self.$field);)?)*
                let _ = at;
            }

            #[inline(always)]
            fn unpack(words: &[u64]) -> Self {
                let at = $crate::trackers::declare::At::START;
                $($(let ($field, at) = at.take::<$type>(words);)?)*
                let _ = at;
                Self { $($($field: $crate::trackers::declare::first!($field, $type),)?)* }
            }
        }

        impl ::kernel::fmt::Display for Detail {
            fn fmt(&self, f: &mut ::kernel::fmt::Formatter<'_>) -> ::kernel::fmt::Result {
                $(
                    f.write_str(concat!(" ", stringify!($field), "="))?;
                    $(
                        let field: $type = self.$field;
                        $(let field = $names.get(usize::from(field)).unwrap_or(&"?");)?
                        ::kernel::fmt::Display::fmt(&field, f)?;
                    )?
                    $(
                        let said: fn(&Detail) -> &'static str = |$it| $line;
                        f.write_str(said(self))?;
                    )?
                )*
                Ok(())
            }
        }

        struct Tracked;

        type Probes = $crate::instance::probed::Live<Tracked, $key, WORDS>;

        /// The words that an event keeps.
        const WORDS: usize = $crate::trackers::declare::tracker!(@words $keeps);

        impl $crate::trackers::declare::Declared<$key, WORDS> for Tracked {
            const IS_OF_TASKS: bool = !FILTER.is_empty();
            const HAS_STACK: bool = $crate::trackers::declare::first!($($stack,)? false);

            const TAKES_STOCK: bool = $crate::trackers::declare::first!(
                $({ let _: fn(&Probes) = $stock; true },)? false
            );

            fn take_stock(live: &Probes) {
                let take: fn(&Probes) = $crate::trackers::declare::first!($($stock,)? |_| {});
                take(live);
            }

            type Detail = Detail;

            fn kind() -> &'static $crate::instance::kind::Kind {
                &KIND
            }

            #[inline(always)]
            fn detail(key: &[u64; $key], data: &[u64; WORDS]) -> Detail {
                $crate::trackers::declare::tracker!(@detail $keeps key data)
            }

            fn probes() -> impl IntoIterator<
                Item = $crate::sys::tracepoint::Probe<'static, Probes>,
            > {
                [$($($(#[$cfg])* $crate::sys::tracepoint::handled!(
                    $tracepoint($($arg),*): |probes: Probes, guard| probes.$method(guard, $($given),*)
                ),)*)*]
            }
        }
    };
    (@words owner) => { Owner::WORDS };
    (@words detail) => {
        Owner::WORDS + <Detail as $crate::trackers::declare::Fields>::WORDS
    };
    (@detail owner $key:ident $data:ident) => {{ let _ = $data; Detail::of($key) }};
    (@detail detail $key:ident $data:ident) => {{
        let _ = $key;
        $crate::trackers::declare::detail($data)
    }};
}
pub(super) use tracker;

/// The first of the arguments.
macro_rules! first {
    ($first:expr $(, $_other:expr)* $(,)?) => {
        $first
    };
}
pub(super) use first;
