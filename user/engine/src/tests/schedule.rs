// SPDX-License-Identifier: GPL-2.0

//! Simulates the schedule on a machine whose CPUs hang or are kept busy. The schedule is called as the timers and
//! workers of sys/periodic.rs call it, in steps of simulated time.

use crate::engine::schedule::{Machine, Run, Schedule, OVERDUE, RUN};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};

const MS: u64 = 1_000_000;
const STEP: u64 = MS / 2;
const PAUSE: u64 = 50 * MS;
const TAKES: u64 = MS;

/// The state of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Fine,
    /// A real-time thread keeps the CPU's workers from running.
    Occupied,
    /// Interrupts are off: neither workers nor timers run.
    Hangs,
    /// Isolated: must not be disturbed.
    Isolated,
    /// Neither workers nor timers run, and the kernel knows that.
    Offline,
}

/// The simulated machine: the time, the state of each CPU, and the CPUs of the timers and work items.
struct World {
    now: Cell<u64>,
    cpu: Cell<usize>,
    states: RefCell<Vec<State>>,
    timer: Cell<Option<(usize, u64)>>,
    watch: Cell<Option<(usize, u64)>>,
    work: Cell<Option<usize>>,
    takeover: Cell<Option<usize>>,
    /// The CPUs that were asked to take over.
    asked: RefCell<Vec<usize>>,
}

impl World {
    fn state(&self, cpu: usize) -> State {
        self.states.borrow()[cpu]
    }
}

impl Machine for World {
    fn now(&self) -> u64 {
        self.now.get()
    }

    fn cpu(&self) -> usize {
        self.cpu.get()
    }

    fn cpus(&self) -> usize {
        self.states.borrow().len()
    }

    fn may_watch(&self, cpu: usize) -> bool {
        !matches!(self.state(cpu), State::Isolated | State::Offline)
    }

    fn start_timer(&self, at: u64) {
        self.timer.set(Some((self.cpu(), at)));
    }

    fn start_watch(&self, at: u64) {
        self.watch.set(Some((self.cpu(), at)));
    }

    fn ask(&self, cpu: usize) {
        assert!(self.may_watch(cpu), "CPU {cpu} is not to be disturbed");
        self.asked.borrow_mut().push(cpu);
        self.takeover.set(Some(cpu));
    }

    fn is_asked(&self) -> bool {
        self.takeover.get().is_some()
    }

    fn cancel(&self) {
        self.work.set(None);
    }
}

/// A worker that executes the work.
struct Worker {
    cpu: usize,
    run: Run,
    ends: u64,
    is_takeover: bool,
}

struct Simulation {
    world: World,
    schedule: Schedule,
    workers: Vec<Worker>,
    pause: Option<u64>,
    takes: u64,
    /// The time and the CPU of each start of the work.
    begins: Vec<(u64, usize)>,
}

impl Simulation {
    fn new(cpus: usize, is_watched: bool) -> Self {
        Self {
            world: World {
                now: Cell::new(0),
                cpu: Cell::new(0),
                states: RefCell::new(vec![State::Fine; cpus]),
                timer: Cell::new(None),
                watch: Cell::new(None),
                work: Cell::new(None),
                takeover: Cell::new(None),
                asked: RefCell::new(Vec::new()),
            },
            schedule: Schedule::new(is_watched),
            workers: Vec::new(),
            pause: Some(PAUSE),
            takes: TAKES,
            begins: Vec::new(),
        }
    }

    /// Creates a simulation in which a parameter was changed on CPU 0, and the work has run a few
    /// times.
    fn at_work(cpus: usize) -> Self {
        let mut all = Self::new(cpus, true);
        all.kick(0);
        all.until(200 * MS);
        all
    }

    fn set(&self, cpu: usize, state: State) {
        self.world.states.borrow_mut()[cpu] = state;
    }

    /// Kicks the work on this CPU.
    fn kick(&mut self, cpu: usize) {
        self.world.cpu.set(cpu);
        self.schedule.kick(&self.world);
        self.queue(cpu);
    }

