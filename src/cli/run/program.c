#include "cli/run/run.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/translate.h"

/* ---- what kind of program a file is ---- */

enum { HEADERS_MAX = 512, DYNAMIC_MAX = 4096 };

static bool is_sanitizer(const char *name)
{
	return strncmp(name, "libasan.so", 10) == 0 || strncmp(name, "libclang_rt.asan", 16) == 0;
}

static bool read_at(int fd, void *data, size_t size, uint64_t offset)
{
	return pread(fd, data, size, (off_t)offset) == (ssize_t)size;
}

static uint16_t machine_of(const unsigned char *header)
{
	/* e_machine is at the same offset for both word sizes, in the file's byte order. */
	const unsigned char *at = header + offsetof(Elf64_Ehdr, e_machine);
	return header[EI_DATA] == ELFDATA2MSB ? (uint16_t)(at[0] << 8 | at[1]) : (uint16_t)(at[1] << 8 | at[0]);
}

/* Returns where the file has what is at this address; 0: nowhere. */
static uint64_t offset_of(const ElfW(Phdr) * segments, unsigned count, uint64_t address)
{
	for (unsigned i = 0; i < count; i++) {
		const ElfW(Phdr) *segment = &segments[i];
		if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
		    address - segment->p_vaddr < segment->p_filesz)
			return segment->p_offset + (address - segment->p_vaddr);
	}
	return 0;
}

/* Finds the value of an entry of the dynamic section; start: the entry to begin with, which is moved behind it. */
static bool next_entry(int fd, const ElfW(Phdr) * dynamic, int64_t tag, unsigned *start, uint64_t *ret_value)
{
	for (ElfW(Dyn) entry; *start < DYNAMIC_MAX && (uint64_t)*start * sizeof entry < dynamic->p_filesz;) {
		if (!read_at(fd, &entry, sizeof entry, dynamic->p_offset + (uint64_t)(*start)++ * sizeof entry) ||
		    entry.d_tag == DT_NULL)
			return false;
		*ret_value = entry.d_un.d_val;
		if (entry.d_tag == tag)
			return true;
	}
	return false;
}

/* Finds GCC's or Clang's shared library of AddressSanitizer among those that the file needs. */
static void find_sanitizer(int fd, const ElfW(Phdr) * segments, unsigned count, struct ll_elf_kind *kind)
{
	const ElfW(Phdr) *dynamic = NULL;
	uint64_t names, name;
	unsigned start = 0, entry = 0;
	for (unsigned i = 0; i < count; i++)
		dynamic = segments[i].p_type == PT_DYNAMIC ? &segments[i] : dynamic;
	if (!dynamic || !next_entry(fd, dynamic, DT_STRTAB, &start, &names))
		return;
	names = offset_of(segments, count, names);
	while (names && next_entry(fd, dynamic, DT_NEEDED, &entry, &name)) {
		char text[sizeof kind->sanitizer] = "";
		ssize_t length = pread(fd, text, sizeof text - 1, (off_t)(names + name));
		if (length > 0 && is_sanitizer(text))
			memcpy(kind->sanitizer, text, strlen(text) + 1);
	}
}

/* Finds the loader's path. The kernel does not run a file whose program headers or loader's path it cannot read. */
static bool find_loader(int fd, const ElfW(Ehdr) * header, struct ll_elf_kind *kind)
{
	unsigned count = header->e_phnum < HEADERS_MAX ? header->e_phnum : HEADERS_MAX;
	LL_SCOPE_FREE ElfW(Phdr) *segments = calloc(count + 1U, sizeof *segments);
	if (!segments || header->e_phentsize != sizeof *segments || !count ||
	    !read_at(fd, segments, count * sizeof *segments, header->e_phoff))
		return false;
	find_sanitizer(fd, segments, count, kind);
	for (unsigned i = 0; i < count; i++) {
		if (segments[i].p_type != PT_INTERP)
			continue;
		uint64_t bytes = segments[i].p_filesz;
		size_t size = bytes < sizeof kind->loader ? bytes : sizeof kind->loader - 1;
		kind->has_loader = size > 1 && read_at(fd, kind->loader, size, segments[i].p_offset);
		return kind->has_loader;
	}
	return true;
}

