// SPDX-License-Identifier: GPL-2.0

//! The instances that wait for work, so that programs can mark work at the top level, without
//! naming the instances.
//!
//! ```text
//!   work_begin, work_done ---> Works ---> each instance with end=work
//! ```
//!
//! The list has a lock of its own, since the registry's lock is held while an instance is
//! created, and programs that mark work must not wait for that. All functions may sleep. Marking
//! work sleeps only while the holder of the list's lock makes a few short calls or copies the list.

use crate::instance::work::{Cookie, Work};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{Arc, Mutex}, //
};

/// The list of the instances that wait for work. See the head of this file.
#[pin_data]
pub(crate) struct Works {
    #[pin]
    list: Mutex<KVec<Arc<dyn Work>>>,
}

impl Works {
    /// Creates an empty list. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let list = pin_init!(Self {
            list <- new_mutex!(KVec::new()),
        });
        Arc::pin_init(list, GFP_KERNEL)
    }

    /// Adds an instance, until the result is dropped. The caller holds the registry's lock. Fails
    /// with `ENOMEM`.
    pub(super) fn add(self: &Arc<Self>, work: Arc<dyn Work>) -> Result<Listed> {
        // The memory is allocated and freed without the lock, since programs that mark work wait
        // for the lock. Under the registry's lock, the list does not grow meanwhile.
        let len = self.list.lock().len();
        let mut longer = KVec::with_capacity(len + 1, GFP_KERNEL)?;
        let mut list = self.list.lock();
        for other in list.iter() {
            longer.push(other.clone(), GFP_KERNEL)?;
        }
        longer.push(work.clone(), GFP_KERNEL)?;
        core::mem::swap(&mut *list, &mut longer);
        drop(list);
        let works = self.clone();
        Ok(Listed { works, work })
    }

    /// Marks the start of work, for all instances that wait for work. Fails with `ENODEV` if no
    /// such instance is enabled, or `ENOSPC` if one has no room for more work.
    pub(crate) fn begin(&self, cookie: Cookie<'_>) -> Result {
        self.each(|work| work.begin(cookie))
    }

    /// Marks work as done, for all instances that wait for work. Fails with `ENODEV` if no such
    /// instance is enabled.
    pub(crate) fn done(&self, cookie: Cookie<'_>) -> Result {
        self.each(|work| work.done(cookie))
    }

    /// Passes each instance to `tell`. Returns the first error of an enabled instance, if there is
    /// one, or `ENODEV` if no instance is enabled.
    fn each(&self, tell: impl Fn(&dyn Work) -> Result) -> Result {
        let mut told = Err(ENODEV);
        for work in self.list.lock().iter() {
            match (tell(&**work), told) {
                (Err(ENODEV), _) => (),
                (result, Ok(()) | Err(ENODEV)) => told = result,
                _ => (),
            }
        }
        told
    }
}

/// An instance that is in the list.
pub(super) struct Listed {
    works: Arc<Works>,
    work: Arc<dyn Work>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut list = self.works.list.lock();
        list.retain(|work| !Arc::ptr_eq(work, &self.work));
    }
}
