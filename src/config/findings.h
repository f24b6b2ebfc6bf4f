/*
 * findings.h - what is wrong with a configuration, each with its place. All are collected, so that a user sees them at
 * once and not one by one.
 */
#ifndef LOADLINE_CONFIG_FINDINGS_H
#define LOADLINE_CONFIG_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

/* A place in a file. The file's name lives as long as the configuration. */
struct ll_config_mark {
	const char *file; /* NULL: a default, which no file has */
	unsigned line;    /* from 1; 0: the file as a whole */
	unsigned column;  /* from 1, in characters */
};

enum ll_config_level {
	LL_CONFIG_FAULT,   /* the configuration cannot be used */
	LL_CONFIG_WARNING, /* it can */
};

struct ll_config_finding {
	struct ll_config_mark mark;
	enum ll_config_level level;
	char *text; /* one line in the language of the program, no newline */
};

/* Zeroed, it is ready. */
struct ll_config_findings {
	struct ll_config_finding *items;
	size_t count, capacity;
	size_t fault_count, warning_count;
	bool failed; /* memory ran out: findings are missing */
};

/* Adds a finding. The format is translated. */
void ll_config_fault(struct ll_config_findings *findings, struct ll_config_mark mark, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void ll_config_warn(struct ll_config_findings *findings, struct ll_config_mark mark, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

struct ll_strbuf;

/* Adds "FILE:LINE:COLUMN: " as far as the finding has them. */
void ll_config_finding_add_place(const struct ll_config_finding *finding, struct ll_strbuf *out);

/* Sorts them by file, line and column. Findings of one place keep their order. */
void ll_config_findings_sort(struct ll_config_findings *findings);

void ll_config_findings_fini(struct ll_config_findings *findings);

#endif