    /// Queues the work on this CPU, unless it is already queued.
    fn queue(&self, cpu: usize) {
        if self.world.work.get().is_none() {
            self.world.work.set(Some(cpu));
        }
    }

    fn until(&mut self, end: u64) {
        while self.world.now() < end {
            for cpu in 0..self.world.cpus() {
                self.world.cpu.set(cpu);
                self.timers();
                self.workers();
            }
            self.world.now.set(self.world.now() + STEP);
        }
    }

    /// Runs the timers of this CPU.
    fn timers(&mut self) {
        let (cpu, now) = (self.world.cpu(), self.world.now());
        if matches!(self.world.state(cpu), State::Hangs | State::Offline) {
            return;
        }
        let is_due = |timer: &Cell<Option<(usize, u64)>>| {
            let is_due = timer.get().is_some_and(|(on, at)| on == cpu && at <= now);
            is_due && timer.take().is_some()
        };
        if is_due(&self.world.watch) {
            self.schedule.look(&self.world);
        }
        if is_due(&self.world.timer) {
            self.queue(cpu);
        }
    }

    /// Runs the workers of this CPU.
    fn workers(&mut self) {
        let (cpu, now) = (self.world.cpu(), self.world.now());
        if !matches!(self.world.state(cpu), State::Fine | State::Isolated) {
            return;
        }
        while let Some(at) = self
            .workers
            .iter()
            .position(|worker| worker.cpu == cpu && worker.ends <= now)
        {
            let worker = self.workers.remove(at);
            self.schedule.end(&self.world, worker.run, self.pause);
        }
        if self.starts(&self.world.work, false) {
            self.begin(false);
        }
        if self.starts(&self.world.takeover, true) && self.schedule.takes_over(&self.world) {
            self.begin(true);
        }
    }

    /// Whether a queued work item starts on this CPU. An item that runs on another CPU is queued
    /// there.
    fn starts(&self, work: &Cell<Option<usize>>, is_takeover: bool) -> bool {
        let mut same = self.workers.iter().filter(|w| w.is_takeover == is_takeover);
        if let (Some(_), Some(running)) = (work.get(), same.next()) {
            work.set(Some(running.cpu));
            return false;
        }
        work.get() == Some(self.world.cpu()) && work.take().is_some()
    }

    fn begin(&mut self, is_takeover: bool) {
        let (cpu, now) = (self.world.cpu(), self.world.now());
        self.begins.push((now, cpu));
        self.workers.push(Worker {
            cpu,
            run: self.schedule.begin(&self.world),
            ends: now + self.takes,
            is_takeover,
        });
    }

    /// Returns the longest time since `from` without a start of the work, and the CPUs of the
    /// starts.
    fn longest_gap(&self, from: u64) -> (u64, Vec<usize>) {
        let last = self.begins.iter().rfind(|(at, _)| *at <= from);
        let first = last.map_or(from, |(at, _)| *at);
        let after: Vec<_> = self.begins.iter().filter(|(at, _)| *at > from).collect();
        let times = after.iter().map(|(at, _)| *at);
        let ends = times.clone().chain([self.world.now()]);
        let gap = [first]
            .into_iter()
            .chain(times)
            .zip(ends)
            .map(|(a, b)| b - a);
        (
            gap.max().unwrap(),
            after.iter().map(|(_, cpu)| *cpu).collect(),
        )
    }
}

/// The longest time between two starts without a problem: the pause, the run, and the steps until
/// the simulation notices.
const WITHOUT_A_PROBLEM: u64 = PAUSE + TAKES + 4 * STEP;

#[test]
fn while_all_is_well_the_other_cpus_only_look() {
    let mut all = Simulation::new(4, true);
    all.kick(2);
    all.until(2_000 * MS);
    let (gap, cpus) = all.longest_gap(0);
    assert!(gap <= WITHOUT_A_PROBLEM, "{gap}");
    assert!(cpus.iter().all(|&cpu| cpu == 2), "{cpus:?}");
    assert_eq!(
        *all.world.asked.borrow(),
        [3],
        "once, to bring the watch there"
    );
}

