# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=bash
#
# machines.sh: what tests/run and tests/run-debug share: the heads of tests, and what their machines are made
# of. Needs lib.sh, report.sh and $LOGS.

declare -A prepared=()

# head_of FILE KEY DEFAULT: a line `# KEY: VALUE` of a test's head.
head_of() {
	local value
	value=$(sed -n "/^[^#]/q; /^# $2:/ { s/^# $2: *//p; q; }" "$1")
	echo "${value:-$3}"
}

# unasked NAME COMMAND...: build what a chosen test needs; nothing to report unless it fails.
unasked() {
	! wanted "$1" || return 0
	timed "$LOGS/$1.log" "${@:2}"
	# shellcheck disable=SC2154 # set by timed
	[ "$status" -eq 0 ] || verdict "$1" "$status" "$seconds" "$LOGS/$1.log"
}

# prepare KERNEL: make the parts of the machine now, not on a test's time.
prepare() {
	local release
	[ -z "${prepared[$1]:-}" ] || return 0
	prepared[$1]=1
	if [ -z "${LT_TESTS:-}" ]; then
		unasked "build/module@$1" "$LT_TOP/scripts/build-module" "$1"
		unasked "build/tests@$1" "$LT_TOP/scripts/build-module" --tests "$1"
		unasked "build/samples@$1" "$LT_TOP/scripts/build-module" --samples "$1"
		unasked build/user "$LT_TOP/scripts/build-user"
	fi
	release=$("$LT_TOP/scripts/kernel-tree" --release "$1")
	"$LT_TOP/scripts/vm-image" initramfs "$release" >/dev/null
	"$LT_TOP/scripts/vm-image" kernel "$release" >/dev/null
	"$LT_TOP/scripts/vm-image" root >/dev/null
}
