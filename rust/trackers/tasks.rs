// SPDX-License-Identifier: GPL-2.0

//! Common parts of the trackers of tasks: which tasks are tracked, and which are not reported.
//!
//! With `tree=1`, a task must be in a set of processes, see instance/descendants.rs; a probe then
//! reads [`FOLLOWED`] as the value of `pid`.
//!
//! The owner of an event is usually the task that waits: the wakee, or the task that was switched
//! out. An idle task never waits, but func, pair and lock also track what runs on top of it.

use crate::{
    alert::{
        readers,
        record::{
            actor::{Actor, Place},
            Owner, ID_BITS,
        },
    },
    control::{Kind, Param, ALL},
    engine::{platform::Platform, Late},
    instance::{
        common,
        descendants::FOLLOWED,
        param_list,
        Core,
        Details, //
    },
    sys::{
        platform::Kernel,
        task::{Context, TaskRef}, //
    }, //
};

pub(super) type Guard = <Kernel as Platform>::Guard;

/// The counter of alerts that were suppressed because the task reads alerts; the first own counter
/// of each of these trackers.
pub(super) const READERS: &str = "readers";
pub(super) const READERS_AT: usize = 0;

// The positions of the parameters of the filter.
const PID: usize = common::COUNT;
const TID: usize = PID + 1;
const COMM: usize = TID + 1;
const CGROUP: usize = COMM + 1;
const CPU: usize = CGROUP + 1;
const UID: usize = CPU + 1;
pub(super) const KTHREADS: usize = UID + 1;

/// The parameters whose defaults let all tasks pass, a bit each.
pub(super) const TASKS: u64 = 1 << PID | 1 << TID | 1 << COMM | 1 << CGROUP | 1 << CPU | 1 << UID;

/// Number of parameters of the filter.
pub(super) const FILTER: usize = 8;

/// Returns the parameters of the filter; `kthreads` is whether kernel threads pass by default.
pub(super) const fn filter(kthreads: bool) -> [Param; FILTER] {
    const IDS: Kind = Kind::Id {
        max: (1 << ID_BITS) - 1,
    };
    param_list! {
        pid: IDS => ALL, "only this process";
        tid: IDS => ALL, "only this thread";
        comm: Kind::Comm => 0, "only threads of this name";
        cgroup: Kind::Cgroup => ALL, "only this cgroup and its descendants";
        cpu: Kind::Id { max: 1 << 16 } => ALL, "only operations that start on this CPU";
        uid: Kind::Id { max: u32::MAX as u64 - 1 } => ALL, "only threads of this user";
        kthreads: Kind::Switch => kthreads as u64, "kernel threads as well";
        tree: Kind::Switch => 0, "the descendants of the process pid as well", fixed;
    }
}

/// Returns `false` if pid, tid, comm or `kthreads` reject a task. If it returns `true`,
/// [`is_wanted`] must be checked, too. Any context.
#[inline(always)]
pub(super) fn may_be_wanted<const K: usize, const D: usize>(
    core: &Core<K, D>,
    task: &TaskRef<'_>,
) -> bool {
    let is_process = || {
        let wanted = core.value(PID);
        // No ID is as large as FOLLOWED or ALL, so one comparison shows whether one ID is wanted.
        const { assert!(FOLLOWED < ALL && FOLLOWED > u32::MAX as u64) };
        if wanted < FOLLOWED {
            return wanted == u64::from(task.pid());
        }
        wanted == ALL || core.follows(task.pid())
    };
    let is_thread = || {
        let wanted = core.value(TID);
        wanted == ALL || wanted == u64::from(task.tid())
    };
    let is_named = || {
        let wanted = core.halves(COMM);
        wanted == [0; 2] || wanted == task.comm()
    };
    is_process() && is_thread() && is_named() && (core.value(KTHREADS) != 0 || !task.is_kthread())
}

/// Whether the filter accepts a task that passed [`may_be_wanted`], on the given CPU. Any context.
#[inline(always)]
pub(super) fn is_wanted<const K: usize, const D: usize>(
    core: &Core<K, D>,
    task: &TaskRef<'_>,
    cpu: u32,
) -> bool {
    if core.are_default(TASKS) {
        return true;
    }
    let (only_cpu, uid, cgroup) = (core.value(CPU), core.value(UID), core.value(CGROUP));
    (only_cpu == ALL || only_cpu == u64::from(cpu))
        && (uid == ALL || uid == u64::from(task.uid()))
        && (cgroup == ALL || task.is_in_cgroup(cgroup))
}

