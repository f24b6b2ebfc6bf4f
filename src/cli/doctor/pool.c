#include "base/host_memory.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/doctor/doctor.h"
#include "cli/hold/words.h"

void ll_doctor_check_pool(struct ll_doctor *doctor)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	uint64_t available = ll_host_available_bytes(), reserve = ll_host_reserve_bytes();
	bool is_limited = ll_host_group_limit_bytes() < ll_host_memory_bytes();
	uint64_t room = available > reserve ? available - reserve : 0;
	ll_hold_add_bytes(&text, room);
	ll_strbuf_adds(&text, is_limited ? _(": what the control group allows now, but for a sixteenth")
					 : _(": what the host has now, but for a sixteenth"));
	if (text.failed)
		return;
	if (room)
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, "pool", NULL, "for programs' memory off the card %s",
			      text.buf);
	else
		ll_doctor_say(doctor, LL_FINDING_WARN, NULL, "pool",
			      N_("programs cannot be evicted; give the group more memory, or end something"),
			      "for programs' memory off the card %s", text.buf);
}
