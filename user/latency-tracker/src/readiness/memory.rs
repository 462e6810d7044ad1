// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Rows about what moves, merges or takes away memory that an application uses.

use super::Target;
use super::answer::{Found, Row, ok, warn};
use super::root::{Root, chosen};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "swap",
        why: "a page that is on a disk takes milliseconds to come back",
        question: swap,
    },
    Row {
        name: "huge pages",
        why: "a fault may wait until memory for a huge page has been made free",
        question: huge_pages,
    },
    Row {
        name: "NUMA balancing",
        why: "it unmaps pages, to see by the faults which CPU uses them",
        question: |root, _| zero(root, "/proc/sys/kernel/numa_balancing"),
    },
    Row {
        name: "page merging",
        why: "a write to a page that KSM has merged is a fault and a copy",
        question: |root, _| zero(root, "/sys/kernel/mm/ksm/run"),
    },
    Row {
        name: "compaction",
        why: "it moves pages in the background, and a task that touches one meanwhile waits",
        question: |root, _| zero(root, "/proc/sys/vm/compaction_proactiveness"),
    },
];

fn swap(root: &Root, _: &Target) -> Found {
    let areas = root.text("/proc/swaps")?;
    match areas.lines().skip(1).count() {
        0 => Ok(ok("none")),
        count => {
            Ok(warn(format!("{count} in use; locked memory is safe from it")).fix("swapoff -a"))
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

/// A setting that is to be 0.
fn zero(root: &Root, path: &str) -> Found {
    match root.value::<i64>(path)? {
        0 => Ok(ok("off")),
        value => Ok(warn(format!("{value}")).fix(format!("echo 0 > {path}"))),
    }
}
