#include "probe/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "probe/device.h"
#include "probe/page.h"

_Static_assert(sizeof((struct ll_err *)0)->text == LL_PROBE_TEXT_SIZE, "an error fits its slot");

bool ll_probe_worker_is_asked(int argc, char **argv)
{
	return argc > 1 && strcmp(argv[1], LL_PROBE_WORKER_WORD) == 0;
}

static void send_answer(struct ll_probe_slot *slot, enum ll_probe_state state, const struct ll_err *why)
{
	uint64_t one = 1;
	if (why) {
		slot->code = why->code;
		memcpy(slot->text, why->text, sizeof slot->text);
	}
	atomic_store(&slot->state, state);
	ssize_t n = write(LL_PROBE_FD_ANSWER, &one, sizeof one);
	(void)n; /* nobody waits when the probe is gone, and then this process is, too */
}

static enum ll_probe_call wait_call(struct ll_probe_slot *slot)
{
	uint64_t count;
	for (;;) {
		ssize_t n = read(LL_PROBE_FD_CALL, &count, sizeof count);
		if (n == (ssize_t)sizeof count)
			return (enum ll_probe_call)atomic_exchange(&slot->call, LL_PROBE_CALL_NONE);
		if (errno != EINTR)
			return LL_PROBE_CALL_END;
	}
}

static void serve_calls(struct ll_probe_device *device, struct ll_probe_page *page, uint32_t own)
{
	struct ll_probe_slot *slot = &page->slots[own];
	for (;;) {
		struct ll_err why = {0};
		enum ll_probe_call call = wait_call(slot);
		if (call == LL_PROBE_CALL_END)
			return;
		if (call != LL_PROBE_CALL_RUN)
			continue;
		if (ll_probe_device_run(device, page, own, &why) < 0)
			send_answer(slot, LL_PROBE_FAILED, &why);
		else
			send_answer(slot, LL_PROBE_READY, NULL);
	}
}

static int open_device(struct ll_probe_device *device, const char *uuid, struct ll_driver **ret_driver,
		       struct ll_err *err)
{
	int rc = ll_driver_open(ret_driver, err);
	if (rc < 0)
		return rc;
	const struct ll_card *card = ll_cards_find_uuid(*ret_driver, uuid);
	return card ? ll_probe_device_init(device, card, err) : ll_err_set(err, -ENODEV, "card %s: not there", uuid);
}

/* No helper that a driver starts shall keep them open. NULL: they are not there. */
static struct ll_probe_page *take_page(struct ll_err *err)
{
	struct stat status;
	void *memory = MAP_FAILED;
	if (fstat(LL_PROBE_FD_PAGE, &status) == 0 && status.st_size == sizeof(struct ll_probe_page))
		memory =
		    mmap(NULL, sizeof(struct ll_probe_page), PROT_READ | PROT_WRITE, MAP_SHARED, LL_PROBE_FD_PAGE, 0);
	if (memory == MAP_FAILED) {
		ll_err_set(err, -EINVAL, LL_PROBE_WORKER_WORD ": is for loadline itself, which starts it");
		ll_err_hint(err, "use 'loadline probe'");
		return NULL;
	}
	for (int fd = LL_PROBE_FD_PAGE; fd < LL_PROBE_FDS_END; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return memory;
}

int ll_probe_worker_main(int argc, char **argv, struct ll_err *err)
{
	struct ll_probe_page *page = take_page(err);
	struct ll_probe_device device = {0};
	struct ll_driver *driver = NULL;
	struct ll_err why = {0};
	uint64_t own = 0;
	if (!page)
		return -EINVAL;
	int rc = ll_parse_uint(argc > 2 ? argv[2] : "", 0, LL_PROBE_PARTIES - 1, &own, err);
	if (rc < 0)
		return rc;
	/* The signal comes only to who asked before the parent's end. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != page->parent)
		return ll_err_set(err, -ESRCH, LL_PROBE_WORKER_WORD ": the probe has ended");
	prctl(PR_SET_NAME, "loadline-probe");
	prctl(PR_SET_TIMERSLACK, 1UL);
	struct ll_probe_slot *slot = &page->slots[own];
	if (open_device(&device, page->card_uuid, &driver, &why) < 0) {
		send_answer(slot, LL_PROBE_NO_CONTEXT, &why);
	} else {
		slot->sm_count = device.sm_count;
		slot->full_blocks = device.full_blocks;
		send_answer(slot, LL_PROBE_READY, NULL);
		serve_calls(&device, page, (uint32_t)own);
	}
	ll_probe_device_fini(&device);
	ll_driver_close(driver);
	return 0;
}
