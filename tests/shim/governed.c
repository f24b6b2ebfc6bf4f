#include "governed.h"

#include <dlfcn.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "ledger/tenant.h"

enum { TENANTS = 128 };

static uint64_t tenant_id;

static void set_environment(uint64_t limit_bytes, bool counts_context, bool is_evictable)
{
	char text[LL_RUN_TEXT_SIZE];
	tenant_id = 0x10000 + (uint64_t)getpid();
	struct ll_run_settings settings = {
	    .id = tenant_id,
	    .tenant = "test",
	    .priority = LL_PRIORITY_NORMAL,
	    .memory_limit_bytes = limit_bytes,
	    .counts_context = counts_context,
	    .is_evictable = is_evictable,
	};
	snprintf(settings.folder, sizeof settings.folder, "%s", getenv("LOADLINE_SIM_DIR"));
	CHECK_EQUAL(ll_run_settings_write(&settings, text), 0);
	CHECK_EQUAL(setenv(LL_RUN_VARIABLE, text, 1), 0);
	/* It is loaded here; the tools that tests start are not governed, and may not have a sanitizer in them. */
	CHECK_EQUAL(unsetenv("LD_PRELOAD"), 0);
}

void govern(uint64_t limit_bytes)
{
	set_environment(limit_bytes, true, false);
}

void govern_without_context(uint64_t limit_bytes)
{
	set_environment(limit_bytes, false, false);
}

void govern_evictable(uint64_t limit_bytes)
{
	set_environment(limit_bytes, true, true);
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

void set_limit(uint64_t limit_bytes)
{
	struct ll_tenant_info tenant;
	struct ll_ledger *ledger = open_ledger(0, &tenant);
	CHECK(ledger && tenant.row < TENANTS);
	ll_tenant_set_memory_limit(ledger, tenant.row, limit_bytes);
	ll_ledger_close(ledger);
}

uint64_t card_used(void)
{
	char command[600], line[512];
	double mib = -1;
	const char *folder = getenv("LOADLINE_SIM_LIBRARIES");
	snprintf(command, sizeof command, "%s/loadline-simctl show", folder ? folder : ".");
	FILE *out = popen(command, "r");
	CHECK(out);
	while (mib < 0 && fgets(line, sizeof line, out)) {
		const char *used = strncmp(line, "card 0 ", 7) == 0 ? strstr(line, " %, ") : NULL;
		mib = used ? strtod(used + 4, NULL) : -1;
	}
	pclose(out);
	CHECK(mib >= 0);
	return (uint64_t)(mib * (double)MIB);
}
