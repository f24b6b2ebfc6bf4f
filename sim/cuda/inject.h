/*
 * inject.h - CUDA_INJECTION64_PATH: a library that cuInit loads and whose InitializeInjection it calls, once in a
 * process, without the library's lock. One that cannot be loaded is passed over, as by the real driver.
 */
#ifndef LOADLINE_SIM_CUDA_INJECT_H
#define LOADLINE_SIM_CUDA_INJECT_H

void sim_inject(void);

#endif
