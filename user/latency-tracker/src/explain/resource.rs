// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Maps the function in which a task sleeps to the resource that it waits for. The functions exist in Linux 7.2. The
//! kernel leaves functions in `.sched.text`, such as `mutex_lock`, out of another task's stack.

use lt_proc::Alert;

/// Functions, each with the reason for a sleep in it.
static SLEEPS: [(&str, &str); 57] = [
    // Pages
    (
        "balance_dirty_pages",
        "dirty limit: too much data that is not on disk yet (vm.dirty_*)",
    ),
    (
        "folio_wait_writeback",
        "a page that is being written to its disk",
    ),
    (
        "__folio_lock_or_retry",
        "a locked page, perhaps one that is being read from swap or a file",
    ),
    ("migration_entry_wait", "a page that is being migrated"),
    (
        "__wait_on_buffer",
        "a metadata block of a file system that is being read or written",
    ),
    ("wb_wait_for_completion", "writeback of the file system"),
    // Block layer
    (
        "wbt_wait",
        "writeback throttling of the disk (wbt_lat_usec)",
    ),
    ("ioc_rqos_throttle", "io.cost of its cgroup"),
    ("blkcg_iolatency_throttle", "io.latency of its cgroup"),
    (
        "blkcg_maybe_throttle_current",
        "a delay of its cgroup, by io.cost or io.latency",
    ),
    (
        "blk_mq_get_tag",
        "a full queue: all tags of the disk are in use",
    ),
    (
        "__bio_queue_enter",
        "a queue that is frozen while it is reconfigured, or whose disk is resuming",
    ),
    (
        "blk_queue_enter",
        "a queue that is frozen while it is reconfigured, or whose disk is resuming",
    ),
    (
        "mempool_alloc_from_pool",
        "a reserve of memory (mempool), which is used up",
    ),
    (
        "md_write_start",
        "an array that is suspended or writes its superblock",
    ),
    (
        "_wait_barrier",
        "an array that resyncs, repairs a read error or is reconfigured",
    ),
    (
        "wait_barrier",
        "an array that resyncs, repairs a read error or is reconfigured",
    ),
    (
        "scsi_block_when_processing_errors",
        "error handling of a SCSI host",
    ),
    // File systems
    ("wait_transaction_locked", "a commit of the journal"),
    ("add_transaction_credits", "a commit of the journal"),
    ("jbd2_log_wait_commit", "a commit of the journal"),
    ("__jbd2_log_wait_for_space", "space in the journal"),
    ("jbd2_journal_wait_updates", "open handles of the journal"),
    ("xlog_grant_head_wait", "space in the log of XFS"),
    ("xlog_wait_on_iclog", "a write of the log of XFS"),
    ("xlog_force_lsn", "a write of the log of XFS"),
    ("wait_current_trans", "a commit of btrfs"),
    ("handle_reserve_ticket", "metadata space of btrfs"),
    ("request_wait_answer", "the server of a FUSE file system"),
    (
        "rpc_wait_bit_killable",
        "the server of a network file system",
    ),
    ("nfs_wait_on_request", "the server of a network file system"),
    (
        "locks_lock_inode_wait",
        "a file lock; /proc/locks has its owner",
    ),
    ("fcntl_setlk", "a file lock; /proc/locks has its owner"),
    ("__break_lease", "a lease; /proc/locks has its owner"),
    ("fanotify_handle_event", "permission of a fanotify listener"),
    // Memory
    (
        "reclaim_throttle",
        "memory: direct reclaim finds too little",
    ),
    ("throttle_direct_reclaim", "memory: kswapd"),
    ("__mem_cgroup_handle_over_high", "memory.high of its cgroup"),
    ("handle_userfault", "the handler of a userfaultfd"),
    // CPU and stops
    ("throttle_cfs_rq_work", "cpu.max of its cgroup"),
    ("__refrigerator", "the freezer: suspend, or a frozen cgroup"),
    ("do_freezer_trap", "the freezer: its cgroup is frozen"),
    ("do_signal_stop", "SIGCONT: it is stopped (SIGSTOP)"),
    ("ptrace_stop", "its tracer"),
    ("stop_one_cpu", "the stopper thread of a CPU"),
    // RCU and workers
    (
        "synchronize_rcu_normal",
        "an RCU grace period: readers on all CPUs",
    ),
    ("__wait_rcu_gp", "an RCU grace period: readers on all CPUs"),
    (
        "synchronize_rcu_expedited",
        "an RCU grace period: readers on all CPUs",
    ),
    ("__synchronize_srcu", "an SRCU grace period"),
    ("rcu_barrier", "RCU callbacks"),
    ("__flush_work", "a work item"),
    ("__flush_workqueue", "a workqueue"),
    // User locks, sockets
    (
        "futex_lock_pi",
        "a PI futex; its owner is in the futex word",
    ),
    ("sk_wait_data", "data from the peer of its socket"),
    (
        "sk_stream_wait_memory",
        "a full send buffer: the peer or the network is slow",
    ),
    ("__lock_sock", "a socket that another thread uses"),
    ("console_lock", "a console that is being written to"),
];

