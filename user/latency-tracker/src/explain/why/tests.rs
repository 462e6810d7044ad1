// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tests the first sentence and the text of an explanation, with tables of events.

use super::*;
use crate::analyze::made::{R, S, at, completed, model, request, switch, waking};
use crate::trace::Saved;
use lt_model::{Event, What};

fn told(events: &[Event<'_>], lost: u64) -> Told {
    Told::made(model(events), lost)
}

fn alert(tracker: &str, begin: u64, time: u64, tid: i32) -> Alert {
    let delay = time - begin;
    let line = format!(
        "seq=3 time={time} instance=slow tracker={tracker} reason=threshold delay={delay} threshold=10 cpu=0 \
         pid={tid} tid={tid} comm=\"late\""
    );
    Alert::parse(&line).unwrap()
}

fn verdict(events: &[Event<'_>], tracker: &str, (begin, end): (u64, u64)) -> String {
    let told = told(events, 0);
    let alert = alert(tracker, begin, end, 7);
    let why = Why::new(&told, &alert, &Evidence::default(), &[]);
    let text = why.text();
    // The absolute path of the trace may have any length.
    let mut lines = text.lines().filter(|line| !line.contains("analyze path /"));
    assert!(lines.all(|line| line.chars().count() < 80), "{text}");
    assert!(text.contains("alert 3 of slow: "), "{text}");
    why.verdict()
}

/// Thread 7 waits from 100 to 900 for CPU 0, which runs thread 8.
fn hogged() -> Vec<Event<'static>> {
    vec![
        switch(0, 0, 0, R, 7),
        switch(50, 0, 7, S, 8),
        switch(60, 1, 0, R, 9),
        waking(100, 1, 7),
        switch(900, 0, 8, R, 7),
        switch(1000, 0, 7, S, 0),
    ]
}

#[test]
fn a_sentence_names_the_thread_that_had_the_cpu() {
    assert_eq!(
        verdict(&hogged(), "wakeup", (100, 900)),
        "100 % of the delay (800ns): late/7 had been woken, and waited for CPU 0, which ran hog/8."
    );
    assert_eq!(
        verdict(&hogged(), "offcpu", (50, 900)),
        "94 % of the delay (800ns): late/7 had been woken, and waited for CPU 0, which ran hog/8."
    );
}

#[test]
fn a_sentence_names_what_the_thread_waited_for() {
    let events = [
        switch(0, 0, 0, R, 7),
        at(5, 0, What::Call { name: b"read" }),
        switch(10, 0, 7, S, 8),
        at(11, 0, What::Call { name: b"nanosleep" }),
        switch(12, 0, 8, S, 0),
        at(800, 0, What::Timer { function: None }),
        waking(800, 0, 8),
        at(801, 0, What::TimerEnd),
        switch(805, 0, 0, R, 8),
        waking(810, 0, 7),
        switch(820, 0, 8, S, 7),
        switch(1000, 0, 7, S, 0),
    ];
    assert_eq!(
        verdict(&events, "syscall", (5, 820)),
        "96 % of the delay (788ns): late/7 waited for hog/8, which waited in nanosleep for a timer."
    );
}

#[test]
fn a_cause_that_began_before_the_trace_is_noticed() {
    let is_cut = |first: &[Event<'static>]| {
        let events = [
            waking(800, 0, 8),
            switch(805, 0, 0, R, 8),
            waking(810, 0, 7),
            switch(820, 0, 8, S, 7),
            switch(1000, 0, 7, S, 0),
        ];
        let told = told(&[first, &events].concat(), 0);
        let alert = alert("syscall", 5, 820, 7);
        Why::new(&told, &alert, &Evidence::default(), &[]).is_cut()
    };
    let begin = switch(0, 0, 0, R, 7);
    assert!(is_cut(&[begin, switch(10, 0, 7, S, 0)]));
    let (away, slept) = (switch(10, 0, 7, S, 8), switch(12, 0, 8, S, 0));
    assert!(!is_cut(&[begin, away, slept]));
}

#[test]
fn a_sentence_names_the_thread_that_had_the_cpu_the_longest_in_total() {
    // Thread 9 has the longest single run, but thread 8 runs longer in total.
    let events = [
        switch(0, 0, 0, R, 7),
        switch(100, 0, 7, R, 8),
        switch(300, 0, 8, S, 7),
        switch(310, 0, 7, R, 9),
        switch(610, 0, 9, S, 7),
        switch(620, 0, 7, R, 8),
        switch(820, 0, 8, S, 7),
        switch(1000, 0, 7, S, 0),
    ];
    assert_eq!(
        verdict(&events, "syscall", (100, 900)),
        "87 % of the delay (700ns): late/7 was switched out while runnable, and waited for CPU 0, which ran hog/8."
    );
}

/// Three threads take turns on the CPU for which thread 7 waits; or the CPU is idle first, and then two take turns.
#[test]
fn a_use_of_less_than_half_of_the_time_is_named_with_its_time() {
    let said = |first| {
        let events = [
            switch(0, 0, 0, R, 7),
            switch(100, 0, 7, R, first),
            switch(400, 0, first, S, 9),
            switch(650, 0, 9, S, 10),
            switch(900, 0, 10, S, 7),
            switch(1000, 0, 7, S, 0),
        ];
        verdict(&events, "runqueue", (100, 900))
    };
    let begin =
        "100 % of the delay (800ns): late/7 was switched out while runnable, and waited for CPU 0,";
    assert_eq!(
        said(8),
        format!("{begin} which ran hog/8 for 300ns of 800ns, its longest use.")
    );
    let idle = said(0);
    let reason = "which was idle for 300ns of 800ns, its longest use; CPU 0 was idle for 300ns: the CPU was slow";
    assert!(idle.starts_with(&format!("{begin} {reason}")), "{idle}");
}

/// Thread 7 waits for CPU 5, which has no events, and then for CPU 0.
#[test]
fn a_cpu_without_events_is_reported_as_not_recorded() {
    let (tid, name, target) = (7, b"", 5);
    let (from, to) = (target, 0);
    let moved = What::Migrate {
        tid,
        name,
        from,
        to,
    };
    let events = [
        switch(0, 0, 0, R, 7),
        switch(10, 0, 7, S, 8),
        switch(20, 1, 0, R, 9),
        at(100, 1, What::Waking { tid, name, target }),
        at(700, 1, moved),
        switch(900, 0, 8, S, 7),
        switch(1000, 0, 7, S, 0),
    ];
    assert_eq!(
        verdict(&events, "wakeup", (100, 900)),
        "100 % of the delay (800ns): late/7 had been woken, and waited for CPU 5, whose activity is not recorded (600ns), \
         and for CPU 0, which ran hog/8 (200ns)."
    );
}

#[test]
fn a_sentence_names_the_disk_and_no_limit_without_evidence() {
    let disk = lt_model::Disk(254 << 20);
    let events = [
        switch(0, 0, 0, R, 7),
        switch(10, 0, 7, S, 0),
        at(800, 0, What::Timer { function: None }),
        completed(800, disk, None),
        waking(800, 0, 7),
        at(801, 0, What::TimerEnd),
        switch(810, 0, 0, R, 7),
        switch(820, 0, 7, R, 0),
        switch(1000, 0, 0, R, 7),
    ];
    assert_eq!(
        verdict(&events, "offcpu", (10, 810)),
        "98 % of the delay (790ns): late/7 waited for a completion of disk 254:0; the place where the request was \
         held back is not recorded (enable block_rq_issue, unless identical requests were in flight)."
    );
    assert_eq!(
        verdict(&events, "runqueue", (820, 1000)),
        "100 % of the delay (180ns): late/7 was runnable; CPU 0 was idle for 180ns before the thread ran: the \
         CPU was slow to leave idle, or a limit that is not recorded applied (cpu.max, SCHED_DEADLINE)."
    );
}

#[test]
fn a_sentence_names_a_disk_by_its_name_if_that_is_known() {
    let disk = lt_model::Disk(8 << 20 | 1);
    let mut builder = lt_model::Builder::new();
    builder.has_disks([(disk, "sda1".to_string())]);
    let range = None;
    for event in [
        switch(0, 0, 0, R, 7),
        switch(10, 0, 7, S, 0),
        at(800, 0, What::Timer { function: None }),
        completed(800, disk, range),
        waking(800, 0, 7),
        at(801, 0, What::TimerEnd),
        switch(810, 0, 0, R, 7),
    ] {
        builder.feed(&event);
    }
    let told = Told::made(builder.finish(), 0);
    let alert = alert("offcpu", 10, 810, 7);
    let why = Why::new(&told, &alert, &Evidence::default(), &[]);
    let said = why.verdict();
    assert!(
        said.contains("waited for a completion of disk sda1; the place where"),
        "{said}"
    );
    let json = serde_json::to_string(&why.json().unwrap()).unwrap();
    assert!(
        json.contains("\"name\":\"8:1\",\"disk\":\"sda1\""),
        "{json}"
    );
}

/// A loop device completes a request in an interrupt: neither its worker nor the disk below is
/// known.
#[test]
fn the_wait_below_a_loop_device_is_reported_as_not_recorded() {
    let disk = lt_model::Disk(7 << 20);
    let stage = lt_model::Stage::Issued;
    let sector = 64;
    let events = [
        switch(0, 0, 0, R, 7),
        request(5, stage, disk, sector),
        switch(10, 0, 7, S, 0),
        at(
            800,
            0,
            What::Ipi {
                name: b"call_function_single",
            },
        ),
        completed(801, disk, Some((sector, 8))),
        waking(802, 0, 7),
        at(803, 0, What::IpiEnd),
        switch(810, 0, 0, R, 7),
        switch(1000, 0, 7, S, 0),
    ];
    assert_eq!(
        verdict(&events, "offcpu", (10, 810)),
        "99 % of the delay (792ns): late/7 waited for disk 7:0; this is a loop device, and the wait of its worker \
         is not recorded."
    );
}

/// Thread 7 waits for a softirq that was raised outside of all recorded interrupts, or in a self-IPI.
#[test]
fn the_raiser_of_a_softirq_is_named_or_reported_as_not_recorded() {
    let vector = 0;
    let said = |in_work: bool| {
        let mut events = vec![switch(0, 0, 0, R, 8), switch(5, 1, 7, S, 0)];
        if in_work {
            events.push(at(50, 0, What::Ipi { name: b"irq_work" }));
        }
        events.push(at(51, 0, What::Raise { vector }));
        if in_work {
            events.push(at(52, 0, What::IpiEnd));
        }
        events.extend([
            at(53, 0, What::Softirq { vector }),
            waking(95, 0, 7),
            at(96, 0, What::SoftirqEnd { vector }),
            switch(105, 1, 0, R, 7),
        ]);
        verdict(&events, "offcpu", (5, 105))
    };
    let begin = "90 % of the delay (90ns): late/7 waited for softirq HI";
    assert_eq!(said(true), format!("{begin} raised by interrupt irq_work."));
    let missing = "what raised the softirq is not recorded (enable irq_softirq_raise and x86_irq_vectors_irq_work_*)";
    assert_eq!(said(false), format!("{begin}; {missing}."));
}

/// The timer may belong to gro_flush_timeout, which polls a device.
#[test]
fn a_packet_from_a_timer_may_come_from_a_device() {
    let vector = 3;
    let events = [
        switch(0, 0, 0, R, 8),
        switch(5, 1, 7, S, 0),
        at(50, 0, What::Timer { function: None }),
        at(51, 0, What::Raise { vector }),
        at(52, 0, What::TimerEnd),
        at(53, 0, What::Softirq { vector }),
        waking(95, 0, 7),
        at(96, 0, What::SoftirqEnd { vector }),
        switch(105, 1, 0, R, 7),
    ];
    assert_eq!(
        verdict(&events, "offcpu", (5, 105)),
        "90 % of the delay (90ns): late/7 waited for a packet from a local timer; it is a delayed ACK, a \
         retransmission, a paced packet, or one that a device received earlier (gro_flush_timeout)."
    );
}

/// Thread 8 submits a request while thread 7 waits, and the completion of this request wakes thread 7.
#[test]
fn a_sentence_names_the_thread_whose_request_ended_a_wait() {
    let disk = lt_model::Disk(254 << 20);
    let stage = |time, stage| request(time, stage, disk, 64);
    let range = Some((64, 8));
    let events = [
        switch(0, 0, 0, R, 7),
        switch(10, 0, 7, S, 8),
        stage(500, lt_model::Stage::Queued),
        stage(501, lt_model::Stage::Allocated),
        stage(502, lt_model::Stage::Issued),
        switch(600, 0, 8, S, 0),
        at(800, 0, What::Timer { function: None }),
        completed(800, disk, range),
        waking(800, 0, 7),
        at(801, 0, What::TimerEnd),
        switch(810, 0, 0, R, 7),
        switch(820, 0, 7, S, 0),
    ];
    assert_eq!(
        verdict(&events, "offcpu", (10, 810)),
        "98 % of the delay (790ns): late/7 waited for disk 254:0 (a request of hog/8); the reason is a page that \
         this request read or wrote, or a lack of tags."
    );
}

/// Thread 7 waits for the only tag of the disk. A request of thread 8 holds the tag first, then a request of thread 9.
fn lacks_a_tag() -> Vec<Event<'static>> {
    use lt_model::Stage::{Allocated, Issued, Queued};
    let disk = lt_model::Disk(254 << 20);
    let stage = |time, stage, sector| request(time, stage, disk, sector);
    let timer = |time| at(time, 0, What::Timer { function: None });
    vec![
        switch(0, 0, 0, R, 8),
        stage(1, Queued, 64),
        stage(2, Allocated, 64),
        stage(3, Issued, 64),
        switch(4, 0, 8, S, 9),
        stage(5, Queued, 128),
        switch(6, 0, 9, S, 7),
        stage(8, Queued, 256),
        switch(10, 0, 7, S, 0),
        timer(400),
        completed(400, disk, Some((64, 8))),
        waking(401, 0, 9),
        at(402, 0, What::TimerEnd),
        switch(403, 0, 0, R, 9),
        stage(404, Allocated, 128),
        stage(405, Issued, 128),
        switch(411, 0, 9, S, 0),
        timer(800),
        completed(800, disk, Some((128, 8))),
        waking(800, 0, 7),
        at(801, 0, What::TimerEnd),
        switch(810, 0, 0, R, 7),
        stage(811, Allocated, 256),
        stage(812, Issued, 256),
        switch(820, 0, 7, S, 0),
    ]
}

