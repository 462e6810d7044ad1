// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Decodes events for tables: the events of the model (`kinds.rs`), and events that only tables need.

use anyhow::Result;
use lt_ctf::{Class, FieldIndex, Reader, Scope};
use lt_model::tables::{
    Block, BlockStage, Operation, Packet, PacketStage, Reclaim, Seen, Step, Work, WorkStage,
};
use lt_model::{Disk, Release, What};

use super::beside::Beside;
use super::files::{self, returns};
use super::kinds::{self, Kind, Named};
use super::several::{self, NEW};

/// How to decode events of one class.
struct Decoder {
    form: Form,
    /// The current thread.
    tid: Option<FieldIndex>,
    /// A thread, and its process.
    process: Option<(FieldIndex, FieldIndex)>,
}

enum Form {
    Known(Kind),
    New(Kind),
    Return(Option<String>, Option<FieldIndex>),
    Block {
        stage: BlockStage,
        disk: FieldIndex,
        sector: FieldIndex,
        sectors: FieldIndex,
        operation: Option<FieldIndex>,
        error: Option<FieldIndex>,
    },
    Work {
        stage: WorkStage,
        work: FieldIndex,
        function: Option<FieldIndex>,
        workqueue: Option<FieldIndex>,
    },
    Contended(FieldIndex, FieldIndex),
    Acquired(FieldIndex),
    Reclaims(Reclaim),
    Reclaimed(Reclaim),
    Packet {
        stage: PacketStage,
        skb: FieldIndex,
        device: Option<FieldIndex>,
        len: Option<FieldIndex>,
        result: Option<FieldIndex>,
    },
    Disk(Named),
}

/// System calls that wait for a user-space lock.
pub(crate) const FUTEXES: [&str; 3] = ["futex", "futex_wait", "futex_waitv"];

/// A kind of event that a table needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// An event with one of these names, of which LTTng's is the first.
    Event(&'static [&'static str]),
    /// An event with one of these names in every kernel trace that is read.
    Always(&'static [&'static str]),
    /// System calls.
    Calls,
    /// Every system call.
    AllCalls,
    /// Ends of system calls.
    Returns,
    /// All events that show which files system calls work on.
    Files,
    /// Any call in [`FUTEXES`].
    Futex,
    /// Calls of this function with the address of a packet, as perf records them with an fprobe.
    Frees(&'static str),
    /// The current thread, as a field of the events themselves.
    Thread,
    /// Kernels of an architecture on which all interrupts have handlers, so that there are no `x86_irq_vectors_*`.
    NoVectors,
}

/// The name of an event, without perf's name of its system.
fn name_of(class: &Class) -> &str {
    kinds::split(&class.name).map_or("", |(_, name)| name)
}

impl Need {
    /// Requires an event in every kernel trace that is read. Other needs stay as they are.
    pub(crate) fn always(self) -> Self {
        match self {
            Self::Event(names) => Self::Always(names),
            other => other,
        }
    }

    /// LTTng's name of the event.
    pub(crate) fn in_lttng(self) -> Option<&'static str> {
        match self {
            Self::Event(names) | Self::Always(names) => names.first().copied(),
            _ => None,
        }
    }

    /// Whether the events of a class meet this need. No class meets [`Need::Files`] or [`Need::NoVectors`] alone.
    pub(crate) fn has(self, class: &Class) -> bool {
        match self {
            Self::Files | Self::NoVectors => false,
            Self::Event(names) | Self::Always(names) => names.contains(&name_of(class)),
            Self::Calls | Self::AllCalls => kinds::kind(class).is_some_and(|kind| kind.is_call()),
            Self::Returns => returns(class).is_some(),
            Self::Frees(function) => frees(class).is_some_and(|(name, _)| name == function),
            Self::Thread => current(class).is_some(),
            Self::Futex => match kinds::kind(class) {
                Some(Kind::Futex(..)) => true,
                Some(Kind::Call(name)) => FUTEXES.contains(&&*name),
                _ => false,
            },
        }
    }
}

/// The function that an fprobe follows, and the field with the address of a packet. `perf probe` creates kprobes, in
/// another group: kprobes miss calls from an interrupt that interrupts the handler of a kprobe.
fn frees(class: &Class) -> Option<(&str, FieldIndex)> {
    let function = class.name.strip_prefix("fprobes:")?;
    Some((function, class.field("skbaddr")?))
}

