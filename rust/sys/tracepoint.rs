// SPDX-License-Identifier: GPL-2.0

//! Attaches functions to tracepoints.
//!
//! ```text
//!   Probe<T>: a tracepoint's name, a function     Attachment<T>: they are called,
//!   Probe<T>: ...                          -----> with this T
//!   in the order of attaching: ends first         drop: detached, starts first; waits
//! ```
//!
//! For a measured probe (measure.rs), a tracepoint calls [`measured`], which calls the probe.
//!
//! Each file in this directory that uses tracepoints has a list of its probes. The types of their
//! arguments are in tracepoints.h: [`probe!`] takes a function of exactly that type, and
//! tracepoints.c compares it with the kernel's declaration. These probes are for tracepoints of the
//! kernel proper. Tracepoints of modules have only probes that take any arguments (raw.rs), since
//! no header describes their arguments.
//!
//! # Lifetime
//!
//! A tracepoint of the kernel proper is static. A tracepoint of a module is freed with the module,
//! so an [`Attachment`] holds a reference to the module, from before its probe can be called until
//! after the last call has returned:
//!
//! ```text
//!   try_module_get -> register -> ... -> unregister -> synchronize -> module_put
//! ```
//!
//! C header: [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h)

use crate::{
    engine::platform::Platform,
    sys::{
        measure::{self, Meter, Target},
        platform::{Kernel, PreemptGuard},
    }, //
};
use core::{ffi::CStr, marker::PhantomData, ptr::NonNull};
use kernel::{
    bindings,
    error::{from_err_ptr, to_result},
    ffi::c_void,
    prelude::*,
    sync::Arc, //
};

/// A module that stays loaded as long as the value exists.
///
/// # Invariants
///
/// The value owns a reference to the module.
struct Loaded(NonNull<bindings::module>);

// SAFETY: Any thread may release the reference.
unsafe impl Send for Loaded {}
// SAFETY: Nothing can be done with a shared `Loaded`.
unsafe impl Sync for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; the reference is released once.
        unsafe { crate::sys::bindings::lt_tracepoint_put(self.0.as_ptr()) };
    }
}

/// A tracepoint of the kernel proper or of a module.
///
/// # Invariants
///
/// `raw` points to a tracepoint: a static one, or one in the module that `module` keeps loaded.
pub(crate) struct Tracepoint {
    raw: NonNull<bindings::tracepoint>,
    module: Option<Loaded>,
}

impl Tracepoint {
    /// Finds a tracepoint of the kernel proper by its name, unless its arguments differ from those
    /// that our probes take, see [`fits`]. Does not sleep; iterates over all tracepoints.
    pub(crate) fn find(name: &CStr) -> Option<Self> {
        if !fits(name) {
            return None;
        }
        // SAFETY: The name is a C string that outlives the call.
        let found = unsafe { crate::sys::bindings::lt_tracepoint_find(name.as_ptr().cast()) };
        // INVARIANT: Tracepoints of the kernel proper are static.
        Some(Self {
            raw: NonNull::new(found)?,
            module: None,
        })
    }

    /// Finds a tracepoint with any arguments by its name: one of the kernel proper, or else of a
    /// module, which stays loaded as long as the result exists. May sleep; iterates over all
    /// tracepoints.
    ///
    /// Fails with `ENOENT` if there is none, `EBUSY` if its module is being loaded or unloaded,
    /// `EEXIST` if several modules have one of this name, or `EPERM` if it is one of ours.
    pub(crate) fn find_any(name: &CStr) -> Result<Self> {
        let mut module = core::ptr::null_mut();
        let name = name.as_ptr().cast();
        // SAFETY: The name is a C string that outlives the call, and `module` can be written.
        let found = unsafe { crate::sys::bindings::lt_tracepoint_get(name, &mut module) };
        let found = from_err_ptr(found)?;
        // INVARIANT: If the function returns a module, it has taken a reference to that module, and
        // the tracepoint is in the module.
        let module = NonNull::new(module).map(Loaded);
        Ok(Self {
            raw: NonNull::new(found).ok_or(ENOENT)?,
            module,
        })
    }
}

