#include "trace/command/internal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* ---- C++ names ---- */

static char *(*demangle)(const char *name, char *buffer, size_t *size, int *ret_status);

static void find_demangler(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	void *address = library ? dlsym(library, "__cxa_demangle") : NULL;
	memcpy(&demangle, &address, sizeof address);
}

/* Demangles a C++ name: "_Z3addPfi" becomes "add(float*, int)", for free(3). NULL: the name is not mangled, or this
 * machine has no C++ library. It takes 1 to 50 us. */
static char *plain_name(const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int status = 0;
	pthread_once(&once, find_demangler);
	return demangle && strncmp(name, "_Z", 2) == 0 ? demangle(name, NULL, NULL, &status) : NULL;
}

/* ---- the run ---- */

static int no_memory(struct ll_err *err)
{
	return ll_err_set(err, -ENOMEM, "trace: %s", strerror(ENOMEM));
}

static int add_file(struct ll_trace_run *run, const char *path, struct ll_err *err)
{
	struct ll_trace_file file;
	int rc = ll_trace_file_open(path, &file, err);
	if (rc == -ENODATA || rc == -EBADMSG || rc == -ENOENT)
		return 0;
	if (rc)
		return rc;
	struct ll_trace_file *files = realloc(run->files, (run->file_count + 1) * sizeof *files);
	if (!files) {
		ll_trace_file_fini(&file);
		return no_memory(err);
	}
	run->files = files;
	run->files[run->file_count++] = file;
	return 0;
}

/* Demangles each name once, not for each event. */
static int make_names_plain(struct ll_trace_run *run, struct ll_trace_file *file, struct ll_err *err)
{
	char **names = realloc(run->plain_names, (run->plain_count + file->name_count + 1) * sizeof *names);
	if (!names)
		return no_memory(err);
	run->plain_names = names;
	for (size_t i = 0; i < file->name_count; i++) {
		char *plain = plain_name(file->names[i]);
		if (!plain)
			continue;
		file->names[i] = plain;
		run->plain_names[run->plain_count++] = plain;
	}
	return 0;
}

static int by_opening(const void *a, const void *b)
{
	const struct ll_trace_file *first = a, *second = b;
	return first->header.opened_ns < second->header.opened_ns ? -1
								  : first->header.opened_ns > second->header.opened_ns;
}

static int read_files(struct ll_trace_run *run, const char *folder, struct ll_err *err)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int rc = 0;
	if (!dir)
		return ll_err_set(err, -errno, "%.200s: %s", folder, strerror(errno));
	while (!rc && (entry = readdir(dir))) {
		char path[4096];
		if (entry->d_name[0] == '.')
			continue;
		int n = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		if (n > 0 && (size_t)n < sizeof path)
			rc = add_file(run, path, err);
	}
	closedir(dir);
	if (!rc && run->file_count)
		qsort(run->files, run->file_count, sizeof *run->files, by_opening);
	return rc;
}

static unsigned card_of(struct ll_trace_run *run, const char *uuid)
{
	for (unsigned i = 0; i < run->card_count; i++) {
		if (strcmp(run->cards[i], uuid) == 0)
			return i;
	}
	if (run->card_count == LL_TRACE_CARDS)
		return LL_TRACE_NO_CARD;
	run->cards[run->card_count] = uuid;
	return (unsigned)run->card_count++;
}

static bool is_wanted(const struct ll_trace_filter *filter, const char *uuid)
{
	for (size_t i = 0; i < filter->count; i++) {
		if (strcmp(filter->uuids[i], uuid) == 0)
			return true;
	}
	return filter->count == 0;
}

static struct ll_trace_process *process_of(struct ll_trace_run *run, const struct ll_trace_header *header)
{
	for (size_t i = 0; i < run->process_count; i++) {
		if (run->processes[i].pid == header->pid)
			return &run->processes[i];
	}
	struct ll_trace_process *process = &run->processes[run->process_count++];
	process->pid = header->pid;
	return process;
}

static int take_file(struct ll_trace_run *run, const struct ll_trace_file *file, const struct ll_trace_filter *filter,
		     struct ll_err *err)
{
	struct ll_trace_process *process = process_of(run, &file->header);
	struct ll_trace_event *events =
	    realloc(process->events, (process->count + file->record_count + 1) * sizeof *events);
	if (!events)
		return no_memory(err);
	process->events = events;
	process->command = file->header.command;
	if (file->header.source != LL_TRACE_SOURCE_GATE &&
	    (!process->device || process->device->source == LL_TRACE_SOURCE_NONE))
		process->device = &file->header;
	if (file->header.source == LL_TRACE_SOURCE_NONE)
		process->refusal = file->header.reason;
	process->dropped_limit += file->header.dropped_limit;
	process->dropped_cupti += file->header.dropped_cupti;
	process->dropped_disk += file->header.dropped_disk;
	for (size_t i = 0; i < file->record_count; i++) {
		const struct ll_trace_record *record = file->records[i];
		const char *told = record->device < LL_TRACE_DEVICES ? file->cards[record->device] : NULL;
		const char *uuid = told ? told : "";
		if (is_wanted(filter, uuid))
			process->events[process->count++] =
			    (struct ll_trace_event){.record = record, .file = file, .card = card_of(run, uuid)};
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct ll_trace_record *first = ((const struct ll_trace_event *)a)->record;
	const struct ll_trace_record *second = ((const struct ll_trace_event *)b)->record;
	if (first->start_ns != second->start_ns)
		return first->start_ns < second->start_ns ? -1 : 1;
	return first->correlation < second->correlation ? -1 : first->correlation > second->correlation;
}

int ll_trace_run_read(const char *folder, const struct ll_trace_filter *filter, struct ll_trace_run *ret_run,
		      struct ll_err *err)
{
	struct ll_trace_run run = {0};
	int rc = read_files(&run, folder, err);
	run.processes = calloc(run.file_count + 1, sizeof *run.processes);
	if (!rc && !run.processes)
		rc = no_memory(err);
	for (size_t i = 0; !rc && i < run.file_count; i++)
		rc = make_names_plain(&run, &run.files[i], err);
	for (size_t i = 0; !rc && run.processes && i < run.file_count; i++)
		rc = take_file(&run, &run.files[i], filter, err);
	for (size_t i = 0; !rc && run.processes && i < run.process_count; i++) {
		struct ll_trace_process *process = &run.processes[i];
		if (process->count)
			qsort(process->events, process->count, sizeof *process->events, by_start);
	}
	if (run.file_count)
		run.start_ns = run.files[0].header.opened_ns;
	if (rc)
		ll_trace_run_fini(&run);
	else
		*ret_run = run;
	return rc;
}

void ll_trace_run_fini(struct ll_trace_run *run)
{
	for (size_t i = 0; i < run->process_count; i++)
		free(run->processes[i].events);
	for (size_t i = 0; i < run->file_count; i++)
		ll_trace_file_fini(&run->files[i]);
	for (size_t i = 0; i < run->plain_count; i++)
		free(run->plain_names[i]);
	free(run->plain_names);
	free(run->processes);
	free(run->files);
	ll_spans_fini(&run->host);
	ll_spans_fini(&run->io);
	memset(run, 0, sizeof *run);
}
