/* Opens cards and takes claims (port.h). */
#include "shim/link/port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/process_id.h"
#include "shim/link/claim.h"

#define READ_WAIT_NS (500 * LL_NS_PER_MS)

static int read_pages(const struct ll_run_settings *settings)
{
	struct ll_slot_grant grant;
	struct ll_slot_request request = {.settings = settings, .uuid = ""};
	if (ll_connection_pages())
		return 0;
	return ll_connection_claim(&request, READ_WAIT_NS, &grant, NULL) ? -ENOENT : 0;
}

int ll_port_open(const struct ll_run_settings *settings, const char *uuid, bool is_to_claim, struct ll_port **ret_port,
		 struct ll_err *err)
{
	if (!is_to_claim && read_pages(settings))
		return ll_err_set(err, -ENOENT, "no loadlined answers for this job");
	struct ll_port *port = calloc(1, sizeof *port);
	if (!port)
		return ll_err_set(err, -ENOMEM, "no memory");
	snprintf(port->uuid, sizeof port->uuid, "%s", uuid);
	port->settings = settings;
	*ret_port = port;
	return 0;
}

void ll_port_close(struct ll_port *port)
{
	free(port);
}

int ll_port_connect(const struct ll_port *port, int *ret_fd)
{
	return *port->settings->place ? ll_connection_open(port->settings, ret_fd) : -ENOENT;
}

static void init_claim(struct ll_claim *claim, const struct ll_port *port, const struct ll_slot_grant *grant)
{
	struct ll_port_pages *pages = grant->pages;
	*claim = (struct ll_claim){
	    .port = port,
	    .pages = pages,
	    .slot = &pages->page->slots[grant->slot],
	    .order = &pages->orders->slots[grant->slot],
	    .card_word = &pages->page->card_words[grant->card],
	    .page_card = &pages->page->cards[grant->card],
	    .orders_card = &pages->orders->cards[grant->card],
	    .index = grant->slot,
	    .card = grant->card,
	    .token = grant->token,
	    .ahead_ns = grant->ahead_ns,
	    .want_post = 1,
	};
	pthread_mutex_init(&claim->odd_lock, NULL);
	pthread_mutex_init(&claim->off_lock, NULL);
	pthread_mutex_init(&claim->want_lock, NULL);
}

int ll_port_claim(struct ll_port *port, uint64_t wait_ns, struct ll_claim **ret_claim, struct ll_err *err)
{
	struct ll_slot_grant grant;
	struct ll_slot_request request = {.settings = port->settings, .uuid = port->uuid};
	struct ll_claim *claim = calloc(1, sizeof *claim);
	if (!claim)
		return ll_err_set(err, -ENOMEM, "no memory");
	int rc = ll_connection_claim(&request, wait_ns, &grant, err);
	if (rc) {
		free(claim);
		return rc;
	}
	init_claim(claim, port, &grant);
	atomic_store(&claim->slot->state, LL_CLAIM_RUNNING);
	ll_claims_add(claim);
	*ret_claim = claim;
	return 0;
}

void ll_port_leave(struct ll_claim *claim)
{
	if (!ll_claim_slot(claim))
		return;
	atomic_store(&claim->is_refused, true);
	ll_connection_tell(LL_MESSAGE_RELEASE, claim->index, claim->token);
}

bool ll_port_is_lost(const struct ll_claim *claim)
{
	return !ll_claim_slot(claim);
}

int ll_port_beat(struct ll_claim *claim, uint64_t now_ns)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (!slot)
		return atomic_load(&claim->slot) ? -ESTALE : -ECHILD;
	atomic_store_explicit(&slot->posted_ns, ll_claim_page_ns(claim, now_ns), memory_order_relaxed);
	ll_claim_wake_daemon_if_due(claim);
	return 0;
}

unsigned ll_port_index(const struct ll_claim *claim)
{
	const struct ll_page_slot *slot = ll_claim_slot(claim);
	unsigned number = slot ? atomic_load_explicit(&slot->number, memory_order_relaxed) : 0;
	return number ? number - 1 : claim->index;
}

void ll_port_set_note(struct ll_claim *claim, const char *note)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (slot)
		ll_page_write_note(slot, note);
}

/* ---- names ---- */

struct ll_port_name ll_port_name_of(const struct ll_claim *claim)
{
	const struct ll_page_slot *slot = ll_claim_slot(claim);
	if (!slot)
		return (struct ll_port_name){.slot = claim->index};
	return (struct ll_port_name){
	    .token = claim->token,
	    .namespaces = atomic_load_explicit(&slot->namespaces, memory_order_relaxed),
	    .start_ticks = atomic_load_explicit(&slot->start_ticks, memory_order_relaxed),
	    .slot = claim->index,
	    .pid = (unsigned)atomic_load_explicit(&slot->pid, memory_order_relaxed),
	};
}

bool ll_port_has_name(const struct ll_port *port, const struct ll_port_name *name)
{
	(void)port;
	const struct ll_port_pages *pages = ll_connection_pages();
	return name->token && pages && pages->page->slots[name->slot % LL_PAGE_SLOTS].token == name->token;
}

bool ll_port_is_gone(const struct ll_port_name *name)
{
	struct ll_process_id id = {
	    .pid = (pid_t)name->pid, .start_ticks = name->start_ticks, .namespaces = name->namespaces};
	int code = errno;
	bool is_gone = ll_process_is_gone(&id, ll_process_namespaces());
	errno = code;
	return is_gone;
}
