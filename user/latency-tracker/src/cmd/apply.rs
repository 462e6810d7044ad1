// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `apply`: makes the running instances match configuration files. Unchanged instances keep running. If the cgroup of
//! an unchanged instance no longer exists, the path of the cgroup is looked up again.
//! Instances that `apply` did not start are left alone, unless a line has the name and the tracker of such an instance:
//! `apply` then changes it, and treats it as its own.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use lt_common::Outcome;
use lt_common::group::{Groups, about_missing};
use lt_common::instance::{create, load_module, try_out};
use lt_common::out;
use lt_proc::{Instance, ParamInfo, ProcRoot, Setting, TrackerInfo};

use crate::cli::ApplyArgs;
use crate::config::{Config, DIRECTORY, Entry, LOCK, STATE};

pub(crate) fn run(root: &ProcRoot, args: &ApplyArgs) -> Result<Outcome> {
    let paths = real(&args.paths)?;
    if args.stop {
        // The module is not loaded for this: without the module, no instance runs.
        let books = Books::open(Path::new(STATE))?;
        return Apply::new(root, books, &paths).stop();
    }
    let config = Config::read(&paths);
    for fault in &config.faults {
        out::note(fault);
    }
    if config.files == 0 && config.faults.is_empty() {
        let what: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
        out::note(&format!("there is no *.conf in {}", what.join(", ")));
    }
    if !config.entries.is_empty() {
        load_module(root)?;
    }
    let books = Books::open(Path::new(STATE))?;
    Apply::new(root, books, &paths).start(&config)
}

/// Returns the paths with symbolic links resolved, so that they can be compared with the notes of
/// an earlier run.
fn real(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let default = [PathBuf::from(DIRECTORY)];
    let paths = if paths.is_empty() {
        &default[..]
    } else {
        paths
    };
    let real = paths.iter().map(|path| match fs::canonicalize(path) {
        Ok(real) => Ok(real),
        // The error is reported when the file is read.
        Err(_) => std::path::absolute(path).with_context(|| path.display().to_string()),
    });
    real.collect()
}

/// The instances that earlier runs have started. A locked file ensures that only one `apply` runs at a time, and shows
/// recorders that an instance may be replaced.
#[derive(Debug)]
struct Books {
    path: PathBuf,
    entries: Vec<Entry>,
    _lock: File,
}

impl Books {
    fn open(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory).with_context(|| format!("{}", directory.display()))?;
        let lock = super::lock(&directory.join(LOCK))?;
        let path = directory.join("applied.json");
        let entries = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| {
                format!(
                    "{}: not written by `apply`; delete this file to keep the instances that earlier runs started",
                    path.display()
                )
            })?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error).with_context(|| format!("{}", path.display())),
        };
        Ok(Self {
            path,
            entries,
            _lock: lock,
        })
    }

    fn of(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.name == name)
    }

    /// Writes the notes immediately, so that they survive an interrupted run.
    fn note(&mut self, name: &str, entry: Option<&Entry>) -> Result<()> {
        self.entries.retain(|e| e.name != name);
        self.entries.extend(entry.cloned());
        out::file::replace(&self.path, |file| {
            Ok(serde_json::to_writer(file, &self.entries)?)
        })
    }
}

/// The action taken for a line.
enum Done {
    Started,
    Changed,
    /// Restarted, for this reason.
    Restarted(String),
    /// Limited to the cgroup that has the path now.
    Renewed,
    Nothing,
}

struct Apply<'a> {
    root: &'a ProcRoot,
    books: Books,
    paths: &'a [PathBuf],
    trackers: Vec<TrackerInfo>,
    groups: Groups,
    wrong: bool,
    /// The first error in printing. The run continues, so that every line of the files is applied.
    unsaid: Option<anyhow::Error>,
}

impl<'a> Apply<'a> {
    fn new(root: &'a ProcRoot, books: Books, paths: &'a [PathBuf]) -> Self {
        Self {
            root,
            books,
            paths,
            trackers: root.trackers().unwrap_or_default(),
            groups: Groups::find(),
            wrong: false,
            unsaid: None,
        }
    }

    fn start(mut self, config: &Config) -> Result<Outcome> {
        self.wrong = !config.faults.is_empty();
        let mut same = 0;
        for entry in &config.entries {
            match self.one(entry) {
                Ok(Done::Nothing) => same += 1,
                Ok(done) => self.say(&said(entry, &done)),
                Err(error) => self.report(&format!("{}: {error:#}", entry.place()), &error),
            }
        }
        let gone: Vec<String> = self.gone(config);
        if self.wrong && !gone.is_empty() {
            // An invalid line may be meant to list the instance.
            out::note(&format!(
                "not removed until all lines are valid: {}",
                gone.join(", ")
            ));
        } else {
            self.remove(&gone)?;
        }
        if same > 0 {
            self.say(&format!("{same} unchanged"));
        }
        self.outcome()
    }

    /// Removes all instances that earlier runs have started from these paths.
    fn stop(mut self) -> Result<Outcome> {
        let all = self.gone(&Config::default());
        self.remove(&all)?;
        self.outcome()
    }

