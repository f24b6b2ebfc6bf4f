#include "mps/environment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "mps/answers.h"

static bool names_card(const char *word, size_t length, const char *const *uuids, size_t count)
{
	char *end;
	unsigned long number = strtoul(word, &end, 10);
	if (end == word + length && length)
		return number < count;
	for (size_t i = 0; i < count; i++) {
		if (length && strncasecmp(uuids[i], word, length) == 0)
			return true;
	}
	return false;
}

/* "CARD=SIZE" */
static int check_entry(const char *entry, const char *const *uuids, size_t count, struct ll_err *err)
{
	uint64_t bytes;
	size_t length = strcspn(entry, "=");
	if (entry[length] != '=' || !ll_mps_answer_bytes(entry + length + 1, &bytes) || !bytes) {
		ll_err_set(err, -EINVAL, LL_MPS_MEMORY_VARIABLE ": '%.60s' is not CARD=SIZE", entry);
		return ll_err_hint(err, "write it like 0=8G: otherwise the driver silently drops every memory limit");
	}
	if (names_card(entry, length, uuids, count))
		return 0;
	ll_err_set(err, -EINVAL, LL_MPS_MEMORY_VARIABLE ": card '%.*s' is not visible to clients", (int)length, entry);
	return ll_err_hint(err, "name only visible cards, numbered from 0: otherwise the driver silently drops every "
				"memory limit");
}

int ll_mps_memory_text_check(const char *text, const char *const *uuids, size_t count, struct ll_err *err)
{
	char copy[1024];
	char *rest = NULL;
	size_t length = strlen(text);
	if (length >= sizeof copy)
		return ll_err_set(err, -EINVAL, LL_MPS_MEMORY_VARIABLE ": too long");
	memcpy(copy, text, length + 1);
	int rc = 0;
	for (char *entry = strtok_r(copy, ",", &rest); !rc && entry; entry = strtok_r(NULL, ",", &rest))
		rc = check_entry(entry + strspn(entry, " "), uuids, count, err);
	return rc;
}

static int check_percent(const char *text, struct ll_err *err)
{
	double percent;
	if (ll_mps_answer_percent(text, &percent) && percent > 0)
		return 0;
	ll_err_set(err, -EINVAL, LL_MPS_PERCENT_VARIABLE ": '%.60s': not above 0 and at most 100", text);
	return ll_err_hint(err, "correct or unset it: the driver would take it for 100");
}

int ll_mps_environment_check(const char *const *uuids, size_t count, struct ll_err *err)
{
	const char *percent = getenv(LL_MPS_PERCENT_VARIABLE);
	const char *memory = getenv(LL_MPS_MEMORY_VARIABLE);
	int rc = percent && *percent ? check_percent(percent, err) : 0;
	if (!rc && memory && *memory)
		rc = ll_mps_memory_text_check(memory, uuids, count, err);
	return rc;
}
