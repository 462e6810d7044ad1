// SPDX-License-Identifier: GPL-2.0

//! Files under /proc: texts that are read and written as a whole, listings that are generated as
//! they are read, streams that readers wait for, sinks that take short messages, and files that
//! answer questions (`query`).
//!
//! C header: [`include/linux/proc_fs.h`](srctree/include/linux/proc_fs.h)
//!
//! Removing a file waits until no task is inside one of its functions, and closes the file for
//! tasks that still have it open. So the object of a file is alive whenever its functions run. A
//! [`Stream`] is notified first, so that its readers return.

mod query;

pub(crate) use query::Query;

use crate::sys::bindings as helpers;
use core::{ffi::CStr, marker::PhantomData, pin::Pin, ptr::NonNull};
use kernel::{
    bindings,
    error::{from_result, to_result},
    ffi::{c_char, c_int, c_uint, c_void},
    fmt::{self, Write},
    new_mutex,
    prelude::*,
    seq_file::SeqFile,
    sync::{Arc, Mutex},
    types::ForeignOwnable,
    uaccess::UserPtr,
    uaccess::UserSlice,
};

/// Maximum length of the text of one write, in bytes.
pub(crate) const WRITE_MAX: usize = 4096;

/// A file whose content is generated at each read.
pub(crate) trait Text: Send + Sync + 'static {
    fn show(&self, out: &SeqFile) -> Result;

    /// Takes the text of one write, at most [`WRITE_MAX`] bytes.
    fn write(&self, _text: &[u8]) -> Result {
        Err(EPERM)
    }

    /// Returns the error for a write of more than [`WRITE_MAX`] bytes, whose text is ignored.
    fn too_long(&self) -> Error {
        EINVAL
    }
}

/// Whether the buffer of a [`Text`] is full: all further text is dropped, and the content is then
/// generated again, for a buffer of twice the size.
pub(crate) fn is_full(out: &SeqFile) -> bool {
    let seq = core::ptr::from_ref(out).cast::<bindings::seq_file>();
    // SAFETY: A `SeqFile` is the `seq_file` that it was made from; only the task that prints uses
    // it.
    unsafe { (*seq).count == (*seq).size }
}

/// Maximum length of the message that a [`Sink`] or a [`Query`] takes, in bytes.
pub(crate) const MESSAGE_MAX: usize = 80;

/// A write-only file that takes one short message at a time; the group that may read other files
/// may write to it.
pub(crate) trait Sink: Send + Sync + 'static {
    /// Takes the message of one write, or its first [`MESSAGE_MAX`] bytes if it is longer. Should
    /// not sleep for long, as writers measure time.
    fn take(&self, message: &[u8]) -> Result;
}

/// Text under construction; `fmt::Error` means that memory is short. Writing may sleep.
pub(crate) struct Lines<'a>(pub(crate) &'a mut KVec<u8>);

impl Write for Lines<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0
            .extend_from_slice(text.as_bytes(), GFP_KERNEL)
            .map_err(|_| fmt::Error)
    }
}

/// A file of many lines, which are generated as they are read.
pub(crate) trait Listing: Send + Sync + 'static {
    /// Returns the lines for a new open file. May sleep.
    fn open(&self) -> Result<KBox<dyn Records>>;
}

/// The lines of an open [`Listing`], a batch at a time.
pub(crate) trait Records: Send {
    /// Starts again with the first batch.
    fn rewind(&mut self);

    /// Generates the next batch; returns its number of lines, 0 at the end. May sleep.
    fn next(&mut self) -> Result<usize>;

    /// Prints a line of this batch; `is_trusted`: the reader may see addresses of user space.
    /// May sleep.
    fn show(&self, nth: usize, is_trusted: bool, out: &SeqFile);
}

/// The next step of a reader of a [`Stream`].
pub(crate) enum Step {
    /// Data was appended.
    Data,
    /// There is nothing yet.
    Wait,
    /// There will be nothing more.
    End,
}

/// A position to which a reader of a [`Stream`] can seek.
#[derive(Clone, Copy)]
pub(crate) enum Seek {
    /// The oldest record in the stream.
    Oldest,
    /// After the newest record.
    End,
}

