// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The explanation in readable form, below 80 columns, without the stacks of the alert.

use std::fmt;

use lt_common::out::{self, plural};
use lt_proc::{Nanos, Reason};

use super::model::{DeviceQueue, Explanation, NEAR};
use super::requests::{Request, Step, Task};
use crate::analyze::words::unrecorded;

/// Maximum number of overtakers and tasks that are named; the others are counted.
const NAMED: usize = 5;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alert = &self.alert;
        let owner = crate::explain::owner(alert);
        let at = match &self.clock {
            Some(clock) => format!(", at {clock}"),
            None => String::new(),
        };
        let what = format!(
            "alert {} of {}: {}{at}",
            alert.seq,
            alert.instance,
            alert.subject()
        );
        writeln!(f, "{}", printable(&what))?;
        let delay = Nanos(alert.delay);
        let limit = Nanos(alert.threshold).exact();
        match alert.reason {
            Reason::Timeout => writeln!(f, "by {owner}, pending for {delay} (timeout {limit})")?,
            Reason::Late => writeln!(f, "by {owner}, took {delay}, after it had timed out")?,
            _ => writeln!(f, "by {owner}, took {delay} (threshold {limit})")?,
        }
        writeln!(f)?;
        if let Some(verdict) = self.verdict() {
            for line in out::wrap(&verdict, 2) {
                writeln!(f, "{line}")?;
            }
            writeln!(f)?;
        }
        match (&self.request, &self.queue) {
            (Some(request), Some(queue)) => {
                self.steps(f, request)?;
                self.device(f, queue)?;
                self.processor(f)?;
            }
            (Some(request), None) if self.is_pending() && self.is_unissued(request) => {
                self.steps(f, request)?;
                writeln!(f, "\n  It has not been issued to the device.")?;
            }
            (Some(request), None) => {
                self.steps(f, request)?;
                writeln!(
                    f,
                    "\n  The issue is not in the trace, which reaches back only {}.",
                    Nanos(self.covered)
                )?;
                writeln!(
                    f,
                    "  Use a larger --subbuf-size or --num-subbuf, or trace fewer events."
                )?;
            }
            (None, _) if self.covered == 0 => {
                writeln!(
                    f,
                    "  The trace begins after the alert: the buffers are far too small. Use a larger"
                )?;
                writeln!(f, "  --subbuf-size or --num-subbuf.")?;
            }
            (None, _) if self.is_pending() => {
                writeln!(
                    f,
                    "  The request that was pending at the time of the alert is not in the trace."
                )?;
            }
            (None, _) => {
                writeln!(
                    f,
                    "  The end of the request is not in the trace, although the trace covers the\n  time of the alert."
                )?;
                writeln!(f, "  Check that the block_rq_* events are recorded.")?;
            }
        }
        if self.covered > 0 {
            writeln!(
                f,
                "\n  The trace covers {} before the alert.",
                Nanos(self.covered)
            )?;
        }
        if self.discarded > 0 {
            writeln!(
                f,
                "  The tracer lost {} events, so this explanation may be incomplete.",
                self.discarded
            )?;
        }
        if let Some(error) = &self.unreadable {
            writeln!(
                f,
                "  Part of the trace cannot be read, so this explanation may be incomplete:"
            )?;
            writeln!(f, "  {}", printable(error))?;
        }
        Ok(())
    }
}

impl Explanation {
    /// Whether the request had not ended when the alert was raised.
    fn is_pending(&self) -> bool {
        self.alert.reason == Reason::Timeout
    }

    /// Whether the request, whose issue is not in the trace, has not been issued. If the trace has only its return by
    /// the driver, it may have been issued before the trace begins; the alert shows whether it was.
    fn is_unissued(&self, request: &Request) -> bool {
        let is_issued = self.alert.fields.number("device") != Some(0);
        request.inserted.is_some() || (request.returned.is_some() && !is_issued)
    }

