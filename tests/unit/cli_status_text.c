#include "cli/status/status.h"

#include "base/clock.h"
#include "base/scope.h"
#include "base/utf8.h"
#include "test.h"

static struct ll_card card = {.label = "12", .name = "NVIDIA H200 NVL with a long name", .uuid = "GPU-1"};

static struct ll_status_card reading(uint64_t now_ns)
{
	return (struct ll_status_card){
	    .card = &card,
	    .is_simulated = true,
	    .util_percent = 87,
	    .has_memory = true,
	    .memory = {.used_bytes = UINT64_C(100) << 30, .total_bytes = UINT64_C(140) << 30},
	    .power_watts = 512,
	    .power_limit_watts = 700,
	    .celsius = 61,
	    .has_mode = true,
	    .mode = LL_MODE_EXCLUSIVE_PROCESS,
	    .now_ns = now_ns,
	};
}

static size_t widest_line(const char *text)
{
	size_t widest = 0;
	for (size_t length; *text; text += length + (text[length] == '\n')) {
		length = strcspn(text, "\n");
		char *line = strndup(text, length);
		size_t width = ll_utf8_columns(line);
		widest = width > widest ? width : widest;
		free(line);
	}
	return widest;
}

TEST(cards_fit_a_terminal_with_all_their_numbers_and_are_always_called_simulated)
{
	static const struct {
		unsigned width;
		const char *expected;
	} cases[] = {
	    {80, "card  name                  util  memory       power      temp  mode      claims\n"
		 "12    NVIDIA H (simulated)  87 %  100/140 GiB  512/700 W  61 C  exclusiv  0\n"},
	    {74, "card  name                   util  memory       power      temp  mode\n"
		 "12    NVIDIA H2 (simulated)  87 %  100/140 GiB  512/700 W  61 C  exclusive\n"},
	    {60, "card  name                                 mode       claims\n"
		 "  util  memory       power      temp\n"
		 "12    NVIDIA H200 NVL with a (simulated)   exclusive  0\n"
		 "  87 %  100/140 GiB  512/700 W  61 C\n"},
	    {40, "card  name                     mode\n"
		 "  util  memory       power      temp\n"
		 "12    NVIDIA H200 (simulated)  exclusive\n"
		 "  87 %  100/140 GiB  512/700 W  61 C\n"},
	};
	struct ll_status_card status = reading(0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		ll_status_add_text(&text, &status, 1, cases[i].width, false);
		assert_true(widest_line(text.buf) <= cases[i].width);
		assert_string_equal(text.buf, cases[i].expected);
	}
}

TEST(who_is_not_held_to_its_limits_is_told)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	struct ll_status_job job = {
	    .row.job_number = 1, .told.job.token[0] = 71, .told.job.tenant = "stray", .lost_since_ns = 5 * LL_NS_PER_S};
	struct ll_status_card status = reading(17 * LL_NS_PER_S);
	status.jobs = &job;
	status.job_count = 1;
	static const bool is_long[] = {false, true};
	for (size_t i = 0; i < 2; i++) {
		ll_strbuf_reset(&text);
		ll_status_add_text(&text, &status, 1, 40, is_long[i]);
		assert_non_null(strstr(text.buf, "tenant stray: "));
		assert_non_null(strstr(text.buf, "NOT HELD TO ITS LIMITS for 12 s: a process has lost its claim\n"));
	}
}

TEST(table_is_whole_where_there_is_room)
{
	static const unsigned widths[] = {0, 200};
	struct ll_status_card status = reading(0);
	for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		ll_status_add_text(&text, &status, 1, widths[i], false);
		assert_non_null(strstr(text.buf, "NVIDIA H200 NVL with a long name (simulated)  87 %"));
		assert_non_null(strstr(text.buf, "  exclusive-process  0\n"));
	}
}

