// SPDX-License-Identifier: GPL-2.0

//! Measures one contender after the other, with criterion's statistics and its comparison to the last
//! run, for work on a single contender. src/main.rs prints ratios between contenders.

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion};
use lt_bench_native::{Contender, Engine, Lfht, Locked};
use std::time::Duration;

/// Pairs in a run.
const PAIRS: u64 = 10_000;

fn bench<C: Contender>(criterion: &mut Criterion, name: &str) {
    let mut group = criterion.benchmark_group(name);
    for live in [1_u64, 1_000, 64_000] {
        let contender = C::new(1, live, PAIRS);
        let mut at = 0;
        group.bench_function(BenchmarkId::from_parameter(live), |bencher| {
            bencher.iter_custom(|pairs| {
                let mut left = pairs;
                let mut took = 0;
                while left > 0 {
                    let now = left.min(PAIRS);
                    took += contender.run(0, at, now);
                    at += now;
                    left -= now;
                }
                Duration::from_nanos(took)
            });
        });
    }
    group.finish();
}

fn all(criterion: &mut Criterion) {
    bench::<Engine>(criterion, "engine");
    bench::<Lfht>(criterion, "lfht");
    bench::<Locked>(criterion, "locked");
}

criterion_group!(benches, all);
criterion_main!(benches);
