// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Processes and threads, by number and by name.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The initial PID namespace: `PROC_PID_INIT_INO` in include/linux/proc_ns.h.
const INITIAL: &str = "pid:[4026531836]";

/// Whether `proc` below this root shows thread IDs as alerts do, which use the initial PID namespace.
pub fn are_numbered_as_in_alerts(root: &Path) -> bool {
    match fs::read_link(root.join("proc/self/ns/pid")) {
        Ok(link) => link == Path::new(INITIAL),
        // This kernel has no PID namespaces.
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// The kernel keeps this many bytes of a name: `TASK_COMM_LEN` without the final NUL.
const NAME: usize = 15;

/// The name of a process, as `proc` shows it. `None` if there is no such process.
pub fn comm(proc: &Path, pid: u32) -> Option<Vec<u8>> {
    let mut comm = fs::read(proc.join(format!("{pid}/comm"))).ok()?;
    comm.pop_if(|last| *last == b'\n');
    Some(comm)
}

/// The process of a thread, as `proc` shows it. `None` if there is no such thread.
pub fn process_of(proc: &Path, tid: u32) -> Option<u32> {
    let status = fs::read(proc.join(format!("{tid}/status"))).ok()?;
    let status = String::from_utf8_lossy(&status);
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    process.trim().parse().ok()
}

/// The processes with this name, as `proc` shows them. The kernel keeps names of more than 15 bytes for kernel threads
/// only. For a program, such a name is compared with the command line and the executable file.
pub fn named(proc: &Path, name: &str) -> BTreeSet<u32> {
    let name = name.as_bytes();
    let kept = kept(name);
    let has_name = |pid, comm: &[u8]| {
        let is_cut = comm == kept && kept != name;
        let is_program = || has_title(proc, pid, name) || has_executable(proc, pid, name);
        comm == name || is_cut && is_program()
    };
    with_comm(proc, has_name)
}

/// The part that the kernel keeps of a name with more than 15 bytes, and the processes that have this part as their
/// name. `None` for a shorter name.
pub fn with_part(proc: &Path, name: &str) -> Option<(String, BTreeSet<u32>)> {
    let name = name.as_bytes();
    let kept = kept(name);
    (kept != name).then(|| {
        let part = String::from_utf8_lossy(kept).into_owned();
        (part, with_comm(proc, |_, comm| comm == kept))
    })
}

fn kept(name: &[u8]) -> &[u8] {
    &name[..name.len().min(NAME)]
}

/// The processes for whose number and name, as `proc` shows it, `is_wanted` returns true.
fn with_comm(proc: &Path, is_wanted: impl Fn(u32, &[u8]) -> bool) -> BTreeSet<u32> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let wanted = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        is_wanted(pid, &comm(proc, pid)?).then_some(pid)
    });
    wanted.collect()
}

/// Whether the command line names this program. Of all words, without their directories, the first one that starts with
/// the part that the kernel keeps is compared: in the command line of a script, the interpreter comes first. In a title
/// that the process has set, a colon or a space follows the name.
fn has_title(proc: &Path, pid: u32, name: &[u8]) -> bool {
    let Ok(words) = fs::read(proc.join(format!("{pid}/cmdline"))) else {
        return false;
    };
    let mut words = words.split(|byte| *byte == 0).map(|word| {
        let title = word.split(|byte| b": ".contains(byte)).next();
        [base(word), base(title.unwrap_or(word))]
    });
    let kept = kept(name);
    let first = words.find(|names| names.iter().any(|name| name.starts_with(kept)));
    first.is_some_and(|names| names.contains(&name))
}

/// Whether the executable file of the process has this name.
fn has_executable(proc: &Path, pid: u32, name: &[u8]) -> bool {
    let file = fs::read_link(proc.join(format!("{pid}/exe")));
    file.is_ok_and(|file| {
        let path = file.as_os_str().as_bytes();
        // The file may have been replaced since the start of the process.
        base(path.strip_suffix(b" (deleted)").unwrap_or(path)) == name
    })
}

