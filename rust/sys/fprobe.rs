// SPDX-License-Identifier: GPL-2.0

//! Follows functions of the kernel and its modules, from entry to return.
//!
//! C header: [`include/linux/fprobe.h`](srctree/include/linux/fprobe.h)
//!
//! ```text
//!   caller --call--> function: ftrace --> entered() -> a word, or None: not followed
//!     ^                 |                                |
//!     |                 |                   shadow stack of the task: [.. | word | ..]
//!     +----return-------+--> fgraph ----> returned() <---+
//! ```
//!
//! The word is kept with the return address on the task's shadow stack. The address of the word is
//! the *frame*: of two calls that have not returned, in one task or in interrupts on top of it, the
//! later one has the higher frame, and returns first.
//!
//! All functions of the given name are followed, and their modules stay loaded.
//!
//! # What is not followed
//!
//! Calls are not followed if they are made in a context in which [`Functions`] is running an
//! observer, or while readers are woken: [`Observer::within_ourselves`] is called instead. So an
//! observer may call the function it follows, and waking a reader of a function's alerts never
//! generates new alerts. The number of calls that fprobe itself misses is passed to
//! [`Observer::missed`]; a call for which the shadow stack has no room (more than about 50 nested
//! ones) is not seen at all.
//!
//! # Contexts
//!
//! The contexts of the function: any, including NMI. Preemption is off.

use crate::sys::{
    bindings as helpers,
    measure::{self, Meter, Target},
    platform::PreemptGuard, //
};
use core::{
    ffi::CStr,
    marker::PhantomData,
    ptr::{addr_of, NonNull}, //
};
use kernel::{
    error::{from_err_ptr, to_result},
    ffi::{c_int, c_ulong, c_void},
    prelude::*,
    str::CString,
    sync::Arc, //
};

pub(crate) mod calls;

/// A call of a function, at its entry or its return.
pub(crate) struct Call<'a> {
    /// The address of the function.
    pub(crate) function: u64,
    /// The return address.
    pub(crate) caller: u64,
    regs: NonNull<helpers::ftrace_regs>,
    _during: PhantomData<&'a c_void>,
}

impl Call<'_> {
    /// # Safety
    ///
    /// `regs` are the registers that fprobe has passed to the caller.
    unsafe fn new(function: c_ulong, caller: c_ulong, regs: *mut helpers::ftrace_regs) -> Self {
        Self {
            function: function as u64,
            caller: caller as u64,
            // SAFETY: The function's contract.
            regs: unsafe { NonNull::new_unchecked(regs) },
            _during: PhantomData,
        }
    }

    /// Returns the register of the `nth` argument, from 0, at the entry.
    pub(crate) fn argument(&self, nth: u32) -> u64 {
        // SAFETY: The registers are valid during the call.
        unsafe { helpers::lt_fprobe_argument(self.regs.as_ptr(), nth) }
    }

    /// Returns the register of the result, at the return.
    pub(crate) fn result(&self) -> u64 {
        // SAFETY: The registers are valid during the call.
        unsafe { helpers::lt_fprobe_result(self.regs.as_ptr()) }
    }
}

/// The address at which a word is kept during a call; 0 if none is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Frame(pub(crate) u64);

