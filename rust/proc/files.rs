// SPDX-License-Identifier: GPL-2.0

//! The tree under /proc/latency_tracker. Documentation/ABI/testing describes each file.

use crate::{
    alert::stream::{Alerts, AlertsFile, WakeupFile},
    control::{self, Fault},
    engine::{
        platform::Platform,
        profile::{Span, WINDOWS},
    },
    hwnoise::{self, Found, Plan},
    instance::{
        profile,
        settings::set_param,
        work::{Cookie, Work, COOKIE_MAX},
        Instance, Shown, Table,
    },
    measure::Measure,
    proc::registry::{Files, Registry, Works},
    sys::bindings::UTS_RELEASE,
    sys::procfs::{Dir, File, Lines, Listing, Query, Records, Sink, Text, MESSAGE_MAX, WRITE_MAX},
    sys::{assumptions, fprobe, interrupts, periodic, platform::Kernel, tracepoint},
    trackers, //
};
use core::{ffi::CStr, ops::Deref};
use kernel::{
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    str::CString,
    sync::Arc, //
};

/// Creates the files of the module. May sleep; a failure leaves nothing behind.
pub(crate) fn root_files(
    dir: &Arc<Dir>,
    all: &Arc<Alerts>,
    registry: &Arc<Registry>,
    works: &Arc<Works>,
    measure: Option<Arc<Measure>>,
) -> Result<Files> {
    let mut files = Files::new();
    let mut add = |file: Result<File>| -> Result { files.add(file?) };
    add(dir.text(c"version", false, VersionFile))?;
    add(dir.text(c"trackers", false, TrackersFile))?;
    add(dir.text(c"stats", false, Printed(all.clone(), Alerts::show_stats)))?;
    add(dir.stream(c"wakeup", WakeupFile(all.clone())))?;
    add(dir.stream(c"alerts", AlertsFile(all.clone())))?;
    add(dir.text(c"control", true, ControlFile(registry.clone())))?;
    add(dir.sink(c"work_begin", MarkFile(works.clone(), Mark::Begin)))?;
    add(dir.sink(c"work_done", MarkFile(works.clone(), Mark::Done)))?;
    add(dir.query(c"hwnoise", HwnoiseFile))?;
    if let Some(measure) = measure {
        add(dir.text(c"measure", false, Printed(measure, Measure::show)))?;
    }
    Ok(files)
}

/// Creates the folder of an instance. May sleep; a failure leaves nothing behind.
pub(crate) fn instance_files(
    name: &CStr,
    parent: &Arc<Dir>,
    gid: Option<u32>,
    instance: &Arc<dyn Instance>,
) -> Result<Files> {
    let dir = Dir::new(name, Some(parent.clone()), gid)?;
    let mut files = Files::new();
    let mut add = |file: Result<File>| -> Result { files.add(file?) };
    let params = instance.kind().params.iter().enumerate();
    for (at, param) in params.filter(|(at, _)| instance.shows(*at)) {
        let name = CString::try_from_fmt(fmt!("{}", param.name))?;
        let file = ParamFile {
            instance: instance.clone(),
            at,
        };
        add(dir.text(&name, !param.fixed, file))?;
    }
    // The files are removed in reverse order, also if a later file cannot be created. So while
    // `stats` can be read, `created` exists, and shows which instance of this name has these
    // counters; and `labels`, the profile or the table is missing only if the instance has none.
    add(dir.text(c"created", false, CreatedFile(Kernel::now())))?;
    if instance.has_labels() {
        add(dir.text(c"labels", false, LabelsFile(instance.clone())))?;
    }
    if let Some(profile) = instance.profile() {
        for (name, span) in PROFILES {
            let profile = profile.clone();
            // A write to this file resets the profile.
            let resets = span == Span::SinceReset;
            add(dir.text(name, resets, ProfileFile { profile, span }))?;
        }
    }
    if let Some((name, table)) = instance.table() {
        add(dir.text(name, false, Printed(table, <dyn Table>::show)))?;
    }
    let shown = |print| Printed(instance.clone(), print);
    add(dir.text(c"histogram", false, shown(<dyn Instance>::show_histogram)))?;
    add(dir.text(c"stats", false, shown(<dyn Instance>::show_stats)))?;
    add(dir.listing(c"pending", PendingFile(instance.clone())))?;
    if let Some(work) = instance.work() {
        add(dir.sink(c"work", WorkFile(work)))?;
    }
    add(dir.stream(c"wakeup", WakeupFile(instance.alerts())))?;
    add(dir.stream(c"alerts", AlertsFile(instance.alerts())))?;
    Ok(files)
}

