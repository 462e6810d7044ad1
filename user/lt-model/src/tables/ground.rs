// SPDX-License-Identifier: GPL-2.0 OR MIT

//! State that all tables share: which thread runs on which CPU, names of threads, and gaps.

use foldhash::{HashMap, HashSet};

use super::group::{Case, Object, TaskId};
use super::step::{Seen, Step};
use super::table::Why;
use crate::event::{Priority, What};
use crate::files::{FileName, Files};
use crate::names::{Name, Names};
use crate::sleep::SwitchedOut;

/// Maximum number of CPUs that Linux supports.
const CPUS: u32 = 8192;

/// The gaps so far.
#[derive(Debug, Default, Clone, Copy)]
struct Gaps {
    count: u32,
    /// The latest end of a gap.
    until: u64,
    /// Whether the tracer lost events. If not, some streams only start later or end earlier than others.
    has_lost: bool,
}

/// The start of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) time: u64,
    count: u32,
}

impl Gaps {
    fn mark(self, time: u64) -> Mark {
        Mark {
            time,
            count: self.count,
        }
    }

    /// Whether there is a gap since `mark`.
    fn span(self, mark: Mark) -> bool {
        self.count != mark.count || mark.time < self.until
    }

    fn add(&mut self, until: u64, is_lost: bool) {
        self.count += 1;
        self.until = self.until.max(until);
        self.has_lost |= is_lost;
    }

    /// Why an operation is not measured, if these gaps, or the start or end of the trace, may hide a part of
    /// it.
    fn why(self) -> Why {
        match self.has_lost {
            true => Why::Lost,
            false => Why::Outside,
        }
    }
}

#[derive(Debug, Default)]
struct OnCpu {
    /// The thread that runs; 0 is the idle thread.
    current: Option<i32>,
    gaps: Gaps,
    /// Start of the time that is recorded without a gap.
    since: Option<u64>,
}

/// A thread.
#[derive(Debug, Clone, Copy)]
struct Task {
    tid: i32,
    name: Option<Name>,
    /// The main thread of its process, if recorded.
    main: Option<TaskId>,
}

/// State common to all tables.
#[derive(Debug, Default)]
pub(super) struct Ground {
    cpus: Vec<OnCpu>,
    /// Gaps of any CPU.
    gaps: Gaps,
    tasks: Vec<Task>,
    numbers: HashMap<i32, TaskId>,
    pub(super) names: Names,
    pub(super) files: Files,
    /// The file of the call that ends with the current event, if known.
    pub(super) file: Option<FileName>,
    /// The threads that are in a call of `execve` or `execveat`.
    executing: HashSet<i32>,
    /// The former numbers of threads that were switched out with another number in such a call, until the event of the
    /// exec.
    left: HashSet<i32>,
    /// The CPUs that have streams; empty if not known.
    pub(super) streams: Vec<u32>,
    /// A CPU that was mentioned and has no stream.
    pub(super) absent: Option<u32>,
}

impl Ground {
    fn at(&mut self, cpu: u32) -> Option<&mut OnCpu> {
        if cpu >= CPUS {
            return None;
        }
        let place = cpu as usize;
        if self.cpus.len() <= place {
            self.cpus.resize_with(place + 1, OnCpu::default);
        }
        self.cpus.get_mut(place)
    }

    /// Notes that the CPU is recorded from `time` on, or from earlier.
    pub(super) fn starts(&mut self, cpu: u32, time: u64) {
        if let Some(at) = self.at(cpu) {
            at.since.get_or_insert(time);
        }
    }

    /// Start of the time of a CPU that is recorded without a gap up to now.
    pub(super) fn since(&self, cpu: u32) -> Option<u64> {
        self.cpus.get(cpu as usize)?.since
    }

    pub(super) fn cpus(&self) -> u32 {
        self.cpus.len() as u32
    }

    /// The thread that runs on a CPU.
    pub(super) fn current(&self, cpu: u32) -> Option<i32> {
        self.cpus.get(cpu as usize)?.current
    }

