// SPDX-License-Identifier: GPL-2.0 OR MIT

//! CTF 1.8, of older tracers and of perf, becomes CTF 2 in a directory of our own: babeltrace2 can do that.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result, What};

/// How far a conversion is: bytes written, and about how many there will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Written so far.
    pub done: u64,
    /// What the older trace has; the new one is of about this size.
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
    traces: u32,
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
                Ok(()) => return Ok(Self { path, traces: 0 }),
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
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Fails when it has ended, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Converts the trace in `directory`; where the new one is.
pub(crate) fn convert(
    directory: &Path,
    scratch: &mut Scratch,
    watch: &mut Watch<'_>,
) -> Result<PathBuf> {
    let wrong = |what: String| Error::new(directory, 0, What::Convert(what));
    let to = scratch.path.join(scratch.traces.to_string());
    scratch.traces += 1;
    let said = scratch.path.join("said");
    let mut child = start(directory, &to, &said)?;
    let of = size(directory);
    let mut pause = Duration::from_millis(2);
    let status = loop {
        let ended = child.0.try_wait();
        // Before the status is looked at: Ctrl-C at a terminal ends babeltrace2, too.
        if watch.cancelled.is_some_and(|c| c.load(Ordering::Relaxed)) {
            return Err(Error::new(directory, 0, What::Cancelled));
        }
        match ended {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(e) => return Err(wrong(format!("babeltrace2: {e}"))),
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(250));
        if let Some(told) = watch
            .progress
            .as_mut()
            .filter(|_| pause > Duration::from_millis(200))
        {
            told(Progress {
                done: size(&to).min(of),
                of,
            });
        }
    };
    if !status.success() {
        let said = fs::read(&said).unwrap_or_default();
        let said = String::from_utf8_lossy(&said[..said.len().min(2000)]).into_owned();
        return Err(wrong(format!(
            "babeltrace2 cannot convert this trace ({status}): {}",
            said.trim()
        )));
    }
    Ok(to)
}

/// Has babeltrace2 begin to write the trace into `to`, and what it complains about into `said`.
fn start(directory: &Path, to: &Path, said: &Path) -> Result<Running> {
    let wrong = |what: String| Error::new(directory, 0, What::Convert(what));
    let file = fs::File::create(said).map_err(|e| Error::new(said, 0, What::Io(e)))?;
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
        .stderr(file);
    let cannot = |e| {
        wrong(format!(
            "this is CTF 1.8, and babeltrace2, which converts it, cannot be run: {e}"
        ))
    };
    command.spawn().map(Running).map_err(cannot)
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
