// SPDX-License-Identifier: GPL-2.0 OR MIT

//! State machines, one for each thread and each processor, driven by one event after another.
//!
//! ```text
//! thread     running --switch--> preempted, or blocked --waking--> waiting --switch--> running
//!               `--interrupt begins--> interrupted --ends--> running
//! processor  idle or a thread; above it the interrupts that it is in, the innermost last
//! ```
//!
//! Cases that a simpler model gets wrong:
//!
//! - *A wakeup may precede its sleep.* A thread on its way to sleep may be woken from another processor before its
//!   `sched_switch`. The wakeup of a running thread is therefore kept, and ends its sleep if the thread is switched out
//!   as blocked. If the thread was not on its way to sleep, the wakeup is void: `sched_wakeup` follows while the thread
//!   still runs, or the thread does something else first. The wakeup is also void if it is on the thread's own
//!   processor, or if the thread is woken again before it has run, since only sleeping threads are woken.
//! - *An interrupt has a tail.* Threads of interrupts and of softirqs are woken just after the handler ends. For a
//!   short time, such a wakeup therefore belongs to the interrupt that ended last, unless something else happens on
//!   that processor first.
//! - *A softirq may be a thread's own work*: the work of ksoftirqd, or packets that a thread sends to this machine,
//!   which the same call delivers. The thread is then the waker. The place of `softirq_raise` distinguishes such a
//!   softirq from a softirq raised by an interrupt, and shows the interrupt. Without that event, a softirq belongs to
//!   an interrupt that has just ended.
//! - *A disk signals completion in many ways*: by its own interrupt or the thread of that interrupt, a softirq, a call
//!   from another processor, or a timer. The disk is the waker of every thread woken before this context ends. A
//!   network softirq also delivers packets: there, the disk is the waker only of the thread that submitted the request,
//!   and of threads in an uninterruptible sleep.
//! - *A softirq may be preempted* (PREEMPT_RT). It continues when its thread does.
//! - *A thread in user mode cannot wake another.* A wakeup on its processor then comes from an interrupt or a fault
//!   that the events do not show, or from a signal or task work, which a thread handles after the event of its system
//!   call's end. A thread counts as in user mode only if all system calls are recorded.
//! - *A thread that waits for a processor may be moved to another one* (`sched_migrate_task`). The thread waits for
//!   each processor while it is queued there. If it runs on a processor on which it was not queued, and no event shows
//!   the move, the processors that it waited for are unknown.
//! - *In a gap anything may have happened.* The state of the thread that ran there is unknown from then on, until an
//!   event shows it again. So is the state of a thread that waited for that processor, since the thread may have run.
//!   A sleeping thread may also have run there: its state is not recorded during the gap, and its waker ended only the
//!   part of the sleep after the gap. The times before the stream of a processor starts, and after it ends, are gaps,
//!   too.

mod cpus;
mod gaps;
mod limits;
mod locks;
mod requests;
mod tasks;
mod wakings;

use std::sync::Arc;

use foldhash::HashMap;

use self::cpus::{Cpus, SOFTIRQS, TAIL, WAY_OUT};
use self::gaps::Gap;
pub(crate) use self::gaps::Gaps;
use self::limits::{Expired, Looked};
use self::requests::Requests;
use self::tasks::Tasks;
use crate::context::{Context, Disk, Raiser, Vector, is_for_softirqs, is_of_softirqs};
use crate::event::{Event, Priority, What};
use crate::files::{CallFile, Calls, FileEvent, Files};
use crate::ids::ThreadId;
use crate::limits::{Function, Signs};
use crate::locks::Handovers;
use crate::missing::{Events, Missing};
use crate::names::Names;
use crate::request::Kind;
use crate::sleep::{Sleep, SwitchedOut};
use crate::state::{State, Unrecorded};
use crate::wakers::Wakers;
use crate::wanted::Wanted;
use crate::{Model, Processor};

/// Maximum number of processors that Linux supports. Events of processors with this or a higher number are ignored.
const CPUS: u32 = 8192;

/// Maximum number of nested contexts. If there are more, end events are missing, and the outermost context is dropped.
const NESTED: usize = 64;

/// The bit of a vector in a set of vectors; no kernel has more than ten.
fn bit(vector: u32) -> u32 {
    1u32.checked_shl(vector).unwrap_or(0)
}

/// The only processor on which a per-CPU kernel thread with this name runs.
fn cpu_of(name: &[u8]) -> Option<u32> {
    let kinds: [&[u8]; 6] = [
        b"ksoftirqd/",
        b"ktimers/",
        b"migration/",
        b"cpuhp/",
        b"rcuc/",
        b"irq_work/",
    ];
    let number = kinds.iter().find_map(|kind| name.strip_prefix(*kind))?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// The extent of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// All of the trace, or the wanted parts.
    All,
    /// Only the waits between threads, with their times and wakers, which is enough to follow a path; no other
    /// activity.
    Waits,
    /// Even the waits, or the wanted parts, exceed the limit, with this number of bytes. The model is useless.
    Nothing(usize),
}