/// Returns the CPU that the guard keeps the caller on.
#[inline(always)]
pub(super) fn this_cpu(guard: &Guard) -> u32 {
    Kernel::cpu(guard) as u32
}

/// Whether the filter accepts all tasks. Any context.
pub(super) fn takes_all<const K: usize, const D: usize>(core: &Core<K, D>) -> bool {
    [PID, TID, CGROUP, CPU, UID]
        .into_iter()
        .all(|param| core.value(param) == ALL)
        && core.halves(COMM) == [0; 2]
        && core.value(KTHREADS) != 0
}

/// Returns the owner of an event that starts now on this CPU: the current task or, in an interrupt
/// or softirq on top of it, no task. `None` if the filter rejects that owner; a filter by pid, tid,
/// comm, cgroup or uid rejects an event without a task. Any context.
#[inline(always)]
pub(super) fn caller<const K: usize, const D: usize>(
    core: &Core<K, D>,
    task: &TaskRef<'_>,
    context: Context,
    cpu: u32,
) -> Option<Owner> {
    if context != Context::Task {
        let is_all = |param| core.value(param) == ALL;
        let is_nobody_wanted = [PID, TID, CGROUP, UID].into_iter().all(is_all)
            && core.halves(COMM) == [0; 2]
            && (is_all(CPU) || core.value(CPU) == u64::from(cpu));
        return is_nobody_wanted.then(Owner::default);
    }
    let is_wanted = may_be_wanted(core, task) && is_wanted(core, task, cpu);
    is_wanted.then(|| owner(task))
}

/// Returns the key of a task's event: the task's address. For trackers that have at most one event
/// of a task at a time, and none of a task that has exited.
///
/// It is not the thread id: during an execve(), a thread other than the group leader exchanges its
/// id with the leader, which is exiting, and may be preempted at that moment.
#[inline(always)]
pub(super) fn key(task: &TaskRef<'_>) -> [u64; 1] {
    [task.address()]
}

/// Returns the owner of an event that starts now.
#[inline(always)]
pub(super) fn owner(task: &TaskRef<'_>) -> Owner {
    Owner::from(&task.describe())
}

/// Returns the description of a task that is not the owner of an event, such as the waker.
#[inline(always)]
pub(super) fn actor(task: &TaskRef<'_>) -> Actor {
    Actor {
        pid: task.pid(),
        tid: task.tid(),
        comm: task.comm(),
    }
}

/// Returns the description of a task that is not the owner; an idle task is named `idle`, without
/// its CPU.
#[inline(always)]
pub(super) fn actor_or_idle(task: &TaskRef<'_>) -> Actor {
    const IDLE: u64 = u64::from_le_bytes(*b"idle\0\0\0\0");
    let mut actor = actor(task);
    if task.is_idle() {
        actor.comm = [IDLE, 0];
    }
    actor
}

/// Returns the given CPU with the priority and the policy of a task.
#[inline(always)]
pub(super) fn place(task: &TaskRef<'_>, cpu: u32) -> Place {
    Place {
        cpu,
        prio: task.prio() as i16,
        policy: task.policy() as u16,
    }
}

/// Whether an alert may be raised about this task. Counts, and returns `false` for, a reader of
/// alerts. Any context.
pub(super) fn is_reported<const K: usize, const D: usize>(
    core: &Core<K, D>,
    guard: &Guard,
    owner: &Owner,
) -> bool {
    let is_reader = readers::is_known(owner);
    if is_reader {
        core.count_extra(guard, READERS_AT);
    }
    !is_reader
}

/// Returns the details of an alert, if it may be raised. Any context.
pub(super) fn reported<const K: usize, const D: usize>(
    core: &Core<K, D>,
    details: Details,
) -> Option<Details> {
    let guard = Kernel::guard();
    is_reported(core, &guard, &details.owner).then_some(details)
}

/// Raises the alert for the late end of an event, with the given stack, unless its task is a reader
/// of alerts. Any context.
#[cold]
pub(super) fn raise<const K: usize, const D: usize>(
    core: &Core<K, D>,
    guard: &Guard,
    late: &Late<K, D>,
    details: &Details,
    stack: &[u64],
) {
    if is_reported(core, guard, &details.owner) {
        core.raise(guard, late, details, stack);
    }
}
