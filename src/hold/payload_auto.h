/*
 * payload_auto.h - which back end a user's choice means.
 *
 * auto opens Vulkan, for it takes a fifth of the GPU memory, and CUDA where Vulkan cannot work on that card (no loader,
 * no driver file, a MIG slice, the simulator). Which one it became is in the opened payload's ops.
 */
#ifndef LOADLINE_HOLD_PAYLOAD_AUTO_H
#define LOADLINE_HOLD_PAYLOAD_AUTO_H

#include <stdbool.h>

#include "hold/config.h"
#include "hold/payload.h"

/* Every choice, NULL-ended: where a worker finds its payload by name. */
extern const struct ll_payload_ops *const ll_payloads[];

/* Whether that choice opens Vulkan on this card, or at least tries to. */
bool ll_payload_may_be_vulkan(enum ll_payload_choice choice, bool as_mps_client, const struct ll_card *card);

const struct ll_payload_ops *ll_payload_choose(enum ll_payload_choice choice);

#endif
