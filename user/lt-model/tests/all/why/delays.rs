// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The time of a thread by state: sums for known event lists, including the case studies of Fournier's thesis (the
//! starts of an X server and of Vim), and properties of any events.

use lt_model::why::{
    Cause, Leaf, Segment, Stay, Total, Wait, Waited, delays, own_states, path, states, totals,
};
use lt_model::{
    Access, Builder, CallFile, Class, Context, Event, FileEvent, Handler, Interval, Model, Raiser,
    State, SwitchedOut, ThreadId, Unrecorded, What,
};
use proptest::prelude::*;

use crate::anything::{events, model as any_model};
use crate::made::{R, S, at, model, switch, waking};

const XINIT: i32 = 438;
const XORG: i32 = 440;
const VIM: i32 = 27_541;
/// Another thread of Vim.
const HELPER: i32 = 27_542;
const BASH: i32 = 17_640;
/// Start of the second in which Vim starts, ns.
const SECOND: u64 = 5_618_707_000_000_000;
const ETH0: What<'static> = What::Irq {
    number: 19,
    name: b"eth0",
};

/// The events of one thread, on a processor of its own.
struct Script {
    events: Vec<Event<'static>>,
    cpu: u32,
    tid: i32,
    now: u64,
}

impl Script {
    fn new(cpu: u32, tid: i32, now: u64) -> Self {
        let events = vec![switch(now, cpu, 0, R, tid)];
        Self {
            events,
            cpu,
            tid,
            now,
        }
    }

    fn works(&mut self, time: u64) {
        self.now += time;
    }

    fn is_preempted(&mut self, time: u64) {
        self.events.push(switch(self.now, self.cpu, self.tid, R, 9));
        self.now += time;
        self.events.push(switch(self.now, self.cpu, 9, S, self.tid));
    }

    fn works_until(&mut self, time: u64) {
        assert!(self.now <= time);
        self.now = time;
    }

    fn is_interrupted(&mut self, time: u64, begin: &[What<'static>], end: What<'static>) {
        for what in begin {
            self.events.push(at(self.now, self.cpu, *what));
        }
        self.now += time;
        self.events.push(at(self.now, self.cpu, end));
    }

    fn is_interrupted_by_softirq(&mut self, time: u64, vector: u32) {
        let (begin, end) = (What::Softirq { vector }, What::SoftirqEnd { vector });
        self.is_interrupted(time, &[begin], end);
    }

    /// Events of the processor are lost.
    fn is_lost(&mut self, time: u64) {
        let until = self.now + time;
        self.events
            .push(at(self.now, self.cpu, What::Lost { until }));
        self.now = until;
    }

    /// The thread blocks in a call; `ends` adds the wakeup. Then the thread waits for the processor.
    fn blocks(
        &mut self,
        name: &'static [u8],
        time: u64,
        waits: u64,
        ends: impl FnOnce(u64) -> Vec<Event<'static>>,
    ) {
        self.events
            .push(at(self.now, self.cpu, What::Call { name }));
        self.events.push(switch(self.now, self.cpu, self.tid, S, 0));
        self.now += time;
        self.events.extend(ends(self.now));
        self.now += waits;
        self.events.push(switch(self.now, self.cpu, 0, R, self.tid));
        self.events.push(at(self.now, self.cpu, What::Return));
    }
}

/// A wakeup between the events `begin` and `end`.
fn within(time: u64, tid: i32, begin: What<'static>, end: What<'static>) -> Vec<Event<'static>> {
    vec![at(time, 1, begin), waking(time, 1, tid), at(time, 1, end)]
}

