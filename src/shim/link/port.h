/*
 * port.h - the interface of the governed library to loadlined and to the job's pages. It includes no other header of
 * this folder (tools/check_arrows).
 *
 * A process opens a card and takes a claim on it. With the claim it reserves memory, publishes its demand for the card
 * (want, rest, launch_mode), reads whether it may launch (look), sleeps until this changes, and reports the card's work
 * for it (charge). loadlined decides which job may launch. The library reads the decision in the job's pages
 * (protocol/page.h), so most calls make no system call.
 *
 * This header shows no structure of the page and no descriptor. It gives pointers to only two words of the pages. One
 * is the gate, which a program reads before each launch. The other is the word for which streams wait on the card. It
 * is in a mapping that is shared with loadlined.
 *
 * If loadlined is gone, programs launch without limits after LL_LEASE_NS, and keep the memory that they were granted.
 * They are granted no more memory until loadlined runs again.
 *
 * All times are CLOCK_MONOTONIC. Functions do nothing if the claim was lost, or if the process is a forked child and
 * the claim belongs to its parent. Any thread may call these functions. For each claim, only one thread at a time may
 * call want, rest, look, note_launch, open_gate and shut_gate.
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

/* How long a program waits for loadlined when it first asks for a card. A monitor starts loadlined within some 10 ms.
 */
#define LL_PORT_PATIENCE_NS UINT64_C(5000000000)

/*
 * Finds the settings of the job in whose control group this process is, for a program that has no settings. It asks the
 * system's loadlined, if the group's name may be a job's; otherwise it makes three system calls. -ENOENT: the process
 * is in no job's group, or no loadlined answers within 1 s. The function preserves errno.
 */
int ll_port_find_job(struct ll_run_settings *ret_settings);

/*
 * Whether this process is in a container into which a device of loadline put the library (cli/cdi/cdi.h). Its job is
 * then that of the container's control group, and no variable of the environment is read. The function preserves errno.
 */
bool ll_port_is_in_container(void);

/* Finds the settings of the container's job, at the socket that is mounted there. -ENOENT: the process belongs to no
 * job, or no loadlined answers within 1 s. *ret_may_go_on: the configuration of the machine lets it go on ungoverned
 * then. The function preserves errno. */
int ll_port_find_container_job(struct ll_run_settings *ret_settings, bool *ret_may_go_on);

/*
 * Opens the card with this UUID. is_to_claim: the caller will take a claim, so no request is made yet. If it is false
 * and this process has no page of the job, the function asks loadlined for it. Returns -ENOENT if loadlined does not
 * reply within 0.5 s, or -ENOMEM. The settings must not change afterwards. The caller closes *ret_port. A forked child
 * must not use its copy.
 */
int ll_port_open(const struct ll_run_settings *settings, const char *uuid, bool is_to_claim, struct ll_port **ret_port,
		 struct ll_err *err);

/* Closes a port that has no claims. port may be NULL. */
void ll_port_close(struct ll_port *port);

/* Opens a further connection to loadlined, which the caller owns. It is for requests that take long (residency/). The
 * caller blocks forks. Returns -ENOENT if the settings name no place. Returns another -errno if no loadlined serves, or
 * if one of another user does. */
int ll_port_connect(const struct ll_port *port, int *ret_fd);

/*
 * Takes a claim, which reports to loadlined that the program runs. wait_ns: the longest time to reach loadlined.
 * Returns the same errors as ll_connection_claim. The claim stays valid until the process ends; in a forked child it is
 * dead. The port must stay open for the same time.
 */
int ll_port_claim(struct ll_port *port, uint64_t wait_ns, struct ll_claim **ret_claim, struct ll_err *err);

/* Ends the claim. The object stays, as a lost claim. Call it only if nothing is charged to the claim. */
void ll_port_leave(struct ll_claim *claim);

/* Returns whether the claim was lost. Two loads. The caller may take another claim. The lost one stays in memory,
 * because other threads may still read it. */
bool ll_port_is_lost(const struct ll_claim *claim);

/* Writes a heartbeat. Call it about once a second. Returns -ESTALE if the claim was lost; then take another one.
 * Returns -ECHILD in a forked child. */
int ll_port_beat(struct ll_claim *claim, uint64_t now_ns);

/* Returns the claim's number, as in "0/17". The number changes if another loadlined serves and has given it to another
 * claim. */
unsigned ll_port_index(const struct ll_claim *claim);

/* Sets a short note for users, cut at 63 bytes. */
void ll_port_set_note(struct ll_claim *claim, const char *note);

/* ll_port_note_lost reports that a process of the job has no claim and so is not held to its limits. Call it at least
 * once a second while this is so. ll_port_note_had reports that the process has a claim again. */
