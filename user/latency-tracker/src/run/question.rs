// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The question of a run: a tracker or a recipe, with the settings of the user.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use lt_common::instance::{Refusal, nearest};
use lt_common::out::note;
use lt_common::pids::are_numbered_as_in_alerts;
use lt_proc::{Setting, TrackerInfo};

use crate::recipes::{Recipe, Recipes};

const PID: &str = "pid";
/// The setting that extends the filter by process to its descendants.
pub(crate) const TREE: &str = "tree";

/// Fails inside a PID namespace, where a process has another ID than in the kernel. `what` is the argument that stands
/// for the process.
pub(crate) fn refuse_pid_namespace(what: &str) -> Result<()> {
    if are_numbered_as_in_alerts(Path::new("/")) {
        return Ok(());
    }
    let text =
        format!("{what}: inside a PID namespace, a process has another ID than in the kernel");
    Err(Refusal::new(text, "run it outside the container").into())
}

/// The settings that limit an instance to the process of a command and its descendants. Fails inside a PID namespace.
pub(crate) fn descendants(pid: u32) -> Result<[Setting; 2]> {
    refuse_pid_namespace("COMMAND")?;
    let settings = [(PID, pid.to_string()), (TREE, "1".into())];
    Ok(settings.map(|(key, value)| Setting {
        key: key.into(),
        value,
    }))
}

/// A tracker with settings.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) recipe: Option<Recipe>,
    pub(crate) tracker: String,
    pub(crate) settings: Vec<Setting>,
}

impl Question {
    /// Finds the recipe or the tracker. The user's settings replace settings of a recipe.
    pub(crate) fn find(what: &str, own: &[Setting], trackers: &[TrackerInfo]) -> Result<Self> {
        let recipes = Recipes::read();
        recipes.unread().into_iter().for_each(note);
        let recipe = recipes.find(what).map_err(|fault| anyhow!("{fault}"))?;
        let Some(recipe) = recipe else {
            let known = || trackers.iter().map(|info| info.name.as_str());
            // Without the list, only the kernel can judge.
            if known().all(|name| name != what) && !trackers.is_empty() {
                bail!(unknown(what, known().chain(recipes.names())));
            }
            return Ok(Self {
                recipe: None,
                tracker: what.into(),
                settings: own.to_vec(),
            });
        };
        let is_replaced = |setting: &&Setting| own.iter().any(|own| own.key == setting.key);
        let mut settings = recipe.settings.clone();
        settings.retain(|setting| !is_replaced(&setting));
        settings.extend(own.iter().cloned());
        Ok(Self {
            recipe: Some(recipe.clone()),
            tracker: recipe.tracker.clone(),
            settings,
        })
    }

    /// Limits the question to a process and its descendants. Only a note is printed if the tracker has no such filter.
    pub(crate) fn limit_to(&mut self, pid: u32, trackers: &[TrackerInfo]) -> Result<()> {
        let given = self
            .settings
            .iter()
            .find(|setting| matches!(setting.key.as_str(), PID | TREE));
        if let Some(setting) = given {
            bail!("{setting}: the process is that of COMMAND; leave out one of them");
        }
        let info = trackers.iter().find(|info| info.name == self.tracker);
        if !info.is_some_and(|info| info.params.iter().any(|param| param.name == TREE)) {
            note(&format!(
                "{} cannot tell the command from other processes: everything counts while it runs",
                self.tracker
            ));
            return Ok(());
        }
        for setting in descendants(pid)? {
            self.default(&setting.key, &setting.value);
        }
        Ok(())
    }

    pub(crate) fn refuse_enabled(&self) -> Result<()> {
        match self
            .settings
            .iter()
            .find(|setting| setting.key == "enabled")
        {
            Some(setting) => bail!("{setting}: a run turns its instance on and off itself"),
            None => Ok(()),
        }
    }

    /// Sets a parameter, unless the user or the recipe has set it.
    pub(crate) fn default(&mut self, key: &str, value: &str) {
        if self.settings.iter().all(|setting| setting.key != key) {
            self.settings.push(Setting {
                key: key.into(),
                value: value.into(),
            });
        }
    }
}

fn unknown<'a>(what: &str, known: impl Iterator<Item = &'a str>) -> Refusal {
    let near = match nearest(what, known).as_slice() {
        [] => String::new(),
        near => format!("; did you mean {}?", near.join(" or ")),
    };
    Refusal::new(
        format!("unknown tracker or recipe {what:?}{near}"),
        "`latency-tracker recipes` lists the recipes, `latency-tracker list --trackers` the trackers",
    )
}