/// The last part of a path.
fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The process `top` and its descendants, as `proc` shows them.
pub fn with_descendants(proc: &Path, top: u32) -> BTreeSet<u32> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let parents: Vec<(u32, u32)> = entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read(entry.path().join("stat")).ok()?;
            Some((pid, parent(&String::from_utf8_lossy(&stat))?))
        })
        .collect();
    let mut found = BTreeSet::from([top]);
    loop {
        let before = found.len();
        for (pid, parent) in &parents {
            if found.contains(parent) {
                found.insert(*pid);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// The parent in the contents of `stat`. The name of the process, in parentheses, may contain any character.
fn parent(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_found_by_their_whole_name_or_the_part_that_the_kernel_keeps() {
        let proc = tempfile::tempdir().unwrap();
        for (pid, comm, words) in [
            ("7", "orders\n", "/usr/bin/orders\0"),
            ("8", "orders2\n", "orders2\0"),
            ("9", "systemd-journal\n", "/usr/lib/systemd-journald\0"),
            ("10", "kworker/0:1-events\n", ""),
            (
                "11",
                "systemd-journal\n",
                "systemd-journal-x\0systemd-journald\0",
            ),
            (
                "12",
                "unattended-upgr\n",
                "/usr/bin/python3\0-u\0/usr/share/unattended-upgrade\0",
            ),
            ("13", "systemd-journal\n", ""),
            (
                "14",
                "systemd-userwor\n",
                "systemd-userwork: waiting /run...\0\0",
            ),
            ("15", "systemd-userwor\n", "/usr/lib/systemd-userworker\0"),
            ("self", "orders\n", "orders\0"),
        ] {
            let process = proc.path().join(pid);
            fs::create_dir(&process).unwrap();
            fs::write(process.join("comm"), comm).unwrap();
            fs::write(process.join("cmdline"), words).unwrap();
        }
        for (pid, file) in [
            ("13", "/usr/lib/systemd-journald2 (deleted)"),
            ("8", "/usr/bin/orders"),
        ] {
            std::os::unix::fs::symlink(file, proc.path().join(pid).join("exe")).unwrap();
        }
        let named = |name| named(proc.path(), name).into_iter().collect::<Vec<_>>();
        assert_eq!(named("orders"), [7]);
        // Two other processes have the same 15 bytes: another program, and a process without a command line, such as a
        // zombie.
        assert_eq!(named("systemd-journald"), [9]);
        assert_eq!(named("systemd-journal-x"), [11]);
        assert_eq!(named("systemd-journal"), [9, 11, 13]);
        assert!(named("systemd-journal2").is_empty());
        // The executable file.
        assert_eq!(named("systemd-journald2"), [13]);
        // A title.
        assert_eq!(named("systemd-userwork"), [14]);
        assert_eq!(named("systemd-userworker"), [15]);
        // A script.
        assert_eq!(named("unattended-upgrade"), [12]);
        assert_eq!(named("kworker/0:1-events"), [10]);
        assert!(named("systemd-journa").is_empty());
        assert!(named("").is_empty());
        let with_part = |name| with_part(proc.path(), name);
        let part = "systemd-journal".to_string();
        let found = Some((part, BTreeSet::from([9, 11, 13])));
        assert_eq!(with_part("systemd-journal2"), found);
        assert_eq!(with_part("systemd-journal"), None);
        let part = "no-such-program".to_string();
        assert_eq!(
            with_part("no-such-program-here"),
            Some((part, BTreeSet::new()))
        );
    }

    #[test]
    fn a_thread_has_a_process() {
        let proc = tempfile::tempdir().unwrap();
        for (tid, status) in [
            (190, "Name:\tarchiver\nUmask:\t0022\nTgid:\t190\n"),
            (193, "Name:\tTgid:\\nTgid:\t7\nTgid:\t190\nPid:\t193\n"),
            (194, "Name:\tarchiver\n"),
        ] {
            let own = proc.path().join(tid.to_string());
            fs::create_dir(&own).unwrap();
            fs::write(own.join("status"), status).unwrap();
        }
        let process_of = |tid| process_of(proc.path(), tid);
        assert_eq!(process_of(190), Some(190));
        assert_eq!(process_of(193), Some(190));
        assert_eq!((process_of(194), process_of(195)), (None, None));
    }

    #[test]
    fn descendants_are_found_in_any_order() {
        let proc = std::env::temp_dir().join(format!("lt-pids-{}", std::process::id()));
        for (pid, stat) in [
            (10, "10 (a) S 1 10"),
            (3, "3 (b) 10) S 20 3"),
            (20, "20 ((c d) R 10 20"),
            (30, "30 (e) S 1 30"),
        ] {
            let directory = proc.join(pid.to_string());
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("stat"), stat).unwrap();
        }
        fs::create_dir_all(proc.join("sys")).unwrap();
        assert_eq!(with_descendants(&proc, 10), BTreeSet::from([3, 10, 20]));
        assert_eq!(with_descendants(&proc, 7), BTreeSet::from([7]));
        fs::remove_dir_all(&proc).unwrap();
    }
}
