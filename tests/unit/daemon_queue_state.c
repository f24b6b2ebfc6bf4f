/* The state of the queue as a text: what a former loadlined knew comes back, and a damaged text is refused. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/core/server.h"
#include "daemon/queue/state.h"
#include "test.h"

enum { ANN = 1001, BOB = 1002 };

static struct ll_server server;

static struct ll_admission *new_admission(void)
{
	struct ll_admission *admission = calloc(1, sizeof *admission);
	assert_non_null(admission);
	admission->server = &server;
	admission->books = &server.books;
	return admission;
}

static void free_admission(struct ll_admission *admission)
{
	while (admission->entries) {
		struct ll_admission_entry *next = admission->entries->next;
		free(admission->entries);
		admission->entries = next;
	}
	free(admission->drains);
	ll_admission_former_fini(admission);
	free(admission);
}

static struct ll_admission_entry *add_entry(struct ll_admission *admission, uint64_t number, const char *uuid)
{
	struct ll_admission_entry *entry = calloc(1, sizeof *entry), **at = &admission->entries;
	assert_non_null(entry);
	entry->queued.number = number;
	entry->token = UINT64_C(0xffffffff00000000) + number;
	entry->uid = ANN;
	ll_message_text_set(entry->tenant, sizeof entry->tenant, "lab");
	ll_message_text_set(entry->command, sizeof entry->command, "train \"x\"");
	if (uuid)
		ll_message_text_set(entry->uuids[entry->uuid_count++], LL_CARD_UUID_SIZE, uuid);
	while (*at)
		at = &(*at)->next;
	*at = entry;
	return entry;
}

/* A running job, two waiting ones, a drained card, use, an ended job. */
static char *packed_state(void)
{
	struct ll_admission *admission = new_admission();
	struct ll_admission_entry *running = add_entry(admission, 3, "GPU-1");
	running->begin_ns = 1000;
	running->queued.duration_ns = 7200 * LL_NS_PER_S;
	running->has_end = running->has_run = running->is_ended = true;
	running->stop.since_ns = 2000;
	running->stop.killed_ns = 3000;
	running->queued.overtook = 2;
	running->queued.is_lent = running->queued.is_asleep = true;
	running->loan = (struct ll_loan){.state = LL_LEND_ASLEEP,
					 .step = LL_LEND_EVICT,
					 .own_class = LL_LIMIT_CLASS_LOW,
					 .recalls = 3,
					 .since_ns = 4000,
					 .owner = 9,
					 .is_pooled = true};
	running->limits = (struct ll_limits){.memory_bytes = 1 << 30, .compute_permille = 250};
	struct ll_admission_entry *moved = add_entry(admission, 4, NULL);
	moved->queued.position = 1;
	add_entry(admission, 5, NULL)->is_paused = true;
	add_entry(admission, 6, "GPU-2")->loan.state = LL_LEND_RESERVED;
	admission->drains = calloc(1, sizeof *admission->drains);
	assert_non_null(admission->drains);
	admission->drains[admission->drain_count++] = (struct ll_admission_drain){2, 1764300000, "Xid 79"};
	admission->former_use = calloc(1, sizeof *admission->former_use);
	assert_non_null(admission->former_use);
	admission->former_use[admission->former_use_count++] = (struct ll_admission_use){"lab", BOB, 1.5e12};
	admission->former_use_ns = 77;
	ll_ended_add(&admission->ended,
		     &(struct ll_ended_job){
			 .number = 2, .token = 9, .uid = BOB, .status = 256, .has_status = true, .has_run = true});
	server.books.last_job = 12;
	char *text = ll_admission_pack(admission);
	assert_non_null(text);
	free_admission(admission);
	server.books.last_job = 0;
	return text;
}