/// A file whose readers wait for new content.
pub(crate) trait Stream: Send + Sync + 'static {
    /// Position of one open file.
    type Reader: Copy + Send + Unpin;

    /// Returns the position of a new open file.
    fn open(&self) -> Self::Reader;

    /// Called once for each open file: when [`Stream::next`] has returned [`Step::End`] for it, or
    /// when the file is closed before that.
    fn left(&self);

    /// Appends to `out` the next content for this reader; `is_trusted`: the reader may see
    /// addresses of user space.
    fn next(&self, reader: &mut Self::Reader, is_trusted: bool, out: &mut KVec<u8>)
        -> Result<Step>;

    /// Called when the reader has read all that [`Stream::next`] appended.
    fn given(&self, _reader: &Self::Reader) {}

    /// Moves a reader. Fails with `ESPIPE` for a file that can only be read forward.
    fn seek(&self, _reader: &mut Self::Reader, _to: Seek) -> Result {
        Err(ESPIPE)
    }

    /// Sleeps until [`Stream::next`] has something other than [`Step::Wait`]. Fails with
    /// `ERESTARTSYS` on a signal.
    fn wait(&self, reader: Self::Reader) -> Result;

    /// Prepares for the removal of the file: tasks that sleep in [`Stream::wait`] must return, and
    /// [`Stream::next`] must reach [`Step::End`]. May sleep.
    fn release(&self);

    /// Registers a poller; returns whether there is something to read, and whether nothing more
    /// will be added.
    fn poll(&self, reader: Self::Reader, poller: &Poller) -> (bool, bool);
}

/// The arguments of a running poll method.
pub(crate) struct Poller {
    file: *mut bindings::file,
    table: *mut bindings::poll_table_struct,
}

impl Poller {
    pub(crate) fn register<T: super::waker::Callbacks>(&self, waker: &super::waker::Waker<T>) {
        // SAFETY: A `Poller` exists only while a poll method runs.
        unsafe { waker.poll(self.file, self.table) };
    }
}

/// An object behind a file, whatever its type.
trait Object: Send + Sync {
    /// Prepares for the removal of the file: tasks that sleep in it must return.
    fn release(&self);
}

/// A file in which no task sleeps for long, as an [`Object`].
#[repr(transparent)]
struct Prompt<T>(T);

impl<T: Send + Sync> Object for Prompt<T> {
    fn release(&self) {}
}

#[repr(transparent)]
struct StreamObject<T>(T);

impl<T: Stream> Object for StreamObject<T> {
    fn release(&self) {
        self.0.release();
    }
}

/// A folder; dropping it removes it.
///
/// # Invariants
///
/// `entry` is a folder that exists, and so does its parent.
pub(crate) struct Dir {
    entry: NonNull<helpers::proc_dir_entry>,
    gid: Option<u32>,
    _parent: Option<Arc<Dir>>,
}

// SAFETY: procfs does its own locking.
unsafe impl Send for Dir {}
// SAFETY: procfs does its own locking.
unsafe impl Sync for Dir {}

/// A file; dropping it removes it, and sleeps until no task is inside its functions.
///
/// # Invariants
///
/// `entry` is a file that exists, whose data is `object`.
pub(crate) struct File {
    entry: NonNull<helpers::proc_dir_entry>,
    /// Dropped after the file is removed: fields are dropped after `drop` has returned.
    object: KBox<dyn Object>,
    _dir: Arc<Dir>,
}

// SAFETY: procfs does its own locking; the object is `Send`.
unsafe impl Send for File {}
// SAFETY: procfs does its own locking; the object is `Sync`.
unsafe impl Sync for File {}

impl Dir {
    /// Creates a folder in `parent`, or in /proc. `gid` is the group with read access.
    ///
    /// The name must be free: procfs warns about a duplicate. May sleep; fails with `ENOMEM`.
    pub(crate) fn new(
        name: &CStr,
        parent: Option<Arc<Dir>>,
        gid: Option<u32>,
    ) -> Result<Arc<Self>> {
        let inside = parent
            .as_ref()
            .map_or(core::ptr::null_mut(), |dir| dir.entry.as_ptr());
        let mode = if gid.is_some() { 0o550 } else { 0o500 };
        // SAFETY: The name is a C string, the parent is null or exists.
        let entry = unsafe { helpers::proc_mkdir_mode(name.as_ptr().cast(), mode, inside) };
        // INVARIANT: Just made; the parent is held.
        let dir = Self {
            // procfs returns no reason; the name is free, so memory is short
            entry: NonNull::new(entry).ok_or(ENOMEM)?,
            gid,
            _parent: parent,
        };
        open_to_group(dir.entry, gid);
        Ok(Arc::new(dir, GFP_KERNEL)?)
    }

