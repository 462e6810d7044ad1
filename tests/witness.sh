# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# witness.sh: records a full ftrace trace of a workload and the alerts of an instance at the same time, for tests inside
# the virtual machine that compare the two (lt-witness). Sourced after lib.sh.

TRACE=/sys/kernel/tracing

# tracing KILOBYTES EVENT...: record these events, in a buffer of this size for each CPU, with the clock of alerts.
tracing() {
	echo mono >$TRACE/trace_clock
	echo "$1" >$TRACE/buffer_size_kb
	shift
	for _event; do echo 1 >$TRACE/events/"$_event"/enable; done
}

# urgent PRIORITY PATTERN: give the kernel threads whose name matches this real-time priority, until `as_usual`.
urgent() {
	for _thread in $(pgrep "$2"); do
		_usual="${_usual:-} $(awk '{ print $1 ":" $40 ":" $41 }' "/proc/$_thread/stat")"
		chrt --fifo --pid "$1" "$_thread"
	done
}
as_usual() {
	for _thread in ${_usual:-}; do
		_priority=${_thread#*:}
		# 1 is SCHED_FIFO
		case $_priority in *:1) _policy=--fifo ;; *) _policy=--other ;; esac
		chrt $_policy --pid "${_priority%:*}" "${_thread%%:*}"
	done
}

# both TRACKER WORDS WORKLOAD...: record the trace of a workload in /tmp/trace, and the alerts of an instance `w` of this
# tracker with these words in /tmp/alerts. The instance remains, disabled.
both() {
	_tracker=$1 _words=$2
	shift 2
	echo 0 >$TRACE/tracing_on
	echo >$TRACE/trace
	echo 1 >$TRACE/tracing_on
	control "w $_tracker $_words"
	exec 3<$LT/w/alerts
	sleep 0.2
	echo lt-witness begin >$TRACE/trace_marker
	"$@"
	sleep 0.2
	echo lt-witness end >$TRACE/trace_marker
	echo 0 >$TRACE/tracing_on
	control "w $_tracker enabled=0"
	alerts_of w /tmp/alerts
	exec 3<&-
	cat $TRACE/trace >/tmp/trace
}

# edit FILE COMMAND...: filter a file in place.
edit() {
	_file=$1
	shift
	"$@" <"$_file" >"$_file.new"
	mv "$_file.new" "$_file"
}

# exact WHAT OPTION...: check with lt-witness and these options that the alerts match the trace.
exact() {
	_what=$1
	shift
	lt-witness "$@" /tmp/trace /tmp/alerts || { cp /tmp/trace /tmp/alerts /lt/out; fail "$_what is not exact"; }
}

# none WHAT KEY...: check that the counters of the instance add up, and that the counters KEY are 0.
none() {
	_what=$1
	shift
	grep -v ' 0$' $LT/w/stats
	sums_hold w
	for _key; do assert_eq "$(stat w "$_key")" 0 "$_what: $_key"; done
}
