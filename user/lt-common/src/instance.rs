// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Loads the module, creates and removes instances, and explains why the module refuses a request.

mod loaded;
mod pitfalls;

use std::path::Path;
use std::{fmt, io};

use anyhow::{Context, Result, anyhow, bail};
use lt_proc::{
    Instance, Nanos, ProcError, ProcRoot, Setting, TrackerInfo, parse_duration, valid_name,
};

use crate::exec::Exec;
use crate::kmsg::Kmsg;
use crate::{clock, module, out};

pub use self::loaded::Loaded;

/// Loads the module unless it is loaded.
pub fn load_module(root: &ProcRoot) -> Result<()> {
    if root.is_loaded() {
        return Ok(());
    }
    if !module::is_root() || !module::is_installed("latency_tracker") {
        return Err(ProcError::NotLoaded(root.path().into()).into());
    }
    let loaded = Exec::modprobe(["latency_tracker"]).output();
    loaded.context("cannot load the latency_tracker module")?;
    if !root.is_loaded() {
        bail!(
            "the module is loaded, but {} does not exist",
            root.path().display()
        );
    }
    out::note("loaded the latency_tracker module");
    Ok(())
}

/// A request that the kernel refused, or would refuse.
#[derive(Debug)]
pub struct Refusal {
    /// The fault.
    text: String,
    /// How to fix it.
    pub hint: String,
}

