// SPDX-License-Identifier: GPL-2.0

//! lt_kunit: KUnit suites for the module's computing and parsing code, and for the engine when
//! memory is short.
//!
//! The thorough tests of these files are in user/engine. The suites here check that the results do
//! not depend on the kernel's compiler flags, `fmt`, error codes and panics, and make the kernel's
//! own allocations fail (kunit/faults.rs).
//!
//! Built only for a kernel with `CONFIG_KUNIT` and `CONFIG_FAILSLAB`. The suites run when the
//! module is loaded; the results are in debugfs, in kunit/SUITE/results.

#![allow(
    dead_code,
    reason = "the tests need less of these files than the module does"
)]

use kernel::{fmt, prelude::*, str::CString};
use kunit::faults::Faults;

#[path = "../../user/engine/src/alert.rs"]
mod alert;
#[allow(
    unused_imports,
    unused_macros,
    reason = "the suites have assertions of their own"
)]
mod common;
#[path = "../../rust/control.rs"]
mod control;
#[path = "../../rust/engine.rs"]
mod engine;
mod kunit {
    pub(crate) mod faults;
}
mod sys;
#[path = "../../rust/text.rs"]
mod text;

module! {
    type: Suites,
    name: "lt_kunit",
    authors: ["The latency-tracker developers"],
    description: "KUnit suites of latency-tracker",
    license: "GPL v2",
}

struct Suites {
    _faults: Faults,
}

impl kernel::Module for Suites {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self {
            _faults: Faults::new()?,
        })
    }
}

/// Returns whether `value` is printed as `text`.
fn prints(value: &dyn fmt::Display, text: &str) -> bool {
    CString::try_from_fmt(fmt!("{value}"))
        .is_ok_and(|printed| printed.to_bytes() == text.as_bytes())
}

#[kunit_tests(lt_hash)]
mod hash_suite {
    use crate::engine::hash::Seed;

    const SEED: Seed = Seed::new(0x1234_5678_9abc_def1, 0xfeed_beef_cafe_f00d);

    // Computed by an independent program from the description in hash.rs.
    #[test]
    fn known_values() {
        assert_eq!(SEED.hash(&[0]), 0x6f02_f1a5_c2b1_0161);
        assert_eq!(SEED.hash(&[1]), 0x5c31_622d_ec6c_2651);
        assert_eq!(SEED.hash(&[u64::MAX]), 0x72af_7f00_2ace_d448);
        assert_eq!(SEED.hash(&[8 << 20, 2048]), 0x445a_0c82_edd5_95ab);
        assert_eq!(SEED.hash(&[1, 2, 3]), 0x1b45_f485_df58_4523);
    }

    #[test]
    fn every_bit_of_a_key_counts() {
        for bit in 0..64 {
            assert!(SEED.hash(&[1 << bit, 0]) != SEED.hash(&[0, 0]));
            assert!(SEED.hash(&[0, 1 << bit]) != SEED.hash(&[0, 0]));
        }
    }
}

#[kunit_tests(lt_histogram)]
mod histogram_suite {
    use crate::engine::histogram::{bounds, bucket_of, BUCKETS};

    #[test]
    fn buckets_follow_each_other() {
        let mut next = 0;
        for bucket in 0..BUCKETS {
            let (low, high) = bounds(bucket);
            assert_eq!(low, next);
            assert!(low < high);
            next = high;
        }
        assert_eq!(next, u64::MAX);
    }

