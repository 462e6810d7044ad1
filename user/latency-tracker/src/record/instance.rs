// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The instance that a recording waits for: created for the run, or an existing one, which is kept.

use std::cell::Cell;
use std::fs;

use anyhow::{Result, bail};
use lt_common::out::note;
use lt_proc::{Instance, ProcRoot, Setting, parse_duration};

use super::args::RecordArgs;
use super::leftovers::Note;
use super::stream::Stream;

/// Refuses invalid requests before anything is started: a missing instance, an existing instance with other settings, a
/// tracker or parameter that the module lacks, and a new instance if this user may not create one. The kernel validates
/// the values, in [`Armed::prepare`].
pub(crate) fn check(root: &ProcRoot, args: &RecordArgs) -> Result<()> {
    let Some(tracker) = &args.tracker else {
        root.instance(args.name())?;
        return Ok(());
    };
    lt_common::instance::check(root, tracker, &args.settings)?;
    let existing = root
        .instances()?
        .into_iter()
        .find(|i| i.name == args.name());
    match existing
        .as_ref()
        .and_then(|i| difference(i, tracker, &args.settings))
    {
        Some(other) => bail!(
            "{} exists with {other}: choose another name, or omit the tracker to record the existing instance",
            args.name()
        ),
        None if existing.is_none() && !may_create(root) => bail!(
            "{0}: this user cannot create an instance: run `latency-tracker start {0} {1}` with these parameters as \
             root, and then omit the tracker here",
            args.name(),
            tracker
        ),
        None => Ok(()),
    }
}

/// Whether this user may write to `control`. The kernel makes the final decision.
fn may_create(root: &ProcRoot) -> bool {
    let control = root.path().join("control");
    nix::unistd::access(&control, nix::unistd::AccessFlags::W_OK).is_ok()
}

/// The tracker of the instance, which may not exist yet.
pub(crate) fn tracker(root: &ProcRoot, args: &RecordArgs) -> Result<String> {
    match &args.tracker {
        Some(tracker) => Ok(tracker.clone()),
        None => Ok(root.instance(args.name())?.tracker),
    }
}

/// The instance of a run; removed when dropped, if it was created here.
#[derive(Debug)]
pub(crate) struct Armed<'a> {
    root: &'a ProcRoot,
    instance: Instance,
    ours: Cell<bool>,
    /// Whether to enable the instance when armed: it was created disabled, because the user did not set `enabled`.
    enable: bool,
}

const ENABLED: &str = "enabled";
const CGROUP: &str = "cgroup";

impl<'a> Armed<'a> {
    /// Uses the existing instance, or creates it, disabled unless the user set `enabled`. At creation, the kernel
    /// checks every value.
    pub(crate) fn prepare(root: &'a ProcRoot, args: &RecordArgs, left: &mut Note) -> Result<Self> {
        let existing = root
            .instances()?
            .into_iter()
            .find(|i| i.name == args.name());
        if let Some(instance) = existing {
            return Ok(Self {
                root,
                instance,
                ours: Cell::new(false),
                enable: false,
            });
        }
        let tracker = args.tracker.as_deref().unwrap_or_default();
        let enable = !args.settings.iter().any(|setting| setting.key == ENABLED);
        let mut settings = args.settings.clone();
        if enable {
            settings.push(enabled(false));
        }
        lt_common::instance::create(root, args.name(), tracker, &settings, &lt_common::out::note)?;
        let armed = Self {
            root,
            instance: root.instance(args.name())?,
            ours: Cell::new(true),
            enable,
        };
        armed.note(left);
        Ok(armed)
    }

    /// Opens the stream of new alerts, and enables the instance if it was created disabled here.
    pub(crate) fn arm(&mut self, left: &mut Note) -> Result<Stream> {
        let name = self.instance.name.clone();
        let stream = Stream::open(self.root, &name)?;
        if self.enable {
            self.root
                .create(&name, &self.instance.tracker, &[enabled(true)])?;
            self.instance = self.root.instance(&name)?;
            self.note(left);
        }
        Ok(stream)
    }

