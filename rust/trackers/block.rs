// SPDX-License-Identifier: GPL-2.0

//! `block`: how long block I/O requests take.
//!
//! ```text
//!   created ------> inserted ------> issued ------> completed        the life of a request
//!   (submitter)     (scheduler)      (driver)       (interrupt)
//!                   |---- queue -----|--- device ---|
//!                                    |<- delay ---->|                from=issue
//!                   |<----------- delay ----------->|                from=insert
//! ```
//!
//! An event begins when somebody submits the request (`block_io_start`): `current` is then who
//! submits, which for buffered writes is a writeback worker. The filter is applied here and
//! nowhere else. The steps that follow stamp the event; a request that goes to the driver
//! directly is never inserted. The key is the request itself, of which there is one at a time:
//!
//! - *requeued* requests go on, from their first issue: that is how long the submitter waits;
//! - *merged* requests cease to exist (`gone`, `merged`);
//! - *partial* completions are counted, the last one ends the event;
//! - requests that complete without ever having been issued have no delay to measure (`gone`,
//!   `unissued`): an empty flush, as fsync makes it, is such a request. If the disk has a cache,
//!   the block layer issues a flush of its own for it; that one is measured, and has no
//!   submitter (pid 0);
//! - a write that is part of a flush sequence completes twice: its data, which is measured, and
//!   the whole sequence, which is not a request's end (no bytes) and is not counted;
//! - requests that leave without completing (`block_io_done` alone) are `gone`, `aborted`;
//! - a request that is issued twice without having been requeued is another one at the same
//!   address, whose predecessor left unseen (`replaced`).
//!
//! # Contexts
//!
//! Probes run in tasks, softirqs and hard interrupts, mostly preemptible, so each takes the
//! engine's guard.

use crate::{
    alerts::Alerts,
    control::{Device, Kind as ParamKind, Param, ALL_DEVICES},
    instance::{common, common_params, Changes, Core, Details, Instance, Values},
    platform::Platform,
    record::{Name, Owner, DETAIL},
    sys::{
        block::{self as requests, Attachment, Follower, Operation, Request, Rwbs},
        platform::Kernel,
        task,
    },
    text::Quoted,
    tracker::{Open, Verdict},
    trackers::Kind, //
};
use kernel::{
    fmt,
    new_mutex,
    prelude::*,
    rbtree::RBTree,
    seq_file::SeqFile,
    seq_print,
    sync::{Arc, Mutex}, //
};

const FROM: usize = 5;
const DEV: usize = 6;
const FROM_INSERT: u64 = 1;

static PARAMS: [Param; 7] = {
    let [enabled, threshold, events, wakeup_interval, ring] = common_params(10_000_000);
    [
        enabled,
        threshold,
        events,
        wakeup_interval,
        ring,
        Param {
            name: "from",
            kind: ParamKind::Word(&["issue", "insert"]),
            default: 0,
            fixed: true,
            help: "measure from the issue to the driver, or from the insertion before it",
        },
        Param {
            name: "dev",
            kind: ParamKind::Disk,
            default: ALL_DEVICES,
            fixed: false,
            help: "only this disk: its name under /dev, or MAJOR:MINOR",
        },
    ]
};

/// Counters of our own.
#[derive(Clone, Copy)]
enum Extra {
    /// Completions of a part of a request.
    Partial,
    /// Requests given back by the driver.
    Requeued,
    /// Requests issued again after that.
    Reissued,
    /// Requests that became part of another one; also in `gone`.
    Merged,
    /// Requests that completed without having been issued; also in `gone`.
    Unissued,
    /// Requests that left without completing; also in `gone`.
    Aborted,
}

const COUNTERS: [&str; 6] = [
    "partial", "requeued", "reissued", "merged", "unissued", "aborted",
];

/// The tracker.
pub(crate) static KIND: Kind = Kind {
    name: "block",
    c_name: c"block",
    help: "block I/O requests, from issue or insertion to completion (key: the request)",
    params: &PARAMS,
    counters: &COUNTERS,
    detail_words: Detail::WORDS,
    detail: |alert, f| f.write_fmt(fmt!(" {}", Detail::from_words(&alert.detail))),
    missing: requests::missing,
    create: Block::create,
};

/// What an event carries from step to step.
///
/// 8 words; times in nanoseconds, 0 for a step not reached.
#[derive(Clone, Copy, Default)]
struct Steps {
    owner: Owner,
    inserted: u64,
    issued: u64,
    dev: u32,
    flags: u32,
    sector: u64,
    bytes: u32,
    requeues: u32,
    /// Given back by the driver, to be issued again.
    waiting: bool,
}

const STEPS: usize = 8;
const WAITING: u64 = 1 << 63;

