// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reconstructs the activity of each thread and each processor, and the waker of each wakeup, from kernel events.
//! Explains delays from this model ([`why`]).
//!
//! ```text
//! sched_switch, sched_waking, irq_..., sys_... --Builder::feed--> Model { threads, processors, wakers }
//!
//! thread 7   |running| blocked        |waiting|running |interrupted|running|
//!                                     ^ waking: by thread 9, by interrupt 24, by a timer ...
//!
//! Model --why::path--> thread 7 runs, 7 waits for thread 9, which runs, 7 waits for a CPU ...
//! ```
//!
//! The intervals of a thread, and of a processor, follow each other without a gap; where nothing is recorded, the state
//! is unknown. All explanations rest on them. The crate is independent of trace formats: a reader of traces, or a test,
//! makes the [`Event`]s.
//!
//! # Examples
//!
//! Thread 7 sleeps until thread 8 wakes it. The critical path of thread 7 in that time is the activity of thread 8:
//!
//! ```
//! use lt_model::why::{Cause, path};
//! use lt_model::{Builder, Event, Sleep, SwitchedOut, What};
//!
//! let switch = |time, prev, next| {
//!     let what = What::Switch {
//!         prev,
//!         prev_name: b"",
//!         out: SwitchedOut::Blocked(Sleep::Interruptible),
//!         next,
//!         next_name: b"",
//!         prev_prio: None,
//!         next_prio: None,
//!     };
//!     Event { time, cpu: 0, what }
//! };
//! let waking = What::Waking { tid: 7, name: b"", target: 0 };
//!
//! let mut builder = Builder::new();
//! builder.feed(&switch(0, 0, 7));
//! builder.feed(&switch(10, 7, 8));
//! builder.feed(&Event { time: 90, cpu: 0, what: waking });
//! builder.feed(&switch(100, 8, 7));
//! let model = builder.finish();
//!
//! let late = model.by_tid(7).next().expect("a thread with that number");
//! let pieces = path(&model, late, 10, 90);
//! assert_eq!(model.thread(pieces[0].thread).map(|thread| thread.tid), Some(8));
//! assert_eq!(pieces[0].cause, Cause::Running(None));
//! assert_eq!((pieces[0].begin, pieces[0].end), (10, 90));
//! ```

mod build;
mod context;
mod event;
mod files;
mod ids;
mod intervals;
mod limits;
mod list;
mod locks;
mod missing;
mod names;
mod processor;
mod request;
mod served;
mod sleep;
mod state;
pub mod tables;
mod thread;
mod tiles;
mod times;
mod wakers;
mod wanted;
pub mod why;

use foldhash::HashMap;

pub use build::{Builder, Kept};
pub use context::{Context, Disk, Handler, Helper, Raiser, Vector, Waker};
pub use event::{Event, NOWHERE, Priority, Stage, What};
pub use files::{Access, CallFile, FileEvent, FileName, FilePath};
pub use ids::{ThreadId, WakerId};
pub use intervals::Intervals;
pub use limits::{Runtime, Sign};
pub use locks::{Handover, waits_for_pi_lock};
pub use missing::Events;
pub use names::{Name, Names};
pub use processor::{Processor, Stretch, Stretches, Use};
pub use request::{Kind, Request};
pub use served::{Before, Busy, Served, ServedFor};
pub use sleep::{Release, Sleep, SwitchedOut};
pub use state::{Class, Interval, State, Unrecorded};
pub use thread::Thread;
pub use wakers::Wakers;
pub use wanted::Wanted;

/// The activity of threads and processors.
#[derive(Debug, Default)]
pub struct Model {
    /// All threads that the events mention, in the order of their first event. Threads that have the same number, one
    /// after another, are separate elements.
    pub threads: Vec<Thread>,
    /// The processors, by number.
    pub processors: Vec<Processor>,
    /// All wakers.
    pub wakers: Wakers,
    /// Signs of the causes of waits for processors.
    signs: limits::Signs,
    /// Requests that disks served while threads waited for a free request.
    served: served::Log,
    /// Handovers of locks.
    handovers: locks::Handovers,
    /// Calls whose file or descriptor is known.
    calls: files::Calls,
    /// Names of files.
    file_names: Names,
    /// Times at which threads with these numbers waited for locks, known from outside the events.
    locks: HashMap<i32, Vec<(u64, u64)>>,
    disks: HashMap<Disk, String>,
    /// Kinds of events that are not recorded.
    missing: missing::Missing,
    /// Times that are not recorded.
    gaps: build::Gaps,
    /// All system calls are recorded.
    all_calls: bool,
    /// Names of threads, interrupts and system calls.
    pub names: Names,
    /// The times of the first event and of the last, ns.
    pub span: (u64, u64),
}

impl Model {
    /// The thread with this ID.
    #[must_use]
    pub fn thread(&self, id: ThreadId) -> Option<&Thread> {
        self.threads.get(id.0 as usize)
    }

    /// The waker with this ID.
    #[must_use]
    pub fn waker(&self, id: WakerId) -> Option<Waker> {
        self.wakers.get(id)
    }

    /// Returns why the activity of a processor is not known at some time from `from` to `to`; `None` if no processor has
    /// a gap there. Gaps of length 0 do not count: see [`Model::gaps`].
    #[must_use]
    pub fn gap(&self, from: u64, to: u64) -> Option<Unrecorded> {
        self.gaps.why(from, to)
    }

