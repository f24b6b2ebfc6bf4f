#include "shim/residency/residency.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guest.h"
#include "base/scope.h"
#include "protocol/message.h"
#include "shim/interpose/real.h"
#include "shim/memory/memory.h"
#include "shim/say.h"

#define REPLY_NS (5 * LL_NS_PER_S)

/* The exporter reports an allocation a moment after the program has the key. */
#define EARLY_NS (2 * LL_NS_PER_S)
#define EARLY_LOOK_NS (5 * LL_NS_PER_MS)

enum { LOOK_MS = 100 };

/* The content of a letter. */
struct letter {
	uint64_t magic;
	uint64_t key[2]; /* token of the claim, and number of the allocation */
	uint64_t bytes;  /* of the physical memory */
	uint64_t skip;   /* offset of the allocation in the physical memory */
};
_Static_assert(sizeof(struct letter) <= sizeof(struct ll_cu_ipc_mem_handle), "a letter fits a handle");

/* "loadline": no handle of the driver begins with it. */
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
	uint64_t key[2];
	uint64_t address, bytes; /* range of the mapping */
	uint64_t skip;
	unsigned uses;
	struct opened *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct share *shares;
static struct opened *all_opened;

static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&lock, NULL);
	shares = NULL;
	all_opened = NULL;
}

static struct ll_fork_item fork_item = {.in_child = forget_in_child};

/* ---- letters ---- */

static bool has_key(const uint64_t key[2], const struct letter *letter)
{
	return key[0] == letter->key[0] && key[1] == letter->key[1];
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

/* ---- shared allocations ---- */

ll_cu_result ll_shares_export(const struct ll_extent *plain, struct ll_cu_ipc_mem_handle *ret_handle)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&lock);
	ll_fork_add(&fork_item);
	struct share *share = shares;
	while (share && (share->address != plain->address || share->serial != plain->serial))
		share = share->next;
	if (!share) {
		share = calloc(1, sizeof *share);
		if (!share)
			return LL_CUDA_ERROR_OUT_OF_MEMORY;
		/* The physical memory is the allocation's own, or the block that it shares with others. */
		struct ll_extent backing = {0};
		ll_extents_find_backing(plain->address, &backing);
		bool is_shared = backing.address != plain->address || !ll_backing_has_chunks(plain->bytes);
		uint64_t bytes = is_shared ? backing.bytes : ll_footprint_round(plain->bytes, LL_FOOTPRINT_BLOCK_BYTES);
		*share = (struct share){
		    .dev = plain->dev,
		    .address = plain->address,
		    .serial = plain->serial,
		    .letter = {.magic = MAGIC,
			       .key = {ll_port_name_of(atomic_load(&plain->dev->claim)).token, plain->serial},
			       .bytes = bytes,
			       .skip = plain->address - backing.address},
		    .next = shares};
		shares = share;
	}
	ll_backed_note_exported(plain);
	*ret_handle = (struct ll_cu_ipc_mem_handle){0};
	memcpy(ret_handle, &share->letter, sizeof share->letter);
	return LL_CUDA_SUCCESS;
}

/* ---- to loadlined ---- */

static void init_message(const struct letter *letter, enum ll_message_kind kind, union ll_message *ret_message)
{
	ll_message_init(ret_message, kind);
	ret_message->share.key[0] = letter->key[0];
	ret_message->share.key[1] = letter->key[1];
	ret_message->share.bytes = letter->bytes;
}

