/* A program of `loadline run` that finds no ledger it can use: where limits were asked for it gets no context and says
 * why, else it goes on without, and never falls over it. */
#include "governed.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/skipped.h"
#include "base/clock.h"
#include "ledger/claim.h"
#include "ledger/layout.h"
#include "ledger/ledger.h"
#include "ledger/tenant.h"
#include "lost_claim.h"

enum { CLAIMS = 256, TENANTS = 128 };

static char path[400], uuid[96];

/* Where card 0's ledger is to be; the file is made if asked. */
static void prepare(bool is_made)
{
	struct ll_ledger *ledger;
	struct ll_nvml_device *card = open_card(0);
	CHECK_EQUAL(nv.nvmlDeviceGetUUID(card, uuid, sizeof uuid), 0);
	snprintf(path, sizeof path, "%s/%s.ledger", getenv("LOADLINE_SIM_DIR"), uuid);
	if (!is_made)
		return;
	CHECK_EQUAL(ll_ledger_open(getenv("LOADLINE_SIM_DIR"), uuid, true, &ledger, NULL), 0);
	ll_ledger_close(ledger);
}

static int saved_stderr;
static FILE *said;

static void begin_hearing(void)
{
	said = tmpfile();
	CHECK(said != NULL);
	saved_stderr = dup(STDERR_FILENO);
	CHECK(dup2(fileno(said), STDERR_FILENO) == STDERR_FILENO);
}

/* How many lines were written to the standard error stream since; all of them say why contexts are refused. */
static unsigned end_hearing(void)
{
	char line[1024];
	unsigned count = 0;
	CHECK(dup2(saved_stderr, STDERR_FILENO) == STDERR_FILENO);
	for (rewind(said); fgets(line, sizeof line, said); count++) {
		CHECK(strncmp(line, "loadline: no contexts on card 0 under the limits", 48) == 0);
		print_message("%s", line);
	}
	fclose(said);
	return count;
}

static void check_refused(void)
{
	struct ll_cu_context *context;
	struct ll_cu_mem_allocation_prop prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						 .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	ll_cu_mem_handle handle;
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	begin_hearing();
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), LL_CUDA_ERROR_NOT_PERMITTED);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), LL_CUDA_ERROR_NOT_PERMITTED);
	CHECK_EQUAL(cu.cuMemCreate(&handle, 2 * MIB, &prop, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(end_hearing(), 1);
}

/* As setpriv and gosu do it, here after cuInit: the simulated world is its owner's alone. */
static void body_other_user(void)
{
	prepare(true);
	govern(600 * MIB);
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
	check_refused();
}

static void use_refused(void)
{
	govern(600 * MIB);
	check_refused();
}

/* Everything works as it does without limits. */
static void use_ungoverned(void)
{
	pid_t limited = spawn(use_refused);
	join(limited);
	ll_cu_deviceptr address;
	size_t free_bytes, total_bytes;
	unsigned count = 8;
	struct ll_nvml_process list[8];
	struct ll_nvml_memory memory;
	struct ll_nvml_device *card = open_card(0);
	govern(0);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(cu.cuMemAlloc(&address, GIB), 0);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, GIB, stream), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), 0);
	for (int i = 0; i < 10; i++)
		launch_timed(get_kernel("work_ns"), stream, 10000, 1, 32);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total_bytes), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetMemoryInfo(card, &memory), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses(card, &count, list), 0);
}

static bool is_charged(void)
{
	ll_cu_deviceptr address;
	CHECK_EQUAL(cu.cuMemAlloc(&address, MIB), 0);
	bool is_charged = charged() > 0;
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	return is_charged;
}

static void write_at(off_t offset, const void *bytes, size_t count)
{
	int fd = open(path, O_WRONLY);
	if (fd < 0 || pwrite(fd, bytes, count, offset) != (ssize_t)count)
		give_up(__FILE__, __LINE__, path);
	if (fd >= 0)
		close(fd);
}

static void body_truncated(void)
{
	prepare(true);
	CHECK_EQUAL(truncate(path, 4000), 0);
	use_ungoverned();
	struct stat st;
	CHECK(stat(path, &st) == 0 && st.st_size == 4000);
}

static void body_empty(void)
{
	prepare(true);
	CHECK_EQUAL(truncate(path, 0), 0);
	use_ungoverned();
}

static void body_version(void)
{
	uint32_t version = 77;
	prepare(true);
	write_at(8, &version, sizeof version);
	/* A program of that version has a claim: one that nobody uses is made anew. */
	struct flock claim = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LL_LOCK_SLOTS + 3, .l_len = 1};
	int fd = open(path, O_RDWR);
	CHECK(fd >= 0);
	CHECK_EQUAL(fcntl(fd, F_OFD_SETLK, &claim), 0);
	use_ungoverned();
}

