#include "daemon/core/subordinate.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"

enum { LINE_SIZE = 16384 };

enum { RANGES_MAX = 65536, RANGES_AT_FIRST = 16 };
#define CHECK_NS (10 * LL_NS_PER_S)

static const char ranges_path[] = "/etc/subuid";
static const char users_path[] = "/etc/passwd";

/* ---- the file ---- */

/* Reads a number that ends at the sign. Returns false if there is none below 2^32. */
static bool read_number(const char **text, char end_sign, uint64_t *ret_number)
{
	char *end;
	errno = 0;
	unsigned long long number = strtoull(*text, &end, 10);
	bool is_number = **text >= '0' && **text <= '9' && !errno && number <= UINT32_MAX;
	bool has_end = *end == end_sign || (end_sign == '\n' && !*end);
	if (!is_number || !has_end)
		return false;
	*text = *end ? end + 1 : end;
	*ret_number = number;
	return true;
}

static bool find_name(FILE *users, const char *name, uint32_t *ret_uid)
{
	if (!users)
		return false;
	rewind(users);
	char text[LINE_SIZE];
	struct passwd entry = {0}, *user = NULL;
	while (fgetpwent_r(users, &entry, text, sizeof text, &user) == 0) {
		if (strcmp(user->pw_name, name) != 0)
			continue;
		*ret_uid = user->pw_uid;
		return true;
	}
	return false;
}

/* The lines of one owner. */
struct owner {
	char *name;
	uint32_t uid;
};

struct reading {
	struct ll_subordinates *subordinates;
	FILE *users;
	struct owner *owners;
	size_t count;
};

/* The uid of the name of a line. Of a name that nobody has it is the first one of its first range. */
static bool owner_of(struct reading *reading, const char *name, uint64_t first, uint32_t *ret_uid)
{
	const char *text = name;
	uint64_t number;
	if (read_number(&text, '\0', &number)) {
		*ret_uid = (uint32_t)number;
		return true;
	}
	for (size_t i = 0; i < reading->count; i++) {
		if (strcmp(reading->owners[i].name, name) == 0) {
			*ret_uid = reading->owners[i].uid;
			return true;
		}
	}
	struct owner *owners = reallocarray(reading->owners, reading->count + 1, sizeof *owners);
	if (!owners)
		return false;
	reading->owners = owners;
	struct owner *owner = &owners[reading->count];
	owner->name = strdup(name);
	if (!owner->name)
		return false;
	if (!find_name(reading->users, name, &owner->uid))
		owner->uid = (uint32_t)first;
	*ret_uid = owner->uid;
	reading->count++;
	return true;
}

static void add_range(struct ll_subordinates *subordinates, const struct ll_subordinate_range *range)
{
	if (subordinates->count == subordinates->room) {
		size_t room = subordinates->room ? 2 * subordinates->room : RANGES_AT_FIRST;
		struct ll_subordinate_range *ranges = reallocarray(subordinates->ranges, room, sizeof *ranges);
		if (!ranges)
			return;
		subordinates->ranges = ranges;
		subordinates->room = room;
	}
	subordinates->ranges[subordinates->count++] = *range;
}

static void add_line(struct reading *reading, char *line)
{
	char *colon = strchr(line, ':');
	const char *text = colon ? colon + 1 : "";
	uint64_t first, count;
	struct ll_subordinate_range range;
	if (!colon || colon == line || !read_number(&text, ':', &first) || !read_number(&text, '\n', &count) || !count)
		return;
	*colon = '\0';
	if (!owner_of(reading, line, first, &range.owner))
		return;
	range.first = first;
	range.end = first + count;
	add_range(reading->subordinates, &range);
}

static int compare_ranges(const void *one, const void *other)
{
	const struct ll_subordinate_range *a = one, *b = other;
	return (a->first > b->first) - (a->first < b->first);
}

void ll_subordinates_add(struct ll_subordinates *subordinates, FILE *file, FILE *users)
{
	struct reading reading = {.subordinates = subordinates, .users = users};
	char *line = NULL;
	size_t size = 0;
	while (subordinates->count < RANGES_MAX && getline(&line, &size, file) >= 0)
		add_line(&reading, line);
	free(line);
	for (size_t i = 0; i < reading.count; i++)
		free(reading.owners[i].name);
	free(reading.owners);
	if (subordinates->count)
		qsort(subordinates->ranges, subordinates->count, sizeof *subordinates->ranges, compare_ranges);
}

static void read_again(struct ll_subordinates *subordinates)
{
	FILE *file = fopen(ranges_path, "re"), *users = file ? fopen(users_path, "re") : NULL;
	subordinates->count = 0;
	if (file)
		ll_subordinates_add(subordinates, file, users);
	if (users)
		fclose(users);
	if (file)
		fclose(file);
}

static void check_file(struct ll_subordinates *subordinates)
{
	struct stat st = {0};
	uint64_t now_ns = ll_now_ns();
	bool is_first = !subordinates->checked_ns;
	if (!is_first && now_ns - subordinates->checked_ns < CHECK_NS)
		return;
	subordinates->checked_ns = now_ns;
	if (stat(ranges_path, &st))
		st.st_mtim = (struct timespec){0};
	if (!is_first && st.st_mtim.tv_sec == subordinates->changed.tv_sec &&
	    st.st_mtim.tv_nsec == subordinates->changed.tv_nsec)
		return;
	subordinates->changed = st.st_mtim;
	read_again(subordinates);
}

/* ---- uids ---- */

uint32_t ll_subordinates_find(const struct ll_subordinates *subordinates, uint32_t uid)
{
	size_t low = 0, high = subordinates->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (subordinates->ranges[middle].first <= uid)
			low = middle + 1;
		else
			high = middle;
	}
	bool has_range = low && uid < subordinates->ranges[low - 1].end;
	return has_range ? subordinates->ranges[low - 1].owner : uid;
}

uint32_t ll_subordinates_owner(struct ll_subordinates *subordinates, uint32_t uid)
{
	check_file(subordinates);
	return ll_subordinates_find(subordinates, uid);
}

void ll_subordinates_fini(struct ll_subordinates *subordinates)
{
	free(subordinates->ranges);
	*subordinates = (struct ll_subordinates){0};
}