/// xinit waits in select() for Xorg, which sleeps more than 40 times. Figure 2.11 of Fournier's thesis has the sums,
/// figure 2.12 the longest instances of select(), and figure 2.13 the chain.
fn xinit() -> (Model, ThreadId) {
    let selects = [66_190, 12_272, 8_479, 6_318, 6_208];
    let long = 1_294_231_612;
    let rest = 1_294_379_908 - long - selects.iter().sum::<u64>();
    let mut x = Script::new(0, XINIT, 0);
    let by_xorg = |time| vec![waking(time, 1, XINIT)];
    x.works(4_000_000);
    x.is_preempted(9_908_719);
    // CPU 2 has no earlier event.
    x.blocks(b"fork", 2_859, 8_000, |time| vec![waking(time, 2, XINIT)]);
    x.works(96_817);
    x.blocks(b"execve", 1_626, 318, |time| vec![waking(time, 2, XINIT)]);
    x.works(600_000);
    let begin = x.now;
    x.blocks(b"select", long, 10_000, by_xorg);
    // Calls that the figure leaves out are shorter.
    let others = [rest / 4, rest / 4, rest / 4, rest - rest / 4 * 3];
    for time in selects.into_iter().chain(others) {
        x.works(10_000);
        x.blocks(b"select", time, 0, by_xorg);
    }
    x.works(10_000);
    let end = x.now;

    let mut xorg = Script::new(1, XORG, begin - 1000);
    xorg.works(2000);
    let timer = |time| within(time, XORG, What::Timer { function: None }, What::TimerEnd);
    let softirq = |vector| {
        move |time| {
            within(
                time,
                XORG,
                What::Softirq { vector },
                What::SoftirqEnd { vector },
            )
        }
    };
    xorg.blocks(b"open", 13_940_000, 0, softirq(9));
    xorg.blocks(b"nanosleep", 200_006_000, 0, timer);
    xorg.blocks(b"select", 203_262_000, 0, softirq(1));
    for _ in 0..42 {
        xorg.works(100_000);
        xorg.blocks(b"nanosleep", 10_002_000, 0, timer);
    }
    assert!(xorg.now < begin + long);
    let mut events = [x.events, xorg.events].concat();
    events.push(switch(end, 0, XINIT, S, 0));
    events.sort_by_key(|event| event.time);
    let m = model(&events);
    let id = m.by_tid(XINIT).next().unwrap();
    assert_eq!(m.span, (0, end));
    (m, id)
}

fn call<'m>(m: &'m Model, cause: &Cause) -> &'m str {
    match cause {
        Cause::Running(Some(call)) | Cause::Blocked(Some(call)) | Cause::For(_, Some(call)) => {
            m.names.text(*call)
        }
        _ => "",
    }
}

fn sum(stays: impl Iterator<Item = Stay>) -> u64 {
    stays.map(|stay| stay.took()).sum()
}

#[test]
fn the_states_of_a_starting_x_server_have_the_sums_that_were_published() {
    let (m, id) = xinit();
    let segments = delays(&m, id, 0, m.span.1);
    let [Segment { states, .. }] = &segments[..] else {
        panic!("{segments:?}")
    };
    let of = |class| sum(states.iter().filter(|stay| stay.class() == class));
    assert_eq!(sum(states.iter()), 1_309_108_247);
    assert_eq!(of(Class::Blocked), 1_294_384_393);
    assert_eq!(of(Class::Interrupted), 9_927_037);
    assert_eq!(of(Class::Working), 4_796_817);
    let within = |name| {
        let blocked = states.iter().filter(|stay| stay.class() == Class::Blocked);
        let mut times: Vec<_> = blocked
            .filter(|stay| call(&m, &stay.cause) == name)
            .map(|stay| stay.took())
            .collect();
        times.sort_unstable_by_key(|time| std::cmp::Reverse(*time));
        times
    };
    assert_eq!(within("select").iter().sum::<u64>(), 1_294_379_908);
    assert_eq!(within("select")[..3], [1_294_231_612, 66_190, 12_272]);
    assert_eq!(
        (within("fork"), within("execve")),
        (vec![2_859], vec![1_626])
    );
    let cause = |cause| sum(states.iter().filter(|stay| stay.cause == cause));
    assert_eq!(
        (cause(Cause::Preempted), cause(Cause::Waiting)),
        (9_908_719, 18_318)
    );
}

