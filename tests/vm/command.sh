# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The command with the real files. It prints a message if the module is not installed, not loaded,
# or not accessible to this user. modprobe and the command work after `make install`, but not
# after `make uninstall`. The `man` of the machine shows the pages. `watch` starts with the recorded
# alerts. A refusal is explained. Captures are not written to a place that another user can change.
# kernels: stock
# cpus: 2
# root: full
# timeout: 400
# worth: it runs the command many times, in states of the machine that no other test has
# alone: it installs the module and the command

. /lt/tests/lib.sh
. /lt/tests/block.sh

COMMAND=/lt/bin/latency-tracker
# says STATUS TEXT COMMAND...: check that the command exits with STATUS and prints TEXT.
says() {
	_want=$1 _text=$2 _rc=0
	shift 2
	"$@" >/tmp/said 2>&1 || _rc=$?
	assert_eq "$_rc" "$_want" "the exit status of $*"
	grep -qF -- "$_text" /tmp/said || fail "$* does not say '$_text': $(cat /tmp/said)"
}
another() { /usr/bin/setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }

# If the module is not installed, root and other users get the same message.
says 1 "nor is it installed for this kernel: \`make install\`" $COMMAND list
says 1 "nor is it installed" $COMMAND start a block
says 1 "nor is it installed" another $COMMAND list
says 1 "neither loaded nor installed" $COMMAND check

few_modules null_blk
# The same state as after `make` in a clone.
mkdir -p "/tmp/clone/build/$(uname -r)"
cp -r /lt/scripts /lt/Documentation /tmp/clone/
cp -r /lt/bin /tmp/clone/build/user
cp /lt/latency_tracker.ko "/tmp/clone/build/$(uname -r)/"
tree() { find /usr/local "/usr/lib/modules/$(uname -r)/" ! -name 'modules.*' | sort; }
tree >/tmp/before
/tmp/clone/scripts/install
COMMAND=/usr/local/bin/latency-tracker
for page in latency-tracker latency-tracker-record latency-tracker-why; do
	man $page >/tmp/page 2>&1
	grep -q "^ *$page - " /tmp/page || fail "man $page: $(head /tmp/page)"
	! grep -E 'unknown request|\\[-&fe*(]' /tmp/page || fail "roff in the output of man $page"
done
says 16 'there are latency-tracker-' man ls
says 1 "as root, \`modprobe latency_tracker\`" another $COMMAND list
says 1 "as root, \`modprobe latency_tracker\`" another $COMMAND start a block
says 1 "load it with \`modprobe latency_tracker\`" $COMMAND list
grep -q 'not loaded, but installed' <<-END || fail "check does not know that it is installed"
	$($COMMAND check)
END
/sbin/modprobe latency_tracker || fail "modprobe does not find it"
rmmod latency_tracker
null_disk slow 20000000
says 0 "loaded the latency_tracker module" $COMMAND start slow block threshold=10ms wakeup_interval=0 ring=4
# Another user runs the command, now that the module is loaded.
for args in list 'list slow' 'list --trackers' 'start a block' 'stop slow' watch hist pending top 'record slow'; do
	# shellcheck disable=SC2086 # words
	says 1 "is loaded, but this user may not use" another $COMMAND $args
	grep -q 'run it as root' /tmp/said || fail "$args: no word of root: $(cat /tmp/said)"
done
says 1 "loaded, but this user may not use it" another $COMMAND check

# Recorded alerts come first, then new ones. Overwritten alerts are not reported as lost.
reads slow 6
$COMMAND watch slow -d 1 --json >/tmp/watched || :
assert_eq "$(sed 's/,.*//' /tmp/watched | tr -d '\n')" '{"seq":3{"seq":4{"seq":5{"seq":6' "what was recorded"
$COMMAND watch slow -d 1 --json --new >/tmp/watched || :
assert_eq "$(cat /tmp/watched)" "" "with --new"
says 2 'alerts from before watch started (--new leaves them out):' $COMMAND watch slow -n 4
assert_eq "$(grep -c '^slow ' /tmp/said)" 4 "alerts below the note"
says 0 "of ended: had timed out" $COMMAND list slow

# An error names the expected input, and changes nothing.
says 1 "did you mean threshold=?" $COMMAND start slow block treshold=1ms
says 1 "list --trackers block" $COMMAND start slow block treshold=1ms
says 1 "did you mean block?" $COMMAND start new blok
says 1 "expected a duration" $COMMAND start slow block threshold=1.5ms
grep 'os error' /tmp/said && fail "an errno beside what the kernel said"
assert_eq "$(wc -l </tmp/said)" 2 "lines of a refusal: $(cat /tmp/said)"
says 1 'this parameter can only be given at creation: "ring"' $COMMAND start slow block ring=8
refused "a file of what is fixed" sh -c "echo 8 >$LT/slow/ring"
kernel_says 'this parameter can only be given at creation: "ring"' || fail "the file does not name the parameter"
says 1 "did you mean read?" $COMMAND start calls syscall calls=reaad
says 1 "all but these: calls=!read,write" $COMMAND start calls syscall "calls=read,!write"
says 1 "threshold=2s max=1s: " $COMMAND start sleeps offcpu threshold=2s max=1s
says 0 "no such network device at present; there are " $COMMAND start packets net dev=nosuch
$COMMAND stop packets
assert_eq "$(cat $LT/slow/threshold)" 10000000 "the threshold after refusals"
says 0 "threshold=300000000000" $COMMAND start slow block threshold=5m
says 0 "threshold=17 is 17ns: a number without a unit is nanoseconds" $COMMAND start slow block threshold=17

# A capture goes where only its owner can write.
mkdir /tmp/foreign /tmp/open
chown 65534 /tmp/foreign
chmod 777 /tmp/open
ln -s /root /tmp/link
for place in /tmp/foreign /tmp/foreign/deeper /tmp/open /tmp/open/deeper /tmp/link; do
	says 1 "$place" $COMMAND record -o $place slow
	grep -q 'choose another place with -o\|a link or a file' /tmp/said || fail "$place: $(cat /tmp/said)"
done
[ ! -e /tmp/foreign/deeper ] && [ ! -e /tmp/open/deeper ] || fail "made in a foreign directory"

# The shell completes existing instances, trackers and parameters.
completes() {
	bash -c '. /usr/local/share/bash-completion/completions/latency-tracker
		COMP_LINE="latency-tracker $1"; COMP_POINT=${#COMP_LINE}; _latency_tracker
		echo ${COMPREPLY[*]}' - "$1"
}
assert_eq "$(completes 'watch sl')" slow "an instance"
assert_eq "$(completes 'start x blo')" block "a tracker"
assert_eq "$(completes 'start x block thr')" threshold= "a parameter"
assert_eq "$(completes 'wat')" watch "a command"

# uninstall removes exactly the installed files.
rmmod latency_tracker
/tmp/clone/scripts/install --uninstall
tree | diff /tmp/before - || fail "uninstall left or took something else"
refused "modprobe after uninstall" /sbin/modprobe latency_tracker
