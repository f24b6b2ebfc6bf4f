#include "base/translate.h"
#include "cli/evict/request.h"

static int run_evict(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	return ll_evict_request(data, operands, LL_EVICT, err);
}

static const struct ll_example evict_examples[] = {
    {"loadline evict 0/17", N_("Take the memory of that program off the card.")},
    {"loadline evict --pid 4711", N_("Take all memory of that process off its cards, by the driver's checkpoint.")},
    {NULL, NULL},
};

const struct ll_command ll_command_evict = {
    .name = "evict",
    .summary = N_("take a program's memory off the card"),
    .operands = "[CLAIM]",
    .description =
	N_("Takes the memory of a program off its card, into the host's memory. The program waits until "
	   "`loadline resume`. Its addresses and its data stay as they are. CLAIM is the number of a job (12), "
	   "or of a claim in `loadline status` (0/17) for one process, or the name of a tenant, for all of its "
	   "programs.\n\n"
	   "If the program was started with `loadline run --evictable`, it does it itself. Otherwise "
	   "the driver's checkpoint does, if the driver is 570 or newer; --pid names such a process that has no "
	   "claim. If the driver refuses, the error says so, and the program goes on.\n\n"
	   "If the command is interrupted, it puts the program back.\n\n"
	   "Memory of such a program that cannot be moved stays on the card: contexts, arrays, managed memory, memory "
	   "of graphs, and "
	   "memory that other processes share."),
    .examples = evict_examples,
    .options = ll_evict_options,
    .complete = LL_COMPLETE_CLAIM,
    .args_size = sizeof(struct ll_evict_args),
    .run = run_evict,
};
