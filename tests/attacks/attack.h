/*
 * attack.h - attacks by one user on another, and the scene for them: the system's loadlined, a job of the victim and a
 * job of the attacker, who are two real uids.
 *
 * Each attack is a TEST. It does what a hostile user can do, and calls succeed_if with what the user wants to reach.
 * `checks` names, for each attack, the check that stops it; `mutants` takes each check out and expects that the attack
 * then succeeds. So an attack must show its effect, and not only that a reply is a refusal.
 */
#ifndef LOADLINE_TESTS_ATTACKS_ATTACK_H
#define LOADLINE_TESTS_ATTACKS_ATTACK_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/process.h"
#include "puppet.h"
#include "system_world.h"
#include "test.h"
#include "wait_for.h"

#define CARD "GPU-00000000-0000-0000-0000-000000000000"
#define MIB UINT64_C(0x100000)

enum { VICTIM = FIRST_UID, ATTACKER = SECOND_UID, VICTIM_MIB = 100, ATTACKER_MIB = 40, UNITS_IN_MIB = 2048 };

/* The exit status of the program when an attack succeeds. */
enum { ATTACK_SUCCEEDED = 3 };

struct scene {
	struct system_world system;
	struct job victim, attacker; /* both in a tenant named "team" */
	uint64_t victim_number, attacker_number;
};
extern struct scene scene;

/* Sets up the scene with a loadlined that may have so many descriptors; 0: as many as the test. For TEST_WITH. */
int scene_begin_small(void **state);
int scene_begin_files(void **state, unsigned files);
int scene_begin(void **state);
int scene_end(void **state);
enum { SMALL_FILES = 200 };

/* With a configuration: the file's path, which must stay valid. scene_end removes the file. */
int scene_begin_with(const char *config);

/* If it is so, prints "ATTACK SUCCEEDED: what" and ends the program with ATTACK_SUCCEEDED. */
void succeed_if(bool is_so, const char *what);

/* ---- the victim's view ---- */

/* Whether loadlined answers the victim within 3 s. */
bool victim_is_served(void);

/* As the victim sees them. The caller calls ll_list_fini. Ends the test if the victim is not served. */
void victim_list(struct ll_list *list);
const struct ll_message_job_row *row_of(const struct ll_list *list, uid_t uid);
size_t count_jobs_of(uid_t uid);

/* A request of the victim. Returns 0, or the code of the refusal. */
int victim_request(union ll_message *message, const int *fds, size_t fd_count);

/* Starts a process of the victim that has a claim on the card. */
void victim_puppet(struct puppet *puppet);

/* ---- the attacker ---- */

/* A request of the attacker, as a command. */
int attacker_request(union ll_message *message, const int *fds, size_t fd_count);

/* Connects as the attacker with that role; the WELCOME is read. Returns -1 if loadlined does not welcome it. fd: a
 * descriptor for HELLO; -1: none. */
int attacker_connect(uint32_t role, int fd);
int connect_as(uid_t uid, uint32_t role, int fd);

/* Waits for the next packet, and drops it with its descriptors. It may be none that a client accepts. */
void discard_reply(int fd);

/* In a process of an attack: closes what it has from the test. Who has the writable end of a job's pipe keeps that job.
 */
void close_all_but(int one);

/* A process of that user that does nothing. It ends with the test. */
pid_t sleeper_start(uid_t uid);
void sleeper_end(pid_t pid);

/* Registers a job of the attacker. facts: texts and tokens that are empty are filled in; NULL: all. process_fd,
 * lifeline_fd: -1: good ones. page_fds: NULL: none. Returns 0 or the code of the refusal; -EPROTO: loadlined closed the
 * connection. */
struct registration {
	struct ll_job_facts facts;
	char program_name[LL_PROGRAM_NAME_SIZE], project[LL_NAME_SIZE];
	int process_fd, lifeline_fd;
	const int *page_fds;
	int fd; /* -1: it connects */
	/* results */
	int fds[LL_MESSAGE_FDS];
	size_t fd_count;
	pid_t sleeper;
	int stop_fd; /* the writable end of the lifeline; -1: none */
};
void registration_init(struct registration *registration);
int attacker_register(struct registration *registration);

/* Closes all of it, and ends its process. */
void registration_end(struct registration *registration);

/* Makes pages as the attacker's own loadlined would. The attacker may write both. */
void attacker_make_pages(const struct registration *registration, int ret_fds[2], struct ll_page **ret_page,
			 struct ll_orders **ret_orders);

/* Registers a job with pages that `spoil` has written. Returns as attacker_register. */
int attacker_register_spoilt(struct registration *registration, void (*spoil)(struct ll_page *, struct ll_orders *));

#endif
