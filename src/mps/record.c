#include "mps/mps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/utf8.h"

#define RECORD_SUFFIX ".record"

/* ---- records and their files ---- */

void ll_mps_record_path(const char *folder, const char *pipe, char ret_path[LL_MPS_RECORD_PATH])
{
	snprintf(ret_path, LL_MPS_RECORD_PATH, "%s/%016" PRIx64 RECORD_SUFFIX, folder, ll_text_hash(pipe));
}

enum { TEXT_SIZE = 16384 };

static const char first_line[] = "loadline mps 1\n";

int ll_mps_record_format(const struct ll_mps_record *record, char *ret_text, size_t size)
{
	size_t used = 0;
	int n = snprintf(ret_text, size, "%spipe %s\nlog %s\ndaemon %d %" PRIu64 "\n", first_line, record->pipe,
			 record->log, (int)record->pid, record->start_ticks);
	for (size_t i = 0; n >= 0 && (used += (size_t)n) < size && i < record->card_count; i++) {
		const struct ll_mps_record_card *card = &record->cards[i];
		n = snprintf(ret_text + used, size - used, "card %s %s %d\n", card->uuid,
			     card->is_changed ? "changed" : "kept", (int)card->before);
	}
	/* The last line shows that the file is complete. */
	if (used < size)
		n = snprintf(ret_text + used, size - used, "end\n");
	return n < 0 || used + (size_t)n >= size ? -ENOSPC : 0;
}

static int parse_card(const char *line, struct ll_mps_record *record)
{
	struct ll_mps_record_card card = {.is_changed = false};
	char word[16];
	int mode;
	_Static_assert(LL_UUID_SIZE == 96, "the width below");
	if (record->card_count >= LL_MPS_RECORD_CARDS || sscanf(line, "card %95s %15s %d", card.uuid, word, &mode) != 3)
		return -EBADMSG;
	if (mode < LL_MODE_DEFAULT || mode > LL_MODE_EXCLUSIVE_PROCESS)
		return -EBADMSG;
	card.is_changed = strcmp(word, "changed") == 0;
	card.before = (enum ll_compute_mode)mode;
	record->cards[record->card_count++] = card;
	return 0;
}

static int parse_path(const char *line, const char *key, char ret_path[LL_MPS_PATH_SIZE])
{
	size_t length = strlen(key);
	if (strncmp(line, key, length) != 0 || line[length] != '/' || strlen(line + length) >= LL_MPS_PATH_SIZE)
		return -EBADMSG;
	memcpy(ret_path, line + length, strlen(line + length) + 1);
	return 0;
}

static int parse_line(const char *line, struct ll_mps_record *record)
{
	int pid;
	if (strncmp(line, "pipe ", 5) == 0)
		return parse_path(line, "pipe ", record->pipe);
	if (strncmp(line, "log ", 4) == 0)
		return parse_path(line, "log ", record->log);
	if (strncmp(line, "card ", 5) == 0)
		return parse_card(line, record);
	if (sscanf(line, "daemon %d %" SCNu64, &pid, &record->start_ticks) != 2 || pid < 0)
		return -EBADMSG;
	record->pid = (pid_t)pid;
	return 0;
}

