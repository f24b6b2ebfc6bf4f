/* moved: takes and gives back for ever, in steps, as long as it is told to stay: it is evicted and resumed meanwhile,
 * and its input ends at any moment of that. */
#include <poll.h>

#include "case.h"

int main(void)
{
	ll_cu_deviceptr blocks[8] = {0};
	struct pollfd input = {0, POLLIN, 0};
	begin();
	for (unsigned i = 0; poll(&input, 1, 0) == 0; i++) {
		ll_cu_deviceptr *one = &blocks[i * 5 % 8];
		if (*one)
			TRY(cuMemFree_v2(*one));
		if (!MADE(cuMemAlloc_v2(one, (1 + i * 37 % 300) * MIB)))
			*one = 0;
		if (*one)
			TRY(cuMemsetD8_v2(*one, 7, MIB));
		if (i == 30) {
			puts("full");
			fflush(stdout);
		}
	}
	return 0;
}
