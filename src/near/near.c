#include "near/near.h"

#include <errno.h>
#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

struct sets {
	hwloc_topology_t topology;
	hwloc_bitmap_t cpus, allowed, nodes;
};

static void fini_sets(struct sets *sets)
{
	hwloc_bitmap_free(sets->cpus);
	hwloc_bitmap_free(sets->allowed);
	hwloc_bitmap_free(sets->nodes);
	if (sets->topology)
		hwloc_topology_destroy(sets->topology);
}

static int load_topology(struct sets *sets, struct ll_err *err)
{
	*sets = (struct sets){NULL, hwloc_bitmap_alloc(), hwloc_bitmap_alloc(), hwloc_bitmap_alloc()};
	if (!sets->cpus || !sets->allowed || !sets->nodes || hwloc_topology_init(&sets->topology) < 0) {
		sets->topology = NULL;
		return ll_err_set(err, -ENOMEM, "topology: %s", strerror(ENOMEM));
	}
	if (hwloc_topology_set_io_types_filter(sets->topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) < 0 ||
	    hwloc_topology_load(sets->topology) < 0)
		return ll_err_set(err, -errno, "topology: %s", strerror(errno));
	if (hwloc_get_cpubind(sets->topology, sets->allowed, HWLOC_CPUBIND_PROCESS) < 0)
		return ll_err_set(err, -errno, "allowed CPUs: %s", strerror(errno));
	return 0;
}

static int add_device(struct sets *sets, const char *device, struct ll_err *err)
{
	hwloc_obj_t found = hwloc_get_pcidev_by_busidstring(sets->topology, device);
	hwloc_obj_t place = found ? hwloc_get_non_io_ancestor_obj(sets->topology, found) : NULL;
	if (!place)
		return ll_err_set(err, -ENODEV, "the topology of this machine has no PCI device %.40s", device);
	hwloc_bitmap_or(sets->cpus, sets->cpus, place->cpuset);
	hwloc_bitmap_or(sets->nodes, sets->nodes, place->nodeset);
	return 0;
}

static int bind_process(struct sets *sets, int pid, struct ll_near *ret_near, struct ll_err *err)
{
	struct ll_near near = {"", ""};
	hwloc_bitmap_and(sets->cpus, sets->cpus, sets->allowed);
	hwloc_bitmap_and(sets->nodes, sets->nodes, hwloc_topology_get_allowed_nodeset(sets->topology));
	if (hwloc_bitmap_iszero(sets->cpus))
		return ll_err_set(err, -ENOENT, "none of the CPUs near the cards is allowed here");
	if (!hwloc_bitmap_isequal(sets->cpus, sets->allowed)) {
		if (hwloc_set_proc_cpubind(sets->topology, pid, sets->cpus, HWLOC_CPUBIND_PROCESS) < 0)
			return ll_err_set(err, -errno, "bind to CPUs: %s", strerror(errno));
		hwloc_bitmap_list_snprintf(near.cpus, sizeof near.cpus, sets->cpus);
		hwloc_bitmap_list_snprintf(near.nodes, sizeof near.nodes, sets->nodes);
	}
	*ret_near = near;
	return 0;
}

int ll_near_bind(int pid, char *const *devices, size_t count, struct ll_near *ret_near, struct ll_err *err)
{
	struct sets sets;
	int rc = load_topology(&sets, err);
	for (size_t i = 0; i < count && !rc; i++)
		rc = add_device(&sets, devices[i], err);
	if (!rc)
		rc = bind_process(&sets, pid, ret_near, err);
	fini_sets(&sets);
	return rc;
}
