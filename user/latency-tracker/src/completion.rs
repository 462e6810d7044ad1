// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Completion of command lines in a shell. The scripts of the shells run this command with
//! `LATENCY_TRACKER_COMPLETE=SHELL` and the words so far; it prints the words that fit.
//!
//! Clap knows commands, options and fixed values. Instances, trackers, recipes, `KEY=VALUE`, processes, disks, cgroups,
//! network devices, functions and tracepoints are found here. Names that the user may not read are not offered.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use clap_complete::CompleteEnv;
use clap_complete::engine::CompletionCandidate as Word;
use clap_complete::env::Shells;
use lt_common::pids::comm;
use lt_proc::{ParamInfo, TrackerInfo};

use crate::proc_root;
use crate::recipes::Recipes;
use crate::trackers::titles;

/// The environment variable with the name of the shell that asks for words.
const SHELL: &str = "LATENCY_TRACKER_COMPLETE";

/// If more names than this match, none is offered until more is typed.
const TOO_MANY: usize = 2_000;

/// If a shell asks for words of this command line, prints them and ends the program.
pub(crate) fn answer(command: fn() -> clap::Command) {
    CompleteEnv::with_factory(command).var(SHELL).complete();
}

/// The script that makes a shell ask for words.
pub(crate) fn script(shell: clap_complete::Shell) -> std::io::Result<Vec<u8>> {
    use clap_complete::Shell::{Bash, Fish, Zsh};
    let ours: &[u8] = match shell {
        Bash => include_bytes!("completion/latency-tracker.bash"),
        Zsh => include_bytes!("completion/latency-tracker.zsh"),
        Fish => include_bytes!("completion/latency-tracker.fish"),
        other => {
            let mut text = Vec::new();
            let name = other.to_string();
            let completer = Shells::builtins().completer(&name).map(|of| {
                of.write_registration(
                    SHELL,
                    "latency_tracker",
                    "latency-tracker",
                    "latency-tracker",
                    &mut text,
                )
            });
            return completer.unwrap_or(Ok(())).map(|()| text);
        }
    };
    Ok(ours.to_vec())
}

/// The words that start with what is typed.
fn fitting(typed: &OsStr, words: impl IntoIterator<Item = (String, String)>) -> Vec<Word> {
    let typed = typed.to_string_lossy();
    words
        .into_iter()
        .filter(|(word, _)| word.starts_with(&*typed))
        .map(|(word, help)| Word::new(word).help((!help.is_empty()).then(|| help.into())))
        .collect()
}

/// The instances.
pub(crate) fn instances(typed: &OsStr) -> Vec<Word> {
    let all = proc_root().instances().unwrap_or_default();
    fitting(typed, all.into_iter().map(|one| (one.name, one.tracker)))
}

/// The trackers that the loaded module has; if its list cannot be read, all trackers.
pub(crate) fn trackers(typed: &OsStr) -> Vec<Word> {
    fitting(typed, all_trackers())
}

fn all_trackers() -> Vec<(String, String)> {
    match proc_root().trackers() {
        Ok(all) => all.into_iter().map(|one| (one.name, one.text)).collect(),
        Err(_) => titles()
            .map(|(name, text)| (name.into(), text.into()))
            .collect(),
    }
}

/// The instances; the trackers instead if `--trackers` is on the command line.
pub(crate) fn instances_or_trackers(typed: &OsStr) -> Vec<Word> {
    match words()
        .iter()
        .any(|word| word == "--trackers" || word == "-t")
    {
        true => trackers(typed),
        false => instances(typed),
    }
}

/// The recipes.
pub(crate) fn recipes(typed: &OsStr) -> Vec<Word> {
    let all = Recipes::read().all;
    fitting(typed, all.into_iter().map(|one| (one.name, one.question)))
}

/// The recipes and the trackers, for `run`.
pub(crate) fn recipes_and_trackers(typed: &OsStr) -> Vec<Word> {
    let mut all = recipes(typed);
    all.extend(trackers(typed));
    all
}

/// The instances, the recipes and the trackers, for `stacks`.
pub(crate) fn anything(typed: &OsStr) -> Vec<Word> {
    let mut all = instances(typed);
    all.extend(recipes_and_trackers(typed));
    all
}

/// The running processes, by number.
pub(crate) fn pids(typed: &OsStr) -> Vec<Word> {
    fitting(typed, processes())
}

/// The running processes, by number, and by name if no other process has it.
pub(crate) fn pids_and_names(typed: &OsStr) -> Vec<Word> {
    let mut all = pids(typed);
    all.extend(fitting(typed, unique(processes())));
    all
}

/// The names that only one of these processes has, each with the number of the process. Without names that would have
/// to be quoted, or that are numbers.
fn unique(processes: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (pid, name) in processes {
        by_name.entry(name).or_default().push(pid);
    }
    let is_word = |name: &str| {
        name.chars()
            .all(|c| c.is_alphanumeric() || "-_.:/".contains(c))
            && name.starts_with(char::is_alphabetic)
    };
    let only = by_name.into_iter().filter_map(|(name, mut pids)| {
        let pid = pids.pop().filter(|_| pids.is_empty() && is_word(&name))?;
        Some((name, pid))
    });
    only.collect()
}

