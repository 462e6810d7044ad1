# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# Builds the module from this checkout, and installs the prebuilt command that
# BR2_PACKAGE_LATENCY_TRACKER_COMMAND names, if any. No test of the project builds this package: see
# Documentation/guide/embedded.md.

LATENCY_TRACKER_VERSION = git
LATENCY_TRACKER_SITE = $(BR2_EXTERNAL_LATENCY_TRACKER_PATH)/../..
LATENCY_TRACKER_SITE_METHOD = local
# The build results of the checkout, which can take gigabytes, are not copied.
LATENCY_TRACKER_OVERRIDE_SRCDIR_RSYNC_EXCLUSIONS = --exclude /build
LATENCY_TRACKER_LICENSE = GPL-2.0 (module), GPL-2.0 or MIT (command)
LATENCY_TRACKER_LICENSE_FILES = COPYING LICENSES/GPL-2.0.txt LICENSES/MIT.txt
LATENCY_TRACKER_MODULE_MAKE_OPTS = TRACKERS="$(call qstrip,$(BR2_PACKAGE_LATENCY_TRACKER_TRACKERS))"

LATENCY_TRACKER_COMMAND = $(call qstrip,$(BR2_PACKAGE_LATENCY_TRACKER_COMMAND))
ifneq ($(LATENCY_TRACKER_COMMAND),)
define LATENCY_TRACKER_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 0755 $(LATENCY_TRACKER_COMMAND) $(TARGET_DIR)/usr/bin/latency-tracker
endef
endif

$(eval $(kernel-module))
$(eval $(generic-package))