int ll_elf_kind_read(const char *path, struct ll_elf_kind *ret_kind)
{
	*ret_kind = (struct ll_elf_kind){.is_elf = false};
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

/* ---- the file of a command ---- */

static int fail_lookup(const char *command, int code, struct ll_err *err)
{
	ll_err_set(err, -code, "%.200s: %s", command, code == ENOENT ? _("command not found") : strerror(code));
	if (err)
		err->status = code == ENOENT || code == ENOTDIR ? LL_RUN_NOT_FOUND : LL_RUN_NOT_EXECUTABLE;
	return -code;
}

/* Returns 0, or the errno, which is positive. */
static int try_file(const char *path)
{
	struct stat st;
	if (stat(path, &st))
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	return access(path, X_OK) ? errno : 0;
}

/* Searches the folders. An empty name is the current folder. A file that cannot be run is an error only if no later
 * folder has one that can. */
static int search_path(const char *command, const char *folders, char ret_path[PATH_MAX])
{
	int worst = ENOENT;
	for (const char *folder = folders;; folder++) {
		size_t length = strcspn(folder, ":");
		int n = snprintf(ret_path, PATH_MAX, "%.*s%s%s", (int)length, folder, length ? "/" : "./", command);
		int code = n > 0 && n < PATH_MAX ? try_file(ret_path) : ENAMETOOLONG;
		if (code == 0)
			return 0;
		if (code == EACCES)
			worst = EACCES;
		folder += length;
		if (!*folder)
			return worst;
	}
}

int ll_run_find(const char *command, char ret_path[PATH_MAX], struct ll_err *err)
{
	const char *folders = getenv("PATH");
	int code;
	if (!*command || strlen(command) >= PATH_MAX)
		return fail_lookup(command, *command ? ENAMETOOLONG : ENOENT, err);
	if (strchr(command, '/')) {
		code = try_file(command);
		snprintf(ret_path, PATH_MAX, "%s", command);
	} else {
		code = search_path(command, folders ? folders : "/bin:/usr/bin", ret_path);
	}
	return code ? fail_lookup(command, code, err) : 0;
}

/* ---- whether it can be governed ---- */

/* SCRIPTS_MAX: the kernel's own limit for scripts whose interpreter is a script. */
enum { SCRIPTS_MAX = 5, LINE_SIZE = 512 };

static int refuse_program(const char *path, const char *why, struct ll_err *err)
{
	return ll_err_set(err, -EPERM, "%.200s: %s", path, why);
}

/* Refuses a program that has more rights than its user, because the loader preloads nothing into such programs. */
static int check_rights(const char *path, struct ll_err *err)
{
	struct stat st;
	if (stat(path, &st))
		return ll_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
	if (st.st_mode & S_ISUID)
		return refuse_program(
		    path, _("it is a set-uid program, and the loader preloads nothing into such programs"), err);
	if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP))
		return refuse_program(
		    path, _("it is a set-gid program, and the loader preloads nothing into such programs"), err);
	if (getxattr(path, "security.capability", NULL, 0) > 0)
		return refuse_program(
		    path, _("its file has capabilities, and the loader preloads nothing into such programs"), err);
	return 0;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* Reports a damaged file. execvp would run it by the shell. */
static int fail_damaged(const char *path, struct ll_err *err)
{
	ll_err_set(err, -ENOEXEC, "%.200s: %s: the file is incomplete, or not a program", path, strerror(ENOEXEC));
	if (err)
		err->status = LL_RUN_NOT_EXECUTABLE;
	return -ENOEXEC;
}

