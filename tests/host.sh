# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=bash
#
# host.sh: shared by the tests of tests/host. $work is a directory in build/ that is removed when the test ends.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

fail() { echo "FAIL: $*" >&2; exit 1; }

mkdir -p "$LT_BUILD"
work=$(mktemp -d "$LT_BUILD/${LT_NAME%.sh}.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
