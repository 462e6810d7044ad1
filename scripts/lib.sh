# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=bash
#
# lib.sh: shared by the scripts of this directory: messages, progress, locks, and file locations.
#
# Reproducible files are in one cache outside the checkout, so that a fresh clone finds them; files of this checkout are
# in build/.
#
#   $LT_CACHE/env/KEY/tree        the Debian tree (scripts/env)
#   $LT_CACHE/env/KEY.LAYER-.../  that tree with more packages (scripts/env --with)
#   $LT_CACHE/kernel/...          prepared kernel build trees and the kernel source (scripts/kernel-tree)
#   $LT_CACHE/cargo               cargo's downloads
#   $LT_CACHE/pip                 pip's downloads (tests/host/fleet.sh)
#   $LT_CACHE/fuzz                inputs that fuzzing has found (scripts/fuzz)
#   $LT_CACHE/vm/...              initramfs and root image (scripts/vm-image)
#   $LT_CACHE/log                 logs of the set-up

LT_TOP=${LT_TOP:-$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)}
LT_CACHE=${LT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/latency-tracker}
LT_BUILD=${LT_BUILD:-$LT_TOP/build}
LT_NAME=${0##*/}

say()  { printf '%s\n' "$*" >&2; }
die()  { printf '%s: %s\n' "$LT_NAME" "$*" >&2; exit 1; }

# usage: print the head comment of the running script, which is its manual.
usage() { sed -n '/^# SPDX/d; /^#!/d; /^#/!q; s/^# \{0,1\}//p' "$0" | sed '/./,$!d'; }

# architecture KERNEL: print Debian's word for the architecture of a kernel, by its release or its name.
architecture() { case $1 in arm64|*-arm64) echo arm64 ;; *) echo amd64 ;; esac; }

# layer_for KERNEL: sets layer, the options of scripts/env and scripts/in-tree for the tree that builds and boots this kernel.
layer_for() {
	# shellcheck disable=SC2034 # for the caller
	case $(architecture "$1") in amd64) layer=() ;; *) layer=(--with "$(architecture "$1")") ;; esac
}

# elapsed SECONDS: print a duration in readable form.
elapsed() {
	if [ "$1" -lt 60 ]; then printf '%d s' "$1"
	else printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); fi
}

# step WHAT COMMAND...: run a long COMMAND with its output in $LT_LOG, and show that it is alive: on a
# terminal by a line that counts the seconds, elsewhere by an occasional line. A failure shows the end of
# the log and its name. COMMAND is a direct child, so that it can be made to die with this script.
step() {
	local what=$1 start=$SECONDS beat=$((SECONDS + 60)) pid rc=0
	shift
	: "${LT_LOG:?step needs a log file}"
	printf '\n== %s: %s\n' "$what" "$*" >>"$LT_LOG"
	"$@" >>"$LT_LOG" 2>&1 </dev/null &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		if [ -t 2 ]; then
			printf '\r  %s ... %s\033[K' "$what" "$(elapsed $((SECONDS - start)))" >&2
		elif [ "$SECONDS" -ge "$beat" ]; then
			say "  $what ... still running, $(elapsed $((SECONDS - start)))"
			beat=$((SECONDS + 60))
		fi
		sleep 0.2
	done
	wait "$pid" || rc=$?
	[ ! -t 2 ] || printf '\r\033[K' >&2
	if [ "$rc" -eq 0 ]; then
		say "  $what: done in $(elapsed $((SECONDS - start)))"
	else
		say "  $what: FAILED after $(elapsed $((SECONDS - start))) (exit status $rc); the log ends with:"
		tail -n 20 "$LT_LOG" | sed 's/^/    | /' >&2
		say "  The full log: $LT_LOG"
	fi
	return "$rc"
}

