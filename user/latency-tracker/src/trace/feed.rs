// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Feeds the events of a trace into the model.

mod parts;

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::vec::IntoIter;

use anyhow::{Result, bail};
use lt_common::out;
use lt_ctf::{Class, Item, Missing, Reader};
use lt_model::why::Search;
use lt_model::{Builder, Disk, Event, Kept, Model, Release, What};
use lt_proc::Alert;
use lt_proc::evidence::Evidence;

use super::beside::Beside;
use super::evidence;
use super::files::{self, Decoder};
use super::identity;
use super::kinds::{Kind, Named, kind};
use super::several::{self, Gap, NEW, SECOND, nanoseconds};
use super::steps::{Need, Sink, Steps};
use super::told::{Saved, Told};
use super::when::When;

pub(crate) use self::parts::read_in_parts;

/// Number of events between two checks of the clock and the stop flag.
const OFTEN: u64 = 1 << 16;

/// The part of the trace that the model keeps.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keep {
    All,
    /// Drops intervals that ended before this time.
    Since(When),
    Nothing,
}

/// Reads a trace to its end, and passes its events to `beside` as well; fails once `interrupted` is set. Everything that
/// ended before `from` is dropped. If only the thread with the number `only` is explained, less is kept of the others:
/// see [`Builder::explains_only`].
pub(crate) fn read(
    trace: &Path,
    from: Option<When>,
    only: Option<i32>,
    interrupted: &AtomicBool,
    mut beside: Option<&mut dyn Beside>,
) -> Result<Told> {
    let mut source = Source::open(trace, from.map_or(Keep::All, Keep::Since))?;
    if let Some(beside) = &mut beside {
        beside.begin(&source.reader);
    }
    let mut builder = Builder::new();
    if let Some(only) = only {
        builder.explains_only(only);
    }
    let mut builder = source.pass(builder, interrupted, beside)?;
    if only.is_some_and(|only| builder.has_several(only)) {
        // The model of the first pass is dropped before the second.
        drop(builder);
        // Unreadable events have already been reported.
        let _ = source.reader.seek(i64::MIN);
        builder = source.pass(Builder::new(), interrupted, None)?;
    }
    source.end(builder.finish())?.with_threads(trace)
}

/// Reads a trace to its end, passes its events to `beside` as well, and adds facts from `evidence` and `alerts` to the
/// model. A caller that needs no threads can read a trace without sched_switch.
pub(crate) fn read_beside(
    trace: &Path,
    keep: Keep,
    evidence: &Evidence,
    alerts: &[Alert],
    interrupted: &AtomicBool,
    mut beside: Option<&mut dyn Beside>,
) -> Result<Told> {
    let mut source = Source::open(trace, keep)?;
    if let Some(beside) = &mut beside {
        beside.begin(&source.reader);
    }
    let mut builder = Builder::new();
    let functions = evidence.functions.iter();
    builder.has_functions(functions.map(|of| (of.address, of.name.as_str())));
    for task in &evidence.tasks {
        if let Some(cpus) = task.cpus.as_deref().and_then(cpus_of) {
            builder.runs_on(task.tid, &cpus);
        }
    }
    for alert in alerts {
        if let (true, Ok(tid)) = (has_locked(alert), i32::try_from(alert.tid)) {
            builder.locks(tid, alert.start(), alert.time);
        }
    }
    let mut builder = source.pass(builder, interrupted, beside)?;
    // Replaces the names in the trace.
    builder.has_disks(evidence::disks(evidence));
    source.end(builder.finish())
}

/// Whether the alert is about a `futex` call that waited for a lock with priority inheritance and acquired it.
fn has_locked(alert: &Alert) -> bool {
    let number = |key| {
        let text = alert.fields.text(key)?;
        u64::from_str_radix(text.strip_prefix("0x").unwrap_or(&text), 16).ok()
    };
    let op = number("arg1").and_then(|op| u32::try_from(op).ok());
    let is = |key, value| alert.fields.text(key).is_some_and(|text| text == value);
    let is_lock = op.is_some_and(lt_model::waits_for_pi_lock);
    alert.tracker == "syscall" && is("call", "futex") && is_lock && number("ret") == Some(0)
}