    /// The thread of an event.
    pub(super) fn who(&self, seen: &Seen<'_>) -> Option<i32> {
        seen.tid.or_else(|| self.current(seen.cpu))
    }

    /// Whether a thread is known to run on some CPU.
    pub(super) fn runs(&self, tid: i32) -> bool {
        self.cpus.iter().any(|at| at.current == Some(tid))
    }

    /// Marks the start of an operation of a CPU.
    pub(super) fn mark_on(&self, cpu: u32, time: u64) -> Mark {
        let at = self.cpus.get(cpu as usize);
        at.map_or(Mark { time, count: 0 }, |at| at.gaps.mark(time))
    }

    /// Whether a CPU has a gap since `mark`.
    pub(super) fn spans_on(&self, cpu: u32, mark: Mark) -> bool {
        self.cpus
            .get(cpu as usize)
            .is_some_and(|at| at.gaps.span(mark))
    }

    /// The reason for not measuring an operation of a CPU.
    pub(super) fn why_on(&self, cpu: u32) -> Why {
        let at = self.cpus.get(cpu as usize);
        at.map_or(Why::Outside, |at| at.gaps.why())
    }

    /// Marks the start of an operation of a thread or a disk.
    pub(super) fn mark(&self, time: u64) -> Mark {
        self.gaps.mark(time)
    }

    /// Whether any CPU has a gap since `mark`.
    pub(super) fn spans(&self, mark: Mark) -> bool {
        self.gaps.span(mark)
    }

    /// The reason for not measuring an operation of a thread or a disk.
    pub(super) fn why(&self) -> Why {
        self.gaps.why()
    }

    /// The reason for not measuring an operation that started at `mark`, and has not ended.
    pub(super) fn why_since(&self, mark: Mark) -> Why {
        match self.spans(mark) {
            true => self.why(),
            false => Why::Outside,
        }
    }

    /// The reason for not measuring an operation that started at `mark`: its end was not recorded, or may be the end of
    /// another operation at the same address.
    pub(super) fn why_gone(&self, mark: Mark) -> Why {
        match self.spans(mark) {
            true => self.why(),
            false => Why::Identical,
        }
    }

    /// The reason for not measuring an operation of a CPU that started at `mark`, and has not ended.
    pub(super) fn why_on_since(&self, cpu: u32, mark: Mark) -> Why {
        match self.spans_on(cpu, mark) {
            true => self.why_on(cpu),
            false => Why::Outside,
        }
    }

    /// Notes that events of a CPU are not recorded up to `until`, since they are lost or outside of its
    /// stream.
    pub(super) fn lose(&mut self, cpu: u32, until: u64, is_lost: bool) {
        self.gaps.add(until, is_lost);
        self.files.lost(until);
        self.executing.clear();
        self.left.clear();
        if let Some(at) = self.at(cpu) {
            at.gaps.add(until, is_lost);
            at.current = None;
            at.since = Some(until);
        }
    }

    /// Whether the event contradicts the known state, so that events must be missing.
    pub(super) fn contradicts(&self, seen: &Seen<'_>) -> bool {
        match seen.step {
            Step::Known(What::Switch { prev, next, .. }) => {
                let current = self.current(seen.cpu).filter(|current| *current != prev);
                let is_other = current.is_some_and(|current| !self.may_become(current, prev));
                // The thread in `left` still has this number, so no exec has changed it.
                is_other || self.left.contains(&next)
            }
            _ => false,
        }
    }

    /// Whether an exec by a thread may have changed its number to `new`, the number of the main thread of its process,
    /// which has ended. The event of the exec may come only after the thread has slept.
    fn may_become(&self, tid: i32, new: i32) -> bool {
        let main = self.numbers.get(&tid).and_then(|id| self.process(*id));
        let is_main = main.is_none_or(|main| self.numbers.get(&new) == Some(&main));
        self.executing.contains(&tid) && new > 0 && is_main && !self.runs(new)
    }

