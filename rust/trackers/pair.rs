// SPDX-License-Identifier: GPL-2.0

//! `pair`: the time from any point of the kernel to another.
//!
//! ```text
//!   begin=tracepoint:block_rq_issue        end=tracepoint:block_rq_complete
//!         begin_key=arg0                          end_key=arg0
//!               |---------------- delay ---------------->|
//! ```
//!
//! A point is a tracepoint, the call of a function, or the return from a function. The user chooses
//! the key: registers at the point, the thread or the CPU. An end belongs to the start with the
//! same key.
//!
//! A key is live at most once. A second start of a live key means either that the end of the first
//! event was missed, or that the operation continues: the user chooses.
//!
//! # Contexts
//!
//! The contexts of the points: any, including NMI.

use self::event::{Detail, FieldValues};
use super::declare::*;
use crate::{
    control::{
        fields::{self, Field},
        Point, //
    },
    instance::Values,
    record,
    sys::{
        fprobe::{self, Call, Frame, Functions, What},
        raw::{self, REGISTERS}, //
    },
};
use core::marker::PhantomData;
use kernel::{prelude::*, str::CString, sync::Arc};

mod event;

/// The value of `again` that keeps the first start.
const KEEP: u64 = 1;

/// The word in `end_key` for the fields of `begin_key`.
const SAME: Option<&str> = Some("same");
/// The word for no fields.
const NONE: Option<&str> = Some("none");

tracker! {
    pair: "from any tracepoint or function to another (key: as chosen)";
    key: 2;
    threshold: 10_000_000;
    tasks: true;
    counters {
        /// Calls of functions that the kernel could not trace.
        missed,
        /// Hits in our own probes (functions only), or while our readers are woken; not tracked.
        own,
        /// Further starts of an operation that continues.
        again,
    }
    check: check;
    params {
        begin: ParamKind::Point => 0, "start of the operation; required", fixed;
        begin_key: ParamKind::Fields { empty: None } => Field::TID,
            "values that identify an operation at its start", fixed;
        begin_show: ParamKind::Fields { empty: NONE } => 0,
            "further values at the start, for the alert", fixed;
        end: ParamKind::Point => 0, "end of the operation; required", fixed;
        end_key: ParamKind::Fields { empty: SAME } => 0,
            "values at the end that equal those of begin_key", fixed;
        end_show: ParamKind::Fields { empty: NONE } => 0,
            "further values at the end, for the alert", fixed;
        again: ParamKind::Word(&["replace", "keep"]) => 0,
            "on a second start of a live key: replace the first, or keep it";
    }
    keeps: [6];
    attach: BothAttached = BothAttached::new, || None;
    impl {
        const NO_USER_STACK: &str = NOT_RECORDED;

        // Printing them requires the number of their values, which a label does not have.
        const LABELS: labels::Rules = labels::Rules::ALL.without(&["key", "begin"]);

        fn collect_missed(attached: &mut BothAttached) {
            match &mut attached.0 {
                Sides::Two(begin, end) => {
                    begin.collect_missed();
                    end.collect_missed();
                }
                Sides::One(both) => both.collect_missed(),
            }
        }
    }
}

/// Returns the parameter that makes this combination of values invalid, and the reason, if any.
pub(crate) fn check(values: &Values) -> Option<(usize, &'static str)> {
    let sides = [
        (PARAM_BEGIN, PARAM_BEGIN_KEY, PARAM_BEGIN_SHOW),
        (PARAM_END, PARAM_END_KEY, PARAM_END_SHOW),
    ];
    for (point, key, show) in sides {
        let (point, _) = Point::split(values.text(point)?.to_bytes())?;
        let lists = [
            (key, end_key(values[key] as u64, values)),
            (show, values[show] as u64),
        ];
        for (param, list) in lists {
            for field in fields::of(list).into_iter().flatten() {
                match (point, field) {
                    (Point::Return, Field::Argument { .. }) => {
                        return Some((param, "a return has no arguments; use ret"));
                    }
                    (Point::Tracepoint | Point::Entry, Field::Result) => {
                        return Some((param, "only a return has ret"));
                    }
                    _ => {}
                }
            }
        }
    }
    let count = |list| fields::of(list).into_iter().flatten().count();
    let begin = count(values[PARAM_BEGIN_KEY] as u64);
    let end = count(end_key(values[PARAM_END_KEY] as u64, values));
    (begin != end).then_some((PARAM_END_KEY, "expected as many fields as begin_key has"))
}

