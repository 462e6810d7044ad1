// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The analyses, and the events that they need.

use anyhow::{Result, bail};
use lt_model::tables::{Analysis, By, Kind, PacketEvents, Recorded};

use crate::trace::{FUTEXES, Need};

/// An analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
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

const SWITCH: Need = Need::Event(&["sched_switch"]);
const WAKING: Need = Need::Event(&["sched_waking"]);
const WAKEUP: Need = Need::Event(&["sched_wakeup"]);
const HANDLER: Need = Need::Event(&["irq_handler_entry"]);
const HANDLED: Need = Need::Event(&["irq_handler_exit"]);
const SOFTIRQ: Need = Need::Event(&["irq_softirq_entry", "softirq_entry"]);
const SOFTIRQ_END: Need = Need::Event(&["irq_softirq_exit", "softirq_exit"]);
const RAISE: Need = Need::Event(&["irq_softirq_raise", "softirq_raise"]);
const TIMER: Need = Need::Event(&[
    "timer_hrtimer_expire_entry",
    "hrtimer_expire_entry",
    "x86_irq_vectors_local_timer_entry",
    "local_timer_entry",
]);
const TIMER_END: Need = Need::Event(&[
    "timer_hrtimer_expire_exit",
    "hrtimer_expire_exit",
    "x86_irq_vectors_local_timer_exit",
    "local_timer_exit",
]);
const WHEEL: Need = Need::Event(&["timer_expire_entry"]);
/// The interrupt that a CPU sends to itself. A trace that has it is assumed to have all interrupts that come from no
/// device.
const IRQ_WORK: Need = Need::Event(&["x86_irq_vectors_irq_work_entry", "irq_work_entry"]);
const INSERT: Need = Need::Event(&["block_rq_insert"]);
const ISSUE: Need = Need::Event(&["block_rq_issue"]);
/// Shows which threads share descriptors.
const FORK: Need = Need::Event(&["sched_process_fork"]);
const COMPLETE: Need = Need::Event(&["block_rq_complete"]);
const CONTENDED: Need = Need::Event(&["lock_contention_begin", "contention_begin"]);
const ACQUIRED: Need = Need::Event(&["lock_contention_end", "contention_end"]);
const QUEUED: Need = Need::Event(&["workqueue_queue_work"]);
const STARTED: Need = Need::Event(&["workqueue_execute_start"]);
const ENDED: Need = Need::Event(&["workqueue_execute_end"]);
const DIRECT: Need = Need::Event(&["mm_vmscan_direct_reclaim_begin"]);
const DIRECT_END: Need = Need::Event(&["mm_vmscan_direct_reclaim_end"]);
const MEMCG: Need = Need::Event(&["mm_vmscan_memcg_reclaim_begin"]);
const MEMCG_END: Need = Need::Event(&["mm_vmscan_memcg_reclaim_end"]);
const COMPACTION: Need = Need::Event(&["mm_compaction_begin"]);
const COMPACTION_END: Need = Need::Event(&["mm_compaction_end"]);
const KSWAPD: Need = Need::Event(&["mm_vmscan_kswapd_wake"]);
const KSWAPD_END: Need = Need::Event(&["mm_vmscan_kswapd_sleep"]);
const BACKLOG: Need = Need::Event(&["net_if_rx", "netif_rx"]);
const RECEIVED: Need = Need::Event(&["net_if_receive_skb", "netif_receive_skb"]);
const GRO: Need = Need::Event(&["net_napi_gro_receive_entry", "napi_gro_receive_entry"]);
const COPIED: Need = Need::Event(&["skb_copy_datagram_iovec"]);
const CONSUMED: Need = Need::Event(&["skb_consume", "consume_skb"]);
const DROPPED: Need = Need::Event(&["skb_kfree", "kfree_skb"]);
const TO_SEND: Need = Need::Event(&["net_dev_queue"]);
const TO_DRIVER: Need = Need::Event(&["net_dev_start_xmit"]);
const SENT: Need = Need::Event(&["net_dev_xmit"]);
/// The events of each table of packets.
const OF_BACKLOG: &[Need] = &[BACKLOG, RECEIVED, DROPPED];
const OF_RECEIVED: &[Need] = &[
    RECEIVED,
    GRO,
    COPIED,
    CONSUMED,
    DROPPED,
    Need::Frees("__kfree_skb"),
    Need::Frees("skb_attempt_defer_free"),
    Need::Frees("kfree_skb_partial"),
];
const OF_SENT: &[Need] = &[TO_SEND, SENT, CONSUMED, DROPPED];
/// Events with names that only perf writes.
const OF_PERF: Need = Need::Event(&["netif_rx", "netif_receive_skb", "net_dev_start_xmit"]);
/// perf takes less time than this to enable all events on all CPUs, ns.
const SETTLE: u64 = 1_000_000_000;

