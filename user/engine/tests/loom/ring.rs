// SPDX-License-Identifier: GPL-2.0

//! The ring of alerts: a reader gets complete alerts, and never waits for an alert that will not come.

use crate::{
    alert::ring::{Read, Ring, Words, WORDS},
    machine::{fails, holds, source, Bound, Mutate},
};
use kernel::model::Change;
use loom::thread;
use std::sync::Arc;

const ALERT: Mutate = source!("alert/ring.rs");

fn alert(number: u64) -> Words {
    [number; WORDS]
}

/// Reads an alert, and checks that it is whole. Returns `Some(true)` if it was read, `Some(false)`
/// if it is lost, and `None` if it is not written yet.
fn read(ring: &Ring, number: u64) -> Option<bool> {
    match ring.read(number, &mut []) {
        Read::Ready(words) => {
            // The first two words are modelled.
            assert_eq!(words[0], number, "another alert");
            assert_eq!(words[1], number, "a mixture of two alerts");
            Some(true)
        }
        Read::Lost => Some(false),
        Read::NotYet => None,
    }
}

/// A writer overtakes a reader: alerts 1 and 3 share a slot.
fn overtaken() {
    let ring = Arc::new(Ring::new(2, 0).unwrap());
    assert_eq!(ring.push(alert, &[]), Ok(1));
    let writer = ring.clone();
    let writer = thread::spawn(move || {
        assert_eq!(writer.push(alert, &[]), Ok(2));
        assert_eq!(writer.push(alert, &[]), Ok(3));
    });
    assert!(read(&ring, 1).is_some(), "a written alert is settled");
    read(&ring, 3);
    read(&ring, 2);
    writer.join().unwrap();
    assert_eq!(read(&ring, 1), Some(false));
    assert_eq!(read(&ring, 2), Some(true));
    assert_eq!(read(&ring, 3), Some(true));
    assert_eq!(ring.tail(), 2);
}

/// A reader is overtaken by the second alert of a slot; both alerts have tails.
fn overtaken_with_tails() {
    let ring = Arc::new(Ring::new(1, 1).unwrap());
    assert_eq!(ring.push(alert, &[1]), Ok(1));
    let writer = ring.clone();
    let writer = thread::spawn(move || assert_eq!(writer.push(alert, &[2]), Ok(2)));
    for number in [1, 2] {
        let mut tail = [0];
        if let Read::Ready(words) = ring.read(number, &mut tail) {
            assert_eq!(words[0], number, "another alert");
            assert_eq!(tail[0], number, "the tail of another alert");
        }
    }
    writer.join().unwrap();
}

/// Two writers and a reader share one slot.
fn contended() {
    let ring = Arc::new(Ring::new(1, 0).unwrap());
    let other = ring.clone();
    let other = thread::spawn(move || other.push(alert, &[]));
    let ours = ring.push(alert, &[]);
    if let Ok(number) = ours {
        assert!(read(&ring, number).is_some(), "a written alert is settled");
    }
    let theirs = other.join().unwrap();
    for pushed in [ours, theirs] {
        match pushed {
            Ok(number) => assert!(read(&ring, number).is_some(), "a written alert is settled"),
            Err(number) => assert_eq!(read(&ring, number), Some(false), "a lost alert is lost"),
        }
    }
    assert!(ours.is_ok() || theirs.is_ok());
}

/// Three writers share one slot. A reader eventually learns the outcome of each number.
fn settled() {
    let ring = Arc::new(Ring::new(1, 0).unwrap());
    let writers: Vec<_> = (0..2)
        .map(|_| {
            let ring = ring.clone();
            thread::spawn(move || ring.push(alert, &[]))
        })
        .collect();
    let mut pushed = vec![ring.push(alert, &[])];
    pushed.extend(writers.into_iter().map(|writer| writer.join().unwrap()));
    assert_eq!(ring.head(), 3);
    for number in 1..=3 {
        assert!(read(&ring, number).is_some(), "a reader waits forever");
    }
    for number in pushed.into_iter().filter_map(Result::err) {
        assert_eq!(read(&ring, number), Some(false), "a lost alert is lost");
    }
}

const CLAIM: &str = ".cmpxchg(version, (number << 1) | 1, Acquire)";
const WRITE: &str = "word.store(value, Release);";
const DONE: &str = "slot.version.store(number << 1, Release);";
const READ: &str = "slot.words[i].load(Acquire)";
const TAIL: &str = "*copy = word.load(Acquire);";
const VERSION: &str = "let version = slot.version.load(Acquire);";
const AGAIN: &str = "if slot.version.load(Relaxed) == version {";
const SKIPPED: &str = "slot.skipped.cmpxchg(last, number, Relaxed)";

/// All models of this file, each with its bound on preemptions.
pub(crate) const MODELS: &[(&str, Bound, fn())] = &[
    ("overtaken", Some(4), overtaken),
    ("overtaken, tails", Some(4), overtaken_with_tails),
    ("contended", Some(4), contended),
    ("settled", Some(3), settled),
];

#[test]
fn a_reader_gets_whole_alerts() {
    holds("overtaken", Some(4), overtaken);
    holds("overtaken, tails", Some(4), overtaken_with_tails);
    holds("contended", Some(4), contended);
}

#[test]
fn a_reader_never_waits_for_what_will_not_come() {
    holds("settled", Some(3), settled);
}

#[test]
fn a_reader_gets_whole_alerts_by_acquire() {
    let mutations = [ALERT(READ, Change::Relax)];
    fails(
        "overtaken",
        "acquire of words",
        Some(4),
        &mutations,
        "",
        overtaken,
    );
}

#[test]
fn a_reader_gets_whole_alerts_by_acquire_of_the_tail() {
    let mutations = [ALERT(TAIL, Change::Relax)];
    fails(
        "overtaken, tails",
        "acquire of the tail",
        Some(4),
        &mutations,
        "the tail of another alert",
        overtaken_with_tails,
    );
}

#[test]
fn a_reader_gets_whole_alerts_by_acquire_of_the_version() {
    let mutations = [ALERT(VERSION, Change::Relax)];
    fails(
        "overtaken",
        "acquire of the version",
        Some(4),
        &mutations,
        "",
        overtaken,
    );
}

#[test]
fn a_reader_gets_whole_alerts_by_release() {
    let mutations = [ALERT(WRITE, Change::Relax)];
    fails(
        "overtaken",
        "release of words",
        Some(4),
        &mutations,
        "",
        overtaken,
    );
}

#[test]
fn a_reader_gets_whole_alerts_by_release_of_the_version() {
    let mutations = [ALERT(DONE, Change::Relax)];
    fails(
        "overtaken",
        "release of the version",
        Some(4),
        &mutations,
        "",
        overtaken,
    );
}

#[test]
fn a_reader_gets_whole_alerts_by_the_second_read() {
    let mutations = [ALERT(AGAIN, Change::Again)];
    fails(
        "overtaken",
        "the second look",
        Some(4),
        &mutations,
        "",
        overtaken,
    );
}

#[test]
fn a_reader_gets_whole_alerts_by_the_exchange() {
    let mutations = [ALERT(CLAIM, Change::Split)];
    fails(
        "contended",
        "the exchange",
        Some(4),
        &mutations,
        "",
        contended,
    );
}

#[test]
fn a_reader_never_waits_by_the_note_of_the_loser() {
    let mutations = [ALERT(SKIPPED, Change::Skip)];
    fails(
        "contended",
        "the loser's note",
        Some(4),
        &mutations,
        "",
        contended,
    );
}
