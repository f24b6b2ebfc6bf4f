/* Attacks by one user on another. They need root, who is one user after the other. */
#include <stdio.h>
#include <unistd.h>

#include "test.h"

enum { SKIPPED = 77 };

int main(int argc, char **argv)
{
	if (geteuid() != 0) {
		puts("skipped: only root can be two users");
		return SKIPPED;
	}
	return tests_run(argc, argv);
}