TEST(tenant_has_its_share_of_the_time_between_two_readings)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	struct ll_status_job before[] = {
	    {.row.job_number = 2, .told.job.token[0] = 71, .row.gpu_time_ns = 5 * LL_NS_PER_S}};
	struct ll_status_job now[] = {{.row.job_number = 1, .told.job.token[0] = 72, .told.job.tenant = "new"},
				      {.row.job_number = 2,
				       .told.job.token[0] = 71,
				       .told.job.tenant = "old",
				       .row.gpu_time_ns = 6 * LL_NS_PER_S}};
	struct ll_status_card earlier = reading(10 * LL_NS_PER_S);
	struct ll_status_card status = reading(14 * LL_NS_PER_S);
	struct ll_status_recent recent;
	earlier.jobs = before;
	earlier.job_count = 1;
	status.jobs = now;
	status.job_count = 2;
	assert_false(ll_status_recent_job(&status, &now[1], &recent));
	status.earlier = &earlier;
	assert_false(ll_status_recent_job(&status, &now[0], &recent));
	assert_true(ll_status_recent_job(&status, &now[1], &recent));
	assert_float_equal(recent.percent, 25, 1e-9);
	assert_float_equal(recent.seconds, 4, 1e-9);
	ll_status_add_claims(&text, &status);
	assert_non_null(strstr(text.buf, "tenant old: "));
	assert_non_null(strstr(text.buf, ", GPU time 6.0 s (tenant: 25 % of the last 4.0 s)\n"));
	assert_non_null(strstr(text.buf, ", GPU time 0.0 s\n"));
}

TEST(each_tenant_has_a_sentence_how_it_is_shared_and_why)
{
	static const struct {
		struct ll_status_job job;
		const char *why;
	} cases[] = {
	    {{.row.shared = LL_SHARED_ALONE}, "nobody else uses the card"},
	    {{.row.shared = LL_SHARED_ALONE, .row.flags = LL_CARD_IS_CAPPED, .told.job.limits.compute_permille = 305},
	     "held to 30.5 % by its cap"},
	    {{.row.shared = LL_SHARED_VISITS, .row.flags = LL_CARD_IS_BENEATH | LL_CARD_IS_HELD},
	     "waits for a higher class"},
	    {{.row.shared = LL_SHARED_SLICES, .row.flags = LL_CARD_IS_BENEATH},
	     "beneath a higher class: little of it is queued at a time"},
	    {{.row.shared = LL_SHARED_SLICES,
	      .row.flags = LL_CARD_IS_BENEATH,
	      .row.sharing = LL_SHARING_CLASSES,
	      .held_for = "serve",
	      .held_permille = 400,
	      .target_permille = 1300,
	      .seen_permille = 1240},
	     "held 40 % of the time: serve is of a higher class, target 1.30, now 1.24"},
	    {{.row.shared = LL_SHARED_SLICES,
	      .row.sharing = LL_SHARING_CLASSES,
	      .held_permille = 400,
	      .target_permille = 1300},
	     "gates open: lower classes are held 40 % of the time, target 1.30"},
	    {{.row.shared = LL_SHARED_SLICES, .row.sharing = LL_SHARING_CLASSES},
	     "gates open: lower classes need not be held"},
	    {{.row.shared = LL_SHARED_SPACE}, "runs at the same time as the other clients of MPS"},
	    {{.row.shared = LL_SHARED_SLICES, .row.flags = LL_CARD_IS_FORCED},
	     "gates open: decided by hand (`loadline set --sharing`)"},
	    {{.row.shared = LL_SHARED_SLICES, .row.sharing = LL_SHARING_SLICES},
	     "gates open: there is no reason for visits"},
	    {{.row.shared = LL_SHARED_VISITS, .row.sharing = LL_SHARING_SLICES},
	     "visited in turn while a program is new"},
	    {{.row.shared = LL_SHARED_SLICES, .row.sharing = LL_SHARING_SLICES_PAY},
	     "gates open: visits were measured not to pay"},
	    {{.row.shared = LL_SHARED_VISITS, .row.sharing = LL_SHARING_VISITS_PAY},
	     "visited in turn: visits were measured to pay"},
	    {{.row.shared = LL_SHARED_VISITS,
	      .row.sharing = LL_SHARING_VISITS_PAY,
	      .row.slices_speed_permille = 90,
	      .row.visits_speed_permille = 490,
	      .measured_wall_ns = UINT64_C(1800000060) * LL_NS_PER_S},
	     "visited in turn: sharing by slices gave it 0.09 of its speed, visits 0.49; measured at 08:01"},
	    {{.row.shared = LL_SHARED_VISITS,
	      .row.sharing = LL_SHARING_VISITS_PAY,
	      .row.slices_speed_permille = 950,
	      .row.visits_speed_permille = 500,
	      .measured_wall_ns = UINT64_C(1800000060) * LL_NS_PER_S},
	     "visited in turn: sharing by slices gave it 0.95 of its speed and others too little, visits give it 0.50; "
	     "measured at 08:01"},
	};
	setenv("TZ", "UTC", 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		ll_status_add_why(&text, &cases[i].job);
		assert_string_equal(text.buf, cases[i].why);
	}
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	struct ll_status_job job = {.row.job_number = 1, .told.job.tenant = "serve", .row.claims = 1};
	struct ll_status_card status = reading(0);
	job.row.shared = LL_SHARED_ALONE;
	job.row.recent_permille = 418;
	job.row.recent_ns = UINT64_C(3100000000);
	status.jobs = &job;
	status.job_count = 1;
	ll_status_add_claims(&text, &status);
	assert_non_null(strstr(text.buf,
			       "  tenant serve: alone, 42 % of the card's time in the last 3.1 s, nobody else "
			       "uses the card\n"));
}