/// Whether a tracepoint has the arguments that our probes take, in the headers that this module was
/// built with. True for tracepoints without a probe of ours, and for any other name.
pub(crate) fn fits(name: &CStr) -> bool {
    // SAFETY: The name is a C string that outlives the call.
    unsafe { crate::sys::bindings::lt_tracepoint_fits(name.as_ptr().cast()) }
}

/// A function that can be called at a tracepoint, with a `T`.
///
/// # Invariants
///
/// The function satisfies the contract of [`Probe::new`], or of [`Probe::of_any`] if `takes_any`.
pub(crate) struct Probe<'a, T> {
    tracepoint: &'a CStr,
    function: *mut c_void,
    takes_any: bool,
    _with: PhantomData<fn(&T)>,
}

/// An identifier as a C string.
macro_rules! c_name {
    ($name:ident) => {
        match ::core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => unreachable!(),
        }
    };
}
pub(crate) use c_name;

/// Makes a [`Probe`] of the tracepoint of this name from a function that takes its arguments.
///
/// `probe!(sched_waking: waking::<T>)`; a function of another type does not compile.
///
/// # Safety
///
/// Given a pointer to a valid `T`, the function may be called in the tracepoint's context, with the
/// tracepoint's arguments, on any CPU.
macro_rules! probe {
    ($tracepoint:ident: $function:expr) => {
        ::kernel::macros::paste!({
            let function: $crate::sys::bindings::[<lt_probe_ $tracepoint>] = Some($function);
            const NAME: &::core::ffi::CStr = $crate::sys::tracepoint::c_name!($tracepoint);
            $crate::sys::tracepoint::Probe::new(
                NAME,
                function.map_or(::core::ptr::null_mut(), |f| f as *mut ::kernel::ffi::c_void),
            )
        })
    };
}
pub(crate) use probe;

/// Defines functions for [`probe!`] and for [`Calls`](super::fprobe::calls::Calls). The first
/// parameter is the value of type `T` that they were attached with. The others are the arguments of
/// the tracepoint, or the word that the kernel's function was called with or has returned.
macro_rules! callbacks {
    ($(
        $(#[$attribute:meta])*
        fn $name:ident<$type:ident: $bound:path $(, const $number:ident: $of:ty)*>(
            $with:ident $(, $argument:ident: $is:ty)* $(,)?
        ) { $($body:tt)* }
    )*) => {
        $(
            /// # Safety
            ///
            /// `data` is a valid `T`, and the other arguments are those that the kernel passes.
            $(#[$attribute])*
            unsafe extern "C" fn $name<$type: $bound $(, const $number: $of)*>(
                data: *mut ::kernel::ffi::c_void,
                $($argument: $is),*
            ) {
                // SAFETY: The function's contract.
                let $with = unsafe { &*data.cast::<$type>() };
                $($body)*
            }
        )*
    };
}
pub(crate) use callbacks;

impl<'a, T> Probe<'a, T> {
    /// # Safety
    ///
    /// `function` is an `extern "C" fn(*mut c_void, ...)` whose further arguments are those of the
    /// tracepoint's `TP_PROTO`, or integers that are passed in as many registers. Given a pointer
    /// to a valid `T`, it may be called in the tracepoint's context, on any CPU.
    ///
    /// [`probe!`] ensures that the arguments match.
    pub(crate) unsafe fn new(tracepoint: &'a CStr, function: *mut c_void) -> Self {
        // INVARIANT: The caller's promise.
        Self {
            tracepoint,
            function,
            takes_any: false,
            _with: PhantomData,
        }
    }

    /// Makes a probe for a tracepoint with any arguments, which may be in a module.
    ///
    /// # Safety
    ///
    /// `function` satisfies the contract of [`Probe::new`] for every tracepoint, whatever its
    /// arguments are.
    pub(crate) unsafe fn of_any(tracepoint: &'a CStr, function: *mut c_void) -> Self {
        // INVARIANT: The caller's promise.
        Self {
            tracepoint,
            function,
            takes_any: true,
            _with: PhantomData,
        }
    }

    /// Finds the tracepoint. May sleep. Fails with `ENOSYS` if the kernel lacks it; for a probe
    /// that takes any arguments, fails as [`Tracepoint::find_any`] does.
    fn find(&self) -> Result<Tracepoint> {
        if self.takes_any {
            Tracepoint::find_any(self.tracepoint)
        } else {
            Tracepoint::find(self.tracepoint).ok_or_else(crate::sys::enosys)
        }
    }

    pub(crate) fn tracepoint(&self) -> &'a CStr {
        self.tracepoint
    }
}

/// An argument of a tracepoint that is a number, or an address that is not dereferenced.
pub(crate) trait Argument: Copy {
    /// Returns the number; a negative one is sign-extended.
    fn word(self) -> u64;
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl Argument for $type {
            #[inline(always)]
            #[allow(clippy::cast_lossless, reason = "not of all of these types")]
            fn word(self) -> u64 {
                self as u64
            }
        })*
    };
}
numbers!(bool, u8, u16, u32, i32, usize, isize, u64, i64);