static void body_garbage(void)
{
	char garbage[4096];
	memset(garbage, 0xa5, sizeof garbage);
	prepare(true);
	write_at(0, garbage, sizeof garbage);
	use_ungoverned();
}

static void body_folder(void)
{
	prepare(false);
	CHECK_EQUAL(mkdir(path, 0700), 0);
	use_ungoverned();
}

/* A link may lead anywhere. */
static void body_link(void)
{
	prepare(false);
	CHECK_EQUAL(symlink("/etc/passwd", path), 0);
	use_ungoverned();
}

static void body_open_to_others(void)
{
	prepare(true);
	CHECK_EQUAL(chmod(path, 0666), 0);
	use_ungoverned();
}

/* Others have all claims of card 0, whose ledger is the caller's to close. */
static struct ll_ledger *fill_ledger(struct ll_claim *claims[CLAIMS])
{
	struct ll_ledger *ledger;
	struct ll_claim_wish wish = {.priority = LL_PRIORITY_NORMAL, .tenant = "other"};
	prepare(true);
	CHECK_EQUAL(ll_ledger_open(getenv("LOADLINE_SIM_DIR"), uuid, true, &ledger, NULL), 0);
	for (int i = 0; i < CLAIMS; i++)
		CHECK_EQUAL(ll_claim_take(ledger, &wish, "0", &claims[i], NULL), 0);
	return ledger;
}

static void body_full(void)
{
	static struct ll_claim *claims[CLAIMS];
	struct ll_ledger *ledger = fill_ledger(claims);
	use_ungoverned();
	CHECK_EQUAL(ll_ledger_list(ledger, NULL, 0), CLAIMS);
	for (int i = 0; i < CLAIMS; i++)
		ll_claim_release(claims[i]);
	WAIT_FOR(is_charged()); /* from then on it is governed */
	ll_ledger_close(ledger);
}

/* A limited program asks again later. */
static void body_full_for_now(void)
{
	static struct ll_claim *claims[CLAIMS];
	struct ll_cu_context *context;
	ll_cu_deviceptr address;
	struct ll_ledger *ledger = fill_ledger(claims);
	use_refused();
	for (int i = 0; i < CLAIMS; i++)
		ll_claim_release(claims[i]);
	WAIT_FOR(cu.cuCtxCreate(&context, 0, 0) == LL_CUDA_SUCCESS);
	CHECK_EQUAL(cu.cuMemAlloc(&address, GIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	ll_ledger_close(ledger);
}

static bool has_said(const char *text)
{
	char all[4096];
	ssize_t length = pread(fileno(said), all, sizeof all - 1, 0);
	all[length < 0 ? 0 : length] = '\0';
	return strstr(all, text);
}

/* By the tenant's row, for `status`. */
static bool is_told_lost(struct ll_ledger *ledger)
{
	struct ll_tenant_info tenants[TENANTS];
	size_t count = ll_tenant_list(ledger, tenants, TENANTS);
	for (size_t i = 0; i < count; i++) {
		if (tenants[i].lost_since_ns && tenants[i].lost_since_ns <= ll_now_ns())
			return true;
	}
	return false;
}

static void body_lost_for_now(void)
{
	static struct ll_claim *claims[CLAIMS], *last;
	static bool kept[1024];
	ll_cu_deviceptr address;
	struct ll_ledger *ledger = fill_ledger(claims);
	note_ledgers(kept);
	ll_claim_release(claims[0]);
	govern(600 * MIB);
	open_context(0);
	begin_hearing();
	WAIT_FOR((last = take_from_program(ledger, kept)));
	WAIT_FOR(
	    has_said("loadline: the limits of `loadline run` are not in force on card 0: the program lost its claim"));
	CHECK(is_told_lost(ledger));
	CHECK_EQUAL(cu.cuMemAlloc(&address, MIB), LL_CUDA_ERROR_OUT_OF_MEMORY); /* nobody could hold it to the limit */
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, MIB, NULL), LL_CUDA_ERROR_OUT_OF_MEMORY);
	ll_claim_release(last);
	WAIT_FOR(has_said("loadline: the limits of `loadline run` are in force again on card 0"));
	CHECK(!is_told_lost(ledger));
	CHECK_EQUAL(cu.cuMemAlloc(&address, MIB), 0);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	CHECK(dup2(saved_stderr, STDERR_FILENO) == STDERR_FILENO);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
}

