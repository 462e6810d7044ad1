// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Recipes: named questions for `run`, each with the line that answers it, the normal result, and the next step.
//!
//! The recipes in scripts/recipes are part of the program. Users' own recipes are in /etc/latency-tracker/recipes;
//! each replaces a built-in recipe of the same name.

mod parse;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lt_common::module::is_built_in;
use lt_proc::{Setting, valid_name};
use serde::Serialize;

use crate::config::DIRECTORY;

/// The directory of the users' own recipes, below the configuration directory.
const OWN: &str = "recipes";
const EXTENSION: &str = "recipe";

/// The files of scripts/recipes, with their names.
macro_rules! built_in {
    ($($name:literal)*) => {
        const BUILT_IN: &[(&str, &str)] = &[$((
            $name,
            include_str!(concat!("../../../scripts/recipes/", $name, ".recipe")),
        )),*];
    };
}

built_in! {
    "btrfs-commit" "compaction" "cpu-throttle" "direct-reclaim" "dirty-throttling" "disk" "disk-flush"
    "disk-queue" "dns" "exec" "ext4-fsync" "fork" "fsync" "futex" "hard-irq" "ipi-wait" "irq-storm"
    "irq-to-task" "jbd2-commit" "jbd2-wait" "ksoftirqd" "lock-contention" "memcg-reclaim" "memory-high" "memory-map"
    "mmap-lock" "module-init" "module-load" "net-receive" "nfs-request" "nvme" "off-cpu" "oom-kill" "open"
    "page-fault" "page-fault-disk" "rcu-grace-period" "rcu-wait" "read" "run-queue" "scsi-command"
    "softirq-storm" "stat" "suspend" "suspend-devices" "swap-in" "tcp-connect" "tcp-first-byte" "timer-lateness"
    "wakeup-latency" "workqueue-run" "workqueue-stall" "write" "writeback-throttling" "xfs-fsync"
}

/// An optional feature of the kernel that a recipe needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Need {
    /// A module that must be loaded.
    Module(String),
    /// An option of the kernel's configuration.
    Option(String),
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Recipe {
    pub(crate) name: String,
    /// The file; `None` for a built-in recipe.
    pub(crate) file: Option<PathBuf>,
    pub(crate) question: String,
    pub(crate) tracker: String,
    #[serde(serialize_with = "as_words")]
    pub(crate) settings: Vec<Setting>,
    /// The normal result.
    pub(crate) normal: String,
    /// The next step if the result is not normal.
    pub(crate) next: String,
    pub(crate) needs: Option<Need>,
}

fn as_words<S: serde::Serializer>(settings: &[Setting], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(settings.iter().map(ToString::to_string))
}

impl Recipe {
    /// The tracker and its parameters, as for `run`.
    pub(crate) fn line(&self) -> String {
        let settings = self.settings.iter().map(ToString::to_string);
        let words: Vec<String> = std::iter::once(self.tracker.clone())
            .chain(settings)
            .collect();
        words.join(" ")
    }

    /// Whether the name, the line, or one of the sentences contains this word, in upper or lower case.
    pub(crate) fn is_about(&self, word: &str) -> bool {
        let texts = [&self.name, &self.question, &self.normal, &self.next];
        let word = word.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&word);
        has(&self.line()) || texts.iter().any(|text| has(text))
    }

    /// If a module is missing, returns that as a possible reason why the kernel refused the recipe.
    pub(crate) fn lacks(&self) -> Option<String> {
        let Some(Need::Module(module)) = &self.needs else {
            return None;
        };
        let loaded = fs::read_to_string("/proc/modules").unwrap_or_default();
        let is_loaded = loaded
            .lines()
            .any(|line| line.split(' ').next() == Some(module));
        // A module that is built in and has no parameters has no directory.
        let is_there = || Path::new("/sys/module").join(module).is_dir() || is_built_in(module);
        (!is_loaded && !is_there())
            .then(|| format!("the module {module} is not loaded; `modprobe {module}` loads it"))
    }
}

/// All recipes.
#[derive(Debug, Default)]
pub(crate) struct Recipes {
    /// Sorted by name.
    pub(crate) all: Vec<Recipe>,
    /// Errors in users' files: name of the recipe, and text with the file, and the line if there is one. The name is
    /// empty if the directory cannot be read.
    pub(crate) faults: Vec<(String, String)>,
}

impl Recipes {
    /// Reads the built-in recipes and the users' own.
    pub(crate) fn read() -> Self {
        // For tests: another directory.
        let own = std::env::var_os("LATENCY_TRACKER_RECIPES").map(PathBuf::from);
        Self::with(&own.unwrap_or_else(|| Path::new(DIRECTORY).join(OWN)))
    }

    fn with(own: &Path) -> Self {
        let mut recipes = Self::default();
        for (name, text) in BUILT_IN {
            recipes.add(name, None, text);
        }
        match files(own) {
            Ok(files) => files.iter().for_each(|file| recipes.add_file(file)),
            Err(error) => {
                let fault = format!(
                    "cannot read {}: {error}; its recipes are left out",
                    own.display()
                );
                recipes.faults.push((String::new(), fault));
            }
        }
        recipes.all.sort_by(|a, b| a.name.cmp(&b.name));
        recipes
    }