impl<T> Argument for *mut T {
    #[inline(always)]
    fn word(self) -> u64 {
        self as u64
    }
}

impl<T> Argument for *const T {
    #[inline(always)]
    fn word(self) -> u64 {
        self as u64
    }
}

/// The handler of a tracepoint with `N` arguments, given a `Data`. For [`handled!`].
pub(crate) trait Handler<const N: usize> {
    type Data: Send + Sync + 'static;

    /// Handles the tracepoint, in its context, with preemption off.
    fn handle(data: &Self::Data, guard: &PreemptGuard, arguments: [u64; N]);
}

macro_rules! handlers {
    ($($name:ident: $len:literal, $($argument:ident: $type:ident),*;)*) => {
        $(
            /// # Safety
            ///
            /// `data` is a valid `H::Data`.
            #[allow(dead_code, reason = "not every number of arguments is in use")]
            pub(crate) unsafe extern "C" fn $name<H: Handler<$len>, $($type: Argument),*>(
                data: *mut c_void,
                $($argument: $type),*
            ) {
                // SAFETY: The function's contract.
                let data = unsafe { &*data.cast::<H::Data>() };
                H::handle(data, &Kernel::guard(), [$($argument.word()),*]);
            }
        )*
    };
}

handlers! {
    handler_1: 1, a: A;
    handler_2: 2, a: A, b: B;
    handler_3: 3, a: A, b: B, c: C;
    handler_4: 4, a: A, b: B, c: C, d: D;
    handler_5: 5, a: A, b: B, c: C, d: D, e: E;
}

/// Makes a [`Probe`] of the tracepoint of this name that takes its arguments as numbers:
/// `handled!(softirq_exit(vector): |probes: Probes, guard| probes.left(guard, vector))`.
///
/// It compiles only with the tracepoint's number of arguments.
macro_rules! handled {
    ($tracepoint:ident($($argument:ident),+): |$data:ident: $type:ty, $guard:ident| $do:expr) => {{
        struct This;

        impl $crate::sys::tracepoint::Handler<
            { $crate::sys::tracepoint::handled!(@count $($argument)+) }
        > for This {
            type Data = $type;

            #[inline(always)]
            #[allow(unused_variables, reason = "not every argument is of interest")]
            fn handle(
                $data: &$type,
                $guard: &$crate::sys::platform::PreemptGuard,
                [$($argument),+]: [u64; $crate::sys::tracepoint::handled!(@count $($argument)+)],
            ) {
                $do
            }
        }

        // SAFETY: Given a pointer to a valid `$type`, which the type of the result requires, the
        // function does nothing with the arguments but convert them to numbers, in any context.
        let probe: $crate::sys::tracepoint::Probe<'static, $type> = unsafe {
            $crate::sys::tracepoint::probe!($tracepoint: $crate::sys::tracepoint::handled!(
                @function $($argument)+
            ))
        };
        probe
    }};
    (@count $a:ident) => { 1 };
    (@count $a:ident $b:ident) => { 2 };
    (@count $a:ident $b:ident $c:ident) => { 3 };
    (@count $a:ident $b:ident $c:ident $d:ident) => { 4 };
    (@count $a:ident $b:ident $c:ident $d:ident $e:ident) => { 5 };
    (@function $a:ident) => { $crate::sys::tracepoint::handler_1::<This, _> };
    (@function $a:ident $b:ident) => { $crate::sys::tracepoint::handler_2::<This, _, _> };
    (@function $a:ident $b:ident $c:ident) => {
        $crate::sys::tracepoint::handler_3::<This, _, _, _>
    };
    (@function $a:ident $b:ident $c:ident $d:ident) => {
        $crate::sys::tracepoint::handler_4::<This, _, _, _, _>
    };
    (@function $a:ident $b:ident $c:ident $d:ident $e:ident) => {
        $crate::sys::tracepoint::handler_5::<This, _, _, _, _, _>
    };
}
pub(crate) use handled;

