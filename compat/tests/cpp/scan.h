// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Waiting for a scan of the hazard pointers.

#ifndef TESTS_CPP_SCAN_H
#define TESTS_CPP_SCAN_H

#include <hazard_pointer>

#include "saferecl.h"

// Returns when a scan has begun after the call, and is over: when the second of two objects is
// reclaimed, the scan that has reclaimed the first one is over.
static void scan()
{
	struct Flagged : std::hazard_pointer_obj_base<Flagged> {
		std::atomic<bool> *gone;
		explicit Flagged(std::atomic<bool> *flag) : gone(flag) {}
		~Flagged() { *gone = true; }
	};
	for (int each = 0; each < 2; each++) {
		std::atomic<bool> gone{false};
		(new Flagged(&gone))->retire();
		until([&] { return gone.load(); });
	}
}

#endif