/* `loadline run` had no limit, `loadline set` gave one: the tenant's row, which others of it keep, says which holds. */
static void body_lost_under_a_limit_set_later(void)
{
	static struct ll_claim *claims[CLAIMS], *last;
	static bool kept[1024];
	ll_cu_deviceptr address;
	unsigned row;
	struct ll_ledger *ledger = fill_ledger(claims);
	govern(0);
	struct ll_tenant_wish tenant = {.id = governed_id(), .name = "test", .priority = LL_PRIORITY_NORMAL};
	CHECK_EQUAL(ll_tenant_join(ledger, &tenant, &row, NULL), 0);
	note_ledgers(kept);
	ll_claim_release(claims[0]);
	open_context(0);
	set_limit(600 * MIB);
	begin_hearing();
	WAIT_FOR((last = take_from_program(ledger, kept)));
	WAIT_FOR(is_told_lost(ledger));
	CHECK_EQUAL(cu.cuMemAlloc(&address, MIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	set_limit(0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, MIB), 0);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	CHECK(dup2(saved_stderr, STDERR_FILENO) == STDERR_FILENO);
	ll_claim_release(last);
}

/* Processes that get nothing do not use up the claims. */
static void body_given_back(void)
{
	struct ll_ledger *ledger;
	struct ll_cu_context *context;
	ll_cu_deviceptr address;
	prepare(true);
	CHECK_EQUAL(ll_ledger_open(getenv("LOADLINE_SIM_DIR"), uuid, true, &ledger, NULL), 0);
	govern(100 * MIB);
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
		CHECK_EQUAL(ll_ledger_list(ledger, NULL, 0), 0);
	}
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(ll_ledger_list(ledger, NULL, 0), 0);
	set_limit(600 * MIB);
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), 0);
	CHECK_EQUAL(ll_ledger_list(ledger, NULL, 0), 1);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	CHECK_EQUAL(cu.cuMemAlloc(&address, GIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	/* What it has keeps its claim. */
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(ll_ledger_list(ledger, NULL, 0), 1);
	launch_timed(get_kernel("work_ns"), new_stream(), 10000, 1, 32);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	ll_ledger_close(ledger);
}

static void body_full_of_tenants(void)
{
	struct ll_ledger *ledger;
	unsigned row;
	prepare(true);
	CHECK_EQUAL(ll_ledger_open(getenv("LOADLINE_SIM_DIR"), uuid, true, &ledger, NULL), 0);
	for (uint64_t i = 0; i < TENANTS; i++) {
		struct ll_tenant_wish wish = {.id = 1 + i, .name = "other", .priority = LL_PRIORITY_NORMAL};
		CHECK_EQUAL(ll_tenant_join(ledger, &wish, &row, NULL), 0);
	}
	use_ungoverned();
	ll_ledger_close(ledger);
}

static void body_no_settings(void)
{
	prepare(false);
	CHECK_EQUAL(setenv(LL_RUN_VARIABLE, "garbage", 1), 0);
	check_refused();
	CHECK(access(path, F_OK) != 0);
}

/* An unreadable folder, or none that can be made: the settings name it. */
static void body_no_folder(void)
{
	struct ll_run_settings settings = {.id = 5,
					   .tenant = "test",
					   .priority = LL_PRIORITY_NORMAL,
					   .memory_limit_bytes = MIB,
					   .counts_context = true};
	char text[LL_RUN_TEXT_SIZE];
	snprintf(settings.folder, sizeof settings.folder, "/proc/no/such/folder");
	CHECK_EQUAL(ll_run_settings_write(&settings, text), 0);
	CHECK_EQUAL(setenv(LL_RUN_VARIABLE, text, 1), 0);
	check_refused();
}

/* A page whose header is right and nothing else: whatever is refused or not, all comes back. */
static void body_scrambled(void)
{
	enum { BYTES = 4096 + 128 * 256 + 256 * 512 - 128 };
	static unsigned char garbage[BYTES];
	ll_cu_deviceptr address;
	prepare(true);
	unsigned seed = (unsigned)getpid();
	print_message("seed %u\n", seed);
	srand(seed);
	for (size_t i = 0; i < BYTES; i++)
		garbage[i] = (unsigned char)rand();
	write_at(128, garbage, BYTES);
	govern(GIB);
	struct ll_cu_context *context = open_context(0);
	struct ll_cu_stream *stream = new_stream();
	for (int i = 0; i < 10; i++) {
		if (cu.cuMemAlloc(&address, MIB) == 0)
			CHECK_EQUAL(cu.cuMemFree(address), 0);
		launch_timed(get_kernel("work_ns"), stream, 10000, 1, 32);
	}
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
}

/* Settings of a newer loadline have keys that this library does not know: they may be limits. */
static void body_newer_settings(void)
{
	char text[2 * LL_RUN_TEXT_SIZE];
	prepare(false);
	govern(600 * MIB);
	snprintf(text, sizeof text, "future=7;%s", getenv(LL_RUN_VARIABLE));
	CHECK_EQUAL(setenv(LL_RUN_VARIABLE, text, 1), 0);
	check_refused();
}

/* What is missing is made: by whoever comes first. */
static void body_missing(void)
{
	ll_cu_deviceptr address;
	prepare(false);
	CHECK(access(path, F_OK) != 0);
	govern(600 * MIB);
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, GIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
}

/* Its file loses its name while it is in use: it goes on with what it has. */
static void body_removed(void)
{
	ll_cu_deviceptr address;
	prepare(true);
	govern(600 * MIB);
	open_context(0);
	CHECK_EQUAL(unlink(path), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 72 * MIB), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, MIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	launch_timed(get_kernel("work_ns"), new_stream(), 10000, 1, 32);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
}

#define TEST(name, body)                                                                                               \
	static void name(void **state)                                                                                 \
	{                                                                                                              \
		(void)state;                                                                                           \
		in_world(NULL, body);                                                                                  \
	}

TEST(a_truncated_ledger_is_done_without, body_truncated)
TEST(an_empty_ledger_is_done_without, body_empty)
TEST(a_ledger_of_another_version_is_done_without, body_version)
TEST(a_corrupted_ledger_is_done_without, body_garbage)
TEST(a_folder_in_its_place_is_done_without, body_folder)
TEST(a_link_in_its_place_is_done_without, body_link)
TEST(a_ledger_that_others_may_write_is_done_without, body_open_to_others)
TEST(a_full_ledger_is_done_without, body_full)
TEST(a_limited_program_has_a_context_as_soon_as_a_claim_is_free, body_full_for_now)
TEST(a_program_that_loses_its_claim_says_so, body_lost_for_now)
TEST(a_program_that_loses_its_claim_is_held_to_a_limit_that_was_set_later, body_lost_under_a_limit_set_later)
TEST(a_refused_context_gives_its_claim_back, body_given_back)
TEST(a_ledger_full_of_tenants_is_done_without, body_full_of_tenants)
TEST(under_garbled_settings_there_are_no_contexts, body_no_settings)
TEST(a_limited_program_without_a_folder_for_ledgers_is_refused, body_no_folder)
static void a_limited_program_that_became_another_user_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0)
		SKIP_TEST("only root may become another user");
	in_world(NULL, body_other_user);
}

