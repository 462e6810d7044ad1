// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The files of the tree and their contents. Only `hwnoise` is opened elsewhere, in its own module.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::{
    Histogram, Instance, Labels, Measure, ParseError, Pending, ProcError, Profile, Setting, Span,
    Stats, StepTime, TrackerInfo,
};

const LABELS: &str = "labels";
const STEPS: &str = "steps";
const MEASURE: &str = "measure";

/// Directory of the module's files.
pub const DEFAULT_ROOT: &str = "/proc/latency_tracker";

/// `/proc/latency_tracker`, or a directory with the same structure.
#[derive(Debug, Clone)]
pub struct ProcRoot {
    path: PathBuf,
}

impl ProcRoot {
    /// Returns the tree at `path`, which need not exist.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the module is loaded. A tree that this user may not read counts as loaded.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        match fs::metadata(self.path.join("control")) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        }
    }

    /// Returns the line of `version`.
    ///
    /// # Errors
    /// When the module is not loaded or the file cannot be read.
    pub fn version(&self) -> Result<String, ProcError> {
        Ok(self.read(Path::new("version"))?.trim().to_string())
    }

    /// Returns the trackers.
    ///
    /// # Errors
    /// See [`ProcRoot::version`]; also when the text is invalid.
    pub fn trackers(&self) -> Result<Vec<TrackerInfo>, ProcError> {
        self.parse(Path::new("trackers"), TrackerInfo::parse_all)
    }

    /// Returns the instances.
    ///
    /// # Errors
    /// See [`ProcRoot::trackers`].
    pub fn instances(&self) -> Result<Vec<Instance>, ProcError> {
        self.parse(Path::new("control"), Instance::parse_all)
    }

    /// Returns the instance named `name`.
    ///
    /// # Errors
    /// See [`ProcRoot::trackers`]; [`ProcError::NoInstance`] if it does not exist.
    pub fn instance(&self, name: &str) -> Result<Instance, ProcError> {
        let found = self.instances()?.into_iter().find(|i| i.name == name);
        found.ok_or_else(|| ProcError::NoInstance(name.to_string()))
    }

    /// Returns the text of a file of an instance, such as `histogram`.
    ///
    /// # Errors
    /// See [`ProcRoot::instance`]; [`ProcError::NoInstance`] also if the instance has no such file.
    pub fn text(&self, name: &str, file: &str) -> Result<String, ProcError> {
        self.read(&Path::new(name).join(file))
    }

    /// Calls `read` to read an instance, and returns the result with the time at which the instance was created
    /// (`CLOCK_MONOTONIC`, ns). If another instance of the same name replaced the instance meanwhile, calls `read`
    /// again. The result is therefore of one instance, and results with equal times are of the same instance. The time
    /// is `None` if the module is too old to show it; then nothing detects a replacement.
    ///
    /// # Errors
    /// The errors of `read`; also when the time is invalid.
    pub fn of_one<T, E: From<ProcError>>(
        &self,
        name: &str,
        read: impl Fn() -> Result<T, E>,
    ) -> Result<(Option<u64>, T), E> {
        let mut created = self.created(name)?;
        loop {
            let value = read()?;
            let now = self.created(name)?;
            if now == created {
                return Ok((created, value));
            }
            created = now;
        }
    }

    fn created(&self, name: &str) -> Result<Option<u64>, ProcError> {
        let parse = |text: &str| {
            let time = text.trim().parse::<u64>();
            time.map_err(|_| ParseError::new(text.trim(), "a time in ns"))
        };
        match self.parse(&Path::new(name).join("created"), parse) {
            // An older module, or no such instance. If there is no instance, `read` fails.
            Err(ProcError::NoInstance(_)) => Ok(None),
            created => created.map(Some),
        }
    }

    /// Returns the counters of an instance.
    ///
    /// # Errors
    /// See [`ProcRoot::instance`].
    pub fn stats(&self, name: &str) -> Result<Stats, ProcError> {
        self.parse(&Path::new(name).join("stats"), Stats::parse)
    }

    /// Returns the delays of an instance.
    ///
    /// # Errors
    /// See [`ProcRoot::instance`].
    pub fn histogram(&self, name: &str) -> Result<Histogram, ProcError> {
        self.parse(&Path::new(name).join("histogram"), Histogram::parse)
    }

    /// Returns the delays of an instance, and the result of `opened`, which is called between the open of the file and
    /// its read. The delays include the operations that ended before this call, such as the open, but not the read.
    ///
    /// # Errors
    /// See [`ProcRoot::instance`].
    pub fn histogram_at<T>(
        &self,
        name: &str,
        opened: impl FnOnce() -> T,
    ) -> Result<(Histogram, T), ProcError> {
        let relative = Path::new(name).join("histogram");
        let mut bytes = Vec::new();
        let read = File::open(self.path.join(&relative)).and_then(|file| {
            let opened = opened();
            // Without a limit, the size of the file would be looked up first.
            file.take(u64::MAX).read_to_end(&mut bytes)?;
            Ok(opened)
        });
        let opened = read.map_err(|e| self.explain(&relative, e))?;
        let histogram = Histogram::parse(&String::from_utf8_lossy(&bytes));
        let histogram = histogram.map_err(|source| ProcError::Parse {
            path: self.path.join(&relative),
            source,
        })?;
        Ok((histogram, opened))
    }

    /// Returns the delays of an instance by label.
    ///
    /// # Errors
    /// See [`ProcRoot::instance`]; [`ProcError::NoInstance`] also if it does not count by label.
    pub fn labels(&self, name: &str) -> Result<Labels, ProcError> {
        self.parse(&Path::new(name).join(LABELS), Labels::parse)
    }

    /// Whether an instance counts delays by label.
    #[must_use]
    pub fn has_labels(&self, name: &str) -> bool {
        self.path.join(name).join(LABELS).exists()
    }

    /// Returns the operations in flight in an instance.
    ///
    /// # Errors
    /// See [`ProcRoot::instance`].
    pub fn pending(&self, name: &str) -> Result<Vec<Pending>, ProcError> {
        self.parse(&Path::new(name).join("pending"), Pending::parse_all)
    }

    /// Returns the oldest operations in flight in an instance, whose lines are in the first `bytes` of the file. The
    /// cost is bounded, however many operations are in flight.
    ///
    /// # Errors
    /// See [`ProcRoot::instance`].
    pub fn oldest(&self, name: &str, bytes: u64) -> Result<Vec<Pending>, ProcError> {
        let relative = Path::new(name).join("pending");
        let mut head = Vec::new();
        let read = File::open(self.path.join(&relative))
            .and_then(|file| file.take(bytes).read_to_end(&mut head));
        read.map_err(|e| self.explain(&relative, e))?;
        // The last line may be cut.
        let whole = head
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        let text = String::from_utf8_lossy(&head[..whole]);
        Pending::parse_all(&text).map_err(|source| ProcError::Parse {
            path: self.path.join(&relative),
            source,
        })
    }

    /// Returns how long operations of each class took, for an instance that keeps a profile.
    ///
    /// # Errors
    /// See [`ProcRoot::instance`]; [`ProcError::NoInstance`] also if its tracker keeps no profile.
    pub fn profile(&self, name: &str, span: Span) -> Result<Profile, ProcError> {
        self.parse(&Path::new(name).join(span.file()), Profile::parse)
    }

    /// Whether the tracker of an instance keeps a profile.
    #[must_use]
    pub fn has_profile(&self, name: &str) -> bool {
        self.path.join(name).join(Span::SinceReset.file()).exists()
    }

    /// Returns how long the steps of wake chains took, for an instance that counts them.
    ///
    /// # Errors
    /// See [`ProcRoot::instance`]; [`ProcError::NoInstance`] also if its tracker has no steps.
    pub fn steps(&self, name: &str) -> Result<Vec<StepTime>, ProcError> {
        self.parse(&Path::new(name).join(STEPS), StepTime::parse_all)
    }

    /// Returns the cost of the probes; `None` if the module does not measure it.
    ///
    /// # Errors
    /// See [`ProcRoot::trackers`].
    pub fn measure(&self) -> Result<Option<Measure>, ProcError> {
        match self.parse(Path::new(MEASURE), Measure::parse) {
            Err(ProcError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            measure => measure.map(Some),
        }
    }

    /// Whether the tracker of an instance has steps.
    #[must_use]
    pub fn has_steps(&self, name: &str) -> bool {
        self.path.join(name).join(STEPS).exists()
    }

    /// Ends the profile of an instance, and starts the next; no operation is lost in between.
    ///
    /// # Errors
    /// See [`ProcRoot::profile`].
    pub fn reset_profile(&self, name: &str) -> Result<(), ProcError> {
        self.write(&Path::new(name).join(Span::SinceReset.file()), "reset")
    }

    /// Changes a parameter of an instance. Unlike [`ProcRoot::create`], this never creates an instance.
    ///
    /// # Errors
    /// See [`ProcRoot::instance`]; also when the kernel refuses the value.
    pub fn set(&self, name: &str, key: &str, value: &str) -> Result<(), ProcError> {
        self.write(&Path::new(name).join(key), value)
    }

    /// Creates or changes an instance.
    ///
    /// # Errors
    /// See [`ProcRoot::version`]; [`ProcError::Refused`] with the kernel's errno if it refuses the line.
    pub fn create(&self, name: &str, tracker: &str, settings: &[Setting]) -> Result<(), ProcError> {
        self.control(&Instance::request(name, tracker, settings), tracker)
    }

    /// Removes an instance.
    ///
    /// # Errors
    /// See [`ProcRoot::version`]; [`ProcError::Refused`] with the kernel's errno if it refuses the line.
    pub fn remove(&self, name: &str) -> Result<(), ProcError> {
        self.control(&format!("-{name}"), "")
    }

    /// Opens `alerts` or `wakeup`, of one instance or of all, for reading with poll(2).
    ///
    /// # Errors
    /// See [`ProcRoot::instance`].
    pub fn open_stream(&self, name: Option<&str>, file: &str) -> Result<File, ProcError> {
        let relative = Path::new(name.unwrap_or("")).join(file);
        let path = self.path.join(&relative);
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        options.open(&path).map_err(|e| self.explain(&relative, e))
    }

    /// Opens `alerts`, of one instance or of all, at the next alert or at the oldest recorded one.
    ///
    /// # Errors
    /// See [`ProcRoot::instance`].
    pub fn open_alerts(&self, name: Option<&str>, from_start: bool) -> Result<File, ProcError> {
        let mut file = self.open_stream(name, "alerts")?;
        if from_start {
            let sought = file.seek(SeekFrom::Start(0));
            sought.map_err(|e| self.explain(&Path::new(name.unwrap_or("")).join("alerts"), e))?;
        }
        Ok(file)
    }

    /// Writes a line with one write(2), whose result shows whether the kernel accepted it.
    fn control(&self, line: &str, tracker: &str) -> Result<(), ProcError> {
        let relative = Path::new("control");
        let opened = OpenOptions::new()
            .write(true)
            .open(self.path.join(relative));
        let mut file = opened.map_err(|e| self.explain(relative, e))?;
        file.write_all(format!("{line}\n").as_bytes())
            .map_err(|source| ProcError::Refused {
                line: line.to_string(),
                tracker: tracker.to_string(),
                source,
            })
    }

    /// Writes a line to a file of an instance.
    fn write(&self, relative: &Path, line: &str) -> Result<(), ProcError> {
        let opened = OpenOptions::new()
            .write(true)
            .open(self.path.join(relative));
        let mut file = opened.map_err(|e| self.explain(relative, e))?;
        let written = file.write_all(format!("{line}\n").as_bytes());
        written.map_err(|e| self.explain(relative, e))
    }

    fn read(&self, relative: &Path) -> Result<String, ProcError> {
        let bytes = fs::read(self.path.join(relative)).map_err(|e| self.explain(relative, e))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn parse<T>(
        &self,
        relative: &Path,
        parse: impl Fn(&str) -> Result<T, ParseError>,
    ) -> Result<T, ProcError> {
        parse(&self.read(relative)?).map_err(|source| ProcError::Parse {
            path: self.path.join(relative),
            source,
        })
    }

    /// Distinguishes a missing module, a missing instance and a missing permission. A missing file
    /// of an instance counts as a missing instance.
    pub(crate) fn explain(&self, relative: &Path, source: io::Error) -> ProcError {
        if source.kind() == io::ErrorKind::PermissionDenied {
            return ProcError::Denied(self.path.join(relative));
        }
        let gone = matches!(source.kind(), io::ErrorKind::NotFound);
        if gone && !self.is_loaded() {
            return ProcError::NotLoaded(self.path.clone());
        }
        match relative.parent().and_then(Path::to_str) {
            Some(name) if gone && !name.is_empty() => ProcError::NoInstance(name.to_string()),
            _ => ProcError::Io {
                path: self.path.join(relative),
                source,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_module_is_not_a_missing_instance() {
        let dir = std::env::temp_dir().join(format!("lt-proc-root-{}", std::process::id()));
        let root = ProcRoot::new(&dir);
        assert!(matches!(root.stats("a"), Err(ProcError::NotLoaded(_))));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("control"), "a block threshold=1\n").unwrap();
        assert!(matches!(root.stats("a"), Err(ProcError::NoInstance(n)) if n == "a"));
        assert_eq!(root.instance("a").unwrap().tracker, "block");
        assert!(matches!(root.instance("b"), Err(ProcError::NoInstance(_))));
        root.remove("a").unwrap();
        assert_eq!(
            fs::read_to_string(dir.join("control"))
                .unwrap()
                .lines()
                .next(),
            Some("-a")
        );
        // A change creates no instance.
        assert!(matches!(root.set("a", "cgroup", "7"), Err(ProcError::NoInstance(n)) if n == "a"));
        fs::create_dir(dir.join("a")).unwrap();
        fs::write(dir.join("a/cgroup"), "all\n").unwrap();
        root.set("a", "cgroup", "4711").unwrap();
        assert_eq!(root.text("a", "cgroup").unwrap(), "4711\n");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_reading_is_of_one_instance() {
        let dir = std::env::temp_dir().join(format!("lt-proc-one-{}", std::process::id()));
        fs::create_dir_all(dir.join("a")).unwrap();
        let write = |file: &str, text: &str| fs::write(dir.join(file), text).unwrap();
        write("control", "a block threshold=1\n");
        write("a/stats", "alerts 7\n");
        let root = ProcRoot::new(&dir);
        let read = |root: &ProcRoot| {
            let (created, stats) = root.of_one("a", || root.stats("a"))?;
            Ok::<_, ProcError>((created, stats.count("alerts")))
        };
        assert_eq!(read(&root).unwrap(), (None, 7));
        write("a/created", "5\n");
        assert_eq!(read(&root).unwrap(), (Some(5), 7));
        // Another instance replaces it during the first reading.
        let stats = || {
            let stats = root.stats("a");
            write("a/created", "9\n");
            write("a/stats", "alerts 8\n");
            stats
        };
        let (created, stats) = root.of_one("a", stats).unwrap();
        assert_eq!((created, stats.count("alerts")), (Some(9), 8));
        write("a/created", "now\n");
        assert!(matches!(read(&root), Err(ProcError::Parse { .. })));
        fs::remove_dir_all(dir.join("a")).unwrap();
        assert!(matches!(read(&root), Err(ProcError::NoInstance(_))));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn the_oldest_operations_are_whole_lines() {
        let dir = std::env::temp_dir().join(format!("lt-proc-oldest-{}", std::process::id()));
        fs::create_dir_all(dir.join("a")).unwrap();
        let line = "age=9 start=1 pid=1 tid=1 comm=\"x\"\n";
        fs::write(dir.join("control"), "a block threshold=1\n").unwrap();
        fs::write(dir.join("a/pending"), line.repeat(3)).unwrap();
        let root = ProcRoot::new(&dir);
        let count = |bytes: usize| root.oldest("a", bytes as u64).unwrap().len();
        assert_eq!(count(2 * line.len() + 5), 2);
        assert_eq!(count(line.len() - 1), 0);
        assert_eq!(count(4096), 3);
        assert!(matches!(root.oldest("b", 1), Err(ProcError::NoInstance(_))));
        fs::remove_dir_all(&dir).unwrap();
    }
}
