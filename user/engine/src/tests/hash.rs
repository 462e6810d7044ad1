// SPDX-License-Identifier: GPL-2.0

//! Regular keys spread evenly over the low bits of the hash, which select the bucket, and over its
//! high byte, which contains the tag.

use crate::engine::hash::Seed;

/// Returns how far the counts are from an even distribution, in standard deviations: about 0 for
/// random keys.
fn unevenness(counts: &[u32]) -> f64 {
    let total: u32 = counts.iter().sum();
    let expected = f64::from(total) / counts.len() as f64;
    let squares = counts.iter().map(|&n| (f64::from(n) - expected).powi(2));
    let chi_squared = squares.sum::<f64>() / expected;
    let freedom = counts.len() as f64 - 1.0;
    (chi_squared - freedom) / (2.0 * freedom).sqrt()
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn seeds() -> impl Iterator<Item = Seed> {
    let mut state = 1;
    (0..100).map(move |_| Seed::new(split_mix(&mut state), split_mix(&mut state)))
}

const KEYS: u64 = 16384;
const BUCKETS: usize = 1024;

/// A family of keys: its name, and a function that returns key number i.
type Family = (&'static str, fn(u64) -> [u64; 2]);

const FAMILIES: [Family; 11] = [
    ("tids", |i| [1000 + i, 0]),
    ("sectors of 4 KiB", |i| [8 * i, 0]),
    ("sectors of 1 MiB", |i| [2048 * i, 0]),
    ("pointers to 64 bytes", |i| {
        [0xffff_8880_0000_0000 + 64 * i, 0]
    }),
    ("pointers to requests", |i| {
        [0xffff_8881_0480_0000 + 320 * i, 0]
    }),
    ("pointers to pages", |i| {
        [0xffff_8881_0480_0000 + 4096 * i, 0]
    }),
    ("high bits only", |i| [i << 50, 0]),
    ("tid and system call", |i| [1000 + i / 16, i % 16]),
    ("device and sector", |i| [(8 << 20) | (i % 4), 8 * i]),
    ("the second word only", |i| [0, i]),
    ("both words equal", |i| [i, i]),
];

fn check<const K: usize>(name: &str, key: impl Fn(u64) -> [u64; K]) {
    let (mut worst_buckets, mut worst_tags) = (0.0f64, 0.0f64);
    for seed in seeds() {
        let mut buckets = vec![0; BUCKETS];
        let mut tags = vec![0; 256];
        for i in 0..KEYS {
            let hash = seed.hash(&key(i));
            buckets[hash as usize % BUCKETS] += 1;
            tags[(hash >> 56) as usize] += 1;
        }
        worst_buckets = worst_buckets.max(unevenness(&buckets));
        worst_tags = worst_tags.max(unevenness(&tags));
    }
    println!("{name} ({K} words): buckets {worst_buckets:.1}, tags {worst_tags:.1}");
    // The worst of 100 seeds. Random keys almost always stay below 4.
    assert!(worst_buckets < 6.0, "{name}: buckets {worst_buckets:.1}");
    assert!(worst_tags < 6.0, "{name}: tags {worst_tags:.1}");
}

#[test]
fn regular_keys_spread_evenly() {
    for (name, key) in FAMILIES {
        if key(1)[1] == 0 && key(20)[1] == 0 {
            check(name, |i| [key(i)[0]]);
        }
        check(name, key);
        check(name, |i| [key(i)[0], key(i)[1], 0]);
    }
}

/// Returns a key of up to 64 bytes in the form that other modules pass: padded with zeros, its
/// length last.
fn bytes(key: &[u8]) -> [u64; 9] {
    let mut words = [0; 9];
    for (word, chunk) in words.iter_mut().zip(key.chunks(8)) {
        let mut padded = [0; 8];
        padded[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_ne_bytes(padded);
    }
    words[8] = key.len() as u64;
    words
}

#[test]
fn byte_strings_spread_evenly() {
    check("numbered words", |i| bytes(format!("work-{i}").as_bytes()));
    check("numbers in front", |i| {
        bytes(format!("{i:08}-of-a-cookie-that-fills-all-of-the-sixty-four-bytes-there").as_bytes())
    });
    check("numbers at the end", |i| {
        bytes(
            format!("a-cookie-that-fills-all-of-the-sixty-four-bytes-there-are-{i:06}").as_bytes(),
        )
    });
    check("addresses and ports", |i| {
        let mut key = [0; 12];
        key[..4].copy_from_slice(&[10, 0, (i >> 8) as u8, i as u8]);
        key[4..8].copy_from_slice(&[10, 0, 0, 1]);
        key[8..10].copy_from_slice(&443u16.to_be_bytes());
        key[10..].copy_from_slice(&(32768 + (i >> 6) as u16).to_be_bytes());
        bytes(&key)
    });
    for word in 0..8 {
        check("one word of eight", |i| {
            let mut key = [0x5a; 64];
            key[8 * word..8 * word + 8].copy_from_slice(&i.to_ne_bytes());
            bytes(&key)
        });
    }
    // Two words that change in opposite directions, so that sums stay the same.
    check("words with a constant sum", |i| {
        let mut key = [0; 64];
        key[8..16].copy_from_slice(&i.to_ne_bytes());
        key[24..32].copy_from_slice(&i.wrapping_neg().to_ne_bytes());
        bytes(&key)
    });
    // These keys are all zeros, and differ only in length.
    let seed = seeds().next().unwrap();
    let mut hashes: Vec<_> = (1..=64).map(|n| seed.hash(&bytes(&[0; 64][..n]))).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 64);
}

#[test]
fn every_bit_of_a_long_key_changes_half_of_the_hash() {
    let mut state = 9;
    let mut changed = [0u32; 9 * 64];
    const ROUNDS: u32 = 200;
    for _ in 0..ROUNDS {
        let seed = Seed::new(split_mix(&mut state), split_mix(&mut state));
        let key: [u64; 9] = std::array::from_fn(|_| split_mix(&mut state));
        let hash = seed.hash(&key);
        for (bit, changed) in changed.iter_mut().enumerate() {
            let mut other = key;
            other[bit / 64] ^= 1 << (bit % 64);
            *changed += (hash ^ seed.hash(&other)).count_ones();
        }
    }
    for (bit, changed) in changed.iter().enumerate() {
        let mean = f64::from(*changed) / 64.0 / f64::from(ROUNDS);
        assert!((0.4..0.6).contains(&mean), "bit {bit}: {mean:.2}");
    }
}

#[test]
fn every_bit_of_a_key_changes_half_of_the_hash() {
    let mut changed = [[0u32; 64]; 128];
    let mut state = 7;
    const ROUNDS: u32 = 500;
    for _ in 0..ROUNDS {
        let seed = Seed::new(split_mix(&mut state), split_mix(&mut state));
        let key = [split_mix(&mut state), split_mix(&mut state)];
        let hash = seed.hash(&key);
        for (bit, changed) in changed.iter_mut().enumerate() {
            let mut other = key;
            other[bit / 64] ^= 1 << (bit % 64);
            let difference = hash ^ seed.hash(&other);
            for (at, count) in changed.iter_mut().enumerate() {
                *count += (difference >> at & 1) as u32;
            }
        }
    }
    for (bit, changed) in changed.iter().enumerate() {
        let mean = changed.iter().sum::<u32>() as f64 / 64.0 / f64::from(ROUNDS);
        assert!(
            (0.4..0.6).contains(&mean),
            "bit {bit} changes {mean:.2} of the hash"
        );
    }
}

#[test]
fn keys_chosen_against_one_seed_do_not_collide_under_another() {
    let known = Seed::new(1, 0x1234_5678_9abc_def1);
    let other = Seed::new(0xfeed_face_0bad_cafe, 0x0dd0_5eed_1357_9bdf);
    let chosen: Vec<u64> = (0..)
        .filter(|&key| known.hash(&[key]).trailing_zeros() >= 12)
        .take(1000)
        .collect();
    let mut buckets = vec![0; 64];
    for key in chosen {
        buckets[other.hash(&[key]) as usize % 64] += 1;
    }
    assert!(unevenness(&buckets) < 6.0, "{}", unevenness(&buckets));
}

#[test]
fn long_keys_chosen_against_one_seed_do_not_collide_under_another() {
    let known = Seed::new(1, 0x1234_5678_9abc_def1);
    let other = Seed::new(0xfeed_face_0bad_cafe, 0x0dd0_5eed_1357_9bdf);
    let chosen: Vec<_> = (0u64..)
        .map(|i| bytes(format!("cookie {i} of somebody who knows").as_bytes()))
        .filter(|key| known.hash(key).trailing_zeros() >= 12)
        .take(1000)
        .collect();
    let mut buckets = vec![0; 64];
    for key in chosen {
        buckets[other.hash(&key) as usize % 64] += 1;
    }
    assert!(unevenness(&buckets) < 6.0, "{}", unevenness(&buckets));
}
