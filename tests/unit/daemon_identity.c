/* Lookups of users' groups by a stand-in of `loadlined --lookup`, which answers, fails, or hangs. */
#include "daemon/policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "test.h"

/* PATIENT_MS: of an answer that comes, also on a busy machine. */
enum { ANN = 1001, WAIT_MS = 400, PATIENT_MS = 20000, SLOW_MS = 100, LATE_MS = 200, KEEP_MS = 60000 };

struct world {
	uv_loop_t loop;
	struct ll_identities identities;
	char folder[64], program[96];
	unsigned ended, slow, late;
};

static void on_ready(void *data, uint32_t uid, enum ll_identity_news news)
{
	struct world *world = data;
	assert_int_equal(uid, ANN);
	world->ended += news == LL_IDENTITY_HAS_ENDED;
	world->slow += news == LL_IDENTITY_IS_SLOW;
	world->late += news == LL_IDENTITY_IS_LATE;
}

/* What the stand-in does from now on. */
static void write_program(const struct world *world, const char *lines)
{
	char path[128];
	snprintf(path, sizeof path, "%s/new", world->folder);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "#!/bin/sh\n%s\n", lines);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(rename(path, world->program), 0);
}

static void init_world(struct world *world, uint64_t keep_ms, const char *lines)
{
	*world = (struct world){.folder = "/tmp/loadline-identity.XXXXXX"};
	assert_non_null(mkdtemp(world->folder));
	snprintf(world->program, sizeof world->program, "%s/lookup", world->folder);
	write_program(world, lines);
	assert_int_equal(uv_loop_init(&world->loop), 0);
	const struct ll_identity_source source = {world->program, SLOW_MS, LATE_MS, PATIENT_MS, keep_ms, 0};
	ll_identities_init(&world->identities, &world->loop, &source, on_ready, world);
}

static void fini_world(struct world *world)
{
	ll_identities_fini(&world->identities);
	uv_run(&world->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&world->loop), 0);
	unlink(world->program);
	rmdir(world->folder);
}

static void run_until_ended(struct world *world, unsigned count)
{
	while (world->ended < count)
		assert_true(uv_run(&world->loop, UV_RUN_ONCE) || world->ended >= count);
}

static void look_up(struct world *world)
{
	uv_update_time(&world->loop);
	assert_true(ll_identities_ask(&world->identities, ANN, LL_IDENTITY_HAS_ENDED));
	run_until_ended(world, world->ended + 1);
}

TEST(an_answer_has_the_name_and_the_groups_and_counts_for_its_time)
{
	struct world world;
	init_world(&world, KEEP_MS, "[ \"$1 $2\" = '--lookup 1001' ] && printf 'ann\\0staff\\0gpu team\\0'");
	struct ll_err err = {0};
	assert_null(ll_identities_find(&world.identities, ANN, &err));
	assert_int_equal(err.code, -EAGAIN);
	look_up(&world);
	const struct ll_identity *ann = ll_identities_find(&world.identities, ANN, NULL);
	assert_non_null(ann);
	assert_string_equal(ll_identity_name(ann), "ann");
	assert_true(ll_identity_has_group(ann, "staff") && ll_identity_has_group(ann, "gpu team"));
	assert_false(ll_identity_has_group(ann, "ann") || ll_identity_has_group(ann, "gpu"));
	assert_false(ll_identities_ask(&world.identities, ANN, LL_IDENTITY_HAS_ENDED));
	fini_world(&world);
}

TEST(a_lookup_that_hangs_is_killed_and_the_loop_runs_on)
{
	struct world world;
	init_world(&world, KEEP_MS, "exec sleep 1000");
	struct ll_err err = {0};
	world.identities.source.wait_ms = WAIT_MS;
	uv_update_time(&world.loop);
	uint64_t begun_ms = uv_now(&world.loop); /* its timers go by this clock, which is coarse */
	look_up(&world);
	uint64_t took_ms = uv_now(&world.loop) - begun_ms;
	assert_true(took_ms >= WAIT_MS && took_ms < 100 * WAIT_MS);
	assert_int_equal(world.slow, 1);
	assert_int_equal(world.late, 1);
	assert_null(ll_identities_find(&world.identities, ANN, &err));
	assert_int_equal(err.code, -ETIMEDOUT);
	assert_non_null(strstr(err.text, "did not answer in 0.4 s"));
	fini_world(&world);
}

