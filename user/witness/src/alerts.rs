// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The alerts to be judged: reported operations, and the parser of the block tracker's alerts.

use crate::babeltrace::Dev;
use anyhow::{Context, Result, bail};
use lt_proc::{Alert, Reason, StreamLine};

use crate::pair::Place;

/// An operation reported as slow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reported {
    pub(crate) seq: u64,
    pub(crate) place: Place,
    pub(crate) delay: u64,
    /// When the alert was raised, ns.
    pub(crate) time: u64,
    /// The fields to compare with the trace, as `name=value`; empty for the block tracker.
    pub(crate) said: String,
}

/// Reads the whole file. Lost, repeated or missing alerts are an error, as the comparison would prove nothing.
pub(crate) fn parse(text: &str, only: Option<Dev>) -> Result<Vec<Reported>> {
    let mut reported = Vec::new();
    let mut last: Option<u64> = None;
    for (i, line) in text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.trim().is_empty())
    {
        let place = || format!("line {}", i + 1);
        let alert = match StreamLine::parse(line).with_context(place)? {
            StreamLine::Lost(n) => bail!("{}: {n} alerts were lost: enlarge ring=", place()),
            StreamLine::Alert(alert) => alert,
        };
        if let Some(last) = last.filter(|last| alert.seq != last + 1) {
            bail!(
                "{}: seq={} follows seq={last}: not the whole stream of one instance",
                place(),
                alert.seq
            );
        }
        last = Some(alert.seq);
        if alert.reason != Reason::Threshold {
            continue;
        }
        let (dev, found) = judge_fields(&alert).with_context(place)?;
        if only.is_none_or(|only| only == dev) {
            reported.push(found);
        }
    }
    Ok(reported)
}

fn judge_fields(alert: &Alert) -> Result<(Dev, Reported)> {
    let dev = alert.fields.text("dev").and_then(|d| Dev::parse(&d));
    let dev = dev.context("no dev=MAJ:MIN")?;
    let sector = alert.fields.number("sector").context("no sector=")?;
    let reported = Reported {
        seq: alert.seq,
        place: Place::Disk(dev, sector),
        delay: alert.delay,
        time: alert.time,
        said: String::new(),
    };
    Ok((dev, reported))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seq: u64, dev: &str) -> String {
        format!(
            "seq={seq} time=9 instance=a tracker=block reason=threshold delay=5 threshold=1 cpu=0 pid=1 \
             tid=1 comm=\"a b\" dev={dev} disk=\"x\" op=\"R\" sector=8 bytes=4096 queue=0 device=5 requeues=0\n"
        )
    }

    #[test]
    fn alerts_of_the_device_are_taken() {
        let text = line(3, "254:1") + &line(4, "254:0") + &line(5, "254:1");
        assert_eq!(parse(&text, Dev::parse("254:1")).unwrap().len(), 2);
        assert_eq!(parse(&text, None).unwrap().len(), 3);
        assert!(parse("", None).unwrap().is_empty());
    }

    #[test]
    fn gaps_repeats_and_losses_are_refused() {
        assert!(parse(&(line(3, "8:0") + &line(5, "8:0")), None).is_err());
        assert!(parse(&(line(3, "8:0") + &line(3, "8:0")), None).is_err());
        assert!(parse(&(line(3, "8:0") + "lost=1\n" + &line(5, "8:0")), None).is_err());
        assert!(parse("nonsense\n", None).is_err());
    }
}
