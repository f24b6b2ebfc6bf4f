/*
 * service.h - what the small programs beside loadlined have in common: the beginning of their main, and one loop for
 * signals, a listening socket with its connections, one more descriptor, and one time. One thread runs it.
 */
#ifndef LOADLINE_BASE_SERVICE_H
#define LOADLINE_BASE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ll_err;

struct ll_program {
	const char *name, *version, *help;
	bool (*read_options)(int argc, char **argv, void *ret_options); /* false: bad usage */
	/* Returns the exit status, or a negative errno with err. */
	int (*run)(void *options, struct ll_err *err);
};

/* Answers --help and --version, reads the options, runs the program, and prints its error. Returns the exit status. */
int ll_program_main(const struct ll_program *program, int argc, char **argv, void *options);

/* Reads an option's number of seconds. Returns 0 ns if it is no number, or not more than 0 and at most `most`. */
uint64_t ll_program_seconds(const char *text, double most);

enum { LL_SERVICE_CONNECTIONS = 8, LL_SERVICE_SIGNALS = 4 };

/* All functions but those of what is used may be NULL. */
struct ll_service {
	void *data; /* the program's */

	/* These signals come to the loop; 0 ends the list. SIGTERM and SIGINT end it, on_signal gets the others.
	 * Signals that are not named keep their default actions. */
	int signals[LL_SERVICE_SIGNALS];
	void (*on_signal)(struct ll_service *service, int number);

	int listen_fd;   /* -1: none */
	int connections; /* at most; others are closed at once */
	/* A peer has connected. Returns whether it stays. */
	bool (*on_peer)(struct ll_service *service, int fd, uid_t uid);
	/* Whether on_packet can be called now. Without it packets wait in their sockets. */
	bool (*has_room)(struct ll_service *service);
	/* There is a packet, or the end, at a connection. Returns whether it stays. */
	bool (*on_packet)(struct ll_service *service, int fd);

	int watched_fd; /* the program's own; -1: none. It may change in each call */
	short events;   /* of poll */
	void (*on_watched)(struct ll_service *service);

	uint64_t tick_ns;                            /* CLOCK_MONOTONIC; UINT64_MAX: never */
	void (*on_tick)(struct ll_service *service); /* sets tick_ns anew */

	/* the loop's own */
	int signals_fd, fds[LL_SERVICE_CONNECTIONS];
	bool is_ending;
};

/* Blocks the signals, so that none is lost before the loop: they wait for it. Call it before threads are made. The
 * signals stay blocked. -errno. */
int ll_service_init(struct ll_service *service);

/* Runs until SIGTERM or SIGINT comes. Closes the connections at the end, and not listen_fd and watched_fd. -errno: of
 * poll. */
int ll_service_run(struct ll_service *service);

#endif