#[test]
fn the_chain_of_a_starting_x_server_leads_to_the_sleeps_of_another_process() {
    let (m, id) = xinit();
    let segments = delays(&m, id, 0, m.span.1);
    let waits = &segments[0].waits;
    let xorg = m.by_tid(XORG).next();
    let longest = waits
        .iter()
        .position(|wait| wait.end - wait.begin == 1_294_231_612)
        .unwrap();
    let top = waits[longest];
    assert_eq!((top.depth, top.by, top.cause), (0, xorg, None));
    let below: Vec<_> = waits[longest + 1..]
        .iter()
        .take_while(|wait| wait.depth > 0)
        .collect();
    assert_eq!(below.len(), 45);
    assert!(
        below
            .iter()
            .all(|wait| wait.depth == 1 && Some(wait.thread) == xorg && wait.by.is_none())
    );
    let what = |n: usize| {
        let wait = below[n];
        let cause = wait.cause.unwrap();
        let Cause::For(leaf, _) = cause else {
            panic!("{cause:?}")
        };
        (call(&m, &cause), wait.end - wait.begin, leaf)
    };
    assert_eq!(
        what(0),
        ("open", 13_940_000, Leaf::Softirq(9, Raiser::Unrecorded))
    );
    assert_eq!(what(1), ("nanosleep", 200_006_000, Leaf::Timer));
    assert_eq!(what(2), ("select", 203_262_000, Leaf::Timer));
    assert!((3..45).all(|n| what(n) == ("nanosleep", 10_002_000, Leaf::Timer)));
    // The waker in fork and execve is not recorded, so no thread is named.
    let first: Vec<_> = waits
        .iter()
        .take(2)
        .map(|wait| (wait.by, call(&m, &wait.cause.unwrap())))
        .collect();
    assert_eq!(first, [(None, "fork"), (None, "execve")]);
    let stays = &segments[0].states;
    let unnamed = stays
        .iter()
        .filter(|stay| stay.class() == Class::Blocked && stay.by.is_none());
    assert_eq!(unnamed.count(), 2);
}

#[test]
fn the_sums_of_all_threads_of_a_starting_x_server_are_the_published_ones() {
    let (m, id) = xinit();
    let all = totals(&m, 0, m.span.1);
    let tid = |of: &Total| m.thread(of.thread).unwrap().tid;
    let tids: Vec<_> = all.iter().map(tid).collect();
    // The thread that preempts xinit then sleeps until the end.
    assert_eq!(tids, [9, XINIT, XORG]);
    let (preempts, of) = (all[0], all[1]);
    assert_eq!((of.begin, of.end, of.took()), (0, m.span.1, m.span.1));
    assert_eq!(
        (of.working, of.interrupted, of.blocked, of.unknown),
        (4_796_817, 9_927_037, 1_294_384_393, 0)
    );
    assert_eq!((of.thread, of.wait()), (id, 1_294_231_612));
    assert_eq!(all[2].wait(), 203_262_000);
    let longest = |of: Total| {
        let (begin, end) = of.longest.unwrap();
        let stays = own_states(&m, of.thread, begin, end);
        let [stay] = stays[..] else {
            panic!("{stays:?}")
        };
        (call(&m, &stay.cause), stay.by, stay.open)
    };
    assert_eq!(longest(of), ("select", m.by_tid(XORG).next(), false));
    assert_eq!(longest(preempts), ("", None, true));
}

/// A packet arrives at eth0, and its softirq wakes Vim.
fn packet(time: u64) -> Vec<Event<'static>> {
    let vector = 3;
    vec![
        at(time, 1, ETH0),
        at(time, 1, What::Raise { vector }),
        at(time, 1, What::IrqEnd { number: 19 }),
        at(time, 1, What::Softirq { vector }),
        waking(time, 1, VIM),
        at(time, 1, What::SoftirqEnd { vector }),
    ]
}