    /// Adds a text file, which can also be written if `writable`.
    pub(crate) fn text<T: Text>(
        self: &Arc<Self>,
        name: &CStr,
        writable: bool,
        file: T,
    ) -> Result<File> {
        let mode = if writable { 0o640 } else { 0o440 };
        self.add(name, mode, &TextOps::<T>::OPS, Prompt(file))
    }

    pub(crate) fn sink<T: Sink>(self: &Arc<Self>, name: &CStr, file: T) -> Result<File> {
        self.add(name, 0o220, &SinkOps::<T>::OPS, Prompt(file))
    }

    pub(crate) fn listing<T: Listing>(self: &Arc<Self>, name: &CStr, file: T) -> Result<File> {
        self.add(name, 0o440, &ListingOps::<T>::OPS, Prompt(file))
    }

    pub(crate) fn stream<T: Stream>(self: &Arc<Self>, name: &CStr, file: T) -> Result<File> {
        self.add(name, 0o440, &StreamOps::<T>::OPS, StreamObject(file))
    }

    /// Adds a file. `mode` includes the permissions of the group, which are dropped if there is
    /// none. `T` is transparent over the type that the operations expect.
    fn add<T: Object + 'static>(
        self: &Arc<Self>,
        name: &CStr,
        mode: u16,
        ops: &'static helpers::proc_ops,
        file: T,
    ) -> Result<File> {
        let object = KBox::new(file, GFP_KERNEL)?;
        let data = core::ptr::from_ref::<T>(&object)
            .cast_mut()
            .cast::<c_void>();
        let mode = if self.gid.is_some() {
            mode
        } else {
            mode & 0o700
        };
        // SAFETY: The name is a C string, the folder exists, the operations are static, and the
        // object lives until the file has been removed.
        let entry = unsafe {
            helpers::proc_create_data(name.as_ptr().cast(), mode, self.entry.as_ptr(), ops, data)
        };
        let entry = NonNull::new(entry).ok_or(ENOMEM)?;
        open_to_group(entry, self.gid);
        // INVARIANT: Just made.
        Ok(File {
            entry,
            object,
            _dir: self.clone(),
        })
    }
}

fn open_to_group(entry: NonNull<helpers::proc_dir_entry>, gid: Option<u32>) {
    if let Some(gid) = gid {
        // SAFETY: The caller has just made the entry.
        unsafe { helpers::lt_proc_set_gid(entry.as_ptr(), gid) };
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; it is removed once.
        unsafe { helpers::proc_remove(self.entry.as_ptr()) };
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.object.release();
        // SAFETY: By the type invariant; it is removed once, before its folder, which we hold.
        unsafe { helpers::proc_remove(self.entry.as_ptr()) };
    }
}

/// Returns the object behind an open file, by its inode.
///
/// # Safety
///
/// `inode` belongs to a file made by `Dir::add` with an object of type `T`, and is in use.
unsafe fn object<'a, T>(inode: *const bindings::inode) -> &'a T {
    // SAFETY: The function's contract; procfs keeps the entry while its functions run.
    unsafe { &*helpers::lt_pde_data(inode).cast::<T>() }
}

/// Returns the object behind an open file, by that file.
///
/// # Safety
///
/// As for [`object`].
unsafe fn object_of<'a, T>(file: *mut bindings::file) -> &'a T {
    // SAFETY: An open file has an inode; the rest is the function's contract.
    unsafe { object((*file).f_inode) }
}

/// Whether the current task may see data that is hidden from other readers of our files. Checked
/// when a file is opened, as for /proc/kallsyms.
fn is_trusted() -> bool {
    // SAFETY: No requirements.
    unsafe { helpers::lt_is_trusted() }
}

struct TextOps<T>(PhantomData<T>);

