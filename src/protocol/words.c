#include "protocol/words.h"

#include "base/translate.h"

#include <stddef.h>

const char *ll_priority_name(enum ll_priority priority)
{
	switch (priority) {
	case LL_PRIORITY_HIGH:
		return "high";
	case LL_PRIORITY_NORMAL:
		return "normal";
	case LL_PRIORITY_LOW:
		return "low";
	case LL_PRIORITY_HOLD:
		return "hold";
	case LL_PRIORITY_NONE:
		break;
	}
	return "unknown";
}

const char *ll_claim_state_name(enum ll_priority priority, enum ll_claim_state state)
{
	switch (state) {
	case LL_CLAIM_STARTING:
		return N_("starting");
	case LL_CLAIM_RUNNING:
		return priority == LL_PRIORITY_HOLD ? N_("holding") : N_("running");
	case LL_CLAIM_YIELDED:
		return N_("yielded");
	case LL_CLAIM_RELEASED:
		return N_("released");
	case LL_CLAIM_WAITING:
		return N_("waiting");
	case LL_CLAIM_ENDING:
		return N_("ending");
	}
	return N_("unknown");
}

const char *ll_way_name(enum ll_way way)
{
	return way == LL_WAY_SLICES ? "slices" : way == LL_WAY_SPACE ? "space" : NULL;
}

const char *ll_sharing_name(enum ll_sharing sharing)
{
	switch (sharing) {
	case LL_SHARING_UNKNOWN:
		break;
	case LL_SHARING_SLICES:
	case LL_SHARING_SLICES_YET:
	case LL_SHARING_SLICES_PAY:
	case LL_SHARING_TOO_DEEP:
		return "slices";
	case LL_SHARING_MEASURED:
		return "both";
	case LL_SHARING_VISITS_PAY:
	case LL_SHARING_VISITS_RULE:
		return "visits";
	case LL_SHARING_CLASSES:
		return "classes";
	case LL_SHARING_WINDOWS:
		return "windows";
	}
	return NULL;
}

enum ll_priority ll_priority_of_class(uint32_t limit_class)
{
	return limit_class == LL_LIMIT_CLASS_HIGH  ? LL_PRIORITY_HIGH
	       : limit_class == LL_LIMIT_CLASS_LOW ? LL_PRIORITY_LOW
						   : LL_PRIORITY_NORMAL;
}

enum ll_limit_class ll_class_of_priority(enum ll_priority priority)
{
	return priority == LL_PRIORITY_HIGH  ? LL_LIMIT_CLASS_HIGH
	       : priority == LL_PRIORITY_LOW ? LL_LIMIT_CLASS_LOW
					     : LL_LIMIT_CLASS_NORMAL;
}
