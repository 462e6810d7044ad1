// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The instance that a recording waits for: created for the run, or an existing one, which stays.

use std::fs;

use anyhow::{Result, bail};
use lt_proc::{Instance, ProcRoot, Setting, parse_duration};

use super::args::RecordArgs;
use super::leftovers::Note;
use crate::out::{note, plural};

/// Detects early what would otherwise only fail later.
pub(crate) fn check(root: &ProcRoot, args: &RecordArgs) -> Result<()> {
    let Some(tracker) = &args.tracker else {
        root.instance(&args.name)?;
        return Ok(());
    };
    let existing = root.instances()?.into_iter().find(|i| i.name == args.name);
    match existing
        .as_ref()
        .and_then(|i| difference(i, tracker, &args.settings))
    {
        Some(other) => bail!(
            "{} exists with {other}: take another name, or leave out the tracker to record it as it is",
            args.name
        ),
        None => Ok(()),
    }
}

/// The tracker of the instance, which may not be there yet.
pub(crate) fn tracker(root: &ProcRoot, args: &RecordArgs) -> Result<String> {
    match &args.tracker {
        Some(tracker) => Ok(tracker.clone()),
        None => Ok(root.instance(&args.name)?.tracker),
    }
}

/// An instance that is being waited for; removed when dropped, if it was created here.
#[derive(Debug)]
pub(crate) struct Armed<'a> {
    root: &'a ProcRoot,
    instance: Instance,
    ours: bool,
}

impl<'a> Armed<'a> {
    /// Creates the instance, or takes the one there is and sets its old alerts aside.
    pub(crate) fn new(root: &'a ProcRoot, args: &RecordArgs, left: &mut Note) -> Result<Self> {
        let existing = root.instances()?.into_iter().find(|i| i.name == args.name);
        if let Some(instance) = existing {
            let file = root.open_stream(Some(&args.name), "wakeup")?;
            let old = super::read_wakeup(&file)?;
            if !old.alerts.is_empty() {
                note(&format!(
                    "set aside from before the recording: {}",
                    plural(old.alerts.len(), "alert")
                ));
            }
            return Ok(Self {
                root,
                instance,
                ours: false,
            });
        }
        let tracker = args.tracker.as_deref().unwrap_or_default();
        crate::instance::create(root, &args.name, tracker, &args.settings)?;
        let armed = Self {
            root,
            instance: root.instance(&args.name)?,
            ours: true,
        };
        left.update(|owned| owned.instance = Some((args.name.clone(), armed.line())));
        Ok(armed)
    }

    /// As `control` shows it.
    pub(crate) fn line(&self) -> String {
        self.instance.to_string()
    }

    pub(crate) fn tracker(&self) -> &str {
        &self.instance.tracker
    }
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        let name = &self.instance.name;
        if self.ours
            && self.root.instance(name).is_ok()
            && let Err(error) = self.root.remove(name)
        {
            let error = anyhow::Error::from(error);
            note(&format!("instance {name} is left behind: {error:#}"));
        }
    }
}

/// The requested settings that an existing instance does not have.
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

/// Whether the kernel's canonical value is the one that the user wrote.
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
