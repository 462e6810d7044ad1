// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The kernel events that the model uses, and their fields, as LTTng and perf (`perf data convert --to-ctf`) write them.
//! Names and fields are looked up once for each class, not for each event.

use std::borrow::Cow;

use lt_ctf::{Class, FieldIndex};
use lt_model::{Disk, Events, Kind as Purpose, NOWHERE, Priority, Release, Stage, What};

/// A kind of event that the model uses, with the fields to read.
pub(super) enum Kind {
    Switch {
        prev: Thread,
        state: FieldIndex,
        next: Thread,
        prio: Prio,
    },
    Waking(Thread, Option<FieldIndex>),
    Wakeup(Thread, Option<FieldIndex>),
    Migrate(Thread, FieldIndex, FieldIndex),
    Fork(Thread),
    Exec(FieldIndex, FieldIndex),
    There(Thread),
    Call(String),
    Futex(FieldIndex, FieldIndex),
    Return,
    Exit,
    Irq(FieldIndex, Option<FieldIndex>),
    IrqEnd(FieldIndex),
    Raise(FieldIndex),
    Softirq(FieldIndex),
    SoftirqEnd(FieldIndex),
    Timer(Option<FieldIndex>),
    TimerEnd,
    Expire(FieldIndex),
    ExpireEnd,
    Work(FieldIndex),
    WorkEnd,
    Idle(FieldIndex),
    Ipi(String),
    IpiEnd,
    Request(Stage, FieldIndex, FieldIndex, RequestFields),
    Requeue(FieldIndex, FieldIndex, RequestFields),
    Remap([FieldIndex; 4], Option<FieldIndex>),
    Dirty(FieldIndex, FieldIndex),
    Completed(
        FieldIndex,
        Option<(FieldIndex, FieldIndex)>,
        RequestFields,
        Option<FieldIndex>,
    ),
}

/// The fields with a request's purpose and size.
#[derive(Clone, Copy)]
pub(super) struct RequestFields {
    bits: Option<FieldIndex>,
    sectors: Option<FieldIndex>,
}

impl RequestFields {
    /// The purpose of a request, and its number of sectors, if that is recorded.
    fn of(self, event: &lt_ctf::Event<'_>) -> (Purpose, Option<u64>) {
        let bits = self.bits.and_then(|bits| match event.unsigned(bits) {
            Some(bits) => Some(of_bits(bits)),
            None => event.bytes(bits).map(of_letters),
        });
        let sectors = self.sectors.and_then(|field| event.unsigned(field));
        (bits.unwrap_or(Purpose::Plain), sectors)
    }

    /// Whether the kernel's letters show an operation on a zone without data: a reset, an open, a close or a finish.
    /// ZA appends data to a zone.
    fn is_of_zone(self, event: &lt_ctf::Event<'_>) -> bool {
        let letters = self.bits.and_then(|bits| event.bytes(bits));
        matches!(letters, Some([b'Z', b'R' | b'O' | b'C' | b'F', ..]))
    }

    /// Whether the kernel's letters show an operation that always has sectors: it reads, discards, writes zeroes, or
    /// appends data to a zone.
    fn has_sectors(self, event: &lt_ctf::Event<'_>) -> bool {
        let letters = self.bits.and_then(|bits| event.bytes(bits));
        matches!(
            letters,
            Some([b'R' | b'D', ..] | [b'W', b'Z', ..] | [b'Z', b'A', ..])
        )
    }
}

/// The purpose from LTTng's `RWBS_FLAG_*` bits. A request with another purpose has none of the bits below.
fn of_bits(bits: u64) -> Purpose {
    const WRITE: u64 = 1;
    const DISCARD: u64 = 1 << 1;
    const READ: u64 = 1 << 2;
    const FLUSH: u64 = 1 << 8;
    const PREFLUSH: u64 = 1 << 10;
    match bits {
        _ if bits & DISCARD != 0 => Purpose::Discard,
        _ if bits & FLUSH != 0 || bits & (READ | WRITE) == 0 && bits & PREFLUSH != 0 => {
            Purpose::Flush
        }
        _ if bits & (READ | WRITE) == 0 => Purpose::Other,
        _ => Purpose::Plain,
    }
}

/// The purpose from the kernel's letters: a preceding flush, the operation, and its flags.
fn of_letters(text: &[u8]) -> Purpose {
    let rest = text.strip_prefix(b"F").filter(|rest| !rest.is_empty());
    match rest.unwrap_or(text) {
        [b'D', ..] => Purpose::Discard,
        [b'F', ..] => Purpose::Flush,
        // WZ writes zeroes; Z and another letter is an operation on a zone.
        [b'N' | b'Z', ..] | [b'W', b'Z', ..] => Purpose::Other,
        _ => Purpose::Plain,
    }
}