int ll_mps_record_parse(const char *text, struct ll_mps_record *ret_record)
{
	char copy[TEXT_SIZE];
	struct ll_mps_record record = {.pid = 0};
	size_t length = strlen(text);
	char *rest = NULL;
	bool has_end = false;
	if (length >= sizeof copy || strncmp(text, first_line, strlen(first_line)) != 0)
		return -EBADMSG;
	memcpy(copy, text, length + 1);
	for (char *line = strtok_r(copy + strlen(first_line), "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		has_end = strcmp(line, "end") == 0;
		if (!has_end && parse_line(line, &record))
			return -EBADMSG;
	}
	if (!has_end || !*record.pipe || !*record.log)
		return -EBADMSG;
	*ret_record = record;
	return 0;
}

static int write_file(const char *path, const char *text, struct ll_err *err)
{
	LL_SCOPE_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return ll_err_set(err, -errno, "MPS: %.200s: %s", path, strerror(errno));
	size_t length = strlen(text);
	if (write(fd, text, length) != (ssize_t)length || fsync(fd))
		return ll_err_set(err, -EIO, "MPS: %.200s: cannot be written", path);
	return 0;
}

int ll_mps_record_write(const char *folder, const struct ll_mps_record *record, struct ll_err *err)
{
	char text[TEXT_SIZE];
	char path[LL_MPS_RECORD_PATH];
	char fresh[LL_MPS_RECORD_PATH + 8];
	if (ll_mps_record_format(record, text, sizeof text))
		return ll_err_set(err, -ENOSPC, "MPS: its record is too long");
	ll_mps_record_path(folder, record->pipe, path);
	snprintf(fresh, sizeof fresh, "%s.new", path);
	int rc = write_file(fresh, text, err);
	if (!rc && rename(fresh, path))
		rc = ll_err_set(err, -errno, "MPS: %.200s: %s", path, strerror(errno));
	if (rc)
		unlink(fresh);
	return rc;
}

static int read_file(const char *path, struct ll_mps_record *ret_record, struct ll_err *err)
{
	char text[TEXT_SIZE];
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return ll_err_set(err, -errno, "MPS: %.200s: %s", path, strerror(errno));
	ssize_t n = read(fd, text, sizeof text - 1);
	if (n < 0)
		return ll_err_set(err, -errno, "MPS: %.200s: %s", path, strerror(errno));
	text[n] = '\0';
	if (ll_mps_record_parse(text, ret_record)) {
		ll_err_set(err, -EBADMSG, "MPS: %.200s: is garbled", path);
		return ll_err_hint(err, "look at the cards' compute modes, set them as they should be, and remove it");
	}
	return 0;
}

int ll_mps_record_read(const char *folder, const char *pipe, struct ll_mps_record *ret_record, struct ll_err *err)
{
	char path[LL_MPS_RECORD_PATH];
	ll_mps_record_path(folder, pipe, path);
	return read_file(path, ret_record, err);
}

void ll_mps_record_remove(const char *folder, const char *pipe)
{
	char path[LL_MPS_RECORD_PATH];
	ll_mps_record_path(folder, pipe, path);
	unlink(path);
}

static bool is_record(const char *name)
{
	size_t length = strlen(name);
	size_t suffix = strlen(RECORD_SUFFIX);
	return length > suffix && strcmp(name + length - suffix, RECORD_SUFFIX) == 0;
}

static int add_record(const char *path, struct ll_mps_record **records, size_t *count, struct ll_err *err)
{
	struct ll_mps_record *more = realloc(*records, (*count + 1) * sizeof *more);
	if (!more)
		return ll_err_set(err, -ENOMEM, "MPS: records: %s", strerror(ENOMEM));
	*records = more;
	struct ll_err why = {0};
	int rc = read_file(path, &more[*count], &why);
	if (rc == 0)
		++*count;
	if (rc == 0 || rc == -ENOENT)
		return 0;
	if (err)
		*err = why;
	return rc;
}

int ll_mps_record_list(const char *folder, struct ll_mps_record **ret_records, size_t *ret_count, struct ll_err *err)
{
	LL_SCOPE_FREE struct ll_mps_record *records = NULL;
	size_t count = 0;
	int rc = 0;
	DIR *files = opendir(folder);
	if (!files && errno != ENOENT)
		return ll_err_set(err, -errno, "MPS: %.200s: %s", folder, strerror(errno));
	struct dirent *entry;
	while (files && !rc && (entry = readdir(files))) {
		char path[LL_MPS_PATH_SIZE + 300];
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		if (is_record(entry->d_name))
			rc = add_record(path, &records, &count, err);
	}
	if (files)
		closedir(files);
	if (rc)
		return rc;
	*ret_records = records;
	*ret_count = count;
	records = NULL;
	return 0;
}

/* ---- cards ---- */

enum { VISIBLE_SIZE = 4096 };

/* Reads a word as the driver does: as a number, or as the beginning of a UUID. */
static const struct ll_card *find_card(const struct ll_driver *driver, const char *word)
{
	const struct ll_card *all;
	size_t count = ll_driver_cards(driver, &all);
	char *end;
	unsigned long number = strtoul(word, &end, 10);
	bool is_number = end != word && !*end;
	for (size_t i = 0; i < count; i++) {
		bool is_named = is_number ? !all[i].is_mig && all[i].index == number
					  : *word && strncasecmp(all[i].uuid, word, strlen(word)) == 0;
		if (is_named)
			return &all[i];
	}
	return NULL;
}

/* The first word without a card ends the list, as in the driver. */
static size_t add_visible(const struct ll_driver *driver, char *text, const struct ll_card **cards, size_t capacity)
{
	size_t count = 0;
	char *rest = NULL;
	for (char *word = strtok_r(text, ",", &rest); word && count < capacity; word = strtok_r(NULL, ",", &rest)) {
		const struct ll_card *card = find_card(driver, word + strspn(word, " "));
		if (!card)
			break;
		cards[count++] = card;
	}
	return count;
}

static size_t add_all(const struct ll_driver *driver, const struct ll_card **cards)
{
	const struct ll_card *all;
	size_t count = ll_driver_cards(driver, &all);
	size_t used = 0;
	for (size_t i = 0; i < count; i++) {
		if (!all[i].fault && !all[i].has_slices)
			cards[used++] = &all[i];
	}
	return used;
}

static size_t add_recorded(const struct ll_driver *driver, const struct ll_mps_record *record,
			   const struct ll_card **cards)
{
	size_t used = 0;
	for (size_t i = 0; i < record->card_count; i++) {
		const struct ll_card *card = ll_cards_find_uuid(driver, record->cards[i].uuid);
		if (card)
			cards[used++] = card;
	}
	return used;
}

int ll_mps_cards_read(const struct ll_driver *driver, const char *folder, const struct ll_mps_place *place,
		      const struct ll_card ***ret_cards, size_t *ret_count, struct ll_err *err)
{
	const struct ll_card *all;
	size_t capacity = ll_driver_cards(driver, &all) + LL_MPS_RECORD_CARDS;
	const struct ll_card **cards = calloc(capacity, sizeof *cards);
	struct ll_mps_record record = {0};
	struct ll_mps_daemon daemon = {0};
	char visible[VISIBLE_SIZE];
	if (!cards)
		return ll_err_set(err, -ENOMEM, "MPS: cards: %s", strerror(ENOMEM));
	bool is_seen = ll_mps_daemon_find(place, &daemon, NULL) == 0;
	if (ll_mps_record_read(folder, place->pipe, &record, NULL) == 0 && (!is_seen || record.pid == daemon.pid))
		*ret_count = add_recorded(driver, &record, cards);
	else if (is_seen && ll_mps_process_variable(daemon.pid, "CUDA_VISIBLE_DEVICES", visible, sizeof visible))
		*ret_count = add_visible(driver, visible, cards, capacity);
	else
		*ret_count = add_all(driver, cards);
	*ret_cards = cards;
	return 0;
}

int ll_mps_cards_number(const struct ll_card *const *cards, size_t count, const struct ll_card *card)
{
	for (size_t i = 0; i < count; i++) {
		if (cards[i] == card)
			return (int)i;
	}
	return -1;
}

/* ---- exclusive ---- */

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
