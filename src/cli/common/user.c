#include "cli/common/user.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>

#include "base/err.h"
#include "base/parse.h"

void ll_user_name(uid_t uid, char *ret_name, size_t size)
{
	const struct passwd *entry = getpwuid(uid);
	if (entry)
		snprintf(ret_name, size, "%s", entry->pw_name);
	else
		snprintf(ret_name, size, "%u", (unsigned)uid);
}

int ll_user_find(const char *text, uid_t *ret_uid, struct ll_err *err)
{
	const struct passwd *entry = getpwnam(text);
	uint64_t number;
	if (!entry && ll_parse_uint(text, 0, UINT32_MAX - 1, &number, NULL))
		return ll_err_set(err, -EINVAL, "%.60s: no such user", text);
	*ret_uid = entry ? entry->pw_uid : (uid_t)number;
	return 0;
}
