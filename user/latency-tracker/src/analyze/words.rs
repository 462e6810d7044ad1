// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Names of threads, causes and reasons.

use lt_common::out;
use lt_model::why::{Cause, Leaf, Limit, Place, Quota, Waited};
use lt_model::{
    Class, Disk, Events, Handler, Kind, Model, Name, Raiser, Runtime, ThreadId, Unrecorded, Use,
    Vector,
};

/// Facts from outside the trace, for describing causes.
#[derive(Debug)]
pub(crate) struct Facts {
    /// Names of the cgroups, indexed by their numbers in causes.
    pub(crate) cgroups: Vec<String>,
    /// What a verdict calls the analyzed time.
    pub(crate) whole: &'static str,
    /// Whether quotas (`cpu.max`) of the thread's cgroups were used up in the delay, by any of their threads.
    pub(crate) quota: Quota,
    /// The off-CPU interval at whose start, as the alert shows, a quota held the thread back; and the quota's cgroup.
    pub(crate) held: Option<((u64, u64), Option<u16>)>,
}

impl Facts {
    /// No facts.
    pub(crate) const NONE: Self = Self {
        cgroups: Vec::new(),
        whole: "time",
        quota: Quota::Open,
        held: None,
    };

    /// The name of a cgroup.
    pub(crate) fn cgroup(&self, number: Option<u16>) -> Option<&str> {
        let name = self.cgroups.get(usize::from(number?));
        name.map(String::as_str)
    }

    /// `cgroup /a/b`, or the candidates.
    fn of_cgroup(&self, number: Option<u16>) -> String {
        match self.cgroup(number) {
            Some(path) => format!("cgroup {}", out::printable(path)),
            None => "its cgroup or an ancestor".into(),
        }
    }

    /// An addition to a sentence that names the user of the CPU: a quota may also be part of the reason.
    pub(crate) fn quota_meanwhile(&self, quota: Quota) -> Option<String> {
        match quota {
            Quota::Shown(cgroup) => Some(format!(
                "; at first a quota held it back (cpu.max of {}), as the alert shows; until when is not recorded",
                self.of_cgroup(cgroup)
            )),
            Quota::Proved(cgroup) => Some(format!(
                "; meanwhile a quota was used up (cpu.max of {}), perhaps by another thread",
                self.of_cgroup(cgroup)
            )),
            Quota::Excluded | Quota::Open => None,
        }
    }

    /// Why a CPU was idle although the thread was runnable, if a quota was used up meanwhile.
    pub(crate) fn idle_by_quota(&self, quota: Quota) -> String {
        match quota {
            Quota::Shown(cgroup) => format!(
                "at first because of cpu.max of {}, as the alert shows",
                self.of_cgroup(cgroup)
            ),
            Quota::Proved(cgroup) => format!(
                "perhaps cpu.max of {}, whose counters have grown meanwhile",
                self.of_cgroup(cgroup)
            ),
            Quota::Excluded | Quota::Open => String::new(),
        }
    }

    /// Describes what keeps a runnable thread from running.
    pub(crate) fn limit(&self, limit: Limit) -> String {
        match limit {
            Limit::Quota(cgroup) => {
                format!("was held back by cpu.max of {}", self.of_cgroup(cgroup))
            }
            Limit::Deadline(runtime) => {
                let more = match runtime {
                    Runtime::UsedUp => "had used up its runtime (SCHED_DEADLINE)",
                    Runtime::Yielded => {
                        "had yielded the rest of its runtime (SCHED_DEADLINE, sched_yield)"
                    }
                    Runtime::Unrecorded => {
                        "had used up its runtime (SCHED_DEADLINE), or yielded the rest with sched_yield"
                    }
                };
                more.into()
            }
        }
    }

    /// Describes a cause that is not a thread.
    pub(crate) fn leaf(&self, model: &Model, leaf: Leaf) -> String {
        match leaf {
            Leaf::Freezer(cgroup) => format!("the freezer of {}", self.of_cgroup(cgroup)),
            Leaf::PerhapsHigh(cgroup) => format!(
                "a timer, perhaps because of memory.high of {}, whose counter has grown",
                self.of_cgroup(cgroup)
            ),
            other => leaf_name(model, other),
        }
    }
}

/// `fio/812`, with the thread's latest name; only the number if no name is known.
pub(crate) fn name(model: &Model, id: ThreadId) -> String {
    name_at(model, id, u64::MAX)
}

