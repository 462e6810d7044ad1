// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `profile`: how long operations of each class took; saved, compared and drawn.
//!
//! ```text
//!   NAME/profile ---> show
//!        |----------> save ---> file.json ---.
//!        |----------> record -> file.json ---+-> draw: a heat map
//!        |                                   |
//!        '-----------------------------------+-> compare: chi-squared, and a sentence
//! ```

mod args;
mod collect;
mod compare;
mod file;
mod show;
mod words;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use lt_common::Outcome;
use lt_common::out;
use lt_proc::{Nanos, ProcRoot, Span};
use serde::Serialize;

use self::args::{Action, CompareArgs, DrawArgs, SaveArgs, SpanArgs};
pub(crate) use self::args::{EXAMPLES, ProfileArgs};
use self::compare::Comparison;
use self::file::{ProfileFile, Sample};
use crate::heat::{self, Column, HeatMap, Panel};

pub(crate) fn run(root: &ProcRoot, args: &ProfileArgs) -> Result<Outcome> {
    match &args.action {
        Action::Show(args) => show::run(root, args),
        Action::Save(args) => save(root, args),
        Action::Compare(args) => compare(root, args),
        Action::Record(args) => collect::run(root, args),
        Action::Draw(args) => draw(args),
    }
}

impl SpanArgs {
    fn span(&self) -> Span {
        match self.minutes {
            Some(minutes) => Span::Minutes(minutes),
            None if self.previous => Span::Previous,
            None => Span::SinceReset,
        }
    }
}

/// The instance with that name; without a name, the only instance that has a profile.
fn instance(root: &ProcRoot, name: Option<&str>) -> Result<String> {
    if let Some(name) = name {
        let name = root.instance(name)?.name;
        ensure!(
            root.has_profile(&name),
            "{name} has no profile; only instances of the tracker `io` have one"
        );
        return Ok(name);
    }
    let all = root.instances()?.into_iter().map(|i| i.name);
    let mut with: Vec<String> = all.filter(|name| root.has_profile(name)).collect();
    match (with.pop(), with.is_empty()) {
        (Some(name), true) => Ok(name),
        (Some(_), false) => bail!("several instances have a profile; name one"),
        (None, _) => bail!("no instance has a profile; start one: latency-tracker start io io"),
    }
}

/// The profile of an instance over `span`, in the form of a file.
fn now(root: &ProcRoot, name: Option<&str>, span: &SpanArgs) -> Result<ProfileFile> {
    let name = instance(root, name)?;
    let profile = root.profile(&name, span.span())?;
    let mut file = ProfileFile::new(root, &name, &profile)?;
    file.samples.push(Sample::of(profile));
    Ok(file)
}

fn save(root: &ProcRoot, args: &SaveArgs) -> Result<Outcome> {
    let source = &args.source;
    now(root, source.name.as_deref(), &source.span)?.write(&args.output)?;
    Ok(Outcome::Fine)
}

/// The output of `compare --json`.
#[derive(Serialize)]
struct Report<'a> {
    differ: bool,
    significance: f64,
    before: &'a Side,
    after: &'a Side,
    classes: BTreeMap<&'a str, Class>,
}

/// The origin of one of two profiles.
#[derive(Serialize)]
struct Side {
    source: String,
    host: String,
    kernel: String,
    seconds: f64,
}

impl Side {
    fn new(source: String, file: &ProfileFile) -> Self {
        Self {
            source,
            host: file.host.clone(),
            kernel: file.kernel.clone(),
            seconds: file.seconds(),
        }
    }

    fn line(&self, word: &str) -> String {
        let release = self.kernel.split(' ').next().unwrap_or("?");
        let seconds = self.seconds;
        out::fit_line(&format!(
            "{word} {}: {seconds:.1} s on {}, {release}",
            self.source, self.host
        ))
    }
}

#[derive(Serialize)]
struct Class {
    #[serde(flatten)]
    comparison: Comparison,
    differs: bool,
    sentence: String,
}

