#include "cli/options/limit_words.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"

const char *const ll_limit_classes[] = {"high", "normal", "low", NULL};

static bool is_none(const char *text)
{
	return strcmp(text, "none") == 0;
}

int ll_limit_read_request(const char *text, uint64_t *ret_bytes, struct ll_err *err)
{
	uint64_t bytes = 0;
	int rc = is_none(text) ? 0 : ll_parse_bytes(text, &bytes, err);
	if (rc < 0)
		return ll_err_wrap(err, "--mem-request");
	*ret_bytes = bytes;
	return 0;
}

int ll_limit_check_request(uint64_t request_bytes, uint64_t limit_bytes, struct ll_err *err)
{
	if (!limit_bytes || request_bytes <= limit_bytes)
		return 0;
	ll_err_set(err, -EINVAL, "--mem-request: is more than the limit, --mem");
	return ll_err_hint(err, "--mem-request is what the tenant is promised, --mem the most that it may have");
}

int ll_limit_read_memory(const char *text, uint64_t *ret_bytes, struct ll_err *err)
{
	uint64_t bytes = 0;
	int rc = is_none(text) ? 0 : ll_parse_bytes(text, &bytes, err);
	if (rc < 0)
		return ll_err_wrap(err, "--mem");
	if (!bytes && !is_none(text)) {
		ll_err_set(err, -EINVAL, "--mem: '%.60s': no program can run without memory", text);
		return ll_err_hint(err, "give a size such as 20G, or 'none' for no limit");
	}
	*ret_bytes = bytes;
	return 0;
}

int ll_limit_read_compute(const char *text, unsigned *ret_permille, struct ll_err *err)
{
	double percent = 0;
	int rc = is_none(text) ? 0 : ll_parse_share(text, &percent, err);
	if (rc < 0)
		return ll_err_wrap(err, "--compute");
	if (!is_none(text) && !(percent >= 0.1 && percent <= 100)) {
		ll_err_set(err, -EINVAL, "--compute: '%.60s': not between 0.1 and 100 %%", text);
		return ll_err_hint(err, "give a share such as 25%%, or 'none' for no limit");
	}
	*ret_permille = (unsigned)lround(percent * 10);
	return 0;
}

int ll_limit_read_weight(const char *text, unsigned *ret_permille, struct ll_err *err)
{
	double weight;
	/* ll_parse_percent reads a plain number as well as a percentage; a weight has no percent sign. */
	if (strchr(text, '%') || ll_parse_percent(text, &weight, NULL) < 0)
		return ll_err_set(err, -EINVAL, "--weight: '%.60s': not a number such as 2 or 0.5", text);
	if (!(weight >= 0.01 && weight <= 100))
		return ll_err_set(err, -EINVAL, "--weight: '%.60s': not between 0.01 and 100", text);
	*ret_permille = (unsigned)lround(weight * 1000);
	return 0;
}

int ll_limit_read_slowdown(const char *text, unsigned *ret_permille, struct ll_err *err)
{
	double times;
	if (strchr(text, '%') || ll_parse_percent(text, &times, NULL) < 0)
		return ll_err_set(err, -EINVAL, "--slowdown: '%.60s': not a number such as 1.3", text);
	if (!(times >= 1 && times <= 10))
		return ll_err_set(err, -EINVAL, "--slowdown: '%.60s': not between 1 and 10", text);
	*ret_permille = (unsigned)lround(times * 1000);
	return 0;
}

int ll_limit_read_class(const char *text, enum ll_priority *ret_priority, struct ll_err *err)
{
	static const enum ll_priority classes[] = {LL_PRIORITY_HIGH, LL_PRIORITY_NORMAL, LL_PRIORITY_LOW};
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
		if (strcmp(text, ll_priority_name(classes[i])) == 0) {
			*ret_priority = classes[i];
			return 0;
		}
	}
	return ll_err_set(err, -EINVAL, "--class: '%.60s': not one of high, normal, low", text);
}
