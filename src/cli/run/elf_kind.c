#include "cli/run/elf_kind.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "base/scope.h"

enum { HEADERS_MAX = 512 };

static bool read_at(int fd, void *data, size_t size, uint64_t offset)
{
	return pread(fd, data, size, (off_t)offset) == (ssize_t)size;
}

static uint16_t machine_of(const unsigned char *header)
{
	/* At the same place for both word sizes, in the file's byte order. */
	const unsigned char *at = header + offsetof(Elf64_Ehdr, e_machine);
	return header[EI_DATA] == ELFDATA2MSB ? (uint16_t)(at[0] << 8 | at[1]) : (uint16_t)(at[1] << 8 | at[0]);
}

/* The kernel runs nothing whose program headers, or loader's name, it cannot read. */
static bool find_loader(int fd, const ElfW(Ehdr) * header, struct ll_elf_kind *kind)
{
	if (header->e_phentsize != sizeof(ElfW(Phdr)) || !header->e_phnum)
		return false;
	for (unsigned i = 0; i < header->e_phnum && i < HEADERS_MAX; i++) {
		ElfW(Phdr) segment;
		if (!read_at(fd, &segment, sizeof segment, header->e_phoff + (uint64_t)i * sizeof segment))
			return false;
		if (segment.p_type != PT_INTERP)
			continue;
		size_t size = segment.p_filesz < sizeof kind->loader ? segment.p_filesz : sizeof kind->loader - 1;
		kind->has_loader = size > 1 && read_at(fd, kind->loader, size, segment.p_offset);
		return kind->has_loader;
	}
	return true;
}

int ll_elf_kind_read(const char *path, struct ll_elf_kind *ret_kind)
{
	struct ll_elf_kind kind = {0};
	unsigned char bytes[sizeof(ElfW(Ehdr))] = {0};
	ElfW(Ehdr) header;
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t length = pread(fd, bytes, sizeof bytes, 0);
	if (length < 0)
		return -errno;
	if (length >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0) {
		kind.is_elf = true;
		kind.word_bits = bytes[EI_CLASS] == ELFCLASS64 ? 64 : 32;
		kind.byte_order = bytes[EI_DATA];
		kind.machine = machine_of(bytes);
		kind.is_readable_here =
		    kind.word_bits == 8 * sizeof(ElfW(Addr)) &&
		    kind.byte_order == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB);
		size_t whole = bytes[EI_CLASS] == ELFCLASS32 ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr);
		kind.is_damaged = (size_t)length < (whole < sizeof bytes ? whole : sizeof bytes);
	}
	if (kind.is_readable_here && !kind.is_damaged) {
		memcpy(&header, bytes, sizeof header);
		kind.is_damaged = !find_loader(fd, &header, &kind);
	}
	*ret_kind = kind;
	return 0;
}
