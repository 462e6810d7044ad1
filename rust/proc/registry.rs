// SPDX-License-Identifier: GPL-2.0

//! All instances by name, and the execution of lines of the control language.
//!
//! One lock guards the list. An instance is created while the lock is held, but disks and other
//! objects of the kernel are looked up beforehand, since that may take a long time. The removal of
//! an instance waits for the instance's readers after the lock is released, while the name is
//! still reserved.

use crate::{
    alert::{record::Name, stream::Alerts},
    control::{self, Fault, Line, Settings},
    instance::{
        kind::{Create, Kind, New},
        settings::{c_string, change, failed, parse, values_of_new},
        Changes, Instance, MadeBy, Shown, Values,
    },
    measure::Measure,
    sys::{
        module::Watcher,
        periodic::Periodic,
        procfs::{Dir, File}, //
    },
    text::{pack, Plain},
    trackers, //
};
use core::ffi::CStr;
use kernel::{
    new_mutex,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{Arc, Mutex, MutexGuard}, //
};

mod works;

use works::Listed;
pub(crate) use works::Works;

/// Files that are removed together, in the reverse order of their creation.
pub(crate) struct Files(KVec<File>);

impl Files {
    pub(crate) fn new() -> Self {
        Self(KVec::new())
    }

    /// Adds the file that was created last. If that fails, with `ENOMEM`, the file is removed.
    pub(crate) fn add(&mut self, file: File) -> Result {
        Ok(self.0.push(file, GFP_KERNEL)?)
    }

    /// Removes all files. May sleep.
    pub(crate) fn clear(&mut self) {
        while self.0.pop().is_some() {}
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Creates the folder of an instance in another folder, with this name and group. May sleep; a
/// failure leaves nothing behind.
pub(crate) type MakeFiles = fn(&CStr, &Arc<Dir>, Option<u32>, &Arc<dyn Instance>) -> Result<Files>;

/// An instance and its files.
struct Entry {
    name: Name,
    instance: Arc<dyn Instance>,
    /// The files in its folder.
    files: Files,
    /// Its entry in the list of instances that wait for work, if it waits for work.
    listed: Option<Listed>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        // Recording stops first; then the readers return.
        self.instance.shut_down();
        self.listed = None;
        self.files.clear();
    }
}

/// The list of instances.
struct List {
    /// `None` when the module is being unloaded.
    entries: Option<KVec<Entry>>,
    /// Names that are still reserved: their instances are being removed.
    leaving: KVec<Name>,
    /// Number of removals. After a removal, other instances may have new positions.
    removed: u64,
}

/// All instances.
#[pin_data]
pub(crate) struct Registry {
    all: Arc<Alerts>,
    parent: Arc<Dir>,
    gid: Option<u32>,
    make_files: MakeFiles,
    works: Arc<Works>,
    measure: Option<Arc<Measure>>,
    #[pin]
    list: Mutex<List>,
}

impl Registry {
    /// Creates an empty registry. `make_files` creates the folders of its instances in `parent`,
    /// with group `gid`. Alerts of the instances also go to `all`, and `works` lists the instances
    /// that wait for work. The probes are measured if there is a `measure`.
    pub(crate) fn new(
        all: Arc<Alerts>,
        parent: Arc<Dir>,
        gid: Option<u32>,
        make_files: MakeFiles,
        works: Arc<Works>,
        measure: Option<Arc<Measure>>,
    ) -> Result<Arc<Self>> {
        let entries = Some(KVec::new());
        Arc::pin_init(
            pin_init!(Self {
                all,
                parent,
                gid,
                make_files,
                works,
                measure,
                list <- new_mutex!(List { entries, leaving: KVec::new(), removed: 0 }),
            }),
            GFP_KERNEL,
        )
    }

    /// Removes all instances, for good. May sleep.
    pub(crate) fn close(&self) {
        let entries = self.list.lock().entries.take();
        drop(entries);
    }

