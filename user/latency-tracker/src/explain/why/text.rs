// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The screen of an explanation: the late operation, the verdict, the causes and the longest steps (or the activity of
//! the CPU), unusual activity, and gaps in the trace.

use lt_common::exec::quoted_if_odd;
use lt_common::{chain, out};
use lt_model::Use;
use lt_model::why::{Sum, Worker, Working, causes, unusual};
use lt_proc::{Nanos, Reason};

use super::{OF_PROCESSORS, Why};
use crate::analyze::show::Shown;
use crate::analyze::words::{leaf_name, name_at, sentence, used_by};
use crate::explain::resource;
use crate::explain::runs::{Run, runs};
use crate::trace::Saved;

/// Maximum number of causes, steps and unusual workers; the other causes and steps are summed up, and the other workers
/// counted.
const CAUSES: usize = 5;
const STEPS: usize = 12;
const UNUSUAL: usize = 5;
/// A worker is unusual if its share of a CPU exceeds its share in the remaining trace by this much.
const MORE: f64 = 0.1;

impl Why<'_> {
    /// The text without the stacks of the alert, below 80 columns where names allow.
    pub(in crate::explain) fn text(&self) -> String {
        let mut lines = self.head();
        lines.push(String::new());
        lines.extend(out::wrap(&self.verdict(), 2));
        let chain = chain::steps(self.alert);
        match self.shown() {
            _ if !chain.is_empty() => {
                lines.push(String::new());
                lines.extend(chain);
            }
            Some(shown) => {
                self.causes(&shown, &mut lines);
                self.steps(&shown, &mut lines);
            }
            None => self.processor(&mut lines),
        }
        self.unusual(&mut lines);
        self.caveats(&mut lines);
        lines.join("\n") + "\n"
    }

    /// The late operation.
    fn head(&self) -> Vec<String> {
        let alert = self.alert;
        let owner = crate::explain::owner(alert);
        let delay = Nanos(alert.delay);
        let limit = Nanos(alert.threshold).exact();
        let clock = self.told.time_of_day(alert.time);
        let at = clock.map_or(String::new(), |clock| format!(", at {clock}"));
        let mut lines = vec![
            out::printable(&format!(
                "alert {} of {}: {}{at}",
                alert.seq, alert.instance, alert.tracker
            )),
            match alert.reason {
                Reason::Timeout => format!("by {owner}, pending for {delay} (timeout {limit})"),
                Reason::Late => format!("by {owner}, took {delay}, after it had timed out"),
                _ => format!("by {owner}, took {delay} (threshold {limit})"),
            },
        ];
        lines.extend(out::wrap(&out::printable(&alert.subject()), 2));
        if let Some(resource) = resource::of_alert(alert) {
            let (function, what) = resource.known;
            lines.extend(out::wrap(&format!("{function} waits for: {what}"), 0));
        }
        lines
    }

    fn causes(&self, shown: &Shown<'_>, lines: &mut Vec<String>) {
        let all = causes(shown.pieces);
        let took = (self.to - self.from).max(1) as f64;
        let row = |sum: &Sum| {
            vec![
                format!("  {}", Nanos(sum.time)),
                format!("{:.1}", sum.time as f64 * 100.0 / took),
                out::thousands(sum.count),
                shown.name(sum.thread),
                shown.what(sum.cause),
            ]
        };
        let rows: Vec<_> = all.iter().take(CAUSES).map(row).collect();
        lines.push(String::new());
        lines.extend(out::table(
            &[">  TIME", ">%", ">COUNT", "THREAD", "CAUSE"],
            &rows,
        ));
        let rest = all.iter().skip(CAUSES);
        let (count, time) = (rest.clone().count(), rest.map(|s| s.time).sum());
        if count > 0 {
            lines.push(format!("  and {count} more, {} in total", Nanos(time)));
        }
    }

    /// The longest steps, in time order.
    fn steps(&self, shown: &Shown<'_>, lines: &mut Vec<String>) {
        let mut longest = runs(shown.pieces);
        longest.sort_by_key(|run| std::cmp::Reverse(run.took));
        let rest = longest.split_off(longest.len().min(STEPS));
        let span = |run: &Run<'_>| (run.whole().begin, run.whole().end);
        longest.sort_by_key(span);
        let row = |run: &Run<'_>| {
            let step = run.whole();
            let indent = step.depth.min(STEPS);
            let times = match run.times {
                1 => String::new(),
                n => format!(", {n} times"),
            };
            vec![
                format!("  +{}", Nanos(step.begin - self.from)),
                Nanos(run.took).to_string(),
                format!("{:indent$}{}", "", shown.name(step.thread)),
                shown.step(&step) + &times,
            ]
        };
        let rows: Vec<_> = longest.iter().map(row).collect();
        lines.push(String::new());
        lines.extend(out::table(&[">  AT", ">TOOK", "THREAD", "STEP"], &rows));
        if !rest.is_empty() {
            let time = rest.iter().map(|run| run.took).sum();
            let count = rest.iter().map(|run| run.times).sum();
            let rest = format!(
                "and {} shorter steps, {} in total.",
                out::thousands(count),
                Nanos(time)
            );
            let Some(trace) = self.told.saved.trace() else {
                let text = format!("{rest} `why -o DIR` keeps the trace, for `analyze path`.");
                lines.extend(out::wrap(&text, 2));
                return;
            };
            // The text may be read in another directory.
            let trace = std::path::absolute(trace).unwrap_or_else(|_| trace.to_path_buf());
            let trace = quoted_if_odd(&trace.display().to_string());
            lines.push(format!("  {rest} To show the whole path:"));
            lines.push(format!("  latency-tracker analyze path {trace} \\"));
            lines.push(format!(
                "      --tid {} --from {} --to {} --all",
                self.alert.tid, self.from, self.to
            ));
        }
    }

    /// The activity of the CPU.
    fn processor(&self, lines: &mut Vec<String>) {
        let took = (self.to - self.from).max(1) as f64;
        let row = |(used, time): &(Use, u64)| {
            vec![
                format!("  {}", Nanos(*time)),
                format!("{:.1}", *time as f64 * 100.0 / took),
                used_by(self.model(), *used, self.to),
            ]
        };
        let rows: Vec<_> = self.used.iter().take(CAUSES).map(row).collect();
        if rows.is_empty() {
            return;
        }
        let cpu = format!("CPU {} WAS USED BY", self.alert.cpu);
        lines.push(String::new());
        lines.extend(out::table(&[">  TIME", ">%", cpu.as_str()], &rows));
        let rest = self.used.iter().skip(CAUSES);
        let (count, time) = (rest.clone().count(), rest.map(|(_, t)| *t).sum());
        if count > 0 {
            lines.push(format!("  and {count} more, {} in total", Nanos(time)));
        }
    }

    fn unusual(&self, lines: &mut Vec<String>) {
        let model = self.model();
        let list = unusual(model, self.from, self.to, MORE);
        if list.is_empty() {
            return;
        }
        lines.push(String::new());
        lines.push("  busier than in the rest of the trace, in % of a CPU".into());
        let row = |w: &Working| {
            let who = match w.who {
                Worker::Thread(id) => name_at(model, id, self.to),
                Worker::Leaf(leaf) => leaf_name(model, leaf),
            };
            vec![
                format!("    {who}"),
                format!("{:.0}", w.then * 100.0),
                format!("{:.0}", w.otherwise * 100.0),
            ]
        };
        let rows: Vec<_> = list.iter().take(UNUSUAL).map(row).collect();
        lines.extend(out::table(&["    WHO", ">THEN", ">OTHERWISE"], &rows));
        if let more @ 1.. = list.len().saturating_sub(UNUSUAL) {
            lines.push(format!("    and {more} more"));
        }
    }

    /// What the trace lacks, which buffers to enlarge, and which other alerts are evidence, as sentences.
    pub(in crate::explain) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let begin = self.model().span.0;
        if begin > self.from {
            notes.push(format!(
                "The trace starts {} after the start of the delay: use a larger --subbuf-size or --num-subbuf, or trace \
                 fewer events.",
                Nanos(begin - self.from)
            ));
        }
        if let Some(missing) = self.shown().and_then(|shown| shown.not_recorded())
            && chain::steps(self.alert).is_empty()
        {
            notes.push(missing);
        }
        notes.extend(self.place_of_stacks());
        if self.alert.tid > 0
            && self.thread.is_none()
            && !OF_PROCESSORS.contains(&self.alert.tracker.as_str())
        {
            notes.push(format!(
                "No event during the delay names thread {}.",
                self.alert.tid
            ));
        }
        notes.extend(self.told.caveats().iter().map(|caveat| sentence(caveat)));
        notes
    }

    /// Names the other alerts whose stacks show causes, and the place of these alerts.
    fn place_of_stacks(&self) -> Option<String> {
        let (first, more) = self.shown_by.split_first()?;
        let alert = format!("alert {} of {}", first.seq, first.instance);
        let of = "of the same thread during the delay";
        let place = match self.told.saved {
            Saved::Capture(_) => " (in alert.json)",
            Saved::Trace(_) | Saved::Nothing => "",
        };
        Some(match (&self.told.saved, more.len()) {
            (Saved::Nothing, 0) => {
                format!("The stack comes from a sleep {of}; -o DIR keeps it in alert.json.")
            }
            (Saved::Nothing, n) => format!(
                "The stacks come from {} sleeps {of}; -o DIR keeps them in alert.json.",
                n + 1
            ),
            (_, 0) => format!("The stack is in {alert}{place}, about a sleep {of}."),
            (_, n) => format!(
                "The stacks are in {alert} and {}{place}, about sleeps {of}.",
                out::plural(n, "more alert")
            ),
        })
    }

    /// Adds the notes.
    fn caveats(&self, lines: &mut Vec<String>) {
        let notes = self.notes();
        if !notes.is_empty() {
            lines.push(String::new());
        }
        for note in notes {
            lines.extend(out::wrap(&out::printable(&note), 2));
        }
    }
}
