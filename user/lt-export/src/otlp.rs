// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The messages of OpenTelemetry: the metrics of the page, and alerts as log records. In
//! Prometheus, the metrics have the same names as on the page.
//!
//! Sums are cumulative. The kernel does not record the time of day at which a counter started, so
//! the start time is 0, which means unknown.

use std::time::{SystemTime, UNIX_EPOCH};

use lt_proc::{Alert, Stats};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Exemplar, Gauge, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, exemplar, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1;
use prost::Message;

use crate::counts::Signal;
use crate::metrics::{DELAY, INSTANCES, LOADED, MODULE, PARAMETERS, Sample, help};
use crate::readings::{Reading, bounds, seconds};

const SERVICE: &str = "latency-tracker";

/// Where the metrics and alerts come from.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Name of this machine.
    pub host: String,
    /// Version of the command.
    pub version: String,
}

impl Resource {
    fn message(&self) -> v1::Resource {
        let attributes = [
            ("service.name", SERVICE),
            ("service.version", &self.version),
            ("service.instance.id", &self.host),
            ("host.name", &self.host),
        ];
        v1::Resource {
            attributes: attributes.map(|(key, value)| text(key, value)).into(),
            ..v1::Resource::default()
        }
    }

    fn scope(&self) -> Option<InstrumentationScope> {
        Some(InstrumentationScope {
            name: SERVICE.to_string(),
            version: self.version.clone(),
            ..InstrumentationScope::default()
        })
    }
}

/// An alert, and the time of day when it was raised.
#[derive(Debug)]
pub struct Record {
    /// The alert.
    pub alert: Alert,
    /// Its time of day.
    pub time: SystemTime,
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_string(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_string()))
}

/// Converts a value: an integer value in OTLP is signed.
fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn point(time: u64, labels: &[(&str, &str)], value: number_data_point::Value) -> NumberDataPoint {
    NumberDataPoint {
        attributes: labels.iter().map(|(key, value)| text(key, value)).collect(),
        time_unix_nano: time,
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

fn metric(name: &str, help: &str, unit: &str, data: Data) -> Metric {
    Metric {
        name: format!("latency_tracker.{name}"),
        description: help.to_string(),
        unit: unit.to_string(),
        data: Some(data),
        ..Metric::default()
    }
}

fn gauge(data_points: Vec<NumberDataPoint>) -> Data {
    Data::Gauge(Gauge { data_points })
}

fn sum(data_points: Vec<NumberDataPoint>) -> Data {
    Data::Sum(Sum {
        data_points,
        aggregation_temporality: AggregationTemporality::Cumulative.into(),
        is_monotonic: true,
    })
}

/// Returns an encoded `ExportMetricsServiceRequest`, and the number of its data points.
pub(crate) fn metrics(sample: &Sample, resource: &Resource, now: SystemTime) -> (Vec<u8>, u64) {
    let now = nanos(now);
    let int = |n: u64| number_data_point::Value::AsInt(signed(n));
    let readings = &sample.readings;
    let mut metrics = Vec::new();
    let mut single = |(name, help): (&str, &str), labels: &[(&str, &str)], n: u64| {
        metrics.push(metric(
            name,
            help,
            "",
            gauge(vec![point(now, labels, int(n))]),
        ));
    };
    single(LOADED, &[], readings.version.is_some().into());
    if let Some(version) = &readings.version {
        single(INSTANCES, &[], readings.count as u64);
        single(
            (&format!("{}.info", MODULE.0), MODULE.1),
            &[("version", version)],
            1,
        );
    }
    for (name, help, unit, value) in PARAMETERS {
        let points = readings.instances.iter().filter_map(|reading| {
            let value = number_data_point::Value::AsDouble(value(reading)?);
            Some(point(now, &reading.labels(), value))
        });
        let unit = if unit.is_some() { "s" } else { "" };
        metrics.push(metric(name, help, unit, gauge(points.collect())));
    }
    for key in readings.keys() {
        let points = readings.instances.iter().filter_map(|reading| {
            let value = int(reading.value(key)?);
            Some(point(now, &reading.labels(), value))
        });
        let points = points.collect();
        let data = match Stats::is_level(key) {
            true => gauge(points),
            false => sum(points),
        };
        metrics.push(metric(key, help(key), "", data));
    }
    let data_points = readings.instances.iter();
    let data_points = data_points.filter_map(|reading| delays(reading, sample, now));
    let histogram = Data::Histogram(Histogram {
        data_points: data_points.collect(),
        aggregation_temporality: AggregationTemporality::Cumulative.into(),
    });
    metrics.push(metric(DELAY.0, DELAY.1, "s", histogram));
    if let Some(counts) = &sample.counts {
        for (name, help, value) in counts.metrics() {
            let points = Signal::ALL
                .map(|signal| point(now, &[("signal", signal.name())], int(value(signal))));
            metrics.push(metric(name, help, "", sum(points.into())));
        }
    }
    metrics.retain(|metric| points(metric) > 0);
    let count = metrics.iter().map(points).sum::<usize>();
    let message = ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource.message()),
            scope_metrics: vec![ScopeMetrics {
                scope: resource.scope(),
                metrics,
                schema_url: String::new(),
            }],
            schema_url: String::new(),
        }],
    };
    (message.encode_to_vec(), count as u64)
}