impl Steps {
    fn to_words(self) -> [u64; STEPS] {
        let [ids, comm0, comm1] = self.owner.to_words();
        let counts = u64::from(self.requeues & 0x7fff_ffff) << 32 | u64::from(self.bytes);
        [
            ids,
            comm0,
            comm1,
            self.inserted,
            self.issued,
            u64::from(self.dev) << 32 | u64::from(self.flags),
            self.sector,
            counts | if self.waiting { WAITING } else { 0 },
        ]
    }

    fn from_words(words: [u64; STEPS]) -> Self {
        let [ids, comm0, comm1, inserted, issued, what, sector, counts] = words;
        Self {
            owner: Owner::from_words([ids, comm0, comm1]),
            inserted,
            issued,
            dev: (what >> 32) as u32,
            flags: what as u32,
            sector,
            bytes: counts as u32,
            requeues: ((counts & !WAITING) >> 32) as u32,
            waiting: counts & WAITING != 0,
        }
    }

    fn set_operation(&mut self, operation: &Operation) {
        self.dev = operation.dev;
        self.flags = operation.flags;
        self.sector = operation.sector;
        self.bytes = operation.bytes;
    }

    fn operation(&self) -> impl fmt::Display + '_ {
        struct Fields<'a>(&'a Steps);
        impl fmt::Display for Fields<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (dev, rwbs) = (Device(self.0.dev), Rwbs(self.0.flags));
                f.write_fmt(fmt!(
                    "dev={dev} op=\"{rwbs}\" sector={} bytes={}",
                    self.0.sector,
                    self.0.bytes
                ))
            }
        }
        Fields(self)
    }
}

/// Our fields of an alert.
struct Detail {
    dev: u32,
    flags: u32,
    sector: u64,
    bytes: u32,
    requeues: u32,
    queue: u64,
    device: u64,
    disk: [u64; 4],
}

impl Detail {
    const WORDS: usize = 9;

    fn to_words(&self) -> [u64; DETAIL] {
        let mut words = [0; DETAIL];
        let used = [
            u64::from(self.dev) << 32 | u64::from(self.flags),
            self.sector,
            u64::from(self.requeues) << 32 | u64::from(self.bytes),
            self.queue,
            self.device,
            self.disk[0],
            self.disk[1],
            self.disk[2],
            self.disk[3],
        ];
        words[..Self::WORDS].copy_from_slice(&used);
        words
    }

    fn from_words(words: &[u64; DETAIL]) -> Self {
        Self {
            dev: (words[0] >> 32) as u32,
            flags: words[0] as u32,
            sector: words[1],
            bytes: words[2] as u32,
            requeues: (words[2] >> 32) as u32,
            queue: words[3],
            device: words[4],
            disk: [words[5], words[6], words[7], words[8]],
        }
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_fmt(fmt!(
            "dev={} disk={} op=\"{}\" sector={} bytes={} queue={} device={} requeues={}",
            Device(self.dev),
            Quoted::words(&self.disk),
            Rwbs(self.flags),
            self.sector,
            self.bytes,
            self.queue,
            self.device,
            self.requeues
        ))
    }
}

/// A step of a request, other than the first and the last.
trait Step {
    /// When it happened, in nanoseconds.
    fn time(&self) -> u64;
    /// Notes it.
    fn note(&self, steps: &mut Steps);
    /// Whether it, or a later one, was noted before.
    fn is_noted(&self, steps: &Steps) -> bool;
    /// Whether the delay is measured from here.
    fn is_begin(&self, steps: &Steps) -> bool;
    /// It comes again, because the driver had given the request back. Returns whether the
    /// request is with the driver again.
    fn resume(&self, steps: &mut Steps) -> bool;
}

/// See [`Follower::inserted`].
struct Insertion {
    now: u64,
    is_begin: bool,
}

impl Step for Insertion {
    fn time(&self) -> u64 {
        self.now
    }

    fn note(&self, steps: &mut Steps) {
        steps.inserted = self.now;
    }

    fn is_noted(&self, steps: &Steps) -> bool {
        steps.inserted != 0 || steps.issued != 0
    }

    fn is_begin(&self, _: &Steps) -> bool {
        self.is_begin
    }

    fn resume(&self, _: &mut Steps) -> bool {
        false
    }
}

/// See [`Follower::issued`].
struct Issue {
    now: u64,
    from_insert: bool,
}

impl Step for Issue {
    fn time(&self) -> u64 {
        self.now
    }

    fn note(&self, steps: &mut Steps) {
        steps.issued = self.now;
        steps.waiting = false;
    }

    fn is_noted(&self, steps: &Steps) -> bool {
        steps.issued != 0
    }

    fn is_begin(&self, steps: &Steps) -> bool {
        !self.from_insert || steps.inserted == 0
    }

