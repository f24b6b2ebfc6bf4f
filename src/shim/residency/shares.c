#include "shim/residency/shares.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/packet.h"
#include "base/scope.h"
#include "mover/protocol.h"
#include "shim/interpose/real.h"
#include "shim/memory/backed.h"
#include "shim/memory/footprint.h"
#include "shim/say.h"

#define ANSWER_NS (5 * LL_NS_PER_S)

enum { LOOK_MS = 100, UUID_BYTES = 16 };

/* What a handle of ours has in it. */
struct letter {
	uint64_t magic;
	uint64_t number, value; /* the key: the claim and the allocation; when it was made */
	uint64_t bytes;         /* of the physical memory */
	uint32_t skip;          /* the allocation begins behind so many of them */
	char kind;              /* of the card's UUID: the first letter of GPU- or MIG- */
	unsigned char uuid[UUID_BYTES];
};
_Static_assert(sizeof(struct letter) <= sizeof(struct ll_cu_ipc_mem_handle), "a letter fits a handle");

/* No handle of the driver's begins so: "loadline". */
#define MAGIC UINT64_C(0x656e696c64616f6c)

struct share {
	struct ll_device_state *dev;
	uint64_t address; /* of the allocation */
	uint32_t serial;
	struct letter letter;
	bool is_told;
	struct share *next;
};

struct opened {
	uint64_t number, value, address, bytes; /* all that is mapped */
	uint32_t skip;
	unsigned uses;
	struct opened *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct share *shares;
static struct opened *all_opened;
static struct ll_fork_item fork_item;
static bool has_fork_item;

static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&lock, NULL);
	shares = NULL;
	all_opened = NULL;
}

/* The lock is held. */
static void follow_forks(void)
{
	if (has_fork_item)
		return;
	has_fork_item = true;
	fork_item.in_child = forget_in_child;
	ll_fork_add(&fork_item);
}

/* ---- letters ---- */

/* GPU-0b5f..., MIG-... */
static void pack_uuid(const char *text, struct letter *letter)
{
	unsigned digits = 0;
	letter->kind = text[0];
	for (const char *at = strchr(text, '-'); at && *at && digits < 2 * UUID_BYTES; at++) {
		if (*at == '-')
			continue;
		unsigned digit = *at <= '9' ? (unsigned)(*at - '0') : (unsigned)((*at | 0x20) - 'a') + 10;
		letter->uuid[digits / 2] = (unsigned char)((unsigned)letter->uuid[digits / 2] << 4 | (digit & 15));
		digits++;
	}
}

static void name_socket(const struct letter *letter, char *ret_name, size_t size)
{
	int length = snprintf(ret_name, size, "%s", letter->kind == 'M' ? "MIG" : "GPU");
	for (unsigned i = 0; i < UUID_BYTES; i++) {
		bool is_part = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
		length +=
		    snprintf(ret_name + length, size - (size_t)length, "%s%02x", is_part ? "-" : "", letter->uuid[i]);
	}
	snprintf(ret_name + length, size - (size_t)length, "%s", LL_MOVER_SOCKET_SUFFIX);
}

static bool read_letter(const struct ll_cu_ipc_mem_handle *handle, struct letter *ret_letter)
{
	memcpy(ret_letter, handle, sizeof *ret_letter);
	return ret_letter->magic == MAGIC;
}

bool ll_shares_is_letter(const struct ll_cu_ipc_mem_handle *handle)
{
	struct letter letter;
	return read_letter(handle, &letter);
}

/* ---- what is shared ---- */

/* The physical memory under the allocation: its own, or the block that it shares. */
static struct ll_extent backing_of(const struct ll_extent *plain, uint64_t *ret_bytes)
{
	struct ll_extent backing = {0};
	ll_extents_find_backing(plain->address, &backing);
	bool is_shared = backing.address != plain->address || plain->bytes <= LL_FOOTPRINT_BLOCK_BYTES / 2;
	*ret_bytes = is_shared ? backing.bytes : ll_footprint_round(plain->bytes, LL_FOOTPRINT_BLOCK_BYTES);
	return backing;
}

/* The lock is held. */
static struct share *find_share(const struct ll_extent *plain)
{
	struct share *share = shares;
	while (share && (share->address != plain->address || share->serial != plain->serial))
		share = share->next;
	return share;
}

static struct share *add_share(const struct ll_extent *plain)
{
	struct share *share = calloc(1, sizeof *share);
	if (!share)
		return NULL;
	uint64_t bytes;
	struct ll_extent backing = backing_of(plain, &bytes);
	*share = (struct share){.dev = plain->dev, .address = plain->address, .serial = plain->serial, .next = shares};
	share->letter.magic = MAGIC;
	share->letter.number = (uint64_t)ll_port_index(atomic_load(&plain->dev->claim)) << 32 | plain->serial;
	share->letter.value = ll_now_ns();
	share->letter.bytes = bytes;
	share->letter.skip = (uint32_t)(plain->address - backing.address);
	pack_uuid(plain->dev->uuid, &share->letter);
	shares = share;
	return share;
}