#[test]
fn a_sentence_names_the_threads_whose_requests_a_disk_served_while_a_tag_was_missing() {
    let told = told(&lacks_a_tag(), 0);
    let said = |stack: &str| {
        let line = alert("offcpu", 10, 810, 7).to_string();
        let alert = Alert::parse(&format!("{line}{stack}")).unwrap();
        let why = Why::new(&told, &alert, &Evidence::default(), &[]);
        let json = serde_json::to_value(why.json().unwrap()).unwrap();
        (why.verdict(), json["causes"][0].clone())
    };
    let begin =
        "98 % of the delay (790ns): late/7 waited for a request held back before disk 254:0: ";
    let meanwhile = "meanwhile disk 254:0 served 2 requests of 9, hog/8, for 785ns of the wait. By the end of the \
        wait, disk 254:0 had been busy for at least 797ns, since the start of the recording or earlier, with no pause \
        longer than 5ns.";
    let (sentence, _) = said("");
    let reasons = "no free request; the reason is a lack of tags, writeback throttling, io.cost or io.latency";
    assert_eq!(sentence, format!("{begin}{reasons}; {meanwhile}"));
    let (sentence, json) = said(" stack=\"blk_mq_get_tag+0x12c/0x2e0\"");
    let reason = "no free tag; the stack shows blk_mq_get_tag";
    assert_eq!(sentence, format!("{begin}{reason}; {meanwhile}"));
    assert_eq!(json["cause"]["held"], "unallocated");
    assert_eq!(json["cause"]["function"], "blk_mq_get_tag");
    assert_eq!(json["served"]["requests"], 2);
    assert_eq!(json["served"]["time"], 785);
    assert_eq!(json["served"]["by"][1]["thread"]["comm"], "hog");
    let busy = serde_json::json!({"since": 3, "time": 797, "at_least": true, "longest_pause": 5});
    assert_eq!(json["busy"], busy);
}

