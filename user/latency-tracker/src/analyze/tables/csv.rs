// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The rows of tables as comma-separated values, with a header line; times are in ns.

use super::super::csv::line;
use super::view::{self, Report};

pub(super) fn lines(report: &Report<'_>) -> Vec<String> {
    let names = "table,from,by,group,count,sum,min,p50,p90,p99,max,exact,errors,migrations,parts,requeues,merges,share,unknown,consumed,dropped,replaced";
    let mut lines = vec![names.to_string()];
    for table in &report.found.tables.tables {
        let extras = view::extras(table.kind);
        for row in report.shown(table, None).0 {
            let sums = &row.row.sums;
            let number =
                |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
            let some = |value| number((sums.count > 0).then_some(value));
            let extra = |name: &str| {
                let which = extras.iter().find(|(of, _)| *of == name);
                number(which.map(|(_, which)| row.row.extra(*which)))
            };
            let share = report.share(table, &row);
            lines.push(line(&[
                view::name(table.kind).into(),
                row.interval.to_string(),
                view::grouping(table).into(),
                row.name.clone(),
                sums.count.to_string(),
                sums.sum.to_string(),
                some(sums.least),
                number(sums.percentile(50)),
                number(sums.percentile(90)),
                number(sums.percentile(99)),
                some(sums.most),
                sums.is_exact().to_string(),
                extra("errors"),
                extra("migrations"),
                extra("parts"),
                extra("requeues"),
                extra("merges"),
                share.map_or_else(String::new, |share| format!("{share:.6}")),
                extra("unknown"),
                extra("consumed"),
                extra("dropped"),
                extra("replaced"),
            ]));
        }
    }
    lines
}
