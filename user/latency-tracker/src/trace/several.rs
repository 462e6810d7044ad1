// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Several traces that are read as one: finds the kernel of each, and whether they can be combined.
//!
//! ```text
//! kernel and program, one session     ---------------     read as one
//! chunks of a session that rotates    ----|----|-----     read as one
//! one recording after the other       -----    ------     read as one, with a gap
//! snapshots of one session            ------              refused: common events would count twice
//!                                        ------
//! two machines, or two boots of one                       refused
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use lt_common::out;
use lt_ctf::{Class, Reader, Span, Trace};
use lt_model::{Events, Release};

use super::kinds::{self, Kind};

pub(super) const SECOND: u64 = 1_000_000_000;
/// The release assumed for a trace that does not name its kernel.
pub(super) const NEW: Release = Release(6, 0);

/// For each trace, whether a kernel recorded it. LTTng marks user-space traces as such.
pub(super) fn kernels(reader: &Reader) -> Vec<bool> {
    let is = |t: &Trace| t.schema.environment("domain") != Some("ust");
    reader.traces().iter().map(is).collect()
}

/// A gap between two traces, in which nothing was recorded on a CPU. Times are in ns of the traces' clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) cpu: u32,
    pub(super) from: u64,
    pub(super) until: u64,
}

/// Refuses traces that cannot be read as one. Returns the gaps between the traces, in time order. `has` selects the
/// events that must not be missing or count twice.
pub(super) fn check(
    trace: &Path,
    reader: &Reader,
    kernels: &[bool],
    has: &dyn Fn(&Class) -> bool,
) -> Result<Vec<Gap>> {
    one_machine(trace, reader, kernels)?;
    if kernels.iter().filter(|is| **is).count() < 2 {
        return Ok(Vec::new());
    }
    let mut spans = reader.spans();
    spans.retain(|span| kernels.get(span.trace) == Some(&true) && has_some(reader, span, has));
    // The parts of one session are compared channel by channel: a channel's part may end after the next part of another
    // channel begins.
    let uuid = |span: &Span| reader.traces().get(span.trace)?.schema.uuid();
    let session = spans.first().and_then(uuid);
    let is_one = session.is_some() && spans.iter().all(|span| uuid(span) == session);
    let place = |span: &Span| (span.cpu, is_one.then_some(span.stream.0));
    spans.sort_by_key(|span| (place(span), span.cycles));
    let of_cpus: Vec<_> = spans.chunk_by(|a, b| place(a) == place(b)).collect();
    for of_cpu in &of_cpus {
        for (at, one) in of_cpu.iter().enumerate() {
            let mut later = of_cpu[at + 1..].iter();
            if let Some(other) = later.find(|other| is_twice(reader, one, other)) {
                return Err(twice(trace, reader, one, other));
            }
        }
    }
    let frequencies = frequencies(reader);
    let at = |span: &Span, cycles| {
        let frequency = frequencies.get(span.trace).copied();
        nanoseconds(cycles, frequency.unwrap_or(SECOND))
    };
    let pairs = of_cpus.iter().flat_map(|of_cpu| of_cpu.windows(2));
    let gap = |pair: &[Span]| match pair {
        [one, next] if one.trace != next.trace && !follows(reader, one, next) => Some(Gap {
            cpu: one.cpu?,
            from: at(one, one.cycles.1),
            until: at(next, next.cycles.0),
        }),
        _ => None,
    };
    let mut gaps: Vec<Gap> = pairs
        .filter_map(gap)
        .filter(|gap| gap.from < gap.until)
        .collect();
    gaps.sort_by_key(|gap| (gap.from, gap.cpu));
    Ok(gaps)
}

