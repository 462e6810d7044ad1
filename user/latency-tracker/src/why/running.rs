// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The start times of the processes whose requests kept a disk busy, if the processes are still running.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lt_common::{clock, out, pids};
use lt_proc::Alert;

use crate::analyze::show::{Thread, together};
use crate::ustack::{since_boot, start_in};

/// Maximum number of threads that are named; the others are counted.
const NAMED: usize = 4;

/// Returns a paragraph about the threads that still exist, with the start of their processes; empty if none exists.
pub(super) fn paragraph(threads: &[Thread], alert: &Alert) -> String {
    if !pids::are_numbered_as_in_alerts(Path::new("/")) {
        return String::new();
    }
    let time = Duration::from_nanos(alert.time).saturating_add(clock::suspended());
    let sentence = sentence(Path::new("/proc"), threads, time);
    sentence.map_or_else(String::new, |sentence| {
        format!("\n{}\n", out::wrap(&sentence, 2).join("\n"))
    })
}

/// `Still running: archiver (192, 193), process start 14:01:07.` The threads existed at `time`, since boot. Threads
/// beyond [`NAMED`] are only counted.
fn sentence(proc: &Path, threads: &[Thread], time: Duration) -> Option<String> {
    let (now, boot) = (SystemTime::now(), clock::since_boot());
    let running = |thread| Some((thread, start_of(proc, thread, time)?));
    let running: Vec<(&Thread, Duration)> = threads.iter().filter_map(running).collect();
    let mut starts: Vec<(String, Vec<&Thread>)> = Vec::new();
    for &(thread, start) in running.iter().take(NAMED) {
        let start = utc(now, boot.saturating_sub(start))?;
        match starts.iter_mut().find(|(of, _)| *of == start) {
            Some((_, threads)) => threads.push(thread),
            None => starts.push((start, vec![thread])),
        }
    }
    let each = starts.into_iter().map(|(start, threads)| {
        let threads = together(threads);
        format!("{threads}, process start {start}")
    });
    let mut each: Vec<_> = each.collect();
    if let more @ 1.. = running.len().saturating_sub(NAMED) {
        each.push(format!("and {}", out::plural(more, "other thread")));
    }
    (!each.is_empty()).then(|| format!("Still running: {}.", each.join("; ")))
}

/// The time of day in UTC that was `ago` before `now`; with the date if it was a day ago or more.
fn utc(now: SystemTime, ago: Duration) -> Option<String> {
    const DAY: Duration = Duration::from_secs(86_400);
    let at = now.checked_sub(ago)?;
    let since_1970 = at.duration_since(UNIX_EPOCH).ok()?;
    Some(match ago < DAY {
        true => clock::of_day(since_1970.as_secs()),
        false => humantime::format_rfc3339_seconds(at).to_string(),
    })
}

/// The start of the process of a thread, since boot. `None` if the thread has exited, or if a thread with another name,
/// or a thread that started after `time`, has its number now.
fn start_of(proc: &Path, thread: &Thread, time: Duration) -> Option<Duration> {
    let read = |file: String| {
        let bytes = fs::read(proc.join(file)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let process = pids::process_of(proc, thread.tid.try_into().ok()?)?;
    let process = read(format!("{process}/stat"))?;
    // This file is read last: if the thread still has its number then, the other files belonged to it, too.
    let stat = read(format!("{}/stat", thread.tid))?;
    let (name, state) = stat.split_once('(')?.1.rsplit_once(')')?;
    let has_exited = state.trim_start().starts_with(['Z', 'X']);
    // The start is rounded down to a tick.
    let is_older = since_boot(start_in(&stat)?.saturating_add(1)) <= time;
    let is_same = thread.comm.as_deref() == Some(name) && is_older && !has_exited;
    let start = since_boot(start_in(&process)?);
    is_same.then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: i32, comm: &str) -> Thread {
        let comm = Some(comm.to_string());
        Thread { tid, comm }
    }

    #[test]
    fn only_threads_that_existed_then_are_shown_with_the_start_of_their_process() {
        let dir = tempfile::tempdir().unwrap();
        let proc = dir.path();
        for (tid, process, name, state, start) in [
            (190, 190, "archiver", 'S', 100),
            (192, 190, "archiver", 'D', 200),
            (193, 193, "a) (b", 'R', 300),
            (194, 194, "archiver", 'S', 9000),
            (195, 195, "archiver", 'Z', 100),
            (201, 190, "archiver", 'S', 200),
            (202, 190, "archiver", 'S', 200),
            (203, 190, "archiver", 'S', 200),
        ] {
            let own = proc.join(tid.to_string());
            fs::create_dir(&own).unwrap();
            let zeros = ["0"; 18].join(" ");
            let stat = format!("{tid} ({name}) {state} {zeros} {start} 0\n");
            fs::write(own.join("stat"), stat).unwrap();
            let status = format!("Name:\t{name}\nTgid:\t{process}\n");
            fs::write(own.join("status"), status).unwrap();
        }
        let time = since_boot(1000);
        let start = |thread: &Thread| start_of(proc, thread, time);
        assert_eq!(start(&thread(190, "archiver")), Some(since_boot(100)));
        assert_eq!(start(&thread(192, "archiver")), Some(since_boot(100)));
        assert_eq!(start(&thread(193, "a) (b")), Some(since_boot(300)));
        // The number was reused, the name is different, or the thread has exited.
        assert_eq!(start(&thread(194, "archiver")), None);
        assert_eq!(start(&thread(192, "backup")), None);
        assert_eq!(start(&thread(195, "archiver")), None);
        assert_eq!(start(&thread(196, "archiver")), None);
        let unnamed = Thread {
            tid: 192,
            comm: None,
        };
        assert_eq!(start(&unnamed), None);
        // The thread may have started later in this tick.
        let close = |ticks| start_of(proc, &thread(192, "archiver"), since_boot(ticks));
        assert_eq!((close(200), close(201)), (None, Some(since_boot(100))));

        let threads = [190, 192, 194].map(|tid| thread(tid, "archiver"));
        let said = sentence(proc, &threads, time).unwrap();
        let begin = "Still running: archiver (190, 192), process start ";
        assert!(said.starts_with(begin) && said.ends_with('.'), "{said}");
        let one = sentence(proc, &threads[..1], time).unwrap();
        let begin = "Still running: archiver/190, process start ";
        assert!(one.starts_with(begin), "{one}");
        assert_eq!(sentence(proc, &threads[2..], time), None);
        let threads = [190, 194, 192, 201, 202, 203].map(|tid| thread(tid, "archiver"));
        let said = sentence(proc, &threads, time).unwrap();
        let begin = "Still running: archiver (190, 192, 201, 202), process start ";
        let end = "; and 1 other thread.";
        assert!(said.starts_with(begin) && said.ends_with(end), "{said}");
    }

    #[test]
    fn a_start_has_a_date_if_it_was_a_day_ago() {
        let now = UNIX_EPOCH + Duration::from_secs(2 * 86_400 + 3_723);
        let of = |seconds| utc(now, Duration::from_secs(seconds));
        assert_eq!(of(23).as_deref(), Some("01:01:40"));
        assert_eq!(of(86_400).as_deref(), Some("1970-01-02T01:02:03Z"));
        assert_eq!(of(3 * 86_400), None);
    }
}
