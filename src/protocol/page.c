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
#include "base/utf8.h"
#include "protocol/accounts.h"
#include "protocol/company.h"

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
	atomic_fetch_add(wake_count, 1);
	ll_page_wake_all(wake_count);
}

void ll_page_wake_all(const _Atomic uint32_t *wake_count)
{
	int saved_errno = errno;
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

/* ---- accounts.h ---- */

static uint64_t moment_ms(const struct ll_page_slot *slot, uint64_t now_ns)
{
	uint64_t taken_ns = atomic_load_explicit(&slot->taken_ns, memory_order_relaxed);
	return now_ns > taken_ns ? (now_ns - taken_ns) / LL_NS_PER_MS : 0;
}

void ll_accounts_note_charge(struct ll_page_slot *slot, uint64_t units, uint64_t now_ns)
{
	atomic_fetch_add_explicit(&slot->memory_moments, units * moment_ms(slot, now_ns), memory_order_relaxed);
}

void ll_accounts_note_release(struct ll_page_slot *slot, uint64_t units, uint64_t now_ns)
{
	atomic_fetch_sub_explicit(&slot->memory_moments, units * moment_ms(slot, now_ns), memory_order_relaxed);
}

void ll_accounts_note_wait(struct ll_page_slot *slot, enum ll_wait cause, uint64_t ns)
{
	atomic_fetch_add_explicit(&slot->waited_ns[cause], ns, memory_order_relaxed);
}

void ll_accounts_read(const struct ll_page_slot *slot, uint64_t now_ns, struct ll_accounts *ret_accounts)
{
	uint64_t used = LL_MEMORY_USED(atomic_load_explicit(&slot->memory, memory_order_relaxed));
	uint64_t moments = atomic_load_explicit(&slot->memory_moments, memory_order_relaxed);
	int64_t area = (int64_t)(used * moment_ms(slot, now_ns) - moments);
	ret_accounts->held_unit_ms = area > 0 ? (uint64_t)area : 0;
	for (unsigned i = 0; i < LL_WAITS; i++)
		ret_accounts->waited_ns[i] = atomic_load_explicit(&slot->waited_ns[i], memory_order_relaxed);
}

static void add_accounts(struct ll_accounts *sum, const struct ll_accounts *other)
{
	sum->held_unit_ms += other->held_unit_ms;
	for (unsigned i = 0; i < LL_WAITS; i++)
		sum->waited_ns[i] += other->waited_ns[i];
}

void ll_accounts_read_card(const struct ll_page *page, unsigned card, uint64_t now_ns, struct ll_accounts *ret_accounts)
{
	const struct ll_page_card *ended = &page->cards[card];
	unsigned end = ll_page_slot_end(page);
	ret_accounts->held_unit_ms = atomic_load_explicit(&ended->ended_unit_ms, memory_order_relaxed);
	for (unsigned i = 0; i < LL_WAITS; i++)
		ret_accounts->waited_ns[i] = atomic_load_explicit(&ended->ended_waited_ns[i], memory_order_relaxed);
	for (unsigned i = 0; i < end; i++) {
		const struct ll_page_slot *slot = &page->slots[i];
		struct ll_accounts own;
		if (!atomic_load_explicit(&slot->token, memory_order_acquire) ||
		    atomic_load_explicit(&slot->card, memory_order_relaxed) != card)
			continue;
		ll_accounts_read(slot, now_ns, &own);
		add_accounts(ret_accounts, &own);
	}
}

void ll_accounts_end(struct ll_page *page, const struct ll_page_slot *slot, uint64_t now_ns)
{
	struct ll_accounts own;
	unsigned card = atomic_load_explicit(&slot->card, memory_order_relaxed);
	if (card >= LL_PAGE_CARDS)
		return;
	ll_accounts_read(slot, now_ns, &own);
	atomic_fetch_add_explicit(&page->cards[card].ended_unit_ms, own.held_unit_ms, memory_order_relaxed);
	for (unsigned i = 0; i < LL_WAITS; i++)
		atomic_fetch_add_explicit(&page->cards[card].ended_waited_ns[i], own.waited_ns[i],
					  memory_order_relaxed);
}

/* ---- company.h ---- */

#define LOAD(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define STORE(word, value) atomic_store_explicit(&(word), value, memory_order_relaxed)

static void read_text(const _Atomic uint64_t *words, char *ret_text, size_t size)
{
	for (size_t i = 0; i < size / sizeof(uint64_t); i++) {
		uint64_t word = LOAD(words[i]);
		memcpy(ret_text + i * sizeof word, &word, sizeof word);
	}
	ret_text[size - 1] = '\0';
	ll_utf8_clean(ret_text);
}

static void write_text(_Atomic uint64_t *words, const char *text, size_t size)
{
	for (size_t i = 0; i < size / sizeof(uint64_t); i++) {
		uint64_t word;
		memcpy(&word, text + i * sizeof word, sizeof word);
		STORE(words[i], word);
	}
}

bool ll_company_read(const struct ll_orders_company *row, struct ll_company *ret_company)
{
	struct ll_company company;
	uint32_t before, after;
	int tries = 0;
	do {
		before = atomic_load_explicit(&row->sequence, memory_order_acquire);
		company = (struct ll_company){.card = LOAD(row->card),
					      .way = LOAD(row->way) == LL_WAY_SPACE ? LL_WAY_SPACE : LL_WAY_SLICES,
					      .program = LOAD(row->program),
					      .others = LOAD(row->others),
					      .ns = LOAD(row->ns),
					      .launches = LOAD(row->launches),
					      .names = ""};
		read_text(row->names, company.names, sizeof company.names);
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&row->sequence, memory_order_relaxed);
	} while ((before != after || before & 1) && ++tries < READ_TRIES);
	if (tries == READ_TRIES || !company.program || !company.others || company.card >= LL_PAGE_CARDS)
		return false;
	*ret_company = company;
	return true;
}

void ll_company_write(struct ll_orders_company *row, const struct ll_company *company)
{
	/* The sequence is odd already if a daemon was killed while it wrote. */
	uint32_t odd = LOAD(row->sequence) | 1;
	STORE(row->sequence, odd);
	atomic_thread_fence(memory_order_release);
	STORE(row->card, company->card);
	STORE(row->way, company->way);
	STORE(row->program, company->program);
	STORE(row->others, company->others);
	STORE(row->ns, company->ns);
	STORE(row->launches, company->launches);
	write_text(row->names, company->names, sizeof company->names);
	atomic_store_explicit(&row->sequence, odd + 1, memory_order_release);
}

void ll_company_read_name(const struct ll_orders *orders, char ret_name[LL_PROGRAM_NAME_SIZE])
{
	read_text(orders->program_name, ret_name, LL_PROGRAM_NAME_SIZE);
}

void ll_company_write_program(struct ll_orders *orders, uint64_t program, const char name[LL_PROGRAM_NAME_SIZE])
{
	write_text(orders->program_name, name, LL_PROGRAM_NAME_SIZE);
	STORE(orders->program, program);
}
