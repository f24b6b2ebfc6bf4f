#include "card/trace.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "card/attach.h"

#define DELIVER_NS (33 * LL_NS_PER_MS)
/* Below a switch, so that the order stays. */
#define BLUR_NS UINT64_C(65536)

/* ---- memories ---- */

static bool name_memory(char path[PATH_MAX], uint32_t number)
{
	const char *folder = sim_world_fd() < 0 ? NULL : sim_world_folder();
	int n = folder ? snprintf(path, PATH_MAX, "%s/memory-%u", folder, number) : -1;
	return n > 0 && n < PATH_MAX;
}

bool sim_memory_make(uint32_t number, uint64_t bytes)
{
	char path[PATH_MAX];
	if (!name_memory(path, number))
		return false;
	unlink(path); /* of a world before */
	LL_SCOPE_CLOSE int fd = sim_world_open_file(path, O_RDWR | O_CREAT | O_EXCL);
	return fd >= 0 && ftruncate(fd, (off_t)bytes) == 0;
}

int sim_memory_open(uint32_t number, int flags)
{
	char path[PATH_MAX];
	return name_memory(path, number) ? sim_world_open_file(path, flags) : -1;
}

void sim_memory_drop(uint32_t number)
{
	char path[PATH_MAX];
	if (name_memory(path, number))
		unlink(path);
}

/* ---- traces ---- */

uint32_t sim_trace_new(struct sim_world *w, uint32_t header, uint32_t records, uint32_t count)
{
	for (uint32_t i = 0; i < SIM_TRACES; i++) {
		struct sim_trace *trace = &w->traces[i];
		if (trace->is_used)
			continue;
		sim_save(w, trace, offsetof(struct sim_trace, noted));
		memset(trace, 0, offsetof(struct sim_trace, noted));
		trace->is_used = 1;
		trace->header = header;
		trace->records = records;
		trace->count = count;
		trace->card = SIM_NONE;
		++*SIM_EDIT(w, &w->trace_count);
		return i;
	}
	return SIM_NONE;
}

void sim_trace_free(struct sim_world *w, uint32_t index)
{
	*SIM_EDIT(w, &w->traces[index].is_used) = 0;
	--*SIM_EDIT(w, &w->trace_count);
}

void sim_trace_bind(struct sim_world *w, uint32_t index, uint32_t card, uint32_t uid, bool all_users)
{
	*SIM_EDIT(w, &w->traces[index].card) = card;
	*SIM_EDIT(w, &w->traces[index].uid) = uid;
	*SIM_EDIT(w, &w->traces[index].has_all_users) = all_users;
}

void sim_trace_enable(struct sim_world *w, uint32_t index, bool is_on)
{
	*SIM_EDIT(w, &w->traces[index].is_enabled) = is_on;
}

/* ---- noting ---- */

static void add_note(struct sim_world *w, struct sim_trace *trace, struct sim_switch note)
{
	bool is_own = note.uid == trace->uid || trace->uid == 0;
	if (!is_own && !trace->has_all_users)
		return;
	if (trace->noted_count - trace->delivered_count == SIM_TRACE_NOTES) {
		++*SIM_EDIT(w, &trace->dropped);
		return;
	}
	note.is_hidden = !is_own;
	*SIM_EDIT(w, &trace->noted[trace->noted_count % SIM_TRACE_NOTES]) = note;
	++*SIM_EDIT(w, &trace->noted_count);
}

/* Returns the process that a tenant's records name: of an MPS server's clients, the server. */
static uint32_t process_of(const struct sim_world *w, uint32_t tenant)
{
	return tenant < SIM_CONTEXTS ? w->contexts[tenant].proc : w->mps_servers[tenant - SIM_CONTEXTS].proc;
}

void sim_trace_note(struct sim_world *w, const struct sim_card *card, uint32_t tenant, enum ll_rm_switch_tag tag,
		    uint64_t at_ns)
{
	if (!w->trace_count || tenant == SIM_NONE)
		return;
	uint32_t physical = card->parent == SIM_NONE ? (uint32_t)(card - w->cards) : card->parent;
	uint32_t proc = process_of(w, tenant);
	struct sim_switch note = {
	    .at_ns = at_ns,
	    .tag = tag,
	    .cid = tenant < SIM_CONTEXTS ? w->contexts[tenant].cid : 0,
	    .pid = proc == SIM_NONE ? 0 : w->procs[proc].pid,
	    .uid = proc == SIM_NONE ? 0 : w->procs[proc].uid,
	};
	for (uint32_t i = 0; i < SIM_TRACES; i++) {
		struct sim_trace *trace = &w->traces[i];
		if (trace->is_used && trace->is_enabled && trace->card == physical)
			add_note(w, trace, note);
	}
}

/* ---- delivering ---- */

static struct ll_rm_switch_record record_of(const struct sim_world *w, const struct sim_trace *trace,
					    const struct sim_switch *note)
{
	uint64_t clock_ns = sim_card_clock_ns(w, trace->card, note->at_ns);
	return (struct ll_rm_switch_record){
	    .tag = (uint8_t)note->tag,
	    .sequence = (uint16_t)trace->delivered_count,
	    .context = note->is_hidden ? 0 : note->cid,
	    .pid = note->is_hidden ? 0 : (uint32_t)note->pid,
	    .ns = note->is_hidden ? clock_ns / BLUR_NS * BLUR_NS : clock_ns,
	};
}

static bool write_header(const struct sim_trace *trace)
{
	struct ll_rm_event_header header = {.get = trace->get, .put = trace->put, .dropped = trace->dropped};
	LL_SCOPE_CLOSE int fd = sim_memory_open(trace->header, O_RDWR);
	return fd >= 0 && pwrite(fd, &header, sizeof header, 0) == (ssize_t)sizeof header;
}

/* If this process is killed meanwhile, the next one writes the same records to the same places. */
void sim_trace_deliver(struct sim_world *w, uint32_t index)
{
	struct sim_trace *trace = &w->traces[index];
	LL_SCOPE_CLOSE int fd = sim_memory_open(trace->records, O_RDWR);
	if (fd < 0)
		return;
	sim_save(w, trace, offsetof(struct sim_trace, noted));
	trace->delivered_ns = w->now_ns;
	while (trace->delivered_count < trace->noted_count) {
		const struct sim_switch *note = &trace->noted[trace->delivered_count % SIM_TRACE_NOTES];
		if (note->at_ns > w->now_ns)
			break;
		struct ll_rm_switch_record record = record_of(w, trace, note);
		uint32_t next = (trace->put + 1) % trace->count;
		trace->delivered_count++;
		if (next == trace->get) {
			trace->dropped++;
			continue;
		}
		if (pwrite(fd, &record, sizeof record, (off_t)(trace->put * sizeof record)) != (ssize_t)sizeof record)
			break;
		trace->put = next;
	}
	write_header(trace);
	sim_commit(w);
}

void sim_trace_set_get(struct sim_world *w, uint32_t index, uint32_t get)
{
	struct sim_trace *trace = &w->traces[index];
	*SIM_EDIT(w, &trace->get) = get % trace->count;
	write_header(trace);
}

void sim_traces_deliver_due(struct sim_world *w)
{
	for (uint32_t i = 0; w->trace_count && i < SIM_TRACES; i++) {
		const struct sim_trace *trace = &w->traces[i];
		uint64_t notes = trace->noted_count - trace->delivered_count;
		if (trace->is_used && notes &&
		    (w->now_ns - trace->delivered_ns >= DELIVER_NS || notes > SIM_TRACE_NOTES / 2))
			sim_trace_deliver(w, i);
	}
}
