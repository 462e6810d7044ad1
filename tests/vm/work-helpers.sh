# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Programs mark their work with the helpers: the C header, the Rust crate and its command, and the
# shell and Python examples. The work of each is tracked under its cookie, and each helper also
# works without an instance.
# kernels: stock
# cpus: 2
# root: full
# icount: 1
# timeout: 120

. /lt/tests/lib.sh

load_module
samples=/lt/samples
export LC_ALL=C.UTF-8

# all [INSTANCE]: run all helpers one after another, each with two jobs.
all() {
	printf 'one\ntwo\n' | work-queue "$@"
	printf 'one\ntwo\n' | python3 $samples/job.py "$@"
	lt-work ${1:+-i "$1"} run 'lt-work 1' sleep 0.05
	lt-work ${1:+-i "$1"} begin 'lt-work 2'
	sleep 0.05
	lt-work ${1:+-i "$1"} "done" 'lt-work 2'
}

# If no instance tracks the work, the helpers report that, and still do their work.
{
	printf 'one\ntwo\n' | work-queue
	printf 'one\ntwo\n' | python3 $samples/job.py
	lt-work run nothing echo still "done"
} >/tmp/out 2>/tmp/err
sh $samples/job.sh nothing echo done, too >>/tmp/out
assert_eq "$(tr '\n' ' ' </tmp/out)" "still done done, too " "without an instance"
assert_eq "$(grep -c 'No such device' /tmp/err)" 9 "refused marks, of $(cat /tmp/err)"
refused "no instance" lt-work begin nothing
assert_eq "$(lt-work run nothing printf %s --help 2>/dev/null)" --help "an option of the command"
assert_eq "$(lt-work 2>&1 | head -n 1)" "usage: lt-work [-i INSTANCE] begin COOKIE" "usage"

control 't tree end=work threshold=40ms'
exec 3<$LT/t/alerts
all
sh $samples/job.sh 'job.sh ok' sleep 0.05
status=0
sh $samples/job.sh 'job.sh bad' sh -c 'sleep 0.05; exit 7' || status=$?
assert_eq "$status" 7 "the exit status in a shell"
status=0
lt-work run 'lt-work 3' sh -c 'sleep 0.05; exit 9' || status=$?
assert_eq "$status" 9 "the exit status"
all t
alerts_of t /tmp/alerts
exec 3<&-
sed -n 's/.* cookie="\([^"]*\)".*/\1/p' /tmp/alerts | sort | uniq -c | sed 's/^ *//' >/tmp/cookies
cat >/tmp/expected <<'END'
2 job 1
2 job 2
1 job.sh bad
1 job.sh ok
2 lt-work 1
2 lt-work 2
1 lt-work 3
2 queue 1
2 queue 2
END
diff -u /tmp/expected /tmp/cookies || { cat /tmp/alerts; fail "other cookies"; }
assert_eq "$(stat t work_begun) $(stat t work_done) $(stat t work_unmatched) $(stat t work_pending)" "15 15 0 0" "marks"
# In the example with a queue, another thread has done the work.
grep 'cookie="queue' /tmp/alerts | sed -n 's/.*[ "]begin:\([0-9]*\)@.* done:\([0-9]*\)@.*/\1 \2/p' |
	awk '$1 == $2 { exit 1 } END { exit NR != 4 }' || fail "who has done the jobs of the queue"
control -t
unload_module
