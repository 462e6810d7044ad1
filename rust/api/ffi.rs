// SPDX-License-Identifier: GPL-2.0

//! The functions of include/latency_tracker.h, and the callbacks: the raw side of api.rs.
//!
//! This code checks configurations, converts pointers to references and slices, and converts errors
//! to negative numbers and error pointers. Unsafe code is allowed here, as in `sys`.
//!
//! A `struct latency_tracker` is an [`Any`], which the registry keeps until the tracker is
//! destroyed.

use crate::{
    api::{Any, Config, DATA_MAX},
    control::{self, DURATION_MAX},
    engine::{freelist::MAX_CELLS, platform::Platform, Ended, Why},
    instance::{common, Changes, Instance, Values},
    proc::registry::Registry,
    sys::{
        bindings,
        module::{Owner, Watch},
        platform::{Kernel, PreemptGuard},
    },
    trackers::module::{KEY_MAX, KIND},
};
use core::{ffi::CStr, ptr};
use kernel::{
    ffi::{c_int, c_void},
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
};

mod events;
mod inside;

use inside::Inside;

type RawTracker = bindings::latency_tracker;
type RawConfig = bindings::latency_tracker_config;

kernel::sync::global_lock! {
    // SAFETY: `Exports::new` initialises the lock before its first use: a module that calls a
    // function below needs our symbols, so that module is loaded after this one.
    unsafe(uninit) static REGISTRY: Mutex<Option<Arc<Registry>>> = None;
}

/// Keeps the functions below usable until dropped.
pub(crate) struct Exports {
    watch: Option<Watch<Registry>>,
}

impl Exports {
    /// Enables the functions, while this module is being loaded. May sleep; fails with `ENOMEM`, or
    /// `EBUSY` the second time.
    pub(crate) fn new(registry: Arc<Registry>) -> Result<Self> {
        static IS_MADE: Atomic<u32> = Atomic::new(0);
        // Relaxed: the modules that use the lock are loaded after this.
        if IS_MADE.xchg(1, Relaxed) != 0 {
            return Err(EBUSY);
        }
        // SAFETY: Called only once: by the caller whose exchange found 0.
        unsafe { REGISTRY.init() };
        let watch = Some(Watch::new(registry.clone())?);
        *REGISTRY.lock() = Some(registry);
        Ok(Self { watch })
    }
}

impl Drop for Exports {
    fn drop(&mut self) {
        self.watch = None;
        // Dropped outside the lock.
        let _registry = REGISTRY.lock().take();
    }
}

/// Returns the registry, while this module is loaded. May sleep.
fn the_registry() -> Result<Arc<Registry>> {
    REGISTRY.lock().clone().ok_or(ENODEV)
}

/// The argument of a callback, see `struct latency_tracker_report`.
pub(crate) struct Report<'a> {
    pub(crate) why: Why,
    pub(crate) key: &'a [u64],
    pub(crate) key_size: usize,
    pub(crate) data: &'a [u64],
    pub(crate) data_size: usize,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) delay: u64,
    pub(crate) threshold: u64,
    pub(crate) id: u64,
}

/// The callback of a module.
///
/// # Invariants
///
/// `function`, if there is one, may be called with a valid report in any context, until the
/// module's tracker is destroyed.
pub(crate) struct Callback {
    function: bindings::latency_tracker_fn,
    private: *mut c_void,
    /// Address of the tracker that the callback belongs to.
    tracker: Atomic<u64>,
}

// SAFETY: By the type invariant, `function` may be called in any context; `private` is only passed
// to it.
unsafe impl Send for Callback {}
// SAFETY: As for `Send`; `tracker` is atomic.
unsafe impl Sync for Callback {}

impl Callback {
    /// Stores the address of the tracker, before any event can be late.
    pub(crate) fn bind(&self, tracker: &Any) {
        // Relaxed: other CPUs get access to the tracker after this.
        self.tracker
            .store(ptr::from_ref(tracker).expose_provenance() as u64, Relaxed);
    }

