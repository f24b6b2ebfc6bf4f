#include "no_pidfds.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process.h"
#include "test.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* pidfd_open is refused as an unknown call, and so is the socket option. */
void take_pidfds_away(void)
{
	struct sock_filter lines[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 4, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 2),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_PEERPIDFD, 1, 0),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	};
	struct sock_fprog program = {sizeof lines / sizeof *lines, lines};
	int fd;
	socklen_t length = sizeof fd;
	int ends[2];
	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
	/* They are gone indeed. */
	assert_int_equal(syscall(SYS_pidfd_open, getpid(), 0), -1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(getsockopt(ends[0], SOL_SOCKET, SO_PEERPIDFD, &fd, &length), -1);
	close(ends[0]);
	close(ends[1]);
	fd = ll_process_open(getpid());
	assert_true(fd >= 0 && !ll_process_is_pidfd(fd) && !ll_process_has_ended(fd));
	assert_int_equal(ll_process_id_of_fd(fd), getpid());
	close(fd);
}
