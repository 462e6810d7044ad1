// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `profile record`: a profile, sampled repeatedly.
//!
//! A sample is the difference of two readings, so together the samples contain everything that
//! happened, whenever they are taken. If the profile is reset between two samples, the profile
//! that the reset ended is read as well. If it is reset twice, counts are missing: a note reports
//! that, and the samples leave a gap.

use std::time::Instant;

use anyhow::{Result, ensure};
use lt_common::Outcome;
use lt_common::out;
use lt_common::wait::{Signals, Wake};
use lt_proc::{ProcRoot, Profile, Span};

use super::args::RecordArgs;
use super::file::{ProfileFile, Sample};

pub(crate) fn run(root: &ProcRoot, args: &RecordArgs) -> Result<Outcome> {
    for (option, duration) in [("every", args.every), ("duration", args.duration)] {
        ensure!(
            duration.0 > 0,
            "--{option} {duration}: expected a duration greater than 0"
        );
    }
    out::file::check(std::iter::once(&args.output).chain(&args.svg))?;
    let name = super::instance(root, args.name.as_deref())?;
    let signals = Signals::catch()?;
    let start = Instant::now();
    let mut last = root.profile(&name, Span::SinceReset)?;
    let mut file = ProfileFile::new(root, &name, &last)?;
    let samples = args.duration.0.div_ceil(args.every.0);
    let mut failed = None;
    for number in 1..=samples {
        let due = args.every.0.saturating_mul(number).min(args.duration.0);
        let due = start + std::time::Duration::from_nanos(due);
        let ended = signals.wait(None, Some(due))? == Wake::Signal;
        match sample(root, &name, &mut last) {
            Ok(pieces) => file.samples.extend(pieces.into_iter().map(Sample::of)),
            Err(error) => failed = Some(error),
        }
        if ended || failed.is_some() {
            break;
        }
    }
    // Samples that were read before a failure are also written.
    if let Some(error) = failed.take_if(|_| file.samples.is_empty()) {
        return Err(error);
    }
    file.write(&args.output)?;
    if let Some(svg) = &args.svg {
        super::draw_file(&file, &[], svg)?;
    }
    let (count, seconds) = (file.samples.len(), file.seconds());
    out::note(&format!(
        "{count} samples of {seconds:.1} s in {}",
        args.output.display()
    ));
    failed.map_or(Ok(Outcome::Fine), Err)
}

/// Reads the profile, and returns what was counted since the reading in `last`. Stores the new reading there.
fn sample(root: &ProcRoot, name: &str, last: &mut Profile) -> Result<Vec<Profile>> {
    let now = root.profile(name, Span::SinceReset)?;
    let pieces = match now.since(last) {
        Some(piece) => vec![piece],
        None => over_reset(last, root.profile(name, Span::Previous)?, &now),
    };
    *last = now;
    Ok(pieces)
}

/// Returns the samples before and after a reset.
fn over_reset(last: &Profile, previous: Profile, now: &Profile) -> Vec<Profile> {
    let before = (previous.end == now.begin)
        .then(|| previous.since(last))
        .flatten();
    if before.is_none() {
        out::note("the profile was reset more than once between two samples: counts are missing");
    }
    before.into_iter().chain([now.clone()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(begin: u64, end: u64, count: u64) -> Profile {
        let text = format!("# begin={begin} end={end}\nrange x\n[1ns,2ns[ {count}\n");
        Profile::parse(&text).unwrap()
    }

    fn counts(pieces: &[Profile]) -> Vec<(u64, u64, u64)> {
        let count = |p: &Profile| (p.begin, p.end, p.classes[0].counts[0]);
        pieces.iter().map(count).collect()
    }

    #[test]
    fn a_reset_between_two_samples_loses_nothing() {
        let pieces = over_reset(&profile(0, 10, 5), profile(0, 14, 8), &profile(14, 20, 2));
        assert_eq!(counts(&pieces), [(10, 14, 3), (14, 20, 2)]);
    }

    #[test]
    fn two_resets_leave_what_is_known() {
        let pieces = over_reset(&profile(0, 10, 5), profile(14, 16, 8), &profile(16, 20, 2));
        assert_eq!(counts(&pieces), [(16, 20, 2)]);
    }
}