    /// Calls the callback, if there is one. Returns `false` if it must not be called, since too
    /// many callbacks are nested.
    pub(crate) fn call(&self, guard: &PreemptGuard, report: &Report<'_>) -> bool {
        let Some(function) = self.function else {
            return true;
        };
        let Some(_inside) = Inside::enter(guard) else {
            return false;
        };
        let tracker = self.tracker.load(Relaxed) as usize;
        let report = bindings::latency_tracker_report {
            tracker: ptr::with_exposed_provenance_mut(tracker),
            priv_: self.private,
            key: report.key.as_ptr().cast(),
            data: report.data.as_ptr().cast(),
            start: report.start,
            end: report.end,
            delay: report.delay,
            threshold: report.threshold,
            id: report.id,
            key_size: report.key_size as u32,
            data_size: report.data_size as u32,
            reason: match report.why {
                Why::Threshold => bindings::latency_tracker_reason_LATENCY_TRACKER_THRESHOLD,
                Why::Timeout => bindings::latency_tracker_reason_LATENCY_TRACKER_TIMEOUT,
                Why::LateEnd => bindings::latency_tracker_reason_LATENCY_TRACKER_LATE,
            },
        };
        // SAFETY: By the type invariant; the report, and all that it points to, outlive the call.
        unsafe { function(&report) };
        true
    }
}

/// # Safety
///
/// `raw` was returned by `latency_tracker_create`, and is not destroyed before `'a` ends.
#[inline(always)]
unsafe fn tracker<'a>(raw: *mut RawTracker) -> Result<&'a Any> {
    if raw.is_null() || is_error(raw.addr()) {
        return Err(EINVAL);
    }
    // SAFETY: The function's contract: the registry keeps the tracker until it is destroyed, which
    // is not before `'a` ends.
    Ok(unsafe { &*raw.cast::<Any>() })
}

/// Whether an address is an error pointer, as `IS_ERR`.
fn is_error(address: usize) -> bool {
    address as isize >= -4095 && (address as isize) < 0
}

fn error_pointer<T>(error: Error) -> *mut T {
    ptr::without_provenance_mut(error.to_errno() as isize as usize)
}

fn or_errno(result: Result) -> c_int {
    result.map_or_else(|error| error.to_errno(), |()| 0)
}

fn ended_or_errno(result: Result<Ended>) -> c_int {
    result.map_or_else(
        |error| error.to_errno(),
        |ended| match ended {
            Ended::Over => 0,
            Ended::Reporting => {
                bindings::latency_tracker_ended_LATENCY_TRACKER_ENDED_REPORTING as c_int
            }
        },
    )
}

/// Copies a configuration of this or a later version. Fields that this version does not have must
/// be 0.
///
/// # Safety
///
/// `raw` points to a configuration whose field `size` is its size.
unsafe fn read_config(raw: *const RawConfig) -> Result<RawConfig> {
    let mut config = RawConfig::default();
    // SAFETY: The function's contract: `size` is the first field of all versions.
    let size = unsafe { (*raw).size };
    let known = size_of::<RawConfig>();
    // This module implements the first version, so no valid configuration is smaller.
    if size < known {
        pr_err!("configuration with size={size}: expected at least {known}\n");
        return Err(EINVAL);
    }
    // SAFETY: The function's contract: `raw` points to `size` bytes, at least `known`; every value
    // of a field is valid.
    let unknown = unsafe {
        ptr::copy_nonoverlapping(raw, &mut config, 1);
        core::slice::from_raw_parts(raw.cast::<u8>().add(known), size - known)
    };
    if unknown.iter().any(|&byte| byte != 0) {
        pr_err!("configuration with size={size}: it sets fields that this version does not have\n");
        return Err(E2BIG);
    }
    Ok(config)
}

