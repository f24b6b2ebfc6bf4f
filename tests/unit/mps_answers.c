/* What a daemon's answers say: those of driver 580, and what must not be taken for an answer. */
#include "test.h"

#include "base/scope.h"
#include "base/strbuf.h"
#include "mps/mps.h"

TEST(test_kinds_of_answers)
{
	assert_int_equal(ll_mps_answer_kind(""), LL_MPS_ANSWER_PLAIN);
	assert_int_equal(ll_mps_answer_kind("100.0\n"), LL_MPS_ANSWER_PLAIN);
	assert_int_equal(ll_mps_answer_kind("ACTIVE"), LL_MPS_ANSWER_PLAIN);
	assert_int_equal(ll_mps_answer_kind("4711\n4712"), LL_MPS_ANSWER_PLAIN);
	assert_int_equal(ll_mps_answer_kind("Unknown command: lspart"), LL_MPS_ANSWER_UNKNOWN);
	assert_int_equal(ll_mps_answer_kind("Cannot send command to MPS control daemon process"), LL_MPS_ANSWER_BUSY);
	assert_int_equal(ll_mps_answer_kind("\nunknown command\n"), LL_MPS_ANSWER_UNKNOWN);
	assert_int_equal(ll_mps_answer_kind("Cannot find MPS control daemon process"), LL_MPS_ANSWER_NO_DAEMON);
	assert_int_equal(ll_mps_answer_kind("Error: Permission denied"), LL_MPS_ANSWER_DENIED);
	assert_int_equal(ll_mps_answer_kind("Invalid device: 7"), LL_MPS_ANSWER_REFUSED);
	assert_int_equal(ll_mps_answer_kind("Failed to start server"), LL_MPS_ANSWER_REFUSED);
	assert_int_equal(ll_mps_answer_kind("Unknown command \"lspart\"\n"), LL_MPS_ANSWER_UNKNOWN);
	assert_int_equal(ll_mps_answer_kind("Server 1 not found\n"), LL_MPS_ANSWER_REFUSED);
	assert_int_equal(ll_mps_answer_kind("Server 1 not found\nServer 1 not found!\n1\n"), LL_MPS_ANSWER_REFUSED);
	assert_int_equal(ll_mps_answer_kind("Server 1665 ACTIVE\n1662 not found"), LL_MPS_ANSWER_PLAIN);
	assert_int_equal(ll_mps_answer_kind("A user id (UID) is required to start a new server\n"),
			 LL_MPS_ANSWER_REFUSED);
	assert_int_equal(ll_mps_answer_kind("Invalid priority value - must be 0 or 1!\n"), LL_MPS_ANSWER_REFUSED);
}

TEST(test_lists_of_processes)
{
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

TEST(test_states_of_servers)
{
	assert_int_equal(ll_mps_answer_status("ACTIVE\n"), LL_MPS_ACTIVE);
	assert_int_equal(ll_mps_answer_status("INITIALIZING"), LL_MPS_INITIALIZING);
	assert_int_equal(ll_mps_answer_status("FAULT"), LL_MPS_FAULT);
	assert_int_equal(ll_mps_answer_status(""), LL_MPS_UNKNOWN);
	assert_int_equal(ll_mps_answer_status("Server 1 not found"), LL_MPS_UNKNOWN);
	assert_string_equal(ll_mps_status_text(LL_MPS_FAULT), "fault");
}

TEST(test_percentages)
{
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

TEST(test_sizes)
{
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

TEST(test_a_size_told_in_whole_gib_is_what_was_asked_for)
{
	const uint64_t mib = 1 << 20;
	assert_true(ll_mps_answer_same_bytes(4096 * mib, 4096 * mib));
	assert_true(ll_mps_answer_same_bytes(4096 * mib, 4500 * mib));
	assert_false(ll_mps_answer_same_bytes(4096 * mib, 5120 * mib));
	assert_false(ll_mps_answer_same_bytes(0, 512 * mib));
	assert_true(ll_mps_answer_same_bytes(512 * mib, 512 * mib));
}

TEST(test_rows_of_ps)
{
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

TEST(test_rows_of_driver_580_s_ps)
{
	const char *text =
	    "PID       ID        SERVER         DEVICE                    NAMESPACE      COMMAND        \n"
	    "1662      1         1665           GPU-bbf46f4f-6f72-1eec    4026531836     /opt/bin/python3\n";
	struct ll_mps_client client;
	assert_false(ll_mps_answer_ps(&text, &client));
	assert_true(ll_mps_answer_ps(&text, &client));
	assert_int_equal(client.pid, 1662);
	assert_int_equal(client.server, 1665);
	assert_string_equal(client.card, "GPU-bbf46f4f-6f72-1eec");
	assert_string_equal(client.command, "/opt/bin/python3");
	text = "Server 1662 not found\nServer 1662 not found\n\n";
	while (*text)
		assert_false(ll_mps_answer_ps(&text, &client));
}

TEST(test_who_is_gone_needs_no_other_try)
{
	assert_true(ll_mps_answer_is_gone("201\n"));
	assert_true(ll_mps_answer_is_busy("Another client is being terminated\n"));
	assert_false(ll_mps_answer_is_busy("0\n"));
	assert_false(ll_mps_answer_is_busy("201\n"));
	assert_true(ll_mps_answer_is_gone("Server 1 not found\nServer 1 not found!\n1\n"));
	assert_false(ll_mps_answer_is_gone("0\n"));
	assert_false(ll_mps_answer_is_gone("1"));
	assert_false(ll_mps_answer_is_gone("1201"));
	assert_false(ll_mps_answer_is_gone("2010"));
	assert_false(ll_mps_answer_is_gone(""));
}

TEST(test_a_share_is_whole_pairs_and_never_fewer_than_eight)
{
	/* Measured on a card of 132 SMs: doc/facts.md, "MPS". */
	static const struct {
		double percent;
		unsigned sms;
	} rows[] = {{100, 132}, {99, 130}, {75, 98}, {50, 66}, {33, 42}, {25, 32}, {10, 12}, {5, 8}, {3, 8}, {1, 8}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(ll_mps_share_sms(132, rows[i].percent), rows[i].sms);
	assert_int_equal(ll_mps_share_sms(100, 29), 28);
	assert_int_equal(ll_mps_share_sms(100, 58), 58);
	assert_int_equal(ll_mps_share_sms(6, 1), 6);
	assert_true(ll_mps_share_is_floor(132, 5));
	assert_false(ll_mps_share_is_floor(132, 10));
	assert_false(ll_mps_share_is_floor(132, 100));
}

static void assert_said(double percent, const char *wanted)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_mps_share_add(&text, "0", 132, percent);
	assert_string_equal(text.buf, wanted);
}

TEST(test_a_share_is_said_in_sms)
{
	assert_said(50, "50 % of card 0's 132 SMs: 66 for each client");
	assert_said(25, "25 % of card 0's 132 SMs: 32 for each client, because MPS rounds down to pairs of SMs");
	assert_said(3, "3 % of card 0's 132 SMs: 8 for each client, which is 6.1 %: MPS gives no client fewer");
}

TEST(test_only_zero_is_done)
{
	assert_true(ll_mps_answer_is_done("0\n"));
	assert_true(ll_mps_answer_is_done(" 0 "));
	assert_false(ll_mps_answer_is_done(""));
	assert_false(ll_mps_answer_is_done("0 clients"));
	assert_false(ll_mps_answer_is_done("1"));
	assert_false(ll_mps_answer_is_done("00"));
	assert_false(ll_mps_answer_is_done("Unknown command"));
}