    fn note(&self, left: &mut Note) {
        let (name, line) = (self.instance.name.clone(), self.line());
        left.update(|owned| drop(owned.instances.insert(name, line)));
    }

    /// The number of the cgroup to which the instance is limited now, if it still exists and is limited to one.
    pub(crate) fn cgroup(&self) -> Option<u64> {
        let now = self.root.instance(&self.instance.name).ok()?;
        now.params.number(CGROUP)
    }

    /// Limits the instance to the cgroup with this number.
    pub(crate) fn limit_to(&self, cgroup: u64, left: &mut Note) -> Result<()> {
        let (name, tracker) = (&self.instance.name, &self.instance.tracker);
        let setting = Setting {
            key: CGROUP.into(),
            value: cgroup.to_string(),
        };
        self.root.create(name, tracker, &[setting])?;
        if self.ours.get() {
            let line = self.root.instance(name)?.to_string();
            left.update(|owned| drop(owned.instances.insert(name.clone(), line)));
        }
        Ok(())
    }

    /// The instance's line in `control`.
    pub(crate) fn line(&self) -> String {
        self.instance.to_string()
    }

    pub(crate) fn tracker(&self) -> &str {
        &self.instance.tracker
    }

    /// Notes that another program has removed the instance: one that has its name by now is not ours.
    pub(crate) fn set_removed(&self) {
        self.ours.set(false);
    }
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        let name = &self.instance.name;
        if self.ours.get()
            && self.root.instance(name).is_ok()
            && let Err(error) = self.root.remove(name)
        {
            let error = anyhow::Error::from(error);
            note(&format!("instance {name} is left behind: {error:#}"));
        }
    }
}

fn enabled(on: bool) -> Setting {
    Setting {
        key: ENABLED.into(),
        value: u8::from(on).to_string(),
    }
}

/// The tracker, or the first parameter, in which an existing instance differs from the request.
fn difference(instance: &Instance, tracker: &str, settings: &[Setting]) -> Option<String> {
    if instance.tracker != tracker {
        return Some(format!("tracker {}", instance.tracker));
    }
    let differs = |wish: &&Setting| {
        let is = instance.params.text(&wish.key);
        is.as_ref()
            .is_none_or(|is| !same(&wish.key, is, &wish.value))
    };
    let wish = settings.iter().find(differs)?;
    let is = instance.params.text(&wish.key).unwrap_or("nothing".into());
    Some(format!("{}={is}", wish.key))
}

/// Whether the kernel's canonical value equals the user's.
fn same(key: &str, is: &str, wish: &str) -> bool {
    let (time, wished) = (parse_duration(is), parse_duration(wish));
    let disk = || {
        let name = wish.trim_start_matches("/dev/");
        let number = fs::read_to_string(format!("/sys/class/block/{name}/dev"));
        number.is_ok_and(|n| n.trim() == is)
    };
    is == wish
        || (time.is_ok() && time == wished)
        || (key == "dev" && !wish.contains('.') && disk())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_instance_may_be_reused_and_no_other() {
        let instance = Instance::parse("a block threshold=10000000 from=issue dev=all").unwrap();
        let settings = |words: &[&str]| {
            words
                .iter()
                .map(|w| w.parse().unwrap())
                .collect::<Vec<Setting>>()
        };
        assert_eq!(
            difference(
                &instance,
                "block",
                &settings(&["threshold=10ms", "dev=all"])
            ),
            None
        );
        assert_eq!(difference(&instance, "block", &[]), None);
        assert_eq!(
            difference(&instance, "other", &[]).unwrap(),
            "tracker block"
        );
        assert_eq!(
            difference(&instance, "block", &settings(&["threshold=20ms"])).unwrap(),
            "threshold=10000000"
        );
        assert_eq!(
            difference(&instance, "block", &settings(&["shade=1"])).unwrap(),
            "shade=nothing"
        );
    }
}