/// The step of a packet that an event reports, and the field with the address of the packet.
fn packet(class: &Class) -> Option<(PacketStage, FieldIndex)> {
    if let Some((function, skb)) = frees(class) {
        let stage = match function {
            "__kfree_skb" | "skb_attempt_defer_free" => PacketStage::Freed,
            "kfree_skb_partial" => PacketStage::Merged,
            _ => return None,
        };
        return Some((stage, skb));
    }
    let stage = match name_of(class) {
        "net_if_rx" | "netif_rx" => PacketStage::Backlog,
        "net_if_receive_skb" | "netif_receive_skb" => PacketStage::Received,
        "net_napi_gro_receive_entry" | "napi_gro_receive_entry" => PacketStage::Gro,
        "skb_copy_datagram_iovec" => PacketStage::Copied,
        "skb_consume" | "consume_skb" => PacketStage::Consumed,
        "skb_kfree" | "kfree_skb" => PacketStage::Dropped,
        "net_dev_queue" => PacketStage::Queued,
        "net_dev_start_xmit" => PacketStage::Started,
        "net_dev_xmit" => PacketStage::Sent,
        _ => return None,
    };
    Some((stage, class.field("skbaddr")?))
}

fn form(class: &Class) -> Option<Form> {
    let field = |name| class.field(name);
    if let Some((stage, skb)) = packet(class) {
        return Some(Form::Packet {
            stage,
            skb,
            device: field("name"),
            len: field("len"),
            result: field("rc"),
        });
    }
    if let Some(call) = returns(class) {
        return Some(Form::Return(call, field("ret")));
    }
    if let Some(named) = Named::of(class) {
        return Some(Form::Disk(named));
    }
    let work = |stage| {
        Some(Form::Work {
            stage,
            work: field("work")?,
            function: field("function"),
            workqueue: field("workqueue"),
        })
    };
    let stage = match name_of(class) {
        "workqueue_queue_work" => return work(WorkStage::Queued),
        "workqueue_execute_start" => return work(WorkStage::Started),
        "workqueue_execute_end" => return work(WorkStage::Ended),
        "sched_wakeup_new" => return kinds::kind(class).map(Form::New),
        "contention_begin" | "lock_contention_begin" => {
            return Some(Form::Contended(field("lock_addr")?, field("flags")?));
        }
        "contention_end" | "lock_contention_end" => {
            return Some(Form::Acquired(field("lock_addr")?));
        }
        "mm_vmscan_direct_reclaim_begin" => return Some(Form::Reclaims(Reclaim::Direct)),
        "mm_vmscan_direct_reclaim_end" => return Some(Form::Reclaimed(Reclaim::Direct)),
        "mm_vmscan_memcg_reclaim_begin" => return Some(Form::Reclaims(Reclaim::Memcg)),
        "mm_vmscan_memcg_reclaim_end" => return Some(Form::Reclaimed(Reclaim::Memcg)),
        "mm_compaction_begin" => return Some(Form::Reclaims(Reclaim::Compaction)),
        "mm_compaction_end" => return Some(Form::Reclaimed(Reclaim::Compaction)),
        "mm_vmscan_kswapd_wake" => return Some(Form::Reclaims(Reclaim::Kswapd)),
        "mm_vmscan_kswapd_sleep" => return Some(Form::Reclaimed(Reclaim::Kswapd)),
        "block_rq_insert" => BlockStage::Inserted,
        "block_rq_issue" => BlockStage::Issued,
        "block_rq_requeue" => BlockStage::Requeued,
        "block_rq_merge" => BlockStage::Merged,
        "block_rq_complete" => BlockStage::Completed,
        _ => return kinds::kind(class).map(Form::Known),
    };
    Some(Form::Block {
        stage,
        disk: field("dev")?,
        sector: field("sector")?,
        sectors: field("nr_sector")?,
        operation: field("rwbs"),
        error: field("error").or_else(|| field("errors")),
    })
}

/// The current thread: a context of LTTng, perf's own field, or a field of LTTng's events of requests.
fn current(class: &Class) -> Option<FieldIndex> {
    let context = class.fields().find(|(_, field)| {
        let is_context = field.name == "tid" && field.scope != Scope::Payload;
        is_context || field.name == "perf_tid"
    });
    let of_request = || {
        class
            .field("tid")
            .filter(|_| name_of(class).starts_with("block_rq_"))
    };
    context.map(|(index, _)| index).or_else(of_request)
}

