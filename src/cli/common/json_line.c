#include "cli/common/json_line.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"

/* With 17 digits 0.1 would print as 0.10000000000000001. */
enum { DIGITS = 15 };

int ll_json_line(json_t *object, struct ll_err *err)
{
	if (!object)
		return ll_err_set(err, -ENOMEM, "JSON line: out of memory");
	int rc = json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
	json_decref(object);
	if (rc == 0 && putchar('\n') != EOF && fflush(stdout) == 0)
		return 0;
	ll_err_set(err, -EIO, "standard output: %s", strerror(errno));
	return ll_err_exit_with(err, LL_EXIT_FAILED);
}

json_t *ll_json_text(const char *text)
{
	json_t *value = json_string(text);
	char *copy = value ? NULL : strdup(text);
	if (value || !copy)
		return value;
	ll_utf8_clean(copy);
	value = json_string(copy);
	free(copy);
	return value;
}

json_t *ll_json_real(double value, int decimals)
{
	if (!isfinite(value))
		return json_null();
	double scale = pow(10, decimals);
	double rounded = round(value * scale) / scale;
	return json_real(isfinite(rounded) ? rounded : value);
}