impl Refusal {
    /// Creates a refusal by this program, not by the kernel.
    pub fn new(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            hint: hint.into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Refusal {}

/// Rejects unknown trackers and parameters, and a `max` that leaves no delay above the threshold. The kernel would
/// reject the unknown names, too, but only when the instance is created.
pub fn check(root: &ProcRoot, tracker: &str, settings: &[Setting]) -> Result<()> {
    // Without the list, only the kernel can judge.
    let trackers = root.trackers().unwrap_or_default();
    if trackers.is_empty() {
        return Ok(());
    }
    let refuse = |text, hint| Err(Refusal { text, hint }.into());
    let Some(info) = trackers.iter().find(|t| t.name == tracker) else {
        let known = || trackers.iter().map(|t| t.name.as_str());
        let all = || known().collect::<Vec<_>>().join(", ");
        let meant = meant(tracker, known());
        let hint = meant.map_or_else(
            || format!("there are {}", all()),
            |m| format!("did you mean {m}?"),
        );
        return refuse(
            format!("unknown tracker {tracker:?}; {hint}"),
            SHOW_ALL.into(),
        );
    };
    // A tracker that this kernel's options exclude from the module has no parameters. The kernel
    // would reject it, too.
    if let (Some(why), true) = (&info.unavailable, info.params.is_empty()) {
        return refuse(format!("tracker {tracker}: {why}"), SHOW_ALL.into());
    }
    let known = || info.params.iter().map(|p| p.name.as_str());
    if let Some(odd) = settings.iter().find(|s| known().all(|k| k != s.key)) {
        let hint =
            meant(&odd.key, known()).map_or(String::new(), |m| format!("; did you mean {m}=?"));
        let text = format!("{tracker} has no parameter {:?}{hint}", odd.key);
        return refuse(text, show(tracker));
    }
    match pitfalls::contradiction(settings) {
        Some(text) => refuse(text, show(tracker)),
        None => Ok(()),
    }
}

const SHOW_ALL: &str = "`latency-tracker list --trackers` shows the trackers";

fn show(tracker: &str) -> String {
    format!("`latency-tracker list --trackers {tracker}` shows what is possible")
}

/// Start of the names of instances that [`try_out`] creates; the PID of the process follows.
const TRIED: &str = "_try_";

/// Minimum age of an instance that [`remove_tried`] removes, ns. A process that is not visible here, in another PID
/// namespace, may still use a younger instance.
const TRIAL: u64 = 10_000_000_000;

/// Removes and reports instances that killed runs of [`try_out`] have left.
pub fn remove_tried(root: &ProcRoot) {
    // A caller that needs the instances reports why they cannot be read.
    for instance in root.instances().unwrap_or_default() {
        let name = &instance.name;
        let pid = name.strip_prefix(TRIED);
        let pid = pid.and_then(|pid| pid.parse::<u32>().ok());
        let Some(pid) = pid.filter(|pid| is_left(root, &instance, *pid)) else {
            continue;
        };
        let what = format!("instance {name}, left by a killed run (process {pid})");
        out::note(&match remove(root, name) {
            Ok(()) => format!("removed {what}"),
            Err(error) => format!("cannot remove {what}: {error:#}"),
        });
    }
}

/// Whether process `pid` has left an instance that it tried out. This process has no such instance between two calls of
/// [`try_out`].
fn is_left(root: &ProcRoot, instance: &Instance, pid: u32) -> bool {
    let is_another = pid != std::process::id();
    let lives = is_another && Path::new("/proc").join(pid.to_string()).exists();
    let enabled = instance.params.text("enabled");
    let read = root.of_one(&instance.name, || root.instance(&instance.name));
    let created = read.ok().and_then(|(created, _)| created);
    !lives
        && enabled.is_some_and(|enabled| enabled == "0")
        && created.is_some_and(|created| clock::monotonic() > created.saturating_add(TRIAL))
}

/// Has the kernel check a line: creates a disabled instance with another name from it, removes that instance at once,
/// and returns its parameters.
pub fn try_out(
    root: &ProcRoot,
    tracker: &str,
    settings: &[Setting],
    say: &dyn Fn(&str),
) -> Result<Instance> {
    remove_tried(root);
    let name = format!("{TRIED}{}", std::process::id());
    let mut settings: Vec<Setting> = settings.to_vec();
    settings.retain(|s| s.key != "enabled" || !matches!(s.value.as_str(), "0" | "1"));
    settings.push(Setting {
        key: "enabled".into(),
        value: "0".into(),
    });
    create(root, &name, tracker, &settings, say)?;
    let tried = root.instance(&name);
    root.remove(&name)?;
    Ok(tried?)
}

/// Creates an instance by writing its control line, and warns about odd settings. If the kernel refuses, the error is
/// the message in the kernel log, to which the errno would add nothing; without a message, it is the text of the errno.
pub fn create(
    root: &ProcRoot,
    name: &str,
    tracker: &str,
    settings: &[Setting],
    say: &dyn Fn(&str),
) -> Result<()> {
    if !valid_name(name) {
        bail!(
            "{name:?}: expected a name of up to 31 letters, digits, _ or -, starting with a letter or _, \
             that is not a file of {} itself",
            root.path().display()
        );
    }
    check(root, tracker, settings)?;
    // Without the list, only the kernel can judge.
    let trackers = root.trackers().unwrap_or_default();
    let info = trackers.iter().find(|t| t.name == tracker);
    let settings: Vec<Setting> = settings.iter().map(|s| in_seconds(s, info)).collect();
    for setting in &settings {
        if let Some(text) = bare(setting, info) {
            say(&text);
        }
    }
    let mut log = Kmsg::from_now();
    let sys = Path::new("/sys");
    match root.create(name, tracker, &settings) {
        Ok(()) => {
            let warnings = info.map(|info| pitfalls::warnings(&settings, info, sys));
            warnings.into_iter().flatten().for_each(|text| say(&text));
            Ok(())
        }
        Err(ProcError::Refused { line, source, .. }) => {
            let said = log.said();
            let text = match said.is_empty() {
                true => format!("the kernel refused \"{line}\": {}", reason(&source)),
                false => said.join("; "),
            };
            let hint = info.and_then(|info| {
                settings
                    .iter()
                    .find_map(|setting| pitfalls::hint(setting, info, sys))
            });
            let hint = hint.unwrap_or_else(|| show(tracker));
            Err(Refusal { text, hint }.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Removes an instance. If the kernel refuses, the error is the message in the kernel log, to which the errno would add
/// nothing. The error is a [`ProcError`] if there is no message, or no such instance.
pub fn remove(root: &ProcRoot, name: &str) -> Result<()> {
    let mut log = Kmsg::from_now();
    let removed = root.remove(name);
    removed.map_err(|error| not_removed(error, &log.said()))
}

fn not_removed(error: ProcError, said: &[String]) -> anyhow::Error {
    match &error {
        ProcError::Refused { source, .. }
            if source.kind() != io::ErrorKind::NotFound && !said.is_empty() =>
        {
            anyhow!(said.join("; "))
        }
        _ => error.into(),
    }
}

/// Returns the text of a system error without its number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_string()
}

fn is_duration(setting: &Setting, info: Option<&TrackerInfo>) -> bool {
    let mut params = info.into_iter().flat_map(|info| &info.params);
    params.any(|p| p.name == setting.key && p.kind == "duration")
}

/// Converts a setting to the kernel's form, which has no minutes, hours and days.
fn in_seconds(setting: &Setting, info: Option<&TrackerInfo>) -> Setting {
    let mut setting = setting.clone();
    if setting.value.ends_with(['m', 'h', 'd'])
        && is_duration(&setting, info)
        && let Ok(time) = parse_duration(&setting.value)
    {
        setting.value = time.exact();
    }
    setting
}

/// Returns a warning about a time without a unit: elsewhere (`-d 10`), such a number is in seconds.
fn bare(setting: &Setting, info: Option<&TrackerInfo>) -> Option<String> {
    let number: u64 = setting.value.parse().ok()?;
    // Larger numbers get no warning: a script may write back a time in ns, as `control` shows it.
    if !(1..1_000_000).contains(&number) || !is_duration(setting, info) {
        return None;
    }
    Some(format!(
        "{setting} is {}: a number without a unit is nanoseconds; write {number}us, {number}ms or {number}s \
         for another unit",
        Nanos(number)
    ))
}

/// Returns the word in `words` that a misspelt `word` most likely means, if one is close enough.
pub fn meant<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest(word, words).first().copied()
}

/// Returns up to three words in `words` that a misspelt `word` may mean, the likeliest first. Words that contain `word`
/// are candidates, too.
pub fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    const MOST: usize = 3;
    let near = |known: &'a str| {
        let likeness = strsim::jaro_winkler(word, known);
        let is_part = word.len() > 2 && known.contains(word);
        (likeness > 0.75 || is_part).then_some((known, likeness))
    };
    let mut near: Vec<_> = words.into_iter().filter_map(near).collect();
    near.sort_by(|a, b| b.1.total_cmp(&a.1));
    near.into_iter()
        .take(MOST)
        .map(|(known, _)| known)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> TrackerInfo {
        let text = "block: x\n  threshold=1 duration: y\n  events=1 number: z\n";
        TrackerInfo::parse_all(text).unwrap().remove(0)
    }

    fn setting(text: &str) -> Setting {
        text.parse().unwrap()
    }

    #[test]
    fn a_refused_removal_has_the_reason_in_the_log() {
        let error = |kind: io::ErrorKind, said: &[&str]| {
            let refused = ProcError::Refused {
                line: "-a".into(),
                tracker: String::new(),
                source: kind.into(),
            };
            let said: Vec<String> = said.iter().copied().map(String::from).collect();
            not_removed(refused, &said)
        };
        let busy = io::ErrorKind::ResourceBusy;
        let why = "only the module that created this instance can remove it: \"a\"";
        assert_eq!(format!("{:#}", error(busy, &[why])), why);
        assert!(error(busy, &[]).is::<ProcError>());
        assert!(error(io::ErrorKind::NotFound, &["no such instance"]).is::<ProcError>());
    }

    #[test]
    fn an_instance_that_a_killed_run_has_tried_out_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        let root = ProcRoot::new(directory.path());
        let is_removed = |name: &str, enabled: u8, created: u64| {
            std::fs::create_dir_all(file(name)).unwrap();
            let control = format!("{name} block enabled={enabled}\n");
            std::fs::write(file("control"), control).unwrap();
            std::fs::write(file(name).join("created"), created.to_string()).unwrap();
            remove_tried(&root);
            let control = std::fs::read_to_string(file("control")).unwrap();
            control.starts_with(&format!("-{name}\n"))
        };
        // No process has this large number.
        let left = "_try_4294967295";
        assert!(is_removed(left, 0, 5));
        assert!(!is_removed(left, 1, 5));
        assert!(!is_removed(left, 0, clock::monotonic()));
        // The process of `_try_1` runs. The other two are instances of users.
        for other in ["_try_1", "_try_mine", "try_4294967295"] {
            assert!(!is_removed(other, 0, 5), "{other}");
        }
    }

    #[test]
    fn minutes_are_translated_where_a_duration_is_meant() {
        let info = block();
        for (from, to) in [
            ("threshold=5m", "threshold=300s"),
            ("threshold=1h", "threshold=3600s"),
            ("threshold=10ms", "threshold=10ms"),
            ("threshold=xm", "threshold=xm"),
            ("events=5m", "events=5m"),
            ("comm=5m", "comm=5m"),
        ] {
            let got = in_seconds(&setting(from), Some(&info));
            assert_eq!(got.to_string(), to);
        }
    }

    #[test]
    fn a_time_without_a_unit_is_explained() {
        let info = block();
        let said = bare(&setting("threshold=10"), Some(&info)).unwrap();
        assert!(said.starts_with("threshold=10 is 10ns"), "{said}");
        for fine in [
            "threshold=0",
            "threshold=10ms",
            "threshold=10000000",
            "events=10",
        ] {
            assert_eq!(bare(&setting(fine), Some(&info)), None, "{fine}");
        }
    }

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        let known = ["threshold", "timeout", "events", "max_events", "dev"];
        assert_eq!(meant("treshold", known), Some("threshold"));
        assert_eq!(meant("time_out", known), Some("timeout"));
        assert_eq!(meant("maxevents", known), Some("max_events"));
        assert_eq!(meant("xyz", known), None);
        assert_eq!(nearest("even", known), ["events", "max_events"]);
    }
}