fn compare(root: &ProcRoot, args: &CompareArgs) -> Result<Outcome> {
    let before = ProfileFile::read(&args.before)?;
    let (after, source) = match &args.after {
        Some(path) => {
            ensure!(
                args.span.minutes.is_none() && !args.span.previous,
                "--minutes and --previous select a profile of an instance, not of a file"
            );
            (ProfileFile::read(path)?, path.display().to_string())
        }
        None => {
            let file = now(root, args.name.as_deref(), &args.span)?;
            let source = format!("{}, now", file.instance);
            (file, source)
        }
    };
    ensure!(
        before.low == after.low,
        "profiles with different rows cannot be compared"
    );
    if before.is_in(&after) {
        out::note(
            "the later profile includes the earlier one: the operations since then differ more than shown \
             (`latency-tracker profile show --reset` starts from zero)",
        );
    }
    let mut classes = BTreeMap::new();
    let (sums_before, sums_after) = (before.sums(), after.sums());
    let names: Vec<&str> = before.classes();
    let alone = |name: &str| out::note(&format!("{name} is in only one of the profiles"));
    for name in after.classes() {
        if !names.contains(&name) {
            alone(name);
        }
    }
    for name in &names {
        let (Some(b), Some(a)) = (sums_before.get(name), sums_after.get(name)) else {
            alone(name);
            continue;
        };
        let comparison = compare::compare(&before.low, b, a)?;
        let class = Class {
            differs: words::differs(&comparison, args.significance),
            sentence: words::sentence(name, &comparison, args.significance),
            comparison,
        };
        classes.insert(*name, class);
    }
    let report = Report {
        differ: classes.values().any(|class| class.differs),
        significance: args.significance,
        before: &Side::new(args.before.display().to_string(), &before),
        after: &Side::new(source, &after),
        classes,
    };
    if args.json {
        out::json(&report)?;
    } else {
        print(&report, &names)?;
    }
    Ok(if report.differ {
        Outcome::Alert
    } else {
        Outcome::Fine
    })
}

fn print(report: &Report<'_>, names: &[&str]) -> Result<()> {
    out::line(&report.before.line("before"))?;
    out::line(&report.after.line("after "))?;
    let classes = || {
        names
            .iter()
            .filter_map(|name| Some((*name, report.classes.get(name)?)))
    };
    let any = |class: &Class| class.comparison.before > 0 || class.comparison.after > 0;
    let rows: Vec<Vec<String>> = classes().filter(|(_, class)| any(class)).map(row).collect();
    out::line("")?;
    for line in out::table(&["CLASS", ">BEFORE", ">AFTER", ">CHI2", ">DF", ">P"], &rows) {
        out::line(&line)?;
    }
    out::line("")?;
    for (_, class) in classes().filter(|(_, class)| any(class)) {
        for line in out::wrap(&class.sentence, 0) {
            out::line(&line)?;
        }
    }
    Ok(())
}

fn row((name, class): (&str, &Class)) -> Vec<String> {
    let Comparison {
        before,
        after,
        test,
        ..
    } = class.comparison;
    let number = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    vec![
        name.to_string(),
        out::thousands(before),
        out::thousands(after),
        number(test.map(|test| format!("{:.1}", test.chi_squared))),
        number(test.map(|test| test.degrees.to_string())),
        number(test.map(|test| words::p_value(test.p).replace("p = ", "").replace("p ", ""))),
    ]
}

fn draw(args: &DrawArgs) -> Result<Outcome> {
    let file = ProfileFile::read(&args.input)?;
    draw_file(&file, &args.classes, &args.output)?;
    Ok(Outcome::Fine)
}

