/*
 * inject.h - CUDA_INJECTION64_PATH: cuInit loads this library and calls its InitializeInjection, once in a process,
 * without the library's lock. A library that cannot be loaded is ignored, as by the real driver.
 */
#ifndef LOADLINE_SIM_CUDA_INJECT_H
#define LOADLINE_SIM_CUDA_INJECT_H

void sim_inject(void);

#endif
