// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Kernel errors, as `rust/kernel/error.rs` offers them.

use core::num::{NonZeroI32, TryFromIntError};

/// An errno.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error(NonZeroI32);

/// The result of an operation that may fail with an errno.
pub type Result<T = (), E = Error> = core::result::Result<T, E>;

macro_rules! errors {
    ($($name:ident = $number:literal,)*) => {
        /// The errnos.
        pub mod code {
            use super::Error;
            use core::num::NonZeroI32;

            const fn errno(number: i32) -> Error {
                match NonZeroI32::new(-number) {
                    Some(number) => Error(number),
                    None => Error(NonZeroI32::MIN),
                }
            }

            $(
                #[doc = concat!("`", stringify!($name), "`")]
                pub const $name: Error = errno($number);
            )*
        }

        impl core::fmt::Debug for Error {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match -self.0.get() {
                    $($number => f.write_str(stringify!($name)),)*
                    number => write!(f, "errno {number}"),
                }
            }
        }
    };
}

errors! {
    EPERM = 1,
    ENOENT = 2,
    ESRCH = 3,
    EINTR = 4,
    EIO = 5,
    ENXIO = 6,
    E2BIG = 7,
    ENOEXEC = 8,
    EBADF = 9,
    ECHILD = 10,
    EAGAIN = 11,
    ENOMEM = 12,
    EACCES = 13,
    EFAULT = 14,
    ENOTBLK = 15,
    EBUSY = 16,
    EEXIST = 17,
    EXDEV = 18,
    ENODEV = 19,
    ENOTDIR = 20,
    EISDIR = 21,
    EINVAL = 22,
    ENFILE = 23,
    EMFILE = 24,
    ENOTTY = 25,
    ETXTBSY = 26,
    EFBIG = 27,
    ENOSPC = 28,
    ESPIPE = 29,
    EROFS = 30,
    EMLINK = 31,
    EPIPE = 32,
    EDOM = 33,
    ERANGE = 34,
    EOVERFLOW = 75,
    EMSGSIZE = 90,
    ETIMEDOUT = 110,
    ENOTSUPP = 524,
}

impl Error {
    /// Converts a negative errno; anything else becomes `EINVAL`.
    pub fn from_errno(errno: i32) -> Self {
        match NonZeroI32::new(errno) {
            Some(number) if (-4095..0).contains(&errno) => Self(number),
            _ => code::EINVAL,
        }
    }

    /// Returns the negative errno.
    pub fn to_errno(self) -> i32 {
        self.0.get()
    }
}

impl From<TryFromIntError> for Error {
    fn from(_: TryFromIntError) -> Self {
        code::EINVAL
    }
}
