/* What a daemon's answers say: those of driver 580, and what must not be taken for an answer. */
#include "test.h"

#include "mps/answers.h"

static void test_kinds_of_answers(void **state)
{
	(void)state;
	assert_int_equal(ll_mps_answer_kind(""), LL_MPS_ANSWER_PLAIN);
	assert_int_equal(ll_mps_answer_kind("100.0\n"), LL_MPS_ANSWER_PLAIN);
	assert_int_equal(ll_mps_answer_kind("ACTIVE"), LL_MPS_ANSWER_PLAIN);
	assert_int_equal(ll_mps_answer_kind("4711\n4712"), LL_MPS_ANSWER_PLAIN);
	assert_int_equal(ll_mps_answer_kind("Unknown command: lspart"), LL_MPS_ANSWER_UNKNOWN);
	assert_int_equal(ll_mps_answer_kind("\nunknown command\n"), LL_MPS_ANSWER_UNKNOWN);
	assert_int_equal(ll_mps_answer_kind("Cannot find MPS control daemon process"), LL_MPS_ANSWER_NO_DAEMON);
	assert_int_equal(ll_mps_answer_kind("Error: Permission denied"), LL_MPS_ANSWER_DENIED);
	assert_int_equal(ll_mps_answer_kind("Invalid device: 7"), LL_MPS_ANSWER_REFUSED);
	assert_int_equal(ll_mps_answer_kind("Failed to start server"), LL_MPS_ANSWER_REFUSED);
}

static void test_lists_of_processes(void **state)
{
	(void)state;
	pid_t pids[2] = {0};
	assert_int_equal(ll_mps_answer_pids("", pids, 2), 0);
	assert_int_equal(ll_mps_answer_pids(" \n", pids, 2), 0);
	assert_int_equal(ll_mps_answer_pids("17\n18\n", pids, 2), 2);
	assert_int_equal(pids[0], 17);
	assert_int_equal(pids[1], 18);
	assert_int_equal(ll_mps_answer_pids("1\n2\n3", pids, 2), 3);
	assert_int_equal(ll_mps_answer_pids("Server 17 not found", pids, 2), -1);
	assert_int_equal(ll_mps_answer_pids("17x", pids, 2), -1);
	assert_int_equal(ll_mps_answer_pids("-1", pids, 2), -1);
	assert_int_equal(ll_mps_answer_pids("0", pids, 2), -1);
}

static void test_states_of_servers(void **state)
{
	(void)state;
	assert_int_equal(ll_mps_answer_status("ACTIVE\n"), LL_MPS_ACTIVE);
	assert_int_equal(ll_mps_answer_status("INITIALIZING"), LL_MPS_INITIALIZING);
	assert_int_equal(ll_mps_answer_status("FAULT"), LL_MPS_FAULT);
	assert_int_equal(ll_mps_answer_status(""), LL_MPS_UNKNOWN);
	assert_int_equal(ll_mps_answer_status("Server 1 not found"), LL_MPS_UNKNOWN);
	assert_string_equal(ll_mps_status_text(LL_MPS_FAULT), "fault");
}

static void test_percentages(void **state)
{
	(void)state;
	double percent = -1;
	assert_true(ll_mps_answer_percent("50.0\n", &percent));
	assert_true(percent > 49.9 && percent < 50.1);
	assert_true(ll_mps_answer_percent("100", &percent));
	assert_true(ll_mps_answer_percent("25%", &percent));
	percent = -1;
	assert_false(ll_mps_answer_percent("", &percent));
	assert_false(ll_mps_answer_percent("101", &percent));
	assert_false(ll_mps_answer_percent("-1", &percent));
	assert_false(ll_mps_answer_percent("nan", &percent));
	assert_false(ll_mps_answer_percent("Server 1 not found", &percent));
}

static void test_sizes(void **state)
{
	(void)state;
	uint64_t bytes = 1;
	assert_true(ll_mps_answer_bytes("8G", &bytes));
	assert_int_equal(bytes, UINT64_C(8) << 30);
	assert_true(ll_mps_answer_bytes("512M\n", &bytes));
	assert_int_equal(bytes, UINT64_C(512) << 20);
	assert_true(ll_mps_answer_bytes("0", &bytes));
	assert_int_equal(bytes, 0);
	assert_false(ll_mps_answer_bytes("Memory limit is not set", &bytes));
	assert_false(ll_mps_answer_bytes("8X", &bytes));
	assert_false(ll_mps_answer_bytes("-1G", &bytes));
}

static void test_a_size_told_in_whole_gib_is_what_was_asked_for(void **state)
{
	(void)state;
	const uint64_t mib = 1 << 20;
	assert_true(ll_mps_answer_same_bytes(4096 * mib, 4096 * mib));
	assert_true(ll_mps_answer_same_bytes(4096 * mib, 4500 * mib));
	assert_false(ll_mps_answer_same_bytes(4096 * mib, 5120 * mib));
	assert_false(ll_mps_answer_same_bytes(0, 512 * mib));
	assert_true(ll_mps_answer_same_bytes(512 * mib, 512 * mib));
}

static void test_rows_of_ps(void **state)
{
	(void)state;
	const char *text = "PID       ID    SERVER    DEVICE             NAMESPACE     COMMAND\n"
			   "9741      0     6472      GPU-cb1213a3-d6a4  4026531836    ./nbody\n"
			   "\n"
			   "9743      1     6472      GPU-cb1213a3-d6a4  4026531836    python train.py\n";
	struct ll_mps_client client;
	assert_false(ll_mps_answer_ps(&text, &client));
	assert_true(ll_mps_answer_ps(&text, &client));
	assert_int_equal(client.pid, 9741);
	assert_int_equal(client.server, 6472);
	assert_string_equal(client.card, "GPU-cb1213a3-d6a4");
	assert_string_equal(client.command, "./nbody");
	assert_false(ll_mps_answer_ps(&text, &client));
	assert_true(ll_mps_answer_ps(&text, &client));
	assert_int_equal(client.pid, 9743);
	assert_string_equal(client.command, "python");
	assert_string_equal(text, "");
}

static void test_only_zero_is_done(void **state)
{
	(void)state;
	assert_true(ll_mps_answer_is_done("0\n"));
	assert_true(ll_mps_answer_is_done(" 0 "));
	assert_false(ll_mps_answer_is_done(""));
	assert_false(ll_mps_answer_is_done("0 clients"));
	assert_false(ll_mps_answer_is_done("1"));
	assert_false(ll_mps_answer_is_done("00"));
	assert_false(ll_mps_answer_is_done("Unknown command"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_kinds_of_answers),
	    cmocka_unit_test(test_lists_of_processes),
	    cmocka_unit_test(test_states_of_servers),
	    cmocka_unit_test(test_percentages),
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_a_size_told_in_whole_gib_is_what_was_asked_for),
	    cmocka_unit_test(test_rows_of_ps),
	    cmocka_unit_test(test_only_zero_is_done),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
