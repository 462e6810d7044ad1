# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# The entry point. `make help` lists the targets; most run a script in scripts/ or tests/, which has --help.
# (The kernel's build system reads Kbuild, not this file.)

.DEFAULT_GOAL := all
.PHONY: all help env module user install uninstall deb demo test test-debug test-long matrix check bench vm clean distclean

# make test T=lttng runs the tests with that word in their name
T ?=
# make test-long K=PART runs one part: rest (what make test leaves out), small (only host/own-kernel, which is part of rest), models, fuzz, or the stress on stock, rt, debug or kcsan; make test K=trixie-backports runs some tests on that suite's kernels
K ?=
# make test A=arm64 (or rt-arm64) runs the tests that support arm64, in an emulated machine; make deb A=arm64 makes packages for arm64
A ?=
# make bench B=engine runs that part; J=FILE also writes the figures as JSON
B ?=
J ?=
# make module KREL=... builds for that kernel: a release, stock, rt, debug, arm64 or rt-arm64
KREL ?=
# make KDIR=DIRECTORY builds only the module, for a kernel of your own, and sets nothing up; DIRECTORY is its source, or the directory of O=
KDIR ?=
# make module TRACKERS='wakeup irq' builds a module with these trackers only
TRACKERS ?=
# make LTTNG=/usr/src/lttng-modules-2.16.0, the source of LTTng's modules, also builds LTTng's probe for alerts (lttng/)
LTTNG ?=
# make vm KERNEL=rt CPUS=4 NUMA=2 ROOT=full
KERNEL ?= stock
CPUS ?= 2
NUMA ?= 1
ROOT ?= full

# make install DESTDIR=DIRECTORY PREFIX=/usr/local
DESTDIR ?=
PREFIX ?= /usr/local
place = DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' KREL='$(KREL)'

# the command that scripts print, to be run again as root
export LT_COMMAND := make $(MAKECMDGOALS)

# KDIR, or a KREL that is a path, is a kernel's build directory: only the module is built, without the environment
own := $(KDIR)$(findstring /,$(KREL))$(and $(KREL),$(wildcard $(KREL)/.))
all: module $(if $(own),,user) ## build the kernel module and the commands [KDIR=: the module for a kernel of your own]

help: ## list what make can do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Everything is set up when first needed, in $${XDG_CACHE_HOME:-$$HOME/.cache}/latency-tracker (about 7 GB; 1 GB more for test-debug, and for test-long)."

env: ## set up the environment only (a few minutes, once)
	@scripts/env

module: ## build the kernel module: for the running kernel if it has Rust, else for the virtual machine's [KREL= KDIR= TRACKERS= LTTNG=]
	@LTTNG='$(abspath $(LTTNG))' scripts/build-module $(or $(abspath $(KDIR)),$(KREL)) $(if $(TRACKERS),TRACKERS='$(TRACKERS)')

user: ## build the commands, optimised as a whole (minutes)
	@scripts/build-user --release

install: ## install what was built: module, command, man pages, guides, completions [DESTDIR= PREFIX= KREL=]
	@$(place) scripts/install

uninstall: ## remove exactly what make install has installed [DESTDIR= PREFIX=]
	@$(place) scripts/install --uninstall

deb: user ## make Debian packages, in build/deb: the command, the module's source for DKMS, headers [A=arm64: for arm64, in build/deb-arm64]
	@$(if $(A),scripts/build-user --with $(A) --release)
	@scripts/deb $(A)

demo: ## catch slow disk requests in a virtual machine and see the snapshot that explains one
	@scripts/demo

test: ## run the tests, each on at least one kernel; a few run only in test-long [T=word selects by name; K=trixie-backports: some, on the kernels of that suite; A=arm64: some, on a kernel of arm64]
	@set -f; $(if $(A),LT_KERNEL=$(A) )$(if $(K),tests/run-suite $(K),tests/run) $(T)

test-debug: ## run the tests of the virtual machine on a kernel with KASAN, lockdep and more [T=word]
	@set -f; tests/run-debug $(T)

test-long: ## tests on their other kernel and with their longer parts, models with more interruptions, traces changed at random, stress for minutes on stock, rt and debug kernels, data races on one with KCSAN [K=part]
	@set -f; tests/run-long $(K)

matrix: ## build and boot on the kernels of forky, trixie-backports, sid and experimental; the table is in Documentation/status.md [K="suite..."]
	@set -f; scripts/matrix $(K)

check: ## check the form: formatting, lints, documentation, unsafe code, shell, words
	@scripts/check

bench: ## measure what the engine costs [B=part J=file]
	@scripts/bench $(if $(J),--json $(J)) $(B)

vm: ## a shell in a virtual machine with the module and the commands [KERNEL= CPUS= NUMA= ROOT=]
	@scripts/build-module $(filter stock rt arm64 rt-arm64 debug kcsan small,$(KERNEL))
	@scripts/build-user $(if $(filter %arm64,$(KERNEL)),--with arm64)
	@scripts/vm --kernel $(KERNEL) --cpus $(CPUS) --numa $(NUMA) --root $(ROOT)

clean: ## remove what was built here
	rm -rf build

distclean: clean ## also remove the environment in the cache
	rm -rf --one-file-system "$${XDG_CACHE_HOME:-$$HOME/.cache}/latency-tracker"
