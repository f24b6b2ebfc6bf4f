/* What is known of how programs get on beside each other: by slices and by space. */
#include <errno.h>
#include <string.h>

#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/other_way.h"
#include "cli/doctor/doctor.h"
#include "earlier/file.h"

static const char check[] = "sharing";

void ll_doctor_check_sharing(struct ll_doctor *doctor, const struct ll_card *card)
{
	const struct ll_list *list = &doctor->view.list;
	LL_SCOPE_FREE struct ll_earlier *earlier = ll_other_way_read(ll_driver_sim_folder(card->driver));
	for (size_t i = 0; earlier && i < list->card_count; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		const struct ll_message_card_row *row = &list->cards[i];
		const struct ll_message_job_row *job = ll_list_job(list, row->job_number);
		struct ll_other_way other;
		if (!job || strcmp(row->uuid, card->uuid) != 0 ||
		    !ll_other_way_find(earlier, row, ll_way_of(&job->job.limits), &other))
			continue;
		ll_other_way_add(&text, &other);
		ll_doctor_say(doctor, LL_FINDING_OK, card, check, NULL, "%s: %s", job->job.tenant, text.buf);
	}
}

void ll_doctor_check_earlier(struct ll_doctor *doctor, const char *sim_folder)
{
	static const char advice[] = N_("remove it: it says only how programs got on beside each other");
	LL_SCOPE_FREE struct ll_earlier *earlier = calloc(1, sizeof *earlier);
	char folder[PATH_MAX];
	struct ll_err err = {0};
	if (!earlier || ll_earlier_folder(sim_folder, folder, NULL))
		return;
	if (ll_earlier_read(folder, earlier, &err))
		ll_doctor_say(doctor, LL_FINDING_WARN, NULL, check,
			      err.code == -EBADMSG
				  ? N_("the next program that shares a card puts it aside, and begins another")
				  : N_("programs that share a card have nothing to compare with"),
			      "%s", err.text);
	if (ll_earlier_has_damaged(folder))
		ll_doctor_say(doctor, LL_FINDING_WARN, NULL, check, advice,
			      "%s/" LL_EARLIER_DAMAGED ": a damaged file that was put aside", folder);
}
