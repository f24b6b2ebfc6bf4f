/*
 * loadline-simctl: shows a simulated world, and changes it while programs run in it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "card/attach.h"
#include "card/command.h"
#include "card/engine.h"
#include "card/memory.h"
#include "card/meter.h"
#include "card/mps.h"
#include "card/process.h"
#include "simctl/simctl_busy.h"

/* ---- totals ---- */

/* Prints what the programs on a card have used since the world began, ended ones included. */
static void print_totals(struct sim_world *w, uint32_t index)
{
	const struct sim_meter *meter = &w->cards[index].meter;
	printf("{\"card\":%u,\"uuid\":\"%s\",\"busy_seconds\":%.6f,\"context_seconds\":%.6f,"
	       "\"kernel_seconds\":%.6f,\"memory_byte_seconds\":%.0f,\"joules\":%.3f}\n",
	       index, w->cards[index].uuid, meter->busy_s, meter->context_s, meter->kernel_s, meter->memory_byte_s,
	       meter->joules);
}

/* ---- show ---- */

static void show_card(struct sim_world *w, uint32_t index)
{
	const struct sim_card *card = &w->cards[index];
	uint32_t windows = card->meter.sample_count;
	uint32_t util = windows ? card->samples[(windows - 1) % SIM_SAMPLES].util_percent : 0;
	printf("card %u %s %s: util %u %%, %.1f MiB used, %.1f W, %.1f C, mode %u%s%s, at most %.1f MiB\n", index,
	       card->name, card->uuid, util, (double)sim_card_used_bytes(w, index) / (1 << 20), sim_card_watts(card),
	       sim_card_celsius(w, card), card->compute_mode, card->is_gone ? ", gone" : "",
	       card->is_slowed ? ", slowed" : "", (double)card->most_bytes / (1 << 20));
}

static void show_context(struct sim_world *w, uint32_t index)
{
	const struct sim_context *context = &w->contexts[index];
	uint64_t queued = 0;
	for (uint32_t i = 0; i < context->stream_count; i++) {
		const struct sim_stream *stream = &w->streams[context->streams[i]];
		queued += stream->submitted - stream->done;
	}
	printf("context %u: card %u, pid %d, %.1f MiB, %u streams, %llu queued, %.3f s on the card, error %u%s\n",
	       index, context->card, sim_proc_pid(w, context->proc),
	       (double)sim_context_used_bytes(context) / (1 << 20), context->stream_count, (unsigned long long)queued,
	       (double)context->card_ns * 1e-9, context->error, context->off_channels ? ", off" : "");
}

static void show_server(const struct sim_world *w, uint32_t index)
{
	static const char *const states[] = {"INITIALIZING", "ACTIVE", "FAULT"};
	const struct sim_mps_server *server = &w->mps_servers[index];
	printf("mps server %u: pid %d, user %u, %s%s, %u clients, %.1f %% of threads\n", index, server->pid,
	       server->uid, states[server->state], server->is_closing ? ", closing" : "",
	       sim_mps_client_count(w, index), server->permille / 10.0);
}

/* Shows a fault that still waits for calls. A fault with a count ends after that many calls. */
static void show_fault(const struct sim_world *w, const struct sim_fault *fault)
{
	if (!fault->is_used || fault->until_ns <= w->now_ns)
		return;
	printf("fault of %s: takes %.3f s first, answers %u\n", fault->function, (double)fault->hang_ns * 1e-9,
	       fault->status);
}

/* Joins the present world and locks it. The caller unlocks it. */
static int enter_world(struct sim_world **ret_world, struct ll_err *err)
{
	int rc = sim_world_attach(ret_world, err);
	if (rc < 0)
		return rc;
	sim_lock(*ret_world);
	sim_advance_to_now(*ret_world);
	return 0;
}

/* Shows cards, contexts, processes and faults. */
static int show_world(struct ll_err *err)
{
	struct sim_world *w;
	int rc = enter_world(&w, err);
	if (rc < 0)
		return rc;
	printf("world %s: driver %s, CUDA %u.%u, %.3f s old\n", sim_world_folder(), w->driver_version,
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
	for (uint32_t i = 0; i < SIM_FAULTS; i++)
		show_fault(w, &w->faults[i]);
	sim_unlock(w);
	return 0;
}

static int show_totals(struct ll_err *err)
{
	struct sim_world *w;
	int rc = enter_world(&w, err);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < w->slot_count; i++)
		print_totals(w, i);
	sim_unlock(w);
	return 0;
}

static const char usage[] =
    "usage: loadline-simctl COMMAND...\n"
    "  card N|all PROPERTY VALUE...   temperature 90 [over 5s] | mode exclusive | xid 31 | gone on | used 10G | ...\n"
    "  fail FUNCTION STATUS [for D] [after N] [count N],  hang FUNCTION D ...,  heal,  suspend D\n"
    "  mps hang COMMAND D | refuse [STATUS] | fault [STATUS] [for D] | die daemon|server | heal\n"
    "  at D COMMAND...                put a command off\n"
    "  busy CARD [PERCENT] [kernel D | work D] [sleep D] [for D] [count N] [blocks N] [threads N] [memory SIZE]\n"
    "  totals                         GPU seconds and memory-seconds of all programs so far, a JSON line for each "
    "card\n"
    "  show | folder | reset          (reset makes the world anew from LOADLINE_SIM_SCENARIO)\n"
    "The world is LOADLINE_SIM_DIR, else the user's default one. sim/README.md has it all.\n";

static int run_line(int count, char **words, struct ll_err *err)
{
	char line[256] = "";
	size_t n = 0;
	for (int i = 0; i < count; i++) {
		int added = snprintf(line + n, sizeof line - n, "%s%s", i ? " " : "", words[i]);
		if (added < 0 || (size_t)added >= sizeof line - n)
			return ll_err_set(err, -EINVAL, "command too long");
		n += (size_t)added;
	}
	struct sim_world *w;
	int rc = enter_world(&w, err);
	if (rc < 0)
		return rc;
	rc = sim_command_run(w, line, SIM_COMMAND_LIVE, err);
	sim_unlock(w);
	return rc;
}

static int print_folder(struct ll_err *err)
{
	const char *folder = sim_world_folder();
	if (!folder)
		return ll_err_set(err, -ENOENT, "the world's folder cannot be had");
	puts(folder);
	return 0;
}

int main(int argc, char **argv)
{
	struct ll_err err = {0};
	int rc;
	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		fputs(usage, argc < 2 ? stderr : stdout);
		return argc < 2 ? LL_EXIT_USAGE : LL_EXIT_OK;
	}
	if (strcmp(argv[1], "show") == 0)
		rc = show_world(&err);
	else if (strcmp(argv[1], "totals") == 0)
		rc = show_totals(&err);
	else if (strcmp(argv[1], "folder") == 0)
		rc = print_folder(&err);
	else if (strcmp(argv[1], "reset") == 0)
		rc = sim_world_reset(&err);
	else if (strcmp(argv[1], "busy") == 0)
		rc = simctl_busy(argc - 2, argv + 2, &err);
	else
		rc = run_line(argc - 1, argv + 1, &err);
	if (rc == 0 && (ferror(stdout) || fflush(stdout) != 0))
		rc = ll_err_set(&err, -EIO, "standard output: %s", strerror(errno));
	if (rc < 0)
		fprintf(stderr, "loadline-simctl: %s\n", err.text);
	return ll_err_exit_code(rc);
}