#[test]
fn a_sentence_has_the_time_since_which_a_disk_had_been_busy() {
    let shift = 200_000_000;
    let said = |lost: Option<Event<'static>>, epoch| {
        let mut events = lacks_a_tag();
        for event in events.iter_mut().skip(1) {
            event.time += shift;
        }
        events.splice(1..1, lost);
        let mut told = told(&events, 0);
        told.epoch = epoch;
        let alert = alert("offcpu", shift + 10, shift + 810, 7);
        let why = Why::new(&told, &alert, &Evidence::default(), &[]);
        let verdict = why.verdict();
        let (_, busy) = verdict.split_once(", for 785ns of the wait. ").unwrap();
        let threads = why.served_threads().into_iter();
        let threads = threads.map(|thread| (thread.tid, thread.comm));
        (busy.to_string(), threads.collect::<Vec<_>>())
    };
    let at_two = Some(14 * 3_600_000_000_000);
    let begin = "By the end of the wait, disk 254:0 had been busy for";
    let end = "with no pause longer than 5ns.";
    let (sentence, threads) = said(None, at_two);
    assert_eq!(
        sentence,
        format!("{begin} 797ns, since 14:00:00.200, {end}")
    );
    assert_eq!(threads, [(9, None), (8, Some("hog".to_string()))]);
    let (sentence, _) = said(None, None);
    assert_eq!(sentence, format!("{begin} 797ns, {end}"));
    let lost = at(150_000_000, 1, What::Lost { until: 150_000_001 });
    let (sentence, _) = said(Some(lost), at_two);
    assert_eq!(
        sentence,
        format!("{begin} at least 797ns, since 14:00:00.200 or earlier, {end}")
    );
}