/// Parses a list of CPUs as in `/proc/PID/status`: `0-2,5`.
fn cpus_of(list: &str) -> Option<Vec<u32>> {
    /// Maximum number of CPUs: a range is cut off after this many, and a list with more is invalid.
    const MOST: usize = 8192;
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        cpus.extend((first..=last).take(MOST));
    }
    (cpus.len() <= MOST).then_some(cpus)
}

/// Reads a trace with at most `limit` bytes for the model. If the complete model is larger, the first pass keeps only
/// the waits and their wakers; the search that `search` returns finds the parts that are needed, and a second pass
/// reads them. The first pass also passes the events to `beside`.
pub(crate) fn read_within<B: Beside>(
    limit: usize,
    trace: &Path,
    from: Option<When>,
    interrupted: &AtomicBool,
    beside: &mut B,
    search: impl FnOnce(&Model, &B) -> Result<Search>,
) -> Result<Told> {
    let mut source = Source::open(trace, from.map_or(Keep::All, Keep::Since))?;
    beside.begin(&source.reader);
    let mut builder = Builder::new();
    builder.limit(limit);
    let builder = source.pass(builder, interrupted, Some(&mut *beside))?;
    if !source.told.switches {
        return source.end(builder.finish())?.with_threads(trace);
    }
    let builder = match builder.kept() {
        Kept::All => builder,
        Kept::Nothing(bytes) => bail!(too_little(limit, bytes, "begin later, with --from")),
        Kept::Waits => {
            let model = builder.finish();
            let wanted = search(&model, beside)?.all(&model);
            drop(model);
            let mut builder = Builder::new();
            builder.limit(limit);
            builder.keep_only(wanted);
            // Unreadable events have already been reported.
            let _ = source.reader.seek(i64::MIN);
            let builder = source.pass(builder, interrupted, None)?;
            if let Kept::Nothing(bytes) = builder.kept() {
                bail!(too_little(
                    limit,
                    bytes,
                    "ask for a shorter time, with --from and --to"
                ));
            }
            builder
        }
    };
    source.end(builder.finish())
}

/// Advice about a limit that is too low.
fn too_little(limit: usize, needed: usize, or: &str) -> String {
    const MIB: usize = 1 << 20;
    format!(
        "{} of memory is not enough: set --max-memory {}M, or {or}",
        out::bytes(limit as u64),
        needed.div_ceil(MIB)
    )
}

/// Reads a trace for tables, without a model. Reports to `sink` where events of `needs` are missing.
pub(crate) fn scan(
    trace: &Path,
    needs: &[Need],
    interrupted: &AtomicBool,
    sink: &mut dyn Sink,
) -> Result<Told> {
    let each: Vec<_> = needs
        .iter()
        .map(|need| |class: &Class| need.has(class))
        .collect();
    let has: Vec<&dyn Fn(&Class) -> bool> = each.iter().map(|has| has as _).collect();
    let mut source = Source::open_for(trace, Keep::Nothing, &has)?;
    let mut steps = Steps::new(sink);
    steps.check(&source.reader)?;
    let mut dark = several::dark(&source.reader, &source.kernels, &has);
    let between = source.told.gaps.iter();
    dark.extend(between.map(|gap| (gap.from, gap.cpu, gap.until)));
    dark.sort_unstable();
    let mut dark = dark.into_iter().peekable();
    steps.begin(&source.reader);
    let frequencies = source.frequencies.clone();
    let done = source.each(interrupted, |told, got| {
        match got {
            Got::Event(event) => {
                told.events += 1;
                let frequency = frequencies.get(event.trace()).copied().unwrap_or(SECOND);
                let time = nanoseconds(event.cycles(), frequency);
                // A gap from 0 on, before a stream starts, precedes all events, even one at time 0.
                let is_before = |(from, ..): &(u64, u32, u64)| *from < time || *from == 0;
                while let Some((from, cpu, until)) = dark.next_if(is_before) {
                    steps.lost(from, cpu, until);
                }
                steps.see(time, event);
            }
            Got::Lost {
                time, cpu, until, ..
            } => steps.lost(time, cpu, until),
        }
        ControlFlow::Continue(())
    });
    source.line.clear();
    done?;
    for (disk, name) in &source.disks {
        steps.disk(*disk, name);
    }
    source.end(Model::default())
}

