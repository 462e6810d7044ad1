// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `measure`: the cost of the probes on this machine, and an event that is more frequent in the slowest
//! runs.

use anyhow::{Result, bail};
use lt_common::Outcome;
use lt_common::out::{self, Colour};
use lt_proc::{Measure, MeasuredProbe, Outliers, ProcRoot, Taken};

use crate::cli::MeasureArgs;

/// Minimum ratio of an event's frequency in the slowest runs to its frequency in the others.
const MORE: f64 = 2.0;

/// The arguments of modprobe that load the module with counters.
const HOW: &str = "latency_tracker measure=cycles,instructions,branch-misses";

/// What the module counts as cycles (lt_cycles() in rust/sys/measure.c).
const CYCLES: &str = if cfg!(target_arch = "x86_64") {
    "the time stamp counter"
} else if cfg!(target_arch = "aarch64") {
    "the generic timer, which is slower than the processor"
} else {
    "the counter that get_cycles() reads"
};

pub(crate) fn run(root: &ProcRoot, args: &MeasureArgs) -> Result<Outcome> {
    let Some(measure) = root.measure()? else {
        bail!(
            "the module does not measure its probes; remove it, and load it with: modprobe {HOW}"
        );
    };
    if args.json {
        out::json(&measure)?;
        return Ok(Outcome::Fine);
    }
    for line in head(&measure) {
        out::line(&line)?;
    }
    for probe in measure
        .probes
        .iter()
        .filter(|p| p.samples > 0 && !is_empty(p))
    {
        out::line("")?;
        out::line(&out::paint(Colour::Bold, &title(probe)))?;
        for line in table(probe) {
            out::line(&line)?;
        }
        for line in out::wrap(&verdict(probe), 2) {
            out::line(&line)?;
        }
    }
    Ok(Outcome::Fine)
}

/// Whether this is the probe that does nothing.
fn is_empty(probe: &MeasuredProbe) -> bool {
    probe.tracker == "empty"
}

fn head(measure: &Measure) -> Vec<String> {
    let mut lines = Vec::new();
    let empty = measure
        .probes
        .iter()
        .find(|probe| probe.kind == "none" && is_empty(probe));
    if let Some(cycles) = empty.and_then(|probe| probe.value("cycles")) {
        lines.extend(out::wrap(
            &format!(
                "Cycles are those of {CYCLES}. Reading the counters takes {} of them (median), which \
                 is part of each value below.",
                cycles.p50
            ),
            0,
        ));
    }
    for counter in &measure.counters {
        if let Some(missing) = &counter.missing {
            let why = Measure::why(missing);
            lines.push(format!("{} is not counted: {why}", counter.name));
        }
    }
    if measure.unmeasured > 0 {
        lines.push(format!(
            "{} not measured: no memory, or too many are measured already",
            out::plural(measure.unmeasured as usize, "probe")
        ));
    }
    if measure
        .probes
        .iter()
        .all(|probe| probe.samples == 0 || is_empty(probe))
    {
        lines
            .push("no probe has run yet; start one: latency-tracker start cost wakeup".to_string());
    }
    lines
}

fn title(probe: &MeasuredProbe) -> String {
    let kind = match probe.kind.as_str() {
        "transition" => "an event began or ended",
        _ => "no event began or ended",
    };
    let (tracker, hook) = (&probe.tracker, &probe.hook);
    let runs = out::thousands(probe.samples);
    let mut title = format!("{tracker}, {hook}: {runs} runs in which {kind}");
    if probe.discarded > 0 {
        let discarded = out::thousands(probe.discarded);
        title.push_str(&format!(" ({discarded} discarded: interrupted by an NMI)"));
    }
    title
}

fn table(probe: &MeasuredProbe) -> Vec<String> {
    let mut lines = vec![format!(
        "  {:<22}{:>8}{:>8}{:>8}{:>8}{:>10}{:>13}",
        "COUNTER", "MIN", "P50", "MEAN", "P99", "MAX", "CORRELATION"
    )];
    for value in probe.values.iter().filter(|value| value.count > 0) {
        let Taken {
            counter,
            min,
            mean,
            p50,
            p99,
            max,
            ..
        } = value;
        let correlation = if counter == "cycles" {
            None
        } else {
            probe.correlation(counter)
        };
        let correlation = correlation.map_or_else(|| "-".to_string(), |r| format!("{r:.2}"));
        lines.push(format!(
            "  {counter:<22}{min:>8}{p50:>8}{mean:>8}{p99:>8}{max:>10}{correlation:>13}"
        ));
    }
    lines
}