/// Thread 8 has the only tag of the disk whenever thread 7 needs it, in two calls. Once thread 8 has ended, its number
/// may belong to another thread.
#[test]
fn a_thread_whose_requests_a_disk_served_is_returned_once_unless_it_has_ended() {
    use lt_model::Stage::{Allocated, Issued, Queued};
    let disk = lt_model::Disk(254 << 20);
    let stage = |time, stage, sector| request(time, stage, disk, sector);
    let call = |time, name| at(time, 0, What::Call { name });
    let sleeps = |begin, end, sector| {
        [
            switch(begin, 0, 7, S, 0),
            at(end, 0, What::Timer { function: None }),
            completed(end, disk, Some((sector, 8))),
            waking(end, 0, 7),
            at(end + 1, 0, What::TimerEnd),
            switch(end + 2, 0, 0, R, 7),
        ]
    };
    let mut events = vec![
        switch(0, 0, 0, R, 8),
        stage(1, Queued, 64),
        stage(2, Allocated, 64),
        stage(3, Issued, 64),
        switch(4, 0, 8, S, 7),
        call(5, b"read"),
        stage(8, Queued, 256),
    ];
    events.extend(sleeps(10, 400, 64));
    events.extend([
        stage(403, Allocated, 256),
        stage(404, Issued, 256),
        switch(406, 0, 7, R, 8),
        stage(407, Queued, 128),
        stage(408, Allocated, 128),
        stage(409, Issued, 128),
        switch(410, 0, 8, S, 7),
        call(411, b"write"),
        stage(412, Queued, 512),
    ]);
    events.extend(sleeps(413, 800, 128));
    events.extend([
        stage(803, Allocated, 512),
        stage(804, Issued, 512),
        switch(820, 0, 7, S, 0),
    ]);
    let served = |events: &[Event<'_>]| {
        let (told, alert) = (told(events, 0), alert("syscall", 5, 805, 7));
        let why = Why::new(&told, &alert, &Evidence::default(), &[]);
        let verdict = why.verdict();
        let named = verdict.matches("served 1 request of hog/8");
        assert_eq!(named.count(), 2, "{verdict}");
        let threads = why.served_threads().into_iter();
        threads.map(|thread| thread.tid).collect::<Vec<_>>()
    };
    assert_eq!(served(&events), [8]);
    events.extend([
        switch(830, 0, 0, R, 8),
        switch(840, 0, 8, lt_model::SwitchedOut::Dead, 0),
    ]);
    assert!(served(&events).is_empty());
}

