# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# The kernel module. The project does not test this recipe: see Documentation/guide/embedded.md. LATENCY_TRACKER_URI is
# this repository, as in "git:///path/to/clone;protocol=file;branch=main".

SUMMARY = "Reports kernel operations that take too long, while the system runs"
LICENSE = "GPL-2.0-only"
LIC_FILES_CHKSUM = "file://LICENSES/GPL-2.0.txt;md5=b234ee4d69f5fce4486a80fdaf4a4263"

SRC_URI = "${LATENCY_TRACKER_URI}"
SRCREV ?= "${AUTOREV}"

# module-rust skips this recipe unless KERNEL_FEATURES contains "rust". Set it in the configuration of the build, which
# this recipe and the kernel's recipe read.
inherit module-rust

COMPATIBLE_HOST = "(x86_64|aarch64).*-linux"
DEPENDS += "bindgen-cli-native clang-native"

# The trackers to build, e.g. "wakeup irq softirq". Empty: all.
LATENCY_TRACKER_TRACKERS ?= ""

# The kernel's build system reads Kbuild. The Makefile of the repository is not for it.
EXTRA_OEMAKE += "-C ${STAGING_KERNEL_DIR} M=${S} TRACKERS='${LATENCY_TRACKER_TRACKERS}'"
MAKE_TARGETS = "modules"