/// Returns the first tracepoint that probes need and this kernel lacks, if any.
pub(crate) fn missing<T>(
    probes: impl IntoIterator<Item = Probe<'static, T>>,
) -> Option<&'static CStr> {
    probes
        .into_iter()
        .map(|probe| probe.tracepoint)
        .find(|name| Tracepoint::find(name).is_none())
}

/// The function of a probe, whatever its arguments: it takes them from the registers in which
/// [`measured`] passes them.
type Function = unsafe extern "C" fn(*mut c_void, u64, u64, u64, u64, u64);

/// A probe that is measured.
struct Measured<T> {
    function: Function,
    with: Arc<T>,
    meter: Arc<dyn Meter>,
}

/// Calls a probe, and measures it. The arguments pass through unchanged, see raw.rs. No tracepoint
/// in our lists has more arguments than fit into registers, and probes of other tracepoints take
/// only arguments in registers.
///
/// # Safety
///
/// `data` is a valid `Measured<T>`, whose function may be called here.
unsafe extern "C" fn measured<T: Target>(
    data: *mut c_void,
    a0: u64,
    a1: u64,
    a2: u64,
    a3: u64,
    a4: u64,
) {
    // SAFETY: The function's contract.
    let this = unsafe { &*data.cast::<Measured<T>>() };
    let with = Arc::as_ptr(&this.with).cast_mut().cast::<c_void>();
    // SAFETY: The contract of `measured`: `this.function` may be called here, with a valid `T` and
    // the tracepoint's arguments.
    let run = || unsafe { (this.function)(with, a0, a1, a2, a3, a4) };
    measure::around(&*this.meter, |guard| this.with.changes(guard), run);
}

/// Attached probes, which are called with a `T` until this is dropped. Dropping may sleep.
pub(crate) struct Attachment<T> {
    attached: KVec<Attached>,
    /// The modules of the tracepoints. They, `measured` and `with` stay until the last probe has
    /// returned.
    modules: KVec<Loaded>,
    measured: KVec<KBox<Measured<T>>>,
    with: Arc<T>,
}

