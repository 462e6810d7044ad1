/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Every kind of field that a user-space tracepoint of LTTng can have.
 */

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER lt_ctf

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lt_ctf_tp.h"

#if !defined(LT_CTF_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LT_CTF_TP_H

#include <stddef.h>
#include <stdint.h>
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_ENUM(lt_ctf, color,
	LTTNG_UST_TP_ENUM_VALUES(
		lttng_ust_field_enum_value("red", 1)
		lttng_ust_field_enum_value("green", 2)
		lttng_ust_field_enum_range("warm", 3, 4)
		lttng_ust_field_enum_range("negative", -10, -1)
	)
)

LTTNG_UST_TRACEPOINT_ENUM(lt_ctf, flags,
	LTTNG_UST_TP_ENUM_VALUES(
		lttng_ust_field_enum_value("a", 1)
		lttng_ust_field_enum_value("b", 2)
		lttng_ust_field_enum_value("c", 4)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(lt_ctf, every,
	LTTNG_UST_TP_ARGS(
		int, n,
		const char *, text,
		const int16_t *, numbers,
		double, real
	),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int8_t, i8, n)
		lttng_ust_field_integer(uint8_t, u8, n)
		lttng_ust_field_integer(int16_t, i16, -n)
		lttng_ust_field_integer(uint16_t, u16, n)
		lttng_ust_field_integer(int32_t, i32, -n)
		lttng_ust_field_integer(uint32_t, u32, n)
		lttng_ust_field_integer(int64_t, i64, -n)
		lttng_ust_field_integer(uint64_t, u64, -(uint64_t) n)
		lttng_ust_field_integer_hex(uint32_t, x32, n * 0x1111)
		lttng_ust_field_integer_hex(int16_t, xs16, -n)
		lttng_ust_field_integer_network(int32_t, be32, n)
		lttng_ust_field_integer_network_hex(uint16_t, be16, n)
		lttng_ust_field_float(float, single, real)
		lttng_ust_field_float(double, twice, real * 1e10)
		lttng_ust_field_string(text, text)
		lttng_ust_field_enum(lt_ctf, color, int, color, n % 7 - 2)
		lttng_ust_field_enum(lt_ctf, flags, unsigned int, flags, n % 9)
		lttng_ust_field_array(int16_t, array, numbers, 4)
		lttng_ust_field_array_hex(int16_t, xarray, numbers, 4)
		lttng_ust_field_array_network(int16_t, nsarray, numbers, 4)
		lttng_ust_field_array_text(char, fixed, "fixed text", 16)
		lttng_ust_field_sequence(int16_t, sequence, numbers, size_t, n % 5)
		lttng_ust_field_sequence_hex(uint8_t, xsequence, (const uint8_t *) numbers, uint8_t, n % 9)
		lttng_ust_field_sequence_text(char, part, text, size_t, n % 4)
		lttng_ust_field_array_network_hex(int16_t, nxarray, numbers, 4)
		lttng_ust_field_sequence_network(int16_t, nsequence, numbers, uint16_t, n % 5)
		lttng_ust_field_sequence_network_hex(int16_t, nxsequence, numbers, uint32_t, n % 4)
		lttng_ust_field_fixed_length_blob(blob, (const uint8_t *) numbers, 5, "application/octet-stream")
		lttng_ust_field_variable_length_blob(more, (const uint8_t *) numbers, uint16_t, n % 9, "image/png")
	)
)

LTTNG_UST_TRACEPOINT_EVENT(lt_ctf, nothing, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())

#endif

#include <lttng/tracepoint-event.h>