/// Thread 7 spins on a priority-inheritance lock that thread 8 holds.
#[test]
fn a_sentence_names_the_owner_of_a_lock_for_which_a_thread_spins() {
    let said = |op| {
        let address = 64;
        verdict(
            &[
                switch(0, 0, 0, R, 7),
                switch(0, 1, 0, R, 8),
                at(10, 0, What::Futex { op: 6, address }),
                at(899, 1, What::Futex { op, address }),
                waking(900, 1, 7),
                at(901, 0, What::Return),
                at(901, 1, What::Return),
                switch(1000, 0, 7, S, 0),
            ],
            "syscall",
            (10, 900),
        )
    };
    assert_eq!(
        said(7),
        "99 % of the delay (889ns): late/7 waited for hog/8, which ran."
    );
    assert_eq!(
        said(1),
        "100 % of the delay (890ns): late/7 ran in futex(FUTEX_LOCK_PI); this call spins while \
         the owner of the lock runs, and the owner is not recorded."
    );
}

/// Thread 7 migrates from one CPU to another while it waits, and one or both CPUs are idle.
#[test]
fn a_reason_is_given_for_each_cpu_that_was_idle() {
    let moved = |other| {
        let name = b"";
        let (tid, from, to) = (7, 0, 1);
        [
            switch(0, 0, 0, R, 7),
            switch(0, 1, 0, R, 9),
            switch(1, 1, 9, S, other),
            switch(10, 0, 7, R, 0),
            at(
                400,
                1,
                What::Migrate {
                    tid,
                    name,
                    from,
                    to,
                },
            ),
            switch(900, 1, other, S, 7),
            switch(1000, 1, 7, S, 0),
        ]
    };
    let reason = "the CPU was slow to leave idle, or a limit that is not recorded applied (cpu.max, SCHED_DEADLINE).";
    assert_eq!(
        verdict(&moved(0), "runqueue", (10, 900)),
        format!(
            "100 % of the delay (890ns): late/7 was runnable; CPU 0 was idle for 390ns, and CPU 1 was idle for 500ns before \
             the thread ran: {reason}"
        )
    );
    assert_eq!(
        verdict(&moved(8), "runqueue", (10, 900)),
        format!(
            "100 % of the delay (890ns): late/7 was switched out while runnable, and waited for CPU 0, which was idle (390ns), and for \
             CPU 1, which ran hog/8 (500ns); CPU 0 was idle for 390ns: {reason}"
        )
    );
}