/// The CPUs whose streams have the events of `has`, and the time that each stream covers, in ns: from the start of
/// its first packet to the end of its last packet. Empty unless LTTng recorded all kernel traces: only LTTng starts the
/// first packet of a stream when the recording starts, and keeps one stream for each CPU.
pub(super) fn streams(
    reader: &Reader,
    kernels: &[bool],
    has: &dyn Fn(&Class) -> bool,
) -> Vec<(u32, u64, u64)> {
    let is_kernel = |trace: usize| kernels.get(trace) == Some(&true);
    let is_lttng = |trace: &Trace| {
        let tracer = environment(trace, &["tracer_name"]);
        tracer.is_some_and(|name| name.starts_with("lttng"))
    };
    let mut of_kernel = reader.traces().iter().zip(kernels).filter(|(_, is)| **is);
    if !of_kernel.all(|(trace, _)| is_lttng(trace)) {
        return Vec::new();
    }
    let frequencies = frequencies(reader);
    let mut streams = Vec::new();
    for span in reader.spans() {
        if !is_kernel(span.trace) || !has_some(reader, &span, has) {
            continue;
        }
        let (Some(cpu), (begin, end)) = (span.cpu, span.cycles) else {
            return Vec::new();
        };
        if begin >= end {
            return Vec::new();
        }
        let frequency = frequencies.get(span.trace).copied().unwrap_or(SECOND);
        streams.push((
            cpu,
            nanoseconds(begin, frequency),
            nanoseconds(end, frequency),
        ));
    }
    streams
}

/// The times at the start and at the end of the trace in which some kind of event is not recorded: start, CPU,
/// end. A CPU counts as recorded from the start of the kind that starts last to the end of the kind that ends
/// first.
pub(super) fn dark(
    reader: &Reader,
    kernels: &[bool],
    has: &[&dyn Fn(&Class) -> bool],
) -> Vec<(u64, u32, u64)> {
    let mut spans: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for has in has {
        let mut of_kind: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for (cpu, begin, end) in streams(reader, kernels, has) {
            let of_cpu = of_kind.entry(cpu).or_insert((begin, end));
            *of_cpu = (of_cpu.0.min(begin), of_cpu.1.max(end));
        }
        for (cpu, (begin, end)) in of_kind {
            let of_cpu = spans.entry(cpu).or_insert((begin, end));
            *of_cpu = (of_cpu.0.max(begin), of_cpu.1.min(end));
        }
    }
    let each = spans.into_iter();
    each.flat_map(|(cpu, (begin, end))| [(0, cpu, begin), (end, cpu, u64::MAX)])
        .collect()
}

/// Whether every system call is recorded in all kernel traces.
pub(super) fn has_all_calls(reader: &Reader, kernels: &[bool]) -> bool {
    /// With --all, a trace has a class for each system call of the kernel; with calls selected by name, it has fewer.
    const ALL_CALLS: usize = 200;
    let is_call = |class: &&Class| kinds::kind(class).is_some_and(|kind| kind.is_call());
    let has_all = |trace: &Trace| trace.schema.classes().filter(is_call).count() >= ALL_CALLS;
    let mut of_kernel = reader.traces().iter().zip(kernels).filter(|(_, is)| **is);
    of_kernel.clone().next().is_some() && of_kernel.all(|(trace, _)| has_all(trace))
}

/// Whether every kernel trace has classes of events that `has` selects.
pub(super) fn in_all(reader: &Reader, kernels: &[bool], has: &dyn Fn(&Class) -> bool) -> bool {
    let mut of_kernel = reader.traces().iter().zip(kernels).filter(|(_, is)| **is);
    of_kernel.all(|(trace, _)| trace.schema.classes().any(has))
}

/// Groups of events that at least one kernel trace lacks.
pub(super) fn missing(reader: &Reader, kernels: &[bool]) -> impl Iterator<Item = Events> {
    let has = |trace: &Trace, events| {
        let mut kinds = trace.schema.classes().filter_map(kinds::kind);
        kinds.any(|kind| kind.shows() == Some(events))
    };
    let of_kernel = reader.traces().iter().zip(kernels).filter(|(_, is)| **is);
    let is_missing =
        move |events: &Events| of_kernel.clone().any(|(trace, _)| !has(trace, *events));
    Events::ALL.into_iter().filter(is_missing)
}

/// Whether the event is a switch of threads.
pub(super) fn tells_who_runs(class: &Class) -> bool {
    matches!(kinds::kind(class), Some(Kind::Switch { .. }))
}

/// Whether a stream has classes of events that `has` selects.
fn has_some(reader: &Reader, span: &Span, has: &dyn Fn(&Class) -> bool) -> bool {
    let trace = reader.traces().get(span.trace);
    let mut classes = trace
        .into_iter()
        .flat_map(|t| t.schema.classes_of(span.stream.0));
    classes.any(has)
}

