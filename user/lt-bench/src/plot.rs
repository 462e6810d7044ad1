// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `bench plot`: several runs side by side, our own and other tools'.

use std::fs;

use anyhow::{Context, Result};
use lt_common::Outcome;
use lt_common::out;
use lt_proc::{Nanos, PERCENTILES};

use super::args::PlotArgs;
use super::report::{check_outputs, drawn};
use crate::measure::{Curve, read};

pub(super) fn run(args: &PlotArgs) -> Result<Outcome> {
    check_outputs(&args.output)?;
    let mut curves = Vec::new();
    for file in &args.files {
        let shown = file.display().to_string();
        let bytes = fs::read(file).with_context(|| shown.clone())?;
        let found = read(&String::from_utf8_lossy(&bytes)).with_context(|| shown.clone())?;
        let name = file
            .file_stem()
            .map_or(shown, |stem| stem.to_string_lossy().into_owned());
        let named = |curve: Curve| Curve {
            name: format!("{name} {}", curve.name),
            ..curve
        };
        curves.extend(found.into_iter().map(named));
    }
    for file in &args.output {
        let text = drawn(file, &args.title, &curves);
        fs::write(file, text).with_context(|| file.display().to_string())?;
    }
    for line in lines(&curves) {
        out::line(&line)?;
    }
    Ok(Outcome::Fine)
}

/// Returns a table with a row for each curve.
pub(super) fn lines(curves: &[Curve]) -> Vec<String> {
    let mut head = vec!["RUN", ">SAMPLES", ">MIN"];
    let names: Vec<String> = PERCENTILES
        .iter()
        .map(|(name, _)| format!(">{}", name.to_uppercase()))
        .collect();
    head.extend(names.iter().map(String::as_str));
    head.push(">MAX");
    let row = |curve: &Curve| {
        let known = curve.percentiles();
        let time = |ns: Option<u64>| ns.map_or("-".to_string(), |ns| Nanos(ns).to_string());
        let mut row = vec![
            out::printable(&curve.name),
            out::thousands(curve.count()),
            time(curve.min),
        ];
        for (name, _) in PERCENTILES {
            let found = known.iter().find(|percentile| percentile.name == name);
            row.push(time(found.map(|percentile| percentile.ns)));
        }
        row.push(time(curve.max));
        row
    };
    let rows: Vec<Vec<String>> = curves.iter().map(row).collect();
    out::table(&head, &rows)
}