    /// Whether the CPU or a field has a value that no kernel records: the event is from a damaged part of the trace.
    pub(super) fn is_impossible(seen: &Seen<'_>) -> bool {
        match seen.step {
            // A thread that existed before the first event is on no known CPU.
            Step::Known(What::There { .. }) => false,
            _ if seen.cpu >= CPUS => true,
            Step::Known(What::Switch { prev, next, .. }) => prev < 0 || next < 0,
            Step::Known(What::Exec { tid, old }) => tid <= 0 || old <= 0,
            Step::Known(What::Waking { tid, .. } | What::Wakeup { tid, .. })
            | Step::New { tid, .. } => tid < 0,
            Step::Known(
                What::Raise { vector } | What::Softirq { vector } | What::SoftirqEnd { vector },
            ) => vector >= u32::BITS,
            Step::Known(What::Irq { number, .. } | What::IrqEnd { number }) => number < 0,
            _ => false,
        }
    }

    /// Records that a thread is queued on a CPU.
    pub(super) fn mention(&mut self, cpu: u32) {
        if !self.streams.is_empty() && !self.streams.contains(&cpu) && cpu < CPUS {
            self.absent.get_or_insert(cpu);
            self.files.lost(u64::MAX);
        }
    }

    /// Returns the thread with a number; adds it if it is new.
    pub(super) fn find(&mut self, tid: i32) -> TaskId {
        if let Some(id) = self.numbers.get(&tid) {
            return *id;
        }
        // More than 2^32 threads would not fit into memory.
        let id = TaskId(self.tasks.len() as u32);
        self.tasks.push(Task {
            tid,
            name: None,
            main: None,
        });
        self.numbers.insert(tid, id);
        id
    }

    /// The number and the last name of a thread.
    pub(super) fn task(&self, id: TaskId) -> (i32, Option<Name>) {
        let task = self.tasks.get(id.0 as usize);
        task.map_or((0, None), |task| (task.tid, task.name))
    }

    /// The number of a thread, and its last name as a text.
    pub(super) fn task_text(&self, id: TaskId) -> (i32, Option<&str>) {
        let (tid, name) = self.task(id);
        (tid, name.map(|name| self.names.text(name)))
    }

    /// The main thread of the process of a thread, if recorded; the idle thread is a process of its own.
    pub(super) fn process(&self, id: TaskId) -> Option<TaskId> {
        let task = self.tasks.get(id.0 as usize)?;
        task.main.or((task.tid == 0).then_some(id))
    }

    /// Records the process of a thread.
    fn belongs(&mut self, tid: i32, process: i32) {
        if tid <= 0 || process <= 0 {
            return;
        }
        let mut main = self.find(process);
        let mut id = self.find(tid);
        if self.process(id).is_some_and(|known| known != main) {
            // The number was another thread's, whose end is not recorded.
            self.numbers.remove(&tid);
            id = self.find(tid);
            // The new thread may be the main thread itself.
            main = self.find(process);
        }
        if let Some(task) = self.tasks.get_mut(id.0 as usize) {
            task.main = Some(main);
        }
    }

    /// The number and the name of the thread with number `tid`.
    pub(super) fn named(&mut self, tid: i32) -> (i32, Option<Name>) {
        let id = self.find(tid);
        self.task(id)
    }

    /// Creates the record of an operation.
    pub(super) fn case(
        &mut self,
        (begin, end): (u64, u64),
        cpu: u32,
        tid: Option<i32>,
        object: Option<Object>,
    ) -> Case {
        let thread = tid.map(|tid| self.find(tid));
        Case {
            begin,
            end,
            cpu,
            thread,
            who: thread.map(|thread| self.task(thread)),
            priority: None::<Priority>,
            object,
            file: None,
            call: None,
        }
    }

