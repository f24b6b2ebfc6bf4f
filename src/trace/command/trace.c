/*
 * trace.c - the program loadline-trace.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "cli/options/program.h"
#include "cli/run/run.h"
#include "driver/cards.h"
#include "trace/command/internal.h"
#include "trace/trace.h"

/* Finds CUPTI, or the reason why it cannot be used, and the library for events if it may be needed. */
static int choose_way(const struct ll_trace_args *args, const char *path, struct ll_trace_how *how, struct ll_err *err)
{
	char text[PATH_MAX + 80];
	how->by = (enum ll_trace_by)args->by;
	how->most_events = args->most_events;
	int rc = ll_trace_find_library(how->library, err);
	if (rc)
		return rc;
	if (how->by != LL_TRACE_BY_EVENTS) {
		bool is_found = ll_trace_find_cupti(path, how->cupti) == 0;
		const char *fault =
		    is_found ? ll_trace_cupti_fault(how->cupti, text, sizeof text) : "no libcupti was found";
		if (fault && how->by == LL_TRACE_BY_CUPTI) {
			ll_err_set(err, -ENODEV, "--by cupti: %s", fault);
			return ll_err_hint(err, "name libcupti's file in LOADLINE_CUPTI, or use --by events");
		}
		if (fault) {
			ll_warn("%s: tracing by events, which costs more and records less", fault);
			how->by = LL_TRACE_BY_EVENTS;
		}
	}
	const char *other = getenv(LL_TRACE_INJECTION);
	if (how->by != LL_TRACE_BY_EVENTS && other && *other)
		ll_warn("%s=%s is not used: the driver loads one library only", LL_TRACE_INJECTION, other);
	if (how->by == LL_TRACE_BY_CUPTI)
		return 0;
	return ll_trace_find_events_library(how->events, err);
}

static int check_program(const char *path, struct ll_trace_how *how, struct ll_err *err)
{
	struct ll_err why = {0};
	int rc = ll_run_check_program(path, how->library, &why);
	how->is_preloaded = rc != -ELIBBAD;
	if (rc == 0 || how->by == LL_TRACE_BY_CUPTI)
		return 0;
	if (how->by == LL_TRACE_BY_EVENTS || why.status) {
		if (!why.status) {
			ll_err_wrap(&why, "cannot be traced by events");
			ll_err_hint(&why, "CUPTI may be able to trace it: set LOADLINE_CUPTI to libcupti's file");
		}
		if (err)
			*err = why;
		return why.code;
	}
	ll_warn("tracing by CUPTI only: %s", why.text);
	return 0;
}

static int print_trace(const struct ll_trace_args *args, const struct ll_trace_run *run, int status, struct ll_err *err)
{
	struct ll_trace_summary summary;
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	int rc = ll_trace_summary_make(run, &summary, err);
	if (rc)
		return rc;
	summary.status = status;
	for (size_t i = 0; i < run->process_count; i++)
		summary.still_running += ll_sampler_is_alive(run->processes[i].pid);
	if (args->json) {
		rc = ll_trace_summary_print_json(&summary, args->top, err);
	} else {
		ll_trace_summary_add_text(&text, &summary, args->top);
		if (text.failed)
			rc = ll_err_set(err, -ENOMEM, "trace: %s", strerror(ENOMEM));
		else
			fwrite(text.buf, 1, text.length, stderr);
	}
	ll_trace_summary_fini(&summary);
	return rc;
}

/* Makes the filter for the cards that -i names, by their UUIDs. */
static int make_filter(const char *text, struct ll_trace_filter *ret_filter, char (**ret_uuids)[LL_UUID_SIZE],
		       struct ll_err *err)
{
	struct ll_driver *driver = NULL;
	LL_SCOPE_FREE const struct ll_card **cards = NULL;
	size_t count = 0;
	if (!text)
		return 0;
	int rc = ll_driver_open(&driver, err);
	if (!rc)
		rc = ll_cards_select(driver, text, &cards, &count, err);
	char(*uuids)[LL_UUID_SIZE] = rc ? NULL : calloc(count, sizeof *uuids);
	const char **list = rc ? NULL : calloc(count, sizeof *list);
	if (!rc && (!uuids || !list))
		rc = ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	for (size_t i = 0; !rc && uuids && list && i < count; i++) {
		memcpy(uuids[i], cards[i]->uuid, sizeof uuids[i]);
		list[i] = uuids[i];
	}
	ll_driver_close(driver);
	if (rc) {
		free(uuids);
		free(list);
		return rc;
	}
	*ret_uuids = uuids;
	*ret_filter = (struct ll_trace_filter){list, count};
	return 0;
}

