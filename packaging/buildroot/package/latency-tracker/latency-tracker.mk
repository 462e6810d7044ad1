################################################################################
#
# latency-tracker, SPDX-License-Identifier: GPL-2.0 OR MIT
#
################################################################################

# Builds the module from this checkout, and installs the prebuilt command that
# BR2_PACKAGE_LATENCY_TRACKER_COMMAND names, if any. No test of the project
# builds this package: see Documentation/guide/embedded.md.

LATENCY_TRACKER_VERSION = git
LATENCY_TRACKER_SITE = $(BR2_EXTERNAL_LATENCY_TRACKER_PATH)/../..
LATENCY_TRACKER_SITE_METHOD = local
# Build results of the checkout, which can take gigabytes, are not copied.
LATENCY_TRACKER_OVERRIDE_SRCDIR_RSYNC_EXCLUSIONS = \
	--exclude /build \
	--exclude /user/target
LATENCY_TRACKER_LICENSE = GPL-2.0 (module), GPL-2.0 or MIT (command)
LATENCY_TRACKER_LICENSE_FILES = COPYING LICENSES/GPL-2.0.txt LICENSES/MIT.txt
LATENCY_TRACKER_MODULE_MAKE_OPTS = \
	TRACKERS="$(call qstrip,$(BR2_PACKAGE_LATENCY_TRACKER_TRACKERS))"

LATENCY_TRACKER_COMMAND = $(call qstrip,$(BR2_PACKAGE_LATENCY_TRACKER_COMMAND))
ifneq ($(LATENCY_TRACKER_COMMAND),)
define LATENCY_TRACKER_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 0755 $(LATENCY_TRACKER_COMMAND) \
		$(TARGET_DIR)/usr/bin/latency-tracker
endef
endif

ifeq ($(BR2_PACKAGE_LATENCY_TRACKER),y)
# Rust for the kernel and for the module comes from the build machine.
# Buildroot's own rustc, if any, lacks the sources of Rust's library.
LATENCY_TRACKER_RUSTC := $(or $(shell which rustc 2>/dev/null),rustc)
LATENCY_TRACKER_BINDGEN := $(or $(shell which bindgen 2>/dev/null),bindgen)

# linux.mk passes a HOSTCC with options. The kernel uses HOSTCC as the linker of
# its host programs in Rust, and rustc would take these options for its own. The
# last value on make's command line counts.
# check-package TypoInPackageVariable
LINUX_MAKE_FLAGS += \
	HOSTCC="$(HOSTCC_NOCCACHE)" \
	HOSTCFLAGS="$(HOST_CFLAGS:-I%=-isystem%)" \
	HOSTLDFLAGS="$(HOST_LDFLAGS)" \
	RUSTC="$(LATENCY_TRACKER_RUSTC)" \
	HOSTRUSTC="$(LATENCY_TRACKER_RUSTC)" \
	BINDGEN="$(LATENCY_TRACKER_BINDGEN)"

# The programs of Kconfig are built without Buildroot's host libraries: see
# linux.mk.
# check-package TypoInPackageVariable
LINUX_KCONFIG_OPTS += HOSTCFLAGS= HOSTLDFLAGS=

# Without this, Kconfig would silently drop CONFIG_RUST.
define LATENCY_TRACKER_CHECK_KERNEL
	$(LINUX_MAKE_ENV) $(MAKE) $(LINUX_MAKE_FLAGS) -C $(LINUX_DIR) rustavailable
	grep -qx 'CONFIG_RUST=y' $(LINUX_DIR)/.config || { \
		echo "latency-tracker: the kernel's .config lacks CONFIG_RUST=y:" \
			"add packaging/kernel.cfg to its fragments, and disable" \
			"the options that exclude RUST in its init/Kconfig" >&2; \
		exit 1; \
	}
endef
# check-package TypoInPackageVariable
LINUX_POST_CONFIGURE_HOOKS += LATENCY_TRACKER_CHECK_KERNEL
endif

$(eval $(kernel-module))
$(eval $(generic-package))
