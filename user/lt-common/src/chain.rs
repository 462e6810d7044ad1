// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The wake chain from an interrupt or a timer to a task, as recorded in an alert of `tree`, with
//! one step per line.

use lt_proc::{Alert, ChainStep, Nanos, before, chain};

use crate::out;

/// Width of the bar of a step that took all the time.
const BAR: usize = 16;

/// Returns a sentence that names the longest step, or the target's own reads if together they took longer, and that
/// says what is unknown about the time before the chain. `None` if the alert has no steps, or if no time passed between
/// them.
pub fn verdict(alert: &Alert) -> Option<String> {
    let steps = chain(alert).ok()?;
    let longest = steps.iter().max_by_key(|step| step.took)?;
    if longest.took == 0 {
        return None;
    }
    let before = before(&steps);
    let of = match before {
        Some(_) => "the recorded part",
        None => "the delay",
    };
    let (took, meanwhile) = match reads(&steps) {
        Some((took, reads)) if took > longest.took => (took, reads),
        _ => (longest.took, longest.meanwhile(&action(alert))),
    };
    let part = if took.saturating_mul(2) > alert.delay {
        "most"
    } else {
        "the longest part"
    };
    let verdict = format!(
        "{part} of {of} ({}, {} %) passed {}",
        Nanos(took),
        percent(took, alert.delay),
        out::printable(&meanwhile)
    );
    Some(match before {
        Some(before) => format!("{verdict}; {before}"),
        None => verdict,
    })
}

/// Returns the total time of the sleeps that followed reads requested by the target itself, with a description.
/// `None` if there are fewer than two such sleeps.
fn reads(steps: &[ChainStep]) -> Option<(u64, String)> {
    let sleeps = || steps.iter().filter(|step| step.kind == "reads");
    let (first, times) = (sleeps().next()?, sleeps().count());
    let took = sleeps().map(|step| step.took).sum();
    let meanwhile = format!(
        "while {} slept in state D {times} times, each after it had requested reads of its own, which may be \
         unrelated to the start of this wake chain",
        first.task()
    );
    (times > 1).then_some((took, meanwhile))
}

/// Returns a sentence on the activity of the CPU in the longest wait for which the alert records that activity.
/// `None` if there is no such wait, or if it took less than 1 % of the delay.
pub fn interference(alert: &Alert) -> Option<String> {
    let steps = chain(alert).ok()?;
    let told = steps.iter().filter_map(|step| Some((step, step.parts?)));
    let (step, parts) = told.max_by_key(|(_, parts)| parts.wait())?;
    let wait = parts.wait();
    let before = steps
        .iter()
        .take_while(|one| !std::ptr::eq(*one, step))
        .last();
    // If no limit kept the task from running, the CPU was leaving an idle state, or was idle for a reason that the
    // chain does not show.
    let is_limited = before.is_some_and(ChainStep::is_limited);
    let idle = if is_limited {
        "an idle CPU, since a limit kept the task from running"
    } else {
        "an idle CPU"
    };
    if wait == 0 || percent(wait, alert.delay) == 0 {
        return None;
    }
    let mut parts = [
        (parts.irq, "interrupts"),
        (parts.softirq, "softirqs"),
        (parts.tasks, "other tasks and switches"),
        (parts.idle, idle),
    ];
    parts.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    let told = parts.iter().filter(|(time, _)| percent(*time, wait) > 0);
    let told = told.enumerate().map(|(nth, (time, to))| {
        let went = if nth == 0 { " went" } else { "" };
        format!("{}{went} to {to}", Nanos(*time))
    });
    let told = format!(
        "of the {} for which {} waited for CPU {}, {}",
        Nanos(wait),
        out::printable(&step.task()),
        step.cpu.unwrap_or_default(),
        told.collect::<Vec<_>>().join(", ")
    );
    Some(match rivals(step) {
        Some(rivals) => format!("{told}; {rivals}"),
        None => told,
    })
}

/// Returns the longest users of the CPU during the wait that a step ended, if the alert names them.
fn rivals(step: &ChainStep) -> Option<String> {
    let named = step.rivals.iter().map(|rival| {
        let at_least = if rival.at_least { "at least " } else { "" };
        let what = out::printable(&rival.what());
        format!("{what} {at_least}{}", Nanos(rival.time))
    });
    match named.collect::<Vec<_>>() {
        named if named.is_empty() => None,
        named => Some(format!("the longest were {}", named.join(", "))),
    }
}

