#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# scripts/check-layers and scripts/trackers reject imports from higher layers, cycles of files, crates that depend on
# crates in higher layers, generated files that differ from the declaration of a tracker, declarations that cannot be
# read or differ from tests/abi.txt, and tables with a gap. They accept this checkout.
# timeout: 120

. "$(dirname "$0")/../host.sh"

# with FILE SED: make a copy of the sources in which a file is changed.
with() {
	rm -rf "${work:?}/copy"
	mkdir -p "$work/copy/user"
	cp -r "$LT_TOP"/{rust,include,lttng,scripts,tests,Documentation,README.md} "$work/copy/"
	(cd "$LT_TOP" && find user '(' -name Cargo.toml -o -path '*/src/*.rs' ')' -print0 | xargs -0 cp --parents -t "$work/copy")
	[ $# -eq 0 ] || {
		sed -i "$2" "$work/copy/$1"
		! cmp -s "$LT_TOP/$1" "$work/copy/$1" || { echo "FAIL: $1 is as before"; exit 1; }
	}
}

# The copy has the sources of programs, but not what building them needs: scripts/trackers runs this checkout's program.
export LT_TOP LT_BUILD

# refuses SCRIPT TEXT: the script must fail and print TEXT.
refuses() {
	if "$work/copy/scripts/$1" "${@:3}" >"$work/said" 2>&1; then echo "FAIL: $1 passes instead of printing: $2"; exit 1; fi
	grep -q "$2" "$work/said" || { echo "FAIL: $1 does not say: $2"; cat "$work/said"; exit 1; }
}

with
"$work/copy/scripts/check-layers"
"$work/copy/scripts/trackers" --check

with rust/engine/hash.rs '$a use crate::proc::registry::Registry;'
refuses check-layers 'rust/engine/hash.rs: imports rust/proc/registry.rs, which is a layer above'
with rust/freelist/used.rs '$a use crate::engine::Engine;'
refuses check-layers 'rust/freelist/used.rs: imports rust/engine.rs, which is a layer above'
with rust/sys/random.rs '$a fn f() { crate::trackers::irq::f(); }'
refuses check-layers 'rust/sys/random.rs: imports rust/trackers/irq.rs, which is a layer above'
with rust/engine/histogram.rs '$a use crate::engine::delays::Delays;'
refuses check-layers 'rust/engine/histogram.rs: in a cycle with rust/engine/delays.rs'
with user/latency-tracker/src/service.rs '/^use /i use crate::cmd::names;'
refuses check-layers 'user/latency-tracker/src/service.rs: imports user/latency-tracker/src/cmd.rs, which is a layer above'
with user/lt-model/src/wakers.rs '/^use /i use crate::why::path;'
refuses check-layers 'user/lt-model/src/wakers.rs: imports user/lt-model/src/why/path.rs, which is a layer above'
with user/lt-proc/Cargo.toml '/^\[dependencies\]/a latency-tracker = { path = "../latency-tracker" }'
refuses check-layers 'user/lt-proc: depends on latency-tracker, which is not below it'

with rust/trackers/softirq.rs 's/^        on: u32 at/        on: u16 at/'
refuses trackers 'include/trace/events/latency_tracker_declared.h does not match' --check
# What Rust's macros accept is read, too, or refused.
with rust/trackers/softirq.rs 's/^        on: u32 at/        on: u32 on/'
refuses trackers '^rust/trackers/softirq.rs:[0-9]*: expected `at`: on: u32 on 0:32,$' --check
with rust/trackers/softirq.rs 's/^        on: u32 at/        on : u32 at/'
"$work/copy/scripts/trackers" --check
with rust/trackers/softirq.rs 's/^        on: u32 at/        on: u33 at/'
refuses trackers '^rust/trackers/softirq.rs:[0-9]*: no fields! has the type u33: ' --check
with rust/trackers/softirq.rs '/The CPU that the softirq ran on/d'
refuses trackers '^rust/trackers/softirq.rs:[0-9]*: a field without a comment: on: u32 at 0:32,$' --check
with rust/trackers/softirq.rs 's/"only softirqs that run on this CPU";/\n            "only softirqs that run on this CPU", fixed;/'
refuses trackers '^+.*cpu  RO, 0-MAX|all; all by default' --check
with rust/trackers/block.rs 's/requeues: U31 at 2:32/requeues: U31 at 2:33/'
refuses trackers '^+.*requeues   u32; bits 33 to 63 of args\[2\]' --check
with tests/abi.txt 's/ prio= policy= target=/ prio= policy= aim= target=/'
refuses trackers 'tests/abi.txt: the line of wakeup has aim, which is in no comment of a field' --check
with tests/abi.txt 's/^  from=issue issue|insert (at creation only)/  from=issue issue|insert/'
refuses trackers 'tests/abi.txt: block has no:  from=issue issue|insert (at creation only)' --check
with rust/trackers/offcpu.rs 's/^        over_max,/        too_long,/'
refuses trackers 'tests/abi.txt: offcpu has no: readers too_long early crowded' --check
with rust/record/kinds.rs 's/"u32" "%u" "(u16)";/"u16" "%u";/'
refuses trackers 'include/trace/events/latency_tracker_declared.h does not match' --check
with rust/trackers/softirq.rs 's/softirq_exit(vector: \[unsigned int\])/softirq_exit(vector: [int])/'
refuses trackers 'rust/sys/declared_list.h does not match' --check
with Documentation/guide/control-language.md 's/^\[softirq\].*//'
refuses trackers 'Documentation/guide/control-language.md does not match' --check
with README.md '/^| \[softirq\]/d'
refuses trackers 'README.md: the table of trackers has no row for softirq' --check
with Documentation/status.md 's|vm/tree-interference |vm/nosuch |'
refuses trackers 'Documentation/status.md: there is no test vm/nosuch: ' --check
with Documentation/status.md 's/ vm\/tree-interference / /'
refuses trackers 'Documentation/status.md: there is no test none: ' --check
with Documentation/design/testing.md '/^| vm\/softirq\|^| vm\/irq |/d'
refuses trackers 'tests/vm/irq.sh is not in the table' --check
