// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The kernel events that each analysis of `latency-tracker analyze` reads, and the buffers to record them.

use nix::unistd::{SysconfVar, sysconf};

use super::Buffers;
use super::events::{OF_INTERRUPTS, OF_LIMITS, OF_PLACES, OF_REQUESTS, OF_THREADS};

/// An analysis of a kernel trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[expect(
    missing_docs,
    reason = "the names are those of the commands, and --help would show a comment"
)]
pub enum Analysis {
    Path,
    Delays,
    Wakeups,
    Sleeps,
    Cpu,
    Irq,
    Syscalls,
    Io,
    Locks,
    Work,
    Reclaim,
    Net,
}

/// Contention for kernel locks. LTTng has no probe for it today; perf records it.
const OF_LOCKS: [&str; 2] = ["lock_contention_begin", "lock_contention_end"];
/// Reclaim of memory, and forks, which show the process of a new thread. LTTng has no probe for the start and the end
/// of a compaction.
const OF_RECLAIM: [&str; 4] = [
    "mm_vmscan_direct_reclaim_*",
    "mm_vmscan_memcg_reclaim_*",
    "mm_vmscan_kswapd_*",
    "sched_process_fork",
];
/// Steps of packets; softirqs and interrupt handlers, in which packets belong to no thread; and forks, which show the
/// process of a new thread. LTTng does not record packets that functions without a tracepoint free.
const OF_PACKETS: [&str; 11] = [
    "net_if_rx",
    "net_if_receive_skb",
    "net_dev_queue",
    "net_dev_xmit",
    "skb_kfree",
    "skb_consume",
    "irq_softirq_entry",
    "irq_softirq_exit",
    "irq_handler_entry",
    "irq_handler_exit",
    "sched_process_fork",
];
/// System calls that wait for a user-space lock.
const OF_FUTEXES: &str = "futex,futex_wait,futex_waitv";
/// Names of the threads that existed before the trace, of disks, and of interrupt lines. LTTng writes these events
/// once, when the session starts.
const OF_NAMES: [&str; 3] = [
    "lttng_statedump_process_state",
    "lttng_statedump_block_device",
    "lttng_statedump_interrupt",
];

/// Descriptors that were open before the trace, and events that change the descriptors of a process, for the names of
/// the files that system calls work on.
const OF_FILES: [&str; 3] = [
    "lttng_statedump_file_descriptor",
    "sched_process_fork",
    "sched_process_exec",
];
/// Number of sub-buffers of each CPU.
const NUM_SUBBUF: u64 = 8;
/// Size of the smallest sub-buffer.
const LEAST: u64 = 64 << 10;
/// The buffers of all CPUs take at most the memory divided by this number, unless they have the smallest size.
const SHARE: u64 = 16;

impl Analysis {
    /// Tracepoints that the analysis reads; some are patterns.
    pub fn tracepoints(self) -> Vec<&'static str> {
        let groups: &[&[&'static str]] = match self {
            Self::Path | Self::Delays => &[
                &OF_THREADS,
                &OF_INTERRUPTS,
                &OF_REQUESTS,
                &OF_PLACES,
                &OF_LIMITS,
                &OF_FILES,
            ],
            Self::Wakeups | Self::Cpu => {
                &[&OF_THREADS, &["sched_migrate_task", "sched_process_exit"]]
            }
            Self::Sleeps => &[&OF_THREADS, &OF_INTERRUPTS, &["block_rq_complete"]],
            Self::Irq => &[&["irq_handler_*", "irq_softirq_*"]],
            Self::Syscalls => &[&OF_FILES],
            Self::Io => &[&OF_REQUESTS],
            Self::Locks => &[&OF_LOCKS],
            Self::Work => &[&["workqueue_*"]],
            Self::Reclaim => &[&OF_RECLAIM],
            Self::Net => &[&OF_PACKETS],
        };
        // `sched_switch` names the thread that was interrupted, or made the system call.
        let names = ["sched_switch"].into_iter().chain(OF_NAMES);
        let mut events: Vec<&str> = groups
            .iter()
            .flat_map(|group| group.iter().copied())
            .collect();
        events.extend(names);
        events.sort_unstable();
        events.dedup();
        events
    }

