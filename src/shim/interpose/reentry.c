#include "shim/interpose/reentry.h"

_Thread_local unsigned ll_reentry_depth __attribute__((tls_model("initial-exec")));
