#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process_id.h"
#include "daemon/accounts/accounts.h"
#include "daemon/core/server.h"
#include "daemon/jobs/jobs.h"
#include "daemon/residency/residency.h"
#include "protocol/accounts.h"
#include "rules/explain/explain.h"

enum { LOOK_MS = 500, STAT_SIZE = 512, STAT_UTIME = 14 };

/* A process that had work so lately works together with the others of its job. */
#define WORKER_NS (60 * LL_NS_PER_S)

static uint64_t smaller_of(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

static uint64_t larger_of(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

/* ---- a process ---- */

/* Returns what is new of a counter that a program can write, at most the length of the step. */
static uint64_t read_new(uint64_t now, uint64_t *last, uint64_t most_ns)
{
	uint64_t new_ns = now > *last ? smaller_of(now - *last, most_ns) : 0;
	*last = now;
	return new_ns;
}

/* How long processors have worked for the process, or its first thread has worked or waited for a processor, whichever
 * is longer: on a busy host a program that computes mostly waits for one. 0: not known. */
static uint64_t read_cpu_ns(uint32_t pid)
{
	char text[STAT_SIZE];
	unsigned long long user = 0, system = 0, ran_ns = 0, waited_ns = 0;
	if (!pid || ll_process_read_file((pid_t)pid, "stat", text, sizeof text) <= 0)
		return 0;
	const char *at = strrchr(text, ')'); /* the name before it may have any character */
	for (int field = 2; at && field < STAT_UTIME; field++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, "%llu %llu", &user, &system) != 2)
		return 0;
	if (ll_process_read_file((pid_t)pid, "schedstat", text, sizeof text) <= 0 ||
	    sscanf(text, "%llu %llu", &ran_ns, &waited_ns) != 2)
		ran_ns = waited_ns = 0;
	return larger_of((user + system) * (LL_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK)), ran_ns + waited_ns);
}

static enum ll_minute_away find_away(const struct ll_server *server, const struct ll_job_claim *claim,
				     uint64_t *wait_ns, uint64_t length_ns)
{
	const struct ll_page_slot *slot = ll_claim_slot(claim);
	struct ll_card_claim_view view;
	bool is_by_hand, waits;
	ll_card_claim_read(claim->share, &view);
	ll_residency_read_waits(server, claim, &is_by_hand, &waits);
	bool is_stopped = slot->residency == LL_CLAIM_STOPPED || slot->residency == LL_CLAIM_EVICTED;
	if (slot->checkpoint || view.is_suspended || (is_stopped && is_by_hand))
		return LL_MINUTE_AWAY_BY_HAND;
	if (waits)
		*wait_ns = length_ns; /* for room: it is not counted before it ends */
	return !is_stopped ? LL_MINUTE_HERE : waits ? LL_MINUTE_AWAY_WAITING : LL_MINUTE_AWAY_IDLE;
}

/* Reads what is new since the last look. Waits for memory that have no end yet are counted too. */
static void look_at_claim(const struct ll_server *server, struct ll_job_claim *claim, uint64_t length_ns,
			  uint64_t now_ns)
{
	const struct ll_page_slot *slot = ll_claim_slot(claim);
	struct ll_minute_claim *minute = &claim->minute;
	uint64_t since_ns = slot->want_since_ns;
	uint64_t wanted_ns = slot->wanted_ns + (since_ns && since_ns < now_ns ? now_ns - since_ns : 0);
	bool is_first = !minute->looked_ns;
	minute->looked_ns = now_ns;
	minute->wanted_new_ns = read_new(wanted_ns, &minute->wanted_ns, is_first ? 0 : length_ns);
	minute->completed_new = read_new(slot->completed_launches, &minute->completed, UINT64_MAX);
	minute->copied_new_ns = read_new(slot->copied_ns, &minute->copied_ns, is_first ? 0 : length_ns);
	for (unsigned i = 0; i < LL_WAITS; i++)
		minute->waited_new_ns[i] =
		    read_new(slot->waited_ns[i], &minute->waited_ns[i], is_first ? 0 : length_ns);
	minute->away = find_away(server, claim, &minute->waited_new_ns[LL_WAIT_MEMORY], length_ns);
}

/* ---- a job on a card ---- */

/* Whether processes of the job are idle because of `waiting`, which waits for most of the step: those that had work
 * lately want nothing and wait for nothing now. */
