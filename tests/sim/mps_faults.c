/* What goes wrong with MPS: clients and servers that are lost, commands that hang, daemons that die. */
#include "mps_setup.h"

#include <sys/wait.h>
#include <unistd.h>

static void make_another(void)
{
	struct ll_cu_context *context;
	open_context(0);
	ready();
	while (!page->values[0]) {
		sleep_ms(1);
		page->values[0] = (int)cu.cuCtxSynchronize();
	}
	page->values[2] = (int)cu.cuCtxCreate(&context, 0, 0);
	page->values[3] = 1;
	while (!page->is_over)
		sleep_ms(1);
}

static void try_context(void)
{
	struct ll_cu_context *context;
	open_cuda();
	page->values[1] = (int)cu.cuInit(0);
	if (!page->values[1])
		page->values[1] = (int)cu.cuCtxCreate(&context, 0, 0);
}

/* How making a context ends for a new process. */
static int new_context(void)
{
	join(spawn(try_context));
	return page->values[1];
}

static bool is_alive(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == 0;
}

TEST_IN(in_mps, NULL, a_terminated_client_loses_its_contexts_and_nobody_else_does)
{
	char text[200];
	pid_t victim = spawn_ready(make_another), neighbour = spawn_ready(stay_busy);
	int server = ask_number("get_server_list");
	snprintf(text, sizeof text, "terminate_client %d %d", server, (int)victim);
	expect(text, "0\n");
	WAIT_FOR(page->values[0] == LL_CUDA_ERROR_MPS_CLIENT_TERMINATED);
	WAIT_FOR(page->values[3] == 1);
	CHECK_EQUAL(page->values[2], 0);
	/* The process lives on, and so do the others and the server. */
	CHECK(is_alive(victim) && is_alive(neighbour));
	expect(about("get_server_status", server), "ACTIVE\n");
	CHECK_EQUAL(new_context(), 0);
	CHECK_EQUAL(mps_ask(about("terminate_client 1", 2), 30, text, sizeof text), 0);
	CHECK(strcmp(text, "Server 1 not found\nServer 1 not found!\n1\n") == 0);
	snprintf(text, sizeof text, "terminate_client %d 1", server);
	expect(text, "201\n");
	kill_now(neighbour);
	kill_now(victim);
}

TEST_IN(in_mps, NULL, a_killed_client_leaves_its_neighbour_running)
{
	pid_t victim = spawn_ready(stay_busy), neighbour = spawn_ready(work_until_it_fails);
	int server = ask_number("get_server_list");
	kill_now(victim);
	char text[200], wanted[40];
	snprintf(wanted, sizeof wanted, "%d\n", (int)neighbour);
	WAIT_FOR(mps_ask(about("get_client_list", server), 30, text, sizeof text) == 0 && strcmp(text, wanted) == 0);
	CHECK_EQUAL(new_context(), 0);
	CHECK_EQUAL(page->values[0], 0);
	page->is_over = 1;
	join(neighbour);
	CHECK_EQUAL(page->values[0], 0);
}

TEST_IN(in_mps, NULL, a_server_in_fault_refuses_clients_until_the_old_ones_are_gone)
{
	pid_t client = spawn_ready(work_until_it_fails);
	int server = ask_number("get_server_list");
	CHECK_EQUAL(simctl("mps fault CUDA_ERROR_ILLEGAL_ADDRESS"), 0);
	WAIT_FOR(page->values[0] == LL_CUDA_ERROR_ILLEGAL_ADDRESS);
	expect(about("get_server_status", server), "FAULT\n");
	CHECK_EQUAL(new_context(), LL_CUDA_ERROR_MPS_SERVER_NOT_READY);
	kill_now(client);
	WAIT_FOR(new_context() == 0);
	expect(about("get_server_status", server), "ACTIVE\n");
}

/* One client's own fault is everybody's on that card. */
TEST_IN(in_mps, NULL, a_clients_fault_reaches_its_neighbours)
{
	char command[100];
	pid_t neighbour = spawn_ready(work_until_it_fails), culprit = spawn_ready(stay_with_context);
	snprintf(command, sizeof command, "card 0 xid 31 pid %d", (int)culprit);
	CHECK_EQUAL(simctl(command), 0);
	WAIT_FOR(page->values[0] == LL_CUDA_ERROR_ILLEGAL_ADDRESS);
	expect(about("get_server_status", ask_number("get_server_list")), "FAULT\n");
	kill_now(culprit);
	kill_now(neighbour);
	WAIT_FOR(new_context() == 0);
}

TEST_IN(in_mps, NULL, a_fault_lasts_as_long_as_asked)
{
	expect("start_server -uid 0", "");
	int server = ask_number("get_server_list");
	char text[100];
	WAIT_FOR(mps_ask(about("get_server_status", server), 30, text, sizeof text) == 0 && *text == 'A');
	CHECK_EQUAL(simctl("mps fault for 1h"), 0);
	expect(about("get_server_status", server), "FAULT\n");
	CHECK_EQUAL(simctl("mps fault for 0s"), 0);
	expect(about("get_server_status", server), "ACTIVE\n");
}

TEST_IN(in_mps, NULL, clients_are_refused_when_the_scenario_says_so)
{
	CHECK_EQUAL(simctl("mps refuse count 1"), 0);
	CHECK_EQUAL(new_context(), LL_CUDA_ERROR_MPS_SERVER_NOT_READY);
	CHECK_EQUAL(new_context(), 0);
	CHECK_EQUAL(simctl("mps refuse CUDA_ERROR_MPS_CONNECTION_FAILED"), 0);
	CHECK_EQUAL(new_context(), LL_CUDA_ERROR_MPS_CONNECTION_FAILED);
	CHECK_EQUAL(simctl("mps heal"), 0);
	CHECK_EQUAL(new_context(), 0);
	CHECK(simctl("mps refuse nonsense") != 0);
	CHECK(simctl("mps nonsense") != 0);
	CHECK(simctl("mps die nobody") != 0);
}

