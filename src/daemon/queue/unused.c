/* Places that nobody took. Such a place keeps others away, and is in no account: it costs its user ten times its time,
 * in which no job of the user starts. */
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/core/server.h"
#include "daemon/queue/state.h"

enum { PRICE = 10 };

static struct ll_admission_unused *find_user(const struct ll_admission *admission, uint32_t owner)
{
	for (size_t i = 0; i < admission->unused_count; i++) {
		if (admission->unused[i].owner == owner)
			return &admission->unused[i];
	}
	return NULL;
}

/* A user who owes nothing any more makes room. Without memory the place costs nothing. */
static struct ll_admission_unused *add_user(struct ll_admission *admission, uint32_t owner, uint64_t now_ns)
{
	struct ll_admission_unused *unused = admission->unused;
	for (size_t i = 0; i < admission->unused_count; i++) {
		if (unused[i].until_ns > now_ns)
			continue;
		unused[i].owner = owner;
		return &unused[i];
	}
	unused = realloc(unused, (admission->unused_count + 1) * sizeof *unused);
	if (!unused)
		return NULL;
	admission->unused = unused;
	unused += admission->unused_count++;
	*unused = (struct ll_admission_unused){.owner = owner};
	return unused;
}

void ll_admission_note_unused(struct ll_admission *admission, const struct ll_admission_entry *entry)
{
	uint64_t now_ns = ll_now_ns();
	if (!entry->uuid_count || entry->has_run || now_ns <= entry->begin_ns)
		return;
	uint32_t owner = ll_subordinates_owner(&admission->server->subordinates, entry->uid);
	struct ll_admission_unused *user = find_user(admission, owner);
	user = user ? user : add_user(admission, owner, now_ns);
	if (!user)
		return;
	user->until_ns = user->until_ns > now_ns ? user->until_ns : now_ns;
	user->until_ns += PRICE * (now_ns - entry->begin_ns);
}

bool ll_admission_owes(const struct ll_admission *admission, const struct ll_admission_entry *entry)
{
	uint32_t owner = ll_subordinates_find(&admission->server->subordinates, entry->uid);
	const struct ll_admission_unused *user = find_user(admission, owner);
	return user && user->until_ns > ll_now_ns();
}
