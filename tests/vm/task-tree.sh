# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `pid=P tree=1` accepts exactly process P and its descendants: from before and after the creation
# of the instance, with their threads, even if they have left their session or PID namespace, or if
# a thread has executed a program. A descendant that loses its parent is still accepted if the
# instance existed by then. No other process that gets the ID of an exited descendant, or of P, is
# accepted. No fork is missed while instances are created. A tree without a process is refused, and
# so is a change of the process.
# kernels: stock
# long: rt
# long-part: more processes that fork while instances are created
# cpus: 2
# root: full
# timeout: 300

. /lt/tests/lib.sh

load_module
python3 /lt/tests/descendants.py kinds || fail "not exactly the descendants"
rounds="3 40"
[ -z "${LT_LONG:-}" ] || rounds="$(many 20 5) 100"
# shellcheck disable=SC2086
python3 /lt/tests/descendants.py race $rounds || fail "not exactly the descendants, while they fork"

# Refused lines; the log has the reason.
says() { dmesg | tail -n 1 | grep -qF -- "$1" || fail "the log says: $(dmesg | tail -n 1)"; }
refused "tree=1 alone" control 'bad offcpu tree=1'
says 'expected pid= as well: "tree"'
refused "tree=1 of all processes" control 'bad offcpu pid=all tree=1'
says 'expected pid= as well: "tree"'
refused "tree=2" control 'bad offcpu pid=1 tree=2'
says 'tree: expected 0 or 1: "2"'
refused "no process" control 'bad offcpu pid=4194303 tree=1'
says 'pid: with tree=1, expected the ID of a process that exists: "4194303"'
refused "the idle task" control 'bad offcpu pid=0 tree=1'
says 'pid: with tree=1, expected the ID of a process that exists: "0"'
python3 -c 'import threading, time
def sleeps(): print(threading.get_native_id(), flush=True); time.sleep(60)
threading.Thread(target=sleeps, daemon=True).start()
time.sleep(60)' >/tmp/tid &
process=$!
wait_until 10 test -s /tmp/tid
tid=$(cat /tmp/tid)
refused "a thread" control "bad offcpu pid=$tid tree=1"
says "expected the ID of a process that exists: \"$tid\""
[ ! -e $LT/bad ] || fail "an instance was created"

# The tree is the tree of one process, for the life of the instance.
control "t offcpu pid=$process tree=1"
grep -q "^t offcpu .* pid=$process .* tree=1 " $LT/control || fail "control does not show the tree"
assert_eq "$(cat $LT/t/pid) $(cat $LT/t/tree)" "$process 1" "the files"
refused "another process" control 't offcpu pid=1'
says 'with tree=1 this parameter can only be given at creation: "pid"'
refused "all processes" control 't offcpu pid=all'
says 'with tree=1 this parameter can only be given at creation: "pid"'
refused "another process, by the file" sh -c "echo 1 >$LT/t/pid"
refused "no tree" control 't offcpu tree=0'
says 'this parameter can only be given at creation: "tree"'
control "t offcpu pid=$process tree=1 threshold=2s"
control "plain offcpu pid=$process"
refused "a tree, later" control 'plain offcpu tree=1'
says 'this parameter can only be given at creation: "tree"'
control 'plain offcpu pid=1'
# The pid of an instance without a tree can still be changed. Unloading the module removes the instance with a tree.
assert_eq "$(cat $LT/plain/pid) $(cat $LT/plain/tree)" "1 0" "an instance without a tree"
kill $process
wait $process || :
unload_module
