/* Since when a card has had no work, and when a program on it last had some. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/runtime_folder.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/status/status.h"

/* More than NVML keeps. */
#define LOOK_BACK_NS (60 * LL_NS_PER_S)
/* The slowest refresh of NVML is 1 s: an older sample does not tell about now. */
#define FRESH_NS (2 * LL_NS_PER_S)
enum { SAMPLES = 256, KEPT_SIZE = 128 };

/* ---- the card ---- */

static uint64_t boot_of_wall(uint64_t wall_ns, uint64_t now_wall_ns, uint64_t now_boot_ns)
{
	uint64_t ago_ns = now_wall_ns > wall_ns ? now_wall_ns - wall_ns : 0;
	return now_boot_ns > ago_ns ? now_boot_ns - ago_ns : 1;
}

/* Goes back from the newest sample as long as there is no work. */
static void find_span(const struct ll_util_sample *samples, size_t count, struct ll_status_idle *ret_idle)
{
	uint64_t now_wall_ns = ll_wall_ns(), now_boot_ns = ll_boot_ns(), begin_ns = 0;
	for (size_t i = count; i > 0 && samples[i - 1].percent <= 0; i--) {
		if (begin_ns && samples[i - 1].end_wall_ns + FRESH_NS < begin_ns)
			break;
		begin_ns = samples[i - 1].end_wall_ns - samples[i - 1].window_ns;
	}
	ret_idle->seen_ns = boot_of_wall(samples[count - 1].end_wall_ns, now_wall_ns, now_boot_ns);
	ret_idle->since_ns = begin_ns ? boot_of_wall(begin_ns, now_wall_ns, now_boot_ns) : 0;
	ret_idle->is_known = now_boot_ns - ret_idle->seen_ns <= FRESH_NS;
}

void ll_status_idle_go_on(struct ll_status_idle *idle, const struct ll_status_idle *earlier)
{
	if (idle->is_known && idle->since_ns && earlier->is_known && earlier->since_ns &&
	    earlier->since_ns < idle->since_ns && idle->since_ns <= earlier->seen_ns)
		idle->since_ns = earlier->since_ns;
}

/* ---- from reading to reading ---- */

static int open_kept(const struct ll_card *card)
{
	char folder[LL_FOLDER_SIZE], name[sizeof card->uuid + sizeof "idle-"];
	int folder_fd;
	if (ll_runtime_folder(ll_driver_sim_folder(card->driver), folder, NULL) ||
	    ll_runtime_folder_open(folder, &folder_fd, NULL))
		return -1;
	snprintf(name, sizeof name, "idle-%s", card->uuid);
	int fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	close(folder_fd);
	return fd;
}

/* The file is one line, always as long: a boot, and the span. So one write replaces it. */
static void keep(const struct ll_card *card, struct ll_status_idle *idle)
{
	char text[KEPT_SIZE] = "", boot[LL_BOOT_ID_SIZE], its_boot[LL_BOOT_ID_SIZE];
	struct ll_status_idle earlier = {.is_known = true};
	LL_SCOPE_CLOSE int fd = open_kept(card);
	ll_boot_id_read(boot);
	if (fd < 0 || !boot[0])
		return;
	ssize_t length = pread(fd, text, sizeof text - 1, 0);
	if (length > 0 &&
	    sscanf(text, "%39s %" SCNu64 " %" SCNu64, its_boot, &earlier.since_ns, &earlier.seen_ns) == 3 &&
	    strcmp(boot, its_boot) == 0)
		ll_status_idle_go_on(idle, &earlier);
	int written =
	    snprintf(text, sizeof text, "%-39s %020" PRIu64 " %020" PRIu64 "\n", boot, idle->since_ns, idle->seen_ns);
	length = pwrite(fd, text, (size_t)written, 0);
	(void)length; /* the next reading tells less then */
}

