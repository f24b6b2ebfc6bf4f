/*
 * cdi.h - containers: the devices that `loadline cdi generate` describes, and the hook by which a container that names
 * one becomes a job (doc/containers.md).
 *
 * A runtime of containers reads the descriptions (Container Device Interface, version 0.5.0), and does three things for
 * a container: it mounts the library, runs the hook `loadline cdi hook` outside before anything of the container runs,
 * and runs loadline-inside in it right before its program.
 */
#ifndef LOADLINE_CLI_CDI_CDI_H
#define LOADLINE_CLI_CDI_CDI_H

#include <jansson.h>

#include "cli/options/command.h"

extern const struct ll_command ll_cdi_generate_command, ll_cdi_hook_command;

/* The words of the hook's options in a description, which the first hook of a container reads. */
#define LL_CDI_TENANT "--tenant"
#define LL_CDI_CARDS "--cards"
/* The same of a size of Kubernetes. src/kubelet reads two of them too. */
#define LL_CDI_RESOURCE "--resource"
#define LL_CDI_MEMORY "--mem"
#define LL_CDI_COMPUTE "--compute"
#define LL_CDI_CLASS "--class"
#define LL_CDI_NAMESPACES "--namespaces"
#define LL_CDI_PROJECT "--project"

#define LL_CDI_HOLDER "--holder"

/* The kind of these devices is loadline.dev/cut; that of what claims take their sizes of loadline.dev/claims. */
#define LL_CDI_CUT "cut"
#define LL_CDI_CLAIMS "claims"

/* What the annotations of containers and pods begin with. */
#define LL_CDI_ANNOTATION "loadline.dev/"

/*
 * Adds the annotations of a pod that begin so. The runtime is asked for them by PodSandboxStatus of the Container
 * Runtime Interface, version 1, as it does not hand them on to containers. sandbox: the pod's id. Errors: no runtime
 * with a socket at one of the usual places knows the pod.
 */
int ll_cdi_read_pod(const char *sandbox, json_t *annotations, struct ll_err *err);

/* The program of a container that is governed, and where its files are. */
struct ll_cdi_container {
	const json_t *config; /* config.json of its bundle */
	const char *bundle;
	char name[16]; /* the beginning of its id; empty: it cannot be a job's name */
	pid_t pid;     /* of its first process, as the hook sees it */
};

/*
 * Looks whether the library will be in the container's program: the file that it names is looked up among the
 * container's files. -EPERM: nothing can be preloaded into it, or the image preloads something itself, which would be
 * hidden; err says which. A program with musl, and one that is not found, are none of our matter: 0. *ret_why: what is
 * to be said then, or NULL.
 */
int ll_cdi_check_program(const struct ll_cdi_container *container, const char **ret_why, struct ll_err *err);

#endif
