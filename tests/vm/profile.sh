# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# All of `latency-tracker profile`, with real requests and calls. Two profiles of the same work are
# not reported as different. For different work, the report shows which class has changed, where,
# and how certain that is. Other formulas give the same chi-squared, degrees of freedom and
# probability for the saved files (tests/profiles.py). A recording contains everything that
# happened, even if the profile is reset meanwhile. The picture has a cell for each row with a
# count, in each sample. Errors in a file are reported with the line.
#
# The times of the disks are in the middle of a row, so that the emulation's noise does not move a
# request to another row. The machine's clock counts instructions.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# turn: 100
# debug: no, a sanitizer's requests would be in other rows
# timeout: 180

. /lt/tests/lib.sh
. /lt/tests/block.sh

check() { python3 /lt/tests/profiles.py "$@"; }
profile() { latency-tracker profile "$@"; }

# works COMMAND...: make the server execute each of these lines. Sets longest to the longest call of
# the last line, in ns.
works() {
	for line in "$@"; do
		echo "$line" >&5
		read -r answer longest <&6
		assert_eq "$answer" "done" "$line"
	done
}

# compared STATUS BEFORE AFTER: check that the report matches the files, and that the exit status is
# STATUS. The readable report goes to /tmp/report.
compared() {
	status=0
	profile compare "$2" "$3" --json >/tmp/report.json || status=$?
	check compared "$2" "$3" /tmp/report.json || fail "$2 and $3: the report does not match the files"
	assert_eq $status "$1" "exit status for $2 and $3"
	status=0
	profile compare "$2" "$3" >/tmp/report || status=$?
	assert_eq $status "$1" "exit status for $2 and $3, for a person"
	cat /tmp/report
}

# says TEXT: check that the report has TEXT. Long lines are wrapped in it.
says() { tr '\n' ' ' </tmp/report | grep -qF "$1" || fail "the report does not say: $1"; }

load_module
null_disk quick 700000
null_disk middle 3000000
null_disk slow 12000000
dd if=/dev/zero of=/tmp/file bs=64k count=4 2>/dev/null
mkfifo /tmp/commands /tmp/answers
python3 /lt/tests/io.py serve /tmp/commands /tmp/answers &
server=$!
exec 5>/tmp/commands 6</tmp/answers
# Warm up: the first run of anything is slow under emulation.
works "write /dev/quick 5" "read /dev/slow 5" "cached /tmp/file 5"
refused "without an instance" profile save -o /tmp/none.json
latency-tracker start io io "pid=$server"

# day NAME QUICK MIDDLE SLOW: make these numbers of writes to the disks, and save the profile. Each
# write must be in the row of its disk. A day on which the machine itself was late, by the server's
# own clock, is repeated.
day() {
	for try in 1 2 3; do
		late=''
		profile show --reset >/dev/null
		for write in "quick $2 1048576" "middle $3 4194304" "slow $4 16777216"; do
			works "write /dev/${write% *}"
			[ "$longest" -lt "${write##* }" ] || late="$late $write: $longest ns;"
		done
		profile save io -o /tmp/$1.json
		assert_eq "$(check total /tmp/$1.json b_write)" $(($2 + $3 + $4)) "requests on $1"
		if [ -z "$late" ]; then
			assert_eq "$(check rows /tmp/$1.json b_write)" "$2 $3 $4" "requests in the rows of their disks on $1"
			return
		fi
		echo "$1, try $try: the machine was late:$late"
		rm /tmp/$1.json
	done
	fail "the machine was late in each try"
}

# Two equal days, then one with more waits for the slow disk.
day monday 100 80 20
day tuesday 100 80 20
day wednesday 100 20 80
profile show
compared 0 /tmp/monday.json /tmp/tuesday.json
says "write requests: no significant difference (p = 1.000)"
compared 2 /tmp/monday.json /tmp/wednesday.json
# In each of two rows, 50 requests are expected on each of two days. Each of these four counts is 30
# higher or lower, and contributes 30^2 / 50.
grep -qE '^b_write +200 +200 +72.0 +2 +< 0.001$' /tmp/report || fail "chi-squared is not 72 with 2 degrees of freedom"
says "write requests: the share above 8.39ms rose from 10 % to 40 % (p < 0.001)"
# Three more calls are the server's responses.
says "write calls: the share above 8.39ms rose from 9.9 % to 39 % (p < 0.001)"
compared 2 /tmp/wednesday.json /tmp/monday.json
says "write requests: the share above 8.39ms fell from 40 % to 10 % (p < 0.001)"

