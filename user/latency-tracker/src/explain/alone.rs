// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The explanation without a trace: the late task and operation, and the fields of the alert that point to a cause.

use lt_common::{disk, out};
use lt_proc::{Alert, Fields, Nanos, Pending, Reason};

use super::{joined, resource};
use crate::ustack;

/// Maximum number of functions of a stack, and of alerts inside the late one; the others are counted.
const FUNCTIONS: usize = 10;
const INSIDE: usize = 3;

/// Describes the late operation, and the longest of the operations in `others` that began and ended within it. The
/// stacks come last.
pub(crate) fn text(late: &Alert, others: &[Alert]) -> String {
    let (text, stacks) = parts(late, others, None);
    text + &stacks
}

/// As [`text`], with the stacks separately. `clock` is the time of day at which the late operation ended or timed out.
pub(crate) fn parts(late: &Alert, others: &[Alert], clock: Option<&str>) -> (String, String) {
    let at = clock.map_or(String::new(), |clock| format!(", at {clock}"));
    let mut lines = vec![head(late) + &at];
    lines.extend(reasons(late, 2));
    let mut stacks = stacks_of(late, 2);
    let mut inside: Vec<&Alert> = others
        .iter()
        .filter(|other| is_inside(other, late))
        .collect();
    inside.sort_by_key(|alert| std::cmp::Reverse(alert.delay));
    for alert in inside.iter().take(INSIDE) {
        lines.extend(out::wrap(&format!("during this time: {}", head(alert)), 2));
        lines.extend(reasons(alert, 4));
        let own = stacks_of(alert, 4);
        if !own.is_empty() {
            stacks.extend(out::wrap(&format!("{}:", head(alert)), 2));
            stacks.extend(own);
        }
    }
    if let more @ 1.. = inside.len().saturating_sub(INSIDE) {
        let more = out::plural(more, "other operation");
        lines.push(format!("  and {more} during this time"));
    }
    (joined(&lines), joined(&stacks))
}

/// Describes an operation in flight, and where its task waits.
pub(crate) fn unfinished(tracker: &str, pending: &Pending) -> Vec<String> {
    let comm = pending.fields.text("comm").unwrap_or_default();
    let owner = match pending.fields.number("tid") {
        None | Some(0) => String::new(),
        Some(tid) => format!("{comm}/{tid}, "),
    };
    let (least, age) = (least(&pending.fields), Nanos(pending.age()));
    let subject = disk::named(&pending.subject());
    let what = format!("{owner}{tracker}, for {least}{age}: {subject}");
    let mut lines = out::wrap(&out::printable(&what), 2);
    lines.extend(pending.stack().iter().map(|function| out::frame(function)));
    lines
}

/// Whether an operation began and ended within another operation of its thread. A tid of 0 does not identify a thread:
/// it means that the owner is unknown, or an idle task, of which each CPU has one.
pub(crate) fn is_inside(alert: &Alert, outer: &Alert) -> bool {
    alert.tid != 0
        && alert.tid == outer.tid
        && alert.start() >= outer.start()
        && alert.time <= outer.time
        && (alert.instance != outer.instance || alert.seq != outer.seq)
}

fn head(alert: &Alert) -> String {
    let owner = crate::explain::owner(alert);
    let (what, time) = (what(alert), took(alert));
    out::printable(&format!("{owner}: {what}, for {time}"))
}

/// Names the operation of an alert: a system call, a wait, a request.
pub(crate) fn what(alert: &Alert) -> String {
    let fields = &alert.fields;
    match alert.tracker.as_str() {
        "syscall" => fields
            .text("call")
            .map_or("a system call".into(), Into::into),
        "runqueue" => "runnable, but waiting for a CPU".to_string(),
        "wakeup" => "woken, but waiting for a CPU".to_string(),
        "offcpu" => match fields.text("state") {
            Some(state) => format!("off the CPU in state {state}"),
            None => "off the CPU".into(),
        },
        "block" => alert.subject(),
        other => other.to_string(),
    }
}