/// The heat map of these classes.
fn heat_map(file: &ProfileFile, classes: &[&str]) -> HeatMap {
    let samples = file.samples.len();
    let each = file.seconds() / samples.max(1) as f64;
    let panel = |class: &&str| {
        let column = |sample: &Sample| {
            let mut counts = sample.counts.0.iter();
            let (_, counts) = counts.find(|(name, _)| name == class)?;
            Some(Column {
                begin: sample.begin,
                end: sample.end,
                counts: counts.clone(),
            })
        };
        Panel {
            name: format!("{} ({class})", words::class_name(class)),
            columns: file.samples.iter().filter_map(column).collect(),
        }
    };
    let gap = |pair: &[Sample]| match pair {
        [before, after] if before.end < after.begin => Some((before.end, after.begin)),
        _ => None,
    };
    HeatMap {
        heading: format!(
            "{} on {}: how long operations took",
            file.instance, file.host
        ),
        subheading: format!(
            "Linux {}, {samples} samples of {} each",
            file.kernel.split(' ').next().unwrap_or("?"),
            Nanos((each * 1e9) as u64)
        ),
        low: file.low.clone(),
        panels: classes.iter().map(panel).collect(),
        gaps: file.samples.windows(2).filter_map(gap).collect(),
        notes: Vec::new(),
    }
}

fn draw_file(file: &ProfileFile, wanted: &[String], output: &Path) -> Result<()> {
    let sums = file.sums();
    let all = file.classes();
    if let Some(unknown) = wanted.iter().find(|class| !all.contains(&class.as_str())) {
        bail!("--class {unknown}: expected one of {}", all.join(", "));
    }
    let has_counts = |class: &str| {
        sums.get(class)
            .is_some_and(|counts| counts.iter().any(|n| *n > 0))
    };
    let is_wanted = |class: &str| {
        if wanted.is_empty() {
            has_counts(class)
        } else {
            wanted.iter().any(|wanted| wanted == class)
        }
    };
    let classes: Vec<&str> = all.into_iter().filter(|class| is_wanted(class)).collect();
    ensure!(
        !classes.is_empty(),
        "no operation was counted: nothing to draw"
    );
    heat::write(&heat_map(file, &classes), output)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    /// The time that these options of `show` select, or the error.
    fn span(options: &[&str]) -> Result<Span, String> {
        let all = [&["lt", "profile", "show"], options].concat();
        let cli = Cli::try_parse_from(all).map_err(|error| error.to_string())?;
        let Command::Profile(args) = cli.command else {
            panic!()
        };
        match args.action {
            Action::Show(args) => Ok(args.source.span.span()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_last_1_5_or_15_minutes_can_be_shown() {
        for minutes in [1u8, 5, 15] {
            let shown = span(&["--minutes", &minutes.to_string()]);
            assert_eq!(shown, Ok(Span::Minutes(minutes)));
        }
        assert_eq!(span(&["--previous"]), Ok(Span::Previous));
        assert_eq!(span(&[]), Ok(Span::SinceReset));
        for other in ["0", "7", "16", "01", "5m"] {
            let error = span(&["--minutes", other]).unwrap_err();
            assert!(error.contains("[possible values: 1, 5, 15]"), "{error}");
        }
    }

    #[test]
    fn a_profile_is_in_the_one_that_continues_it() {
        let sample: (&[u64], &[u64]) = (&[1, 0], &[0, 0]);
        let before = file::tests::file(&[1, 2], &[sample]);
        let mut after = before.clone();
        after.samples[0].end += 1;
        assert!(before.is_in(&after) && !after.is_in(&before));
        after.samples[0].begin += 1;
        assert!(!before.is_in(&after));
    }

    #[test]
    fn a_time_between_two_samples_is_a_gap() {
        let sample: (&[u64], &[u64]) = (&[1, 0], &[0, 0]);
        let mut file = file::tests::file(&[1, 2], &[sample; 3]);
        assert!(heat_map(&file, &["s_read"]).gaps.is_empty());
        file.samples.remove(1);
        let gaps = heat_map(&file, &["s_read"]).gaps;
        assert_eq!(gaps, [(1_000_000_000, 2_000_000_000)]);
    }
}