    fn add_file(&mut self, file: &Path) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        match fs::read(file) {
            Ok(text) => self.add(&name, Some(file), &String::from_utf8_lossy(&text)),
            Err(error) => {
                let fault = format!("cannot read {}: {error}", file.display());
                self.faults.push((name.into(), fault));
            }
        }
    }

    fn add(&mut self, name: &str, file: Option<&Path>, text: &str) {
        // A built-in recipe is dropped even if the user's recipe has an error: the user meant to replace it.
        self.all.retain(|recipe| recipe.name != name);
        let place = file.map_or_else(
            || format!("{name}.{EXTENSION}"),
            |f| f.display().to_string(),
        );
        if !valid_name(name) {
            let rule = "the name of a recipe has up to 31 letters, digits, _ or -, starts with a \
                        letter or _, and is not the name of a file of /proc/latency_tracker";
            return self.faults.push((name.into(), format!("{place}: {rule}")));
        }
        match parse::recipe(name, file, text) {
            Ok(recipe) => self.all.push(recipe),
            Err((line, what)) => self
                .faults
                .push((name.into(), format!("{place}:{line}: {what}"))),
        }
    }

    /// The recipe with this name, or the error in its file.
    pub(crate) fn find(&self, name: &str) -> Result<Option<&Recipe>, &str> {
        let is_it = |(of, _): &&(String, String)| of == name;
        match self.faults.iter().find(is_it) {
            Some((_, fault)) => Err(fault),
            None => Ok(self.all.iter().find(|recipe| recipe.name == name)),
        }
    }

    /// The error if the users' recipes cannot be read: any of them may replace a built-in recipe.
    pub(crate) fn unread(&self) -> Option<&str> {
        let fault = self.faults.iter().find(|(name, _)| name.is_empty());
        fault.map(|(_, text)| text.as_str())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|recipe| recipe.name.as_str())
    }
}

/// The recipes of a directory, sorted by name; none if there is no directory.
fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let file = entry?.path();
        let is_hidden = file
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if !is_hidden && file.extension() == Some(OsStr::new(EXTENSION)) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: &str = "question: Q?\nrun: block threshold=1ms\nnormal: N.\nnext: X.\n";

    fn with(files: &[(&str, &str)]) -> (Recipes, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        (Recipes::with(dir.path()), dir)
    }

    #[test]
    fn built_in_recipes_are_complete_and_correct() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/recipes");
        let mut there: Vec<String> = files(&directory)
            .unwrap()
            .iter()
            .map(|file| file.file_stem().unwrap().to_string_lossy().into())
            .collect();
        there.sort();
        let (recipes, _dir) = with(&[]);
        assert!(recipes.faults.is_empty(), "{:?}", recipes.faults);
        assert_eq!(recipes.names().collect::<Vec<_>>(), there);
        for recipe in &recipes.all {
            let name = &recipe.name;
            assert!(recipe.question.ends_with('?'), "{name}");
            let sentences = [&recipe.normal, &recipe.next];
            assert!(sentences.iter().all(|text| text.ends_with('.')), "{name}");
            let has_threshold = recipe.settings.iter().any(|s| s.key == "threshold");
            assert!(has_threshold, "{name}");
        }
    }

    #[test]
    fn a_users_recipe_replaces_a_built_in_one_and_others_are_added() {
        let (ours, _dir) = with(&[]);
        let (recipes, dir) = with(&[
            ("fsync.recipe", MINE),
            ("mine.recipe", MINE),
            (".hidden.recipe", "oops"),
            ("fsync.recipe~", "oops"),
        ]);
        assert!(recipes.faults.is_empty(), "{:?}", recipes.faults);
        assert_eq!(recipes.all.len(), ours.all.len() + 1);
        let fsync = recipes.find("fsync").unwrap().unwrap();
        assert_eq!(fsync.line(), "block threshold=1ms");
        assert_eq!(fsync.file, Some(dir.path().join("fsync.recipe")));
        assert!(recipes.find("mine").unwrap().is_some());
        assert_eq!(recipes.find("nosuch"), Ok(None));
    }

    #[test]
    fn an_error_names_file_and_line_and_the_other_recipes_remain() {
        let (recipes, dir) = with(&[
            ("fsync.recipe", "question: Q?\nrun block\n"),
            ("a.recipe", MINE),
        ]);
        let fault = recipes.find("fsync").unwrap_err();
        let place = format!("{}:2: ", dir.path().join("fsync.recipe").display());
        assert!(fault.starts_with(&place), "{fault}");
        assert!(recipes.find("a").unwrap().is_some());
        let (recipes, _dir) = with(&[("a b.recipe", MINE)]);
        assert!(
            recipes
                .find("a b")
                .unwrap_err()
                .contains("the name of a recipe")
        );
    }
}
