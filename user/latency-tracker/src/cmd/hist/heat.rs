// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `hist -i` as a heat map: `--live` prints a line for each interval, `--svg` draws all intervals at the end.
//!
//! Each column of the picture, and each line, is the difference of two readings, so together they contain every
//! operation that ended between the first and the last reading, regardless of when the readings are taken. If an
//! instance is removed and started again, what the old instance counted after its last reading is missing.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lt_common::Outcome;
use lt_common::out;
use lt_common::wait::{Signals, Wake};
use lt_proc::{Histogram, Nanos, ProcRoot};

use super::since;
use crate::cli::HistArgs;
use crate::heat::{self, Column, HeatMap, OCTAVES, Panel, octave};

/// The rows of the picture, powers of two, that have a cell in a printed line. The first cell also counts all shorter
/// delays, and the last cell all longer delays.
const SHOWN: std::ops::RangeInclusive<usize> = 8..=36;

/// Number of lines from one header to the next, rounded up to whole intervals: the header stays in sight.
const HEAD_EVERY: usize = 20;

/// The marks of a cell, for at least 1, 10, 100... operations.
const MARKS: [char; 6] = ['.', ':', 'o', 'O', '#', '@'];

pub(super) fn run(
    root: &ProcRoot,
    args: &HistArgs,
    names: &[String],
    times: (Duration, u64),
) -> Result<Outcome> {
    out::file::check(&args.svg)?;
    let panel = |name: &String| Panel {
        name: name.clone(),
        columns: Vec::new(),
    };
    let mut panels: Vec<Panel> = names.iter().map(panel).collect();
    let read = collect(root, args, times, &mut panels);
    // Samples that were read before a failure are also drawn.
    if let Some(file) = &args.svg
        && panels.iter().any(|panel| !panel.columns.is_empty())
    {
        heat::write(&map(panels)?, file)?;
    }
    read?;
    Ok(Outcome::Fine)
}

/// Reads the histograms after each interval, `count` times or until a signal.
fn collect(
    root: &ProcRoot,
    args: &HistArgs,
    (interval, count): (Duration, u64),
    panels: &mut [Panel],
) -> Result<()> {
    let signals = Signals::catch()?;
    let all = panels
        .iter()
        .map(|panel| root.of_one(&panel.name, || root.histogram(&panel.name)));
    let mut before = all.collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now();
    let (mut next, mut begin) = (start, 0);
    if args.live && args.svg.is_none() {
        out::line(&legend())?;
    }
    // An interval has a line for each instance.
    let head_every = HEAD_EVERY.div_ceil(panels.len().max(1)) as u64;
    for number in 0..count {
        next += interval;
        let is_last = signals.wait(None, Some(next))? == Wake::Signal;
        if args.live && number.is_multiple_of(head_every) {
            out::line(&head())?;
        }
        let end = start.elapsed().as_nanos() as u64;
        for (panel, last) in panels.iter_mut().zip(&mut before) {
            let read = || root.histogram(&panel.name);
            let delays = since(root, &panel.name, last, read, Histogram::since)?;
            let counts = rows(&delays);
            if args.live {
                out::line(&line(&panel.name, &counts))?;
            }
            if args.svg.is_some() {
                panel.columns.push(Column { begin, end, counts });
            }
        }
        begin = end;
        if is_last {
            break;
        }
    }
    Ok(())
}

/// The number of operations in each row. No bucket is in two rows.
fn rows(delays: &Histogram) -> Vec<u64> {
    let mut rows = vec![0; OCTAVES];
    for bucket in &delays.buckets {
        rows[octave(bucket.low)] += bucket.count;
    }
    rows
}

fn legend() -> String {
    let mark = |(power, mark): (u32, &char)| format!("{mark} {}", out::thousands(10u64.pow(power)));
    let marks: Vec<_> = (0..).zip(&MARKS).map(mark).collect();
    format!("{} operations or more", marks.join("  "))
}

/// The header of the lines: the shortest delay of every fourth row.
fn head() -> String {
    let mut bounds = String::new();
    // The last label would be wider than its cells.
    for row in SHOWN.step_by(4).take(7) {
        bounds += &format!("{:<8}", Nanos(1 << row).to_string());
    }
    let width = 2 * SHOWN.count();
    format!("{:8} {bounds:<width$} {:>9}  NAME", "TIME", "COUNT")
}

fn line(name: &str, counts: &[u64]) -> String {
    let (first, last) = (*SHOWN.start(), *SHOWN.end());
    let cell = |row: usize| {
        let rows = match row {
            row if row == first => &counts[..=row],
            row if row == last => &counts[row..],
            row => &counts[row..=row],
        };
        let count: u64 = rows.iter().sum();
        let mark = count
            .checked_ilog10()
            .map_or(' ', |power| MARKS[(power as usize).min(MARKS.len() - 1)]);
        [mark, mark]
    };
    let cells: String = SHOWN.flat_map(cell).collect();
    let count = out::thousands(counts.iter().sum());
    format!("{} {cells} {count:>9}  {name}", lt_common::clock::now())
}

/// The picture.
fn map(panels: Vec<Panel>) -> Result<HeatMap> {
    let uname = nix::sys::utsname::uname().context("uname")?;
    let text = |word: &std::ffi::OsStr| word.to_string_lossy().into_owned();
    let columns = panels.first().map_or(&[][..], |panel| &panel.columns);
    let (samples, end) = (columns.len(), columns.last().map_or(0, |column| column.end));
    let names: Vec<_> = panels.iter().map(|panel| panel.name.as_str()).collect();
    Ok(HeatMap {
        heading: format!(
            "{} on {}: how long operations took",
            names.join(", "),
            text(uname.nodename())
        ),
        subheading: format!(
            "Linux {}, {samples} samples of {} each",
            text(uname.release()),
            Nanos(end / samples.max(1) as u64)
        ),
        low: heat::octaves(),
        panels,
        ..HeatMap::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> Vec<u64> {
        rows(&Histogram::parse(text).unwrap())
    }

    #[test]
    fn a_row_is_a_power_of_two() {
        let rows = counts("0 1 5\n1 2 1\n1024 1152 2\n1920 2048 3\n2048 2304 7");
        assert_eq!((rows[0], rows[10], rows[11]), (6, 5, 7));
        let rows = counts("4398046511104 4947802324992 9");
        assert_eq!(rows[OCTAVES - 1], 9);
    }

    #[test]
    fn a_line_has_all_operations() {
        let shown = line(
            "slow",
            &counts("1 2 1\n256 288 9\n512 576 1000000\n274877906944 300000000000 10"),
        );
        let cells = &shown[9..9 + 2 * SHOWN.count()];
        assert!(
            cells.starts_with("::@@  ") && cells.ends_with("  ::"),
            "{shown:?}"
        );
        assert!(shown.ends_with(" 1,000,020  slow"), "{shown:?}");
        assert!(shown.len() < 90);
    }

    #[test]
    fn the_head_is_above_its_cells() {
        let head = head();
        let at = |label: &str| head.find(label).unwrap();
        assert_eq!(
            (at("256ns"), at("4.10us"), at("1.05ms")),
            (9, 17, 33),
            "{head}"
        );
        let one = line("slow", &counts("256 288 7"));
        assert_eq!(
            at("COUNT") + 5,
            one.find("7  slow").unwrap() + 1,
            "{head}\n{one}"
        );
    }
}
