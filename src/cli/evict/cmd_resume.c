#include "base/translate.h"
#include "cli/evict/request.h"

static int run_resume(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	return ll_evict_request(data, operands, LL_RESUME, err);
}

static const struct ll_example resume_examples[] = {
    {"loadline resume 0/17", N_("Let that program go on.")},
    {NULL, NULL},
};

const struct ll_command ll_command_resume = {
    .name = "resume",
    .summary = N_("let an evicted or suspended program go on"),
    .operands = "[CLAIM]",
    .description =
	N_("Brings the memory of an evicted program back to the card, as soon as the card has room for it, and "
	   "lets it go on. What has evicted it, it itself or the driver's checkpoint, does it. A suspended program "
	   "goes on at once. CLAIM is the number of a job (12), or of a claim in `loadline "
	   "status` (0/17) for one process, or the name of a tenant, for all of its programs."),
    .examples = resume_examples,
    .options = ll_resume_options,
    .complete = LL_COMPLETE_CLAIM,
    .args_size = sizeof(struct ll_evict_args),
    .run = run_resume,
};