/// The fields of an event that names a disk.
#[derive(Clone, Copy)]
pub(super) struct Named {
    disk: FieldIndex,
    name: FieldIndex,
}

impl Named {
    /// The fields of that event class, if its events name disks.
    pub(super) fn of(class: &Class) -> Option<Self> {
        if class.name != "lttng_statedump_block_device" {
            return None;
        }
        Some(Self {
            disk: class.field("dev")?,
            name: class.field("diskname")?,
        })
    }

    /// The disk, and its name.
    pub(super) fn disk<'a>(self, event: &lt_ctf::Event<'a>) -> Option<(Disk, Cow<'a, str>)> {
        let disk = u32::try_from(event.unsigned(self.disk)?).ok()?;
        Some((Disk(disk), event.text(self.name)?))
    }
}

/// The fields of a thread.
pub(super) struct Thread {
    tid: FieldIndex,
    name: Option<FieldIndex>,
}

/// The fields with the priorities of the two threads of a switch, and the offset to the kernel's numbers.
pub(super) struct Prio {
    fields: Option<(FieldIndex, FieldIndex)>,
    base: i32,
}

/// The kind of an event class, if the model uses it.
pub(super) fn kind(class: &Class) -> Option<Kind> {
    let (system, name) = split(&class.name)?;
    // perf writes `pid` where LTTng writes `tid`.
    let field = |name| class.field(name);
    let thread = |tid: &str, name| {
        let tid = match system {
            Some(_) => class.field(&tid.replace("tid", "pid")),
            None => class.field(tid),
        };
        Some(Thread {
            tid: tid?,
            name: class.field(name),
        })
    };
    let fields = RequestFields {
        bits: field("rwbs"),
        sectors: field("nr_sector"),
    };
    Some(match name {
        "sched_switch" => Kind::Switch {
            prev: thread("prev_tid", "prev_comm")?,
            state: field("prev_state")?,
            next: thread("next_tid", "next_comm")?,
            prio: Prio {
                fields: field("prev_prio").zip(field("next_prio")),
                // LTTng counts from the first priority that is neither SCHED_FIFO nor SCHED_RR.
                base: if system.is_none() { 100 } else { 0 },
            },
        },
        "sched_waking" => Kind::Waking(thread("tid", "comm")?, field("target_cpu")),
        "sched_wakeup" | "sched_wakeup_new" => {
            Kind::Wakeup(thread("tid", "comm")?, field("target_cpu"))
        }
        "sched_migrate_task" => Kind::Migrate(
            thread("tid", "comm")?,
            field("orig_cpu")?,
            field("dest_cpu")?,
        ),
        "sched_process_fork" => Kind::Fork(thread("child_tid", "child_comm")?),
        "sched_process_exec" => Kind::Exec(
            field("tid").or_else(|| field("pid"))?,
            field("old_tid").or_else(|| field("old_pid"))?,
        ),
        "sched_process_exit" => Kind::Exit,
        "lttng_statedump_process_state" => Kind::There(thread("tid", "name")?),
        "perf_comm" => Kind::There(thread("tid", "comm")?),
        "irq_handler_entry" => Kind::Irq(field("irq")?, field("name")),
        "irq_handler_exit" => Kind::IrqEnd(field("irq")?),
        "irq_softirq_raise" | "softirq_raise" => Kind::Raise(field("vec")?),
        "irq_softirq_entry" | "softirq_entry" => Kind::Softirq(field("vec")?),
        "irq_softirq_exit" | "softirq_exit" => Kind::SoftirqEnd(field("vec")?),
        "timer_hrtimer_expire_entry" | "hrtimer_expire_entry" => Kind::Timer(field("function")),
        "timer_hrtimer_expire_exit" | "hrtimer_expire_exit" => Kind::TimerEnd,
        "timer_expire_entry" => Kind::Expire(field("function")?),
        "timer_expire_exit" => Kind::ExpireEnd,
        "workqueue_execute_start" => Kind::Work(field("function")?),
        "workqueue_execute_end" => Kind::WorkEnd,
        "power_cpu_idle" | "cpu_idle" => Kind::Idle(field("state")?),
        "block_bio_queue" => Kind::Request(Stage::Queued, field("dev")?, field("sector")?, fields),
        "block_getrq" => Kind::Request(Stage::Allocated, field("dev")?, field("sector")?, fields),
        "block_rq_issue" => Kind::Request(Stage::Issued, field("dev")?, field("sector")?, fields),
        "block_rq_requeue" => Kind::Requeue(field("dev")?, field("sector")?, fields),
        "block_bio_remap" => Kind::Remap(
            [
                field("old_dev")?,
                field("old_sector")?,
                field("dev")?,
                field("sector")?,
            ],
            field("nr_sector"),
        ),
        "writeback_balance_dirty_pages" => Kind::Dirty(field("bdi")?, field("pause")?),
        "block_rq_complete" => {
            let range = field("sector").zip(field("nr_sector"));
            let error = field("error").or_else(|| field("errors"));
            Kind::Completed(field("dev")?, range, fields, error)
        }
        // Before LTTng 2.6, every system call ended with this event.
        "exit_syscall" => Kind::Return,
        _ => match call_or_vector(system, name)? {
            Kind::Call(call) if call == "futex" => match (field("op"), field("uaddr")) {
                (Some(op), Some(address)) => Kind::Futex(op, address),
                _ => Kind::Call(call),
            },
            other => other,
        },
    })
}

