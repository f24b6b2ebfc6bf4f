#include "cli/trace/name.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

static char *(*demangle)(const char *name, char *buffer, size_t *size, int *ret_status);

static void find(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	void *address = library ? dlsym(library, "__cxa_demangle") : NULL;
	memcpy(&demangle, &address, sizeof address);
}

char *ll_trace_name_plain(const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int status = 0;
	pthread_once(&once, find);
	return demangle && strncmp(name, "_Z", 2) == 0 ? demangle(name, NULL, NULL, &status) : NULL;
}
