#include "cli/common/print.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/strbuf.h"

int ll_print_text(const struct ll_strbuf *text, struct ll_err *err)
{
	if (text->failed)
		return ll_err_set(err, -ENOMEM, "standard output: out of memory");
	if (fwrite(text->buf, 1, text->length, stdout) == text->length && fflush(stdout) == 0)
		return 0;
	ll_err_set(err, -EIO, "standard output: %s", strerror(errno));
	return ll_err_exit_with(err, LL_EXIT_FAILED);
}