#[test]
fn a_cpu_that_hangs_is_overdue_after_10_ms() {
    for state in [State::Hangs, State::Occupied] {
        let mut all = Simulation::at_work(2);
        all.set(0, state);
        all.until(600 * MS);
        let (gap, cpus) = all.longest_gap(200 * MS);
        assert!(gap <= WITHOUT_A_PROBLEM + OVERDUE, "{state:?}: {gap}");
        assert!(cpus.iter().all(|&cpu| cpu == 1), "{state:?}: {cpus:?}");
        assert!(cpus.len() >= 7, "{state:?}: the timer has moved: {cpus:?}");
    }
}

#[test]
fn if_workers_of_the_second_cpu_do_not_run_the_third_takes_over() {
    let mut all = Simulation::at_work(3);
    all.set(0, State::Hangs);
    all.set(1, State::Occupied);
    all.until(600 * MS);
    let (gap, cpus) = all.longest_gap(200 * MS);
    assert!(gap <= WITHOUT_A_PROBLEM + 2 * OVERDUE, "{gap}");
    assert!(cpus.iter().all(|&cpu| cpu == 2), "{cpus:?}");
}

#[test]
fn a_cpu_that_has_taken_over_is_watched_at_once() {
    let mut all = Simulation::at_work(3);
    all.set(0, State::Hangs);
    // Stops after the first run on CPU 1, and before the next one.
    while all.begins.last().is_none_or(|&(_, cpu)| cpu != 1) || !all.workers.is_empty() {
        all.until(all.world.now() + STEP);
    }
    all.until(all.world.now() + 2 * STEP);
    let since = all.world.now();
    all.set(1, State::Hangs);
    all.until(since + 400 * MS);
    let (gap, cpus) = all.longest_gap(since);
    assert!(gap <= WITHOUT_A_PROBLEM + OVERDUE, "{gap}");
    assert!(cpus.iter().all(|&cpu| cpu == 2), "{cpus:?}");
}

#[test]
fn a_watch_that_hangs_or_goes_offline_is_given_up() {
    for state in [State::Hangs, State::Offline] {
        let mut all = Simulation::at_work(3);
        all.set(1, state);
        all.until(500 * MS);
        all.set(0, State::Hangs);
        all.until(900 * MS);
        let (gap, cpus) = all.longest_gap(500 * MS);
        assert!(gap <= WITHOUT_A_PROBLEM + OVERDUE, "{state:?}: {gap}");
        assert!(cpus.iter().all(|&cpu| cpu == 2), "{state:?}: {cpus:?}");
    }
}

#[test]
fn a_watch_that_never_starts_is_given_up() {
    let mut all = Simulation::new(3, true);
    all.set(1, State::Occupied);
    all.kick(0);
    all.until(200 * MS);
    all.set(0, State::Hangs);
    all.until(600 * MS);
    let (gap, cpus) = all.longest_gap(200 * MS);
    assert!(gap <= WITHOUT_A_PROBLEM + OVERDUE, "{gap}");
    assert!(cpus.iter().all(|&cpu| cpu == 2), "{cpus:?}");
}

#[test]
fn a_run_is_left_alone_for_100_ms() {
    let mut all = Simulation::at_work(2);
    all.takes = RUN - 2 * STEP;
    all.until(1_000 * MS);
    let (_, cpus) = all.longest_gap(200 * MS);
    assert!(cpus.iter().all(|&cpu| cpu == 0), "{cpus:?}");

    all.takes = 3 * RUN;
    all.until(2_000 * MS);
    let (gap, cpus) = all.longest_gap(1_000 * MS);
    assert!(cpus.contains(&0) && cpus.contains(&1), "{cpus:?}");
    assert!(gap <= 3 * RUN + WITHOUT_A_PROBLEM, "{gap}");
}

