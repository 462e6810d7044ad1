// SPDX-License-Identifier: GPL-2.0

//! `pair`: from one point of the kernel to another, with any meaning.
//!
//! ```text
//!   begin=tracepoint:block_rq_issue        end=tracepoint:block_rq_complete
//!         begin_key=arg0                          end_key=arg0
//!               |---------------- delay ---------------->|
//! ```
//!
//! A point is a tracepoint, or a function that is called, or one that returns. The key is what the
//! instance takes from the registers there, the thread or the CPU; an end belongs to the begin with
//! the same key. The meaning of each is up to the user.
//!
//! A key is live once. A begin with a live key means that the end of the earlier one was missed, or
//! that the operation continues: the user chooses.
//!
//! # Contexts
//!
//! Those of the points: any, including NMI.

use self::event::{FieldValues, PairEvent, WORDS};
use super::tasks::{self, Guard};
use crate::{
    alert::record::Owner,
    control::{
        fields::{self, Field},
        Kind as ParamKind,
        Param,
        Point, //
    },
    engine::{event::EventCopy, platform::Platform, tracker::Late},
    instance::{
        common,
        kind::Kind,
        params,
        probed::{self, Live, Probed},
        Core,
        Details,
        Values, //
    },
    sys::{
        fprobe::{self, Call, Frame, Functions, What},
        platform::Kernel,
        raw::{self, REGISTERS},
        symbol::Limit,
        task::{Context, TaskRef},
        tracepoint, //
    }, //
};
use core::marker::PhantomData;
use kernel::{prelude::*, seq_file::SeqFile, seq_print, str::CString, sync::Arc};

mod event;

const BEGIN: usize = common::COUNT + tasks::FILTER;
const BEGIN_KEY: usize = BEGIN + 1;
const BEGIN_SHOW: usize = BEGIN_KEY + 1;
const END: usize = BEGIN_SHOW + 1;
const END_KEY: usize = END + 1;
const END_SHOW: usize = END_KEY + 1;
const AGAIN: usize = END_SHOW + 1;

/// A value of `again`.
const KEEP: u64 = 1;

/// The word for the fields of `begin_key`.
const SAME: Option<&str> = Some("same");
/// The word for no fields.
const NONE: Option<&str> = Some("none");

static PARAMS: [Param; AGAIN + 1] = {
    const fn param(name: &'static str, kind: ParamKind, default: u64, help: &'static str) -> Param {
        Param {
            name,
            kind,
            default,
            fixed: true,
            help,
        }
    }
    const fn list(empty: Option<&'static str>) -> ParamKind {
        ParamKind::Fields { empty }
    }
    let [a, b, c, d, e, f, g] = tasks::filter(true);
    let begin = param(
        "begin",
        ParamKind::Point,
        0,
        "start of the operation; required",
    );
    let begin_key = param(
        "begin_key",
        list(None),
        Field::TID,
        "values that identify an operation at its start",
    );
    let begin_show = param(
        "begin_show",
        list(NONE),
        0,
        "further values at the start, for the alert",
    );
    let end = param("end", ParamKind::Point, 0, "end of the operation; required");
    let end_key = param(
        "end_key",
        list(SAME),
        0,
        "values at the end that equal those of begin_key",
    );
    let end_show = param(
        "end_show",
        list(NONE),
        0,
        "further values at the end, for the alert",
    );
    let again = Param {
        fixed: false,
        ..param(
            "again",
            ParamKind::Word(&["replace", "keep"]),
            0,
            "on a second start of a live key: replace the first, or keep it",
        )
    };
    params(
        10_000_000,
        [
            a, b, c, d, e, f, g, begin, begin_key, begin_show, end, end_key, end_show, again,
        ],
    )
};

/// The entry in the list of trackers.
pub(crate) static KIND: Kind = Kind {
    name: "pair",
    c_name: c"pair",
    help: "from any tracepoint or function to another (key: as chosen)",
    params: &PARAMS,
    counters: &[tasks::READERS, "missed", "own", "again"],
    detail_words: PairEvent::DETAIL_WORDS,
    tail: None,
    detail: |alert, f| {
        let pair = PairEvent::from_detail(&alert.detail);
        let limit = Limit::part(alert.is_trusted);
        f.write_fmt(fmt!(" {}", pair.named(alert.reason.is_end(), limit)))
    },
    check,
    missing: fprobe::missing,
    create: Some(Probed::<Pair, _, _>::create),
};

/// Our own counters, after the common one.
#[derive(Clone, Copy)]
enum Extra {
    /// Calls of functions that the kernel could not let us follow.
    Missed = 1,
    /// Points that were hit by our own code.
    Own = 2,
    /// Begins of an operation that continues.
    Again = 3,
}

/// What is wrong with this combination of values, if anything: which parameter, and why.
pub(crate) fn check(values: &Values) -> Option<(usize, &'static str)> {
    let sides = [(BEGIN, BEGIN_KEY, BEGIN_SHOW), (END, END_KEY, END_SHOW)];
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
                        return Some((param, "a return has no arguments, only ret"));
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
    let begin = count(values[BEGIN_KEY] as u64);
    let end = count(end_key(values[END_KEY] as u64, values));
    (begin != end).then_some((END_KEY, "expected as many fields as begin_key has"))
}