/// The numbers of the packets of two streams, if both are parts of one stream.
fn numbers(reader: &Reader, one: &Span, other: &Span) -> Option<[(u64, u64); 2]> {
    let uuid = |span: &Span| reader.traces().get(span.trace)?.schema.uuid();
    let is_one = one.stream == other.stream && uuid(one)? == uuid(other)?;
    is_one.then_some([one.numbers?, other.numbers?])
}

/// Whether two streams of a CPU contain the same events in two traces. The caller ensures that `other` does not start
/// before `one`.
fn is_twice(reader: &Reader, one: &Span, other: &Span) -> bool {
    one.trace != other.trace
        && match numbers(reader, one, other) {
            Some([one, other]) => one.0 <= other.1 && other.0 <= one.1,
            None => other.cycles.0 < one.cycles.1,
        }
}

/// Whether no packet is missing between two traces: `next` starts with the packet after the last packet of `one`.
fn follows(reader: &Reader, one: &Span, next: &Span) -> bool {
    numbers(reader, one, next).is_some_and(|[one, next]| one.1.checked_add(1) == Some(next.0))
}

#[cold]
fn twice(trace: &Path, reader: &Reader, one: &Span, other: &Span) -> anyhow::Error {
    let name = |span: &Span| {
        let trace = reader.traces().get(span.trace);
        trace.map_or_else(String::new, |trace| trace.directory.display().to_string())
    };
    let cpu = one
        .cpu
        .map_or(String::new(), |cpu| format!(" of CPU {cpu}"));
    anyhow!(
        "{}: the traces in this directory have the same events{cpu}, which would count twice: name one trace, such as {} \
         or {}",
        trace.display(),
        name(one),
        name(other)
    )
}

/// Refuses traces of several machines or several boots, whose threads and times differ.
fn one_machine(trace: &Path, reader: &Reader, kernels: &[bool]) -> Result<()> {
    let host = |trace: &Trace| environment(trace, &["hostname", "host"]).map(str::to_string);
    let boot = |trace: &Trace| trace.schema.clocks().first().and_then(|c| c.uid.clone());
    let name = |trace: &Trace| {
        let host = host(trace).map(|host| format!(" (of {})", out::printable(&host)));
        format!("{}{}", trace.directory.display(), host.unwrap_or_default())
    };
    // The first trace that names its machine, and the first that names its boot.
    let mut firsts: [Option<(&Trace, String)>; 2] = [None, None];
    let of_kernel = reader.traces().iter().zip(kernels);
    for (other, _) in of_kernel.filter(|(_, is)| **is) {
        for (first, value) in firsts.iter_mut().zip([host(other), boot(other)]) {
            let Some(value) = value else { continue };
            let (first, expected) = first.get_or_insert_with(|| (other, value.clone()));
            if *expected != value {
                bail!(
                    "{}: the traces in this directory are from several boots or machines, whose threads and times \
                     differ: name one trace, such as {} or {}",
                    trace.display(),
                    name(first),
                    name(other)
                );
            }
        }
    }
    Ok(())
}

/// The value of an environment entry, by LTTng's name or by perf's.
pub(super) fn environment<'a>(trace: &'a Trace, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| trace.schema.environment(name))
}

fn release(trace: &Trace) -> Option<Release> {
    environment(trace, &["kernel_release", "release"]).and_then(Release::parse)
}

pub(super) fn releases(reader: &Reader) -> Vec<Release> {
    reader
        .traces()
        .iter()
        .map(|t| release(t).unwrap_or(NEW))
        .collect()
}

