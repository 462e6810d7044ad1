// SPDX-License-Identifier: GPL-2.0

//! Labels, and stacks that serve as labels: each has one row, and each row one label, even with
//! concurrent claims.

use crate::{
    engine::{
        hash::Seed,
        labels::{Labels, Source, LABEL},
    },
    machine::{fails, holds, source, Bound, Model, Mutate},
};
use kernel::model::{Change, Mutation};
use loom::thread;
use std::sync::Arc;

const LABELS: Mutate = source!("engine/labels.rs");

const SEED: Seed = Seed::new(0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f);

/// A label of two words.
type Label = [u64; 2];

/// Returns a table; the source of the labels does not matter.
fn labels(max: u32) -> Arc<Labels> {
    Arc::new(Labels::new::<Model<2>>(Source::Cpu, max, SEED).unwrap())
}

/// Returns the row of a label, by its number.
fn find(labels: &Labels, label: Label) -> Option<usize> {
    let row = labels.find(&label)?;
    labels.rows().position(|one| std::ptr::eq(one, row))
}

/// A stack of one address: the number of addresses, and the address. For one stack in 16, the
/// second slot of a search is the home slot again. It is another slot for this stack, so a search
/// that misses the row at home claims another row.
const STACK: Label = [1, 8];

/// Returns a table for two stacks of one address.
fn stacks() -> Arc<Labels> {
    let labels = Labels::new::<Model<2>>(Source::Cpu, 2, SEED).unwrap();
    Arc::new(labels.with_stacks(1).unwrap())
}

/// Returns the row of a stack, by its number.
fn find_stack(labels: &Labels, stack: Label) -> Option<usize> {
    let row = labels.find_stack(&stack)?;
    labels.rows().position(|one| std::ptr::eq(one, row))
}

/// Looks up the stack in another thread.
fn finder_of_stack(labels: &Arc<Labels>) -> thread::JoinHandle<Option<usize>> {
    let labels = labels.clone();
    thread::spawn(move || find_stack(&labels, STACK))
}

/// Looks up a label in another thread.
fn finder(labels: &Arc<Labels>, label: Label) -> thread::JoinHandle<Option<usize>> {
    let labels = labels.clone();
    thread::spawn(move || find(&labels, label))
}

/// Returns the labels of the rows that are used.
fn known(labels: &Labels) -> Vec<Label> {
    let of_row = |row| {
        let (label, _) = labels.labelled(row).expect("a row without a label");
        let [first, second, rest @ ..] = label;
        assert_eq!(rest, [0; LABEL - 2], "a label of another length");
        [first, second]
    };
    (0..labels.used()).map(of_row).collect()
}

const A: Label = [5, 6];

/// Returns two labels that share a home. The second one equals the first one as long as the second
/// word of the first one is not written.
fn rivals(labels: &Labels) -> [Label; 2] {
    let half: Label = [5, 0];
    let mut all = (1..).map(|word| -> Label { [5, word] });
    let whole = all.find(|label| labels.home(label) == labels.home(&half));
    [whole.unwrap(), half]
}

/// Two CPUs have the first delay of a label at the same time.
fn one_label() {
    let labels = labels(2);
    let other = finder(&labels, A);
    let ours = find(&labels, A);
    let theirs = other.join().unwrap();
    assert_eq!(known(&labels), [A], "a label in two rows");
    assert!(
        ours == Some(0) || theirs == Some(0),
        "no caller has the row"
    );
    assert!(ours.is_none_or(|row| row == 0) && theirs.is_none_or(|row| row == 0));
    assert_eq!(find(&labels, A), Some(0), "the row is lost");
}

/// Two CPUs have the first delays of two labels that want the same slot.
fn one_slot() {
    let labels = labels(2);
    let [label, rival] = rivals(&labels);
    let other = finder(&labels, rival);
    let ours = find(&labels, label).expect("another label is no reason to wait");
    let theirs = other.join().unwrap();
    let theirs = theirs.expect("another label is no reason to wait");
    assert_ne!(ours, theirs, "two labels in one row");
    let known = known(&labels);
    assert_eq!(
        (known[ours], known[theirs]),
        (label, rival),
        "a row of another label"
    );
    assert_eq!(find(&labels, label), Some(ours), "the row is lost");
    assert_eq!(find(&labels, rival), Some(theirs), "the row is lost");
}

/// A reader of the file looks at a row that is being claimed.
fn reader() {
    let labels = labels(2);
    let other = finder(&labels, A);
    if let Some((label, _)) = labels.labelled(0) {
        assert_eq!(label[..2], A, "a label that no caller has");
    }
    assert_eq!(other.join().unwrap(), Some(0));
}

/// Two labels want the only row.
fn last_row() {
    let labels = labels(1);
    let [label, rival] = rivals(&labels);
    let other = finder(&labels, rival);
    let ours = find(&labels, label);
    let theirs = other.join().unwrap();
    assert!(
        ours.is_some() != theirs.is_some(),
        "not one label in the row"
    );
    let known = known(&labels);
    assert_eq!(known, [if ours.is_some() { label } else { rival }]);
    assert_eq!(find(&labels, label), ours, "the row is lost, or shared");
    assert_eq!(find(&labels, rival), theirs, "the row is lost, or shared");
}

