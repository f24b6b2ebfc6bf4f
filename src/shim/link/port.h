/*
 * port.h - the one way by which the governed library reaches what others share with it. It includes no other header of
 * this folder (tools/check_arrows).
 *
 * A process opens a card and takes a claim there. With the claim it reserves memory, says how much it wants the card
 * (want, rest, launch_mode), asks whether it may launch and until when (look), sleeps until that changes, and reports
 * what the card did for it (charge). loadlined decides who goes. What it decided is read here (protocol/page.h), so
 * most calls make no system call.
 *
 * There is no structure of the page here, no descriptor, and no pointer into the page but two words. One is the gate,
 * which a program reads before each launch. The other is the word on the card, for which streams wait; it lies in a
 * mapping that is shared with loadlined.
 *
 * If loadlined is gone, programs launch as they like after LL_LEASE_NS, and keep the memory that they were granted.
 * Nothing more is granted until there is one again.
 *
 * All times are CLOCK_MONOTONIC. Functions on a claim that was lost, or that is a forked child's parent's, do nothing.
 * Any thread may call; want, rest, look, note_launch, open_gate and shut_gate one at a time for each claim.
 */
#ifndef LOADLINE_SHIM_LINK_PORT_H
#define LOADLINE_SHIM_LINK_PORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/inherited.h"
#include "protocol/records.h"
#include "protocol/run_settings.h"
#include "protocol/words.h"

struct ll_claim;
struct ll_err;
struct ll_port;

/* How long a program waits for loadlined when it first asks for a card. A monitor starts one within some 10 ms. */
#define LL_PORT_PATIENCE_NS UINT64_C(5000000000)

/*
 * Opens the card with that UUID. is_to_claim: a claim follows, and nobody is asked yet. Else the job's page is asked
 * for, if this process has none: -ENOENT: nobody answers within 0.5 s. -ENOMEM. The settings must stay as they are.
 * *ret_port is the caller's, to close. A forked child's copy is not good.
 */
int ll_port_open(const struct ll_run_settings *settings, const char *uuid, bool is_to_claim, struct ll_port **ret_port,
		 struct ll_err *err);

/* It must have no claims. NULL is fine. */
void ll_port_close(struct ll_port *port);

/* Opens a further connection to loadlined, which is the caller's: for what takes long (residency/). The caller blocks
 * forks. -ENOENT: the settings name no place. -errno: nobody serves, or another user does. */
int ll_port_connect(const struct ll_port *port, int *ret_fd);

/*
 * Takes a claim, and says that its program runs. wait_ns: for how long it may take to reach loadlined. Errors as
 * ll_connection_claim. The claim is the process's to its end; in a forked child it is dead. It needs the port for as
 * long.
 */
int ll_port_claim(struct ll_port *port, uint64_t wait_ns, struct ll_claim **ret_claim, struct ll_err *err);

/* Gives the claim back and keeps the handle: from then on it is lost. Only where nothing is charged to it. */
void ll_port_leave(struct ll_claim *claim);

/* Whether the claim was taken away. Two loads. Its owner may take another. The lost one stays in memory, for threads
 * that still look at it. */
bool ll_port_is_lost(const struct ll_claim *claim);

/* Says "still here", about once a second. -ESTALE: the claim was taken away; take another. -ECHILD in a forked child.
 */
int ll_port_beat(struct ll_claim *claim, uint64_t now_ns);

/* The number in "0/17". It changes if another loadlined serves, and gives the number to another. */
unsigned ll_port_index(const struct ll_claim *claim);

/* One phrase for people, cut at 63 bytes. */
void ll_port_set_note(struct ll_claim *claim, const char *note);

/* The job has a process without a claim, which nothing holds to the limits: said at least each second while that is
 * so. And: the process has one again. */
void ll_port_note_lost(struct ll_port *port, uint64_t now_ns);
void ll_port_note_had(struct ll_port *port);

/*
 * Reserves memory. 0. -ENOMEM: over the limit. -ETIMEDOUT: it needs loadlined, which has not answered for 5 s. -ESTALE
 * without a claim. Within what was granted there is no system call. charge asks no limit: the driver has taken the
 * memory. Errors charge nothing.
 */
int ll_port_reserve(struct ll_claim *claim, uint64_t bytes);
void ll_port_charge_memory(struct ll_claim *claim, uint64_t bytes);
void ll_port_release(struct ll_claim *claim, uint64_t bytes);

/*
 * After reserve has refused: loadlined asks the job's other processes for what their pools keep in reserve. 0: there is
 * room now, and it is this process's for a moment. -ENOMEM: there is none. Other errors as reserve. It may take 50 ms,
 * in which the others may ask this process: the caller holds no lock that its agent needs.
 */
int ll_port_request_reserves(struct ll_claim *claim, uint64_t bytes);

