// SPDX-License-Identifier: GPL-2.0

//! A wakeup at the moment when the task goes to sleep, and what the tracker `tree` concludes from it.
//!
//! ```text
//!   the waker   lock; state? -- probe: a tip in doubt -- on_rq? --> wakes it, or lets it run; unlock
//!   the task    state=S -- on_rq=0 -- switched out: probe -- off its CPU     (or, if state=R: runs on)
//! ```
//!
//! The kernel's part models `try_to_wake_up` and `__schedule` on these words. The probes' part follows doubts.rs,
//! wakings.rs and switches.rs of rust/trackers/tree; one atomic stands for the words of the tip, the end of an open
//! wake chain. The property: a task whose sleep this wakeup has ended has the tip, and a task that has slept again
//! since then does not. Each rule is left out once, and the model must then fail. The exception is `Drop`: without it,
//! the model must hold, and drop no tip.

use crate::{chain::Counts, machine::run};
use loom::{
    sync::{
        atomic::{
            fence, AtomicBool, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release, SeqCst},
        },
        Mutex,
    },
    thread,
};
use std::sync::{
    atomic::{AtomicUsize as StdUsize, Ordering as StdOrdering},
    Arc, Mutex as StdMutex,
};

/// The states of a task.
const RUNNING: usize = 0;
const SLEEPS: usize = 1;
const WAKING: usize = 2;

/// The tip in doubt: none, or made when the task had left its CPU an even or an odd number of times.
const NONE: usize = 0;
const EVEN: usize = 1;
const ODD: usize = 2;

/// The rule that is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Without {
    Nothing,
    /// The waker makes no tip for a task that is awake, as in an earlier version.
    Doubt,
    /// The switch drops a tip in doubt without reading the lock.
    Lock,
    /// The switch drops a tip without reading the state, which alone shows a wakeup whose waker has unlocked already.
    State,
    /// The switch leaves all tips in doubt.
    Drop,
    /// The switch takes the tip before it decides what to do with the tip.
    Look,
    /// The switch may read the lock before other CPUs see that the task sleeps.
    Fence,
    /// The switch to the task trusts a tip in doubt.
    Leaves,
    /// The waker first reads whether the task is awake, and then whether it has left its CPU, as in
    /// an earlier version.
    Order,
}

struct Machine {
    without: Without,
    pi_lock: Mutex<()>,
    /// Whether the lock is held, as seen by other threads.
    is_locked: AtomicBool,
    runqueue: Mutex<()>,
    on_rq: AtomicUsize,
    state: AtomicUsize,
    leaves: AtomicUsize,
    doubt: AtomicUsize,
    /// Number of tips without doubt.
    known: AtomicUsize,
}

/// The actual effect of the wakeup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Did {
    Nothing,
    /// The task continued to run.
    LetRun,
    /// The task had gone to sleep.
    Woke,
}

impl Machine {
    fn new(without: Without) -> Arc<Self> {
        Arc::new(Self {
            without,
            pi_lock: Mutex::new(()),
            is_locked: AtomicBool::new(false),
            runqueue: Mutex::new(()),
            on_rq: AtomicUsize::new(1),
            state: AtomicUsize::new(SLEEPS),
            leaves: AtomicUsize::new(0),
            doubt: AtomicUsize::new(NONE),
            known: AtomicUsize::new(0),
        })
    }

    /// Models `woken`: starts a tip, which is in doubt if the task is awake.
    fn waking(&self) {
        // `forget_doubt`; a tip that is being taken is not found.
        self.doubt.swap(NONE, SeqCst);
        let is_awake = || self.on_rq.load(Acquire) != 0;
        let seen = is_awake().then(|| self.leaves.load(Acquire));
        let Some(leaves) = seen.filter(|_| is_awake()) else {
            self.known.fetch_add(1, Release);
            return;
        };
        if self.without == Without::Doubt {
            return;
        }
        let is_odd = Self::counts(leaves).has_left(0);
        self.doubt.store(if is_odd { ODD } else { EVEN }, Release);
        fence(SeqCst);
        let has_left = || self.leaves.load(Acquire) != leaves;
        let (left, is_asleep) = if self.without == Without::Order {
            let is_asleep = !is_awake();
            (has_left(), is_asleep)
        } else {
            (has_left(), !is_awake())
        };
        if is_asleep {
            self.resolve(Some(true));
        } else if left {
            self.resolve(Some(false));
        }
    }

    fn counts(leaves: usize) -> Counts {
        let mut counts = Counts(0);
        counts.set_doubt(leaves as u64);
        counts
    }

    /// Takes a tip in doubt, and trusts it, drops it or, without a decision, puts it back.
    fn resolve(&self, decision: Option<bool>) {
        let tip = self.doubt.swap(NONE, SeqCst);
        match decision {
            _ if tip == NONE => (),
            Some(true) => _ = self.known.fetch_add(1, Release),
            Some(false) => (),
            None => self.doubt.store(tip, Release),
        }
    }

    /// Models `doubt_switched_out` for a task that goes to sleep.
    fn switched_out(&self) {
        let without = self.without;
        if self.doubt.load(Acquire) == NONE || without == Without::Drop {
            return;
        }
        if without != Without::Fence {
            fence(SeqCst);
        }
        let taken = (without == Without::Look).then(|| self.doubt.swap(NONE, SeqCst));
        let may_be_woken = self.is_locked.load(Acquire) && without != Without::Lock;
        let state = self.state.load(Relaxed);
        let decision = if state == WAKING && without != Without::State {
            Some(true)
        } else {
            (!may_be_woken).then_some(false)
        };
        if let Some(tip) = taken {
            self.doubt.store(tip, Release);
        }
        if decision.is_some() {
            self.resolve(decision);
        }
    }

