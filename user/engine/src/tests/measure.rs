// SPDX-License-Identifier: GPL-2.0

//! The cost of the runs of a probe: sums, percentiles, and events that are more frequent in slow
//! runs.

use super::{on, Numa};
use crate::tally::{Chosen, Tally, COUNTERS, EVENTS};
use proptest::prelude::*;

/// Returns a tally of runs, each with its CPU, its cycles and its branch misses.
fn of(chosen: Chosen, runs: &[(usize, u64, Option<u64>)]) -> Tally {
    let tally = super::off_guard(|| Tally::new::<Numa>(chosen.counters()).unwrap());
    for &(cpu, cycles, misses) in runs {
        let mut values = [None; COUNTERS];
        values[0] = Some(cycles);
        values[1] = misses;
        on::<Numa, _>(cpu, |guard| tally.take::<Numa>(guard, Some(&values)));
    }
    tally
}

fn printed(tally: &Tally, chosen: Chosen) -> Vec<String> {
    let mut out = String::new();
    tally.print(chosen.names(), &mut out).unwrap();
    out.lines().map(String::from).collect()
}

fn misses() -> Chosen {
    Chosen::parse("branch-misses").unwrap()
}

#[test]
fn counters_are_chosen_by_their_names_and_an_unknown_one_is_named() {
    let all = EVENTS.join(",");
    let names = |text| Chosen::parse(text).map(|chosen| chosen.names().collect::<Vec<_>>());
    assert_eq!(names("cycles"), Ok(vec![]));
    assert_eq!(
        names("branch-misses,instructions,branch-misses,cycles"),
        Ok(vec!["instructions", "branch-misses"])
    );
    assert_eq!(names(&all), Ok(EVENTS.to_vec()));
    assert_eq!(Chosen::parse(&all).unwrap().counters(), COUNTERS);
    for (text, word) in [
        ("cycle", "cycle"),
        ("", ""),
        ("cycles,", ""),
        ("cycles;x", "cycles;x"),
    ] {
        assert_eq!(names(text), Err(word), "{text:?}");
    }
}

#[test]
fn runs_of_all_cpus_are_added_up() {
    let chosen = misses();
    let tally = of(
        chosen,
        &[(0, 100, Some(0)), (1, 100, Some(1)), (3, 900, Some(7))],
    );
    assert_eq!((tally.samples(), tally.discarded()), (3, 0));
    assert_eq!(
        printed(&tally, chosen),
        [
            "value cycles count=3 min=100 mean=366 p50=103 p99=900 max=900 sum=1100 \
             squares=830000 products=830000",
            "value branch-misses count=3 min=0 mean=2 p50=1 p99=7 max=7 sum=8 \
             squares=50 products=6400",
            "bucket 96 104 2 1",
            "bucket 896 960 1 7",
        ]
    );
}

#[test]
fn interrupted_and_uncounted_runs_are_not_among_the_values() {
    let chosen = misses();
    let tally = of(chosen, &[(0, 5, None), (0, 6, Some(1))]);
    on::<Numa, _>(2, |guard| tally.take::<Numa>(guard, None));
    assert_eq!((tally.samples(), tally.discarded()), (2, 1));
    let lines = printed(&tally, chosen);
    assert!(
        lines[0].starts_with("value cycles count=2 min=5 mean=5 "),
        "{lines:?}"
    );
    assert!(
        lines[1].starts_with("value branch-misses count=1 min=1 "),
        "{lines:?}"
    );
    assert_eq!(lines[2..], ["bucket 5 6 1 0", "bucket 6 7 1 1"]);
    let empty = of(chosen, &[]);
    assert_eq!(
        printed(&empty, chosen),
        ["value cycles count=0", "value branch-misses count=0"]
    );
}

#[test]
fn a_second_and_more_is_one_bucket_and_is_capped_in_the_sums() {
    let chosen = Chosen::parse("cycles").unwrap();
    let tally = of(chosen, &[(0, 1 << 32, None), (0, 1 << 50, None)]);
    let lines = printed(&tally, chosen);
    assert_eq!(
        lines[1..],
        [format!("bucket {} {} 2", 1u64 << 32, u64::MAX)]
    );
    let square = ((1u64 << 24) - 1).pow(2) * 2;
    assert!(
        lines[0].contains(&format!(" max={} ", 1u64 << 50)),
        "{lines:?}"
    );
    assert!(
        lines[0].contains(&format!(" squares={square} ")),
        "{lines:?}"
    );
}

#[test]
fn without_memory_there_is_no_tally() {
    use crate::sys::memory::{alive, with_budget};
    super::off_guard(|| {
        let before = alive();
        for budget in 0..5 {
            assert!(with_budget(budget, || Tally::new::<Numa>(2)).is_err() || budget == 4);
            assert_eq!(alive(), before);
        }
    });
}

proptest! {
    #[test]
    fn percentiles_are_at_most_an_eighth_too_high(
        mut cycles in prop::collection::vec(0..1u64 << 33, 1..300),
    ) {
        let chosen = Chosen::parse("cycles").unwrap();
        let runs: Vec<_> = cycles.iter().map(|&cycles| (cycles as usize % 4, cycles, None)).collect();
        let lines = printed(&of(chosen, &runs), chosen);
        cycles.sort_unstable();
        let field = |name: &str| {
            let found = lines[0].split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            found.unwrap().parse::<u64>().unwrap()
        };
        prop_assert_eq!(field("count"), cycles.len() as u64);
        prop_assert_eq!((field("min"), field("max")), (cycles[0], cycles[cycles.len() - 1]));
        prop_assert_eq!(field("sum"), cycles.iter().sum::<u64>());
        for (name, percent) in [("p50", 50), ("p99", 99)] {
            let exact = cycles[(cycles.len() * percent).div_ceil(100).max(1) - 1];
            let found = field(name);
            let most = if exact >> 32 == 0 { exact + exact / 8 } else { u64::MAX };
            prop_assert!(exact <= found && found <= most, "{}: {} for {}", name, found, exact);
        }
        let counted: u64 = lines[1..].iter().map(|line| line.split(' ').nth(3).unwrap().parse::<u64>().unwrap()).sum();
        prop_assert_eq!(counted, cycles.len() as u64);
    }
}