/* With --by cupti, a process that CUPTI refused has no device times, which is an error. */
static int check_refusals(const struct ll_trace_args *args, const struct ll_trace_run *run, struct ll_err *err)
{
	size_t refused = 0;
	for (size_t i = 0; i < run->process_count; i++)
		refused += run->processes[i].refusal != NULL;
	if (args->by != LL_TRACE_BY_CUPTI || !refused)
		return 0;
	ll_err_set(err, -EIO, "--by cupti: CUPTI refused %zu of %zu processes, which have no device times", refused,
		   run->process_count);
	return ll_err_hint(err, "%s; or trace by events, as without --by",
			   args->json ? "cupti_refusal says why" : "the notes above say why");
}

static int trace_command(const struct ll_trace_args *args, const struct ll_trace_filter *filter, char **words,
			 struct ll_err *err)
{
	struct ll_trace_how how = {0};
	struct ll_sampler sampler = {0};
	struct ll_trace_folder folder;
	struct ll_trace_run run;
	char path[PATH_MAX];
	int status = 0;
	int rc = ll_trace_outputs_check(args->outputs, err);
	if (!rc)
		rc = ll_run_find(words[0], path, err);
	if (!rc)
		rc = choose_way(args, path, &how, err);
	if (!rc)
		rc = check_program(path, &how, err);
	if (!rc)
		rc = ll_trace_folder_make(&folder, err);
	if (rc)
		return rc;
	memcpy(how.folder, folder.path, sizeof how.folder);
	uint64_t start_ns = ll_now_ns();
	rc = ll_trace_start_program(&how, path, words, &sampler, &status, err);
	uint64_t end_ns = ll_now_ns();
	if (!rc)
		rc = ll_trace_run_read(how.folder, filter, &run, err);
	if (!rc) {
		run.command_start_ns = start_ns;
		run.end_ns = end_ns;
		run.host = sampler.host;
		run.io = sampler.io;
		sampler.host = sampler.io = (struct ll_spans){0};
		rc = ll_trace_outputs_write(args->outputs, &run, err);
		int shown = print_trace(args, &run, status, rc ? NULL : err);
		if (!rc)
			rc = shown ? shown : check_refusals(args, &run, err);
		ll_trace_run_fini(&run);
	}
	ll_sampler_fini(&sampler);
	ll_trace_folder_remove(&folder);
	return rc ? rc : status;
}

static int run_trace(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct ll_trace_args *args = data;
	struct ll_trace_filter filter = {0};
	char(*uuids)[LL_UUID_SIZE] = NULL;
	if (!operands->count && !args->cards)
		return ll_err_set(err, -EINVAL, "trace: no command to run, and no card (-i) to look at");
	if (!operands->count && args->outputs) {
		ll_err_set(err, -EINVAL, "-o: only a command that was started under trace has a timeline");
		return ll_err_hint(err, "start it with `loadline trace -o FILE -- COMMAND`");
	}
	if (!operands->count)
		return ll_trace_watch_cards(args->cards, args->for_ns, args->json, err);
	if (args->for_ns)
		return ll_err_set(err, -EINVAL, "--for: goes without a command; a command is traced until it ends");
	int rc = make_filter(args->cards, &filter, &uuids, err);
	if (!rc)
		rc = trace_command(args, &filter, operands->words, err);
	free((void *)(uintptr_t)filter.uuids);
	free(uuids);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct ll_command *const commands[] = {&ll_command_trace, NULL};
	static const struct ll_program trace = {.commands = commands, .run = run_trace};
	return ll_program_main(&trace, argc, argv);
}