/// Returns the steps, and the sentences of [`verdict`] and [`interference`], indented; nothing for other trackers.
pub fn lines(alert: &Alert) -> Vec<String> {
    let mut lines = steps(alert);
    if let Some(verdict) = verdict(alert) {
        lines.extend(out::wrap(&verdict, 4));
    }
    if let Some(interference) = interference(alert) {
        lines.extend(out::wrap(&interference, 4));
    }
    lines
}

/// Returns the steps of a wake chain, one per line, indented; nothing for other trackers.
pub fn steps(alert: &Alert) -> Vec<String> {
    let Ok(steps) = chain(alert) else {
        return Vec::new();
    };
    if steps.is_empty() {
        return Vec::new();
    }
    let row = |step: &ChainStep| {
        let part = u128::from(step.took) * BAR as u128 / u128::from(alert.delay.max(1));
        let part = usize::try_from(part).unwrap_or(BAR).min(BAR);
        vec![
            format!("    +{}", Nanos(step.at)),
            Nanos(step.took).to_string(),
            percent(step.took, alert.delay).to_string(),
            "#".repeat(part) + &".".repeat(BAR - part),
            step.cpu.map_or_else(String::new, |cpu| cpu.to_string()),
            out::printable(&step.what(&action(alert))),
        ]
    };
    let rows: Vec<_> = steps.iter().map(row).collect();
    let head = [">    AT", ">TOOK", ">%", "", ">CPU", "STEP"];
    out::table(&head, &rows)
}

fn action(alert: &Alert) -> String {
    alert.fields.text("action").unwrap_or_default().into_owned()
}