TEST(after_a_lookup_that_hangs_or_fails_the_last_answer_counts)
{
	struct world world;
	init_world(&world, 0, "printf 'ann\\0staff\\0'");
	look_up(&world);
	write_program(&world, "printf 'eve\\0'; exec sleep 1000");
	world.identities.source.wait_ms = WAIT_MS;
	look_up(&world);
	world.identities.source.wait_ms = PATIENT_MS;
	const struct ll_identity *ann = ll_identities_find(&world.identities, ANN, NULL);
	assert_non_null(ann);
	assert_int_equal(ann->code, -ETIMEDOUT);
	assert_true(ll_identity_has_group(ann, "staff"));
	write_program(&world, "printf 'eve\\0'; exit 1");
	look_up(&world);
	assert_string_equal(ll_identity_name(ll_identities_find(&world.identities, ANN, NULL)), "ann");
	write_program(&world, "printf 'ann\\0gpu\\0'");
	look_up(&world);
	ann = ll_identities_find(&world.identities, ANN, NULL);
	assert_true(ll_identity_has_group(ann, "gpu") && !ll_identity_has_group(ann, "staff"));
	fini_world(&world);
}

TEST(what_is_no_answer_is_a_failure)
{
	static const char *const bad[] = {"exit 1", "true", "printf ann", "kill -KILL $$", "head -c 3000000 /dev/zero"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct world world;
		struct ll_err err = {0};
		init_world(&world, KEEP_MS, bad[i]);
		look_up(&world);
		assert_null(ll_identities_find(&world.identities, ANN, &err));
		assert_int_equal(err.code, -EIO);
		fini_world(&world);
	}
}

TEST(a_program_that_is_missing_is_a_failure_at_once)
{
	struct world world;
	struct ll_err err = {0};
	init_world(&world, KEEP_MS, "true");
	unlink(world.program);
	assert_false(ll_identities_ask(&world.identities, ANN, LL_IDENTITY_HAS_ENDED));
	assert_null(ll_identities_find(&world.identities, ANN, &err));
	assert_int_equal(err.code, -ENOENT);
	fini_world(&world);
}

TEST(who_asks_when_the_news_have_been_told_gets_no_others_of_the_kind)
{
	struct world world;
	init_world(&world, KEEP_MS, "exec sleep 1000");
	assert_true(ll_identities_ask(&world.identities, ANN, LL_IDENTITY_IS_SLOW));
	while (!world.slow)
		uv_run(&world.loop, UV_RUN_ONCE);
	assert_false(ll_identities_ask(&world.identities, ANN, LL_IDENTITY_IS_SLOW));
	if (!world.late)
		assert_true(ll_identities_ask(&world.identities, ANN, LL_IDENTITY_IS_LATE));
	while (!world.late)
		uv_run(&world.loop, UV_RUN_ONCE);
	assert_false(ll_identities_ask(&world.identities, ANN, LL_IDENTITY_IS_LATE));
	assert_true(ll_identities_ask(&world.identities, ANN, LL_IDENTITY_HAS_ENDED));
	fini_world(&world);
}

TEST(an_end_while_lookups_run_leaves_nothing)
{
	struct world world;
	init_world(&world, KEEP_MS, "exec sleep 1000");
	assert_true(ll_identities_ask(&world.identities, ANN, LL_IDENTITY_HAS_ENDED));
	assert_true(ll_identities_ask(&world.identities, ANN, LL_IDENTITY_HAS_ENDED));
	uv_run(&world.loop, UV_RUN_NOWAIT);
	fini_world(&world);
	assert_int_equal(world.ended, 0);
}
