/* loadline-job PLACE DAEMON MONITOR: started by `loadline run` (protocol/start.h). */
#include <stdio.h>

#include "base/err.h"
#include "monitor/monitor.h"

enum { WORDS = 4 };

int main(int argc, char **argv)
{
	struct ll_monitor_config config = {
	    .version = LOADLINE_VERSION,
	    .run_fd = LL_MONITOR_RUN_FD,
	    .lifeline_fd = LL_MONITOR_LIFELINE_FD,
	    .process_fd = LL_MONITOR_PROCESS_FD,
	};
	if (argc == WORDS && ll_place_read(argv[1], &config.place) == 0) {
		config.programs = (struct ll_programs){.daemon = argv[2], .monitor = argv[3]};
		if (ll_monitor_run(&config) == 0)
			return LL_EXIT_OK;
	}
	fputs("loadline-job belongs to one job of `loadline run`, which starts it; it is not started by hand\n",
	      stderr);
	return LL_EXIT_USAGE;
}