/// Returns the fields of the key at the end: `list`, the value of `end_key`; or if `list` is empty,
/// the fields of `begin_key`.
fn end_key(list: u64, values: &Values) -> u64 {
    match list {
        0 => values[PARAM_BEGIN_KEY] as u64,
        list => list,
    }
}

/// The values available where a point is hit.
struct Here<'a> {
    registers: &'a [u64; REGISTERS],
    result: u64,
}

impl Here<'_> {
    #[inline(always)]
    fn take(&self, guard: &Guard, list: u64) -> FieldValues {
        let value = |field| match field {
            None => 0,
            Some(Field::Tid) => TaskRef::with_current(|task| u64::from(task.tid())),
            Some(Field::Cpu) => Kernel::cpu(guard) as u64,
            Some(Field::Result) => self.result,
            Some(Field::Argument { nth, width }) => {
                let register = self.registers.get(usize::from(nth));
                width.of(register.copied().unwrap_or(0))
            }
        };
        fields::of(list).map(value)
    }
}

/// One side of a pair.
trait Side: 'static {
    fn happens(probes: &Probes, guard: &Guard, here: &Here<'_>);
}

struct Begin;
struct End;
/// Both sides, at the same point: the end is handled first.
struct Both;

impl Side for Begin {
    #[inline(always)]
    fn happens(probes: &Probes, guard: &Guard, here: &Here<'_>) {
        let (core, engine) = (&probes.core, probes.core.engine());
        TaskRef::with_current(|task| {
            let context = Context::current();
            let cpu = Kernel::cpu(guard) as u32;
            let Some(owner) = tasks::caller(core, &task, context, cpu) else {
                engine.filtered(guard);
                return;
            };
            let key = here.take(guard, core.value(PARAM_BEGIN_KEY));
            // If two CPUs find no live event here at the same moment, the later start stays.
            if core.value(PARAM_AGAIN) == KEEP && engine.copy_of(guard, &key, |_| true).is_some() {
                core.count_extra(guard, COUNT_AGAIN);
                return;
            }
            let [keys, begins, ends] = [PARAM_BEGIN_KEY, PARAM_BEGIN_SHOW, PARAM_END_SHOW]
                .map(|list| fields::of(core.value(list)).into_iter().flatten().count() as u8);
            let known = Detail {
                context,
                keys,
                begin: here.take(guard, core.value(PARAM_BEGIN_SHOW)),
                begins,
                ends,
                ..Detail::default()
            };
            engine.event_in_unique(guard, &key, Kernel::now(), &known.data(owner));
        });
    }
}

impl Side for End {
    #[inline(always)]
    fn happens(probes: &Probes, guard: &Guard, here: &Here<'_>) {
        let core = &probes.core;
        let list = match core.value(PARAM_END_KEY) {
            0 => core.value(PARAM_BEGIN_KEY),
            list => list,
        };
        let key = here.take(guard, list);
        core.engine().event_out(
            guard,
            &key,
            Kernel::now,
            |_| true,
            |late| {
                let mut detail = Detail::of(&late.key, &late.data);
                detail.end = here.take(guard, core.value(PARAM_END_SHOW));
                let owner = record::owner(&late.data);
                report::<_, _, _, Tracked>(core, guard, late, owner, detail);
            },
        );
    }
}

impl Side for Both {
    #[inline(always)]
    fn happens(probes: &Probes, guard: &Guard, here: &Here<'_>) {
        End::happens(probes, guard, here);
        Begin::happens(probes, guard, here);
    }
}

impl<S: Side> raw::Observer<S> for Probes {
    #[inline(always)]
    fn hit(&self, guard: &Guard, registers: &[u64; REGISTERS]) {
        let result = 0;
        S::happens(self, guard, &Here { registers, result });
    }

