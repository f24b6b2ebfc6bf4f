#include "cuda/inject.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void load_injection(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	void *address = library ? dlsym(library, "InitializeInjection") : NULL;
	int (*initialise)(void) = NULL;
	memcpy(&initialise, &address, sizeof address);
	if (initialise)
		initialise();
}

void sim_inject(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, load_injection);
}
