#include "cuda/local/ptx.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* Reads word by word. Every punctuation mark is a word. */
struct reader {
	const char *at;
	int line;
	char word[256];
};

static void skip_blanks(struct reader *r)
{
	for (;;) {
		if (r->at[0] == '/' && r->at[1] == '/') {
			r->at += strcspn(r->at, "\n");
		} else if (r->at[0] == '/' && r->at[1] == '*') {
			const char *end = strstr(r->at + 2, "*/");
			for (const char *p = r->at; p < (end ? end : r->at + strlen(r->at)); p++)
				r->line += *p == '\n';
			r->at = end ? end + 2 : r->at + strlen(r->at);
		} else if (isspace((unsigned char)*r->at)) {
			r->line += *r->at == '\n';
			r->at++;
		} else {
			return;
		}
	}
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

/* Returns false at the end. */
static bool next_word(struct reader *r)
{
	skip_blanks(r);
	size_t n = 0;
	if (!*r->at) {
		r->word[0] = '\0';
		return false;
	}
	if (*r->at == '"') {
		r->at += 1 + strcspn(r->at + 1, "\"");
		r->at += *r->at == '"';
		memcpy(r->word, "\"", 2);
		return true;
	}
	if (!is_name_char(*r->at))
		r->word[n++] = *r->at++;
	else
		while (is_name_char(*r->at) && n < sizeof r->word - 1)
			r->word[n++] = *r->at++;
	r->word[n] = '\0';
	return true;
}

static bool is_word(const struct reader *r, const char *word)
{
	return strcmp(r->word, word) == 0;
}

/* Skips to behind the brace or parenthesis that closes the last read one. */
static void skip_nested(struct reader *r, const char *open, const char *close)
{
	for (int depth = 1; depth && next_word(r);)
		depth += is_word(r, open) ? 1 : is_word(r, close) ? -1 : 0;
}

/* ".u64" -> 8; 0: the word is not a type of a parameter or variable. */
static size_t type_size(const char *word)
{
	if (strcmp(word, ".pred") == 0)
		return 1;
	if (word[0] != '.' || !strchr("usbf", word[1]) || !isdigit((unsigned char)word[2]))
		return 0;
	unsigned long bits = strtoul(word + 2, NULL, 10);
	return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128 ? bits / 8 : 0;
}

/*
 * Reads a declaration after its state space: .align N, .ptr and the like, a type, a name, optionally [N]. The reader is
 * then at the word after it.
 */
static int read_declaration(struct reader *r, char name[256], size_t *ret_bytes, size_t *ret_align, struct ll_err *err)
{
	size_t bytes = 0, align = 0, lanes = 1;
	while (next_word(r) && r->word[0] == '.') {
		if (is_word(r, ".align")) {
			next_word(r);
			align = strtoul(r->word, NULL, 10);
		} else if (is_word(r, ".v2") || is_word(r, ".v4")) {
			lanes = (size_t)(r->word[2] - '0');
		} else if (type_size(r->word)) {
			bytes = type_size(r->word);
		}
	}
	if (!bytes || !(isalpha((unsigned char)r->word[0]) || strchr("_$%", r->word[0])))
		return ll_err_set(err, -EINVAL, "line %d: '%s': not a declaration", r->line, r->word);
	memcpy(name, r->word, sizeof r->word);
	bytes *= lanes;
	size_t natural = bytes;
	next_word(r);
	while (is_word(r, "[")) {
		next_word(r);
		size_t count = is_word(r, "]") ? 0 : strtoul(r->word, NULL, 0);
		while (!is_word(r, "]") && next_word(r))
			;
		bytes *= count;
		next_word(r);
	}
	*ret_bytes = bytes;
	*ret_align = align ? align : natural;
	return 0;
}

static void *grow_list(void *array, unsigned count, size_t size)
{
	return realloc(array, (count + 1) * size);
}

static int read_params(struct reader *r, struct sim_ptx_entry *entry, struct ll_err *err)
{
	while (next_word(r) && !is_word(r, ")")) {
		if (is_word(r, ","))
			continue;
		char name[256];
		size_t bytes = 0, align = 1;
		if (!is_word(r, ".param"))
			return ll_err_set(err, -EINVAL, "line %d: '%s' where .param was expected", r->line, r->word);
		if (entry->param_count == SIM_PTX_PARAMS)
			return ll_err_set(err, -EINVAL, "line %d: more than %d parameters", r->line, SIM_PTX_PARAMS);
		int rc = read_declaration(r, name, &bytes, &align, err);
		if (rc < 0)
			return rc;
		size_t offset = (entry->param_bytes + align - 1) / align * align;
		entry->params[entry->param_count].offset = offset;
		entry->params[entry->param_count].size = bytes;
		entry->param_count++;
		entry->param_bytes = offset + bytes;
		if (is_word(r, ")"))
			return 0;
	}
	return 0;
}

static int read_entry(struct reader *r, struct sim_ptx *ptx, struct ll_err *err)
{
	if (!next_word(r) || !is_name_char(r->word[0]))
		return ll_err_set(err, -EINVAL, "line %d: .entry without a name", r->line);
	struct sim_ptx_entry *grown = grow_list(ptx->entries, ptx->entry_count, sizeof *grown);
	if (!grown)
		return ll_err_set(err, -ENOMEM, "no memory");
	ptx->entries = grown;
	struct sim_ptx_entry *entry = &ptx->entries[ptx->entry_count];
	*entry = (struct sim_ptx_entry){.name = strdup(r->word)};
	if (!entry->name)
		return ll_err_set(err, -ENOMEM, "no memory");
	ptx->entry_count++;
	next_word(r);
	if (is_word(r, "(")) {
		int rc = read_params(r, entry, err);
		if (rc < 0)
			return rc;
		next_word(r);
	}
	while (!is_word(r, "{") && !is_word(r, ";") && next_word(r))
		; /* .maxntid and other directives */
	if (is_word(r, "{"))
		skip_nested(r, "{", "}");
	return 0;
}

static int read_variable(struct reader *r, struct sim_ptx *ptx, struct ll_err *err)
{
	char name[256];
	size_t bytes = 0, align = 1;
	int rc = read_declaration(r, name, &bytes, &align, err);
	if (rc < 0)
		return rc;
	struct sim_ptx_variable *grown = grow_list(ptx->variables, ptx->variable_count, sizeof *grown);
	if (!grown)
		return ll_err_set(err, -ENOMEM, "no memory");
	ptx->variables = grown;
	char *copy = strdup(name);
	if (!copy)
		return ll_err_set(err, -ENOMEM, "no memory");
	ptx->variables[ptx->variable_count++] = (struct sim_ptx_variable){.name = copy, .bytes = bytes ? bytes : 1};
	while (!is_word(r, ";") && next_word(r))
		;
	return 0;
}

static int read_header(struct reader *r, struct sim_ptx *ptx, struct ll_err *err)
{
	unsigned major, minor;
	if (is_word(r, ".version")) {
		next_word(r);
		if (sscanf(r->word, "%u.%u", &major, &minor) != 2)
			return ll_err_set(err, -EINVAL, "line %d: '%s': not a version", r->line, r->word);
		ptx->version = major * 10 + minor;
	} else {
		next_word(r);
		if (sscanf(r->word, "sm_%u", &ptx->target) != 1)
			return ll_err_set(err, -EINVAL, "line %d: '%s': not a target", r->line, r->word);
	}
	return 0;
}

int sim_ptx_parse(const char *text, struct sim_ptx *ret_ptx, struct ll_err *err)
{
	struct reader r = {.at = text, .line = 1};
	struct sim_ptx ptx = {0};
	int rc = 0;
	while (rc == 0 && next_word(&r)) {
		if (is_word(&r, ".version") || is_word(&r, ".target"))
			rc = read_header(&r, &ptx, err);
		else if (!ptx.version)
			rc = ll_err_set(err, -EINVAL, "line %d: '%s' before .version", r.line, r.word);
		else if (is_word(&r, ".entry"))
			rc = read_entry(&r, &ptx, err);
		else if (is_word(&r, ".global") || is_word(&r, ".const"))
			rc = read_variable(&r, &ptx, err);
		else if (is_word(&r, "{"))
			skip_nested(&r, "{", "}");
	}
	if (rc == 0 && (!ptx.version || !ptx.target))
		rc = ll_err_set(err, -EINVAL, "no .version or no .target");
	if (rc < 0)
		sim_ptx_fini(&ptx);
	else
		*ret_ptx = ptx;
	return rc;
}

void sim_ptx_fini(struct sim_ptx *ptx)
{
	for (unsigned i = 0; i < ptx->entry_count; i++)
		free(ptx->entries[i].name);
	for (unsigned i = 0; i < ptx->variable_count; i++)
		free(ptx->variables[i].name);
	free(ptx->entries);
	free(ptx->variables);
	*ptx = (struct sim_ptx){0};
}

bool sim_ptx_argument(const struct sim_ptx_entry *entry, unsigned i, void **params, const char *buffer, uint64_t *ret)
{
	uint64_t value = 0;
	if (i >= entry->param_count || entry->params[i].size > sizeof value || (!params && !buffer))
		return false;
	memcpy(&value, params ? params[i] : buffer + entry->params[i].offset, entry->params[i].size);
	*ret = value;
	return true;
}