    #[cold]
    fn within_ourselves(&self, guard: &Guard) {
        self.core.count_extra(guard, COUNT_OWN);
    }
}

impl Probes {
    fn count_missed(&self, calls: u64) {
        self.core.add_extra(&Kernel::guard(), COUNT_MISSED, calls);
    }
}

/// A side that is the call of a function.
struct Called<S>(PhantomData<S>);

impl<S: Side> fprobe::Observer<Called<S>> for Probes {
    #[inline(always)]
    fn entered(&self, guard: &Guard, call: &Call<'_>, _: Frame) -> Option<u64> {
        let registers = &core::array::from_fn(|nth| call.argument(nth as u32));
        let result = 0;
        S::happens(self, guard, &Here { registers, result });
        None
    }

    fn returned(&self, _: &Guard, _: &Call<'_>, _: Frame, _: u64) {}

    #[cold]
    fn within_ourselves(&self, guard: &Guard) {
        self.core.count_extra(guard, COUNT_OWN);
    }

    fn missed(&self, calls: u64) {
        self.count_missed(calls);
    }
}

/// A side that is the return from a function.
struct Returned<S>(PhantomData<S>);

impl<S: Side> fprobe::Observer<Returned<S>> for Probes {
    #[inline(always)]
    fn entered(&self, _: &Guard, _: &Call<'_>, _: Frame) -> Option<u64> {
        Some(0)
    }

    #[inline(always)]
    fn returned(&self, guard: &Guard, call: &Call<'_>, _: Frame, _: u64) {
        let (registers, result) = (&[0; REGISTERS], call.result());
        S::happens(self, guard, &Here { registers, result });
    }

    #[cold]
    fn within_ourselves(&self, guard: &Guard) {
        self.core.count_extra(guard, COUNT_OWN);
    }

    fn missed(&self, calls: u64) {
        self.count_missed(calls);
    }
}

#[expect(dead_code, reason = "held to be dropped")]
enum Attached<S: Side> {
    Tracepoint(Attachment<Probes>),
    Called(Functions<Called<S>, Probes>),
    Returned(Functions<Returned<S>, Probes>),
}

impl<S: Side> Attached<S> {
    fn new(live: &Arc<Probes>, param: usize) -> Result<Self> {
        let text = live.core.text(param).ok_or(EINVAL)?;
        let (point, name) = Point::split(text.to_bytes()).ok_or(EINVAL)?;
        let name = core::str::from_utf8(name).map_err(|_| EINVAL)?;
        let name = &CString::try_from_fmt(fmt!("{name}"))?;
        Ok(match point {
            Point::Tracepoint => Self::Tracepoint(raw::attach::<S, _>(name, live.clone())?),
            Point::Entry => Self::Called(Functions::new(name, What::Entry, live.clone())?),
            Point::Return => Self::Returned(Functions::new(name, What::Both, live.clone())?),
        })
    }

    fn collect_missed(&mut self) {
        match self {
            Self::Tracepoint(_) => {}
            Self::Called(functions) => functions.collect_missed(),
            Self::Returned(functions) => functions.collect_missed(),
        }
    }
}

/// Keeps both sides attached.
pub(crate) struct BothAttached(Sides);

enum Sides {
    /// The start is dropped first.
    Two(Attached<Begin>, Attached<End>),
    /// Both sides at one point. The order in which a point calls several probes depends on its
    /// kind, so a single probe handles both sides.
    One(Attached<Both>),
}

impl BothAttached {
    fn new(live: Arc<Probes>) -> Result<Self> {
        if live.core.text(PARAM_BEGIN) == live.core.text(PARAM_END) {
            let both = Attached::new(&live, PARAM_BEGIN)?;
            return Ok(Self(Sides::One(both)));
        }
        // The end is attached before the start, so that no end is missed.
        let end = Attached::new(&live, PARAM_END)?;
        let begin = Attached::new(&live, PARAM_BEGIN)?;
        Ok(Self(Sides::Two(begin, end)))
    }
}
