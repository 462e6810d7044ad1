// SPDX-License-Identifier: GPL-2.0 OR MIT

//! CTF 1.8, of older tracers and of perf, becomes CTF 2 in a directory of our own: babeltrace2 can do that.

use std::fs::{self, DirBuilder};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result, What};

/// How far a conversion is: bytes written, and about how many there will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Written so far.
    pub done: u64,
    /// What the older traces have; the new ones are of about this size.
    pub of: u64,
}

/// Told of a conversion, and able to end it.
#[derive(Default)]
pub(crate) struct Watch<'a> {
    pub(crate) progress: Option<&'a mut dyn FnMut(Progress)>,
    pub(crate) cancelled: Option<&'a AtomicBool>,
}

/// A directory that nobody else can enter (0700), and that goes with its owner.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(crate) fn new(of: &Path) -> Result<Self> {
        let wrong = |e| Error::new(of, 0, What::Io(e));
        let mut last = std::io::Error::other("no name is free");
        for attempt in 0..100u32 {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            let name = format!(
                "lt-ctf-{}-{}-{attempt}",
                std::process::id(),
                now.subsec_nanos()
            );
            let path = std::env::temp_dir().join(name);
            // Fails if there is anything of that name, be it a link.
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => last = e,
                Err(e) => return Err(wrong(e)),
            }
        }
        Err(wrong(last))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// babeltrace2 at work; it ends with its owner.
struct Running {
    child: Child,
    /// Which trace it converts.
    trace: usize,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails when it has ended, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How often somebody is told of the progress, and may end it.
const OFTEN: Duration = Duration::from_millis(200);
/// Of what babeltrace2 complains about, bytes.
const SAID: u64 = 2000;

/// Converts the traces in `directories`, as many at a time as there are processors; where the new ones are.
pub(crate) fn convert(
    directories: &[&Path],
    scratch: &Scratch,
    watch: &mut Watch<'_>,
) -> Result<Vec<PathBuf>> {
    let at_a_time = std::thread::available_parallelism().map_or(1, |n| n.get());
    let to: Vec<PathBuf> = (0..directories.len())
        .map(|trace| scratch.path.join(trace.to_string()))
        .collect();
    let of = directories.iter().map(|directory| size(directory)).sum();
    let mut waiting = directories.iter().zip(&to).enumerate();
    let mut running: Vec<Running> = Vec::new();
    let (ends, ended) = mpsc::channel();
    let mut told_at = Instant::now();
    loop {
        while running.len() < at_a_time
            && let Some((trace, (directory, to))) = waiting.next()
        {
            running.push(start(trace, directory, to, ends.clone())?);
        }
        if running.is_empty() {
            return Ok(to);
        }
        let end = ended.recv_timeout(OFTEN).ok();
        // Before the status is looked at: Ctrl-C at a terminal ends babeltrace2, too.
        if watch.cancelled.is_some_and(|c| c.load(Ordering::Relaxed)) {
            let directory = directories.first().copied().unwrap_or(&scratch.path);
            return Err(Error::new(directory, 0, What::Cancelled));
        }
        if let Some((trace, said)) = end {
            let is = |running: &Running| running.trace == trace;
            if let Some(mut done) = running.iter().position(is).map(|at| running.remove(at)) {
                let directory = directories.get(trace).copied().unwrap_or(&scratch.path);
                finish(&mut done.child, directory, &said)?;
            }
        }
        if let Some(told) = watch
            .progress
            .as_mut()
            .filter(|_| told_at.elapsed() > OFTEN)
        {
            told_at = Instant::now();
            told(Progress {
                done: size(&scratch.path).min(of),
                of,
            });
        }
    }
}

/// Has babeltrace2 begin to write a trace into `to`. When it ends, and so closes its standard error, `ends` gets the
/// number of the trace and what it complained about.
fn start(
    trace: usize,
    directory: &Path,
    to: &Path,
    ends: mpsc::Sender<(usize, Vec<u8>)>,
) -> Result<Running> {
    let wrong = |what: String| Error::new(directory, 0, What::Convert(what));
    let shown = to
        .to_str()
        .ok_or_else(|| wrong("the temporary directory has a name that is not UTF-8".into()))?;
    let quoted = shown.replace('\\', "\\\\").replace('"', "\\\"");
    let mut command = Command::new("babeltrace2");
    command
        .arg("--log-level=ERROR")
        .arg(directory)
        .arg("--component=sink.ctf.fs")
        .arg(format!("--params=path=\"{quoted}\",quiet=yes"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| {
        wrong(format!(
            "this is CTF 1.8, and babeltrace2, which converts it, cannot be run: {e}"
        ))
    })?;
    let stderr = child.stderr.take();
    let running = Running { child, trace };
    if let Some(stderr) = stderr {
        let wait = move || {
            let mut said = Vec::new();
            let mut stderr = stderr.take(SAID);
            let _ = stderr.read_to_end(&mut said);
            // The rest, too: it ends with the process.
            let _ = std::io::copy(&mut stderr.into_inner(), &mut std::io::sink());
            // The receiver is gone if the conversion was given up.
            let _ = ends.send((trace, said));
        };
        std::thread::Builder::new()
            .spawn(wait)
            .map_err(|e| wrong(format!("cannot wait for babeltrace2: {e}")))?;
    }
    Ok(running)
}

/// Whether it went well.
fn finish(child: &mut Child, directory: &Path, said: &[u8]) -> Result<()> {
    let wrong = |what: String| Error::new(directory, 0, What::Convert(what));
    let status = child
        .wait()
        .map_err(|e| wrong(format!("babeltrace2: {e}")))?;
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(said);
    Err(wrong(format!(
        "babeltrace2 cannot convert this trace ({status}): {}",
        said.trim()
    )))
}

/// The size of the files in and below a directory, as far as it can be told.
fn size(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => size(&entry.path()),
        Ok(facts) => facts.len(),
        Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}
