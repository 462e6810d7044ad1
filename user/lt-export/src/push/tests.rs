// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tests against a server whose responses are scripted by each test.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};

use lt_proc::Alert;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;

use super::*;

const NOW: Duration = Duration::from_millis(1);

/// A request: path, headers in lower case, body.
type Request = (String, String, Vec<u8>);

/// Starts a collector that sends the answers in order, and repeats the last one.
fn collector(answers: Vec<Vec<u8>>) -> (SocketAddr, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, requests) = channel();
    thread::spawn(move || serve(&listener, answers, &sender));
    (address, requests)
}

fn serve(listener: &TcpListener, answers: Vec<Vec<u8>>, requests: &Sender<Request>) {
    let mut answers = answers.into_iter().peekable();
    loop {
        let mut stream = listener.accept().unwrap().0;
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            reader.read_line(&mut head).unwrap();
        }
        let head = head.to_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length = length.split('\r').next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let path = head.split(' ').nth(1).unwrap().to_string();
        if requests.send((path, head, body)).is_err() {
            return;
        }
        let answer = answers.next().unwrap();
        if answers.peek().is_none() {
            answers = vec![answer.clone()].into_iter().peekable();
        }
        let _ = stream.write_all(&answer);
    }
}

fn http(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

fn ok() -> Vec<u8> {
    http("200 OK", "Content-Type: application/x-protobuf\r\n", b"")
}

/// Returns an outbox, and a channel with its notes.
fn outbox(address: SocketAddr, room: usize, soon: Duration) -> (Outbox, Receiver<String>) {
    let endpoint = format!("http://{address}/otlp/").parse().unwrap();
    let (sender, notes) = channel();
    let note = move |text: &str| drop(sender.send(text.to_string()));
    (Outbox::with_limits(endpoint, note, room, soon), notes)
}

/// Waits until these numbers have been sent and dropped.
fn until(outbox: &Outbox, signal: Signal, sent: u64, dropped: u64) {
    let counts = outbox.counts();
    let now = || counts.metrics().map(|(_, _, value)| value(signal));
    while now() != [sent, dropped] {
        assert!(now()[0] <= sent && now()[1] <= dropped, "{:?}", now());
        thread::sleep(NOW);
    }
}

const LINE: &str = r#"seq=7 time=900 instance=slow tracker=block reason=threshold delay=20 threshold=10 cpu=1 pid=4 tid=5 comm="dd" dev=8:0 sector=64 prio=-1 ret=18446744073709551605"#;

#[test]
fn an_alert_arrives_with_its_fields() {
    let (address, requests) = collector(vec![ok()]);
    let (outbox, notes) = outbox(address, ROOM, NOW);
    let record = Record {
        alert: Alert::parse(LINE).unwrap(),
        time: SystemTime::UNIX_EPOCH + Duration::from_nanos(17),
    };
    let resource = Resource {
        host: "db1".to_string(),
        version: "3".to_string(),
    };
    outbox.alerts(&[record], 5, &resource);
    until(&outbox, Signal::Logs, 1, 5);
    let (path, head, body) = requests.recv().unwrap();
    assert_eq!(path, "/otlp/v1/logs");
    assert!(
        head.contains("content-type: application/x-protobuf\r\n"),
        "{head}"
    );
    let message = ExportLogsServiceRequest::decode(body.as_slice()).unwrap();
    let logs = &message.resource_logs[0];
    let resource = format!("{:?}", logs.resource);
    for part in [
        "service.name",
        "latency-tracker",
        "service.instance.id",
        "db1",
    ] {
        assert!(resource.contains(part), "{resource}");
    }
    let record = &logs.scope_logs[0].log_records[0];
    assert_eq!((record.time_unix_nano, record.severity_number), (17, 13));
    let body = record.body.clone().unwrap().value;
    assert_eq!(body, Some(Value::StringValue(LINE.to_string())));
    let of = |key: &str| {
        let mut all = record.attributes.iter();
        all.find(|a| a.key == key)
            .unwrap()
            .value
            .clone()
            .unwrap()
            .value
            .unwrap()
    };
    assert_eq!(of("latency_tracker.delay"), Value::IntValue(20));
    assert_eq!(
        of("latency_tracker.comm"),
        Value::StringValue("dd".to_string())
    );
    assert_eq!(of("latency_tracker.sector"), Value::IntValue(64));
    assert_eq!(of("latency_tracker.prio"), Value::IntValue(-1));
    assert_eq!(
        of("latency_tracker.ret"),
        Value::StringValue("18446744073709551605".to_string())
    );
    outbox.finish(Duration::from_secs(600));
    assert!(notes.try_recv().is_err());
}

#[test]
fn a_message_is_sent_again_to_a_busy_collector_after_the_requested_pause() {
    let busy = |status| http(status, "", b"");
    let answers = vec![
        busy("429 Too Many Requests"),
        busy("502 Bad Gateway"),
        http("503 Service Unavailable", "retry-after: 1\r\n", b""),
        b"HTTP/1.1 nonsense".to_vec(),
        ok(),
    ];
    let (address, requests) = collector(answers);
    let (outbox, notes) = outbox(address, ROOM, NOW);
    let start = Instant::now();
    outbox.queue(Signal::Metrics, b"x".to_vec(), 3);
    until(&outbox, Signal::Metrics, 3, 0);
    assert!(start.elapsed() >= Duration::from_secs(1));
    let requests: Vec<Request> = requests.try_iter().collect();
    assert_eq!(requests.len(), 5);
    assert!(
        requests
            .iter()
            .all(|(path, _, body)| path == "/otlp/v1/metrics" && body == b"x")
    );
    let url = format!("http://{address}/otlp/v1/metrics");
    assert_eq!(
        notes.recv().unwrap(),
        format!("{url}: 429 Too Many Requests; trying again")
    );
    outbox.finish(Duration::from_secs(600));
    let last = notes.iter().last().unwrap();
    assert!(
        last.contains("accepted again after 1 s; dropped meanwhile: 0"),
        "{last}"
    );
}

#[test]
fn a_refusal_is_one_line_and_is_not_retried() {
    let message = Status {
        message: "no such\nmetric".to_string(),
    };
    let protobuf = "Content-Type: application/x-protobuf\r\n";
    let answers = vec![
        http(
            "404 Not Found",
            "Content-Type: text/plain\r\n",
            b"404 page not found\nx",
        ),
        http(
            "404 Not Found",
            "Content-Type: text/plain\r\n",
            b"404 page not found\nx",
        ),
        http("415 Unsupported Media Type", "", b""),
        http("301 Moved", "Location: http://127.0.0.1:1/\r\n", b""),
        http("400 Bad Request", protobuf, &message.encode_to_vec()),
        ok(),
    ];
    let (address, requests) = collector(answers);
    let (outbox, notes) = outbox(address, ROOM, NOW);
    for _ in 0..6 {
        outbox.queue(Signal::Metrics, b"x".to_vec(), 2);
    }
    until(&outbox, Signal::Metrics, 2, 10);
    assert_eq!(requests.try_iter().count(), 6);
    outbox.finish(Duration::from_secs(600));
    let notes: Vec<String> = notes
        .iter()
        .map(|n| n.split_once(": ").unwrap().1.to_string())
        .collect();
    assert_eq!(
        notes,
        [
            "404 Not Found 404 page not found; dropped",
            "415 Unsupported Media Type; dropped",
            "301 Moved; dropped",
            "400 Bad Request no such; dropped"
        ]
    );
}

#[test]
fn what_a_collector_rejects_is_dropped() {
    let mut response = ExportMetricsServiceResponse::default();
    let partial = response.partial_success.get_or_insert_default();
    partial.rejected_data_points = 2;
    partial.error_message = "too old".to_string();
    let (address, _requests) = collector(vec![http("200 OK", "", &response.encode_to_vec())]);
    let (outbox, notes) = outbox(address, ROOM, NOW);
    outbox.queue(Signal::Metrics, b"x".to_vec(), 5);
    until(&outbox, Signal::Metrics, 3, 2);
    assert!(
        notes
            .recv()
            .unwrap()
            .ends_with(": rejected 2 of 5: too old")
    );
}

#[test]
fn while_the_collector_is_away_the_oldest_messages_are_dropped() {
    // A port that nothing listens on until later.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (outbox, notes) = outbox(address, 1000, NOW);
    outbox.queue(Signal::Metrics, vec![0; 100], 1);
    let away = notes.recv().unwrap();
    assert!(away.contains("Connection refused"), "{away}");
    assert!(away.ends_with("; trying again"), "{away}");
    // The first message is being sent; 10 of these fit into the queue.
    for n in 1..=50 {
        outbox.queue(Signal::Metrics, vec![n; 100], 1);
    }
    until(&outbox, Signal::Metrics, 0, 40);
    let listener = TcpListener::bind(address).unwrap();
    let (sender, requests) = channel();
    thread::spawn(move || serve(&listener, vec![ok()], &sender));
    until(&outbox, Signal::Metrics, 11, 40);
    let firsts: Vec<u8> = requests.try_iter().map(|(_, _, body)| body[0]).collect();
    assert_eq!(firsts, [vec![0], (41..=50).collect()].concat());
    let back = notes.recv().unwrap();
    assert!(back.ends_with("dropped meanwhile: 40"), "{back}");
    // A message larger than the queue is sent, too.
    outbox.queue(Signal::Metrics, vec![0; 5000], 1);
    until(&outbox, Signal::Metrics, 12, 40);
}

#[test]
fn the_end_waits_only_for_messages_that_can_be_sent() {
    let (address, _requests) = collector(vec![ok()]);
    let (first, _notes) = outbox(address, ROOM, NOW);
    first.queue(Signal::Metrics, b"x".to_vec(), 1);
    let counts = first.counts();
    first.finish(Duration::from_secs(600));
    assert_eq!(
        counts.metrics().map(|(_, _, value)| value(Signal::Metrics)),
        [1, 0]
    );
    let away = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (second, notes) = outbox(away, ROOM, Duration::from_secs(3600));
    second.queue(Signal::Metrics, b"x".to_vec(), 1);
    notes.recv().unwrap();
    // This message waits behind the first one.
    second.queue(Signal::Metrics, b"y".to_vec(), 2);
    let counts = second.counts();
    second.finish(NOW);
    // The message that the thread was sending is counted, too, and only once: the thread then ends.
    assert_eq!(counts.dropped(Signal::Metrics), 3);
    assert!(notes.recv().is_err());
    assert_eq!(counts.dropped(Signal::Metrics), 3);
}

#[test]
fn a_response_may_be_huge_and_is_not_kept() {
    let mut huge = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n".to_vec();
    huge.resize(10_000_000, b'x');
    let mut headers = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
    headers.resize(1_000_000, b'x');
    let (address, _requests) = collector(vec![huge, headers, ok()]);
    let (outbox, notes) = outbox(address, ROOM, NOW);
    outbox.queue(Signal::Metrics, b"x".to_vec(), 1);
    outbox.queue(Signal::Metrics, b"y".to_vec(), 1);
    until(&outbox, Signal::Metrics, 1, 1);
    assert!(notes.recv().unwrap().len() < 400);
}

#[test]
fn a_url_that_cannot_work_is_refused() {
    let of = |url: &str| url.parse::<Endpoint>();
    for url in [
        "http://localhost:4318",
        "http://10.0.0.1",
        "http://a-b.example/api/v1/otlp/",
    ] {
        assert!(of(url).is_ok(), "{url}");
    }
    assert_eq!(of("https://localhost:4318"), Err(UrlError::Https));
    for url in [
        "localhost:4318",
        "http://",
        "http://:80",
        "http://[::1]:4318",
        "http://a:0",
        "http://a:99999",
        "http://a?b=c",
        "http://a b",
    ] {
        assert_eq!(of(url), Err(UrlError::Shape), "{url}");
    }
    let url = of("http://h:1/p//").unwrap().url(Signal::Logs);
    assert_eq!(url, "http://h:1/p/v1/logs");
}