fn points(metric: &Metric) -> usize {
    match &metric.data {
        Some(Data::Gauge(gauge)) => gauge.data_points.len(),
        Some(Data::Sum(sum)) => sum.data_points.len(),
        Some(Data::Histogram(histogram)) => histogram.data_points.len(),
        _ => 0,
    }
}

fn delays(reading: &Reading, sample: &Sample, now: u64) -> Option<HistogramDataPoint> {
    let delays = reading.delays.as_ref()?;
    let counted = delays.counts.iter().enumerate().filter(|(_, n)| **n > 0);
    let exemplars = counted.filter_map(|(bucket, _)| {
        let exemplar = sample.exemplars.get(&(reading.name.clone(), bucket))?;
        Some(Exemplar {
            filtered_attributes: vec![text("capture", &exemplar.capture)],
            time_unix_nano: exemplar.taken.saturating_mul(1_000_000_000),
            value: Some(exemplar::Value::AsDouble(seconds(exemplar.delay))),
            ..Exemplar::default()
        })
    });
    Some(HistogramDataPoint {
        attributes: reading.labels().map(|(key, value)| text(key, value)).into(),
        time_unix_nano: now,
        count: delays.counts.iter().sum(),
        sum: Some(delays.sum_us as f64 / 1e6),
        bucket_counts: delays.counts.clone(),
        explicit_bounds: bounds().collect(),
        exemplars: exemplars.collect(),
        max: reading.longest.map(seconds),
        ..HistogramDataPoint::default()
    })
}

/// Returns an encoded `ExportLogsServiceRequest`. Each field of an alert is an attribute: its
/// name in `--json`, prefixed with `latency_tracker.`.
pub(crate) fn logs(records: &[Record], resource: &Resource, now: SystemTime) -> Vec<u8> {
    let log_records = records.iter().map(|record| LogRecord {
        time_unix_nano: nanos(record.time),
        observed_time_unix_nano: nanos(now),
        severity_number: SeverityNumber::Warn.into(),
        severity_text: "WARN".to_string(),
        event_name: "latency_tracker.alert".to_string(),
        body: Some(AnyValue {
            value: Some(Value::StringValue(record.alert.to_string())),
        }),
        attributes: fields(&record.alert),
        ..LogRecord::default()
    });
    let message = ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            resource: Some(resource.message()),
            scope_logs: vec![ScopeLogs {
                scope: resource.scope(),
                log_records: log_records.collect(),
                schema_url: String::new(),
            }],
            schema_url: String::new(),
        }],
    };
    message.encode_to_vec()
}

fn fields(alert: &Alert) -> Vec<KeyValue> {
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(alert) else {
        return Vec::new();
    };
    let fields = fields.into_iter().map(|(key, value)| {
        let value = match value {
            serde_json::Value::String(text) => Value::StringValue(text),
            other => match other.as_i64() {
                Some(n) => Value::IntValue(n),
                // A number that does not fit into an integer value becomes a string, which keeps
                // its digits.
                None => Value::StringValue(other.to_string()),
            },
        };
        attribute(&format!("latency_tracker.{key}"), value)
    });
    fields.collect()
}