#[test]
fn the_result_of_an_overtaken_run_is_ignored() {
    let mut all = Simulation::at_work(2);
    // CPU 0 hangs inside the work.
    all.kick(0);
    all.until(200 * MS + 2 * STEP);
    all.set(0, State::Hangs);
    all.until(400 * MS);
    let (timer, begins) = (all.world.timer.get(), all.begins.len());
    assert!(timer.is_some_and(|(cpu, _)| cpu == 1), "{timer:?}");
    // The run on CPU 0 ends. Its result would have started the timer now, on CPU 0.
    all.pause = Some(0);
    all.set(0, State::Fine);
    all.until(400 * MS + 2 * STEP);
    assert_eq!(all.world.timer.get(), timer);
    assert_eq!(all.begins.len(), begins);
}

#[test]
fn the_end_of_an_overtaken_run_leaves_the_watch_where_it_is() {
    let mut all = Simulation::at_work(2);
    // CPU 0 is slow. CPU 1 takes over, and CPU 0 watches it.
    all.takes = RUN + PAUSE / 2;
    all.kick(0);
    all.until(200 * MS + STEP);
    all.takes = TAKES;
    while !all.workers.is_empty() {
        all.until(all.world.now() + STEP);
    }
    // The run on CPU 0 has just ended.
    let since = all.world.now();
    assert_eq!(all.begins.last().map(|&(_, cpu)| cpu), Some(1));
    all.set(1, State::Hangs);
    all.until(since + 400 * MS);
    let (gap, cpus) = all.longest_gap(since);
    assert!(gap <= WITHOUT_A_PROBLEM + OVERDUE, "{gap}");
    assert!(cpus.iter().all(|&cpu| cpu == 0), "{cpus:?}");
}

#[test]
fn a_shorter_pause_moves_the_watch_forward() {
    let mut all = Simulation::new(2, true);
    all.pause = Some(10_000 * MS);
    all.kick(0);
    all.until(500 * MS);
    all.pause = Some(20 * MS);
    all.kick(0);
    all.until(520 * MS);
    all.set(0, State::Hangs);
    all.until(800 * MS);
    let (gap, _) = all.longest_gap(520 * MS);
    assert!(gap <= 20 * MS + TAKES + OVERDUE + 4 * STEP, "{gap}");
}

#[test]
fn a_kick_is_not_lost_during_a_run_that_hangs() {
    for (cpus, is_in_run) in [(2, false), (2, true), (3, false), (3, true)] {
        let mut all = Simulation::new(cpus, true);
        all.pause = Some(3_600_000 * MS);
        // CPU 0 hangs inside the work, and CPU 1 takes over.
        all.kick(0);
        all.until(STEP);
        all.set(0, State::Hangs);
        while all.begins.len() < 2 || (!is_in_run && all.workers.len() > 1) {
            all.until(all.world.now() + STEP);
        }
        // The kick queues the work on CPU 0. A run in progress still returns the long pause.
        let kicked = all.world.now();
        all.kick(1);
        all.until(kicked + 2 * TAKES);
        all.pause = Some(PAUSE);
        all.until(kicked + 600 * MS);
        let name = format!("{cpus} CPUs, kicked in a run: {is_in_run}");
        let latest = kicked + 2 * OVERDUE + 2 * TAKES;
        let mut begins = all.begins.iter().map(|&(at, _)| at);
        let first = begins.find(|&at| at > kicked);
        assert!(first.is_some_and(|at| at <= latest), "{name}: {first:?}");
        let (gap, _) = all.longest_gap(latest);
        assert!(gap <= WITHOUT_A_PROBLEM + OVERDUE, "{name}: {gap}");
    }
}

