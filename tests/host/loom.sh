#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# The models of the lock-free parts (user/engine/tests/loom.rs): each holds. Most are run again without an ordering or a
# check that they rely on, and must then fail. LOOM_MAX_PREEMPTIONS limits the preemptions in one execution (2); `all`,
# which tests/run-long uses, means the limit that each model states.
#
# timeout: 1140
# worth: the only test of the orderings that the engine relies on
#
# The models have their own target directory, since --cfg loom recompiles every crate.

set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"

export LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-2}
[ "$LOOM_MAX_PREEMPTIONS" != all ] || unset LOOM_MAX_PREEMPTIONS
export RUSTFLAGS="--cfg loom"
"$LT_TOP/scripts/in-tree" env CARGO_TARGET_DIR="$LT_BUILD/cargo-loom" \
	cargo test --manifest-path "$LT_TOP/user/Cargo.toml" --profile loom --locked -p lt-engine --test loom \
	--color never -- --nocapture