/// Thread 8 sleeps several times before it wakes thread 7.
#[test]
fn a_thread_that_sleeps_several_times_in_one_wait_is_reported_as_polling() {
    let slept = |times: u64, wakes_each: bool| {
        let mut events = vec![switch(0, 0, 0, R, 7), switch(10, 0, 7, S, 8)];
        for time in (100..).step_by(100).take(times as usize) {
            events.extend([
                switch(time, 0, 8, S, 0),
                at(time + 80, 0, What::Timer { function: None }),
                waking(time + 80, 0, 8),
                at(time + 81, 0, What::TimerEnd),
                switch(time + 82, 0, 0, R, 8),
            ]);
            if wakes_each {
                events.extend([waking(time + 83, 0, 7), switch(time + 84, 0, 8, R, 7)]);
                events.push(switch(time + 90, 0, 7, S, 8));
            }
        }
        let end = times * 100 + 100;
        events.extend([waking(end, 0, 7), switch(end + 1, 0, 8, S, 7)]);
        events.push(switch(end + 10, 0, 7, S, 0));
        verdict(&events, "offcpu", (10, end + 1))
    };
    let said = "late/7 waited for hog/8, which waited for a timer";
    let polls =
        " (4 times: this thread polls, or works in steps; what it waits for is not recorded).";
    let (polled, once) = (slept(4, false), format!("{said}."));
    assert!(polled.ends_with(&format!("{said}{polls}")), "{polled}");
    // Too few sleeps, or one in each of several waits.
    for other in [slept(2, false), slept(4, true)] {
        assert!(other.contains(&once), "{other}");
    }
}

