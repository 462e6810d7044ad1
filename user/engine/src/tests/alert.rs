// SPDX-License-Identifier: GPL-2.0

use crate::alert::ring::{Read, Ring, Words, WORDS};
use kernel::prelude::*;
use proptest::prelude::*;

fn alert(number: u64) -> Words {
    std::array::from_fn(|i| number << 8 | i as u64)
}

/// Continues reading at `next`; returns the numbers read, and how many were lost.
fn drain(ring: &Ring, next: &mut u64) -> (Vec<u64>, u64) {
    let (mut read, mut lost) = (Vec::new(), 0);
    loop {
        match ring.read(*next, &mut []) {
            Read::NotYet => return (read, lost),
            Read::Ready(words) => {
                assert_eq!(words, alert(*next));
                read.push(*next);
                *next += 1;
            }
            Read::Lost => {
                let on = ring.tail().max(*next + 1);
                lost += on - *next;
                *next = on;
            }
        }
    }
}

#[test]
fn a_ring_is_a_power_of_two_long() {
    for len in [0, 3, 5, 1000, u32::MAX] {
        assert_eq!(Ring::new(len, 0).err(), Some(EINVAL));
    }
    for len in [1, 2, 1024] {
        assert!(Ring::new(len, 0).is_ok());
    }
}

#[test]
fn alerts_come_in_order_and_once() {
    let ring = Ring::new(8, 0).unwrap();
    assert_eq!((ring.head(), ring.tail()), (0, 1));
    assert!(matches!(ring.read(1, &mut []), Read::NotYet));
    let mut next = 1;
    for number in 1..=100 {
        assert_eq!(ring.push(alert, &[]), Ok(number));
        assert_eq!(drain(&ring, &mut next), (vec![number], 0));
    }
    assert_eq!((ring.head(), ring.tail()), (100, 93));
}

#[test]
fn a_tail_is_cut_to_the_room_in_the_ring_and_at_the_reader() {
    let ring = Ring::new(2, 3).unwrap();
    for tail in [&[][..], &[1], &[1, 2, 3], &[1, 2, 3, 4]] {
        let number = ring.push(alert, tail).unwrap();
        let fits = &tail[..tail.len().min(3)];
        for room in 0..5 {
            let mut copy = vec![0; room];
            assert!(matches!(ring.read(number, &mut copy), Read::Ready(_)));
            let expected = &fits[..fits.len().min(room)];
            assert_eq!(&copy[..expected.len()], expected);
        }
    }
    let other = ring.push(alert, &[7, 8, 9]).unwrap();
    let mut copy = [0; 3];
    ring.read(other - 1, &mut copy);
    assert_eq!(copy, [1, 2, 3], "the tail of the alert before");
}

#[test]
fn an_overtaken_reader_learns_how_many_alerts_are_lost() {
    let ring = Ring::new(4, 0).unwrap();
    let (mut early, mut late) = (1, 1);
    for _ in 0..2 {
        ring.push(alert, &[]).unwrap();
    }
    assert_eq!(drain(&ring, &mut early), (vec![1, 2], 0));
    for _ in 0..8 {
        ring.push(alert, &[]).unwrap();
    }
    assert_eq!(drain(&ring, &mut early), (vec![7, 8, 9, 10], 4));
    assert_eq!(drain(&ring, &mut late), (vec![7, 8, 9, 10], 6));
    assert_eq!(drain(&ring, &mut late), (vec![], 0));
}

#[test]
fn an_alert_in_the_middle_of_another_is_recorded() {
    let ring = Ring::new(2, 0).unwrap();
    let pushed = ring.push(
        |number| {
            assert_eq!(ring.push(alert, &[]), Ok(2));
            assert!(
                matches!(ring.read(number, &mut []), Read::NotYet),
                "being written"
            );
            assert!(matches!(ring.read(2, &mut []), Read::Ready(_)));
            alert(number)
        },
        &[],
    );
    assert_eq!(pushed, Ok(1));
    assert_eq!(drain(&ring, &mut 1), (vec![1, 2], 0));
}

#[test]
fn an_alert_that_finds_its_slot_taken_is_lost_and_no_reader_waits_for_it() {
    let ring = Ring::new(2, 0).unwrap();
    let pushed = ring.push(
        |number| {
            assert_eq!(ring.push(alert, &[]), Ok(2));
            assert_eq!(ring.push(alert, &[]), Err(3), "a lap ahead");
            assert!(matches!(ring.read(3, &mut []), Read::Lost));
            assert_eq!(ring.push(alert, &[]), Ok(4));
            alert(number)
        },
        &[],
    );
    assert_eq!(pushed, Ok(1));
    let mut next = 1;
    assert_eq!(drain(&ring, &mut next), (vec![1, 4], 2));
    assert_eq!(ring.push(alert, &[]), Ok(5));
    assert_eq!(drain(&ring, &mut next), (vec![5], 0));
}

proptest! {
    #[test]
    fn read_and_lost_add_up(log in 0u32..6, steps in prop::collection::vec(0u64..20, 1..40)) {
        let ring = Ring::new(1 << log, 0).unwrap();
        let (mut next, mut read, mut lost) = (1, 0, 0);
        for count in steps {
            for _ in 0..count {
                ring.push(alert, &[]).unwrap();
            }
            let (seen, gone) = drain(&ring, &mut next);
            read += seen.len() as u64;
            lost += gone;
            prop_assert_eq!(read + lost, ring.head());
            prop_assert_eq!(seen.len() as u64, count.min(1 << log));
            prop_assert_eq!(WORDS, 32);
        }
    }
}