impl<T: Target> Attachment<T> {
    /// Attaches probes in their order. May sleep. Fails with `ENOSYS` if the kernel lacks a
    /// tracepoint; as [`Tracepoint::find_any`] does, for a probe that takes any arguments; or with
    /// `ENOMEM`. A failure leaves nothing attached.
    pub(crate) fn new<'a>(
        with: Arc<T>,
        probes: impl IntoIterator<Item = Probe<'a, T>>,
    ) -> Result<Self> {
        let mut this = Self {
            attached: KVec::new(),
            modules: KVec::new(),
            measured: KVec::new(),
            with,
        };
        for probe in probes {
            let Tracepoint { raw, module } = probe.find()?;
            if let Some(module) = module {
                this.modules.push(module, GFP_KERNEL)?;
            }
            let (function, data) = this.called(&probe)?;
            // SAFETY: By the invariant of `Probe` the probe's function fits the tracepoint, and may
            // be called with a pointer to a valid `T`, on all CPUs at once, as `T: Target` is
            // `Sync`. Either `function` is that function, and `data` points to the `T` of
            // `this.with`; or `function` is `measured`, and `data` points to a `Measured<T>` in
            // `this.measured`: `measured` then calls the probe's function with the same `T` and the
            // tracepoint's arguments. By the invariant of `Tracepoint`, `raw` is static or in the
            // module. The `T`, the `Measured<T>` and the module are held until after `synchronize`
            // in `drop`, when no probe is running; `drop` also runs if this function fails.
            let attached = unsafe { Attached::new(raw, function, data)? };
            this.attached.push(attached, GFP_KERNEL)?;
        }
        Ok(this)
    }

    /// Returns the function that the tracepoint of a probe calls, and its first argument. May
    /// sleep.
    fn called(&mut self, probe: &Probe<'_, T>) -> Result<(*mut c_void, *mut c_void)> {
        let Some(meter) = self.with.meter(probe.tracepoint) else {
            let data = Arc::as_ptr(&self.with).cast_mut().cast();
            return Ok((probe.function, data));
        };
        // SAFETY: By the invariant of `Probe` it is a function with this ABI that takes at most
        // this many arguments, each in a register, so more may be passed than it takes.
        let function = unsafe { core::mem::transmute::<*mut c_void, Function>(probe.function) };
        let with = self.with.clone();
        let measured = KBox::new(
            Measured {
                function,
                with,
                meter,
            },
            GFP_KERNEL,
        )?;
        let data = core::ptr::from_ref::<Measured<T>>(&measured)
            .cast_mut()
            .cast();
        self.measured.push(measured, GFP_KERNEL)?;
        Ok((self::measured::<T> as *mut c_void, data))
    }
}

impl<T> Drop for Attachment<T> {
    fn drop(&mut self) {
        // In reverse order.
        while self.attached.pop().is_some() {}
        synchronize();
        // The other fields are dropped now, and with them the references to modules.
    }
}

/// A function that is called at a tracepoint, until dropped.
///
/// After the drop the function may still be running: [`synchronize`] waits for it.
struct Attached {
    tracepoint: NonNull<bindings::tracepoint>,
    function: *mut c_void,
    data: *mut c_void,
}

// SAFETY: The pointers are only passed back to the tracepoint code, from any thread.
unsafe impl Send for Attached {}
// SAFETY: Nothing can be done with a shared `Attached`.
unsafe impl Sync for Attached {}

impl Attached {
    /// Attaches `function`, to be called with `data` and the tracepoint's arguments.
    ///
    /// # Safety
    ///
    /// - `tracepoint` points to a tracepoint that exists until the result has been dropped.
    /// - `function` is an `extern "C" fn(*mut c_void, ...)` whose further arguments are those of
    ///   the tracepoint's `TP_PROTO`, or integers that are passed in as many registers.
    /// - It may be called with `data` in the tracepoint's context on any CPU, until
    ///   [`synchronize`] has returned after the result was dropped.
    unsafe fn new(
        tracepoint: NonNull<bindings::tracepoint>,
        function: *mut c_void,
        data: *mut c_void,
    ) -> Result<Self> {
        // SAFETY: The function's contract.
        to_result(unsafe {
            bindings::tracepoint_probe_register(tracepoint.as_ptr(), function, data)
        })?;
        Ok(Self {
            tracepoint,
            function,
            data,
        })
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // SAFETY: Was registered with these three by `new`, and the tracepoint still exists.
        // Unregistering fails only if the function was not registered.
        unsafe {
            bindings::tracepoint_probe_unregister(
                self.tracepoint.as_ptr(),
                self.function,
                self.data,
            )
        };
    }
}

/// Waits until no detached probe is running, and until all sections with preemption off that have
/// begun by now are over. May sleep.
pub(crate) fn synchronize() {
    // SAFETY: Called where sleeping is allowed.
    unsafe { crate::sys::bindings::lt_tracepoint_sync() };
}
