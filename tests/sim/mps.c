/* MPS as users meet it: the daemon's commands and files, what clients get, how their kernels run. */
#include "mps_setup.h"

#include <unistd.h>

#define MS UINT64_C(1000000)

static bool has_file(const char *variable, const char *name)
{
	char path[400];
	snprintf(path, sizeof path, "%s/%s", getenv(variable), name);
	return access(path, F_OK) == 0;
}

TEST_IN(in_folder, NULL, every_command_is_answered_and_only_while_there_is_a_daemon)
{
	static const char *const files[] = {"control", "control_lock", "control_privileged", "log",
					    "nvidia-cuda-mps-control.pid"};
	char text[4000];
	CHECK_EQUAL(mps_ask("get_server_list", 30, text, sizeof text), 1);
	CHECK(strcmp(text, "Cannot find MPS control daemon process\n") == 0);
	CHECK_EQUAL(mps_start("-d", text, sizeof text), 0);
	CHECK(strcmp(text, "") == 0);
	CHECK_EQUAL(mps_start("-d", text, sizeof text), 1);
	CHECK(strcmp(text, "An instance of this daemon is already running\n") == 0);
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		CHECK(has_file("CUDA_MPS_PIPE_DIRECTORY", files[i]));
	CHECK(has_file("CUDA_MPS_LOG_DIRECTORY", "control.log"));
	expect("get_server_list", "");
	expect("get_default_active_thread_percentage", "100.0\n");
	expect("set_default_active_thread_percentage 25", "25.0\n");
	expect("get_default_active_thread_percentage", "25.0\n");
	expect("set_default_active_thread_percentage 0", "25.0\n");
	expect("set_default_active_thread_percentage 101", "25.0\n");
	expect("get_default_device_pinned_mem_limit 0", "");
	expect("set_default_device_pinned_mem_limit 0 2G", "");
	expect("get_default_device_pinned_mem_limit 0", "2G\n");
	expect("set_default_device_pinned_mem_limit 0 512M", "");
	expect("get_default_device_pinned_mem_limit 0", "512M\n");
	expect("set_default_device_pinned_mem_limit 99 2G", "");
	expect("get_default_client_priority", "0\n");
	expect("set_default_client_priority 1", "");
	expect("get_default_client_priority", "1\n");
	expect("set_default_client_priority 7", "Invalid priority value - must be 0 or 1!\n");
	expect("get_server_status 1", "Server 1 not found\n");
	expect("shutdown_server 1", "Server 1 not found\n");
	expect("ps -p 1", "Server 1 not found\nServer 1 not found\n\n");
	expect("start_server", "A user id (UID) is required to start a new server\n");
	expect("nonsense 1 2", "Unknown command \"nonsense\"\n");
	expect("help", "Unknown command \"help\"\n");
	expect("lspart", "Unknown command \"lspart\"\n");
	expect("sm_partition add 0 1", "Unknown command \"sm_partition\"\n");
	expect("device_query",
	       "Default\n"
	       "Device Ordinal  PCI IDs        UUID                                      Name                       "
	       "       Attributes\n"
	       "0               0000:18.00.00  GPU-10ad11fe-0200-4200-8200-000000000001  NVIDIA H200                "
	       "       N/A\n");
	CHECK_EQUAL(mps_ask("get_server_list\nget_default_client_priority", 30, text, sizeof text), 0);
	CHECK(strcmp(text, "1\n") == 0);
	expect("quit", "");
	CHECK(!has_file("CUDA_MPS_PIPE_DIRECTORY", "control"));
	CHECK(!has_file("CUDA_MPS_PIPE_DIRECTORY", "nvidia-cuda-mps-control.pid"));
	CHECK_EQUAL(mps_ask("quit", 30, text, sizeof text), 1);
}

static unsigned list(ll_nvml_result (*call)(struct ll_nvml_device *, unsigned int *, struct ll_nvml_process *),
		     unsigned *ret_pid)
{
	struct ll_nvml_process found[8];
	unsigned count = 8;
	CHECK_EQUAL(call(open_card(0), &count, found), 0);
	*ret_pid = count ? found[0].pid : 0;
	return count;
}

