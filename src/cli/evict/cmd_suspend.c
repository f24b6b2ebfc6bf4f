#include "base/translate.h"
#include "cli/evict/request.h"

static int run_suspend(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	return ll_evict_request(data, operands, LL_SUSPEND, err);
}

static const struct ll_example suspend_examples[] = {
    {"loadline suspend 0/17", N_("Stop that program's use of the card.")},
    {NULL, NULL},
};

const struct ll_command ll_command_suspend = {
    .name = "suspend",
    .summary = N_("stop a program's use of the card"),
    .operands = "[CLAIM]",
    .description =
	N_("Stops a program before its next call that uses the card, and waits until its work on the card has "
	   "ended. Its memory stays on the card. The program goes on after `loadline resume`. CLAIM is the "
	   "number of a job (12), or of a claim in `loadline status` "
	   "(0/17) for one process, or the name of a tenant, for all of its programs."),
    .examples = suspend_examples,
    .options = ll_evict_options,
    .complete = LL_COMPLETE_CLAIM,
    .args_size = sizeof(struct ll_evict_args),
    .run = run_suspend,
};
