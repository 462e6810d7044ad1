// SPDX-License-Identifier: GPL-2.0

//! Files that answer questions: a read returns the answer to the last write to the same open file,
//! as in the transaction files of libfs.
//!
//! Questions through one open file are answered one after another, and questions through different
//! open files concurrently.

use super::{object_of, Dir, File, Prompt, MESSAGE_MAX, NO_OPS};
use crate::sys::bindings as helpers;
use core::{ffi::CStr, marker::PhantomData, pin::Pin};
use kernel::{
    bindings,
    error::{from_result, to_result},
    ffi::{c_char, c_int},
    new_mutex,
    prelude::*,
    sync::{Arc, Mutex},
    types::ForeignOwnable,
    uaccess::{UserPtr, UserSlice},
};

/// A file that answers questions. Only users who may control the module can open it for writing.
pub(crate) trait Query: Send + Sync + 'static {
    /// Appends the answer to a question of at most [`MESSAGE_MAX`] bytes to `out`, which is empty.
    /// May sleep.
    fn answer(&self, question: &[u8], out: &mut KVec<u8>) -> Result;
}

impl Dir {
    /// Adds a file that answers questions. The group that may read other files has no access to
    /// it.
    pub(crate) fn query<T: Query>(self: &Arc<Self>, name: &CStr, file: T) -> Result<File> {
        self.add(name, 0o600, &QueryOps::<T>::OPS, Prompt(file))
    }
}

/// The answer to the last question, and the number of bytes already read.
struct OpenQuery {
    answer: KVec<u8>,
    fetched: usize,
}

struct QueryOps<T>(PhantomData<T>);

impl<T: Query> QueryOps<T> {
    const OPS: helpers::proc_ops = helpers::proc_ops {
        proc_open: Some(Self::open),
        proc_read: Some(Self::read),
        proc_write: Some(Self::write),
        proc_release: Some(Self::release),
        ..NO_OPS
    };

    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        from_result(|| {
            // SAFETY: Called by procfs for our file: the inode is in use.
            if !unsafe { helpers::lt_may_open(inode, file) } {
                return Err(EPERM);
            }
            let open = OpenQuery {
                answer: KVec::new(),
                fetched: 0,
            };
            let open = KBox::pin_init(new_mutex!(open), GFP_KERNEL)?;
            // SAFETY: The file is being opened, with no other user; no file position: a question
            // and its answer have none.
            unsafe {
                (*file).private_data = open.into_foreign().cast();
                to_result(bindings::stream_open(inode, file))?;
            }
            Ok(0)
        })
    }

    unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: Called by procfs for our file, once, when it has no other user; `private_data`
        // was set by `open`.
        drop(unsafe { Pin::<KBox<Mutex<OpenQuery>>>::from_foreign((*file).private_data.cast()) });
        0
    }

    unsafe extern "C" fn write(
        file: *mut bindings::file,
        buffer: *const c_char,
        len: usize,
        _offset: *mut bindings::loff_t,
    ) -> isize {
        from_result(|| {
            // SAFETY: Called by procfs for our file, opened by `open`.
            let (object, open) = unsafe {
                (
                    object_of::<T>(file),
                    &*(*file).private_data.cast::<Mutex<OpenQuery>>(),
                )
            };
            let mut open = open.lock();
            // Even if this question fails, a read must not return an earlier answer.
            open.answer.clear();
            open.fetched = 0;
            let mut question = [0; MESSAGE_MAX];
            let question = question.get_mut(..len).ok_or(EINVAL)?;
            UserSlice::new(UserPtr::from_ptr(buffer.cast_mut().cast()), len)
                .reader()
                .read_slice(question)?;
            let answered = object.answer(question, &mut open.answer);
            if answered.is_err() {
                // A partial answer is dropped.
                open.answer.clear();
            }
            answered.map(|()| len as isize)
        })
    }

    unsafe extern "C" fn read(
        file: *mut bindings::file,
        buffer: *mut c_char,
        len: usize,
        _offset: *mut bindings::loff_t,
    ) -> isize {
        from_result(|| {
            // SAFETY: Called by procfs for our file, opened by `open`.
            let open = unsafe { &*(*file).private_data.cast::<Mutex<OpenQuery>>() };
            let mut open = open.lock();
            let rest = open.answer.get(open.fetched..).unwrap_or_default();
            let rest = &rest[..rest.len().min(len)];
            UserSlice::new(UserPtr::from_ptr(buffer.cast()), len)
                .writer()
                .write_slice(rest)?;
            let len = rest.len();
            open.fetched += len;
            Ok(len as isize)
        })
    }
}
