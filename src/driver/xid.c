#include "driver/readings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver/internal.h"

static const char what[] = "fault events";

struct ll_xid_watch {
	const struct ll_card *card; /* a whole one */
	struct ll_nvml_event_set *set;
};

static int start_watch(struct ll_xid_watch *watch, struct ll_err *err)
{
	const struct ll_nvml *nvml = ll_card_nvml(watch->card);
	if (!nvml->nvmlEventSetCreate || !nvml->nvmlEventSetFree || !nvml->nvmlDeviceRegisterEvents ||
	    !nvml->nvmlEventSetWait)
		return ll_card_lacks(watch->card, err, what);
	ll_nvml_result status = nvml->nvmlEventSetCreate(&watch->set);
	if (status == LL_NVML_SUCCESS)
		status = nvml->nvmlDeviceRegisterEvents(watch->card->nvml, LL_NVML_EVENT_XID_CRITICAL, watch->set);
	return ll_card_check(watch->card, status, err, what);
}

int ll_xid_open(const struct ll_card *card, struct ll_xid_watch **ret_watch, struct ll_err *err)
{
	struct ll_xid_watch *watch = calloc(1, sizeof *watch);
	if (!watch)
		return ll_err_set(err, -ENOMEM, "card %s: %s: %s", card->label, what, strerror(ENOMEM));
	watch->card = ll_card_whole(card);
	int rc = start_watch(watch, err);
	if (rc) {
		ll_xid_close(watch);
		return rc;
	}
	*ret_watch = watch;
	return 0;
}

void ll_xid_close(struct ll_xid_watch *watch)
{
	if (!watch)
		return;
	if (watch->set)
		ll_card_nvml(watch->card)->nvmlEventSetFree(watch->set);
	free(watch);
}

int ll_xid_poll(struct ll_xid_watch *watch, uint64_t *ret_xid, struct ll_err *err)
{
	struct ll_nvml_event event;
	ll_nvml_result status = ll_card_nvml(watch->card)->nvmlEventSetWait(watch->set, &event, 0);
	if (status == LL_NVML_ERROR_TIMEOUT)
		return 0;
	if (status != LL_NVML_SUCCESS)
		return ll_card_check(watch->card, status, err, what);
	if (!(event.type & LL_NVML_EVENT_XID_CRITICAL))
		return 0;
	*ret_xid = event.data;
	return 1;
}

/* From NVIDIA's Xid catalogue. */
static const struct {
	unsigned xid;
	const char *text;
} catalogue[] = {
    {13, "graphics engine exception of a program"},
    {31, "memory page fault of a program"},
    {32, "invalid or corrupted push buffer"},
    {38, "driver firmware error"},
    {43, "a program's kernel stopped"},
    {45, "a program's channels were removed, mostly after another error or its end"},
    {48, "double-bit memory error"},
    {61, "internal micro-controller breakpoint"},
    {62, "internal micro-controller halt"},
    {63, "memory page retired or row remapped"},
    {64, "memory page retirement or row remapping failed"},
    {68, "video processor exception of a program"},
    {69, "graphics engine class error of a program"},
    {74, "NVLink error"},
    {79, "GPU has fallen off the bus"},
    {92, "high rate of single-bit memory errors"},
    {94, "contained memory error: the affected programs must restart"},
    {95, "uncontained memory error: the card must be reset"},
    {109, "context switch timeout of a program"},
    {119, "GSP firmware does not answer"},
    {120, "GSP firmware error"},
};

const char *ll_xid_text(uint64_t xid)
{
	for (size_t i = 0; i < sizeof catalogue / sizeof *catalogue; i++) {
		if (catalogue[i].xid == xid)
			return catalogue[i].text;
	}
	return "see NVIDIA's Xid catalogue";
}