/// The delay of an alert, and whether it is a lower bound.
pub(crate) fn took(alert: &Alert) -> String {
    let (least, delay) = (least(&alert.fields), Nanos(alert.delay));
    let so_far = match alert.reason {
        Reason::Timeout => " so far",
        _ => "",
    };
    format!("{least}{delay}{so_far}")
}

/// The words before a delay that is a lower bound.
fn least(fields: &Fields) -> &'static str {
    match fields.is_at_least() {
        true => "at least ",
        false => "",
    }
}

/// The fields of the alert that point to a cause, as indented lines.
fn reasons(alert: &Alert, indent: usize) -> Vec<String> {
    let mut sentences = Vec::new();
    let fields = &alert.fields;
    let task = |role: &str| {
        let comm = fields.text(&format!("{role}_comm"))?;
        let tid = fields.number(&format!("{role}_tid"))?;
        Some((tid, out::printable(&comm)))
    };
    let time = |key: &str| fields.number(key).map(Nanos);
    let policy = fields.text("policy");
    let policy = policy.as_deref();
    match alert.tracker.as_str() {
        "runqueue" => match task("by") {
            _ if resource::is_held_by_quota(alert) => {
                sentences.push("at first the quota of its cgroup held it back (cpu.max)".into());
            }
            _ if policy == Some("deadline") && fields.number("throttled") == Some(1) => {
                sentences.push(
                    "at first it had used up its runtime (SCHED_DEADLINE), or yielded the rest \
                     with sched_yield"
                        .into(),
                );
            }
            Some((0, _)) => {
                let limit = match (policy, fields.number("throttled")) {
                    // Such a task has a limit only with CONFIG_RT_GROUP_SCHED.
                    (Some("fifo" | "rr"), _) => {
                        "its cgroup had used up its real-time runtime (cpu.rt_runtime_us)"
                    }
                    (_, Some(0)) => {
                        "no limit was used up (throttled=0), so core scheduling or sched_ext kept \
                         the task off it"
                    }
                    (Some("deadline"), _) => "the task had used up its runtime (SCHED_DEADLINE)",
                    _ => "the quota of the cgroup was used up (cpu.max)",
                };
                sentences.push(format!(
                    "at first no other task ran on that CPU: {limit}, or the task was moved to \
                     another CPU"
                ));
            }
            Some((tid, comm)) => {
                sentences.push(format!("the task that ran instead at first: {comm}/{tid}"));
            }
            None => {}
        },
        "wakeup" => match task("prev") {
            Some((0, _)) => sentences.push("the CPU was idle just before this task ran".into()),
            Some((tid, comm)) => {
                sentences.push(format!(
                    "the task that ran on the CPU just before: {comm}/{tid}"
                ));
            }
            None => {}
        },
        "offcpu" => {
            match (task("waker"), fields.text("context").as_deref()) {
                (Some((_, comm)), _) if comm.is_empty() => {}
                (Some((tid, comm)), Some("task")) => {
                    sentences.push(format!("woken by {comm}/{tid}"));
                }
                (Some(_), Some(context)) => {
                    sentences.push(format!("woken from {context} context, not by a task"));
                }
                _ => {}
            }
            if let Some(queued @ Nanos(1..)) = time("queued") {
                sentences.push(format!(
                    "{queued} of this passed between the wakeup and running"
                ));
            }
        }
        "block" => {
            if let (Some(queue), Some(device)) = (time("queue"), time("device")) {
                sentences.push(format!("{queue} in the queue, {device} at the device"));
            }
        }
        "syscall" => {}
        _ => sentences.push(out::printable(&alert.subject())),
    }
    sentences
        .iter()
        .flat_map(|sentence| out::wrap(sentence, indent))
        .collect()
}

