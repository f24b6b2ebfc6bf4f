#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"

/* By this name programs of an earlier process are known. */
static const char program_name[BPF_OBJ_NAME_LEN] = "loadline_fence";

enum { PROGRAMS_MAX = 64, NAME_SIZE = 64, MOST_BYTES = 1 << 20 };

/* The kernel refuses a call whose unused bytes are not 0. */
static const union bpf_attr no_attr;

static int call_bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	long rc = syscall(SYS_bpf, command, attr, sizeof *attr);
	return rc < 0 ? -errno : (int)rc;
}

/* ---- the device numbers of the driver ---- */

static bool has_major(const struct ll_filter *filter, uint32_t major)
{
	for (size_t i = 0; i < filter->major_count; i++) {
		if (filter->majors[i] == major)
			return true;
	}
	return false;
}

/*
 * Takes the character devices whose name begins with "nvidia" from the text of /proc/devices: nvidia, nvidia-uvm,
 * nvidia-caps, nvidia-caps-imex-channels and their like. 195 is the cards' own, and is always the first: it is theirs
 * before the driver is loaded too (Documentation/admin-guide/devices.txt of Linux).
 */
static void read_majors(struct ll_filter *filter)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	int rc = ll_strbuf_add_file(&text, AT_FDCWD, "/proc/devices", MOST_BYTES);
	if (rc)
		ll_error("/proc/devices: %s; devices of other numbers than %d are not found", strerror(-rc),
			 LL_NVIDIA_MAJOR);
	const char *end = strstr(text.buf, "Block devices:");
	filter->majors[0] = LL_NVIDIA_MAJOR;
	filter->major_count = 1;
	for (const char *line = text.buf; line && (!end || line < end); line = strchr(line, '\n')) {
		char name[NAME_SIZE];
		unsigned major;
		line += *line == '\n';
		if (sscanf(line, "%u %63s", &major, name) == 2 && strncmp(name, "nvidia", strlen("nvidia")) == 0 &&
		    !has_major(filter, major) && filter->major_count < LL_FILTER_MAJORS)
			filter->majors[filter->major_count++] = major;
	}
}

/* ---- the program ---- */

enum { MOVE = BPF_ALU64 | BPF_MOV, AND = BPF_ALU64 | BPF_AND | BPF_K, SHIFT = BPF_ALU64 | BPF_RSH | BPF_K };
enum { LOAD = BPF_LDX | BPF_MEM | BPF_W, SKIP_IF = BPF_JMP | BPF_JEQ | BPF_K, SKIP_UNLESS = BPF_JMP | BPF_JNE | BPF_K };
enum { MAJOR = BPF_REG_4, OF_MAJOR = 3 /* instructions for each */ };

/* The result, 1 to allow and 0 to deny, is in register 0. */
static const struct bpf_insn leave = {.code = BPF_JMP | BPF_EXIT};

/* access_type has the access in its upper 16 bits, and the type of the device in the lower ones. What is no character
 * device, or is not to be read or written, is allowed. */
static const struct bpf_insn program_begin[] = {
    {LOAD, BPF_REG_2, BPF_REG_1, offsetof(struct bpf_cgroup_dev_ctx, access_type), 0},
    {LOAD, MAJOR, BPF_REG_1, offsetof(struct bpf_cgroup_dev_ctx, major), 0},
    {MOVE | BPF_X, BPF_REG_3, BPF_REG_2, 0, 0},
    {MOVE | BPF_K, BPF_REG_0, 0, 0, 1},
    {AND, BPF_REG_3, 0, 0, UINT16_MAX},
    {SKIP_IF, BPF_REG_3, 0, 1, BPF_DEVCG_DEV_CHAR},
    {.code = BPF_JMP | BPF_EXIT},
    {SHIFT, BPF_REG_2, 0, 0, 16},
    {AND, BPF_REG_2, 0, 0, BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE},
    {SKIP_UNLESS, BPF_REG_2, 0, 1, 0},
    {.code = BPF_JMP | BPF_EXIT},
};

enum { BEGIN = sizeof program_begin / sizeof *program_begin, PROGRAM_MAX = BEGIN + OF_MAJOR * LL_FILTER_MAJORS + 1 };

/* A device of one of the majors is denied, any other is allowed. Returns the number of instructions. */
static uint32_t write_program(const struct ll_filter *filter, struct bpf_insn program[PROGRAM_MAX])
{
	struct bpf_insn *next = program + BEGIN;
	memcpy(program, program_begin, sizeof program_begin);
	for (size_t i = 0; i < filter->major_count; i++) {
		*next++ = (struct bpf_insn){SKIP_UNLESS, MAJOR, 0, OF_MAJOR - 1, (int32_t)filter->majors[i]};
		*next++ = (struct bpf_insn){MOVE | BPF_K, BPF_REG_0, 0, 0, 0};
		*next++ = leave;
	}
	*next++ = leave;
	return (uint32_t)(next - program);
}

