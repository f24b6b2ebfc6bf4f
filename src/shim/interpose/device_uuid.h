/*
 * device_uuid.h - gives the UUID of a card, as NVML and loadlined write it. The UUID is the card's permanent name.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_DEVICE_UUID_H
#define LOADLINE_SHIM_INTERPOSE_DEVICE_UUID_H

#include <stdbool.h>
#include <stddef.h>

#include "abi/cuda.h"

/* Writes the UUID of a card or of a MIG slice into ret_text. Returns false if there is no such card, or if cuInit was
 * not called. */
bool ll_device_uuid(ll_cu_device device, char *ret_text, size_t size);

/* The same, but returns the driver's result. */
ll_cu_result ll_device_find_uuid(ll_cu_device device, char *ret_text, size_t size);

#endif