# kill_trees PROCESS...: end these processes and all that they started.
kill_trees() {
	local pid
	for pid in "$@"; do
		# shellcheck disable=SC2046 # numbers
		kill_trees $(cat "/proc/$pid/task/$pid/children" 2>/dev/null)
		kill "$pid" 2>/dev/null || :
	done
}

# side_by_side LOGS NAME COMMAND [NAME COMMAND]...: run the commands, a word each, at the same time, with their output in
# LOGS/NAME.log. Shows what is under way: on a terminal in a line that changes, elsewhere every 20 seconds. If a command
# fails, the others are killed; a later run can continue their work.
side_by_side() {
	local logs=$1 start=$SECONDS beat=$((SECONDS + 20)) total=$((($# - 1) / 2)) pid name line rc
	local -A underway=()
	shift
	mkdir -p "$logs"
	while [ $# -gt 0 ]; do
		"$2" >"$logs/$1.log" 2>&1 </dev/null &
		underway[$!]=$1
		shift 2
	done
	while [ ${#underway[@]} -gt 0 ]; do
		sleep 0.2
		for pid in "${!underway[@]}"; do
			! kill -0 "$pid" 2>/dev/null || continue
			name=${underway[$pid]} rc=0
			unset "underway[$pid]"
			wait "$pid" || rc=$?
			[ ! -t 2 ] || printf '\r\033[K' >&2
			if [ "$rc" -ne 0 ]; then
				say "  $name: FAILED (exit status $rc); the log ends with:"
				tail -n 20 "$logs/$name.log" | sed 's/^/    | /' >&2
				say "  The full log: $logs/$name.log"
				kill_trees "${!underway[@]}"
				return 1
			fi
			say "  $name: done after $(elapsed $((SECONDS - start)))"
		done
		[ ${#underway[@]} -gt 0 ] || break
		printf -v line '%s, ' "${underway[@]}"
		line="  $((total - ${#underway[@]})) of $total done after $(elapsed $((SECONDS - start))); under way: ${line%, }"
		if [ -t 2 ]; then
			printf '\r%s\033[K' "$line" >&2
		elif [ "$SECONDS" -ge "$beat" ]; then
			say "$line"
			beat=$((SECONDS + 20))
		fi
	done
}

# captive COMMAND...: for `step captive ...`: COMMAND and all its children die when this script dies,
# however that happens, and its mounts vanish with it. Without root, only COMMAND itself dies.
captive() {
	# exec: in the background the function runs in a subshell, which must not remain in between
	[ "$(id -u)" -eq 0 ] || exec setpriv --pdeathsig KILL "$@"
	exec setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child=KILL --propagation private \
		--mount-proc "$@"
}

# lock NAME: wait for and hold the cache's lock NAME until this process ends.
lock() {
	mkdir -p "$LT_CACHE"
	lock_file "$LT_CACHE/$1.lock"
}

# lock_file FILE: wait for and hold any lock file; a process holds one lock at a time.
lock_file() {
	exec {LT_LOCK_FD}>"$1"
	flock --nonblock "$LT_LOCK_FD" && return
	say "  waiting for another run that holds $1"
	flock "$LT_LOCK_FD"
}

# unlock: release the lock early.
unlock() { exec {LT_LOCK_FD}>&-; }

# need_root WHY: stop, with the one command to run, unless the script runs as root.
need_root() {
	[ "$(id -u)" -eq 0 ] || die "$1 needs root; run: sudo -E ${LT_COMMAND:-$0}"
}

# need_space GIGABYTES: stop if the cache's disk has less free space.
need_space() {
	local free
	free=$(($(df --output=avail --block-size=1M "$LT_CACHE" | tail -n 1) / 1024))
	[ "$free" -ge "$1" ] || die "$LT_CACHE needs $1 GB of disk, and $free GB are free; set XDG_CACHE_HOME to a place that has them"
}

# key TEXT...: print a short hash of the arguments.
key() { printf '%s\n' "$@" | sha256sum | cut -c1-16; }
