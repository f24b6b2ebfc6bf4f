/* faker.c - a library to preload that stands in front of dlsym, as VirtualGL's does: it has one name of its own, and
 * passes all others on to the dlsym that dlvsym finds behind it. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef void *(*find_fn)(void *handle, const char *name);

EXPORT void *dlsym(void *handle, const char *name);

static find_fn find_real(void)
{
	static const char *const versions[] = {"GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34"};
	find_fn real = NULL;
	for (size_t i = 0; !real && i < sizeof versions / sizeof versions[0]; i++) {
		void *found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
		memcpy(&real, &found, sizeof real);
	}
	return real;
}

void *dlsym(void *handle, const char *name)
{
	static find_fn real;
	if (!real)
		real = find_real();
	if (strcmp(name, "glXFaked") == 0)
		return &real;
	return real ? real(handle, name) : NULL;
}
