// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The instance that a recording waits for: created for the run, or an existing one, which is kept.

use std::cell::Cell;

use anyhow::{Result, bail};
use lt_common::out::note;
use lt_proc::{Instance, ProcRoot, Setting};

use super::args::RecordArgs;
use super::leftovers::Note;
use super::same::difference;
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
    /// When the instance was created: another instance may have its name by now.
    created: Option<u64>,
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
        let name = args.name();
        let existing = root.instances()?.into_iter().find(|i| i.name == name);
        if let Some(instance) = existing {
            return Ok(Self {
                root,
                instance,
                created: None,
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
        left.requests(name, Instance::request(name, tracker, &settings));
        lt_common::instance::create(root, name, tracker, &settings, &note)?;
        let (created, instance) = root.of_one(name, || root.instance(name))?;
        left.has(&instance, created);
        Ok(Self {
            root,
            instance,
            created,
            ours: Cell::new(true),
            enable,
        })
    }

    /// Opens the stream of new alerts, and enables the instance if it was created disabled here.
    pub(crate) fn arm(&mut self) -> Result<Stream> {
        let name = self.instance.name.clone();
        let stream = Stream::open(self.root, &name)?;
        if self.enable {
            self.root
                .create(&name, &self.instance.tracker, &[enabled(true)])?;
            self.instance = self.root.instance(&name)?;
        }
        Ok(stream)
    }

    /// The number of the cgroup to which the instance is limited now; `None` if the instance is gone or has no such
    /// limit.
    pub(crate) fn cgroup(&self) -> Option<u64> {
        let now = self.root.instance(&self.instance.name).ok()?;
        now.params.number(CGROUP)
    }

    /// Limits the instance to the cgroup with this number.
    pub(crate) fn limit_to(&self, cgroup: u64, left: &mut Note) -> Result<()> {
        let name = &self.instance.name;
        self.root.set(name, CGROUP, &cgroup.to_string())?;
        if self.ours.get() {
            left.has(&self.root.instance(name)?, self.created);
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

    /// Notes that another program has removed the instance: an instance that has its name by now is not ours.
    pub(crate) fn set_removed(&self) {
        self.ours.set(false);
    }
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        let name = &self.instance.name;
        let now = || self.root.of_one(name, || self.root.instance(name));
        if self.ours.get()
            && now().is_ok_and(|(created, _)| created == self.created)
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
