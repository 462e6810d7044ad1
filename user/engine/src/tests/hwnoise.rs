// SPDX-License-Identifier: GPL-2.0

//! The loop with interrupts off, with a clock that the test controls.

use crate::hwnoise::{Found, Plan, BINS};
use kernel::prelude::*;
use std::cell::Cell;

fn plan(text: &str) -> Plan {
    Plan::parse(text.as_bytes()).unwrap()
}

/// Returns the output of a slice, with a clock that has these readings, followed by readings 10 ns apart.
fn measured(text: &str, readings: &[u64]) -> Vec<String> {
    let at = Cell::new(0);
    let clock = || {
        let nth = at.replace(at.get() + 1);
        let last = readings.len() - 1;
        readings[nth.min(last)] + 10 * nth.saturating_sub(last) as u64
    };
    let mut bins = vec![0; BINS];
    let mut found = Found::new(&mut bins);
    found.measure(plan(text), clock);
    let mut out = String::new();
    found.print(&mut out).unwrap();
    out.lines().map(String::from).collect()
}

/// The first reading and the readings of the warm-up. The measured readings follow.
const WARM: [u64; 6] = [0, 500, 600, 700, 800, 1000];

#[test]
fn a_plan_has_two_numbers_and_a_length_of_at_most_a_millisecond() {
    assert!(Plan::parse(b"1000000 100").is_ok() && Plan::parse(b"1 0").is_ok());
    for bad in [
        "",
        " ",
        "5",
        "5 ",
        " 5",
        "5  6",
        "a 5",
        "5 a",
        "-1 5",
        "+5 6",
        "5 +6",
        "5 6 7",
        "1ms 5",
        "18446744073709551616 5",
    ] {
        assert_eq!(Plan::parse(bad.as_bytes()), Err(EINVAL), "{bad}");
    }
    assert_eq!(Plan::parse(b"5 \xff"), Err(EINVAL));
    for far in ["0 5", "1000001 5", "18446744073709551615 5"] {
        assert_eq!(Plan::parse(far.as_bytes()), Err(ERANGE), "{far}");
    }
}

#[test]
fn gaps_lie_between_consecutive_readings_after_the_warm_up() {
    let mut readings = WARM.to_vec();
    readings.extend([1010, 1020, 1060, 1100]);
    assert_eq!(
        measured("100 1000", &readings),
        [
            "loops 4",
            "min 10",
            "max 40",
            "sum 100",
            "squares 3400",
            "peaks 0",
            "bin 10 2",
            "bin 40 2"
        ]
    );
}

#[test]
fn peaks_have_their_start_and_the_first_ones_are_kept() {
    let mut readings = WARM.to_vec();
    readings.extend([1010, 1500, 1510, 2600]);
    let lines = measured("1000 400", &readings);
    let peaks: Vec<_> = lines
        .iter()
        .filter(|line| line.starts_with("peak"))
        .collect();
    assert_eq!(peaks, ["peaks 2", "peak 1010 490", "peak 1510 1090"]);
    // Each gap is a peak: 100 of them, 16 with a line.
    let lines = measured("1000 10", &WARM);
    assert!(lines.contains(&"peaks 100".to_string()), "{lines:?}");
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.starts_with("peak "))
            .count(),
        16
    );
}

#[test]
fn a_clock_may_go_back_or_stand_still() {
    let mut readings = WARM.to_vec();
    readings.extend([1010, 1005, 1200]);
    let lines = measured("200 1000", &readings);
    assert_eq!(lines[..4], ["loops 3", "min 0", "max 195", "sum 205"]);
    let mut bins = vec![0; BINS];
    let mut found = Found::new(&mut bins);
    found.measure(plan("1000000 1"), || 7);
    let mut out = String::new();
    found.print(&mut out).unwrap();
    assert!(out.starts_with("loops 250001\nmin 0\nmax 0\n"), "{out}");
}