/// Vim waits for packets of an X server on another machine. Figure 3.1 of Fournier's thesis has the sums, figure 3.2
/// the longest waits in poll(), and figure 3.3 the first waits, with their wakers. The other waits, which the figures
/// leave out, are made up, and so are the places of interrupts, preemption and unknown time. The published sums are
/// rounded to microseconds, so parts of a microsecond are made up as well.
fn vim() -> (Model, ThreadId) {
    let at_us = |time: u64| SECOND + 1000 * time;
    let by_thread = |time| vec![waking(time, 1, VIM)];
    let by_timer = |time| within(time, VIM, What::Timer { function: None }, What::TimerEnd);
    let start = SECOND + 271_416_300;
    let mut vim = Script::new(0, VIM, start);
    vim.works(10_000_000);
    vim.is_preempted(2_548_000);
    let timer = What::Timer { function: None };
    vim.is_interrupted(1_184_000, &[timer], What::TimerEnd);
    vim.is_interrupted_by_softirq(339_700, 1);
    vim.is_interrupted_by_softirq(5_000, 7);
    vim.works(10_000);
    let raises = [3, 2].map(|vector| What::Raise { vector });
    let arrives = [ETH0, raises[0], raises[1]];
    vim.is_interrupted(253_000, &arrives, What::IrqEnd { number: 19 });
    for (vector, time) in [(3, 794_700), (6, 138_000), (2, 4_900)] {
        vim.is_interrupted_by_softirq(time, vector);
    }
    // After a loss, a switch shows the thread that runs.
    let is_lost = |vim: &mut Script, lost, preempted| {
        vim.works(100_000);
        vim.is_lost(lost);
        vim.works(50_000);
        vim.is_preempted(preempted);
    };
    vim.works_until(at_us(286_697));
    vim.blocks(b"read", 356_000, 0, by_thread);
    is_lost(&mut vim, 40_000_000, 155_000);
    vim.works_until(at_us(327_408));
    vim.blocks(b"futex", 43_000, 0, by_thread);
    is_lost(&mut vim, 69_000_000, 72_000);
    vim.works_until(at_us(396_723));
    vim.blocks(b"nanosleep", 10_003_000, 0, by_timer);
    is_lost(&mut vim, 650_700, 18_000_000);
    // The start and the length of a published wait, us; the number and the length of the waits after it, ns.
    for (begin, took, others, of_others) in [
        (426_038, 221_399, 0, 0),
        (647_785, 235_874, 0, 0),
        (884_066, 109_595, 0, 0),
        (993_982, 111_015, 10, 111_000_000),
        (2_218_282, 117_903, 7, 110_000_000),
        (3_111_334, 147_425, 2, 108_471_200),
    ] {
        vim.works_until(at_us(begin));
        vim.blocks(b"poll", 1000 * took, 0, packet);
        for _ in 0..others {
            vim.works(300_000);
            vim.blocks(b"poll", of_others, 0, packet);
        }
    }
    for _ in 0..3 {
        vim.works(300_000);
        vim.blocks(b"select", 67_769_100, 0, by_timer);
    }
    vim.works(5_800_000);

    let end = vim.now;
    let mut events = vim.events;
    events.extend([
        switch(start, 1, 0, R, BASH),
        switch(at_us(300_000), 1, BASH, S, HELPER),
        switch(at_us(350_000), 1, HELPER, S, 0),
        switch(end, 0, VIM, S, 0),
    ]);
    events.sort_by_key(|event| event.time);
    let mut builder = Builder::new();
    builder.has_all_calls();
    for event in &events {
        builder.feed(event);
        let of_file = match event.what {
            What::Call { name: call } => {
                let access = match call {
                    b"read" => Access::On(3),
                    _ => Access::Nothing,
                };
                FileEvent::Call { call, access }
            }
            What::Return => FileEvent::Return {
                call: None,
                result: Some(0),
            },
            _ => continue,
        };
        builder.feed_file(event.time, event.cpu, &of_file);
    }
    let m = builder.finish();
    let id = m.by_tid(VIM).next().unwrap();
    assert_eq!(m.span, (start, end));
    (m, id)
}

/// A time in microseconds, rounded.
fn us(time: u64) -> u64 {
    (time + 500) / 1000
}