TEST_IN(in_mps, NULL, the_first_client_starts_a_server_and_both_are_listed)
{
	char text[4000], row[120];
	unsigned pid = 0;
	unsigned long long before = used_bytes();
	pid_t client = spawn_ready(stay_with_context);
	int server = ask_number("get_server_list");
	expect(about("get_server_status", server), "ACTIVE\n");
	CHECK_EQUAL(ask_number(about("get_client_list", server)), client);
	snprintf(row, sizeof row, "[0] 00:18.0, NVIDIA H200\n%d.0\n", (int)client);
	expect("get_device_client_list", row);
	CHECK_EQUAL(mps_ask("ps", 30, text, sizeof text), 0);
	snprintf(row, sizeof row, "\n%-9d 0         %-14d GPU-10ad11fe-0200-4200    ", (int)client, server);
	CHECK(strstr(text, row) != NULL);
	open_card(0);
	/* Server and client compute, the client is a client: nvidia-smi shows C and M+C. */
	CHECK_EQUAL(list(nv.nvmlDeviceGetComputeRunningProcesses, &pid), 2);
	CHECK_EQUAL(list(nv.nvmlDeviceGetMPSComputeRunningProcesses, &pid), 1);
	CHECK_EQUAL(pid, client);
	CHECK(has_file("CUDA_MPS_LOG_DIRECTORY", "server.log"));
	kill_now(client);
	WAIT_FOR(used_bytes() - before == 66 * MIB);
	expect(about("get_client_list", server), "");
	CHECK_EQUAL(ask_number("get_server_list"), server);
	expect(about("shutdown_server", server), "");
	WAIT_FOR(mps_ask("get_server_list", 30, text, sizeof text) == 0 && !*text);
	CHECK_EQUAL(used_bytes(), before);
	snprintf(row, sizeof row, "Server %d not found\n", server);
	expect(about("get_server_status", server), row);
}

/* One kernel of 20 ms, and what it says about itself. */
static void run_beside(void)
{
	open_context(0);
	struct record *record = new_records(1);
	struct ll_cu_stream *stream = new_stream();
	launch_spin(get_kernel("spin_ns"), stream, 20 * MS, record, 0, 0, 1, 1);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	page->record.start_ns = record->start_ns;
	page->record.end_ns = record->end_ns;
	page->record.gap_ns = record->gap_ns;
}

static void measure_gap(void)
{
	pid_t busy = spawn_ready(stay_busy);
	join(spawn(run_beside));
	kill_now(busy);
	CHECK(page->record.end_ns - page->record.start_ns >= 20 * MS);
}

static void body_sliced(void)
{
	measure_gap();
	CHECK(page->record.gap_ns > 2 * MS);
}

static void body_concurrent(void)
{
	measure_gap();
	CHECK(page->record.gap_ns < MS / 100);
	CHECK_NEAR(page->record.end_ns - page->record.start_ns, 20 * MS, MS / 100);
}

TEST_IN(in_mps, NULL, clients_take_turns_with_a_process_outside)
{
	pid_t busy = spawn_ready(stay_busy);
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
	join(spawn(run_beside));
	CHECK(page->record.gap_ns > 2 * MS);
	kill_now(busy);
}

TEST(kernels_of_two_clients_run_at_the_same_time)
{
	in_folder(NULL, body_sliced);
	in_mps(NULL, body_concurrent);
}

/* What a client finds, without stack: SMs, memory. */
static void look_around(void)
{
	open_context(0);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_STACK_SIZE, 0), 0);
	CHECK_EQUAL(cu.cuDeviceGetAttribute(&page->values[0], LL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), 0);
	tell_used_bytes();
}

static void check_share(const char *percent, int sms)
{
	if (percent)
		setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent, 1);
	join(spawn(look_around));
	CHECK_EQUAL(page->values[0], sms);
}

TEST_IN(in_mps, NULL, a_client_gets_its_percentage_of_sms_and_the_memory_that_goes_with_it)
{
	static const struct {
		const char *percent;
		int sms;
		double mib;
	} rows[] = {{"100", 132, 256.8}, {"50", 66, 144.8}, {"25", 32, 82.8},
		    {"10", 12, 48.8},    {"5", 8, 42.8},    {"1", 8, 42}};
	unsigned long long before = used_bytes();
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		check_share(rows[i].percent, rows[i].sms);
		CHECK_NEAR((double)(page->used_bytes - before) / MIB, 66 + rows[i].mib, 0.1);
	}
	/* No more than the server gives, and no server learns of a new default. */
	unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	int server = ask_number("get_server_list");
	expect("set_default_active_thread_percentage 10", "10.0\n");
	check_share(NULL, 132);
	expect(about_two("set_active_thread_percentage", server, "50"), "50.0\n");
	expect(about("get_active_thread_percentage", server), "50.0\n");
	check_share(NULL, 66);
	check_share("75", 66);
	check_share("25", 32);
	check_share("nonsense", 66);
	unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	expect(about_two("shutdown_server", server, "-f"), "");
	char text[100];
	WAIT_FOR(mps_ask("get_server_list", 30, text, sizeof text) == 0 && !*text);
	check_share(NULL, 12);
}

