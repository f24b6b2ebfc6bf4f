#include "fence/filter.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"

/* By this name programs of an earlier process are known. */
static const char program_name[BPF_OBJ_NAME_LEN] = "loadline_fence";

enum { PROGRAMS_MAX = 64, INSTRUCTIONS_MAX = 16 + LL_FENCE_MAJORS };

static int call_bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	long rc = syscall(SYS_bpf, command, attr, sizeof *attr);
	return rc < 0 ? -errno : (int)rc;
}

/* ---- the program ---- */

static struct bpf_insn load_field(uint8_t to, size_t offset)
{
	return (struct bpf_insn){
	    .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = to & 0xfU, .src_reg = BPF_REG_1, .off = (int16_t)offset};
}

static struct bpf_insn set_register(uint8_t to, int32_t value)
{
	return (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = to & 0xfU, .imm = value};
}

static struct bpf_insn change_register(uint8_t operation, uint8_t to, int32_t value)
{
	return (struct bpf_insn){.code = (uint8_t)(BPF_ALU64 | operation | BPF_K), .dst_reg = to & 0xfU, .imm = value};
}

/* by: how many instructions are left out. */
static struct bpf_insn jump_if(uint8_t condition, uint8_t of, int32_t value, int16_t by)
{
	return (struct bpf_insn){
	    .code = (uint8_t)(BPF_JMP | condition | BPF_K), .dst_reg = of & 0xfU, .off = by, .imm = value};
}

static const struct bpf_insn leave = {.code = BPF_JMP | BPF_EXIT};

/*
 * access_type has the access in its upper 16 bits, and the type of the device in the lower ones. The program returns 0
 * to deny: for a character device of one of the majors that is to be read or written.
 */
static size_t write_program(const struct ll_fence_majors *majors, struct bpf_insn program[INSTRUCTIONS_MAX])
{
	size_t count = 0;
	const int16_t tests = (int16_t)majors->count;
	program[count++] = load_field(BPF_REG_2, offsetof(struct bpf_cgroup_dev_ctx, access_type));
	program[count++] = load_field(BPF_REG_4, offsetof(struct bpf_cgroup_dev_ctx, major));
	program[count++] =
	    (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_3, .src_reg = BPF_REG_2};
	program[count++] = change_register(BPF_AND, BPF_REG_3, UINT16_MAX);
	program[count++] = jump_if(BPF_JNE, BPF_REG_3, BPF_DEVCG_DEV_CHAR, (int16_t)(3 + tests)); /* allow */
	program[count++] = change_register(BPF_RSH, BPF_REG_2, 16);
	program[count++] = change_register(BPF_AND, BPF_REG_2, BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE);
	program[count++] = jump_if(BPF_JEQ, BPF_REG_2, 0, tests); /* allow */
	for (size_t i = 0; i < majors->count; i++)
		program[count++] = jump_if(BPF_JEQ, BPF_REG_4, (int32_t)majors->items[i],
					   (int16_t)(majors->count - 1 - i + 2)); /* deny */
	program[count++] = set_register(BPF_REG_0, 1);                            /* allow: */
	program[count++] = leave;
	program[count++] = set_register(BPF_REG_0, 0); /* deny: */
	program[count++] = leave;
	return count;
}

static int read_info(int fd, struct bpf_prog_info *ret_info)
{
	union bpf_attr attr;
	memset(&attr, 0, sizeof attr);
	memset(ret_info, 0, sizeof *ret_info);
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof *ret_info;
	attr.info.info = (uintptr_t)ret_info;
	return call_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

int ll_fence_filter_load(struct ll_fence_filter *filter, const struct ll_fence_majors *majors, struct ll_err *err)
{
	struct bpf_insn program[INSTRUCTIONS_MAX];
	struct bpf_prog_info info;
	union bpf_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	attr.insns = (uintptr_t)program;
	attr.insn_cnt = (uint32_t)write_program(majors, program);
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
	*filter = (struct ll_fence_filter){.fd = fd, .id = info.id};
	return 0;
}

void ll_fence_filter_close(struct ll_fence_filter *filter)
{
	if (filter->fd >= 0)
		close(filter->fd);
	filter->fd = -1;
}

/* ---- at a group ---- */

static int list_programs(int group_fd, uint32_t ids[PROGRAMS_MAX])
{
	union bpf_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.query.target_fd = (uint32_t)group_fd;
	attr.query.attach_type = BPF_CGROUP_DEVICE;
	attr.query.prog_ids = (uintptr_t)ids;
	attr.query.prog_cnt = PROGRAMS_MAX;
	int rc = call_bpf(BPF_PROG_QUERY, &attr);
	return rc < 0 ? rc : (int)attr.query.prog_cnt;
}

/* Opens the program if it is of this kind; -ENOENT: it is another, or is gone. */
static int open_own(uint32_t id)
{
	struct bpf_prog_info info;
	union bpf_attr attr;
	memset(&attr, 0, sizeof attr);
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

static int change_group(enum bpf_cmd command, int group_fd, int program_fd)
{
	union bpf_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.target_fd = (uint32_t)group_fd;
	attr.attach_bpf_fd = (uint32_t)program_fd;
	attr.attach_type = BPF_CGROUP_DEVICE;
	attr.attach_flags = command == BPF_PROG_ATTACH ? BPF_F_ALLOW_MULTI : 0;
	return call_bpf(command, &attr);
}

/* Detaches those of this kind but the one with the id `kept`. */
static int detach_others(int group_fd, uint32_t kept)
{
	uint32_t ids[PROGRAMS_MAX];
	int count = list_programs(group_fd, ids), detached = 0;
	for (int i = 0; i < count; i++) {
		int fd = ids[i] == kept ? -ENOENT : open_own(ids[i]);
		if (fd == -EPERM)
			return fd;
		if (fd < 0)
			continue;
		int rc = change_group(BPF_PROG_DETACH, group_fd, fd);
		close(fd);
		if (rc < 0 && rc != -ENOENT)
			return rc;
		detached++;
	}
	return count < 0 ? count : detached;
}

static bool has_id(int group_fd, uint32_t id)
{
	uint32_t ids[PROGRAMS_MAX];
	int count = list_programs(group_fd, ids);
	for (int i = 0; i < count; i++) {
		if (ids[i] == id)
			return true;
	}
	return false;
}

/* The new one comes before the old one goes, so that the group is never open. */
int ll_fence_filter_attach(const struct ll_fence_filter *filter, int group_fd)
{
	int rc = has_id(group_fd, filter->id) ? 0 : change_group(BPF_PROG_ATTACH, group_fd, filter->fd);
	if (rc >= 0)
		rc = detach_others(group_fd, filter->id);
	return rc < 0 ? rc : 0;
}

int ll_fence_filter_detach(int group_fd)
{
	return detach_others(group_fd, 0);
}

int ll_fence_filter_is_attached(int group_fd)
{
	uint32_t ids[PROGRAMS_MAX];
	int count = list_programs(group_fd, ids);
	for (int i = 0; i < count; i++) {
		int fd = open_own(ids[i]);
		if (fd == -EPERM)
			return fd;
		if (fd < 0)
			continue;
		close(fd);
		return 1;
	}
	return count < 0 ? count : 0;
}
