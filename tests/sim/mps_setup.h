/*
 * mps_setup.h - what the tests of MPS share: a world with a daemon in it that does not outlive the test, clients that
 * stay, and a page that all processes of a test see.
 */
#ifndef LOADLINE_TESTS_SIM_MPS_SETUP_H
#define LOADLINE_TESTS_SIM_MPS_SETUP_H

#include "process.h"

#define MIB (1 << 20)

struct page {
	int values[16];
	unsigned long long used_bytes;
	_Atomic int is_over;
	struct record record;
};
extern struct page *page;

/* As in_world, with pipes and logs in the world's folder; a daemon of the test is killed when body is over, however
 * that ends. in_mps starts one first. */
void in_folder(const char *scenario, void (*body)(void));
void in_mps(const char *scenario, void (*body)(void));

/* Asks and checks that the answer is this. */
void expect(const char *command, const char *answer);
/* The one number that the command is answered with. */
int ask_number(const char *command);
/* "NAME PID" and "NAME PID OTHER": for commands about a server or a client. */
const char *about(const char *name, int pid);
const char *about_two(const char *name, int pid, const char *rest);

/* Client bodies: with a context on device 0, until the test is over or they are killed. */
void stay_with_context(void);
/* The same, with a queue of kernels of 10 ms that lasts for ten seconds. */
void stay_busy(void);
/* Launches now and then until a call fails; its status goes to page->values[0]. */
void work_until_it_fails(void);

/* Ends it with SIGKILL. */
void kill_now(pid_t pid);
/* Memory in use on card 0, by NVML; asked by a child, so that a test which forks later has no threads. */
unsigned long long used_bytes(void);
/* The same, asked here, into page->used_bytes. */
void tell_used_bytes(void);

#endif
