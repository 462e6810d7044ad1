// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A simulated machine, made of files: which files are read, and when.

use std::fs;

use lt_common::clock::monotonic;
use tempfile::TempDir;

use super::*;

/// A machine with these files.
fn machine(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    write(
        &root,
        "proc/self/mountinfo",
        "22 1 254:1 / / rw - ext4 /dev/vda1 rw\n\
         30 22 0:26 /docker /other rw - cgroup2 cgroup2 rw\n\
         31 22 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
    );
    write(&root, "proc/kallsyms", "ffffffff81000020 t dl_task_timer\n");
    write(&root, "sys/fs/cgroup/cgroup.procs", "");
    for (file, text) in files {
        write(&root, file, text);
    }
    root
}

fn write(root: &TempDir, file: &str, text: &str) {
    let path = root.path().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Puts thread 17 into `cgroup`.
fn task(root: &TempDir, cgroup: &str) {
    let rest = vec!["0"; 48].join(" ");
    write(root, "proc/17/stat", &format!("17 (a b) R {rest}\n"));
    write(
        root,
        "proc/17/status",
        "Name:\ta b\nCpus_allowed_list:\t0-1,3\n",
    );
    write(
        root,
        "proc/17/cgroup",
        &format!("1:name=x:/\n0::{cgroup}\n"),
    );
}

/// An alert about thread `tid`, raised now, whose delay began at `start`.
fn alert(tid: u64, start: u64) -> Alert {
    let time = monotonic();
    let line = format!(
        "seq=1 time={time} instance=a tracker=offcpu reason=threshold delay={} threshold=1 cpu=0 pid={tid} tid={tid} \
         comm=\"a b\"",
        time - start
    );
    Alert::parse(&line).unwrap()
}

fn of(collector: &mut Collector, start: u64) -> Evidence {
    let seen = collector.woken(&[alert(17, start)]);
    collector.finish(seen)
}

#[test]
fn the_counters_of_a_quota_grow_between_the_reads() {
    let root = machine(&[
        ("sys/fs/cgroup/a/cpu.max", "10000 100000\n"),
        ("sys/fs/cgroup/a/memory.max", "max\n"),
        ("sys/fs/cgroup/a/cgroup.events", "populated 1\nfrozen 0\n"),
        (
            "sys/fs/cgroup/a/cpu.stat",
            "usage_usec 1\nnr_throttled 3\nthrottled_usec 90\n",
        ),
        ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
        (
            "sys/fs/cgroup/a/b/cpu.stat",
            "nr_throttled 0\nthrottled_usec 0\n",
        ),
        ("sys/fs/cgroup/c/memory.high", "0\n"),
    ]);
    task(&root, "/a/b");
    let mut collector = Collector::start(root.path());
    let shown = "evidence: 1 kernel functions; cgroups with a limit: 2 of 4 (read in ";
    assert!(collector.to_string().starts_with(shown), "{collector}");
    let start = monotonic();
    let stat = "nr_throttled 4\nthrottled_usec 190\n";
    write(&root, "sys/fs/cgroup/a/cpu.stat", stat);
    let evidence = of(&mut collector, start);

    let task = &evidence.tasks[0];
    assert_eq!((evidence.tasks.len(), task.tid), (1, 17));
    assert_eq!(task.cgroup.as_deref(), Some("/a/b"));
    assert_eq!(task.policy.as_deref(), Some("SCHED_OTHER"));
    assert_eq!(task.cpus.as_deref(), Some("0-1,3"));
    // The task's own cgroup has no limit, and a cgroup without the task does not matter.
    let [group] = evidence.cgroups.as_slice() else {
        panic!("{:?}", evidence.cgroups);
    };
    assert_eq!(group.path, "/a");
    assert_eq!(group.limits, [("cpu.max".into(), "10000 100000".into())]);
    let throttled: Vec<_> = group
        .reads
        .iter()
        .map(|r| (r.nr_throttled, r.throttled_usec))
        .collect();
    assert_eq!(
        throttled,
        [
            (Some(3), Some(90)),
            (Some(4), Some(190)),
            (Some(4), Some(190))
        ]
    );
    assert!(group.reads[0].end <= start && start <= group.reads[1].begin);
    assert!(task.read <= group.reads[1].begin && group.reads[1].end <= group.reads[2].begin);
    assert_eq!(group.reads[0].frozen, Some(false));
    assert_eq!(group.reads[0].memory_high, None);

    // The evidence of the next alert starts with the last read before its delay.
    collector.rearm();
    let next = of(&mut collector, monotonic());
    let reads = &next.cgroups[0].reads;
    assert_eq!(reads.len(), 3);
    assert_eq!(reads[0].nr_throttled, Some(4));
    // If the delay started earlier, its evidence goes further back: to the first read, even if the delay started before
    // that.
    for (start, first) in [(start, group.reads[0].begin), (0, group.reads[0].begin)] {
        let old = of(&mut collector, start);
        assert_eq!(old.cgroups[0].reads[0].begin, first);
    }
}

#[test]
fn the_first_read_is_kept_however_many_follow() {
    let root = machine(&[("sys/fs/cgroup/a/cpu.max", "1 2\n")]);
    task(&root, "/a");
    let mut collector = Collector::start(root.path());
    let first = monotonic();
    for _ in 0..50 {
        collector.rearm();
    }
    let evidence = of(&mut collector, first);
    let reads = &evidence.cgroups[0].reads;
    assert!(reads[0].end <= first && reads.len() < 50, "{reads:?}");
}

#[test]
fn a_new_cgroup_has_no_earlier_read_and_a_recreated_cgroup_loses_its_reads() {
    let root = machine(&[
        ("sys/fs/cgroup/a/cpu.max", "1 2\n"),
        ("sys/fs/cgroup/a/cpu.stat", "nr_throttled 9\n"),
    ]);
    task(&root, "/a");
    let mut collector = Collector::start(root.path());
    write(&root, "sys/fs/cgroup/new/memory.max", "1\n");
    // The old directory is moved, not removed, so the new one cannot get its inode.
    fs::rename(
        root.path().join("sys/fs/cgroup/a"),
        root.path().join("gone"),
    )
    .unwrap();
    write(&root, "sys/fs/cgroup/a/cpu.max", "1 2\n");
    let start = monotonic();
    let again = of(&mut collector, start);
    assert!(
        again.cgroups[0]
            .reads
            .iter()
            .all(|read| read.begin >= start)
    );
    task(&root, "/new");
    let new = of(&mut collector, start);
    assert_eq!(new.cgroups[0].path, "/new");
    assert!(new.cgroups[0].reads.iter().all(|read| read.begin >= start));
}

#[test]
fn a_frozen_cgroup_is_found_by_its_frozen_time() {
    let root = machine(&[
        ("sys/fs/cgroup/a/cgroup.freeze", "0\n"),
        ("sys/fs/cgroup/a/cgroup.events", "frozen 0\n"),
        ("sys/fs/cgroup/a/cgroup.stat.local", "frozen_usec 0\n"),
    ]);
    task(&root, "/a");
    let mut collector = Collector::start(root.path());
    assert!(of(&mut collector, monotonic()).cgroups.is_empty());
    let start = monotonic();
    write(
        &root,
        "sys/fs/cgroup/a/cgroup.stat.local",
        "frozen_usec 700\n",
    );
    let thawed = of(&mut collector, start);
    let times: Vec<_> = thawed.cgroups[0]
        .reads
        .iter()
        .map(|read| read.frozen_usec)
        .collect();
    assert_eq!(times, [Some(0), Some(700), Some(700)]);
    assert!(thawed.cgroups[0].limits.is_empty());
    write(&root, "sys/fs/cgroup/a/cgroup.freeze", "1\n");
    let frozen = of(&mut collector, start);
    assert_eq!(
        frozen.cgroups[0].limits,
        [("cgroup.freeze".into(), "1".into())]
    );
}

#[test]
fn a_limit_that_was_lifted_is_still_evidence() {
    let root = machine(&[
        ("sys/fs/cgroup/a/cpu.max", "1 2\n"),
        ("sys/fs/cgroup/a/cgroup.events", "frozen 0\n"),
        ("sys/fs/cgroup/a/cpu.stat", "nr_throttled 1\n"),
    ]);
    task(&root, "/a");
    let mut collector = Collector::start(root.path());
    write(&root, "sys/fs/cgroup/a/cpu.max", "max 2\n");
    let evidence = of(&mut collector, monotonic());
    assert!(evidence.cgroups[0].limits.is_empty());
    assert_eq!(evidence.cgroups[0].reads.len(), 3);
}

#[test]
fn a_root_below_another_cgroup_is_listed_without_a_limit() {
    let root = machine(&[("sys/fs/cgroup/cgroup.events", "frozen 0\n")]);
    task(&root, "/");
    let evidence = of(&mut Collector::start(root.path()), monotonic());
    assert_eq!(evidence.cgroups[0].path, "/");
    assert_eq!(evidence.cgroups[0].reads[0].frozen, Some(false));
    // The true root is not listed, nor is a cgroup that is outside of the namespace or was removed.
    for cgroup in ["/", "/../b", "/removed (deleted)"] {
        let root = machine(&[]);
        task(&root, cgroup);
        let evidence = of(&mut Collector::start(root.path()), monotonic());
        assert!(evidence.cgroups.is_empty(), "{:?}", evidence.cgroups);
        let found = evidence.tasks[0].cgroup.as_deref();
        assert_eq!(found, (cgroup == "/").then_some("/"));
    }
}

#[test]
fn a_hierarchy_that_is_mounted_in_part_is_read_in_part() {
    let root = machine(&[("cg/b/cpu.max", "1 2\n")]);
    write(
        &root,
        "proc/self/mountinfo",
        "30 22 0:26 /a /cg rw - cgroup2 cgroup2 rw\n",
    );
    let mut collector = Collector::start(root.path());
    for (cgroup, expected) in [
        ("/a/b", Some("/b")),
        ("/a", Some("/")),
        ("/ab", None),
        ("/", None),
    ] {
        task(&root, cgroup);
        let evidence = of(&mut collector, monotonic());
        assert_eq!(evidence.tasks[0].cgroup.as_deref(), expected, "{cgroup}");
        assert_eq!(evidence.cgroups.len(), usize::from(cgroup == "/a/b"));
    }
}

#[test]
fn what_is_not_there_is_left_out() {
    let root = machine(&[]);
    let seen_of = |alerts: &[Alert]| {
        let mut collector = Collector::start(root.path());
        let seen = collector.woken(alerts);
        collector.finish(seen)
    };
    assert_eq!(seen_of(&[alert(99, 0), alert(0, 0)]).tasks, []);
    task(&root, "/");
    assert_eq!(seen_of(&[alert(17, 0), alert(17, 5)]).tasks.len(), 1);
    // In a PID namespace, 17 is another task.
    fs::create_dir_all(root.path().join("proc/self/ns")).unwrap();
    std::os::unix::fs::symlink("pid:[4026532000]", root.path().join("proc/self/ns/pid")).unwrap();
    assert_eq!(seen_of(&[alert(17, 0)]).tasks, []);

    let empty = tempfile::tempdir().unwrap();
    task(&empty, "/a");
    let evidence = of(&mut Collector::start(empty.path()), 0);
    assert!(evidence.functions.is_empty() && evidence.cgroups.is_empty());
    assert_eq!(evidence.tasks[0].cgroup, None);
}

#[test]
fn the_walk_is_bounded_and_takes_the_upper_levels_first() {
    let root = machine(&[]);
    for n in 0..4 {
        fs::create_dir_all(root.path().join(format!("sys/fs/cgroup/{n}/b/c"))).unwrap();
    }
    let whole = Groups::walk(root.path(), 13);
    assert_eq!((whole.len(), whole.is_cut()), (13, false));
    let mut cut = Groups::walk(root.path(), 5);
    assert_eq!((cut.len(), cut.is_cut()), (5, true));
    // Cgroups that were not read when the recorder was armed are read at the alert.
    write(&root, "sys/fs/cgroup/3/b/cpu.max", "1 2\n");
    let chain = ["/3".to_string(), "/3/b".to_string()];
    cut.read_again(&chain);
    assert_eq!(cut.evidence(&chain, &[], monotonic())[0].path, "/3/b");
}

#[test]
fn only_a_disk_that_keeps_its_name_is_listed() {
    let root = machine(&[]);
    let block = root.path().join("sys/dev/block");
    fs::create_dir_all(&block).unwrap();
    let link = |number: &str, target: &str| {
        let link = block.join(number);
        let _ = fs::remove_file(&link);
        write(&root, &format!("sys/devices/{target}/dev"), number);
        std::os::unix::fs::symlink(format!("../../devices/{target}"), link).unwrap();
    };
    link("8:0", "pci/block/sda");
    link("254:1", "virtual/block/dm-1");
    write(&root, "sys/devices/virtual/block/dm-1/dm/name", "vg-root\n");
    link("104:0", "pci/block/cciss!c0d0");
    link("7:0", "virtual/block/loop0");
    let mut collector = Collector::start(root.path());
    // Later, one device appears, and another has changed its name.
    link("253:0", "virtual/block/slow");
    link("7:0", "virtual/block/other");
    let disks = of(&mut collector, monotonic()).disks;
    let told: Vec<_> = disks
        .iter()
        .map(|disk| format!("{}:{} {}", disk.major, disk.minor, disk.name))
        .collect();
    assert_eq!(
        told,
        ["8:0 sda", "104:0 cciss/c0d0", "253:0 slow", "254:1 vg-root"]
    );
}

#[test]
fn a_cgroup_that_was_throttled_has_its_threads_though_none_was_late() {
    let root = machine(&[
        ("sys/fs/cgroup/a/cpu.max", "10000 100000\n"),
        (
            "sys/fs/cgroup/a/cpu.stat",
            "nr_throttled 3\nthrottled_usec 90\n",
        ),
        ("sys/fs/cgroup/a/cgroup.threads", "21\n22\n"),
        ("sys/fs/cgroup/a/b/cgroup.threads", "23\n"),
        ("sys/fs/cgroup/c/cpu.max", "10000 100000\n"),
        (
            "sys/fs/cgroup/c/cpu.stat",
            "nr_throttled 3\nthrottled_usec 90\n",
        ),
        ("sys/fs/cgroup/c/cgroup.threads", "24\n"),
    ]);
    task(&root, "/");
    let mut collector = Collector::start(root.path());
    let start = monotonic();
    let seen = collector.woken(&[alert(17, start)]);
    write(
        &root,
        "sys/fs/cgroup/a/cpu.stat",
        "nr_throttled 4\nthrottled_usec 90\n",
    );
    let evidence = collector.finish(seen);
    let threads: Vec<_> = evidence
        .cgroups
        .iter()
        .map(|cgroup| (cgroup.path.as_str(), &cgroup.threads[..]))
        .collect();
    assert_eq!(threads, [("/a", &[21, 22, 23][..])]);
    let reads = &evidence.cgroups[0].reads;
    let counts: Vec<_> = reads.iter().map(|read| read.nr_throttled).collect();
    assert_eq!(counts, [Some(3), Some(4)]);
    assert!(reads[0].end <= start && reads[1].begin >= start);
}
