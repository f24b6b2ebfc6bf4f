#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advice/advice.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/stalling.h"
#include "cli/doctor/doctor.h"
#include "driver/gpm.h"
#include "driver/readings.h"
#include "hold/hold.h"
#include "hold/payload.h"
#include "hold/payload_vulkan.h"

/* ---- Vulkan ---- */

enum { DEVICES_MAX = 64 };

static int open_instance(struct ll_vk_api *api, VkInstance *ret_instance, struct ll_err *err)
{
	const VkApplicationInfo application = {
	    .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
	    .apiVersion = VK_API_VERSION_1_1,
	};
	const VkInstanceCreateInfo info = {
	    .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
	    .pApplicationInfo = &application,
	};
	VkResult result = api->vkCreateInstance(&info, NULL, ret_instance);
	if (result != VK_SUCCESS)
		return ll_vk_fail(result, err, "Vulkan: create instance");
	return ll_vk_api_load_instance(api, *ret_instance, err);
}

static bool is_card(const struct ll_vk_api *api, VkPhysicalDevice device, const uint8_t uuid[VK_UUID_SIZE])
{
	VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
	VkPhysicalDeviceProperties2 properties = {
	    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
	    .pNext = &id,
	};
	api->vkGetPhysicalDeviceProperties(device, &properties.properties);
	if (properties.properties.apiVersion < VK_API_VERSION_1_1)
		return false;
	api->vkGetPhysicalDeviceProperties2(device, &properties);
	return memcmp(id.deviceUUID, uuid, VK_UUID_SIZE) == 0;
}

static int find_card(const struct ll_vk_api *api, VkInstance instance, const uint8_t uuid[VK_UUID_SIZE],
		     struct ll_err *err)
{
	VkPhysicalDevice devices[DEVICES_MAX];
	uint32_t count = DEVICES_MAX;
	VkResult result = api->vkEnumeratePhysicalDevices(instance, &count, devices);
	if (result != VK_SUCCESS && result != VK_INCOMPLETE)
		return ll_vk_fail(result, err, "Vulkan: list devices");
	for (uint32_t i = 0; i < count; i++) {
		if (is_card(api, devices[i], uuid))
			return 0;
	}
	ll_err_set(err, -ENODEV, "Vulkan: none of the %u devices is this card", count);
	ll_err_hint(err, "install the driver's Vulkan part; in a container NVIDIA_DRIVER_CAPABILITIES needs graphics");
	return -ENODEV;
}

static int find_in_library(const char *library, const uint8_t uuid[VK_UUID_SIZE], struct ll_err *err)
{
	struct ll_vk_api api = {0};
	VkInstance instance = VK_NULL_HANDLE;
	int rc = ll_vk_api_open(&api, library, err);
	if (rc)
		return rc;
	rc = open_instance(&api, &instance, err);
	if (!rc)
		rc = find_card(&api, instance, uuid, err);
	if (instance && api.vkDestroyInstance)
		api.vkDestroyInstance(instance, NULL);
	ll_vk_api_close(&api);
	return rc;
}

/* The loader, and what the driver has without one. */
static const char *const vulkan_libraries[] = {"libvulkan.so.1", "libEGL_nvidia.so.0", "libGLX_nvidia.so.0"};

/* It tries the libraries in the payload's order. Of two errors it reports the loader's, because the user can repair
 * that one. */
static int find_vulkan(const uint8_t uuid[16], struct ll_err *err)
{
	int rc = find_in_library(vulkan_libraries[0], uuid, err);
	for (size_t i = 1; rc && i < sizeof vulkan_libraries / sizeof *vulkan_libraries; i++) {
		if (!find_in_library(vulkan_libraries[i], uuid, NULL))
			return 0;
	}
	return rc;
}

/* ---- the libraries ---- */

void ll_doctor_check_cuda(struct ll_doctor *doctor)
{
	const struct ll_cuda *cuda;
	struct ll_err err = {0};
	/* A hold does the same. Otherwise an MPS server would answer in place of the driver. */
	ll_payload_cuda_prepare(false);
	doctor->has_no_cuda = ll_driver_cuda(doctor->driver, &cuda, &err) != 0;
	if (doctor->has_no_cuda)
		ll_doctor_say_err(doctor, LL_FINDING_WARN, &err);
	else
		ll_doctor_ok(doctor, "libcuda.so.1 for CUDA %d.%d", cuda->version / 1000, cuda->version % 1000 / 10);
}