    /// Executes one line. May sleep.
    pub(crate) fn execute<'a>(&self, line: &'a [u8]) -> core::result::Result<(), Fault<'a>> {
        match control::parse_line(line)? {
            Line::Empty => Ok(()),
            Line::Remove(name) => self.remove(name),
            Line::Set {
                name,
                tracker,
                settings,
            } => self.set(name, tracker, settings),
        }
    }

    fn remove<'a>(&self, name: &'a [u8]) -> core::result::Result<(), Fault<'a>> {
        let packed = pack(name);
        let mut list = self.list.lock();
        let entries = list.entries.as_ref().ok_or_else(|| gone(name))?;
        let at = entries
            .iter()
            .position(|entry| entry.name == packed)
            .ok_or_else(|| control::fault(ENOENT, "no such instance", name))?;
        if entries[at].instance.made_by().is_some() {
            let why = "only the module that created this instance can remove it";
            return Err(control::fault(EBUSY, why, name));
        }
        list.leaving
            .push(packed, GFP_KERNEL)
            .map_err(|_| failed(ENOMEM, name))?;
        self.take_out(list, at);
        Ok(())
    }

    /// Removes the instance at this position. If its name is in `leaving`, the name becomes free
    /// afterwards. May sleep.
    fn take_out(&self, mut list: MutexGuard<'_, List>, at: usize) {
        list.removed = list.removed.wrapping_add(1);
        let entry = list.entries.as_mut().and_then(|all| all.remove(at).ok());
        let Some(entry) = entry else { return };
        let name = entry.name;
        let is_kept = list.leaving.contains(&name);
        drop(list);
        // Waits for the readers of the instance.
        drop(entry);
        if is_kept {
            self.list.lock().leaving.retain(|&mut other| other != name);
        }
    }

    fn set<'a>(
        &self,
        name: &'a [u8],
        tracker: &'a [u8],
        settings: Settings<'a>,
    ) -> core::result::Result<(), Fault<'a>> {
        let Some((number, kind)) = trackers::find(tracker) else {
            let (error, why) = if trackers::is_absent(tracker) {
                let why = "this tracker is not part of this module (see `trackers`)";
                (crate::sys::enosys(), why)
            } else {
                (ENOENT, "no such tracker (see `trackers`)")
            };
            return Err(control::fault(error, why, tracker));
        };
        let changes = parse(kind, settings.clone())?;
        let packed = pack(name);
        let list = self.list.lock();
        if list.leaving.contains(&packed) {
            return Err(control::fault(
                EBUSY,
                "this instance is being removed",
                name,
            ));
        }
        let entries = list.entries.as_ref().ok_or_else(|| gone(name))?;
        if let Some(entry) = entries.iter().find(|entry| entry.name == packed) {
            if !core::ptr::eq(entry.instance.kind(), kind) {
                return Err(control::fault(
                    EEXIST,
                    "this instance already exists with another tracker",
                    name,
                ));
            }
            return change(&*entry.instance, &changes, name);
        }
        let values = values_of_new(kind, &changes, settings)?;
        let create = creator(kind, tracker)?;
        let make = || {
            create(New {
                name: packed,
                number,
                values: &values,
                all: self.all.clone(),
                measure: self.measure.clone(),
            })
        };
        self.add(list, name, packed, make, &values)
            .map_err(|error| failed(error, name))
    }

    /// Adds the instance of another module, which `make` creates from its name and the alerts of
    /// all instances. May sleep. Fails with `EEXIST` if the name is taken, `ENODEV`, `ENOMEM`, or
    /// the error of `make`.
    pub(crate) fn adopt(
        &self,
        name: &[u8],
        values: &Values,
        make: impl FnOnce(Name, Arc<Alerts>) -> Result<Arc<dyn Instance>>,
    ) -> Result {
        let packed = pack(name);
        let list = self.list.lock();
        let entries = list.entries.as_ref().ok_or(ENODEV)?;
        let is_taken = list.leaving.contains(&packed);
        if is_taken || entries.iter().any(|entry| entry.name == packed) {
            return Err(EEXIST);
        }
        let make = || make(packed, self.all.clone());
        self.add(list, name, packed, make, values)
    }

    /// Removes the first instance of another module for which `is_it` is true. Returns its name.
    /// May sleep.
    pub(crate) fn disown(&self, is_it: impl Fn(&MadeBy) -> bool) -> Option<Name> {
        let mut list = self.list.lock();
        let entries = list.entries.as_ref()?;
        let is_it = |entry: &Entry| entry.instance.made_by().is_some_and(|by| is_it(&by));
        let at = entries.iter().position(is_it)?;
        let name = entries[at].name;
        // If memory is short, the name becomes free slightly early: then a new instance of this
        // name may be refused because the old folder still exists.
        _ = list.leaving.push(name, GFP_KERNEL);
        self.take_out(list, at);
        Some(name)
    }

    /// Finds the first instance of another module for which `is_it` is true. May sleep.
    pub(crate) fn find(&self, is_it: impl Fn(&MadeBy) -> bool) -> Option<Arc<dyn Instance>> {
        let list = self.list.lock();
        let mut all = list.entries.iter().flatten().map(|entry| &entry.instance);
        all.find(|instance| instance.made_by().is_some_and(|by| is_it(&by)))
            .cloned()
    }

    /// Adds the instance that `make` returns. If it cannot be started, it is removed again after
    /// the lock is released, since its files may already have readers. May sleep.
    fn add(
        &self,
        mut list: MutexGuard<'_, List>,
        name: &[u8],
        packed: Name,
        make: impl FnOnce() -> Result<Arc<dyn Instance>>,
        values: &Values,
    ) -> Result {
        let all = &mut *list;
        let entries = all.entries.as_mut().ok_or(ENODEV)?;
        // With the room reserved, the pushes do not fail.
        entries.reserve(1, GFP_KERNEL)?;
        all.leaving.reserve(1, GFP_KERNEL)?;
        let mut entry = Entry {
            name: packed,
            instance: make()?,
            files: Files::new(),
            listed: None,
        };
        let started = self.start(&mut entry, name, values);
        let at = entries.len();
        entries.push(entry, GFP_KERNEL)?;
        if started.is_err() {
            all.leaving.push(packed, GFP_KERNEL)?;
            self.take_out(list, at);
        }
        started
    }

    /// Creates the files of an instance, and sets its values. May sleep.
    fn start(&self, entry: &mut Entry, name: &[u8], values: &Values) -> Result {
        let name = c_string(name)?;
        entry.files = (self.make_files)(&name, &self.parent, self.gid, &entry.instance)?;
        if let Some(work) = entry.instance.work() {
            entry.listed = Some(self.works.add(work)?);
        }
        entry.instance.apply(&Changes::all(values)?)
    }

    /// Returns an instance by its position, and the number of removals so far.
    fn nth(&self, at: usize) -> (Option<Arc<dyn Instance>>, u64) {
        let list = self.list.lock();
        let entry = list.entries.as_ref().and_then(|entries| entries.get(at));
        (entry.map(|entry| entry.instance.clone()), list.removed)
    }

    pub(crate) fn show(&self, out: &SeqFile) {
        let list = self.list.lock();
        for entry in list.entries.iter().flatten() {
            let kind = entry.instance.kind();
            seq_print!(out, "{} {}", Plain(&entry.name), kind.name);
            for (i, param) in kind.params.iter().enumerate() {
                if !entry.instance.shows(i) {
                    continue;
                }
                let value = Shown(&*entry.instance, i);
                seq_print!(out, " {}={value}", param.name);
            }
            seq_print!(out, "\n");
        }
    }
}

