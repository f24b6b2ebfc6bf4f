#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "cli/run/elf_kind.h"
#include "cli/run/find.h"

/* The kernel follows as many. */
enum { SCRIPTS_MAX = 5, LINE_SIZE = 512 };

static int refuse(const char *path, const char *why, struct ll_err *err)
{
	return ll_err_set(err, -EPERM, "%.200s: %s", path, why);
}

/* The loader ignores what is to be preloaded where a program has rights that its user has not. */
static int check_rights(const char *path, struct ll_err *err)
{
	struct stat st;
	if (stat(path, &st))
		return ll_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
	if (st.st_mode & S_ISUID)
		return refuse(path, "it is a set-uid program, and the loader preloads nothing into such programs", err);
	if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP))
		return refuse(path, "it is a set-gid program, and the loader preloads nothing into such programs", err);
	if (getxattr(path, "security.capability", NULL, 0) > 0)
		return refuse(path, "its file has capabilities, and the loader preloads nothing into such programs",
			      err);
	return 0;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* execvp would give such a file to the shell. */
static int fail_damaged(const char *path, struct ll_err *err)
{
	ll_err_set(err, -ENOEXEC, "%.200s: %s: the file is incomplete, or not a program", path, strerror(ENOEXEC));
	if (err)
		err->status = LL_RUN_NOT_EXECUTABLE;
	return -ENOEXEC;
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
		return refuse(
		    path, kind->word_bits == 32 ? "it is a 32-bit program" : "it is a 64-bit program, loadline is not",
		    err);
	if (kind->machine != library.machine || kind->byte_order != library.byte_order)
		return refuse(path, "it is a program for another machine", err);
	if (!kind->has_loader)
		return refuse(path, "it is linked statically, and calls nothing that could be intercepted", err);
	bool is_known = ll_elf_kind_read("/proc/self/exe", &own) == 0 && own.has_loader;
	if (is_known && strcmp(base_of(kind->loader), base_of(own.loader)) != 0)
		return ll_err_set(err, -ELIBBAD, "%.200s: it uses another C library than loadline", path);
	return 0;
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

/* "#!/usr/bin/env NAME" becomes the program of that name: it is found, or the script would not run either. */
static void follow_env(const char *interpreter, char *rest, char ret_path[PATH_MAX])
{
	const char *word = cut_word(&rest);
	char found[PATH_MAX];
	if (strcmp(base_of(interpreter), "env") != 0 || !*word || *word == '-' || strchr(word, '=') ||
	    ll_run_find(word, found, NULL) < 0)
		return;
	snprintf(ret_path, PATH_MAX, "%s", found);
}

/* The kernel's own error would name the script, which is there. */
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

/* Puts the program that runs the file into ret_path: of a file that names none that is the shell, as execvp has it. */
static int find_interpreter(const char *path, char ret_path[PATH_MAX], struct ll_err *err)
{
	char line[LINE_SIZE];
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : pread(fd, line, sizeof line - 1, 0);
	if (length < 0)
		return refuse(path, "it cannot be read, so what it is is not known", err);
	line[length] = '\0';
	bool has_first_line = strncmp(line, "#!", 2) == 0;
	char *rest = line + (has_first_line ? 2 : length);
	rest[strcspn(rest, "\n")] = '\0';
	const char *interpreter = cut_word(&rest);
	if (!*interpreter) {
		snprintf(ret_path, PATH_MAX, "/bin/sh");
		return 0;
	}
	/* The kernel searches no PATH. */
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
			return refuse(program, "it cannot be read, so what it is is not known", err);
		/* A script's own set-uid bit means nothing to the kernel. */
		int rc = kind.is_elf ? check_rights(program, err) : find_interpreter(program, next, err);
		if (rc < 0)
			return rc;
		if (kind.is_elf)
			return check_elf(program, &kind, shim, err);
		memcpy(program, next, sizeof program);
	}
	return refuse(path, "too many of its interpreters are scripts themselves", err);
}