/// Makes the function return `EINVAL`, and logs what was expected, unless the condition holds.
macro_rules! expect {
    ($name:expr, $condition:expr, $($message:tt)+) => {
        if !$condition {
            let name = core::str::from_utf8($name).unwrap_or("?");
            pr_err!("tracker {name}: {}\n", fmt!($($message)+));
            return Err(EINVAL);
        }
    };
}

/// # Safety
///
/// As for `latency_tracker_create`.
unsafe fn create(raw: *const RawConfig) -> Result<*mut RawTracker> {
    may_wait("create")?;
    // SAFETY: The function's contract.
    let config = unsafe { read_config(raw) }?;
    if config.name.is_null() {
        pr_err!("configuration with name=NULL: expected a name\n");
        return Err(EINVAL);
    }
    // SAFETY: The function's contract: a C string.
    let name = unsafe { CStr::from_ptr(config.name.cast()) }.to_bytes();
    control::check_name(name).map_err(|fault| {
        pr_err!("{fault}\n");
        fault.error
    })?;
    // Only a loadable module can call this, so its THIS_MODULE is not NULL.
    expect!(
        name,
        !config.owner.is_null(),
        "owner=NULL: expected THIS_MODULE"
    );
    let known = bindings::latency_tracker_flags_LATENCY_TRACKER_UNIQUE
        | bindings::latency_tracker_flags_LATENCY_TRACKER_WORST
        | bindings::latency_tracker_flags_LATENCY_TRACKER_VARIABLE_KEYS
        | bindings::latency_tracker_flags_LATENCY_TRACKER_SHOW_KEYS;
    let has = |flag| config.flags & flag != 0;
    let (key_size, data_size) = (config.key_size as usize, config.data_size as usize);
    let (capacity, most) = (config.capacity, config.max_capacity);
    let (timeout, shortest) = (config.timeout, config.min_event_timeout);
    let flags = config.flags & !known;
    expect!(name, flags == 0, "unknown flags {flags:#x}");
    expect!(
        name,
        (1..=KEY_MAX).contains(&key_size),
        "key_size={key_size}: expected 1 to {KEY_MAX}"
    );
    expect!(
        name,
        data_size <= DATA_MAX,
        "data_size={data_size}: expected at most {DATA_MAX}"
    );
    expect!(
        name,
        (1..=MAX_CELLS).contains(&capacity),
        "capacity={capacity}: expected 1 to {MAX_CELLS}"
    );
    expect!(
        name,
        most == 0 || (capacity..=MAX_CELLS).contains(&most),
        "max_capacity={most}: expected {capacity} to {MAX_CELLS}"
    );
    expect!(
        name,
        timeout <= DURATION_MAX,
        "timeout={timeout}: expected at most a year, in ns"
    );
    expect!(
        name,
        shortest <= DURATION_MAX,
        "min_event_timeout={shortest}: expected at most a year, in ns"
    );

    let mut values = Values::defaults(KIND.params)?;
    values[common::THRESHOLD] = config.threshold.into();
    values[common::EVENTS] = capacity.into();
    values[common::MAX_EVENTS] = capacity.max(most).into();
    values[common::TIMEOUT] = timeout.into();
    values[common::WORST] = has(bindings::latency_tracker_flags_LATENCY_TRACKER_WORST).into();
    let mut handle = ptr::null();
    the_registry()?.adopt(name, &values, |name, all| {
        // SAFETY: The function's contract: `owner` is the module that calls us, and its trackers
        // are removed before it is unloaded.
        let owner = unsafe { Owner::new(config.owner) };
        // INVARIANT: The function's contract: the module's function is valid until the module
        // destroys the tracker.
        let callback = Callback {
            function: config.callback,
            private: config.priv_,
            tracker: Atomic::new(0),
        };
        let config = Config {
            callback,
            key_size,
            data_size,
            min_event_timeout: shortest,
            unique: has(bindings::latency_tracker_flags_LATENCY_TRACKER_UNIQUE),
            variable_keys: has(bindings::latency_tracker_flags_LATENCY_TRACKER_VARIABLE_KEYS),
            show_keys: has(bindings::latency_tracker_flags_LATENCY_TRACKER_SHOW_KEYS),
        };
        let (any, instance) = crate::api::create(name, owner, &values, config, all)?;
        handle = any;
        Ok(instance)
    })?;
    Ok(handle.cast_mut().cast())
}

