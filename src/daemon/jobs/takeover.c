#include "daemon/jobs/takeover.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process_id.h"
#include "daemon/core/server.h"

/* A monitor tries to connect at least each 2 s. The rest is for a machine under load. */
#define WINDOW_NS (60 * LL_NS_PER_S)
enum { CLOCK_TICKS = 2 }; /* the start of a process is known to 1 tick */

/* Since when the socket of the service is there, on the clock of ll_boot_ns. Nobody but its owner can change that time.
 * Returns false if it is not known. */
static bool read_socket_birth(const struct ll_server *server, uint64_t *ret_ns)
{
	struct stat st;
	uint64_t wall_ns = ll_wall_ns(), boot_ns = ll_boot_ns();
	if (stat(server->place.name, &st) || !S_ISSOCK(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0))
		return false;
	uint64_t made_ns = (uint64_t)st.st_mtim.tv_sec * LL_NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
	if (made_ns > wall_ns || wall_ns - made_ns > boot_ns)
		return false;
	*ret_ns = boot_ns - (wall_ns - made_ns);
	return true;
}

/* If the pid has become another process's since it was read, that one is younger. */
static bool has_begun_before(uint32_t pid, uint64_t moment_ns)
{
	struct ll_process_stat stat;
	uint64_t tick_ns = LL_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	return ll_process_stat_of((pid_t)pid, &stat) == 0 && (stat.start_ticks + CLOCK_TICKS) * tick_ns <= moment_ns;
}

bool ll_takeover_is_due(const struct ll_server *server, const struct ll_job_facts *facts, const int *page_fds)
{
	uint64_t birth_ns;
	if (!server->is_system || !page_fds || !server->has_own_proc || !facts->pid)
		return false;
	return read_socket_birth(server, &birth_ns) && ll_boot_ns() - birth_ns < WINDOW_NS &&
	       has_begun_before(facts->pid, birth_ns);
}

void ll_takeover_log(struct ll_takeover_told *told, const struct ll_job_facts *facts, bool is_taken)
{
	for (size_t i = 0; i < told->count; i++) {
		if (told->tokens[i] == facts->token[0])
			return;
	}
	if (told->count == LL_TAKEOVER_TOLD)
		return;
	told->tokens[told->count++] = facts->token[0];
	if (is_taken)
		ll_warn("a job of user %" PRIu32
			" (%s) ran before this service: it goes on with its limits, and counts",
			facts->uid, facts->command);
	else
		ll_warn("a job of user %" PRIu32
			" (%s) has no place on the cards and is refused; what it runs goes on outside of jobs",
			facts->uid, facts->command);
}
