/*
 * claims.h - loadline-kubelet as a driver of Dynamic Resource Allocation (doc/dra.md): each card is a device of which
 * claims take any size, published as a ResourceSlice; the kubelet has a claim prepared before a pod that uses it.
 *
 * What is offered is the description that `loadline cdi generate` makes of the entries with `claims: true`. A claim
 * that is prepared is a description too, beside that one, in which each request of the claim is a device of containers
 * with its limits. There is no other record: a driver that is started again reads them.
 */
#ifndef LOADLINE_KUBELET_CLAIMS_H
#define LOADLINE_KUBELET_CLAIMS_H

#include "kubelet/plugin.h"
#include "protocol/message_header.h"

#define LL_KUBELET_DRIVER "gpu.loadline.dev"

enum { LL_KUBELET_NAME_SIZE = 254, LL_KUBELET_REQUEST_SIZE = 128, LL_KUBELET_RESULTS = 32, LL_KUBELET_PATH_SIZE = 512 };

/* ---- the API server ---- */

struct ll_kubelet_api {
	const char *url;     /* "https://10.0.0.1:443" */
	const char *account; /* folder with the files token and ca.crt, which are read for each call */
	void *curl;          /* the handle, with its connection; made by the first call */
};

/* Waits for the reply, at most 10 s. body: NULL: none. On success *ret_status is HTTP's and *ret_reply a reference, or
 * NULL if the reply is no JSON. Errors: no reply. */
int ll_kubelet_api_call(struct ll_kubelet_api *api, const char *method, const char *path, const json_t *body,
			long *ret_status, json_t **ret_reply, struct ll_err *err);
void ll_kubelet_api_fini(struct ll_kubelet_api *api);

/* Sets err to what the API server says of a call that it refused; returns -EREMOTEIO. */
int ll_kubelet_api_refused(const char *what, long status, const json_t *reply, struct ll_err *err);

/* ---- claims ---- */

/* What one request of a claim has, of each of its cards. */
struct ll_kubelet_part {
	char request[LL_KUBELET_REQUEST_SIZE]; /* "main", or "main/smaller" of a list of alternatives */
	uint64_t memory_bytes;
	uint64_t compute_milli; /* thousandths of a percent */
	const struct ll_kubelet_cut *cards[LL_KUBELET_RESULTS];
	size_t count;
};

struct ll_kubelet_claim {
	struct ll_kubelet_part parts[LL_KUBELET_RESULTS];
	size_t count;
};

/* A quantity of Kubernetes, such as "13Gi", "1500m" or "12e3", in thousandths, rounded up. -EINVAL: it is none, or is
 * negative, or above 2^64 thousandths. */
int ll_kubelet_quantity_read(const char *text, uint64_t *ret_milli);

/* The name of a card as a device: its UUID in small letters. */
void ll_kubelet_device_name(const struct ll_kubelet_cut *card, char ret_name[LL_CARD_UUID_SIZE]);

/* How much of the card claims may have. */
int ll_kubelet_capacity(const struct ll_kubelet_cuts *cuts, const struct ll_kubelet_cut *card, uint64_t *ret_bytes,
			uint64_t *ret_milli, struct ll_err *err);

/* What a device of a description has, in the words of its hook. */
int ll_kubelet_device_limits(const json_t *device, uint64_t *ret_bytes, uint64_t *ret_milli, struct ll_err *err);

/*
 * Reads what a ResourceClaim was given of this driver's devices. uid: that the kubelet tells; pool: this node's.
 * -ESTALE: it is another claim of that name. -ENOENT: it is not allocated, or not by this driver. -ENODEV: this node
 * has no such device. -EINVAL: it has what this driver does not give.
 */
int ll_kubelet_claim_read(struct ll_kubelet_claim *ret_claim, const json_t *object, const char *uid, const char *pool,
			  const struct ll_kubelet_cuts *cuts, struct ll_err *err);

/* The description of the claim's devices, "UID:REQUEST". folder: where it will be. NULL: out of memory. */
json_t *ll_kubelet_claim_describe(const struct ll_kubelet_claim *claim, const char *uid, const char *folder,
				  const struct ll_kubelet_cuts *cuts);

/* ---- the driver ---- */

struct ll_kubelet_driver {
	struct ll_kubelet_api api;
	char node[LL_KUBELET_NAME_SIZE];
	char folder[LL_KUBELET_PATH_SIZE];  /* of the descriptions */
	char kubelet[LL_KUBELET_PATH_SIZE]; /* the kubelet's folder */
	json_t *owner;                      /* the node, as an owner of objects; NULL: not yet known */
	json_t *wanted, *stored; /* the devices that were last written, and what the API server made of them */
	uint64_t publish_ns;     /* when the slice is looked at again */
	char said[400];          /* the last error */
	bool has_told;           /* that the API server keeps no capacities */
};

/* The driver's two sockets in the kubelet's folder, the service and its registration. */
extern const struct ll_kubelet_socket ll_kubelet_driver_sockets[];

/* The path of the folder of the service's socket below the kubelet's. */
#define LL_KUBELET_DRIVER_FOLDER "plugins/" LL_KUBELET_DRIVER

/* Writes the ResourceSlice of this node if the cards are not what it says, or if it is gone. It looks each 30 s, after
 * each registration, and when a card serves or does not serve any more. Errors are said, and tried again. */
void ll_kubelet_driver_publish(struct ll_kubelet_driver *driver, struct ll_kubelet_cuts *cuts);
void ll_kubelet_driver_fini(struct ll_kubelet_driver *driver);

#endif
