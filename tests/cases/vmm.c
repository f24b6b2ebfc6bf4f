/* vmm twice|exported: physical memory that is mapped, let go of and passed on in other orders than one expects. */
#include <sys/socket.h>

#include "case.h"

#define BYTES (96 * MIB)

static const struct ll_cu_mem_allocation_prop prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						      .handle_types = LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
						      .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};

static ll_cu_deviceptr map(ll_cu_mem_handle handle)
{
	static const struct ll_cu_mem_access_desc access = {.location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE},
							    .flags = LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	ll_cu_deviceptr address;
	TRY(cuMemAddressReserve(&address, BYTES, 0, 0, 0));
	TRY(cuMemMap(address, BYTES, 0, handle, 0));
	TRY(cuMemSetAccess(address, BYTES, &access, 1));
	return address;
}

static void unmap(ll_cu_deviceptr address)
{
	TRY(cuMemUnmap(address, BYTES));
	TRY(cuMemAddressFree(address, BYTES));
}

/* Each handle is mapped twice and released before or between; what stays mapped once stays on the card. */
static void twice(void)
{
	ll_cu_mem_handle handle, again;
	for (unsigned i = 0; i < 64 && MADE(cuMemCreate(&handle, BYTES, &prop, 0)); i++) {
		ll_cu_deviceptr first = map(handle);
		if (i % 3 == 0)
			TRY(cuMemRelease(handle));
		else
			unmap(map(handle));
		TRY(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(first + MIB)));
		ll_cu_deviceptr second = map(again);
		unmap(first);
		TRY(cuMemRelease(again));
		if (i % 3 == 1)
			TRY(cuMemRelease(handle));
		if (i % 5 == 4) /* and one of five goes */
			unmap(second);
	}
	full();
}

static void send_fd(int line, int fd)
{
	char byte = 0, room[CMSG_SPACE(sizeof fd)] = {0};
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	NEED(sendmsg(line, &message, 0) == 1);
}

static int get_fd(int line)
{
	int fd;
	char byte, room[CMSG_SPACE(sizeof fd)];
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
	if (recvmsg(line, &message, 0) != 1)
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
	return fd;
}

/* An exporter sends copies of its descriptors, and is killed when they have been imported: the simulator lends no
 * memory of the dead. */
static void export(int line)
{
	ll_cu_mem_handle handle;
	char byte;
	begin();
	for (int i = 0; i < 6 && MADE(cuMemCreate(&handle, BYTES, &prop, 0)); i++) {
		int fd;
		TRY(cuMemExportToShareableHandle(&fd, handle, LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
		send_fd(line, dup(fd));
		close(fd);
		if (i % 2)
			TRY(cuMemRelease(handle));
	}
	NEED(shutdown(line, SHUT_WR) == 0 && read(line, &byte, 1) == 0);
	kill(getpid(), SIGKILL);
	_exit(9);
}

/* The importer lets some in, keeps some only as descriptors, and then takes all that is left. */
static void exported(void)
{
	int line[2], status, fds[8], count = 0;
	ll_cu_mem_handle handle;
	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, line) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(line[0]);
		export(line[1]);
	}
	close(line[1]);
	while (count < 8 && (fds[count] = get_fd(line[0])) >= 0)
		count++;
	NEED(count > 2);
	begin();
	for (int i = 0; i < count; i++) {
		if (i % 3 == 2)
			continue;
		if (!MADE(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fds[i],
							 LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)))
			continue;
		map(handle);
		close(fds[i]);
		if (i % 3)
			TRY(cuMemRelease(handle));
	}
	close(line[0]);
	NEED(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	full();
}

int main(int argc, char **argv)
{
	NEED(argc > 1);
	if (strcmp(argv[1], "exported") == 0) {
		exported();
		return 0;
	}
	begin();
	twice();
	return 0;
}