/* -EMFILE: the program has no free descriptors now. */
static int send_chunks(const struct share *share, union ll_message *message, uint64_t *at, struct ll_line *line)
{
	int fds[LL_MESSAGE_FDS], rc = 0;
	struct ll_message_share *sent = &message->share;
	uint64_t end = share->address - share->letter.skip + share->letter.bytes;
	ll_fork_block();
	sent->count = 0;
	while (*at < end && sent->count < LL_MESSAGE_FDS && !rc) {
		struct ll_extent backing;
		if (!ll_extents_find_backing(*at, &backing) ||
		    ll_real()->cuMemExportToShareableHandle(&fds[sent->count], backing.handle,
							    LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0))
			rc = -EMFILE;
		else
			sent->handle_bytes[sent->count++] = backing.bytes;
		*at += rc ? 0 : backing.bytes;
	}
	if (!rc)
		rc = ll_line_say(line, message, fds, sent->count);
	for (uint32_t i = 0; i < sent->count; i++)
		close(fds[i]);
	ll_fork_unblock();
	return rc;
}

int ll_shares_tell(const struct ll_device_state *dev, struct ll_line *line, bool is_new)
{
	int rc = 0;
	LL_SCOPE_LOCK(&lock);
	for (struct share **link = &shares, *share; (share = *link) && !rc;) {
		union ll_message message;
		struct ll_extent plain;
		if (share->dev != dev) {
			link = &share->next;
			continue;
		}
		share->is_told = share->is_told && !is_new;
		if (ll_extents_find(LL_EXTENT_PLAIN, share->address, &plain) && plain.serial == share->serial) {
			uint64_t at = share->address - share->letter.skip, end = at + share->letter.bytes;
			init_message(&share->letter, LL_MESSAGE_SHARE, &message);
			while (!share->is_told && !rc && at < end) {
				rc = send_chunks(share, &message, &at, line);
				message.share.first += message.share.count;
			}
			share->is_told = share->is_told || !rc;
			link = &share->next;
			continue;
		}
		init_message(&share->letter, LL_MESSAGE_UNSHARE, &message);
		if (share->is_told)
			rc = ll_line_say(line, &message, NULL, 0);
		*link = share->next;
		free(share);
	}
	return rc == -EMFILE || rc == -ETOOMANYREFS ? 0 : rc;
}

/* ---- allocations that others share ---- */

static void say_once(const char *why)
{
	static _Atomic bool is_said;
	if (!atomic_exchange(&is_said, true))
		ll_say("memory that another program shares by cuIpcGetMemHandle cannot be opened: %s", why);
}

/* Sends one request, and waits for the reply. WELCOME may come before it. */
static int request_chunks(int fd, const union ll_message *message, uint64_t deadline_ns, union ll_message *ret_reply,
			  int ret_fds[LL_MESSAGE_FDS], size_t *ret_count)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	int rc = ll_message_send(fd, message, NULL, 0);
	*ret_count = 0;
	while (!rc) {
		rc = ll_message_receive(fd, ret_reply, ret_fds, ret_count);
		if (rc == -EAGAIN && ll_now_ns() > deadline_ns)
			return -ETIMEDOUT;
		if (rc == -EAGAIN) {
			poll(&ready, 1, LOOK_MS); /* signals interrupt it */
			rc = 0;
			continue;
		}
		if (rc || ret_reply->header.kind == LL_MESSAGE_OPENED)
			return rc;
		ll_message_close_fds(ret_fds, *ret_count);
		*ret_count = 0;
		if (ret_reply->header.kind == LL_MESSAGE_REFUSED)
			return ret_reply->refused.code;
	}
	return rc;
}

