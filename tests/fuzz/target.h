/*
 * target.h - what all fuzz targets begin with.
 */
#ifndef LOADLINE_TESTS_FUZZ_TARGET_H
#define LOADLINE_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* What must be so; where it is not, the program aborts, which libFuzzer reports. */
static inline void expect(int is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "not so: %s\n", what);
	abort();
}

#endif