/// An item of a trace.
enum Got<'a> {
    Event(&'a lt_ctf::Event<'a>),
    /// Events of a CPU are missing between two times, ns.
    Lost {
        time: u64,
        cpu: u32,
        until: u64,
        kind: Missing,
    },
}

/// A pass through the events of a trace.
struct Pass {
    builder: Builder,
    /// The gaps between traces that are still to come.
    gaps: Peekable<IntoIter<Gap>>,
    /// Number of events fed into the builder.
    fed: u64,
    /// Threads that existed before the trace: perf records them at time 0.
    found: BTreeMap<i32, Vec<u8>>,
    /// Names of disks in the trace.
    disks: BTreeMap<Disk, String>,
}

/// A trace that is being read.
struct Source {
    keep: Keep,
    reader: Reader,
    kinds: Vec<Option<Kind>>,
    /// For each trace: whether a kernel recorded it, which kernel, and the frequency of its clock.
    kernels: Vec<bool>,
    releases: Vec<Release>,
    frequencies: Vec<u64>,
    /// Names of disks in the `evidence.json` of the capture. They replace the names in the trace, in which a disk of the
    /// device mapper is `dm-0`.
    disks: BTreeMap<Disk, String>,
    line: Line,
    begin: Instant,
    told: Told,
}

impl Source {
    fn open(trace: &Path, keep: Keep) -> Result<Self> {
        Self::open_for(trace, keep, &[&several::tells_who_runs])
    }

    /// Opens a trace for these events.
    fn open_for(trace: &Path, keep: Keep, has: &[&dyn Fn(&Class) -> bool]) -> Result<Self> {
        let begin = Instant::now();
        let reader = Reader::open(trace)?;
        let kernels = several::kernels(&reader);
        let mut gaps = Vec::new();
        for has in has {
            gaps.extend(several::check(trace, &reader, &kernels, has)?);
        }
        gaps.sort_by_key(|gap| (gap.from, gap.cpu, gap.until));
        gaps.dedup();
        let kinds: Vec<_> = reader.classes().map(kind).collect();
        let epoch = identity::epoch_of_monotonic(&reader);
        let evidence = evidence::read(trace)?.unwrap_or_default();
        Ok(Self {
            keep,
            kernels,
            disks: evidence::disks(&evidence).collect(),
            releases: several::releases(&reader),
            frequencies: several::frequencies(&reader),
            reader,
            line: Line::default(),
            begin,
            told: Told {
                model: Model::default(),
                switches: false,
                wakings: kinds.iter().flatten().any(Kind::is_waking),
                wakeups: kinds.iter().flatten().any(Kind::is_wakeup),
                calls: kinds.iter().flatten().any(Kind::is_call),
                events: 0,
                lost: 0,
                packets: 0,
                damaged: 0,
                grew: false,
                gaps,
                fault: None,
                took: Duration::ZERO,
                epoch,
                saved: Saved::Trace(trace.to_path_buf()),
            },
            kinds,
        })
    }

    /// Returns the result.
    fn end(mut self, model: Model) -> Result<Told> {
        if self.told.events == 0
            && let Some(fault) = self.told.fault
        {
            return Err(fault.into());
        }
        self.told.model = model;
        self.told.took = self.begin.elapsed();
        Ok(self.told)
    }

    /// Feeds all available events into the builder.
    fn pass(
        &mut self,
        builder: Builder,
        interrupted: &AtomicBool,
        mut beside: Option<&mut dyn Beside>,
    ) -> Result<Builder> {
        let mut pass = self.start(builder);
        let files = files::decoders(&self.reader);
        if !files.is_empty() {
            let (begin, end) = files::shown(&self.reader, &self.kernels);
            pass.builder.has_files(begin, end);
        }
        self.go_on(&mut pass, &files, interrupted, |_, time, event| {
            if let Some(beside) = &mut beside {
                beside.see(time, event);
            }
            ControlFlow::Continue(())
        })?;
        pass.disks.extend(self.disks.clone());
        pass.builder.has_disks(pass.disks);
        Ok(pass.builder)
    }

