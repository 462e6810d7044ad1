// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Writes the page of metrics. Each counter of `stats`, except the counters of the length of
//! delays, is a metric with the name of the counter, and with the labels `name` (of the instance)
//! and `tracker`. The metrics thus add up as the counters do in the kernel. The first label is not
//! called `instance`: Prometheus uses that name for the target that it scrapes, and would rename
//! ours to `exported_instance`.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use lt_proc::Stats;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::captures::Exemplars;
use crate::counts::{Counts, Signal};
use crate::format::{self, Format};

use crate::readings::{Reading, Readings, bounds, seconds};

/// The contents of a page.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) readings: Readings,
    pub(crate) exemplars: Exemplars,
    /// The delivery counters, with `--otlp`.
    pub(crate) counts: Option<Arc<Counts>>,
}

/// A gauge: name, help, unit, and its value for an instance.
pub(crate) type Gauge = (
    &'static str,
    &'static str,
    Option<Unit>,
    fn(&Reading) -> Option<f64>,
);

/// The gauges that do not have the name of a counter of `stats`.
pub(crate) const PARAMETERS: [Gauge; 3] = [
    (
        "enabled",
        "Whether the instance is enabled",
        None,
        |reading| reading.enabled.map(|n| n as f64),
    ),
    (
        "threshold",
        "The delay above which an alert is raised",
        Some(Unit::Seconds),
        |reading| reading.threshold.map(seconds),
    ),
    (
        "longest_delay",
        "The longest delay since the start of the instance",
        Some(Unit::Seconds),
        |reading| reading.longest.map(seconds),
    ),
];

pub(crate) const LOADED: (&str, &str) = ("loaded", "Whether the kernel module is loaded");
pub(crate) const MODULE: (&str, &str) = ("module", "The kernel module's version");
pub(crate) const INSTANCES: (&str, &str) = ("instances", "Number of instances");
pub(crate) const DELAY: (&str, &str) = ("delay", "How long operations took");

/// Returns the meaning of a counter of `stats`.
pub(crate) fn help(key: &str) -> &'static str {
    Stats::meaning(key).unwrap_or("See the page of the tracker")
}

/// Returns the page.
pub(crate) fn page(sample: Sample, format: Format) -> String {
    let sample = Arc::new(sample);
    let mut registry = Registry::with_prefix("latency_tracker");
    registry.register_collector(Box::new(Arc::clone(&sample)));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    match format {
        Format::OpenMetrics => sample.with_exemplars(&text),
        Format::Text => format::older(&text),
    }
}

impl Sample {
    /// Returns the page with exemplars at their buckets. They are added to the text, since only the
    /// encoder's own types of histogram can have exemplars.
    fn with_exemplars(&self, page: &str) -> String {
        let mut at: HashMap<String, String> = HashMap::new();
        for reading in &self.readings.instances {
            let Some(delays) = &reading.delays else {
                continue;
            };
            let counted = delays
                .counts
                .iter()
                .enumerate()
                .filter(|(_, count)| **count > 0);
            for (bucket, _) in counted {
                let Some(exemplar) = self.exemplars.get(&(reading.name.clone(), bucket)) else {
                    continue;
                };
                let bound = bounds()
                    .nth(bucket)
                    .map_or("+Inf".to_string(), |b| b.to_string());
                let place = format!(
                    "latency_tracker_delay_seconds_bucket{{le=\"{bound}\",name=\"{}\",",
                    reading.name
                );
                let text = format!(
                    " # {{capture=\"{}\"}} {} {}",
                    exemplar.capture,
                    seconds(exemplar.delay),
                    exemplar.taken
                );
                at.insert(place, text);
            }
        }
        let mut text = String::with_capacity(page.len());
        for line in page.lines() {
            text.push_str(line);
            // The line up to the label of the tracker.
            let place = line.find("tracker=\"").and_then(|i| line.get(..i));
            if let Some(exemplar) = place.and_then(|place| at.get(place)) {
                text.push_str(exemplar);
            }
            text.push('\n');
        }
        text
    }
}