fn processes() -> Vec<(String, String)> {
    let proc = Path::new("/proc");
    let named = |pid: String| {
        let comm = comm(proc, pid.parse().ok()?)?;
        Some((pid, String::from_utf8(comm).ok()?))
    };
    names(proc).into_iter().filter_map(named).collect()
}

/// The disks.
pub(crate) fn disks(typed: &OsStr) -> Vec<Word> {
    fitting(typed, plain(names(Path::new("/sys/block"))))
}

/// The cgroups below the typed path.
pub(crate) fn cgroups(typed: &OsStr) -> Vec<Word> {
    let typed = typed.to_string_lossy();
    let above = typed.rfind('/').map_or("/", |last| &typed[..=last]);
    let mounted = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
    let Some(mount) = mounted
        .iter()
        .find(|path| path.join("cgroup.controllers").exists())
    else {
        return Vec::new();
    };
    let directory = mount.join(above.trim_start_matches('/'));
    let mut below = names(&directory);
    below.retain(|name| directory.join(name).is_dir());
    let whole = below.into_iter().map(|name| format!("{above}{name}"));
    fitting(OsStr::new(&*typed), plain(whole))
}

/// The `KEY=VALUE` settings of the tracker on the command line.
pub(crate) fn settings(typed: &OsStr) -> Vec<Word> {
    let words = words();
    let Some(tracker) = tracker_of(&words) else {
        return Vec::new();
    };
    let Some((key, value)) = typed.to_str().and_then(|text| text.split_once('=')) else {
        let is_given = |param: &ParamInfo| {
            let start = format!("{}=", param.name);
            words.iter().any(|word| word.starts_with(&start))
        };
        let missing = tracker.params.iter().filter(|param| !is_given(param));
        return fitting(
            typed,
            missing.map(|param| (format!("{}=", param.name), param.text.clone())),
        );
    };
    let Some(param) = tracker.params.iter().find(|param| param.name == key) else {
        return Vec::new();
    };
    let start = format!("{key}=");
    values(param, value)
        .into_iter()
        .map(|word| word.add_prefix(&start))
        .collect()
}

/// The tracker of the last word that names a tracker or a recipe: its parameters follow.
fn tracker_of(words: &[String]) -> Option<TrackerInfo> {
    let named = words.iter().rev().skip(1).find_map(|word| {
        let all = all_trackers();
        let tracker = all.into_iter().find(|(name, _)| name == word);
        tracker.map(|(name, _)| name).or_else(|| {
            let recipes = Recipes::read();
            let recipe = recipes.find(word).ok().flatten();
            recipe.map(|recipe| recipe.tracker.clone())
        })
    })?;
    let all = proc_root().trackers().ok()?;
    all.into_iter().find(|tracker| tracker.name == named)
}

/// The values of a parameter that start with `typed`.
fn values(param: &ParamInfo, typed: &str) -> Vec<Word> {
    let start = OsStr::new(typed);
    // A kind has alternatives, e.g. `0-139|all` or `issue|insert`; some alternatives stand for values found here.
    let mut found = Vec::new();
    for alternative in param.kind.split('|') {
        let more = match (alternative, param.name.as_str()) {
            ("command", _) => fitting(start, plain(comms())),
            ("cgroup", _) => cgroups(start),
            ("disk", _) => disks(start),
            ("net-device", _) => fitting(start, plain(names(Path::new("/sys/class/net")))),
            ("function", _) => functions("", typed),
            ("function:NAME", _) => functions("function:", typed),
            ("return:NAME", _) => functions("return:", typed),
            ("tracepoint:NAME", _) => traced("available_events", "tracepoint:", typed, tracepoint),
            (_, "pid") if alternative.contains('-') => pids(start),
            _ if is_placeholder(alternative) => Vec::new(),
            _ => fitting(start, [(alternative.to_string(), String::new())]),
        };
        found.extend(more);
    }
    if found.is_empty() {
        found = fitting(start, [(param.default.clone(), "the default".into())]);
    }
    found
}

/// Whether this alternative of a kind only describes what can be typed: a word for values, or a range.
fn is_placeholder(alternative: &str) -> bool {
    let is_range = alternative.split_once('-').is_some_and(|(low, high)| {
        let ends_in_digit = |text: &str| text.ends_with(|c: char| c.is_ascii_digit());
        ends_in_digit(low) && ends_in_digit(high)
    });
    is_range || alternative.contains(['!', ' ']) || ["duration", "names"].contains(&alternative)
}

/// The functions that ftrace can trace.
fn functions(prefix: &str, typed: &str) -> Vec<Word> {
    traced("available_filter_functions", prefix, typed, |line| {
        line.split(' ').next()
    })
}

