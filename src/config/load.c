/* The files of a configuration, from the disk to the structs. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "config/check.h"
#include "config/read.h"
#include "config/value.h"

static int read_file(const char *path, struct ll_strbuf *out, struct ll_err *err)
{
	char bytes[4096];
	ssize_t n = 1;
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
	/* One byte above what is read is enough to say that there is too much. */
	while (n && out->length <= LL_CONFIG_BYTES_MAX) {
		n = read(fd, bytes, sizeof bytes);
		if (n < 0 && errno != EINTR)
			return ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
		if (n > 0)
			ll_strbuf_add(out, bytes, (size_t)n);
	}
	return out->failed ? ll_err_set(err, -ENOMEM, "out of memory") : 0;
}

/* Reads one more text over what there is. */
static void put_text(struct ll_config *config, const char *file, const char *text, size_t length,
		     struct ll_config_findings *findings)
{
	struct ll_config_value *root = ll_config_read(&config->arena, file, text, length, findings);
	if (!root)
		return;
	ll_config_check_force(root, findings);
	if (config->root)
		ll_config_value_put_over(&config->arena, config->root, root);
	else
		config->root = root;
}

static int put_file(struct ll_config *config, const char *path, struct ll_config_findings *findings, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	int rc = read_file(path, &text, err);
	const char *file = ll_config_copy(&config->arena, path, strlen(path));
	if (rc || !file)
		return rc ? rc : ll_err_set(err, -ENOMEM, "out of memory");
	put_text(config, file, text.buf, text.length, findings);
	return 0;
}

static int put_drop_ins(struct ll_config *config, const char *folder, struct ll_config_findings *findings,
			struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf pattern = LL_STRBUF_INIT;
	glob_t found = {0};
	int rc = 0;
	/* The folder is a name, not a pattern. */
	for (const char *c = folder; *c; c++) {
		if (strchr("*?[]\\", *c))
			ll_strbuf_addc(&pattern, '\\');
		ll_strbuf_addc(&pattern, *c);
	}
	ll_strbuf_adds(&pattern, "/loadline.d/*.yaml");
	int status = glob(pattern.buf, GLOB_ERR, NULL, &found);
	if (status == GLOB_NOSPACE || pattern.failed)
		rc = ll_err_set(err, -ENOMEM, "out of memory");
	else if (status == GLOB_ABORTED && errno != ENOENT && errno != ENOTDIR)
		rc = ll_err_set(err, -errno, "%s/loadline.d: %s", folder, strerror(errno));
	for (size_t i = 0; !rc && !status && i < found.gl_pathc; i++)
		rc = put_file(config, found.gl_pathv[i], findings, err);
	globfree(&found);
	return rc;
}

/* ---- what is missing ---- */

static void check_needed(struct ll_config_value *map, struct ll_config_findings *findings)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct ll_config_key *key = &map->key->map->keys[i];
		struct ll_config_value *value = map->items[i];
		if (!value && key->is_needed && *map->key->name)
			ll_config_fault(findings, map->mark, "%s: '%s' is missing", map->key->name, key->name);
		else if (!value && key->is_needed)
			ll_config_fault(findings, map->mark, "'%s' is missing", key->name);
		if (!value || value->is_bad || key->kind != LL_CONFIG_MAP)
			continue;
		if (!value->is_list)
			check_needed(value, findings);
		for (size_t j = 0; value->is_list && j < value->count; j++) {
			if (!value->items[j]->is_bad)
				check_needed(value->items[j], findings);
		}
	}
}

/* Takes out what has a fault: the checks that follow know nothing of it. */
static void prune(struct ll_config_value *value)
{
	size_t kept = 0;
	for (size_t i = 0; i < value->count; i++) {
		struct ll_config_value *item = value->items[i];
		bool is_good = item && !item->is_bad;
		value->has_bad |= item && item->is_bad;
		if (is_good)
			prune(item);
		if (!value->is_list)
			value->items[i] = is_good ? item : NULL;
		else if (is_good)
			value->items[kept++] = item;
	}
	if (value->is_list)
		value->count = kept;
}

/* An address of an older version is no fault, so that loadlined starts after an upgrade. */
static void leave_out_address(struct ll_config_serve *serve, struct ll_config_findings *findings)
{
	if (!serve->page || *serve->page == '/')
		return;
	ll_config_warn(
	    findings, ll_config_value_mark(serve->from, "page"),
	    "page: '%.60s': an address, where the page was to be served. Now it is the folder in which the page is "
	    "written, such as /run/loadline-exporter/page; no page is written",
	    serve->page);
	serve->page = NULL;
}

static int finish(struct ll_config *config, struct ll_config_findings *findings, struct ll_err *err)
{
	if (config->root) {
		check_needed(config->root, findings);
		prune(config->root);
		ll_config_value_add_defaults(&config->arena, config->root);
		ll_config_value_fill(&config->arena, ll_config_root.map, config->root, &config->policy);
		leave_out_address(&config->policy.serve, findings);
	}
	if (config->arena.failed || findings->failed)
		return ll_err_set(err, -ENOMEM, "out of memory");
	return 0;
}

/* ---- load ---- */

static int load_folder(struct ll_config *config, const char *folder, struct ll_config_findings *findings,
		       struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf path = LL_STRBUF_INIT;
	ll_strbuf_addf(&path, "%s/loadline.yaml", folder);
	int rc = put_file(config, path.buf, findings, err);
	return rc ? rc : put_drop_ins(config, folder, findings, err);
}

int ll_config_load(struct ll_config *config, const char *path, struct ll_config_findings *findings, struct ll_err *err)
{
	static const char etc[] = "/etc/loadline";
	struct stat info;
	bool is_folder = !path || (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
	int rc =
	    is_folder ? load_folder(config, path ? path : etc, findings, err) : put_file(config, path, findings, err);
	return rc ? rc : finish(config, findings, err);
}

int ll_config_load_text(struct ll_config *config, const char *name, const char *text, size_t length,
			struct ll_config_findings *findings, struct ll_err *err)
{
	put_text(config, name, text, length, findings);
	return finish(config, findings, err);
}

void ll_config_fini(struct ll_config *config)
{
	ll_config_arena_fini(&config->arena);
	*config = (struct ll_config){0};
}