void ll_port_note_lost(struct ll_port *port, uint64_t now_ns);
void ll_port_note_had(struct ll_port *port);

/*
 * ll_port_reserve reserves memory. Returns 0. Returns -ENOMEM if the sum would exceed the limit, -ETIMEDOUT if it needs
 * loadlined and loadlined has not replied for 5 s, and -ESTALE without a claim. On an error nothing is charged. Within
 * the granted memory it makes no system call. ll_port_charge_memory charges memory that the driver has already
 * allocated, even above the limit.
 */
int ll_port_reserve(struct ll_claim *claim, uint64_t bytes);
void ll_port_charge_memory(struct ll_claim *claim, uint64_t bytes);
void ll_port_release(struct ll_claim *claim, uint64_t bytes);

/*
 * Call it after ll_port_reserve has refused. loadlined asks the job's other processes for the memory that their pools
 * keep in reserve. Returns 0 if there is room now; for a moment this room is kept for this process. Returns -ENOMEM if
 * there is none, and other errors as ll_port_reserve does. It may take 50 ms. In this time other processes may ask this
 * process, so the caller must hold no lock that its agent needs.
 */
int ll_port_request_reserves(struct ll_claim *claim, uint64_t bytes);

/* Read the present charge and the limit. ll_port_read_job is for a process without a claim on the card; it returns
 * false if the job is not known. ll_port_read_limit gives only the limit. */
void ll_port_read_memory(const struct ll_claim *claim, struct ll_memory_view *ret_view);
bool ll_port_read_job(struct ll_port *port, struct ll_memory_view *ret_view);
bool ll_port_read_limit(struct ll_port *port, uint64_t *ret_bytes);

/* Writes where the memory of an evictable program is (records.h). Call it again for a new claim that replaces a lost
 * one. */
void ll_port_set_residency(struct ll_claim *claim, const struct ll_memory_residency *residency);

/* Lists the job's processes on the card that have a process number in the caller's PID namespace. Copies at most
 * `capacity` of them. Returns how many there are. */
struct ll_port_process {
	unsigned pid;
	uint64_t used_bytes;
};
size_t ll_port_list_processes(struct ll_port *port, struct ll_port_process *processes, size_t capacity);

/*
 * ll_port_name_of returns a name that identifies the claim among all claims that the job ever had. The token is 0 if
 * the claim was lost or belongs to the parent of a forked child. ll_port_has_name returns whether the claim with this
 * name still exists.
 */
struct ll_port_name {
	uint64_t token, namespaces, start_ticks;
	unsigned slot, pid;
};
struct ll_port_name ll_port_name_of(const struct ll_claim *claim);
bool ll_port_has_name(const struct ll_port *port, const struct ll_port_name *name);

/* Returns whether the process of the claim (of any job) has certainly ended. Takes some 20 us. */
bool ll_port_is_gone(const struct ll_port_name *name);

/* ll_port_death_ns returns the time when a program that had memory on the card last ended; 0: never. It needs a few
 * loads. ll_port_sweep returns the same after loadlined has noticed all processes that ended until now. It takes some
 * 100 us. */
uint64_t ll_port_death_ns(struct ll_port *port);
uint64_t ll_port_sweep(struct ll_port *port);

/* ll_port_is_asked returns the number of a request for the memory that the pools of this process keep in reserve; 0:
 * there is no request. ll_port_reply replies to the request. */
uint32_t ll_port_is_asked(const struct ll_claim *claim);
void ll_port_reply(struct ll_claim *claim, uint32_t question);

/* Publish the demand of the claim. want: it has launches to make. rest: it has no more launches; if it has the turn,
 * another claim gets it. set_launch_mode: how the program launches. set_waits_on_card: whether its launches wait on the
 * card and not in the host. */
void ll_port_want(struct ll_claim *claim, uint64_t now_ns);
void ll_port_rest(struct ll_claim *claim, uint64_t now_ns);
void ll_port_set_launch_mode(struct ll_claim *claim, enum ll_launch_mode launch_mode);
void ll_port_set_waits_on_card(struct ll_claim *claim, bool waits);

/*
 * Publishes the state of the queue, and reads whether the claim may launch. queued_ns: estimated work of this process
 * that the card has not finished. While other claims wait, the holder of the turn calls it at least once per ms, and
 * the others at least once per 10 ms. ret_gang: state of a job on several cards; may be NULL.
 */
void ll_port_look(struct ll_claim *claim, struct ll_turn *turn, uint64_t now_ns, uint64_t queued_ns,
		  struct ll_turn_look *ret_look, struct ll_gang *ret_gang);

/* Call it at each launch. If the last look published an empty queue, withdraws this, so that loadlined does not rely on
 * it until the next look. One load, and rarely a store. */
void ll_port_note_launch(struct ll_claim *claim);