/* Opens the first library that a hold could use, and returns its name. err: of the loader. */
static const char *open_vulkan(struct ll_vk_api *api, struct ll_err *err)
{
	for (size_t i = 0; i < sizeof vulkan_libraries / sizeof *vulkan_libraries; i++) {
		if (ll_vk_api_open(api, vulkan_libraries[i], i ? NULL : err) == 0)
			return vulkan_libraries[i];
	}
	return NULL;
}

void ll_doctor_check_vulkan(struct ll_doctor *doctor)
{
	struct ll_vk_api api = {0};
	struct ll_err err = {0};
	uint32_t version = VK_API_VERSION_1_0;
	if (doctor->sim_folder) {
		ll_doctor_ok(doctor, "not used with the simulated driver");
		return;
	}
	const char *library = open_vulkan(&api, &err);
	if (!library) {
		if (!err.hint[0])
			ll_err_hint(&err, "install libvulkan1: a hold takes 50 MiB of the card instead of 263");
		ll_doctor_say_err(doctor, LL_FINDING_WARN, &err);
		return;
	}
	PFN_vkEnumerateInstanceVersion enumerate =
	    (PFN_vkEnumerateInstanceVersion)(void (*)(void))api.vkGetInstanceProcAddr(NULL,
										      "vkEnumerateInstanceVersion");
	if (enumerate)
		enumerate(&version);
	if (library == vulkan_libraries[0])
		ll_doctor_ok(doctor, "loader libvulkan.so.1 for Vulkan %u.%u", VK_VERSION_MAJOR(version),
			     VK_VERSION_MINOR(version));
	else
		ll_doctor_ok(doctor, "%s for Vulkan %u.%u, without a loader", library, VK_VERSION_MAJOR(version),
			     VK_VERSION_MINOR(version));
	ll_vk_api_close(&api);
}

/* ---- what it can hold ---- */

/* A card that does not have the reading (-ENOSYS) is no reason for a warning. */
static void say_unread(struct ll_doctor *doctor, const struct ll_err *err)
{
	ll_doctor_say_err(doctor, err->code == -ENOSYS ? LL_FINDING_OK : LL_FINDING_WARN, err);
}

static const char *default_mode(const struct ll_card *card)
{
	return ll_doctor_advice(card, N_("as root: nvidia-smi -c DEFAULT"),
				N_("loadline-simctl card all mode default"));
}

/* If `loadline mps start --exclusive` set the mode, the advice is MPS's command, which also restores the mode. A mode
 * set back by hand would conflict with it. */
static void say_exclusive(struct ll_doctor *doctor, const char *mode)
{
	switch (ll_doctor_mps_of_card(doctor->card)) {
	case LL_DOCTOR_MPS_LIVE:
		ll_doctor_warn(doctor, N_("work as its client: `loadline hold --mps`, `loadline mps run`"),
			       "%s, set for a running MPS daemon: a hold without --mps is refused", mode);
		break;
	case LL_DOCTOR_MPS_LEFT:
		ll_doctor_fail(
		    doctor, N_("`loadline mps stop` restores its mode"),
		    "%s, set for an MPS daemon that is gone: a hold would lock all other programs out, so it "
		    "is refused",
		    mode);
		break;
	case LL_DOCTOR_MPS_NONE:
		ll_doctor_fail(doctor, default_mode(doctor->card),
			       "%s: a hold would lock all other programs out, so it is refused", mode);
		break;
	}
}

void ll_doctor_check_compute_mode(struct ll_doctor *doctor)
{
	const struct ll_card *card = doctor->card;
	enum ll_compute_mode mode;
	struct ll_err err = {0};
	if (ll_read_compute_mode(card, &mode, &err))
		say_unread(doctor, &err);
	else if (mode == LL_MODE_DEFAULT)
		ll_doctor_ok(doctor, "default");
	else if (mode == LL_MODE_PROHIBITED)
		ll_doctor_fail(doctor, default_mode(card), "prohibited: no program may use the card");
	else
		say_exclusive(doctor, ll_compute_mode_text(mode));
}

void ll_doctor_check_persistence(struct ll_doctor *doctor)
{
	const struct ll_card *card = doctor->card;
	bool is_on;
	struct ll_err err = {0};
	if (ll_read_persistence(card, &is_on, &err))
		say_unread(doctor, &err);
	else if (is_on)
		ll_doctor_ok(doctor, "on");
	else
		ll_doctor_warn(
		    doctor, ll_doctor_advice(card, N_("start nvidia-persistenced, or as root: nvidia-smi -pm 1"), NULL),
		    "off: the driver shuts an unused card down, and the next program waits for its start");
}