/// Receives the calls of functions. `S` distinguishes the roles of a type that implements this more
/// than once. See "Contexts" above.
pub(crate) trait Observer<S>: Target {
    /// Called at the entry of a function. Returns the word to keep, or `None` if its return is not
    /// of interest.
    fn entered(&self, guard: &PreemptGuard, call: &Call<'_>, frame: Frame) -> Option<u64>;

    /// Called at the return of a function for which [`Observer::entered`] kept a word. If the
    /// function was entered before this [`Functions`] existed, the word may be from the observer of
    /// an earlier [`Functions`] that was dropped.
    fn returned(&self, guard: &PreemptGuard, call: &Call<'_>, frame: Frame, word: u64);

    /// Called instead of [`Observer::entered`] or [`Observer::returned`] while an observer is
    /// running in the same context, or readers are being woken.
    fn within_ourselves(&self, guard: &PreemptGuard);

    /// Called by [`Functions::collect_missed`] and when [`Functions`] is dropped, with the number
    /// of calls that fprobe has missed since the last time. May sleep.
    fn missed(&self, calls: u64);
}

/// The events of a function that can be followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// Calls and returns.
    Both,
    /// Only calls: there is no frame.
    Entry,
}

/// Calls `outside`, unless an observer is already running in this context, or readers are being
/// woken.
#[inline(always)]
fn apart<R>(guard: &PreemptGuard, outside: impl FnOnce(&PreemptGuard) -> R) -> Option<R> {
    // SAFETY: Preemption is off, as the guard proves.
    if !unsafe { helpers::lt_fprobe_enter() } {
        return None;
    }
    let result = outside(guard);
    // SAFETY: As above; balances the call that succeeded.
    unsafe { helpers::lt_fprobe_leave() };
    Some(result)
}

/// # Safety
///
/// To be called by fprobe for a probe that [`Functions::new`] made with an owner that is an `F`,
/// and with room for a word if it has a return handler.
unsafe extern "C" fn entered<S, F: Observer<S>>(
    probe: *mut helpers::fprobe,
    function: c_ulong,
    caller: c_ulong,
    regs: *mut helpers::ftrace_regs,
    data: *mut c_void,
) -> c_int {
    // SAFETY: The probe is the first field of ours, and the owner lives as long as the probe.
    let observer = unsafe { &*(*probe.cast::<helpers::lt_fprobe>()).owner.cast::<F>() };
    // SAFETY: fprobe turns preemption off.
    let guard = unsafe { PreemptGuard::already() };
    // SAFETY: fprobe has passed these registers.
    let call = unsafe { Call::new(function, caller, regs) };
    let frame = Frame(data.addr() as u64);
    let kept = apart(guard, |guard| observer.entered(guard, &call, frame));
    match kept {
        Some(Some(word)) => {
            if let Some(data) = NonNull::new(data.cast::<u64>()) {
                // SAFETY: `data` is not NULL, so there is room for a word, aligned as the longs of
                // the shadow stack.
                unsafe { data.write(word) };
            }
            0
        }
        Some(None) => 1,
        None => {
            observer.within_ourselves(guard);
            1
        }
    }
}

/// # Safety
///
/// Handles the return of a call for which [`entered`] has returned 0.
unsafe extern "C" fn returned<S, F: Observer<S>>(
    probe: *mut helpers::fprobe,
    function: c_ulong,
    caller: c_ulong,
    regs: *mut helpers::ftrace_regs,
    data: *mut c_void,
) {
    let ours = probe.cast::<helpers::lt_fprobe>();
    // SAFETY: The probe is the first field of ours. Volatile: `lt_fprobe_new` may be writing the
    // field.
    let first = unsafe { addr_of!((*ours).function).read_volatile() };
    // A call that a former probe in the same memory followed may be of another function.
    // SAFETY: As above, and the probe is registered.
    if first != function && !unsafe { helpers::lt_fprobe_follows(probe, function) } {
        return;
    }
    // SAFETY: As above, and the owner lives as long as the probe.
    let observer = unsafe { &*(*ours).owner.cast::<F>() };
    // SAFETY: As in `entered`.
    let guard = unsafe { PreemptGuard::already() };
    // SAFETY: As in `entered`.
    let call = unsafe { Call::new(function, caller, regs) };
    let Some(word) = NonNull::new(data.cast::<u64>()) else {
        return;
    };
    let frame = Frame(data.addr() as u64);
    // SAFETY: `entered` has written it, for this probe or a former one.
    let word = unsafe { word.read() };
    let done = apart(guard, |guard| observer.returned(guard, &call, frame, word));
    if done.is_none() {
        observer.within_ourselves(guard);
    }
}

/// The entry handler of an fprobe.
type Entry = unsafe extern "C" fn(
    *mut helpers::fprobe,
    c_ulong,
    c_ulong,
    *mut helpers::ftrace_regs,
    *mut c_void,
) -> c_int;

/// The return handler of an fprobe.
type Exit = unsafe extern "C" fn(
    *mut helpers::fprobe,
    c_ulong,
    c_ulong,
    *mut helpers::ftrace_regs,
    *mut c_void,
);

/// An observer that is measured. The handlers are called by their addresses, so that their code is
/// identical to the code of unmeasured probes.
struct Measured<F> {
    observer: Arc<F>,
    entered: Entry,
    returned: Exit,
    entry: Arc<dyn Meter>,
    exit: Arc<dyn Meter>,
}

impl<F: Target> Measured<F> {
    fn new<S>(name: &CStr, observer: &Arc<F>) -> Result<Option<KBox<Self>>>
    where
        F: Observer<S>,
    {
        let exit = CString::try_from_fmt(fmt!("{}:return", name.to_str()?))?;
        let (Some(entry), Some(exit)) = (observer.meter(name), observer.meter(&exit)) else {
            return Ok(None);
        };
        let this = Self {
            observer: observer.clone(),
            entered: entered::<S, F>,
            returned: returned::<S, F>,
            entry,
            exit,
        };
        Ok(Some(KBox::new(this, GFP_KERNEL)?))
    }
}

/// # Safety
///
/// Handles an entry, as [`entered`], for a probe that also has a `Measured<F>`.
unsafe extern "C" fn measured_entry<S, F: Observer<S>>(
    probe: *mut helpers::fprobe,
    function: c_ulong,
    caller: c_ulong,
    regs: *mut helpers::ftrace_regs,
    data: *mut c_void,
) -> c_int {
    // SAFETY: The probe is the first field of ours, and the `Measured` lives as long as the probe.
    let this = unsafe {
        &*(*probe.cast::<helpers::lt_fprobe>())
            .measured
            .cast::<Measured<F>>()
    };
    // SAFETY: The function's contract.
    let run = || unsafe { (this.entered)(probe, function, caller, regs, data) };
    measure::around(&*this.entry, |guard| this.observer.changes(guard), run)
}

/// # Safety
///
/// Handles a return, as [`returned`], for a probe that also has a `Measured<F>`.
unsafe extern "C" fn measured_exit<S, F: Observer<S>>(
    probe: *mut helpers::fprobe,
    function: c_ulong,
    caller: c_ulong,
    regs: *mut helpers::ftrace_regs,
    data: *mut c_void,
) {
    // SAFETY: The probe is the first field of ours, and the `Measured` lives as long as the probe.
    let this = unsafe {
        &*(*probe.cast::<helpers::lt_fprobe>())
            .measured
            .cast::<Measured<F>>()
    };
    // SAFETY: The function's contract.
    let run = || unsafe { (this.returned)(probe, function, caller, regs, data) };
    measure::around(&*this.exit, |guard| this.observer.changes(guard), run);
}

/// All functions with one name, followed until dropped. Dropping may sleep; afterwards no handler
/// is called.
pub(crate) struct Functions<S, F: Observer<S>> {
    raw: NonNull<helpers::lt_fprobe>,
    /// Number of missed calls that the observer knows of.
    reported: u64,
    /// This and the follower stay alive until no handler is running.
    _measured: Option<KBox<Measured<F>>>,
    follower: Arc<F>,
    _as: PhantomData<fn(S)>,
}

// SAFETY: The C side does its own locking; the observer is `Send` and `Sync`.
unsafe impl<S, F: Observer<S>> Send for Functions<S, F> {}

impl<S, F: Observer<S>> Functions<S, F> {
    /// Starts following. May sleep. Fails with `ENOENT` if no function of this name can be
    /// followed, `EBUSY` if the module of one is being loaded or unloaded, `ENOMEM`, or another
    /// error of fprobe.
    pub(crate) fn new(name: &CStr, what: What, observer: Arc<F>) -> Result<Self> {
        let owner = Arc::as_ptr(&observer).cast_mut().cast::<c_void>();
        let measured = Measured::new::<S>(name, &observer)?;
        let (entry, exit, with): (Entry, Exit, *const c_void) = match &measured {
            Some(this) => (
                measured_entry::<S, F>,
                measured_exit::<S, F>,
                core::ptr::from_ref::<Measured<F>>(this).cast(),
            ),
            None => (entered::<S, F>, returned::<S, F>, core::ptr::null()),
        };
        let exit = (what == What::Both).then_some(exit);
        // SAFETY: The handlers get the owner and the `Measured`, if any, both of which are held
        // until after `lt_fprobe_free`, and room for a word if there is a return handler.
        let raw = unsafe {
            from_err_ptr(helpers::lt_fprobe_new(
                name.as_ptr().cast(),
                Some(entry),
                exit,
                size_of::<u64>(),
                owner,
                with.cast_mut(),
            ))?
        };
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            reported: 0,
            _measured: measured,
            follower: observer,
            _as: PhantomData,
        })
    }

    /// Passes to the observer the number of calls that fprobe has missed since the last time.
    pub(crate) fn collect_missed(&mut self) {
        // SAFETY: Valid until it is freed by `drop`.
        let missed = unsafe { helpers::lt_fprobe_missed(self.raw.as_ptr()) };
        self.report_missed(missed);
    }

    fn report_missed(&mut self, missed: u64) {
        self.follower.missed(missed.wrapping_sub(self.reported));
        self.reported = missed;
    }
}