TEST(a_scrambled_ledger_stops_nobody, body_scrambled)
TEST(settings_with_a_key_that_is_not_known_are_refused, body_newer_settings)
TEST(a_missing_ledger_is_made, body_missing)
TEST(a_ledger_removed_in_use_still_counts, body_removed)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_truncated_ledger_is_done_without),
	    cmocka_unit_test(an_empty_ledger_is_done_without),
	    cmocka_unit_test(a_ledger_of_another_version_is_done_without),
	    cmocka_unit_test(a_corrupted_ledger_is_done_without),
	    cmocka_unit_test(a_folder_in_its_place_is_done_without),
	    cmocka_unit_test(a_link_in_its_place_is_done_without),
	    cmocka_unit_test(a_ledger_that_others_may_write_is_done_without),
	    cmocka_unit_test(a_full_ledger_is_done_without),
	    cmocka_unit_test(a_limited_program_has_a_context_as_soon_as_a_claim_is_free),
	    cmocka_unit_test(a_program_that_loses_its_claim_says_so),
	    cmocka_unit_test(a_program_that_loses_its_claim_is_held_to_a_limit_that_was_set_later),
	    cmocka_unit_test(a_refused_context_gives_its_claim_back),
	    cmocka_unit_test(a_ledger_full_of_tenants_is_done_without),
	    cmocka_unit_test(under_garbled_settings_there_are_no_contexts),
	    cmocka_unit_test(a_limited_program_without_a_folder_for_ledgers_is_refused),
	    cmocka_unit_test(a_limited_program_that_became_another_user_is_refused),
	    cmocka_unit_test(a_scrambled_ledger_stops_nobody),
	    cmocka_unit_test(settings_with_a_key_that_is_not_known_are_refused),
	    cmocka_unit_test(a_missing_ledger_is_made),
	    cmocka_unit_test(a_ledger_removed_in_use_still_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
