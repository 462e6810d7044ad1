# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# The command, without the module. The project does not test this recipe: see Documentation/guide/embedded.md.
# LATENCY_TRACKER_URI is described in latency-tracker-module_git.bb. `bitbake -c update_crates latency-tracker` writes
# the list of crates next to this file.

SUMMARY = "Finds out why something was late on a running machine"
LICENSE = "GPL-2.0-only OR MIT"
LIC_FILES_CHKSUM = "file://LICENSES/GPL-2.0.txt;md5=b234ee4d69f5fce4486a80fdaf4a4263 \
                    file://LICENSES/MIT.txt;md5=ac1725c205b5b78c605e65d0b2c3203b"

SRC_URI = "${LATENCY_TRACKER_URI}"
SRCREV ?= "${AUTOREV}"

inherit cargo cargo-update-recipe-crates

include ${BPN}-crates.inc

COMPATIBLE_HOST = "(x86_64|aarch64).*-linux"
CARGO_SRC_DIR = "user"
CARGO_LOCK_SRC_DIR = "${S}/user"
CARGO_BUILD_FLAGS:append = " -p latency-tracker -p lt-work"
