#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# The models of the lock-free parts (user/engine/tests/loom.rs): every one holds, and fails when
# what it protects is removed. A thread is interrupted at most twice in one run, unless LOOM_MAX_PREEMPTIONS says
# otherwise; `all`: as often as each model says, which tests/run-long tries.
#
# timeout: 1140
# worth: the only test of the orderings that the engine relies on
#
# They have a target directory of their own: --cfg loom is another way to compile everything.

set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"

export LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-2}
[ "$LOOM_MAX_PREEMPTIONS" != all ] || unset LOOM_MAX_PREEMPTIONS
export RUSTFLAGS="--cfg loom"
"$LT_TOP/scripts/in-tree" env CARGO_TARGET_DIR="$LT_BUILD/cargo-loom" \
	cargo test --manifest-path "$LT_TOP/user/Cargo.toml" --profile loom --locked -p lt-engine --test loom \
	--color never -- --nocapture