/// The hint that not all interrupts are recorded.
macro_rules! without_interrupts {
    ($has:expr, $who:literal) => {
        match $has(Need::NoVectors) {
            true => concat!(
                "irq_handler_*, irq_softirq_* and timer_hrtimer_expire_* are not all in this trace: ",
                $who,
                " is the named thread, or an interrupt of it; record with -e 'irq_*' -e 'timer_hrtimer_expire_*'"
            ),
            false => concat!(
                "irq_handler_*, irq_softirq_*, timer_hrtimer_expire_* and x86_irq_vectors_* are not all in this trace, nor \
                 is it known to be of arm64: ",
                $who,
                " is the named thread, or an interrupt of it; record with -e 'irq_*' -e 'timer_hrtimer_expire_*' and, on \
                 x86, -e 'x86_irq_vectors_*'"
            ),
        }
    };
}

/// The recorded events that show what woke a thread, or queued a work item; `sched_waking` shows only the former.
fn recorded(has: &dyn Fn(Need) -> bool, wakings: bool) -> Recorded {
    let always = |needs: &[Need]| needs.iter().all(|need| has(need.always()));
    let vectors = always(&[IRQ_WORK]);
    Recorded {
        wakings,
        handlers: always(&[HANDLER, HANDLED]),
        softirqs: always(&[SOFTIRQ, SOFTIRQ_END]),
        timers: always(&[TIMER, TIMER_END]),
        ipis: vectors || has(Need::NoVectors),
        wheel: always(&[WHEEL]),
        calls: has(Need::AllCalls),
        vectors,
    }
}