#[test]
fn the_states_of_a_starting_vim_have_the_sums_that_were_published() {
    let (m, id) = vim();
    let (from, to) = m.span;
    let segments = delays(&m, id, from, to);
    let [Segment { states, .. }] = &segments[..] else {
        panic!("{segments:?}")
    };
    let of = |class| us(sum(states.iter().filter(|stay| stay.class() == class)));
    assert_eq!(us(sum(states.iter())), 3_414_892);
    assert_eq!(of(Class::Blocked), 3_253_863);
    assert_eq!(of(Class::Unknown), 109_651);
    assert_eq!(of(Class::Working), 27_885);
    assert_eq!(of(Class::Interrupted), 23_494);

    let is_in =
        |stay: &Stay, name: &str| stay.class() == Class::Blocked && call(&m, &stay.cause) == name;
    let within = |name| us(sum(states.iter().filter(|stay| is_in(stay, name))));
    let calls = ["poll", "select", "nanosleep", "read", "futex"];
    assert_eq!(calls.map(within), [3_040_153, 203_307, 10_003, 356, 43]);
    let is_of_file = |stay: &Stay| stay.file == Some(CallFile::Descriptor(3));
    assert_eq!(us(sum(states.iter().filter(is_of_file))), 356);
    let mut polls: Vec<_> = states.iter().filter(|stay| is_in(stay, "poll")).collect();
    polls.sort_unstable_by_key(|stay| std::cmp::Reverse(stay.took()));
    let longest: Vec<_> = polls[..4]
        .iter()
        .map(|stay| {
            let (begin, end) = (us(stay.begin - SECOND), us(stay.end - SECOND));
            (begin, end, us(stay.took()))
        })
        .collect();
    assert_eq!(
        longest,
        [
            (647_785, 883_659, 235_874),
            (426_038, 647_437, 221_399),
            (3_111_334, 3_258_759, 147_425),
            (2_218_282, 2_336_185, 117_903)
        ]
    );

    let cause = |cause| us(sum(states.iter().filter(|stay| stay.cause == cause)));
    assert_eq!(
        (cause(Cause::Preempted), cause(Cause::Waiting)),
        (20_775, 0)
    );
    let interrupted = |is: &dyn Fn(Context) -> bool| {
        let time = |of: Interval| match of.state {
            State::Interrupted(context) if is(context) => of.end - of.begin,
            _ => 0,
        };
        us(m.thread(id).unwrap().between(from, to).map(time).sum())
    };
    let is_softirq = |context: Context| matches!(context, Context::Softirq { .. });
    assert_eq!(interrupted(&|context| !is_softirq(context)), 1_437);
    assert_eq!(interrupted(&|context| context == Context::Timer), 1_184);
    let is_eth0 = |context: Context| matches!(context, Context::Irq { number: 19, .. });
    assert_eq!(interrupted(&is_eth0), 253);
    assert_eq!(interrupted(&is_softirq), 1_282);
    let softirq = |number: u32| {
        let is = |context: Context| match context {
            Context::Softirq { vector, .. } => vector.0 == number,
            _ => false,
        };
        interrupted(&is)
    };
    // The numbers of TASKLET and SCHED were 5 and 6 then.
    assert_eq!([3, 1, 6, 7, 2].map(softirq), [795, 340, 138, 5, 5]);
}

#[test]
fn the_waits_of_a_starting_vim_have_the_wakers_that_were_published() {
    let (m, id) = vim();
    let segments = delays(&m, id, m.span.0, m.span.1);
    let waker = |wait: &Wait| match (wait.by, wait.cause) {
        (Some(by), None) => m.thread(by).unwrap().tid.to_string(),
        (None, Some(Cause::For(leaf, _))) => match leaf {
            Leaf::Timer => "timer".to_string(),
            Leaf::Network(Handler(19, name)) => m.names.text(name).to_string(),
            _ => panic!("{leaf:?}"),
        },
        other => panic!("{other:?}"),
    };
    let show = |wait: &Wait| {
        let Waited::Blocked(Some(call)) = wait.kind else {
            panic!("{wait:?}")
        };
        let (begin, end) = (us(wait.begin - SECOND), us(wait.end - SECOND));
        format!("{} {begin}-{end} {}", m.names.text(call), waker(wait))
    };
    let waits = &segments[0].waits;
    assert!(waits.iter().all(|wait| wait.depth == 0));
    // The figure shows no waker of the seventh wait.
    let first: Vec<_> = waits.iter().take(6).map(show).collect();
    assert_eq!(
        first,
        [
            "read 286697-287053 17640",
            "futex 327408-327451 27542",
            "nanosleep 396723-406726 timer",
            "poll 426038-647437 eth0",
            "poll 647785-883659 eth0",
            "poll 884066-993661 eth0"
        ]
    );
}