/// Splits `sched:sched_switch`, as perf writes it, or `sched_switch`, as LTTng does. Returns `None` for an event of
/// another system, or of a program (`provider:event`).
pub(super) fn split(name: &str) -> Option<(Option<&str>, &str)> {
    const SYSTEMS: [&str; 14] = [
        "lock",
        "sched",
        "irq",
        "irq_vectors",
        "timer",
        "block",
        "syscalls",
        "workqueue",
        "power",
        "writeback",
        "vmscan",
        "compaction",
        "net",
        "skb",
    ];
    match name.split_once(':') {
        Some((system, name)) => SYSTEMS.contains(&system).then_some((Some(system), name)),
        None => Some((None, name)),
    }
}

/// The kind of an event that starts or ends a system call, or an interrupt that does not come from a device.
fn call_or_vector(system: Option<&str>, name: &str) -> Option<Kind> {
    let begins = |begins: &[&str]| begins.iter().find_map(|begin| name.strip_prefix(begin));
    let (calls, returns, vectors): (&[_], &[_], _) = match system {
        // LTTng before 2.6 used the prefix `sys_`.
        None => (
            &["syscall_entry_", "compat_syscall_entry_", "sys_"],
            &["syscall_exit_", "compat_syscall_exit_"],
            "x86_irq_vectors_",
        ),
        Some("syscalls") => (&["sys_enter_"], &["sys_exit_"], "\0"),
        Some("irq_vectors") => (&[], &[], ""),
        Some(_) => return None,
    };
    if let Some(call) = begins(calls) {
        return Some(Kind::Call(call.to_string()));
    }
    if begins(returns).is_some() {
        return Some(Kind::Return);
    }
    vector(name.strip_prefix(vectors)?)
}

/// The start or the end of an interrupt that does not come from a device, from the event's name without its system.
fn vector(name: &str) -> Option<Kind> {
    if let Some(name) = name.strip_suffix("_entry") {
        return Some(match name {
            "local_timer" => Kind::Timer(None),
            _ => Kind::Ipi(name.to_string()),
        });
    }
    name.strip_suffix("_exit").map(|name| match name {
        "local_timer" => Kind::TimerEnd,
        _ => Kind::IpiEnd,
    })
}

/// The length of a request from its number of sectors; 0 if not recorded.
fn length(sectors: Option<u64>) -> u32 {
    sectors.and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
}

/// The disk of a `bdi`, such as `253:3`.
fn disk_of(bdi: &[u8]) -> Option<Disk> {
    let text = std::str::from_utf8(bdi).ok()?;
    let (major, minor) = text.trim_end_matches('\0').split_once(':')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    (major < 1 << 12 && minor < 1 << 20).then_some(Disk(major << 20 | minor))
}

impl Kind {
    /// The group of the event, if a trace without that group could point to a wrong cause.
    pub(super) fn shows(&self) -> Option<Events> {
        Some(match self {
            Self::Completed(..) => Events::Completions,
            Self::Dirty(..) => Events::Dirty,
            Self::Softirq(_) => Events::Softirqs,
            Self::Expire(_) => Events::Timers,
            Self::Irq(..) => Events::Handlers,
            Self::Work(_) => Events::Works,
            _ => return None,
        })
    }