ll_cu_result ll_shares_export(const struct ll_extent *plain, struct ll_cu_ipc_mem_handle *ret_handle)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&lock);
	follow_forks();
	struct share *share = find_share(plain);
	if (!share)
		share = add_share(plain);
	if (!share)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	ll_backed_note_exported(plain);
	*ret_handle = (struct ll_cu_ipc_mem_handle){0};
	memcpy(ret_handle, &share->letter, sizeof share->letter);
	return LL_CUDA_SUCCESS;
}

/* ---- to the mover ---- */

static int send_pieces(const struct share *share, struct ll_mover_message *message, uint64_t *at, int fd)
{
	int fds[LL_MOVER_BATCH_HANDLES], rc = 0;
	uint64_t end = share->address - share->letter.skip + share->letter.bytes;
	ll_fork_block();
	message->count = 0;
	while (*at < end && message->count < LL_MOVER_BATCH_HANDLES && !rc) {
		struct ll_extent backing;
		if (!ll_extents_find_backing(*at, &backing) ||
		    ll_real()->cuMemExportToShareableHandle(&fds[message->count], backing.handle,
							    LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0))
			rc = -EMFILE;
		else
			message->handle_bytes[message->count++] = backing.bytes;
		*at += rc ? 0 : backing.bytes;
	}
	if (!rc)
		rc = ll_packet_send(fd, message, sizeof *message, fds, message->count);
	for (uint32_t i = 0; i < message->count; i++)
		close(fds[i]);
	ll_fork_unblock();
	return rc;
}

/* -EMFILE: the program has no descriptors for it now. */
static int tell_share(const struct share *share, int fd)
{
	struct ll_mover_message message = {.kind = LL_MOVER_SHARE,
					   .number = share->letter.number,
					   .value = share->letter.value,
					   .bytes = share->letter.bytes};
	uint64_t at = share->address - share->letter.skip;
	int rc = 0;
	while (!rc && at < share->address - share->letter.skip + share->letter.bytes) {
		rc = send_pieces(share, &message, &at, fd);
		message.batch += message.count;
	}
	return rc;
}

static int tell_end(const struct share *share, int fd)
{
	struct ll_mover_message message = {
	    .kind = LL_MOVER_UNSHARE, .number = share->letter.number, .value = share->letter.value};
	return ll_packet_send(fd, &message, sizeof message, NULL, 0);
}

static bool is_there(const struct share *share)
{
	struct ll_extent plain;
	return ll_extents_find(LL_EXTENT_PLAIN, share->address, &plain) && plain.serial == share->serial;
}

int ll_shares_tell(const struct ll_device_state *dev, int fd, bool is_new)
{
	int rc = 0;
	LL_SCOPE_LOCK(&lock);
	for (struct share **link = &shares, *share; (share = *link) && !rc;) {
		if (share->dev != dev) {
			link = &share->next;
			continue;
		}
		share->is_told = share->is_told && !is_new;
		if (is_there(share)) {
			rc = share->is_told ? 0 : tell_share(share, fd);
			share->is_told = share->is_told || !rc;
			link = &share->next;
			continue;
		}
		rc = share->is_told ? tell_end(share, fd) : 0;
		*link = share->next;
		free(share);
	}
	return rc == -EMFILE || rc == -ETOOMANYREFS ? 0 : rc;
}

/* ---- what others share ---- */

static void say_once(const char *why)
{
	static _Atomic bool is_said;
	if (!atomic_exchange(&is_said, true))
		ll_say("memory that another program shares by cuIpcGetMemHandle cannot be opened: %s", why);
}

/* Waits until the answer can be read. */
static int ask_mover(int fd, const struct letter *letter, uint32_t first)
{
	struct ll_mover_message message = {
	    .kind = LL_MOVER_OPEN, .batch = first, .number = letter->number, .value = letter->value};
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	uint64_t deadline_ns = ll_now_ns() + ANSWER_NS;
	int rc = ll_packet_send(fd, &message, sizeof message, NULL, 0);
	while (!rc && poll(&ready, 1, LOOK_MS) != 1) { /* signals interrupt it */
		if (ll_now_ns() > deadline_ns)
			rc = -ETIMEDOUT;
	}
	return rc;
}

/* Maps the handles that have come behind what is mapped already. */
static ll_cu_result map_pieces(struct opened *opened, const struct ll_mover_message *answer, const int *fds,
			       uint64_t *mapped_bytes)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (uint32_t i = 0; i < answer->count && status == LL_CUDA_SUCCESS; i++) {
		ll_cu_mem_handle handle;
		uint64_t bytes = answer->handle_bytes[i];
		if (bytes > opened->bytes - *mapped_bytes)
			return LL_CUDA_ERROR_INVALID_VALUE;
		status = ll_real()->cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fds[i],
								   LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
		if (status != LL_CUDA_SUCCESS)
			return status;
		status = ll_real()->cuMemMap(opened->address + *mapped_bytes, bytes, 0, handle, 0);
		ll_real()->cuMemRelease(handle); /* the mapping keeps it */
		*mapped_bytes += status == LL_CUDA_SUCCESS ? bytes : 0;
	}
	return status;
}

