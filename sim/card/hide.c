#include "card/hide.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool sim_is_hidden(const struct sim_world *w, const char *symbol)
{
	for (unsigned i = 0; i < SIM_HIDDEN; i++) {
		if (w->hidden[i][0] && strcmp(w->hidden[i], symbol) == 0)
			return true;
	}
	return false;
}

static void forget_symbol(ElfW(Sym) * symbol)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)symbol / page * page;
	size_t length = (uintptr_t)(symbol + 1) - first;
	if (mprotect((void *)first, length, PROT_READ | PROT_WRITE) < 0)
		return;
	symbol->st_value = 0;
	symbol->st_shndx = SHN_UNDEF;
	mprotect((void *)first, length, PROT_READ);
}

void sim_hide_symbols(const struct sim_world *w, bool (*is_newer)(const struct sim_world *w, const char *symbol))
{
	ElfW(Sym) *symbols = NULL;
	const char *names = NULL;
	const uint32_t *hash = NULL; /* DT_HASH: its second word is the number of symbols */
	/* _DYNAMIC belongs to the object into which this file is linked. */
	for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_SYMTAB)
			symbols = (ElfW(Sym) *)entry->d_un.d_ptr;
		else if (entry->d_tag == DT_STRTAB)
			names = (const char *)entry->d_un.d_ptr;
		else if (entry->d_tag == DT_HASH)
			hash = (const uint32_t *)entry->d_un.d_ptr;
	}
	if (!symbols || !names || !hash)
		return;
	for (uint32_t i = 1; i < hash[1]; i++) {
		const char *name = names + symbols[i].st_name;
		if (symbols[i].st_shndx != SHN_UNDEF && (sim_is_hidden(w, name) || is_newer(w, name)))
			forget_symbol(&symbols[i]);
	}
}
