// SPDX-License-Identifier: GPL-2.0

use crate::engine::{event::Event, freelist::Cell};

#[test]
fn a_life_starts_and_ends_once() {
    let event = Event::<1, 2>::new();
    assert!(event.life().is_none());
    assert!(event.peek().is_none());

    event.fill(&[7], 100, &[1, 2]);
    assert!(event.life().is_none(), "not before it is published");
    event.publish();
    let first = event.life().unwrap();
    assert!(event.has_key(&[7]) && !event.has_key(&[8]));
    let (life, copy) = event.peek().unwrap();
    assert_eq!(life, first);
    assert_eq!((copy.key, copy.start, copy.data), ([7], 100, [1, 2]));

    assert_eq!(event.claim(first), Some(first));
    assert_eq!(event.claim(first), None, "one winner");
    assert!(event.life().is_none() && event.peek().is_none());
    assert_eq!(
        (event.key(), event.start(), event.data()),
        ([7], 100, [1, 2])
    );
}

#[test]
fn no_life_comes_twice() {
    let event = Event::<1, 1>::new();
    let mut lives = Vec::new();
    for round in 0..1000 {
        event.fill(&[round], round, &[round]);
        event.publish();
        let life = event.life().unwrap();
        assert!(!lives.contains(&life));
        for old in &lives {
            assert_eq!(event.claim(*old), None, "of an earlier life");
        }
        assert_eq!(event.claim(life), Some(life));
        lives.push(life);
    }
}

#[test]
fn a_changed_event_is_another_life() {
    let event = Event::<1, 1>::new();
    event.fill(&[1], 1, &[1]);
    event.publish();
    let before = event.life().unwrap();
    assert_eq!(event.claim(before), Some(before));
    event.set_start(2);
    event.set_data(&[2]);
    event.publish();
    assert_ne!(event.life(), Some(before));
    let (_, copy) = event.peek().unwrap();
    assert_eq!((copy.key, copy.start, copy.data), ([1], 2, [2]));
}

#[test]
fn an_event_has_the_documented_size() {
    // state, link, start; the key of two words and eight words of data fit in 128 bytes
    assert_eq!(size_of::<Event<2, 8>>(), 8 * (3 + 2 + 8));
    assert!(size_of::<Event<2, 8>>() <= 128);
}
