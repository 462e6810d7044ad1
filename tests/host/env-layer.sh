#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# A layer adds packages in its own tree. The tree below it is unchanged, and does not have these
# packages. A layer is made once. Pruning removes a layer whose list has changed.
# timeout: 240

. "$(dirname "$0")/../host.sh"
export XDG_CACHE_HOME=$work LT_PACKAGES=$work/packages
unset LT_CACHE
echo busybox-static >"$LT_PACKAGES"
echo bc >"$LT_PACKAGES.more"
env=$work/latency-tracker/env

# contents TREE: print the files of the tree, with modification times
contents() { (cd "$1" && find . -xdev ! -type d -printf '%p %s %T@ %l\n' | sort); }

"$LT_TOP/scripts/env"
tree=$("$LT_TOP/scripts/env" --print)
# the first use of the tree makes its mount points
"$LT_TOP/scripts/in-tree" true
contents "$tree" >"$work/before"
! "$LT_TOP/scripts/env" --with more --print 2>/dev/null || { echo "a layer exists that was not made"; exit 1; }
! "$LT_TOP/scripts/env" --with less 2>/dev/null || { echo "a layer without a list was made"; exit 1; }

"$LT_TOP/scripts/env" --with more
[ "$("$LT_TOP/scripts/in-tree" --with more bc <<<'6 * 7')" = 42 ] || { echo "what the layer adds does not work"; exit 1; }
! "$LT_TOP/scripts/in-tree" bc <<<'6 * 7' 2>/dev/null || { echo "the layer shows in the tree below"; exit 1; }
contents "$tree" >"$work/after"
cmp "$work/before" "$work/after" || { diff "$work/before" "$work/after" | head; exit 1; }

before=$(stat -c %Z "$env"/*.more-*/tree)
"$LT_TOP/scripts/env" --with more
[ "$(stat -c %Z "$env"/*.more-*/tree)" = "$before" ] || { echo "made twice"; exit 1; }

echo dc >>"$LT_PACKAGES.more"
"$LT_TOP/scripts/env" --prune
[ "$(echo "$env"/*)" = "${tree%/tree}" ] || { echo "not pruned to what the lists say:"; ls "$env"; exit 1; }
