/* Whether programs can set their own time on a card: what loadline-sensor's trial measures (sensor/trial.h). */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/beside.h"
#include "cli/doctor/doctor.h"
#include "driver/readings.h"

enum { OUTPUT_SIZE = 2048 };

/* What is taken for 1 : 1. */
static const double ignored_most = 1.25;

static const char check[] = "time slices";
static const char *const places[] = {"src/sensor", "../lib/loadline", ".", NULL};

static void read_all(int fd, char text[OUTPUT_SIZE])
{
	size_t used = 0;
	ssize_t n;
	while (used < OUTPUT_SIZE - 1 && (n = read(fd, text + used, OUTPUT_SIZE - 1 - used)) != 0) {
		if (n < 0 && errno != EINTR)
			break;
		used += n > 0 ? (size_t)n : 0;
	}
	text[used] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

/* Writes the trial's only line: the result, or why there is none. */
static int run_trial(const struct ll_card *card, char ret_text[OUTPUT_SIZE], struct ll_err *err)
{
	char path[PATH_MAX];
	int fds[2], status = -1;
	pid_t pid;
	int rc = ll_beside_find(places, "loadline-sensor", path);
	if (rc)
		return ll_err_set(err, rc, "loadline-sensor: %s", strerror(-rc));
	if (pipe2(fds, O_CLOEXEC))
		return ll_err_set(err, -errno, "pipe: %s", strerror(errno));
	const char *words[] = {"loadline-sensor", "--trial", card->uuid, NULL};
	struct ll_child child = {
	    .path = path, .words = words, .in = LL_CHILD_NULL, .out = fds[1], .err = fds[1], .flags = LL_CHILD_MORTAL};
	rc = ll_child_start(&child, &pid, err);
	close(fds[1]);
	if (!rc) {
		read_all(fds[0], ret_text);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (status)
			rc =
			    ll_err_set(err, -EIO, "%s", *ret_text ? ret_text : _("the trial has ended without a word"));
	}
	close(fds[0]);
	return rc;
}

static void say_result(struct ll_doctor *doctor, const struct ll_card *card, const char *text)
{
	static const char advice[] = N_("shares of time are less exact here");
	int slices = 0, needs_commit = 0, off = 0;
	double ratio = 0, off_us = 0, on_us = 0;
	json_int_t kernels = 0, wrong = 0;
	json_t *result = json_loads(text, 0, NULL);
	if (!result || json_unpack(result, "{s:b, s:b, s:b, s:F, s:F, s:F, s:I, s:I}", "slices", &slices,
				   "needs_commit", &needs_commit, "off", &off, "ratio", &ratio, "off_us", &off_us,
				   "on_us", &on_us, "kernels", &kernels, "wrong", &wrong))
		ll_doctor_say(doctor, LL_FINDING_WARN, card, check, NULL, "the trial's result cannot be read: %s",
			      text);
	else if (wrong)
		ll_doctor_say(doctor, LL_FINDING_FAIL, card, check,
			      N_("the card loses work when programs share it; report it to its vendor"),
			      "%lld of %lld kernels had a wrong result", (long long)wrong, (long long)kernels);
	else if (slices && off)
		ll_doctor_say(
		    doctor, LL_FINDING_OK, card, check, NULL,
		    "set by programs themselves: slices of 4 : 1 gave %.2f : 1%s; off the card in %.1f ms and "
		    "on again in %.1f ms; %lld kernels, all results right",
		    ratio, needs_commit ? _(" after a preemption") : "", off_us / 1e3, on_us / 1e3, (long long)kernels);
	else if (!slices && ratio > ignored_most)
		ll_doctor_say(doctor, LL_FINDING_WARN, card, check, N_("try again when the machine is quiet"),
			      "not clear: slices of 4 : 1 gave %.2f : 1", ratio);
	else
		ll_doctor_say(doctor, LL_FINDING_WARN, card, check, advice,
			      slices ? N_("slices of 4 : 1 gave %.2f : 1; this driver takes no program off the card")
				     : N_("slices of 4 : 1 gave %.2f : 1, so this card or driver ignores them"),
			      ratio);
	json_decref(result);
}

/* Beside other work nothing would be measured. */
void ll_doctor_check_slices(struct ll_doctor *doctor, const struct ll_card *card)
{
	struct ll_process_list list = {0};
	struct ll_err err = {0};
	char text[OUTPUT_SIZE];
	if (card->fault || card->is_mig || card->has_slices || doctor->has_no_cuda)
		return;
	size_t count = ll_read_processes(card, LL_PROCESS_ALL, &list, NULL) ? 0 : list.count;
	ll_process_list_fini(&list);
	if (count)
		ll_doctor_say(doctor, LL_FINDING_OK, card, check, NULL, "not tried: processes on the card: %zu", count);
	else if (run_trial(card, text, &err))
		ll_doctor_say_err(doctor, LL_FINDING_WARN, card, check, &err);
	else
		say_result(doctor, card, text);
}