# Small reads of cached data, and reads that all wait for a disk. The profile of the small reads is
# also compared with the current profile of the instance.
profile show --reset >/dev/null
works "cached /tmp/file 200"
profile save -o /tmp/cached.json
profile show --reset >/dev/null
works "read /dev/slow 200"
profile save -o /tmp/direct.json
compared 2 /tmp/cached.json /tmp/direct.json
says "read requests: not tested, too few in different rows (0 before, 200 after)"
grep -qE '^read calls: the share above 8.39ms rose from (0.[0-9]|1.0) % to 100 % \(p < 0.001\)$' /tmp/report ||
	fail "the report does not show that read calls became slower"
status=0
profile compare /tmp/cached.json >/tmp/report || status=$?
assert_eq "$status $(grep -c '^read calls: the share above 8.39ms rose' /tmp/report)" "2 1" "compared with now"

# A recording contains everything, with a reset in the middle.
profile show --reset >/dev/null
profile record io --every 1 --duration 8 -o /tmp/record.json --svg /tmp/record.svg &
recording=$!
# The recording counts from its start.
sleep 2
for round in 1 2 3 4; do
	works "write /dev/quick 50" "write /dev/slow 20" "cached /tmp/file 100"
	sleep 0.5
	[ $round != 2 ] || profile show --reset >/dev/null
done
wait $recording
assert_eq "$(check total /tmp/record.json b_write)" 280 "requests that were recorded"
check drawn /tmp/record.json /tmp/record.svg
profile draw /tmp/record.json -o /tmp/all.svg
assert "the two pictures are the same" cmp /tmp/record.svg /tmp/all.svg
profile draw /tmp/record.json -o /tmp/write.svg --class b_write
check drawn /tmp/record.json /tmp/write.svg b_write
refused "a picture of other cells" check drawn /tmp/record.json /tmp/write.svg s_read
cp /tmp/*.json /tmp/*.svg /lt/out

# bad TEXT WORD...: check that the command fails and prints TEXT.
bad() {
	text=$1
	shift
	status=0
	profile "$@" 2>/tmp/said >/dev/null || status=$?
	assert_eq $status 1 "exit status of: profile $*"
	grep -qF -- "$text" /tmp/said || fail "profile $* says: $(cat /tmp/said)"
}
# changed FROM TO: make a copy of a file, with FROM replaced by TO.
changed() { sed "s/$1/$2/" /tmp/monday.json >/tmp/bad.json; }
bad "/tmp/none.json: No such file" compare /tmp/none.json /tmp/monday.json
head -c 500 /tmp/monday.json >/tmp/bad.json
bad "/tmp/bad.json: EOF while parsing" compare /tmp/monday.json /tmp/bad.json
bad "at line 1 column 500" draw /tmp/bad.json -o /tmp/bad.svg
changed '"samples":' '\n"samples":\n'
profile compare /tmp/bad.json /tmp/tuesday.json >/dev/null || fail "a file with more line breaks is refused"
changed '"b_write":\[0,' '\n\n"b_write":[-1,'
bad '/tmp/bad.json: invalid value: integer `-1`, expected u64 at line 3 column' compare /tmp/bad.json /tmp/monday.json
changed '"b_write":\[0,' '"b_write":['
bad "sample 0: b_write has " compare /tmp/bad.json /tmp/monday.json
changed '"version":1' '"version":2'
bad "version 2 is newer" compare /tmp/bad.json /tmp/monday.json
changed 'latency-tracker profile' 'other'
bad "not a profile: expected" draw /tmp/bad.json -o /tmp/bad.svg
bad "--class nonsense: expected one of s_read" draw /tmp/record.json -o /tmp/bad.svg --class nonsense
bad "/tmp/none/x" save -o /tmp/none/x
bad "[possible values: 1, 5, 15]" save --minutes 7 -o /tmp/bad.json
bad "--duration 0ns: expected a duration" record io --duration 0 -o /tmp/bad.json
[ ! -e /tmp/bad.svg ] || fail "a picture was made of a bad file"
latency-tracker start other io >/dev/null
bad "several instances" save -o /tmp/bad.json
latency-tracker start disk block >/dev/null
bad "disk has no profile" show disk
exec 5>&- 6<&-
wait $server
for name in io other disk; do control "-$name"; done
unload_module
