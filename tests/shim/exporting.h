/*
 * exporting.h - tests of memory that processes share: the ways in which it is shared, and processes that make it, take
 * it and let it go when they are told.
 */
#ifndef LOADLINE_TESTS_SHIM_EXPORTING_H
#define LOADLINE_TESTS_SHIM_EXPORTING_H

#include "governed.h"

#define SHARED_BYTES (100 * MIB)

struct made {
	ll_cu_mem_handle handle;
	ll_cu_deviceptr address;
	struct ll_cu_mem_pool *pool;
	int fd;
};

struct way {
	const char *name;
	bool has_fd, is_evictable;
	uint64_t pool_bytes; /* what its maker's pool has */
	ll_cu_result (*make)(struct made *made);
	void (*unmake)(struct made *made);
	ll_cu_result (*take)(struct made *made);
	void (*let_go)(struct made *made);
	const char *take_symbol;
};

/* The way of the test that runs; ways[0] is physical memory. */
extern const struct way ways[];
extern const struct way *way;

/* What the maker is charged for what it made. */
uint64_t made_bytes(void);

/* Runs body in a world of its own for each way. */
void each_way(void (*body)(void));

/* ---- processes, by their numbers: 0 makes the memory ---- */

enum step { NOTHING, MAKE, UNMAKE, TAKE, LET_GO, SEND, CLOSE, ALLOCATE, CHARGED, CONNECT, END };

enum { PROCESSES = 4 };

extern pid_t pids[PROCESSES];

/* Before the first start. */
void open_office(void);

/* govern_otherwise: what makes the process another tenant's; NULL. start_tenant: a maker, and takers from 1 on. */
void start(unsigned who, void (*govern_otherwise)(void));
void start_tenant(uint64_t limit_bytes, unsigned takers);

uint64_t tell(unsigned who, enum step step, uint64_t argument);
void kill_it(unsigned who);

/* The process loses its claim while it is stopped: it would soon take another one. */
void stop_without_claim(unsigned who);

/* A refusal lets a process look what it is charged for, which it does each second by itself. */
void look(unsigned who);

/* The maker makes it, and closes its descriptor. A taker takes it. place: of two that a taker has. */
void make(void);
void close_descriptor(void);
void take(unsigned taker);
uint64_t take_as(unsigned taker, unsigned place);

/* Takes a descriptor that a maker sent. */
int receive_fd(void);

/* In a process of its own. */
ll_cu_result make_physical(struct made *made);
void free_physical(struct made *made);

/* What the tenant is charged beyond so many contexts. */
uint64_t charged_beyond(unsigned contexts);

#endif
