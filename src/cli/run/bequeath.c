#include "cli/run/bequeath.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/scope.h"
#include "protocol/inherited.h"
#include "protocol/run_settings.h"

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3; may be compulsory from then on (vm.memfd_noexec) */
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Beside the job's lifeline, higher than those of shells and scripts. */

static int make_file(void)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(LL_RUN_FILE, flags | MFD_NOEXEC_SEAL);
	return fd < 0 ? memfd_create(LL_RUN_FILE, flags) : fd;
}

void ll_run_bequeath(const struct ll_run_settings *settings)
{
	char text[LL_RUN_TEXT_SIZE];
	LL_SCOPE_CLOSE int fd = make_file();
	if (fd < 0 || ll_run_settings_write(settings, text) < 0)
		return;
	ssize_t length = (ssize_t)strlen(text);
	if (write(fd, text, (size_t)length) != length ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return;
	if (fcntl(fd, F_DUPFD, LL_RUN_FIRST_FD) < 0)
		fcntl(fd, F_DUPFD, STDERR_FILENO + 1);
}