/// The extent to which the threads' activity is kept.
#[derive(Debug, Clone, Default)]
enum Detail {
    #[default]
    All,
    /// Only waits, with the thread or processor that each waits for; all other activity is one state.
    Waits,
    /// Complete activity of selected parts.
    Some(Arc<Wanted>),
}

/// Builds a [`Model`] from events.
#[derive(Debug, Default)]
pub struct Builder {
    tasks: Tasks,
    cpus: Cpus,
    wakers: Wakers,
    names: Names,
    /// The times of the first event and of the last.
    span: Option<(u64, u64)>,
    /// Maximum size of the kept data, bytes.
    limit: Option<usize>,
    /// Number of further events that cannot make the data exceed the limit.
    unchecked: usize,
    /// The limit is exceeded: nothing more is stored, and only sizes are counted.
    over: bool,
    /// The largest size that exceeded the limit, bytes. The size may have fallen since: a gap drops requests.
    most: usize,
    requests: Requests,
    files: Files,
    /// Time at which the events that show files end, if declared. No file is known after that time.
    files_until: Option<u64>,
    /// The calls whose file or descriptor is known.
    calls: Calls,
    /// The number of the only thread that will be explained, if declared.
    only: Option<i32>,
    signs: Signs,
    handovers: Handovers,
    /// Functions that identify limits and timeouts, by address.
    functions: HashMap<u64, Function>,
    disks: HashMap<Disk, String>,
    /// Last expiries of quota and deadline timers, and their processors.
    expired: Expired,
    /// `sched_waking` is recorded. Then `sched_wakeup`, which comes later and perhaps on another processor, does not
    /// show the waker.
    wakings: bool,
    /// `sched_wakeup` is recorded, which comes after a thread has been put on a runqueue.
    wakeups: bool,
    /// `sched_migrate_task` is recorded, so each migration has an event.
    moves: bool,
    /// `softirq_raise` is recorded.
    raises: bool,
    /// `futex` calls are recorded, with their arguments.
    futexes: bool,
    /// All system calls are recorded.
    all_calls: bool,
    /// Kinds of events that are not recorded.
    missing: Missing,
    /// All interrupts that do not come from devices are recorded, including interrupts that a processor sends to
    /// itself.
    all_vectors: bool,
    /// The processors that have streams.
    has_stream: Vec<u32>,
    /// The starts of the streams.
    starts: Vec<(u64, u32)>,
    /// The ends of the streams; the latest first, once the first event has come.
    ends: Vec<(u64, u32)>,
}

impl Builder {
    /// Creates a builder without events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares that the events include every system call, so user mode can be recognised.
    pub fn has_all_calls(&mut self) {
        self.all_calls = true;
    }

    /// Declares that events of this kind are not recorded.
    pub fn has_no(&mut self, events: Events) {
        self.missing.add(events);
    }

    /// Declares that the events include every interrupt that is not from a device. A softirq raised outside of all
    /// interrupts is then raised by the thread.
    pub fn has_all_vectors(&mut self) {
        self.all_vectors = true;
    }

