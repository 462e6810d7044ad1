// SPDX-License-Identifier: GPL-2.0

//! Declares a tracker of tracepoints: [`tracker!`] generates all mechanical parts.
//!
//! ```text
//!   tracker! { name, key, parameters, fields of an alert, tracepoints }
//!        |                                           |
//!        +--> KIND, PARAMS, Detail, Tracked, Probes  +--> scripts/trackers:
//!             the probes, their attaching                 trace event, types of the arguments,
//!                                                         page of the ABI
//! ```
//!
//! A tracker only adds the functions that the tracepoints call: they turn arguments into a key, and
//! start or end an event with [`Events::begin`] and [`Events::end`].
//!
//! # Contexts
//!
//! The functions named in `probes` run in the context of their tracepoint, with preemption off. A
//! tracker with `attach` is called by a file of `sys`, whose head describes the contexts.

pub(super) use super::tasks::{self, Guard};
pub(super) use crate::{
    alert::record::Owner,
    control::{Kind as ParamKind, ALL},
    engine::{platform::Platform, Open, Verdict},
    instance::{kind::NOT_RECORDED, labels, probed::Live, Core, Details},
    record::{Address, Record},
    sys::{
        platform::Kernel,
        task::{Context, TaskRef},
        tracepoint::{self, Attachment},
        waker::is_waking, //
    },
};

