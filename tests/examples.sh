# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# examples.sh: runs the examples of a page of Documentation as if they were pasted. Sourced after lib.sh.
#
# An example is, in an indented block,
#
#   - a line that starts with `# `, the prompt, and a command (COMMANDS), with its continuation lines;
#   - or the whole block, if its first word is a command and no line has a prompt.
#
# Everything else is output, or text.

COMMANDS='uname grep cat echo dmesg latency-tracker insmod modprobe rmmod while mkdir dd apt make sudo'

# examples_of PAGE DIRECTORY: write a file for each example, 001 and so on, in order. Its first line
# is a comment with the page and the line.
examples_of() {
	mkdir -p "$2"
	awk -v out="$2" -v page="$1" -v commands="$COMMANDS" '
		function flush(  i, name, prompt, going) {
			prompt = 0
			for (i = 1; i <= n; i++) prompt = prompt || asked(line[i])
			if (n > 0 && (prompt || first(line[1]) in known)) {
				name = ""
				for (i = 1; i <= n; i++) {
					if (prompt && !going && !asked(line[i])) continue
					if (name == "" || (prompt && !going)) {
						if (name != "") close(name)
						name = sprintf("%s/%03d", out, ++count)
						printf "# %s:%d\n", page, at[i] > name
					}
					if (prompt && !going) sub(/^# /, "", line[i])
					print line[i] > name
					going = line[i] ~ /\\$/
				}
				close(name)
			}
			n = 0
		}
		function asked(text) { return text ~ /^# / && first(substr(text, 3)) in known }
		function first(text) { sub(/ .*/, "", text); return text }
		BEGIN { split(commands, list, " "); for (i in list) known[list[i]] = 1 }
		/^    / {
			text = $0
			sub(/^ +/, "", text)
			if (n == 0) match($0, /^ +/)
			if (n == 0) indent = RLENGTH
			line[++n] = substr($0, indent + 1)
			at[n] = NR
			next
		}
		{ flush() }
		END { flush() }' "$1"
}

# run_examples DIRECTORY [REGEX]: run each example as it would be pasted into a shell, except those
# with a line that matches. An example that fails fails the test. An example that is meant to run
# forever is ended after a while.
run_examples() {
	_shell='sh'
	[ ! -x /bin/bash ] || _shell=/bin/bash
	for _example in "$1"/*; do
		! grep -qE -- "${2:-^$}" "$_example" || continue
		_rc=0 _seconds=60 _ends=' 0 '
		# the exit status of coreutils' or busybox's timeout
		! grep -qE 'cat .*/(alerts|wakeup)|tracker watch' "$_example" || _seconds=2 _ends=' 124 143 '
		timeout "$(patiently $_seconds)" $_shell "$_example" >/tmp/example.log 2>&1 </dev/null || _rc=$?
		case $_ends in *" $_rc "*) continue ;; esac
		cat "$_example" /tmp/example.log >&2
		fail "an example fails ($_rc)"
	done
}