#[test]
fn a_wait_for_a_processor_may_be_the_longest_and_only_the_range_counts() {
    let child = 9;
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(10, 0, 7, S, 8),
        waking(20, 1, 7),
        switch(90, 0, 8, S, 7),
        at(95, 0, What::Fork { child, name: b"" }),
        switch(100, 0, 7, S, 0),
    ]);
    let of = |tid, from, to| {
        let id = m.by_tid(tid).next().unwrap();
        let all = totals(&m, from, to);
        all.into_iter().find(|total| total.thread == id)
    };
    let seven = of(7, 0, 100).unwrap();
    let sums = |of: Total| (of.working, of.interrupted, of.blocked);
    assert_eq!(sums(seven), (20, 70, 10));
    assert_eq!(seven.longest, Some((20, 90)));
    let (begin, end) = seven.longest.unwrap();
    let parts = own_states(&m, seven.thread, begin, end);
    assert_eq!(parts.len(), 1, "{parts:?}");
    assert_eq!(parts[0].cause, Cause::Waiting);
    // Of the wait, 5 ns are in this range.
    let seven = of(7, 5, 25).unwrap();
    assert_eq!(sums(seven), (5, 5, 10));
    assert_eq!(seven.longest, Some((10, 20)));
    // The child exists only from its creation on.
    let nine = of(child, 0, 100).unwrap();
    assert_eq!((nine.begin, nine.end, sums(nine)), (95, 100, (0, 5, 0)));
    assert_eq!(of(child, 0, 95), None);
    assert!(totals(&m, 200, 300).is_empty());
}

/// Eight processes, each of which creates the next one: figure 2.10 of Fournier's thesis.
#[test]
fn before_its_creation_the_closest_ancestor_stands_for_a_thread() {
    let chain = [
        (420, 5_269_443),
        (438, 1_309_108_247),
        (445, 116_666_736),
        (500, 29_303_945),
        (503, 240_340_942),
        (519, 9_239_575),
        (520, 806_551_758),
        (542, 2_343),
    ];
    let mut events = Vec::new();
    let mut now = 1000;
    events.push(switch(0, 0, 0, R, chain[0].0));
    for pair in chain.windows(2) {
        let ((tid, time), (child, _)) = (pair[0], pair[1]);
        now += time;
        events.push(at(now, 0, What::Fork { child, name: b"" }));
        events.push(switch(now, 0, tid, S, child));
    }
    now += 2_343;
    events.push(switch(now, 0, 542, S, 0));
    events.push(switch(now + 50, 0, 0, R, 542));
    let m = model(&events);
    let id = m.by_tid(542).next().unwrap();
    let segments = delays(&m, id, 1000, now);
    let found: Vec<_> = segments
        .iter()
        .map(|s| (m.thread(s.thread).unwrap().tid, s.end - s.begin))
        .collect();
    assert_eq!(found, chain);
    assert_eq!(
        segments.iter().map(|s| sum(s.states.iter())).sum::<u64>(),
        2_516_482_989
    );
    assert!(
        segments
            .iter()
            .all(|s| s.states.iter().all(|stay| stay.class() == Class::Working))
    );
    // After its creation, there is only the thread itself.
    assert_eq!(delays(&m, id, now - 2_343, now).len(), 1);
}

#[test]
fn a_creator_that_is_not_recorded_stays_unknown() {
    // Thread 8 appears at 30; its creation is not recorded.
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(30, 0, 7, S, 8),
        switch(40, 0, 8, S, 0),
    ]);
    let id = m.by_tid(8).next().unwrap();
    let segments = delays(&m, id, 0, 40);
    assert_eq!(segments.len(), 1);
    let first = segments[0].states.iter().next().unwrap();
    assert_eq!((first.begin, first.end), (0, 30));
    assert_eq!(first.cause, Cause::Unknown(Unrecorded::Unseen));
}

