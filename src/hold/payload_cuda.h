/*
 * payload_cuda.h - what must be set before CUDA is first opened in a process: a worker, or the doctor.
 */
#ifndef LOADLINE_HOLD_PAYLOAD_CUDA_H
#define LOADLINE_HOLD_PAYLOAD_CUDA_H

#include <stdbool.h>

/*
 * Sets this process's environment for MPS: as a client at 1 % of the SMs, or kept out of MPS, so that a running server
 * does not swallow the load's sense of lateness. libcuda reads it once, in cuInit. Call before any thread starts.
 */
void ll_payload_cuda_prepare(bool as_mps_client);

#endif
