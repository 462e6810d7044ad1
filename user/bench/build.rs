// SPDX-License-Identifier: GPL-2.0

//! Compiles src/lfht.c, which calls inline functions of liburcu.

fn main() {
    println!("cargo::rerun-if-changed=src/lfht.c");
    cc::Build::new()
        .file("src/lfht.c")
        .opt_level(2)
        .warnings_into_errors(true)
        .compile("lfht");
    println!("cargo::rustc-link-lib=urcu-cds");
    println!("cargo::rustc-link-lib=urcu");
}
