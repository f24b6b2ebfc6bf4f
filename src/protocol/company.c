#include "protocol/company.h"

#include <string.h>

#include "base/utf8.h"

enum { READ_TRIES = 1000 };

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
