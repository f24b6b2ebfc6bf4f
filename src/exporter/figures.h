/*
 * figures.h - what loadline-exporter knows of the machine: loadlined's replies, read over its socket as `loadline
 * status` reads them.
 *
 * The exporter is an ordinary user to loadlined, which leaves out what `visibility` hides from users. If the exporter
 * runs as an admin, it leaves out the same itself.
 */
#ifndef LOADLINE_EXPORTER_FIGURES_H
#define LOADLINE_EXPORTER_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/client.h"
#include "protocol/metrics.h"
#include "protocol/sensed.h"

struct ll_err;

struct ll_figures {
	bool is_up; /* loadlined has replied; else all below is empty */
	struct ll_message_welcome welcome;
	struct ll_list list;
	struct ll_sensed sensed;
	struct ll_metrics_sums sums;
	uint64_t asked_ns; /* how long the replies took */
};

/* Reads all. Waits for at most 4 s. An error leaves is_up false, and is told by err. Call fini after success and after
 * failure. */
int ll_figures_read(struct ll_figures *figures, const struct ll_place *place, struct ll_err *err);
void ll_figures_fini(struct ll_figures *figures);

#endif
