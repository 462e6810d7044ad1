#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# The pages that scripts/example has written are complete, and their pictures have a lane for each thread that the
# explanation names. A page with an empty output waits for the next run of scripts/example, which writes all outputs of
# the page and draws its pictures again: such a page is skipped, and the other pages are checked.
# timeout: 60

. "$(dirname "$0")/../host.sh"
cd "$LT_TOP"
python3 - README.md Documentation/guide/why-was-it-slow.md <<-'END' && exit
	import re, sys
	from pathlib import Path
	wrong, empty = [], []
	for page in map(Path, sys.argv[1:]):
	    text = page.read_text(encoding="utf-8")
	    outputs = re.findall(r"<!-- ((?:output )?[\w-]+) -->\n(.*?)<!-- end \w+ -->", text, re.S)
	    if not outputs:
	        wrong.append(f"{page}: no place for an output")
	    missing = [f"{page}: {name}: no output yet" for name, output in outputs if not output.strip()]
	    empty += missing
	    for name, output in outputs if not missing else []:
	        if name != "example" and not name.endswith("-record"):
	            continue
	        sentence = re.search(r"^ *[0-9]+ % of the delay .*?\n\n", output, re.M | re.S)
	        if not sentence:
	            wrong.append(f"{page}: {name}: no sentence about the delay")
	        else:
	            case = name.removeprefix("output ").removesuffix("-record")
	            picture = page.with_name(f"{page.stem}-{case}.svg")
	            picture = Path("Documentation/wake-chain.svg") if case == "example" else picture
	            lanes = re.findall(r'text-anchor="end">(.*)</text>', picture.read_text(encoding="utf-8"))
	            threads = re.findall(r"[^\s(,;]+/[0-9]+(?![^\s,;:.)])", " ".join(sentence[0].split()))
	            wrong += [f"{picture}: no lane of {thread}" for thread in threads if thread not in lanes]
	print(*wrong, *empty, sep="\n")
	sys.exit(1 if wrong else 77 if empty else 0)
END
status=$?
[ $status -eq 77 ] || fail "run scripts/example, or scripts/example --guide"
echo "SKIP: run scripts/example, or scripts/example --guide"
exit 77
