/* loadline-near: the part of `loadline run --cpus near` that needs hwloc. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "near/near.h"

static const char help[] = "usage: loadline-near PCI-DEVICE...\n"
			   "       loadline-near --help | --version\n"
			   "\n"
			   "Binds its parent process to the CPUs near these PCI devices, as far as they are allowed\n"
			   "to it. Prints \"bound CPUS NODES\", \"all\" if all allowed CPUs are near, or \"failed\n"
			   "REASON\". `loadline run --cpus near` starts it.\n";

int main(int argc, char **argv)
{
	struct ll_near near;
	struct ll_err err = {0};
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("loadline-near " LOADLINE_VERSION);
		return LL_EXIT_OK;
	}
	bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
	if (is_help || argc < 2 || argv[1][0] == '-') {
		fputs(help, is_help ? stdout : stderr);
		return is_help ? LL_EXIT_OK : LL_EXIT_USAGE;
	}
	int rc = ll_near_bind(getppid(), argv + 1, (size_t)argc - 1, &near, &err);
	if (rc)
		printf("failed %s\n", err.text);
	else if (!near.cpus[0])
		puts("all");
	else
		printf("bound %s %s\n", near.cpus, near.nodes);
	return rc ? LL_EXIT_FAILED : LL_EXIT_OK;
}
