// SPDX-License-Identifier: GPL-2.0

//! A machine simulated by threads: the engine's [`Platform`] in user space.
//!
//! A [`Machine`] has CPUs. At most one thread at a time occupies a CPU, as disabled preemption
//! guarantees in the kernel. A thread either stays on a CPU ([`Machine::pin`]), or takes a free CPU
//! for each guard, like a task that the scheduler migrates ([`Machine::roam`]).

#![expect(clippy::panic, reason = "a misuse of the machine must stop a test")]

use crate::engine::platform::Platform;
use kernel::sync::atomic::{Atomic, Relaxed};
use std::{
    cell::{Cell, RefCell},
    marker::PhantomData,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        Arc,
    },
    thread,
    time::Instant,
};

/// Maximum number of CPUs of a machine.
const CPUS_MAX: usize = 64;

/// A machine's topology: the number of CPUs and nodes, the node of each CPU (four bits each, CPU 0
/// the lowest), and which nodes have memory (one bit each).
pub(crate) struct Host<
    const CPUS: usize,
    const NODES: usize = 1,
    const MAP: u64 = 0,
    const MEMORY: u64 = { u64::MAX },
>;

/// The occupied CPUs, and the CPUs with guards.
pub(crate) struct Machine {
    taken: [AtomicBool; CPUS_MAX],
    /// Odd while a guard is held on the CPU.
    guards: [AtomicU64; CPUS_MAX],
}

/// The place of a thread on a machine.
struct Seat {
    machine: Arc<Machine>,
    /// The CPU that the thread occupies now.
    cpu: Cell<Option<usize>>,
    /// Number of guards that the thread holds.
    depth: Cell<usize>,
    /// Number of CPUs among which a roaming thread may choose.
    roams: Option<usize>,
    random: Cell<u64>,
}

thread_local! {
    static SEAT: RefCell<Option<Seat>> = const { RefCell::new(None) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Returns how many times this thread has queued the memory work.
pub(crate) fn calls_of_grower() -> u64 {
    CALLS.get()
}

/// Keeps a thread on its machine.
pub(crate) struct Seated(PhantomData<*const ()>);

impl Machine {
    /// Creates a machine whose CPUs are free.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            taken: std::array::from_fn(|_| AtomicBool::new(false)),
            guards: std::array::from_fn(|_| AtomicU64::new(0)),
        })
    }

    /// Puts this thread on a CPU until the result is dropped; waits while another thread occupies
    /// it.
    pub(crate) fn pin(self: &Arc<Self>, cpu: usize) -> Seated {
        while !self.take(cpu) {
            thread::yield_now();
        }
        self.sit(Some(cpu), None)
    }

    /// Lets this thread run on any free CPU below `cpus`, chosen again for each guard.
    pub(crate) fn roam(self: &Arc<Self>, cpus: usize, random: u64) -> Seated {
        let seated = self.sit(None, Some(cpus));
        SEAT.with_borrow(|seat| seat.iter().for_each(|seat| seat.random.set(random)));
        seated
    }

    fn sit(self: &Arc<Self>, cpu: Option<usize>, roams: Option<usize>) -> Seated {
        let seat = Seat {
            machine: self.clone(),
            cpu: Cell::new(cpu),
            depth: Cell::new(0),
            roams,
            random: Cell::new(1),
        };
        let old = SEAT.replace(Some(seat));
        assert!(old.is_none(), "this thread is on a machine already");
        Seated(PhantomData)
    }

    fn take(&self, cpu: usize) -> bool {
        !self.taken[cpu].swap(true, Ordering::Acquire)
    }

    /// Waits until no CPU still has a guard that was held at the time of the call.
    fn synchronize(&self) {
        // Pairs with the fence in `Guard::new`: either the holder of the guard sees our caller's
        // writes, or we see its guard.
        std::sync::atomic::fence(Ordering::SeqCst);
        for guards in &self.guards {
            // Acquire, paired with the drop of a guard: what its holder did happened before.
            let now = guards.load(Ordering::Acquire);
            while now % 2 == 1 && guards.load(Ordering::Acquire) == now {
                thread::yield_now();
            }
        }
    }

    fn leave(&self, cpu: usize) {
        self.taken[cpu].store(false, Ordering::Release);
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        if let Some(seat) = SEAT.take() {
            seat.cpu
                .get()
                .into_iter()
                .for_each(|cpu| seat.machine.leave(cpu));
        }
    }
}

