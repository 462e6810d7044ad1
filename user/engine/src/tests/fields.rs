// SPDX-License-Identifier: GPL-2.0

//! The fields that `record!` declares: where they are stored, and how they are formatted.

use crate::{
    alert::record::{actor::Actor, user::Mark, Alert, Owner, Reason, DETAIL},
    record::{words_of, Field, How, Record, Shown, Span, U20, U31},
    text::pack,
};
use proptest::prelude::*;
use std::{collections::BTreeSet, panic::catch_unwind};

#[path = "../../../../rust/record/example.rs"]
mod example;
use example::{Detail, Status};

fn detail() -> Detail {
    Detail {
        irq: 9,
        cpu: 3,
        action: pack(b"acpi \"x\""),
        status: Status(0x5a),
        ret: true,
    }
}

/// Returns the fields of the line of an alert with this reason and detail.
fn line(reason: Reason, detail: &Detail) -> String {
    struct Line(Alert);
    impl std::fmt::Display for Line {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Detail::print(&self.0, f)
        }
    }
    Line(Alert {
        seq: 1,
        time: 2,
        instance: [0; 4],
        tracker: 0,
        reason,
        delay: 3,
        before_start: false,
        threshold: 1,
        cpu: 0,
        owner: Owner::default(),
        detail: detail.words(),
        tail: 0,
        user: Mark::default(),
        is_trusted: false,
    })
    .to_string()
}

#[test]
fn fields_read_in_the_order_of_their_declaration() {
    let pending = Shown(&detail(), How::of_pending(false)).to_string();
    assert_eq!(
        pending,
        r#" irq=9 isa=1 on=3 action="acpi \"x\"" status=0x5a"#
    );
    assert_eq!(line(Reason::Timeout, &detail()), pending);
    assert_eq!(line(Reason::Late, &detail()), pending + " ret=handled");
}

#[test]
fn fields_are_stored_where_they_are_declared() {
    assert_eq!(Detail::WORDS, 3);
    let [name, rest] = detail().action;
    assert_eq!(
        detail().words(),
        [9 | 3 << 32 | 1 << 48 | 0x5a << 49, name, rest]
    );
}

/// Stores a field among bits that are all 0, and reads it back from among bits that are all 1.
fn assert_own_bits<F: Field>(field: F, at: usize) {
    let (mut alone, mut back) = ([0; 4], [0; 4]);
    field.put(&mut alone, at);
    let own: [u64; 4] = std::array::from_fn(|word| match word.checked_sub(at / 64) {
        Some(0) => (u64::MAX >> (64 - F::BITS.min(64) + F::SPARE)) << (at % 64),
        Some(nth) if 64 * nth < F::BITS => u64::MAX,
        _ => 0,
    });
    let crowd: [u64; 4] = std::array::from_fn(|word| alone[word] | !own[word]);
    assert!(
        (0..4).all(|word| alone[word] & !own[word] == 0),
        "{alone:x?}"
    );
    F::take(&crowd, at).put(&mut back, at);
    assert_eq!(back, alone);
}

#[test]
#[should_panic(expected = "it overlaps")]
fn fields_that_overlap_do_not_compile() {
    words_of(&[span::<u32>(0), span::<u8>(31)]);
}

#[test]
#[should_panic(expected = "it does not fit")]
fn a_field_that_crosses_a_word_does_not_compile() {
    words_of(&[span::<u32>(33)]);
}

fn span<F: Field>(at: usize) -> Span {
    Span {
        at,
        bits: F::BITS,
        spare: F::SPARE,
        misfit: "it does not fit",
        overlap: "it overlaps",
    }
}

#[test]
fn bits_that_an_actor_leaves_free_may_belong_to_another_field() {
    assert_eq!(words_of(&[span::<Actor>(64), span::<U20>(64 + 44)]), 4);
    assert!(catch_unwind(|| words_of(&[span::<Actor>(64), span::<U20>(64 + 43)])).is_err());
}

fn lengths() -> impl Strategy<Value = usize> {
    prop::sample::select([1, 16, 32, 64, 128].as_slice())
}

proptest! {
    #[test]
    fn a_field_keeps_to_its_bits(number: u64, at in 0usize..32, name: [u64; 3], is: bool) {
        assert_own_bits(number as u16, at);
        assert_own_bits(number as i16, at);
        assert_own_bits(number as i32, at);
        assert_own_bits(number as i64, 64);
        assert_own_bits(is, at);
        assert_own_bits(U20(number as u32), at);
        assert_own_bits(U31(number as u32), at);
        assert_own_bits(Status(number as u16), at);
        assert_own_bits(name, 64);
        let (pid, tid, comm) = (number as u32, (number >> 32) as u32, [name[0], name[1]]);
        assert_own_bits(Actor { pid, tid, comm }, 64);
    }

    #[test]
    fn fields_compile_if_each_has_bits_of_its_own(
        fields in prop::collection::vec(((0..4 * DETAIL).prop_map(|at| at * 16), lengths()), 1..6),
    ) {
        let (mut bits, mut fit) = (BTreeSet::new(), true);
        for &(at, len) in &fields {
            let is_in_words = at / 64 == (at + len - 1) / 64 || at % 64 == 0;
            fit &= is_in_words && at + len <= 64 * DETAIL;
            fit &= (at..at + len).all(|bit| bits.insert(bit));
        }
        let spans = fields.iter().map(|&(at, bits)| Span { bits, ..span::<u8>(at) }).collect::<Vec<_>>();
        let words = catch_unwind(|| words_of(&spans)).ok();
        let last = bits.last().map_or(0, |bit| bit / 64 + 1);
        prop_assert_eq!(words, fit.then_some(last));
    }
}
