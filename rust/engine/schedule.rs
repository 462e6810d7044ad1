// SPDX-License-Identifier: GPL-2.0

//! Decides when and on which CPU repeated work is done next, and which CPU takes over if the first
//! one is late.
//!
//! ```text
//!   CPU 0:  timer --> work --> timer --> ...
//!                      |
//!                      | due: when it should be done next
//!                      v
//!   CPU 1:  watch: is it overdue? -- no: look again when it would be overdue
//!                      | yes
//!                      +--> takeover: work --> timer, from now on here
//! ```
//!
//! A CPU with interrupts off runs neither its timers nor its workers, and a CPU that a real-time
//! thread occupies runs no worker. So work that is watched has a second timer, on a second CPU.
//! While all is well, that timer only reads the clock, at most once per pause. A takeover that it
//! starts is bound to the timer's own CPU, which is known to run. If a real-time thread occupies
//! that CPU before the takeover starts, the next CPU is asked. No CPU takes over from a takeover
//! that hangs (sys/periodic.c). After each run, the watch moves if it is on the CPU that has done
//! the work: one hang would stop both.
//!
//! Two CPUs may do the work at the same time, if the first CPU is only slow and not stuck. Then the
//! result of the run that started last is used, since it covers everything.
//!
//! This file has only the decisions, so that host tests can run them
//! (user/engine/src/tests/schedule.rs). The timers, the workers and the lock are behind
//! [`Machine`], see sys/periodic.rs: every function is called under that lock, so nothing here is
//! shared.
//!
//! # Contexts
//!
//! Tasks and hard interrupts, with interrupts off. Probes do not use it.

/// Delay of the first CPU, in nanoseconds, after which the second CPU takes over.
pub(crate) const OVERDUE: u64 = 10_000_000;

/// Duration of a run, in nanoseconds, up to which no other CPU takes over.
pub(crate) const RUN: u64 = 100_000_000;

/// The machine, as seen by the CPU that runs a function of [`Schedule`].
pub(crate) trait Machine {
    /// Returns the time in nanoseconds.
    fn now(&self) -> u64;

    /// Returns the number of this CPU.
    fn cpu(&self) -> usize;

    /// Returns a number above all CPU numbers.
    fn cpus(&self) -> usize;

    /// Whether a CPU is online and may be disturbed.
    fn may_watch(&self, cpu: usize) -> bool;

    /// Queues the work for this time, on this CPU, and cancels its timer elsewhere. A CPU that must
    /// not be disturbed may leave the timer to another CPU.
    fn start_timer(&self, at: u64);

    /// Arms the timer that calls [`Schedule::look`] at this time, on this CPU, and cancels it
    /// elsewhere.
    fn start_watch(&self, at: u64);

    /// Queues the takeover on an online CPU, and cancels it elsewhere.
    fn ask(&self, cpu: usize);

    /// Whether a takeover waits for a worker.
    fn is_asked(&self) -> bool;

    /// Cancels the work, if it waits for a worker.
    fn cancel(&self);
}

/// The timer that checks whether the work is overdue.
#[derive(Clone, Copy, Debug)]
struct Watch {
    /// The CPU that watches, or the CPU where a takeover was requested in order to start the watch.
    cpu: usize,
    /// When the watch checks next, or when the requested takeover should have started it.
    looks: u64,
}

/// A run of the work, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run(u64);

/// The state of one kind of repeated work. See the head of this file.
#[derive(Debug)]
pub(crate) struct Schedule {
    is_watched: bool,
    is_stopped: bool,
    /// Number of runs started.
    runs: u64,
    /// Whether the last run is still in progress.
    is_busy: bool,
    /// Whether the work was kicked after the last run had started.
    is_kicked: bool,
    /// When the work is due, or the run should have ended; `None` if the work rests: it is neither
    /// running nor due at any time.
    due: Option<u64>,
    watch: Option<Watch>,
    /// The CPU that was last asked for the takeover.
    asked: Option<usize>,
}

impl Schedule {
    /// Creates work that rests. If `is_watched`, another CPU takes over when the work is late.
    pub(crate) fn new(is_watched: bool) -> Self {
        Self {
            is_watched,
            is_stopped: false,
            runs: 0,
            is_busy: false,
            is_kicked: false,
            due: None,
            watch: None,
            asked: None,
        }
    }

    /// Prevents any further timer or takeover from being started.
    pub(crate) fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Makes watched work due now, or at the end of the run that is in progress. The caller then
    /// queues the work. The work becomes overdue if this CPU hangs before a worker starts it, or if
    /// it must wait for a run that hangs on another CPU.
    pub(crate) fn kick(&mut self, machine: &impl Machine) {
        if !self.is_watched || self.is_stopped {
            return;
        }
        self.is_kicked = true;
        if self.is_busy {
            return;
        }
        let (now, this) = (machine.now(), machine.cpu());
        self.due = Some(self.due.map_or(now, |due| due.min(now)));
        // The timer that is armed here stays armed until the CPU that is asked to watch has armed
        // its own: if that CPU hangs, this CPU still watches.
        if machine.may_watch(this) && next(machine, this, Some(this)).is_some() {
            self.look_later(machine);
        }
        self.ensure_watched(machine);
    }

