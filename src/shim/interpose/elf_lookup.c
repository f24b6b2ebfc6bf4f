#include "shim/interpose/elf_lookup.h"

#include <elf.h>
#include <stddef.h>

enum { HIDDEN_VERSION = 0x8000 };

static bool has_stem(const char *name, const char *const stems[])
{
	for (size_t i = 0; name && stems[i]; i++) {
		const char *rest = ll_text_after(name, stems[i]);
		if (rest && (!*rest || *rest == '.' || *rest == '-'))
			return true;
	}
	return false;
}

static const char *file_name(const char *path)
{
	const char *name = path;
	for (; *path; path++)
		name = *path == '/' ? path + 1 : name;
	return name;
}

bool ll_elf_is_named(const struct ll_elf_object *object, const char *const stems[])
{
	return has_stem(object->soname, stems) || has_stem(file_name(object->path), stems);
}

static bool read_dynamic(const ElfW(Dyn) * entry, struct ll_elf_object *object)
{
	uintptr_t soname = 0;
	for (; entry->d_tag != DT_NULL; entry++) {
		/* glibc has already added the base to the address. musl has not. */
		uintptr_t address = entry->d_un.d_ptr;
		address += address < object->base ? object->base : 0;
		switch (entry->d_tag) {
		case DT_SYMTAB:
			object->symbols = (const ElfW(Sym) *)address;
			break;
		case DT_STRTAB:
			object->strings = (const char *)address;
			break;
		case DT_VERSYM:
			object->versions = (const ElfW(Half) *)address;
			break;
		case DT_GNU_HASH:
			object->gnu_hash = (const uint32_t *)address;
			break;
		case DT_HASH:
			object->sysv_hash = (const uint32_t *)address;
			break;
		case DT_SONAME:
			soname = entry->d_un.d_val;
			break;
		default:
			break;
		}
	}
	if (!object->symbols || !object->strings)
		return false;
	object->soname = soname ? object->strings + soname : NULL;
	return true;
}

static bool read_object(const struct dl_phdr_info *info, struct ll_elf_object *object)
{
	const ElfW(Dyn) *dynamic = NULL;
	*object = (struct ll_elf_object){.path = info->dlpi_name, .base = info->dlpi_addr, .start = UINTPTR_MAX};
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t start = object->base + header->p_vaddr;
		if (header->p_type == PT_DYNAMIC)
			dynamic = (const ElfW(Dyn) *)start;
		if (header->p_type != PT_LOAD)
			continue;
		object->start = start < object->start ? start : object->start;
		object->end = start + header->p_memsz > object->end ? start + header->p_memsz : object->end;
	}
	return dynamic && object->path && read_dynamic(dynamic, object);
}

struct search {
	const char *const *stems;     /* NULL: any name */
	const char *function;         /* a function that the object exports; NULL: any object */
	const char *const *functions; /* functions that the object exports; NULL: any object */
	const void *address;          /* an address that the object contains; NULL: any object */
	const void *behind;           /* the object comes after the one that contains this address; NULL: any object */
	bool is_behind;
	struct ll_elf_object found;
};

static int look_at(struct dl_phdr_info *info, size_t size, void *user)
{
	struct search *search = user;
	(void)size;
	if (!read_object(info, &search->found))
		return 0;
	bool is_behind = !search->behind || search->is_behind;
	search->is_behind |= search->behind && ll_elf_holds(&search->found, search->behind);
	return is_behind && (!search->stems || ll_elf_is_named(&search->found, search->stems)) &&
	       (!search->function || ll_elf_function(&search->found, search->function)) &&
	       (!search->functions || ll_elf_exports_all(&search->found, search->functions)) &&
	       (!search->address || ll_elf_holds(&search->found, search->address));
}

static bool find_object(struct search *search, struct ll_elf_object *ret_object)
{
	if (!dl_iterate_phdr(look_at, search))
		return false;
	*ret_object = search->found;
	return true;
}

bool ll_elf_find(const char *const stems[], struct ll_elf_object *ret_object)
{
	return find_object(&(struct search){.stems = stems}, ret_object);
}

bool ll_elf_find_exporting(const char *const stems[], const char *function, struct ll_elf_object *ret_object)
{
	return find_object(&(struct search){.stems = stems, .function = function}, ret_object);
}

bool ll_elf_find_exporting_all(const char *const functions[], struct ll_elf_object *ret_object)
{
	return find_object(&(struct search){.functions = functions}, ret_object);
}

bool ll_elf_find_holding(const void *address, struct ll_elf_object *ret_object)
{
	return address && find_object(&(struct search){.address = address}, ret_object);
}

bool ll_elf_find_behind_address(const void *address, const char *function, struct ll_elf_object *ret_object)
{
	return find_object(&(struct search){.behind = address, .function = function}, ret_object);
}

/* The dynamic section of the library that contains this code. glibc's link.h declares it. */
#ifndef __GLIBC__
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));
#endif

/* Returns the loader's list, as debuggers read it. Libraries that may be unloaded come after those that were loaded at
 * the start. */
static const struct link_map *first_started(void)
{
#ifdef __GLIBC__
	return _r_debug.r_map;
#else
	extern struct r_debug *_dl_debug_addr;
	return _dl_debug_addr->r_map;
#endif
}

static bool read_started(const struct link_map *map, struct ll_elf_object *ret_object)
{
	*ret_object = (struct ll_elf_object){.path = map->l_name, .base = map->l_addr};
	return map->l_ld && map->l_name && read_dynamic(map->l_ld, ret_object);
}

