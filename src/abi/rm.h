/*
 * rm.h - what libcuda asks of NVIDIA's kernel driver (its resource manager) by ioctl on /dev/nvidiactl, as far as
 * Loadline reads or asks it too: a process's channel groups, their time slices, taking them off the card, and the trace
 * of context switches.
 *
 * The names, numbers and layouts are those of the open kernel module 580 (nvos.h, nv-ioctl-numbers.h, alloc_channel.h,
 * ctrla06c.h, ctrl2080fifo.h, ctrl2080gpu.h, ctrl2080gr.h, cl90cd.h). doc/facts.md says what the calls do on a card.
 */
#ifndef LOADLINE_ABI_RM_H
#define LOADLINE_ABI_RM_H

#include <linux/ioctl.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LL_RM_IOCTL_TYPE = 'F',
	LL_RM_ESC_FREE = 0x29,
	LL_RM_ESC_CONTROL = 0x2a,
	LL_RM_ESC_ALLOC = 0x2b,
	LL_RM_ESC_MAP_MEMORY = 0x4e,
	LL_RM_ESC_REGISTER_FD = 201,
	LL_RM_ESC_XFER = 211, /* another request in a struct ll_rm_xfer, for large ones */
};

enum {
	LL_RM_CLASS_ROOT = 0x41,
	LL_RM_CLASS_DEVICE = 0x80,
	LL_RM_CLASS_SUBDEVICE = 0x2080,
	LL_RM_CLASS_EVENT_BUFFER = 0x90cd,
	LL_RM_CLASS_READ_ONLY_MEMORY = 0x90ce,
	LL_RM_CLASS_CHANNEL_GROUP = 0xa06c,
	LL_RM_CLASS_CHANNEL_SUFFIX = 0x6f, /* the low byte of every generation's class of channels */
};

enum { LL_RM_ENGINE_COMPUTE = 1 };

/* Commands of a control request. A macro, because an enumerator is an int. */
#define LL_RM_CONTROL_SET_SLICE UINT32_C(0xa06c0103)
#define LL_RM_CONTROL_GET_SLICE UINT32_C(0xa06c0104)
#define LL_RM_CONTROL_PREEMPT UINT32_C(0xa06c0105)
#define LL_RM_CONTROL_DISABLE_CHANNELS UINT32_C(0x2080110b)
#define LL_RM_CONTROL_GET_UUID UINT32_C(0x2080014a)
#define LL_RM_CONTROL_BIND_SWITCHES UINT32_C(0x20801238) /* of context switches, to an event buffer */
#define LL_RM_CONTROL_ENABLE_EVENTS UINT32_C(0x90cd0101)
#define LL_RM_CONTROL_UPDATE_GET UINT32_C(0x90cd0102)
#define LL_RM_CONTROL_FLUSH UINT32_C(0x90cd0104)

/* Status of a call; 0: done. */
enum { LL_RM_NO_RIGHT = 0x23, LL_RM_BAD_CHANNEL = 0x21 };

struct ll_rm_alloc {
	uint32_t root, parent, object, class;
	uint64_t params, rights;
	uint32_t params_size, flags, status, unused;
};

/* The older form of the same request. */
struct ll_rm_alloc_short {
	uint32_t root, parent, object, class;
	uint64_t params;
	uint32_t params_size, status;
};

struct ll_rm_free {
	uint32_t root, parent, object, status;
};

struct ll_rm_control {
	uint32_t client, object, command, flags;
	uint64_t params;
	uint32_t params_size, status;
};

struct ll_rm_xfer {
	uint32_t request, size;
	uint64_t argument;
};

/* The beginning of the parameters of a channel group. */
struct ll_rm_group_params {
	uint32_t error, ecc_error, address_space, engine;
};

/* Of the parameters of a channel: where the driver writes the number that its records of context switches have. */
enum { LL_RM_CHANNEL_CID_OFFSET = 132 };

struct ll_rm_preempt {
	uint8_t waits, has_timeout;
	uint32_t timeout_us;
};

enum { LL_RM_DISABLE_MAX = 64 };

struct ll_rm_disable {
	uint8_t is_off;
	uint32_t count;
	uint8_t only_scheduling, rewinds;
	uint64_t event;
	uint32_t clients[LL_RM_DISABLE_MAX], channels[LL_RM_DISABLE_MAX];
};

struct ll_rm_uuid {
	uint32_t index, flags, length; /* flags 0: as text, "GPU-..." */
	uint8_t data[256];
};

_Static_assert(sizeof(struct ll_rm_alloc) == 48, "as the driver has it");
_Static_assert(sizeof(struct ll_rm_alloc_short) == 32, "as the driver has it");
_Static_assert(sizeof(struct ll_rm_control) == 32, "as the driver has it");
_Static_assert(sizeof(struct ll_rm_disable) == 536, "as the driver has it");

#define LL_RM_REQUEST(number, type) _IOWR(LL_RM_IOCTL_TYPE, number, type)

#endif