impl<T: Text> TextOps<T> {
    const OPS: helpers::proc_ops = helpers::proc_ops {
        proc_open: Some(Self::open),
        proc_read: Some(bindings::seq_read),
        proc_lseek: Some(bindings::seq_lseek),
        proc_write: Some(Self::write),
        proc_release: Some(bindings::single_release),
        ..NO_OPS
    };

    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: Called by procfs for our file: the inode is in use and has our data.
        unsafe {
            if !helpers::lt_may_open(inode, file) {
                return EPERM.to_errno();
            }
            bindings::single_open(file, Some(Self::show), helpers::lt_pde_data(inode))
        }
    }

    unsafe extern "C" fn show(seq: *mut bindings::seq_file, _: *mut c_void) -> c_int {
        // SAFETY: seq_file calls it with the argument of `single_open`, which is a `T`.
        let (file, out) = unsafe { (&*(*seq).private.cast::<T>(), SeqFile::from_raw(seq)) };
        from_result(|| file.show(out).map(|()| 0))
    }

    unsafe extern "C" fn write(
        file: *mut bindings::file,
        buffer: *const c_char,
        len: usize,
        _offset: *mut bindings::loff_t,
    ) -> isize {
        from_result(|| {
            // SAFETY: Called by procfs for our file, which is open.
            let object = unsafe { object_of::<T>(file) };
            if len > WRITE_MAX {
                return Err(object.too_long());
            }
            let mut text = KVec::with_capacity(len, GFP_KERNEL)?;
            UserSlice::new(UserPtr::from_ptr(buffer.cast_mut().cast()), len)
                .read_all(&mut text, GFP_KERNEL)?;
            object.write(&text)?;
            Ok(len as isize)
        })
    }
}

struct SinkOps<T>(PhantomData<T>);

impl<T: Sink> SinkOps<T> {
    const OPS: helpers::proc_ops = helpers::proc_ops {
        proc_open: Some(Self::open),
        proc_write: Some(Self::write),
        ..NO_OPS
    };

    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: Called by procfs for our file: the inode is in use, and the file is being opened,
        // with no other user. No file position, so that two threads that write to one open file do
        // not wait for each other.
        unsafe {
            if !helpers::lt_may_mark(inode) {
                return EPERM.to_errno();
            }
            bindings::stream_open(inode, file)
        }
    }

    unsafe extern "C" fn write(
        file: *mut bindings::file,
        buffer: *const c_char,
        len: usize,
        _offset: *mut bindings::loff_t,
    ) -> isize {
        from_result(|| {
            // SAFETY: Called by procfs for our file, which is open.
            let object = unsafe { object_of::<T>(file) };
            // No allocation, which takes time that the writer would measure.
            let mut message = [0; MESSAGE_MAX];
            let message = &mut message[..len.min(MESSAGE_MAX)];
            UserSlice::new(UserPtr::from_ptr(buffer.cast_mut().cast()), message.len())
                .reader()
                .read_slice(message)?;
            object.take(message)?;
            Ok(len as isize)
        })
    }
}

struct OpenListing {
    records: KBox<dyn Records>,
    is_trusted: bool,
    /// The number of the first line of this batch, and the number of its lines.
    first: i64,
    len: usize,
    /// The number of the line that was wanted last.
    at: i64,
}

impl OpenListing {
    /// Returns the position of line number `at` in the current batch; generates the next batch if
    /// the line is the first one in it. `None` at the end.
    fn find(&mut self, at: i64) -> Result<Option<usize>> {
        // Rewinds, unless seq_file only repeats the first line, into a larger buffer.
        if at == 0 && (self.at != 0 || self.len == 0) {
            self.records.rewind();
            (self.first, self.len) = (0, 0);
        }
        self.at = at;
        if at == self.first + self.len as i64 {
            self.first = at;
            self.len = 0;
            self.len = self.records.next()?;
        }
        let nth = usize::try_from(at - self.first).unwrap_or(usize::MAX);
        Ok((nth < self.len).then_some(nth))
    }
}

struct ListingOps<T>(PhantomData<T>);

impl<T: Listing> ListingOps<T> {
    const OPS: helpers::proc_ops = helpers::proc_ops {
        proc_open: Some(Self::open),
        proc_read: Some(bindings::seq_read),
        proc_lseek: Some(bindings::seq_lseek),
        proc_release: Some(Self::release),
        ..NO_OPS
    };

