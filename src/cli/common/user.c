#include "cli/common/user.h"

#include <pwd.h>
#include <stdio.h>

void ll_user_name(uid_t uid, char *ret_name, size_t size)
{
	const struct passwd *entry = getpwuid(uid);
	if (entry)
		snprintf(ret_name, size, "%s", entry->pw_name);
	else
		snprintf(ret_name, size, "%u", (unsigned)uid);
}