/* Its library ends the program if it is not the first, unless it is told not to look. */
static int check_sanitizer(const char *path, const char *sanitizer, struct ll_err *err)
{
	const char *options = getenv("ASAN_OPTIONS");
	char first[PATH_MAX];
	size_t length;
	const char *word = ll_preload_word(getenv("LD_PRELOAD"), &length);
	snprintf(first, sizeof first, "%.*s", (int)length, length ? word : "");
	if (!*sanitizer || is_sanitizer(base_of(first)) || (options && strstr(options, "verify_asan_link_order=0")))
		return 0;
	ll_err_set(err, -ELIBBAD, "%.200s: it is built with AddressSanitizer, whose library must be the first", path);
	return ll_err_hint(
	    err, "LD_PRELOAD=%s loadline run ... loads it first; --allow-ungoverned runs it without limits", sanitizer);
}

static int check_elf(const char *path, const struct ll_elf_kind *kind, const char *shim, struct ll_err *err)
{
	struct ll_elf_kind own;
	struct ll_elf_kind library;
	if (ll_elf_kind_read(shim, &library) < 0 || !library.is_elf)
		return ll_err_set(err, -EIO, "%.200s: is not a library", shim);
	if (kind->is_damaged)
		return fail_damaged(path, err);
	if (kind->word_bits != library.word_bits)
		return refuse_program(path,
				      kind->word_bits == 32 ? _("it is a 32-bit program")
							    : _("it is a 64-bit program, loadline is not"),
				      err);
	if (kind->machine != library.machine || kind->byte_order != library.byte_order)
		return refuse_program(path, _("it is a program for another machine"), err);
	if (!kind->has_loader)
		return refuse_program(path, _("it is linked statically, and calls nothing that could be intercepted"),
				      err);
	bool is_known = ll_elf_kind_read("/proc/self/exe", &own) == 0 && own.has_loader;
	if (is_known && strcmp(base_of(kind->loader), base_of(own.loader)) != 0)
		return ll_err_set(err, -ELIBBAD, "%.200s: it uses another C library than loadline", path);
	return check_sanitizer(path, kind->sanitizer, err);
}

static char *cut_word(char **rest)
{
	*rest += strspn(*rest, " \t");
	char *word = *rest;
	*rest += strcspn(*rest, " \t");
	if (**rest)
		*(*rest)++ = '\0';
	return word;
}

/* For "#!/usr/bin/env NAME" it finds the program of that name. If there is none, the script would not run either. */
static void follow_env(const char *interpreter, char *rest, char ret_path[PATH_MAX])
{
	const char *word = cut_word(&rest);
	char found[PATH_MAX];
	if (strcmp(base_of(interpreter), "env") != 0 || !*word || *word == '-' || strchr(word, '=') ||
	    ll_run_find(word, found, NULL) < 0)
		return;
	snprintf(ret_path, PATH_MAX, "%s", found);
}

/* Reports a missing interpreter by its name. The kernel's own error would name the script, which exists. */
static int check_interpreter(const char *path, const char *interpreter, struct ll_err *err)
{
	char found[PATH_MAX];
	int rc = ll_run_find(interpreter, found, err);
	if (rc == 0)
		return 0;
	ll_err_wrap(err, "%.200s: its interpreter", path);
	if (interpreter[strlen(interpreter) - 1] == '\r')
		ll_err_hint(err, "remove the carriage return at the end of its first line");
	return rc;
}

/* Writes the path of the program that runs the file. For a file without an interpreter line that is the shell, as with
 * execvp. */
static int find_interpreter(const char *path, char ret_path[PATH_MAX], struct ll_err *err)
{
	char line[LINE_SIZE];
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : pread(fd, line, sizeof line - 1, 0);
	if (length < 0)
		return refuse_program(path, _("it cannot be read, so its type is not known"), err);
	line[length] = '\0';
	bool has_first_line = strncmp(line, "#!", 2) == 0;
	char *rest = line + (has_first_line ? 2 : length);
	rest[strcspn(rest, "\n")] = '\0';
	const char *interpreter = cut_word(&rest);
	if (!*interpreter) {
		snprintf(ret_path, PATH_MAX, "/bin/sh");
		return 0;
	}
	/* The kernel does not search PATH. */
	snprintf(ret_path, PATH_MAX, "%s%s", strchr(interpreter, '/') ? "" : "./", interpreter);
	int rc = check_interpreter(path, ret_path, err);
	if (rc == 0)
		follow_env(interpreter, rest, ret_path);
	return rc;
}