#[test]
fn no_event_is_missing_after_the_end_of_a_thread_or_of_the_recording() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(30, 0, 7, SwitchedOut::Dead, 8),
        switch(40, 0, 8, S, 0),
    ]);
    let last = |tid, from, to| {
        let id = m.by_tid(tid).next().unwrap();
        let stay = states(&m, id, from, to).iter().last().unwrap();
        let pieces = path(&m, id, from, to);
        let piece = pieces.last().unwrap();
        assert_eq!((stay.begin, stay.cause), (piece.begin, piece.cause));
        (stay.begin, stay.cause)
    };
    let ended = Cause::Unknown(Unrecorded::Ended);
    assert_eq!(last(7, 0, 40), (30, ended));
    assert_eq!(last(7, 35, 40), (35, ended));
    assert_eq!(last(8, 0, 60), (40, ended));
    let unseen = Cause::Unknown(Unrecorded::Unseen);
    assert_eq!(last(8, 0, 20), (0, unseen));
}

#[test]
fn user_mode_is_known_only_after_a_call() {
    let mut builder = Builder::new();
    builder.has_all_calls();
    for event in [
        switch(0, 0, 0, R, 7),
        // The thread may have been in a call that started before the recording.
        at(10, 0, What::Return),
        at(20, 0, What::Call { name: b"read" }),
        at(30, 0, What::Return),
        switch(40, 0, 7, S, 0),
        waking(50, 1, 7),
        switch(60, 0, 0, R, 7),
        at(70, 0, What::Lost { until: 80 }),
        switch(90, 0, 7, R, 8),
        switch(100, 0, 8, S, 7),
        at(110, 0, What::Call { name: b"read" }),
    ] {
        builder.feed(&event);
    }
    let m = builder.finish();
    let id = m.by_tid(7).next().unwrap();
    let outside = |stay: Stay| (stay.begin, stay.end, stay.outside);
    let found: Vec<_> = states(&m, id, 0, 110)
        .iter()
        .filter(|stay| stay.class() != Class::Interrupted)
        .map(outside)
        .collect();
    assert_eq!(
        found,
        [
            (0, 20, false),
            (20, 30, false),
            (30, 40, true),
            (40, 50, true),
            (60, 70, true),
            (70, 80, false),
            (80, 90, false),
            (100, 110, false)
        ]
    );
    // A later start does not change the result.
    assert!(states(&m, id, 35, 50).iter().all(|stay| stay.outside));
}

#[test]
fn a_wait_that_outlasts_the_recording_is_open() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(10, 0, 7, S, 8),
        waking(20, 3, 7),
        switch(30, 1, 0, R, 7),
        switch(40, 1, 7, S, 0),
        switch(50, 0, 8, S, 0),
    ]);
    let id = m.by_tid(7).next().unwrap();
    let of = |to| {
        let stays = states(&m, id, 0, to);
        let blocked = stays.iter().filter(|stay| stay.class() == Class::Blocked);
        blocked
            .map(|stay| (stay.begin, stay.end, stay.open))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(50), [(10, 20, false), (40, 50, true)]);
    assert_eq!(of(45), [(10, 20, false), (40, 45, true)]);
}

#[test]
fn a_wait_has_its_call_and_its_end() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        at(5, 0, What::Call { name: b"read" }),
        switch(10, 0, 7, S, 8),
        waking(60, 0, 7),
        switch(70, 0, 8, S, 7),
    ]);
    let id = m.by_tid(7).next().unwrap();
    let segments = delays(&m, id, 0, 40);
    let wait = segments[0].waits[0];
    assert_eq!((wait.begin, wait.end, wait.until), (10, 40, 60));
    assert!(matches!(wait.kind, Waited::Blocked(Some(call)) if m.names.text(call) == "read"));
    assert_eq!(wait.by, m.by_tid(8).next());
}

