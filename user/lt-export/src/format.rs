// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The two formats of the page. A client gets OpenMetrics if its `Accept` header asks for it, else
//! the older text, which every reader of metrics understands.

const OPENMETRICS: &str = "application/openmetrics-text";
const TEXT: &str = "text/plain";

/// The format of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format 0.0.4, also for node_exporter's textfile collector.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// Returns the format for the values of a request's `Accept` headers: OpenMetrics if it is
    /// named with at least the weight of text.
    pub(crate) fn accepted<'a>(accept: impl Iterator<Item = &'a [u8]>) -> Self {
        let (mut openmetrics, mut text) = (0.0, 0.0);
        for value in accept.filter_map(|value| std::str::from_utf8(value).ok()) {
            for range in value.split(',') {
                let mut words = range.split(';').map(str::trim);
                let wanted = match words.next() {
                    Some(kind) if kind.eq_ignore_ascii_case(OPENMETRICS) => &mut openmetrics,
                    Some(kind) if kind.eq_ignore_ascii_case(TEXT) => &mut text,
                    _ => continue,
                };
                let quality = words.find_map(|word| word.strip_prefix("q="));
                let quality = quality.map_or(1.0, |q| q.parse().unwrap_or(0.0));
                *wanted = f32::max(*wanted, quality);
            }
        }
        if openmetrics > 0.0 && openmetrics >= text {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    /// Returns the `Content-Type` of the page.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Converts a page from OpenMetrics to the older format. That format has no units, no exemplars, no
/// type `info` and no end marker, and names a counter by the full name of its series.
pub(crate) fn older(page: &str) -> String {
    let mut text = String::new();
    let mut help = "";
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                _ => ("", kind),
            };
            let help = help.split_once(' ').map_or("", |(_, help)| help);
            text.push_str(&format!(
                "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n"
            ));
        } else if !line.starts_with('#') {
            // A label may contain ` # {`, too, but an exemplar comes after the end of the labels and a number.
            let sample = match line.rsplit_once(" # {") {
                Some((sample, _)) if !sample.ends_with(['"', ',']) && sample.contains("} ") => {
                    sample
                }
                _ => line,
            };
            text.push_str(sample);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_for_clients_that_ask_for_it() {
        let of = |values: &[&str]| Format::accepted(values.iter().map(|v| v.as_bytes()));
        assert_eq!(of(&[]), Format::Text);
        assert_eq!(of(&["*/*"]), Format::Text);
        assert_eq!(of(&["text/html, text/plain;q=0.5"]), Format::Text);
        assert_eq!(of(&["application/openmetrics-text"]), Format::OpenMetrics);
        assert_eq!(
            of(&["text/plain", "application/openmetrics-text;q=0.9"]),
            Format::Text
        );
        assert_eq!(of(&["application/openmetrics-text;q=0, */*"]), Format::Text);
        assert_eq!(of(&["application/openmetrics-text;q=oops"]), Format::Text);
        // Prometheus 3.5
        assert_eq!(
            of(&[
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;\
                escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
            ]),
            Format::OpenMetrics
        );
        assert_eq!(
            of(&[
                "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5"
            ]),
            Format::Text
        );
    }

    #[test]
    fn the_older_format_has_the_same_numbers() {
        let page = "# HELP a_loaded Loaded\n# TYPE a_loaded gauge\na_loaded 1\n\
            # HELP a_module V\n# TYPE a_module info\na_module_info{version=\"0.1\"} 1\n\
            # HELP a_started of attempts: tracked\n# TYPE a_started counter\na_started_total{name=\"x\"} 4\n\
            # HELP a_delay_seconds D\n# TYPE a_delay_seconds histogram\n# UNIT a_delay_seconds seconds\n\
            a_delay_seconds_bucket{le=\"0.1\",name=\"x\"} 4 # {capture=\"0007\"} 0.05 17.0\n# EOF\n";
        let text = "# HELP a_loaded Loaded\n# TYPE a_loaded gauge\na_loaded 1\n\
            # HELP a_module_info V\n# TYPE a_module_info gauge\na_module_info{version=\"0.1\"} 1\n\
            # HELP a_started_total of attempts: tracked\n# TYPE a_started_total counter\na_started_total{name=\"x\"} 4\n\
            # HELP a_delay_seconds D\n# TYPE a_delay_seconds histogram\n\
            a_delay_seconds_bucket{le=\"0.1\",name=\"x\"} 4\n";
        assert_eq!(older(page), text);
    }
}