int ll_run_check_program(const char *path, const char *shim, struct ll_err *err)
{
	char program[PATH_MAX];
	snprintf(program, sizeof program, "%s", path);
	for (int i = 0; i < SCRIPTS_MAX; i++) {
		struct ll_elf_kind kind;
		char next[PATH_MAX];
		if (ll_elf_kind_read(program, &kind) < 0)
			return refuse_program(program, _("it cannot be read, so its type is not known"), err);
		/* The kernel ignores the set-uid bit of a script. */
		int rc = kind.is_elf ? check_rights(program, err) : find_interpreter(program, next, err);
		if (rc < 0)
			return rc;
		if (kind.is_elf)
			return check_elf(program, &kind, shim, err);
		memcpy(program, next, sizeof program);
	}
	return refuse_program(path, _("too many of its interpreters are scripts themselves"), err);
}

/* ---- who has the work started elsewhere ---- */

static const char governed[] = "loadline run ... -- COMMAND";

struct launcher {
	const char *name;
	const char *starter;        /* who starts the work */
	const char *before, *after; /* of the governed command, in the form that works */
};

#define CONTAINER(name, starter)                                                                                       \
	{                                                                                                              \
		name, starter, name " run ... IMAGE ", ""                                                              \
	}

static const struct launcher launchers[] = {
    CONTAINER("docker", N_("its daemon")),
    CONTAINER("podman", N_("the container's runtime")),
    CONTAINER("nerdctl", N_("containerd")),
    {"docker-compose", N_("docker's daemon"), "command: ", N_(" (in the compose file)")},
    {"podman-compose", N_("the container's runtime"), "command: ", N_(" (in the compose file)")},
    {"ctr", N_("containerd"), "ctr run ... IMAGE ID ", ""},
    {"crictl", N_("the container runtime"), "crictl exec CONTAINER ", ""},
    {"lxc", N_("its daemon"), "lxc exec CONTAINER -- ", ""},
    {"incus", N_("its daemon"), "incus exec CONTAINER -- ", ""},
    {"apptainer", N_("the container's runtime"), "apptainer exec --nv ... IMAGE ", ""},
    {"singularity", N_("the container's runtime"), "singularity exec --nv ... IMAGE ", ""},
    {"enroot", N_("the container's runtime"), "enroot start ... NAME ", ""},
    {"srun", N_("Slurm's daemon on the node"), "srun ... ", ""},
    {"sbatch", N_("Slurm's daemon on the node"), "sbatch ... --wrap '", "'"},
    {"salloc", "Slurm", "salloc ... srun ", ""},
    {"flux", N_("Flux's broker"), "flux run ... ", ""},
    {"qsub", N_("the batch system"), "", N_(" (in the job's script)")},
    {"bsub", N_("the batch system"), "bsub ... ", ""},
    {"condor_submit", N_("the batch system"), "", N_(" (in the submit file)")},
    {"kubectl", N_("the node's kubelet"), "kubectl exec POD -- ", ""},
    {"oc", N_("the node's kubelet"), "oc exec POD -- ", ""},
    {"ssh", N_("the other host"), "ssh HOST ", ""},
    {"mosh", N_("the other host"), "mosh HOST -- ", ""},
    {"pdsh", N_("the other hosts"), "pdsh -w HOSTS ", ""},
    {"systemd-run", "systemd", "systemd-run --user ... ", ""},
    {"machinectl", "systemd", "machinectl shell NAME /usr/bin/env ", ""},
    {"screen", N_("a server that may run already"), "screen ... ", ""},
    {"tmux", N_("a server that may run already"), "tmux new-session ... ", ""},
    {"at", "atd", "echo '", "' | at TIME"},
    {"batch", "atd", "echo '", "' | batch"},
};

