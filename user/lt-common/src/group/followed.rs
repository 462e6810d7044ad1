// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A cgroup that is followed: if it is removed and created again, its successor is found.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{directory_of, number_of, root};

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// The followed cgroup.
#[derive(Debug)]
pub struct Followed {
    /// Its directory, which its successor usually has, too.
    directory: PathBuf,
    /// The number of the cgroup that is watched.
    number: u64,
    /// Whether the cgroup existed at the last look that found no successor, or at the last [`Followed::watch`].
    is_there: bool,
    /// Start of the last look that found no successor, or time of the last [`Followed::watch`].
    looked: Instant,
    /// When the next look is due.
    due: Instant,
    /// Number of successors so far.
    successors: usize,
    /// Upper bound of the total time for which successors existed unwatched.
    unseen: Duration,
}

/// What a look has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The cgroup was removed, and has no successor yet.
    Removed,
    /// The cgroup has a successor with this number.
    New(u64),
}

impl Followed {
    /// Follows the cgroup in this directory. `None` if there is none.
    pub fn at(directory: PathBuf) -> Option<Self> {
        let looked = Instant::now();
        Some(Self {
            number: number_of(&directory)?,
            directory,
            is_there: true,
            looked,
            due: looked + LOOK,
            successors: 0,
            unseen: Duration::ZERO,
        })
    }

    /// Follows the cgroup with this number. `None` if there is none, or if it is not visible here.
    pub fn of(number: u64) -> Option<Self> {
        let followed = Self::at(directory_of(&root()?, number).ok()??)?;
        (followed.number == number).then_some(followed)
    }

    /// The number of the cgroup that is watched.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// When the next look is due.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Checks whether the cgroup has a successor. `elsewhere` returns the directory of a successor in another place; it
    /// is called only if the known directory does not exist.
    pub fn look(&mut self, elsewhere: impl FnOnce() -> Option<PathBuf>) -> Option<Change> {
        let begun = Instant::now();
        self.due = begun + LOOK;
        let mut found = number_of(&self.directory);
        if found.is_none()
            && let Some(directory) = elsewhere()
        {
            found = number_of(&directory);
            self.directory = directory;
        }
        match found {
            Some(number) if number != self.number => Some(Change::New(number)),
            _ => {
                self.looked = begun;
                let was_there = std::mem::replace(&mut self.is_there, found.is_some());
                (was_there && found.is_none()).then_some(Change::Removed)
            }
        }
    }

    /// Notes that the successor with this number is watched from now on. Returns an upper bound of the time for which
    /// it existed unwatched.
    pub fn watch(&mut self, number: u64) -> Duration {
        let now = Instant::now();
        let unseen = now - self.looked;
        self.number = number;
        self.is_there = true;
        self.looked = now;
        self.successors += 1;
        self.unseen += unseen;
        unseen
    }

    /// The number of successors so far, and an upper bound of the total time for which they existed unwatched.
    pub fn unseen(&self) -> (usize, Duration) {
        (self.successors, self.unseen)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_successor_is_found_at_the_same_place_or_another_one() {
        let root = tempfile::tempdir().unwrap();
        let path = |below: &str| root.path().join(below);
        fs::create_dir(path("web")).unwrap();
        assert!(Followed::at(path("none")).is_none());
        let mut followed = Followed::at(path("web")).unwrap();
        let first = followed.number();
        assert_eq!(followed.look(|| panic!("not needed")), None);
        // The first directory continues to exist, so that the new directory cannot get its number.
        fs::rename(path("web"), path("first")).unwrap();
        assert_eq!(followed.look(|| None), Some(Change::Removed));
        assert_eq!(followed.look(|| None), None);
        fs::create_dir(path("web")).unwrap();
        let second = number_of(&path("web")).unwrap();
        assert_ne!(first, second);
        let new = Some(Change::New(second));
        assert_eq!(followed.look(|| panic!("not needed")), new);
        // Until the successor is watched, each look finds it, and its unwatched time grows.
        let looked = followed.looked;
        assert_eq!(followed.look(|| None), new);
        assert_eq!(followed.looked, looked);
        let unseen = followed.watch(second);
        assert_eq!(followed.looked, looked + unseen);
        assert_eq!(followed.look(|| None), None);
        assert_eq!(followed.unseen(), (1, unseen));
        fs::rename(path("web"), path("second")).unwrap();
        fs::create_dir(path("other")).unwrap();
        let third = number_of(&path("other")).unwrap();
        assert_eq!(
            followed.look(|| Some(path("other"))),
            Some(Change::New(third))
        );
        let more = followed.watch(third);
        assert_eq!(followed.look(|| panic!("not needed")), None);
        assert_eq!(followed.unseen(), (2, unseen + more));
    }
}