    fn resume(&self, steps: &mut Steps) -> bool {
        steps.waiting = false;
        true
    }
}

/// What the probes work on.
struct Probes {
    core: Core<1, STEPS>,
}

type Guard = <Kernel as Platform>::Guard;

impl Probes {
    fn is_wanted(&self, rq: &Request<'_>) -> bool {
        let wanted = self.core.value(DEV);
        wanted == ALL_DEVICES || wanted == u64::from(rq.dev())
    }

    fn count(&self, guard: &Guard, counter: Extra) {
        let stats = self.core.tracker().stats();
        stats.count_extra::<Kernel>(guard, counter as usize);
    }

    /// The request, if it is followed, has ceased to exist.
    fn drop_event(&self, rq: &Request<'_>, why: Extra) {
        let guard = Kernel::guard();
        let tracker = self.core.tracker();
        if tracker
            .update(&guard, &[rq.id()], |_| Verdict::Gone)
            .is_some()
        {
            self.count(&guard, why);
        }
    }

    /// A begin, unless the instance is off.
    fn begin(&self, guard: &Guard, rq: &Request<'_>, now: u64, steps: Steps) {
        let tracker = self.core.tracker();
        if !self.core.is_enabled() {
            tracker.off(guard);
            return;
        }
        tracker.event_in_unique(guard, &[rq.id()], now, &steps.to_words());
    }

    /// The step of a request that has begun. Returns whether there is such a request.
    fn step(&self, guard: &Guard, rq: &Request<'_>, step: &impl Step) -> bool {
        let now = step.time();
        let mut reissued = false;
        let found = self.core.tracker().update(guard, &[rq.id()], |event| {
            let mut steps = Steps::from_words(event.data());
            let verdict = if !step.is_noted(&steps) {
                steps.set_operation(&rq.operation());
                step.note(&mut steps);
                if step.is_begin(&steps) {
                    event.set_start(now);
                }
                Verdict::Keep
            } else if steps.waiting {
                reissued = step.resume(&mut steps);
                Verdict::Keep
            } else {
                steps = Steps::default();
                steps.set_operation(&rq.operation());
                step.note(&mut steps);
                event.set_start(now);
                Verdict::Renewed
            };
            event.set_data(&steps.to_words());
            verdict
        });
        if reissued {
            self.count(guard, Extra::Reissued);
        }
        found.is_some()
    }
}

impl Follower for Probes {
    fn created(&self, rq: &Request<'_>) {
        let guard = Kernel::guard();
        if !self.is_wanted(rq) {
            self.core.tracker().filtered(&guard);
            return;
        }
        let mut steps = Steps::default();
        if let Some(task) = task::current() {
            steps.owner = Owner {
                pid: task.pid,
                tid: task.tid,
                comm: task.comm,
            };
        }
        steps.set_operation(&rq.operation());
        self.begin(&guard, rq, Kernel::now(), steps);
    }

    fn inserted(&self, rq: &Request<'_>) {
        let guard = Kernel::guard();
        let insertion = Insertion {
            now: Kernel::now(),
            is_begin: self.core.value(FROM) == FROM_INSERT,
        };
        self.step(&guard, rq, &insertion);
    }

    fn issued(&self, rq: &Request<'_>) {
        let guard = Kernel::guard();
        let issue = Issue {
            now: Kernel::now(),
            from_insert: self.core.value(FROM) == FROM_INSERT,
        };
        let known = self.step(&guard, rq, &issue);
        // Of what was not submitted, only the block layer's own flushes begin here; anything
        // else was submitted before this instance was on, or found the pool full.
        if known || !rq.is_flush() {
            return;
        }
        if !self.is_wanted(rq) {
            self.core.tracker().filtered(&guard);
            return;
        }
        let mut steps = Steps::default();
        steps.set_operation(&rq.operation());
        issue.note(&mut steps);
        self.begin(&guard, rq, issue.now, steps);
    }

    fn requeued(&self, rq: &Request<'_>) {
        let guard = Kernel::guard();
        let found = self.core.tracker().update(&guard, &[rq.id()], |event| {
            let mut steps = Steps::from_words(event.data());
            steps.requeues = steps.requeues.saturating_add(1);
            steps.waiting = true;
            event.set_data(&steps.to_words());
            Verdict::Keep
        });
        if found.is_some() {
            self.count(&guard, Extra::Requeued);
        }
    }

    fn merged(&self, rq: &Request<'_>) {
        self.drop_event(rq, Extra::Merged);
    }