/// Maintains the memory of all instances.
impl Periodic for Registry {
    /// Work that waits for memory is not urgent.
    const WATCHED: bool = false;

    fn run(&self) -> Option<u64> {
        let mut again: Option<u64> = None;
        let mut at = 0;
        let (mut next, mut removed) = self.nth(0);
        // Without the lock, since memory may take a long time to become available.
        while let Some(instance) = next {
            let wanted = instance.maintain();
            again = match (again, wanted) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            at += 1;
            let before = removed;
            (next, removed) = self.nth(at);
            if removed != before {
                // Instances that moved up may have been skipped. Instances that were maintained
                // already need nothing.
                at = 0;
                (next, removed) = self.nth(at);
            }
        }
        again
    }
}

impl Watcher for Registry {
    fn gone(&self, module: usize) {
        while let Some(name) = self.disown(|by| by.module == module) {
            pr_err!(
                "{}: destroyed: its module was unloaded without destroying it\n",
                Plain(&name)
            );
        }
    }
}

fn gone(name: &[u8]) -> Fault<'_> {
    control::fault(ENODEV, "the module is being unloaded", name)
}

/// Returns the constructor of a tracker's instances, if this kernel has all that the tracker needs,
/// and a line of the control language can create one.
fn creator<'a>(kind: &Kind, tracker: &'a [u8]) -> core::result::Result<Create, Fault<'a>> {
    if (kind.missing)().is_some() {
        return Err(control::fault(
            crate::sys::enosys(),
            "this kernel does not support this tracker (see `trackers`)",
            tracker,
        ));
    }
    kind.create.ok_or_else(|| {
        control::fault(
            EINVAL,
            "only other kernel modules create instances of this tracker",
            tracker,
        )
    })
}
