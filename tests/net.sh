# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# net.sh: a network of two namespaces for tests inside the virtual machine. Sourced after lib.sh.

ip() { /usr/bin/ip "$@"; }

# between_namespaces: veth0 has 10.9.0.1 here, and veth1 has 10.9.0.2 in the namespace `inner`.
between_namespaces() {
	ip netns add inner
	ip link add veth0 type veth peer name veth_of_inner1 netns inner
	# Container runtimes rename, too; the kernel leaves a part of the old name behind the new one.
	ip netns exec inner /usr/bin/ip link set veth_of_inner1 name veth1
	ip addr add 10.9.0.1/24 dev veth0
	ip link set veth0 up
	ip netns exec inner /usr/bin/ip addr add 10.9.0.2/24 dev veth1
	ip netns exec inner /usr/bin/ip link set veth1 up
}