    fn rename(&mut self, tid: i32, name: &[u8]) {
        if tid == 0 || name.is_empty() {
            return;
        }
        let name = self.names.number(name);
        let id = self.find(tid);
        if let Some(task) = self.tasks.get_mut(id.0 as usize) {
            task.name = Some(name);
        }
    }

    /// Takes names and processes from an event.
    pub(super) fn name(&mut self, seen: &Seen<'_>) {
        match seen.step {
            Step::Known(What::Switch {
                prev,
                prev_name,
                next,
                next_name,
                ..
            }) => {
                self.rename(prev, prev_name);
                self.rename(next, next_name);
            }
            Step::Known(
                What::Waking { tid, name, target } | What::Wakeup { tid, name, target },
            )
            | Step::New { tid, name, target } => {
                self.rename(tid, name);
                self.mention(target);
            }
            Step::Known(What::Migrate { tid, name, to, .. }) => {
                self.rename(tid, name);
                self.mention(to);
            }
            Step::Known(What::Fork { child, name }) => {
                // The number may have been another thread's.
                self.numbers.remove(&child);
                self.rename(child, name);
            }
            Step::Known(What::There { tid, name }) => self.rename(tid, name),
            _ => {}
        }
        if let Some((tid, process)) = seen.process {
            self.belongs(tid, process);
        }
    }

    /// Follows which files the threads have open.
    pub(super) fn follow(&mut self, seen: &Seen<'_>) {
        let tid = self.who(seen);
        let ended = seen.file.as_ref();
        let ended = ended.and_then(|event| self.files.see(seen.time, tid, event));
        self.file = ended.and_then(|(_, file)| file.name());
        match (seen.step, tid) {
            (Step::Known(What::Exit), Some(tid)) => self.files.exit(tid),
            (
                Step::Known(What::Switch {
                    prev,
                    out: SwitchedOut::Dead,
                    ..
                }),
                _,
            ) => self.files.exit(prev),
            _ => {}
        }
    }

    /// The numbers of the current thread of a CPU before and after an exec, if the event shows that they differ.
    pub(super) fn renumbers(&self, seen: &Seen<'_>) -> Option<(i32, i32)> {
        match seen.step {
            Step::Known(What::Exec { tid, old }) if tid != old => {
                (self.current(seen.cpu) == Some(old)).then_some((old, tid))
            }
            _ => None,
        }
    }

    /// Follows which threads execute another program, and which of them have another number already.
    fn follow_execs(&mut self, seen: &Seen<'_>) {
        match seen.step {
            Step::Known(What::Call {
                name: b"execve" | b"execveat",
            }) => {
                let tid = self.who(seen);
                self.executing.extend(tid);
            }
            Step::Known(What::Switch { prev, .. }) => {
                let current = self.current(seen.cpu).filter(|current| *current != prev);
                if let Some(current) = current {
                    self.executing.remove(&current);
                    self.left.insert(current);
                    // The exec is not proved yet, and a missing file name is better than a wrong one.
                    self.files.lost(seen.time);
                }
            }
            // The usual case.
            _ if self.executing.is_empty() && self.left.is_empty() => {}
            Step::Known(What::Return | What::Exit) | Step::Return { .. } => {
                if let Some(tid) = self.who(seen) {
                    self.executing.remove(&tid);
                }
            }
            Step::Known(What::Exec { old: tid, .. } | What::Fork { child: tid, .. })
            | Step::New { tid, .. } => {
                self.executing.remove(&tid);
                self.left.remove(&tid);
            }
            _ => {}
        }
    }

    /// Updates which thread runs where.
    pub(super) fn apply(&mut self, seen: &Seen<'_>) {
        self.follow_execs(seen);
        let next = match seen.step {
            Step::Known(What::Switch { next, .. }) => Some(next),
            _ => self.renumbers(seen).map(|(_, tid)| tid),
        };
        if let Some(next) = next
            && let Some(at) = self.at(seen.cpu)
        {
            at.current = Some(next);
        }
    }
}
