// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tables of how long kernel operations took: wakeups, sleeps, time on CPUs, interrupts, system calls, disk requests,
//! locks, work items, reclaim of memory and packets.
//!
//! ```text
//! Seen --ground.rs--> threads, gaps --a machine--> start and end of one operation --table.rs--> rows, worst cases
//!                                          `-----> not measured: the start or the end was not recorded
//! ```
//!
//! Events come in time order. Only operations in flight, what is known of each thread and CPU, the rows and the worst
//! cases are kept. A duration is measured only if no gap may hide the end of the operation and the start of another. So
//! an operation of a CPU must not span a gap of that CPU, and an operation of a thread, a disk or a packet no gap of
//! any CPU. If only the start or the end of an operation is recorded, or if the operation spans such a gap, it is
//! counted with the reason; `calls.rs` and `net.rs` name the exceptions.

mod calls;
mod cpu;
mod ground;
mod group;
mod io;
mod irq;
mod locks;
mod net;
mod reclaim;
mod requests;
mod sleeps;
mod step;
mod sums;
mod table;
mod transmit;
mod trigger;
mod wakeups;
mod work;

use std::fmt;

use self::calls::Calls;
use self::cpu::Cpu;
use self::ground::Ground;
pub use self::group::{By, Case, Extra, File, InCall, Key, Kind, Object, TaskId, Trigger};
use self::io::Io;
use self::irq::Irq;
use self::locks::Locks;
pub use self::net::PacketEvents;
use self::net::Packets;
use self::reclaim::Reclaims;
use self::sleeps::Sleeps;
pub use self::step::{
    Block, BlockStage, Operation, Packet, PacketEnd, PacketStage, Reclaim, Seen, Step, Work,
    WorkStage,
};
pub use self::sums::{EXACT, Sums};
use self::table::Why;
pub use self::table::{Missed, Range, Row, Table};
pub use self::trigger::Recorded;
use self::wakeups::Wakeups;
use self::work::Works;
use crate::event::What;
use crate::files::FileName;
use crate::names::Name;

/// An analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Analysis {
    /// From waking to running.
    Wakeups {
        /// Whether `sched_waking` is recorded; otherwise `sched_wakeup` is the start.
        wakings: bool,
    },
    /// Sleeps, and what ended them.
    Sleeps(Recorded),
    /// Time on CPUs, and time of preempted threads.
    Cpu,
    /// Interrupt handlers and softirqs.
    Irq,
    /// System calls.
    Syscalls,
    /// Requests of disks.
    Io,
    /// Contended locks, and calls of `futex`.
    Locks,
    /// Work items, and what queued them.
    Work {
        /// The events that show what queues an item.
        recorded: Recorded,
        /// Whether `workqueue_execute_end` is recorded. Otherwise, it is not known which item a worker runs.
        ends: bool,
    },
    /// Reclaim and compaction of memory.
    Reclaim,
    /// Packets of the network.
    Net(PacketEvents),
}

/// State machine of an analysis. It sees each event before [`Ground`] applies it.
trait Machine: fmt::Debug {
    fn see(&mut self, ground: &mut Ground, seen: &Seen<'_>);

    /// Handles a gap: events of this CPU are not recorded from `time` on.
    fn lost(&mut self, _ground: &mut Ground, _time: u64, _cpu: u32, _why: Why) {}

    /// Called once, with the time of the last event.
    fn finish(&mut self, ground: &mut Ground, time: u64);

    /// The tables so far.
    fn growing(&mut self) -> Vec<&mut Table>;

    fn tables(self: Box<Self>) -> Vec<Table>;
}

/// Builds tables from events.
#[derive(Debug)]
pub struct Builder {
    ground: Ground,
    machine: Box<dyn Machine>,
    last: u64,
}

impl Builder {
    /// Creates a builder. `by` replaces the default grouping.
    #[must_use]
    pub fn new(analysis: Analysis, range: Range, by: Option<By>) -> Self {
        let machine: Box<dyn Machine> = match analysis {
            Analysis::Wakeups { wakings } => Box::new(Wakeups::new(range, by, wakings)),
            Analysis::Sleeps(recorded) => Box::new(Sleeps::new(range, by, recorded)),
            Analysis::Cpu => Box::new(Cpu::new(range, by)),
            Analysis::Irq => Box::new(Irq::new(range, by)),
            Analysis::Syscalls => Box::new(Calls::all(range, by)),
            Analysis::Io => Box::new(Io::new(range, by)),
            Analysis::Locks => Box::new(Locks::new(range, by)),
            Analysis::Work { recorded, ends } => Box::new(Works::new(range, by, recorded, ends)),
            Analysis::Reclaim => Box::new(Reclaims::new(range, by)),
            Analysis::Net(events) => Box::new(Packets::new(range, by, events)),
        };
        Self {
            ground: Ground::default(),
            machine,
            last: 0,
        }
    }

