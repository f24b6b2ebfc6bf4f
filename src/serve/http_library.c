#include "serve/http_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/err.h"

/* The name of the library since 2014. */
#define LIBRARY "libmicrohttpd.so.12"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ll_microhttpd functions;
static struct ll_err failure;

static void open_library(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		ll_err_set(&failure, -ENOENT, "%s", dlerror());
		ll_err_hint(&failure, "install libmicrohttpd");
		return;
	}
#define FIND(symbol)                                                                                                   \
	do {                                                                                                           \
		void *address = dlsym(library, #symbol);                                                               \
		memcpy(&functions.symbol, &address, sizeof address);                                                   \
		if (!address)                                                                                          \
			ll_err_set(&failure, -ENOENT, "%s is missing", #symbol);                                       \
	} while (0);
	LL_MICROHTTPD_FUNCTIONS(FIND)
}

int ll_microhttpd_open(const struct ll_microhttpd **ret_functions, struct ll_err *err)
{
	pthread_once(&once, open_library);
	if (failure.code) {
		if (err)
			*err = failure;
		return failure.code;
	}
	*ret_functions = &functions;
	return 0;
}
