#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# scripts/env finds the archive that the host itself uses, in deb822 or in one-line sources: the
# environment is installed from there.
# timeout: 20

. "$(dirname "$0")/../host.sh"

# expect URL: the sources on standard input must yield this mirror; their first line is the name of their file
expect() {
	local got name
	rm -rf "$work/apt"
	mkdir -p "$work/apt/sources.list.d"
	read -r name
	cat >"$work/apt/$name"
	got=$(LT_APT=$work/apt LT_MIRROR='' "$LT_TOP/scripts/env" --mirror)
	[ "$got" = "$1" ] || { echo "$name: got '$got', expected '$1'"; cat "$work/apt/$name"; exit 1; }
}

expect http://one.example/debian <<'END'
sources.list.d/debian.sources
Types: deb deb-src
# a comment in between
URIs: http://one.example/debian http://two.example/debian
Suites: trixie
 trixie-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
expect http://two.example/debian <<'END'
sources.list.d/several.sources
Types: deb
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main

Enabled: Off
Types: deb
URIs: http://also-off.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: cdrom:[Debian_12]/
Suites: bookworm
Components: main

Types: deb-src
URIs: http://source.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://two.example/debian
Suites: bookworm
Components: non-free-firmware main
END
expect https://three.example/debian/ <<'END'
sources.list
# deb http://commented.example/debian stable main
deb-src http://source.example/debian stable main
deb http://security.example/debian-security stable-security main
deb cdrom:[Debian GNU/Linux 13 _Trixie_]/ trixie main
deb [arch=amd64 signed-by=/etc/apt/keyring.gpg] https://three.example/debian/ stable	main contrib # ours
END
expect '' <<'END'
sources.list.d/other.list
deb https://packages.example/tool stable tool
deb https://packages.example/other ./
END
echo "all forms understood"
