#include "daemon/jobs/job_settings.h"

#include <string.h>

#include "daemon/core/server.h"
#include "daemon/jobs/claims.h"

_Static_assert((int)LL_SETTINGS_SIZE == (int)LL_RUN_TEXT_SIZE, "a message holds the text");

/* The folder is not used for a system's place; it is that of the socket. */
static void write_place(const struct ll_server *server, struct ll_run_settings *settings)
{
	memcpy(settings->place, server->place.name, sizeof settings->place);
	memcpy(settings->folder, server->place.name, sizeof server->place.name);
	*strrchr(settings->folder, '/') = '\0';
}

int ll_job_settings_write(const struct ll_server *server, const struct ll_job *job, char ret_text[LL_RUN_TEXT_SIZE])
{
	const struct ll_limits *limits = &job->facts.limits;
	struct ll_run_settings settings = {
	    .id = job->facts.token[0],
	    .priority = ll_priority_of_class(limits->priority),
	    .memory_limit_bytes = limits->memory_bytes,
	    .memory_request_bytes = limits->request_bytes,
	    .compute_cap_permille = limits->compute_permille,
	    .weight_permille = limits->weight_permille,
	    .slowdown_permille = limits->slowdown_permille,
	    .space_permille = limits->space_permille,
	    .counts_context = limits->flags & LL_LIMIT_COUNTS_CONTEXT,
	    .max_kernel_ns = limits->max_kernel_ns,
	    .kills_at_max_kernel = limits->flags & LL_LIMIT_KILLS_MAX_KERNEL,
	    .is_evictable = limits->flags & LL_LIMIT_EVICTABLE,
	    .is_strict = limits->flags & LL_LIMIT_STRICT,
	};
	ll_message_text_set(settings.tenant, sizeof settings.tenant, job->facts.tenant);
	if (job->claims->card_count > 1)
		ll_message_text_set(settings.first_card, sizeof settings.first_card, job->claims->cards[0]->uuid);
	write_place(server, &settings);
	return ll_run_settings_write(&settings, ret_text);
}
