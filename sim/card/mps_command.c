/*
 * `mps ...` in scenarios: faults of MPS.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "abi/cuda.h"
#include "base/err.h"
#include "card/command.h"
#include "card/fault.h"
#include "card/mps.h"
#include "card/process.h"
#include "card/status.h"
#include "card/words.h"

/* mps hang COMMAND D …, mps refuse [STATUS] …: faults of functions of MPS. */
static int run_fault(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
		     struct ll_err *err)
{
	bool is_hang = strcmp(words->word[1], "hang") == 0;
	struct sim_fault fault = {.is_used = 1, .until_ns = SIM_NEVER, .count = UINT64_MAX};
	int next = is_hang ? 4 : 2, rc = 0;
	if (is_hang) {
		if (words->count < 3 || strlen(words->word[2]) >= sizeof fault.function - 4)
			return ll_err_set(err, -EINVAL, "mps hang: no command named");
		snprintf(fault.function, sizeof fault.function, "mps/%s", words->word[2]);
		rc = sim_word_duration(words, 3, &fault.hang_ns, err);
	} else {
		snprintf(fault.function, sizeof fault.function, "mps/connect");
		fault.status = LL_CUDA_ERROR_MPS_SERVER_NOT_READY;
		if (words->count > 2 && sim_status_parse(words->word[2], &fault.status, NULL) == 0)
			next = 3;
	}
	if (rc == 0)
		rc = sim_fault_parse_limits(w, words, next, &fault, err);
	return rc < 0 || phase == SIM_COMMAND_CHECK ? rc : sim_fault_add(w, &fault, err);
}

/* mps fault [STATUS] [for D]: a fault of every server. */
static int run_server_fault(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
			    struct ll_err *err)
{
	uint32_t status = LL_CUDA_ERROR_LAUNCH_FAILED;
	uint64_t for_ns = 0;
	int next = 2, rc = 0;
	if (words->count > next && strcmp(words->word[next], "for") != 0)
		rc = sim_status_parse(words->word[next++], &status, err);
	if (rc == 0 && words->count > next && strcmp(words->word[next], "for") == 0) {
		rc = sim_word_duration(words, next + 1, &for_ns, err);
		next += 2;
	}
	if (rc == 0)
		rc = sim_words_end(words, next, err);
	for (uint32_t i = 0; rc == 0 && phase != SIM_COMMAND_CHECK && i < SIM_MPS_SERVERS; i++) {
		if (w->mps_servers[i].is_used && w->mps_servers[i].state != SIM_MPS_INITIALIZING)
			sim_mps_fault(w, i, SIM_NONE, status, for_ns);
	}
	return rc;
}

/* mps die daemon|server: kills the process, as kill -9 does. */
static int run_die(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase, struct ll_err *err)
{
	int rc = sim_words_end(words, 3, err);
	bool is_daemon = rc == 0 && strcmp(words->word[2], "daemon") == 0;
	if (rc == 0 && !is_daemon && strcmp(words->word[2], "server") != 0)
		rc = ll_err_set(err, -EINVAL, "mps die: '%s': neither daemon nor server", words->word[2]);
	uint32_t role = is_daemon ? SIM_ROLE_MPS_CONTROL : SIM_ROLE_MPS_SERVER;
	for (uint32_t i = 0; rc == 0 && phase != SIM_COMMAND_CHECK && i < SIM_PROCS; i++) {
		int32_t pid = w->procs[i].role == role && sim_proc_is_alive(w, i) ? sim_proc_pid(w, i) : 0;
		if (pid > 0)
			kill(pid, SIGKILL);
	}
	return rc;
}

static int run_heal(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
		    struct ll_err *err)
{
	if (words->count > 2)
		return sim_words_end(words, 2, err);
	for (unsigned i = 0; i < SIM_FAULTS && phase != SIM_COMMAND_CHECK; i++) {
		if (w->faults[i].is_used && strncmp(w->faults[i].function, "mps/", 4) == 0)
			SIM_EDIT(w, &w->faults[i])->is_used = 0;
	}
	return 0;
}

int sim_mps_command_run(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
			struct ll_err *err)
{
	const char *what = words->count > 1 ? words->word[1] : "";
	if (strcmp(what, "hang") == 0 || strcmp(what, "refuse") == 0)
		return run_fault(w, words, phase, err);
	if (strcmp(what, "fault") == 0)
		return run_server_fault(w, words, phase, err);
	if (strcmp(what, "die") == 0)
		return run_die(w, words, phase, err);
	if (strcmp(what, "heal") == 0)
		return run_heal(w, words, phase, err);
	return ll_err_set(err, -EINVAL, "mps: '%s': not one of hang, refuse, fault, die, heal", what);
}
