/*
 * plugin.h - what loadline-kubelet is made of: the cuts of cards that it offers, its answers, and the service by which
 * the kubelet asks (doc/kubernetes.md).
 *
 * `loadline cdi generate` makes the cuts out of the configuration and describes them as devices of containers
 * (cli/cdi/cdi.h). This program reads that description and nothing else of the configuration: what it offers is what
 * the runtime of containers knows. A device's name there is its ID for the kubelet. One thread runs all of it.
 */
#ifndef LOADLINE_KUBELET_PLUGIN_H
#define LOADLINE_KUBELET_PLUGIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "protocol/place.h"

struct ll_err;
struct ll_kubelet_driver;

/* ---- cuts ---- */

/* A part of a card, or a whole card, that one container has at a time. The texts are those of the description. */
struct ll_kubelet_cut {
	const char *id;       /* "GPU-8f6a….half.1" */
	const char *uuid;     /* of the card */
	const char *resource; /* "loadline.dev/half" */
	bool is_part;         /* a container has no other cut beside it */
	bool is_healthy;
	int32_t numa_node; /* -1: unknown */
};

struct ll_kubelet_cuts {
	json_t *description;
	struct ll_kubelet_cut *items; /* those of a resource follow each other */
	size_t count;
	struct ll_place place;            /* of loadlined */
	struct ll_kubelet_driver *driver; /* of claims (claims.h), for its answers; NULL: these are sizes */
	uint64_t looked_ns;               /* when loadlined last answered; 0: never */
	bool has_news;                    /* a cut is not what it was when this was last cleared */
};

/* Reads the description, in which there may be none. kind: of its devices. No file: there are none. Errors: it cannot
 * be read, or is none of `loadline cdi generate`. The caller calls ll_kubelet_cuts_fini in each case. */
int ll_kubelet_cuts_read(struct ll_kubelet_cuts *ret_cuts, const char *path, const char *kind,
			 const struct ll_place *place, struct ll_err *err);
void ll_kubelet_cuts_fini(struct ll_kubelet_cuts *cuts);

/* The value behind a word of the device's hook; NULL: it is not there. */
const char *ll_kubelet_device_word(const json_t *device, const char *word);

/* Returns NULL if the resource has no such cut. */
const struct ll_kubelet_cut *ll_kubelet_cuts_find(const struct ll_kubelet_cuts *cuts, const char *resource,
						  const char *id);

/*
 * Asks loadlined which cards serve: those that its sensor reports, that answer, and that are not drained. The cuts of
 * the others are not healthy. If there is no answer, the error says why, and the cuts stay as they are for
 * LL_SENSED_FRESH_NS, in which loadlined may be started anew; then none is healthy.
 */
int ll_kubelet_cuts_look(struct ll_kubelet_cuts *cuts, struct ll_err *err);

/* ---- answers ---- */

/* Read a request of that resource and add the reply, both as protobuf has them. An error's text is for the events of
 * the pod, which does not start. */
typedef int (*ll_kubelet_answer_fn)(struct ll_kubelet_cuts *cuts, const char *resource, const void *request,
				    size_t length, struct ll_strbuf *reply, struct ll_err *err);
int ll_kubelet_answer_options(struct ll_kubelet_cuts *cuts, const char *resource, const void *request, size_t length,
			      struct ll_strbuf *reply, struct ll_err *err);
int ll_kubelet_answer_prefer(struct ll_kubelet_cuts *cuts, const char *resource, const void *request, size_t length,
			     struct ll_strbuf *reply, struct ll_err *err);
int ll_kubelet_answer_allocate(struct ll_kubelet_cuts *cuts, const char *resource, const void *request, size_t length,
			       struct ll_strbuf *reply, struct ll_err *err);
int ll_kubelet_answer_start(struct ll_kubelet_cuts *cuts, const char *resource, const void *request, size_t length,
			    struct ll_strbuf *reply, struct ll_err *err);

/* Whether what a container mounts is there. Whether it is in force in it, the runtime asks (monitor/inside.c). */
int ll_kubelet_check_mounts(const struct ll_kubelet_cuts *cuts, struct ll_err *err);

/* The list of a resource's devices. */
void ll_kubelet_add_list(const struct ll_kubelet_cuts *cuts, const char *resource, struct ll_strbuf *reply);

/* The request by which a resource is registered. endpoint: the name of its socket. */
void ll_kubelet_add_registration(const char *resource, const char *endpoint, struct ll_strbuf *request);

/* ---- the service ---- */

struct ll_kubelet_method {
	const char *name;        /* "/SERVICE/METHOD" */
	ll_kubelet_answer_fn fn; /* NULL: the list, whose answer does not end */
};

/* At most two; the list ends with a path that is NULL. */
struct ll_kubelet_socket {
	const char *path; /* in the folder; the answers get it as the resource */
	const struct ll_kubelet_method *methods;
	size_t count;
};

struct ll_kubelet_service {
	struct ll_kubelet_cuts *cuts;
	const char *folder;                      /* the kubelet's, with kubelet.sock */
	const struct ll_kubelet_socket *sockets; /* NULL: a socket for each resource, which is registered there */
	bool (*on_tick)(void *data); /* called each second or more often. Returns whether the service goes on */
	void *data;
};

/*
 * Serves each resource at a socket of its own in the folder and registers it, until on_tick says otherwise, or until
 * the kubelet was started again, which removes the sockets; then the caller begins anew. -EAGAIN: a socket cannot be
 * made.
 */
int ll_kubelet_serve(const struct ll_kubelet_service *service, struct ll_err *err);

#endif
