// SPDX-License-Identifier: GPL-2.0

//! All instances by name, and what a line of the control language does to them.
//!
//! One lock guards the list. It is not held while something may take long: a disk is looked up
//! before, and an instance that is removed waits for its readers after, its name still taken.

use crate::{
    alerts::Alerts,
    control::{self, Disk, DiskLookup, Fault, Line, Param, Settings},
    instance::{common, Changes, Instance, Values},
    procfs::{self, Files},
    record::Name,
    sys::{block, procfs::Dir, ticker::Tick},
    text::{pack, Plain},
    trackers::{self, Kind}, //
};
use kernel::{
    new_mutex,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    str::CString,
    sync::{Arc, Mutex}, //
};

/// An instance and its files.
struct Entry {
    name: Name,
    instance: Arc<dyn Instance>,
    /// Its folder.
    files: Files,
}

impl Drop for Entry {
    fn drop(&mut self) {
        // Nothing new is recorded, then the readers are let go.
        self.instance.retire();
        self.files.clear();
    }
}

/// The list.
struct List {
    /// `None` when the module is going away.
    entries: Option<KVec<Entry>>,
    /// Names that are not free yet: their instances are being removed.
    leaving: KVec<Name>,
    /// How many were removed: after that the others may be elsewhere in the list.
    removed: u64,
}

/// All instances.
#[pin_data]
pub(crate) struct Registry {
    all: Arc<Alerts>,
    parent: Arc<Dir>,
    gid: Option<u32>,
    #[pin]
    list: Mutex<List>,
}

impl Registry {
    /// Makes an empty one, whose instances' folders are in `parent` and open to group `gid`, and
    /// whose instances' alerts also go to `all`.
    pub(crate) fn new(all: Arc<Alerts>, parent: Arc<Dir>, gid: Option<u32>) -> Result<Arc<Self>> {
        let entries = Some(KVec::new());
        Arc::pin_init(
            pin_init!(Self {
                all,
                parent,
                gid,
                list <- new_mutex!(List { entries, leaving: KVec::new(), removed: 0 }),
            }),
            GFP_KERNEL,
        )
    }

    /// Removes all instances, for good. Sleeps.
    pub(crate) fn close(&self) {
        let entries = self.list.lock().entries.take();
        drop(entries);
    }

    /// Does what one line says. Sleeps.
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
        let entry = {
            let mut list = self.list.lock();
            let list = &mut *list;
            let entries = list.entries.as_mut().ok_or_else(|| gone(name))?;
            let at = entries
                .iter()
                .position(|entry| entry.name == packed)
                .ok_or_else(|| control::unknown(ENOENT, "no such instance", name))?;
            list.leaving
                .push(packed, GFP_KERNEL)
                .map_err(|_| failed(ENOMEM, name))?;
            list.removed = list.removed.wrapping_add(1);
            entries.remove(at).map_err(|_| failed(ENOENT, name))?
        };
        drop(entry);
        self.list.lock().leaving.retain(|&mut name| name != packed);
        Ok(())
    }

    fn set<'a>(
        &self,
        name: &'a [u8],
        tracker: &'a [u8],
        settings: Settings<'a>,
    ) -> core::result::Result<(), Fault<'a>> {
        let Some((_, kind)) = trackers::find(tracker) else {
            return Err(control::unknown(
                ENOENT,
                "no such tracker (see `trackers`)",
                tracker,
            ));
        };
        let changes = parse(kind, settings)?;
        let packed = pack(name);
        let mut list = self.list.lock();
        let list = &mut *list;
        if list.leaving.contains(&packed) {
            return Err(control::unknown(
                EBUSY,
                "this instance is being removed",
                name,
            ));
        }
        let entries = list.entries.as_mut().ok_or_else(|| gone(name))?;
        if let Some(entry) = entries.iter().find(|entry| entry.name == packed) {
            if !core::ptr::eq(entry.instance.kind(), kind) {
                return Err(control::unknown(
                    EEXIST,
                    "this instance exists with another tracker",
                    name,
                ));
            }
            let instance = &*entry.instance;
            let differs = |at| changes.get(at).is_some_and(|new| new != instance.value(at));
            let mut params = kind.params.iter().enumerate();
            if let Some((_, param)) = params.find(|(at, param)| param.fixed && differs(*at)) {
                let key = param.name.as_bytes();
                return Err(control::unknown(EINVAL, AT_CREATION, key));
            }
            return instance
                .apply(&changes)
                .map_err(|error| failed(error, name));
        }
        let mut values = changes.over(defaults(kind));
        if values[common::EVENTS] > values[common::MAX_EVENTS] {
            if changes.get(common::MAX_EVENTS).is_some() {
                return Err(control::unknown(
                    EINVAL,
                    "expected max_events to be at least events",
                    kind.params[common::MAX_EVENTS].name.as_bytes(),
                ));
            }
            values[common::MAX_EVENTS] = values[common::EVENTS];
        }
        if (kind.missing)().is_some() {
            return Err(control::unknown(
                crate::sys::enosys(),
                "this kernel can not run this tracker (see `trackers`)",
                tracker,
            ));
        }
        let entry = self
            .create(name, packed, kind, &values)
            .map_err(|error| failed(error, name))?;
        // Reserved by `create`; if it fails nevertheless the entry is dropped, all is undone.
        entries
            .push(entry, GFP_KERNEL)
            .map_err(|_| failed(ENOMEM, name))
    }

    fn create(
        &self,
        name: &[u8],
        packed: Name,
        kind: &'static Kind,
        values: &Values,
    ) -> Result<Entry> {
        let instance = (kind.create)(packed, values, self.all.clone())?;
        let mut entry = Entry {
            name: packed,
            instance,
            files: Files::new(),
        };
        let name = c_string(name)?;
        entry.files = procfs::instance_files(&name, &self.parent, self.gid, &entry.instance)?;
        entry.instance.apply(&Changes::all(values))?;
        Ok(entry)
    }

    /// An instance by its position, and how many were removed from the list so far.
    fn nth(&self, at: usize) -> (Option<Arc<dyn Instance>>, u64) {
        let list = self.list.lock();
        let entry = list.entries.as_ref().and_then(|entries| entries.get(at));
        (entry.map(|entry| entry.instance.clone()), list.removed)
    }

    /// Prints `control`.
    pub(crate) fn show(&self, out: &SeqFile) {
        let list = self.list.lock();
        for entry in list.entries.iter().flatten() {
            let kind = entry.instance.kind();
            seq_print!(out, "{} {}", Plain(&entry.name), kind.name);
            for (i, param) in kind.params.iter().enumerate() {
                let value = param.display(entry.instance.value(i));
                seq_print!(out, " {}={}", param.name, value);
            }
            seq_print!(out, "\n");
        }
    }
}

