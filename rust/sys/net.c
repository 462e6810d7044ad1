// SPDX-License-Identifier: GPL-2.0
/*
 * Functions that read packets (struct sk_buff), for Rust; see net.rs.
 */
#include <linux/bitfield.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/kernel.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/dropreason.h>
#include <net/net_namespace.h>

#include <asm/word-at-a-time.h>

#include "helpers.h"

static_assert(LT_IPPROTO_ICMP == IPPROTO_ICMP);
static_assert(LT_IPPROTO_TCP == IPPROTO_TCP);
static_assert(LT_IPPROTO_UDP == IPPROTO_UDP);
static_assert(LT_IPPROTO_ICMPV6 == IPPROTO_ICMPV6);
static_assert(LT_IPPROTO_SCTP == IPPROTO_SCTP);

/*
 * Clears the bytes after the first NUL, or all bytes if an earlier word had it.
 * `has_come` records whether the NUL has come.
 */
static __always_inline u64 lt_up_to_nul(u64 bytes, bool *has_come)
{
	const struct word_at_a_time constants = WORD_AT_A_TIME_CONSTANTS;
	unsigned long bits;

	if (*has_come)
		return 0;
	if (!has_zero(bytes, &bits, &constants))
		return bytes;
	*has_come = true;
	bits = create_zero_mask(prep_zero_mask(bytes, bits, &constants));
	return bytes & zero_bytemask(bits);
}

/*
 * The name of a device that was renamed may be followed by bytes of its old
 * name.
 *
 * When a packet is received, its data begins with the header of the network
 * layer, of any length and content: the packet has not been checked yet.
 */
notrace void lt_packet(const struct sk_buff *skb, struct lt_packet *out)
{
	const struct net_device *dev = skb->dev;
	bool has_ended = false;

	BUILD_BUG_ON(sizeof(out->dev) != IFNAMSIZ);
	memcpy(out->dev, dev->name, IFNAMSIZ);
	out->dev[0] = lt_up_to_nul(out->dev[0], &has_ended);
	out->dev[1] = lt_up_to_nul(out->dev[1], &has_ended);
	out->ifindex = dev->ifindex;
	out->netns = dev_net(dev)->ns.inum;
	out->len = skb->len;
	out->protocol = ntohs(skb->protocol);
	out->transport = 0;
	if (out->protocol == ETH_P_IP &&
	    skb_headlen(skb) >= sizeof(struct iphdr))
		out->transport = ((struct iphdr *)skb->data)->protocol;
	else if (out->protocol == ETH_P_IPV6 &&
		 skb_headlen(skb) >= sizeof(struct ipv6hdr))
		out->transport = ((struct ipv6hdr *)skb->data)->nexthdr;
}

/* Looks the reason up in the kernel's tables, including those of modules. */
u32 lt_drop_reason(char *out, size_t size, u32 reason)
{
	u32 subsys = u32_get_bits(reason, SKB_DROP_REASON_SUBSYS_MASK);
	u32 number = reason & ~SKB_DROP_REASON_SUBSYS_MASK;
	const struct drop_reason_list *list = NULL;
	u32 len;

	rcu_read_lock();
	if (subsys < SKB_DROP_REASON_SUBSYS_NUM)
		list = rcu_dereference(drop_reasons_by_subsys[subsys]);
	if (list && number < list->n_reasons && list->reasons[number])
		len = scnprintf(out, size, "%s", list->reasons[number]);
	else
		len = scnprintf(out, size, "%u", reason);
	rcu_read_unlock();
	return len;
}
