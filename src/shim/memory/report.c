#include "shim/memory/report.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fork.h"
#include "shim/device_state.h"
#include "shim/interpose/device_uuid.h"

enum { CARDS = 64 };
#define RETRY_NS (1000 * LL_NS_PER_MS)

/* The cards for which this process has no device state. Their ports stay open. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ll_fork_item fork_item;
static struct opened {
	char uuid[96];
	struct ll_port *port;
} opened[CARDS];
static uint64_t retry_ns; /* loadlined did not reply; before this time the library does not ask again */

static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&lock, NULL);
	memset(opened, 0, sizeof opened);
	retry_ns = 0;
}

static void register_fork(void)
{
	fork_item.in_child = forget_in_child;
	ll_fork_add(&fork_item);
}

/* Returns the port of the card; NULL: loadlined does not reply, or no entry is free. The lock is held. */
static struct ll_port *open_port(const char *uuid)
{
	size_t i = 0;
	while (i < CARDS && opened[i].port && strcmp(opened[i].uuid, uuid) != 0)
		i++;
	if (i == CARDS)
		return NULL;
	if (!opened[i].port && ll_now_ns() < retry_ns)
		return NULL;
	if (!opened[i].port && ll_port_open(ll_device_state_settings(), uuid, false, &opened[i].port, NULL) < 0) {
		retry_ns = ll_now_ns() + RETRY_NS;
		return NULL;
	}
	snprintf(opened[i].uuid, sizeof opened[i].uuid, "%s", uuid);
	return opened[i].port;
}

static struct ll_device_state *dev_on(const char *uuid)
{
	for (ll_cu_device device = 0; device < CARDS; device++) {
		struct ll_device_state *dev = ll_device_state_of(device);
		if (dev && strcmp(dev->uuid, uuid) == 0)
			return dev;
	}
	return NULL;
}

static struct ll_port *port_of(const char *uuid)
{
	const struct ll_device_state *dev = dev_on(uuid);
	if (dev)
		return dev->port;
	pthread_once(&once, register_fork);
	pthread_mutex_lock(&lock);
	struct ll_port *port = open_port(uuid);
	pthread_mutex_unlock(&lock);
	return port;
}

static bool report_dev(const struct ll_device_state *dev, struct ll_report *ret_report)
{
	struct ll_memory_view view;
	ll_port_read_memory(dev->claim, &view);
	*ret_report = (struct ll_report){.limit_bytes = view.limit_bytes, .used_bytes = view.used_bytes};
	return view.limit_bytes != 0;
}

bool ll_report_device(ll_cu_device device, struct ll_report *ret_report)
{
	char uuid[96];
	const struct ll_device_state *dev = ll_device_state_of(device);
	if (dev)
		return report_dev(dev, ret_report);
	if (ll_device_uuid(device, uuid, sizeof uuid))
		return ll_report_card(uuid, ret_report);
	*ret_report = (struct ll_report){.limit_bytes = ll_device_state_settings()->memory_limit_bytes};
	return ret_report->limit_bytes != 0; /* the driver does not report the card's UUID */
}

bool ll_report_card(const char *uuid, struct ll_report *ret_report)
{
	const struct ll_device_state *dev = dev_on(uuid);
	if (dev)
		return report_dev(dev, ret_report);
	struct ll_memory_view view = {.limit_bytes = ll_device_state_settings()->memory_limit_bytes};
	struct ll_port *port = port_of(uuid);
	if (port)
		ll_port_read_job(port, &view);
	*ret_report = (struct ll_report){.limit_bytes = view.limit_bytes, .used_bytes = view.used_bytes};
	return view.limit_bytes != 0;
}

uint64_t ll_report_left(const struct ll_report *report)
{
	return report->used_bytes < report->limit_bytes ? report->limit_bytes - report->used_bytes : 0;
}

size_t ll_report_processes(const char *uuid, struct ll_port_process *processes, size_t capacity)
{
	struct ll_port *port = port_of(uuid);
	return port ? ll_port_list_processes(port, processes, capacity) : 0;
}