/// Whether arm64 kernels of Linux 5.10 or later recorded all kernel traces. In these kernels, each interrupt has a
/// handler, even an interrupt that comes from no device. perf names the machine in a trace. LTTng does not, so a trace
/// of LTTng counts only if this machine is arm64 and recorded the trace since its last boot.
pub(super) fn has_no_vectors(reader: &Reader, kernels: &[bool]) -> bool {
    let this = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let is_of_this_boot = |trace: &Trace| {
        let clock = trace.schema.clocks().first();
        let boot = clock.and_then(|clock| clock.uid.as_deref());
        boot.is_some_and(|boot| boot.trim_matches('"') == this.trim_end())
    };
    let is_arm64 = |trace: &Trace| match environment(trace, &["machine"]) {
        Some(machine) => machine == "aarch64",
        None => cfg!(target_arch = "aarch64") && is_of_this_boot(trace),
    };
    let has_none = |trace: &Trace| is_arm64(trace) && release(trace) >= Some(Release(5, 10));
    let mut of_kernel = reader.traces().iter().zip(kernels).filter(|(_, is)| **is);
    of_kernel.clone().next().is_some() && of_kernel.all(|(trace, _)| has_none(trace))
}

pub(super) fn frequencies(reader: &Reader) -> Vec<u64> {
    let frequency = |t: &Trace| t.schema.clocks().first().map_or(SECOND, |c| c.frequency);
    reader.traces().iter().map(frequency).collect()
}