/// Returns the name of an event's tracepoint, from a line `SYSTEM:EVENT`. `None` for the events of single system calls,
/// which have no tracepoint, and for our own events, which the kernel module does not trace.
fn tracepoint(line: &str) -> Option<&str> {
    let (system, event) = line.split_once(':')?;
    (!["syscalls", "latency_tracker"].contains(&system)).then_some(event)
}

/// The names in a file of tracefs that match `typed`, each after `prefix`; only the prefix if `typed` lacks it. Empty
/// if too many names match.
fn traced(file: &str, prefix: &str, typed: &str, name: fn(&str) -> Option<&str>) -> Vec<Word> {
    let Some(start) = typed.strip_prefix(prefix) else {
        return fitting(OsStr::new(typed), plain([prefix.to_string()]));
    };
    let text = fs::read_to_string(Path::new("/sys/kernel/tracing").join(file)).unwrap_or_default();
    let all = text.lines().filter_map(name);
    let all: Vec<_> = all.filter(|name| name.starts_with(start)).collect();
    match all.len() {
        0..=TOO_MANY => all
            .iter()
            .map(|name| Word::new(format!("{prefix}{name}")))
            .collect(),
        _ => Vec::new(),
    }
}

/// The names of the running processes, without those that contain whitespace and thus are not one word.
fn comms() -> Vec<String> {
    let mut all: Vec<_> = processes().into_iter().map(|(_, comm)| comm).collect();
    all.sort();
    all.dedup();
    all.retain(|comm| !comm.contains(char::is_whitespace));
    all
}

/// The entries of a directory, in the order of their names.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Words without help.
fn plain(words: impl IntoIterator<Item = String>) -> impl Iterator<Item = (String, String)> {
    words.into_iter().map(|word| (word, String::new()))
}

/// The words of the command line that the shell completes.
fn words() -> Vec<String> {
    let all = std::env::args_os().skip_while(|word| word != "--").skip(1);
    all.map(|word| word.to_string_lossy().into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(name: &str, kind: &str, default: &str, typed: &str) -> Vec<String> {
        let param = ParamInfo {
            name: name.into(),
            default: default.into(),
            kind: kind.into(),
            text: String::new(),
        };
        let words = values(&param, typed);
        words
            .iter()
            .map(|word| word.get_value().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn a_name_is_offered_if_one_process_has_it_and_it_is_a_word() {
        let all = [
            ("1", "systemd"),
            ("7", "archiver"),
            ("8", "archiver"),
            ("9", "(sd-pam)"),
            ("10", "Web Content"),
            ("11", "812"),
            ("12", "kworker/0:1"),
        ];
        let all = all.map(|(pid, name)| (pid.to_string(), name.to_string()));
        let expected = [("kworker/0:1", "12"), ("systemd", "1")];
        let expected = expected.map(|(name, pid)| (name.to_string(), pid.to_string()));
        assert_eq!(unique(all.into()), expected);
    }

    #[test]
    fn values_are_the_alternatives_that_can_be_typed() {
        assert_eq!(offered("from", "issue|insert", "issue", "is"), ["issue"]);
        assert_eq!(offered("prio", "0-139|all", "all", ""), ["all"]);
        assert_eq!(offered("calls", "names|!names|all", "all", ""), ["all"]);
        assert_eq!(offered("threshold", "duration", "10ms", ""), ["10ms"]);
        assert_eq!(offered("threshold", "duration", "10ms", "5"), [""; 0]);
        assert_eq!(offered("by", "none|cpu|comm", "none", "c"), ["cpu", "comm"]);
        assert_eq!(
            offered("kind", "all|rwsem:R|rwsem:W", "all", "rw"),
            ["rwsem:R", "rwsem:W"]
        );
        let own = std::process::id().to_string();
        assert_eq!(offered("pid", "0-4194303|all", "all", &own)[0], own);
    }

    #[test]
    fn a_point_begins_with_its_kind() {
        let kind = "tracepoint:NAME|function:NAME|return:NAME";
        assert_eq!(
            offered("begin", kind, "", ""),
            ["tracepoint:", "function:", "return:"]
        );
        assert_eq!(offered("begin", kind, "", "t"), ["tracepoint:"]);
    }

    #[test]
    fn only_tracepoints_that_can_be_traced_are_offered() {
        assert_eq!(tracepoint("sched:sched_switch"), Some("sched_switch"));
        assert_eq!(
            tracepoint("jbd2:jbd2_start_commit"),
            Some("jbd2_start_commit")
        );
        assert_eq!(tracepoint("syscalls:sys_enter_read"), None);
        assert_eq!(tracepoint("latency_tracker:alert"), None);
    }

    #[test]
    fn cgroups_are_offered_level_by_level() {
        for word in cgroups(OsStr::new("/")) {
            let word = word.get_value().to_string_lossy().into_owned();
            assert_eq!(word.matches('/').count(), 1, "{word}");
        }
    }
}
