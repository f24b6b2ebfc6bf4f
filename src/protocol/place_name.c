#include <errno.h>
#include <string.h>

#include "protocol/place.h"

static const char prefix[] = "loadline/";

int ll_place_read(const char *name, struct ll_place *ret_place)
{
	size_t length = strlen(name);
	if (length >= sizeof ret_place->name || strncmp(name, prefix, strlen(prefix)) != 0 ||
	    strspn(name, "loadine/0123456789abcdef-") != length)
		return -EINVAL;
	memcpy(ret_place->name, name, length + 1);
	return 0;
}
