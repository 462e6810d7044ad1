// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The process of an alert, if it still exists, and the files that it has mapped.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use lt_common::clock;
use lt_proc::Alert;
use nix::errno::Errno;
use nix::unistd::{SysconfVar, sysconf};

/// Why there are no names if the process has exited.
pub(super) const GONE: &str =
    "no names: the process has exited, and they were looked up after that";

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// When it started, in ticks since boot.
    pub(super) start: u64,
    pub(super) mappings: Vec<Mapping>,
}

/// A file that is mapped as code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    from: u64,
    to: u64,
    offset: u64,
    pub(super) file: String,
}

impl Mapping {
    pub(super) fn has(&self, address: u64) -> bool {
        (self.from..self.to).contains(&address)
    }

    /// The file offset of an address in the mapping.
    pub(super) fn offset_of(&self, address: u64) -> u64 {
        (address - self.from).saturating_add(self.offset)
    }

    /// A link to the mapped file, whatever its path leads to by now.
    pub(super) fn link(&self, pid: u64) -> PathBuf {
        format!("/proc/{pid}/map_files/{:x}-{:x}", self.from, self.to).into()
    }
}

/// Finds the process of an alert. `Err` with a sentence if it has exited, runs another program, or may not be seen.
pub(super) fn find(alert: &Alert) -> Result<Found, String> {
    let (pid, tid) = (alert.pid, alert.tid);
    let stat = read(&format!("/proc/{pid}/stat"))?;
    let start = start_in(&stat).filter(|&start| began_before(start, alert));
    let start = start.ok_or(GONE)?;
    // If the thread is gone, another thread may have executed another program.
    let comm = fs::read(format!("/proc/{pid}/task/{tid}/comm"));
    let comm = comm.map_err(|_| format!("no names: thread {tid} has exited"))?;
    let now = String::from_utf8_lossy(comm.strip_suffix(b"\n").unwrap_or(&comm));
    if now != alert.comm.text() {
        return Err(format!(
            "no names: thread {tid} has another name now, {now:?}, so it may run another program"
        ));
    }
    let maps = read(&format!("/proc/{pid}/maps"))?;
    let mappings = mappings(&maps);
    if mappings.is_empty() {
        return Err(GONE.into());
    }
    Ok(Found { start, mappings })
}

/// Reads a file of a process; `Err` with a sentence.
fn read(file: &str) -> Result<String, String> {
    match fs::read(file) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(GONE.into()),
        Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => Err(GONE.into()),
        Err(error) => Err(format!("no names: {file}: {error}")),
    }
}

/// The time at which a process started, in ticks since boot: field 22 of /proc/PID/stat. The second field is a name,
/// which may contain spaces and parentheses.
pub(crate) fn start_in(stat: &str) -> Option<u64> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}

/// The time since boot of a number of ticks.
pub(crate) fn since_boot(ticks: u64) -> Duration {
    let rate = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100) as u64;
    Duration::from_nanos(ticks.saturating_mul(1_000_000_000 / rate.max(1)))
}

/// Whether a process that started at `start` may be the alert's: true if it existed when the operation began.
pub(super) fn began_before(start: u64, alert: &Alert) -> bool {
    // The start time of a process includes suspends; the times of an alert do not.
    let start = since_boot(start).saturating_sub(clock::suspended());
    start <= Duration::from_nanos(alert.start())
}

/// The executable mappings of files.
pub(super) fn mappings(maps: &str) -> Vec<Mapping> {
    maps.lines().filter_map(mapping).collect()
}

/// Reads a line such as `55e0-55f0 r-xp 00001000 08:01 1234    /usr/bin/cat`.
fn mapping(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.trim_start().split_once(' ')?;
        rest = after;
        Some(word)
    };
    let (range, rights, offset) = (word()?, word()?, word()?);
    let (_device, _inode) = (word()?, word()?);
    let file = rest.trim_start();
    let (from, to) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (from, to, offset) = (number(from)?, number(to)?, number(offset)?);
    (rights.contains('x') && !file.is_empty()).then(|| Mapping {
        from,
        to,
        offset,
        file: file.to_string(),
    })
}
