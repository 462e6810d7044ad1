// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The kernel events that each analysis of `latency-tracker analyze` reads, and the buffers to record them.
//!
//! The events that an analysis of tables needs are in one list, [`Subject`], from which both `analyze` and `record` take
//! them. This file lists events that only add to the result of such an analysis, and the events of `path` and `delays`.

use lt_common::lttng::Buffers;
use lt_common::lttng::events::{
    OF_INTERRUPTS, OF_LIMITS, OF_PLACES, OF_REQUESTS, OF_THREADS, matches,
};
use nix::unistd::{SysconfVar, sysconf};

use crate::analyze::Subject;

/// An analysis of a kernel trace. The variants have no comments of their own, which `--help` would show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Analysis {
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

/// Shows the process of a new thread.
const OF_FORKS: [&str; 1] = ["sched_process_fork"];
/// Handlers of interrupts, which may send packets that belong to no thread.
const OF_HANDLERS: [&str; 1] = ["irq_handler_*"];
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
    /// The tables of this analysis, if it prints tables.
    fn subject(self) -> Option<Subject> {
        Some(match self {
            Self::Path | Self::Delays => return None,
            Self::Wakeups => Subject::Wakeups,
            Self::Sleeps => Subject::Sleeps,
            Self::Cpu => Subject::Cpu,
            Self::Irq => Subject::Irq,
            Self::Syscalls => Subject::Syscalls,
            Self::Io => Subject::Io,
            Self::Locks => Subject::Locks,
            Self::Work => Subject::Work,
            Self::Reclaim => Subject::Reclaim,
            Self::Net => Subject::Net,
        })
    }

    /// Tracepoints that the analysis reads; some are patterns.
    fn tracepoints(self) -> Vec<&'static str> {
        let more: &[&[&'static str]] = match self {
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
            Self::Syscalls => &[&OF_FILES],
            Self::Io => &[&OF_REQUESTS],
            Self::Work => &[&OF_INTERRUPTS, &OF_FORKS],
            Self::Reclaim => &[&OF_FORKS],
            Self::Net => &[&OF_HANDLERS, &OF_FORKS],
            Self::Irq | Self::Locks => &[],
        };
        let needs = self.subject().into_iter().flat_map(Subject::tracepoints);
        let more = more.iter().flat_map(|group| group.iter().copied());
        // `sched_switch` names the thread that was interrupted, or made the system call.
        let names = ["sched_switch"].into_iter().chain(OF_NAMES);
        needs.chain(more).chain(names).collect()
    }

    /// System calls that the analysis reads; `*` stands for all.
    fn syscalls(self) -> &'static [&'static str] {
        self.subject().map_or(&["*"], Subject::syscalls)
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
pub(super) fn buffers_for(analyses: &[Analysis]) -> Buffers {
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
pub(super) fn events_for(analyses: &[Analysis]) -> (Vec<String>, Option<String>) {
    let each = analyses.iter();
    let mut events: Vec<&str> = each.flat_map(|analysis| analysis.tracepoints()).collect();
    events.sort_unstable();
    events.dedup();
    let mut patterns = events.clone();
    patterns.retain(|event| event.contains('*'));
    // An event that matches a pattern is already included.
    let is_in = |event: &str, pattern: &str| event != pattern && matches(pattern, event);
    events.retain(|event| !patterns.iter().any(|pattern| is_in(event, pattern)));
    let calls = analyses.iter().flat_map(|analysis| analysis.syscalls());
    let mut calls: Vec<&str> = calls.copied().collect();
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
    use crate::trace::Need;

    #[test]
    fn a_recording_has_what_its_analysis_needs() {
        for one in Analysis::value_variants() {
            let Some(subject) = one.subject() else {
                continue;
            };
            let (events, calls) = events_for(&[*one]);
            let is_recorded = |name: &&str| events.iter().any(|event| matches(event, name));
            let has = |need: Need| match need {
                Need::Event(names) | Need::Always(names) => names.iter().any(is_recorded),
                Need::Calls | Need::AllCalls | Need::Files => calls.as_deref() == Some("*"),
                Need::Futex | Need::Returns => calls.is_some(),
                Need::Frees(_) | Need::Thread | Need::NoVectors => false,
            };
            let (_, hints) = subject.analysis(&has).unwrap();
            // LTTng has no events of compaction, nor of all ends of received packets.
            let expected = usize::from(matches!(one, Analysis::Reclaim | Analysis::Net));
            assert_eq!(hints.len(), expected, "{one:?}: {hints:?}");
        }
    }

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
        assert!(events.contains(&"irq_handler_entry".to_string()));
        // The pattern of another analysis includes the event.
        let (events, _) = events_for(&[Analysis::Irq, Analysis::Sleeps]);
        let handlers = events.iter().filter(|e| e.starts_with("irq_handler_"));
        assert_eq!(handlers.collect::<Vec<_>>(), ["irq_handler_*"]);
        assert_eq!(calls.as_deref(), Some("futex,futex_wait,futex_waitv"));
        let (_, calls) = events_for(&[Analysis::Locks, Analysis::Syscalls]);
        assert_eq!(
            calls.as_deref(),
            Some("*"),
            "the pattern has the others in it"
        );
        assert_eq!(events_for(&[Analysis::Io]).1, None);
        // vm/record makes one recording for both.
        for [one, other] in [
            [Analysis::Path, Analysis::Delays],
            [Analysis::Wakeups, Analysis::Cpu],
        ] {
            assert_eq!(events_for(&[one]), events_for(&[other]));
        }
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