static void keep_share(void)
{
	int sms = 0;
	open_context(0);
	ready();
	while (!page->is_over)
		sleep_ms(1);
	CHECK_EQUAL(cu.cuDeviceGetAttribute(&sms, LL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), 0);
	CHECK_EQUAL(sms, 132);
}

TEST_IN(in_mps, NULL, a_new_percentage_reaches_new_clients_only)
{
	pid_t client = spawn_ready(keep_share);
	expect(about_two("set_active_thread_percentage", ask_number("get_server_list"), "25"), "25.0\n");
	check_share(NULL, 32);
	page->is_over = 1;
	join(client);
}

static void try_memory(void)
{
	size_t free_bytes, total_bytes;
	ll_cu_deviceptr a;
	open_context(0);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total_bytes), 0);
	page->values[0] = (int)(free_bytes / MIB);
	page->values[1] = (int)(total_bytes / MIB);
	page->values[2] = (int)cu.cuMemAlloc(&a, free_bytes / (2 * MIB) * (2 * MIB));
	page->values[3] = (int)cu.cuMemAlloc(&a, 4 * MIB);
}

static void check_limit(const char *limit, int free_mib)
{
	if (limit)
		setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", limit, 1);
	join(spawn(try_memory));
	CHECK_NEAR(page->values[0], free_mib, 2);
	CHECK_EQUAL(page->values[1], 143155);
	CHECK_EQUAL(page->values[2], 0);
	CHECK_EQUAL(page->values[3], LL_CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_IN(in_mps, NULL, a_memory_limit_is_kept_and_the_total_stays)
{
	const int all_mib = 143155 - 66 - 521;
	check_limit("0=2G", 1534);
	check_limit("GPU-10ad11fe-0200-4200-8200-000000000001=3G", 1534 + 1024);
	/* A card that is not there, or a value that is none: no limit at all. */
	check_limit("0=2G,1=2G", all_mib);
	check_limit("0=2", all_mib);
	unsetenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
	int server = ask_number("get_server_list");
	expect(about_two("set_device_pinned_mem_limit", server, "0 4G"), "");
	expect(about_two("get_device_pinned_mem_limit", server, "0"), "4G\n");
	check_limit(NULL, 1534 + 2048);
	check_limit("0=3G", 1534 + 1024);
	check_limit("0=8G", 1534 + 2048);
}

static void see_one_card(void)
{
	char bus[32];
	int count = 0;
	open_cuda();
	page->values[0] = (int)cu.cuInit(0);
	if (page->values[0])
		return;
	CHECK_EQUAL(cu.cuDeviceGetCount(&count), 0);
	CHECK_EQUAL(cu.cuDeviceGetPCIBusId(bus, sizeof bus, 0), 0);
	page->values[1] = count;
	page->values[2] = (int)strtol(bus + 5, NULL, 16);
}

TEST_IN(in_folder, "cards 2\n", clients_see_the_cards_of_their_daemon)
{
	char text[200];
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	CHECK_EQUAL(mps_start("-d", text, sizeof text), 0);
	unsetenv("CUDA_VISIBLE_DEVICES");
	join(spawn(see_one_card));
	CHECK_EQUAL(page->values[1], 1);
	CHECK_EQUAL(page->values[2], 0x28);
	/* A client counts what its server shows. */
	setenv("CUDA_VISIBLE_DEVICES", "0", 1);
	join(spawn(see_one_card));
	CHECK_EQUAL(page->values[2], 0x28);
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	join(spawn(see_one_card));
	CHECK_EQUAL(page->values[0], LL_CUDA_ERROR_NO_DEVICE);
}

static void try_context(void)
{
	struct ll_cu_context *context;
	open_cuda();
	page->values[0] = (int)cu.cuInit(0);
	if (!page->values[0])
		page->values[0] = (int)cu.cuCtxCreate(&context, 0, 0);
}

TEST_IN(in_mps, "card 0 mode exclusive\n", clients_share_a_card_in_exclusive_mode_with_nobody_else)
{
	pid_t first = spawn_ready(stay_with_context), second = spawn_ready(stay_with_context);
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
	join(spawn(try_context));
	CHECK_EQUAL(page->values[0], LL_CUDA_ERROR_DEVICE_UNAVAILABLE);
	kill_now(first);
	kill_now(second);
}

TEST_IN(in_mps, NULL, a_wrong_pipe_folder_means_no_mps_and_no_error)
{
	unsigned pid = 0;
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
	pid_t stranger = spawn_ready(stay_with_context);
	open_card(0);
	CHECK_EQUAL(list(nv.nvmlDeviceGetMPSComputeRunningProcesses, &pid), 0);
	CHECK_EQUAL(list(nv.nvmlDeviceGetComputeRunningProcesses, &pid), 1);
	CHECK_EQUAL(pid, stranger);
	kill_now(stranger);
}

static void stay_as_another_user(void)
{
	setenv("LOADLINE_SIM_UID", "12345", 1);
	stay_with_context();
}

static void announce_and_stay(void)
{
	open_context(0);
	page->values[0] = 1;
	while (!page->is_over)
		sleep_ms(1);
}

TEST_IN(in_mps, NULL, another_user_waits_until_the_first_ones_clients_are_gone)
{
	pid_t other = spawn_ready(stay_as_another_user);
	int server = ask_number("get_server_list");
	pid_t own = spawn(announce_and_stay);
	/* Its wish has been heard when the server takes no more of the other user's clients. */
	WAIT_FOR(simctl("show | grep -q 'user 12345, ACTIVE, closing'") == 0);
	CHECK_EQUAL(page->values[0], 0);
	CHECK_EQUAL(ask_number("get_server_list"), server);
	kill_now(other);
	WAIT_FOR(page->values[0] == 1);
	int next = ask_number("get_server_list");
	CHECK(next != server);
	CHECK_EQUAL(ask_number(about("get_client_list", next)), own);
	page->is_over = 1;
	join(own);
}

TEST_IN(in_mps, NULL, quit_waits_for_clients_unless_told_how_long)
{
	char text[200];
	pid_t client = spawn_ready(stay_with_context);
	CHECK_EQUAL(mps_ask("quit", 1, text, sizeof text), 124);
	CHECK_EQUAL(mps_ask("quit -t 0", 30, text, sizeof text), 0);
	CHECK(!has_file("CUDA_MPS_PIPE_DIRECTORY", "control"));
	kill_now(client);
}

TEST_IN(in_folder, "driver 610.10 cuda 13.4\n", static_partitions_come_with_cuda_13_1)
{
	char text[4000], name[100] = "";
	CHECK_EQUAL(mps_start("-d -S", text, sizeof text), 0);
	join(spawn(try_context));
	CHECK_EQUAL(page->values[0], LL_CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	CHECK_EQUAL(mps_ask("sm_partition add 0 5", 30, text, sizeof text), 0);
	CHECK_EQUAL(sscanf(text, "Partition %99s created", name), 1);
	CHECK(strncmp(name, "GPU-10ad11fe-0200-4200-8200-000000000001/", 41) == 0);
	setenv("CUDA_MPS_SM_PARTITION", name, 1);
	check_share(NULL, 40);
	CHECK_EQUAL(mps_ask("sm_partition add 0 12", 30, text, sizeof text), 0);
	CHECK(strstr(text, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION") != NULL);
	CHECK_EQUAL(mps_ask("lspart", 30, text, sizeof text), 0);
	CHECK(strstr(text, "11     5      92    40") != NULL);
	expect("quit", "");
}

TEST_IN(in_folder, NULL, two_hundred_times_started_and_stopped_leaves_nothing)
{
	char line[700];
	snprintf(line, sizeof line,
		 "for i in $(seq 200); do %s/nvidia-cuda-mps-control -d && echo quit | timeout 30 "
		 "%s/nvidia-cuda-mps-control || exit 1; done",
		 getenv("LOADLINE_SIM_LIBRARIES"), getenv("LOADLINE_SIM_LIBRARIES"));
	CHECK_EQUAL(run_outside(line), 0);
	CHECK(!has_file("CUDA_MPS_PIPE_DIRECTORY", "control"));
	CHECK(sim_answers());
}
