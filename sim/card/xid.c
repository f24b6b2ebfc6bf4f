#include "card/xid.h"
#include "card/process.h"

#include "card/context.h"
#include "card/mps.h"

static void report_xid(struct sim_world *w, uint32_t card, uint32_t xid)
{
	struct sim_xid *report = SIM_EDIT(w, &w->xids[w->next_xid % SIM_XIDS]);
	*report = (struct sim_xid){.sequence = w->next_xid, .card = card, .xid = xid};
	(*SIM_EDIT(w, &w->next_xid))++;
}

/* A fault in one client of an MPS server affects all clients of that server on the card. */
static void lose_with_neighbours(struct sim_world *w, uint32_t index, uint32_t error)
{
	const struct sim_context *context = &w->contexts[index];
	const struct sim_proc *proc = &w->procs[context->proc];
	sim_context_lose(w, index, error);
	if (proc->mps.server && !proc->mps.error)
		sim_mps_fault(w, proc->mps.server - 1, context->card, error, 0);
}

void sim_card_xid(struct sim_world *w, uint32_t card, uint32_t xid, uint32_t error, int32_t pid)
{
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++) {
		const struct sim_context *context = &w->contexts[i];
		if (sim_context_is_on_card(w, context, card) && (pid == 0 || sim_proc_pid(w, context->proc) == pid))
			lose_with_neighbours(w, i, error);
	}
	report_xid(w, card, xid);
}

void sim_report_fault(struct sim_world *w, uint32_t context, uint32_t xid, uint32_t error)
{
	report_xid(w, w->contexts[context].card, xid);
	lose_with_neighbours(w, context, error);
}
