/* Whether device files of the cards open for jobs alone, by the fence's state file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/doctor/doctor.h"
#include "fence/state.h"

enum { WHEN_SIZE = 64, GROUP_SIZE = 512 };

static const char check[] = "fence";

/* Adds the first word of each line of that kind, with commas between. */
static void add_groups(struct ll_strbuf *text, const char *state, const char *kind)
{
	const char *next = state, *line;
	while ((line = ll_fence_state_line(&next, kind)))
		ll_strbuf_addf(text, "%s%.*s", text->length ? ", " : "", (int)strcspn(line, " \n"), line);
}

static unsigned root_processes(const char *state)
{
	const char *line = ll_fence_state_line(&state, "root");
	long count = line ? strtol(line, NULL, 10) : 0;
	return count > 0 ? (unsigned)count : 0;
}

/* The kernel knows the fence by the group of a process alone. */
static void say_closed(struct ll_doctor *doctor, const char *state)
{
	LL_SCOPE_STRBUF struct ll_strbuf open = LL_STRBUF_INIT, partly = LL_STRBUF_INIT;
	const char *majors_at = state, *majors = ll_fence_state_line(&majors_at, "majors");
	add_groups(&open, state, "open");
	add_groups(&partly, state, "partly");
	ll_doctor_say(
	    doctor, LL_FINDING_OK, NULL, check, NULL,
	    "device files of the cards (numbers %.*s) open in these control groups alone: %s; files that were "
	    "open before stay so",
	    majors ? (int)strcspn(majors, "\n") : 0, majors ? majors : "", open.buf);
	if (partly.length)
		ll_doctor_say(doctor, LL_FINDING_WARN, NULL, check, NULL,
			      "processes of the groups %s themselves are not fenced, since open groups are below them",
			      partly.buf);
	if (root_processes(state))
		ll_doctor_say(doctor, LL_FINDING_WARN, NULL, check, NULL,
			      "%u processes in the root control group are not fenced", root_processes(state));
	ll_doctor_say(doctor, LL_FINDING_OK, NULL, check, NULL,
		      "whoever may start containers by a daemon of root, such as dockerd, may choose their control "
		      "group, and so is not fenced");
}

/* A program that is started by `env -i` is then not held to any limit. */
static void say_missing(struct ll_doctor *doctor)
{
	doctor->limit_fails++;
	ll_doctor_say(
	    doctor, LL_FINDING_FAIL, NULL, check,
	    N_("close it: systemctl enable --now loadline-fence; its journal says what it lacks"),
	    "none, although the configuration orders one (enforce: devices): every program may open the cards, also "
	    "outside of jobs");
}

void ll_doctor_check_fence(struct ll_doctor *doctor)
{
	LL_SCOPE_STRBUF struct ll_strbuf state = LL_STRBUF_INIT;
	bool is_system = doctor->view.answer == LL_DAEMON_SERVES && ll_place_is_system(&doctor->view.place);
	if (ll_fence_state_read(&state, NULL) == 0)
		say_closed(doctor, state.buf);
	else if (is_system && doctor->view.welcome.policy_orders & LL_POLICY_FENCE)
		say_missing(doctor);
	else if (is_system)
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, check, NULL,
			      "none: every program may open the cards, also outside of jobs");
}

/* ---- the sensor ---- */

void ll_doctor_check_sensor(struct ll_doctor *doctor)
{
	const struct ll_message_sense_end *end = &doctor->view.sensed.end;
	if (doctor->view.answer != LL_DAEMON_SERVES || !ll_place_is_system(&doctor->view.place))
		return;
	if (end->silent_ns == UINT64_MAX)
		ll_doctor_say(doctor, LL_FINDING_WARN, NULL, "sensor", N_("start it: systemctl start loadline-sensor"),
			      "none has reported to loadlined, which knows nothing of programs outside of jobs");
	else if (end->silent_ns >= LL_SENSED_FRESH_NS)
		ll_doctor_say(doctor, LL_FINDING_WARN, NULL, "sensor",
			      N_("look at it: systemctl status loadline-sensor; the driver may hang"),
			      "it has said nothing for %.0f s", (double)end->silent_ns / 1e9);
	else
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, "sensor", NULL, "%u cards and slices, %u processes on them",
			      end->cards, end->processes);
}
