/*
 * local.h - the state of libnvidia-ml.so.1 in its process, and how its functions read the world.
 */
#ifndef LOADLINE_SIM_NVML_LOCAL_H
#define LOADLINE_SIM_NVML_LOCAL_H

#include "abi/nvml.h"
#include "card/world.h"

struct ll_nvml_device {
	uint32_t card;
};

/* A view of the world, which is locked from sim_nvml_open to sim_nvml_close. */
struct sim_nvml_view {
	struct sim_world *w;
	struct sim_card *card;
	uint32_t index;
	bool is_slice;
	uint32_t physical; /* the card itself, or the parent of a slice */
};

/* For functions without a card: checks injected faults, then whether nvmlInit was called. */
ll_nvml_result sim_nvml_enter(const char *function);
#define SIM_NVML_ENTER()                                                                                               \
	do {                                                                                                           \
		ll_nvml_result entered_ = sim_nvml_enter(__func__);                                                    \
		if (entered_)                                                                                          \
			return entered_;                                                                               \
	} while (0)

/* The same, then checks the handle and the card's health. On success the world is locked and brought up to now. */
ll_nvml_result sim_nvml_open(const char *function, struct ll_nvml_device *device, struct sim_nvml_view *ret_view);
void sim_nvml_close(const struct sim_nvml_view *view);

/* Opens a view of `device` or returns; `view` is closed when it goes out of scope. */
#define SIM_NVML_OPEN(view, device)                                                                                    \
	struct sim_nvml_view view __attribute__((cleanup(sim_nvml_close_view))) = {0};                                 \
	do {                                                                                                           \
		ll_nvml_result opened_ = sim_nvml_open(__func__, device, &view);                                       \
		if (opened_)                                                                                           \
			return opened_;                                                                                \
	} while (0)
static inline void sim_nvml_close_view(struct sim_nvml_view *view)
{
	if (view->w)
		sim_nvml_close(view);
}

struct sim_world *sim_nvml_world(void);
struct ll_nvml_device *sim_nvml_handle(uint32_t card);

#define SIM_EXPORT __attribute__((visibility("default")))
#define LL_NVML(ret, name, symbol, need, hook, params) SIM_EXPORT ret symbol params;
#include "abi/nvml.def"

#endif