impl<S, F: Observer<S>> Drop for Functions<S, F> {
    fn drop(&mut self) {
        // SAFETY: Made by `lt_fprobe_new`, freed once.
        let missed = unsafe { helpers::lt_fprobe_free(self.raw.as_ptr()) };
        self.report_missed(missed);
    }
}

/// Cleans up on unload, when neither a [`Functions`] nor a [`calls::Calls`] exists. May sleep.
pub(crate) fn unload() {
    // SAFETY: The caller may sleep. If a probe were left after all, its memory would stay
    // allocated.
    unsafe { helpers::lt_fprobe_unload() };
}

/// Returns the first feature that this kernel lacks to follow functions, if any.
pub(crate) fn missing() -> Option<&'static CStr> {
    // SAFETY: No requirements.
    let is_possible = unsafe { helpers::lt_fprobe_possible() };
    (!is_possible).then_some(c"fprobe")
}

/// Finds the addresses of the functions with one name that can be followed, as many as fit in
/// `room`; returns their number. May sleep. Fails with `ENOENT` if there is none, `EBUSY` if the
/// module of one is being loaded or unloaded, `ENOMEM`, or `EOPNOTSUPP`.
///
/// The addresses may become stale: nothing keeps their modules loaded.
pub(crate) fn find(name: &CStr, room: &mut [u64]) -> Result<usize> {
    // SAFETY: The name is a C string that outlives the call, and there is that much room.
    let found = unsafe {
        helpers::lt_functions_find(
            name.as_ptr().cast(),
            room.as_mut_ptr(),
            u32::try_from(room.len())?,
        )
    };
    to_result(found)?;
    Ok(found as usize)
}

/// Checks whether a function of this name can be followed. May sleep. Fails with `ENOENT` if there
/// is none, `EBUSY` if its module is being loaded or unloaded, `EPERM` for a function of this
/// module that may run in a probe, `ENOTSUPP` if this kernel cannot follow functions, or another
/// error if it cannot be traced.
pub(crate) fn check(name: &CStr) -> Result {
    // SAFETY: The name is a C string that outlives the call.
    to_result(unsafe { helpers::lt_function_check(name.as_ptr().cast()) })
}