/// The fields of a key, which may be the same as those of `begin_key`.
fn end_key(list: u64, values: &Values) -> u64 {
    match list {
        0 => values[BEGIN_KEY] as u64,
        list => list,
    }
}

struct Pair;

type Probes = Live<Pair, { fields::FIELDS }, WORDS>;
type PairCore = Core<{ fields::FIELDS }, WORDS>;

/// What can be taken where a point is hit.
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

/// One end of a pair.
trait Side: 'static {
    fn happens(probes: &Probes, guard: &Guard, here: &Here<'_>);
}

struct Begin;
struct End;

impl Side for Begin {
    #[inline(always)]
    fn happens(probes: &Probes, guard: &Guard, here: &Here<'_>) {
        let (core, tracker) = (&probes.core, probes.core.tracker());
        TaskRef::with_current(|task| {
            let context = Context::current();
            let cpu = Kernel::cpu(guard) as u32;
            let Some(owner) = tasks::caller(core, &task, context, cpu) else {
                tracker.filtered(guard);
                return;
            };
            let key = here.take(guard, core.value(BEGIN_KEY));
            if core.value(AGAIN) == KEEP && tracker.copy_of(guard, &key, |_| true).is_some() {
                core.count_extra(guard, Extra::Again as usize);
                return;
            }
            let pair = PairEvent {
                owner,
                context,
                key,
                begin: here.take(guard, core.value(BEGIN_SHOW)),
                end: FieldValues::default(),
                counts: [BEGIN_KEY, BEGIN_SHOW, END_SHOW]
                    .map(|list| fields::of(core.value(list)).into_iter().flatten().count() as u8),
            };
            tracker.event_in_unique(guard, &key, Kernel::now(), &pair.to_words());
        });
    }
}

impl Side for End {
    #[inline(always)]
    fn happens(probes: &Probes, guard: &Guard, here: &Here<'_>) {
        let core = &probes.core;
        let list = match core.value(END_KEY) {
            0 => core.value(BEGIN_KEY),
            list => list,
        };
        let key = here.take(guard, list);
        core.tracker().event_out(
            guard,
            &key,
            Kernel::now,
            |_| true,
            |late| {
                let mut pair = PairEvent::from_words(&late.data, late.key);
                pair.end = here.take(guard, core.value(END_SHOW));
                tasks::raise(core, guard, late, &pair.details(), &[]);
            },
        );
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
        self.core.count_extra(guard, Extra::Own as usize);
    }
}

/// The call of a function as a side.
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
        self.core.count_extra(guard, Extra::Own as usize);
    }
}

/// The return of a function as a side.
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
        self.core.count_extra(guard, Extra::Own as usize);
    }
}

/// A tracepoint as a side.
#[expect(dead_code, reason = "held to be dropped")]
enum Attached<S: Side> {
    Tracepoint(tracepoint::Attachment<Probes>),
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

    fn take_missed(&mut self) -> u64 {
        match self {
            Self::Tracepoint(_) => 0,
            Self::Called(functions) => functions.take_missed(),
            Self::Returned(functions) => functions.take_missed(),
        }
    }
}

/// The begin is dropped first.
pub(crate) struct Attachment {
    begin: Attached<Begin>,
    end: Attached<End>,
}

impl probed::Probes<{ fields::FIELDS }, WORDS> for Pair {
    type Attachment = Attachment;

    fn kind() -> &'static Kind {
        &KIND
    }

    fn attach(live: Arc<Probes>) -> Result<Attachment> {
        // Nothing begins whose end would be missed.
        let end = Attached::new(&live, END)?;
        let begin = Attached::new(&live, BEGIN)?;
        Ok(Attachment { begin, end })
    }

    fn collect_missed(core: &PairCore, attachment: &mut Attachment) {
        let missed = attachment.begin.take_missed() + attachment.end.take_missed();
        core.add_extra(&Kernel::guard(), Extra::Missed as usize, missed);
    }

    fn owner(data: &[u64; WORDS]) -> Owner {
        PairEvent::from_words(data, FieldValues::default()).owner
    }

    fn details(core: &PairCore, late: &Late<{ fields::FIELDS }, WORDS>, _: u64) -> Option<Details> {
        tasks::reported(core, PairEvent::from_words(&late.data, late.key).details())
    }

    fn show_fields(core: &PairCore, event: &EventCopy<{ fields::FIELDS }, WORDS>, out: &SeqFile) {
        Self::show_fields_to(core, event, false, out);
    }

    fn show_fields_to(
        _: &PairCore,
        event: &EventCopy<{ fields::FIELDS }, WORDS>,
        is_trusted: bool,
        out: &SeqFile,
    ) {
        let pair = PairEvent::from_words(&event.data, event.key);
        let named = pair.named(false, Limit::part(is_trusted));
        seq_print!(out, "{} {named}", pair.owner);
    }
}
