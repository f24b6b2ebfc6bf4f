#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "card/engine.h"
#include "card/meter.h"
#include "card/mps.h"
#include "card/population.h"
#include "simctl/simctl.h"

static void show_card(struct sim_world *w, uint32_t index)
{
	const struct sim_card *card = &w->cards[index];
	uint32_t windows = card->meter.sample_count;
	uint32_t util = windows ? card->samples[(windows - 1) % SIM_SAMPLES].util_percent : 0;
	printf("card %u %s %s: util %u %%, %.1f MiB used, %.1f W, %.1f C, mode %u%s%s\n", index, card->name, card->uuid,
	       util, (double)sim_card_used_bytes(w, index) / (1 << 20), sim_card_watts(card), sim_card_celsius(w, card),
	       card->compute_mode, card->is_gone ? ", gone" : "", card->is_slowed ? ", slowed" : "");
}

static void show_context(struct sim_world *w, uint32_t index)
{
	const struct sim_context *context = &w->contexts[index];
	uint64_t queued = 0;
	for (uint32_t i = 0; i < context->stream_count; i++) {
		const struct sim_stream *stream = &w->streams[context->streams[i]];
		queued += stream->submitted - stream->done;
	}
	printf("context %u: card %u, pid %d, %.1f MiB, %u streams, %llu queued, %.3f s on the card, error %u\n", index,
	       context->card, w->procs[context->proc].pid, (double)sim_context_used_bytes(context) / (1 << 20),
	       context->stream_count, (unsigned long long)queued, (double)context->card_ns * 1e-9, context->error);
}

static void show_server(const struct sim_world *w, uint32_t index)
{
	static const char *const states[] = {"INITIALIZING", "ACTIVE", "FAULT"};
	const struct sim_mps_server *server = &w->mps_servers[index];
	printf("mps server %u: pid %d, user %u, %s%s, %u clients, %.1f %% of threads\n", index, server->pid,
	       server->uid, states[server->state], server->is_closing ? ", closing" : "",
	       sim_mps_client_count(w, index), server->permille / 10.0);
}

int simctl_show(struct ll_err *err)
{
	struct sim_world *w;
	int rc = sim_world_attach(&w, err);
	if (rc < 0)
		return rc;
	sim_lock(w);
	sim_advance_to_now(w);
	printf("world %s: driver %s, CUDA %u.%u, %.1f s old\n", sim_world_folder(), w->driver_version,
	       w->cuda_version / 1000, w->cuda_version % 1000 / 10, (double)(w->now_ns - w->born_ns) * 1e-9);
	printf("nvml: %llu calls\n", (unsigned long long)__atomic_load_n(&w->nvml_calls, __ATOMIC_RELAXED));
	for (uint32_t i = 0; i < w->slot_count; i++)
		show_card(w, i);
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++) {
		if (w->contexts[i].is_used)
			show_context(w, i);
	}
	for (uint32_t i = 0; i < SIM_MPS_SERVERS; i++) {
		if (w->mps_servers[i].is_used)
			show_server(w, i);
	}
	sim_unlock(w);
	return 0;
}
