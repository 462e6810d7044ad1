// SPDX-License-Identifier: GPL-2.0

//! lt_bench: the cost of the engine's operations, without any tracepoint.
//!
//! The files of the engine are compiled into this module unchanged, and called in loops with
//! interrupts off ([`meter`]). Loading it runs everything and prints a line for each figure,
//! `result NAME LIVE TOTAL CALLS`; scripts/bench makes a table of these lines.
//!
//! Given BPF programs (tests/bench/bpf), it measures these instead of the engine.
//!
//! Meant for an emulated machine with one CPU, whose clock counts executed instructions.

#![allow(
    dead_code,
    reason = "the benches need less of the engine than the module does"
)]

use engine::hash::Seed;

use kernel::prelude::*;
use meter::Meter;
use sys::{compat::parameter, platform::Kernel};

// Each module of rust/sys that the engine uses needs a line in sys.rs.
#[path = "../../../rust/engine.rs"]
mod engine;

mod bpf;
mod meter;
mod parts;
mod sys;
mod whole;

module! {
    type: Bench,
    name: "lt_bench",
    authors: ["The latency-tracker developers"],
    description: "What the latency-tracker engine costs",
    license: "GPL v2",
    params: {
        probe: u64 {
            default: 0,
            description: "What to measure. 0: the engine. 1: the block tracepoint, with the \
                          tracker block. 2 to 7: sched_switch without a tracker, with wakeup, \
                          runqueue or offcpu that follow no task, with offcpu that follows all, \
                          and with syscall stacks. 8: a full pool, for 2 or 16 CPUs. From 10 on: \
                          the scenarios WAYS and then EMPTY_WAYS in bench.rs",
        },
        calls: u64 {
            default: 10_000,
            description: "How often each operation is called",
        },
        timeouts: u64 {
            default: 100_000,
            description: "Live events that can time out",
        },
        bpf_start: u64 {
            default: 0,
            description: "File descriptor of the BPF program that begins an event",
        },
        bpf_end: u64 {
            default: 0,
            description: "File descriptor of the BPF program that ends an event",
        },
        bpf_empty: u64 {
            default: 0,
            description: "File descriptor of the BPF program that does nothing",
        },
    },
}

/// Keys of 16 bytes, two words of data.
type Engine = crate::engine::Engine<2, 2, Kernel>;

const SEED: Seed = Seed::new(0x1234_5678_9abc_def1, 0xfeed_beef_cafe_f00d);

/// Creates an engine whose events are never late.
fn engine(capacity: u64) -> Result<Engine> {
    Engine::new(u32::try_from(capacity)?, u64::MAX, SEED)
}

/// Returns the n-th key: an address such as a request has, and a device.
#[inline(always)]
fn key(n: u64) -> [u64; 2] {
    let request = n.wrapping_mul(384);
    [0xffff_8881_0000_0000_u64.wrapping_add(request), 0x0080_0010]
}

/// Returns a key that differs from every [`key`].
#[inline(always)]
fn unknown(n: u64) -> [u64; 2] {
    [key(n)[0], 0x0080_0020]
}

/// Scenarios, with the numbers of glue.h.
#[derive(Clone, Copy)]
enum What {
    Irq,
    Softirq,
    Read,
    Getpid,
    Call,
    Calls,
    Work,
    Packet,
    Gro,
    Send,
    Switch,
    Waking,
    Chain,
    Life,
    Preempted,
    Timer,
    SoftTimer,
}