/* Programs whose ids no process has, so that /proc says nothing of them. */
enum { NOBODY = 4194304 };

static const struct {
	unsigned width;
	const char *expected;
} row_cases[] = {
    {0,
     "\n"
     "claim    job  pid      user  tenant                     state           last kernel         age    memory       "
     "share  time     command\n"
     "12/0     1    4194304  -     名字                       running         now                 5 min  1.3/8.0 GiB  "
     "42 "
     "%   12.3 s   -\n"
     "12/1     2    4194305  -     a-tenant-with-a-long-name  waits for 12/0  2 h                 5 min  300/512 MiB  "
     "-  "
     "    0.0 s    -\n"
     "12/hold  -    4194306  -     synthetic                  holding 40 %    -                   5 min  2.0 GiB      "
     "-  "
     "    600.0 s  -\n"
     "12/18    -    -        -     other                      running         never               5 min  0 MiB        "
     "-  "
     "    0.0 s    (in another PID namespace)\n"
     "12/-     3    -        -     idle                       off the card    -                   -      0 MiB        "
     "-  "
     "    0.5 s    -\n"
     "12/-     -    4194307  -     -                          ungoverned      unknown: card busy  -      518 MiB      "
     "-  "
     "    -        -\n"},
    {80, "\n"
	 "claim    job  pid      user  tenant      state           memory       command\n"
	 "12/0     1    4194304  -     名字        running         1.3/8.0 GiB  -\n"
	 "12/1     2    4194305  -     a-tenant-w  waits for 12/0  300/512 MiB  -\n"
	 "12/hold  -    4194306  -     synthetic   holding 40 %    2.0 GiB      -\n"
	 "12/18    -    -        -     other       running         0 MiB        (in anothe\n"
	 "12/-     3    -        -     idle        off the card    0 MiB        -\n"
	 "12/-     -    4194307  -     -           ungoverned      518 MiB      -\n"},
    {40, "\n"
	 "claim    job  tenant      state\n"
	 "  pid      user  memory       command\n"
	 "12/0     1    名字        running\n"
	 "  4194304  -     1.3/8.0 GiB  -\n"
	 "12/1     2    a-tenant-w  waits for 12/0\n"
	 "  4194305  -     300/512 MiB  -\n"
	 "12/hold  -    synthetic   holding 40 %\n"
	 "  4194306  -     2.0 GiB      -\n"
	 "12/18    -    other       running\n"
	 "  -        -     0 MiB        (in anothe\n"
	 "12/-     3    idle        off the card\n"
	 "  -        -     0 MiB        -\n"
	 "12/-     -    -           ungoverned\n"
	 "  4194307  -     518 MiB      -\n"},
};

