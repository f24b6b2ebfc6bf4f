/*
 * program.h - by what a program is known again at its next run: its executable, its arguments, and the limits under
 * which it runs, as a number. It says nothing of them to who does not know them.
 */
#ifndef LOADLINE_PROTOCOL_PROGRAM_H
#define LOADLINE_PROTOCOL_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/words.h"

enum { LL_PROGRAM_NAME_SIZE = 48 };

/* path: of the executable. words: the command with its arguments, NULL-ended. Not 0. */
uint64_t ll_program_key(const char *path, char *const *words);

/* Makes a name for people, such as "python train.py": the command, and its first word that is no option, without their
 * folders. Printable, perhaps cut. */
void ll_program_name(char *const *words, char ret_name[LL_PROGRAM_NAME_SIZE]);

/* How a job with these limits shares a card. */
enum ll_way ll_way_of(const struct ll_limits *limits);

/* The program under limits that change how fast it is beside others: class, weight, slowdown and compute. 0 if the key
 * is 0. */
uint64_t ll_program_under(uint64_t key, const struct ll_limits *limits);

/* Several programs, in any order. They are sorted. 0: one of them is not known, or there is none. */
uint64_t ll_programs_key(uint64_t *keys, size_t count);

#endif
