#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cards.h"

/* The newer call tells slices apart; the older one gives the whole card's UUID for a slice. */
static ll_cu_result get_uuid(const struct ll_cuda *cuda, ll_cu_device device, struct ll_cu_uuid *ret_uuid)
{
	return cuda->cuDeviceGetUuid ? cuda->cuDeviceGetUuid(ret_uuid, device)
				     : cuda->cuDeviceGetUuid_v1(ret_uuid, device);
}

static int fail_hidden(const struct ll_card *card, struct ll_err *err)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	if (card->has_slices) {
		ll_err_set(err, -ENODEV, "card %s: is in MIG mode: CUDA shows its slices only", card->label);
		ll_err_hint(err, "choose a slice, like -i %s:0", card->label);
	} else if (visible) {
		ll_err_set(err, -ENODEV, "card %s (%s): hidden from CUDA by CUDA_VISIBLE_DEVICES=%.100s", card->label,
			   card->uuid, visible);
		/* Unset it shows the first slice alone. */
		ll_err_hint(err,
			    card->is_mig ? "set CUDA_VISIBLE_DEVICES to %s"
					 : "unset CUDA_VISIBLE_DEVICES, or set it to %s",
			    card->uuid);
	} else {
		ll_err_set(err, -ENODEV, "card %s (%s): not seen by CUDA", card->label, card->uuid);
		ll_err_hint(err,
			    card->is_mig ? "CUDA shows one slice to a process: set CUDA_VISIBLE_DEVICES to %s"
					 : "see `loadline doctor`",
			    card->uuid);
	}
	return -ENODEV;
}

static int find_device(const struct ll_card *card, const struct ll_cuda *cuda, ll_cu_device *ret_device,
		       struct ll_err *err)
{
	int count = 0;
	ll_cu_result status = cuda->cuDeviceGetCount(&count);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(cuda, status, err, "card %s: count CUDA's cards", card->label);
	for (int ordinal = 0; ordinal < count; ordinal++) {
		ll_cu_device device;
		struct ll_cu_uuid uuid;
		if (cuda->cuDeviceGet(&device, ordinal) || get_uuid(cuda, device, &uuid) ||
		    memcmp(uuid.bytes, card->uuid_bytes, sizeof card->uuid_bytes) != 0)
			continue;
		*ret_device = device;
		return 0;
	}
	return fail_hidden(card, err);
}

int ll_card_cuda_device(const struct ll_card *card, const struct ll_cuda **ret_cuda, ll_cu_device *ret_device,
			struct ll_err *err)
{
	const struct ll_cuda *cuda;
	int rc = ll_driver_cuda(card->driver, &cuda, err);
	if (!rc)
		rc = find_device(card, cuda, ret_device, err);
	if (rc)
		return rc;
	if (ret_cuda)
		*ret_cuda = cuda;
	return 0;
}