/// Logs the fault in the kernel log, and returns the error for the writer.
fn refuse(fault: &Fault<'_>) -> Error {
    pr_warn!("{fault}\n");
    fault.error
}

/// Returns the written text, without the newline that `echo` adds.
fn line_of(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\n").unwrap_or(text)
}

const TOO_LONG: Fault<'static> = Fault {
    error: EINVAL,
    expected: "expected at most 4096 bytes in one write",
    word: b"...",
    param: None,
};
const _: () = assert!(WRITE_MAX == 4096);

struct VersionFile;

impl Text for VersionFile {
    fn show(&self, out: &SeqFile) -> Result {
        let release = CStr::from_bytes_until_nul(UTS_RELEASE)
            .ok()
            .and_then(|release| release.to_str().ok())
            .unwrap_or("?");
        seq_print!(
            out,
            "latency_tracker {} abi=1 kernel={release}\n",
            crate::VERSION
        );
        Ok(())
    }
}

struct TrackersFile;

impl Text for TrackersFile {
    fn show(&self, out: &SeqFile) -> Result {
        for kind in trackers::ALL {
            seq_print!(out, "{}: {}", kind.name, kind.help);
            // Not a line of its own, which an older command would refuse.
            if let Some(lacks) = kind.lacks {
                seq_print!(out, "; lacks: {lacks}");
            }
            seq_print!(out, "\n");
            if let Some(missing) = (kind.missing)() {
                let name = missing.to_str().unwrap_or("?");
                let why = if assumptions::is_one(missing) {
                    "this kernel violates an assumption:"
                } else if fprobe::missing() == Some(missing) {
                    "this kernel has no"
                } else if tracepoint::fits(missing) {
                    "this kernel has no tracepoint"
                } else {
                    "this kernel passes other arguments to tracepoint"
                };
                seq_print!(out, "  unavailable: {why} {name}\n");
            }
            for param in kind.params {
                seq_print!(
                    out,
                    "  {}={} {}: {}{}\n",
                    param.name,
                    param.display(param.default.into()),
                    param.kind_name(),
                    param.help,
                    if param.fixed {
                        " (at creation only)"
                    } else {
                        ""
                    }
                );
            }
        }
        for absent in trackers::ABSENT {
            seq_print!(out, "{}: not part of this module\n", absent.name);
            if absent.lacks.is_empty() {
                seq_print!(out, "  unavailable: left out by TRACKERS= of the build\n");
                continue;
            }
            seq_print!(out, "  unavailable: this kernel is built without");
            for option in absent.lacks {
                seq_print!(out, " {option}");
            }
            seq_print!(out, "\n");
        }
        Ok(())
    }
}

/// A read-only file, whose content the function prints.
struct Printed<T: Deref>(T, fn(&T::Target, &SeqFile));

impl<T: Deref + Send + Sync + 'static> Text for Printed<T> {
    fn show(&self, out: &SeqFile) -> Result {
        let Self(printed, print) = self;
        print(printed, out);
        Ok(())
    }
}

struct ControlFile(Arc<Registry>);

impl Text for ControlFile {
    fn show(&self, out: &SeqFile) -> Result {
        self.0.show(out);
        Ok(())
    }

    fn write(&self, text: &[u8]) -> Result {
        if line_of(text).is_empty() {
            return Err(refuse(&control::fault(
                EINVAL,
                "expected NAME TRACKER [key=value ...] or -NAME",
                text,
            )));
        }
        line_of(text)
            .split(|&byte| byte == b'\n')
            .try_for_each(|line| self.0.execute(line))
            .map_err(|fault| refuse(&fault))
    }

    fn too_long(&self) -> Error {
        refuse(&TOO_LONG)
    }
}

struct ParamFile {
    instance: Arc<dyn Instance>,
    at: usize,
}

impl Text for ParamFile {
    fn show(&self, out: &SeqFile) -> Result {
        seq_print!(out, "{}\n", Shown(&*self.instance, self.at));
        Ok(())
    }

