/*
 * SPDX-License-Identifier: MIT OR Apache-2.0
 * The trace points of traced.c: counted events, and others that are not counted.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER quiescence
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./traced.h"

#if !defined(QUIESCENCE_TRACED_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define QUIESCENCE_TRACED_H
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(
	quiescence, counted, LTTNG_UST_TP_ARGS(int, thread, int, number),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, thread, thread) lttng_ust_field_integer(int, number, number)))

LTTNG_UST_TRACEPOINT_EVENT(
	quiescence, other, LTTNG_UST_TP_ARGS(int, number),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, number, number)))
#endif

#include <lttng/tracepoint-event.h>