void ll_doctor_check_gpm(struct ll_doctor *doctor)
{
	const struct ll_card *card = doctor->card;
	struct ll_err err = {0};
	int rc = 0;
	for (int metric = LL_GPM_SM; metric < LL_GPM_COUNT && !rc; metric++)
		rc = ll_gpm_check_metric(card, (enum ll_gpm_metric)metric, &err);
	if (!rc)
		ll_doctor_ok(doctor, "metrics sm, occupancy, tensor and dram can be held");
	else
		ll_doctor_say_err(doctor, card->is_mig ? LL_FINDING_FAIL : LL_FINDING_WARN, &err);
}

void ll_doctor_check_heat(struct ll_doctor *doctor)
{
	const struct ll_card *card = doctor->card;
	unsigned slowdown;
	char text[64];
	struct ll_temperature temperature = {.celsius = (double)NAN};
	struct ll_err err = {0};
	if (ll_read_slowdown(card, &slowdown, &err)) {
		say_unread(doctor, &err);
		return;
	}
	ll_read_temperature(card, &temperature, NULL);
	bool is_harmed = slowdown & LL_SLOWDOWN_HARM;
	ll_doctor_say(doctor, is_harmed ? LL_FINDING_WARN : LL_FINDING_OK,
		      is_harmed ? ll_doctor_advice(
				      card, N_("see to its cooling and power supply; a hold backs off until it ends"),
				      N_("a hold backs off until it ends"))
				: NULL,
		      "%s, at %.0f C", ll_slowdown_text(slowdown, text, sizeof text), temperature.celsius);
}

static bool try_vulkan(const struct ll_card *card, struct ll_err *err)
{
	if (ll_driver_sim_folder(card->driver) || card->is_mig)
		return false;
	return !find_vulkan(card->uuid_bytes, err);
}

void ll_doctor_check_payload(struct ll_doctor *doctor)
{
	const struct ll_card *card = doctor->card;
	struct ll_err vulkan_err = {0};
	struct ll_err cuda_err = {0};
	ll_cu_device device;
	bool has_vulkan = try_vulkan(card, &vulkan_err);
	bool has_cuda = !ll_card_cuda_device(card, NULL, &device, &cuda_err);
	if (has_vulkan)
		ll_doctor_ok(doctor, "vulkan (50 MiB on an H200)%s", has_cuda ? _(", or cuda (263 MiB)") : "");
	else if (has_cuda && vulkan_err.code)
		ll_doctor_warn(doctor, vulkan_err.hint[0] ? vulkan_err.hint : NULL,
			       "cuda (263 MiB on an H200), not vulkan (50 MiB): %s", vulkan_err.text);
	else if (has_cuda)
		ll_doctor_ok(doctor, "cuda");
	else if (doctor->has_no_cuda)
		ll_doctor_fail(doctor, NULL, "none: CUDA cannot be used, see the finding cuda");
	else if (card->is_mig)
		/* CUDA shows the first slice unless it is told otherwise. The others can be held too, so this is a
		 * warning only. */
		ll_doctor_warn(doctor, N_("to hold this slice, set CUDA_VISIBLE_DEVICES to its UUID for that command"),
			       "CUDA shows one slice to a process, and it shows another one to this process");
	else
		ll_doctor_say_err(doctor, LL_FINDING_FAIL, &cuda_err);
}

/* ---- claims ---- */

#define SILENT_NS (10 * LL_NS_PER_S)

static void check_hold(struct ll_doctor *doctor, const struct ll_hold_owner *owner)
{
	static const char advice[] = N_("if it is stopped or hangs, end it (kill -9 is safe)");
	if (!owner->has_report)
		ll_doctor_warn(doctor, advice, "the hold of pid %d does not answer", (int)owner->pid);
	else if (owner->report.beat_age_ns >= SILENT_NS)
		ll_doctor_warn(doctor, advice, "the hold of pid %d has not said for %llu s that it goes on",
			       (int)owner->pid, (unsigned long long)(owner->report.beat_age_ns / LL_NS_PER_S));
}

/* Reports tenants of which a process has lost its claim and gets no other. */
static void check_tenants(struct ll_doctor *doctor)
{
	const struct ll_list *list = &doctor->view.list;
	for (size_t i = 0; i < list->card_count; i++) {
		const struct ll_message_card_row *row = &list->cards[i];
		const struct ll_message_job_row *job = ll_list_job(list, row->job_number);
		if (!job || !(row->flags & LL_CARD_IS_LOST) || strcmp(row->uuid, doctor->card->uuid) != 0)
			continue;
		doctor->limit_fails++;
		ll_doctor_fail(doctor,
			       N_("its standard error says why; restart the program (`loadline status` shows it)"),
			       "tenant %s has not been held to its limits for %llu s: a process has lost its claim",
			       job->job.tenant, (unsigned long long)(row->lost_ns / LL_NS_PER_S));
	}
}