use crate::{
    control::Param,
    engine::{event::EventCopy, Late},
    instance::{
        common,
        kind::{Kind, RAISED_ELSEWHERE},
        probed::{Own, Probes},
        PARAMS_MAX, //
    },
    record::{self, How, Shown},
    sys::stack::Stack,
};
use kernel::{prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

/// A tracker declared by [`tracker!`]. Its events have keys of `K` words and data of `D` words.
pub(crate) trait Declared<const K: usize, const D: usize, O: Own = ()>:
    Sized + Send + Sync + 'static
{
    /// Whether the tracker suppresses alerts about readers of alerts.
    const IS_OF_TASKS: bool = false;

    /// See [`Kind::no_user_stack`].
    const NO_USER_STACK: &str = RAISED_ELSEWHERE;

    /// See [`Kind::keeps_user_stack`].
    const KEEPS_USER_STACK: bool = false;

    /// Whether an alert raised at the end of an event has the stack at that point.
    const HAS_STACK: bool = false;

    /// Whether [`Declared::take_stock`] does something.
    const TAKES_STOCK: bool = false;

    /// Tracks operations in flight when the instance starts, see [`Probes::take_stock`].
    fn take_stock(_live: &Live<Self, K, D, O>) {}

    /// The tracker's own fields of an alert.
    type Detail: Record;

    /// Keeps the probes attached, see [`Probes::Attachment`].
    type Attachment: Send + Unpin;

    fn kind() -> &'static Kind;

    /// Attaches the probes, the end before the start, so that no end is missed.
    fn attach(live: Arc<Live<Self, K, D, O>>) -> Result<Self::Attachment>;

    /// Returns the alert fields of an event that are known before its end.
    fn detail(key: &[u64; K], data: &[u64; D]) -> Self::Detail;

    /// Completes the fields for an alert at `now`, in nanoseconds, about an event that started at
    /// `start`.
    fn settle(_detail: &mut Self::Detail, _start: u64, _now: u64) {}

    /// Returns the task that an event belongs to.
    fn owner(data: &[u64; D]) -> Owner {
        record::owner(data)
    }

    /// Returns the task whose stack explains an event.
    fn stack_owner(data: &[u64; D]) -> Owner {
        Self::owner(data)
    }

    /// Whether an event can time out, see [`Probes::can_time_out`].
    fn can_time_out(_data: &[u64; D]) -> bool {
        true
    }

    /// Returns the task to check against the readers of alerts: an alert about a reader would raise
    /// the next one.
    fn suspect(_detail: &Self::Detail, owner: Owner) -> Owner {
        owner
    }

    /// Counts lost events, see [`Probes::collect_missed`].
    fn collect_missed(_attachment: &mut Self::Attachment) {}

    /// The rules for labels, see [`labels::Rules`].
    const LABELS: labels::Rules = labels::Rules::ALL;

    /// Prints a pending event, see [`Probes::show_fields`].
    fn show(core: &Core<K, D>, event: &EventCopy<K, D>, how: How, out: &SeqFile) {
        let _ = core;
        let (owner, detail) = (
            Self::owner(&event.data),
            Self::detail(&event.key, &event.data),
        );
        seq_print!(out, "{owner}{}", Shown(&detail, how));
    }
}

/// Operations on events, for the functions that the tracepoints call.
pub(super) trait Events<const K: usize> {
    type Detail: Record;

    /// Returns the owner of an event that starts here, in the current task or an interrupt on top
    /// of it. Returns `None`, and counts the event as filtered, if the task filter rejects it.
    fn caller(&self, guard: &Guard, task: &TaskRef<'_>) -> Option<Owner>;

    /// Starts an event, with the alert fields that are already known.
    fn begin(&self, guard: &Guard, key: &[u64; K], owner: Owner, known: &Self::Detail);

    /// Changes the known alert fields of an event; returns whether the key is live.
    fn change(&self, guard: &Guard, key: &[u64; K], change: impl FnOnce(&mut Self::Detail))
        -> bool;

    /// Ends an event. If it is late, `finish` completes the fields of the alert. Returns whether
    /// the key was live.
    fn end(&self, guard: &Guard, key: &[u64; K], finish: impl FnOnce(&mut Self::Detail)) -> bool;

    /// Ends an event as [`Events::end`] does. The alert has the stack that `stack` returns.
    fn end_with(
        &self,
        guard: &Guard,
        key: &[u64; K],
        stack: impl FnOnce(usize) -> Stack,
        finish: impl FnOnce(&mut Self::Detail),
    ) -> bool;
}

impl<const K: usize, const D: usize, O: Own, T: Declared<K, D, O>> Events<K> for Live<T, K, D, O> {
    type Detail = T::Detail;

    #[inline(always)]
    fn caller(&self, guard: &Guard, task: &TaskRef<'_>) -> Option<Owner> {
        let cpu = tasks::this_cpu(guard);
        let caller = tasks::caller(&self.core, task, Context::current(), cpu);
        if caller.is_none() {
            self.core.engine().filtered(guard);
        }
        caller
    }

    #[inline(always)]
    fn begin(&self, guard: &Guard, key: &[u64; K], owner: Owner, known: &T::Detail) {
        let engine = self.core.engine();
        engine.event_in(guard, key, Kernel::now(), &record::data::<D>(owner, known));
    }

    #[inline(always)]
    fn change(&self, guard: &Guard, key: &[u64; K], change: impl FnOnce(&mut T::Detail)) -> bool {
        let found = self.core.engine().update(guard, key, |event| {
            let old = event.data();
            let mut known = record::known::<D, T::Detail>(&old);
            change(&mut known);
            event.set_data(&record::data::<D>(record::owner(&old), &known));
            Verdict::Keep
        });
        found.is_some()
    }

    #[inline(always)]
    fn end(&self, guard: &Guard, key: &[u64; K], finish: impl FnOnce(&mut T::Detail)) -> bool {
        self.end_with(guard, key, stack_here::<K, D, O, T>, finish)
    }

    #[inline(always)]
    fn end_with(
        &self,
        guard: &Guard,
        key: &[u64; K],
        stack: impl FnOnce(usize) -> Stack,
        finish: impl FnOnce(&mut T::Detail),
    ) -> bool {
        let ended = self.core.engine().event_out_if_known(
            guard,
            key,
            Kernel::now,
            |_| true,
            |late| {
                let mut detail = T::detail(&late.key, &late.data);
                finish(&mut detail);
                let owner = T::owner(&late.data);
                report_with::<K, D, O, T>(&self.core, guard, late, owner, detail, stack);
            },
        );
        ended.is_some()
    }
}

/// Raises the alert for the late end of an event.
#[cold]
pub(super) fn report<const K: usize, const D: usize, O: Own, T: Declared<K, D, O>>(
    core: &Core<K, D>,
    guard: &Guard,
    late: &Late<K, D>,
    owner: Owner,
    detail: T::Detail,
) {
    report_with::<K, D, O, T>(core, guard, late, owner, detail, stack_here::<K, D, O, T>);
}

fn stack_here<const K: usize, const D: usize, O: Own, T: Declared<K, D, O>>(depth: usize) -> Stack {
    match T::HAS_STACK {
        true => Stack::here(depth),
        false => Stack::EMPTY,
    }
}

/// Raises the alert for the late end of an event, with the stack that `stack` returns.
#[cold]
fn report_with<const K: usize, const D: usize, O: Own, T: Declared<K, D, O>>(
    core: &Core<K, D>,
    guard: &Guard,
    late: &Late<K, D>,
    owner: Owner,
    mut detail: T::Detail,
    stack: impl FnOnce(usize) -> Stack,
) {
    if T::IS_OF_TASKS && !tasks::is_reported(core, guard, &T::suspect(&detail, owner)) {
        return;
    }
    let stack = core.stack_to_raise(stack);
    let now = late.start.wrapping_add(late.delay);
    T::settle(&mut detail, late.start, now);
    let details = detail.details(owner);
    core.raise(guard, late, &details, stack.entries());
}

impl<const K: usize, const D: usize, O: Own, T: Declared<K, D, O>> Probes<K, D, O> for T {
    type Attachment = T::Attachment;

    fn kind() -> &'static Kind {
        T::kind()
    }

    fn attach(live: Arc<Live<T, K, D, O>>) -> Result<Self::Attachment> {
        T::attach(live)
    }

    const TAKES_STOCK: bool = T::TAKES_STOCK;

    fn take_stock(live: &Live<T, K, D, O>) {
        T::take_stock(live);
    }

    fn owner(data: &[u64; D]) -> Owner {
        T::stack_owner(data)
    }

    fn can_time_out(data: &[u64; D]) -> bool {
        T::can_time_out(data)
    }

    fn details(core: &Core<K, D>, late: &Late<K, D>, now: u64) -> Option<Details> {
        let (owner, mut detail) = (T::owner(&late.data), T::detail(&late.key, &late.data));
        let suspect = T::suspect(&detail, owner);
        if T::IS_OF_TASKS && !tasks::is_reported(core, &Kernel::guard(), &suspect) {
            return None;
        }
        T::settle(&mut detail, late.start, now);
        Some(detail.details(owner))
    }

    fn collect_missed(attachment: &mut Self::Attachment) {
        T::collect_missed(attachment);
    }

    fn show_fields(core: &Core<K, D>, event: &EventCopy<K, D>, is_trusted: bool, out: &SeqFile) {
        T::show(core, event, How::of_pending(is_trusted), out);
    }
}

/// Returns the list of parameters: the common ones, the task filter if there is one, the tracker's
/// own, and the label parameters.
pub(super) const fn params<const N: usize>(
    threshold: u64,
    filter: &[Param],
    own: &[Param],
    labels: &[Param],
) -> [Param; N] {
    assert!(N <= PARAMS_MAX);
    let common = crate::instance::params(threshold);
    let mut all = [common[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < common::COUNT {
            common[at]
        } else if at < common::COUNT + filter.len() {
            filter[at - common::COUNT]
        } else if at < N - labels.len() {
            own[at - common::COUNT - filter.len()]
        } else {
            labels[at + labels.len() - N]
        };
        at += 1;
    }
    all
}

/// Declares the static `PARAMS` with all parameters of a tracker, given the threshold, the task
/// filter, the values of `by` and its own parameters. The position of a parameter `vec` becomes
/// `PARAM_VEC`.
macro_rules! parameters {
    (
        $threshold:expr, $filter:expr, $by:expr;
        $($param:ident: $takes:expr => $default:expr, $says:literal $(, $fixed:ident)?;)*
    ) => {
        const FILTER: &[$crate::control::Param] = $filter;

        ::kernel::macros::paste! {
            #[allow(non_camel_case_types, reason = "named as the parameters, if there are any")]
            enum OwnParam {
                $([<$param>],)*
                Count,
            }
            $(const [<PARAM_ $param:upper>]: usize =
                $crate::instance::common::COUNT + FILTER.len() + OwnParam::[<$param>] as usize;)*
        }

        static PARAMS: [
            $crate::control::Param;
            $crate::instance::common::COUNT
                + FILTER.len()
                + OwnParam::Count as usize
                + $crate::instance::labels::PARAMS
        ] = $crate::trackers::declare::params(
            $threshold,
            FILTER,
            &$crate::instance::param_list!($($param: $takes => $default, $says $(, $fixed)?;)*),
            &$crate::instance::labels::params($by),
        );
    };
}
pub(super) use parameters;

/// Declares a tracker of tracepoints. A declaration has, in this order:
///
/// - its name, and the operation that it measures; the number of words of a key; the
///   threshold, in nanoseconds;
/// - `tasks`, if it has the task filter: whether kernel threads pass it by default; `stack`, if an
///   alert raised at the end has the stack at that point; `stock`, the function that starts events
///   for operations in flight when an instance starts; `lacks`, see [`Kind::lacks`]; `own`, the
///   type of the tracker's state in an instance; `counters`, if it has counters besides `readers`:
///   their names (the position of `missed` becomes `COUNT_MISSED`), or the list of all its
///   counters; `check`, see [`Kind::check`]; `create`, see [`Kind::create`], if the type of its
///   events depends on the values;
/// - its own parameters, each with its kind, its default and its help, and `fixed` if it can be set
///   only at creation; the position of a parameter `vec` becomes `PARAM_VEC`;
/// - the words that an event keeps: `owner` for its owner only; `detail` for the owner and the
///   known alert fields; `N` for the first `N` words of owner and fields; or `[N]` for N words that
///   the tracker lays out. With `owner`, `Detail::of(key)` makes the fields; with `[N]`,
///   `Detail::of(key, data)`;
/// - the fields of an alert, see [`record!`](crate::record::record), each with a comment that
///   describes it in the page of the ABI. If a function prints the field, the comment starts with
///   the names in the line: `` `arg0`, `arg1`: ``. `stored` and `printed` give the order of the
///   fields in the trace event and in its text, if it differs from the order in the alert line.
///   Without `alert`, the tracker has no trace event of its own, and `Detail` is declared
///   elsewhere;
/// - `attach`: the type that keeps the probes attached, its constructor, and the function that
///   returns the missing kernel feature, if any. Or `probes`: the header of the tracepoints, their
///   arguments with their C types, and the method of `Probes` to call, with its arguments, each a
///   `u64`. Probes are attached in the order of this list: list the end before the start, so that
///   no end is missed. There may be several headers. A tracepoint that depends on the kernel's
///   configuration has `#[cfg(CONFIG_...)]` before it;
/// - `impl`: items that override the defaults of [`Declared`]. Every field with an `at`, of at most
///   four words, that has no `if`, or has `if alert`, can be a label (`by=`), unless it is in
///   `LABELS.excluded` there: a field that an event does not keep, or that is complete only at the
///   end. With `LABELS.has_stack`, the stack of the task at the end can be one, too.
///
/// scripts/trackers also reads the declaration: run it after each change.
///
/// # Examples
///
/// The smallest tracker, [`softirq`](super::softirq): `keeps: owner`, and all fields follow from
/// the key.
///
/// ```ignore
#[cfg_attr(doc, doc = include_str!("softirq.rs"))]
/// ```
///
/// | file | what else it shows |
/// |---|---|
/// | [`reclaim`](super::reclaim) | `keeps: detail`; other tracepoints change the fields of a live event |
/// | [`irq`](super::irq) | `keeps: [N]`, and probes of `sys`, which pass kernel objects |
/// | [`syscall`](super::syscall) | `stock`, fields that print themselves, own counters |
macro_rules! tracker {
    (
        $name:ident: $help:literal;
        key: $key:literal;
        threshold: $threshold:expr;
        $(tasks: $kthreads:literal;)?
        $(stack: $stack:literal;)?
        $(stock: $stock:path;)?
        $(lacks: $lacks:expr;)?
        $(own: $own:ty;)?
        $(counters: $counters:expr;)?
        $(counters { $($(#[$_counts:meta])* $counter:ident,)* })?
        $(check: $check:path;)?
        $(create: $create:path;)?
        params {
            $($param:ident: $takes:expr => $default:expr, $says:literal $(, $fixed:ident)?;)*
        }
        keeps: $keeps:tt;
        $(stored: $($_stored:ident)*;)?
        $(printed: $($_printed:ident)*;)?
        $(alert { $($alert:tt)* })?
        $(attach: $attachment:ty = $attach:expr, $missing:expr;)?
        $(
            probes $_header:ident {
                $(
                    $(#[$cfg:meta])*
                    $tracepoint:ident($($arg:ident: $_type:tt),*) => $method:ident($($given:expr),*);
                )*
            }
        )*
        $(impl { $($item:item)* })?
    ) => {
        $crate::trackers::declare::parameters! {
            $threshold,
            $crate::record::first!($(&$crate::trackers::tasks::filter($kthreads),)? &[]),
            BY;
            $($param: $takes => $default, $says $(, $fixed)?;)*
        }

        $(::kernel::macros::paste! {
            #[expect(non_camel_case_types, reason = "named as the counters")]
            enum OwnCounter {
                $([<$counter>],)*
            }
            $(const [<COUNT_ $counter:upper>]: usize =
                $crate::trackers::tasks::READERS_AT + 1 + OwnCounter::[<$counter>] as usize;)*
        })?

        /// The values of `by`.
        const BY: &[&str] = {
            const FIELDS: &[$crate::record::FieldInfo] =
                <Detail as $crate::record::Record>::FIELDS;
            const COUNT: usize = LABELS.count(FIELDS);
            const NAMES: [&str; COUNT] = LABELS.names(FIELDS);
            &NAMES
        };

        const LABELS: $crate::instance::labels::Rules = <Tracked
            as $crate::trackers::declare::Declared<$key, WORDS $(, $own)?>>::LABELS;

        pub(crate) static KIND: $crate::instance::kind::Kind = $crate::instance::kind::Kind {
            name: stringify!($name),
            c_name: $crate::sys::tracepoint::c_name!($name),
            help: $help,
            params: &PARAMS,
            counters: &$crate::record::first!(
                $($counters,)?
                $([$crate::trackers::tasks::READERS $(, stringify!($counter))*],)?
                $({ let _: bool = $kthreads; [$crate::trackers::tasks::READERS] },)?
                []
            ),
            detail_words: <Detail as $crate::record::Record>::WORDS,
            tail: None,
            no_user_stack: <Tracked
                as $crate::trackers::declare::Declared<$key, WORDS $(, $own)?>>::NO_USER_STACK,
            keeps_user_stack: <Tracked
                as $crate::trackers::declare::Declared<$key, WORDS $(, $own)?>>::KEEPS_USER_STACK,
            labels: Some($crate::instance::kind::Labelling {
                source: |by| $crate::instance::labels::source(
                    &LABELS,
                    by,
                    <Tracked as $crate::trackers::declare::Declared<$key, WORDS $(, $own)?>>::detail,
                    <Tracked as $crate::trackers::declare::Declared<$key, WORDS $(, $own)?>>::owner,
                ),
                show: |by, label, f| $crate::instance::labels::show::<Detail>(&LABELS, by, label, f),
            }),
            detail: <Detail as $crate::record::Record>::print,
            check: $crate::record::first!($($check,)? $crate::instance::kind::all_right),
            missing: $crate::record::first!(
                $($missing,)?
                || $crate::sys::tracepoint::missing(probes())$(.or_else(|| {
                    let _ = $stock;
                    $crate::trackers::stock::missing()
                }))?
            ),
            lacks: $crate::record::first!($($lacks,)? None),
            create: Some($crate::record::first!(
                $($create,)?
                $crate::instance::probed::Probed::<Tracked, _, _, _>::create
            )),
        };

        $($crate::record::record! {
            /// The tracker's own fields of an alert.
            pub(crate) struct Detail {
                $($alert)*
            }
        })?

        /// The tracker, for [`Declared`]($crate::trackers::declare::Declared).
        pub(crate) struct Tracked;

        /// The state that the tracker's probes work on.
        pub(crate) type Probes = $crate::instance::probed::Live<Tracked, $key, WORDS $(, $own)?>;

        /// Number of words that an event keeps.
        const WORDS: usize = $crate::trackers::declare::tracker!(@words $keeps);

        #[allow(dead_code, reason = "a tracker with `attach` may attach other probes")]
        fn probes() -> impl IntoIterator<
            Item = $crate::sys::tracepoint::Probe<'static, Probes>,
        > {
            [$($($(#[$cfg])* $crate::sys::tracepoint::handled!(
                $tracepoint($($arg),*): |probes: Probes, guard| probes.$method(guard, $($given),*)
            ),)*)*]
        }

        impl $crate::trackers::declare::Declared<$key, WORDS $(, $own)?> for Tracked {
            $(const IS_OF_TASKS: bool = { let _: bool = $kthreads; true };)?
            $(const HAS_STACK: bool = $stack;)?
            $(
                const TAKES_STOCK: bool = true;

                fn take_stock(live: &Probes) {
                    $stock(live);
                }
            )?

            type Detail = Detail;
            type Attachment = $crate::trackers::declare::tracker!(@attachment $($attachment)?);

            fn kind() -> &'static $crate::instance::kind::Kind {
                &KIND
            }

            fn attach(live: ::kernel::sync::Arc<Probes>) -> ::kernel::error::Result<Self::Attachment> {
                $crate::record::first!(
                    $(($attach)(live),)?
                    $crate::sys::tracepoint::Attachment::new(live, probes())
                )
            }

            #[inline(always)]
            fn detail(key: &[u64; $key], data: &[u64; WORDS]) -> Detail {
                $crate::trackers::declare::tracker!(@detail $keeps key data)
            }

            $($($item)*)?
        }
    };
    (@attachment) => { $crate::sys::tracepoint::Attachment<Probes> };
    (@attachment $attachment:ty) => { $attachment };
    (@words owner) => { $crate::alert::record::Owner::WORDS };
    (@words detail) => {
        $crate::alert::record::Owner::WORDS + <Detail as $crate::record::Record>::WORDS
    };
    (@words $words:literal) => { $words };
    (@words [$words:literal]) => { $words };
    (@detail owner $key:ident $data:ident) => {{ let _ = $data; Detail::of($key) }};
    (@detail [$words:literal] $key:ident $data:ident) => { Detail::of($key, $data) };
    (@detail $keeps:tt $key:ident $data:ident) => {{ let _ = $key; $crate::record::known($data) }};
}
pub(super) use tracker;