TEST(claims_are_a_row_each_in_80_columns_and_two_lines_in_40)
{
	struct ll_status_claim claims[] = {
	    {.row.index = 0,
	     .told.job.tenant = "名字",
	     .row.job_number = 1,
	     .taken_ns = LL_NS_PER_S,
	     .row.used_bytes = UINT64_C(1288) << 20,
	     .told.job.limits.memory_bytes = UINT64_C(8) << 30,
	     .row.gpu_time_ns = 12300 * LL_NS_PER_MS},
	    {.row.index = 1,
	     .told.job.tenant = "a-tenant-with-a-long-name",
	     .row.job_number = 2,
	     .row.idle_ns = UINT64_C(7300) * LL_NS_PER_S,
	     .taken_ns = LL_NS_PER_S,
	     .row.used_bytes = 300 << 20,
	     .told.job.limits.memory_bytes = 512 << 20},
	    {.priority = LL_PRIORITY_HOLD,
	     .target_permille = 400,
	     .row.used_bytes = UINT64_C(2) << 30,
	     .taken_ns = LL_NS_PER_S,
	     .synthetic_busy_ns = 600 * LL_NS_PER_S},
	    {.row.index = 18, .told.job.tenant = "other", .row.idle_ns = UINT64_MAX, .taken_ns = LL_NS_PER_S},
	};
	struct ll_status_job jobs[] = {
	    {.row.job_number = 1, .told.job.tenant = "名字", .row.claims = 1, .row.flags = LL_CARD_IS_HOLDER},
	    {.row.job_number = 2,
	     .told.job.tenant = "a-tenant-with-a-long-name",
	     .row.claims = 1,
	     .row.flags = LL_CARD_IS_HELD},
	    {.row.job_number = 3, .told.job.tenant = "idle", .row.gpu_time_ns = 500 * LL_NS_PER_MS},
	};
	struct ll_status_stranger stranger = {.pid = NOBODY + 3, .memory_bytes = 518 << 20};
	struct ll_status_card status = reading(301 * LL_NS_PER_S);
	status.idle.is_known = true;
	jobs[0].row.recent_permille = 417;
	jobs[0].row.recent_ns = LL_NS_PER_S;
	for (size_t i = 0; i < 4; i++) {
		claims[i].row.state = LL_CLAIM_RUNNING;
		claims[i].pid = NOBODY + (int)i;
		claims[i].is_pid_ours = i < 3;
		claims[i].row.wanting_ns = i < 2;
	}
	status.claims = claims, status.claim_count = 4;
	status.jobs = jobs, status.job_count = 3;
	status.strangers = &stranger, status.stranger_count = 1;
	for (size_t i = 0; i < sizeof row_cases / sizeof *row_cases; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		ll_status_add_rows(&text, &status, 1, row_cases[i].width);
		assert_true(!row_cases[i].width || widest_line(text.buf) <= row_cases[i].width);
		assert_string_equal(text.buf, row_cases[i].expected);
	}
}

TEST(last_kernel_of_each_program_is_in_100_columns)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	struct ll_status_stranger stranger = {.pid = NOBODY, .memory_bytes = UINT64_C(70) << 30};
	struct ll_status_claim claim = {.row.index = 17,
					.pid = NOBODY + 1,
					.is_pid_ours = true,
					.row.state = LL_CLAIM_RUNNING,
					.told.job.tenant = "notebook-of-ann",
					.row.idle_ns = UINT64_C(11000) * LL_NS_PER_S,
					.told.job.limits.memory_bytes = UINT64_C(80) << 30};
	struct ll_status_card status = reading(301 * LL_NS_PER_S);
	status.idle.is_known = true;
	status.claims = &claim, status.claim_count = 1;
	status.strangers = &stranger, status.stranger_count = 1;
	ll_status_add_rows(&text, &status, 1, 100);
	assert_true(widest_line(text.buf) <= 100);
	assert_non_null(strstr(text.buf, "  last kernel  "));
	assert_non_null(strstr(text.buf, "  running     3 h   "));
	assert_non_null(strstr(text.buf, "  ungoverned  unknown"));
}

TEST(a_span_without_work_goes_on_only_if_the_earlier_reading_reaches_into_it)
{
	static const struct {
		struct ll_status_idle earlier, now;
		uint64_t since_ns;
	} cases[] = {
	    {{true, 10, 100}, {true, 95, 110}, 10},
	    {{true, 10, 94}, {true, 95, 110}, 95}, /* nobody looked for a second */
	    {{true, 0, 100}, {true, 95, 110}, 95}, /* it had work */
	    {{true, 10, 100}, {true, 0, 110}, 0},  /* it has some */
	    {{false, 10, 100}, {true, 95, 110}, 95},
	    {{true, 98, 100}, {true, 95, 110}, 95},
	    {{true, 10, 100}, {false, 95, 110}, 95},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ll_status_idle idle = cases[i].now;
		ll_status_idle_go_on(&idle, &cases[i].earlier);
		assert_int_equal(idle.since_ns, cases[i].since_ns);
	}
}

