#include "shim/spare.h"

bool ll_spare_give_up(struct ll_seat *seat)
{
	(void)seat;
	return false;
}
