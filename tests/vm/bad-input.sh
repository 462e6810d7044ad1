# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Malformed control lines and parameter writes: each gets the right errno, changes nothing, and leaves one
# line in the kernel log that quotes the offending word.
# kernels: stock
# long: rt
# cpus: 2
# timeout: 150

. /lt/tests/lib.sh

load_module
control 'one block threshold=1ms events=100'
control 'two block from=insert'
tried=0

# All state that could have changed, read by one process.
files="$LT/control"
for name in one two; do
	for file in enabled threshold events wakeup_interval ring timeout from dev histogram pending; do files="$files $LT/$name/$file"; done
done
# shellcheck disable=SC2086 # a list
state() { cat $files; echo $LT/*; }
before=$(state)
first=$(dmesg | grep -c 'latency_tracker: ')
: >/tmp/expected

# bad FILE ERROR TEXT [QUOTED]: writing TEXT (a printf format) fails with ERROR, and the log quotes QUOTED.
bad() {
	tried=$((tried + 1))
	# shellcheck disable=SC2059 # a format on purpose
	printf "${3:-\\n}" >/tmp/text
	if dd if=/tmp/text of="$LT/$1" bs=64k 2>/tmp/error; then fail "accepted by $1: $3"; fi
	read -r error </tmp/error
	case $error in *": $2") ;; *) fail "$1 '$3': $error, expected $2" ;; esac
	printf '%s\n' "${4:-}" >>/tmp/expected
	[ "$(state)" = "$before" ] || fail "'$3' to $1 changed something"
}

# log_is_right: check that the log has one line for each failed write, in order, with the offending
# word in quotes.
log_is_right() {
	dmesg | grep 'latency_tracker: ' | tail -n +$((first + 1)) >/tmp/log
	assert_eq "$(wc -l </tmp/log)" "$(wc -l </tmp/expected)" "lines in the log"
	paste /tmp/expected /tmp/log | awk -F '\t' '
		index($2, ": \"" $1) == 0 { print "the log says: " $2 "; expected in quotes: " $1; bad = 1 }
		END { exit bad }' || fail "the log does not name the fault"
}
EINVAL='Invalid argument' ENOENT='No such file or directory'
ERANGE='Numerical result out of range'

# Names
for name in 1x -x- a/b ../one . .. 'a\tb=' '\0' 'a\0b' '\xff\xfe' 'a"b' "a'b" 'a\\b' 'a b/c' 'caf\xc3\xa9' '*' '?' '~' '$x' \
	'a:b' 'a,b' 'a;b' 'a|b' 'a(b)' 'a+b' 'a.b' 'a@b' 'a%%b' '=' '=x' 'x=y' '/' '/etc' \
	aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; do
	case $name in -x-) bad control "$ENOENT" "$name" x- ;; 'a b/c'|'a\tb=') bad control "$ENOENT" "$name" b ;;
		*) bad control "$EINVAL" "$name block" ;; esac
done
for name in trackers control wakeup alerts version stats hwnoise work_begin work_done measure; do
	bad control "$EINVAL" "$name block" $name
	bad control "$EINVAL" "-$name" $name
done

# Removal
bad control "$EINVAL" '-'
bad control "$EINVAL" '--one' '-one'
bad control "$ENOENT" '-none' none
bad control "$EINVAL" '-one two' two
bad control "$EINVAL" '-one block threshold=1' block
bad control "$EINVAL" '-../two' ../two
bad control "$ENOENT" '-ONE' ONE
bad control "$ENOENT" '-on' on

# Trackers
bad control "$EINVAL" 'three' three
bad control "$EINVAL" 'three ' three
bad control "$EINVAL" '\n'
for tracker in Block blocks bloc wakeups '\x62lock\x01' '""' '-' '=' 'block/' 'threshold=1ms'; do
	bad control "$ENOENT" "three $tracker"
done

# Settings
for setting in threshold block threshold1ms '=1' = '==' --threshold; do bad control "$EINVAL" "three block $setting" "${setting%%\\*}"; done
for key in thresholds Threshold timeouts size cpu nothing 'thre\xffshold' threshold.x; do bad control "$EINVAL" "three block $key=1"; done
bad control "$EINVAL" 'three block threshold=1ms threshold=2ms' threshold
bad control "$EINVAL" 'three block dev=all dev=all' dev
bad control "$EINVAL" 'three block enabled=1 from=issue enabled=0' enabled

# Durations
for value in '' ms -1 -1ms +1ms 1.5ms 1e3 0x10 1m 1h 1MS 1Ms '1µs' 1,000 1_000 'ten' '1 ms' ' ' '"1ms"' 1ms1 1msms ms1 NaN inf '10ms,' '\x31\x30\x80'; do
	case $value in '1 ms') bad control "$EINVAL" "three block threshold=$value" ms ;; *) bad control "$EINVAL" "three block threshold=$value" ;; esac
	bad one/threshold "$EINVAL" "$value"
done
for value in 18446744073709551616 99999999999999999999999 18446744073709551615 9223372036854775808 18446744073710ms 31536001s 31536000001ms \
	18446744073709551615s 18446744073709551615ns 0000000000000000000000000031536001s; do
	bad control "$ERANGE" "three block threshold=$value" $value
	bad one/wakeup_interval "$ERANGE" $value $value
done

# Numbers
for value in '' -1 +5 1.0 1k 64K 0x40 six '1 2'; do
	case $value in '1 2') bad control "$EINVAL" "three block events=$value" 2 ;; *) bad control "$EINVAL" "three block events=$value" ;; esac
done
for value in 0 16777216 4294967296 18446744073709551615 18446744073709551616 340282366920938463463374607431768211456; do
	bad control "$ERANGE" "three block events=$value" $value
done
for value in 0 16777216; do bad control "$ERANGE" "three block max_events=$value" $value; done
bad control "$EINVAL" 'three block events=100 max_events=99' 99
bad control "$EINVAL" 'three block max_events=4095' 4095
for value in 33 4294967296; do bad control "$ERANGE" "three block stack=$value" $value; done
for value in '' -1 all; do bad control "$EINVAL" "three block stack=$value"; done
for value in 3 100 1000 1023 ''; do bad control "$EINVAL" "three block ring=$value"; done
for value in 0 1 2097152 4294967296; do bad control "$ERANGE" "three block ring=$value" $value; done
for value in '' 2 -1 on off true yes y 00 01 10 ' 1' '1 '; do
	bad one/enabled "$EINVAL" "$value"
	bad one/worst "$EINVAL" "$value"
done

# Words and disks
for value in '' Issue ISSUE complete 0 1 issue,insert issue+; do bad control "$EINVAL" "three block from=$value"; done
for value in '' / /dev/null ../null . .. : 8: :0 a:b 8:0: 8:0:0 -1:0 8:-1 'a/b' sda/ 'x\0y' '%%s%%s%%n' '*' null; do
	bad control "$EINVAL" "three block dev=$value"
done
for value in nosuchdisk sdzz vda99; do bad control "$ENOENT" "three block dev=$value" $value; done
for value in 4096:0 8:1048576 4294967296:0 99999999999999999999:0 0:18446744073709551616; do
	bad control "$ERANGE" "three block dev=$value" $value
done

# Changing existing instances
bad control "$EINVAL" 'one block events=200' events
bad control "$EINVAL" 'one block max_events=200' max_events
bad control "$EINVAL" 'two block from=issue' from
bad control "$EINVAL" 'one block threshold=5ms ring=2048' ring
bad control "$EINVAL" 'one block threshold=5ms bogus=1' bogus
bad control "$ERANGE" 'one block threshold=5ms wakeup_interval=99999999999s' 99999999999s
bad control "$EINVAL" 'one block enabled=0 threshold=never' never
for file in events ring stack from; do bad one/$file 'Operation not permitted' insert "$file"; done
bad one/timeout "$EINVAL" soon soon

# Too much at once
long=$(head -c 4000 /dev/zero | tr '\0' x)
bad control "$EINVAL" "$long" xxxx
bad control "$EINVAL" "${long}${long}"
bad one/threshold "$EINVAL" "${long}${long}"
bad control "$EINVAL" "three block threshold=$long" xxxx

log_is_right
for says in 'events: expected a whole number from 1 to 8388608: "0"' 'ring: expected a power of two from 2 to 1048576: "1000"' \
	'threshold: expected a duration of at most a year: "31536001s"' 'from: expected one of issue|insert: "Issue"' \
	'enabled: expected 0 or 1: "on"'; do
	grep -qF "latency_tracker: $says" /tmp/log || fail "the log does not say: $says"
done

# Of several lines, only those before the bad line are executed.
if printf 'four block\nfive blocks\nsix block\n' 2>/dev/null >$LT/control; then fail "a bad line among good ones was accepted"; fi
[ -d $LT/four ] && [ ! -d $LT/five ] && [ ! -d $LT/six ] || fail "expected only the first line to take effect"
control '-four'
[ "$(state)" = "$before" ] || fail "something else has changed"

# Files that cannot be written, and that only root can read.
for file in trackers version wakeup alerts one/stats one/histogram one/pending one/events one/ring one/from one/alerts; do
	mode=$(ls -l "$LT/$file" | cut -c1-10)
	assert_eq "$mode" -r-------- "$file"
done

# An open with truncation, as every `>` is, removes nothing.
: >$LT/control
[ "$(state)" = "$before" ] || fail "truncation changed something"

# Blank lines and comments are ignored.
printf '# a comment\n\n  \t \n' >$LT/control
[ "$(state)" = "$before" ] || fail "a comment changed something"

echo "$tried malformed writes were refused"
[ $tried -ge 200 ] || fail "only $tried malformed writes were tried"
unload_module
