#include "daemon/ungoverned.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/log.h"
#include "daemon/server.h"

/* A process that was seen. One on several cards has one entry. */
struct ll_ungoverned {
	struct ll_ungoverned *next;
	uint32_t pid;
	uint64_t start_ticks;
	bool is_there;
};

static struct ll_ungoverned *find_seen(struct ll_server *server, const struct ll_message_sense_process *row)
{
	struct ll_ungoverned *seen = server->ungoverned;
	while (seen && (seen->pid != row->pid || seen->start_ticks != row->start_ticks))
		seen = seen->next;
	return seen;
}

static struct ll_ungoverned *add_seen(struct ll_server *server, const struct ll_message_sense_process *row)
{
	struct ll_ungoverned *seen = calloc(1, sizeof *seen);
	if (!seen)
		return NULL;
	*seen = (struct ll_ungoverned){.next = server->ungoverned, .pid = row->pid, .start_ticks = row->start_ticks};
	server->ungoverned = seen;
	ll_warn("process %u of user %u (%s) uses card %s outside loadline", row->pid, row->uid, row->command,
		row->uuid);
	return seen;
}

static void look_at(struct ll_server *server, struct ll_message_sense_process *row)
{
	if (row->job_number)
		return;
	row->flags |= LL_SENSE_IS_UNGOVERNED;
	struct ll_ungoverned *seen = find_seen(server, row);
	if (!seen)
		seen = add_seen(server, row);
	if (seen)
		seen->is_there = true;
}

static void drop_ended(struct ll_server *server)
{
	for (struct ll_ungoverned **at = &server->ungoverned; *at;) {
		struct ll_ungoverned *seen = *at;
		if (seen->is_there) {
			at = &seen->next;
			continue;
		}
		*at = seen->next;
		free(seen);
	}
}

void ll_ungoverned_look(struct ll_server *server, struct ll_message_sense_process *rows, size_t count)
{
	for (struct ll_ungoverned *seen = server->ungoverned; seen; seen = seen->next)
		seen->is_there = false;
	for (size_t i = 0; i < count; i++)
		look_at(server, &rows[i]);
	drop_ended(server);
}

void ll_ungoverned_fini(struct ll_server *server)
{
	for (struct ll_ungoverned *seen = server->ungoverned; seen; seen = seen->next)
		seen->is_there = false;
	drop_ended(server);
}
