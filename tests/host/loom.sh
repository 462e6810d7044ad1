#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# The models of the lock-free parts (user/engine/tests/loom.rs): every one holds, and fails when
# what it protects is removed.
#
# timeout: 1140
#
# They have a target directory of their own: --cfg loom is another way to compile everything.

set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"

export RUSTFLAGS="--cfg loom"
"$LT_TOP/scripts/in-tree" env CARGO_TARGET_DIR="$LT_BUILD/cargo-loom" \
	cargo test --manifest-path "$LT_TOP/user/Cargo.toml" --profile loom --locked -p lt-engine --test loom \
	--color never -- --nocapture