static int read_info(int fd, struct bpf_prog_info *ret_info)
{
	union bpf_attr attr = no_attr;
	memset(ret_info, 0, sizeof *ret_info);
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof *ret_info;
	attr.info.info = (uintptr_t)ret_info;
	return call_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

int ll_filter_load(struct ll_filter *filter, struct ll_err *err)
{
	struct ll_filter now = {0};
	struct bpf_insn program[PROGRAM_MAX];
	struct bpf_prog_info info;
	union bpf_attr attr = no_attr;
	read_majors(&now);
	if (filter->id && now.major_count == filter->major_count &&
	    memcmp(now.majors, filter->majors, sizeof now.majors) == 0)
		return 0;
	attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	attr.insns = (uintptr_t)program;
	attr.insn_cnt = write_program(&now, program);
	attr.license = (uintptr_t) "Apache-2.0";
	memcpy(attr.prog_name, program_name, sizeof program_name);
	int fd = call_bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0)
		return ll_err_set(err, fd, "BPF program for the devices of control groups: %s", strerror(-fd));
	int rc = read_info(fd, &info);
	if (rc < 0) {
		close(fd);
		return ll_err_set(err, rc, "BPF program: %s", strerror(-rc));
	}
	if (filter->id)
		close(filter->fd);
	*filter = now;
	filter->fd = fd;
	filter->id = info.id;
	return 0;
}

/* ---- at a group ---- */

static int change_group(enum bpf_cmd command, int group_fd, int program_fd)
{
	union bpf_attr attr = no_attr;
	attr.target_fd = (uint32_t)group_fd;
	attr.attach_bpf_fd = (uint32_t)program_fd;
	attr.attach_type = BPF_CGROUP_DEVICE;
	attr.attach_flags = command == BPF_PROG_ATTACH ? BPF_F_ALLOW_MULTI : 0;
	return call_bpf(command, &attr);
}

/* Opens the program if it is of this kind; -ENOENT: it is another, or is gone. */
static int open_own(uint32_t id)
{
	struct bpf_prog_info info;
	union bpf_attr attr = no_attr;
	attr.prog_id = id;
	int fd = call_bpf(BPF_PROG_GET_FD_BY_ID, &attr);
	if (fd < 0)
		return fd;
	if (read_info(fd, &info) < 0 || memcmp(info.name, program_name, sizeof program_name) != 0) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

/* Returns how many programs of this kind the group itself has, or -errno. detaches: those but the one with the id
 * `kept` are detached. *ret_has_kept: it is there. */
static int look_at_group(int group_fd, uint32_t kept, bool detaches, bool *ret_has_kept)
{
	uint32_t ids[PROGRAMS_MAX];
	union bpf_attr attr = no_attr;
	attr.query.target_fd = (uint32_t)group_fd;
	attr.query.attach_type = BPF_CGROUP_DEVICE;
	attr.query.prog_ids = (uintptr_t)ids;
	attr.query.prog_cnt = PROGRAMS_MAX;
	int rc = call_bpf(BPF_PROG_QUERY, &attr), found = 0;
	*ret_has_kept = false;
	for (uint32_t i = 0; rc >= 0 && i < attr.query.prog_cnt; i++) {
		int fd = open_own(ids[i]);
		if (fd == -EPERM)
			return fd;
		if (fd < 0)
			continue;
		found++;
		*ret_has_kept |= ids[i] == kept;
		if (detaches && ids[i] != kept)
			rc = change_group(BPF_PROG_DETACH, group_fd, fd);
		rc = rc == -ENOENT ? 0 : rc;
		close(fd);
	}
	return rc < 0 ? rc : found;
}

/* The new one comes before the old one goes, so that the group is never open. */
int ll_filter_attach(const struct ll_filter *filter, int group_fd)
{
	bool is_there;
	int rc = look_at_group(group_fd, filter->id, false, &is_there);
	if (rc >= 0 && !is_there)
		rc = change_group(BPF_PROG_ATTACH, group_fd, filter->fd);
	if (rc >= 0)
		rc = look_at_group(group_fd, filter->id, true, &is_there);
	return rc < 0 ? rc : 0;
}

int ll_filter_detach(int group_fd)
{
	bool is_there;
	int rc = look_at_group(group_fd, 0, true, &is_there);
	return rc < 0 ? rc : 0;
}

int ll_filter_is_attached(int group_fd)
{
	bool is_there;
	int rc = look_at_group(group_fd, 0, false, &is_there);
	return rc < 0 ? rc : rc > 0;
}