    fn outcome(self) -> Result<Outcome> {
        match (self.wrong, self.unsaid) {
            (true, _) => Ok(Outcome::Wrong),
            (false, Some(error)) => Err(error),
            (false, None) => Ok(Outcome::Fine),
        }
    }

    fn say(&mut self, text: &str) {
        self.unsaid = self.unsaid.take().or_else(|| out::line(text).err());
    }

    fn report(&mut self, text: &str, error: &anyhow::Error) {
        self.wrong = true;
        out::note(text);
        if let Some(hint) = super::hint(error) {
            out::note(&hint);
        }
    }

    fn one(&mut self, entry: &Entry) -> Result<Done> {
        let settings = entry.settings()?;
        let say = |text: &str| out::note(&format!("{}: {text}", entry.place()));
        let instances = self.root.instances()?;
        let Some(running) = instances.iter().find(|i| i.name == entry.name) else {
            create(self.root, &entry.name, &entry.tracker, &settings, &say)?;
            self.books.note(&entry.name, Some(entry))?;
            return Ok(Done::Started);
        };
        // A note with another tracker is stale: the instance has been replaced since.
        let before = self.books.of(&entry.name);
        let before = before.filter(|b| b.tracker == running.tracker).cloned();
        if before.is_none() && running.tracker != entry.tracker {
            bail!(
                "an instance named {} of the tracker {} already runs; `apply` did not start it",
                entry.name,
                running.tracker
            );
        }
        if before.as_ref().is_some_and(|before| before.same(entry))
            && running.tracker == entry.tracker
        {
            self.books.note(&entry.name, Some(entry))?;
            return Ok(match self.groups.missing(running) {
                Some(missing) if self.renew(running, missing, &settings, &say) => Done::Renewed,
                _ => Done::Nothing,
            });
        }
        // The kernel validates the line before anything changes: if it is invalid, the running
        // instance stays.
        let tried = try_out(self.root, &entry.tracker, &settings, &say)?;
        let done = match self.change(running, entry, before.as_ref(), &settings, &tried)? {
            None => Done::Changed,
            Some(obstacle) => {
                self.root.remove(&entry.name)?;
                let noted = self.books.note(&entry.name, None);
                let replaced = noted.and_then(|()| {
                    create(self.root, &entry.name, &entry.tracker, &settings, &|_| ())
                });
                replaced.map_err(|error| self.restore(running, before.as_ref(), error))?;
                Done::Restarted(obstacle)
            }
        };
        self.books.note(&entry.name, Some(entry))?;
        Ok(done)
    }

    /// Starts a removed instance again, with the parameters that it had, since its replacement failed with this error.
    /// Returns the error with what has become of the instance.
    fn restore(
        &mut self,
        old: &Instance,
        before: Option<&Entry>,
        error: anyhow::Error,
    ) -> anyhow::Error {
        match self.root.create(&old.name, &old.tracker, &old.settings()) {
            Ok(()) => {
                if let Err(error) = self.books.note(&old.name, before) {
                    out::note(&format!("{error:#}"));
                }
                error.context(
                    "the instance was started again as it was, with new counters and alerts, since its replacement \
                     failed",
                )
            }
            Err(again) => error.context(format!(
                "the instance was removed, and neither replaced nor started again ({again}); to start it again: \
                 echo '{old}' >{}/control",
                self.root.path().display()
            )),
        }
    }

    /// Looks up the path of the cgroup again, since the running instance is limited to a cgroup that does not exist.
    /// Returns whether it is limited to another cgroup now. A failure is only reported, since a unit may be stopped on
    /// purpose.
    fn renew(
        &self,
        running: &Instance,
        missing: u64,
        settings: &[Setting],
        say: &dyn Fn(&str),
    ) -> bool {
        let mut path = settings.to_vec();
        path.retain(|setting| setting.key == "cgroup" && setting.value.starts_with('/'));
        let renewed = match path.is_empty() {
            true => Err(anyhow!("the line has no path of a cgroup")),
            false => create(self.root, &running.name, &running.tracker, &path, &|_| ()),
        };
        if let Err(error) = &renewed {
            say(&format!("{}: {error:#}", about_missing(missing)));
        }
        renewed.is_ok()
    }

    /// Changes the running instance, or returns why the line needs a new instance.
    fn change(
        &self,
        running: &Instance,
        entry: &Entry,
        before: Option<&Entry>,
        settings: &[Setting],
        tried: &Instance,
    ) -> Result<Option<String>> {
        if running.tracker != entry.tracker {
            return Ok(Some("its tracker changed".into()));
        }
        let info = self.trackers.iter().find(|t| t.name == running.tracker);
        // The descendants of a process are followed from the creation of the instance on.
        let follows = running.params.text("tree").is_some_and(|tree| tree == "1");
        let fixed = |setting: &Setting| {
            let mut params = info.iter().flat_map(|info| &info.params);
            params.find(|p| p.name == setting.key && (p.is_fixed() || (follows && p.name == "pid")))
        };
        let has = |p: &ParamInfo, value: &str| match running.params.text(&p.name) {
            Some(now) => now == value,
            None => p.default == value,
        };
        let mut changed = settings.to_vec();
        changed.extend(self.defaults(before, settings, tried));
        // The kernel refuses these parameters with any value, even the one that the instance has.
        changed.retain(|s| !fixed(s).is_some_and(|p| has(p, &s.value)));
        match create(self.root, &entry.name, &entry.tracker, &changed, &|_| ()) {
            Ok(()) => Ok(None),
            Err(error) => {
                let fixed = changed.iter().filter_map(fixed);
                let names: Vec<_> = fixed.map(|p| p.name.as_str()).collect();
                if names.is_empty() {
                    return Err(error);
                }
                let names = names.join(", ");
                Ok(Some(format!("{names} can only be given at creation")))
            }
        }
    }