    /// Declares that the trace has a stream of this CPU from `begin` on. Once declared for any CPU, CPUs without a
    /// stream count as unknown; without any declaration, a CPU counts as recorded from its first event. Must come
    /// before the first event.
    pub fn has_stream(&mut self, cpu: u32, begin: u64) {
        self.ground.streams.push(cpu);
        self.ground.lose(cpu, begin, false);
    }

    /// Declares that the stream of this CPU ended at `time`. Later events may have been processed already.
    pub fn ends_stream(&mut self, time: u64, cpu: u32) {
        self.lose(time.max(self.last), cpu, u64::MAX, false);
    }

    /// Processes the next event. An event earlier than its predecessor counts as simultaneous.
    pub fn feed(&mut self, seen: &Seen<'_>) {
        let time = seen.time.max(self.last);
        self.last = time;
        let seen = Seen { time, ..*seen };
        if let Step::Known(
            What::Lost { until }
            | What::NoPackets { until }
            | What::Damaged { until }
            | What::Between { until },
        ) = seen.step
        {
            return self.lose(time, seen.cpu, until.max(time), true);
        }
        if Ground::is_impossible(&seen) {
            return self.lose(time, seen.cpu, time, true);
        }
        if self.ground.contradicts(&seen) {
            // Events are missing, although no loss was reported.
            self.lose(time, seen.cpu, time, true);
        }
        self.ground.starts(seen.cpu, time);
        self.ground.name(&seen);
        self.ground.follow(&seen);
        self.machine.see(&mut self.ground, &seen);
        self.ground.apply(&seen);
    }

    fn lose(&mut self, time: u64, cpu: u32, until: u64, is_lost: bool) {
        let why = if is_lost { Why::Lost } else { Why::Outside };
        self.machine.lost(&mut self.ground, time, cpu, why);
        self.ground.lose(cpu, until, is_lost);
    }

    /// Returns the operations that were measured since the last call, by table, in the order in which they ended; none
    /// without [`Range::each`]. The operations after the last call are in the tables that [`Builder::finish`] returns.
    /// If such a table is [dropped](Table::dropped), all its operations are void, including those returned here.
    pub fn take(&mut self) -> Vec<(Kind, Vec<Case>)> {
        let growing = self.machine.growing().into_iter();
        let each = growing.map(|table| (table.kind, table.take()));
        each.filter(|(_, cases)| !cases.is_empty()).collect()
    }

    /// A name of a thread, an interrupt or a system call.
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        self.ground.names.text(name)
    }

    /// The number and the name of a thread.
    #[must_use]
    pub fn task(&self, id: TaskId) -> (i32, Option<&str>) {
        self.ground.task_text(id)
    }

    /// The name with which a file was opened, or its kind, such as `socket`.
    #[must_use]
    pub fn file(&self, file: FileName) -> &str {
        self.ground.files.text(file)
    }

    /// Returns the tables.
    #[must_use]
    pub fn finish(mut self) -> Tables {
        self.machine.finish(&mut self.ground, self.last);
        let mut tables = self.machine.tables();
        for table in tables.iter_mut().filter(|table| table.by == By::Process) {
            table.by_process(|thread| self.ground.process(thread));
        }
        Tables {
            tables,
            ground: self.ground,
        }
    }
}

/// Complete tables.
#[derive(Debug)]
pub struct Tables {
    /// The tables of the analysis.
    pub tables: Vec<Table>,
    ground: Ground,
}

impl Tables {
    /// The number and the last name of a thread.
    #[must_use]
    pub fn task(&self, id: TaskId) -> (i32, Option<&str>) {
        self.ground.task_text(id)
    }

    /// The main thread of the process of a thread, if recorded.
    #[must_use]
    pub fn process(&self, id: TaskId) -> Option<TaskId> {
        self.ground.process(id)
    }

    /// A name of a thread, an interrupt or a system call.
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        self.ground.names.text(name)
    }

    /// The name with which a file was opened, or its kind, such as `socket`.
    #[must_use]
    pub fn file(&self, file: FileName) -> &str {
        self.ground.files.text(file)
    }

    /// A CPU that the events mention, but for which the trace has no stream. If there is such a CPU, no operation of a
    /// thread, a disk or a packet is measured.
    #[must_use]
    pub fn absent(&self) -> Option<u32> {
        self.ground.absent
    }
}
