#include "hold/payload.h"

#include <errno.h>

#include "base/err.h"
#include "driver/cards.h"

bool ll_payload_may_be_vulkan(enum ll_payload_choice choice, bool as_mps_client, const struct ll_card *card)
{
	if (choice != LL_PAYLOAD_AUTO)
		return choice == LL_PAYLOAD_VULKAN;
	return !as_mps_client && !card->is_mig && !ll_driver_sim_folder(card->driver);
}

static int auto_open(const struct ll_card *card, const struct ll_payload_config *config,
		     struct ll_payload **ret_payload, struct ll_err *err)
{
	struct ll_err vulkan_err = {0};
	bool may_vulkan = ll_payload_may_be_vulkan(LL_PAYLOAD_AUTO, config->as_mps_client, card);
	int rc = may_vulkan ? ll_payload_vulkan.open(card, config, ret_payload, &vulkan_err) : -ENODEV;
	if (rc == 0)
		return 0;
	if (rc != -ENODEV && rc != -ENOSYS) {
		if (err)
			*err = vulkan_err;
		return rc;
	}
	return ll_payload_cuda.open(card, config, ret_payload, err);
}

/* Has only open: the payload that it returns has the ops of its own back end. */
static const struct ll_payload_ops payload_auto = {.name = "auto", .open = auto_open};

const struct ll_payload_ops *const ll_payloads[] = {&payload_auto, &ll_payload_vulkan, &ll_payload_cuda, NULL};

const struct ll_payload_ops *ll_payload_choose(enum ll_payload_choice choice)
{
	switch (choice) {
	case LL_PAYLOAD_VULKAN:
		return &ll_payload_vulkan;
	case LL_PAYLOAD_CUDA:
		return &ll_payload_cuda;
	case LL_PAYLOAD_AUTO:
		break;
	}
	return &payload_auto;
}