impl Subject {
    /// The name of the subcommand.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Wakeups => "wakeups",
            Self::Sleeps => "sleeps",
            Self::Cpu => "cpu",
            Self::Irq => "irq",
            Self::Syscalls => "syscalls",
            Self::Io => "io",
            Self::Locks => "locks",
            Self::Work => "work",
            Self::Reclaim => "reclaim",
            Self::Net => "net",
        }
    }

    /// Events whose streams the analysis needs for this grouping. A CPU counts as recorded only while all of these
    /// events are recorded there, apart from events that the whole trace lacks. `record` records these events, so all
    /// events that [`Self::analysis`] asks for are here, unless LTTng does not have them, or lacks others without which
    /// they show nothing.
    pub(super) fn needs(self, by: By) -> &'static [Need] {
        match self {
            Self::Wakeups => &[SWITCH, WAKING, WAKEUP],
            Self::Sleeps if by == By::Call => &[
                SWITCH,
                WAKING,
                WAKEUP,
                HANDLER,
                HANDLED,
                SOFTIRQ,
                SOFTIRQ_END,
                TIMER,
                TIMER_END,
                IRQ_WORK,
                Need::Calls,
                Need::Returns,
            ],
            Self::Sleeps => &[
                SWITCH,
                WAKING,
                WAKEUP,
                HANDLER,
                HANDLED,
                SOFTIRQ,
                SOFTIRQ_END,
                TIMER,
                TIMER_END,
                IRQ_WORK,
            ],
            Self::Cpu => &[SWITCH],
            Self::Irq => &[HANDLER, HANDLED, SOFTIRQ, SOFTIRQ_END, RAISE],
            Self::Syscalls => &[SWITCH, Need::Calls, Need::Returns, FORK],
            Self::Io => &[INSERT, ISSUE, COMPLETE],
            Self::Locks => &[SWITCH, Need::Futex, Need::Returns, CONTENDED, ACQUIRED],
            Self::Work => &[
                SWITCH,
                QUEUED,
                STARTED,
                ENDED,
                HANDLER,
                HANDLED,
                SOFTIRQ,
                SOFTIRQ_END,
                TIMER,
                TIMER_END,
                IRQ_WORK,
            ],
            Self::Reclaim => &[
                SWITCH,
                DIRECT,
                DIRECT_END,
                MEMCG,
                MEMCG_END,
                KSWAPD,
                KSWAPD_END,
                COMPACTION,
                COMPACTION_END,
            ],
            Self::Net => &[
                SWITCH,
                SOFTIRQ,
                SOFTIRQ_END,
                BACKLOG,
                RECEIVED,
                CONSUMED,
                DROPPED,
                TO_SEND,
                SENT,
            ],
        }
    }

    /// The tracepoints of LTTng that the analysis needs. LTTng has none for compaction.
    pub(crate) fn tracepoints(self) -> impl Iterator<Item = &'static str> {
        let needs = self.needs(By::Object).iter();
        let needs = needs.filter(|need| ![COMPACTION, COMPACTION_END].contains(need));
        needs.filter_map(|need| need.in_lttng())
    }

    /// The system calls that the analysis needs; `*` stands for all.
    pub(crate) fn syscalls(self) -> &'static [&'static str] {
        let has = |need| self.needs(By::Object).contains(&need);
        match (has(Need::Calls), has(Need::Futex)) {
            (true, _) => &["*"],
            (false, true) => &FUTEXES,
            (false, false) => &[],
        }
    }

    /// The tables that cannot be made, because the trace lacks at least one event that they need.
    pub(super) fn without(self, has: &dyn Fn(Need) -> bool) -> Vec<Kind> {
        let tables: &[(Kind, &[Need])] = match self {
            Self::Irq => &[
                (Kind::Handler, &[HANDLER, HANDLED]),
                (Kind::Softirq, &[SOFTIRQ, SOFTIRQ_END]),
                (Kind::Raise, &[RAISE, SOFTIRQ]),
            ],
            Self::Io => &[(Kind::Queue, &[INSERT, ISSUE])],
            Self::Locks => &[
                (Kind::Contention, &[CONTENDED, ACQUIRED]),
                (Kind::Futex, &[Need::Futex, Need::Returns]),
            ],
            Self::Work => &[
                (Kind::Queued, &[QUEUED, STARTED]),
                (Kind::Work, &[STARTED, ENDED]),
            ],
            Self::Net => &[
                (Kind::Backlog, OF_BACKLOG),
                (Kind::Receive, OF_RECEIVED),
                (Kind::Transmit, OF_SENT),
            ],
            _ => &[],
        };
        let lacks = tables
            .iter()
            .filter(|(_, needs)| !needs.iter().all(|need| has(*need)));
        lacks.map(|(kind, _)| *kind).collect()
    }

    /// The analysis of a trace that has these events, and hints about what it does not show because other events are
    /// missing.
    ///
    /// # Errors
    /// Names the events that are missing, and how to record them.
    pub(crate) fn analysis(
        self,
        has: &dyn Fn(Need) -> bool,
    ) -> Result<(Analysis, Vec<&'static str>)> {
        let wants = |needs: &[Need], text: &str| match needs.iter().all(|need| has(*need)) {
            true => Ok(()),
            false => bail!("{text}"),
        };
        let thread = || match has(SWITCH) || has(Need::Thread) {
            true => Ok(()),
            false => bail!(
                "no event sched_switch: which thread ran is not recorded; record with -e sched_switch"
            ),
        };
        let mut hints = Vec::new();
        let analysis = match self {
            Self::Wakeups | Self::Sleeps => {
                wants(
                    &[SWITCH],
                    "no event sched_switch; record with -e sched_switch",
                )?;
                if !has(WAKEUP) {
                    wants(
                        &[WAKING],
                        "no event sched_waking; record with -e sched_waking",
                    )?;
                }
                if self == Self::Wakeups {
                    let wakings = has(WAKING);
                    return Ok((Analysis::Wakeups { wakings }, hints));
                }
                let recorded = recorded(has, has(WAKING));
                if !recorded.has_interrupts() {
                    hints.push(without_interrupts!(has, "a waker"));
                }
                Analysis::Sleeps(recorded)
            }
            Self::Cpu => {
                wants(
                    &[SWITCH],
                    "no event sched_switch; record with -e sched_switch",
                )?;
                Analysis::Cpu
            }
            Self::Irq => {
                let handlers = has(HANDLER) && has(HANDLED);
                let softirqs = has(SOFTIRQ) && has(SOFTIRQ_END);
                match (handlers, softirqs) {
                    (false, false) => bail!(
                        "irq_handler_entry and irq_handler_exit are not both in this trace, nor are irq_softirq_entry and \
                         irq_softirq_exit; record with -e 'irq_handler_*' -e 'irq_softirq_*'"
                    ),
                    (false, true) => hints.push(
                        "irq_handler_entry and irq_handler_exit are not both in this trace: no interrupt handlers; record \
                         with -e 'irq_handler_*'",
                    ),
                    (true, false) => hints.push(
                        "irq_softirq_entry and irq_softirq_exit are not both in this trace: no softirqs; record with -e \
                         'irq_softirq_*'",
                    ),
                    (true, true) => {}
                }
                if softirqs && !has(RAISE) {
                    hints.push(
                        "no event irq_softirq_raise: how long softirqs waited is not recorded; record with -e \
                         irq_softirq_raise",
                    );
                }
                Analysis::Irq
            }
            Self::Syscalls => {
                wants(
                    &[Need::Calls, Need::Returns],
                    "no system calls; record with latency-tracker record --events-for syscalls",
                )?;
                thread()?;
                Analysis::Syscalls
            }
            Self::Io => {
                wants(
                    &[ISSUE, COMPLETE],
                    "block_rq_issue and block_rq_complete are not both in this trace; record with -e 'block_rq_*'",
                )?;
                if !has(INSERT) {
                    hints.push(
                        "no event block_rq_insert: the time in the queue is not recorded; record with -e block_rq_insert",
                    );
                }
                Analysis::Io
            }
            Self::Locks => {
                let is_contended = has(CONTENDED) && has(ACQUIRED);
                let calls = has(Need::Futex) && has(Need::Returns);
                match (is_contended, calls) {
                    (false, false) => bail!(
                        "contention_begin and contention_end are not both in this trace, nor are futex calls with their \
                         returns; record with perf record -e 'lock:contention_*', or with latency-tracker record \
                         --events-for locks"
                    ),
                    (false, true) => hints.push(
                        "contention_begin and contention_end are not both in this trace: no contended locks; record with \
                         perf record -e 'lock:contention_*'",
                    ),
                    (true, false) => hints.push(
                        "no futex calls: no locks in user space; record with latency-tracker record --events-for \
                         locks",
                    ),
                    (true, true) => {}
                }
                thread()?;
                Analysis::Locks
            }
            Self::Work => {
                match (has(QUEUED) && has(STARTED), has(STARTED) && has(ENDED)) {
                    (false, false) => bail!(
                        "this trace lacks workqueue_execute_start, or both workqueue_queue_work and workqueue_execute_end; \
                         record with -e 'workqueue_*'"
                    ),
                    (false, true) => hints.push(
                        "no event workqueue_queue_work: how long work items waited, and what queued them, is not \
                         recorded; record with -e workqueue_queue_work",
                    ),
                    (true, false) => hints.push(
                        "no event workqueue_execute_end: how long work items ran is not recorded; record with -e \
                         workqueue_execute_end",
                    ),
                    (true, true) => {}
                }
                thread()?;
                let recorded = recorded(has, false);
                if has(QUEUED) && !recorded.has_interrupts() {
                    hints.push(without_interrupts!(has, "a queuer"));
                }
                let ends = has(ENDED.always());
                Analysis::Work { recorded, ends }
            }
            Self::Reclaim => {
                let kinds = [
                    (
                        [DIRECT, DIRECT_END],
                        "mm_vmscan_direct_reclaim_begin and _end are not both in this trace: no direct reclaim; record \
                         with -e 'mm_vmscan_direct_reclaim_*'",
                    ),
                    (
                        [MEMCG, MEMCG_END],
                        "mm_vmscan_memcg_reclaim_begin and _end are not both in this trace: no reclaim of memory cgroups; \
                         record with -e 'mm_vmscan_memcg_reclaim_*'",
                    ),
                    (
                        [KSWAPD, KSWAPD_END],
                        "mm_vmscan_kswapd_wake and _sleep are not both in this trace: no kswapd; record with -e \
                         'mm_vmscan_kswapd_*'",
                    ),
                    (
                        [COMPACTION, COMPACTION_END],
                        "mm_compaction_begin and _end, which LTTng does not have, are not both in this trace: no \
                         compaction; record with perf record -e compaction:mm_compaction_begin -e \
                         compaction:mm_compaction_end",
                    ),
                ];
                let lacks = kinds
                    .iter()
                    .filter(|(needs, _)| !needs.iter().all(|need| has(*need)));
                hints.extend(lacks.map(|(_, hint)| *hint));
                if hints.len() == kinds.len() {
                    bail!(
                        "no reclaim or compaction has both its start and its end in this trace; record with -e \
                         'mm_vmscan_*reclaim_*' -e 'mm_vmscan_kswapd_*'"
                    );
                }
                thread()?;
                Analysis::Reclaim
            }
            Self::Net => {
                let tables = [
                    (
                        OF_BACKLOG,
                        "net_if_rx, net_if_receive_skb and skb_kfree are not all in this trace: how long packets were in \
                         a backlog is not recorded; record with -e net_if_rx -e net_if_receive_skb -e skb_kfree",
                    ),
                    (
                        OF_RECEIVED,
                        "the events that end received packets are not all in this trace, and LTTng does not have all of \
                         them: how long packets took to reach their reader is not recorded; record with perf, as \
                         latency-tracker analyze net --help shows",
                    ),
                    (
                        OF_SENT,
                        "net_dev_queue, net_dev_xmit, skb_consume and skb_kfree are not all in this trace: how long \
                         packets took to be sent is not recorded; record with -e net_dev_queue -e net_dev_xmit -e \
                         skb_consume -e skb_kfree",
                    ),
                ];
                let lacks = tables
                    .iter()
                    .filter(|(needs, _)| !needs.iter().all(|need| has(*need)));
                hints.extend(lacks.map(|(_, hint)| *hint));
                if hints.len() == tables.len() {
                    bail!(
                        "net_if_rx, net_if_receive_skb and skb_kfree are not all in this trace, nor are net_dev_queue, \
                         net_dev_xmit, skb_consume and skb_kfree; record with latency-tracker record --events-for net"
                    );
                }
                thread()?;
                let softirqs = has(SOFTIRQ) && has(SOFTIRQ_END);
                if !softirqs {
                    hints.push(
                        "irq_softirq_entry and irq_softirq_exit are not both in this trace: the threads that sent and \
                         read packets are not recorded; record with -e 'irq_softirq_*'",
                    );
                }
                let is_of_perf = has(OF_PERF);
                if is_of_perf {
                    hints.push(
                        "perf enables one event after another: packets of the first second are not measured",
                    );
                }
                Analysis::Net(PacketEvents {
                    starts: has(TO_DRIVER),
                    frees: OF_RECEIVED.iter().all(|need| has(*need)),
                    softirqs,
                    settle: match is_of_perf {
                        true => SETTLE,
                        false => 0,
                    },
                })
            }
        };
        Ok((analysis, hints))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_the_option_that_records_it() {
        let error = |subject: Subject, there: &[Need]| {
            let has = |need: Need| there.contains(&need);
            subject.analysis(&has).err().map(|error| error.to_string())
        };
        for subject in [Subject::Wakeups, Subject::Sleeps, Subject::Cpu] {
            let text = error(subject, &[]).unwrap();
            assert_eq!(text, "no event sched_switch; record with -e sched_switch");
        }
        assert!(
            error(Subject::Wakeups, &[SWITCH])
                .unwrap()
                .contains("-e sched_waking")
        );
        assert_eq!(error(Subject::Wakeups, &[SWITCH, WAKEUP]), None);
        assert!(
            error(Subject::Irq, &[HANDLER])
                .unwrap()
                .contains("-e 'irq_handler_*'")
        );
        assert_eq!(error(Subject::Irq, &[SOFTIRQ, SOFTIRQ_END]), None);
        assert!(
            error(Subject::Syscalls, &[SWITCH])
                .unwrap()
                .ends_with("latency-tracker record --events-for syscalls")
        );
        let calls = [Need::Calls, Need::Returns];
        assert!(
            error(Subject::Syscalls, &calls)
                .unwrap()
                .contains("-e sched_switch")
        );
        assert!(
            error(Subject::Io, &[ISSUE])
                .unwrap()
                .contains("-e 'block_rq_*'")
        );
        assert!(
            error(Subject::Work, &[QUEUED, ENDED])
                .unwrap()
                .contains("-e 'workqueue_*'")
        );
        assert!(
            error(Subject::Work, &[STARTED, ENDED])
                .unwrap()
                .contains("-e sched_switch")
        );
        assert_eq!(error(Subject::Work, &[STARTED, ENDED, SWITCH]), None);
        assert!(
            error(Subject::Reclaim, &[DIRECT, MEMCG_END])
                .unwrap()
                .contains("-e 'mm_vmscan_*reclaim_*'")
        );
        let kswapd = [KSWAPD, KSWAPD_END, SWITCH];
        assert_eq!(error(Subject::Reclaim, &kswapd), None);
        assert!(
            error(Subject::Net, &[BACKLOG, RECEIVED, TO_SEND, SENT])
                .unwrap()
                .ends_with("latency-tracker record --events-for net")
        );
        assert!(
            error(Subject::Net, OF_BACKLOG)
                .unwrap()
                .contains("-e sched_switch")
        );
        let packets = [OF_SENT, &[SWITCH]].concat();
        assert_eq!(error(Subject::Net, &packets), None);
        let locks = [CONTENDED, ACQUIRED, Need::Thread];
        assert_eq!(error(Subject::Locks, &locks), None);
        let text = error(Subject::Locks, &[SWITCH]).unwrap();
        assert!(text.contains("perf record -e") && text.ends_with("--events-for locks"));
    }

    #[test]
    fn a_thread_is_the_waker_or_queuer_only_if_interrupts_are_recorded() {
        let irqs = [HANDLER, HANDLED, SOFTIRQ, SOFTIRQ_END, TIMER, TIMER_END];
        for vectors in [IRQ_WORK, Need::NoVectors] {
            let irqs: Vec<Need> = irqs.into_iter().chain([vectors]).collect();
            for lacks in std::iter::once(None).chain(irqs.iter().copied().map(Some)) {
                let has = |need: Need| {
                    let is = |of: &Need| of.always() == need;
                    let is_left = irqs.iter().any(is) && !lacks.as_ref().is_some_and(is);
                    is_left || [SWITCH, WAKING, QUEUED, STARTED, ENDED].contains(&need)
                };
                for (subject, who) in [(Subject::Sleeps, "a waker"), (Subject::Work, "a queuer")] {
                    let (analysis, hints) = subject.analysis(&has).unwrap();
                    let (Analysis::Sleeps(recorded) | Analysis::Work { recorded, .. }) = analysis
                    else {
                        panic!("{analysis:?}")
                    };
                    assert_eq!(recorded.has_interrupts(), lacks.is_none(), "{lacks:?}");
                    assert_eq!(hints.is_empty(), lacks.is_none(), "{hints:?}");
                    assert!(hints.iter().all(|hint| hint.contains(who)), "{hints:?}");
                    assert_eq!(recorded.wakings, subject == Subject::Sleeps);
                    assert!(!recorded.calls);
                }
            }
        }
        // Where the stream of these events has not started, a CPU counts as unrecorded.
        let irqs = irqs.into_iter().chain([IRQ_WORK]);
        for subject in [Subject::Sleeps, Subject::Work] {
            let needs = subject.needs(By::Thread);
            assert!(irqs.clone().all(|irq| needs.contains(&irq)), "{subject:?}");
        }
        let needs = Subject::Sleeps.needs(By::Thread);
        // Where the stream of system calls has not started, it is not known which call a thread is in.
        let by_call = Subject::Sleeps.needs(By::Call);
        assert!(needs.iter().all(|need| by_call.contains(need)));
        for call in [Need::Calls, Need::Returns] {
            assert!(by_call.contains(&call));
        }
        // Where the stream of forks has not started, files are unknown.
        assert!(Subject::Syscalls.needs(By::Object).contains(&FORK));
    }

    /// Events that LTTng lacks, that show nothing without such events, or that add nothing to the events of LTTng.
    const NOT_RECORDED: [Need; 8] = [
        COMPACTION,
        COMPACTION_END,
        GRO,
        COPIED,
        TO_DRIVER,
        OF_PERF,
        WHEEL,
        Need::Thread,
    ];

    #[test]
    fn all_events_that_an_analysis_asks_for_are_recorded_for_it() {
        for subject in [
            Subject::Wakeups,
            Subject::Sleeps,
            Subject::Cpu,
            Subject::Irq,
            Subject::Syscalls,
            Subject::Io,
            Subject::Locks,
            Subject::Work,
            Subject::Reclaim,
            Subject::Net,
        ] {
            let needs = subject.needs(By::Object);
            let names: Vec<&str> = subject.tracepoints().collect();
            for has_any in [true, false] {
                let has = |need: Need| {
                    let is_recorded = match need {
                        Need::Event(of) | Need::Always(of) => names.contains(&of[0]),
                        Need::AllCalls | Need::NoVectors | Need::Frees(_) => true,
                        need => needs.contains(&need),
                    };
                    let is_it = |of: &Need| of.always() == need.always();
                    let is_known = is_recorded || NOT_RECORDED.iter().any(is_it);
                    assert!(is_known, "{subject:?}: {need:?}");
                    has_any
                };
                assert_eq!(subject.analysis(&has).is_ok(), has_any, "{subject:?}");
                subject.without(&has);
            }
        }
    }

    #[test]
    fn packets_in_a_perf_trace_are_followed_once_all_events_are_enabled() {
        for (perf, settle) in [(false, 0), (true, SETTLE)] {
            let is_there = |need: Need| need == SWITCH || OF_SENT.contains(&need);
            let has = |need: Need| is_there(need) || need == OF_PERF && perf;
            let (analysis, hints) = Subject::Net.analysis(&has).unwrap();
            let Analysis::Net(events) = analysis else {
                panic!("{analysis:?}")
            };
            assert_eq!(events.settle, settle);
            assert_eq!(hints.iter().any(|hint| hint.contains("perf enables")), perf);
        }
    }

    #[test]
    fn a_table_that_cannot_be_made_is_named() {
        let has = |need: Need| need == SOFTIRQ || need == SOFTIRQ_END;
        let (_, hints) = Subject::Irq.analysis(&has).unwrap();
        assert_eq!(hints.len(), 2);
        assert!(
            hints[0].contains("no interrupt handlers") && hints[1].contains("irq_softirq_raise")
        );
        assert_eq!(Subject::Irq.without(&has), [Kind::Handler, Kind::Raise]);
        let has = |need: Need| [SWITCH, DIRECT, DIRECT_END].contains(&need);
        let (_, hints) = Subject::Reclaim.analysis(&has).unwrap();
        let is_of = |(hint, of): (&&str, &str)| hint.contains(of);
        let of = ["of memory cgroups", "no kswapd", "perf record"];
        assert!(
            hints.len() == 3 && hints.iter().zip(of).all(is_of),
            "{hints:?}"
        );
        let has = |need: Need| need == SWITCH || OF_BACKLOG.contains(&need);
        let (_, hints) = Subject::Net.analysis(&has).unwrap();
        let of = ["reach their reader", "to be sent", "'irq_softirq_*'"];
        assert!(
            hints.len() == 3 && hints.iter().zip(of).all(is_of),
            "{hints:?}"
        );
        let without = [Kind::Receive, Kind::Transmit];
        assert_eq!(Subject::Net.without(&has), without);
        for (there, hint, kind) in [
            ([CONTENDED, ACQUIRED], "no futex calls: ", Kind::Futex),
            (
                [Need::Futex, Need::Returns],
                "contention_begin and contention_end are not both in this trace: ",
                Kind::Contention,
            ),
        ] {
            let has = |need: Need| need == SWITCH || there.contains(&need);
            let (_, hints) = Subject::Locks.analysis(&has).unwrap();
            assert!(hints.len() == 1 && hints[0].starts_with(hint), "{hints:?}");
            assert_eq!(Subject::Locks.without(&has), [kind]);
        }
    }
}
