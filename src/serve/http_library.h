/*
 * http_library.h - libmicrohttpd, opened when a server starts.
 *
 * It brings GnuTLS and ten further libraries with it. `loadline run` becomes the user's command with none of them
 * loaded: under a preloaded AddressSanitizer they hang before main, and each start would take longer.
 */
#ifndef LOADLINE_SERVE_HTTP_LIBRARY_H
#define LOADLINE_SERVE_HTTP_LIBRARY_H

#include <microhttpd.h>

struct ll_err;

#define LL_MICROHTTPD_FUNCTIONS(FUNCTION)                                                                              \
	FUNCTION(MHD_start_daemon)                                                                                     \
	FUNCTION(MHD_stop_daemon)                                                                                      \
	FUNCTION(MHD_create_response_from_buffer)                                                                      \
	FUNCTION(MHD_add_response_header)                                                                              \
	FUNCTION(MHD_queue_response)                                                                                   \
	FUNCTION(MHD_destroy_response)

#define LL_MICROHTTPD_MEMBER(symbol) __typeof__(&(symbol)) symbol;

struct ll_microhttpd {
	LL_MICROHTTPD_FUNCTIONS(LL_MICROHTTPD_MEMBER)
};

/* Gives the functions. The library stays open until the program ends. -ENOENT: it is not installed. */
int ll_microhttpd_open(const struct ll_microhttpd **ret_functions, struct ll_err *err);

#endif