    /// Models `doubt_switched_in` and `switched_in`: returns the number of chains that the task is
    /// on.
    fn switched_in(&self) -> usize {
        let leaves = self.leaves.load(Relaxed) as u64;
        let believed = match self.doubt.swap(NONE, SeqCst) {
            NONE => false,
            _ if self.without == Without::Leaves => true,
            tip => Self::counts(tip - EVEN).has_left(leaves),
        };
        self.known.swap(0, SeqCst) + usize::from(believed)
    }

    /// Models `try_to_wake_up`.
    fn wake(&self) -> Did {
        let pi_lock = self.pi_lock.lock().unwrap();
        self.is_locked.store(true, Relaxed);
        fence(SeqCst);
        let mut did = Did::Nothing;
        if self.state.load(Relaxed) == SLEEPS {
            self.waking();
            if self.on_rq.load(Acquire) != 0 {
                let _runqueue = self.runqueue.lock().unwrap();
                if self.on_rq.load(Relaxed) != 0 {
                    self.state.store(RUNNING, Relaxed);
                    did = Did::LetRun;
                }
            }
            if did == Did::Nothing {
                self.state.store(WAKING, Relaxed);
                did = Did::Woke;
                // The task is now on the list of its CPU, which completes the wakeup.
            }
        }
        self.is_locked.store(false, Release);
        drop(pi_lock);
        did
    }

    /// Models `schedule` for a task that has announced its sleep; returns whether the task has left
    /// its CPU.
    fn schedule(&self) -> bool {
        let runqueue = self.runqueue.lock().unwrap();
        fence(SeqCst);
        let sleeps = self.state.load(Relaxed) == SLEEPS;
        if sleeps {
            self.on_rq.store(0, Release);
            self.leaves.store(self.leaves.load(Relaxed) + 1, Release);
            self.switched_out();
        }
        drop(runqueue);
        sleeps
    }

    /// The task continues without having slept, and then announces another sleep.
    fn announce(&self) {
        self.state.store(SLEEPS, Relaxed);
        fence(SeqCst);
    }
}

/// The rule that the runs leave out, and the number of runs in which the switch dropped a tip.
static WITHOUT: StdMutex<Without> = StdMutex::new(Without::Nothing);
static DROPPED: StdUsize = StdUsize::new(0);

/// Wakes the task while it goes to sleep, and again if the first wakeup let it run. The task then
/// sleeps once more.
fn waking_and_sleep() {
    let machine = Machine::new(*WITHOUT.lock().unwrap());
    let waker = machine.clone();
    let waker = thread::spawn(move || match waker.wake() {
        Did::LetRun => (true, waker.wake()),
        did => (false, did),
    });
    if !machine.schedule() {
        machine.announce();
        machine.schedule();
    }
    match waker.join().unwrap() {
        (_, Did::Woke) => assert_eq!(machine.switched_in(), 1, "one chain for a waking"),
        (was_let_run, _) => {
            assert_eq!(machine.known.load(Relaxed), 0, "a chain without a waking");
            // The switch keeps the tip if the waker still holds the lock; the next wakeup drops it.
            if was_let_run && machine.doubt.swap(NONE, Relaxed) == NONE {
                DROPPED.fetch_add(1, StdOrdering::Relaxed);
            }
        }
    }
}

/// The task was preempted, and has not slept when it is switched in.
fn waking_and_preemption() {
    let machine = Machine::new(*WITHOUT.lock().unwrap());
    let waker = machine.clone();
    let waker = thread::spawn(move || waker.wake());
    assert_eq!(waker.join().unwrap(), Did::LetRun);
    assert_eq!(machine.switched_in(), 0, "it was only preempted");
}

fn runs(without: Without, body: fn()) -> Result<u64, String> {
    *WITHOUT.lock().unwrap() = without;
    DROPPED.store(0, StdOrdering::Relaxed);
    run(None, body)
}

#[test]
fn a_sleep_that_a_wakeup_has_ended_is_known() {
    for body in [waking_and_sleep as fn(), waking_and_preemption] {
        let runs = runs(Without::Nothing, body).unwrap();
        println!("holds   a waking in doubt: {runs} runs");
    }
    runs(Without::Nothing, waking_and_sleep).unwrap();
    assert!(DROPPED.load(StdOrdering::Relaxed) > 0);
    for (without, body, assertion) in [
        (Without::Doubt, waking_and_sleep as fn(), "one chain"),
        (Without::Lock, waking_and_sleep, "one chain"),
        (Without::State, waking_and_sleep, "one chain"),
        (Without::Look, waking_and_sleep, "one chain"),
        (Without::Fence, waking_and_sleep, "one chain"),
        (Without::Leaves, waking_and_preemption, "only preempted"),
        (Without::Order, waking_and_sleep, "one chain"),
    ] {
        let message = runs(without, body).unwrap_err();
        assert!(message.contains(assertion), "{without:?}: {message}");
        println!("notices a waking in doubt without {without:?}");
    }
    runs(Without::Drop, waking_and_sleep).unwrap();
    assert_eq!(DROPPED.load(StdOrdering::Relaxed), 0);
}