/// Threads 7 and 8 later execute other programs.
#[test]
fn threads_have_the_names_that_they_had_then() {
    let mut events = hogged();
    for tid in [7, 8] {
        let name = b"true";
        events.push(at(1100, 0, What::There { tid, name }));
    }
    let expected = "late/7 had been woken, and waited for CPU 0, which ran hog/8.";
    let said = verdict(&events, "wakeup", (100, 900));
    assert!(said.ends_with(expected), "{said}");
}

#[test]
fn an_interrupt_is_explained_by_its_cpu() {
    let events = [
        switch(0, 0, 0, R, 7),
        at(
            10,
            0,
            What::Irq {
                number: 24,
                name: b"disk",
            },
        ),
        at(90, 0, What::IrqEnd { number: 24 }),
        switch(100, 0, 7, S, 0),
    ];
    assert_eq!(
        verdict(&events, "irq", (10, 90)),
        "100 % of the delay (80ns): CPU 0 worked for disk (interrupt 24)."
    );
    assert_eq!(
        verdict(&events, "softirq", (0, 15)),
        "66 % of the delay (10ns): CPU 0 ran late/7."
    );
}

#[test]
fn what_the_trace_does_not_cover_is_reported() {
    let told = told(&hogged(), 12);
    let text = |alert: &Alert| Why::new(&told, alert, &Evidence::default(), &[]).text();
    let early = text(&alert("offcpu", 0, 5, 7));
    assert!(!early.contains("--subbuf-size"), "{early}");
    let mut before = hogged();
    before.iter_mut().for_each(|e| e.time += 5000);
    let before = self::told(&before, 0);
    let why = |alert: &Alert| Why::new(&before, alert, &Evidence::default(), &[]).text();
    let half = why(&alert("offcpu", 4000, 5900, 7));
    assert!(
        half.contains("The trace starts 1.00us after the start of the delay: use a larger")
            && half.contains("--subbuf-size or"),
        "{half}"
    );
    let none = why(&alert("offcpu", 100, 200, 7));
    assert!(
        none.contains("The trace does not cover the time of the delay."),
        "{none}"
    );
    let other = text(&alert("offcpu", 100, 900, 4711));
    assert!(
        other.contains("No event during the delay names thread 4711")
            && other.contains("CPU 0 ran hog/8"),
        "{other}"
    );
    assert!(other.contains("The tracer lost 12 events"), "{other}");
}