/// Names an event that is more frequent in the slowest runs than in the others.
fn verdict(probe: &MeasuredProbe) -> String {
    if probe.values.len() <= 1 {
        return String::new();
    }
    let events = probe.values.iter().skip(1).filter(|value| value.count > 0);
    if events.clone().next().is_none() {
        return "No event was counted: no runs are compared.".to_string();
    }
    let found: Vec<(&str, Outliers)> = events
        .filter_map(|value| Some((value.counter.as_str(), probe.outliers(&value.counter)?)))
        .collect();
    let Some((_, first)) = found.first() else {
        return "No run was much slower than the others.".to_string();
    };
    let runs = out::plural(first.runs as usize, "run");
    // At least one event per two runs: rarer events cannot explain most slow runs.
    let more = found
        .iter()
        .filter(|(_, had)| had.mean >= 0.5 && had.mean >= MORE * had.others);
    let factor = |had: &Outliers| had.mean / had.others.max(f64::MIN_POSITIVE);
    let most = more.max_by(|(_, a), (_, b)| factor(a).total_cmp(&factor(b)));
    match most {
        Some((event, had)) => format!(
            "The slowest {runs} had more {event} than the others: {:.1} on average, instead of {:.2}.",
            had.mean, had.others
        ),
        None => format!(
            "No counted event was much more frequent in the slowest {runs} than in the others."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(slow: u64) -> Measure {
        let text = format!(
            "counter cycles counted cpus=2
counter dTLB-load-misses missing why=absent
counter branch-misses counted cpus=2
unmeasured 0
probe empty - none samples=1000 discarded=0
value cycles count=1000 min=40 mean=41 p50=43 p99=43 max=90 sum=41000 squares=1 products=1
probe wakeup sched_waking transition samples=1002 discarded=3
value cycles count=1002 min=300 mean=325 p50=319 p99=351 max=2000 sum=325000 squares=110000000 products=110000000
value dTLB-load-misses count=0
value branch-misses count=1002 min=0 mean=0 p50=0 p99=8 max=8 sum=16 squares=128 products=32000
bucket 320 352 1000 0 100
bucket 1792 2048 2 0 {slow}
"
        );
        Measure::parse(&text).unwrap()
    }

    #[test]
    fn the_slowest_runs_are_explained_by_what_they_had_more_of() {
        let measure = measured(16);
        assert_eq!(
            verdict(&measure.probes[1]),
            "The slowest 2 runs had more branch-misses than the others: 8.0 on average, instead of 0.10."
        );
        let lines = table(&measure.probes[1]);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines.iter().all(|line| line.len() < 80), "{lines:?}");
        assert!(lines[1].ends_with(" -"), "{lines:?}");
        assert!(lines[2].ends_with(" 1.00"), "{lines:?}");
    }

    #[test]
    fn a_rare_event_explains_nothing() {
        assert_eq!(
            verdict(&measured(0).probes[1]),
            "No counted event was much more frequent in the slowest 2 runs than in the others."
        );
        assert_eq!(verdict(&measured(0).probes[0]), "");
    }

    #[test]
    fn without_an_event_no_runs_are_compared() {
        let mut probe = measured(16).probes[1].clone();
        probe.values[0].p99 = 2047;
        assert_eq!(verdict(&probe), "No run was much slower than the others.");
        for value in probe.values.iter_mut().skip(1) {
            value.count = 0;
        }
        assert_eq!(
            verdict(&probe),
            "No event was counted: no runs are compared."
        );
    }

    #[test]
    fn what_is_not_counted_is_named_with_the_reason() {
        let lines = head(&measured(0)).join(" ");
        assert!(lines.contains("takes 43 of them"), "{lines}");
        assert!(
            lines.contains("dTLB-load-misses is not counted: this machine has no such counter"),
            "{lines}"
        );
        assert!(title(&measured(0).probes[1]).contains("1,002 runs"));
        let measure = Measure {
            unmeasured: 1,
            ..measured(0)
        };
        let said = "1 probe not measured: no memory, or too many are measured already";
        assert!(head(&measure).iter().any(|line| line == said));
    }
}
