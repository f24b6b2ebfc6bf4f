#include "daemon/policy/policy.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"

enum { ANSWER_MAX = 1 << 20, NUMBER_SIZE = 16, GROUPS_MAX = 65536, LOOKUP_HANDLES = 3 };

/* A process that looks up. Its handles are freed together. */
struct ll_identity_lookup {
	struct ll_identity_lookup *next;
	struct ll_identities *identities; /* NULL: nobody waits for the answer any more */
	uint32_t uid;
	uv_process_t process;
	uv_pipe_t pipe;
	uv_timer_t timer;
	unsigned open_handles;
	bool has_answer, has_exited, has_failed;
	char *texts;
	size_t length;
};

/* ---- what is known ---- */

static struct ll_identity *find_identity(const struct ll_identities *identities, uint32_t uid)
{
	struct ll_identity *identity = identities->first;
	while (identity && identity->uid != uid)
		identity = identity->next;
	return identity;
}

static struct ll_identity *get_identity(struct ll_identities *identities, uint32_t uid)
{
	struct ll_identity *identity = find_identity(identities, uid);
	if (identity)
		return identity;
	identity = calloc(1, sizeof *identity);
	if (!identity)
		return NULL;
	*identity = (struct ll_identity){.uid = uid, .next = identities->first};
	identities->first = identity;
	return identity;
}

const char *ll_identity_name(const struct ll_identity *identity)
{
	return identity->texts;
}

bool ll_identity_has_group(const struct ll_identity *identity, const char *group)
{
	const char *end = identity->texts + identity->length;
	for (const char *at = identity->texts + strlen(identity->texts) + 1; at < end; at += strlen(at) + 1) {
		if (strcmp(at, group) == 0)
			return true;
	}
	return false;
}

const struct ll_identity *ll_identities_find(const struct ll_identities *identities, uint32_t uid, struct ll_err *err)
{
	const struct ll_identity *identity = find_identity(identities, uid);
	if (identity && identity->is_known)
		return identity;
	if (!identity || !identity->has_ended)
		ll_err_set(err, -EAGAIN, "the groups of user %" PRIu32 " are being looked up", uid);
	else if (identity->code == -ETIMEDOUT)
		ll_err_set(err, -ETIMEDOUT,
			   "the groups of user %" PRIu32 " are unknown: the lookup did not answer in %g s", uid,
			   (double)identities->source.wait_ms / 1000);
	else
		ll_err_set(err, identity->code, "the groups of user %" PRIu32 " are unknown: the lookup failed: %s",
			   uid, strerror(-identity->code));
	return NULL;
}

/* ---- the end of a lookup ---- */

static void free_lookup(uv_handle_t *handle)
{
	struct ll_identity_lookup *lookup = handle->data;
	if (--lookup->open_handles)
		return;
	free(lookup->texts);
	free(lookup);
}

static void close_lookup(struct ll_identity_lookup *lookup)
{
	uv_close((uv_handle_t *)&lookup->process, free_lookup);
	uv_close((uv_handle_t *)&lookup->pipe, free_lookup);
	uv_close((uv_handle_t *)&lookup->timer, free_lookup);
}

static void forget_lookup(struct ll_identity_lookup *lookup)
{
	struct ll_identity_lookup **at = &lookup->identities->lookups;
	while (*at != lookup)
		at = &(*at)->next;
	*at = lookup->next;
	lookup->identities = NULL;
}

/* Takes the answer over, if there is one. code: 0, or why there is none. */
static void settle_identity(struct ll_identity_lookup *lookup, int code)
{
	struct ll_identities *identities = lookup->identities;
	struct ll_identity *identity = find_identity(identities, lookup->uid);
	uint64_t pause_ms = code ? identities->source.retry_ms : identities->source.keep_ms;
	forget_lookup(lookup);
	identity->is_asked = false;
	identity->has_ended = true;
	identity->code = code;
	identity->due_ms = uv_now(identities->loop) + pause_ms;
	if (!code) {
		free(identity->texts);
		identity->texts = lookup->texts;
		identity->length = lookup->length;
		identity->is_known = true;
		lookup->texts = NULL;
	}
	identities->on_ready(identities->data, identity->uid, LL_IDENTITY_HAS_ENDED);
}

static void finish_if_ended(struct ll_identity_lookup *lookup)
{
	if (!lookup->has_answer || !lookup->has_exited)
		return;
	bool is_good = !lookup->has_failed && lookup->length && !lookup->texts[lookup->length - 1];
	if (lookup->identities)
		settle_identity(lookup, is_good ? 0 : -EIO);
	close_lookup(lookup);
}

