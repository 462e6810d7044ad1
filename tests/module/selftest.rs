// SPDX-License-Identifier: GPL-2.0

//! lt_selftest: the engine on a real kernel, without any tracepoint in the way.
//!
//! The files of the engine are compiled into this module as they are. Most tests drive an engine
//! from kernel threads, each bound to a CPU; interrupts and preemption occur at random. The module
//! loads if every test passes; otherwise the log names the failed test.

#![allow(
    dead_code,
    reason = "the tests need less of the engine than the module does"
)]

use common::Test;
use kernel::prelude::*;
use selftest::{ends, guards, hotplug, litmus, pool, timeouts, words};

mod common;
#[path = "../../rust/engine.rs"]
mod engine;
mod selftest {
    pub(crate) mod ends;
    pub(crate) mod guards;
    pub(crate) mod hotplug;
    pub(crate) mod litmus;
    pub(crate) mod pool;
    pub(crate) mod timeouts;
    pub(crate) mod words;
}
mod sys;

module! {
    type: Selftest,
    name: "lt_selftest",
    authors: ["The latency-tracker developers"],
    description: "Tests of the latency-tracker engine",
    license: "GPL v2",
    params: {
        pairs: u64 {
            default: 10_000_000,
            description: "Pairs of begin and end through the small pool",
        },
    },
}

const TESTS: [Test; 19] = [
    (
        "a_pool_of_one_serves_a_million_pairs",
        pool::a_pool_of_one_serves_a_million_pairs,
    ),
    (
        "a_guard_ends_by_a_call_only_to_schedule",
        guards::a_guard_ends_by_a_call_only_to_schedule,
    ),
    (
        "an_operation_changes_one_word",
        words::an_operation_changes_one_word,
    ),
    ("no_exchange_is_lost", words::no_exchange_is_lost),
    (
        "each_cpu_has_its_own_values",
        words::each_cpu_has_its_own_values,
    ),
    ("the_orderings_hold", litmus::the_orderings_hold),
    ("no_grace_period_is_needed", pool::no_grace_period_is_needed),
    ("full_means_full", pool::full_means_full),
    ("two_cpus_count_exactly", pool::two_cpus_count_exactly),
    ("all_of_65536_are_found", pool::all_of_65536_are_found),
    ("one_winner", ends::one_winner),
    ("across_cpus", ends::across_cpus),
    (
        "clearing_leaves_nothing_behind",
        ends::clearing_leaves_nothing_behind,
    ),
    (
        "clearing_beside_begins_and_ends",
        ends::clearing_beside_begins_and_ends,
    ),
    (
        "a_search_takes_nothing_away",
        timeouts::a_search_takes_nothing_away,
    ),
    (
        "nothing_times_out_after_its_end",
        timeouts::nothing_times_out_after_its_end,
    ),
    (
        "an_offline_cpu_keeps_nothing_to_itself",
        hotplug::an_offline_cpu_keeps_nothing_to_itself,
    ),
    (
        "a_pool_of_100_serves_100_live",
        pool::a_pool_of_100_serves_100_live,
    ),
    ("small_pool_loses_nothing", pool::small_pool_loses_nothing),
];

struct Selftest;

impl kernel::Module for Selftest {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        common::run(&TESTS)?;
        Ok(Self)
    }
}
