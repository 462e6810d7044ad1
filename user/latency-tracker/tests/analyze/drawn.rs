// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Pictures for Perfetto (`--perfetto`), pages (`--html`), and time lines (`--svg`).

use std::fs;

use serde_json::Value;

use super::{Dir, busiest, run, steps};

/// Each step of the path is in the picture, at its time, and so is the activity of threads and
/// CPUs.
#[test]
fn a_picture_has_the_path_of_the_text() {
    let dir = Dir::with_traces("picture");
    let mut arrows = 0;
    for trace in ["compact", "snapshot"] {
        for tid in busiest(&dir, trace).into_iter().take(3) {
            fs::write(dir.0.join("it.pftrace"), "what was there").unwrap();
            let args = ["--tid", &tid, "--json", "--perfetto", "it.pftrace"];
            let (status, json, error) = run(&mut dir.path(trace, &args));
            assert_eq!((status, error.as_str()), (0, ""));
            let json: Value = serde_json::from_str(&json).unwrap();
            let drawn = dir.read("it.pftrace");
            let of = |parent: &str| {
                let parent = drawn.track(parent);
                let below = drawn.tracks.iter().filter(move |(_, (_, p))| *p == parent);
                below.map(|(track, _)| *track).collect::<Vec<_>>()
            };
            let path = drawn.tracks.iter().find(|(_, (name, _))| {
                name.starts_with("Critical path of ") && name.ends_with(&format!("/{tid}"))
            });
            let slices = drawn.on(*path.unwrap().0);
            let innermost = |i: &usize| {
                slices
                    .get(i + 1)
                    .is_none_or(|s| s.depth <= slices[*i].depth)
            };
            let found: Vec<_> = (0..slices.len())
                .filter(innermost)
                .map(|i| (slices[i].begin, slices[i].end))
                .collect();
            assert_eq!(
                found,
                steps(&json, 0)
                    .iter()
                    .map(|s| (s.0, s.1))
                    .collect::<Vec<_>>()
            );
            // The thread itself has an entry at any time, and no CPU does two things at once.
            let own = of("Threads")
                .into_iter()
                .find(|t| drawn.tracks[t].0.ends_with(&format!("/{tid}")));
            let own = drawn.on(own.unwrap());
            assert_eq!(own.first().unwrap().begin, found[0].0);
            assert_eq!(own.last().unwrap().end, found.last().unwrap().1);
            assert!(own.windows(2).all(|pair| pair[0].end == pair[1].begin));
            assert!(!of("CPUs").is_empty());
            for cpu in of("CPUs") {
                let slices = drawn.on(cpu);
                assert!(slices.windows(2).all(|pair| pair[0].end <= pair[1].begin));
            }
            for (from, to) in drawn.arrows() {
                assert!(from.begin <= to.begin && from.name.starts_with("wakes "));
                arrows += 1;
            }
        }
    }
    assert!(arrows > 20, "{arrows}");
    assert_eq!(
        fs::read_dir(&dir.0)
            .unwrap()
            .filter(|e| {
                let name = e.as_ref().unwrap().file_name();
                name.to_string_lossy().starts_with('.')
            })
            .count(),
        0
    );
}

/// The states of the thread, and before its creation of its parent, are in the picture, at their times.
#[test]
fn a_picture_of_delays_has_the_states_of_the_text() {
    let dir = Dir::with("perf.tar.xz", "picture-delays");
    let args = ["--tid", "179", "--json", "--perfetto", "it.pftrace"];
    let (status, json, error) = run(&mut dir.delays("perf", &args));
    assert_eq!((status, error.as_str()), (0, ""));
    let json: Value = serde_json::from_str(&json).unwrap();
    let drawn = dir.read("it.pftrace");
    let time = |state: &Value, key: &str| state[key].as_u64().unwrap();
    let segments = json["segments"].as_array().unwrap();
    assert_eq!(segments.len(), 2);
    for segment in segments {
        let tid = segment["thread"]["tid"].as_u64().unwrap();
        let of = |what: &str| {
            let track = drawn.track(&format!("{what} of python3/{tid}"));
            drawn.on(track.unwrap())
        };
        let states = segment["states"].as_array().unwrap();
        let states: Vec<_> = states
            .iter()
            .map(|s| (time(s, "begin"), time(s, "end")))
            .collect();
        let found: Vec<_> = of("States").iter().map(|s| (s.begin, s.end)).collect();
        assert_eq!(found, states);
        // The waits of the thread are on its path, with the chains below.
        let path = of("Critical path");
        assert_eq!(path.first().unwrap().begin, time(segment, "from"));
        assert_eq!(path.iter().map(|s| s.end).max(), segment["to"].as_u64());
    }
}