/// Keeps a thread on its CPU until dropped, like disabled preemption.
pub(crate) struct Guard {
    cpu: usize,
    stays: PhantomData<*const ()>,
}

impl Guard {
    fn new() -> Self {
        let cpu = SEAT.with_borrow(|seat| {
            let seat = seat
                .as_ref()
                .unwrap_or_else(|| panic!("this thread is on no machine"));
            seat.depth.set(seat.depth.get() + 1);
            let mut random = seat.random.get();
            let cpu = loop {
                match (seat.cpu.get(), seat.roams) {
                    (Some(cpu), _) => break cpu,
                    (None, Some(cpus)) => {
                        // xorshift
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        let cpu = (random % cpus as u64) as usize;
                        if seat.machine.take(cpu) {
                            seat.cpu.set(Some(cpu));
                        } else {
                            thread::yield_now();
                        }
                    }
                    (None, None) => panic!("a pinned thread has a CPU"),
                }
            };
            seat.random.set(random);
            if seat.depth.get() == 1 {
                // Relaxed: the fence orders it before the reads under the guard. A SeqCst operation
                // instead of the fence would not order those reads, which are not SeqCst.
                seat.machine.guards[cpu].fetch_add(1, Ordering::Relaxed);
                std::sync::atomic::fence(Ordering::SeqCst);
            }
            cpu
        });
        Self {
            cpu,
            stays: PhantomData,
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        SEAT.with_borrow(|seat| {
            let Some(seat) = seat else { return };
            let depth = seat.depth.get() - 1;
            seat.depth.set(depth);
            if depth == 0 {
                // Release, paired with the loads in `Machine::synchronize`.
                seat.machine.guards[self.cpu].fetch_add(1, Ordering::Release);
            }
            if depth == 0 && seat.roams.is_some() {
                seat.cpu
                    .take()
                    .into_iter()
                    .for_each(|cpu| seat.machine.leave(cpu));
            }
        });
    }
}

// SAFETY: A guard stays with its thread, whose seat has one CPU until the guard is dropped.
// `Machine::synchronize` waits for the guard. The topology is constant.
#[expect(unsafe_code, reason = "an unsafe trait")]
unsafe impl<const CPUS: usize, const NODES: usize, const MAP: u64, const MEMORY: u64> Platform
    for Host<CPUS, NODES, MAP, MEMORY>
{
    type Guard = Guard;

    fn guard() -> Guard {
        Guard::new()
    }

    fn cpu(guard: &Guard) -> usize {
        assert!(guard.cpu < CPUS);
        guard.cpu
    }

    fn cpus() -> usize {
        CPUS
    }

    fn nodes() -> usize {
        NODES
    }

    fn node_of(cpu: usize) -> Option<usize> {
        (cpu < CPUS).then(|| (MAP >> (4 * cpu)) as usize & 0xf)
    }

    fn has_memory(node: usize) -> bool {
        MEMORY >> node & 1 != 0
    }

    /// The nodes are in a line.
    fn distance(from: usize, to: usize) -> u32 {
        10 + 10 * from.abs_diff(to) as u32
    }

    fn now() -> u64 {
        thread_local!(static START: Instant = Instant::now());
        START.with(Instant::elapsed).as_nanos() as u64
    }

    /// The stack of thread `tid` has `tid % 16` addresses: `tid << 8`, plus the position of each.
    fn stack_of(tid: u32, addresses: &mut [u64]) -> usize {
        let len = addresses.len().min(tid as usize % 16);
        let below = addresses.iter_mut().take(len).enumerate();
        below.for_each(|(nth, address)| *address = u64::from(tid) << 8 | nth as u64);
        len
    }

    fn synchronize() {
        let machine = SEAT.with_borrow(|seat| seat.as_ref().map(|seat| seat.machine.clone()));
        machine
            .unwrap_or_else(|| panic!("this thread is on no machine"))
            .synchronize();
    }

    fn queue_memory_work() {
        CALLS.set(CALLS.get() + 1);
    }

    /// Atomic with respect to interrupts on this CPU, but a load and a store for other CPUs: if two
    /// CPUs ever wrote the same counter, the sums would be wrong.
    fn add_local(_: &Guard, counter: &Atomic<u64>, n: u64) {
        let add = || counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
        #[cfg(debug_assertions)]
        kernel::hook::uninterrupted(add);
        #[cfg(not(debug_assertions))]
        add();
    }
}
