// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets that a server has accepted, made callable from Rust; see accept.rs.
 */
#include <linux/file.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/kernel.h>
#include <linux/net.h>
#include <linux/socket.h>
#include <net/inet_sock.h>
#include <net/sock.h>

#include "helpers.h"

static notrace void lt_socket_inet(const struct sock *sk, struct lt_socket *out)
{
	const struct inet_sock *inet = inet_sk(sk);

	out->local_port = ntohs(inet->inet_sport);
	out->remote_port = ntohs(inet->inet_dport);
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		memcpy(out->local, &sk->sk_v6_rcv_saddr, sizeof(out->local));
		memcpy(out->remote, &sk->sk_v6_daddr, sizeof(out->remote));
		return;
	}
#endif
	memcpy(out->local, &inet->inet_saddr, sizeof(inet->inet_saddr));
	memcpy(out->remote, &inet->inet_daddr, sizeof(inet->inet_daddr));
}

notrace struct file *lt_socket_get(int fd, struct lt_socket *out)
{
	struct file *file = fget(fd);
	struct socket *socket;
	struct sock *sk;

	memset(out, 0, sizeof(*out));
	if (!file)
		return NULL;
	socket = sock_from_file(file);
	/* The file holds the socket, and the socket holds the sock. */
	sk = socket ? READ_ONCE(socket->sk) : NULL;
	if (sk) {
		out->id = (unsigned long)sk;
		out->family = sk->sk_family;
		if (sk->sk_family == AF_INET || sk->sk_family == AF_INET6)
			lt_socket_inet(sk, out);
	}
	return file;
}

notrace void lt_socket_put(struct file *file)
{
	/* If the file has been closed meanwhile, task work frees it. */
	fput(file);
}

notrace u64 lt_socket_of_inode(u64 inode)
{
	struct socket *socket = SOCKET_I((struct inode *)(unsigned long)inode);

	return (unsigned long)READ_ONCE(socket->sk);
}

u32 lt_socket_address(char *out, size_t size, u16 family,
		      const u64 address[2], u16 port)
{
	if (family == AF_INET6)
		return scnprintf(out, size, "[%pI6c]:%u", address, port);
	if (family == AF_INET)
		return scnprintf(out, size, "%pI4:%u", address, port);
	return 0;
}
