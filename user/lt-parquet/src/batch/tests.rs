// SPDX-License-Identifier: GPL-2.0 OR MIT

use std::fs::File;
use std::os::unix::fs::PermissionsExt;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::*;
use crate::rows::{Coverage, Gap, Interval};
use crate::{Covered, covered};

fn batch(directory: &Path) -> Batch {
    Batch::new(directory, "web3", "4fd49bd2-21", "test")
}

fn interval(n: i64) -> Interval {
    Interval {
        start_ns: Some(n),
        comm: (n % 3 != 0).then(|| format!("task {n}")),
        open: (n % 2 == 0).then_some(n % 4 == 0),
        ..Interval::default()
    }
}

/// Starts, names and flags of the rows of a file, and how many row groups it has.
fn rows(path: &Path) -> (Vec<Interval>, usize) {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let mut rows = Vec::new();
    for row in reader.get_row_iter(None).unwrap() {
        let mut interval = Interval::default();
        for (name, value) in row.unwrap().get_column_iter() {
            match (name.as_str(), value) {
                ("start_ns", Field::Long(ns)) => interval.start_ns = Some(*ns),
                ("comm", Field::Str(text)) => interval.comm = Some(text.clone()),
                ("open", Field::Bool(flag)) => interval.open = Some(*flag),
                (_, value) => assert_eq!(*value, Field::Null, "{name}"),
            }
        }
        rows.push(interval);
    }
    (rows, reader.num_row_groups())
}

fn names(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for (table, _) in TABLES {
        let Ok(entries) = fs::read_dir(partition(directory, table, "web3")) else {
            continue;
        };
        for entry in entries {
            let name = entry.unwrap().file_name().into_string().unwrap();
            names.push(format!("{table}/{name}"));
        }
    }
    names.sort();
    names
}

#[test]
fn rows_come_back_in_order_over_several_row_groups() {
    let dir = tempfile::tempdir().unwrap();
    let count = 150_000;
    let mut batch = batch(dir.path());
    batch
        .write("irq", "softirq", (0..count).map(interval))
        .unwrap();
    let done = batch.finish().unwrap();
    assert_eq!((done.files, done.rows, done.replaced), (1, 150_000, false));
    let file = dir
        .path()
        .join("intervals/host=web3/4fd49bd2-21.irq.softirq.parquet");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let (rows, groups) = rows(&file);
    assert_eq!(groups, 3);
    assert!(rows.into_iter().eq((0..count).map(interval)));
}

#[test]
fn a_second_run_replaces_the_first_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let gap = || [Gap::default()];
    let mut first = batch(dir.path());
    first.write("irq", "softirq", (0..3).map(interval)).unwrap();
    first.write("irq", "handler", (0..3).map(interval)).unwrap();
    first.write("irq", "gaps", gap()).unwrap();
    first
        .write("irqs", "handler", (0..3).map(interval))
        .unwrap();
    first.finish().unwrap();
    let mut other = Batch::new(dir.path(), "web3", "4fd49bd2-211", "test");
    other.write("irq", "handler", (0..2).map(interval)).unwrap();
    assert!(!other.finish().unwrap().replaced);
    let mut second = batch(dir.path());
    second
        .write("irq", "softirq", (5..9).map(interval))
        .unwrap();
    second
        .write("irq", "handler", (0..0).map(interval))
        .unwrap();
    // Until `finish`, the files of the first run remain.
    assert_eq!(
        names(dir.path())
            .iter()
            .filter(|name| !name.contains("/."))
            .count(),
        5
    );
    let done = second.finish().unwrap();
    assert_eq!((done.files, done.rows, done.replaced), (1, 4, true));
    assert_eq!(
        names(dir.path()),
        [
            "intervals/4fd49bd2-21.irq.softirq.parquet",
            "intervals/4fd49bd2-21.irqs.handler.parquet",
            "intervals/4fd49bd2-211.irq.handler.parquet",
        ]
    );
    let file = dir
        .path()
        .join("intervals/host=web3/4fd49bd2-21.irq.softirq.parquet");
    assert!(rows(&file).0.into_iter().eq((5..9).map(interval)));
}

#[test]
fn a_run_that_does_not_finish_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = batch(dir.path());
    first.write("irq", "softirq", (0..3).map(interval)).unwrap();
    let mut sheet = first.sheet::<Interval>("irq", "handler").unwrap();
    sheet.push(interval(1)).unwrap();
    // Readers ignore both.
    let names_of_both = names(dir.path());
    assert_eq!(names_of_both.len(), 2);
    assert!(
        names_of_both
            .iter()
            .all(|name| name.starts_with("intervals/."))
    );
    drop((first, sheet));
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn what_a_killed_run_left_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let batch = batch(dir.path());
    let mut sheet = batch.sheet::<Interval>("irq", "softirq").unwrap();
    sheet.push(interval(1)).unwrap();
    let host = partition(dir.path(), "intervals", "web3");
    for name in [".left.part", ".other", "other.part"] {
        fs::write(host.join(name), "").unwrap();
    }
    assert_eq!(remove_left(dir.path(), "web4"), 0);
    assert_eq!([(); 2].map(|()| remove_left(dir.path(), "web3")), [1, 0]);
    // The file of a run that has not ended, and files with other names, remain.
    assert_eq!(names(dir.path()).len(), 3);
    assert!(!host.join(".left.part").exists());
    drop(sheet);
    assert_eq!(
        names(dir.path()),
        ["intervals/.other", "intervals/other.part"]
    );
}

#[test]
fn the_traces_of_a_directory_are_known() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(covered(dir.path(), "web3").unwrap(), []);
    let mut batch = batch(dir.path());
    let row = Coverage {
        trace: Some("4fd49bd2-21".into()),
        analysis: Some("irq".into()),
        tid: Some(7),
        boot: Some("b".into()),
        start_ns: Some(21),
        end_ns: Some(40),
        ..Coverage::default()
    };
    batch.write("irq", "coverage", [row]).unwrap();
    batch.finish().unwrap();
    let expected = Covered {
        trace: "4fd49bd2-21".into(),
        analysis: "irq".into(),
        tid: Some(7),
        boot: "b".into(),
        start_ns: 21,
        end_ns: 40,
    };
    assert_eq!(covered(dir.path(), "web3").unwrap(), [expected]);
    assert_eq!(covered(dir.path(), "web4").unwrap(), []);
    let file = dir.path().join("coverage/host=web3/damaged.parquet");
    fs::write(&file, "PAR1").unwrap();
    let error = format!("{:#}", covered(dir.path(), "web3").unwrap_err());
    assert!(error.starts_with(&file.display().to_string()), "{error}");
}

#[test]
fn a_host_is_a_plain_word() {
    for good in ["web3", "db-1.example", "a_b", "7"] {
        assert_eq!(host(good).as_deref(), Ok(good));
    }
    for bad in ["", "a/b", "a b", "a=b", "é", &"x".repeat(254)] {
        assert!(host(bad).is_err(), "{bad}");
    }
}
