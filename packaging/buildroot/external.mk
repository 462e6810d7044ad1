# SPDX-License-Identifier: GPL-2.0 OR MIT
include $(sort $(wildcard $(BR2_EXTERNAL_LATENCY_TRACKER_PATH)/package/*/*.mk))