    /// The life of the request, relative to its end.
    fn steps(&self, f: &mut fmt::Formatter<'_>, request: &Request) -> fmt::Result {
        let end = request
            .completed
            .as_ref()
            .map_or(self.alert.time, |c| c.time);
        let mut step = |step: &Option<Step>, what: &str| match step {
            None => Ok(()),
            Some(s) => {
                let when = format!("-{}", Nanos(end.saturating_sub(s.time)));
                writeln!(f, "  {when:>9}  {what} on CPU {}", s.cpu)
            }
        };
        let by = |what: &str, step: &Option<Step>| {
            let who = step.as_ref().map(|s| name(&s.task)).unwrap_or_default();
            format!("{what} by {who}")
        };
        let (inserted, issued) = (&request.inserted, &request.issued);
        step(inserted, &by("inserted in the I/O scheduler", inserted))?;
        step(&request.returned, "returned by the driver")?;
        step(issued, &by("issued to the device", issued))?;
        let cpu = request.completed.as_ref().map_or(0, |c| c.cpu);
        let requeues = match request.requeues {
            0 => String::new(),
            n => format!(", after {n} requeues"),
        };
        let time = format!("{}.{:09}", end / 1_000_000_000, end % 1_000_000_000);
        if self.is_pending() {
            return writeln!(
                f,
                "  {:>9}  still pending when it timed out at {time}{requeues}",
                0
            );
        }
        writeln!(f, "  {:>9}  completed on CPU {cpu} at {time}{requeues}", 0)?;
        let apart = self.alert.time.abs_diff(end);
        if apart > NEAR {
            let sign = if self.alert.time > end { '+' } else { '-' };
            let when = format!("{sign}{}", Nanos(apart));
            writeln!(
                f,
                "  {when:>9}  seen by the tracker: one of the two probes was delayed"
            )?;
        }
        Ok(())
    }

    /// Whether the alert's delay includes the time in the I/O scheduler (`from=insert`).
    fn is_from_insert(&self) -> bool {
        let number = |key| self.alert.fields.number(key).unwrap_or(0);
        let before_issue = self.alert.delay.saturating_sub(number("device"));
        before_issue > number("queue") / 2
    }

