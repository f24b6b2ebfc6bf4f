#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "hold/pacer_shared.h"
#include "hold/payload_cuda.h"
#include "hold/worker.h"
#include "hold/worker_fds.h"
#include "ledger/ledger.h"

static int take_page(struct ll_pacer_shared **ret_shared, struct ll_err *err)
{
	if (ll_pacer_shared_map(LL_WORKER_FD_PAGE, ret_shared, NULL) < 0) {
		ll_err_set(err, -EINVAL, LL_WORKER_WORD ": is for loadline itself, which starts it for each card");
		return ll_err_hint(err, "use 'loadline hold'");
	}
	close(LL_WORKER_FD_PAGE);
	/* No helper that a driver starts shall keep them open. */
	fcntl(LL_WORKER_FD_GOVERNOR, F_SETFD, FD_CLOEXEC);
	fcntl(LL_WORKER_FD_CALL, F_SETFD, FD_CLOEXEC);
	return 0;
}

/* The signal comes only to who asked before the parent's end. */
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

/* Runs the loop on what the page names. An error: it could not begin. */
static int run(struct ll_pacer_shared *shared, const struct ll_payload_ops *const *payloads, struct ll_err *err)
{
	const struct ll_pacer_work *work = &shared->work;
	struct ll_driver *driver = NULL;
	const struct ll_card *card = NULL;
	struct ll_ledger *ledger = NULL;
	const struct ll_payload_ops *payload = find_payload(payloads, work->payload_name);
	int rc = payload ? find_card(work->card_uuid, &driver, &card, err)
			 : ll_err_set(err, -EINVAL, "payload %s: unknown", work->payload_name);
	if (rc == 0 && *work->ledger_folder)
		rc = ll_ledger_open(work->ledger_folder, work->ledger_uuid, false, &ledger, err);
	if (rc == 0) {
		struct ll_pacer_loop_config loop = {
		    .shared = shared,
		    .card = card,
		    .payload_ops = payload,
		    .ledger = ledger,
		    .governor_fd = LL_WORKER_FD_GOVERNOR,
		    .call_fd = LL_WORKER_FD_CALL,
		};
		ll_pacer_loop(&loop);
	}
	ll_ledger_close(ledger);
	ll_driver_close(driver);
	return rc;
}

int ll_worker_main(const struct ll_payload_ops *const *payloads, struct ll_err *err)
{
	struct ll_pacer_shared *shared;
	int rc = take_page(&shared, err);
	if (rc < 0)
		return rc;
	end_with_governor(shared);
	prctl(PR_SET_NAME, "loadline-hold");
	ll_payload_cuda_prepare(shared->work.payload.as_mps_client);
	struct ll_err why = {0};
	if (run(shared, payloads, &why) < 0) {
		ll_pacer_shared_state(shared, LL_PACER_FAILED, &why);
		ll_pacer_wake(LL_WORKER_FD_GOVERNOR);
	}
	/* All is closed. What a driver's library has registered for exit could only keep us here. */
	_exit(LL_EXIT_OK);
}