    /// Returns a pass at the start of the trace.
    fn start(&self, mut builder: Builder) -> Pass {
        if several::has_all_calls(&self.reader, &self.kernels) {
            builder.has_all_calls();
        }
        for events in several::missing(&self.reader, &self.kernels) {
            builder.has_no(events);
        }
        if self.kinds.iter().flatten().any(Kind::is_sent_to_itself) {
            builder.has_all_vectors();
        }
        for (cpu, begin, end) in
            several::streams(&self.reader, &self.kernels, &several::tells_who_runs)
        {
            builder.has_stream(cpu, begin, end);
        }
        Pass {
            builder,
            gaps: self.told.gaps.clone().into_iter().peekable(),
            fed: 0,
            found: BTreeMap::new(),
            disks: BTreeMap::new(),
        }
    }

    /// Feeds the next events of the trace into the builder of a pass. Before each event, calls `before` with its time,
    /// ns, and the event; ends without the event if `before` breaks.
    fn go_on(
        &mut self,
        pass: &mut Pass,
        files: &[Option<Decoder>],
        interrupted: &AtomicBool,
        mut before: impl FnMut(&Pass, u64, &lt_ctf::Event<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let named: Vec<_> = self.reader.classes().map(Named::of).collect();
        let keep = self.keep;
        let kinds = std::mem::take(&mut self.kinds);
        let (releases, frequencies) = (self.releases.clone(), self.frequencies.clone());
        let done = self.each(interrupted, |told, got| {
            let event = match got {
                Got::Event(event) => event,
                Got::Lost {
                    time,
                    cpu,
                    until,
                    kind,
                } => {
                    let what = match kind {
                        Missing::Events => What::Lost { until },
                        Missing::Packets => What::NoPackets { until },
                        Missing::Rest => What::Damaged { until },
                    };
                    pass.builder.feed(&Event { time, cpu, what });
                    return ControlFlow::Continue(());
                }
            };
            let of = event.trace();
            let frequency = frequencies.get(of).copied().unwrap_or(SECOND);
            let time = nanoseconds(event.cycles(), frequency);
            before(pass, time, event)?;
            told.events += 1;
            let cpu = event.cpu().unwrap_or(0);
            let file = files.get(event.class_index()).and_then(Option::as_ref);
            let file = file.and_then(|decoder| decoder.event(event));
            let kind = kinds.get(event.class_index());
            let Some(kind) = kind.and_then(Option::as_ref) else {
                let named = named.get(event.class_index()).copied().flatten();
                if let Some((disk, name)) = named.and_then(|named| named.disk(event)) {
                    pass.disks.insert(disk, name.into_owned());
                }
                if let Some(file) = &file {
                    pass.builder.feed_file(time, cpu, file);
                }
                return ControlFlow::Continue(());
            };
            let release = releases.get(of).copied().unwrap_or(NEW);
            let Some(what) = kind.what(event, release) else {
                return ControlFlow::Continue(());
            };
            if let What::There { tid, name } = what
                && time == 0
            {
                pass.found.insert(tid, name.to_vec());
                return ControlFlow::Continue(());
            }
            if pass.fed == 0 {
                match keep {
                    Keep::All => {}
                    Keep::Since(from) => pass.builder.forget_before(from.since(time)),
                    Keep::Nothing => pass.builder.forget_before(u64::MAX),
                }
                for (tid, name) in std::mem::take(&mut pass.found) {
                    let what = What::There { tid, name: &name };
                    pass.builder.feed(&Event { time, cpu, what });
                }
            }
            // A gap comes after the events at its start, such as the last event of a packet that is cut off.
            while let Some(gap) = pass.gaps.next_if(|gap| gap.from < time) {
                let (time, cpu, until) = (gap.from, gap.cpu, gap.until);
                let what = What::Between { until };
                pass.builder.feed(&Event { time, cpu, what });
            }
            pass.fed += 1;
            told.switches |= matches!(what, What::Switch { .. });
            pass.builder.feed(&Event { time, cpu, what });
            if let Some(file) = &file {
                pass.builder.feed_file(time, cpu, file);
            }
            ControlFlow::Continue(())
        });
        self.line.clear();
        self.kinds = kinds;
        done
    }

    /// Calls `each` with the next items of the trace, in order of time, until it breaks.
    fn each(
        &mut self,
        interrupted: &AtomicBool,
        mut each: impl FnMut(&mut Told, Got<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let told = &mut self.told;
        // A second pass starts its counts from 0.
        (told.events, told.lost, told.packets, told.damaged) = (0, 0, 0, 0);
        let mut looked = 0;
        loop {
            looked += 1;
            if looked % OFTEN == 0 {
                if interrupted.load(Ordering::Relaxed) {
                    bail!("interrupted");
                }
                if self.begin.elapsed() > Duration::from_secs(1) {
                    let events = out::thousands(told.events);
                    let (done, of) = self.reader.progress();
                    let percent = u128::from(done) * 100 / u128::from(of.max(1));
                    self.line
                        .show(&format!("reading: {percent} %, {events} events"));
                }
            }
            match self.reader.next() {
                Ok(None) => break,
                Ok(Some(Item::Event(event))) => {
                    if each(told, Got::Event(&event)).is_break() {
                        break;
                    }
                }
                Ok(Some(Item::Lost(lost))) => {
                    let count = match lost.what {
                        Missing::Events => &mut told.lost,
                        Missing::Packets => &mut told.packets,
                        Missing::Rest => &mut told.damaged,
                    };
                    *count = count.saturating_add(lost.count);
                    // Streams of programs are not considered.
                    let is_kernel = self.kernels.get(lost.trace).is_some_and(|kernel| *kernel);
                    if let Some(cpu) = lost.cpu.filter(|_| is_kernel) {
                        let frequency = self.frequencies.get(lost.trace).copied();
                        let at = |cycles| nanoseconds(cycles, frequency.unwrap_or(SECOND));
                        let (time, until) = (at(lost.cycles.0), at(lost.cycles.1));
                        let got = Got::Lost {
                            time,
                            cpu,
                            until,
                            kind: lost.what,
                        };
                        if each(told, got).is_break() {
                            break;
                        }
                    }
                }
                // An unreadable event is no reason to discard the others.
                Err(fault) if told.fault.is_none() => told.fault = Some(fault),
                Err(_) => {}
            }
        }
        told.grew = self.reader.grew();
        Ok(())
    }
}

/// A progress line on a terminal.
#[derive(Default)]
struct Line {
    shown: bool,
}

impl Line {
    fn show(&mut self, text: &str) {
        if std::io::stderr().is_terminal() {
            self.shown = true;
            let _ = write!(std::io::stderr(), "\r\x1b[K  {text}");
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;
    use std::process::Command;

    use lt_model::tables::Seen;
    use lt_model::{CallFile, Events, ThreadId, Unrecorded, why};

    use super::*;

    /// Size of each packet of the trace `compact`, in bytes.
    const PACKET: usize = 16384;

    /// The traces of lt-ctf's tests.
    pub(crate) fn traces() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lt-ctf/testdata/traces.tar.xz");
        let mut tar = Command::new("tar");
        let done = tar.arg("-C").arg(dir.path()).arg("-xJf").arg(traces);
        assert!(done.status().unwrap().success());
        dir
    }

    #[test]
    fn a_list_of_cpus_is_read() {
        assert_eq!(cpus_of("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpus_of("3"), Some(vec![3]));
        assert_eq!(cpus_of("0-4294967295"), Some((0..8192).collect()));
        assert_eq!(cpus_of("0-8191,0"), None);
        assert_eq!(cpus_of("all"), None);
    }

    #[test]
    fn an_alert_of_a_call_shows_that_it_was_for_a_lock() {
        let has = |tracker: &str, rest: &str| {
            let line = format!(
                "seq=1 time=9 instance=s tracker={tracker} reason=threshold delay=5 threshold=1 cpu=0 pid=7 tid=7 \
                 comm=\"a\" {rest}"
            );
            has_locked(&Alert::parse(&line).unwrap())
        };
        assert!(has(
            "syscall",
            "call=futex number=202 arg0=0x7f arg1=0x86 ret=0"
        ));
        assert!(has(
            "syscall",
            "call=futex number=202 arg0=0x7f arg1=0xd ret=0x0"
        ));
        for other in [
            "call=futex arg0=0x7f arg1=0x80 ret=0",
            "call=futex arg0=0x7f arg1=0x86 ret=-4",
            "call=futex arg0=0x7f arg1=0x86",
            "call=read arg0=0x7f arg1=0x86 ret=0",
        ] {
            assert!(!has("syscall", other), "{other}");
        }
        assert!(!has("offcpu", "call=futex arg1=0x86 ret=0"));
    }

    fn told(trace: &Path) -> Told {
        read(trace, None, None, &AtomicBool::new(false), None).unwrap()
    }

    /// Names of disks.
    #[derive(Default)]
    struct Names(BTreeMap<Disk, String>);

    impl Sink for Names {
        fn begin(&mut self, _has: &dyn Fn(Need) -> bool) -> Result<()> {
            Ok(())
        }

        fn see(&mut self, _seen: &Seen<'_>) {}

        fn lost(&mut self, _time: u64, _cpu: u32, _until: u64) {}

        fn disk(&mut self, disk: Disk, name: &str) {
            self.0.insert(disk, name.into());
        }
    }

    #[test]
    fn a_disk_has_the_name_in_the_evidence_of_its_capture() {
        let dir = traces();
        let trace = dir.path().join("trace");
        fs::rename(dir.path().join("compact"), &trace).unwrap();
        let disk = Disk(4000 << 20);
        let named = || {
            let mut names = Names::default();
            scan(&trace, &[], &AtomicBool::new(false), &mut names).unwrap();
            let of_model = told(&trace).model.disk_name(disk).map(str::to_string);
            (of_model, names.0.remove(&disk))
        };
        assert_eq!(named(), (None, None));
        let evidence = Evidence {
            disks: vec![lt_proc::evidence::Disk {
                major: 4000,
                minor: 0,
                name: "data".into(),
            }],
            ..Evidence::default()
        };
        let text = serde_json::to_string(&evidence).unwrap();
        fs::write(dir.path().join("evidence.json"), text).unwrap();
        assert_eq!(named(), (Some("data".into()), Some("data".into())));
    }

    #[test]
    fn events_that_a_kernel_lost_are_known_if_the_trace_of_a_program_is_also_read() {
        let dir = traces();
        let alone = told(&dir.path().join("all"));
        assert!(alone.lost > 0);
        let mut gaps = alone.model.gaps();
        assert!(gaps.any(|(cpu, _, why)| why == Unrecorded::Lost(cpu)));
        let both = dir.path().join("both");
        fs::create_dir(&both).unwrap();
        for trace in ["all", "ust"] {
            fs::rename(dir.path().join(trace), both.join(trace)).unwrap();
        }
        let both = told(&both);
        assert!(both.events > alone.events);
        assert_eq!(both.model.processors, alone.model.processors);
        assert_eq!(both.model.threads, alone.model.threads);
    }

    /// The delays of a thread, and the files of the steps of its path.
    fn explained(model: &Model, id: ThreadId) -> (Vec<why::Segment>, Vec<Option<CallFile>>) {
        let (from, to) = model.span;
        let path = why::path(model, id, from, to);
        let file = |piece: &why::Piece| model.file(piece.thread, piece.begin, piece.end);
        let files = path.iter().map(file).collect();
        (why::delays(model, id, from, to), files)
    }

    fn told_of_one(trace: &Path, tid: i32) -> Model {
        let told = read(trace, None, Some(tid), &AtomicBool::new(false), None);
        told.unwrap().model
    }

    #[test]
    fn the_only_thread_that_is_explained_has_all_its_files() {
        let dir = traces();
        let trace = dir.path().join("all");
        let whole = told(&trace).model;
        let mut ids: Vec<_> = (0..whole.threads.len() as u32).map(ThreadId).collect();
        let intervals = |id: &ThreadId| whole.thread(*id).map(|thread| thread.intervals.len());
        ids.sort_by_key(|id| std::cmp::Reverse(intervals(id)));
        let mut known = 0;
        for id in ids.into_iter().take(6) {
            let tid = whole.thread(id).unwrap().tid;
            let found = explained(&told_of_one(&trace, tid), id);
            assert_eq!(found, explained(&whole, id), "{tid}");
            known += found.1.iter().flatten().count();
        }
        assert!(known > 0);
    }

    /// Thread 8 reads on CPU 0 while thread 7 runs on CPU 1. Thread 7 ends, and 8 creates another thread 7.
    #[test]
    fn a_thread_whose_number_was_used_before_has_the_files_of_its_creator() {
        const METADATA: &str = "/* CTF 1.8 */\n\
            typealias integer { size = 64; } := u64;\n\
            typealias integer { size = 32; } := u32;\n\
            typealias integer { size = 32; signed = true; } := i32;\n\
            trace { byte_order = le; };\n\
            clock { name = c; };\n\
            stream {\n\
                packet.context := struct { u64 timestamp_begin; u64 timestamp_end; u32 cpu_id; };\n\
                event.header := struct { u32 id; u64 timestamp; };\n\
            };\n\
            event { name = sched_switch; id = 0; fields := struct {\n\
                i32 prev_tid; i32 prev_state; i32 next_tid;\n\
            }; };\n\
            event { name = sched_process_fork; id = 1; fields := struct { i32 child_tid; }; };\n\
            event { name = syscall_entry_read; id = 2; fields := struct { i32 fd; }; };\n\
            event { name = syscall_exit_read; id = 3; fields := struct { i32 ret; }; };\n";
        let mut metadata = METADATA.to_string();
        // Enough system calls for a trace of all of them.
        for id in 4..204 {
            metadata += &format!("event {{ name = syscall_entry_n{id}; id = {id}; }};\n");
        }
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("metadata"), metadata).unwrap();
        let streams: [&[(u32, u64, &[i32])]; 2] = [
            &[
                (0, 10, &[0, 0, 8]),
                (2, 20, &[3]),
                (3, 30, &[1]),
                (1, 60, &[7]),
                (0, 70, &[8, 1, 7]),
                (0, 90, &[7, 1, 8]),
            ],
            &[(0, 11, &[0, 0, 7]), (0, 50, &[7, 0x10, 0])],
        ];
        for (cpu, events) in (0u32..).zip(streams) {
            let mut stream = [5u64, 100].map(u64::to_le_bytes).concat();
            stream.extend(cpu.to_le_bytes());
            for (id, time, fields) in events {
                stream.extend(id.to_le_bytes());
                stream.extend(time.to_le_bytes());
                fields.iter().for_each(|of| stream.extend(of.to_le_bytes()));
            }
            fs::write(dir.path().join(format!("stream_{cpu}")), stream).unwrap();
        }
        let whole = told(dir.path()).model;
        let ids: Vec<_> = whole.by_tid(7).collect();
        assert_eq!(ids.len(), 2);
        let found = told_of_one(dir.path(), 7);
        for id in &ids {
            assert_eq!(explained(&found, *id), explained(&whole, *id));
        }
        let (segments, _) = explained(&found, ids[1]);
        let read = Some(CallFile::Descriptor(3));
        assert!(segments[0].states.iter().any(|stay| stay.file == read));
    }

    #[test]
    fn what_is_not_recorded_is_known_from_the_metadata() {
        let dir = traces();
        let trace = dir.path().join("compact");
        let missing = |trace: &Path| {
            let model = told(trace).model;
            let all = Events::ALL.into_iter();
            all.filter(|events| !model.has(*events)).collect::<Vec<_>>()
        };
        let before = missing(&trace);
        assert!(!before.contains(&Events::Softirqs), "{before:?}");
        let file = trace.join("kernel/metadata");
        let mut bytes = fs::read(&file).unwrap();
        let name = b"irq_softirq_entry";
        let places: Vec<_> = (0..bytes.len() - name.len())
            .filter(|at| bytes[*at..].starts_with(name))
            .collect();
        assert!(!places.is_empty());
        for at in places {
            bytes[at..at + 3].copy_from_slice(b"xxx");
        }
        fs::write(&file, &bytes).unwrap();
        let after = missing(&trace);
        assert_eq!(after.len(), before.len() + 1);
        assert!(after.contains(&Events::Softirqs));
    }

    #[test]
    fn only_the_events_in_damaged_packets_are_lost_and_this_is_reported() {
        let dir = traces();
        let trace = dir.path().join("compact");
        let whole = told(&trace);
        let file = trace.join("kernel/channel_0");
        let mut bytes = fs::read(&file).unwrap();
        // These bytes include the header of an event, whose class becomes unknown.
        bytes[2 * PACKET + 8000..2 * PACKET + 9000].fill(0xff);
        fs::write(&file, &bytes).unwrap();
        let one = told(&trace);
        let said = one.caveats();
        assert!(
            said.len() == 1
                && said[0].starts_with(
                    "part of the trace cannot be read, so the result may be incomplete: "
                )
                && said[0].contains("channel_0: byte "),
            "{said:?}"
        );
        assert_eq!((one.damaged, one.model.span), (1, whole.model.span));
        let mut gaps = one.model.gaps();
        assert!(gaps.any(|(cpu, _, why)| why == Unrecorded::Damaged(cpu)));
        assert!(one.events < whole.events && one.events > whole.events * 3 / 4);
        bytes[4 * PACKET + 8000..4 * PACKET + 9000].fill(0xff);
        fs::write(&file, &bytes).unwrap();
        let said = told(&trace).caveats();
        assert!(
            said.len() == 1
                && said[0].starts_with("the ends of 2 packets of the trace cannot be read,"),
            "{said:?}"
        );
    }

    #[test]
    fn a_second_pass_counts_no_event_again() {
        let dir = traces();
        let trace = dir.path().join("compact");
        let whole = told(&trace);
        let mut twice = 0;
        for limit in (30_000..650_000).step_by(20_000) {
            let mut is_second = false;
            let search = |_: &Model, (): &()| {
                is_second = true;
                Ok(Search::default())
            };
            let interrupted = AtomicBool::new(false);
            let found = read_within(limit, &trace, None, &interrupted, &mut (), search);
            if let Ok(found) = found {
                assert_eq!(found.events, whole.events, "{limit}");
                twice += u32::from(is_second);
            }
        }
        assert!(twice > 0);
    }

    #[test]
    fn missing_packets_are_reported() {
        let dir = traces();
        let trace = dir.path().join("compact");
        assert_eq!(told(&trace).caveats(), [""; 0]);
        let file = trace.join("kernel/channel_0");
        let mut bytes = fs::read(&file).unwrap();
        bytes.drain(2 * PACKET..4 * PACKET);
        fs::write(&file, bytes).unwrap();
        let said = told(&trace).caveats();
        assert!(
            said.len() == 1 && said[0].starts_with("2 packets are missing"),
            "{said:?}"
        );
    }

    /// Completes a file once the trace has been opened.
    struct Writes<'a>(&'a Path, &'a [u8]);

    impl Beside for Writes<'_> {
        fn begin(&mut self, _: &Reader) {
            fs::write(self.0, self.1).unwrap();
        }

        fn see(&mut self, _: u64, _: &lt_ctf::Event<'_>) {}
    }

    #[test]
    fn a_trace_that_grows_while_it_is_read_is_reported() {
        let dir = traces();
        let trace = dir.path().join("compact");
        let whole = told(&trace);
        let file = trace.join("kernel/channel_0");
        let bytes = fs::read(&file).unwrap();
        // The last packet is missing, or incomplete.
        for missing in [PACKET, PACKET / 2] {
            fs::write(&file, &bytes[..bytes.len() - missing]).unwrap();
            let (interrupted, none) = (AtomicBool::new(false), Evidence::default());
            let mut writes = Writes(&file, &bytes);
            let grown = read_beside(
                &trace,
                Keep::All,
                &none,
                &[],
                &interrupted,
                Some(&mut writes),
            )
            .unwrap();
            assert_eq!(
                grown.caveats(),
                ["the trace is still being written: only the part that existed was read"]
            );
            assert!(grown.events > 0 && grown.events < whole.events);
        }
        assert_eq!(told(&trace).caveats(), [""; 0]);
    }
}
