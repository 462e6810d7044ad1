// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `profile show`: prints a profile as a table.

use anyhow::Result;
use lt_common::Outcome;
use lt_common::out;
use lt_proc::{Nanos, ProcRoot, Profile, Span};

use super::args::ShowArgs;

pub(crate) fn run(root: &ProcRoot, args: &ShowArgs) -> Result<Outcome> {
    let name = super::instance(root, args.source.name.as_deref())?;
    let mut span = args.source.span.span();
    if args.reset {
        // Shows exactly the profile that the reset ended.
        root.reset_profile(&name)?;
        span = Span::Previous;
    }
    let profile = root.profile(&name, span)?;
    if args.json {
        out::json(&profile)?;
        return Ok(Outcome::Fine);
    }
    for line in lines(&name, &profile, args.all) {
        out::line(&line)?;
    }
    Ok(Outcome::Fine)
}

fn lines(name: &str, profile: &Profile, all: bool) -> Vec<String> {
    let mut lines = vec![format!("{name}, {}", Nanos(profile.duration()))];
    let is_used = |row: &usize| profile.classes.iter().any(|class| class.counts[*row] > 0);
    let rows = 0..profile.rows.len();
    let first = rows.clone().find(is_used).unwrap_or(0);
    let last = rows.clone().rev().find(is_used).unwrap_or(0);
    let shown = if all { rows } else { first..last + 1 };
    let mut head: Vec<String> = vec!["RANGE".into()];
    head.extend(
        profile
            .classes
            .iter()
            .map(|class| format!(">{}", class.name.to_uppercase())),
    );
    let row = |row: usize| {
        let counts = profile.classes.iter().map(|class| short(class.counts[row]));
        std::iter::once(profile.rows[row].label.clone())
            .chain(counts)
            .collect()
    };
    let mut cells: Vec<Vec<String>> = shown.map(row).collect();
    let totals = profile.classes.iter().map(|class| short(class.total()));
    cells.push(std::iter::once("all".to_string()).chain(totals).collect());
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    lines.extend(out::table(&head, &cells));
    lines
}

/// Formats a count, in at most five characters if it is below 10^16.
fn short(count: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1_000_000_000_000, "T"),
        (1_000_000_000, "G"),
        (1_000_000, "M"),
        (1_000, "k"),
    ];
    if count < 100_000 {
        return count.to_string();
    }
    let (scale, unit) = UNITS
        .into_iter()
        .find(|(scale, _)| count >= *scale)
        .unwrap_or((1, ""));
    let value = count as f64 / scale as f64;
    if value < 99.95 {
        format!("{value:.1}{unit}")
    } else {
        format!("{value:.0}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lt_proc::{ClassCounts, Row};

    #[test]
    fn the_widest_table_fits_on_a_terminal() {
        let row = |bit: u32| Row {
            label: ["[1ns,2ns[", "[512us,1ms[", "[1024s,2048s[", "[2048s,inf["][bit as usize]
                .into(),
            low: 1 << bit,
            high: Some(2 << bit),
        };
        let names = [
            "s_read", "s_write", "s_rw", "s_sync", "s_open", "s_close", "b_read", "b_write",
        ];
        let class = |name: &str| ClassCounts {
            name: name.into(),
            counts: vec![0, 0, u64::MAX / 100_000, 0],
        };
        let profile = Profile {
            begin: 0,
            end: 1_000_000_000,
            rows: (0..4).map(row).collect(),
            classes: names.map(class).into(),
        };
        let lines = lines("io", &profile, true);
        assert!(
            lines
                .iter()
                .all(|line| line.chars().count() < 80 && !line.ends_with('~')),
            "{lines:#?}"
        );
        assert_eq!(lines.len(), 1 + 1 + 4 + 1);
        // Without --all, only rows with counts, and the sum.
        assert_eq!(super::lines("io", &profile, false).len(), 1 + 1 + 1 + 1);
    }

    #[test]
    fn long_numbers_are_short() {
        for (count, text) in [
            (0, "0"),
            (99_999, "99999"),
            (100_000, "100k"),
            (999_999, "1000k"),
            (1_234_567, "1.2M"),
            (454_251_762, "454M"),
            (1_009_908_482, "1.0G"),
            (184_467_440_737_095, "184T"),
        ] {
            assert_eq!(short(count), text);
        }
    }
}
