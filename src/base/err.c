#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/translate.h"
#include "base/utf8.h"

/* The last code of this thread. Without it a caller that passes no err would get success from ll_err_hint. */
static _Thread_local int last_code __attribute__((tls_model("initial-exec")));

int ll_err_set(struct ll_err *err, int code, const char *fmt, ...)
{
	last_code = code;
	if (!err)
		return code;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof err->text, ll_translate(fmt), ap);
	va_end(ap);
	ll_utf8_mend(err->text);
	err->code = code;
	err->hint[0] = '\0';
	err->status = 0;
	return code;
}

int ll_err_wrap(struct ll_err *err, const char *fmt, ...)
{
	if (!err)
		return last_code;
	char inner[sizeof err->text];
	memcpy(inner, err->text, sizeof inner);
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(err->text, sizeof err->text, ll_translate(fmt), ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof err->text &&
	    snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", inner) < 0)
		err->text[n] = '\0';
	ll_utf8_mend(err->text);
	return err->code;
}

int ll_err_hint(struct ll_err *err, const char *fmt, ...)
{
	if (!err)
		return last_code;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->hint, sizeof err->hint, ll_translate(fmt), ap);
	va_end(ap);
	ll_utf8_mend(err->hint);
	return err->code;
}

int ll_err_exit_with(struct ll_err *err, int status)
{
	if (!err)
		return last_code;
	err->status = status;
	return err->code;
}

int ll_err_exit_code(int code)
{
	switch (code) {
	case 0:
		return LL_EXIT_OK;
	case -EINVAL:
		return LL_EXIT_USAGE;
	case -ENODEV:
	case -ENOSYS:
		return LL_EXIT_NO_CARD;
	case -EBUSY:
	case -EDQUOT:
		return LL_EXIT_REFUSED;
	default:
		return LL_EXIT_FAILED;
	}
}
