#include "cli/probe/environment.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cli/probe/keeper.h"
#include "driver/readings.h"

/* A process whose pipe directory has no daemon does not use MPS (doc/facts.md). */
static const char no_mps[] = "CUDA_MPS_PIPE_DIRECTORY=/nonexistent/loadline-keeps-out-of-mps";

__attribute__((format(printf, 2, 3))) static void add_variable(struct ll_probe_environment *environment,
							       const char *fmt, ...)
{
	size_t count = 0;
	va_list list;
	while (environment->variables[count])
		count++;
	va_start(list, fmt);
	vsnprintf(environment->texts[count], LL_PROBE_VARIABLE_SIZE, fmt, list);
	va_end(list);
	environment->variables[count] = environment->texts[count];
}

/* Replaces the user's variables that change how kernels are queued, or which cards and SMs a process may use. */
static void begin_variables(struct ll_probe_environment *environment, unsigned connections)
{
	memset(environment->variables, 0, sizeof environment->variables);
	add_variable(environment, "CUDA_DEVICE_MAX_CONNECTIONS=%u", connections);
	add_variable(environment, "CUDA_LAUNCH_BLOCKING");
	add_variable(environment, "CUDA_MPS_CLIENT_PRIORITY");
	add_variable(environment, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
}

/* ---- the card's mode ---- */

static int set_mode(const struct ll_probe_environment *environment, enum ll_nvml_compute_mode mode, const char *what,
		    struct ll_err *err)
{
	const struct ll_card *whole = ll_card_whole(environment->card);
	const struct ll_nvml *nvml = ll_driver_nvml(environment->driver);
	if (!nvml->nvmlDeviceSetComputeMode)
		return ll_err_set(err, -ENOSYS, "card %s: %s: the driver cannot", whole->label, what);
	ll_nvml_result status = nvml->nvmlDeviceSetComputeMode(whole->nvml, mode);
	return status == LL_NVML_SUCCESS ? 0 : ll_nvml_fail(nvml, status, err, "card %s: %s", whole->label, what);
}

static int put_back_mode(struct ll_probe_environment *environment, struct ll_err *err)
{
	if (!environment->has_set_exclusive)
		return 0;
	int rc = set_mode(environment, LL_NVML_COMPUTEMODE_DEFAULT, "restore the default compute mode", err);
	if (rc < 0)
		return ll_err_hint(err,
				   ll_driver_sim_folder(environment->driver) ? "loadline-simctl card %s mode default"
									     : "nvidia-smi -i %s -c DEFAULT",
				   environment->card->label);
	environment->has_set_exclusive = false;
	ll_probe_keeper_owe_mode(environment->keeper, NULL);
	return 0;
}

static int need_exclusive(struct ll_probe_environment *environment, struct ll_err *err)
{
	enum ll_compute_mode mode;
	int rc = ll_read_compute_mode(environment->card, &mode, err);
	if (rc < 0)
		return rc;
	if (mode == LL_MODE_EXCLUSIVE_PROCESS)
		return 0;
	if (!environment->may_set_exclusive)
		return ll_err_set(
		    err, -EOPNOTSUPP,
		    "the card is in %s mode; --set-exclusive changes the mode for these cells and restores it",
		    ll_compute_mode_text(mode));
	if (mode != LL_MODE_DEFAULT)
		return ll_err_set(err, -EOPNOTSUPP, "the card is in %s mode, and probe does not change it",
				  ll_compute_mode_text(mode));
	ll_probe_keeper_owe_mode(environment->keeper, ll_card_whole(environment->card)->uuid);
	rc = set_mode(environment, LL_NVML_COMPUTEMODE_EXCLUSIVE_PROCESS, "set exclusive-process mode", err);
	environment->has_set_exclusive = rc == 0;
	if (rc < 0)
		ll_probe_keeper_owe_mode(environment->keeper, NULL);
	if (rc < 0)
		rc = -EOPNOTSUPP; /* these cells report the error; the other cells are measured */
	return rc;
}

static int need_default(struct ll_probe_environment *environment, struct ll_err *err)
{
	enum ll_compute_mode mode;
	int rc = put_back_mode(environment, err);
	if (rc == 0)
		rc = ll_read_compute_mode(environment->card, &mode, err);
	if (rc == 0 && mode != LL_MODE_DEFAULT)
		return ll_err_set(err, -EOPNOTSUPP, "the card is in %s mode", ll_compute_mode_text(mode));
	return rc == -ENOSYS ? 0 : rc; /* a card without compute modes counts as in the default mode */
}

/* ---- MPS ---- */

static int start_mps(struct ll_probe_environment *environment, struct ll_err *err)
{
	enum ll_compute_mode mode;
	struct ll_err why = {0};
	int rc = environment->no_mps[0] ? -EOPNOTSUPP : 0;
	if (rc == 0 && ll_read_compute_mode(environment->card, &mode, NULL) == 0 && mode == LL_MODE_PROHIBITED)
		rc = ll_err_set(&why, -EOPNOTSUPP, "the card is in %s mode", ll_compute_mode_text(mode));
	if (rc == 0)
		rc = ll_probe_mps_start(environment->driver, environment->card, environment->keeper, &environment->mps,
					&why);
	if (rc < 0 && !environment->no_mps[0])
		snprintf(environment->no_mps, sizeof environment->no_mps, "%.*s", (int)sizeof environment->no_mps - 1,
			 why.text);
	return rc < 0 ? ll_err_set(err, rc, "%s", environment->no_mps) : 0;
}

static int join_mps(struct ll_probe_environment *environment, unsigned percent, struct ll_err *err)
{
	unsigned sms = environment->card->sm_count;
	int rc = put_back_mode(environment, err);
	if (rc == 0 && percent && sms && sms * percent < 100)
		rc = ll_err_set(err, -EOPNOTSUPP, "%u %% of %u SMs are less than one", percent, sms);
	if (rc == 0 && !environment->mps)
		rc = start_mps(environment, err);
	if (rc < 0)
		return rc;
	add_variable(environment, "CUDA_MPS_PIPE_DIRECTORY=%.200s", ll_probe_mps_pipe(environment->mps));
	/* The daemon shows its only card as card 0. */
	add_variable(environment, "CUDA_VISIBLE_DEVICES");
	if (percent)
		add_variable(environment, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=%u", percent);
	else
		add_variable(environment, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	return 0;
}

int ll_probe_environment_arrange(void *user, struct ll_probe_under under, unsigned connections,
				 const char *const **ret_environment, struct ll_err *err)
{
	struct ll_probe_environment *environment = user;
	int rc;
	begin_variables(environment, connections);
	if (under.manner == LL_PROBE_MPS) {
		rc = join_mps(environment, under.percent, err);
	} else {
		add_variable(environment, "%s", no_mps);
		add_variable(environment, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
		/* CUDA shows a process one slice, the first one unless CUDA_VISIBLE_DEVICES names another. */
		if (environment->card->is_mig)
			add_variable(environment, "CUDA_VISIBLE_DEVICES=%.96s", environment->card->uuid);
		rc = under.manner == LL_PROBE_EXCLUSIVE ? need_exclusive(environment, err)
							: need_default(environment, err);
	}
	if (rc == 0)
		*ret_environment = environment->variables;
	return rc;
}

int ll_probe_environment_fini(struct ll_probe_environment *environment, struct ll_err *err)
{
	int rc = ll_probe_mps_stop(environment->mps, err);
	int mode_rc = put_back_mode(environment, rc ? NULL : err);
	environment->mps = NULL;
	return rc ? rc : mode_rc;
}