/// The function that holds back a thread whose quota is used up.
pub(super) const QUOTA: &str = "throttle_cfs_rq_work";

/// Functions whose sleeps are not caused by the waker.
const ALONE: [&str; 6] = [
    "__refrigerator",
    "do_freezer_trap",
    "get_signal",
    "do_signal_stop",
    "ptrace_stop",
    "__mem_cgroup_handle_over_high",
];

/// Functions that sleep for their callers, or that a task is in when it is preempted.
const FOR_CALLERS: [&str; 13] = [
    "folio_wait_bit_common",
    "softleaf_entry_wait_on_locked",
    "rq_qos_wait",
    "wait_woken",
    "percpu_rwsem_wait",
    "preempt_schedule_thunk",
    "_raw_spin_unlock",
    "_raw_spin_unlock_irq",
    "_raw_spin_unlock_irqrestore",
    "__cond_resched",
    "raw_irqentry_exit_cond_resched",
    "irqentry_exit",
    "asm_sysvec_apic_timer_interrupt",
];

/// The resource for which a task sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Resource {
    /// The function that identifies the resource, and the resource in words.
    pub(super) known: &'static (&'static str, &'static str),
    /// Whether the thread that ends the sleep did not cause it.
    pub(super) alone: bool,
    /// Whether the task sleeps in that function itself, or in a function that only sleeps for its caller. If not, the
    /// task may sleep deeper in the stack for another reason.
    pub(super) direct: bool,
}

impl Resource {
    /// The function that identifies the resource.
    pub(super) fn function(&self) -> &'static str {
        self.known.0
    }
}

/// The resource that the task of an alert waits for, if its stack shows it. A function in which a runnable task lost
/// its CPU shows no resource, except the function that enforces a quota.
pub(super) fn of_alert(alert: &Alert) -> Option<Resource> {
    let is_runnable = is_runnable(alert);
    of(&alert.stack()).filter(|resource| !is_runnable || resource.function() == QUOTA)
}

/// Whether an alert shows that a quota (`cpu.max`) held its task back when it was switched out.
pub(super) fn is_held_by_quota(alert: &Alert) -> bool {
    let is_marked = alert.tracker == "runqueue" && alert.fields.number("throttled") == Some(1);
    // A deadline task is held back by another kind of limit.
    let is_deadline = alert.fields.text("policy").as_deref() == Some("deadline");
    let by_stack = of_alert(alert).filter(|resource| resource.direct);
    is_marked && !is_deadline || by_stack.is_some_and(|resource| resource.function() == QUOTA)
}