/// `fio/812`, with the thread's name at `time`; only the number if no name is known.
pub(crate) fn name_at(model: &Model, id: ThreadId, time: u64) -> String {
    let thread = model.thread(id);
    let tid = thread.map_or(0, |t| t.tid);
    match thread.and_then(|t| t.name_at(time)) {
        Some(name) => format!("{}/{tid}", out::printable(model.names.text(name))),
        None => tid.to_string(),
    }
}

/// `disk sda`, or `disk 8:0` if the name is not known.
pub(crate) fn disk_name(model: &Model, disk: Disk) -> String {
    match model.disk_name(disk) {
        Some(name) => format!("disk {}", out::printable(name)),
        None => format!("disk {disk}"),
    }
}

/// What a thread waits for, in a wait of this kind: `waits in read for b/8`, with the name of b at `time`.
pub(crate) fn waits_for(model: &Model, kind: Waited, by: Option<ThreadId>, time: u64) -> String {
    let (what, whom) = match kind {
        Waited::Blocked(None) => ("waits".to_string(), "for"),
        Waited::Blocked(Some(call)) => {
            let call = out::printable(model.names.text(call));
            (format!("waits in {call}"), "for")
        }
        Waited::Spun => ("spins for a lock".to_string(), "of"),
        Waited::Unborn => return "is not created yet".into(),
    };
    let by = by.map(|by| format!(" {whom} {}", name_at(model, by, time)));
    what + &by.unwrap_or_default()
}

/// `a timer`, `eth0 (interrupt 27)`, ...
pub(crate) fn leaf_name(model: &Model, leaf: Leaf) -> String {
    let text = |name| out::printable(model.names.text(name));
    match leaf {
        Leaf::Timer | Leaf::PerhapsHigh(_) => "a timer".into(),
        Leaf::PerhapsTimer { disk, dirty } => match (disk, dirty) {
            (true, true) => "a timer, a disk or the dirty limit",
            (true, false) => "a timer or a disk",
            (false, _) => "a timer or the dirty limit",
        }
        .into(),
        Leaf::Disk(None) => "a disk (softirq BLOCK)".into(),
        Leaf::Disk(Some(disk)) => disk_name(model, disk),
        Leaf::Special(disk, kind) => {
            let kind = match kind {
                Kind::Flush => "a flush of ",
                Kind::Discard => "a discard of ",
                Kind::Other => "a request other than a read or a write of ",
                Kind::Plain => "",
            };
            format!("{kind}{}", disk_name(model, disk))
        }
        Leaf::Others(disk, of) => {
            let disk = disk_name(model, disk);
            format!("{disk} (a request of {})", name(model, of))
        }
        Leaf::Dirty(Some(disk)) => {
            format!("the dirty limit (data for {})", disk_name(model, disk))
        }
        Leaf::Dirty(None) => "the dirty limit".into(),
        Leaf::Completion(disk) => format!("a completion of {}", disk_name(model, disk)),
        Leaf::Network(Handler(number, name)) => {
            format!("the network ({}, interrupt {number})", text(name))
        }
        Leaf::Packet(by) => packet(model, by),
        Leaf::Irq(number, name) => format!("{} (interrupt {number})", text(name)),
        Leaf::Softirq(u32::MAX, _) => "a softirq or a thread".into(),
        Leaf::Softirq(vector, Raiser::Device(Handler(number, name))) => format!(
            "softirq {} raised by {} (interrupt {number})",
            Vector(vector).name(),
            text(name)
        ),
        Leaf::Softirq(vector, by) => {
            let by = match by {
                Raiser::Timer => " raised by a timer".into(),
                Raiser::Thread => " raised by a thread".into(),
                Raiser::Ipi(name) if is_call(model, name) => " raised by another CPU".into(),
                Raiser::Ipi(name) => format!(" raised by interrupt {}", text(name)),
                Raiser::Several => " raised by several sources".into(),
                Raiser::Unrecorded | Raiser::Device(_) => String::new(),
            };
            format!("softirq {}{by}", Vector(vector).name())
        }
        Leaf::Ipi(name) if is_call(model, name) => format!("another CPU ({})", text(name)),
        Leaf::Ipi(name) => format!("interrupt {}", text(name)),
        Leaf::Unseen => "an interrupt, a fault, a signal or task work that is not recorded".into(),
        Leaf::Continue => "SIGCONT (a signal had stopped it)".into(),
        Leaf::Tracer => "its tracer (ptrace)".into(),
        Leaf::Resource(&(function, what)) => format!("{what} ({function})"),
        Leaf::Freezer(_) => "the freezer of its cgroup".into(),
    }
}

