// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The numbers of processes and threads.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
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

/// The processes with this name, as `proc` shows them. The kernel keeps names of more than 15 bytes for kernel threads
/// only. For a program, such a name is compared with the command line.
pub fn named(proc: &Path, name: &str) -> BTreeSet<u32> {
    let name = name.as_bytes();
    let kept = &name[..name.len().min(NAME)];
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let with_name = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let comm = comm(proc, pid)?;
        let has_name = comm == name || comm == kept && program(proc, pid, kept)? == name;
        has_name.then_some(pid)
    });
    with_name.collect()
}

/// The name of the program that a process runs, if it starts with `kept`: the first such word of the command line,
/// without directories. In the command line of a script, the interpreter comes first.
fn program(proc: &Path, pid: u32, kept: &[u8]) -> Option<Vec<u8>> {
    let words = fs::read(proc.join(format!("{pid}/cmdline"))).ok()?;
    let words = words.split(|byte| *byte == 0);
    let mut names = words.filter_map(|word| word.rsplit(|byte| *byte == b'/').next());
    names.find(|name| name.starts_with(kept)).map(Into::into)
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
            ("self", "orders\n", "orders\0"),
        ] {
            let process = proc.path().join(pid);
            fs::create_dir(&process).unwrap();
            fs::write(process.join("comm"), comm).unwrap();
            fs::write(process.join("cmdline"), words).unwrap();
        }
        let named = |name| named(proc.path(), name).into_iter().collect::<Vec<_>>();
        assert_eq!(named("orders"), [7]);
        // Two other processes have the same 15 bytes: another program, and a process without a command line, such as a
        // zombie.
        assert_eq!(named("systemd-journald"), [9]);
        assert_eq!(named("systemd-journal-x"), [11]);
        assert_eq!(named("systemd-journal"), [9, 11, 13]);
        assert!(named("systemd-journal2").is_empty());
        // A script.
        assert_eq!(named("unattended-upgrade"), [12]);
        assert_eq!(named("kworker/0:1-events"), [10]);
        assert!(named("systemd-journa").is_empty());
        assert!(named("").is_empty());
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