    fn completed(&self, rq: &Request<'_>, bytes: u32) {
        let guard = Kernel::guard();
        if !rq.is_last(bytes) {
            // No bytes at all: the driver reports an error first, and completes afterwards.
            if bytes != 0 && self.is_wanted(rq) {
                self.count(&guard, Extra::Partial);
            }
            return;
        }
        let tracker = self.core.tracker();
        let now = Kernel::now();
        let mut unissued = false;
        let known = tracker.event_out_if_known(
            &guard,
            &[rq.id()],
            now,
            |event: &Open<'_, 1, STEPS>| {
                unissued = Steps::from_words(event.data()).issued == 0;
                !unissued
            },
            |late| {
                let steps = Steps::from_words(late.data);
                let detail = Detail {
                    dev: steps.dev,
                    flags: steps.flags,
                    sector: steps.sector,
                    bytes: steps.bytes,
                    requeues: steps.requeues,
                    queue: match steps.inserted {
                        0 => 0,
                        inserted => steps.issued.saturating_sub(inserted),
                    },
                    device: now.saturating_sub(steps.issued),
                    disk: rq.disk_name(),
                };
                let details = Details {
                    owner: steps.owner,
                    words: detail.to_words(),
                };
                self.core.raise(&guard, now, late, &details);
            },
        );
        if unissued {
            self.count(&guard, Extra::Unissued);
        }
        // The end of a flush sequence has no bytes and is no request's end.
        if !known && (bytes != 0 || rq.is_flush()) && self.is_wanted(rq) {
            tracker.unmatched(&guard);
        }
    }

    fn done(&self, rq: &Request<'_>) {
        self.drop_event(rq, Extra::Aborted);
    }
}

/// An instance of this tracker.
#[pin_data]
struct Block {
    probes: Arc<Probes>,
    /// The lock also serialises changes.
    #[pin]
    state: Mutex<State>,
}

/// Whether the probes are attached.
enum State {
    Off,
    On(#[expect(dead_code, reason = "held to be dropped")] Attachment<Probes>),
    /// Removed; there is no way back.
    Retired,
}

impl Block {
    fn create(name: Name, values: &Values, all: Arc<Alerts>) -> Result<Arc<dyn Instance>> {
        let core = Core::new(name, &KIND, values, all)?;
        let probes = Arc::new(Probes { core }, GFP_KERNEL)?;
        let instance = Arc::pin_init(
            pin_init!(Self {
                probes,
                state <- new_mutex!(State::Off),
            }),
            GFP_KERNEL,
        )?;
        Ok(instance)
    }
}

impl Block {
    /// Detaches the probes if they are attached, and drops what is pending.
    fn detach(&self, state: &mut State, next: State) {
        let core = &self.probes.core;
        core.set_enabled(false);
        *state = next;
        core.tracker().clear();
    }
}

impl Instance for Block {
    fn kind(&self) -> &'static Kind {
        self.probes.core.kind()
    }

    fn alerts(&self) -> Arc<Alerts> {
        self.probes.core.alerts().clone()
    }

    fn value(&self, param: usize) -> u64 {
        self.probes.core.value(param)
    }

    fn apply(&self, changes: &Changes) -> Result {
        let core = &self.probes.core;
        let mut state = self.state.lock();
        let values = &changes.over(core.values());
        let enable = values[common::ENABLED] != 0;
        match *state {
            State::Retired => return Err(ENODEV),
            State::Off if enable => {
                let attachment = Attachment::new(self.probes.clone())?;
                core.set_values(values);
                core.set_enabled(true);
                *state = State::On(attachment);
            }
            _ => core.set_values(values),
        }
        if !enable {
            self.detach(&mut state, State::Off);
        }
        Ok(())
    }

    fn retire(&self) {
        self.detach(&mut self.state.lock(), State::Retired);
    }

    fn show_stats(&self, out: &SeqFile) {
        self.probes.core.show_stats(out);
    }

    fn show_histogram(&self, out: &SeqFile) {
        self.probes.core.show_histogram(out);
    }

    fn show_pending(&self, out: &SeqFile) -> Result {
        let now = Kernel::now();
        let mut events = RBTree::new();
        self.probes.core.tracker().each_pending(|event| {
            // Oldest first; two that began together differ by their request.
            events.try_create_and_insert((event.start, event.key), event, GFP_KERNEL)?;
            Ok(())
        })?;
        for event in events.values() {
            let steps = Steps::from_words(event.data);
            let state = match (steps.inserted, steps.issued) {
                (_, 1..) => "issued",
                (1.., 0) => "inserted",
                (0, 0) => "created",
            };
            seq_print!(
                out,
                "age={} start={} rq={:#x} {} {} state={state} requeues={}\n",
                now.saturating_sub(event.start),
                event.start,
                // Not the address: that is nobody's business.
                self.probes.core.tracker().pseudonym(&event.key),
                steps.owner,
                steps.operation(),
                steps.requeues
            );
        }
        Ok(())
    }
}