    fn write(&self, text: &[u8]) -> Result {
        set_param(&*self.instance, self.at, line_of(text)).map_err(|fault| refuse(&fault))
    }

    fn too_long(&self) -> Error {
        refuse(&TOO_LONG)
    }
}

/// The file with the time at which the instance was created.
struct CreatedFile(u64);

impl Text for CreatedFile {
    fn show(&self, out: &SeqFile) -> Result {
        seq_print!(out, "{}\n", self.0);
        Ok(())
    }
}

struct LabelsFile(Arc<dyn Instance>);

impl Text for LabelsFile {
    fn show(&self, out: &SeqFile) -> Result {
        self.0.show_labels(out)
    }
}

struct PendingFile(Arc<dyn Instance>);

impl Listing for PendingFile {
    fn open(&self) -> Result<KBox<dyn Records>> {
        self.0.pending()
    }
}

/// The kinds of marks of work.
#[derive(Clone, Copy)]
enum Mark {
    Begin,
    Done,
}

/// A top-level file, where work is marked for all instances: the message is the cookie.
struct MarkFile(Arc<Works>, Mark);

impl Sink for MarkFile {
    fn take(&self, message: &[u8]) -> Result {
        let cookie = Cookie::new(line_of(message))?;
        match self.1 {
            Mark::Begin => self.0.begin(cookie),
            Mark::Done => self.0.done(cookie),
        }
    }
}

/// A file of one instance, where work is marked: the message is `begin COOKIE` or `done COOKIE`.
struct WorkFile(Arc<dyn Work>);

const BEGIN: &[u8] = b"begin ";
const DONE: &[u8] = b"done ";
// A message that is longer than the maximum has a cookie that is too long.
const _: () = assert!(BEGIN.len() + COOKIE_MAX + 1 < MESSAGE_MAX);

impl Sink for WorkFile {
    fn take(&self, message: &[u8]) -> Result {
        let line = line_of(message);
        if let Some(cookie) = line.strip_prefix(BEGIN) {
            self.0.begin(Cookie::new(cookie)?)
        } else if let Some(cookie) = line.strip_prefix(DONE) {
            self.0.done(Cookie::new(cookie)?)
        } else {
            Err(EINVAL)
        }
    }
}

/// The file `hwnoise`. For each question, `LENGTH THRESHOLD` in nanoseconds, it runs one slice of
/// the measuring loop with interrupts off. Each open file runs its own slices: several CPUs can
/// measure in parallel.
struct HwnoiseFile;

impl Query for HwnoiseFile {
    fn answer(&self, question: &[u8], out: &mut KVec<u8>) -> Result {
        let plan = Plan::parse(line_of(question))?;
        let mut bins = KVec::from_elem(0, hwnoise::BINS, GFP_KERNEL)?;
        let mut found = Found::new(&mut bins);
        interrupts::off(|| found.measure(plan, Kernel::now));
        // On a kernel that does not preempt itself, lets waiting tasks run before the results are
        // printed.
        periodic::cond_resched();
        found.print(&mut Lines(out)).map_err(|_| ENOMEM)
    }
}

/// The files of a profile.
const PROFILES: [(&CStr, Span); 2 + WINDOWS.len()] = [
    (c"profile", Span::SinceReset),
    (c"profile_previous", Span::Previous),
    (c"profile_1min", Span::Window(0)),
    (c"profile_5min", Span::Window(1)),
    (c"profile_15min", Span::Window(2)),
];
const _: () = assert!(matches!(WINDOWS, [1, 5, 15]));

struct ProfileFile {
    profile: Arc<profile::InstanceProfile>,
    span: Span,
}

impl Text for ProfileFile {
    fn show(&self, out: &SeqFile) -> Result {
        self.profile.show(self.span, out);
        Ok(())
    }

    fn write(&self, text: &[u8]) -> Result {
        // The file mode stops most users, but not root.
        if self.span != Span::SinceReset {
            return Err(EPERM);
        }
        if line_of(text) != b"reset" {
            return Err(refuse(&control::fault(EINVAL, "expected reset", text)));
        }
        self.profile.reset();
        Ok(())
    }

    fn too_long(&self) -> Error {
        refuse(&TOO_LONG)
    }
}
