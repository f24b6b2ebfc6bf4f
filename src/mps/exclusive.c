#include "mps/exclusive.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"

static int check_empty(const struct ll_card *card, struct ll_err *err)
{
	struct ll_process_list list = {0};
	int rc = ll_read_processes(card, LL_PROCESS_ALL, &list, NULL);
	pid_t first = !rc && list.count ? list.items[0].pid : 0;
	ll_process_list_fini(&list);
	if (!first)
		return 0; /* if the driver does not tell its processes, the start is not refused */
	ll_err_set(err, -EBUSY, "card %s: process %d uses it: MPS cannot start beside it in exclusive mode",
		   card->label, (int)first);
	return ll_err_hint(err, "end it first, or start without --exclusive");
}

static int plan_card(const struct ll_card *card, struct ll_mps_record_card *planned, struct ll_err *err)
{
	enum ll_compute_mode mode;
	if (card->is_mig)
		return ll_err_set(err, -ENOSYS, "card %s: a MIG slice has no compute mode of its own", card->label);
	int rc = ll_read_compute_mode(card, &mode, err);
	if (rc)
		return rc;
	planned->before = mode;
	planned->is_changed = mode != LL_MODE_EXCLUSIVE_PROCESS;
	if (!planned->is_changed)
		return 0;
	if (geteuid() != 0) {
		ll_err_set(err, -EPERM, "card %s: only root may change its compute mode", card->label);
		return ll_err_hint(err, "start without --exclusive: MPS works in the default mode too");
	}
	return check_empty(card, err);
}

int ll_mps_exclusive_plan(const struct ll_card *const *cards, size_t count, struct ll_mps_record *record,
			  struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < count && i < record->card_count; i++)
		rc = plan_card(cards[i], &record->cards[i], err);
	return rc;
}

int ll_mps_exclusive_set(const struct ll_driver *driver, const struct ll_mps_record *record, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < record->card_count; i++) {
		const struct ll_card *card = ll_cards_find_uuid(driver, record->cards[i].uuid);
		if (!card)
			return ll_err_set(err, -ENODEV, "card %s is not there any more", record->cards[i].uuid);
		if (record->cards[i].is_changed)
			rc = ll_set_compute_mode(card, LL_MODE_EXCLUSIVE_PROCESS, err);
	}
	return rc;
}

static int restore_card(const struct ll_driver *driver, const struct ll_mps_record_card *recorded, size_t *restored,
			struct ll_err *err)
{
	const struct ll_card *card = ll_cards_find_uuid(driver, recorded->uuid);
	enum ll_compute_mode mode;
	if (!card)
		return ll_err_set(err, -ENODEV, "card %s is not there: its compute mode is not restored",
				  recorded->uuid);
	int rc = ll_read_compute_mode(card, &mode, err);
	if (rc || mode != LL_MODE_EXCLUSIVE_PROCESS)
		return rc;
	rc = ll_set_compute_mode(card, recorded->before, err);
	*restored += !rc;
	return rc;
}

int ll_mps_exclusive_restore(const struct ll_driver *driver, const struct ll_mps_record *record, size_t *ret_restored,
			     struct ll_err *err)
{
	int first = 0;
	size_t restored = 0;
	for (size_t i = 0; i < record->card_count; i++) {
		int rc = record->cards[i].is_changed
			     ? restore_card(driver, &record->cards[i], &restored, first ? NULL : err)
			     : 0;
		first = first ? first : rc;
	}
	*ret_restored += restored;
	return first;
}

size_t ll_mps_exclusive_count(const struct ll_driver *driver, const struct ll_mps_record *record)
{
	size_t count = 0;
	for (size_t i = 0; i < record->card_count; i++) {
		const struct ll_card *card = ll_cards_find_uuid(driver, record->cards[i].uuid);
		enum ll_compute_mode mode;
		if (record->cards[i].is_changed && card && ll_read_compute_mode(card, &mode, NULL) == 0)
			count += mode == LL_MODE_EXCLUSIVE_PROCESS;
	}
	return count;
}
