/* The main of each test program that has none of its own. */
#include "test.h"

int main(int argc, char **argv)
{
	return tests_run(argc, argv);
}