static bool do_others_idle(const struct ll_job_card *card, const struct ll_job_claim *waiting, uint64_t length_ns,
			   uint64_t now_ns)
{
	bool has_idle = false;
	for (const struct ll_job_claim *claim = card->claims; claim; claim = claim->next) {
		uint64_t activity_ns = ll_claim_slot(claim)->activity_ns;
		bool is_worker = activity_ns == LL_ACTIVITY_NOW || (activity_ns && now_ns - activity_ns < WORKER_NS);
		if (claim == waiting || !is_worker)
			continue;
		if (claim->minute.wait_ns > length_ns / 4 || claim->minute.wanted_new_ns > length_ns / 2)
			return false;
		has_idle = true;
	}
	return has_idle;
}

static uint32_t wait_of(const struct ll_job_claim *claim)
{
	uint32_t kind = LL_WAIT_TURN;
	if (claim->minute.away == LL_MINUTE_AWAY_BY_HAND)
		return LL_WAIT_MOVE + 1;
	for (uint32_t i = 0; i < LL_WAIT_MOVE; i++)
		kind = claim->minute.waited_new_ns[i] > claim->minute.waited_new_ns[kind] ? i : kind;
	return kind + 1;
}

/* Processors are read when a gap begins, and when it is long enough to be told. */
static uint64_t find_cpu_ns(struct ll_job_card *card, uint64_t length_ns)
{
	const struct ll_minute_carry *carry = &card->minute.carry;
	bool is_begin = !carry->gap_ns, is_end = carry->gap_ns + length_ns >= LL_MINUTE_GAP_NS;
	uint64_t sum_ns = 0;
	for (struct ll_job_claim *claim = is_begin || is_end ? card->claims : NULL; claim; claim = claim->next) {
		uint64_t before_ns = is_begin ? 0 : claim->minute.cpu_ns;
		uint64_t cpu_ns = read_cpu_ns(claim->user ? claim->user->pid : 0);
		sum_ns += before_ns && cpu_ns > before_ns ? cpu_ns - before_ns : 0;
		claim->minute.cpu_ns = cpu_ns;
	}
	return sum_ns;
}

/* All of a step but what others do. */
static void begin_step(struct ll_job_card *card, uint64_t length_ns)
{
	const struct ll_page *page = card->job->pages.page;
	struct ll_minute_step *step = &card->minute.step;
	uint64_t most_ns = card->minute.has_looked ? 2 * length_ns : 0; /* what was before, a former loadlined knew */
	card->minute.has_looked = true;
	*step = (struct ll_minute_step){.length_ns = length_ns,
					.work_ns =
					    read_new(page->cards[card->index].work_ns, &card->minute.work_ns, most_ns),
					.is_by_space = card->job->facts.limits.space_permille != 0,
					.away = card->claims ? LL_MINUTE_AWAY_IDLE : LL_MINUTE_HERE};
	for (struct ll_job_claim *claim = card->claims; claim; claim = claim->next) {
		const struct ll_minute_claim *minute = &claim->minute;
		step->has_completed |= minute->completed_new != 0;
		step->wanted_ns = larger_of(step->wanted_ns, minute->wanted_new_ns);
		step->copied_ns = larger_of(step->copied_ns, minute->copied_new_ns);
		step->turn_ns = larger_of(step->turn_ns, minute->waited_new_ns[LL_WAIT_TURN]);
		step->cap_ns = larger_of(step->cap_ns, minute->waited_new_ns[LL_WAIT_CAP]);
		step->memory_ns = larger_of(step->memory_ns, minute->waited_new_ns[LL_WAIT_MEMORY]);
		/* The job is here if one of its processes is, else by hand before waiting before idle. */
		if (minute->away == LL_MINUTE_HERE || step->away == LL_MINUTE_HERE)
			step->away = LL_MINUTE_HERE;
		else if (step->away != LL_MINUTE_AWAY_BY_HAND && minute->away != LL_MINUTE_AWAY_IDLE)
			step->away = minute->away;
	}
	if (!step->wanted_ns && !step->work_ns)
		step->cpu_ns = find_cpu_ns(card, length_ns);
}

/* active: the jobs on cards that wanted something in this step. */
static void add_others(struct ll_job_card *card, const struct ll_job_card *active)
{
	struct ll_minute_step *step = &card->minute.step;
	enum ll_priority own = ll_priority_of_class(card->job->facts.limits.priority);
	for (; active; active = active->minute.next_active) {
		const struct ll_minute_step *other = &active->minute.step;
		if (active == card || (step->is_by_space && !other->is_by_space) ||
		    strcmp(active->uuid, card->uuid) != 0)
			continue;
		step->others_ns += other->work_ns;
		step->others_wanted_ns = larger_of(step->others_wanted_ns, other->wanted_ns);
		if (ll_priority_of_class(active->job->facts.limits.priority) < own)
			step->higher_ns += other->work_ns;
	}
}