/* What is charged now, and the limit. read_job serves a process without a claim on the card; false: nothing is known
 * of the job. read_limit gives the limit alone. */
void ll_port_read_memory(const struct ll_claim *claim, struct ll_memory_view *ret_view);
bool ll_port_read_job(struct ll_port *port, struct ll_memory_view *ret_view);
bool ll_port_read_limit(struct ll_port *port, uint64_t *ret_bytes);

/* Where the memory of an evictable program is (records.h). A claim that succeeds a lost one is to be told again. */
void ll_port_set_residency(struct ll_claim *claim, const struct ll_memory_residency *residency);

/* The job's processes on the card that the caller's process numbers can name: copies at most capacity, returns how many
 * there are. */
struct ll_port_process {
	unsigned pid;
	uint64_t used_bytes;
};
size_t ll_port_list_processes(struct ll_port *port, struct ll_port_process *processes, size_t capacity);

/*
 * What names the claim among all that the job ever had, and whether it is there still. In the name of a lost claim, or
 * a forked child's parent's, the token is 0.
 */
struct ll_port_name {
	uint64_t token, namespaces, start_ticks;
	unsigned slot, pid;
};
struct ll_port_name ll_port_name_of(const struct ll_claim *claim);
bool ll_port_has_name(const struct ll_port *port, const struct ll_port_name *name);

/* Whether the claim's process, of any job, is gone for certain. Some 20 us. */
bool ll_port_is_gone(const struct ll_port_name *name);

/* When a program that had memory last ended on the card; 0: never. A few loads. The second: after loadlined has seen
 * who has ended until now; some 100 us. */
uint64_t ll_port_death_ns(struct ll_port *port);
uint64_t ll_port_sweep(struct ll_port *port);

/* Whether this process is asked for the memory that its pools keep in reserve: the number of the question; 0: it is
 * not. And its answer. */
uint32_t ll_port_is_asked(const struct ll_claim *claim);
void ll_port_reply(struct ll_claim *claim, uint32_t question);

/* Demand: the claim has launches to make, or has none any more (and the turn goes on, if the claim has it). How its
 * program launches. Whether its launches wait on the card, and not in the host. */
void ll_port_want(struct ll_claim *claim, uint64_t now_ns);
void ll_port_rest(struct ll_claim *claim, uint64_t now_ns);
void ll_port_set_launch_mode(struct ll_claim *claim, enum ll_launch_mode launch_mode);
void ll_port_set_waits_on_card(struct ll_claim *claim, bool waits);

/*
 * Says what is queued, and asks whether the claim may launch. queued_ns: estimated work of ours that the card still
 * has. The holder of the turn looks at least every ms while others wait, the others at least every 10 ms. ret_gang: of
 * a job on several cards; NULL is fine.
 */
void ll_port_look(struct ll_claim *claim, struct ll_turn *turn, uint64_t now_ns, uint64_t queued_ns,
		  struct ll_turn_look *ret_look, struct ll_gang *ret_gang);

/* The program launches. If a look said that it has nothing on the card, loadlined would go by that until the next one.
 * A load, and seldom a store. */
void ll_port_note_launch(struct ll_claim *claim);

/* Whether what was said then of another card still counts. */
bool ll_port_is_fresh(uint64_t at_ns, uint64_t now_ns);

/* Whether the turn is the job's, or it needs none. A few relaxed loads. */
bool ll_port_is_in_turn(const struct ll_claim *claim);

/* The claim's gate (enum ll_gate), valid to the end of the process. NULL in a forked child. */
_Atomic uint32_t *ll_port_gate(struct ll_claim *claim);

/* Opens the gate, fully or so that the next launch says that it happened. False: another claim came, and the gate is
 * shut again. */
bool ll_port_open_gate(struct ll_claim *claim, enum ll_gate how, uint64_t now_ns);
void ll_port_shut_gate(struct ll_claim *claim);

/* The word for which the job's streams wait: LL_VISIT_WORD_OPEN while the card is the job's; the rest counts. NULL: the
 * claim is lost. */
_Atomic uint32_t *ll_port_card_word(const struct ll_claim *claim);

/*
 * Sleeps until loadlined changes the claim's turn or gate, until another thread wakes the claim, or until until_ns.
 * wake_count is read before the look that decides on sleeping.
 */
uint32_t ll_port_wake_count(const struct ll_claim *claim);
void ll_port_sleep(struct ll_claim *claim, uint32_t wake_count, uint64_t until_ns);
void ll_port_wake(struct ll_claim *claim);

/* Report: the card worked for the claim from start_ns to end_ns. fresh_ns: what of it was not told yet. */
void ll_port_charge(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns, uint64_t fresh_ns);

/* Report: the process waited for so long, one of its threads or (LL_WAIT_MOVE) all of them. */
void ll_port_note_wait(struct ll_claim *claim, enum ll_wait cause, uint64_t ns);

#endif
