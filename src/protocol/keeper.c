#include "protocol/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

static const char name_begin[] = LL_GROUP_NAME_BEGIN, scope_end[] = ".scope";

int ll_keeper_place(const struct ll_place *system, struct ll_place *ret_place)
{
	return ll_place_beside(system, "keeper", ret_place);
}

/* ---- paths ---- */

int ll_group_path(const struct ll_groups *groups, uint32_t uid, uint64_t job, char ret_path[LL_GROUP_SIZE])
{
	bool is_scope = groups->kind == LL_GROUPS_SCOPE;
	char slice[40] = "";
	if (is_scope)
		snprintf(slice, sizeof slice, "/loadline-%" PRIu32 ".slice", uid);
	int length = snprintf(ret_path, LL_GROUP_SIZE, "%s%s%s%" PRIu32 "-%" PRIx64 "%s", groups->base, slice,
			      name_begin, uid, job, is_scope ? scope_end : "");
	return length > 0 && length < LL_GROUP_SIZE ? 0 : -ENAMETOOLONG;
}

bool ll_group_contains(const char *group, const char *path)
{
	size_t length = strlen(group);
	return strncmp(path, group, length) == 0 && (path[length] == '/' || !path[length]);
}

bool ll_group_find_job(const struct ll_groups *groups, const char *path, uint32_t *ret_uid, uint64_t *ret_job)
{
	char expected[LL_GROUP_SIZE];
	const char *name = groups->kind == LL_GROUPS_NONE ? NULL : strstr(path, name_begin);
	unsigned long uid;
	uint64_t job;
	char *end;
	if (!name)
		return false;
	name += strlen(name_begin);
	errno = 0;
	uid = strtoul(name, &end, 10);
	if (*end != '-' || uid > UINT32_MAX)
		return false;
	job = strtoull(end + 1, NULL, 16);
	/* This compares all that the conversions above let pass. */
	if (ll_group_path(groups, (uint32_t)uid, job, expected) || !ll_group_contains(expected, path))
		return false;
	*ret_uid = (uint32_t)uid;
	*ret_job = job;
	return true;
}

/* ---- /proc/PID/cgroup ---- */

/* The line of version 2 is "0::/path"; those of version 1 have another number. */
int ll_group_in_text(const char *text, char ret_path[LL_GROUP_SIZE])
{
	static const char begin[] = "0::";
	for (;; text += strcspn(text, "\n"), text += *text == '\n') {
		if (!*text)
			return -ENOENT;
		if (strncmp(text, begin, strlen(begin)) == 0)
			break;
	}
	text += strlen(begin);
	size_t length = strcspn(text, "\n");
	if (length >= LL_GROUP_SIZE)
		return -ENAMETOOLONG;
	memcpy(ret_path, text, length);
	ret_path[length] = '\0';
	return 0;
}

int ll_group_of_process(int pid, char ret_path[LL_GROUP_SIZE])
{
	char file[40];
	snprintf(file, sizeof file, "/proc/%d/cgroup", pid);
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	int rc = ll_strbuf_add_file(&text, AT_FDCWD, file, LL_GROUP_TEXT_SIZE - 1);
	return rc ? rc : ll_group_in_text(text.buf, ret_path);
}

/* ---- the fence ---- */

void ll_fence_state_path(char ret_path[LL_FENCE_STATE_SIZE])
{
	const char *sim_folder = getenv("LOADLINE_SIM_DIR");
	snprintf(ret_path, LL_FENCE_STATE_SIZE, "%.3500s/loadline-keeper/fence", sim_folder ? sim_folder : "/run");
}

/* The processes of a group above an open one, and those of the root, stay open too. */
bool ll_fence_opens(const char *state, const char *group)
{
	const char *line = strstr(state, "\nopen ");
	bool is_open = strcmp(group, "/") == 0;
	for (line = line ? strchr(line, ' ') + 1 : ""; !is_open && *line && *line != '\n'; line += strspn(line, ", ")) {
		char open[LL_GROUP_SIZE];
		size_t length = strcspn(line, ",\n");
		snprintf(open, sizeof open, "%.*s", (int)length, line);
		is_open = *open && (ll_group_contains(open, group) || ll_group_contains(group, open));
		line += length;
	}
	return is_open;
}