proptest! {
    /// Working, interrupted, blocked and unrecorded time add up in all parts of the range.
    #[test]
    fn all_time_is_in_one_state(events in events(), from in 0..60u64, took in 0..60u64) {
        let m = any_model(&events);
        let to = from + took;
        for id in (0..m.threads.len() as u32).map(ThreadId) {
            let segments = delays(&m, id, from, to);
            prop_assert_eq!(segments.first().map_or(from, |s| s.begin), from);
            prop_assert_eq!(segments.last().map_or(from, |s| s.end), to);
            prop_assert!(segments.windows(2).all(|pair| pair[0].end == pair[1].begin));
            prop_assert!(segments.last().is_none_or(|s| s.thread == id));
            for Segment { thread, begin, end, states, waits } in &segments {
                let states: Vec<Stay> = states.iter().collect();
                prop_assert_eq!(states.first().map(|s| s.begin), Some(*begin));
                prop_assert_eq!(states.last().map(|s| s.end), Some(*end));
                prop_assert!(states.iter().all(|s| s.begin < s.end));
                prop_assert!(states.windows(2).all(|pair| pair[0].end == pair[1].begin));
                let thread = m.thread(*thread).unwrap();
                for class in [Class::Working, Class::Interrupted, Class::Blocked] {
                    let time = sum(states.iter().copied().filter(|s| s.class() == class));
                    prop_assert_eq!(time, thread.time_in(class, *begin, *end), "{:?}", class);
                }
                // Each blocked stay is a wait at the first level, with the same cause.
                let blocked = states.iter().filter(|s| s.class() == Class::Blocked);
                let own = waits.iter().filter(|w| w.depth == 0 && matches!(w.kind, Waited::Blocked(_)));
                prop_assert!(blocked.clone().map(|s| (s.begin, s.end)).eq(own.clone().map(|w| (w.begin, w.end))));
                for (stay, wait) in blocked.zip(own) {
                    let named = wait.cause.is_none_or(|cause| matches!(cause, Cause::Blocked(_) | Cause::Idle));
                    prop_assert!(named || stay.by.is_none());
                    prop_assert!(wait.cause.is_some() || stay.by.is_some(), "{:?} {:?}", stay, wait);
                }
                // A wait lies inside the wait above it.
                let mut above: Vec<(u64, u64)> = vec![(*begin, *end)];
                for wait in waits {
                    prop_assert!(wait.depth < above.len());
                    above.truncate(wait.depth + 1);
                    let (from, to) = above[wait.depth];
                    prop_assert!(from <= wait.begin && wait.begin < wait.end && wait.end <= to && wait.end <= wait.until);
                    above.push((wait.begin, wait.end));
                }
            }
        }
    }
}

proptest! {
    /// The sums of each thread in the range add up, and are those of its states.
    #[test]
    fn all_threads_have_the_sums_of_their_states(events in events(), from in 0..60u64, took in 1..60u64) {
        let m = any_model(&events);
        let to = from + took;
        let all = totals(&m, from, to);
        let is_there = |id: &ThreadId| m.thread(*id).unwrap().between(from, to).next().is_some();
        let there = (0..m.threads.len() as u32).map(ThreadId).filter(is_there);
        prop_assert_eq!(there.count(), all.len());
        prop_assert!(all.windows(2).all(|pair| pair[0].wait() >= pair[1].wait()));
        for total in &all {
            let (begin, end) = (total.begin, total.end);
            prop_assert!(from <= begin && begin < end && end <= to);
            let sums = [total.working, total.interrupted, total.blocked, total.unknown];
            prop_assert_eq!(sums.iter().sum::<u64>(), total.took());
            // Without following wakers, the states are the same.
            let stays = own_states(&m, total.thread, begin, end);
            prop_assert!(states(&m, total.thread, begin, end).iter().eq(stays.iter().copied()));
            let classes = [Class::Working, Class::Interrupted, Class::Blocked, Class::Unknown];
            let of = |class| sum(stays.iter().copied().filter(|stay| stay.class() == class));
            prop_assert_eq!(classes.map(of), sums);
            let blocked = stays.iter().filter(|stay| stay.class() == Class::Blocked);
            prop_assert!(blocked.map(Stay::took).max().unwrap_or(0) <= total.wait());
            if let Some((begin, end)) = total.longest {
                let parts = own_states(&m, total.thread, begin, end);
                prop_assert_eq!(sum(parts.iter().copied()), end - begin);
                let is_wait = |stay: &Stay| stay.class() == Class::Blocked || stay.cause.is_runnable();
                prop_assert!(parts.iter().all(is_wait), "{:?}", parts);
            }
        }
    }
}
