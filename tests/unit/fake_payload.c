#include "fake_payload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "hold/pacer.h"

#define CARD_OFFSET UINT64_C(1795191391000000000)
#define LATENCY_NS 5000

/* Where the worker finds the world: "/proc/PID/fd/N" of the test. */
#define WORLD_VARIABLE "LOADLINE_TEST_FAKE_WORLD"

struct fake_payload_world *fake_world;

static int make_world(void)
{
	char path[64];
	int fd = memfd_create("fake-world", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, sizeof *fake_world) < 0)
		return -1;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
	setenv(WORLD_VARIABLE, path, 1);
	return fd;
}

void fake_world_open(void)
{
	const char *path = getenv(WORLD_VARIABLE);
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : make_world();
	void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *fake_world, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		abort();
	fake_world = page;
}

struct fake_payload {
	struct ll_payload base;
	volatile struct ll_record records[LL_RECORD_SLOTS];
	uint64_t busy_until_ns; /* card */
	uint32_t unseen;        /* the sequence of a record that is not written yet; 0: none */
	uint64_t unseen_until_ns;
};

static int make(const struct ll_payload_ops *ops, struct ll_payload **ret_payload)
{
	struct fake_payload *payload = calloc(1, sizeof *payload);
	payload->base =
	    (struct ll_payload){.ops = ops, .records = payload->records, .sm_count = 132, .has_card_clock = true};
	fake_world->contexts++;
	*ret_payload = &payload->base;
	return 0;
}

static int fake_open(const struct ll_card *card, const struct ll_payload_config *config,
		     struct ll_payload **ret_payload, struct ll_err *err)
{
	(void)card;
	(void)config;
	fake_world->has_hung_in_open = fake_world->hangs_in_open;
	while (fake_world->hangs_in_open)
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	if (fake_world->open_rc)
		return ll_err_set(err, fake_world->open_rc, "fake: refused");
	return make(&fake_payload_ops, ret_payload);
}

static int alone_open(const struct ll_card *card, const struct ll_payload_config *config,
		      struct ll_payload **ret_payload, struct ll_err *err)
{
	(void)card;
	(void)config;
	(void)err;
	return make(&fake_payload_alone_ops, ret_payload);
}

static int fake_launch(struct ll_payload *base, const struct ll_payload_launch *launch, struct ll_err *err)
{
	struct fake_payload *payload = (struct fake_payload *)base;
	if (fake_world->is_lost)
		return ll_err_set(err, -EIO, "fake: lost");
	fake_world->launches++;
	fake_world->last_blocks = launch->blocks;
	if (fake_world->is_stuck)
		return 0;
	uint64_t called_ns = ll_now_ns(), start_ns = called_ns + CARD_OFFSET + LATENCY_NS;
	if (payload->busy_until_ns > start_ns)
		start_ns = payload->busy_until_ns;
	uint64_t end_ns = start_ns + launch->length_ns;
	struct ll_record record = {.gap_ns = 300};
	if (atomic_exchange(&fake_world->has_stranger, false)) {
		start_ns += LL_NS_PER_MS;
		end_ns = start_ns;
		record.flags = LL_RECORD_LATE;
	} else if (atomic_exchange(&fake_world->has_gap, false)) {
		record.gap_ns = 2 * LL_NS_PER_MS;
		end_ns = start_ns + 3 * LL_NS_PER_MS;
		record.flags = LL_RECORD_GAP;
	} else if (atomic_exchange(&fake_world->has_slow_call, false)) {
		start_ns += LL_NS_PER_MS; /* the host was away between reading its clock and the doorbell */
		end_ns = start_ns;
		record.flags = LL_RECORD_LATE;
		ll_sleep_until_ns(start_ns - CARD_OFFSET - LATENCY_NS);
	}
	volatile struct ll_record *slot = &payload->records[launch->sequence % LL_RECORD_SLOTS];
	slot->start_ns = start_ns;
	slot->end_ns = end_ns;
	slot->gap_ns = record.gap_ns;
	slot->flags = record.flags;
	if (atomic_exchange(&fake_world->has_unseen_record, false)) {
		payload->unseen = launch->sequence;
		payload->unseen_until_ns = called_ns + launch->length_ns + LL_PACER_STALL_NS;
	} else {
		slot->sequence = launch->sequence;
	}
	payload->busy_until_ns = end_ns;
	return 0;
}

static int fake_check(struct ll_payload *base, struct ll_err *err)
{
	struct fake_payload *payload = (struct fake_payload *)base;
	if (payload->unseen && ll_now_ns() >= payload->unseen_until_ns) {
		payload->records[payload->unseen % LL_RECORD_SLOTS].sequence = payload->unseen;
		payload->unseen = 0;
	}
	return fake_world->is_lost ? ll_err_set(err, -EIO, "fake: lost") : 0;
}

static void fake_close(struct ll_payload *base)
{
	while (fake_world->hangs_in_close)
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	free(base);
	fake_world->contexts--;
}

const struct ll_payload_ops fake_payload_ops = {
    .name = "fake",
    .is_restless = true,
    .open = fake_open,
    .launch = fake_launch,
    .check = fake_check,
    .close = fake_close,
};
const struct ll_payload_ops fake_payload_alone_ops = {
    .name = "fake-alone", .open = alone_open, .launch = fake_launch, .check = fake_check, .close = fake_close};