/// Whether the task of an alert did not wait, but was runnable.
pub(super) fn is_runnable(alert: &Alert) -> bool {
    let state = alert.fields.text("state");
    match alert.tracker.as_str() {
        "runqueue" => true,
        "offcpu" => state.is_some_and(|state| state.starts_with('R')),
        _ => false,
    }
}

/// The resource that the task of this stack waits for; innermost frame first.
fn of(stack: &[String]) -> Option<Resource> {
    /// The freezer is inlined into `get_signal`. If `get_signal` is not the innermost frame, it has called another
    /// function, in which the task sleeps for another reason.
    static FREEZER: (&str, &str) = ("get_signal", "the freezer: its cgroup is frozen");
    let innermost = stack.first().map(|frame| function(frame));
    let known = stack.iter().enumerate().find_map(|(at, frame)| {
        let name = function(frame);
        let of = SLEEPS.iter().find(|(of, _)| *of == name);
        of.map(|of| (at, of))
    });
    let (at, known) = match innermost {
        Some("get_signal") => (0, &FREEZER),
        _ => known?,
    };
    let is_for_callers = |frame: &String| FOR_CALLERS.contains(&self::function(frame));
    Some(Resource {
        known,
        alone: ALONE.contains(&known.0),
        direct: stack.iter().take(at).all(is_for_callers),
    })
}

/// The function name of a frame: `balance_dirty_pages` in `balance_dirty_pages.isra.0+0x12c/0x340 [module]`.
fn function(frame: &str) -> &str {
    let end = frame.find(['+', '.', ' ']).unwrap_or(frame.len());
    &frame[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(frames: &[&str]) -> Option<&'static str> {
        let stack: Vec<String> = frames.iter().map(ToString::to_string).collect();
        of(&stack).map(|resource| resource.function())
    }

    #[test]
    fn a_sleep_is_attributed_to_its_innermost_known_function() {
        let dirty = [
            "balance_dirty_pages.isra.0+0x1c/0x90",
            "ext4_buffered_write_iter+0x70/0x120",
        ];
        assert_eq!(resource(&dirty), Some("balance_dirty_pages"));
        let wbt = [
            "rq_qos_wait+0xb9/0x170",
            "wbt_wait+0x7d/0xc0",
            "blk_mq_get_tag+0x10/0x20",
        ];
        assert_eq!(resource(&wbt), Some("wbt_wait"));
        assert_eq!(
            resource(&["md_write_start+0x1/0x2 [md_mod]"]),
            Some("md_write_start")
        );
        // A sleep that the program asked for waits for no resource. A longer name that starts like a known one is
        // another function.
        assert_eq!(resource(&["hrtimer_nanosleep+0x9b/0x190"]), None);
        assert_eq!(resource(&["wbt_wait_other"]), None);
        assert_eq!(resource(&[]), None);
        // The freezer is inlined; a core dump is not a freeze.
        let frozen = [
            "get_signal+0x5a8/0x840",
            "exit_to_user_mode_loop+0x91/0x130",
        ];
        assert_eq!(resource(&frozen), Some("get_signal"));
        let dumps = ["dump_emit+0x1/0x2", "get_signal+0x5a8/0x840"];
        assert_eq!(resource(&dumps), None);
    }

    /// Functions in which a task waits for one of several reasons.
    #[test]
    fn no_reason_is_named_if_a_function_has_several() {
        for (function, reasons) in [
            (
                "blkcg_maybe_throttle_current",
                &["io.cost", "io.latency"][..],
            ),
            ("wait_barrier", &["resyncs", "read error"]),
            ("mempool_alloc_from_pool", &["mempool"]),
        ] {
            let (_, what) = of(&[function.to_string()]).unwrap().known;
            let has = |reason: &&str| what.contains(*reason);
            assert!(reasons.iter().all(has), "{what}");
        }
    }

    #[test]
    fn each_function_is_in_the_table_once() {
        let mut names: Vec<_> = SLEEPS.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SLEEPS.len());
    }
}