    fn device(&self, f: &mut fmt::Formatter<'_>, q: &DeviceQueue) -> fmt::Result {
        let dev = self.alert.fields.text("dev").unwrap_or_default();
        writeln!(f, "\n  queue of device {dev} during the request")?;
        writeln!(f, "    others there at its issue        {:>6}", q.at_issue)?;
        writeln!(f, "    maximum, including this request  {:>6}", q.at_most)?;
        writeln!(f, "    left at its end                  {:>6}", q.at_end)?;
        writeln!(f, "    issued meanwhile                 {:>6}", q.issued)?;
        writeln!(f, "    completed meanwhile              {:>6}", q.completed)?;
        if let Some(took) = q.others {
            writeln!(
                f,
                "    their times: median {}, maximum {}",
                Nanos(took.median),
                Nanos(took.most)
            )?;
        }
        match q.otherwise {
            Some(took) => writeln!(
                f,
                "    in the rest of the trace: {}, median {}, maximum {}",
                plural(took.count, "request"),
                Nanos(took.median),
                Nanos(took.most)
            )?,
            None => writeln!(f, "    in the rest of the trace: no other request")?,
        }
        if q.overtakers.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\n  overtaken by {} (issued later, completed earlier)",
            plural(q.overtakers.len(), "request")
        )?;
        for o in q.overtakers.iter().take(NAMED) {
            let r = &o.request;
            let who = r
                .inserted
                .as_ref()
                .or(r.issued.as_ref())
                .map(|s| name(&s.task))
                .unwrap_or_default();
            let text = format!(
                "    issued {:>8} later, took {:>8}: {} sector {} {}K {who}",
                Nanos(o.issued_after).to_string(),
                Nanos(o.took).to_string(),
                r.op,
                r.sector,
                r.sectors / 2,
            );
            writeln!(f, "{text}")?;
        }
        match q.overtakers.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => writeln!(f, "    and {more} more"),
        }
    }

    /// The tasks that ran on the issuing CPU.
    fn processor(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((cpu, ran)) = &self.ran else {
            return Ok(());
        };
        if ran.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n  meanwhile CPU {cpu}, which issued the request, ran")?;
        // The times are percentages of the whole time at the device, although the trace of this CPU may start later.
        let all = self.request.as_ref().and_then(Request::at_device_for);
        let all = all.unwrap_or(0);
        for (task, time) in ran.iter().take(NAMED) {
            let percent = time * 100 / all.max(1);
            writeln!(
                f,
                "    {:<24} {:>9} {percent:>3} %",
                name(task),
                Nanos(*time)
            )?;
        }
        match ran.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => writeln!(f, "    and {}", plural(more, "more task")),
        }
    }

    /// The largest part of the delay, in one sentence. `None` if the trace lacks the issue or the end of the request.
    pub(crate) fn verdict(&self) -> Option<String> {
        let (request, queue) = (self.request.as_ref()?, self.queue.as_ref()?);
        // If the delay began before the first known step, in which the driver returned the request, the trace lacks an
        // earlier step.
        let start = self.alert.start().saturating_add(NEAR);
        let first = request.returned.as_ref();
        let first = first.filter(|_| request.inserted.is_none());
        let is_again = first.is_some_and(|step| step.time > start);
        let requeues = request.requeues + u64::from(is_again);
        if requeues > 0 {
            return Some(format!(
                "The driver returned the request {}: the device was busy, or failed.",
                plural(requeues as usize, "time")
            ));
        }
        let (issued, completed) = (request.issued.as_ref()?, request.completed.as_ref()?);
        let queued = match request.queued() {
            Some(since) if self.is_from_insert() => issued.time.saturating_sub(since.time),
            _ => 0,
        };
        // If the two probes disagree, the later one was delayed.
        let end = completed.time.min(self.alert.time);
        let at_device = end.saturating_sub(issued.time);
        let delayed = match self.alert.time - end {
            time if time > NEAR => time,
            _ => 0,
        };
        let all = queued.saturating_add(at_device).saturating_add(delayed);
        if queued > at_device {
            let share = out::share(queued, all, "delay");
            return Some(match (&request.inserted, &request.returned) {
                (Some(_), None) => format!("{share}: the request waited in the I/O scheduler."),
                (Some(inserted), Some(returned)) => format!(
                    "{share}: the request waited for {} in the I/O scheduler, and for {} after the driver had returned \
                     it.",
                    Nanos(returned.time.saturating_sub(inserted.time)),
                    Nanos(issued.time.saturating_sub(returned.time))
                ),
                (None, _) => format!(
                    "{share}: the request waited in a queue, since the driver had returned it."
                ),
            });
        }
        let share = out::share(at_device, all, "delay");
        if let Some(why) = self.gap {
            let why = unrecorded(why);
            return Some(format!(
                "{share}: the request was at the device, whose other activity is not recorded: {why}."
            ));
        }
        Some(
            match (queue.overtakers.len(), queue.completed, queue.at_issue) {
                (n, _, _) if n > 0 => format!(
                    "{share}: the request was at the device, which served {} that arrived later.",
                    plural(n, "request")
                ),
                (_, 0, 0) => format!(
                    "{share}: the request was at the device, which had no other request before it and completed none meanwhile."
                ),
                (_, 0, _) => format!(
                    "{share}: the request was at the device, which completed no other request meanwhile."
                ),
                (_, n, _) => format!(
                    "{share}: the request was at the device, which first served {} that had arrived earlier.",
                    plural(n, "request")
                ),
            },
        )
    }
}

fn name(task: &Task) -> String {
    match task.tid {
        0 => "idle".to_string(),
        tid => format!("{}/{tid}", printable(&task.comm)),
    }
}

fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Explainer;
    use lt_model::Unrecorded;
    use lt_proc::Alert;

    /// babeltrace2's text of 18 ms of a real trace: scsi_debug with random delays, mq-deadline, fio.
    const TRACE: &str = include_str!("testdata/scsi_debug.txt");

    const ALERT: &str = "seq=3 time=26860215000 instance=slow_disk tracker=block reason=threshold delay=15255000 \
        threshold=10000000 cpu=0 pid=170 tid=170 comm=\"fio\" dev=8:0 disk=\"sda\" op=\"R\" sector=50368 \
        bytes=4096 queue=90000 device=15165000 requeues=0";

    fn explain(alert: &str, trace: &str) -> String {
        explain_with(alert, trace, |_, _| None)
    }

    /// Explains an alert when events between two times may be missing.
    fn explain_with(
        alert: &str,
        trace: &str,
        gap: impl Fn(u64, u64) -> Option<Unrecorded>,
    ) -> String {
        let mut explainer = Explainer::new(&Alert::parse(alert).unwrap()).unwrap();
        for line in trace.lines() {
            explainer.feed(&crate::explain::block::event::of_line(line));
        }
        explainer.finish(0, None, gap, |_| None).to_string()
    }

    #[test]
    fn a_real_trace_explains_a_real_request() {
        let text = explain(ALERT, TRACE);
        assert!(text.lines().all(|l| l.chars().count() < 80), "{text}");
        assert!(text.contains(
            "alert 3 of slow_disk: sda R sector 50368 4K\nby fio/170, took 15.26ms (threshold 10ms)"
        ));
        // Figures counted by hand in the file.
        for line in [
            "-15.35ms  inserted in the I/O scheduler by fio/170 on CPU 1",
            "-15.26ms  issued to the device by kworker/1:1H/129 on CPU 1",
            "others there at its issue             5",
            "maximum, including this request       6",
            "issued meanwhile                      9",
            "completed meanwhile                  10",
            "in the rest of the trace: 1 request, median 251.0us, maximum 251.0us",
            "overtaken by 5 requests",
            "issued   3.93ms later, took  992.5us: R sector 4072 4K fio/170",
            "99 % of the delay (15.26ms): the request was at the device, which served 5",
        ] {
            assert!(text.contains(line), "{line:?} is missing in\n{text}");
        }
    }

    #[test]
    fn other_activity_of_the_device_is_not_described_if_there_is_a_gap() {
        let gap_at = |time: u64| {
            explain_with(ALERT, TRACE, move |from, to| {
                (from..to).contains(&time).then_some(Unrecorded::Lost(1))
            })
        };
        let sentence = "the request was at the device, whose other";
        let inside = gap_at(26_850_000_000);
        assert!(inside.contains(sentence), "{inside}");
        // The trace shows the end of other requests while this request was at the device.
        let before = gap_at(26_844_000_000);
        assert!(before.contains("which served 5\n"), "{before}");
    }

    #[test]
    fn a_cpu_that_was_idle_until_after_the_alert_is_recorded_all_the_same() {
        let late = ALERT.replace("sector=50368", "sector=8");
        let text = |begin: Option<u64>| {
            let mut explainer = Explainer::new(&Alert::parse(&late).unwrap()).unwrap();
            for line in TRACE.lines() {
                explainer.feed(&crate::explain::block::event::of_line(line));
            }
            let last = TRACE.lines().last().unwrap();
            let mut idle = crate::explain::block::event::of_line(last);
            (idle.cpu, idle.time) = (9, idle.time + 1_000_000_000);
            explainer.feed(&idle);
            explainer
                .finish(0, None, |_, _| None, |cpu| begin.filter(|_| cpu == 9))
                .to_string()
        };
        let covers = "The trace covers 10.00ms before the alert.";
        assert!(text(Some(26_850_215_000)).contains(covers));
        assert!(text(None).contains("The trace begins after the alert"));
    }

    #[test]
    fn what_is_still_pending_is_explained_up_to_the_alert() {
        // The request, 8 ms before its end.
        let alert = ALERT
            .replace("time=26860215000", "time=26852215000")
            .replace(
                "reason=threshold delay=15255000",
                "reason=timeout delay=7255000",
            )
            .replace("threshold=10000000", "threshold=7000000");
        let alert = format!("{alert} stack=\"bio_await+0x79/0xb0,blkdev_read_iter+0x103/0x1b0\"");
        let text = explain(&alert, TRACE);
        for line in [
            "by fio/170, pending for 7.25ms (timeout 7ms)\n\n",
            "issued to the device by kworker/1:1H/129 on CPU 1",
            "0  still pending when it timed out at 26.852215000",
            "others there at its issue             5",
        ] {
            assert!(text.contains(line), "{line:?} is missing in\n{text}");
        }
        assert!(!text.contains("bio_await"), "{text}");
    }

    #[test]
    fn a_request_that_begins_with_the_delay_may_end_long_before_the_alert() {
        let late = |start: u64| {
            let alert = ALERT.replace("time=26860215000", "time=26866215000");
            let delay = 26_866_215_000 - start;
            explain(
                &alert.replace("delay=15255000", &format!("delay={delay}")),
                TRACE,
            )
        };
        let (with_it, after_it) = (26_844_960_000, 26_834_960_000);
        for (line, start) in [
            ("  +6.00ms  seen by the tracker: one of", with_it),
            ("71 % of the delay (15.26ms)", with_it),
            // The request begins 10 ms after the delay, so it is another request.
            ("The end of the request is not in the trace", after_it),
        ] {
            let text = late(start);
            assert!(text.contains(line), "{line:?} is missing in\n{text}");
        }
    }

    #[test]
    fn a_later_request_for_the_same_sector_is_not_the_late_one() {
        let event = |time: u64, name: &str| {
            format!(
                "[{time:020}] (+0) (none) {name}: {{ cpu_id = 1 }}, {{ dev = 8388608, sector = 50368, nr_sector = 8, \
                 tid = 170, rwbs = 4, comm = \"fio\" }}"
            )
        };
        let trace = format!(
            "{TRACE}{}\n{}",
            event(26_864_000_000, "block_rq_issue"),
            event(26_865_000_000, "block_rq_complete")
        );
        let alert = ALERT
            .replace("time=26860215000", "time=26866215000")
            .replace("delay=15255000", "delay=21255000");
        let text = explain(&alert, &trace);
        assert!(text.contains("71 % of the delay (15.26ms)"), "{text}");
    }

    #[test]
    fn a_delay_from_the_issue_does_not_include_the_time_in_the_scheduler() {
        // The request is inserted 30 ms earlier.
        let is_insertion = |line: &&str| line.contains("26844860426");
        let (inserted, others): (Vec<_>, Vec<_>) = TRACE.lines().partition(is_insertion);
        let inserted = inserted[0].replace("26844860426", "26814860426");
        let trace = format!("{inserted}\n{}", others.join("\n"));
        let from_issue = ALERT
            .replace("queue=90000", "queue=30090000")
            .replace("device=15165000", "device=15255000");
        let from_insert = from_issue.replace("delay=15255000", "delay=45345000");
        for (alert, verdict) in [
            (from_issue, "100 % of the delay (15.26ms)"),
            (from_insert, "66 % of the delay (30.10ms)"),
        ] {
            let text = explain(&alert, &trace);
            assert!(text.contains(verdict), "{verdict:?} is missing in\n{text}");
        }
    }

    #[test]
    fn a_request_that_the_driver_returned_before_it_started_it_was_not_at_the_device() {
        // The driver returns the request 30 ms before its issue; it is not inserted.
        let returned = TRACE
            .lines()
            .find(|line| line.contains("26844860426"))
            .unwrap()
            .replace("26844860426", "26814860426")
            .replace("block_rq_insert", "block_rq_requeue")
            .replace(", tid = 170", "");
        let is_insertion = |line: &&str| line.contains("26844860426");
        let others: Vec<_> = TRACE.lines().filter(|line| !is_insertion(line)).collect();
        let trace = format!("{returned}\n{}", others.join("\n"));
        let alert = ALERT
            .replace("queue=90000", "queue=30090000")
            .replace("device=15165000 requeues=0", "device=15255000 requeues=1")
            .replace("delay=15255000", "delay=45345000");
        let text = explain(&alert, &trace);
        for line in [
            "66 % of the delay (30.10ms): the request waited in a queue, since",
            "-45.35ms  returned by the driver on CPU 1",
            "issued to the device by kworker/1:1H/129 on CPU 1",
        ] {
            assert!(text.contains(line), "{line:?} is missing in\n{text}");
        }
        // If the trace begins after an earlier issue, with which the delay began, the driver returned it meanwhile.
        let alert = ALERT
            .replace("queue=90000", "queue=0")
            .replace("device=15165000 requeues=0", "device=145345000 requeues=1")
            .replace("delay=15255000", "delay=145345000");
        let text = explain(&alert, &trace);
        let says = "The driver returned the request 1 time";
        assert!(text.contains(says), "{says:?} is missing in\n{text}");
        // It times out before and after its issue; in the second case, the trace begins after the issue.
        for (device, says) in [
            ("0", "It has not been issued to the device."),
            ("5000000", "The issue is not in the trace"),
        ] {
            let alert = ALERT
                .replace("time=26860215000", "time=26844900000")
                .replace(
                    "reason=threshold delay=15255000",
                    "reason=timeout delay=30039574",
                )
                .replace("device=15165000", &format!("device={device}"));
            let text = explain(&alert, &trace);
            assert!(text.contains(says), "{says:?} is missing in\n{text}");
        }
    }

    #[test]
    fn a_request_that_the_driver_returned_after_its_insertion_was_not_only_in_the_scheduler() {
        // The request is inserted 30 ms before its issue, and returned 20 ms before its issue.
        let is_insertion = |line: &&str| line.contains("26844860426");
        let (inserted, others): (Vec<_>, Vec<_>) = TRACE.lines().partition(is_insertion);
        let returned = inserted[0]
            .replace("26844860426", "26824960000")
            .replace("block_rq_insert", "block_rq_requeue");
        let inserted = inserted[0].replace("26844860426", "26814960000");
        let trace = format!("{inserted}\n{returned}\n{}", others.join("\n"));
        let alert = ALERT
            .replace("queue=90000", "queue=30000000")
            .replace("device=15165000 requeues=0", "device=15255000 requeues=1")
            .replace("delay=15255000", "delay=45255000");
        let text = explain(&alert, &trace);
        let verdict = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "the request waited for 10.00ms in the I/O scheduler, and for ",
            " after the driver had returned it.",
            "inserted in the I/O scheduler by fio/170 on CPU 1",
            "-35.25ms returned by the driver on CPU 1",
        ] {
            assert!(verdict.contains(part), "{part:?} is missing in\n{text}");
        }
        assert!(text.lines().all(|l| l.chars().count() < 80), "{text}");
    }

    #[test]
    fn a_request_that_is_issued_after_it_timed_out_was_not_at_the_device() {
        let alert = ALERT
            .replace("time=26860215000", "time=26844900000")
            .replace(
                "reason=threshold delay=15255000",
                "reason=timeout delay=39574",
            );
        let text = explain(&alert, TRACE);
        assert!(
            text.contains("It has not been issued to the device."),
            "{text}"
        );
        assert!(!text.contains("issued to the device by"), "{text}");
    }

    #[test]
    fn control_characters_of_an_alert_are_not_printed() {
        let alert = ALERT.replace("disk=\"sda\"", "disk=\"s\u{1b}[2Jda\"");
        let text = explain(&alert.replace("slow_disk", "slow\u{1b}"), TRACE);
        assert!(
            text.contains("alert 3 of slow?: s?[2Jda R sector"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn the_times_of_tasks_are_percentages_of_the_whole_time() {
        // For CPU 1, only the last 4 of the 15 ms are recorded.
        let is_known = |l: &&str| {
            let early = l[1..21].parse::<u64>().unwrap() < 26_856_000_000;
            !(early && l.contains("sched_switch") && l.contains("cpu_id = 1"))
        };
        let known: Vec<&str> = TRACE.lines().filter(is_known).collect();
        let text = explain(ALERT, &known.join("\n"));
        let rows = text.lines().filter_map(|l| l.strip_suffix(" %"));
        let percent = rows.map(|l| l.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
        assert!((1..=27).contains(&percent.sum::<u64>()), "{text}");
    }

    #[test]
    fn a_trace_that_begins_too_late_is_reported() {
        let late: Vec<&str> = TRACE
            .lines()
            .filter(|l| l[1..21].parse::<u64>().unwrap() > 26_850_000_000)
            .collect();
        let text = explain(ALERT, &late.join("\n"));
        assert!(
            text.contains("The issue is not in the trace") && text.contains("--subbuf-size"),
            "{text}"
        );
        let text = explain(ALERT, "");
        assert!(text.contains("begins after the alert"), "{text}");
        let switches: Vec<&str> = TRACE.lines().filter(|l| !l.contains("block_rq_")).collect();
        let text = explain(ALERT, &switches.join("\n"));
        assert!(text.contains("Check that the block_rq_* events"), "{text}");
    }

    #[test]
    fn other_trackers_are_left_alone() {
        let alert = "seq=1 time=2 instance=a tracker=x reason=threshold delay=1 threshold=1 cpu=0 pid=1 tid=1 comm=\"x\"";
        assert!(Explainer::new(&Alert::parse(alert).unwrap()).is_none());
    }
}