void ll_status_read_idle(struct ll_status_card *status)
{
	struct ll_util_reader reader;
	struct ll_util_sample samples[SAMPLES];
	size_t count = 0;
	status->idle = (struct ll_status_idle){.is_known = false};
	ll_util_reader_init(&reader, status->card);
	ll_util_reader_look_back(&reader, LOOK_BACK_NS);
	if (ll_util_reader_next(&reader, samples, SAMPLES, &count, NULL) == 0 && count)
		find_span(samples, count, &status->idle);
	if (status->idle.is_known)
		keep(status->card, &status->idle);
}

/* ---- programs ---- */

struct ll_status_last ll_status_last_of_claim(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	(void)status;
	if (claim->priority == LL_PRIORITY_HOLD)
		return (struct ll_status_last){.kind = LL_LAST_UNKNOWN};
	if (claim->row.idle_ns == UINT64_MAX)
		return (struct ll_status_last){.kind = LL_LAST_NEVER};
	return (struct ll_status_last){.kind = claim->row.idle_ns ? LL_LAST_AGO : LL_LAST_RUNNING,
				       .ago_ns = claim->row.idle_ns};
}

struct ll_status_last ll_status_last_of_stranger(const struct ll_status_card *status,
						 const struct ll_status_stranger *stranger)
{
	const struct ll_status_idle *idle = &status->idle;
	uint64_t now_ns = ll_boot_ns(), age_ns = ll_status_process_of(status, stranger->pid)->age_ns;
	struct ll_status_last here = {.kind = LL_LAST_UNKNOWN, .is_card_busy = idle->is_known};
	if (idle->is_known && idle->since_ns) {
		uint64_t idle_ns = now_ns > idle->since_ns ? now_ns - idle->since_ns : 0;
		here = (struct ll_status_last){.kind = LL_LAST_AT_LEAST, .ago_ns = age_ns < idle_ns ? age_ns : idle_ns};
	}
	return ll_status_last_sensed(stranger, here);
}

uint64_t ll_status_age(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	uint64_t age_ns = ll_status_process_of(status, claim->is_pid_ours ? claim->pid : 0)->age_ns;
	if (age_ns != LL_AGE_UNKNOWN)
		return age_ns;
	return status->now_ns > claim->taken_ns ? status->now_ns - claim->taken_ns : 0;
}

/* ---- words ---- */

const char *ll_status_last_name(const struct ll_status_last *last)
{
	static const char *const names[] = {
	    [LL_LAST_UNKNOWN] = "unknown",   [LL_LAST_RUNNING] = "running", [LL_LAST_AGO] = "ago",
	    [LL_LAST_AT_LEAST] = "at_least", [LL_LAST_NEVER] = "never",
	};
	return names[last->kind];
}

void ll_status_add_age(struct ll_strbuf *text, uint64_t age_ns)
{
	uint64_t seconds = age_ns / LL_NS_PER_S;
	if (age_ns == LL_AGE_UNKNOWN)
		return;
	if (seconds < 120)
		ll_strbuf_addf(text, "%u s", (unsigned)seconds);
	else if (seconds < 7200)
		ll_strbuf_addf(text, "%u min", (unsigned)(seconds / 60));
	else if (seconds < 172800)
		ll_strbuf_addf(text, "%u h", (unsigned)(seconds / 3600));
	else
		ll_strbuf_addf(text, "%u d", (unsigned)(seconds / 86400));
}

void ll_status_add_last(struct ll_strbuf *text, const struct ll_status_last *last)
{
	switch (last->kind) {
	case LL_LAST_UNKNOWN:
		ll_strbuf_adds(text, last->is_card_busy ? _("unknown: card busy") : _("unknown"));
		break;
	case LL_LAST_RUNNING:
		ll_strbuf_adds(text, _("now"));
		break;
	case LL_LAST_AGO:
		ll_status_add_age(text, last->ago_ns);
		break;
	case LL_LAST_AT_LEAST:
		ll_strbuf_adds(text, "≥ ");
		ll_status_add_age(text, last->ago_ns);
		break;
	case LL_LAST_NEVER:
		ll_strbuf_adds(text, _("never"));
		break;
	}
}
