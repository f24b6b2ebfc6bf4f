/*
 * read.h - reads one YAML text into a tree of values, by libyaml and the table of keys.
 *
 * loadline.yaml is a part of YAML: one document, maps with known keys, lists, scalars. It has no anchors and aliases,
 * no tags and no directives, each key once, and no empty values: what a reader sees is what holds.
 */
#ifndef LOADLINE_CONFIG_READ_H
#define LOADLINE_CONFIG_READ_H

#include "config/value.h"

enum { LL_CONFIG_BYTES_MAX = 1 << 20, LL_CONFIG_DEPTH_MAX = 32 };

/*
 * Returns the map of a text, all of which was read that can be; faults are added to findings. file: the name for marks,
 * which lives as long as the arena. NULL: it is no such YAML at all, as findings say, or out of memory, as the arena or
 * findings say.
 */
struct ll_config_value *ll_config_read(struct ll_config_arena *arena, const char *file, const char *text, size_t length,
				       struct ll_config_findings *findings);

#endif
