/* What part of its cards a job has, by Slurm's texts. */
#include <errno.h>
/* Jobs by number, in 26.05 and later. */
#define SLURM_BACKWARD_COMPAT
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "slurm/plugin.h"

int ll_spank_cards_read(const char *text, struct ll_spank_job *job)
{
	enum { TEN = 10 };
	char *end;
	for (const char *at = text; *at; at = *end ? end + 1 : end) {
		unsigned long first = strtoul(at, &end, TEN), last = first;
		if (end == at)
			return -EINVAL;
		if (*end == '-') {
			at = end + 1;
			last = strtoul(at, &end, TEN);
		}
		if (end == at || last < first || (*end && *end != ','))
			return -EINVAL;
		for (; first <= last; first++) {
			if (job->card_count == LL_SPANK_CARDS)
				return -EINVAL;
			job->cards[job->card_count++] = (unsigned)first;
		}
	}
	return 0;
}

/* Returns where the next resource begins. Commas inside of parentheses do not end one. */
static const char *skip_resource(const char *at)
{
	unsigned depth = 0;
	for (; *at && (depth || *at != ','); at++)
		depth = *at == '(' ? depth + 1 : *at == ')' && depth ? depth - 1 : depth;
	return *at ? at + 1 : at;
}

/* The number of a resource: "shard:4(IDX:0)", "gpu:h200:2". 0: it is another's. */
static unsigned count_of(const char *at, const char *name)
{
	size_t length = strlen(name), end = strcspn(at, "(,");
	if (strncmp(at, name, length) != 0 || at[length] != ':')
		return 0;
	while (end && at[end - 1] != ':')
		end--;
	return (unsigned)strtoul(at + end, NULL, 10);
}

static unsigned count_all(const char *gres, const char *name)
{
	unsigned count = 0;
	for (; *gres; gres = skip_resource(gres))
		count += count_of(gres, name);
	return count;
}

/* The parts of each card, "(4/16,0/16)", of Slurm from 23.02 on. Returns false if the text has none. */
static bool read_fractions(const char *gres, struct ll_spank_job *job)
{
	bool is_found = false;
	for (; *gres; gres = skip_resource(gres)) {
		const char *at = count_of(gres, "shard") ? strchr(gres, '(') : NULL;
		for (; at && *at && *at != ')'; at = strpbrk(at + 1, ",)")) {
			unsigned part, whole;
			if (sscanf(at + 1, "%u/%u", &part, &whole) != 2 || !part || part > whole)
				continue;
			if (!is_found || part * job->of_shards < job->shards * whole) {
				job->shards = part;
				job->of_shards = whole;
			}
			is_found = true;
		}
	}
	return is_found;
}

int ll_spank_part_read(const char *job_gres, const char *node_gres, struct ll_spank_job *job, struct ll_err *err)
{
	unsigned shards = count_all(job_gres, "shard"), all = count_all(node_gres, "shard");
	unsigned cards = count_all(node_gres, "gpu"), own = (unsigned)job->card_count;
	if (!shards || read_fractions(job_gres, job))
		return 0;
	if (!cards || !own || all < cards || all % cards || shards % own || shards / own > all / cards)
		return ll_err_set(err, -EINVAL,
				  "%u shards on %u cards of a node with %u shards and %u cards: the part of each is "
				  "not known",
				  shards, own, all, cards);
	job->shards = shards / own;
	job->of_shards = all / cards;
	return 0;
}

/* Which of the job's nodes this is. */
static int find_node(const char *nodes, const char *node)
{
	__typeof__(slurm_hostlist_create(nodes)) list = slurm_hostlist_create(nodes);
	int at = list ? slurm_hostlist_find(list, node) : -1;
	if (list)
		slurm_hostlist_destroy(list);
	return at;
}

/* names: with commas between. */
static bool is_among(const char *names, const char *name)
{
	size_t length = name ? strlen(name) : 0;
	for (const char *at = names; at && length; at = strchr(at, ',')) {
		at += *at == ',';
		if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
			return true;
	}
	return false;
}

static int ask_job(const struct ll_spank_config *config, const char *node, struct ll_spank_job *job,
		   const char *node_gres, struct ll_err *err)
{
	job_info_msg_t *answer = NULL;
	int rc = -ESRCH;
	if (slurm_load_job(&answer, job->id, SHOW_DETAIL | SHOW_LOCAL))
		return ll_err_set(err, -EIO, "slurmctld does not tell job %u: %s", job->id, slurm_strerror(errno));
	for (uint32_t i = 0; i < answer->record_count; i++) {
		const slurm_job_info_t *info = &answer->job_array[i];
		int at = info->job_id == job->id && info->nodes ? find_node(info->nodes, node) : -1;
		if (at < 0)
			continue;
		const char *gres =
		    (uint32_t)at < info->gres_detail_cnt && info->gres_detail_str[at] ? info->gres_detail_str[at] : "";
		snprintf(job->account, sizeof job->account, "%s", info->account ? info->account : "");
		rc = ll_spank_part_read(gres, node_gres, job, err);
		job->borrows = job->of_shards &&
			       (is_among(config->borrow, info->qos) || is_among(config->borrow, info->partition));
		job->of_shards = job->of_shards && config->shards ? config->shards : job->of_shards;
		break;
	}
	slurm_free_job_info_msg(answer);
	return rc == -ESRCH ? ll_err_set(err, rc, "slurmctld has no job %u on %s", job->id, node) : rc;
}

int ll_spank_part_ask(const struct ll_spank_config *config, const char *node, struct ll_spank_job *job,
		      struct ll_err *err)
{
	char name[LL_SPANK_NAME];
	node_info_msg_t *answer = NULL;
	snprintf(name, sizeof name, "%s", node);
	/* A hook of Slurm 24.11 may ask nothing before it. */
	slurm_init(NULL);
	if (slurm_load_node_single(&answer, name, 0))
		return ll_err_set(err, -EIO, "slurmctld does not tell node %s: %s", node, slurm_strerror(errno));
	const char *gres = answer->record_count && answer->node_array[0].gres ? answer->node_array[0].gres : "";
	int rc = ask_job(config, node, job, gres, err);
	slurm_free_node_info_msg(answer);
	return rc;
}
