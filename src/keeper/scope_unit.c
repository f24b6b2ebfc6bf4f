#include "keeper/keeper.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "base/err.h"

/* systemd answers within some milliseconds; while it reloads its units, within a second. */
#define CALL_USEC UINT64_C(1500000)
enum { SLICE_SIZE = 48 };

static const char service[] = "org.freedesktop.systemd1", object[] = "/org/freedesktop/systemd1",
		  manager[] = "org.freedesktop.systemd1.Manager";

int ll_scope_bus_open(struct sd_bus **ret_bus)
{
	sd_bus *bus = NULL;
	int rc = sd_bus_open_system(&bus);
	if (rc < 0)
		return rc;
	sd_bus_set_method_call_timeout(bus, CALL_USEC);
	rc = sd_bus_call_method(bus, service, object, "org.freedesktop.DBus.Peer", "Ping", NULL, NULL, "");
	if (rc < 0) {
		sd_bus_flush_close_unref(bus);
		return rc;
	}
	*ret_bus = bus;
	return 0;
}

void ll_scope_bus_close(struct sd_bus *bus)
{
	sd_bus_flush_close_unref(bus);
}

/* CollectMode: a scope that failed does not stay. TasksMax: the user's slice had its own limit, which a job may have
 * used whole. */
static int add_properties(sd_bus_message *message, const struct ll_scope_request *request)
{
	char slice[SLICE_SIZE];
	snprintf(slice, sizeof slice, "loadline-%" PRIu32 ".slice", request->uid);
	int rc = sd_bus_message_append(message, "(sv)(sv)(sv)(sv)(sv)", "PIDs", "au", 1, (uint32_t)request->pid,
				       "Slice", "s", slice, "Description", "s", "job of loadline", "CollectMode", "s",
				       "inactive-or-failed", "TasksMax", "t", UINT64_MAX);
	if (rc >= 0 && *request->part_of)
		rc = sd_bus_message_append(message, "(sv)", "PartOf", "as", 1, request->part_of);
	return rc;
}

static int build_call(sd_bus *bus, const struct ll_scope_request *request, sd_bus_message **ret_message)
{
	const char *name = strrchr(request->group, '/') + 1;
	int rc = sd_bus_message_new_method_call(bus, ret_message, service, object, manager, "StartTransientUnit");
	if (rc >= 0)
		rc = sd_bus_message_append(*ret_message, "ss", name, "fail");
	if (rc >= 0)
		rc = sd_bus_message_open_container(*ret_message, 'a', "(sv)");
	if (rc >= 0)
		rc = add_properties(*ret_message, request);
	if (rc >= 0)
		rc = sd_bus_message_close_container(*ret_message);
	return rc < 0 ? rc : sd_bus_message_append(*ret_message, "a(sa(sv))", 0);
}

static int call_once(sd_bus *bus, const struct ll_scope_request *request, struct ll_err *err)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	sd_bus_message *message = NULL;
	int rc = build_call(bus, request, &message);
	if (rc >= 0)
		rc = sd_bus_call(bus, message, CALL_USEC, &error, NULL);
	if (rc < 0)
		ll_err_set(err, rc, "systemd: %.100s", error.message ? error.message : strerror(-rc));
	sd_bus_error_free(&error);
	sd_bus_message_unref(message);
	return rc < 0 ? rc : 0;
}

static bool is_lost(int rc)
{
	return rc == -ENOTCONN || rc == -ECONNRESET || rc == -EPIPE;
}

int ll_scope_start(struct sd_bus **bus, const struct ll_scope_request *request, struct ll_err *err)
{
	int rc = *bus ? call_once(*bus, request, err) : -ENOTCONN;
	if (!is_lost(rc))
		return rc;
	ll_scope_bus_close(*bus);
	*bus = NULL;
	rc = ll_scope_bus_open(bus);
	return rc ? ll_err_set(err, rc, "systemd cannot be asked: %s", strerror(-rc)) : call_once(*bus, request, err);
}
