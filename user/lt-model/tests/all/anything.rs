// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Random events, for properties that hold for all traces.

use lt_model::{
    Builder, Disk, Event, Kind, Model, NOWHERE, Priority, Sleep, Stage, SwitchedOut, What,
};
use proptest::prelude::*;

fn out() -> impl Strategy<Value = SwitchedOut> {
    prop_oneof![
        3 => Just(SwitchedOut::Blocked(Sleep::Interruptible)),
        2 => Just(SwitchedOut::Preempted),
        1 => Just(SwitchedOut::Blocked(Sleep::Idle)),
        1 => Just(SwitchedOut::Dead),
    ]
}

fn name() -> impl Strategy<Value = &'static [u8]> {
    prop_oneof![Just(&b""[..]), Just(&b"a"[..]), Just(&b"ksoftirqd/0"[..])]
}

fn prio() -> impl Strategy<Value = Option<Priority>> {
    prop::option::of(prop_oneof![Just(-1), Just(50), Just(120)].prop_map(Priority))
}

/// The functions at the addresses in [`what`].
pub const FUNCTIONS: [(u64, &str); 3] = [
    (1, "sched_cfs_period_timer"),
    (2, "dl_task_timer"),
    (3, "blk_throtl_dispatch_work_fn"),
];

fn what() -> impl Strategy<Value = What<'static>> {
    let tid = || 0..6i32;
    prop_oneof![
        6 => (tid(), out(), tid(), name(), name(), prio(), prio()).prop_map(
            |(prev, out, next, prev_name, next_name, prev_prio, next_prio)| {
                What::Switch { prev, prev_name, out, prev_prio, next, next_name, next_prio }
            }
        ),
        4 => (tid(), name(), 0..3u32).prop_map(|(tid, name, target)| What::Waking { tid, name, target }),
        2 => (tid(), name(), 0..3u32).prop_map(|(tid, name, target)| What::Wakeup { tid, name, target }),
        2 => (tid(), name(), 0..3u32, 0..3u32)
            .prop_map(|(tid, name, from, to)| What::Migrate { tid, name, from, to }),
        1 => (tid(), name()).prop_map(|(child, name)| What::Fork { child, name }),
        1 => (tid(), tid()).prop_map(|(tid, old)| What::Exec { tid, old }),
        1 => (tid(), name()).prop_map(|(tid, name)| What::There { tid, name }),
        2 => name().prop_map(|name| What::Call { name }),
        2 => (5..8u32, 0..2u64, any::<bool>()).prop_map(|(op, address, private)| {
            What::Futex { op: op | u32::from(private) << 7, address }
        }),
        3 => Just(What::Return),
        1 => (0..3i32, name()).prop_map(|(number, name)| What::Irq { number, name }),
        1 => (0..3i32).prop_map(|number| What::IrqEnd { number }),
        1 => (0..40u32).prop_map(|vector| What::Raise { vector }),
        1 => (0..12u32).prop_map(|vector| What::Softirq { vector }),
        1 => (0..12u32).prop_map(|vector| What::SoftirqEnd { vector }),
        2 => prop::option::of(0..4u64).prop_map(|function| What::Timer { function }),
        1 => (0..4u64).prop_map(|function| What::Work { function }),
        1 => Just(What::WorkEnd),
        2 => any::<bool>().prop_map(|enters| What::Idle { enters }),
        1 => Just(What::TimerEnd),
        1 => name().prop_map(|name| What::Ipi { name }),
        1 => Just(What::IpiEnd),
        1 => (0..3u32).prop_map(|disk| What::Completed { disk: Disk(disk), range: None, kind: Kind::Flush }),
        1 => (0..3u32, 0..4u64, 0..3u32, prop_oneof![Just(Kind::Plain), Just(Kind::Discard), Just(Kind::Other)])
            .prop_map(|(disk, sector, n, kind)| What::Completed { disk: Disk(disk), range: Some((sector, n)), kind }),
        1 => (0..3u32).prop_map(|disk| What::Completed { disk: Disk(disk), range: None, kind: Kind::Plain }),
        1 => (0..3u32)
            .prop_map(|disk| What::Completed { disk: Disk(disk), range: Some((NOWHERE, 0)), kind: Kind::Other }),
        1 => (0..3u32)
            .prop_map(|disk| What::Request { stage: Stage::Issued, disk: Disk(disk), sector: NOWHERE, sectors: 0 }),
        1 => (0..3u32).prop_map(|disk| What::Flush { disk: Disk(disk) }),
        1 => (0..3u32, prop::option::of(prop_oneof![Just((NOWHERE, 0u32)), (0..4u64, 0..4u32)]))
            .prop_map(|(disk, range)| What::Requeued { disk: Disk(disk), range }),
        1 => Just(What::Dirty { disk: Some(Disk(1)) }),
        3 => (prop_oneof![Just(Stage::Queued), Just(Stage::Allocated), Just(Stage::Issued)], 0..3u32, 0..4u64, 0..4u32)
            .prop_map(|(stage, disk, sector, sectors)| What::Request { stage, disk: Disk(disk), sector, sectors }),
        1 => (0..3u32, 0..4u64, 0..3u32, 0..4u64, 0..4u32)
            .prop_map(|(a, b, c, d, sectors)| What::Remap { from: (Disk(a), b), to: (Disk(c), d), sectors }),
        1 => (0..100u64).prop_map(|until| What::Lost { until }),
    ]
}

/// A time, a processor, and an event there.
pub type At = (u64, u32, What<'static>);

/// Almost in time order, since a tracer's clocks may differ slightly.
pub fn events() -> impl Strategy<Value = Vec<At>> {
    let event = (
        0..4u64,
        prop_oneof![9 => 0..3u32, 1 => Just(u32::MAX)],
        what(),
    );
    prop::collection::vec(event, 0..120).prop_map(|mut events| {
        let mut time = 10;
        for (delta, ..) in &mut events {
            time = (time + *delta).saturating_sub(1);
            *delta = time;
        }
        events
    })
}

pub fn feed(builder: &mut Builder, events: &[At]) {
    builder.has_functions(FUNCTIONS);
    for (time, cpu, what) in events {
        builder.feed(&Event {
            time: *time,
            cpu: *cpu,
            what: *what,
        });
    }
}

pub fn model(events: &[At]) -> Model {
    let mut builder = Builder::new();
    feed(&mut builder, events);
    builder.finish()
}
