#include "protocol/page.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* ---- mapping ---- */

/* Returns NULL, with errno, if it cannot be mapped. */
static void *map_file(int fd, bool is_writable, size_t bytes)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return NULL;
	if (!S_ISREG(st.st_mode) || st.st_size != (off_t)bytes) {
		errno = EBADMSG;
		return NULL;
	}
	void *memory = mmap(NULL, bytes, PROT_READ | (is_writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

int ll_page_map(int fd, bool is_writable, struct ll_page **ret_page)
{
	struct ll_page *page = map_file(fd, is_writable, sizeof *page);
	if (!page)
		return -errno;
	if (page->magic != LL_PAGE_MAGIC || page->version != LL_PAGE_VERSION || page->bytes != sizeof *page) {
		ll_page_unmap(page);
		return -EBADMSG;
	}
	*ret_page = page;
	return 0;
}

int ll_orders_map(int fd, bool is_writable, struct ll_orders **ret_orders)
{
	struct ll_orders *orders = map_file(fd, is_writable, sizeof *orders);
	if (!orders)
		return -errno;
	if (orders->magic != LL_ORDERS_MAGIC || orders->version != LL_PAGE_VERSION || orders->bytes != sizeof *orders) {
		ll_orders_unmap(orders);
		return -EBADMSG;
	}
	*ret_orders = orders;
	return 0;
}

void ll_page_unmap(struct ll_page *page)
{
	if (page)
		munmap(page, sizeof *page);
}

void ll_orders_unmap(struct ll_orders *orders)
{
	if (orders)
		munmap(orders, sizeof *orders);
}

/* ---- values of several words ---- */

enum { READ_TRIES = 1000 };

_Static_assert(offsetof(struct ll_limits, memory_bytes) == 0, "the first word");

uint64_t ll_orders_memory_limit(const struct ll_orders *orders)
{
	return atomic_load_explicit(&orders->limits[0], memory_order_relaxed);
}

void ll_orders_read_limits(const struct ll_orders *orders, struct ll_limits *ret_limits)
{
	uint64_t words[sizeof *ret_limits / 8] = {0};
	uint32_t before, after;
	int tries = 0;
	do {
		before = atomic_load_explicit(&orders->limits_sequence, memory_order_acquire);
		for (size_t i = 0; i < sizeof words / sizeof *words; i++)
			words[i] = atomic_load_explicit(&orders->limits[i], memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&orders->limits_sequence, memory_order_relaxed);
	} while ((before != after || before & 1) && ++tries < READ_TRIES);
	memcpy(ret_limits, words, sizeof words);
}

void ll_orders_write_limits(struct ll_orders *orders, const struct ll_limits *limits)
{
	uint64_t words[sizeof *limits / 8];
	memcpy(words, limits, sizeof words);
	/* The sequence is odd already if a daemon was killed while it wrote. */
	uint32_t odd = atomic_load_explicit(&orders->limits_sequence, memory_order_relaxed) | 1;
	atomic_store_explicit(&orders->limits_sequence, odd, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		atomic_store_explicit(&orders->limits[i], words[i], memory_order_relaxed);
	atomic_store_explicit(&orders->limits_sequence, odd + 1, memory_order_release);
}

void ll_orders_read_uuid(const struct ll_orders_card *card, char ret_uuid[LL_PAGE_UUID_SIZE])
{
	uint64_t words[LL_PAGE_UUID_SIZE / 8] = {0};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		words[i] = atomic_load_explicit(&card->uuid[i], memory_order_relaxed);
	memcpy(ret_uuid, words, sizeof words);
	ret_uuid[LL_PAGE_UUID_SIZE - 1] = '\0';
}

unsigned ll_orders_find_card(const struct ll_orders *orders, const char *uuid)
{
	for (unsigned i = 0; *uuid && i < LL_PAGE_CARDS; i++) {
		char other[LL_PAGE_UUID_SIZE];
		ll_orders_read_uuid(&orders->cards[i], other);
		if (strcmp(other, uuid) == 0)
			return i;
	}
	return LL_PAGE_CARDS;
}

unsigned ll_page_slot_end(const struct ll_page *page)
{
	uint32_t end = atomic_load_explicit(&page->slot_end, memory_order_acquire);
	return end < LL_PAGE_SLOTS ? end : LL_PAGE_SLOTS;
}

uint64_t ll_page_used_bytes(const struct ll_page *page, unsigned card)
{
	uint64_t units = 0;
	unsigned end = ll_page_slot_end(page);
	for (unsigned i = 0; i < end; i++) {
		const struct ll_page_slot *slot = &page->slots[i];
		if (atomic_load_explicit(&slot->token, memory_order_acquire) &&
		    atomic_load_explicit(&slot->card, memory_order_relaxed) == card)
			units += LL_MEMORY_USED(atomic_load_explicit(&slot->memory, memory_order_relaxed));
	}
	return units * LL_MEMORY_UNIT;
}

void ll_page_wake(_Atomic uint32_t *wake_count)
{
	int saved_errno = errno;
	atomic_fetch_add(wake_count, 1);
	syscall(SYS_futex, wake_count, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	errno = saved_errno;
}

void ll_page_sleep(const _Atomic uint32_t *wake_count, uint32_t count, uint64_t until_ns)
{
	int saved_errno = errno;
	uint64_t now_ns = ll_now_ns();
	if (until_ns <= now_ns)
		return;
	uint64_t left_ns = until_ns - now_ns;
	struct timespec timeout = {.tv_sec = (time_t)(left_ns / LL_NS_PER_S), .tv_nsec = (long)(left_ns % LL_NS_PER_S)};
	syscall(SYS_futex, wake_count, FUTEX_WAIT, count, &timeout, NULL, 0);
	errno = saved_errno;
}

void ll_page_write_note(struct ll_page_slot *slot, const char *note)
{
	char text[sizeof slot->note] = {0};
	uint64_t words[sizeof slot->note / 8];
	snprintf(text, sizeof text, "%s", note);
	memcpy(words, text, sizeof words);
	uint32_t odd = atomic_load_explicit(&slot->text_sequence, memory_order_relaxed) | 1;
	atomic_store_explicit(&slot->text_sequence, odd, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		atomic_store_explicit(&slot->note[i], words[i], memory_order_relaxed);
	atomic_store_explicit(&slot->text_sequence, odd + 1, memory_order_release);
}

void ll_page_read_note(const struct ll_page_slot *slot, char ret_note[64])
{
	uint64_t words[sizeof slot->note / 8] = {0};
	uint32_t before, after;
	int tries = 0;
	do {
		before = atomic_load_explicit(&slot->text_sequence, memory_order_acquire);
		for (size_t i = 0; i < sizeof words / sizeof *words; i++)
			words[i] = atomic_load_explicit(&slot->note[i], memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&slot->text_sequence, memory_order_relaxed);
	} while ((before != after || before & 1) && ++tries < READ_TRIES);
	memcpy(ret_note, words, sizeof words);
	ret_note[63] = '\0';
}