/* ---- programs that run another command ---- */

struct wrapper {
	const char *name;
	const char *letters; /* options with a value, which may be the next word */
	const char *longs;   /* the same by their names, each with a blank behind it */
	unsigned operands;   /* before the command */
	bool assigns;        /* NAME=VALUE may come before the command */
};

static const struct wrapper wrappers[] = {
    {"env", "uCS", "unset chdir split-string ", 0, true},
    {"nice", "n", "adjustment ", 0, false},
    {"nohup", "", "", 0, false},
    {"timeout", "ks", "kill-after signal ", 1, false},
    {"setsid", "", "", 0, false},
    {"stdbuf", "ioe", "input output error ", 0, false},
    {"time", "fo", "format output ", 0, false},
    {"ionice", "cn", "class classdata ", 0, false},
    {"taskset", "", "", 1, false},
    {"chrt", "TPD", "sched-runtime sched-period sched-deadline ", 1, false},
    {"numactl", "NmiCpPw", "cpunodebind membind interleave physcpubind preferred preferred-many weighted-interleave ",
     0, false},
    {"sudo", "ugpCDhRrtTU", "user group prompt close-from chdir host chroot role type command-timeout other-user ", 0,
     true},
    {"doas", "uC", "", 0, false},
};

static const struct wrapper *find_wrapper(const char *word)
{
	for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++) {
		if (strcmp(base_of(word), wrappers[i].name) == 0)
			return &wrappers[i];
	}
	return NULL;
}

/* "unset": one of "unset chdir "? */
static bool is_among(const char *names, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = strstr(names, name); at; at = strstr(at + 1, name)) {
		if ((at == names || at[-1] == ' ') && at[length] == ' ')
			return true;
	}
	return false;
}

/* Whether the next word is the value of this option. In "-iu" it is that of the last letter; "-u1" has its own. */
static bool takes_next(const struct wrapper *wrapper, const char *option)
{
	if (option[1] == '-')
		return option[2] && is_among(wrapper->longs, option + 2);
	for (const char *letter = option + 1; *letter; letter++) {
		if (strchr(wrapper->letters, *letter))
			return !letter[1];
	}
	return false;
}

/* Returns the command that the wrapper runs; NULL: none. */
static char *const *skip_wrapper(const struct wrapper *wrapper, char *const *words)
{
	bool has_options = true;
	unsigned operands = wrapper->operands;
	for (words++; *words; words++) {
		const char *word = *words;
		bool is_option = has_options && word[0] == '-' && word[1];
		bool is_assignment = !is_option && wrapper->assigns && strchr(word, '=');
		if (is_option)
			words += takes_next(wrapper, word) && words[1];
		else if (!is_assignment && !operands--)
			return words;
		has_options = is_option && strcmp(word, "--") != 0;
	}
	return NULL;
}

static int fail_launcher(const struct launcher *launcher, struct ll_err *err)
{
	char command[96];
	ll_advice_copy(command, sizeof command, governed);
	ll_err_set(err, -EREMOTE, "limits do not reach into what %s starts: %s starts it", launcher->name,
		   _(launcher->starter));
	return ll_err_hint(err, "put loadline inside: %s%s%s", launcher->before, command,
			   *launcher->after ? _(launcher->after) : "");
}

int ll_launchers_check(char *const *words, struct ll_err *err)
{
	const struct wrapper *wrapper;
	while (words && *words && (wrapper = find_wrapper(*words)))
		words = skip_wrapper(wrapper, words);
	for (size_t i = 0; words && *words && i < sizeof launchers / sizeof *launchers; i++) {
		if (strcmp(base_of(*words), launchers[i].name) == 0)
			return fail_launcher(&launchers[i], err);
	}
	return 0;
}