impl Collector for Sample {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let readings = &self.readings;
        let mut gauge = |(name, help): (&str, &str), value: u64| {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            metric.encode_gauge(&value)
        };
        gauge(LOADED, u64::from(readings.version.is_some()))?;
        if let Some(version) = &readings.version {
            gauge(INSTANCES, readings.count as u64)?;
            let (name, help) = MODULE;
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Info)?;
            metric.encode_info(&[("version", version.as_str())])?;
        }
        for (name, help, unit, value) in PARAMETERS {
            let mut family =
                encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
            for reading in &readings.instances {
                if let Some(value) = value(reading) {
                    let labels = reading.labels();
                    family.encode_family(&labels)?.encode_gauge(&value)?;
                }
            }
        }
        for key in readings.keys() {
            let is_gauge = Stats::is_level(key);
            let kind = if is_gauge {
                MetricType::Gauge
            } else {
                MetricType::Counter
            };
            let mut family = encoder.encode_descriptor(key, help(key), None, kind)?;
            for reading in &readings.instances {
                let Some(value) = reading.value(key) else {
                    continue;
                };
                let labels = reading.labels();
                let mut metric = family.encode_family(&labels)?;
                if is_gauge {
                    metric.encode_gauge(&value)?;
                } else {
                    metric.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
                }
            }
        }
        readings.encode_delays(&mut encoder)?;
        if let Some(counts) = &self.counts {
            for (name, help, value) in counts.metrics() {
                let mut family =
                    encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
                for signal in Signal::ALL {
                    let labels = [("signal", signal.name())];
                    let mut metric = family.encode_family(&labels)?;
                    metric.encode_counter::<NoLabelSet, _, u64>(&value(signal), None)?;
                }
            }
        }
        Ok(())
    }
}