    const LINES: bindings::seq_operations = bindings::seq_operations {
        start: Some(Self::start),
        stop: Some(Self::stop),
        next: Some(Self::next),
        show: Some(Self::show),
    };

    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        from_result(|| {
            // SAFETY: Called by procfs for our file: the inode is in use and has our data.
            let listing = unsafe {
                if !helpers::lt_may_open(inode, file) {
                    return Err(EPERM);
                }
                object::<T>(inode)
            };
            let open = OpenListing {
                records: listing.open()?,
                is_trusted: is_trusted(),
                first: 0,
                len: 0,
                at: 0,
            };
            let open = KBox::new(open, GFP_KERNEL)?;
            // SAFETY: The file is being opened, with no other user; `seq_open` makes its private
            // data a `seq_file`, whose private data is ours to set.
            unsafe {
                to_result(bindings::seq_open(file, &Self::LINES))?;
                let seq = (*file).private_data.cast::<bindings::seq_file>();
                (*seq).private = KBox::into_raw(open).cast();
            }
            Ok(0)
        })
    }

    unsafe extern "C" fn release(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: Called by procfs for our file, once, when it has no other user; `open` has
        // created the `seq_file`, and its private data.
        unsafe {
            let seq = (*file).private_data.cast::<bindings::seq_file>();
            drop(KBox::from_raw((*seq).private.cast::<OpenListing>()));
            bindings::seq_release(inode, file)
        }
    }

    /// # Safety
    ///
    /// Called by seq_file, for a file that `open` has opened, with its lock held.
    unsafe fn find(seq: *mut bindings::seq_file, at: i64) -> *mut c_void {
        // SAFETY: The function's contract: there is no other user at the same time.
        let open = unsafe { &mut *(*seq).private.cast::<OpenListing>() };
        match open.find(at) {
            // Not an address, but neither NULL nor an error: 1 is the first line of the batch.
            Ok(Some(nth)) => core::ptr::without_provenance_mut(nth + 1),
            Ok(None) => core::ptr::null_mut(),
            Err(error) => error.to_ptr(),
        }
    }

    unsafe extern "C" fn start(
        seq: *mut bindings::seq_file,
        at: *mut bindings::loff_t,
    ) -> *mut c_void {
        // SAFETY: Called by seq_file, with a valid position.
        unsafe { Self::find(seq, *at) }
    }

    unsafe extern "C" fn next(
        seq: *mut bindings::seq_file,
        _line: *mut c_void,
        at: *mut bindings::loff_t,
    ) -> *mut c_void {
        // SAFETY: Called by seq_file, with a valid position.
        unsafe {
            *at += 1;
            Self::find(seq, *at)
        }
    }

    unsafe extern "C" fn stop(_seq: *mut bindings::seq_file, _line: *mut c_void) {}

    unsafe extern "C" fn show(seq: *mut bindings::seq_file, line: *mut c_void) -> c_int {
        // SAFETY: Called by seq_file with the result of `find`, and its lock held.
        let (open, out) = unsafe {
            (
                &*(*seq).private.cast::<OpenListing>(),
                SeqFile::from_raw(seq),
            )
        };
        open.records.show(line.addr() - 1, open.is_trusted, out);
        0
    }
}

/// An open stream: the position of its reader, and text that the reader has not fetched yet.
struct OpenStream<R> {
    reader: R,
    is_trusted: bool,
    text: KVec<u8>,
    fetched: usize,
    ended: bool,
}

struct StreamOps<T>(PhantomData<T>);

