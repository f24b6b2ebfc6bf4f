#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/translate.h"
#include "hold/pacer_shared.h"
#include "hold/payload.h"
#include "hold/worker.h"
#include "hold/worker_spawn.h"

/* All lanes of this process. */
struct crew {
	const struct ll_payload_ops *const *payloads;
	pthread_mutex_t lock; /* guards busy, and with it the end of the process */
	size_t busy;          /* lanes that are served */
};

struct lane {
	struct crew *crew;
	struct ll_pacer_shared *shared;
	int governor_fd;
	int call_fd;
};

/* A parent that ended before the prctl sends no signal, so this process ends itself. */
static void end_with_governor(const struct ll_pacer_shared *shared)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != shared->governor_pid)
		_exit(LL_EXIT_FAILED);
}

static const struct ll_payload_ops *find_payload(const struct ll_payload_ops *const *payloads, const char *name)
{
	while (*payloads && strcmp((*payloads)->name, name) != 0)
		payloads++;
	return *payloads;
}

static int find_card(const char *uuid, struct ll_driver **ret_driver, const struct ll_card **ret_card,
		     struct ll_err *err)
{
	if (!*uuid)
		return 0;
	int rc = ll_driver_open(ret_driver, err);
	if (rc < 0)
		return rc;
	*ret_card = ll_cards_find_uuid(*ret_driver, uuid);
	return *ret_card ? 0 : ll_err_set(err, -ENODEV, "card %s: not there", uuid);
}

/* Runs the loop with the card and payload that the page names. An error: the loop could not start. */
static int run_lane(const struct lane *lane, struct ll_err *err)
{
	const struct ll_pacer_work *work = &lane->shared->work;
	struct ll_driver *driver = NULL;
	const struct ll_card *card = NULL;
	const struct ll_payload_ops *payload = find_payload(lane->crew->payloads, work->payload_name);
	int rc = payload ? find_card(work->card_uuid, &driver, &card, err)
			 : ll_err_set(err, -EINVAL, "payload %s: unknown", work->payload_name);
	if (rc == 0) {
		struct ll_pacer_loop_config loop = {
		    .shared = lane->shared,
		    .card = card,
		    .payload_ops = payload,
		    .governor_fd = lane->governor_fd,
		    .call_fd = lane->call_fd,
		};
		ll_pacer_loop(&loop);
	}
	ll_driver_close(driver);
	return rc;
}

/* ---- a lane between its contexts ---- */

static bool begin_serving(const struct lane *lane)
{
	LL_SCOPE_LOCK(&lane->crew->lock);
	bool is_mine = ll_pacer_shared_take_lane(lane->shared);
	lane->crew->busy += is_mine;
	return is_mine;
}

/* Returns false if the lane moves to another worker. This process may then not touch its page any more. */
static bool free_lane(const struct lane *lane)
{
	LL_SCOPE_SHARED_LOCK(lane->shared);
	ll_pacer_shared_free_lane(lane->shared);
	return !ll_pacer_shared_goes_alone(lane->shared);
}

/*
 * The last lane ends the process. The keeper frees that lane after the end, when the process's own memory on the card
 * is gone too. _exit skips the exit handlers of the driver's libraries: all is closed, and they could hang.
 */
static bool end_serving(const struct lane *lane)
{
	LL_SCOPE_LOCK(&lane->crew->lock);
	if (--lane->crew->busy == 0)
		_exit(LL_EXIT_OK);
	bool stays = free_lane(lane);
	ll_pacer_wake(lane->governor_fd);
	return stays;
}

static void wait_call(const struct lane *lane, uint32_t heard)
{
	ll_parking_park(&lane->shared->parking, heard);
	ll_pacer_sleep(lane->call_fd, -1);
	ll_parking_leave(&lane->shared->parking);
}

static void serve_lane(const struct lane *lane)
{
	bool stays = true;
	while (stays) {
		uint32_t heard = ll_parking_listen(&lane->shared->parking);
		while (!begin_serving(lane)) {
			wait_call(lane, heard);
			heard = ll_parking_listen(&lane->shared->parking);
		}
		struct ll_err why = {0};
		if (run_lane(lane, &why) < 0) {
			ll_pacer_shared_state(lane->shared, LL_PACER_FAILED, &why);
			ll_pacer_wake(lane->governor_fd);
		}
		stays = end_serving(lane);
	}
}

static void *lane_main(void *arg)
{
	serve_lane(arg);
	return NULL;
}

/* ---- the process ---- */

/* Takes as many lanes as there are: the descriptor behind the last one is not open. */
static struct lane *take_lanes(struct crew *crew, size_t *ret_count, struct ll_err *err)
{
	struct lane *lanes = NULL;
	struct ll_pacer_shared *shared;
	size_t count = 0;
	while (ll_pacer_shared_map(ll_worker_fd(count, LL_WORKER_FD_PAGE), &shared, NULL) == 0) {
		struct lane *grown = realloc(lanes, (count + 1) * sizeof *lanes);
		if (!grown) {
			ll_err_set(err, -ENOMEM, LL_WORKER_WORD ": out of memory");
			free(lanes);
			return NULL;
		}
		lanes = grown;
		close(ll_worker_fd(count, LL_WORKER_FD_PAGE));
		lanes[count] = (struct lane){.crew = crew,
					     .shared = shared,
					     .governor_fd = ll_worker_fd(count, LL_WORKER_FD_GOVERNOR),
					     .call_fd = ll_worker_fd(count, LL_WORKER_FD_CALL)};
		/* A helper process that a driver starts must not inherit them. */
		fcntl(lanes[count].governor_fd, F_SETFD, FD_CLOEXEC);
		fcntl(lanes[count].call_fd, F_SETFD, FD_CLOEXEC);
		count++;
	}
	if (!lanes) {
		ll_err_set(err, -EINVAL, LL_WORKER_WORD ": is for loadline itself, which starts it for each card");
		ll_err_hint(err, "use 'loadline hold'");
	}
	*ret_count = count;
	return lanes;
}

/* This thread serves the first lane and never ends, because PR_SET_PDEATHSIG belongs to it. */
static int serve_all(struct lane *lanes, size_t count, struct ll_err *err)
{
	/* A sanitizer's malloc_trim is not safe for threads at its first call. So that call is made here. */
	malloc_trim(0);
	for (size_t i = 1; i < count; i++) {
		pthread_t thread;
		int rc = pthread_create(&thread, NULL, lane_main, &lanes[i]);
		if (rc != 0)
			return ll_err_set(err, -rc, LL_WORKER_WORD ": start a thread: %s", strerror(rc));
		pthread_detach(thread);
	}
	serve_lane(&lanes[0]);
	for (;;)
		pause();
}

int ll_worker_main(const struct ll_payload_ops *const *payloads, struct ll_err *err)
{
	static struct crew crew = {.lock = PTHREAD_MUTEX_INITIALIZER};
	size_t count;
	crew.payloads = payloads;
	struct lane *lanes = take_lanes(&crew, &count, err);
	if (!lanes)
		return err ? err->code : -EINVAL;
	end_with_governor(lanes[0].shared);
	prctl(PR_SET_NAME, "loadline-hold");
	/* Errors go to the hold, which may write them into JSON lines. */
	if (!lanes[0].shared->work.payload.is_translated) {
		setlocale(LC_MESSAGES, "C");
		ll_translate_by(NULL);
	}
	ll_payload_cuda_prepare(lanes[0].shared->work.payload.as_mps_client);
	return serve_all(lanes, count, err);
}