TEST_IN(in_mps, NULL, a_command_that_hangs_holds_up_nobody_else)
{
	static const char *const commands[] = {"set_default_active_thread_percentage 10", "terminate_client 1 2",
					       "quit -t 0"};
	char text[200], fault[200];
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		snprintf(fault, sizeof fault, "mps hang %.*s 1h count 1", (int)strcspn(commands[i], " "), commands[i]);
		CHECK_EQUAL(simctl(fault), 0);
		CHECK_EQUAL(mps_ask(commands[i], 1, text, sizeof text), 124);
		/* Nobody else is held up, and what hung was not done. */
		expect("get_default_active_thread_percentage", "100.0\n");
	}
	/* Late is not never. */
	CHECK_EQUAL(simctl("mps hang get_server_list 100ms"), 0);
	expect("get_server_list", "");
	expect("quit", "");
}

static void hang_terminating(void)
{
	char text[200];
	ready();
	mps_ask(about_two("terminate_client", page->values[2], "1"), 30, text, sizeof text);
}

TEST_IN(in_mps, NULL, clients_are_terminated_one_at_a_time)
{
	char text[200];
	pid_t client = spawn_ready(stay_with_context);
	page->values[2] = ask_number("get_server_list");
	CHECK_EQUAL(simctl("mps hang terminate_client 1h count 1"), 0);
	pid_t first = spawn_ready(hang_terminating);
	WAIT_FOR(run_outside("grep -q Cmd:terminate_client \"$CUDA_MPS_LOG_DIRECTORY\"/control.log") == 0);
	snprintf(text, sizeof text, "terminate_client %d %d", page->values[2], (int)client);
	expect(text, "Another client is being terminated\n");
	kill_now(first);
	kill_now(client);
}

TEST_IN(in_mps, NULL, clients_fail_when_their_server_dies_and_the_next_one_gets_a_new_server)
{
	pid_t client = spawn_ready(work_until_it_fails);
	int server = ask_number("get_server_list");
	CHECK_EQUAL(simctl("mps die server"), 0);
	WAIT_FOR(page->values[0] == LL_CUDA_ERROR_MPS_RPC_FAILURE);
	/* The daemon starts another. */
	WAIT_FOR(new_context() == 0);
	CHECK(ask_number("get_server_list") != server);
	kill_now(client);
}

TEST_IN(in_mps, NULL, a_dead_daemon_leaves_nothing_stuck)
{
	char text[200];
	unsigned long long before = used_bytes();
	pid_t client = spawn_ready(work_until_it_fails);
	CHECK_EQUAL(simctl("mps die daemon"), 0);
	WAIT_FOR(mps_ask("get_server_list", 30, text, sizeof text) == 1);
	/* Its server goes with it, and a new client goes without MPS. */
	WAIT_FOR(page->values[0] == LL_CUDA_ERROR_MPS_RPC_FAILURE);
	kill_now(client);
	WAIT_FOR(used_bytes() == before);
	CHECK_EQUAL(new_context(), 0);
	/* What it left in its folder is in nobody's way. */
	CHECK_EQUAL(mps_start("-d", text, sizeof text), 0);
	expect("get_server_list", "");
	client = spawn_ready(stay_with_context);
	CHECK(ask_number("get_server_list") > 0);
	kill_now(client);
	expect("quit", "");
	CHECK(sim_answers());
}

static void work_unless_refused(void)
{
	struct ll_cu_context *context;
	ll_cu_deviceptr memory;
	open_cuda();
	if (cu.cuInit(0) || cu.cuCtxCreate(&context, 0, 0) || cu.cuMemAlloc(&memory, MIB))
		return;
	for (int i = 0; i < 2000; i++) {
		if (cu.cuMemsetD8(memory, 0, MIB) || cu.cuCtxSynchronize())
			return;
	}
}

/* A process of the round, chosen in turn, is killed at a time that the machine's own unsteadiness spreads. */
TEST_IN(in_mps, NULL, whoever_dies_at_whatever_moment_nothing_stays)
{
	static const char *const deaths[] = {"mps die server", "mps die daemon", "mps fault"};
	enum { ROUNDS = 24, CLIENTS = 3 };
	char text[200];
	for (unsigned round = 0; round < ROUNDS; round++) {
		pid_t clients[CLIENTS];
		mps_start("-d", text, sizeof text);
		for (int i = 0; i < CLIENTS; i++)
			clients[i] = spawn(work_unless_refused);
		sleep_ms(round % 8 * 3);
		if (round % 4 < 3)
			CHECK_EQUAL(simctl(deaths[round % 4]), 0);
		else
			kill_now(clients[0]);
		for (int i = round % 4 == 3; i < CLIENTS; i++)
			kill_now(clients[i]);
	}
	CHECK_EQUAL(simctl("mps die daemon"), 0);
	WAIT_FOR(simctl("show | grep -q '^context\\|^mps server'") == 1);
	CHECK(sim_answers());
	CHECK_EQUAL(mps_start("-d", text, sizeof text), 0);
	CHECK_EQUAL(new_context(), 0);
	expect("quit", "");
}

TEST_IN(in_mps, "card 0 mode prohibited\n", a_server_that_cannot_start_refuses_its_clients)
{
	CHECK_EQUAL(new_context(), LL_CUDA_ERROR_MPS_CONNECTION_FAILED);
	CHECK_EQUAL(simctl("card 0 mode default"), 0);
	CHECK_EQUAL(new_context(), 0);
}