    /// Sets addresses and names of kernel functions. Only functions that identify limits and timeouts are kept.
    pub fn has_functions<'a>(&mut self, functions: impl IntoIterator<Item = (u64, &'a str)>) {
        let known = functions.into_iter();
        let known = known.filter_map(|(address, name)| Some((address, Function::of(name)?)));
        self.functions.extend(known);
    }

    /// Sets the names of disks.
    pub fn has_disks(&mut self, disks: impl IntoIterator<Item = (Disk, String)>) {
        self.disks.extend(disks);
    }

    /// Restricts the thread with this number to these processors, so gaps of other processors do not affect it. If an
    /// event shows that it runs on another processor, the restriction is void for the whole trace. Must come before the
    /// first event.
    pub fn runs_on(&mut self, tid: i32, cpus: &[u32]) {
        self.tasks.affine.insert(tid, cpus.into());
    }

    /// Declares that the trace has events of this processor from `begin` to `end` only. Once declared for any
    /// processor, processors without a declaration count as unknown; without any declaration, all count as known. Must
    /// come before the first event.
    pub fn has_stream(&mut self, cpu: u32, begin: u64, end: u64) {
        if cpu >= CPUS {
            return;
        }
        let begins_at = self.starts.iter_mut().find(|(_, of)| *of == cpu);
        let ends_at = self.ends.iter_mut().find(|(_, of)| *of == cpu);
        if let (Some(begins_at), Some(ends_at)) = (begins_at, ends_at) {
            begins_at.0 = begins_at.0.min(begin);
            ends_at.0 = ends_at.0.max(end);
        } else {
            self.has_stream.push(cpu);
            self.starts.push((begin, cpu));
            self.ends.push((end, cpu));
        }
    }

    /// Declares that the events about files ([`FileEvent`]) are complete only from `begin` to `end`. Must come before
    /// the first event.
    pub fn has_files(&mut self, begin: u64, end: u64) {
        self.files.lost(begin);
        self.files_until = Some(end);
    }

    /// Declares that only the thread with this number is explained, by [`crate::why::path()`], [`crate::why::delays()`],
    /// and the [`crate::why::states`] of other threads during its waits. Of the other threads' calls, only those with
    /// files that these functions may return are then kept, which saves memory. If [`Builder::has_several`] threads had
    /// the number, some of these files are missing. Must come before the first event.
    pub fn explains_only(&mut self, tid: i32) {
        self.only = Some(tid);
    }

    /// Whether several threads had this number, one after another.
    #[must_use]
    pub fn has_several(&self, tid: i32) -> bool {
        let threads = self.tasks.threads.iter();
        threads.filter(|thread| thread.tid == tid).nth(1).is_some()
    }

    /// Drops everything that ended at `time` or before, to save memory.
    pub fn forget_before(&mut self, time: u64) {
        self.tasks.keep = time;
        self.cpus.policy.keep = time;
    }

    /// Keeps only the selected parts; everything else counts as unknown.
    pub fn keep_only(&mut self, wanted: Wanted) {
        let wanted = Arc::new(wanted);
        self.tasks.detail = Detail::Some(Arc::clone(&wanted));
        self.cpus.policy.detail = Detail::Some(wanted);
    }

    /// Keeps everything from now on, unlike [`Builder::keep_only`].
    pub fn keep_all(&mut self) {
        self.tasks.detail = Detail::All;
        self.cpus.policy.detail = Detail::All;
    }

    /// Returns a builder in the current state, which can process the next events a second time. It has no limit. Files
    /// are not copied, nor are stored signs of limits, handovers of locks, and requests that disks served. If little is
    /// kept ([`Builder::keep_only`]), its size depends on the number of threads, not on the number of events.
    #[must_use]
    pub fn checkpoint(&self) -> Self {
        Self {
            tasks: self.tasks.clone(),
            cpus: self.cpus.clone(),
            wakers: self.wakers.clone(),
            names: self.names.clone(),
            span: self.span,
            limit: None,
            unchecked: 0,
            over: self.over,
            most: self.most,
            requests: self.requests.without_served(),
            files: Files::default(),
            files_until: None,
            calls: Calls::default(),
            signs: Signs::default(),
            handovers: Handovers::default(),
            functions: self.functions.clone(),
            disks: self.disks.clone(),
            expired: self.expired,
            wakings: self.wakings,
            wakeups: self.wakeups,
            moves: self.moves,
            raises: self.raises,
            futexes: self.futexes,
            only: self.only,
            all_calls: self.all_calls,
            missing: self.missing.clone(),
            all_vectors: self.all_vectors,
            has_stream: self.has_stream.clone(),
            starts: self.starts.clone(),
            ends: self.ends.clone(),
        }
    }

    /// Start of the current state of each thread, by the number of its [`ThreadId`]; of a dead thread, its end, ns.
    #[must_use]
    pub fn since(&self) -> Vec<u64> {
        self.tasks.all_since()
    }

    /// Keeps only the waits between threads: see [`Kept::Waits`].
    pub fn keep_waits(&mut self) {
        self.tasks.keep_waits();
        self.cpus.keep_nothing();
        self.signs.clear();
        self.requests.forget_served();
        self.files = Files::default();
        self.calls.clear();
    }

    /// Limits the size of the kept data, in bytes; [`Builder::kept`] shows what was left out. File names and
    /// descriptors take at most an eighth of it: files beyond that are not known.
    pub fn limit(&mut self, bytes: usize) {
        self.limit = Some(bytes);
        self.files.limit(bytes / 8);
    }

    /// The extent of the kept data.
    #[must_use]
    pub fn kept(&self) -> Kept {
        match (self.over, &self.tasks.detail) {
            (true, _) => Kept::Nothing(self.most),
            (false, Detail::Waits) => Kept::Waits,
            (false, _) => Kept::All,
        }
    }

    /// Upper bound of the memory in use, in bytes, including room for the next event.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let wanted = match &self.tasks.detail {
            Detail::Some(wanted) => wanted.bytes(),
            _ => 0,
        };
        self.tasks.bytes()
            + self.cpus.bytes()
            + self.wakers.bytes()
            + self.names.bytes()
            + self.requests.bytes()
            + self.files.bytes()
            + self.calls.bytes()
            + self.signs.bytes()
            + self.handovers.bytes()
            + wanted
    }

    fn check_limit(&mut self) {
        /// Maximum that one event can add: two threads with their names, and an interval of each.
        const EVENT: usize = 4096;
        let Some(limit) = self.limit else {
            return;
        };
        if self.unchecked > 0 {
            self.unchecked -= 1;
            return;
        }
        let mut bytes = self.bytes();
        if bytes > limit && !self.over && matches!(self.tasks.detail, Detail::All) {
            self.keep_waits();
            bytes = self.bytes();
        }
        if bytes <= limit && !self.over {
            self.unchecked = (limit - bytes) / EVENT;
            return;
        }
        // From here on, only the size of the data is counted.
        self.over = true;
        self.most = self.most.max(bytes);
        self.tasks.count_only = true;
        self.cpus.policy.count_only = true;
    }

    /// Processes the next event. An event earlier than its predecessor counts as simultaneous.
    pub fn feed(&mut self, event: &Event<'_>) {
        self.take(event);
        self.check_limit();
    }

    /// Processes an event that shows which file a system call works on. If that event of the trace also makes an
    /// [`Event`], feed the [`Event`] first. Does nothing unless [`Builder::has_all_calls`] has been called; the events
    /// must then also include the creation of every thread.
    pub fn feed_file(&mut self, time: u64, cpu: u32, event: &FileEvent<'_>) {
        let is_kept = !self.over
            && !matches!(self.tasks.detail, Detail::Waits)
            && self.tasks.keep != u64::MAX;
        let Some((_, last)) = self.span.filter(|_| is_kept && self.all_calls) else {
            return;
        };
        let time = time.max(last);
        if let Some(until) = self.files_until.take_if(|until| *until < time) {
            self.cut_calls(until);
            self.files.lost(u64::MAX);
        }
        let thread = self.cpus.get(cpu).and_then(|at| at.thread());
        let tid = thread.and_then(|thread| self.tid(thread));
        let (files, calls) = (self.files.bytes(), self.calls.bytes());
        let ended = self.files.see(time, tid, event);
        if let (Some((begin, file)), Some(thread)) = (ended, thread) {
            self.keep_call(thread, (begin, time), file);
        }
        if self.files.bytes() > files || self.calls.bytes() > calls + 1024 {
            // A path, the table of a new process, or the first call of a thread may take more memory than
            // `check_limit` expects of one event.
            self.unchecked = 0;
        }
        self.check_limit();
    }

    /// Keeps the file or descriptor of a call that ends at `end`, or lasts at least until then, if it is wanted.
    fn keep_call(&mut self, thread: ThreadId, (begin, end): (u64, u64), file: CallFile) {
        let shows = |only| self.tid(thread) == Some(only) || self.tasks.may_be_away(only, begin);
        let is_wanted = self.only.is_none_or(shows) && self.tasks.wants(thread, begin, end);
        if begin < end && end > self.tasks.keep && is_wanted {
            self.calls.push(thread, (begin, end), file);
        }
    }

    /// Keeps the files and descriptors of the calls in flight, which are known only up to `time`.
    fn cut_calls(&mut self, time: u64) {
        let calls: Vec<_> = self.files.in_flight().collect();
        for (tid, begin, file) in calls {
            // A thread that has ended may still seem to run if events are missing. Files add no thread: the numbers of
            // threads are the same whether files are followed or not.
            if let Some(thread) = self.tasks.alive(tid) {
                self.keep_call(thread, (begin, time), file);
            }
        }
    }

    fn take(&mut self, event: &Event<'_>) {
        if event.cpu >= CPUS {
            return;
        }
        let (first, last) = self.span.unwrap_or((event.time, event.time));
        let time = event.time.max(last);
        if self.span.is_none() {
            self.tasks.start = first;
            self.ends
                .sort_unstable_by_key(|end| std::cmp::Reverse(*end));
            self.start(first);
        }
        self.reach(first, time);
        self.span = Some((first, time));
        let cpu = event.cpu;
        if self.cpus.get(cpu).is_none() {
            // New processors may take more memory than `check_limit` expects of one event.
            self.unchecked = 0;
        }
        self.cpus.reach(cpu, first);
        self.cpus.at(cpu).known_since.get_or_insert(time);
        match event.what {
            What::Switch {
                prev,
                prev_name,
                out,
                prev_prio,
                next,
                next_name,
                next_prio,
            } => {
                self.switch_out(time, cpu, prev, prev_name, out, prev_prio);
                self.switch_in(time, cpu, next, next_name, next_prio);
            }
            // Does not end the tail of an interrupt.
            What::Waking { tid, name, target } => {
                self.wakings = true;
                return self.waking(time, cpu, tid, name, Some(target));
            }
            What::Wakeup { tid, name, target } => {
                return self.wakeup(time, cpu, tid, name, target);
            }
            // Does not end the tail of an interrupt.
            What::Migrate {
                tid,
                name,
                from,
                to,
            } => return self.migrate(time, tid, name, (from, to)),
            What::Fork { child, name } => self.fork(time, cpu, child, name),
            What::Exec { tid, old } => self.exec(time, cpu, tid, old),
            What::There { tid, name } => {
                let thread = self.tasks.find(tid);
                self.named(thread, name);
            }
            What::Call { name } => {
                let name = self.names.number(name);
                self.call(time, cpu, Some(name));
            }
            What::Futex { op, address } => self.futex(time, cpu, op, address),
            What::Return => self.call(time, cpu, None),
            What::Exit => {
                if let Some(thread) = self.cpus.at(cpu).thread() {
                    self.tasks.of(thread).user_since = None;
                    if let Some(tid) = self.tid(thread) {
                        self.files.exit(tid);
                    }
                }
            }
            What::Irq { number, name } => {
                let name = self.names.number(name);
                self.enter(time, cpu, Context::Irq { number, name });
            }
            What::IrqEnd { number } => {
                let is = |c: &Context| matches!(c, Context::Irq { number: n, .. } if *n == number);
                self.leave(time, cpu, is);
            }
            What::Softirq { vector } => {
                let vector = Vector(vector);
                let wakers = self.wakers.next();
                let by = self.cpus.at(cpu).raiser(vector.0, wakers);
                let own = self.is_own(time, cpu, vector, by);
                self.enter(time, cpu, Context::Softirq { vector, own, by });
            }
            What::SoftirqEnd { vector } => {
                let is =
                    |c: &Context| matches!(c, Context::Softirq { vector: v, .. } if v.0 == vector);
                self.leave(time, cpu, is);
            }
            What::Timer { function } => {
                self.expires(time, cpu, function);
                self.runs_timer(cpu);
                self.enter(time, cpu, Context::Timer);
            }
            What::TimerEnd => {
                self.cpus.at(cpu).expiring = None;
                self.leave(time, cpu, |c| matches!(c, Context::Timer));
            }
            // Timers expire in a softirq. If softirqs are not recorded, this event shows that one runs.
            What::Expire { function } => {
                let function = self.functions.get(&function).copied();
                self.cpus.at(cpu).expiring = function;
                if !self.missing.has(Events::Softirqs) {
                    return;
                }
                self.enter(time, cpu, Context::Timer);
            }
            What::ExpireEnd => {
                self.cpus.at(cpu).expiring = None;
                if !self.missing.has(Events::Softirqs) {
                    return;
                }
                self.leave(time, cpu, |c| matches!(c, Context::Timer));
            }
            What::Ipi { name } => {
                let name = self.names.number(name);
                self.cpus.at(cpu).looked.is_called(time);
                self.enter(time, cpu, Context::Ipi(name));
            }
            What::IpiEnd => self.leave(time, cpu, |c| matches!(c, Context::Ipi(_))),
            // Does not end the tail of an interrupt.
            What::Raise { vector } => return self.raise(time, cpu, vector),
            What::Work { function } => self.works(time, cpu, Some(function)),
            What::WorkEnd => self.works(time, cpu, None),
            // Does not end the tail of an interrupt.
            What::Idle { enters } => {
                let at = self.cpus.at(cpu);
                // The event is outside of all interrupts, so the completion has ended.
                at.completed = None;
                return match enters {
                    true => at.looked.idles(time),
                    false => at.looked.leaves_idle(time),
                };
            }
            What::Dirty { disk } => {
                if let Some(thread) = self.cpus.at(cpu).thread() {
                    self.tasks.of(thread).dirty = Some(disk);
                }
                return;
            }
            What::Request {
                stage,
                disk,
                sector,
                sectors,
            } => return self.request(time, cpu, stage, (disk, sector), sectors),
            What::Remap { from, to, sectors } => return self.requests.remap(from, to, sectors),
            What::Flush { disk } => return self.flush(time, cpu, disk),
            What::Requeued { disk, range } => return self.requests.requeue(disk, range),
            What::Completed { disk, range, kind } => {
                let request = match (range, kind) {
                    // A SCSI disk has done nothing for the request, which now fails or is issued again.
                    (Some((sector, 0)), _) if self.requests.is_at_driver(disk, sector) => return,
                    // Every discard has sectors. The issue of this one was not seen.
                    (Some((_, 0)), Kind::Discard) => return,
                    // It waited for a flush, which has just ended on this processor.
                    (Some((_, 0)), Kind::Plain) => self.cpus.at(cpu).flushed(time, disk),
                    (Some(range), _) => {
                        let (request, done) = self.requests.complete(time, disk, range, kind);
                        self.note_served(disk, done);
                        request
                    }
                    (None, Kind::Flush) => self.requests.flushed(time, disk),
                    (None, _) => None,
                };
                let at = self.cpus.at(cpu);
                at.completed = Some((disk, at.contexts.len(), request, time));
                return;
            }
            What::Lost { until } => self.lost(time, until, cpu, Unrecorded::Lost(cpu)),
            What::NoPackets { until } => self.lost(time, until, cpu, Unrecorded::NoPackets(cpu)),
            What::Damaged { until } => self.lost(time, until, cpu, Unrecorded::Damaged(cpu)),
            What::Between { until } => self.lost(time, until, cpu, Unrecorded::Between(cpu)),
        }
        if !matches!(
            event.what,
            What::IrqEnd { .. } | What::SoftirqEnd { .. } | What::TimerEnd | What::IpiEnd
        ) {
            self.cpus.at(cpu).tail = None;
        }
    }

    /// Returns the complete model.
    #[must_use]
    pub fn finish(mut self) -> Model {
        let span = self.span.unwrap_or_default();
        let until = self.files_until.unwrap_or(u64::MAX);
        self.cut_calls(until.min(span.1));
        self.tasks.finish(span.1);
        self.signs.finish();
        self.handovers.finish();
        let processors = self.cpus.finish(span.1);
        Model {
            threads: self.tasks.threads,
            processors: processors
                .into_iter()
                .map(|stretches| Processor { stretches })
                .collect(),
            wakers: self.wakers,
            served: self.requests.into_served(),
            signs: self.signs,
            handovers: self.handovers,
            calls: self.calls,
            file_names: self.files.into_names(),
            missing: self.missing,
            locks: self.tasks.locks,
            disks: self.disks,
            gaps: self.tasks.gaps,
            all_calls: self.all_calls,
            names: self.names,
            span,
        }
    }

    fn named(&mut self, thread: Option<ThreadId>, name: &[u8]) {
        let Some(id) = thread else {
            return;
        };
        if name.is_empty() {
            return;
        }
        let time = self.span.map_or(0, |(_, now)| now);
        let seen = std::mem::replace(&mut self.tasks.of(id).named_at, time);
        let last = self.tasks.threads.get(id.0 as usize).and_then(|t| t.name);
        if last.is_some_and(|n| self.names.text(n).as_bytes() == name) {
            return;
        }
        let number = self.names.number(name);
        if last != Some(number) {
            // The time of the renaming is not recorded: a thread usually gets its name soon after its start.
            self.tasks.rename(id, seen + 1, number);
        }
        if let Some(cpu) = cpu_of(name) {
            self.tasks.of(id).runs_on = Some([cpu].into());
        }
    }

    /// Records that a thread runs on `cpu`.
    fn runs(&mut self, thread: Option<ThreadId>, cpu: u32) {
        if thread.is_some_and(|thread| self.tasks.runs(thread, cpu)) {
            // Its split intervals may take more memory than `check_limit` expects of one event.
            self.unchecked = 0;
        }
    }

    fn switch_out(
        &mut self,
        time: u64,
        cpu: u32,
        tid: i32,
        name: &[u8],
        out: SwitchedOut,
        prio: Option<Priority>,
    ) {
        let ran = self.cpus.at(cpu).current();
        let prev = self.tasks.find(tid);
        self.runs(prev, cpu);
        match (ran, self.cpus.at(cpu).known_since) {
            // The first switch here, or the first after a gap: `prev` has run for as long as the events are known.
            (None, Some(since)) if since <= time => {
                let changes = std::mem::take(&mut self.cpus.at(cpu).changes);
                self.cpus.ran(cpu, prev, since);
                if let Some(prev) = prev
                    && self.tasks.ran(prev, cpu, since, time)
                {
                    self.was_interrupted(prev, name, since, changes);
                }
            }
            (ran, _) => {
                if let Some(prev) = prev.filter(|_| ran != Some(prev)) {
                    self.tasks.contradict(prev, time);
                }
            }
        }
        // No hard interrupt is switched out. A softirq may be, and continues when its thread does.
        let mut held = std::mem::take(&mut self.cpus.at(cpu).contexts);
        if let Some(ran) = ran
            && ran != prev
        {
            // Events are missing: `ran` was running here, but another thread is switched out. Or an exec has changed
            // the number of `ran`, which only its event proves.
            if let Some(ran) = ran {
                let task = self.tasks.of(ran);
                task.left_as = Some((time, tid, task.call));
            }
            self.tasks.forget_on(ran, cpu, time, Unrecorded::Missing);
            self.files.lost(time);
            held.clear();
        }
        self.named(prev, name);
        let Some(prev) = prev else {
            return;
        };
        let pending = self.tasks.of(prev).pending.take();
        self.tasks.of(prev).held = held
            .into_iter()
            .filter(|c| matches!(c, Context::Softirq { .. }))
            .collect();
        let call = self.tasks.of(prev).call;
        let yields = call.map(|call| self.names.text(call) == "sched_yield");
        let task = self.tasks.of(prev);
        (task.cpu, task.queued_at) = (Some(cpu), Some(time));
        (task.prio, task.yields) = (prio, yields.or(self.all_calls.then_some(false)));
        match out {
            SwitchedOut::Preempted => self.tasks.go(prev, time, State::Preempted),
            SwitchedOut::Dead => {
                self.tasks.end(prev, time);
                self.files.exit(tid);
            }
            SwitchedOut::Blocked(sleep) => {
                // A pause for the dirty limit is uninterruptible. An io_uring write that must not sleep has the event
                // of a pause, too, but does not pause.
                let dirty = self.tasks.of(prev).dirty.take();
                let dirty = dirty.filter(|_| sleep == Sleep::Uninterruptible);
                let sleep = dirty.map_or(sleep, Sleep::Dirty);
                self.tasks.go(prev, time, State::Blocked(sleep, call));
                if let Some((waker, target)) = pending {
                    self.tasks.woken(prev, time, waker, target);
                    self.tasks.of(prev).assumed = Some((sleep, call));
                }
            }
        }
    }

    /// Records the interrupts on top of a thread that has run since `since`, now that the thread is known. A softirq
    /// that no interrupt raised may be the thread's own work.
    fn was_interrupted(
        &mut self,
        thread: ThreadId,
        name: &[u8],
        since: u64,
        changes: Vec<(u64, Option<Context>)>,
    ) {
        let is_of_softirqs = is_of_softirqs(name);
        let interrupts = |context: &Context| match context {
            Context::Softirq { by, .. } => by.is_interrupt() && !is_of_softirqs,
            _ => true,
        };
        let call = self.tasks.of(thread).call;
        for (time, above) in changes {
            let above = above.filter(interrupts);
            let state = above.map_or(State::Running(call), State::Interrupted);
            self.tasks.go(thread, time.max(since), state);
        }
    }

    fn switch_in(&mut self, time: u64, cpu: u32, tid: i32, name: &[u8], prio: Option<Priority>) {
        let next = self.tasks.find(tid);
        self.named(next, name);
        self.runs(next, cpu);
        if let Some(next) = next {
            self.note_sign(time, cpu, next, prio);
            self.tasks.of(next).prio = prio;
        }
        self.cpus.at(cpu).looked.switches(time, tid, name, prio);
        let Some(next) = next else {
            return self.cpus.go(cpu, time, Some(None));
        };
        let task = self.tasks.of(next);
        if !task.is_queued() {
            task.cpu = Some(cpu);
        } else if task.cpu != Some(cpu) && self.moves {
            // The event of the migration is missing, so other events may be missing, too.
            self.tasks.contradict(next, time);
        } else if task.cpu != Some(cpu) {
            // The thread was migrated at an unrecorded time, so the wait for each processor is not known.
            task.cpu = None;
        }
        let task = self.tasks.of(next);
        let held = std::mem::take(&mut task.held);
        let call = task.call;
        task.user_since = task.user_since.map(|_| time);
        self.cpus.at(cpu).contexts = held;
        self.cpus.go(cpu, time, Some(Some(next)));
        let above = self.cpus.at(cpu).above();
        let state = above.map_or(State::Running(call), State::Interrupted);
        self.tasks.go(next, time, state);
        self.tasks.of(next).cpu = Some(cpu);
    }

    /// Handles the start or the end of a system call of the current thread.
    fn call(&mut self, time: u64, cpu: u32, call: Option<crate::Name>) {
        let Some(thread) = self.cpus.at(cpu).thread() else {
            return;
        };
        let at = self.cpus.at(cpu);
        at.continues();
        let above = at.above();
        let task = self.tasks.of(thread);
        (task.call, task.futex) = (call, None);
        task.user_since = call.is_none().then_some(time);
        task.pending = None;
        task.dirty = None;
        if above.is_none() {
            self.tasks.go(thread, time, State::Running(call));
        }
    }

    /// Handles an exec by the current thread, which may have given it another number. If the thread has been switched
    /// out since then, it has that number already.
    fn exec(&mut self, time: u64, cpu: u32, tid: i32, old: i32) {
        let thread = self.cpus.at(cpu).thread().filter(|_| tid != old);
        let Some(thread) = thread else {
            return;
        };
        let number = self.tid(thread);
        if number == Some(old)
            && let Some(next) = self.tasks.renumber(thread, tid, time)
        {
            self.cpus.go(cpu, time, Some(Some(next)));
            self.tasks.of(next).cpu = Some(cpu);
            self.show(time, cpu);
        } else if number == Some(tid)
            && let Some(call) = self.tasks.was_renumbered(old, tid)
        {
            self.tasks.of(thread).call = call;
            self.show(time, cpu);
        }
    }

    /// Whether a softirq that begins now, and that `by` raised, is the thread's own work.
    fn is_own(&mut self, time: u64, cpu: u32, vector: Vector, by: Raiser) -> bool {
        let at = self.cpus.at(cpu);
        let handlers = !self.missing.has(Events::Handlers);
        let (after_interrupt, inside) = (at.tail(time).is_some(), !at.contexts.is_empty());
        let raised = at.raised & bit(vector.0) != 0;
        at.raised &= !bit(vector.0);
        let Some(thread) = at.thread() else {
            return false;
        };
        let sends = match self.raises {
            true => raised,
            // An interrupt that ended just before counts as the raiser of the softirq.
            false => self.tasks.of(thread).call.is_some() && !after_interrupt,
        };
        let network = handlers && matches!(vector, Vector::NET_TX | Vector::NET_RX);
        // An interrupt on top of the thread of another interrupt runs its softirqs there when it ends.
        let is_of_interrupt = by.is_interrupt() || !self.raises && after_interrupt;
        let runs_all = self.is_called(thread, |name| is_of_softirqs(name.as_bytes()));
        let is_deferred = runs_all || self.is_for_softirqs(thread) && !is_of_interrupt;
        !inside && (network && sends || is_deferred)
    }

    /// Handles the raise of a softirq by the thread or by an interrupt. Threads send packets and complete requests;
    /// most other softirqs are raised by interrupts, and an unrecorded interrupt looks like the thread.
    fn raise(&mut self, time: u64, cpu: u32, vector: u32) {
        self.raises = true;
        let thread = self.cpus.at(cpu).thread();
        let of_threads = [Vector::NET_TX, Vector::NET_RX, Vector::BLOCK].contains(&Vector(vector));
        // In user mode, an interrupt without events, such as Hyper-V's, has raised the softirq.
        let in_kernel = !self.is_in_user_mode(time, thread);
        let is_thread = thread.is_some()
            && (of_threads || self.all_vectors)
            && !self.missing.has(Events::Handlers)
            && in_kernel;
        let at = self.cpus.at(cpu);
        // A softirq that an interrupt or another thread has raised, too, need not be the thread's.
        let is_first = at.raise(time, vector, is_thread);
        let bit = bit(vector);
        match at.above() {
            None if in_kernel && (is_first || at.raised & bit != 0) => at.raised |= bit,
            _ => at.raised &= !bit,
        }
    }

    /// Handles the run of a timer. If its softirq runs several timers, their due times are not known.
    fn runs_timer(&mut self, cpu: u32) {
        let at = self.cpus.at(cpu);
        let is_in = at.contexts.last().is_some_and(|context| {
            matches!(context, Context::Softirq { vector, .. } if *vector == Vector::HRTIMER)
        });
        if let Some(due) = at.due.as_mut().filter(|_| is_in) {
            due.timers += 1;
            if due.timers > 1 {
                let from = due.wakers;
                self.wakers.not_due(from, cpu);
            }
        }
    }

    /// Whether a thread is in user mode. Returning there from a system call, an interrupt or a switch takes some
    /// microseconds.
    fn is_in_user_mode(&mut self, time: u64, thread: Option<ThreadId>) -> bool {
        let Some(thread) = thread.filter(|_| self.all_calls) else {
            return false;
        };
        let since = self.tasks.of(thread).user_since;
        since.is_some_and(|since| time.saturating_sub(since) > WAY_OUT)
    }

    /// Whether a thread only runs work that interrupts deferred.
    fn is_for_softirqs(&self, thread: ThreadId) -> bool {
        self.is_called(thread, |name| is_for_softirqs(name.as_bytes()))
    }

    /// Whether `is` is true for the name of a thread.
    fn is_called(&self, thread: ThreadId, is: impl Fn(&str) -> bool) -> bool {
        let thread = self.tasks.threads.get(thread.0 as usize);
        let name = thread.and_then(|t| t.name);
        name.is_some_and(|name| is(self.names.text(name)))
    }

    fn enter(&mut self, time: u64, cpu: u32, context: Context) {
        let at = self.cpus.at(cpu);
        if at.contexts.len() >= NESTED {
            at.contexts.remove(0);
        }
        at.contexts.push(context);
        self.show(time, cpu);
    }

    /// Ends the innermost context that matches `is`, and nested contexts whose end was not seen.
    fn leave(&mut self, time: u64, cpu: u32, is: impl Fn(&Context) -> bool) {
        let timers = !self.missing.has(Events::Timers);
        let at = self.cpus.at(cpu);
        // An end whose start was before the trace is ignored.
        if let Some(place) = at.contexts.iter().rposition(is) {
            at.tail = at.contexts.get(place).map(|context| (*context, time));
            at.contexts.truncate(place);
            if at.contexts.is_empty() {
                // If timers are recorded, the softirq that the local timer raises has events of its own.
                let is_known = timers && matches!(at.tail, Some((Context::Timer, _)));
                let until = time + if is_known { TAIL } else { SOFTIRQS };
                at.softirqs_until = at.softirqs_until.max(until);
            }
            at.completed = at.completed.filter(|(_, depth, ..)| *depth <= place);
            if let Some(thread) = at.thread() {
                let task = self.tasks.of(thread);
                task.user_since = task.user_since.map(|_| time);
            }
            self.show(time, cpu);
        }
    }

    /// Sets the activity of the processor and its thread to the innermost context.
    fn show(&mut self, time: u64, cpu: u32) {
        self.cpus.note(cpu, time);
        let at = self.cpus.at(cpu);
        let (thread, above) = (at.thread(), at.above());
        if let Some(thread) = thread {
            let call = self.tasks.of(thread).call;
            let state = above.map_or(State::Running(call), State::Interrupted);
            self.tasks.go(thread, time, state);
        }
    }

    /// Handles a gap of `cpu`: the state before it is no longer valid. A gap that ends before its start is empty.
    fn lost(&mut self, since: u64, until: u64, cpu: u32, why: Unrecorded) {
        let until = until.max(since);
        let at = self.cpus.at(cpu);
        let ran = at.current().flatten();
        at.contexts.clear();
        at.raised_by.clear();
        (at.block, at.served, at.hrtimer, at.due) = (None, None, None, None);
        at.looked = Looked::default();
        at.tail = None;
        self.requests.clear(until);
        let at = self.cpus.at(cpu);
        at.known_since = Some(until);
        self.cpus.go(cpu, since, None);
        self.tasks.gaps.add(cpu, Gap { since, until, why });
        self.tasks.forget_on(ran, cpu, since, why);
        self.cut_calls(since);
        self.files.lost(until);
    }

    /// Ends the streams whose last event was before `time`.
    fn reach(&mut self, first: u64, time: u64) {
        while let Some((until, cpu)) = self.ends.pop_if(|(end, _)| *end < time) {
            self.cpus.reach(cpu, first);
            self.lost(until.max(first), u64::MAX, cpu, Unrecorded::After(cpu));
        }
    }

    /// Handles the first event: processors whose streams start later are not known before their start.
    fn start(&mut self, first: u64) {
        for (since, cpu) in std::mem::take(&mut self.starts) {
            self.cpus.reach(cpu, first);
            self.cpus.at(cpu).known_since = Some(first);
            if since > first {
                self.lost(first, since, cpu, Unrecorded::Before(cpu));
            }
        }
    }

    /// Records that a thread is queued on `cpu`, which may have no stream.
    fn mention(&mut self, cpu: u32) {
        if !self.has_stream.is_empty() && !self.has_stream.contains(&cpu) && cpu < CPUS {
            self.tasks.gaps.set_absent(cpu);
            self.files.lost(u64::MAX);
        }
    }
}
