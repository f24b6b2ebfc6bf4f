/* Memsets of the card's memory are kernels of the driver. */
#include "abi/cuda_launch.h"
#include "shim/hooks/launch.h"
#include "shim/interpose/hook.h"

#define MEMSET(symbol, elements, bits) ll_launch_named(symbol, LL_TRACE_MEMSET, (uint64_t)(elements) * ((bits) / 8))

#define MEMSET_HOOKS(bits, value_type)                                                                                 \
	LL_LAUNCH_HOOKS_OF_KIND(cuMemsetD##bits##_v2, _ptds, LL_LAUNCH_DEFAULT_STREAM,                                 \
				MEMSET("cuMemsetD" #bits "_v2", count, bits),                                          \
				(ll_cu_deviceptr to, value_type value, size_t count), (to, value, count))              \
	LL_LAUNCH_HOOKS_OF_KIND(cuMemsetD##bits##Async, _ptsz, stream, MEMSET("cuMemsetD" #bits "Async", count, bits), \
				(ll_cu_deviceptr to, value_type value, size_t count, struct ll_cu_stream * stream),    \
				(to, value, count, stream))                                                            \
	LL_LAUNCH_HOOKS_OF_KIND(                                                                                       \
	    cuMemsetD2D##bits##_v2, _ptds, LL_LAUNCH_DEFAULT_STREAM,                                                   \
	    MEMSET("cuMemsetD2D" #bits "_v2", width *height, bits),                                                    \
	    (ll_cu_deviceptr to, size_t pitch_bytes, value_type value, size_t width, size_t height),                   \
	    (to, pitch_bytes, value, width, height))                                                                   \
	LL_LAUNCH_HOOKS_OF_KIND(cuMemsetD2D##bits##Async, _ptsz, stream,                                               \
				MEMSET("cuMemsetD2D" #bits "Async", width *height, bits),                              \
				(ll_cu_deviceptr to, size_t pitch_bytes, value_type value, size_t width,               \
				 size_t height, struct ll_cu_stream * stream),                                         \
				(to, pitch_bytes, value, width, height, stream))

MEMSET_HOOKS(8, unsigned char)
MEMSET_HOOKS(16, unsigned short)
MEMSET_HOOKS(32, unsigned int)
