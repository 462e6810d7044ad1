// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The page. Each counter of `stats` is a metric of that name, with `instance` and `tracker` as its labels, so that the
//! counters add up there as they do in the kernel.

use std::fmt;
use std::sync::Arc;

use lt_proc::{Histogram, Instance, ProcError, ProcRoot, Stats};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

/// The counters that can fall.
const GAUGES: [&str; 4] = ["pending", "capacity", "max_capacity", "free"];

/// Those that are in the histogram, or follow from it.
const DELAYS: [&str; 3] = ["min", "mean", "sum_us"];

const MAX: &str = "max";

/// Bounds of the buckets of delays: 2^n ns, for these n, from a microsecond to more than a minute. The kernel's buckets
/// end there, too, so that each delay is in the right one.
const BOUNDS: std::ops::RangeInclusive<u32> = 10..=36;

/// What one instance says.
#[derive(Debug)]
struct Reading {
    instance: Instance,
    stats: Stats,
    histogram: Histogram,
}

/// All of them.
#[derive(Debug)]
struct Readings {
    version: Option<String>,
    instances: Vec<Reading>,
}

/// OpenMetrics text. Without the module it says so: `latency_tracker_loaded` is 0.
///
/// # Errors
/// When the module's files cannot be read. An instance that is removed meanwhile is left out.
pub fn page(root: &ProcRoot) -> Result<String, ProcError> {
    let readings = Arc::new(Readings::read(root)?);
    let mut registry = Registry::with_prefix("latency_tracker");
    registry.register_collector(Box::new(readings));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    Ok(text)
}

impl Readings {
    fn read(root: &ProcRoot) -> Result<Self, ProcError> {
        if !root.is_loaded() {
            return Ok(Self {
                version: None,
                instances: Vec::new(),
            });
        }
        let version = Some(root.version()?);
        let mut instances = Vec::new();
        for instance in root.instances()? {
            let read = || {
                // In this order: each delay of the histogram is an end that was counted.
                let histogram = root.histogram(&instance.name)?;
                Ok((root.stats(&instance.name)?, histogram))
            };
            match read() {
                Ok((stats, histogram)) => instances.push(Reading {
                    instance,
                    stats,
                    histogram,
                }),
                Err(error) => {
                    let is_there = root.instance(&instance.name).is_ok();
                    if is_there {
                        return Err(error);
                    }
                }
            }
        }
        Ok(Self { version, instances })
    }

