// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Events for tables: the events of the model, and details that only tables need.

use crate::context::Disk;
use crate::event::What;
use crate::files::FileEvent;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen<'a> {
    /// Time in ns, of any one clock.
    pub time: u64,
    /// The CPU where it happened.
    pub cpu: u32,
    /// The current thread, if the event names it.
    pub tid: Option<i32>,
    /// A thread and its process, if the event names both: for a fork the new thread, for other events an existing
    /// thread. Needed for [`By::Process`](super::By::Process) and [`Tables::process`](super::Tables::process) only.
    pub process: Option<(i32, i32)>,
    /// What the event shows about files. Needed for [`Case::file`](super::Case::file) only, and only if the events
    /// include every system call.
    pub file: Option<FileEvent<'a>>,
    /// The event's kind and fields.
    pub step: Step<'a>,
}

/// A kind of event, with its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// An event that shows only which files system calls work on.
    File,
    /// An event of the model. Tables ignore [`What::Return`] and the stages of requests, which have steps of their own.
    Known(What<'a>),
    /// `sched_wakeup_new`: a new thread is put on a runqueue for the first time.
    New {
        /// The thread.
        tid: i32,
        /// Its name.
        name: &'a [u8],
        /// The CPU on which it will run.
        target: u32,
    },
    /// A system call ends.
    Return {
        /// The name of the call, if the event has it.
        call: Option<&'a [u8]>,
        /// The return value, if recorded.
        result: Option<i64>,
    },
    /// A step of a disk request.
    Block(Block),
    /// `contention_begin`: the current thread, or an interrupt on top of it, begins to wait for a lock.
    Contended {
        /// The address of the lock.
        lock: u64,
        /// `LCB_F_*`.
        flags: u32,
    },
    /// `contention_end`: the wait ends.
    Acquired {
        /// The address of the lock.
        lock: u64,
    },
    /// A step of a work item.
    Work(Work<'a>),
    /// The current thread begins to reclaim or compact memory.
    Reclaims(Reclaim),
    /// The current thread ends its reclaim or compaction.
    Reclaimed(Reclaim),
    /// A step of a packet.
    Packet(Packet<'a>),
}

/// The operation of a disk request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Makes the disk write out its cache.
    Flush,
    /// Marks blocks as unused.
    Discard,
    /// Anything else.
    Other,
}

/// A step of a disk request, which is identified by its disk, position and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The step.
    pub stage: BlockStage,
    /// The disk.
    pub disk: Disk,
    /// First sector.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u64,
    /// The operation.
    pub operation: Operation,
    /// Whether it ended with an error.
    pub failed: bool,
}

/// Stage of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockStage {
    /// `block_rq_insert`
    Inserted,
    /// `block_rq_issue`
    Issued,
    /// `block_rq_requeue`: the driver gives the request back.
    Requeued,
    /// `block_rq_merge`: the request becomes a part of another one.
    Merged,
    /// `block_rq_complete`: the request, or a part of it, is completed.
    Completed,
}

/// A step of a work item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work<'a> {
    /// The step.
    pub stage: WorkStage,
    /// The address of the item.
    pub work: u64,
    /// The address of its function, if recorded.
    pub function: Option<u64>,
    /// The name of its workqueue, if recorded.
    pub workqueue: Option<&'a [u8]>,
}

/// Stage of a work item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkStage {
    /// `workqueue_queue_work`
    Queued,
    /// `workqueue_execute_start`
    Started,
    /// `workqueue_execute_end`
    Ended,
}

/// A kind of reclaim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reclaim {
    /// By a thread whose allocation finds no free memory: `mm_vmscan_direct_reclaim_begin` and `_end`.
    Direct,
    /// By a thread in a memory cgroup at its limit: `mm_vmscan_memcg_reclaim_begin` and `_end`.
    Memcg,
    /// Compaction of a zone, by any thread: `mm_compaction_begin` and `_end`.
    Compaction,
    /// In the background, by kswapd: `mm_vmscan_kswapd_wake`, which may be repeated, and `mm_vmscan_kswapd_sleep`.
    Kswapd,
}

/// A step of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The step.
    pub stage: PacketStage,
    /// The address of the packet's `sk_buff`.
    pub skb: u64,
    /// The name of the network device; empty if the event does not have it.
    pub device: &'a [u8],
    /// Bytes of the packet; 0 if the event does not have them.
    pub len: u64,
    /// What the driver returned; 0 for all stages except [`PacketStage::Sent`].
    pub result: i64,
}

/// Stage of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketStage {
    /// `netif_rx`: the packet is put into the backlog of a CPU.
    Backlog,
    /// `netif_receive_skb`: the network layer receives the packet.
    Received,
    /// `napi_gro_receive_entry`: GRO gets the packet, and may merge it into another one without a further event.
    Gro,
    /// `skb_copy_datagram_iovec`: data of the packet is copied to user space.
    Copied,
    /// `consume_skb`: the packet is freed after it has served its purpose.
    Consumed,
    /// `kfree_skb`: the packet is dropped.
    Dropped,
    /// `__kfree_skb` or `skb_attempt_defer_free`: functions that free a packet without a tracepoint.
    Freed,
    /// `kfree_skb_partial`: the packet became a part of another one.
    Merged,
    /// `net_dev_queue`: the packet is about to be put into the queue of a device.
    Queued,
    /// `net_dev_start_xmit`: the packet is passed to the driver.
    Started,
    /// `net_dev_xmit`: the driver's function has returned.
    Sent,
}

/// The end of a received packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PacketEnd {
    /// Data of the packet was copied to user space.
    Copied,
    /// The packet was freed after it had served its purpose.
    Consumed,
    /// The packet was dropped.
    Dropped,
}
