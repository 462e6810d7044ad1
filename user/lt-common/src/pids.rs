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