/// Describes where a request was held before it reached the disk.
pub(crate) fn held(model: &Model, disk: Disk, place: Place) -> String {
    let place = match place {
        Place::Unsubmitted => ": not submitted",
        Place::Limited => " by io.max of its cgroup",
        Place::Stacked => ": in a stacked device",
        Place::Unallocated => ": no free request",
        Place::NoTag => ": no free tag",
        Place::WritebackThrottling => " by writeback throttling (wbt_lat_usec)",
        Place::IoCost => " by io.cost of its cgroup",
        Place::IoLatency => " by io.latency of its cgroup",
        Place::Queued => ": in its queue",
        Place::Unrecorded => "",
    };
    format!("held back before {}{place}", disk_name(model, disk))
}

/// Describes a packet that did not come from a device, by the raiser of the softirq.
fn packet(model: &Model, by: Raiser) -> String {
    let by = match by {
        Raiser::Timer => " from a local timer",
        Raiser::Thread => " sent on this machine",
        Raiser::Ipi(name) if is_call(model, name) => " passed on by another CPU",
        Raiser::Ipi(name) => {
            let name = out::printable(model.names.text(name));
            return format!("a packet from interrupt {name}");
        }
        Raiser::Several => " from one of several sources",
        Raiser::Unrecorded | Raiser::Device(_) => "",
    };
    format!("a packet{by}")
}

/// An addition to a cause: what may be behind it, another possible cause, or the event that would show more.
pub(crate) fn addition(model: &Model, cause: Cause) -> Option<&'static str> {
    Some(match cause {
        Cause::Held(_, Place::Limited, _) => return None,
        Cause::Held(_, place, _) => match place {
            Place::Unsubmitted => {
                "io.max of a cgroup held it back, or another thread had to submit it"
            }
            Place::Stacked => "device mapper or md held it back",
            Place::Unallocated => {
                "the reason is a lack of tags, writeback throttling, io.cost or io.latency"
            }
            Place::NoTag => "the stack shows blk_mq_get_tag",
            Place::WritebackThrottling => "the stack shows wbt_wait",
            Place::IoCost => "the stack shows ioc_rqos_throttle",
            Place::IoLatency => "the stack shows blkcg_iolatency_throttle",
            Place::Queued => "the I/O scheduler held it back, or the disk was busy",
            Place::Unrecorded | Place::Limited => {
                "the place is not recorded (enable block_bio_queue and block_getrq)"
            }
        },
        Cause::For(Leaf::Disk(Some(disk)) | Leaf::Special(disk, _) | Leaf::Others(disk, _), _)
            if disk.is_loop() =>
        {
            "this is a loop device, and the wait of its worker is not recorded"
        }
        Cause::For(Leaf::Others(_, of), _) if name(model, of).starts_with("kworker/") => {
            "the reason is a page under writeback, a lack of tags, or io.max, which passes requests to workers"
        }
        Cause::For(Leaf::Others(..), _) => {
            "the reason is a page that this request read or wrote, or a lack of tags"
        }
        Cause::For(Leaf::Dirty(_), _) => {
            "threads have written more data than may wait for writeback (vm.dirty_*)"
        }
        Cause::For(Leaf::Completion(_), _) => {
            "the place where the request was held back is not recorded (enable block_rq_issue, unless identical requests were in flight)"
        }
        Cause::For(Leaf::Packet(Raiser::Timer), _) => {
            "it is a delayed ACK, a retransmission, a paced packet, or one that a device received earlier (gro_flush_timeout)"
        }
        Cause::For(Leaf::PerhapsTimer { disk, dirty }, _) => match (disk, dirty) {
            (true, true) => {
                "it is not recorded which (enable block_rq_complete and writeback_balance_dirty_pages)"
            }
            (true, false) => "it is not recorded which (enable block_rq_complete)",
            (false, _) => "it is not recorded which (enable writeback_balance_dirty_pages)",
        },
        Cause::For(Leaf::Disk(None), _) => "the disk is not recorded (enable block_rq_complete)",
        Cause::For(Leaf::Ipi(_), _) if !model.has(Events::Completions) => {
            "perhaps for a disk, whose completions are not recorded (enable block_rq_complete)"
        }
        Cause::For(Leaf::Softirq(u32::MAX, _), _) => {
            "it is not recorded which (enable irq_softirq_entry and irq_softirq_exit)"
        }
        Cause::For(Leaf::Packet(Raiser::Unrecorded), _) if !model.has(Events::Handlers) => {
            "its source is not recorded (enable irq_handler_entry and irq_handler_exit)"
        }
        Cause::For(Leaf::Packet(Raiser::Unrecorded), _) => {
            "its source is not recorded (enable irq_softirq_raise)"
        }
        Cause::For(Leaf::Softirq(_, Raiser::Unrecorded), _) => {
            "what raised the softirq is not recorded (enable irq_softirq_raise and x86_irq_vectors_irq_work_*)"
        }
        _ => return None,
    })
}

