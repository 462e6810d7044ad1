// SPDX-License-Identifier: GPL-2.0

//! Prints the time of a pair, contender by contender: `result NAME LIVE TOTAL CALLS`.
//!
//! ```text
//!   lt-bench-native [ROUNDS [PAIRS]]
//! ```
//!
//! TOTAL is the time of one pair in nanoseconds, or a ratio of two such times; CALLS is always 1.
//!
//! The contenders take turns, with PAIRS pairs in each round; the results are medians of the
//! rounds, and ratios are medians of the rounds' ratios, so that a temporary disturbance of the
//! machine affects all contenders alike. With several threads, LIVE is the number of threads.

use lt_bench_native::{Contender, Engine, Lfht, Locked};
use std::{env, sync::Barrier, thread};

/// Live events of each thread when there are several threads.
const LIVE: u64 = 1_000;

/// Returns the time of a pair in nanoseconds with this many threads: the mean over the threads.
fn round(contender: &dyn Contender, threads: u64, number: u64, pairs: u64) -> f64 {
    let barrier = Barrier::new(threads as usize);
    let run = |thread| {
        barrier.wait();
        contender.run(thread, number * pairs, pairs)
    };
    let total: u64 = thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || run(thread)))
            .collect();
        all.into_iter()
            .map(|one| one.join().unwrap_or_else(|_| panic!("a thread panicked")))
            .sum()
    });
    total as f64 / (threads * pairs) as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs rounds of all contenders in turn. The first round of each does not count.
fn rounds(all: &[(&dyn Contender, u64)], count: u64, pairs: u64) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::new(); all.len()];
    for number in 0..=count {
        for ((contender, threads), times) in all.iter().zip(&mut times) {
            let time = round(*contender, *threads, number, pairs);
            if number > 0 {
                times.push(time);
            }
        }
    }
    times
}

/// Returns the median, over the rounds, of the time of `of` divided by the time of `to`.
fn ratio(of: &[f64], to: &[f64]) -> f64 {
    median(of.iter().zip(to).map(|(of, to)| of / to).collect())
}

fn print(name: &str, live: u64, value: f64) {
    println!("result {name} {live} {value:.3} 1");
}

fn main() {
    let mut args = env::args().skip(1).map(|arg| {
        arg.parse()
            .unwrap_or_else(|_| panic!("usage: lt-bench-native [ROUNDS [PAIRS]]"))
    });
    let count = args.next().unwrap_or(51);
    let pairs = args.next().unwrap_or(50_000);

    for live in [1, 1_000, 64_000] {
        let engine = Engine::new(1, live, pairs);
        let lfht = Lfht::new(1, live, pairs);
        let locked = Locked::new(1, live, pairs);
        let times = rounds(&[(&engine, 1), (&lfht, 1), (&locked, 1)], count, pairs);
        let names = ["engine", "lfht", "locked"];
        for (name, times) in names.into_iter().zip(&times) {
            print(name, live, median(times.clone()));
        }
        print("engine_to_lfht", live, ratio(&times[0], &times[1]));
        print("engine_to_locked", live, ratio(&times[0], &times[2]));
    }

    let most = thread::available_parallelism().map_or(1, |cpus| cpus.get().min(64)) as u64;
    let mut steps: Vec<u64> = (0..)
        .map(|bit| 1 << bit)
        .take_while(|&n| n < most)
        .collect();
    steps.push(most);
    let engines: Vec<_> = steps.iter().map(|&n| Engine::new(n, LIVE, pairs)).collect();
    let lfht = Lfht::new(most, LIVE, pairs);
    let locked = Locked::new(most, LIVE, pairs);
    let mut all: Vec<(&dyn Contender, u64)> = Vec::new();
    for (engine, &threads) in engines.iter().zip(&steps) {
        all.push((engine, threads));
    }
    all.push((&lfht, most));
    all.push((&locked, most));
    let times = rounds(&all, count, pairs);
    for (at, &threads) in steps.iter().enumerate() {
        print("threads_engine", threads, median(times[at].clone()));
        print("threads_ratio", threads, ratio(&times[at], &times[0]));
    }
    print("threads_lfht", most, median(times[steps.len()].clone()));
    print(
        "threads_locked",
        most,
        median(times[steps.len() + 1].clone()),
    );
    println!("complete");
}
