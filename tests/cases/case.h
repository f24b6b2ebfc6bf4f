/*
 * case.h - what the programs of this folder share. Each is a program of a user, linked to the driver and to nothing of
 * ours. It does what its kind is about, then takes plain memory until it is refused, says "full", and stays until its
 * standard input ends: so whoever started it can look at the card and at the books.
 */
#ifndef LOADLINE_TESTS_CASES_CASE_H
#define LOADLINE_TESTS_CASES_CASE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/cuda_prototypes.h"

#define MIB ((size_t)1 << 20)

#define GIVE_UP(...)                                                                                                   \
	do {                                                                                                           \
		fprintf(stderr, "case: line %d: ", __LINE__);                                                          \
		fprintf(stderr, __VA_ARGS__);                                                                          \
		fputc('\n', stderr);                                                                                   \
		_exit(3);                                                                                              \
	} while (0)

#define NEED(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			GIVE_UP("%s", #condition);                                                                     \
	} while (0)

#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		ll_cu_result status_ = (call);                                                                         \
		if (status_)                                                                                           \
			GIVE_UP("%s: %d", #call, (int)status_);                                                        \
	} while (0)

/* Made, or refused for want of memory; anything else ends the case. */
#define MADE(call) case_is_made((call), #call, __LINE__)

static inline bool case_is_made(ll_cu_result status, const char *what, int line)
{
	if (status && status != LL_CUDA_ERROR_OUT_OF_MEMORY) {
		fprintf(stderr, "case: line %d: %s: %d\n", line, what, (int)status);
		_exit(3);
	}
	return status == LL_CUDA_SUCCESS;
}

static inline struct ll_cu_context *begin(void)
{
	struct ll_cu_context *context;
	TRY(cuInit(0));
	TRY(cuDevicePrimaryCtxRetain(&context, 0));
	TRY(cuCtxSetCurrent(context));
	return context;
}

static inline struct ll_cu_stream *new_stream(void)
{
	struct ll_cu_stream *stream;
	TRY(cuStreamCreate(&stream, 1));
	return stream;
}

/* Takes what is left: pieces of 64 MiB, then smaller ones, until 2 MiB are refused. Returns what it took, in MiB. */
static inline size_t fill(void)
{
	size_t took = 0;
	for (size_t each = 64; each >= 2; each /= 2) {
		ll_cu_deviceptr address;
		for (int i = 0; i < 4096 && MADE(cuMemAlloc_v2(&address, each * MIB)); i++)
			took += each;
	}
	return took;
}

/* Stays until standard input ends. */
static inline void stay(void)
{
	char byte;
	while (read(0, &byte, 1) > 0)
		;
}

static inline void full(void)
{
	size_t took = fill();
	printf("full %zu\n", took);
	fflush(stdout);
	stay();
}

/* Waits for a child; what ended it by a signal or badly ends the case. */
static inline void join(pid_t pid)
{
	int status;
	NEED(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status) || WEXITSTATUS(status))
		GIVE_UP("a child ended with %d", status);
}

#endif