/// Two CPUs have the first delay of a stack at the same time.
fn one_stack() {
    let labels = stacks();
    let other = finder_of_stack(&labels);
    let ours = find_stack(&labels, STACK);
    let theirs = other.join().unwrap();
    assert_eq!(labels.used(), 1, "a stack in two rows");
    assert!(
        ours == Some(0) || theirs == Some(0),
        "no caller has the row"
    );
    assert!(ours.is_none_or(|row| row == 0) && theirs.is_none_or(|row| row == 0));
    assert_eq!(find_stack(&labels, STACK), Some(0), "the row is lost");
}

/// A reader of the file looks at the stack of a row that is being claimed.
fn reader_of_stacks() {
    let labels = stacks();
    let other = finder_of_stack(&labels);
    if labels.labelled(0).is_some() {
        let stack = labels.stack(0).unwrap();
        assert_eq!(stack.addresses(), [8], "a stack that no caller has");
        assert!(!stack.is_cut);
    }
    assert_eq!(other.join().unwrap(), Some(0));
}

/// All models of this file, each with its bound on preemptions.
pub(crate) const MODELS: &[(&str, Bound, fn())] = &[
    ("one label", Some(4), one_label),
    ("one slot", Some(4), one_slot),
    ("reader of labels", Some(4), reader),
    ("last row", Some(4), last_row),
    ("one stack", Some(4), one_stack),
    ("reader of stacks", Some(4), reader_of_stacks),
];

const AT_HOME: &str = "let state = slot.state.load(Acquire);";
const LOOK: &str = "let mut state = slot.state.load(Acquire);";
const AGAIN: &str = "return Err(slot.state.load(Acquire));";
const READ: &str = "slot.state.load(Acquire) & ROW";
const CLAIM: &str = "slot.state.cmpxchg(0, tag | CLAIMED, Relaxed)";
const TAKE: &str = "self.taken.fetch_add(1, Relaxed);";
const PUBLISH: &str = "slot.state.store(tag | CLAIMED | number, Release);";

#[test]
fn a_label_has_one_row_and_a_row_one_label() {
    for (name, bound, body) in MODELS {
        holds(name, *bound, *body);
    }
}

/// Checks that `one_label` fails with a mutation, since a label gets two rows.
fn splits(what: &str, mutation: Mutation) {
    let why = "a label in two rows";
    fails("one label", what, Some(4), &[mutation], why, one_label);
}

#[test]
fn a_label_has_one_row_by_the_order_of_its_words() {
    for (what, text) in [
        ("release of the row", PUBLISH),
        ("acquire of the row", LOOK),
        ("acquire after a lost claim", AGAIN),
    ] {
        splits(what, LABELS(text, Change::Relax));
    }
}

#[test]
fn a_label_has_one_row_by_the_check_for_it() {
    // As if a claimed slot without a row had the first row.
    let is_ready = |state| {
        if state & 0xfff == 0x800 {
            state | 1
        } else {
            state
        }
    };
    splits("the check for a row", LABELS(LOOK, Change::Read(is_ready)));
}

#[test]
fn a_row_has_one_label_by_the_exchanges() {
    let mutations = [LABELS(CLAIM, Change::Split)];
    fails("one slot", "the claim", Some(4), &mutations, "", one_slot);
    let mutations = [LABELS(TAKE, Change::Split)];
    let what = "the exchange of the number of rows";
    fails(
        "one slot",
        what,
        Some(4),
        &mutations,
        "two labels in one row",
        one_slot,
    );
}

#[test]
fn a_row_has_one_label_by_the_order_of_its_words() {
    let mutations = [LABELS(AT_HOME, Change::Relax)];
    let what = "acquire at home";
    let why = "two labels in one row";
    fails("one slot", what, Some(4), &mutations, why, one_slot);
}

#[test]
fn a_reader_sees_whole_labels_by_the_order_of_words() {
    for (what, text) in [
        ("release of the row", PUBLISH),
        ("acquire of the row", READ),
    ] {
        let mutations = [LABELS(text, Change::Relax)];
        fails(
            "reader of labels",
            what,
            Some(4),
            &mutations,
            "a label that no caller has",
            reader,
        );
    }
}

#[test]
fn a_stack_has_one_row_by_the_order_of_its_words() {
    for (what, text) in [
        ("release of the row", PUBLISH),
        ("acquire of the row", LOOK),
        ("acquire after a lost claim", AGAIN),
    ] {
        let mutations = [LABELS(text, Change::Relax)];
        let why = "a stack in two rows";
        fails("one stack", what, Some(4), &mutations, why, one_stack);
    }
}

#[test]
fn a_reader_sees_whole_stacks_by_the_order_of_words() {
    for (what, text) in [
        ("release of the row", PUBLISH),
        ("acquire of the row", READ),
    ] {
        let mutations = [LABELS(text, Change::Relax)];
        fails(
            "reader of stacks",
            what,
            Some(4),
            &mutations,
            "a stack that no caller has",
            reader_of_stacks,
        );
    }
}