/* Returns whether a report about another card that was made at at_ns still counts. */
bool ll_port_is_fresh(uint64_t at_ns, uint64_t now_ns);

/* Returns whether the job has the turn or needs none. A few relaxed loads. */
bool ll_port_is_in_turn(const struct ll_claim *claim);

/* Returns the claim's gate (enum ll_gate), valid until the process ends. NULL in a forked child. */
_Atomic uint32_t *ll_port_gate(struct ll_claim *claim);

/* Opens the gate: LL_GATE_OPEN, or LL_GATE_TIMED, with which the next launch records a timing event. Returns false if
 * another claim arrived; then the gate is shut again. */
bool ll_port_open_gate(struct ll_claim *claim, enum ll_gate how);
void ll_port_shut_gate(struct ll_claim *claim);

/* Returns the word for which the job's streams wait. LL_VISIT_WORD_OPEN is set while the job has the card; the other
 * bits are a count. NULL: the claim is lost. */
_Atomic uint32_t *ll_port_card_word(const struct ll_claim *claim);

/*
 * Sleeps until loadlined changes the claim's turn or gate, until another thread wakes the claim, or until until_ns.
 * Read wake_count before the look whose result leads to the sleep.
 */
uint32_t ll_port_wake_count(const struct ll_claim *claim);
void ll_port_sleep(struct ll_claim *claim, uint32_t wake_count, uint64_t until_ns);
void ll_port_wake(struct ll_claim *claim);

/*
 * ll_port_read_time reads how the contexts of the process may use the card's time. All 0 if nothing is ordered, and if
 * the lease is over. Returns a count for ll_port_sleep_for_time, which sleeps until loadlined changes an order, until
 * until_ns, or without a cause. Call it at least each LL_PORT_TIME_LOOK_NS while anything is ordered.
 * ll_port_report_time says what was done, and whether the contexts are off the card now: ll_port_is_off. One thread at
 * a time for each claim.
 */
#define LL_PORT_TIME_LOOK_NS UINT64_C(50000000)
uint32_t ll_port_read_time(struct ll_claim *claim, uint64_t now_ns, struct ll_card_time *ret_time);
void ll_port_sleep_for_time(const struct ll_claim *claim, uint32_t count, uint64_t until_ns);
void ll_port_wake_for_time(const struct ll_claim *claim); /* who sleeps there goes on, and finds nothing changed */
bool ll_port_has_company(struct ll_claim *claim);         /* other jobs have work on the card now */
void ll_port_report_time(struct ll_claim *claim, enum ll_time_lever lever, bool is_off);
bool ll_port_is_off(struct ll_claim *claim);

/* ll_port_note_off notes that the contexts of the process are off the card from now on, or on it again. Returns since
 * when they were off, if they are on again and the program has work, which waited; else 0. is_wait: that counts as
 * waiting in the accounts. called_ns: when the calls for this began.
 * ll_port_note_away notes a time in which they were off the card as the trace of the driver has it, in order.
 * ll_port_note_traced: up to when the trace is known; 0: there is none. While there is one, it alone says when they
 * were off the card, for whatever reason. Without one, only calls of ll_port_note_off do.
 * ll_port_off_ns returns how much of start..end they were off it; it knows the last 8192 times. Any thread may ask. */
uint64_t ll_port_note_off(struct ll_claim *claim, bool is_off, bool is_wait, uint64_t called_ns, uint64_t now_ns);
void ll_port_note_away(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns);
void ll_port_note_traced(struct ll_claim *claim, uint64_t until_ns);
uint64_t ll_port_traced_ns(const struct ll_claim *claim);
uint64_t ll_port_off_ns(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns);

/* ll_port_note_end notes that the card has ended work of the process at that time, by its own clock. It cannot while
 * calls have taken the contexts off. ll_port_obeys_off returns false if it did so in several of the last such times:
 * then the driver says that it takes contexts off, and does not. */
void ll_port_note_end(struct ll_claim *claim, uint64_t end_ns);
bool ll_port_obeys_off(struct ll_claim *claim);

/* Reports that the card worked for the claim from start_ns to end_ns. fresh_ns: the part that was not reported yet. */
void ll_port_charge(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns, uint64_t fresh_ns);

/* Reports for the accounts that the card ran kernels of the claim from start_ns to end_ns. fresh_ns: the part that this
 * process has not reported yet. */
void ll_port_note_work(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns, uint64_t fresh_ns);

/* Reports that one thread of the process, or all threads (LL_WAIT_MOVE), waited for this time. */
void ll_port_note_wait(struct ll_claim *claim, enum ll_wait cause, uint64_t ns);

/* Reports that a copy between host and card runs for so long. */
void ll_port_note_copy(struct ll_claim *claim, uint64_t ns);

#endif
