#include "governed.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "ledger/tenant.h"

enum { TENANTS = 128 };

static uint64_t tenant_id;

static void set_environment(uint64_t limit_bytes, bool counts_context, enum governed_way way)
{
	char text[LL_RUN_TEXT_SIZE];
	tenant_id = 0x10000 + (uint64_t)getpid();
	struct ll_run_settings settings = {
	    .id = tenant_id,
	    .tenant = "test",
	    .priority = LL_PRIORITY_NORMAL,
	    .memory_limit_bytes = limit_bytes,
	    .counts_context = counts_context,
	    .is_strict = way == GOVERNED_STRICTLY,
	    .is_evictable = way == GOVERNED_EVICTABLY,
	};
	snprintf(settings.folder, sizeof settings.folder, "%s", getenv("LOADLINE_SIM_DIR"));
	CHECK_EQUAL(ll_run_settings_write(&settings, text), 0);
	CHECK_EQUAL(setenv(LL_RUN_VARIABLE, text, 1), 0);
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

/* The ledger of that card; its row in it, or TENANTS. */
static struct ll_ledger *open_ledger(unsigned card, struct ll_tenant_info *ret_tenant)
{
	char uuid[96];
	struct ll_ledger *ledger;
	struct ll_tenant_info tenants[TENANTS];
	struct ll_nvml_device *device = open_card(card);
	CHECK_EQUAL(nv.nvmlDeviceGetUUID(device, uuid, sizeof uuid), 0);
	if (ll_ledger_open(getenv("LOADLINE_SIM_DIR"), uuid, false, &ledger, NULL) < 0)
		return NULL;
	ll_ledger_sweep(ledger);
	size_t count = ll_tenant_list(ledger, tenants, TENANTS);
	*ret_tenant = (struct ll_tenant_info){.row = TENANTS};
	for (size_t i = 0; i < count; i++) {
		if (tenants[i].id == tenant_id)
			*ret_tenant = tenants[i];
	}
	return ledger;
}

uint64_t charged_on(unsigned card)
{
	struct ll_tenant_info tenant;
	struct ll_ledger *ledger = open_ledger(card, &tenant);
	if (!ledger)
		return 0;
	ll_ledger_close(ledger);
	return tenant.memory_used_bytes;
}

uint64_t charged(void)
{
	return charged_on(0);
}

/* ---- the most that was ever charged ---- */

static struct {
	pthread_t thread;
	struct ll_ledger *ledger;
	_Atomic bool is_ended;
	uint64_t most_bytes;
} watch;

static void *watch_charges(void *arg)
{
	struct ll_tenant_info tenants[TENANTS];
	while (!watch.is_ended) {
		size_t count = ll_tenant_list(watch.ledger, tenants, TENANTS);
		for (size_t i = 0; i < count; i++) {
			if (tenants[i].id == tenant_id && tenants[i].memory_used_bytes > watch.most_bytes)
				watch.most_bytes = tenants[i].memory_used_bytes;
		}
	}
	return arg;
}

/* Makes the ledger, if no program has done it yet. */
void begin_watch(void)
{
	char uuid[96];
	struct ll_nvml_device *device = open_card(0);
	CHECK_EQUAL(nv.nvmlDeviceGetUUID(device, uuid, sizeof uuid), 0);
	CHECK_EQUAL(ll_ledger_open(getenv("LOADLINE_SIM_DIR"), uuid, true, &watch.ledger, NULL), 0);
	watch.most_bytes = 0;
	watch.is_ended = false;
	CHECK_EQUAL(pthread_create(&watch.thread, NULL, watch_charges, NULL), 0);
}

uint64_t end_watch(void)
{
	watch.is_ended = true;
	CHECK_EQUAL(pthread_join(watch.thread, NULL), 0);
	ll_ledger_close(watch.ledger);
	return watch.most_bytes;
}

void set_limit(uint64_t limit_bytes)
{
	struct ll_tenant_info tenant;
	struct ll_ledger *ledger = open_ledger(0, &tenant);
	CHECK(ledger && tenant.row < TENANTS);
	ll_tenant_set_memory_limit(ledger, tenant.row, limit_bytes);
	ll_ledger_close(ledger);
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
