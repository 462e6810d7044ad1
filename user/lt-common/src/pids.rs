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

/// The processes with this name, as `proc` shows them. Of a longer name, only the first 15 bytes are compared.
pub fn named(proc: &Path, name: &str) -> BTreeSet<u32> {
    let name = &name.as_bytes()[..name.len().min(NAME)];
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let with_name = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let comm = fs::read(entry.path().join("comm")).ok()?;
        (comm.strip_suffix(b"\n") == Some(name)).then_some(pid)
    });
    with_name.collect()
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
    fn processes_are_found_by_the_part_of_their_name_that_the_kernel_keeps() {
        let proc = tempfile::tempdir().unwrap();
        for (pid, comm) in [
            ("7", "orders\n"),
            ("8", "orders2\n"),
            ("9", "systemd-journal\n"),
            ("self", "orders\n"),
        ] {
            fs::create_dir(proc.path().join(pid)).unwrap();
            fs::write(proc.path().join(pid).join("comm"), comm).unwrap();
        }
        let named = |name| named(proc.path(), name).into_iter().collect::<Vec<_>>();
        assert_eq!(named("orders"), [7]);
        assert_eq!(named("systemd-journald"), [9]);
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
