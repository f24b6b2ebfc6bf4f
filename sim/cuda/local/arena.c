#include "cuda/local/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"

enum { TICKET_MAGIC = 0x4c4c7431 };

static struct {
	int fd;
	uint64_t file;
	uint64_t end; /* end of the used part; no part is reused */
} arena = {.fd = -1};

static uint64_t file_of(int fd)
{
	struct stat st;
	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_ino : 0;
}

/* A program may close descriptors that it does not know, and open other files under their numbers. */
static bool is_open(void)
{
	return arena.file && file_of(arena.fd) == arena.file;
}

size_t sim_arena_round(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	return (bytes + page - 1) / page * page;
}

int sim_arena_new(size_t bytes, uint64_t *ret_offset)
{
	uint64_t length = sim_arena_round(bytes), offset;
	if (!is_open()) {
		arena.fd = memfd_create("sim-cuda", MFD_CLOEXEC);
		arena.file = file_of(arena.fd);
		/* Parts of a lost file keep their own offsets. */
	}
	if (arena.fd < 0)
		return -ENOMEM;
	offset = arena.end;
	if (ftruncate(arena.fd, (off_t)(offset + length)) < 0)
		return -ENOMEM;
	arena.end += length;
	*ret_offset = offset;
	return 0;
}

static void clear_part(int fd, uint64_t offset, size_t bytes)
{
	fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)sim_arena_round(bytes));
}

void sim_arena_clear(uint64_t offset, size_t bytes)
{
	if (is_open())
		clear_part(arena.fd, offset, bytes);
}

char *sim_arena_map(uint64_t offset, size_t bytes, void *at)
{
	if (!is_open())
		return NULL;
	void *p = mmap(at, sim_arena_round(bytes), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0), arena.fd, (off_t)offset);
	return p == MAP_FAILED ? NULL : p;
}

char *sim_addresses_new(size_t bytes, size_t alignment, uint64_t wish)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	size_t length = sim_arena_round(bytes), slack = alignment > sim_arena_round(1) ? alignment : 0;
	if (wish) {
		void *p = mmap((void *)(uintptr_t)wish, length, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
		if (p == (void *)(uintptr_t)wish)
			return p;
		if (p != MAP_FAILED)
			munmap(p, length);
	}
	char *p = mmap(NULL, length + slack, PROT_NONE, flags, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	size_t before = slack ? (slack - (uintptr_t)p % slack) % slack : 0, after = slack - before;
	char *first = p + before, *end = first + length;
	if (after)
		munmap(end, after);
	if (before)
		munmap(p, before);
	return first;
}

void sim_addresses_clear(char *at, size_t bytes)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
	const void *p = mmap(at, sim_arena_round(bytes), PROT_NONE, flags, -1, 0);
	if (p == MAP_FAILED)
		munmap(at, sim_arena_round(bytes));
}

void sim_ticket_init(struct sim_ticket *ticket, enum sim_ticket_kind kind, uint64_t offset, size_t bytes)
{
	*ticket = (struct sim_ticket){
	    .magic = TICKET_MAGIC,
	    .kind = kind,
	    .pid = getpid(),
	    .fd = arena.fd,
	    .file = arena.file,
	    .offset = offset,
	    .bytes = bytes,
	};
}

bool sim_ticket_is(const struct sim_ticket *ticket, enum sim_ticket_kind kind)
{
	return ticket->magic == TICKET_MAGIC && ticket->kind == (uint32_t)kind;
}

/* Opens the arena's file that the ticket names. -1: its process has ended, or this process cannot open another file. */
static int open_ticket(const struct sim_ticket *ticket)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", ticket->pid, ticket->fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || file_of(fd) == ticket->file)
		return fd;
	close(fd);
	return -1;
}

void sim_ticket_clear(const struct sim_ticket *ticket)
{
	LL_SCOPE_CLOSE int fd = open_ticket(ticket);
	if (fd >= 0)
		clear_part(fd, ticket->offset, ticket->bytes);
}

char *sim_ticket_map(const struct sim_ticket *ticket, void *at)
{
	LL_SCOPE_CLOSE int fd = open_ticket(ticket);
	if (fd < 0)
		return NULL;
	void *p = mmap(at, sim_arena_round(ticket->bytes), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0), fd, (off_t)ticket->offset);
	return p == MAP_FAILED ? NULL : p;
}

char *sim_arena_map_again(char *mapped, size_t bytes, void *at)
{
	/* With an old size of 0, mremap maps the pages of a shared mapping a second time. */
	void *p = mremap(mapped, 0, sim_arena_round(bytes), MREMAP_MAYMOVE | MREMAP_FIXED, at);
	return p == MAP_FAILED ? NULL : p;
}

int sim_ticket_to_fd(const struct sim_ticket *ticket)
{
	int fd = memfd_create("sim-cuda-handle", MFD_CLOEXEC);
	if (fd >= 0 && pwrite(fd, ticket, sizeof *ticket, 0) != (ssize_t)sizeof *ticket) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool sim_ticket_from_fd(int fd, struct sim_ticket *ret_ticket)
{
	return pread(fd, ret_ticket, sizeof *ret_ticket, 0) == (ssize_t)sizeof *ret_ticket;
}
