// SPDX-License-Identifier: GPL-2.0

//! All instances by name, and the execution of lines of the control language.
//!
//! One lock guards the list. It is not held during long operations: a disk is looked up before it
//! is taken. An instance that is removed waits for its readers after it was released, while its
//! name is still reserved.

use crate::{
    alert::{record::Name, stream::Alerts},
    control::{self, Disk, Fault, Line, Lookup, LookupTarget, Param, Settings},
    instance::{
        common,
        kind::{Create, Kind, New},
        Changes, Instance, MadeBy, Shown, Values,
    },
    measure::Measure,
    sys::{
        block, cgroup, fprobe,
        module::Watcher,
        periodic::Periodic,
        procfs::{Dir, File},
        tracepoint::Tracepoint,
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
    str::CString,
    sync::{Arc, Mutex}, //
};

mod works;

use works::Listed;
pub(crate) use works::Works;

/// Files that are removed together.
pub(crate) type Files = KVec<File>;

/// Creates the folder of an instance in another folder, with this name and group. Sleeps; a failure
/// leaves nothing behind.
pub(crate) type MakeFiles = fn(&CStr, &Arc<Dir>, Option<u32>, &Arc<dyn Instance>) -> Result<Files>;

/// An instance and its files.
struct Entry {
    name: Name,
    instance: Arc<dyn Instance>,
    /// Its folder.
    files: Files,
    /// Its entry in the list of instances that wait for work, if it does.
    listed: Option<Listed>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        // First, recording stops; then the readers return.
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
    /// Number of removals: after a removal the other instances may have new positions.
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
    /// with group `gid`. Their alerts also go to `all`; `works` lists those that wait for work.
    /// Their probes are measured if there is a `measure`.
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

    /// Removes all instances, for good. Sleeps.
    pub(crate) fn close(&self) {
        let entries = self.list.lock().entries.take();
        drop(entries);
    }

    /// Executes one line. Sleeps.
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
            if entries[at].instance.made_by().is_some() {
                let why = "only the module that created this instance can remove it";
                return Err(control::unknown(EBUSY, why, name));
            }
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
        let Some((number, kind)) = trackers::find(tracker) else {
            let (error, why) = if trackers::is_absent(tracker) {
                let why = "this tracker is not part of this module (see `trackers`)";
                (crate::sys::enosys(), why)
            } else {
                (ENOENT, "no such tracker (see `trackers`)")
            };
            return Err(control::unknown(error, why, tracker));
        };
        let changes = parse(kind, settings.clone())?;
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
        let entry = self
            .create(name, packed, make, &values)
            .map_err(|error| failed(error, name))?;
        // Room was reserved by `create`; if the push fails nevertheless, dropping the entry undoes
        // everything.
        entries
            .push(entry, GFP_KERNEL)
            .map_err(|_| failed(ENOMEM, name))
    }

    /// Adds the instance of another module, which `make` creates from its name and the alerts of
    /// all instances. Sleeps. Fails with `EEXIST` if the name is taken, `ENODEV`, `ENOMEM`, or the
    /// error of `make`.
    pub(crate) fn adopt(
        &self,
        name: &[u8],
        values: &Values,
        make: impl FnOnce(Name, Arc<Alerts>) -> Result<Arc<dyn Instance>>,
    ) -> Result {
        let packed = pack(name);
        let mut list = self.list.lock();
        let list = &mut *list;
        let entries = list.entries.as_mut().ok_or(ENODEV)?;
        let is_taken = list.leaving.contains(&packed);
        if is_taken || entries.iter().any(|entry| entry.name == packed) {
            return Err(EEXIST);
        }
        let make = || make(packed, self.all.clone());
        let entry = self.create(name, packed, make, values)?;
        Ok(entries.push(entry, GFP_KERNEL)?)
    }

    /// Removes the first instance of another module for which `is_it` is true. Returns its name.
    /// Sleeps.
    pub(crate) fn disown(&self, is_it: impl Fn(&MadeBy) -> bool) -> Option<Name> {
        let (entry, is_kept) = {
            let mut list = self.list.lock();
            let list = &mut *list;
            let entries = list.entries.as_mut()?;
            let is_it = |entry: &Entry| entry.instance.made_by().is_some_and(|by| is_it(&by));
            let at = entries.iter().position(is_it)?;
            // If memory is short, the name becomes free slightly early: then a new instance of this
            // name may be refused because its folder still exists.
            let is_kept = list.leaving.push(entries[at].name, GFP_KERNEL).is_ok();
            list.removed = list.removed.wrapping_add(1);
            (entries.remove(at).ok()?, is_kept)
        };
        let name = entry.name;
        drop(entry);
        if is_kept {
            self.list.lock().leaving.retain(|&mut other| other != name);
        }
        Some(name)
    }

    /// Finds the first instance of another module for which `is_it` is true. Sleeps.
    pub(crate) fn find(&self, is_it: impl Fn(&MadeBy) -> bool) -> Option<Arc<dyn Instance>> {
        let list = self.list.lock();
        let mut all = list.entries.iter().flatten().map(|entry| &entry.instance);
        all.find(|instance| instance.made_by().is_some_and(|by| is_it(&by)))
            .cloned()
    }

    fn create(
        &self,
        name: &[u8],
        packed: Name,
        make: impl FnOnce() -> Result<Arc<dyn Instance>>,
        values: &Values,
    ) -> Result<Entry> {
        let instance = make()?;
        let mut entry = Entry {
            name: packed,
            instance,
            files: Files::new(),
            listed: None,
        };
        let name = c_string(name)?;
        entry.files = (self.make_files)(&name, &self.parent, self.gid, &entry.instance)?;
        if let Some(work) = entry.instance.work() {
            entry.listed = Some(self.works.add(work)?);
        }
        entry.instance.apply(&Changes::all(values)?)?;
        Ok(entry)
    }

    /// Returns an instance by its position, and the number of removals so far.
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
                // Instances that moved up may have been skipped. Those already done need nothing.
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
                "{}: destroyed: its module was unloaded without doing so\n",
                Plain(&name)
            );
        }
    }
}

