/*
 * port.h - the one way by which the governed library reaches a card's page. It includes no other header of this folder
 * (tools/check_arrows).
 *
 * A process opens the page of a card and takes a claim there. With the claim it reserves memory, says how much it wants
 * the card (want, rest, pace), asks whether it may launch and until when (look), sleeps until that changes, and reports
 * what the card did for it (charge). Who goes is decided behind the port.
 *
 * The page does not come through the port: there is no structure of it here, no descriptor, and no pointer into it but
 * two words. One is the gate, which a program reads before each launch. The other is the word on the card, for which
 * streams wait; it lies in a mapping that is shared with whoever decides.
 *
 * port_file.c is the back end today: the page is a file that every process on the card maps, and each process decides
 * for itself by the same rule (control/visits.h). All times are CLOCK_MONOTONIC. Functions on a claim that was lost, or
 * that is a forked child's parent's, do nothing. Any thread may call; want, rest, look, open_gate and shut_gate one at
 * a time for each claim.
 */
#ifndef LOADLINE_LEDGER_PORT_H
#define LOADLINE_LEDGER_PORT_H

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
struct ll_ledger;

/*
 * Opens the page of the card with that UUID, in the place that the settings name. is_created: it is made where it is
 * missing. Else -ENOENT. Other errors as ll_ledger_open. *ret_ledger is the caller's, to close. A forked child's copy
 * stays good.
 */
int ll_port_open(const struct ll_run_settings *settings, const char *uuid, bool is_created,
		 struct ll_ledger **ret_ledger, struct ll_err *err);

/* Its claims must have been left. NULL is fine. */
void ll_port_close(struct ll_ledger *ledger);

/*
 * Takes a claim of the settings' tenant, and says that its program runs. uuid is for messages. Errors as
 * ll_run_settings_claim. The claim is the process's to its end; in a forked child it is dead.
 */
int ll_port_claim(const struct ll_run_settings *settings, struct ll_ledger *ledger, const char *uuid,
		  struct ll_claim **ret_claim, struct ll_err *err);

/* Gives the claim back and keeps the handle: from then on it is lost. Only where nothing is charged to it. */
void ll_port_leave(struct ll_claim *claim);

/* Whether others have cleared the claim. One load. Its owner may take another, which succeeds it: the lost one is put
 * away, and stays in memory for threads that still look at it. */
bool ll_port_is_lost(const struct ll_claim *claim);
void ll_port_succeed(struct ll_claim *claim, struct ll_claim *lost);

/* Says "still here", about once a second. -ESTALE: the claim was cleared; take another. -ECHILD in a forked child. */
int ll_port_beat(struct ll_claim *claim, uint64_t now_ns);

/* The number in "0/17". */
unsigned ll_port_index(const struct ll_claim *claim);

/* One phrase for people, cut at 63 bytes. */
void ll_port_set_note(struct ll_claim *claim, const char *note);

/* The tenant has a process without a claim, which nothing holds to the limits: said at least each second while that is
 * so. And: the process has one again. */
void ll_port_note_lost(struct ll_ledger *ledger, uint64_t tenant_id, uint64_t now_ns);
void ll_port_note_had(struct ll_ledger *ledger, uint64_t tenant_id);

/* Memory, as in memory.h: 0, -ENOMEM over the limit, -ESTALE without a claim; charge asks no limit. */
int ll_port_reserve(struct ll_claim *claim, uint64_t bytes);
void ll_port_charge_memory(struct ll_claim *claim, uint64_t bytes);
void ll_port_release(struct ll_claim *claim, uint64_t bytes);

/* What is charged now, and the limit. read_tenant serves a process without a claim on the card: it reads the tenant
 * with that id; false: the tenant is not there. read_limit gives that tenant's limit alone, without a system call. */
void ll_port_read_memory(const struct ll_claim *claim, struct ll_memory_view *ret_view);
bool ll_port_read_tenant(struct ll_ledger *ledger, uint64_t tenant_id, struct ll_memory_view *ret_view);
bool ll_port_read_limit(struct ll_ledger *ledger, uint64_t tenant_id, uint64_t *ret_bytes);

/* Where the memory of an evictable program is (memory.h). A claim that succeeds a lost one is to be told again. */
void ll_port_set_residency(struct ll_claim *claim, const struct ll_memory_residency *residency);