impl Readings {
    fn encode_delays(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (name, help) = DELAY;
        let unit = Unit::Seconds;
        let mut family =
            encoder.encode_descriptor(name, help, Some(&unit), MetricType::Histogram)?;
        for reading in &self.instances {
            let Some(delays) = &reading.delays else {
                continue;
            };
            let labels = reading.labels();
            let mut metric = family.encode_family(&labels)?;
            let bounds = bounds().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(delays.counts.iter().copied()).collect();
            let count = delays.counts.iter().sum();
            let sum = delays.sum_us as f64 / 1e6;
            metric.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use lt_proc::{ProcError, ProcRoot};

    use super::*;
    use crate::Exporter;

    fn page(root: &ProcRoot, format: Format) -> Result<String, ProcError> {
        let captures = PathBuf::from(root.path()).join("captures");
        let exporter = Exporter::new(root.clone(), 100, captures, None);
        exporter.page(format)
    }

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("version"), "0.1.0\n").unwrap();
        fs::write(
            dir.path().join("control"),
            "slow block threshold=10000000 enabled=1\nlate wakeup threshold=500 enabled=0\n",
        )
        .unwrap();
        for (name, stats, histogram) in [
            (
                "slow",
                "started 4\nended 3\npending 1\nmin 900\nmean 7\nmax 20000000000\nsum_us 20001002\n",
                "896 1024 1\n1024 1152 1\n18253611008 20401094656 1\n",
            ),
            ("late", "started 0\nmin 0\nmean 0\nmax 0\nsum_us 0\n", ""),
        ] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("stats"), stats).unwrap();
            fs::write(dir.path().join(name).join("histogram"), histogram).unwrap();
        }
        dir
    }

    #[track_caller]
    fn has(page: &str, line: &str) {
        assert!(page.lines().any(|l| l == line), "no {line:?} in\n{page}");
    }

    #[test]
    fn counters_gauges_and_delays_are_shown_by_instance() {
        let dir = tree();
        let page = page(&ProcRoot::new(dir.path()), Format::OpenMetrics).unwrap();
        has(&page, "latency_tracker_loaded 1");
        has(&page, "latency_tracker_module_info{version=\"0.1.0\"} 1");
        has(&page, "# TYPE latency_tracker_started counter");
        has(
            &page,
            "# HELP latency_tracker_pending of started: in flight now",
        );
        let of = |name, tracker| format!("{{name=\"{name}\",tracker=\"{tracker}\"}}");
        let (slow, late) = (of("slow", "block"), of("late", "wakeup"));
        has(&page, &format!("latency_tracker_started_total{slow} 4"));
        has(&page, &format!("latency_tracker_started_total{late} 0"));
        has(&page, &format!("latency_tracker_pending{slow} 1"));
        has(
            &page,
            &format!("latency_tracker_threshold_seconds{slow} 0.01"),
        );
        has(&page, &format!("latency_tracker_enabled{late} 0.0"));
        has(
            &page,
            &format!("latency_tracker_longest_delay_seconds{slow} 20.0"),
        );
        has(
            &page,
            &format!("latency_tracker_delay_seconds_sum{slow} 20.001002"),
        );
        has(
            &page,
            &format!("latency_tracker_delay_seconds_count{slow} 3"),
        );
        assert!(page.ends_with("# EOF\n"));
    }

    #[test]
    fn a_delay_is_in_the_first_bucket_whose_bound_is_greater() {
        let dir = tree();
        let page = page(&ProcRoot::new(dir.path()), Format::OpenMetrics).unwrap();
        let at = |bound: &str, count: u64| {
            has(
                &page,
                &format!(
                    "latency_tracker_delay_seconds_bucket{{le=\"{bound}\",name=\"slow\",tracker=\"block\"}} {count}"
                ),
            );
        };
        at("0.000001024", 1);
        at("0.000002048", 2);
        at("17.179869184", 2);
        at("34.359738368", 3);
        at("+Inf", 3);
    }

    #[test]
    fn a_bucket_names_a_capture_whose_delay_is_in_it() {
        let dir = tree();
        let path = dir.path().join("captures/0007");
        fs::create_dir_all(&path).unwrap();
        // The bucket of the second delay is empty, since the capture is older than the instance, so
        // it has no exemplar.
        let alerts = r#"{"delay":20000000000},{"delay":100000}"#;
        let text = format!(r#"{{"taken":17,"instance":"slow","alerts":[{alerts}]}}"#);
        fs::write(path.join("alert.json"), text).unwrap();
        let root = ProcRoot::new(dir.path());
        let shown = page(&root, Format::OpenMetrics).unwrap();
        has(
            &shown,
            "latency_tracker_delay_seconds_bucket{le=\"34.359738368\",name=\"slow\",tracker=\"block\"} 3 \
             # {capture=\"0007\"} 20 17",
        );
        assert_eq!(shown.matches("capture=").count(), 1, "{shown}");
        // The older format has no exemplars.
        let older = page(&root, Format::Text).unwrap();
        assert!(!older.contains("capture="), "{older}");
        assert!(
            older.contains("latency_tracker_delay_seconds_bucket"),
            "{older}"
        );
    }

    #[test]
    fn without_the_module_the_page_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let page = page(&ProcRoot::new(dir.path()), Format::OpenMetrics).unwrap();
        has(&page, "latency_tracker_loaded 0");
        assert!(!page.contains("name="), "{page}");
    }

    #[test]
    fn an_invalid_file_is_an_error() {
        let dir = tree();
        fs::write(dir.path().join("slow/stats"), "started many\n").unwrap();
        let error = page(&ProcRoot::new(dir.path()), Format::OpenMetrics).unwrap_err();
        let why = std::error::Error::source(&error).unwrap().to_string();
        assert!(why.contains("many"), "{why}");
    }
}