    /// Whether this is `irq_work`, the interrupt that a CPU sends to itself. A trace that records it is assumed
    /// to record all interrupts that come from no device.
    pub(super) fn is_sent_to_itself(&self) -> bool {
        matches!(self, Self::Ipi(name) if name == "irq_work")
    }

    /// Whether the event shows a wakeup on the waker's CPU.
    pub(super) fn is_waking(&self) -> bool {
        matches!(self, Self::Waking(..))
    }

    /// Whether the event shows a wakeup.
    pub(super) fn is_wakeup(&self) -> bool {
        matches!(self, Self::Waking(..) | Self::Wakeup(..))
    }

    /// Whether the event is the start of a system call.
    pub(super) fn is_call(&self) -> bool {
        matches!(self, Self::Call(_) | Self::Futex(..))
    }

    /// Decodes the event; `None` if the model does not need it, or if a field has an unexpected value.
    pub(super) fn what<'a>(
        &'a self,
        event: &lt_ctf::Event<'a>,
        release: Release,
    ) -> Option<What<'a>> {
        let name =
            |field: Option<FieldIndex>| field.and_then(|f| event.bytes(f)).unwrap_or_default();
        let number = |field| i32::try_from(event.signed(field)?).ok();
        let unsigned = |field| u32::try_from(event.unsigned(field)?).ok();
        let target =
            |field: &Option<FieldIndex>| field.and_then(unsigned).or(event.cpu()).unwrap_or(0);
        Some(match self {
            Self::Switch {
                prev,
                state,
                next,
                prio: Prio { fields, base },
            } => {
                let prio = |field| Some(Priority(number(field)?.checked_add(*base)?));
                What::Switch {
                    prev: number(prev.tid)?,
                    prev_name: name(prev.name),
                    out: release.switched_out(event.signed(*state)?),
                    prev_prio: fields.and_then(|(prev, _)| prio(prev)),
                    next: number(next.tid)?,
                    next_name: name(next.name),
                    next_prio: fields.and_then(|(_, next)| prio(next)),
                }
            }
            Self::Waking(thread, cpu) => What::Waking {
                tid: number(thread.tid)?,
                name: name(thread.name),
                target: target(cpu),
            },
            Self::Wakeup(thread, cpu) => What::Wakeup {
                tid: number(thread.tid)?,
                name: name(thread.name),
                target: target(cpu),
            },
            Self::Migrate(thread, from, to) => What::Migrate {
                tid: number(thread.tid)?,
                name: name(thread.name),
                from: u32::try_from(number(*from)?).ok()?,
                to: u32::try_from(number(*to)?).ok()?,
            },
            Self::Fork(child) => What::Fork {
                child: number(child.tid)?,
                name: name(child.name),
            },
            Self::Exec(tid, old) => What::Exec {
                tid: number(*tid)?,
                old: number(*old)?,
            },
            Self::There(thread) => What::There {
                tid: number(thread.tid)?,
                name: name(thread.name),
            },
            Self::Call(call) => What::Call {
                name: call.as_bytes(),
            },
            Self::Futex(op, address) => What::Futex {
                op: number(*op)
                    .map(i32::cast_unsigned)
                    .or_else(|| unsigned(*op))?,
                address: event.unsigned(*address)?,
            },
            Self::Return => What::Return,
            Self::Exit => What::Exit,
            Self::Irq(irq, of) => What::Irq {
                number: number(*irq)?,
                name: name(*of),
            },
            Self::IrqEnd(irq) => What::IrqEnd {
                number: number(*irq)?,
            },
            Self::Raise(vec) => What::Raise {
                vector: unsigned(*vec)?,
            },
            Self::Softirq(vec) => What::Softirq {
                vector: unsigned(*vec)?,
            },
            Self::SoftirqEnd(vec) => What::SoftirqEnd {
                vector: unsigned(*vec)?,
            },
            Self::Timer(function) => What::Timer {
                function: function.and_then(|field| event.unsigned(field)),
            },
            Self::TimerEnd => What::TimerEnd,
            Self::Expire(function) => What::Expire {
                function: event.unsigned(*function)?,
            },
            Self::ExpireEnd => What::ExpireEnd,
            Self::Work(function) => What::Work {
                function: event.unsigned(*function)?,
            },
            Self::WorkEnd => What::WorkEnd,
            Self::Idle(state) => What::Idle {
                // The state -1 means that the CPU leaves an idle state.
                enters: unsigned(*state)? != u32::MAX,
            },
            Self::Ipi(ipi) => What::Ipi {
                name: ipi.as_bytes(),
            },
            Self::IpiEnd => What::IpiEnd,
            Self::Request(stage, dev, sector, fields) => {
                let disk = Disk(unsigned(*dev)?);
                let (purpose, sectors) = fields.of(event);
                let is_issued = *stage == Stage::Issued;
                let sector = match (purpose, sectors) {
                    (Purpose::Flush, Some(0)) if is_issued => return Some(What::Flush { disk }),
                    // Such as SCSI and NVMe commands from user space.
                    (_, Some(0)) if is_issued => NOWHERE,
                    // A bio without sectors, which waits for a flush, for example.
                    (_, Some(0)) => return None,
                    _ => event.unsigned(*sector)?,
                };
                What::Request {
                    stage: *stage,
                    disk,
                    sector,
                    sectors: length(sectors),
                }
            }
            Self::Requeue(dev, sector, fields) => What::Requeued {
                disk: Disk(unsigned(*dev)?),
                range: match fields.of(event) {
                    (Purpose::Flush, Some(0)) => None,
                    (_, Some(0)) => Some((NOWHERE, 0)),
                    (_, sectors) => Some((event.unsigned(*sector)?, length(sectors))),
                },
            },
            Self::Remap([old_dev, old_sector, dev, sector], sectors) => {
                let sectors = sectors.and_then(unsigned);
                // A flush has no position.
                if sectors == Some(0) {
                    return None;
                }
                What::Remap {
                    from: (Disk(unsigned(*old_dev)?), event.unsigned(*old_sector)?),
                    to: (Disk(unsigned(*dev)?), event.unsigned(*sector)?),
                    sectors: sectors.unwrap_or(0),
                }
            }
            Self::Dirty(bdi, pause) => {
                // Without a pause the thread does not sleep.
                event.signed(*pause).filter(|pause| *pause > 0)?;
                What::Dirty {
                    disk: event.bytes(*bdi).and_then(disk_of),
                }
            }
            Self::Completed(dev, range, fields, error) => {
                let error = error.and_then(|error| event.signed(error));
                let has_failed = error.is_some_and(|error| error != 0);
                let range = range.and_then(|(sector, sectors)| {
                    Some((event.unsigned(sector)?, unsigned(sectors)?))
                });
                let (purpose, _) = fields.of(event);
                let (kind, range) = match (purpose, range) {
                    (Purpose::Flush, Some((_, 0))) => (purpose, None),
                    // A command, perhaps with data, whose length is not recorded at its issue.
                    (_, Some((NOWHERE, _))) => (Purpose::Other, Some((NOWHERE, 0))),
                    // Even if it fails, it has only one completion. LTTng has the same bits for writing zeroes, which
                    // has more.
                    (Purpose::Other, Some((_, 0))) if fields.is_of_zone(event) => {
                        (purpose, Some((NOWHERE, 0)))
                    }
                    // It has not ended, since no byte is completed. SCSI has such a completion before a request fails
                    // or is issued again, even with the error 0.
                    (_, Some((_, 0))) if has_failed || fields.has_sectors(event) => return None,
                    _ => (purpose, range),
                };
                What::Completed {
                    disk: Disk(unsigned(*dev)?),
                    range,
                    kind,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use lt_ctf::{Item, Reader};
    use serde_json::{Value, json};

    use super::super::several::SECOND;
    use super::*;

    #[test]
    fn calls_and_vectors_are_known_by_their_names() {
        fn is(system: Option<&str>, name: &str, what: fn(&Kind) -> bool) {
            let kind = call_or_vector(system, name);
            assert!(kind.as_ref().is_some_and(what), "{system:?} {name}");
        }
        let (calls, vectors) = (Some("syscalls"), Some("irq_vectors"));
        let read: fn(&Kind) -> bool = |kind| matches!(kind, Kind::Call(call) if call == "read");
        for (system, begin, end) in [
            (None, "syscall_entry_read", "syscall_exit_read"),
            (
                None,
                "compat_syscall_entry_read",
                "compat_syscall_exit_read",
            ),
            (None, "sys_read", "syscall_exit_read"),
            (calls, "sys_enter_read", "sys_exit_read"),
        ] {
            is(system, begin, read);
            is(system, end, |kind| matches!(kind, Kind::Return));
        }
        for (system, begin) in [(None, "x86_irq_vectors_"), (vectors, "")] {
            let vector = |name: &str, what| is(system, &format!("{begin}{name}"), what);
            vector("local_timer_entry", |kind| {
                matches!(kind, Kind::Timer(None))
            });
            vector("local_timer_exit", |kind| matches!(kind, Kind::TimerEnd));
            vector(
                "reschedule_entry",
                |kind| matches!(kind, Kind::Ipi(name) if name == "reschedule"),
            );
            vector("reschedule_exit", |kind| matches!(kind, Kind::IpiEnd));
        }
        for (system, name) in [
            (Some("sched"), "sys_enter_read"),
            (calls, "local_timer_entry"),
            (vectors, "sys_enter_read"),
            (None, "reschedule_entry"),
            (None, "x86_irq_vectors_vector_alloc"),
        ] {
            assert!(call_or_vector(system, name).is_none(), "{system:?} {name}");
        }
    }

    /// A trace with one event as perf writes them: numbers have 32 or 64 bits, arrays of characters are text.
    fn trace_of(name: &str, fields: &[(&str, Value, &[u8])]) -> tempfile::TempDir {
        let structure = |members: &[(&str, Value, &[u8])]| {
            let member = |(name, class, _): &(&str, Value, &[u8])| json!({"name": name, "field-class": class});
            json!({"type": "structure", "member-classes": members.iter().map(member).collect::<Vec<_>>()})
        };
        let mut time = unsigned(64);
        time["roles"] = json!(["default-clock-timestamp"]);
        let header = [("timestamp", time, &7u64.to_le_bytes()[..])];
        let fragments = [
            json!({"type": "preamble", "version": 2}),
            json!({"type": "clock-class", "id": "c", "frequency": SECOND, "origin": "unix-epoch"}),
            json!({"type": "data-stream-class", "default-clock-class-id": "c",
                "event-record-header-field-class": structure(&header)}),
            json!({"type": "event-record-class", "name": name, "payload-field-class": structure(fields)}),
        ];
        let metadata: String = fragments.iter().map(|f| format!("\x1e{f}\n")).collect();
        let stream: Vec<&[u8]> = header
            .iter()
            .chain(fields)
            .map(|(.., bytes)| *bytes)
            .collect();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("metadata"), metadata).unwrap();
        fs::write(dir.path().join("perf_stream_0"), stream.concat()).unwrap();
        dir
    }

    fn unsigned(bits: u32) -> Value {
        json!({"type": "fixed-length-unsigned-integer", "length": bits, "byte-order": "little-endian"})
    }

    fn signed(bits: u32) -> Value {
        json!({"type": "fixed-length-signed-integer", "length": bits, "byte-order": "little-endian"})
    }

    /// The recorded perf trace has no such event.
    #[test]
    fn the_end_of_a_request_names_its_disk_in_a_trace_of_perf() {
        let text = || json!({"type": "null-terminated-string"});
        // 254:3, as the kernel encodes it (MKDEV)
        let disk = 254 << 20 | 3u32;
        let none = 0u32.to_le_bytes();
        let fields = [
            ("perf_ip", unsigned(64), &(1u64 << 63).to_le_bytes()[..]),
            ("perf_tid", signed(32), &9i32.to_le_bytes()),
            ("perf_pid", signed(32), &9i32.to_le_bytes()),
            ("perf_id", unsigned(64), &5u64.to_le_bytes()),
            ("perf_period", unsigned(64), &1u64.to_le_bytes()),
            ("common_type", unsigned(32), &1234u32.to_le_bytes()),
            ("common_flags", unsigned(32), &1u32.to_le_bytes()),
            ("common_preempt_count", unsigned(32), &0u32.to_le_bytes()),
            ("common_pid", signed(32), &9i32.to_le_bytes()),
            ("dev", unsigned(32), &disk.to_le_bytes()),
            ("sector", unsigned(64), &128_056u64.to_le_bytes()),
            ("nr_sector", unsigned(32), &8u32.to_le_bytes()),
            ("error", signed(32), &(-5i32).to_le_bytes()),
            ("ioprio", unsigned(32), &0u32.to_le_bytes()),
            ("rwbs", text(), b"R\0"),
            ("cmd", text(), b"\0"),
        ];
        let said = |name, fields: &[_]| {
            let dir = trace_of(name, fields);
            let mut reader = Reader::open(dir.path()).unwrap();
            let kind = kind(reader.classes().next().unwrap())?;
            let Some(Item::Event(event)) = reader.next().unwrap() else {
                panic!("no event");
            };
            let what = kind.what(&event, Release(7, 2));
            Some(what.map(|what| match what {
                What::Completed {
                    disk: Disk(found),
                    range,
                    ..
                } => found == disk && range == Some((128_056, 8)),
                What::Request {
                    stage: Stage::Issued,
                    disk: Disk(found),
                    sector,
                    sectors,
                } => found == disk && [(128_056, 8), (NOWHERE, 0)].contains(&(sector, sectors)),
                _ => false,
            }))
        };
        assert_eq!(said("block:block_rq_complete", &fields), Some(Some(true)));
        assert_eq!(said("block:block_rq_issue", &fields), Some(Some(true)));
        assert_eq!(said("block:block_rq_merge", &fields), None);
        // A command, whose sector is recorded as 0.
        let mut other = fields.clone();
        other[10].2 = &[0; 8];
        other[11].2 = &none;
        assert_eq!(said("block:block_rq_issue", &other), Some(Some(true)));
        // The event is useless without the number of the disk.
        assert_eq!(said("block:block_rq_complete", &fields[..9]), None);
    }

    #[test]
    fn a_request_a_flush_or_a_command_is_given_back() {
        let text = || json!({"type": "null-terminated-string"});
        let given_back = |name, (sector, sectors): (u64, u32), class, purpose: &[u8]| {
            let fields = [
                ("dev", unsigned(32), &(8u32 << 20).to_le_bytes()[..]),
                ("sector", unsigned(64), &sector.to_le_bytes()),
                ("nr_sector", unsigned(32), &sectors.to_le_bytes()),
                ("rwbs", class, purpose),
            ];
            let dir = trace_of(name, &fields);
            let mut reader = Reader::open(dir.path()).unwrap();
            let kind = kind(reader.classes().next().unwrap()).unwrap();
            let Some(Item::Event(event)) = reader.next().unwrap() else {
                panic!("no event");
            };
            match kind.what(&event, Release(7, 2)) {
                Some(What::Requeued { disk, range }) if disk == Disk(8 << 20) => range,
                other => panic!("{other:?}"),
            }
        };
        for (place, letters, bits, range) in [
            ((64, 8), &b"R\0"[..], 1u32 << 2, Some((64, 8))),
            ((0, 0), b"FF\0", 1 << 8 | 1 << 10, None),
            ((0, 0), b"N\0", 0, Some((NOWHERE, 0))),
        ] {
            let bits = bits.to_le_bytes();
            let perf = given_back("block:block_rq_requeue", place, text(), letters);
            let lttng = given_back("block_rq_requeue", place, unsigned(32), &bits);
            assert_eq!((perf, lttng), (range, range), "{letters:?}");
        }
    }

    #[test]
    fn a_bio_is_passed_on_with_its_length() {
        for (sectors, is_known) in [(16u32, true), (0, false)] {
            let fields = [
                ("dev", unsigned(32), &(8u32 << 20).to_le_bytes()[..]),
                ("sector", unsigned(64), &2056u64.to_le_bytes()),
                ("nr_sector", unsigned(32), &sectors.to_le_bytes()),
                ("old_dev", unsigned(32), &(254u32 << 20).to_le_bytes()),
                ("old_sector", unsigned(64), &8u64.to_le_bytes()),
            ];
            let dir = trace_of("block:block_bio_remap", &fields);
            let mut reader = Reader::open(dir.path()).unwrap();
            let kind = kind(reader.classes().next().unwrap()).unwrap();
            let Some(Item::Event(event)) = reader.next().unwrap() else {
                panic!("no event");
            };
            let expected = is_known.then_some(What::Remap {
                from: (Disk(254 << 20), 8),
                to: (Disk(8 << 20), 2056),
                sectors,
            });
            assert_eq!(kind.what(&event, Release(7, 2)), expected);
        }
    }

    #[test]
    fn a_completion_without_sectors_is_of_a_flush_a_command_or_neither() {
        let ended = |error: i32, (sector, sectors): (u64, u32), letters: &[u8]| {
            let text = json!({"type": "null-terminated-string"});
            let fields = [
                ("dev", unsigned(32), &(8u32 << 20).to_le_bytes()[..]),
                ("sector", unsigned(64), &sector.to_le_bytes()),
                ("nr_sector", unsigned(32), &sectors.to_le_bytes()),
                ("error", signed(32), &error.to_le_bytes()),
                ("rwbs", text, letters),
            ];
            let dir = trace_of("block:block_rq_complete", &fields);
            let mut reader = Reader::open(dir.path()).unwrap();
            let kind = kind(reader.classes().next().unwrap()).unwrap();
            let Some(Item::Event(event)) = reader.next().unwrap() else {
                panic!("no event");
            };
            let what = kind.what(&event, Release(7, 2));
            what.map(|what| match what {
                What::Completed { kind, range, .. } => (kind, range),
                other => panic!("{other:?}"),
            })
        };
        for letters in [&b"R\0"[..], b"WS\0", b"D\0", b"WZ\0", b"ZAS\0", b"N\0"] {
            assert_eq!(ended(-5, (64, 0), letters), None);
        }
        for letters in [&b"R\0"[..], b"RA\0", b"D\0", b"DE\0", b"WZ\0", b"ZAS\0"] {
            assert_eq!(ended(0, (64, 0), letters), None);
        }
        // Whether it has ended depends on the request at this sector.
        for (letters, kind) in [(&b"WS\0"[..], Purpose::Plain), (b"N\0", Purpose::Other)] {
            assert_eq!(ended(0, (64, 0), letters), Some((kind, Some((64, 0)))));
        }
        let flush = (Purpose::Flush, None);
        assert_eq!(ended(-5, (NOWHERE, 0), b"FF\0"), Some(flush));
        // A command without data, with an error, with data, and with data as LTTng records it before Linux 5.18; then
        // an operation on all zones.
        let command = (Purpose::Other, Some((NOWHERE, 0)));
        for (error, place, letters) in [
            (0, (NOWHERE, 0), &b"N\0"[..]),
            (-5, (NOWHERE, 0), b"N\0"),
            (0, (NOWHERE, 8), b"N\0"),
            (0, (NOWHERE, 8), b"R\0"),
            (0, (0, 0), b"ZRA\0"),
        ] {
            assert_eq!(ended(error, place, letters), Some(command));
        }
        // An operation on a zone has no data, so it ends at once, even with an error.
        for letters in [&b"ZR\0"[..], b"ZRA\0", b"ZO\0", b"ZC\0", b"ZF\0"] {
            for error in [0, -5] {
                assert_eq!(ended(error, (64, 0), letters), Some(command));
            }
        }
    }

    #[test]
    fn the_letters_and_the_bits_of_a_request_show_its_purpose() {
        for (letters, bits, kind) in [
            (&b"R"[..], 1 << 2, Purpose::Plain),
            (b"WS", 1 | 1 << 5, Purpose::Plain),
            (b"FWFS", 1 | 1 << 5 | 1 << 9 | 1 << 10, Purpose::Plain),
            (b"RA", 1 << 2 | 1 << 3, Purpose::Plain),
            (b"DE", 1 << 1 | 1 << 7, Purpose::Discard),
            (b"FF", 1 << 8 | 1 << 10, Purpose::Flush),
            (b"F", 1 << 8, Purpose::Flush),
            (b"N", 0, Purpose::Other),
            (b"WZ", 0, Purpose::Other),
            (b"ZR", 0, Purpose::Other),
        ] {
            let told = (of_letters(letters), of_bits(bits));
            assert_eq!(told, (kind, kind), "{letters:?}");
        }
    }

    #[test]
    fn an_exec_has_both_numbers_of_its_thread() {
        for (name, tid, old) in [
            ("sched_process_exec", "tid", "old_tid"),
            ("sched:sched_process_exec", "pid", "old_pid"),
        ] {
            let fields = [
                (tid, signed(32), &7i32.to_le_bytes()[..]),
                (old, signed(32), &9i32.to_le_bytes()[..]),
            ];
            let dir = trace_of(name, &fields);
            let mut reader = Reader::open(dir.path()).unwrap();
            let kind = kind(reader.classes().next().unwrap()).unwrap();
            let Some(Item::Event(event)) = reader.next().unwrap() else {
                panic!("no event");
            };
            let what = kind.what(&event, Release(7, 2));
            assert_eq!(what, Some(What::Exec { tid: 7, old: 9 }));
        }
    }

    #[test]
    fn a_bdi_names_its_disk() {
        assert_eq!(disk_of(b"253:3"), Some(Disk(253 << 20 | 3)));
        assert_eq!(disk_of(b"8:0\0\0"), Some(Disk(8 << 20)));
        assert_eq!(disk_of(b"btrfs-1"), None);
        assert_eq!(disk_of(b"4096:0"), None);
    }

    #[test]
    fn only_events_of_kernel_systems_are_used() {
        assert_eq!(split("sched_switch"), Some((None, "sched_switch")));
        let perf = Some((Some("sched"), "sched_switch"));
        assert_eq!(split("sched:sched_switch"), perf);
        // An event of a program, and an event that gives the system call only as a number.
        assert_eq!(split("app:sched_process_exit"), None);
        assert_eq!(split("raw_syscalls:sys_enter"), None);
    }
}
