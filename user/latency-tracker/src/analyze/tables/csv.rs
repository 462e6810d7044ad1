// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The rows of tables as comma-separated values (RFC 4180), with a header line; times are in ns.

use super::view::{self, Report};

/// Quotes a field if it needs quotes.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
}

pub(super) fn lines(report: &Report<'_>) -> Vec<String> {
    let names = "table,from,by,group,count,sum,min,p50,p90,p99,max,exact,errors,migrations,parts,requeues,merges";
    let mut lines = vec![names.to_string()];
    for table in &report.found.tables.tables {
        let extras = view::extras(table.kind);
        for line in report.shown(table, None).0 {
            let sums = &line.row.sums;
            let number =
                |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
            let some = |value| number((sums.count > 0).then_some(value));
            let extra = |name: &str| {
                let which = extras.iter().find(|(of, _)| *of == name);
                number(which.map(|(_, which)| line.row.extra(*which)))
            };
            let cells = [
                view::name(table.kind).to_string(),
                line.interval.to_string(),
                view::grouping(table).to_string(),
                quoted(&line.name),
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
            ];
            lines.push(cells.join(","));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_separators_are_quoted() {
        assert_eq!(quoted("read"), "read");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"no\""), "\"say \"\"no\"\"\"");
    }
}