/// Sees to the memory of all instances.
impl Tick for Registry {
    fn tick(&self) -> Option<u64> {
        let mut again: Option<u64> = None;
        let mut at = 0;
        let (mut next, mut removed) = self.nth(0);
        // Without the lock, since memory may take long to come.
        while let Some(instance) = next {
            let wanted = instance.tend();
            again = match (again, wanted) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            at += 1;
            let before = removed;
            (next, removed) = self.nth(at);
            if removed != before {
                // Whatever moved up may have been passed over. What was seen to wants nothing.
                at = 0;
                (next, removed) = self.nth(at);
            }
        }
        again
    }
}

/// A C string of a name without NUL.
fn c_string(name: &[u8]) -> Result<CString> {
    let text = core::str::from_utf8(name).map_err(|_| EINVAL)?;
    CString::try_from_fmt(fmt!("{text}"))
}

fn gone(name: &[u8]) -> Fault<'_> {
    control::unknown(ENODEV, "the module is being unloaded", name)
}

fn failed(error: Error, name: &[u8]) -> Fault<'_> {
    let expected = if error == ENOMEM {
        "not enough memory for this instance"
    } else {
        "the kernel refused this instance"
    };
    control::unknown(error, expected, name)
}

/// Looks a disk up.
fn lookup_disk(disk: Disk<'_>) -> Result<u32> {
    let name = match disk {
        Disk::Name(name) => name,
        Disk::Number(dev) if block::is_partition(dev) => return Err(ENOTBLK),
        Disk::Number(dev) => return Ok(dev),
    };
    let text = core::str::from_utf8(name).map_err(|_| EINVAL)?;
    block::lookup(&CString::try_from_fmt(fmt!("/dev/{text}"))?)
}

const DISKS: DiskLookup<'static> = &lookup_disk;

/// The values of an instance for which nothing is given.
fn defaults(kind: &Kind) -> Values {
    core::array::from_fn(|at| kind.params.get(at).map_or(0, |param| param.default))
}

/// Checks all settings of a line; one that is given twice is a fault. May sleep for long, when a
/// disk is looked up.
fn parse<'a>(kind: &Kind, settings: Settings<'a>) -> core::result::Result<Changes, Fault<'a>> {
    let mut changes = Changes::none();
    for setting in settings {
        let (key, text) = setting?;
        let named = |param: &Param| param.name.as_bytes() == key;
        let Some(at) = kind.params.iter().position(named) else {
            return Err(control::unknown(
                EINVAL,
                "no such parameter (see `trackers`)",
                key,
            ));
        };
        if changes.get(at).is_some() {
            return Err(control::unknown(
                EINVAL,
                "this parameter is given twice",
                key,
            ));
        }
        let param = &kind.params[at];
        let value = param.parse(text, DISKS)?;
        changes.set(at, value);
    }
    Ok(changes)
}

const AT_CREATION: &str = "this parameter can only be given at creation";

/// Sets one parameter of an instance, for its file.
pub(crate) fn set_param<'a>(
    instance: &dyn Instance,
    at: usize,
    text: &'a [u8],
) -> core::result::Result<(), Fault<'a>> {
    let param = &instance.kind().params[at];
    if param.fixed {
        // Root may write whatever the mode of the file says.
        return Err(control::unknown(EPERM, AT_CREATION, text));
    }
    let mut changes = Changes::none();
    changes.set(at, param.parse(text, DISKS)?);
    instance
        .apply(&changes)
        .map_err(|error| failed(error, param.name.as_bytes()))
}