    /// Returns the defaults of the parameters that the earlier line set and this line does not. A default may depend
    /// on other parameters, so it is read from `tried`, an instance that was created from this line.
    fn defaults(
        &self,
        before: Option<&Entry>,
        settings: &[Setting],
        tried: &Instance,
    ) -> Vec<Setting> {
        let Some(before) = before else {
            return Vec::new();
        };
        let info = self.trackers.iter().find(|t| t.name == before.tracker);
        let params = info.into_iter().flat_map(|info| &info.params);
        let given = |key: &str, words: &[String]| {
            words.iter().any(|word| word.split('=').next() == Some(key))
        };
        let missing = params.filter(|p| {
            given(&p.name, &before.settings) && settings.iter().all(|s| s.key != p.name)
        });
        let default = |p: &ParamInfo| {
            // `tried` is disabled in any case.
            let value = tried.params.text(&p.name).filter(|_| p.name != "enabled");
            Setting {
                key: p.name.clone(),
                value: value.map_or_else(|| p.default.clone(), |value| value.into_owned()),
            }
        };
        missing.map(default).collect()
    }

    /// Returns the instances that earlier runs started from these paths, and that the files no longer list.
    fn gone(&self, config: &Config) -> Vec<String> {
        let ours = |e: &&Entry| self.paths.iter().any(|path| e.file.starts_with(path));
        let listed = |e: &&Entry| config.entries.iter().any(|other| other.name == e.name);
        let gone = self.books.entries.iter().filter(ours);
        gone.filter(|e| !listed(e))
            .map(|e| e.name.clone())
            .collect()
    }

    fn remove(&mut self, names: &[String]) -> Result<()> {
        let running = match self.root.is_loaded() {
            true => self.root.instances()?,
            false => Vec::new(),
        };
        for name in names {
            let tracker = self.books.of(name).map(|e| e.tracker.clone());
            // Another process may have removed the instance, and started another instance of that name.
            let ours = running
                .iter()
                .any(|i| i.name == *name && Some(&i.tracker) == tracker.as_ref());
            if ours {
                if let Err(error) = self.root.remove(name) {
                    let error = anyhow::Error::from(error);
                    self.report(&format!("{error:#}"), &error);
                    continue;
                }
                self.say(&format!("removed {name}"));
            }
            self.books.note(name, None)?;
        }
        Ok(())
    }
}

fn said(entry: &Entry, done: &Done) -> String {
    let (what, more) = match done {
        Done::Started => ("started", String::new()),
        Done::Changed => ("changed", String::new()),
        Done::Restarted(why) => (
            "restarted",
            format!(": its counters and alerts start again, because {why}"),
        ),
        Done::Renewed => ("renewed", ": its cgroup had been replaced".to_string()),
        Done::Nothing => ("unchanged", String::new()),
    };
    format!("{what} {} ({}){more}", entry.name, entry.place())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_that_cannot_be_replaced_is_started_again() {
        let dir = tempfile::tempdir().unwrap();
        let root = ProcRoot::new(dir.path().join("proc"));
        let books = Books::open(&dir.path().join("run")).unwrap();
        let mut apply = Apply::new(&root, books, &[]);
        let line = r"slow offcpu enabled=0 threshold=20000000 comm=a\x20b";
        let old = Instance::parse(line).unwrap();
        let before = Entry {
            file: "a.conf".into(),
            line: 1,
            name: "slow".into(),
            tracker: "offcpu".into(),
            settings: vec!["enabled=0".into()],
        };
        let mut restore = || {
            let error = apply.restore(&old, Some(&before), anyhow!("no memory"));
            let noted = apply.books.of("slow");
            let is_noted = noted.is_some_and(|noted| noted.same(&before));
            (format!("{error:#}"), is_noted)
        };
        // Without the module, nothing can be started.
        let (error, is_noted) = restore();
        let how = format!(
            "echo '{line}' >{}/control: no memory",
            root.path().display()
        );
        assert!(error.ends_with(&how) && !is_noted, "{error}");
        let control = root.path().join("control");
        fs::create_dir(root.path()).unwrap();
        fs::write(&control, "").unwrap();
        let (error, is_noted) = restore();
        assert!(
            error.starts_with("the instance was started again as it was"),
            "{error}"
        );
        assert!(error.ends_with(": no memory") && is_noted, "{error}");
        assert_eq!(fs::read_to_string(&control).unwrap(), format!("{line}\n"));
    }
}
