#include "launching.h"

#include <sys/mman.h>

#define MS UINT64_C(1000000)
#define DEAF_NS (50 * MS) /* a program that has not posted for so long loses its turn */

void govern_by(struct ll_run_settings settings)
{
	jobs_register(settings);
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

const char *card_uuid(void)
{
	static char uuid[64];
	if (!uuid[0])
		write_uuid(uuid);
	return uuid;
}

struct ll_page_slot *claim_of(uint64_t id)
{
	return jobs_slot(id, card_uuid());
}

unsigned count_claims(uint64_t id)
{
	return jobs_count_slots(id, card_uuid());
}

const struct ll_orders_slot *order_of(uint64_t id)
{
	const struct ll_page_slot *slot = claim_of(id);
	const struct jobs_pages *pages = jobs_pages(id);
	return slot ? &pages->orders->slots[slot - pages->page->slots] : NULL;
}

uint64_t charged_bytes(uint64_t id)
{
	return LL_MEMORY_USED(claim_of(id)->memory) * LL_MEMORY_UNIT;
}

bool has_note(uint64_t id)
{
	char note[64];
	ll_page_read_note(claim_of(id), note);
	return note[0];
}

void *share_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	return memory;
}

static struct ll_page_card *page_card(uint64_t id)
{
	unsigned card = jobs_card(id, card_uuid());
	return card < LL_PAGE_CARDS ? &jobs_pages(id)->page->cards[card] : NULL;
}

uint64_t gpu_ns(uint64_t id)
{
	struct ll_page_card *card = page_card(id);
	return card ? card->gpu_time_ns : 0;
}

uint64_t virtual_ns(uint64_t id)
{
	struct ll_message_card_row row;
	return jobs_card_row(id, card_uuid(), &row) ? row.virtual_time_ns : 0;
}

int64_t tokens_ns(uint64_t id)
{
	struct ll_message_card_row row;
	CHECK(jobs_card_row(id, card_uuid(), &row));
	return row.tokens_ns;
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

/* On a busy host a debt may be paid off before it is looked at: then it is made again. */
static bool is_owing(uint64_t id, uint64_t ns)
{
	struct ll_limits limits;
	int64_t has_ns = tokens_ns(id);
	page_card(id)->gpu_time_ns += (uint64_t)(has_ns + (int64_t)ns);
	ll_orders_read_limits(jobs_pages(id)->orders, &limits);
	jobs_set(id, LL_SET_COMPUTE, &limits); /* loadlined looks at the job */
	return tokens_ns(id) <= 0;
}

void owe(uint64_t id, uint64_t ns)
{
	check_rests(id);
	int64_t has_ns = tokens_ns(id);
	if (has_ns == INT64_MAX || has_ns <= -(int64_t)ns)
		return;
	WAIT_FOR(is_owing(id, ns));
}

void owe_for_long(uint64_t id)
{
	set_cap(id, 1);
	owe(id, 60 * MS);
}

void set_cap(uint64_t id, unsigned permille)
{
	jobs_set(id, LL_SET_COMPUTE, &(struct ll_limits){.compute_permille = permille});
}

void launch_work(struct ll_cu_stream *stream, uint64_t ns)
{
	launch_timed(get_kernel("work_ns"), stream, ns, 1, 32);
}

bool is_bounded(uint64_t id, uint64_t kernel_ns)
{
	struct ll_page_slot *claim = claim_of(id);
	return claim && claim->want_since_ns && claim->queued_ns < 20 * MS + 5 * kernel_ns;
}

static struct look look_at(uint64_t id, uint64_t kernel_ns)
{
	struct ll_limits limits;
	ll_orders_read_limits(jobs_pages(id)->orders, &limits);
	double gpu = (double)gpu_ns(id), weight = limits.weight_permille;
	const struct ll_page_slot *claim = claim_of(id);
	return (struct look){.wants = is_bounded(id, kernel_ns) && ll_now_ns() - claim->posted_ns < DEAF_NS / 2,
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