#[test]
fn a_cpu_that_hangs_right_after_a_kick_is_watched() {
    for mut all in [Simulation::new(2, true), Simulation::at_work(2)] {
        let since = all.world.now();
        all.kick(0);
        all.set(0, State::Hangs);
        all.until(since + 400 * MS);
        let begun = all.begins.iter().find(|(at, _)| *at >= since);
        assert!(
            begun.is_some_and(|&(at, cpu)| at <= since + OVERDUE + 2 * STEP && cpu == 1),
            "{begun:?}"
        );
    }
}

#[test]
fn isolated_cpus_are_not_disturbed() {
    let mut all = Simulation::new(3, true);
    all.set(1, State::Isolated);
    all.kick(0);
    all.until(200 * MS);
    all.set(0, State::Hangs);
    all.until(600 * MS);
    // `ask` would have failed if an isolated CPU had been disturbed.
    let (gap, cpus) = all.longest_gap(200 * MS);
    assert!(gap <= WITHOUT_A_PROBLEM + OVERDUE, "{gap}");
    assert!(cpus.iter().all(|&cpu| cpu == 2), "{cpus:?}");

    let mut all = Simulation::new(2, true);
    all.set(1, State::Isolated);
    all.kick(0);
    all.until(1_000 * MS);
    assert!(all.longest_gap(0).0 <= WITHOUT_A_PROBLEM);
    assert!(
        all.world.asked.borrow().is_empty(),
        "there is no second CPU"
    );
}

#[test]
fn unwatched_work_disturbs_no_other_cpu() {
    let mut all = Simulation::new(2, false);
    all.kick(0);
    all.until(200 * MS);
    all.set(0, State::Hangs);
    all.until(600 * MS);
    let (gap, _) = all.longest_gap(200 * MS);
    assert!(gap >= 400 * MS, "{gap}");
    assert!(all.world.asked.borrow().is_empty());
}

#[test]
fn at_rest_nothing_is_started() {
    let mut all = Simulation::at_work(2);
    all.pause = None;
    all.until(400 * MS);
    let begins = all.begins.len();
    all.until(2_000 * MS);
    assert_eq!(all.begins.len(), begins);
    assert_eq!((all.world.timer.get(), all.world.watch.get()), (None, None));
    all.pause = Some(PAUSE);
    all.kick(1);
    all.until(2_400 * MS);
    assert!(all.longest_gap(2_000 * MS).0 <= WITHOUT_A_PROBLEM);
    assert_eq!(
        *all.world.asked.borrow(),
        [1, 0],
        "the watch is on the other CPU"
    );
}

#[test]
fn once_stopped_nothing_is_started() {
    let mut all = Simulation::at_work(2);
    all.kick(0);
    all.until(200 * MS + STEP);
    assert_eq!(all.workers.len(), 1);
    all.schedule.stop();
    // As `lt_periodic_free` does.
    all.world.timer.set(None);
    all.until(600 * MS);
    assert!(all.workers.is_empty());
    assert_eq!((all.world.timer.get(), all.world.watch.get()), (None, None));
    assert_eq!(*all.world.asked.borrow(), [1, 1], "once for each kick");
    all.kick(0);
    assert_eq!(*all.world.asked.borrow(), [1, 1]);
}

proptest! {
    /// One CPU at a time has a problem, and between two problems there is at least one run without a problem. The
    /// work continues whatever the CPU does.
    #[test]
    fn one_cpu_cannot_stop_the_work(
        troubles in prop::collection::vec((0usize..3, any::<bool>(), 1u64..400, 80u64..200), 1..20),
    ) {
        let mut all = Simulation::at_work(3);
        let mut now = 200 * MS;
        for (cpu, hangs, length, between) in troubles {
            all.set(cpu, if hangs { State::Hangs } else { State::Occupied });
            now += length * MS;
            all.until(now);
            all.set(cpu, State::Fine);
            now += between * MS;
            all.until(now);
        }
        let (gap, _) = all.longest_gap(200 * MS);
        // The CPU may have hung inside a run, which is left alone; the pause begins when that run ends.
        prop_assert!(gap <= RUN + 2 * OVERDUE + WITHOUT_A_PROBLEM, "{gap}");
    }
}