    /// System calls that the analysis reads, separated by commas.
    pub fn syscalls(self) -> Option<&'static str> {
        match self {
            Self::Path | Self::Delays | Self::Syscalls => Some("*"),
            Self::Locks => Some(OF_FUTEXES),
            Self::Wakeups | Self::Sleeps | Self::Cpu | Self::Irq => None,
            Self::Io | Self::Work | Self::Reclaim | Self::Net => None,
        }
    }

    /// Bytes of a sub-buffer. System calls are the most frequent events, followed by switches with their wakeups, by
    /// system calls for locks, and by packets, whose events contain their headers.
    fn subbuf_size(self) -> u64 {
        match self {
            Self::Path | Self::Delays | Self::Syscalls => 4 << 20,
            Self::Wakeups | Self::Sleeps | Self::Cpu | Self::Locks | Self::Net => 2 << 20,
            Self::Irq | Self::Io | Self::Work | Self::Reclaim => 1 << 20,
        }
    }
}

/// Buffers for a recording of these analyses on this machine.
pub fn buffers_for(analyses: &[Analysis]) -> Buffers {
    let value = |name| sysconf(name).ok().flatten().map(|n| n.max(1) as u64);
    let memory = value(SysconfVar::_PHYS_PAGES).zip(value(SysconfVar::PAGE_SIZE));
    let memory = memory.map_or(u64::MAX, |(pages, size)| pages.saturating_mul(size));
    let cpus = value(SysconfVar::_NPROCESSORS_ONLN).unwrap_or(1);
    buffers_within(memory / SHARE / cpus, analyses)
}

/// Buffers for these analyses that take at most `room` bytes for each CPU, unless they have the smallest size.
fn buffers_within(room: u64, analyses: &[Analysis]) -> Buffers {
    let sizes = analyses.iter().map(|analysis| analysis.subbuf_size());
    let mut subbuf_size = sizes.max().unwrap_or(LEAST);
    while subbuf_size > LEAST && subbuf_size * NUM_SUBBUF > room {
        subbuf_size /= 2;
    }
    Buffers {
        subbuf_size,
        num_subbuf: NUM_SUBBUF,
    }
}

/// Tracepoints and system calls that these analyses read together, each once.
pub fn events_for(analyses: &[Analysis]) -> (Vec<String>, Option<String>) {
    let mut events: Vec<&str> = analyses
        .iter()
        .flat_map(|analysis| analysis.tracepoints())
        .collect();
    events.sort_unstable();
    events.dedup();
    let mut calls: Vec<&str> = analyses
        .iter()
        .filter_map(|analysis| analysis.syscalls())
        .flat_map(|calls| calls.split(','))
        .collect();
    calls.sort_unstable();
    calls.dedup();
    let calls = match calls.as_slice() {
        [] => None,
        all if all.contains(&"*") => Some("*".to_string()),
        some => Some(some.join(",")),
    };
    (events.into_iter().map(String::from).collect(), calls)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn an_event_of_several_analyses_is_recorded_once() {
        for one in Analysis::value_variants() {
            let (events, _) = events_for(&[*one]);
            assert!(events.contains(&"sched_switch".to_string()), "{one:?}");
        }
        let (events, calls) = events_for(&[Analysis::Irq, Analysis::Locks]);
        assert_eq!(
            events.iter().filter(|e| *e == "sched_switch").count(),
            1,
            "{events:?}"
        );
        assert!(events.contains(&"irq_handler_*".to_string()));
        assert_eq!(calls.as_deref(), Some("futex,futex_wait,futex_waitv"));
        let (_, calls) = events_for(&[Analysis::Locks, Analysis::Syscalls]);
        assert_eq!(
            calls.as_deref(),
            Some("*"),
            "the pattern has the others in it"
        );
        assert_eq!(events_for(&[Analysis::Io]).1, None);
    }

    #[test]
    fn buffers_are_as_large_as_the_most_frequent_events_need_and_the_memory_allows() {
        let size = |analyses: &[Analysis], room: u64| buffers_within(room, analyses).subbuf_size;
        assert_eq!(size(&[Analysis::Io], 1 << 30), 1 << 20);
        assert_eq!(size(&[Analysis::Io, Analysis::Syscalls], 1 << 30), 4 << 20);
        assert_eq!(size(&[Analysis::Delays], 32 << 20), 4 << 20);
        assert_eq!(size(&[Analysis::Delays], (32 << 20) - 1), 2 << 20);
        for one in Analysis::value_variants() {
            assert_eq!(size(&[*one], 0), LEAST, "{one:?}");
            let here = buffers_for(&[*one]).subbuf_size;
            assert!(here.is_power_of_two() && here >= LEAST, "{one:?}");
        }
    }
}
