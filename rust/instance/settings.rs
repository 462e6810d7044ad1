// SPDX-License-Identifier: GPL-2.0

//! Settings: from the words of a line, or of a parameter's file, to an instance.
//!
//! ```text
//!   line ----> parse --> Changes --+--> change --> the instance
//!                                  +--> values_of_new --> a new one
//!   file ----> set_param ----> change
//! ```
//!
//! A fault names the word or the parameter that is wrong. All functions may sleep.

use super::{
    common,
    descendants::{PID, TREE},
    kind::{Kind, USER_STACK},
    labels,
    parameters::{Changes, Texts, Values},
    Instance,
};
use crate::{
    control::{self, Disk, Fault, Lookup, LookupTarget, Number, Param, Settings, ALL},
    engine::labels::STACK,
    sys::{block, cgroup, descendants, fprobe, tracepoint::Tracepoint},
};
use kernel::{prelude::*, str::CString};

/// Returns a name without NUL as a C string.
pub(crate) fn c_string(name: &[u8]) -> Result<CString> {
    let text = core::str::from_utf8(name).map_err(|_| EINVAL)?;
    CString::try_from_fmt(fmt!("{text}"))
}

/// Reports that the kernel refused to create or change the instance or the parameter `name`.
pub(crate) fn failed(error: Error, name: &[u8]) -> Fault<'_> {
    let expected = if error == ENOMEM {
        "not enough memory for this instance"
    } else if error == ENOENT {
        "a function or tracepoint of this instance is missing (load its module first)"
    } else if error == EBUSY {
        "a module that this instance needs is being loaded or unloaded (try again)"
    } else if error == EEXIST {
        let why = "several loaded modules have a tracepoint of this instance (unload the others)";
        return control::fault(EINVAL, why, name);
    } else {
        "the kernel refused this instance"
    };
    control::fault(error, expected, name)
}

/// Reports that a parameter is missing, or has no valid value.
fn wrong(param: &Param, why: &'static str) -> Fault<'static> {
    control::fault(EINVAL, why, param.name.as_bytes())
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
        LookupTarget::Tracepoint(name) => Tracepoint::find_any(&c_string(name)?).map(|_| 0),
        LookupTarget::Function(name) => fprobe::check(&c_string(name)?).map(|()| 0),
    }
}

const KERNEL: Lookup<'static> = &look_up;

/// Parses all settings of a line; a parameter that is given twice is a fault. May sleep for a long
/// time, when a disk or a cgroup is looked up.
pub(crate) fn parse<'a>(
    kind: &Kind,
    settings: Settings<'a>,
) -> core::result::Result<Changes, Fault<'a>> {
    let mut changes = allocated(kind, Changes::none())?;
    for setting in settings {
        let (key, text) = setting?;
        let named = |param: &Param| param.name.as_bytes() == key;
        let Some(at) = kind.params.iter().position(named) else {
            let why = if key == USER_STACK.as_bytes() {
                kind.no_user_stack
            } else {
                "no such parameter (see `trackers`)"
            };
            return Err(control::fault(EINVAL, why, key));
        };
        if changes.get(at).is_some() {
            return Err(control::fault(EINVAL, "this parameter is given twice", key));
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

/// Converts a failure to allocate the values of an instance to a fault.
fn allocated<T>(kind: &Kind, values: Result<T>) -> core::result::Result<T, Fault<'static>> {
    values.map_err(|error| failed(error, kind.name.as_bytes()))
}

/// Changes an instance. If the kernel refuses the change, the fault names `name`.
pub(crate) fn change<'a>(
    instance: &dyn Instance,
    changes: &Changes,
    name: &'a [u8],
) -> core::result::Result<(), Fault<'a>> {
    let kind = instance.kind();
    let mut params = kind.params.iter().enumerate();
    if let Some((_, param)) =
        params.find(|(at, param)| param.fixed && changes.differs(*at, instance))
    {
        return Err(wrong(param, AT_CREATION));
    }
    let followed = kind.followed(|at| instance.value(at));
    if followed.is_some_and(|pid| changes.differs(pid, instance)) {
        let why = "with tree=1 this parameter can only be given at creation";
        return Err(control::fault(EINVAL, why, PID.as_bytes()));
    }
    let numbers = Values::new(|at| instance.value(at), &Texts::default());
    check(kind, &changes.over(allocated(kind, numbers)?))?;
    instance.apply(changes).map_err(|error| failed(error, name))
}

/// Returns the values of a new instance with these settings.
pub(crate) fn values_of_new<'a>(
    kind: &'static Kind,
    changes: &Changes,
    settings: Settings<'a>,
) -> core::result::Result<Values, Fault<'a>> {
    let mut values = changes.over(allocated(kind, Values::defaults(kind.params))?);
    let mut params = kind.params.iter().enumerate();
    let lacks =
        |(at, param): &(usize, &Param)| param.kind.is_required() && values.text(*at).is_none();
    if let Some((_, param)) = params.find(lacks) {
        return Err(wrong(param, "this tracker requires the parameter"));
    }
    check(kind, &values)?;
    let followed = kind.followed(|at| values[at]);
    if followed.is_some_and(|pid| !descendants::is_process(values[pid] as u32)) {
        // `check` has ensured that `pid` is given.
        let word = settings.value_of(PID).unwrap_or_default();
        let expected = "pid: with tree=1, expected the ID of a process that exists";
        return Err(control::fault(ESRCH, expected, word));
    }
    if let Some((by, max)) = kind.label_params() {
        let param = &kind.params[max];
        if values[by] == 0 && values[max] != param.default.into() {
            return Err(wrong(param, "expected by= as well"));
        }
        if kind.is_by_stack(values[by]) {
            for (at, default) in [(max, labels::STACKS), (common::STACK, STACK as u64)] {
                if changes.get(at).is_none() {
                    values[at] = default.into();
                }
            }
            if values[common::STACK] == 0 {
                let why = "with by=stack this parameter must be at least 1";
                return Err(wrong(&kind.params[common::STACK], why));
            }
        }
    }
    if values[common::EVENTS] > values[common::MAX_EVENTS] {
        let param = &kind.params[common::MAX_EVENTS];
        if let Some(word) = settings.value_of(param.name) {
            // The cast is lossless: the maximum number of cells limits both counts.
            return Err(control::below(param, values[common::EVENTS] as u64, word));
        }
        values[common::MAX_EVENTS] = values[common::EVENTS];
    }
    Ok(values)
}

/// Checks whether the values are valid together: first `pid` and `tree`, then by [`Kind::check`].
fn check(kind: &'static Kind, values: &Values) -> core::result::Result<(), Fault<'static>> {
    let followed = kind.followed(|at| values[at]);
    if followed.is_some_and(|pid| values[pid] == Number::from(ALL)) {
        let key = TREE.as_bytes();
        return Err(control::fault(EINVAL, "expected pid= as well", key));
    }
    match (kind.check)(values) {
        Some((at, why)) => Err(wrong(&kind.params[at], why)),
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
        return Err(control::fault(EPERM, AT_CREATION, param.name.as_bytes()));
    }
    let mut changes = allocated(instance.kind(), Changes::none())?;
    changes.set(at, param.parse(text, KERNEL)?);
    change(instance, &changes, param.name.as_bytes())
}