/// The stacks of the alert, as indented lines.
fn stacks_of(alert: &Alert, indent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let head = match resource::is_runnable(alert) {
        true => "switched out in",
        false => "waits in",
    };
    let stacks = [(head, alert.stack()), ("woken from", alert.waker_stack())];
    for (head, functions) in stacks.iter().filter(|(_, functions)| !functions.is_empty()) {
        lines.extend(out::wrap(&format!("{head}:"), indent));
        let frame =
            |function| out::fit_line(&format!("{:indent$}  {}", "", out::printable(function)));
        lines.extend(
            functions
                .iter()
                .take(FUNCTIONS)
                .map(|function| frame(function)),
        );
        if let more @ 1.. = functions.len().saturating_sub(FUNCTIONS) {
            let more = out::plural(more, "more function");
            lines.push(format!("{:indent$}  and {more}", ""));
        }
    }
    lines.extend(ustack::lines(alert, indent));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(tracker: &str, time: u64, delay: u64, rest: &str) -> Alert {
        let line = format!(
            "seq=1 time={time} instance={tracker} tracker={tracker} reason=threshold delay={delay} threshold=1 \
             cpu=0 pid=7 tid=7 comm=\"cat\" {rest}"
        );
        Alert::parse(&line).unwrap()
    }

    #[test]
    fn a_late_call_is_shown_with_the_sleep_inside_it() {
        let call = alert("syscall", 90_000_000, 60_000_000, "call=read number=0");
        let waker = "state=S waker_pid=8 waker_tid=9 waker_comm=\"w\" context=task queued=2000000 \
            stack=\"pipe_read+0x1/0x2,vfs_read+0x1/0x2\"";
        let inside = alert("offcpu", 89_000_000, 55_000_000, waker);
        let before = alert("offcpu", 20_000_000, 5_000_000, waker);
        let text = text(&call, &[before, inside, call.clone()]);
        let (at, stacks) = parts(&call, &[], Some("14:03:20"));
        assert_eq!(at, "cat/7: read, for 60.00ms, at 14:03:20\n");
        assert_eq!(stacks, "");
        assert!(text.starts_with("cat/7: read, for 60.00ms\n"), "{text}");
        for words in [
            "during this time: cat/7: off the CPU in state S, for 55.00ms",
            "woken by w/9",
            "2.00ms of this passed between the wakeup and running",
            "waits in:\n      pipe_read",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("for 5.00ms"));
        assert_eq!(text.matches("during this time").count(), 1, "{text}");
    }

    #[test]
    fn stacks_come_last_each_below_its_operation() {
        let more = "call=read number=0 ustack=none";
        let call = alert("syscall", 90_000_000, 60_000_000, more);
        let waker = "state=S waker_pid=8 waker_tid=9 waker_comm=\"w\" context=task queued=0";
        let more = format!("{waker} stack=\"pipe_read+0x1/0x2,vfs_read+0x1/0x2\"");
        let inside = alert("offcpu", 89_000_000, 55_000_000, &more);
        let slept = "cat/7: off the CPU in state S, for 55.00ms";
        let causes = format!(
            "cat/7: read, for 60.00ms, at 14:03:20\n  during this time: {slept}\n    woken by w/9\n"
        );
        let last = format!(
            "  in user space: no stack of the task\n  {slept}:\n    waits in:\n      pipe_read+0x1/0x2\n      \
             vfs_read+0x1/0x2\n"
        );
        let parts = parts(&call, &[inside], Some("14:03:20"));
        assert_eq!(parts, (causes, last));
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let call = alert("syscall", 90_000_000, 80_000_000, "call=read number=0");
        let frames: Vec<String> = (0..12).map(|n| format!("f{n}+0x1/0x2")).collect();
        let more = format!("state=S stack=\"{}\"", frames.join(","));
        let sleep = |n: u64| alert("offcpu", n * 10_000_000, 5_000_000, &more);
        let inside: Vec<Alert> = (2..=6).map(sleep).collect();
        let (text, stacks) = parts(&call, &inside, None);
        let end = "\n  and 2 other operations during this time\n";
        assert!(text.ends_with(end), "{text}");
        let functions = stacks.matches("\n      f9+0x1/0x2\n      and 2 more functions\n");
        assert_eq!(functions.count(), INSIDE, "{stacks}");
    }

    #[test]
    fn operations_of_unknown_threads_have_nothing_in_common() {
        let of = |time, delay, tid: u64| {
            let mut alert = alert("block", time, delay, "disk=\"sda\" sector=8");
            alert.tid = tid;
            alert
        };
        let text = |tid| {
            let inside = of(80, 20, tid);
            text(&of(90, 60, tid), &[Alert { seq: 2, ..inside }])
        };
        assert!(text(7).contains("during this time"), "{}", text(7));
        assert!(!text(0).contains("during this time"), "{}", text(0));
    }

    #[test]
    fn a_delay_that_began_before_the_instance_is_a_lower_bound() {
        let call = alert("syscall", 90_000_000, 60_000_000, "call=read number=0");
        let said = |reason: &str, since: &str| {
            let reason = format!("reason={reason}");
            let line = call.to_string().replace("reason=threshold", &reason);
            head(&Alert::parse(&format!("{line}{since}")).unwrap())
        };
        let before = " since=before-start";
        for (reason, since, took) in [
            ("threshold", "", "for 60.00ms"),
            ("late", before, "for at least 60.00ms"),
            ("timeout", "", "for 60.00ms so far"),
            ("timeout", before, "for at least 60.00ms so far"),
        ] {
            assert_eq!(said(reason, since), format!("cat/7: read, {took}"));
        }
    }

    #[test]
    fn a_wakeup_by_an_interrupt_is_not_attributed_to_the_interrupted_task() {
        let waker =
            "state=D waker_pid=8 waker_tid=9 waker_comm=\"innocent\" context=hardirq queued=0";
        let text = text(&alert("offcpu", 9_000_000, 5_000_000, waker), &[]);
        assert!(
            text.contains("woken from hardirq context, not by a task"),
            "{text}"
        );
        assert!(!text.contains("innocent"), "{text}");
    }

    #[test]
    fn an_idle_cpu_names_no_other_task() {
        let said = |policy: &str| {
            let by = format!(
                "policy={policy} state=R from=0 migrated=0 by_pid=0 by_tid=0 by_comm=\"idle\""
            );
            let text = text(&alert("runqueue", 9_000_000, 5_000_000, &by), &[]);
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains("moved to another CPU"), "{text}");
            text
        };
        let other = said("other");
        assert!(other.contains("cpu.max"), "{other}");
        // A quota does not apply to these tasks.
        for (policy, limit) in [
            ("deadline", "SCHED_DEADLINE"),
            ("fifo", "cpu.rt_runtime_us"),
            ("rr", "cpu.rt_runtime_us"),
        ] {
            let said = said(policy);
            assert!(said.contains(limit) && !said.contains("cpu.max"), "{said}");
        }
        // The alert shows that no limit was used up.
        for policy in ["other", "ext", "deadline"] {
            let said = said(&format!("{policy} throttled=0"));
            let has_limit = said.contains("cpu.max") || said.contains("SCHED_DEADLINE");
            assert!(said.contains("sched_ext") && !has_limit, "{said}");
        }
    }

    #[test]
    fn a_throttled_task_is_not_said_to_wait_for_the_task_that_ran_instead() {
        let said = |more: &str| {
            let by = "state=R+ by_pid=8 by_tid=8 by_comm=\"innocent\"";
            text(
                &alert("runqueue", 9_000_000, 5_000_000, &format!("{by} {more}")),
                &[],
            )
        };
        for throttled in [
            "policy=other throttled=1",
            "stack=\"preempt_schedule_thunk+0x16/0x30,throttle_cfs_rq_work+0x1e0/0x200\"",
        ] {
            let text = said(throttled);
            assert!(
                text.contains("held it back (cpu.max)") && !text.contains("innocent"),
                "{text}"
            );
        }
        let deadline = said("policy=deadline throttled=1");
        assert!(
            deadline.contains("used up its runtime (SCHED_DEADLINE)")
                && !deadline.contains("innocent")
                && !deadline.contains("cpu.max"),
            "{deadline}"
        );
        // Neither the functions in which a task was preempted nor the policy gives a reason.
        for other in [
            "throttled=0 stack=\"preempt_schedule_irq+0x1/0x2,balance_dirty_pages+0x1/0x2\"",
            "policy=deadline throttled=0",
        ] {
            let text = said(other);
            assert!(
                text.contains("the task that ran instead at first: innocent/8"),
                "{text}"
            );
        }
        assert!(said("stack=\"preempt_schedule_irq+0x1/0x2\"").contains("switched out in:"));
    }
}