TEST(jobs_drains_use_and_ends_come_back)
{
	char *text = packed_state();
	struct ll_admission *admission = new_admission();
	assert_int_equal(ll_admission_unpack(admission, text), 0);
	const struct ll_admission_entry *running = admission->entries;
	assert_non_null(running);
	assert_null(running->next);
	assert_int_equal(running->queued.number, 3);
	assert_true(running->token == UINT64_C(0xffffffff00000003) && running->uid == ANN);
	assert_true(running->begin_ns == 1000 && running->queued.duration_ns == 7200 * LL_NS_PER_S);
	assert_true(running->has_end && running->has_run && running->is_ended && !running->is_paused);
	assert_true(running->stop.since_ns == 2000 && running->stop.killed_ns == 3000);
	assert_int_equal(running->queued.overtook, 2);
	assert_int_equal(running->limits.memory_bytes, 1 << 30);
	assert_int_equal(running->limits.compute_permille, 250);
	assert_string_equal(running->uuids[0], "GPU-1");
	assert_string_equal(running->command, "train \"x\"");
	assert_true(running->register_until_ns > ll_now_ns());
	assert_int_equal(admission->former->queued.number, 4);
	assert_int_equal(admission->former->queued.position, 1);
	assert_true(admission->former->next->is_paused);
	assert_true(running->queued.is_lent && running->queued.is_asleep && running->loan.is_pooled);
	assert_true(running->loan.state == LL_LEND_ASLEEP && running->loan.step == LL_LEND_EVICT);
	assert_true(running->loan.own_class == LL_LIMIT_CLASS_LOW && running->loan.recalls == 3);
	assert_true(running->loan.since_ns == 4000 && running->loan.owner == 9);
	/* One that waited for borrowers to leave asks again. */
	const struct ll_admission_entry *reserved = admission->former->next->next;
	assert_true(reserved->queued.number == 6 && !reserved->uuid_count && !reserved->loan.state);
	assert_int_equal(admission->drain_count, 1);
	assert_true(admission->drains[0].index == 2 && admission->drains[0].since_s == 1764300000);
	assert_string_equal(admission->drains[0].reason, "Xid 79");
	assert_int_equal(admission->former_use_count, 1);
	assert_true(admission->former_use[0].uid == BOB && admission->former_use[0].use_ns == 1.5e12);
	assert_int_equal(admission->former_use_ns, 77);
	assert_int_equal(admission->former_use_age_s, 0);
	assert_int_equal(ll_ended_find(&admission->ended, 2)->status, 256);
	assert_int_equal(server.books.last_job, 12);
	free_admission(admission);
	free(text);
}

TEST(a_waiting_job_gets_its_number_position_and_pause_back)
{
	char *text = packed_state();
	struct ll_admission *admission = new_admission();
	assert_int_equal(ll_admission_unpack(admission, text), 0);
	struct ll_admission_entry again = {.token = UINT64_C(0xffffffff00000005), .uid = BOB, .queued.number = 20};
	ll_admission_former_return(admission, &again, 0);
	assert_int_equal(again.queued.number, 20); /* another user has guessed the token */
	again.uid = ANN;
	ll_admission_former_return(admission, &again, 0);
	assert_int_equal(again.queued.number, 5);
	assert_true(again.is_paused);
	assert_null(ll_admission_former_find(admission, 5));
	assert_non_null(ll_admission_former_find(admission, 4));
	free_admission(admission);
	free(text);
}

TEST(no_job_starts_until_the_waiting_ones_are_back_or_gone)
{
	char *text = packed_state();
	struct ll_admission *admission = new_admission();
	assert_int_equal(ll_admission_unpack(admission, text), 0);
	uint64_t now_ns = 100 * LL_NS_PER_S;
	assert_true(ll_admission_former_holds(admission, now_ns));
	assert_true(ll_admission_former_holds(admission, now_ns + LL_NS_PER_S));
	assert_false(ll_admission_former_holds(admission, now_ns + 3 * LL_NS_PER_S));
	assert_non_null(admission->former);
	assert_false(ll_admission_former_holds(admission, now_ns + 11 * LL_NS_PER_S));
	assert_null(admission->former);
	assert_false(ll_ended_find(&admission->ended, 4)->has_run);
	free_admission(admission);
	free(text);
}

/* A borrower that was stopped, and has ended. */
static struct ll_admission *with_requeued(void)
{
	struct ll_admission *admission = new_admission();
	struct ll_admission_entry *entry = add_entry(admission, 3, "GPU-1");
	admission->entries = NULL;
	entry->has_run = entry->queued.is_lent = true;
	entry->queued.position = 2;
	entry->limits.priority = LL_LIMIT_CLASS_LOW;
	entry->loan = (struct ll_loan){.step = LL_LEND_STOP, .recalls = 2, .is_requeued = true};
	ll_admission_note_end(admission, entry);
	ll_admission_former_keep(admission, entry);
	return admission;
}