    /// Returns each time in which a processor is not recorded: the processor, start, end and reason. The end is
    /// `u64::MAX` if the processor is not recorded again. A gap of length 0 is a loss at one moment.
    pub fn gaps(&self) -> impl Iterator<Item = (u32, (u64, u64), Unrecorded)> {
        self.gaps.each()
    }

    /// Whether events of this kind are recorded.
    #[must_use]
    pub fn has(&self, events: Events) -> bool {
        !self.missing.has(events)
    }

    /// Whether every system call is recorded.
    #[must_use]
    pub fn has_all_calls(&self) -> bool {
        self.all_calls
    }

    /// Whether this waker was a timer set by the wakee, or by another thread of its program. Noted only if disk
    /// completions are not recorded: any other timer may then have completed a request.
    #[must_use]
    pub fn is_timeout(&self, id: WakerId) -> bool {
        self.wakers.is_timeout(id)
    }

    /// The request whose completion was this waker, if its issue was seen. `None` also if the disk had identical
    /// requests: the completed one cannot be identified.
    #[must_use]
    pub fn request(&self, id: WakerId) -> Option<Request> {
        self.wakers.request(id)
    }

    /// The thread that ran the timer, or completed the request, that was this waker; `None` if no thread did.
    #[must_use]
    pub fn helper(&self, id: WakerId) -> Option<Helper> {
        self.wakers.helper(id)
    }

    /// The sign of the cause of this thread's wait for a CPU that ended at `end`.
    #[must_use]
    pub fn sign(&self, thread: ThreadId, end: u64) -> Option<Sign> {
        self.signs.of(thread, end)
    }

    /// The disk to which this thread had submitted a bio before it slept from `from` to `to`, if the bio still had no
    /// request when the thread was woken. `None` if the thread issued another request after the bio, and slept again
    /// before the bio had its request: it may have slept in the driver.
    #[must_use]
    pub fn lacked_request_of(&self, thread: ThreadId, from: u64, to: u64) -> Option<Disk> {
        self.signs.lacked_request_of(thread, from, to)
    }

    /// The requests that a disk served during waits of threads that had no request for their bio yet. The waits do not
    /// overlap, and are in time order. `None` if not all of these requests are known.
    #[must_use]
    pub fn served(&self, disk: Disk, waits: &[(u64, u64)]) -> Option<Served> {
        let mut each = waits.iter();
        let has_gap = each.any(|(from, to)| self.gaps.touches(*from, *to));
        let known = self.served.during(disk, waits);
        known.filter(|_| !has_gap)
    }

    /// The time for which a disk had been busy at the end of this wait. During a busy time, the disk has requests, with
    /// only short pauses between them. `None` if the busy time did not start before the wait.
    #[must_use]
    pub fn busy(&self, disk: Disk, wait: (u64, u64)) -> Option<Busy> {
        let busy = self.served.busy(disk, wait)?;
        // The disk was idle just before, unless events after `from` are missing.
        let from = busy.since.saturating_sub(served::LONGEST_PAUSE);
        let is_known = |idle: &u64| !self.gaps.touches(busy.since - idle, busy.since);
        let before = match busy.before {
            _ if from <= self.span.0 => Before::Unrecorded,
            _ if self.gaps.touches(from, busy.until) => Before::Missing,
            Before::Idle(idle) => Before::Idle(idle.filter(is_known)),
            known => known,
        };
        Some(Busy { before, ..busy })
    }

    /// Whether this thread only runs softirqs.
    pub(crate) fn is_of_softirqs(&self, id: ThreadId) -> bool {
        let name = self.thread(id).and_then(|thread| thread.name);
        name.is_some_and(|name| context::is_of_softirqs(self.names.text(name).as_bytes()))
    }

    /// Whether a source other than the events shows that this thread was waiting at `time` for a lock with priority
    /// inheritance.
    #[must_use]
    pub fn is_locking(&self, thread: ThreadId, time: u64) -> bool {
        let tid = self.thread(thread).map(|thread| thread.tid);
        let known = tid.and_then(|tid| self.locks.get(&tid));
        let mut known = known.into_iter().flatten();
        known.any(|(begin, end)| *begin <= time && time < *end)
    }

    /// The name of this disk, if a source other than the events has it.
    #[must_use]
    pub fn disk_name(&self, disk: Disk) -> Option<&str> {
        self.disks.get(&disk).map(String::as_str)
    }

    /// The first lock wait of this thread that ended in a handover by an owner after `time`.
    #[must_use]
    pub fn handover(&self, thread: ThreadId, time: u64) -> Option<Handover> {
        self.handovers.after(thread, time)
    }

    /// The file of the system call in which a thread was from `from` to `to`, or its descriptor, if known.
    #[must_use]
    pub fn file(&self, thread: ThreadId, from: u64, to: u64) -> Option<CallFile> {
        self.calls.file(thread, from, to)
    }

    /// The name with which a file was opened, or its kind, such as `socket`.
    #[must_use]
    pub fn file_name(&self, file: FileName) -> &str {
        file.text(&self.file_names)
    }

    /// The threads that had this number, in order.
    pub fn by_tid(&self, tid: i32) -> impl Iterator<Item = ThreadId> {
        let all = (0u32..).map(ThreadId).zip(&self.threads);
        all.filter(move |(_, thread)| thread.tid == tid)
            .map(|(id, _)| id)
    }
}