static void on_exit_of_lookup(uv_process_t *process, int64_t status, int signal_number)
{
	struct ll_identity_lookup *lookup = process->data;
	lookup->has_exited = true;
	lookup->has_failed |= status || signal_number;
	finish_if_ended(lookup);
}

/* The process is killed. A process that waits for a disk or a network that hangs may end much later, or never. */
static void on_deadline(uv_timer_t *timer)
{
	struct ll_identity_lookup *lookup = timer->data;
	if (lookup->identities)
		settle_identity(lookup, -ETIMEDOUT);
	if (!lookup->has_exited)
		uv_process_kill(&lookup->process, SIGKILL);
	uv_read_stop((uv_stream_t *)&lookup->pipe);
	lookup->has_answer = true;
	finish_if_ended(lookup);
}

/* The lookup is slow, and then late. */
static void on_slow(uv_timer_t *timer)
{
	struct ll_identity_lookup *lookup = timer->data;
	struct ll_identities *identities = lookup->identities;
	if (!identities)
		return;
	const struct ll_identity_source *source = &identities->source;
	struct ll_identity *identity = find_identity(identities, lookup->uid);
	bool is_late = identity->is_slow;
	identity->is_slow = true;
	identity->is_late = is_late;
	uv_timer_start(timer, is_late ? on_deadline : on_slow,
		       is_late ? source->wait_ms - source->late_ms : source->late_ms - source->slow_ms, 0);
	identities->on_ready(identities->data, lookup->uid, is_late ? LL_IDENTITY_IS_LATE : LL_IDENTITY_IS_SLOW);
}

/* ---- the answer ---- */

static void make_room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret_buffer)
{
	struct ll_identity_lookup *lookup = handle->data;
	char *texts = lookup->length + wanted <= ANSWER_MAX ? realloc(lookup->texts, lookup->length + wanted) : NULL;
	*ret_buffer = uv_buf_init(NULL, 0); /* the read then ends with UV_ENOBUFS */
	if (!texts)
		return;
	lookup->texts = texts;
	*ret_buffer = uv_buf_init(texts + lookup->length, (unsigned)wanted);
}

static void on_answer(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
	struct ll_identity_lookup *lookup = stream->data;
	(void)buffer;
	if (count >= 0) {
		lookup->length += (size_t)count;
		return;
	}
	uv_read_stop(stream);
	lookup->has_failed |= count != UV_EOF;
	if (count != UV_EOF && !lookup->has_exited)
		uv_process_kill(&lookup->process, SIGKILL); /* an answer that is too long */
	lookup->has_answer = true;
	finish_if_ended(lookup);
}

/* ---- the start of a lookup ---- */

static int spawn_lookup(struct ll_identity_lookup *lookup, const char *program)
{
	char number[NUMBER_SIZE], lookup_word[] = "--lookup", name[] = "loadlined";
	char *words[] = {name, lookup_word, number, NULL};
	uv_stdio_container_t streams[3] = {
	    {.flags = UV_IGNORE},
	    {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&lookup->pipe},
	    {.flags = UV_IGNORE},
	};
	uv_process_options_t options = {
	    .exit_cb = on_exit_of_lookup, .file = program, .args = words, .stdio = streams, .stdio_count = 3};
	snprintf(number, sizeof number, "%" PRIu32, lookup->uid);
	return uv_spawn(lookup->identities->loop, &lookup->process, &options);
}

static struct ll_identity_lookup *new_lookup(struct ll_identities *identities, uint32_t uid)
{
	struct ll_identity_lookup *lookup = calloc(1, sizeof *lookup);
	if (!lookup)
		return NULL;
	lookup->identities = identities;
	lookup->uid = uid;
	lookup->open_handles = LOOKUP_HANDLES;
	lookup->process.data = lookup->pipe.data = lookup->timer.data = lookup;
	uv_pipe_init(identities->loop, &lookup->pipe, 0);
	uv_timer_init(identities->loop, &lookup->timer);
	lookup->next = identities->lookups;
	identities->lookups = lookup;
	return lookup;
}

/* A lookup that could not be started has failed. */
static bool start_lookup(struct ll_identities *identities, struct ll_identity *identity)
{
	const char *program = identities->source.program;
	struct ll_identity_lookup *lookup = new_lookup(identities, identity->uid);
	int rc = lookup ? spawn_lookup(lookup, program ? program : "/proc/self/exe") : -ENOMEM;
	if (rc) {
		identity->has_ended = true;
		identity->code = rc;
		identity->due_ms = uv_now(identities->loop) + identities->source.retry_ms;
		if (lookup) {
			forget_lookup(lookup);
			close_lookup(lookup);
		}
		return false;
	}
	identity->is_asked = true;
	identity->is_slow = identity->is_late = false;
	uv_read_start((uv_stream_t *)&lookup->pipe, make_room, on_answer);
	uv_timer_start(&lookup->timer, on_slow, identities->source.slow_ms, 0);
	return true;
}

