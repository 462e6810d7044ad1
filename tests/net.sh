# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# net.sh: a network of two namespaces for tests inside the virtual machine. Sourced after lib.sh.

ip() { /usr/bin/ip "$@"; }

# between_namespaces: veth0 has 10.9.0.1 here, and veth1 has 10.9.0.2 in the namespace `inner`.
between_namespaces() {
	ip netns add inner
	ip link add veth0 type veth peer name veth_of_inner1 netns inner
	# Container runtimes rename interfaces, too. The kernel leaves a part of the old name behind the new one.
	ip netns exec inner /usr/bin/ip link set veth_of_inner1 name veth1
	ip addr add 10.9.0.1/24 dev veth0
	ip link set veth0 up
	ip netns exec inner /usr/bin/ip addr add 10.9.0.2/24 dev veth1
	ip netns exec inner /usr/bin/ip link set veth1 up
}

# tunnel_between_namespaces: a GRE tunnel over that veth pair: tunnel0 has 10.9.1.1 here, and tunnel1 has 10.9.1.2 in
# `inner`. veth0 cuts TCP's data into segments, which tunnel1 passes to GRO after veth1 has received them. Packets of
# TCP that are not cut are clones, which bypass that GRO. `rmmod ip_gre` removes the tunnel.
tunnel_between_namespaces() {
	modprobe ip_gre || fail "no ip_gre"
	ip link set veth0 gso_max_segs 1
	ip link add tunnel0 type gre local 10.9.0.1 remote 10.9.0.2
	ip netns exec inner /usr/bin/ip link add tunnel1 type gre local 10.9.0.2 remote 10.9.0.1
	ip addr add 10.9.1.1/24 dev tunnel0
	ip link set tunnel0 up
	ip netns exec inner /usr/bin/ip addr add 10.9.1.2/24 dev tunnel1
	ip netns exec inner /usr/bin/ip link set tunnel1 up
}