/* The tenant's processes on the card that the caller's process numbers can name: copies at most capacity, returns how
 * many there are. */
struct ll_port_process {
	unsigned pid;
	uint64_t used_bytes;
};
size_t ll_port_list_processes(struct ll_ledger *ledger, uint64_t tenant_id, struct ll_port_process *processes,
			      size_t capacity);

/*
 * A number that names the claim among all that this card's page ever had, and whether that claim, by its index and
 * number, is there still. 0: it is lost, or a forked child's parent's. Two loads each.
 */
uint64_t ll_port_stamp(const struct ll_claim *claim);
bool ll_port_has_stamp(const struct ll_ledger *ledger, unsigned index, uint64_t stamp);

/* When a program that had memory was last cleared; 0: never. One load. */
uint64_t ll_port_death_ns(const struct ll_ledger *ledger);

/* Clears what dead processes left. Returns when a program that had memory was last cleared; 0: never. */
uint64_t ll_port_sweep(struct ll_ledger *ledger);

/* Asks the tenant's other processes for the memory that their pools keep in reserve: how many are asked, and how many
 * have not answered yet. The other side: whether this process is asked, and its answer. */
unsigned ll_port_ask_reserves(struct ll_claim *claim, uint64_t now_ns);
unsigned ll_port_unanswered(const struct ll_claim *claim);
bool ll_port_is_asked(const struct ll_claim *claim);
void ll_port_answer(struct ll_claim *claim);

/* Demand: the claim has launches to make, or has none any more (and the turn goes on, if the claim has it). How its
 * program launches. Whether its launches wait on the card, and not in the host. */
void ll_port_want(struct ll_claim *claim, uint64_t now_ns);
void ll_port_rest(struct ll_claim *claim, uint64_t now_ns);
void ll_port_set_pace(struct ll_claim *claim, enum ll_pace pace);
void ll_port_set_waits_on_card(struct ll_claim *claim, bool waits);

/*
 * Says what is queued, and asks whether the claim may launch. queued_ns: estimated work of ours that the card still
 * has. The holder of the turn looks at least every ms while others wait, the others at least every 10 ms.
 */
void ll_port_look(struct ll_claim *claim, struct ll_turn *turn, uint64_t now_ns, uint64_t queued_ns,
		  struct ll_turn_look *ret_look);

/* The same for a tenant on several cards, about its first one: said again at least each LL_GANG_LOOK_NS. launches: what
 * the caller's own card has. gang: of the last look; all 0 before the first. */
void ll_port_look_first(struct ll_claim *claim, const struct ll_ledger *first, uint64_t tenant_id, uint32_t launches,
			uint64_t now_ns, struct ll_gang *gang);

/* Whether what was said then of another card still counts. */
bool ll_port_is_fresh(uint64_t at_ns, uint64_t now_ns);

/* Whether the turn is the tenant's. A few relaxed loads. */
bool ll_port_is_in_turn(const struct ll_claim *claim);

/* The claim's gate (enum ll_gate), valid to the end of the process. NULL in a forked child. */
_Atomic uint32_t *ll_port_gate(struct ll_claim *claim);

/* Opens the gate, fully or so that the next launch says that it happened. False: another claim came, and the gate is
 * shut again. */
bool ll_port_open_gate(struct ll_claim *claim, enum ll_gate how, uint64_t now_ns);
void ll_port_shut_gate(struct ll_claim *claim);

/* The word for which the tenant's streams wait: LL_VISIT_WORD_OPEN while the card is the tenant's; the rest counts.
 * NULL: the claim has no tenant, or is lost. */
_Atomic uint32_t *ll_port_card_word(const struct ll_claim *claim);

/*
 * Sleeps until another process changes the claim's turn or gate, until another thread wakes the claim, or until
 * until_ns. wake_count is read before the look that decides on sleeping.
 */
uint32_t ll_port_wake_count(const struct ll_claim *claim);
void ll_port_sleep(struct ll_claim *claim, uint32_t wake_count, uint64_t until_ns);
void ll_port_wake(struct ll_claim *claim);

/* Report: the card worked for the claim from start_ns to end_ns. fresh_ns: what of it was not told yet. */
void ll_port_charge(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns, uint64_t fresh_ns);

#endif
