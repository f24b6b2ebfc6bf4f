/*
 * vulkan.h - whether Vulkan reaches a card, without making a device on it: an instance takes no GPU memory.
 */
#ifndef LOADLINE_CLI_DOCTOR_VULKAN_H
#define LOADLINE_CLI_DOCTOR_VULKAN_H

#include <stdint.h>

struct ll_err;

/* 0 when the loader, or NVIDIA's own library in its place, shows a device of this UUID. -ENODEV, with a hint. */
int ll_doctor_find_vulkan(const uint8_t uuid[16], struct ll_err *err);

#endif