// The functions that follow are documented in include/latency_tracker.h. They share this contract:
// a pointer to a tracker comes from `latency_tracker_create`, and the tracker is not destroyed
// before the call returns.

#[no_mangle]
unsafe extern "C" fn latency_tracker_create(config: *const RawConfig) -> *mut RawTracker {
    // SAFETY: The caller's promise: a valid configuration.
    unsafe { create(config) }.unwrap_or_else(error_pointer)
}

/// Fails with `EDEADLK` inside a callback, which would wait for itself, and logs that
/// `latency_tracker_FUNCTION` was refused.
fn may_wait(function: &str) -> Result {
    if Inside::is_anywhere(&Kernel::guard()) {
        pr_err!("latency_tracker_{function}() refused: it sleeps, and a callback cannot\n");
        // The `kernel` crate has no name for this error yet.
        return Err(Error::from_errno(-(kernel::bindings::EDEADLK as c_int)));
    }
    Ok(())
}

#[no_mangle]
extern "C" fn latency_tracker_destroy(raw: *mut RawTracker) {
    if raw.is_null() || is_error(raw.addr()) || may_wait("destroy").is_err() {
        return;
    }
    let Ok(registry) = the_registry() else { return };
    if registry.disown(|by| by.handle == raw.addr()).is_none() {
        pr_err!("latency_tracker_destroy(): no such tracker, or already destroyed\n");
    }
}

#[no_mangle]
unsafe extern "C" fn latency_tracker_clear(raw: *mut RawTracker) -> u64 {
    if may_wait("clear").is_err() {
        return 0;
    }
    // SAFETY: The contract above.
    let cleared = unsafe { tracker(raw) }.map_or(0, Any::clear);
    // Reports of the timeouts of cleared events may still be running.
    Kernel::synchronize();
    cleared
}

#[no_mangle]
unsafe extern "C" fn latency_tracker_synchronize(raw: *mut RawTracker) -> c_int {
    // SAFETY: The contract above.
    or_errno(unsafe { tracker(raw) }.and_then(|_| {
        may_wait("synchronize")?;
        // Each callback runs with preemption off, whatever its tracker.
        Kernel::synchronize();
        Ok(())
    }))
}

#[no_mangle]
unsafe extern "C" fn latency_tracker_set_threshold(raw: *mut RawTracker, ns: u64) {
    // SAFETY: The contract above.
    if let Ok(tracker) = unsafe { tracker(raw) } {
        tracker.set_threshold(ns);
    }
}

/// Changes one parameter, for the function `latency_tracker_FUNCTION`.
fn change(function: &str, raw: *mut RawTracker, at: usize, value: u64) -> Result {
    may_wait(function)?;
    let mut changes = Changes::none()?;
    changes.set(at, value.into());
    let instance = the_registry()?.find(|by| by.handle == raw.addr());
    Instance::apply(&*instance.ok_or(ENODEV)?, &changes)
}

#[no_mangle]
extern "C" fn latency_tracker_set_timeout(raw: *mut RawTracker, ns: u64) -> c_int {
    if ns > DURATION_MAX {
        return ERANGE.to_errno();
    }
    or_errno(change("set_timeout", raw, common::TIMEOUT, ns))
}

#[no_mangle]
extern "C" fn latency_tracker_set_enabled(raw: *mut RawTracker, on: bool) -> c_int {
    or_errno(change("set_enabled", raw, common::ENABLED, u64::from(on)))
}