/// Returns a name without NUL as a C string.
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

/// Looks up a disk.
fn lookup_disk(disk: Disk<'_>) -> Result<u32> {
    let name = match disk {
        Disk::Name(name) => name,
        Disk::Number(dev) => {
            return match block::check(dev) {
                // A disk with this number may be added later.
                Ok(()) => Ok(dev),
                Err(error) if error == ENXIO => Ok(dev),
                Err(error) => Err(error),
            };
        }
    };
    let text = core::str::from_utf8(name).map_err(|_| EINVAL)?;
    block::lookup(&CString::try_from_fmt(fmt!("/dev/{text}"))?)
}

/// Looks up the names in a line.
fn look_up(target: LookupTarget<'_>) -> Result<u64> {
    match target {
        LookupTarget::Disk(disk) => lookup_disk(disk).map(u64::from),
        LookupTarget::Cgroup(path) => cgroup::lookup(&c_string(path)?),
        LookupTarget::Tracepoint(name) => {
            let found = Tracepoint::find(&c_string(name)?);
            found.map(|_| 0).ok_or(ENOENT)
        }
        LookupTarget::Function(name) => fprobe::check(&c_string(name)?).map(|()| 0),
    }
}

const KERNEL: Lookup<'static> = &look_up;

/// Checks all settings of a line; giving one twice is a fault. May sleep for a long time, when a
/// disk or a cgroup is looked up.
fn parse<'a>(kind: &Kind, settings: Settings<'a>) -> core::result::Result<Changes, Fault<'a>> {
    let mut changes = none(kind)?;
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
        let value = param.parse(text, KERNEL)?;
        if param.kind.is_text(text) {
            c_string(text)
                .and_then(|copy| changes.set_text(at, copy))
                .map_err(|error| failed(error, text))?;
        } else {
            changes.set(at, value);
        }
    }
    Ok(changes)
}

