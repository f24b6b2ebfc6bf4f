#!/usr/bin/env python3
"""Prints the bytes of card 0's memory, as CUDA says."""
import ctypes

import driver

driver.call("cuInit", 0)
device, count = ctypes.c_int(), ctypes.c_size_t()
driver.call("cuDeviceGet", ctypes.byref(device), 0)
driver.call("cuDeviceTotalMem_v2", ctypes.byref(count), device)
print(count.value)
