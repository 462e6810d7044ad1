// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The analyses, and the events that they need.

use anyhow::{Result, bail};
use lt_model::tables::{Analysis, Kind, Recorded};

use crate::trace::Need;

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
/// The interrupt that a CPU sends to itself; a trace that has it has all interrupts that come from no device.
const IRQ_WORK: Need = Need::Event(&["x86_irq_vectors_irq_work_entry", "irq_work_entry"]);
/// On other architectures, interrupts that come from no device have handlers.
const HAS_VECTORS: bool = cfg!(target_arch = "x86_64");
const INSERT: Need = Need::Event(&["block_rq_insert"]);
const ISSUE: Need = Need::Event(&["block_rq_issue"]);
const COMPLETE: Need = Need::Event(&["block_rq_complete"]);
const CONTENDED: Need = Need::Event(&["contention_begin", "lock_contention_begin"]);
const ACQUIRED: Need = Need::Event(&["contention_end", "lock_contention_end"]);
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
        }
    }

    /// All events that the analysis uses if the trace has them.
    pub(super) fn needs(self) -> &'static [Need] {
        match self {
            Self::Wakeups => &[SWITCH, WAKING, WAKEUP],
            Self::Sleeps => &[SWITCH, WAKING, WAKEUP, HANDLER, SOFTIRQ, TIMER],
            Self::Cpu => &[SWITCH],
            Self::Irq => &[HANDLER, HANDLED, SOFTIRQ, SOFTIRQ_END, RAISE],
            Self::Syscalls => &[SWITCH, Need::Calls, Need::Returns],
            Self::Io => &[INSERT, ISSUE, COMPLETE],
            Self::Locks => &[SWITCH, Need::Futex, Need::Returns, CONTENDED, ACQUIRED],
            Self::Work => &[SWITCH, QUEUED, STARTED, ENDED],
            Self::Reclaim => &[SWITCH, DIRECT, MEMCG, COMPACTION, KSWAPD],
        }
    }

    /// The tables for which a trace with these events lacks at least one of the two events that they need.
    pub(super) fn without(self, has: &dyn Fn(Need) -> bool) -> Vec<Kind> {
        let pairs: &[(Kind, [Need; 2])] = match self {
            Self::Irq => &[
                (Kind::Handler, [HANDLER, HANDLED]),
                (Kind::Softirq, [SOFTIRQ, SOFTIRQ_END]),
                (Kind::Raise, [RAISE, SOFTIRQ]),
            ],
            Self::Io => &[(Kind::Queue, [INSERT, ISSUE])],
            Self::Locks => &[
                (Kind::Contention, [CONTENDED, ACQUIRED]),
                (Kind::Futex, [Need::Futex, Need::Returns]),
            ],
            Self::Work => &[
                (Kind::Queued, [QUEUED, STARTED]),
                (Kind::Work, [STARTED, ENDED]),
            ],
            _ => &[],
        };
        let lacks = pairs
            .iter()
            .filter(|(_, needs)| !needs.iter().all(|need| has(*need)));
        lacks.map(|(kind, _)| *kind).collect()
    }

    /// The analysis of a trace that has these events, and, except for `locks`, a hint about each table for which the
    /// trace lacks events.
    ///
    /// # Errors
    /// Names the events that are missing, and how to record them.
    pub(super) fn analysis(
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
                let wakings = has(WAKING);
                if self == Self::Wakeups {
                    return Ok((Analysis::Wakeups { wakings }, hints));
                }
                let always = |needs: &[Need]| needs.iter().all(|need| has(need.always()));
                let vectors = always(&[IRQ_WORK]);
                let recorded = Recorded {
                    wakings,
                    handlers: always(&[HANDLER, HANDLED]),
                    softirqs: always(&[SOFTIRQ, SOFTIRQ_END]),
                    timers: always(&[TIMER, TIMER_END]),
                    ipis: vectors || !HAS_VECTORS,
                    wheel: always(&[WHEEL]),
                    calls: has(Need::AllCalls),
                    vectors,
                };
                if !recorded.has_interrupts() {
                    hints.push(match HAS_VECTORS {
                        true => {
                            "irq_handler_*, irq_softirq_*, timer_hrtimer_expire_* and x86_irq_vectors_* are not all in \
                             this trace: a waker is the named thread, or an interrupt of it; record with -e 'irq_*' -e \
                             'timer_hrtimer_expire_*' -e 'x86_irq_vectors_*'"
                        }
                        false => {
                            "irq_handler_*, irq_softirq_* and timer_hrtimer_expire_* are not all in this trace: a waker \
                             is the named thread, or an interrupt of it; record with -e 'irq_*' -e \
                             'timer_hrtimer_expire_*'"
                        }
                    });
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
                        "no events irq_handler_entry and irq_handler_exit, irq_softirq_entry and irq_softirq_exit; \
                         record with -e 'irq_handler_*' -e 'irq_softirq_*'"
                    ),
                    (false, true) => hints.push(
                        "no events irq_handler_entry and irq_handler_exit: no interrupt handlers; record with -e \
                         'irq_handler_*'",
                    ),
                    (true, false) => hints.push(
                        "no events irq_softirq_entry and irq_softirq_exit: no softirqs; record with -e 'irq_softirq_*'",
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
                    "no events block_rq_issue and block_rq_complete; record with -e 'block_rq_*'",
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
                        "no events contention_begin and contention_end, and no calls of futex; record with perf record \
                         -e 'lock:contention_*', or with latency-tracker record --events-for locks"
                    ),
                    (false, true) => hints.push(
                        "no events contention_begin and contention_end: no contended locks; record with perf record -e \
                         'lock:contention_*'",
                    ),
                    (true, false) => hints.push(
                        "no calls of futex: no locks in user space; record with latency-tracker record --events-for \
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
                        "no events workqueue_execute_start, and workqueue_queue_work or workqueue_execute_end; record with \
                         -e 'workqueue_*'"
                    ),
                    (false, true) => hints.push(
                        "no event workqueue_queue_work: how long work items waited is not recorded; record with -e \
                         workqueue_queue_work",
                    ),
                    (true, false) => hints.push(
                        "no event workqueue_execute_end: how long work items ran is not recorded; record with -e \
                         workqueue_execute_end",
                    ),
                    (true, true) => {}
                }
                thread()?;
                Analysis::Work
            }
            Self::Reclaim => {
                let kinds = [
                    (
                        [DIRECT, DIRECT_END],
                        "no events mm_vmscan_direct_reclaim_begin and _end: no direct reclaim; record with -e \
                         'mm_vmscan_direct_reclaim_*'",
                    ),
                    (
                        [MEMCG, MEMCG_END],
                        "no events mm_vmscan_memcg_reclaim_begin and _end: no reclaim of memory cgroups; record with -e \
                         'mm_vmscan_memcg_reclaim_*'",
                    ),
                    (
                        [KSWAPD, KSWAPD_END],
                        "no events mm_vmscan_kswapd_wake and _sleep: no kswapd; record with -e 'mm_vmscan_kswapd_*'",
                    ),
                    (
                        [COMPACTION, COMPACTION_END],
                        "no events mm_compaction_begin and _end, which LTTng does not have: no compaction; record with \
                         perf record -e compaction:mm_compaction_begin -e compaction:mm_compaction_end",
                    ),
                ];
                let lacks = kinds
                    .iter()
                    .filter(|(needs, _)| !needs.iter().all(|need| has(*need)));
                hints.extend(lacks.map(|(_, hint)| *hint));
                if hints.len() == kinds.len() {
                    bail!(
                        "no events of reclaim or compaction; record with -e 'mm_vmscan_*reclaim_*' -e \
                         'mm_vmscan_kswapd_*'"
                    );
                }
                thread()?;
                Analysis::Reclaim
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
        let locks = [CONTENDED, ACQUIRED, Need::Thread];
        assert_eq!(error(Subject::Locks, &locks), None);
        let text = error(Subject::Locks, &[SWITCH]).unwrap();
        assert!(text.contains("perf record -e") && text.ends_with("--events-for locks"));
    }

    #[test]
    fn a_thread_is_the_waker_only_if_interrupts_are_recorded() {
        let mut irqs = vec![HANDLER, HANDLED, SOFTIRQ, SOFTIRQ_END, TIMER, TIMER_END];
        irqs.extend(HAS_VECTORS.then_some(IRQ_WORK));
        for lacks in std::iter::once(None).chain(irqs.iter().copied().map(Some)) {
            let has = |need: Need| {
                let is = |of: &Need| of.always() == need;
                let is_left = irqs.iter().any(is) && !lacks.as_ref().is_some_and(is);
                is_left || [SWITCH, WAKING].contains(&need)
            };
            let (analysis, hints) = Subject::Sleeps.analysis(&has).unwrap();
            let Analysis::Sleeps(recorded) = analysis else {
                panic!("{analysis:?}")
            };
            assert_eq!(recorded.has_interrupts(), lacks.is_none(), "{lacks:?}");
            assert_eq!(hints.is_empty(), lacks.is_none(), "{hints:?}");
            assert!(recorded.wakings && !recorded.calls);
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
        for (there, hint, kind) in [
            ([CONTENDED, ACQUIRED], "no calls of futex: ", Kind::Futex),
            (
                [Need::Futex, Need::Returns],
                "no events contention_begin and contention_end: ",
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