pub(super) fn nanoseconds(cycles: u64, frequency: u64) -> u64 {
    if frequency == SECOND {
        return cycles;
    }
    let ns = u128::from(cycles) * u128::from(SECOND) / u128::from(frequency.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use lt_model::Class::Working;
    use lt_model::{Interval, Model, State, Thread, Unrecorded};

    use crate::trace::Told;
    use crate::trace::feed::{read, tests::traces};

    use super::*;

    #[test]
    fn a_trace_is_of_arm64_only_if_that_is_known() {
        let is = |env: &str| {
            let metadata = format!(
                "/* CTF 1.8 */\n\
                 typealias integer {{ size = 64; }} := u64;\n\
                 typealias integer {{ size = 32; }} := u32;\n\
                 trace {{ byte_order = le; packet.header := struct {{ u32 stream_id; }}; }};\n\
                 env {{ {env} }};\n\
                 clock {{ name = c; }};\n\
                 stream {{ id = 0; packet.context := struct {{ u64 timestamp_begin; u64 timestamp_end; }}; }};\n\
                 event {{ name = sched_switch; id = 0; stream_id = 0; }};\n"
            );
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join("metadata"), metadata).unwrap();
            let mut packet = 0u32.to_le_bytes().to_vec();
            packet.extend(1u64.to_le_bytes());
            packet.extend(2u64.to_le_bytes());
            fs::write(dir.path().join("0"), packet).unwrap();
            let reader = Reader::open(dir.path()).unwrap();
            has_no_vectors(&reader, &kernels(&reader))
        };
        assert!(is(r#"machine = "aarch64"; release = "6.1.0-18-arm64";"#));
        for other in [
            // On Linux 5.4, some interrupts have no handler.
            r#"machine = "aarch64"; release = "5.4.0";"#,
            r#"machine = "x86_64"; release = "6.1.0";"#,
            r#"machine = "s390x"; release = "6.1.0";"#,
            r#"machine = "aarch64";"#,
            r#"tracer_name = "lttng-modules"; kernel_release = "6.1.0-18-arm64";"#,
        ] {
            assert!(!is(other), "{other}");
        }
    }

    /// Size of each packet of the trace `compact`, in bytes.
    const PACKET: usize = 16384;

    /// The trace `compact`, divided between two directories. They have `of_both` packets of each stream in common; if
    /// this is negative, as many packets are missing between them.
    fn two_parts(of_both: isize) -> tempfile::TempDir {
        let dir = traces();
        let whole = dir.path().join("compact/kernel");
        for part in ["first", "second"] {
            let part = dir.path().join("parts").join(part);
            fs::create_dir_all(&part).unwrap();
            fs::copy(whole.join("metadata"), part.join("metadata")).unwrap();
        }
        for channel in ["channel_0", "channel_1"] {
            let bytes = fs::read(whole.join(channel)).unwrap();
            let packets = bytes.len() / PACKET;
            assert!(packets >= 4, "{packets}");
            let to = packets / 2 * PACKET;
            let from = to.checked_add_signed(-of_both * PACKET as isize).unwrap();
            let parts = dir.path().join("parts");
            fs::write(parts.join("first").join(channel), &bytes[..to]).unwrap();
            fs::write(parts.join("second").join(channel), &bytes[from..]).unwrap();
        }
        dir
    }

    #[test]
    fn two_machines_are_refused_even_if_the_first_trace_names_none() {
        let dir = tempfile::tempdir().unwrap();
        for (name, environment) in [
            ("a", ""),
            ("b", "env { hostname = \"x\"; };\n"),
            ("c", "env { hostname = \"y\"; };\n"),
        ] {
            let trace = dir.path().join(name);
            fs::create_dir(&trace).unwrap();
            let text = format!(
                "/* CTF 1.8 */\ntrace {{ byte_order = le; }};\n{environment}stream {{ id = 0; }};\n"
            );
            fs::write(trace.join("metadata"), text).unwrap();
        }
        let reader = Reader::open(dir.path()).unwrap();
        let checked = check(dir.path(), &reader, &kernels(&reader), &tells_who_runs);
        let refused = checked.unwrap_err().to_string();
        assert!(
            refused.contains("b (of x) or ") && refused.ends_with("c (of y)"),
            "{refused}"
        );
    }

    fn told(trace: &Path) -> Result<Told> {
        read(trace, None, None, &AtomicBool::new(false), None)
    }

    #[test]
    fn a_stream_reaches_as_far_as_its_packets() {
        let dir = traces();
        let trace = dir.path().join("compact");
        let of = |trace: &Path| {
            let reader = Reader::open(trace).unwrap();
            let mut streams = streams(&reader, &kernels(&reader), &tells_who_runs);
            streams.sort_unstable();
            streams
        };
        let whole = of(&trace);
        assert_eq!(whole.len(), 2);
        assert!(whole.iter().all(|(_, begin, end)| begin < end));
        // The first packet is missing, as in a ring, and the last packet is cut.
        let file = trace.join("kernel/channel_0");
        let bytes = fs::read(&file).unwrap();
        fs::write(&file, &bytes[PACKET..bytes.len() - PACKET / 2]).unwrap();
        let part = of(&trace);
        assert_eq!(part[1], whole[1]);
        assert_eq!(part[0].0, whole[0].0);
        assert!(
            part[0].1 > whole[0].1 && part[0].2 < whole[0].2,
            "{part:?} {whole:?}"
        );
    }

    #[test]
    fn all_calls_are_recorded_if_there_are_classes_for_them() {
        let dir = traces();
        let has_all = |trace: &std::path::Path| {
            let reader = Reader::open(trace).unwrap();
            has_all_calls(&reader, &kernels(&reader))
        };
        for (trace, is) in [
            ("all", true),
            ("rare", false),
            ("rare-1.8", false),
            ("ust", false),
        ] {
            assert_eq!(has_all(&dir.path().join(trace)), is, "{trace}");
        }
        // The older format gives the same result, although the trace has no event.
        let old = dir.path().join("old");
        fs::create_dir(&old).unwrap();
        for (count, is) in [(199, false), (200, true)] {
            let events = (0..count).map(|n| {
                format!("event {{ name = syscall_entry_n{n}; id = {n}; stream_id = 0; }};\n")
            });
            let text = format!(
                "/* CTF 1.8 */\ntrace {{ byte_order = le; }};\nstream {{ id = 0; }};\n{}",
                events.collect::<String>()
            );
            fs::write(old.join("metadata"), text).unwrap();
            assert_eq!(has_all(&old), is, "{count}");
        }
    }

    #[test]
    fn the_chunks_of_a_recording_are_one_trace() {
        let dir = two_parts(0);
        let whole = told(&dir.path().join("compact")).unwrap();
        let parts = told(&dir.path().join("parts")).unwrap();
        assert_eq!(parts.caveats(), [""; 0]);
        assert_eq!(parts.model.threads, whole.model.threads);
        assert_eq!(parts.model.processors, whole.model.processors);
    }

    #[test]
    fn traces_with_common_events_are_refused() {
        let dir = two_parts(1);
        let refused = told(&dir.path().join("parts")).err().unwrap().to_string();
        assert!(
            refused.contains("have the same events of CPU 0, which would count twice: name")
                && refused.contains("parts/first or ")
                && refused.ends_with("parts/second"),
            "{refused}"
        );
    }

    /// Writes a trace of one CPU whose only packet ends at its last event. Each switch has its time, the thread that is
    /// switched out, and the next thread.
    fn record(to: &Path, switches: [(u64, i32, i32); 2]) {
        const METADATA: &str = "/* CTF 1.8 */\n\
            typealias integer { size = 64; } := u64;\n\
            typealias integer { size = 32; signed = true; } := i32;\n\
            trace { byte_order = le; };\n\
            clock { name = c; };\n\
            stream {\n\
                packet.context := struct { u64 timestamp_begin; u64 timestamp_end; i32 cpu_id; };\n\
                event.header := struct { u64 timestamp; };\n\
            };\n\
            event {\n\
                name = sched_switch;\n\
                fields := struct { i32 prev_tid; u64 prev_state; i32 next_tid; };\n\
            };\n";
        let mut stream: Vec<u8> = Vec::new();
        for (time, ..) in switches {
            stream.extend(time.to_le_bytes());
        }
        stream.extend(0i32.to_le_bytes());
        for (time, prev, next) in switches {
            stream.extend(time.to_le_bytes());
            stream.extend(prev.to_le_bytes());
            stream.extend(1u64.to_le_bytes());
            stream.extend(next.to_le_bytes());
        }
        fs::create_dir(to).unwrap();
        fs::write(to.join("metadata"), METADATA).unwrap();
        fs::write(to.join("stream_0"), stream).unwrap();
    }

    #[test]
    fn the_thread_of_the_last_event_does_not_run_until_the_next_trace() {
        let dir = tempfile::tempdir().unwrap();
        record(&dir.path().join("first"), [(10, 0, 1), (100, 1, 2)]);
        record(&dir.path().join("second"), [(200, 3, 4), (300, 4, 0)]);
        let told = told(dir.path()).unwrap();
        assert_eq!(told.between().collect::<Vec<_>>(), [(0, (100, 200))]);
        let ran = |tid: i32, from, to| {
            let ids = told.model.by_tid(tid);
            let threads = ids.filter_map(|id| told.model.thread(id));
            let times = threads.map(|thread| thread.time_in(Working, from, to));
            times.sum::<u64>()
        };
        assert_eq!(
            [ran(1, 0, 100), ran(2, 100, 200), ran(4, 200, 300)],
            [90, 0, 100]
        );
    }

    /// The threads, with one reason wherever their activity is not recorded.
    fn without_reasons(model: &Model) -> Vec<Thread> {
        let interval = |interval: Interval| Interval {
            state: match interval.state {
                State::Unknown(_) => State::Unknown(Unrecorded::Missing),
                state => state,
            },
            ..interval
        };
        let mut threads = model.threads.clone();
        for thread in &mut threads {
            thread.intervals = thread.intervals.iter().map(interval).collect();
        }
        threads
    }

    #[test]
    fn what_is_between_two_traces_is_not_known() {
        let dir = two_parts(-1);
        let whole = told(&dir.path().join("compact")).unwrap();
        let parts = told(&dir.path().join("parts")).unwrap();
        let said = parts.caveats();
        assert!(
            said.len() == 1
                && said[0].starts_with("nothing is recorded between the traces: on CPU ")
                && said[0].ends_with(", and 1 other time"),
            "{said:?}"
        );
        // The result is the same as if packets of one trace were missing, except for the reason.
        for channel in ["channel_0", "channel_1"] {
            let file = dir.path().join("compact/kernel").join(channel);
            let mut bytes = fs::read(&file).unwrap();
            let middle = bytes.len() / PACKET / 2 * PACKET;
            bytes.drain(middle..middle + PACKET);
            fs::write(file, bytes).unwrap();
        }
        let missing = told(&dir.path().join("compact")).unwrap();
        assert_ne!(missing.model.processors, whole.model.processors);
        assert_eq!(parts.model.processors, missing.model.processors);
        assert_eq!(
            without_reasons(&parts.model),
            without_reasons(&missing.model)
        );
        let has = |told: &Told, reason: fn(u32) -> Unrecorded| {
            let mut gaps = told.model.gaps();
            gaps.any(|(cpu, _, why)| why == reason(cpu))
        };
        assert!(has(&parts, Unrecorded::Between) && !has(&parts, Unrecorded::NoPackets));
        assert!(has(&missing, Unrecorded::NoPackets) && !has(&missing, Unrecorded::Between));
    }
}
