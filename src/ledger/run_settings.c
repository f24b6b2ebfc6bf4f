#include "ledger/run_settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char name_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+@:";

bool ll_tenant_name_is_valid(const char *name)
{
	size_t length = strlen(name);
	return length > 0 && length < LL_TENANT_NAME_SIZE && strspn(name, name_letters) == length;
}

int ll_run_settings_write(const struct ll_run_settings *settings, char ret_text[LL_RUN_TEXT_SIZE])
{
	if (!ll_tenant_name_is_valid(settings->tenant))
		return -EINVAL;
	int length = snprintf(ret_text, LL_RUN_TEXT_SIZE,
			      "id=%" PRIx64 ";tenant=%s;mem=%" PRIu64 ";request=%" PRIu64
			      ";compute=%u;weight=%u;space=%u;priority=%u;context=%d;max-kernel=%" PRIu64
			      ";kill=%d;strict=%d;evictable=%d;first=%s;folder=%s",
			      settings->id, settings->tenant, settings->memory_limit_bytes,
			      settings->memory_request_bytes, settings->compute_cap_permille, settings->weight_permille,
			      settings->space_permille, (unsigned)settings->priority, settings->counts_context,
			      settings->max_kernel_ns, settings->kills_at_max_kernel, settings->is_strict,
			      settings->is_evictable, settings->first_card, settings->folder);
	return length < LL_RUN_TEXT_SIZE ? 0 : -ENAMETOOLONG;
}

static bool read_number(const char *value, int base, uint64_t max, uint64_t *ret_number)
{
	char *end;
	errno = 0;
	unsigned long long number = strtoull(value, &end, base);
	if (errno || end == value || *end || number > max)
		return false;
	*ret_number = number;
	return true;
}

static bool read_text(const char *value, char *ret_text, size_t size)
{
	size_t length = strlen(value);
	if (length >= size)
		return false;
	memcpy(ret_text, value, length + 1);
	return true;
}

static bool read_pair(const char *key, const char *value, struct ll_run_settings *settings)
{
	uint64_t number = 0;
	if (strcmp(key, "tenant") == 0)
		return read_text(value, settings->tenant, sizeof settings->tenant);
	if (strcmp(key, "first") == 0)
		return read_text(value, settings->first_card, sizeof settings->first_card);
	if (strcmp(key, "id") == 0)
		return read_number(value, 16, UINT64_MAX, &settings->id);
	if (strcmp(key, "mem") == 0)
		return read_number(value, 10, UINT64_MAX, &settings->memory_limit_bytes);
	if (strcmp(key, "request") == 0)
		return read_number(value, 10, UINT64_MAX, &settings->memory_request_bytes);
	if (strcmp(key, "max-kernel") == 0)
		return read_number(value, 10, UINT64_MAX, &settings->max_kernel_ns);
	bool is_good = read_number(value, 10, 1000000000, &number);
	if (strcmp(key, "compute") == 0)
		settings->compute_cap_permille = (unsigned)number;
	else if (strcmp(key, "weight") == 0)
		settings->weight_permille = (unsigned)number;
	else if (strcmp(key, "space") == 0)
		settings->space_permille = (unsigned)number;
	else if (strcmp(key, "priority") == 0)
		settings->priority = (enum ll_priority)number;
	else if (strcmp(key, "context") == 0)
		settings->counts_context = number != 0;
	else if (strcmp(key, "kill") == 0)
		settings->kills_at_max_kernel = number != 0;
	else if (strcmp(key, "strict") == 0)
		settings->is_strict = number != 0;
	else if (strcmp(key, "evictable") == 0)
		settings->is_evictable = number != 0;
	else
		return true;
	return is_good;
}

static bool is_sane(const struct ll_run_settings *settings)
{
	return settings->id && ll_tenant_name_is_valid(settings->tenant) && settings->folder[0] == '/' &&
	       settings->compute_cap_permille <= 1000 && settings->space_permille <= 1000 &&
	       settings->priority >= LL_PRIORITY_HIGH && settings->priority <= LL_PRIORITY_LOW;
}

int ll_run_settings_read(const char *text, struct ll_run_settings *ret_settings)
{
	char copy[LL_RUN_TEXT_SIZE];
	struct ll_run_settings settings = {.priority = LL_PRIORITY_NORMAL, .counts_context = true};
	if (!read_text(text, copy, sizeof copy))
		return -EINVAL;
	char *folder = strstr(copy, ";folder="); /* the last key, because a path may have any letter */
	if (!folder || !read_text(folder + strlen(";folder="), settings.folder, sizeof settings.folder))
		return -EINVAL;
	*folder = '\0';
	char *rest = NULL;
	for (char *pair = strtok_r(copy, ";", &rest); pair; pair = strtok_r(NULL, ";", &rest)) {
		char *value = strchr(pair, '=');
		if (!value)
			return -EINVAL;
		*value++ = '\0';
		if (!read_pair(pair, value, &settings))
			return -EINVAL;
	}
	if (!is_sane(&settings))
		return -EINVAL;
	*ret_settings = settings;
	return 0;
}

bool ll_run_settings_ask_limits(const struct ll_run_settings *settings)
{
	bool has_weight = settings->weight_permille && settings->weight_permille != LL_DEFAULT_WEIGHT_PERMILLE;
	return settings->memory_limit_bytes || settings->compute_cap_permille || settings->max_kernel_ns ||
	       settings->is_strict || has_weight || settings->priority != LL_PRIORITY_NORMAL;
}
