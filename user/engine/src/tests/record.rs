// SPDX-License-Identifier: GPL-2.0

use crate::{
    alert::record::{
        actor::{Actor, Place},
        user::{End, Mark, UserField, USER_DEPTH},
        Alert, Owner, Reason, DETAIL, NAME_MAX,
    },
    text::{pack, unpack, Plain, Quoted},
};
use proptest::prelude::*;

const REASONS: [Reason; 4] = [
    Reason::Threshold,
    Reason::Timeout,
    Reason::Late,
    Reason::Stack,
];

/// Parses the quoted form, as user space does.
fn unquote(text: &str) -> Option<Vec<u8>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::new();
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        bytes.push(match c {
            '"' => return None,
            '\\' => match rest.next()? {
                'n' => b'\n',
                'x' => {
                    let digits = String::from_iter([rest.next()?, rest.next()?]);
                    u8::from_str_radix(&digits, 16).ok()?
                }
                c @ ('"' | '\\') => c as u8,
                _ => return None,
            },
            c if (' '..='~').contains(&c) => c as u8,
            _ => return None,
        });
    }
    Some(bytes)
}

#[test]
fn an_owner_is_shown_with_its_fields() {
    let owner = Owner {
        pid: 12,
        tid: 34,
        start_mark: 56,
        comm: pack(b"a \"b\"\\\n\x7f"),
    };
    let text = r#"pid=12 tid=34 comm="a \"b\"\\\n\x7f""#;
    assert_eq!(owner.to_string(), text);
    assert_eq!(Owner::default().to_string(), r#"pid=0 tid=0 comm="""#);
}

#[test]
fn a_task_that_started_later_is_not_the_owner() {
    let start_mark = 7_123_456_789;
    let owner = Owner {
        pid: 12,
        tid: 34,
        start_mark: Owner::start_mark_of(start_mark),
        comm: [0; 2],
    };
    let began = start_mark + 5_000_000_000;
    assert!(owner.is_task_started_at(start_mark, began));
    assert!(
        owner.is_task_started_at(start_mark, start_mark),
        "at the same instant"
    );
    assert!(
        !owner.is_task_started_at(began + 1, began),
        "after the start"
    );
    for age in [1_100, 2_000, 1_000_000, 1 << 29] {
        assert!(
            !owner.is_task_started_at(start_mark + age, began),
            "{age} ns later"
        );
        assert!(
            !owner.is_task_started_at(start_mark - age, began),
            "{age} ns earlier"
        );
    }
    assert!(
        !Owner::default().is_task_started_at(0, began),
        "there is no owner"
    );
}

#[test]
fn a_name_of_maximum_length_fits() {
    let name = [b'x'; NAME_MAX];
    let words: [u64; 4] = pack(&name);
    assert_eq!(Plain(&words).to_string().as_bytes(), name);
}

#[test]
fn each_reason_has_a_name_of_its_own() {
    let names = REASONS.map(|reason| reason.name().to_str().unwrap());
    assert_eq!(names, ["threshold", "timeout", "late", "stack"]);
}

proptest! {
    #[test]
    fn an_alert_survives_the_ring(
        reason in prop::sample::select(REASONS.as_slice()),
        seq: u64, time: u64, delay: u64, before_start: bool, threshold: u64,
        instance: [u64; 4], tracker in 0usize..0x100,
        cpu: u32, pid in 0u32..1 << 22, tid in 0u32..1 << 22, start_mark in 0u32..1 << 20,
        comm: [u64; 2], tail: u8, user: u8,
        detail in prop::collection::vec(any::<u64>(), DETAIL),
    ) {
        let alert = Alert {
            seq, time, instance, tracker, reason,
            delay, before_start, threshold, cpu,
            owner: Owner { pid, tid, start_mark, comm },
            detail: detail.try_into().unwrap(), tail, user: Mark(user), is_trusted: false,
        };
        let words = alert.to_words();
        let back = Alert::from_words(&words);
        prop_assert_eq!(words, back.to_words());
        prop_assert_eq!(reason, back.reason);
        prop_assert_eq!(format!("{alert:?}"), format!("{back:?}"));
        prop_assert_eq!(Owner::from_words(alert.owner.to_words()), alert.owner);
    }

    #[test]
    fn packed_bytes_come_back_up_to_the_first_nul(bytes: Vec<u8>) {
        let words: [u64; 3] = pack(&bytes);
        let back: Vec<u8> = unpack(&words).collect();
        let expected: Vec<u8> = bytes.into_iter().take(24).take_while(|&b| b != 0).collect();
        prop_assert_eq!(back, expected);
    }

    #[test]
    fn quoted_bytes_can_be_read_back(bytes: Vec<u8>) {
        let text = Quoted::bytes(&bytes).to_string();
        prop_assert!(text.bytes().all(|b| (b' '..=b'~').contains(&b)), "printable: {text}");
        prop_assert_eq!(unquote(&text), Some(bytes));
    }
}

#[test]
fn a_user_space_stack_is_shown_only_to_trusted_readers() {
    let show = |end, entries: &[u64], is_trusted| {
        let mark = Mark::new(end, entries.len());
        assert_eq!((mark.end(), mark.len()), (end, entries.len()));
        UserField {
            entries,
            mark,
            is_trusted,
        }
        .to_string()
    };
    let stack = [0x40_1136, 0x7fff_ffff_f000];
    for (end, word) in [
        (End::Outermost, "outermost"),
        (End::Broken, "broken"),
        (End::Unreadable, "unreadable"),
        (End::Depth, "depth"),
        (End::Unsupported, "unsupported"),
    ] {
        let shown = format!(" ustack=0x401136,0x7ffffffff000 ustack_end={word}");
        assert_eq!(show(end, &stack, true), shown);
        assert_eq!(show(end, &stack, false), " ustack=hidden");
    }
    for is_trusted in [false, true] {
        assert_eq!(show(End::None, &[], is_trusted), " ustack=none");
        assert_eq!(show(End::Elsewhere, &[], is_trusted), " ustack=elsewhere");
        assert_eq!(show(End::Kernel, &[], is_trusted), " ustack=kernel");
        assert_eq!(show(End::Unasked, &[], is_trusted), "");
    }
    assert_eq!(Mark::default(), Mark::new(End::Unasked, 0));
    assert_eq!(Mark::new(End::Depth, 99).len(), USER_DEPTH);
}

proptest! {
    #[test]
    fn an_actor_and_a_place_survive_their_words(
        pid in 0u32..1 << 22, tid in 0u32..1 << 22, comm: [u64; 2], note: u64, cpu: u32, prio: i16, policy: u16
    ) {
        let actor = Actor { pid, tid, comm };
        let mut words = actor.to_words();
        // A tracker may use the bits that the ids leave free.
        words[0] |= note << 44;
        prop_assert_eq!(Actor::from_words(words), actor);
        let place = Place { cpu, prio, policy };
        prop_assert_eq!(Place::from_word(place.to_word()), place);
    }
}
