/*
 * ptx.h - reads from PTX text what the model needs: the kernels with their parameters, the variables, the versions. It
 * does not read instructions. It accepts any text that a real driver accepts and that has the form `.entry NAME(.param
 * ...)` and `.global` declarations at file level.
 */
#ifndef LOADLINE_SIM_CUDA_PTX_H
#define LOADLINE_SIM_CUDA_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ll_err;

enum { SIM_PTX_PARAMS = 64 };

struct sim_ptx_entry {
	char *name;
	unsigned param_count;
	struct {
		size_t offset;
		size_t size;
	} params[SIM_PTX_PARAMS];
	size_t param_bytes;
};

struct sim_ptx_variable {
	char *name;
	size_t bytes;
	uint64_t address; /* the module loader fills it in */
};

struct sim_ptx {
	unsigned version; /* 74 is 7.4 */
	unsigned target;  /* 50 is sm_50 */
	unsigned entry_count, variable_count;
	struct sim_ptx_entry *entries;
	struct sim_ptx_variable *variables;
};

/* Parses a text. -EINVAL: it is not PTX; err says what is wrong, and in which line. -ENOMEM. The caller frees ret_ptx
 * with sim_ptx_fini. */
int sim_ptx_parse(const char *text, struct sim_ptx *ret_ptx, struct ll_err *err);

/* Frees the memory of a parsed text. */
void sim_ptx_fini(struct sim_ptx *ptx);

/* Reads argument i of a launch as an unsigned number, from params or, if that is NULL, from the buffer. False: the
 * entry has no such parameter, it is larger than 8 bytes, or there are no arguments. */
bool sim_ptx_argument(const struct sim_ptx_entry *entry, unsigned i, void **params, const char *buffer, uint64_t *ret);

#endif
