/* Code that goes: what a trace remembers of its kernels goes first. */
#include "shim/interpose/hook.h"
#include "shim/trace/trace.h"
#include "shim/trace/trace_names.h"

LL_HOOK_EXPORT ll_cu_result cuModuleUnload(struct ll_cu_module *module)
{
	if (ll_trace_is_by_events())
		ll_trace_names_forget();
	return ll_real()->cuModuleUnload(module);
}

LL_HOOK_EXPORT ll_cu_result cuLibraryUnload(struct ll_cu_library *library)
{
	if (ll_trace_is_by_events())
		ll_trace_names_forget();
	return ll_real()->cuLibraryUnload(library);
}
