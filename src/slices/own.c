#include "slices/own.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static _Atomic(ll_ioctl_fn) next;

ll_ioctl_fn ll_own_ioctl_next(void)
{
	ll_ioctl_fn found = atomic_load_explicit(&next, memory_order_relaxed);
	if (!found) {
		*(void **)&found = dlsym(RTLD_NEXT, "ioctl");
		atomic_store_explicit(&next, found, memory_order_relaxed);
	}
	return found;
}

/* The headers of libc are not included: glibc and musl declare the request differently. The argument of every request
 * fits into a pointer. */
int ioctl(int fd, unsigned long request, ...);

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	va_list words;
	va_start(words, request);
	void *argument = va_arg(words, void *);
	va_end(words);
	return ll_groups_note(ll_own_ioctl_next(), fd, request, argument);
}

int ll_own_slices_set(uint32_t us)
{
	struct ll_group groups[LL_GROUPS];
	size_t count = ll_groups_read(groups);
	int rc = count ? 0 : -ENOENT;
	for (size_t i = 0; i < count && i < LL_GROUPS; i++) {
		if (groups[i].slice_us == us)
			continue;
		int failed = ll_group_set_slice(ll_own_ioctl_next(), &groups[i], us);
		rc = failed ? failed : rc;
	}
	return rc;
}
