// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Rows about the mechanisms that move, merge or reclaim memory that an application uses.

use super::Target;
use super::answer::{Found, Row, ok, warn};
use super::root::{Root, chosen};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "swap",
        why: "a page on disk takes milliseconds to read back",
        question: swap,
    },
    Row {
        name: "huge pages",
        why: "a fault may wait until compaction has freed a huge page",
        question: huge_pages,
    },
    Row {
        name: "NUMA balancing",
        why: "it unmaps pages, to learn from the faults which CPU uses them",
        question: |root, _| zero(root, "/proc/sys/kernel/numa_balancing"),
    },
    Row {
        name: "page merging",
        why: "a write to a page that KSM has merged causes a fault and a copy",
        question: |root, _| zero(root, "/sys/kernel/mm/ksm/run"),
    },
    Row {
        name: "compaction",
        why: "it migrates pages in the background; a task that touches one waits",
        question: |root, _| zero(root, "/proc/sys/vm/compaction_proactiveness"),
    },
];

fn swap(root: &Root, _: &Target) -> Found {
    let areas = root.text("/proc/swaps")?;
    match areas.lines().skip(1).count() {
        0 => Ok(ok("none")),
        count => {
            Ok(warn(format!("{count} in use; locked memory is not affected")).fix("swapoff -a"))
        }
    }
}

fn huge_pages(root: &Root, _: &Target) -> Found {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let words = root.text(path)?;
    match chosen(&words) {
        "always" => Ok(warn("always").fix(format!("echo madvise > {path}"))),
        word => Ok(ok(word)),
    }
}

/// Answers for a setting that should be 0.
fn zero(root: &Root, path: &str) -> Found {
    match root.value::<i64>(path)? {
        0 => Ok(ok("off")),
        value => Ok(warn(format!("{value}")).fix(format!("echo 0 > {path}"))),
    }
}
