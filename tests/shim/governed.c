#include "governed.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "jobs.h"

static uint64_t tenant_id;

static void set_environment(uint64_t limit_bytes, bool counts_context, enum governed_way way)
{
	tenant_id = 0x10000 + (uint64_t)getpid();
	jobs_register((struct ll_run_settings){
	    .id = tenant_id,
	    .tenant = "test",
	    .memory_limit_bytes = limit_bytes,
	    .counts_context = counts_context,
	    .is_strict = way == GOVERNED_STRICTLY,
	    .is_evictable = way == GOVERNED_EVICTABLY,
	});
	/* It is loaded here; the tools that tests start are not governed, and may not have a sanitizer in them. */
	CHECK_EQUAL(unsetenv("LD_PRELOAD"), 0);
}

void govern(uint64_t limit_bytes)
{
	set_environment(limit_bytes, true, GOVERNED_PLAINLY);
}

void govern_without_context(uint64_t limit_bytes)
{
	set_environment(limit_bytes, false, GOVERNED_PLAINLY);
}

void govern_evictable(uint64_t limit_bytes)
{
	set_environment(limit_bytes, true, GOVERNED_EVICTABLY);
}

void govern_in_way(enum governed_way way, uint64_t limit_bytes)
{
	set_environment(limit_bytes, true, way);
}

uint64_t governed_id(void)
{
	return tenant_id;
}

void find_uuid(unsigned card, char ret_uuid[96])
{
	struct ll_nvml_device *device = open_card(card);
	CHECK_EQUAL(nv.nvmlDeviceGetUUID(device, ret_uuid, 96), 0);
}

/* loadlined has looked at all that happened before: what its answer says is not older. In one round of its loop it may
 * answer before it sees an end; in the next it has seen it. */
uint64_t charged_on(unsigned card)
{
	char uuid[96];
	struct ll_message_card_row row;
	if (!tenant_id)
		return 0;
	find_uuid(card, uuid);
	for (unsigned look = 0; look < 2; look++) {
		if (!jobs_card_row(tenant_id, uuid, &row))
			return 0;
	}
	return ll_page_used_bytes(jobs_pages(tenant_id)->page, jobs_card(tenant_id, uuid));
}

uint64_t charged(void)
{
	return charged_on(0);
}

/* ---- the most that was ever charged ---- */

static struct {
	pthread_t thread;
	char uuid[96];
	struct jobs_pages pages; /* as they were found before the thread began: jobs_pages is for one thread */
	_Atomic bool is_ended;
	uint64_t most_bytes;
} watch;

static void copy_words(const struct ll_page *page, uint64_t ret_words[LL_PAGE_SLOTS])
{
	for (unsigned i = 0; i < LL_PAGE_SLOTS; i++)
		ret_words[i] = page->slots[i].memory;
}

/* The sum of one moment: what one process has given back and another one taken while the words were read would count
 * twice. False: they have changed meanwhile. */
static bool sum_charges(const struct ll_page *page, unsigned card, uint64_t *ret_bytes)
{
	static uint64_t before[LL_PAGE_SLOTS], after[LL_PAGE_SLOTS];
	copy_words(page, before);
	*ret_bytes = ll_page_used_bytes(page, card);
	copy_words(page, after);
	return memcmp(before, after, sizeof before) == 0;
}

static void *watch_charges(void *arg)
{
	const struct jobs_pages *pages = &watch.pages;
	while (!watch.is_ended) {
		uint64_t bytes;
		unsigned card = ll_orders_find_card(pages->orders, watch.uuid);
		if (card < LL_PAGE_CARDS && sum_charges(pages->page, card, &bytes) && bytes > watch.most_bytes)
			watch.most_bytes = bytes;
	}
	return arg;
}

void begin_watch(void)
{
	find_uuid(0, watch.uuid);
	watch.most_bytes = 0;
	watch.is_ended = false;
	const struct jobs_pages *pages = jobs_pages(tenant_id);
	CHECK(pages);
	if (pages)
		watch.pages = *pages;
	CHECK_EQUAL(pthread_create(&watch.thread, NULL, watch_charges, NULL), 0);
}

uint64_t end_watch(void)
{
	watch.is_ended = true;
	CHECK_EQUAL(pthread_join(watch.thread, NULL), 0);
	return watch.most_bytes;
}

void set_limit(uint64_t limit_bytes)
{
	jobs_set(tenant_id, LL_SET_MEMORY, &(struct ll_limits){.memory_bytes = limit_bytes});
}

/* A figure of card 0 that simctl shows in MiB, behind `before`. */
static uint64_t card_figure(const char *before)
{
	char command[600], line[512];
	double mib = -1;
	const char *folder = getenv("LOADLINE_SIM_LIBRARIES");
	snprintf(command, sizeof command, "%s/loadline-simctl show", folder ? folder : ".");
	/* Under a sanitizer the shell does not start with the library. */
	const char *preload = getenv("LD_PRELOAD");
	char *kept = preload ? strdup(preload) : NULL;
	unsetenv("LD_PRELOAD");
	FILE *out = popen(command, "r");
	if (kept)
		setenv("LD_PRELOAD", kept, 1);
	free(kept);
	CHECK(out);
	while (mib < 0 && fgets(line, sizeof line, out)) {
		const char *figure = strncmp(line, "card 0 ", 7) == 0 ? strstr(line, before) : NULL;
		mib = figure ? strtod(figure + strlen(before), NULL) : -1;
	}
	pclose(out);
	CHECK(mib >= 0);
	return (uint64_t)(mib * (double)MIB);
}

uint64_t card_used(void)
{
	return card_figure(" %, ");
}

uint64_t card_most(void)
{
	return card_figure(", at most ");
}