bool ll_elf_find_started(const char *const stems[], struct ll_elf_object *ret_object)
{
	for (const struct link_map *map = first_started(); map; map = map->l_next) {
		struct ll_elf_object object;
		if (!read_started(map, &object) || !ll_elf_is_named(&object, stems))
			continue;
		*ret_object = object;
		return true;
	}
	return false;
}

/* Preloaded libraries come before libc in the list. The function does not read libraries after libc, because another
 * thread may unload them. */
bool ll_elf_find_behind(const char *const stems[], const char *function, struct ll_elf_object *ret_object)
{
	static const char *const libc[] = {"libc.so", "libc.musl", "ld-musl", NULL};
	bool is_behind = false;
	for (const struct link_map *map = first_started(); map; map = map->l_next) {
		struct ll_elf_object object;
		bool is_own = map->l_ld == _DYNAMIC;
		if (is_own || !read_started(map, &object)) {
			is_behind |= is_own;
			continue;
		}
		if (ll_elf_is_named(&object, libc))
			return false;
		if (!is_behind || (stems && !ll_elf_is_named(&object, stems)) || !ll_elf_function(&object, function))
			continue;
		*ret_object = object;
		return true;
	}
	return false;
}

bool ll_elf_is_in_front(const struct ll_elf_object *object)
{
	for (const struct link_map *map = first_started(); map && map->l_ld != _DYNAMIC; map = map->l_next) {
		struct ll_elf_object started;
		if (read_started(map, &started) && ll_elf_is_same(&started, object))
			return true;
	}
	return false;
}

bool ll_elf_holds(const struct ll_elf_object *object, const void *address)
{
	return (uintptr_t)address >= object->start && (uintptr_t)address < object->end;
}

static bool is_defined(const ElfW(Sym) * symbol)
{
	return symbol->st_shndx != SHN_UNDEF && symbol->st_value && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC;
}

static void *address_of(const struct ll_elf_object *object, uint32_t index)
{
	return (void *)(object->base + object->symbols[index].st_value);
}

/* Checks one symbol with the right hash. Returns true to end the search. A version that is not the default is used only
 * if there is no other. */
static bool match_symbol(const struct ll_elf_object *object, uint32_t index, const char *name, void **found)
{
	const ElfW(Sym) *symbol = &object->symbols[index];
	if (!is_defined(symbol) || !ll_text_is_same(object->strings + symbol->st_name, name))
		return false;
	*found = address_of(object, index);
	return !object->versions || !(object->versions[index] & HIDDEN_VERSION);
}

/* Layout: bucket count, first symbol, words of the filter, its shift; the filter; the buckets; a chain of hashes
 * whose last has its lowest bit set. */
struct gnu_table {
	uint32_t bucket_count, first;
	const uint32_t *buckets, *chain;
};

static struct gnu_table gnu_table(const uint32_t *words)
{
	const uint32_t *buckets = words + 4 + words[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	return (struct gnu_table){words[0], words[1], buckets, buckets + words[0]};
}

static void *find_gnu(const struct ll_elf_object *object, const char *name)
{
	struct gnu_table table = gnu_table(object->gnu_hash);
	void *found = NULL;
	uint32_t hash = 5381;
	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		hash = hash * 33 + *c;
	uint32_t i = table.bucket_count ? table.buckets[hash % table.bucket_count] : 0;
	if (i < table.first)
		return NULL;
	for (;; i++) {
		uint32_t entry = table.chain[i - table.first];
		if ((entry | 1) == (hash | 1) && match_symbol(object, i, name, &found))
			break;
		if (entry & 1)
			break;
	}
	return found;
}

static void *find_sysv(const struct ll_elf_object *object, const char *name)
{
	const uint32_t *words = object->sysv_hash;
	uint32_t hash = 0;
	void *found = NULL;
	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		hash = (hash << 4) + *c;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
	}
	if (!words[0])
		return NULL;
	for (uint32_t i = words[2 + hash % words[0]]; i; i = words[2 + words[0] + i]) {
		if (match_symbol(object, i, name, &found))
			break;
	}
	return found;
}

void *ll_elf_function(const struct ll_elf_object *object, const char *name)
{
	if (object->gnu_hash)
		return find_gnu(object, name);
	return object->sysv_hash ? find_sysv(object, name) : NULL;
}

bool ll_elf_exports_all(const struct ll_elf_object *object, const char *const functions[])
{
	for (size_t i = 0; functions[i]; i++) {
		if (!ll_elf_function(object, functions[i]))
			return false;
	}
	return true;
}

/* Returns the number of symbols. Without the older table this number is not stored. Then the last chain of the GNU
 * table gives it, because it ends with the last symbol. */
static uint32_t symbol_count(const struct ll_elf_object *object)
{
	if (object->sysv_hash)
		return object->sysv_hash[1];
	if (!object->gnu_hash)
		return 0;
	struct gnu_table table = gnu_table(object->gnu_hash);
	uint32_t last = 0;
	for (uint32_t i = 0; i < table.bucket_count; i++)
		last = table.buckets[i] > last ? table.buckets[i] : last;
	if (last < table.first)
		return 0;
	while (!(table.chain[last - table.first] & 1))
		last++;
	return last + 1;
}

bool ll_elf_exports(const struct ll_elf_object *object, const void *address)
{
	uint32_t count = symbol_count(object);
	for (uint32_t i = 0; i < count; i++) {
		if (is_defined(&object->symbols[i]) && address_of(object, i) == address)
			return true;
	}
	return false;
}
