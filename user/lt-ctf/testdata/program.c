/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Hits the tracepoints of lt_ctf_tp.h: `every` 200 times, `nothing` 20 times.
 */

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lt_ctf_tp.h"

int main(void)
{
	static const char * const texts[] = {
		"plain", "", "a \"quoted\" one, with } and \\",
		"tab\there\nand a line", "gr\xc3\xbc\xc3\x9f" "e", "what?",
	};
	int16_t numbers[4];
	int i, j;

	for (i = 0; i < 200; i++) {
		for (j = 0; j < 4; j++)
			numbers[j] = i * (j - 1) * 100;
		lttng_ust_tracepoint(lt_ctf, every, i, texts[i % 6], numbers, i / 7.0 - 3);
		if (i % 10 == 0)
			lttng_ust_tracepoint(lt_ctf, nothing);
	}
	return 0;
}