/// Returns an empty set of changes for an instance.
fn none(kind: &Kind) -> core::result::Result<Changes, Fault<'static>> {
    Changes::none().map_err(|error| failed(error, kind.name.as_bytes()))
}

/// Returns the default values of an instance.
fn defaults(kind: &Kind) -> core::result::Result<Values, Fault<'static>> {
    Values::defaults(kind.params).map_err(|error| failed(error, kind.name.as_bytes()))
}

/// The parameters of an instance, without texts.
fn numbers_of(instance: &dyn Instance) -> core::result::Result<Values, Fault<'static>> {
    let kind = instance.kind();
    let mut values = defaults(kind)?;
    for at in 0..kind.params.len() {
        values[at] = instance.value(at);
    }
    Ok(values)
}

/// Changes an instance.
fn change<'a>(
    instance: &dyn Instance,
    changes: &Changes,
    name: &'a [u8],
) -> core::result::Result<(), Fault<'a>> {
    let kind = instance.kind();
    let mut params = kind.params.iter().enumerate();
    if let Some((_, param)) =
        params.find(|(at, param)| param.fixed && changes.differs(*at, instance))
    {
        let key = param.name.as_bytes();
        return Err(control::unknown(EINVAL, AT_CREATION, key));
    }
    check(kind, &changes.over(numbers_of(instance)?))?;
    instance.apply(changes).map_err(|error| failed(error, name))
}

/// Returns the values of a new instance with these settings.
fn values_of_new<'a>(
    kind: &'static Kind,
    changes: &Changes,
    settings: Settings<'a>,
) -> core::result::Result<Values, Fault<'a>> {
    let mut values = changes.over(defaults(kind)?);
    let mut params = kind.params.iter().enumerate();
    let lacks =
        |(at, param): &(usize, &Param)| param.kind.is_required() && values.text(*at).is_none();
    if let Some((_, param)) = params.find(lacks) {
        let key = param.name.as_bytes();
        return Err(control::unknown(
            EINVAL,
            "this tracker requires the parameter",
            key,
        ));
    }
    check(kind, &values)?;
    if values[common::EVENTS] > values[common::MAX_EVENTS] {
        let param = &kind.params[common::MAX_EVENTS];
        if let Some(word) = settings.value_of(param.name) {
            // Neither exceeds the maximum number of cells.
            return Err(control::below(param, values[common::EVENTS] as u64, word));
        }
        values[common::MAX_EVENTS] = values[common::EVENTS];
    }
    Ok(values)
}

/// Returns the constructor of a tracker's instances, if this kernel has all that the tracker needs,
/// and a line of the control language can create one.
fn creator<'a>(kind: &Kind, tracker: &'a [u8]) -> core::result::Result<Create, Fault<'a>> {
    if (kind.missing)().is_some() {
        return Err(control::unknown(
            crate::sys::enosys(),
            "this kernel does not support this tracker (see `trackers`)",
            tracker,
        ));
    }
    kind.create.ok_or_else(|| {
        control::unknown(
            EINVAL,
            "only other kernel modules create instances of this tracker",
            tracker,
        )
    })
}

/// Checks whether the values are valid together, see [`Kind::check`].
fn check(kind: &'static Kind, values: &Values) -> core::result::Result<(), Fault<'static>> {
    match (kind.check)(values) {
        Some((at, why)) => {
            let key = kind.params[at].name.as_bytes();
            Err(control::unknown(EINVAL, why, key))
        }
        None => Ok(()),
    }
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
        // Root may write, whatever the file mode.
        return Err(control::unknown(EPERM, AT_CREATION, param.name.as_bytes()));
    }
    let kind = instance.kind();
    let mut changes = none(kind)?;
    changes.set(at, param.parse(text, KERNEL)?);
    check(kind, &changes.over(numbers_of(instance)?))?;
    instance
        .apply(&changes)
        .map_err(|error| failed(error, param.name.as_bytes()))
}