bool ll_identities_ask(struct ll_identities *identities, uint32_t uid, enum ll_identity_news news)
{
	struct ll_identity *identity = get_identity(identities, uid);
	if (!identity)
		return false;
	if (identity->is_asked)
		return !(news == LL_IDENTITY_IS_SLOW && identity->is_slow) &&
		       !(news == LL_IDENTITY_IS_LATE && identity->is_late);
	bool is_due = !identity->has_ended || uv_now(identities->loop) >= identity->due_ms;
	return is_due && start_lookup(identities, identity);
}

void ll_identities_init(struct ll_identities *identities, uv_loop_t *loop, const struct ll_identity_source *source,
			ll_identity_ready_fn on_ready, void *data)
{
	static const struct ll_identity_source usual = {NULL,
							LL_IDENTITY_SLOW_MS,
							LL_IDENTITY_LATE_MS,
							LL_IDENTITY_WAIT_MS,
							LL_IDENTITY_KEEP_MS,
							LL_IDENTITY_RETRY_MS};
	*identities = (struct ll_identities){
	    .loop = loop, .source = source ? *source : usual, .on_ready = on_ready, .data = data};
}

void ll_identities_fini(struct ll_identities *identities)
{
	while (identities->lookups) {
		struct ll_identity_lookup *lookup = identities->lookups;
		if (!lookup->has_exited)
			uv_process_kill(&lookup->process, SIGKILL);
		forget_lookup(lookup);
		close_lookup(lookup);
	}
	while (identities->first) {
		struct ll_identity *identity = identities->first;
		identities->first = identity->next;
		free(identity->texts);
		free(identity);
	}
}

/* ---- the process that looks up ---- */

static void print_text(const char *text)
{
	fputs(text, stdout);
	fputc('\0', stdout);
}

static void print_groups(const char *name, gid_t first)
{
	int count = GROUPS_MAX;
	gid_t *groups = calloc((size_t)count, sizeof *groups);
	if (!groups || getgrouplist(name, first, groups, &count) < 0)
		count = 0;
	for (int i = 0; i < count; i++) {
		const struct group *group = getgrgid(groups[i]);
		if (group)
			print_text(group->gr_name);
	}
	free(groups);
}

int ll_identity_print(const char *uid)
{
	uint64_t number;
	if (ll_parse_uint(uid, 0, UINT32_MAX, &number, NULL) < 0)
		return LL_EXIT_USAGE;
	errno = 0;
	const struct passwd *user = getpwuid((uid_t)number);
	if (!user && errno && errno != ENOENT && errno != ESRCH)
		return LL_EXIT_FAILED;
	char *name = user ? strdup(user->pw_name) : NULL;
	print_text(name ? name : uid);
	if (name)
		print_groups(name, user->pw_gid);
	free(name);
	return fflush(stdout) ? LL_EXIT_FAILED : LL_EXIT_OK;
}

/* ---- subordinate uids ---- */

enum { LINE_SIZE = 16384, RANGES_MAX = 65536, RANGES_AT_FIRST = 16 };
#define CHECK_NS (10 * LL_NS_PER_S)

static const char ranges_path[] = "/etc/subuid";

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
	struct stat st = {0};
	uint64_t now_ns = ll_now_ns();
	bool is_first = !subordinates->checked_ns;
	if (!is_first && now_ns - subordinates->checked_ns < CHECK_NS)
		return ll_subordinates_find(subordinates, uid);
	subordinates->checked_ns = now_ns;
	if (stat(ranges_path, &st))
		st.st_mtim = (struct timespec){0};
	if (is_first || st.st_mtim.tv_sec != subordinates->changed.tv_sec ||
	    st.st_mtim.tv_nsec != subordinates->changed.tv_nsec) {
		FILE *file = fopen(ranges_path, "re"), *users = file ? fopen("/etc/passwd", "re") : NULL;
		subordinates->changed = st.st_mtim;
		subordinates->count = 0;
		if (file)
			ll_subordinates_add(subordinates, file, users);
		if (users)
			fclose(users);
		if (file)
			fclose(file);
	}
	return ll_subordinates_find(subordinates, uid);
}

void ll_subordinates_fini(struct ll_subordinates *subordinates)
{
	free(subordinates->ranges);
	*subordinates = (struct ll_subordinates){0};
}