/// A thread and its process: the new thread of a fork, an existing thread, or the current one. In perf's traces, the
/// event of a fork does not name the process.
fn process(class: &Class) -> Option<(FieldIndex, FieldIndex)> {
    let both = |tid, pid| class.field(tid).zip(class.field(pid));
    match name_of(class) {
        "sched_process_fork" => both("child_tid", "child_pid"),
        "lttng_statedump_process_state" | "perf_comm" => both("tid", "pid"),
        _ => {
            let context = |context, of_perf| {
                let is = |field: &lt_ctf::Field| {
                    field.name == context && field.scope != Scope::Payload || field.name == of_perf
                };
                let mut fields = class.fields().filter(|(_, field)| is(field));
                fields.next().map(|(index, _)| index)
            };
            context("tid", "perf_tid").zip(context("pid", "perf_pid"))
        }
    }
}

/// The operation from LTTng's `RWBS_FLAG_*` bits.
fn of_bits(bits: u64) -> Operation {
    match bits {
        _ if bits & (1 << 1) != 0 => Operation::Discard,
        _ if bits & 1 != 0 => Operation::Write,
        _ if bits & (1 << 2) != 0 => Operation::Read,
        _ if bits & (1 << 8 | 1 << 10) != 0 => Operation::Flush,
        _ => Operation::Other,
    }
}

/// The operation from the kernel's letters. F before another letter is a preceding flush.
fn of_letters(text: &[u8]) -> Operation {
    let rest = text.strip_prefix(b"F").filter(|rest| !rest.is_empty());
    match rest.unwrap_or(text) {
        // Writes zeroes.
        [b'W', b'Z', ..] => Operation::Other,
        [b'R', ..] => Operation::Read,
        [b'W', ..] => Operation::Write,
        [b'F', ..] => Operation::Flush,
        [b'D', ..] => Operation::Discard,
        _ => Operation::Other,
    }
}

/// A consumer of events for tables.
pub(crate) trait Sink {
    /// Called once, before the first event. `has` returns whether the trace meets a need.
    ///
    /// # Errors
    /// If needed events are missing.
    fn begin(&mut self, has: &dyn Fn(Need) -> bool) -> Result<()>;
    /// Whether events must name the processes of threads.
    fn needs_processes(&self) -> bool {
        false
    }
    /// Whether events must show which files system calls work on.
    fn needs_files(&self) -> bool {
        false
    }
    /// Called with each event.
    fn see(&mut self, seen: &Seen<'_>);
    /// Called at the start of an unrecorded time of a CPU: events were lost, or the time is between two traces, before
    /// the stream of the CPU starts (from 0 on), or after it ends (until `u64::MAX`).
    fn lost(&mut self, time: u64, cpu: u32, until: u64);
    /// Called with the name of a disk.
    fn disk(&mut self, disk: Disk, name: &str);
}

/// Decodes events for a [`Sink`].
pub(crate) struct Steps<'a> {
    sink: &'a mut dyn Sink,
    decoders: Vec<Option<Decoder>>,
    files: Vec<Option<files::Decoder>>,
    releases: Vec<Release>,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink) -> Self {
        Self {
            sink,
            decoders: Vec::new(),
            files: Vec::new(),
            releases: Vec::new(),
        }
    }

    /// Passes on the name of a disk.
    pub(super) fn disk(&mut self, disk: Disk, name: &str) {
        self.sink.disk(disk, name);
    }

    /// Checks whether the trace has the events that are needed.
    pub(super) fn check(&mut self, reader: &Reader) -> Result<()> {
        let kernels = several::kernels(reader);
        let has = |need: Need| match need {
            Need::AllCalls => several::has_all_calls(reader, &kernels),
            Need::Always(_) => several::in_all(reader, &kernels, &|class| need.has(class)),
            Need::Files => files::are_shown(reader),
            Need::NoVectors => several::has_no_vectors(reader, &kernels),
            need => reader.classes().any(|class| need.has(class)),
        };
        self.sink.begin(&has)
    }
}