fn percent(part: u64, of: u64) -> u64 {
    u64::try_from(u128::from(part) * 100 / u128::from(of.max(1))).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(chain: &str) -> Alert {
        let line = format!(
            "seq=4 time=7507454796 instance=t tracker=tree reason=threshold delay=3017490 threshold=2500000 cpu=1 \
             pid=213 tid=213 comm=\"lt_target\" end=switch irq=29 action=\"lt_cause\" more=0 path=\"{chain}\""
        );
        Alert::parse(&line).unwrap()
    }

    #[test]
    fn each_step_is_a_line_and_the_longest_is_named() {
        let alert = alert(
            "irq:29@1+0 raise:HI@1+3001176 softirq:HI@1+3610 waking:213@1+966 switch:213(lt_target)/120@1+11738",
        );
        let lines = lines(&alert);
        assert_eq!(lines.len(), 8, "{lines:#?}");
        assert!(lines.iter().all(|l| l.len() < 100), "{lines:#?}");
        assert!(
            lines[1].contains("+0ns   3.00ms  99  ###############.")
                && lines[1].ends_with("handler of interrupt 29 (lt_cause) is called"),
            "{lines:#?}"
        );
        assert!(lines[5].ends_with("1  lt_target/213 runs"), "{lines:#?}");
        assert_eq!(
            verdict(&alert).unwrap(),
            "most of the delay (3.00ms, 99 %) passed in the handler of interrupt 29 (lt_cause), CPU 1"
        );
        assert!(!alert.subject().contains("path="), "{}", alert.subject());
    }

    #[test]
    fn the_longest_step_is_not_said_to_be_most_of_the_delay_if_it_is_not() {
        let alert = alert(
            "irq:29@1+0 raise:HI@1+1200000 softirq:HI@1+900000 waking:213@1+900000 switch:213(lt_target)/120@1+17490",
        );
        assert_eq!(
            verdict(&alert).unwrap(),
            "the longest part of the delay (1.20ms, 39 %) passed in the handler of interrupt 29 (lt_cause), CPU 1"
        );
    }

    #[test]
    fn the_recorded_part_is_not_said_to_be_the_whole_delay() {
        let alert =
            alert("vector:irq_work@1+0 waking:213@1+17490 switch:213(lt_target)/120@1+3000000");
        assert_eq!(
            verdict(&alert).unwrap(),
            "most of the recorded part (3.00ms, 99 %) passed while lt_target/213 waited for CPU 1; the delay is counted \
             from interrupt irq_work, whose request is not recorded"
        );
    }

    /// `dd` reads 12 KiB from a slow disk without readahead. The timer of its first request wakes it.
    #[test]
    fn the_requests_that_a_task_makes_itself_are_one_part_of_the_delay() {
        let alert = alert(
            "timer:f@1+0 waking:213@1+9 switch:213(dd)/120@1+81 reads:213@1+400 waking:213@1+1500000 switch:213/120@1+50 \
             reads:213@1+400 waking:213@1+1500000 switch:213/120@1+50 user:213@1+16500",
        );
        assert_eq!(
            verdict(&alert).unwrap(),
            "most of the delay (3.00ms, 99 %) passed while dd/213 slept in state D 2 times, each after it had requested reads of \
             its own, which may be unrelated to the start of this wake chain"
        );
    }

    #[test]
    fn a_sentence_shows_what_kept_the_task_from_its_cpu() {
        let chain_with = |parts: &str| {
            format!("irq:29@1+0 waking:213@1+990 switch:213(lt_target)/120@1+3016500{parts}")
        };
        let told = |parts: &str| interference(&alert(&chain_with(parts)));
        assert_eq!(
            told("{irq:3001000,softirq:0,tasks:15500,idle:0}").unwrap(),
            "of the 3.02ms for which lt_target/213 waited for CPU 1, 3.00ms went to interrupts"
        );
        assert_eq!(
            told("{irq:1000000,softirq:0,tasks:2000000,idle:16500}").unwrap(),
            "of the 3.02ms for which lt_target/213 waited for CPU 1, 2.00ms went to other tasks and switches, \
             1.00ms to interrupts"
        );
        let lines = lines(&alert(&chain_with(
            "{irq:3001000,softirq:0,tasks:15500,idle:0}",
        )));
        let text = lines.join(" ");
        let words: Vec<_> = text.split_whitespace().collect();
        assert!(
            words.join(" ").ends_with("3.00ms went to interrupts"),
            "{lines:#?}"
        );
        assert_eq!(
            told("{irq:0,softirq:0,tasks:0,idle:3016500}").unwrap(),
            "of the 3.02ms for which lt_target/213 waited for CPU 1, 3.02ms went to an idle CPU"
        );
        assert_eq!(
            told("{irq:1000000,softirq:0,tasks:2000000,idle:16500;task/9(hog)>=1900000;irq/29(lt_cause)>=900000}")
                .unwrap(),
            "of the 3.02ms for which lt_target/213 waited for CPU 1, 2.00ms went to other tasks and switches, \
             1.00ms to interrupts; the longest were hog/9 at least 1.90ms, interrupt 29 (lt_cause) at least 900.0us"
        );
        // Nothing is known, or the wait does not matter.
        assert_eq!(told(""), None);
        assert_eq!(
            interference(&alert(
                "irq:29@1+0 switch:2(t)/120@1+10{irq:1,softirq:0,tasks:9,idle:0}"
            )),
            None
        );
    }

    /// A cgroup's quota, as an alert with `end=blocked` shows it on Linux 7.2: nothing else wanted the CPU.
    #[test]
    fn a_quota_is_neither_a_preemption_nor_an_exit_from_idle() {
        for step in ["preempted:0/120", "throttled:213"] {
            let alert = alert(&format!(
                "irq:29@1+0 waking:213@1+9 switch:213(lt_target)/120@1+81 {step}@1+100 \
                 switch:213/120@1+3000000{{irq:0,softirq:0,tasks:1000,idle:2999000}} blocked:213@1+17300"
            ));
            let told = verdict(&alert).unwrap() + " " + &interference(&alert).unwrap();
            assert!(
                !told.contains("preempted") && !told.contains("back from idle"),
                "{told}"
            );
            assert!(told.contains("quota"), "{told}");
            assert!(
                told.ends_with("went to an idle CPU, since a limit kept the task from running"),
                "{told}"
            );
        }
    }

    #[test]
    fn steps_left_out_are_one_line_and_no_other_step_has_their_time() {
        let alert = alert(
            "irq:29@1+0 waking:7@1+10 switch:7(ct_k1)/120@1+10 more(2)+500000 waking:213@1+2500000 \
             switch:213(lt_target)/120@1+17470",
        );
        assert_eq!(
            verdict(&alert).unwrap(),
            "most of the delay (2.50ms, 82 %) passed in 2 steps that were left out of the wake chain, without separate \
             times"
        );
        let lines = lines(&alert);
        assert!(lines[3].contains("500.0us  16"), "{lines:#?}");
        assert!(
            lines[4].contains("2.50ms  82")
                && lines[4].ends_with("(2 steps left out of the wake chain)"),
            "{lines:#?}"
        );
    }

    #[test]
    fn an_alert_without_steps_has_no_lines() {
        assert!(lines(&alert("")).is_empty());
        assert!(lines(&alert("nonsense")).is_empty());
        assert_eq!(verdict(&alert("irq:1@0+0")), None);
    }
}