static ll_cu_result map_all(struct opened *opened, const struct letter *letter, int fd, uint64_t *mapped_bytes)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	uint32_t first = 0;
	while (status == LL_CUDA_SUCCESS && *mapped_bytes < opened->bytes) {
		struct ll_mover_message answer = {0};
		int fds[LL_MOVER_BATCH_HANDLES];
		size_t fd_count = 0;
		int rc = ask_mover(fd, letter, first);
		ll_fork_block(); /* a child would keep the descriptors */
		if (!rc)
			rc = ll_packet_receive(fd, false, &answer, sizeof answer, fds, LL_MOVER_BATCH_HANDLES,
					       &fd_count);
		if (!rc && answer.value)
			rc = -(int)answer.value;
		bool is_good = !rc && answer.count == fd_count && fd_count > 0 && answer.bytes == opened->bytes;
		status = is_good ? map_pieces(opened, &answer, fds, mapped_bytes) : LL_CUDA_ERROR_INVALID_VALUE;
		for (size_t i = 0; i < fd_count; i++)
			close(fds[i]);
		ll_fork_unblock();
		first += answer.count;
		if (!is_good)
			say_once(rc == -ENOENT ? "nobody shares it" : "the mover does not answer");
	}
	return status;
}

static ll_cu_result allow_access(const struct opened *opened)
{
	ll_cu_device device;
	ll_cu_result status = ll_real()->cuCtxGetDevice(&device);
	struct ll_cu_mem_access_desc access = {.location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, device},
					       .flags = LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	return status == LL_CUDA_SUCCESS ? ll_real()->cuMemSetAccess(opened->address, opened->bytes, &access, 1)
					 : status;
}

static ll_cu_result map_letter(struct opened *opened, const struct letter *letter, int fd)
{
	ll_cu_deviceptr address;
	uint64_t mapped_bytes = 0;
	ll_cu_result status = ll_real()->cuMemAddressReserve(&address, opened->bytes, 0, 0, 0);
	if (status != LL_CUDA_SUCCESS)
		return status;
	opened->address = address;
	status = map_all(opened, letter, fd, &mapped_bytes);
	if (status == LL_CUDA_SUCCESS)
		status = allow_access(opened);
	if (status == LL_CUDA_SUCCESS)
		return status;
	if (mapped_bytes)
		ll_real()->cuMemUnmap(address, mapped_bytes);
	ll_real()->cuMemAddressFree(address, opened->bytes);
	return status;
}

/* The lock is held. */
static ll_cu_result open_letter(const struct letter *letter, struct opened **ret_opened)
{
	char name[64];
	int fd;
	name_socket(letter, name, sizeof name);
	struct opened *opened = calloc(1, sizeof *opened);
	if (!opened)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	*opened = (struct opened){.number = letter->number,
				  .value = letter->value,
				  .bytes = letter->bytes,
				  .skip = letter->skip,
				  .next = all_opened};
	ll_cu_result status = LL_CUDA_ERROR_INVALID_VALUE;
	if (ll_packet_connect(ll_device_state_settings()->folder, name, &fd) == 0) {
		status = map_letter(opened, letter, fd);
		close(fd);
	} else {
		say_once("no mover serves the card");
	}
	if (status != LL_CUDA_SUCCESS) {
		free(opened);
		return status;
	}
	all_opened = *ret_opened = opened;
	return LL_CUDA_SUCCESS;
}

/* The lock is held. */
static bool is_own(const struct letter *letter)
{
	const struct share *share = shares;
	while (share && (share->letter.number != letter->number || share->letter.value != letter->value))
		share = share->next;
	return share != NULL;
}

ll_cu_result ll_shares_open(const struct ll_cu_ipc_mem_handle *handle, unsigned flags, ll_cu_deviceptr *ret_address)
{
	struct letter letter;
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&lock);
	follow_forks();
	if (!read_letter(handle, &letter) || !ret_address || flags != LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (is_own(&letter))
		return LL_CUDA_ERROR_INVALID_CONTEXT;
	struct opened *opened = all_opened;
	while (opened && (opened->number != letter.number || opened->value != letter.value))
		opened = opened->next;
	if (!opened) {
		ll_cu_result status = open_letter(&letter, &opened);
		if (status != LL_CUDA_SUCCESS)
			return status;
	}
	opened->uses++;
	*ret_address = opened->address + opened->skip;
	return LL_CUDA_SUCCESS;
}

bool ll_shares_close(ll_cu_deviceptr address, ll_cu_result *ret_status)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&lock);
	struct opened **link = &all_opened, *opened;
	while ((opened = *link) && opened->address + opened->skip != address)
		link = &opened->next;
	if (!opened)
		return false;
	*ret_status = LL_CUDA_SUCCESS;
	if (--opened->uses)
		return true;
	*ret_status = ll_real()->cuCtxSynchronize();
	ll_real()->cuMemUnmap(opened->address, opened->bytes);
	ll_real()->cuMemAddressFree(opened->address, opened->bytes);
	*link = opened->next;
	free(opened);
	return true;
}
