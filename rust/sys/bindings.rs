// SPDX-License-Identifier: GPL-2.0

//! The declarations that bindgen generates from bindings.h, at build time.

#![allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    rustdoc::all,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    unused_imports
)]

include!(env!("LT_BINDINGS"));