/// Thread 7 runs and sleeps in turns, more often than the text shows.
#[test]
fn the_command_that_shows_the_whole_path_can_be_pasted() {
    let mut events = vec![switch(0, 0, 0, R, 7)];
    for time in (100..2000).step_by(100) {
        events.extend([
            switch(time, 0, 7, S, 0),
            at(time + 50, 0, What::Timer { function: None }),
            waking(time + 50, 0, 7),
            at(time + 51, 0, What::TimerEnd),
            switch(time + 60, 0, 0, R, 7),
        ]);
    }
    events.push(switch(2000, 0, 7, S, 0));
    let alert = alert("syscall", 50, 1990, 7);
    let text = |saved| {
        let mut told = told(&events, 0);
        told.saved = saved;
        Why::new(&told, &alert, &Evidence::default(), &[]).text()
    };
    let is_narrow = |text: &str| text.lines().all(|l| l.chars().count() < 80);
    let here = std::env::current_dir().unwrap();
    let here = here.to_str().unwrap();
    for (trace, word) in [
        ("/srv/slow/0001/trace", "/srv/slow/0001/trace".to_string()),
        ("/srv/it's", "'/srv/it'\\''s'".to_string()),
        ("it's", format!("'{here}/it'\\''s'")),
    ] {
        let text = text(Saved::Trace(trace.into()));
        assert!(is_narrow(&text) || !trace.starts_with('/'), "{text}");
        let command = format!(
            " To show the whole path:\n  latency-tracker analyze path {word} \\\n      --tid 7 --from 50 --to 1990 --all\n"
        );
        assert!(text.contains(&command), "{text}");
    }
    // The trace of this run is removed.
    let text = text(Saved::Nothing);
    assert!(is_narrow(&text), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(" in total. `why -o DIR` keeps the trace, for `analyze path`."),
        "{text}"
    );
    assert!(!text.contains("--tid"), "{text}");
}

#[test]
fn the_late_task_is_named_as_far_as_it_is_known() {
    let told = told(&hogged(), 0);
    let by = |tid: i32, comm: &str| {
        let mut alert = alert("irq", 100, 900, tid);
        alert.comm = lt_proc::Value::Quoted(comm.into());
        let text = Why::new(&told, &alert, &Evidence::default(), &[]).text();
        text.lines().nth(1).unwrap().to_string()
    };
    assert!(by(7, "late").starts_with("by late/7, took 800ns"));
    assert!(by(0, "swapper/1").starts_with("by swapper/1, took"));
    assert!(by(0, "").starts_with("by an unknown task, took"));
}

#[test]
fn control_characters_of_an_alert_are_not_printed() {
    let told = told(&hogged(), 0);
    let mut alert = alert("wakeup", 100, 900, 7);
    (alert.instance, alert.tracker) = ("a\u{1b}[2J".into(), "b\u{7}".into());
    let text = Why::new(&told, &alert, &Evidence::default(), &[]).text();
    assert!(text.starts_with("alert 3 of a?[2J: b?\n"), "{text:?}");
}

#[test]
fn threads_that_work_more_than_at_other_times_are_named() {
    let told = told(&hogged(), 0);
    let alert = alert("wakeup", 100, 900, 7);
    let text = Why::new(&told, &alert, &Evidence::default(), &[]).text();
    assert!(
        text.contains("busier than in the rest of the trace"),
        "{text}"
    );
    let line = text.lines().find(|l| l.contains("hog/8  ")).unwrap_or("");
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(words, ["hog/8", "100", "25"], "{text}");
}

/// Seven threads run only during the delay, each on its own CPU.
#[test]
fn busy_threads_that_are_not_named_are_counted() {
    let mut events = Vec::new();
    for (time, runs) in [(0, false), (100, true), (900, false), (1000, true)] {
        for cpu in 0..7 {
            let thread = 20 + cpu as i32;
            events.push(match runs {
                true => switch(time, cpu, 0, R, thread),
                false => switch(time, cpu, thread, S, 0),
            });
        }
    }
    let told = told(&events, 0);
    let alert = alert("irq", 100, 900, 7);
    let text = Why::new(&told, &alert, &Evidence::default(), &[]).text();
    let is_row = |line: &&str| line.split_whitespace().skip(1).eq(["100", "0"]);
    assert_eq!(text.lines().filter(is_row).count(), 5, "{text}");
    assert!(text.contains("\n    and 2 more\n"), "{text}");
}
