/*
 * program.h - makes a number that identifies a program at its next run, from its executable, its arguments and its
 * limits. The number does not reveal them.
 */
#ifndef LOADLINE_PROTOCOL_PROGRAM_H
#define LOADLINE_PROTOCOL_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/words.h"

enum { LL_PROGRAM_NAME_SIZE = 48 };

/* path: of the executable. words: the command with its arguments, NULL-terminated. The result is not 0. */
uint64_t ll_program_key(const char *path, char *const *words);

/* Makes a name for users, such as "python train.py": the command and its first word that is not an option, without
 * folders. It is printable, and may be cut. */
void ll_program_name(char *const *words, char ret_name[LL_PROGRAM_NAME_SIZE]);

/* How a job with these limits shares a card. */
enum ll_way ll_way_of(const struct ll_limits *limits);

/* Identifies the program under the limits that change its speed beside others: class, weight, slowdown and compute.
 * Returns 0 if the key is 0. */
uint64_t ll_program_under(uint64_t key, const struct ll_limits *limits);

/* Identifies a set of programs. The function sorts the keys. Returns 0 if a key is 0, or if count is 0. */
uint64_t ll_programs_key(uint64_t *keys, size_t count);

#endif