/* How long each process waited. A move is counted at its end, so the state of the process tells of it. */
static void find_waits(struct ll_job_card *card, uint64_t length_ns)
{
	for (struct ll_job_claim *claim = card->claims; claim; claim = claim->next) {
		struct ll_minute_claim *minute = &claim->minute;
		const uint64_t *waited_ns = minute->waited_new_ns;
		bool is_away = minute->away == LL_MINUTE_AWAY_BY_HAND || minute->away == LL_MINUTE_AWAY_WAITING;
		uint64_t turn_ns =
		    smaller_of(waited_ns[LL_WAIT_TURN], ll_minute_kept_ns(&card->minute.step, waited_ns[LL_WAIT_TURN]));
		minute->wait_ns = is_away ? length_ns : turn_ns + waited_ns[LL_WAIT_CAP] + waited_ns[LL_WAIT_MEMORY];
	}
}

static void note_waiting(struct ll_job_card *card, const struct ll_job_claim *claim)
{
	card->minute.waiting_pid = claim->user ? claim->user->pid : 0;
	card->minute.waiting_for = wait_of(claim);
}

/* Finds the process of the job that waits the longest, for most of the step, on this card or on another. */
static void find_peers(struct ll_job_card *card, uint64_t length_ns, uint64_t now_ns)
{
	const struct ll_job_claims *claims = card->job->claims;
	struct ll_minute_step *step = &card->minute.step;
	const struct ll_job_claim *waiting = NULL;
	for (unsigned i = 0; i < claims->card_count; i++) {
		for (const struct ll_job_claim *claim = claims->cards[i]->claims; claim; claim = claim->next) {
			if (claim->minute.wait_ns >= length_ns / 2 &&
			    (!waiting || claim->minute.wait_ns > waiting->minute.wait_ns))
				waiting = claim;
		}
	}
	if (!waiting)
		return;
	if (waiting->card != card) {
		step->peer_ns = waiting->minute.wait_ns;
		note_waiting(card, waiting);
	} else if (do_others_idle(card, waiting, length_ns, now_ns)) {
		step->is_split = true;
		if (waiting->minute.away == LL_MINUTE_AWAY_BY_HAND)
			step->away = LL_MINUTE_AWAY_BY_HAND;
		note_waiting(card, waiting);
	}
}

static struct ll_job_card *card_at(const struct ll_job *job, unsigned index)
{
	return job->claims && index < job->claims->card_count ? job->claims->cards[index] : NULL;
}

/* Returns whether a process has a card. */
static bool look_at_all(struct ll_server *server, uint64_t length_ns, uint64_t now_ns)
{
	struct ll_job_card *active = NULL, *card;
	bool has_claims = false;
	for (struct ll_job *job = server->books.jobs; job; job = job->next) {
		for (unsigned i = 0; (card = card_at(job, i)); i++) {
			for (struct ll_job_claim *claim = card->claims; claim; claim = claim->next)
				look_at_claim(server, claim, length_ns, now_ns);
			has_claims |= card->claims != NULL;
			begin_step(card, length_ns);
			if (!card->minute.step.work_ns && !card->minute.step.wanted_ns)
				continue;
			card->minute.next_active = active;
			active = card;
		}
	}
	for (struct ll_job *job = server->books.jobs; job; job = job->next) {
		for (unsigned i = 0; (card = card_at(job, i)); i++) {
			add_others(card, active);
			find_waits(card, length_ns);
		}
		for (unsigned i = 0; (card = card_at(job, i)); i++) {
			uint64_t ns[LL_TIME_PARTS];
			if (!card->claims)
				continue;
			find_peers(card, length_ns, now_ns);
			ll_minute_divide(&card->minute.step, &card->minute.carry, ns);
			ll_minute_add(&card->minute.minute, now_ns, ns);
		}
	}
	return has_claims;
}

static void on_minutes(uv_timer_t *timer)
{
	struct ll_server *server = timer->data;
	uint64_t now_ns = ll_now_ns();
	/* A machine that stood still, or a loadlined that was late, knows nothing of more than the last second. */
	uint64_t length_ns = smaller_of(now_ns - server->minutes_ns, LL_NS_PER_S);
	server->minutes_ns = now_ns;
	if (length_ns && !look_at_all(server, length_ns, now_ns))
		uv_timer_stop(timer);
}

int ll_minutes_init(struct ll_server *server)
{
	server->minutes.data = server;
	return uv_timer_init(&server->loop, &server->minutes);
}

void ll_minutes_wake(struct ll_server *server)
{
	if (!server->minutes.data || uv_is_active((uv_handle_t *)&server->minutes))
		return;
	server->minutes_ns = ll_now_ns();
	uv_timer_start(&server->minutes, on_minutes, LOOK_MS, LOOK_MS);
}