/* Maps the received handles behind those that are mapped already. */
static ll_cu_result map_chunks(const struct opened *opened, const struct ll_message_share *reply, const int *fds,
			       uint64_t *mapped_bytes)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (uint32_t i = 0; i < reply->count && status == LL_CUDA_SUCCESS; i++) {
		ll_cu_mem_handle handle;
		uint64_t bytes = reply->handle_bytes[i];
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

static ll_cu_result map_all(const struct opened *opened, const struct letter *letter, int fd, uint64_t *mapped_bytes)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	uint64_t begun_ns = ll_now_ns();
	union ll_message message, reply;
	init_message(letter, LL_MESSAGE_OPEN, &message);
	while (status == LL_CUDA_SUCCESS && *mapped_bytes < opened->bytes) {
		int fds[LL_MESSAGE_FDS], rc;
		size_t count = 0;
		ll_fork_block(); /* a child would keep the descriptors */
		rc = request_chunks(fd, &message, begun_ns + REPLY_NS, &reply, fds, &count);
		bool is_good = !rc && reply.share.count == count && count > 0 && reply.share.bytes == opened->bytes;
		if (is_good)
			status = map_chunks(opened, &reply.share, fds, mapped_bytes);
		ll_message_close_fds(fds, count);
		ll_fork_unblock();
		message.share.first += is_good ? reply.share.count : 0;
		if (is_good)
			continue;
		if (rc == -ENOENT && ll_now_ns() - begun_ns < EARLY_NS) {
			ll_sleep_until_ns(ll_now_ns() + EARLY_LOOK_NS);
			continue;
		}
		status = LL_CUDA_ERROR_INVALID_VALUE;
		say_once(rc == -ENOENT ? "nobody shares it" : "loadlined does not answer");
	}
	return status;
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
	ll_cu_device device = 0;
	if (status == LL_CUDA_SUCCESS)
		status = ll_real()->cuCtxGetDevice(&device);
	struct ll_cu_mem_access_desc access = {.location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, device},
					       .flags = LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	if (status == LL_CUDA_SUCCESS)
		status = ll_real()->cuMemSetAccess(address, opened->bytes, &access, 1);
	if (status == LL_CUDA_SUCCESS)
		return status;
	if (mapped_bytes)
		ll_real()->cuMemUnmap(address, mapped_bytes);
	ll_real()->cuMemAddressFree(address, opened->bytes);
	return status;
}

/* -errno: loadlined cannot be reached. */
static int connect_to_daemon(int *ret_fd)
{
	union ll_message message;
	struct ll_cu_context *context;
	const struct ll_device_state *dev = ll_device_state_current(&context);
	uint64_t until_ns = ll_now_ns() + REPLY_NS;
	int rc = dev ? ll_port_connect(dev->port, ret_fd) : -ENOENT;
	while (rc == -EAGAIN && ll_now_ns() < until_ns) /* it waits a little each time */
		rc = ll_port_connect(dev->port, ret_fd);
	if (rc)
		return rc;
	ll_message_init_hello(&message, LL_ROLE_PROCESS, NULL);
	rc = ll_message_send(*ret_fd, &message, NULL, 0);
	if (rc)
		close(*ret_fd);
	return rc;
}

/* The lock is held. */
static ll_cu_result open_letter(const struct letter *letter, struct opened **ret_opened)
{
	int fd;
	struct opened *opened = calloc(1, sizeof *opened);
	if (!opened)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	*opened = (struct opened){
	    .key = {letter->key[0], letter->key[1]}, .bytes = letter->bytes, .skip = letter->skip, .next = all_opened};
	ll_cu_result status = LL_CUDA_ERROR_INVALID_VALUE;
	if (connect_to_daemon(&fd) == 0) {
		status = map_letter(opened, letter, fd);
		close(fd);
	} else {
		say_once("loadlined does not answer");
	}
	if (status != LL_CUDA_SUCCESS) {
		free(opened);
		return status;
	}
	all_opened = *ret_opened = opened;
	return LL_CUDA_SUCCESS;
}

ll_cu_result ll_shares_import(const struct ll_cu_ipc_mem_handle *handle, unsigned flags, ll_cu_deviceptr *ret_address)
{
	struct letter letter;
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&lock);
	ll_fork_add(&fork_item);
	if (!read_letter(handle, &letter) || !ret_address || flags != LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return LL_CUDA_ERROR_INVALID_VALUE;
	for (const struct share *own = shares; own; own = own->next) {
		if (has_key(own->letter.key, &letter))
			return LL_CUDA_ERROR_INVALID_CONTEXT;
	}
	struct opened *opened = all_opened;
	while (opened && !has_key(opened->key, &letter))
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