#[test]
fn an_alert_is_drawn_with_its_path() {
    let dir = Dir::with_traces("alert");
    let tid = &busiest(&dir, "compact")[0];
    let (_, json, _) = run(&mut dir.path("compact", &["--tid", tid, "--json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    let (from, to) = (json["from"].as_u64().unwrap(), json["to"].as_u64().unwrap());
    let (begin, end) = (from + (to - from) / 4, from + (to - from) / 2);
    let line = format!(
        "seq=3 time={end} instance=slow tracker=wakeup reason=threshold delay={} threshold=1 cpu=0 pid={tid} tid={tid} comm=\"x\"\n",
        end - begin
    );
    fs::write(dir.0.join("late"), line).unwrap();
    let args = ["--alerts", "late", "--json", "--perfetto", "late.pftrace"];
    let (status, report, error) = run(&mut dir.of_trace(&["explain"], "compact", &args));
    assert_eq!((status, error.as_str()), (0, ""));
    let report: Value = serde_json::from_str(&report).unwrap();
    let drawn = dir.read("late.pftrace");
    let alert = drawn.track("Alert 3 of slow: wakeup").unwrap();
    let slice = drawn.on(alert)[0];
    assert_eq!((slice.begin, slice.end), (begin, end));
    assert_eq!(
        Some(slice.values["verdict"].as_str()),
        report["verdict"].as_str()
    );
    let path = drawn
        .tracks
        .iter()
        .find(|(_, (_, parent))| *parent == Some(alert));
    let slices = drawn.on(*path.unwrap().0);
    assert_eq!(slices.first().unwrap().begin, begin);
    assert_eq!(slices.iter().map(|s| s.end).max(), Some(end));
    let first = drawn.slices.iter().map(|s| s.begin).min().unwrap();
    assert_eq!(first, begin - (end - begin) / 10);
}

#[test]
fn a_picture_that_cannot_be_written_is_reported_and_leaves_nothing() {
    let dir = Dir::with_traces("unwritten");
    let tid = &busiest(&dir, "compact")[0];
    let before = fs::read_dir(&dir.0).unwrap().count();
    for (file, expected) in [
        ("nowhere/a.pftrace", "nowhere/a.pftrace: No such file"),
        ("/dev/full", "/dev/full: not a regular file"),
        ("compact", "compact: not a regular file"),
    ] {
        let args = ["--tid", tid, "--perfetto", file];
        let (status, out, error) = run(&mut dir.path("compact", &args));
        assert_eq!((status, out.as_str()), (1, ""), "{file}");
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(fs::read_dir(&dir.0).unwrap().count(), before);
}

/// The data of a page.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// The lanes of a group: start and end of each bar, on the trace's clock.
fn lanes(view: &Value, group: &str) -> Vec<Vec<(u64, u64)>> {
    let origin: u64 = view["origin"].as_str().unwrap().parse().unwrap();
    let groups = view["groups"].as_array().unwrap();
    let group = groups.iter().find(|g| g["name"] == group).unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let bar = |bar: &Value| {
        let begin = origin + number(&bar[0]);
        (begin, begin + number(&bar[1]))
    };
    let lane = |lane: &Value| lane["bars"].as_array().unwrap().iter().map(bar).collect();
    group["lanes"]
        .as_array()
        .unwrap()
        .iter()
        .map(lane)
        .collect()
}

/// Each step of the path is a bar, no lane has two bars at a time, and a second page is the same.
#[test]
fn a_page_has_the_path_of_the_text() {
    let dir = Dir::with_traces("page");
    let mut arrows = 0;
    for trace in ["compact", "snapshot"] {
        for tid in busiest(&dir, trace).into_iter().take(3) {
            let args = ["--tid", &tid, "--json", "--html", "it.html"];
            let (status, json, error) = run(&mut dir.path(trace, &args));
            assert_eq!((status, error.as_str()), (0, ""));
            let json: Value = serde_json::from_str(&json).unwrap();
            let page = fs::read_to_string(dir.0.join("it.html")).unwrap();
            let view = &data(&page)["views"][0];
            assert_eq!(view["left_out"], serde_json::json!([]), "all is drawn");
            let path = lanes(view, "Critical path");
            for step in steps(&json, 0) {
                let found = path
                    .iter()
                    .flatten()
                    .filter(|bar| **bar == (step.0, step.1));
                assert!(found.count() > 0, "{step:?}");
            }
            for group in ["Critical path", "Threads of the path", "CPUs"] {
                for lane in lanes(view, group) {
                    assert!(
                        lane.windows(2).all(|pair| pair[0].1 <= pair[1].0),
                        "{group}"
                    );
                }
            }
            // The lane of the thread has no gap.
            let own = &lanes(view, "Threads of the path")[0];
            assert!(own.windows(2).all(|pair| pair[0].1 == pair[1].0));
            arrows += view["arrows"].as_array().unwrap().len();
            let (_, text, _) = run(&mut dir.path(trace, &["--tid", &tid, "--html", "2.html"]));
            assert_eq!(fs::read_to_string(dir.0.join("2.html")).unwrap(), page);
            let first = text.lines().next().unwrap();
            assert!(
                page.contains(&format!("<pre tabindex=\"0\">{first}")),
                "{first}"
            );
        }
    }
    assert!(arrows > 20, "{arrows}");
}

#[test]
fn a_page_of_delays_has_every_stay_and_every_wait() {
    let dir = Dir::with("perf.tar.xz", "page-delays");
    let args = ["--tid", "177", "--json", "--html", "it.html"];
    let (status, json, error) = run(&mut dir.delays("perf", &args));
    assert_eq!(status, 0, "{error}");
    let json: Value = serde_json::from_str(&json).unwrap();
    let page = fs::read_to_string(dir.0.join("it.html")).unwrap();
    let view = &data(&page)["views"][0];
    let drawn = lanes(view, "States and waits");
    let segment = &json["segments"][0];
    let span = |of: &Value| (of["begin"].as_u64().unwrap(), of["end"].as_u64().unwrap());
    let stays: Vec<_> = segment["states"]
        .as_array()
        .unwrap()
        .iter()
        .map(span)
        .collect();
    assert_eq!(drawn[0], stays);
    let mut deeper = 0;
    for wait in segment["waits"].as_array().unwrap() {
        let depth = wait["depth"].as_u64().unwrap() as usize;
        if depth > 0 {
            assert!(drawn[depth].contains(&span(wait)), "{wait}");
            deeper += 1;
        }
    }
    assert!(stays.len() > 500 && deeper > 3, "{} {deeper}", stays.len());
    let titles = view["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["rows"].as_array().unwrap().len());
    let waits = segment["waits"].as_array().unwrap().len();
    assert_eq!(titles.collect::<Vec<_>>()[1..], [stays.len(), waits]);
}

/// The time line shows the waits behind the states of the thread, and is the same each time.
#[test]
fn a_time_line_has_the_states_of_the_thread() {
    let dir = Dir::with("perf.tar.xz", "time-line");
    let (_, json, _) = run(&mut dir.delays("perf", &["--tid", "177", "--json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    let waits = json["segments"][0]["waits"].as_array().unwrap();
    let sleeps = waits
        .iter()
        .filter(|wait| wait["syscall"] == "clock_nanosleep");
    let sleepers: Vec<_> = sleeps.map(|wait| &wait["thread"]["tid"]).collect();
    assert_eq!(sleepers.len(), 5);
    for what in ["path", "delays"] {
        let draw = |file: &str| {
            let args = ["--tid", "177", "--svg", file];
            let (status, _, error) = run(&mut dir.of_trace(&["analyze", what], "perf", &args));
            assert_eq!(status, 0, "{error}");
            fs::read_to_string(dir.0.join(file)).unwrap()
        };
        let picture = draw("1.svg");
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
        assert_eq!(draw("2.svg"), picture);
        // Each child slept for 20 ms, much longer than the states that are merged into one bar.
        for tid in &sleepers {
            let title = match what {
                "path" => format!("python3/{tid} waits in clock_nanosleep for "),
                _ => format!("python3/{tid} in clock_nanosleep: "),
            };
            assert!(picture.contains(&format!("<title>{title}")), "{title}");
        }
    }
}

/// A page has a view for each alert, even at a time outside of the trace, and a name in an alert is not markup.
#[test]
fn an_alert_has_a_page() {
    let dir = Dir::with_traces("page-alert");
    let tid = &busiest(&dir, "compact")[0];
    let (_, json, _) = run(&mut dir.path("compact", &["--tid", tid, "--json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    let (from, to) = (json["from"].as_u64().unwrap(), json["to"].as_u64().unwrap());
    let line = format!(
        "seq=3 time={to} instance=slow tracker=wakeup reason=threshold delay={} threshold=1 cpu=0 pid={tid} tid={tid} comm=\"</script><img>\"\n\
         seq=2 time=18446744073709551615 instance=a tracker=wakeup reason=threshold delay=0 threshold=0 cpu=9 pid=1 tid=1 comm=\"x\"\n\
         seq=1 time=18446744073709551615 instance=a tracker=wakeup reason=threshold delay=18446744073709551615 threshold=0 cpu=9 pid=1 tid=1 comm=\"x\"\n",
        to - from
    );
    fs::write(dir.0.join("late"), line).unwrap();
    let args = ["--alerts", "late", "--html", "late.html"];
    let (status, text, error) = run(&mut dir.of_trace(&["explain"], "compact", &args));
    assert_eq!((status, error.as_str()), (0, ""));
    let page = fs::read_to_string(dir.0.join("late.html")).unwrap();
    assert!(!page.contains("<img"));
    let plain = page
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&#39;", "'");
    let (first, _) = text.split_once("\n\nalert ").unwrap();
    assert!(plain.contains(first), "{first}");
    let data = data(&page);
    assert_eq!(data["views"].as_array().unwrap().len(), 3);
    assert_eq!(
        data["views"][0]["facts"][0][1],
        format!("</script><img>/{tid}")
    );
}

/// The time lines of several alerts, one below the other, each with its name and its path.
#[test]
fn alerts_have_their_time_lines() {
    let dir = Dir::with_traces("lines-of-alerts");
    let tid = &busiest(&dir, "compact")[0];
    let (_, json, _) = run(&mut dir.path("compact", &["--tid", tid, "--json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    let to = json["to"].as_u64().unwrap();
    let line = |seq: u64, comm: &str| {
        let delay = 1_000_000 * seq;
        format!(
            "seq={seq} time={to} instance={comm} tracker=offcpu reason=threshold delay={delay} threshold=1 cpu=0 pid={tid} tid={tid} comm=\"{comm}\"\n"
        )
    };
    let draw = |alerts: &[String], file: &str| {
        fs::write(dir.0.join("late"), alerts.concat()).unwrap();
        let args = ["--alerts", "late", "--svg", file];
        let (status, text, error) = run(&mut dir.of_trace(&["explain"], "compact", &args));
        assert_eq!((status, error.as_str()), (0, ""));
        assert!(text.starts_with("alert "), "{text}");
        fs::read_to_string(dir.0.join(file)).unwrap()
    };
    let alerts = [line(5, "slow"), line(9, "other")];
    let picture = draw(&alerts, "1.svg");
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
    assert_eq!(draw(&alerts, "2.svg"), picture);
    // A heading, and the text in the bar.
    let named = |picture: &str, name: &str| picture.matches(&format!("\n{name}\n")).count();
    for (name, took) in [
        ("Alert 5 of slow: offcpu", "5.00ms"),
        ("Alert 9 of other: offcpu", "9.00ms"),
    ] {
        let bar = format!("<title>{name}: {took} at +");
        assert!(picture.contains(&bar), "{bar}");
        assert_eq!(named(&picture, name), 2, "{name}");
    }
    assert_eq!(named(&picture, "Critical path"), 2);
    // With one alert, its name is the heading of the picture.
    let one = draw(&alerts[..1], "1.svg");
    assert_eq!(named(&one, "Alert 5 of slow: offcpu"), 2);
}

#[test]
fn a_page_that_cannot_be_written_is_reported_and_leaves_nothing() {
    let dir = Dir::with_traces("page-unwritten");
    let tid = &busiest(&dir, "compact")[0];
    let before = fs::read_dir(&dir.0).unwrap().count();
    let refused = |what: &[&str], args: &[&str], expected: &str| {
        // The trace is not even opened.
        for trace in ["compact", "no-trace"] {
            let (status, out, error) = run(&mut dir.of_trace(what, trace, args));
            assert_eq!((status, out.as_str()), (1, ""), "{what:?} {args:?}");
            assert!(error.contains(expected), "{error}");
        }
    };
    let path = ["analyze", "path", "--tid", tid];
    let delays = ["analyze", "delays", "--tid", tid];
    for (file, expected) in [
        ("nowhere/a.html", "nowhere/a.html: No such file"),
        ("/dev/full", "/dev/full: not a regular file"),
        ("compact", "compact: not a regular file"),
        ("-", "-: expected the name of a file; ./- is"),
    ] {
        for (what, option) in [
            (&path[..], "--html"),
            (&path, "--svg"),
            (&delays, "--html"),
            (&delays, "--svg"),
            (&delays, "--perfetto"),
            (&["explain"], "--html"),
            (&["explain"], "--svg"),
            (&["explain"], "--perfetto"),
        ] {
            refused(what, &[option, file], expected);
        }
    }
    let twice = "a: named for two outputs";
    refused(&path, &["--html", "a", "--svg", "./a"], twice);
    refused(&path, &["--perfetto", "a", "--svg", "./a"], twice);
    refused(&delays, &["--html", "a", "--svg", "./a"], twice);
    refused(&delays, &["--perfetto", "a", "--svg", "./a"], twice);
    refused(&["explain"], &["--html", "a", "--perfetto", "./a"], twice);
    refused(&["explain"], &["--html", "a", "--svg", "./a"], twice);
    assert_eq!(fs::read_dir(&dir.0).unwrap().count(), before);
}