TEST(a_stopped_borrower_comes_again_with_its_number_and_its_pause_and_nobody_waits_for_it)
{
	struct ll_admission *admission = with_requeued();
	uint64_t now_ns = ll_now_ns();
	assert_null(ll_ended_find(&admission->ended, 3));
	assert_false(ll_admission_former_holds(admission, now_ns));
	char *text = ll_admission_pack(admission);
	free_admission(admission);
	for (unsigned i = 0; i < 2; i++) { /* also under the next loadlined */
		admission = i ? new_admission() : with_requeued();
		if (i)
			assert_int_equal(ll_admission_unpack(admission, text), 0);
		struct ll_admission_entry again = {.token = 7, .uid = BOB, .queued.number = 20};
		ll_admission_former_return(admission, &again, 3);
		assert_int_equal(again.queued.number, 20); /* another user's */
		again.uid = ANN;
		ll_admission_former_return(admission, &again, 3);
		assert_true(again.queued.number == 3 && again.queued.position == 2);
		assert_true(again.loan.recalls == 2 && again.loan.since_ns >= now_ns - LL_NS_PER_S);
		assert_false(again.loan.is_requeued || again.queued.is_lent || again.uuid_count);
		assert_null(admission->former);
		free_admission(admission);
	}
	free(text);
}

TEST(a_stopped_borrower_that_does_not_come_again_has_ended)
{
	struct ll_admission *admission = with_requeued();
	assert_false(ll_admission_former_holds(admission, ll_now_ns() + LL_ADMISSION_RETURN_NS));
	assert_null(admission->former);
	assert_false(ll_ended_find(&admission->ended, 3)->has_run);
	free_admission(admission);
}

TEST(after_a_reboot_the_jobs_have_ended_and_use_is_as_old_as_the_time_of_day_says)
{
	char *text = packed_state();
	json_t *object = json_loads(text, 0, NULL);
	json_object_set_new(object, "boot", json_string("another"));
	json_object_set_new(object, "saved_s", json_integer((json_int_t)(ll_wall_ns() / LL_NS_PER_S) - 3600));
	free(text);
	text = json_dumps(object, 0);
	json_decref(object);
	struct ll_admission *admission = new_admission();
	assert_int_equal(ll_admission_unpack(admission, text), 0);
	assert_null(admission->entries);
	assert_null(admission->former);
	assert_true(ll_ended_find(&admission->ended, 3)->has_run);
	assert_false(ll_ended_find(&admission->ended, 3)->has_status);
	assert_false(ll_ended_find(&admission->ended, 4)->has_run);
	assert_int_equal(admission->drain_count, 1);
	assert_in_range(admission->former_use_age_s, 3599, 3602);
	free_admission(admission);
	free(text);
}

TEST(a_text_that_is_damaged_or_of_another_version_is_refused)
{
	static const char *const texts[] = {"", "{", "[]", "{}", "{\"version\": 2}", "nul"};
	struct ll_admission *admission = new_admission();
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_int_equal(ll_admission_unpack(admission, texts[i]), -EBADMSG);
	/* Fields of other types are as if they were not there. */
	static const char odd[] =
	    "{\"version\": 1, \"jobs\": [1, {}, {\"number\": \"x\", \"job\": 5, \"uuids\": [7]}], "
	    "\"drains\": {}, \"use\": 3, \"ended\": \"\", \"last_job\": -5}";
	assert_int_equal(ll_admission_unpack(admission, odd), 0);
	assert_null(admission->entries);
	free_admission(admission);
}

/* Another loadlined, with the same folder. The former one was killed: its state was not written. */
static struct ll_admission *begin_anew(const char *folder)
{
	struct ll_admission *admission = new_admission();
	server.books.last_job = 0;
	server.admission = admission;
	assert_int_equal(uv_timer_init(&server.loop, &admission->timer), 0);
	assert_int_equal(ll_admission_keep(server.admission, folder), 0);
	return admission;
}

static void end_at_once(struct ll_admission *admission)
{
	uv_close((uv_handle_t *)&admission->timer, NULL);
	uv_run(&server.loop, UV_RUN_DEFAULT);
	ll_admission_keep_fini(admission);
	free_admission(admission);
	server.admission = NULL;
}

TEST(a_number_is_given_once_also_after_a_kill)
{
	char folder[] = "/tmp/loadline-numbers.XXXXXX", path[64];
	assert_non_null(mkdtemp(folder));
	assert_int_equal(uv_loop_init(&server.loop), 0);
	struct ll_admission *admission = begin_anew(folder);
	assert_int_equal(server.books.last_job, 0);
	ll_admission_keep_number(admission, 1);
	end_at_once(admission);
	admission = begin_anew(folder);
	assert_true(server.books.last_job >= 1);
	/* One that ends in order leaves none out. */
	server.books.last_job++;
	ll_admission_keep_number(admission, server.books.last_job);
	uint64_t last = server.books.last_job;
	ll_admission_save_last(server.admission);
	end_at_once(admission);
	admission = begin_anew(folder);
	assert_int_equal(server.books.last_job, last);
	end_at_once(admission);
	assert_int_equal(uv_loop_close(&server.loop), 0);
	static const char *const files[] = {"queue.json", "queue.numbers"};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, files[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(folder), 0);
}