    #[test]
    fn a_delay_lies_in_its_bucket() {
        for bucket in 0..BUCKETS {
            let (low, high) = bounds(bucket);
            assert_eq!(bucket_of(low), bucket);
            assert_eq!(bucket_of(high - 1), bucket);
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_bucket_is_at_most_an_eighth_wide() {
        for bucket in 8..BUCKETS - 1 {
            let (low, high) = bounds(bucket);
            assert!((high - low) * 8 <= low);
        }
    }
}

#[kunit_tests(lt_text)]
mod text_suite {
    use crate::{
        prints,
        text::{pack, unpack, Plain, Quoted},
    };

    #[test]
    fn quoted_bytes_are_escaped() {
        assert!(prints(&Quoted::bytes(b"plain text"), "\"plain text\""));
        assert!(prints(&Quoted::bytes(b""), "\"\""));
        assert!(prints(&Quoted::bytes(b"a\"b\\c\n"), "\"a\\\"b\\\\c\\n\""));
        assert!(prints(
            &Quoted::bytes(b"\x00\x1f\x7f\xff"),
            "\"\\x00\\x1f\\x7f\\xff\""
        ));
    }

    #[test]
    fn words_hold_bytes() {
        let words = pack::<2>(b"0123456789");
        assert_eq!(words, [0x3736_3534_3332_3130, 0x3938]);
        assert!(unpack(&words).eq(b"0123456789".iter().copied()));
        assert!(prints(&Quoted::words(&words), "\"0123456789\""));
        assert!(prints(&Plain(&words), "0123456789"));
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        assert!(prints(&Plain(&pack::<1>(b"0123456789")), "01234567"));
    }
}

#[kunit_tests(lt_control)]
mod control_suite {
    use crate::{
        control::{
            parse_line, Device, Disk, Kind, Line, LookupTarget, Param, ALL_DEVICES, DURATION_MAX,
        },
        prints,
    };
    use kernel::prelude::*;

    const fn param(kind: Kind) -> Param {
        Param {
            name: "p",
            kind,
            default: 0,
            fixed: false,
            help: "",
        }
    }

    /// Looks up names on a machine with one disk, which has one partition.
    fn lookup(target: LookupTarget<'_>) -> Result<u64> {
        match target {
            LookupTarget::Disk(Disk::Name(b"sda")) => Ok(8 << 20),
            LookupTarget::Disk(Disk::Name(b"sda1")) => Err(ENOTBLK),
            LookupTarget::Disk(Disk::Number(number)) if number == 8 << 20 | 1 => Err(ENOTBLK),
            LookupTarget::Disk(Disk::Number(number)) => Ok(number.into()),
            _ => Err(ENXIO),
        }
    }

    fn value(kind: Kind, text: &str) -> Result<u64> {
        param(kind)
            .parse(text.as_bytes(), &lookup)
            .map(|number| number as u64)
            .map_err(|fault| fault.error)
    }

    #[test]
    fn durations() {
        assert_eq!(value(Kind::Duration, "0"), Ok(0));
        assert_eq!(value(Kind::Duration, "10ms"), Ok(10_000_000));
        assert_eq!(value(Kind::Duration, "31536000s"), Ok(DURATION_MAX));
        for text in ["", "ms", "-1", "1.5s", "1 s", "1m", "s10"] {
            assert_eq!(value(Kind::Duration, text), Err(EINVAL));
        }
        // An overflow is an error, not a panic.
        for text in ["31536001s", "18446744073709551615s", "18446744073709551616"] {
            assert_eq!(value(Kind::Duration, text), Err(ERANGE));
        }
    }

    #[test]
    fn numbers_and_words() {
        let count = Kind::Count { min: 5, max: 1000 };
        assert_eq!(value(count, "5"), Ok(5));
        assert_eq!(value(count, "1000"), Ok(1000));
        assert_eq!(value(count, "4"), Err(ERANGE));
        assert_eq!(value(count, "1001"), Err(ERANGE));
        let power = Kind::Power { min: 2, max: 1024 };
        assert_eq!(value(power, "64"), Ok(64));
        assert_eq!(value(power, "63"), Err(EINVAL));
        assert_eq!(value(power, "2048"), Err(ERANGE));
        let word = Kind::Word(&["issue", "insert"]);
        assert_eq!(value(word, "insert"), Ok(1));
        assert_eq!(value(word, "Insert"), Err(EINVAL));
        assert_eq!(value(Kind::Switch, "2"), Err(EINVAL));
    }

    #[test]
    fn names_of_commands() {
        let comm = param(Kind::Comm);
        for text in ["all", "fio", "\\x61ll", "Web\\x20Content"] {
            let number = comm.parse(text.as_bytes(), &lookup).unwrap_or(1);
            assert!(prints(&comm.display(number), text));
        }
        for text in ["", "sixteen_letters_", "\\", "\\x2"] {
            assert_eq!(value(Kind::Comm, text), Err(EINVAL));
        }
    }

    #[test]
    fn disks() {
        assert_eq!(value(Kind::Disk, "all"), Ok(ALL_DEVICES));
        assert_eq!(value(Kind::Disk, "8:16"), Ok(8 << 20 | 16));
        assert_eq!(value(Kind::Disk, "sda"), Ok(8 << 20));
        assert_eq!(value(Kind::Disk, "sda1"), Err(EINVAL));
        assert_eq!(value(Kind::Disk, "8:1"), Err(EINVAL));
        assert_eq!(value(Kind::Disk, "none"), Err(ENOENT));
        assert_eq!(value(Kind::Disk, "4096:0"), Err(ERANGE));
        assert_eq!(value(Kind::Disk, "../sda"), Err(EINVAL));
        assert!(prints(&Device(8 << 20 | 16), "8:16"));
    }

    #[test]
    fn lines() {
        let line = b"slow block threshold=10ms dev=sda";
        let Ok(Line::Set {
            name,
            tracker,
            settings,
        }) = parse_line(line)
        else {
            return assert!(false);
        };
        assert_eq!(name, b"slow");
        assert_eq!(tracker, b"block");
        let given = [
            (&b"threshold"[..], &b"10ms"[..]),
            (&b"dev"[..], &b"sda"[..]),
        ];
        assert!(settings.filter_map(|setting| setting.ok()).eq(given));
        assert!(matches!(parse_line(b"-slow"), Ok(Line::Remove(b"slow"))));
        assert!(matches!(parse_line(b"  # nothing"), Ok(Line::Empty)));
    }

    #[test]
    fn a_fault_quotes_the_word() {
        let Err(fault) = parse_line(b"control block") else {
            return assert!(false);
        };
        assert_eq!(fault.error, EINVAL);
        assert!(prints(&fault, "this name is reserved: \"control\""));
    }
}