static void look_for_older(pid_t pid, void *ret_is_older)
{
	*(bool *)ret_is_older = ll_process_is_of_older(pid);
}

/* One whose memory lock is held now is left out. */
void ll_doctor_check_older(struct ll_doctor *doctor)
{
	const struct ll_card *card = doctor->card;
	struct ll_process_list processes = {0};
	if (card->has_slices || ll_read_processes(card, LL_PROCESS_ALL, &processes, NULL))
		return;
	LL_SCOPE_FREE pid_t *pids = calloc(processes.count + 1, sizeof *pids);
	LL_SCOPE_FREE bool *are_older = calloc(processes.count + 1, sizeof *are_older);
	LL_SCOPE_FREE bool *are_read = calloc(processes.count + 1, sizeof *are_read);
	size_t count = pids && are_older && are_read ? processes.count : 0;
	for (size_t i = 0; i < count; i++)
		pids[i] = processes.items[i].pid;
	if (count)
		ll_stalling_read(pids, count, look_for_older, sizeof *are_older, are_older, are_read);
	for (size_t i = 0; i < count; i++) {
		if (are_older[i])
			ll_doctor_warn(doctor,
				       N_("start it again, so that all programs of the card share it by the same rule"),
				       "pid %d is governed by an older loadline: it and the others do not know of each "
				       "other",
				       (int)pids[i]);
	}
	ll_process_list_fini(&processes);
}

static size_t count_claims(const struct ll_list *list, const char *uuid)
{
	size_t count = 0;
	for (size_t i = 0; i < list->claim_count; i++)
		count += strcmp(list->claims[i].uuid, uuid) == 0;
	return count;
}

/* What programs that share the card did the other way, by slices or by space, in an earlier run. */
void ll_doctor_check_sharing(struct ll_doctor *doctor)
{
	const struct ll_card *card = doctor->card;
	const struct ll_list *list = &doctor->view.list;
	LL_SCOPE_FREE struct ll_earlier *earlier = ll_other_way_read(ll_driver_sim_folder(card->driver));
	for (size_t i = 0; earlier && i < list->card_count; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		const struct ll_message_card_row *row = &list->cards[i];
		const struct ll_message_job_row *job = ll_list_job(list, row->job_number);
		struct ll_other_way other;
		if (!job || strcmp(row->uuid, card->uuid) != 0 ||
		    !ll_other_way_find(earlier, row, ll_way_of(&job->job.limits), &other))
			continue;
		ll_other_way_add(&text, &other);
		ll_doctor_ok(doctor, "%s: %s", job->job.tenant, text.buf);
	}
}

void ll_doctor_check_claims(struct ll_doctor *doctor)
{
	const struct ll_card *card = doctor->card;
	struct ll_hold_owner owner;
	bool has_hold = ll_hold_query(card, ll_driver_sim_folder(card->driver), &owner, NULL, NULL) == 0;
	size_t count = count_claims(&doctor->view.list, card->uuid);
	if (has_hold)
		check_hold(doctor, &owner);
	if (doctor->view.answer == LL_DAEMON_SERVES || doctor->view.answer == LL_DAEMON_NONE)
		ll_doctor_ok(doctor, "%zu live (%d synthetic)", count + has_hold, has_hold);
	else
		ll_doctor_warn(doctor, NULL, "not known: see the finding loadlined above");
	check_tenants(doctor);
}

/* ---- the card ---- */

void ll_doctor_check_card(struct ll_doctor *doctor)
{
	const struct ll_card *card = doctor->card;
	if (card->fault)
		ll_doctor_fail(doctor,
			       ll_doctor_advice(card, N_("see the kernel log: dmesg | grep -i -e nvrm -e xid"),
						N_("loadline-simctl card N gone off brings a simulated card back")),
			       "does not answer: %s", strerror(-card->fault));
	else
		ll_doctor_ok(doctor, "%s, %s, %s", card->name, card->pci, card->uuid);
}

void ll_doctor_check_mig(struct ll_doctor *doctor)
{
	ll_doctor_warn(doctor, N_("name its slices (`loadline status` lists them), or turn MIG off"),
		       "on: only its slices can be held");
}