impl Decoder {
    fn step<'a>(&'a self, event: &lt_ctf::Event<'a>, release: Release) -> Option<Step<'a>> {
        let unsigned = |field| event.unsigned(field);
        let signed = |field| match event.signed(field) {
            Some(number) => Some(number),
            None => event.unsigned(field).map(u64::cast_signed),
        };
        Some(match &self.form {
            Form::Known(kind) => Step::Known(kind.what(event, release)?),
            Form::New(kind) => match kind.what(event, release)? {
                What::Wakeup { tid, name, target } => Step::New { tid, name, target },
                other => Step::Known(other),
            },
            Form::Return(call, result) => Step::Return {
                call: call.as_ref().map(String::as_bytes),
                result: result.and_then(signed),
            },
            Form::Block {
                stage,
                disk,
                sector,
                sectors,
                operation,
                error,
            } => {
                let bits = operation.and_then(|field| match event.unsigned(field) {
                    Some(bits) => Some(of_bits(bits)),
                    None => event.bytes(field).map(of_letters),
                });
                let error = error.and_then(signed);
                Step::Block(Block {
                    stage: *stage,
                    disk: Disk(u32::try_from(unsigned(*disk)?).ok()?),
                    // A request without a position has the position `u64::MAX` at its completion.
                    sector: unsigned(*sector).filter(|s| *s != u64::MAX).unwrap_or(0),
                    sectors: unsigned(*sectors)?,
                    operation: bits.unwrap_or(Operation::Other),
                    failed: error.is_some_and(|error| error != 0),
                })
            }
            Form::Work {
                stage,
                work,
                function,
                workqueue,
            } => Step::Work(Work {
                stage: *stage,
                work: unsigned(*work)?,
                function: function.and_then(unsigned),
                workqueue: workqueue.and_then(|field| event.bytes(field)),
            }),
            Form::Contended(lock, flags) => Step::Contended {
                lock: unsigned(*lock)?,
                flags: u32::try_from(unsigned(*flags)?).ok()?,
            },
            Form::Acquired(lock) => Step::Acquired {
                lock: unsigned(*lock)?,
            },
            Form::Reclaims(kind) => Step::Reclaims(*kind),
            Form::Reclaimed(kind) => Step::Reclaimed(*kind),
            Form::Packet {
                stage,
                skb,
                device,
                len,
                result,
            } => Step::Packet(Packet {
                stage: *stage,
                skb: unsigned(*skb)?,
                device: device
                    .and_then(|field| event.bytes(field))
                    .unwrap_or_default(),
                len: len.and_then(unsigned).unwrap_or(0),
                result: result.and_then(signed).unwrap_or(0),
            }),
            Form::Disk(..) => return None,
        })
    }
}

impl Beside for Steps<'_> {
    fn begin(&mut self, reader: &Reader) {
        let with_processes = self.sink.needs_processes();
        let decoder = |class: &Class| {
            Some(Decoder {
                form: form(class)?,
                tid: current(class),
                process: process(class).filter(|_| with_processes),
            })
        };
        self.decoders = reader.classes().map(decoder).collect();
        if self.sink.needs_files() {
            self.files = files::decoders(reader);
        }
        self.releases = several::releases(reader);
    }

    fn see(&mut self, time: u64, event: &lt_ctf::Event<'_>) {
        let class = event.class_index();
        let decoder = self.decoders.get(class).and_then(Option::as_ref);
        if let Some(Form::Disk(named)) = decoder.map(|decoder| &decoder.form) {
            if let Some((disk, name)) = named.disk(event) {
                self.sink.disk(disk, &name);
            }
            return;
        }
        let release = self.releases.get(event.trace()).copied().unwrap_or(NEW);
        let file = self.files.get(class).and_then(Option::as_ref);
        let file = file.and_then(|decoder| decoder.event(event));
        let step = decoder.and_then(|decoder| decoder.step(event, release));
        let Some(step) = step.or_else(|| file.map(|_| Step::File)) else {
            return;
        };
        let number = |field| i32::try_from(event.signed(field)?).ok();
        let process = decoder.and_then(|decoder| decoder.process);
        self.sink.see(&Seen {
            time,
            cpu: event.cpu().unwrap_or(0),
            tid: decoder.and_then(|decoder| decoder.tid).and_then(number),
            process: process.and_then(|(tid, process)| number(tid).zip(number(process))),
            file,
            step,
        });
    }

    fn lost(&mut self, time: u64, cpu: u32, until: u64) {
        self.sink.lost(time, cpu, until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_bits_name_the_operation() {
        for (letters, bits, operation) in [
            (&b"R"[..], 1 << 2, Operation::Read),
            (b"RA", 1 << 2 | 1 << 3, Operation::Read),
            (b"WS", 1 | 1 << 5, Operation::Write),
            (b"FWFS", 1 | 1 << 5 | 1 << 9 | 1 << 10, Operation::Write),
            (b"DS", 1 << 1 | 1 << 5, Operation::Discard),
            (b"FF", 1 << 8 | 1 << 10, Operation::Flush),
            (b"N", 0, Operation::Other),
            (b"WZ", 0, Operation::Other),
        ] {
            assert_eq!((of_letters(letters), of_bits(bits)), (operation, operation));
        }
    }
}