    /// The keys of all counters, in their order, each once.
    fn keys(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = Vec::new();
        for reading in &self.instances {
            for (key, _) in reading.stats.iter() {
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        keys.retain(|key| !DELAYS.contains(key) && *key != MAX);
        keys
    }
}

impl Reading {
    fn labels(&self) -> [(&str, &str); 2] {
        [
            ("instance", &self.instance.name),
            ("tracker", &self.instance.tracker),
        ]
    }

    fn number(&self, param: &str) -> Option<u64> {
        let field = self.instance.params.0.iter().find(|f| f.key == param)?;
        field.value.number()
    }

    /// The sum of all delays in seconds. Without it (an older module) there is no histogram, since the mean is rounded,
    /// and a sum from it would fall at times.
    fn sum(&self) -> Option<f64> {
        Some(self.stats.get("sum_us")? as f64 / 1e6)
    }

    /// Upper bound in seconds, and how many delays are in that bucket and in no earlier one.
    fn buckets(&self) -> Vec<(f64, u64)> {
        let within = |low: u64, high: u64| {
            let there = self.histogram.buckets.iter();
            let there = there.filter(|b| low < b.high && b.high <= high);
            there.map(|b| b.count).sum()
        };
        let mut low = 0;
        let mut buckets: Vec<(f64, u64)> = Vec::new();
        for n in BOUNDS {
            let high = 1 << n;
            buckets.push((seconds(high), within(low, high)));
            low = high;
        }
        buckets.push((f64::INFINITY, within(low, u64::MAX)));
        buckets
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Collector for Readings {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let loaded = u64::from(self.version.is_some());
        let help = "Whether the kernel module is loaded";
        let mut metric = encoder.encode_descriptor("loaded", help, None, MetricType::Gauge)?;
        metric.encode_gauge(&loaded)?;
        if let Some(version) = &self.version {
            let help = "The kernel module's version";
            let mut metric = encoder.encode_descriptor("module", help, None, MetricType::Info)?;
            metric.encode_info(&[("version", version.as_str())])?;
        }
        self.encode_gauges(&mut encoder)?;
        for key in self.keys() {
            let help = Stats::meaning(key).unwrap_or("See the page of the tracker");
            let is_gauge = GAUGES.contains(&key);
            let kind = if is_gauge {
                MetricType::Gauge
            } else {
                MetricType::Counter
            };
            let mut family = encoder.encode_descriptor(key, help, None, kind)?;
            for reading in &self.instances {
                let Some(value) = reading.stats.get(key) else {
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
        self.encode_delays(&mut encoder)
    }
}

impl Readings {
    fn encode_gauges(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Value = fn(&Reading) -> Option<f64>;
        let gauges: [(&str, &str, Option<Unit>, Value); 3] = [
            ("enabled", "Whether the instance tracks", None, |reading| {
                reading.number("enabled").map(|n| n as f64)
            }),
            (
                "threshold",
                "The delay above which there is an alert",
                Some(Unit::Seconds),
                |reading| reading.number("threshold").map(seconds),
            ),
            (
                "longest_delay",
                "The longest delay since the start of the instance",
                Some(Unit::Seconds),
                |reading| reading.stats.get(MAX).map(seconds),
            ),
        ];
        for (name, help, unit, value) in gauges {
            let mut family =
                encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
            for reading in &self.instances {
                if let Some(value) = value(reading) {
                    let labels = reading.labels();
                    family.encode_family(&labels)?.encode_gauge(&value)?;
                }
            }
        }
        Ok(())
    }

    fn encode_delays(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "How long operations took";
        let unit = Unit::Seconds;
        let mut family =
            encoder.encode_descriptor("delay", help, Some(&unit), MetricType::Histogram)?;
        for reading in &self.instances {
            let Some(sum) = reading.sum() else {
                continue;
            };
            let labels = reading.labels();
            let mut metric = family.encode_family(&labels)?;
            let buckets = reading.buckets();
            let count = buckets.iter().map(|(_, count)| count).sum();
            metric.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

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
    fn counters_gauges_and_delays_are_there_by_instance() {
        let dir = tree();
        let page = page(&ProcRoot::new(dir.path())).unwrap();
        has(&page, "latency_tracker_loaded 1");
        has(&page, "latency_tracker_module_info{version=\"0.1.0\"} 1");
        has(&page, "# TYPE latency_tracker_started counter");
        has(
            &page,
            "# HELP latency_tracker_pending of started: in flight now",
        );
        let of = |name, tracker| format!("{{instance=\"{name}\",tracker=\"{tracker}\"}}");
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
    fn a_delay_is_in_the_bucket_whose_bound_it_does_not_pass() {
        let dir = tree();
        let page = page(&ProcRoot::new(dir.path())).unwrap();
        let at = |bound: &str, count: u64| {
            has(
                &page,
                &format!(
                    "latency_tracker_delay_seconds_bucket{{le=\"{bound}\",instance=\"slow\",tracker=\"block\"}} {count}"
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
    fn without_the_module_the_page_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let page = page(&ProcRoot::new(dir.path())).unwrap();
        has(&page, "latency_tracker_loaded 0");
        assert!(!page.contains("instance="), "{page}");
    }

    #[test]
    fn what_cannot_be_understood_is_an_error() {
        let dir = tree();
        fs::write(dir.path().join("slow/stats"), "started many\n").unwrap();
        let error = page(&ProcRoot::new(dir.path())).unwrap_err();
        let why = std::error::Error::source(&error).unwrap().to_string();
        assert!(why.contains("many"), "{why}");
    }
}