TEST(last_kernel_and_age_are_in_one_unit_and_rounded_down)
{
	static const struct {
		struct ll_status_last last;
		const char *expected;
	} cases[] = {
	    {{LL_LAST_RUNNING, 0, false}, "now"},
	    {{LL_LAST_AGO, 1999 * LL_NS_PER_MS, false}, "1 s"},
	    {{LL_LAST_AGO, 119 * LL_NS_PER_S, false}, "119 s"},
	    {{LL_LAST_AGO, 120 * LL_NS_PER_S, false}, "2 min"},
	    {{LL_LAST_AT_LEAST, 3 * 3600 * LL_NS_PER_S + 3599 * LL_NS_PER_S, false}, "≥ 3 h"},
	    {{LL_LAST_AGO, 49 * 3600 * LL_NS_PER_S, false}, "2 d"},
	    {{LL_LAST_NEVER, 0, false}, "never"},
	    {{LL_LAST_UNKNOWN, 0, true}, "unknown: card busy"},
	    {{LL_LAST_UNKNOWN, 0, false}, "unknown"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		ll_status_add_last(&text, &cases[i].last);
		assert_string_equal(text.buf, cases[i].expected);
	}
}

TEST(server_of_mps_is_not_called_ungoverned)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	struct ll_status_stranger strangers[] = {
	    {.pid = 17, .memory_bytes = 30 << 20, .name = "nvidia-cuda-mps", .is_mps_server = true},
	    {.pid = 18, .memory_bytes = LL_MEMORY_UNKNOWN, .name = "python3"}};
	struct ll_status_card status = reading(0);
	status.strangers = strangers;
	status.stranger_count = 2;
	ll_status_add_claims(&text, &status);
	assert_string_equal(text.buf, "  pid 17  MPS server, 30 MiB, last kernel unknown\n"
				      "  pid 18  python3: ungoverned, last kernel unknown\n");
}

/* A program of the text's second line, on a card of one claim. */
static void check_program(const struct ll_status_claim *program, const char *expected)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	struct ll_status_claim claim = *program;
	struct ll_status_card status = reading(0);
	status.claims = &claim;
	status.claim_count = 1;
	ll_status_add_claims(&text, &status);
	assert_string_equal(text.buf, expected);
}

TEST(memory_that_is_away_can_be_moved_or_is_pinned_is_told_of_evictable_programs_alone)
{
	struct ll_status_claim claim = {.pid = 5,
					.is_pid_ours = true,
					.row.state = LL_CLAIM_RUNNING,
					.priority = LL_PRIORITY_NORMAL,
					.told.job.tenant = "job",
					.row.used_bytes = 700 << 20};
	check_program(&claim,
		      "  12/0  pid 5  job: running, class normal, 700 MiB, GPU time 0.0 s, age 0 s, last kernel now\n");
	claim.row.residency = LL_CLAIM_EVICTED;
	claim.row.evictable_bytes = 600 << 20;
	claim.row.away_bytes = 500 << 20;
	claim.row.host_bytes = 300 << 20;
	check_program(&claim, "  12/0  pid 5  job: evicted, class normal, 700 MiB, 200 MiB on the card "
			      "(evictable: 600 MiB, pinned: 100 MiB, ready in the host: 300 MiB), GPU time 0.0 s, age "
			      "0 s, last kernel now\n");
	claim.row.residency = LL_CLAIM_STOPPED;
	/* The words are not of one moment. */
	claim.row.used_bytes = 300 << 20;
	check_program(&claim, "  12/0  pid 5  job: stopped, class normal, 300 MiB, 0 MiB on the card "
			      "(evictable: 600 MiB, pinned: 0 MiB, ready in the host: 300 MiB), GPU time 0.0 s, age 0 "
			      "s, last kernel now\n");
}
