#include "launching.h"

#include <sys/mman.h>

#include "ledger/contender.h"

#include "base/err.h"

#define MS UINT64_C(1000000)

void govern_by(struct ll_run_settings settings)
{
	char text[LL_RUN_TEXT_SIZE];
	const char *world = getenv("LOADLINE_SIM_DIR");
	CHECK(world);
	if (!settings.priority)
		settings.priority = LL_PRIORITY_NORMAL;
	snprintf(settings.folder, sizeof settings.folder, "%s", world);
	CHECK_EQUAL(ll_run_settings_write(&settings, text), 0);
	CHECK_EQUAL(setenv(LL_RUN_VARIABLE, text, 1), 0);
}

static void write_uuid(char text[64])
{
	struct ll_cu_uuid uuid;
	ll_cu_device device;
	CHECK_EQUAL(cu.cuDeviceGet(&device, 0), 0);
	CHECK_EQUAL(cu.cuDeviceGetUuid ? cu.cuDeviceGetUuid(&uuid, device) : cu.cuDeviceGetUuid_v1(&uuid, device), 0);
	size_t length = (size_t)snprintf(text, 64, "GPU-");
	for (size_t i = 0; i < sizeof uuid.bytes; i++)
		length +=
		    (size_t)snprintf(text + length, 64 - length, "%s%02x",
				     i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", (unsigned char)uuid.bytes[i]);
}

struct ll_ledger *card_ledger(void)
{
	static struct ll_ledger *ledger;
	struct ll_err err = {0};
	char uuid[64];
	if (ledger)
		return ledger;
	write_uuid(uuid);
	if (ll_ledger_open(getenv("LOADLINE_SIM_DIR"), uuid, true, &ledger, &err))
		give_up(__FILE__, __LINE__, err.text);
	return ledger;
}

struct ll_ledger_tenant *tenant(uint64_t id)
{
	struct ll_ledger_file *file = card_ledger()->file;
	for (size_t i = 0; i < LL_LEDGER_TENANTS; i++) {
		if (file->tenants[i].id == id)
			return &file->tenants[i];
	}
	return NULL;
}

struct ll_ledger_slot *claim_of(uint64_t id)
{
	struct ll_ledger_file *file = card_ledger()->file;
	struct ll_ledger_tenant *row = tenant(id);
	for (size_t i = 0; row && i < LL_LEDGER_CLAIMS; i++) {
		if (file->slots[i].token && file->slots[i].tenant_row == 1 + (uint32_t)(row - file->tenants))
			return &file->slots[i];
	}
	return NULL;
}

void *share_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	return memory;
}

uint64_t gpu_ns(uint64_t id)
{
	struct ll_ledger_tenant *row = tenant(id);
	return row ? row->gpu_time_ns : 0;
}

uint64_t virtual_ns(uint64_t id)
{
	struct ll_ledger_tenant *row = tenant(id);
	return row ? row->virtual_time_ns : 0;
}

int64_t tokens_ns(uint64_t id)
{
	struct ll_ledger_tenant *row = tenant(id);
	if (!row) {
		give_up(__FILE__, __LINE__, "no such tenant");
		return 0;
	}
	return row->tokens_ns;
}

struct ll_cu_context *begin_program(uint64_t id, unsigned cap_permille, struct ll_cu_function **ret_work,
				    struct ll_cu_stream **ret_stream)
{
	govern_by((struct ll_run_settings){.id = id, .tenant = "test", .compute_cap_permille = cap_permille});
	struct ll_cu_context *context = open_context(0);
	*ret_work = get_kernel("work_ns");
	*ret_stream = new_stream();
	launch_timed(*ret_work, *ret_stream, 100000, 1, 32);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	return context;
}

void check_rests(uint64_t id)
{
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	WAIT_FOR(claim_of(id) && !claim_of(id)->want_since_ns);
}

void owe(uint64_t id, uint64_t ns)
{
	check_rests(id);
	tenant(id)->tokens_ns = -(int64_t)ns;
}

void launch_work(struct ll_cu_stream *stream, uint64_t ns)
{
	launch_timed(get_kernel("work_ns"), stream, ns, 1, 32);
}

bool is_bounded(uint64_t id, uint64_t kernel_ns)
{
	struct ll_ledger_slot *claim = claim_of(id);
	return claim && claim->want_since_ns && claim->queued_ns < 20 * MS + 5 * kernel_ns;
}

static struct look look_at(uint64_t id, uint64_t kernel_ns)
{
	double gpu = (double)gpu_ns(id), weight = tenant(id)->weight_permille;
	const struct ll_ledger_slot *claim = claim_of(id);
	return (struct look){.wants =
				 is_bounded(id, kernel_ns) && ll_now_ns() - claim->heartbeat_ns < LL_TURN_DEAF_NS / 2,
			     .gpu_ns = gpu,
			     .lifted_ns = (double)virtual_ns(id) - gpu * 1000 / (weight > 0 ? weight : 1000)};
}

bool have_shared(struct shares *shares, uint64_t total_ns)
{
	struct look now[2];
	bool is_unbroken = true;
	for (unsigned i = 0; i < 2; i++) {
		now[i] = look_at(1 + i, shares->kernel_ns);
		double lift_ns = now[i].lifted_ns - shares->seen[i].lifted_ns;
		is_unbroken = is_unbroken && now[i].wants && shares->seen[i].wants && lift_ns < 0.1 * MS;
	}
	for (unsigned i = 0; i < 2; i++) {
		shares->got_ns[i] += is_unbroken ? now[i].gpu_ns - shares->seen[i].gpu_ns : 0;
		shares->seen[i] = now[i];
	}
	return shares->got_ns[0] + shares->got_ns[1] >= (double)total_ns && shares->got_ns[0] > 0 &&
	       shares->got_ns[1] > 0;
}