/// Why a thread's activity is not recorded.
pub(crate) fn unrecorded(why: Unrecorded) -> String {
    match why {
        Unrecorded::Unseen => "no earlier event names the thread".into(),
        Unrecorded::Before(cpu) => format!("the trace of CPU {cpu} starts later"),
        Unrecorded::After(cpu) => format!("the trace of CPU {cpu} ends earlier"),
        Unrecorded::Lost(cpu) => format!("events of CPU {cpu} were lost"),
        Unrecorded::NoPackets(cpu) => format!("packets of CPU {cpu} are missing"),
        Unrecorded::Damaged(cpu) => format!("part of the trace of CPU {cpu} cannot be read"),
        Unrecorded::Between(cpu) => format!("CPU {cpu} is not recorded between two traces"),
        Unrecorded::NoStream(cpu) => format!("the trace has no stream of CPU {cpu}"),
        Unrecorded::Missing => "events are missing, although the trace reports no gap".into(),
        Unrecorded::Ended => "the thread or the trace has ended".into(),
    }
}

/// How to get a trace that has what is missing.
pub(super) fn remedy(why: Unrecorded) -> Option<&'static str> {
    match why {
        Unrecorded::Before(_) => Some("use a larger --subbuf-size or --num-subbuf"),
        Unrecorded::Lost(_) | Unrecorded::NoPackets(_) => Some("record with larger buffers"),
        Unrecorded::Damaged(_) => Some("copy the trace again, or record another"),
        _ => None,
    }
}

/// Whether an interrupt with that name comes from another CPU. The other interrupts without a device handler do not:
/// a CPU sends `irq_work` to itself, and the remaining interrupts report errors and overheating.
pub(super) fn is_call(model: &Model, name: Name) -> bool {
    let calls = ["reschedule", "call_function", "call_function_single"];
    calls.contains(&model.names.text(name))
}

/// Names what uses a CPU; a thread, by its name at `time`.
pub(crate) fn used_by(model: &Model, used: Use, time: u64) -> String {
    match used {
        Use::Unknown => "something not recorded".into(),
        Use::Idle => "idle".into(),
        Use::Thread(id) => name_at(model, id, time),
        Use::Context(context) => leaf_name(model, context.into()),
    }
}

/// The name of a class in JSON and CSV.
pub(super) fn class(class: Class) -> &'static str {
    match class {
        Class::Working => "working",
        Class::Interrupted => "interrupted",
        Class::Blocked => "blocked",
        Class::Unknown => "unknown",
    }
}

/// Adds a capital letter and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut sentence = format!("{text}.");
    if let Some(first) = sentence.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_buffers_are_advised_only_where_they_help() {
        let larger = Some("record with larger buffers");
        for (why, text, advice) in [
            (Unrecorded::Lost(1), "events of CPU 1 were lost", larger),
            (
                Unrecorded::NoPackets(1),
                "packets of CPU 1 are missing",
                larger,
            ),
            (
                Unrecorded::Damaged(1),
                "part of the trace of CPU 1 cannot be read",
                Some("copy the trace again, or record another"),
            ),
            (
                Unrecorded::Between(1),
                "CPU 1 is not recorded between two traces",
                None,
            ),
        ] {
            assert_eq!((unrecorded(why).as_str(), remedy(why)), (text, advice));
        }
    }

    /// After the event of its system call's end, a thread still delivers its signals and runs its task work.
    #[test]
    fn a_wakeup_after_a_system_call_may_be_by_the_thread_itself() {
        let said = leaf_name(&Model::default(), Leaf::Unseen);
        for source in ["an interrupt", "a fault", "a signal", "task work"] {
            assert!(said.contains(source), "{said}");
        }
    }
}