/// A scenario and its row: without any probe, or with a tracker, in the order of scripts/bench.
const WAYS: [(What, &str); 49] = [
    (What::Irq, "no_irq"),
    (What::Irq, "irq_other"),
    (What::Irq, "irq_followed"),
    (What::Softirq, "no_softirq"),
    (What::Softirq, "softirq_other"),
    (What::Softirq, "softirq_followed"),
    (What::Read, "no_syscall"),
    (What::Read, "syscall_other"),
    (What::Read, "syscall_followed"),
    (What::Getpid, "io_none"),
    (What::Read, "io_other"),
    (What::Read, "io_followed"),
    (What::Call, "no_func"),
    (What::Call, "func_other"),
    (What::Call, "func_followed"),
    (What::Calls, "no_calls"),
    (What::Calls, "calls_other"),
    (What::Calls, "calls_followed"),
    (What::Irq, "points_other"),
    (What::Irq, "points_followed"),
    (What::Work, "no_workqueue"),
    (What::Work, "workqueue_waiting"),
    (What::Work, "workqueue_running"),
    (What::Work, "workqueue_followed"),
    (What::Packet, "no_net"),
    (What::Packet, "net_other"),
    (What::Packet, "net_followed"),
    (What::Gro, "no_gro"),
    (What::Gro, "net_gro"),
    (What::Send, "no_accept"),
    (What::Send, "accept_other"),
    (What::Irq, "tree_irq"),
    (What::Switch, "no_tree_switch"),
    (What::Switch, "tree_switch"),
    (What::Waking, "no_tree_waking"),
    (What::Waking, "tree_waking"),
    (What::Chain, "no_tree_chain"),
    (What::Chain, "tree_chain"),
    (What::Life, "no_tree_life"),
    (What::Life, "tree_life"),
    (What::Preempted, "no_tree_preempted"),
    (What::Preempted, "tree_preempted"),
    (What::Timer, "no_tree_timer"),
    (What::Timer, "tree_timer"),
    (What::SoftTimer, "no_tree_soft_timer"),
    (What::SoftTimer, "tree_soft_timer"),
    (What::Irq, "tree_timed_irq"),
    (What::Switch, "tree_timed_switch"),
    (What::Chain, "tree_timed_chain"),
];

/// Scenarios with empty probes, in the order of scripts/bench. Their numbers follow the numbers of
/// [`WAYS`].
const EMPTY_WAYS: [(What, &str); 8] = [
    (What::Irq, "empty_irq"),
    (What::Switch, "empty_switch"),
    (What::Waking, "empty_waking"),
    (What::Chain, "empty_chain"),
    (What::Life, "empty_life"),
    (What::Preempted, "empty_preempted"),
    (What::Timer, "empty_timer"),
    (What::SoftTimer, "empty_soft_timer"),
];

/// Numbers of live events for which pairs are measured.
const LIVE: [u64; 3] = [1, 1_000, 64_000];

fn engine_rows(meter: &Meter) -> Result {
    parts::run(meter)?;
    for live in LIVE {
        whole::run(meter, live)?;
    }
    whole::labelled(meter)?;
    whole::timeouts(meter, parameter::<u64>(module_parameters::timeouts.value()))?;
    whole::tracepoint(meter, "no_probe")?;
    whole::memory(meter)
}

struct Bench;

impl kernel::Module for Bench {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let meter = Meter::new(parameter::<u64>(module_parameters::calls.value()));
        if let Some(probe) = parameter::<u64>(module_parameters::probe.value()).checked_sub(1) {
            const SWITCHES: [&str; 6] = [
                "no_switch",
                "switch_wakeup",
                "switch_runqueue",
                "switch_offcpu",
                "switch_followed",
                "switch_syscall",
            ];
            match probe.checked_sub(1) {
                None => whole::tracepoint(&meter, "probe")?,
                Some(at @ 8..) => {
                    let at = at as usize - 8;
                    if let Some(&(what, name)) = WAYS.get(at) {
                        whole::way(&meter, what as u32, name)?;
                    } else {
                        let (what, name) = *EMPTY_WAYS.get(at - WAYS.len()).ok_or(EINVAL)?;
                        whole::empty_way(&meter, what as u32, name)?;
                    }
                }
                Some(6) => whole::full(&meter)?,
                Some(at) => {
                    let name = SWITCHES.get(at as usize).ok_or(EINVAL)?;
                    whole::switches(&meter, name)?;
                }
            }
            pr_info!("complete\n");
            return Ok(Self);
        }
        let start = parameter::<u64>(module_parameters::bpf_start.value());
        if start == 0 {
            engine_rows(&meter)?;
        } else {
            let end = parameter::<u64>(module_parameters::bpf_end.value());
            let empty = parameter::<u64>(module_parameters::bpf_empty.value());
            let programs = bpf::Programs::from_fds(start, end, empty)?;
            programs.empty(&meter);
            let mut pairs = 0;
            for live in LIVE {
                pairs += programs.run(&meter, live);
            }
            pr_info!("pairs {pairs}\n");
        }
        pr_info!("complete\n");
        Ok(Self)
    }
}