    /// Starts a run of the work on this CPU.
    pub(crate) fn begin(&mut self, machine: &impl Machine) -> Run {
        self.runs += 1;
        self.is_busy = true;
        self.is_kicked = false;
        self.due = Some(machine.now().saturating_add(RUN));
        Run(self.runs)
    }

    /// Ends a run of the work on this CPU; the work is due again after `pause` nanoseconds, if at
    /// all, or at once if it was kicked meanwhile. Then another CPU watches this CPU.
    pub(crate) fn end(&mut self, machine: &impl Machine, run: Run, pause: Option<u64>) {
        // Another CPU has taken over. Its run covers everything, and that CPU is watched.
        if run != Run(self.runs) {
            return;
        }
        self.is_busy = false;
        self.due = None;
        let pause = if self.is_kicked { Some(0) } else { pause };
        if let (Some(pause), false) = (pause, self.is_stopped) {
            let due = machine.now().saturating_add(pause);
            self.due = Some(due);
            machine.start_timer(due);
            self.ensure_watched(machine);
        }
    }

    /// Ensures that another CPU watches this CPU and checks in time. A watching CPU that is late
    /// for its check, or for starting the watch, is replaced.
    fn ensure_watched(&mut self, machine: &impl Machine) {
        let (Some(due), true, false) = (self.due, self.is_watched, self.is_stopped) else {
            return;
        };
        let (now, this) = (machine.now(), machine.cpu());
        let after = match self.watch {
            None => this,
            Some(watch)
                if watch.cpu == this
                    || !machine.may_watch(watch.cpu)
                    || watch.looks < now.saturating_sub(OVERDUE) =>
            {
                watch.cpu
            }
            Some(watch) if watch.looks <= due.saturating_add(OVERDUE) => return,
            // The next check would be too late: a timeout has become shorter.
            Some(watch) => {
                self.ask_to_watch(machine, watch.cpu);
                return;
            }
        };
        if let Some(cpu) = next(machine, after, Some(this)) {
            self.ask_to_watch(machine, cpu);
        }
    }

    /// Returns whether the takeover that starts on this CPU must do the work. If not, it was only
    /// requested to move the watch here, and this CPU watches from now on.
    pub(crate) fn takes_over(&mut self, machine: &impl Machine) -> bool {
        let takes_over = self.is_overdue(machine);
        if takes_over {
            // If the work still waits for the other CPU's worker, it is cancelled: from now on the
            // timer queues it here.
            machine.cancel();
        } else {
            self.look_later(machine);
        }
        takes_over
    }

    /// Checks whether the work is overdue.
    pub(crate) fn look(&mut self, machine: &impl Machine) {
        if self.is_overdue(machine) {
            // This CPU runs; if its workers do not, the next CPU is asked.
            let cpu = match self.asked {
                Some(asked) if machine.is_asked() => next(machine, asked, None),
                _ => Some(machine.cpu()),
            };
            if let Some(cpu) = cpu {
                self.ask(machine, cpu);
            }
        }
        // If another CPU was asked to watch, this CPU keeps watching until that CPU has started. If
        // that CPU is late, the end of a run replaces it.
        let asked = self.watch.filter(|watch| watch.cpu != machine.cpu());
        self.look_later(machine);
        self.watch = self.watch.map(|here| asked.unwrap_or(here));
    }

    /// Schedules a check on this CPU for [`OVERDUE`] after the work is due; for [`OVERDUE`] from
    /// now, if the work is already due or a run is in progress. Ends the watch if the work rests.
    fn look_later(&mut self, machine: &impl Machine) {
        let (Some(due), false) = (self.due, self.is_stopped) else {
            self.watch = None;
            return;
        };
        let now = machine.now();
        let from = if self.is_busy { now } else { due.max(now) };
        let looks = from.saturating_add(OVERDUE);
        let cpu = machine.cpu();
        self.watch = Some(Watch { cpu, looks });
        machine.start_watch(looks);
    }

    fn is_overdue(&self, machine: &impl Machine) -> bool {
        let grace = if self.is_busy { 0 } else { OVERDUE };
        let is_over = |due: u64| machine.now() >= due.saturating_add(grace);
        !self.is_stopped && self.due.is_some_and(is_over)
    }

    fn ask_to_watch(&mut self, machine: &impl Machine, cpu: usize) {
        let looks = machine.now().saturating_add(OVERDUE);
        self.watch = Some(Watch { cpu, looks });
        self.ask(machine, cpu);
    }

    fn ask(&mut self, machine: &impl Machine, cpu: usize) {
        self.asked = Some(cpu);
        machine.ask(cpu);
    }
}

/// Returns the first CPU after `after` that may be disturbed and is not `not`.
fn next(machine: &impl Machine, after: usize, not: Option<usize>) -> Option<usize> {
    let cpus = machine.cpus();
    (1..=cpus)
        .map(|step| (after + step) % cpus)
        .find(|&cpu| Some(cpu) != not && machine.may_watch(cpu))
}