impl<T: Stream> StreamOps<T> {
    /// # Safety
    ///
    /// Called by procfs for our file, opened by [`Self::open`].
    unsafe fn opened<'a>(file: *mut bindings::file) -> (&'a T, &'a Mutex<OpenStream<T::Reader>>) {
        // SAFETY: The function's contract; `open` has set the private data.
        unsafe { (object_of(file), &*(*file).private_data.cast()) }
    }

    const OPS: helpers::proc_ops = helpers::proc_ops {
        proc_open: Some(Self::open),
        proc_read: Some(Self::read),
        proc_poll: Some(Self::poll),
        proc_lseek: Some(Self::seek),
        proc_release: Some(Self::release),
        ..NO_OPS
    };

    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        from_result(|| {
            // SAFETY: Called by procfs for our file: the inode is in use.
            let stream = unsafe {
                if !helpers::lt_may_open(inode, file) {
                    return Err(EPERM);
                }
                object::<T>(inode)
            };
            let open = OpenStream {
                reader: stream.open(),
                is_trusted: is_trusted(),
                text: KVec::new(),
                fetched: 0,
                ended: false,
            };
            let open =
                KBox::pin_init(new_mutex!(open), GFP_KERNEL).inspect_err(|_| stream.left())?;
            // SAFETY: The file is being opened, with no other user; no file position, so that two
            // readers of one file do not wait for each other.
            unsafe {
                (*file).private_data = open.into_foreign().cast();
                to_result(helpers::lt_stream_open(inode, file))?;
            }
            Ok(0)
        })
    }

    unsafe extern "C" fn seek(
        file: *mut bindings::file,
        offset: bindings::loff_t,
        whence: c_int,
    ) -> bindings::loff_t {
        const SET: c_int = bindings::SEEK_SET as c_int;
        const END: c_int = bindings::SEEK_END as c_int;
        from_result(|| {
            let to = match (offset, whence) {
                (0, SET) => Seek::Oldest,
                (0, END) => Seek::End,
                // A record has no position in bytes.
                _ => return Err(ESPIPE),
            };
            // SAFETY: Called by procfs for our file, opened by `open`.
            let (stream, open) = unsafe { Self::opened(file) };
            let mut open = open.lock();
            stream.seek(&mut open.reader, to)?;
            // Text generated for the old position is not valid for the new one.
            open.text.clear();
            open.fetched = 0;
            Ok(0)
        })
    }

    unsafe extern "C" fn release(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: Called by procfs for our file, once; `private_data` was set by `open`, and the
        // file has no other user.
        let (stream, open) = unsafe {
            (
                object::<T>(inode),
                Pin::<KBox<Mutex<OpenStream<T::Reader>>>>::from_foreign(
                    (*file).private_data.cast(),
                ),
            )
        };
        if !open.lock().ended {
            stream.left();
        }
        0
    }

    unsafe extern "C" fn read(
        file: *mut bindings::file,
        buffer: *mut c_char,
        len: usize,
        _offset: *mut bindings::loff_t,
    ) -> isize {
        from_result(|| {
            // SAFETY: Called by procfs for our file, opened by `open`.
            let ((stream, open), flags) = unsafe { (Self::opened(file), (*file).f_flags) };
            loop {
                let reader = {
                    let mut open = open.lock();
                    let open = &mut *open;
                    let mut step = Step::Data;
                    if open.fetched == open.text.len() {
                        open.text.clear();
                        open.fetched = 0;
                        step = stream.next(&mut open.reader, open.is_trusted, &mut open.text)?;
                    }
                    match step {
                        Step::End => {
                            if !core::mem::replace(&mut open.ended, true) {
                                stream.left();
                            }
                            return Ok(0);
                        }
                        Step::Wait => open.reader,
                        Step::Data => {
                            let rest = &open.text[open.fetched..];
                            let rest = &rest[..rest.len().min(len)];
                            UserSlice::new(UserPtr::from_ptr(buffer.cast()), len)
                                .writer()
                                .write_slice(rest)?;
                            let len = rest.len();
                            open.fetched += len;
                            if open.fetched == open.text.len() {
                                stream.given(&open.reader);
                            }
                            return Ok(len as isize);
                        }
                    }
                };
                if flags & bindings::O_NONBLOCK != 0 {
                    return Err(EAGAIN);
                }
                stream.wait(reader)?;
            }
        })
    }

    unsafe extern "C" fn poll(
        file: *mut bindings::file,
        table: *mut bindings::poll_table_struct,
    ) -> c_uint {
        // SAFETY: Called by procfs for our file, opened by `open`.
        let (stream, open) = unsafe { Self::opened(file) };
        let (reader, unread) = {
            let open = open.lock();
            (open.reader, open.fetched < open.text.len())
        };
        let (ready, end) = stream.poll(reader, &Poller { file, table });
        let mut events = 0;
        if ready || unread || end {
            events |= bindings::POLLIN | bindings::POLLRDNORM;
        }
        if end {
            events |= bindings::POLLHUP;
        }
        events
    }
}

// SAFETY: All zero: no flags, and no functions.
const NO_OPS: helpers::proc_ops = unsafe { core::mem::zeroed() };
