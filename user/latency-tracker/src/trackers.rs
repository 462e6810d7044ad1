// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The trackers, for use while no module is loaded to list its own.

/// The titles of the pages in Documentation/trackers.
pub(crate) const TRACKERS: [(&str, &str); 17] = [
    ("accept", "how long a server takes to send its first byte"),
    ("block", "how long block I/O requests take"),
    (
        "func",
        "how long a kernel function takes, from entry to return",
    ),
    ("io", "a profile of all input and output"),
    ("irq", "how long interrupt handlers run"),
    (
        "lock",
        "how long tasks wait for contended kernel locks, and where",
    ),
    ("module", "what another kernel module measures"),
    (
        "net",
        "how long received packets take to reach their reader",
    ),
    (
        "offcpu",
        "how long tasks are off the CPU, where they wait, and what wakes them",
    ),
    ("pair", "from any point in the kernel to another"),
    (
        "reclaim",
        "how long tasks reclaim or compact memory themselves",
    ),
    ("runqueue", "how long runnable tasks wait while others run"),
    ("softirq", "how long softirqs run"),
    (
        "syscall",
        "how long system calls take, and where tasks wait in them",
    ),
    (
        "tree",
        "the wake chain from an interrupt or a timer to user space",
    ),
    ("wakeup", "how long woken tasks wait for a CPU"),
    ("workqueue", "how long work items wait and run"),
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_trackers_are_those_that_are_documented() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Documentation/trackers");
        let mut titles = Vec::new();
        for entry in fs::read_dir(directory).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            let title = text.lines().find_map(|line| line.strip_prefix("# "));
            titles.extend(title.map(String::from));
        }
        titles.sort();
        let ours = TRACKERS.map(|(name, what)| format!("{name}: {what}"));
        assert_eq!(titles, ours);
    }
}
