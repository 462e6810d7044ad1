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
//! An event begins when the submitter makes the request (`block_io_start`): only there is
//! `current` the submitting task for sure. The steps that follow stamp it; a request that goes to
//! the driver directly is never inserted. The key is the request itself, of which there is one at
//! a time:
//!
//! - *requeued* requests go on, from their first issue: that is how long the submitter waits;
//! - *merged* requests cease to exist (`gone`);
//! - *partial* completions are counted, the last one ends the event;
//! - requests that complete without ever having been issued, such as flushes of a disk without a
//!   cache, have no delay to measure (`gone`, `unissued`);
//! - a request that is issued twice without having been requeued is another one at the same
//!   address, whose predecessor left unseen (`replaced`);
//! - the block layer's own requests (flush sequences) have no submitter: pid 0.
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
}

const COUNTERS: [&str; 5] = ["partial", "requeued", "reissued", "merged", "unissued"];

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
    create: |name, values, all| {
        let instance = Block::new(name, values, all)?;
        Ok(instance)
    },
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

    /// A begin, unless the instance is off.
    fn begin(&self, guard: &Guard, rq: &Request<'_>, now: u64, steps: Steps) {
        let tracker = self.core.tracker();
        if !self.core.is_enabled() {
            tracker.off(guard);
            return;
        }
        tracker.event_in_unique(guard, &[rq.id()], now, &steps.to_words());
    }

    /// A step of a request that has begun, or the begin of one that nobody submitted.
    ///
    /// `stamp` notes the step; `is_again` says that it was noted before; `restarts` says that
    /// the delay is measured from here; `resumes` is called when the step comes again because
    /// the driver had given the request back, and says whether it is with the driver again.
    fn step(
        &self,
        rq: &Request<'_>,
        stamp: impl Fn(&mut Steps, u64),
        is_again: impl Fn(&Steps) -> bool,
        restarts: impl Fn(&Steps) -> bool,
        resumes: impl Fn(&mut Steps) -> bool,
    ) {
        if !self.is_wanted(rq) {
            return;
        }
        let guard = Kernel::guard();
        let now = Kernel::now();
        let operation = rq.operation();
        let fresh = || {
            let mut steps = Steps::default();
            steps.set_operation(&operation);
            stamp(&mut steps, now);
            steps
        };
        let mut reissued = false;
        let found = self.core.tracker().update(&guard, &[rq.id()], |event| {
            let mut steps = Steps::from_words(event.data());
            let verdict = if !is_again(&steps) {
                steps.set_operation(&operation);
                stamp(&mut steps, now);
                if restarts(&steps) {
                    event.set_start(now);
                }
                Verdict::Keep
            } else if steps.waiting {
                reissued = resumes(&mut steps);
                Verdict::Keep
            } else {
                steps = fresh();
                event.set_start(now);
                Verdict::Renewed
            };
            event.set_data(&steps.to_words());
            verdict
        });
        if found.is_none() {
            self.begin(&guard, rq, now, fresh());
        }
        if reissued {
            self.count(&guard, Extra::Reissued);
        }
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
        let from_insert = self.core.value(FROM) == FROM_INSERT;
        self.step(
            rq,
            |steps, now| steps.inserted = now,
            |steps| steps.inserted != 0 || steps.issued != 0,
            |_| from_insert,
            |_| false,
        );
    }

    fn issued(&self, rq: &Request<'_>) {
        let from_insert = self.core.value(FROM) == FROM_INSERT;
        self.step(
            rq,
            |steps, now| {
                steps.issued = now;
                steps.waiting = false;
            },
            |steps| steps.issued != 0,
            |steps| !from_insert || steps.inserted == 0,
            |steps| {
                steps.waiting = false;
                true
            },
        );
    }

    fn requeued(&self, rq: &Request<'_>) {
        if !self.is_wanted(rq) {
            return;
        }
        let guard = Kernel::guard();
        self.count(&guard, Extra::Requeued);
        self.core.tracker().update(&guard, &[rq.id()], |event| {
            let mut steps = Steps::from_words(event.data());
            steps.requeues += 1;
            steps.waiting = true;
            event.set_data(&steps.to_words());
            Verdict::Keep
        });
    }

    fn merged(&self, rq: &Request<'_>) {
        if !self.is_wanted(rq) {
            return;
        }
        let guard = Kernel::guard();
        let tracker = self.core.tracker();
        if tracker
            .update(&guard, &[rq.id()], |_| Verdict::Gone)
            .is_some()
        {
            self.count(&guard, Extra::Merged);
        }
    }

    fn completed(&self, rq: &Request<'_>, bytes: u32) {
        if !self.is_wanted(rq) {
            return;
        }
        let guard = Kernel::guard();
        if !rq.is_last(bytes) {
            self.count(&guard, Extra::Partial);
            return;
        }
        let now = Kernel::now();
        let mut unissued = false;
        self.core.tracker().event_out(
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
    }
}

/// An instance of this tracker.
#[pin_data]
struct Block {
    probes: Arc<Probes>,
    /// There while the instance is enabled. The lock also serialises changes.
    #[pin]
    attachment: Mutex<Option<Attachment<Probes>>>,
}

impl Block {
    fn new(name: Name, values: &Values, all: Arc<Alerts>) -> Result<Arc<Self>> {
        let core = Core::new(name, &KIND, values, all)?;
        let probes = Arc::new(Probes { core }, GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                probes,
                attachment <- new_mutex!(None),
            }),
            GFP_KERNEL,
        )
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
        let mut attachment = self.attachment.lock();
        let values = &changes.over(core.values());
        let enable = values[common::ENABLED] != 0;
        if enable && attachment.is_none() {
            let attached = Attachment::new(self.probes.clone())?;
            core.set_values(values);
            core.set_enabled(true);
            *attachment = Some(attached);
        } else {
            core.set_values(values);
        }
        if !enable {
            core.set_enabled(false);
            *attachment = None;
            core.tracker().clear();
        }
        Ok(())
    }

    fn retire(&self) {
        let core = &self.probes.core;
        let mut attachment = self.attachment.lock();
        core.set_enabled(false);
        *attachment = None;
        core.tracker().clear();
        core.alerts().release();
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
                event.key[0],
                steps.owner,
                steps.operation(),
                steps.requeues
            );
        }
        Ok(())
    }
}
