#include "daemon/listing.h"

#include "base/process.h"

static void make_job_row(const struct ll_job *job, union ll_message *ret_message)
{
	ll_message_init(ret_message, LL_MESSAGE_JOB_ROW);
	struct ll_message_job_row *row = &ret_message->job_row;
	row->number = job->number;
	row->tenant_number = job->tenant->number;
	row->job = job->facts;
	row->job.flags = ll_keeper_flags(job);
	row->monitor_pid = ll_keeper_monitor_pid(job);
	for (const struct ll_job_process *process = job->processes; process; process = process->next)
		row->processes++;
}

static void make_process_row(const struct ll_job *job, const struct ll_job_process *process,
			     union ll_message *ret_message)
{
	ll_message_init(ret_message, LL_MESSAGE_PROCESS_ROW);
	ret_message->process_row.job_number = job->number;
	ret_message->process_row.pid = ll_process_has_ended(process->fd) ? 0 : (uint32_t)ll_process_id(process->fd);
	ret_message->process_row.role = process->role;
}

static void make_tenant_row(const struct ll_tenant *tenant, union ll_message *ret_message)
{
	ll_message_init(ret_message, LL_MESSAGE_TENANT_ROW);
	struct ll_message_tenant_row *row = &ret_message->tenant_row;
	row->number = tenant->number;
	row->limits = tenant->limits;
	row->uid = tenant->uid;
	row->jobs = tenant->jobs;
	row->processes = tenant->processes;
	ll_message_text_set(row->name, sizeof row->name, tenant->name);
}

/* Returns the process that comes next in the job that was listed last. */
static const struct ll_job_process *next_process(const struct ll_server *server, const struct ll_listing *listing,
						 const struct ll_job **ret_job)
{
	const struct ll_job *job = listing->job ? ll_books_after(&server->books, listing->job - 1) : NULL;
	if (!job || job->number != listing->job)
		return NULL;
	const struct ll_job_process *process = job->processes;
	for (uint32_t i = 0; process && i < listing->process; i++)
		process = process->next;
	*ret_job = job;
	return process;
}

bool ll_listing_next(const struct ll_server *server, struct ll_listing *listing, union ll_message *ret_message)
{
	const struct ll_job *job = NULL;
	const struct ll_job_process *process = next_process(server, listing, &job);
	if (process) {
		listing->process++;
		listing->processes++;
		make_process_row(job, process, ret_message);
		return true;
	}
	job = ll_books_after(&server->books, listing->job);
	if (job) {
		listing->job = job->number;
		listing->process = 0;
		listing->jobs++;
		make_job_row(job, ret_message);
		return true;
	}
	const struct ll_tenant *tenant = ll_books_tenant_after(&server->books, listing->tenant);
	if (tenant) {
		listing->tenant = tenant->number;
		listing->tenants++;
		make_tenant_row(tenant, ret_message);
		return true;
	}
	ll_message_init(ret_message, LL_MESSAGE_LIST_END);
	ret_message->list_end.tenants = listing->tenants;
	ret_message->list_end.jobs = listing->jobs;
	ret_message->list_end.processes = listing->processes;
	return false;
}
