// SPDX-License-Identifier: GPL-2.0

//! The instances that wait for work, so that a program marks it at the top without their names.
//!
//! ```text
//!   work_begin, work_done ---> Works ---> each instance with end=work
//! ```
//!
//! The list has a lock of its own, since that of the registry is held while an instance is created,
//! and programs that mark work must not wait for that. All functions sleep, while the holder of the
//! lock makes a few short calls.

use crate::instance::work::{Cookie, Work};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{Arc, Mutex}, //
};

/// See the head of this file.
#[pin_data]
pub(crate) struct Works {
    #[pin]
    list: Mutex<KVec<Arc<dyn Work>>>,
}

impl Works {
    /// An empty list. `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let list = pin_init!(Self {
            list <- new_mutex!(KVec::new()),
        });
        Arc::pin_init(list, GFP_KERNEL)
    }

    /// Adds an instance, until the result is dropped. `ENOMEM`.
    pub(super) fn add(self: &Arc<Self>, work: Arc<dyn Work>) -> Result<Listed> {
        self.list.lock().push(work.clone(), GFP_KERNEL)?;
        let works = self.clone();
        Ok(Listed { works, work })
    }

    /// Work begins, for all instances that wait for any. `ENODEV` if none does; `ENOSPC` if one has
    /// no room for more.
    pub(crate) fn begin(&self, cookie: Cookie<'_>) -> Result {
        self.each(|work| work.begin(cookie))
    }

    /// Work is done, for all instances that wait for any. Errors as of [`Works::begin`].
    pub(crate) fn done(&self, cookie: Cookie<'_>) -> Result {
        self.each(|work| work.done(cookie))
    }

    /// Tells all that are on; returns the first error of these.
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
