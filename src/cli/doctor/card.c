#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/translate.h"
#include "cli/doctor/doctor.h"
#include "driver/gpm.h"
#include "driver/readings.h"

/* A card that does not have the reading (-ENOSYS) is no reason for a warning. */
static void say_unread(struct ll_doctor *doctor, const struct ll_card *card, const char *check,
		       const struct ll_err *err)
{
	ll_doctor_say_err(doctor, err->code == -ENOSYS ? LL_FINDING_OK : LL_FINDING_WARN, card, check, err);
}

static const char *default_mode(const struct ll_card *card)
{
	return ll_doctor_advice(card, N_("as root: nvidia-smi -c DEFAULT"),
				N_("loadline-simctl card all mode default"));
}

/* If `loadline mps start --exclusive` set the mode, the advice is MPS's command, which also restores the mode. A mode
 * set back by hand would conflict with it. */
static void say_exclusive(struct ll_doctor *doctor, const struct ll_card *card, const char *mode)
{
	static const char check[] = "compute mode";
	switch (ll_doctor_mps_of_card(card)) {
	case LL_DOCTOR_MPS_LIVE:
		ll_doctor_say(doctor, LL_FINDING_WARN, card, check,
			      N_("work as its client: `loadline hold --mps`, `loadline mps run`"),
			      "%s, set for a running MPS daemon: a hold without --mps is refused", mode);
		break;
	case LL_DOCTOR_MPS_LEFT:
		ll_doctor_say(doctor, LL_FINDING_FAIL, card, check, N_("`loadline mps stop` restores its mode"),
			      "%s, set for an MPS daemon that is gone: a hold would lock all other programs out, so it "
			      "is refused",
			      mode);
		break;
	case LL_DOCTOR_MPS_NONE:
		ll_doctor_say(doctor, LL_FINDING_FAIL, card, check, default_mode(card),
			      "%s: a hold would lock all other programs out, so it is refused", mode);
		break;
	}
}

static void check_compute_mode(struct ll_doctor *doctor, const struct ll_card *card)
{
	static const char check[] = "compute mode";
	enum ll_compute_mode mode;
	struct ll_err err = {0};
	if (ll_read_compute_mode(card, &mode, &err))
		say_unread(doctor, card, check, &err);
	else if (mode == LL_MODE_DEFAULT)
		ll_doctor_say(doctor, LL_FINDING_OK, card, check, NULL, "default");
	else if (mode == LL_MODE_PROHIBITED)
		ll_doctor_say(doctor, LL_FINDING_FAIL, card, check, default_mode(card),
			      "prohibited: no program may use the card");
	else
		say_exclusive(doctor, card, ll_compute_mode_text(mode));
}

static void check_persistence(struct ll_doctor *doctor, const struct ll_card *card)
{
	static const char check[] = "persistence";
	bool is_on;
	struct ll_err err = {0};
	if (ll_read_persistence(card, &is_on, &err))
		say_unread(doctor, card, check, &err);
	else if (is_on)
		ll_doctor_say(doctor, LL_FINDING_OK, card, check, NULL, "on");
	else
		ll_doctor_say(
		    doctor, LL_FINDING_WARN, card, check,
		    ll_doctor_advice(card, N_("start nvidia-persistenced, or as root: nvidia-smi -pm 1"), NULL),
		    "off: the driver shuts an unused card down, and the next program waits for its start");
}

static void check_gpm(struct ll_doctor *doctor, const struct ll_card *card)
{
	static const char check[] = "gpm";
	struct ll_err err = {0};
	int rc = 0;
	for (int metric = LL_GPM_SM; metric < LL_GPM_COUNT && !rc; metric++)
		rc = ll_gpm_check_metric(card, (enum ll_gpm_metric)metric, &err);
	if (!rc)
		ll_doctor_say(doctor, LL_FINDING_OK, card, check, NULL,
			      "metrics sm, occupancy, tensor and dram can be held");
	else
		ll_doctor_say_err(doctor, card->is_mig ? LL_FINDING_FAIL : LL_FINDING_WARN, card, check, &err);
}

static void check_heat(struct ll_doctor *doctor, const struct ll_card *card)
{
	static const char check[] = "slowdown";
	unsigned slowdown;
	char text[64];
	struct ll_temperature temperature = {.celsius = (double)NAN};
	struct ll_err err = {0};
	if (ll_read_slowdown(card, &slowdown, &err)) {
		say_unread(doctor, card, check, &err);
		return;
	}
	ll_read_temperature(card, &temperature, NULL);
	bool is_harmed = slowdown & LL_SLOWDOWN_HARM;
	ll_doctor_say(doctor, is_harmed ? LL_FINDING_WARN : LL_FINDING_OK, card, check,
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
	return !ll_doctor_find_vulkan(card->uuid_bytes, err);
}

static void check_payload(struct ll_doctor *doctor, const struct ll_card *card)
{
	static const char check[] = "payload";
	struct ll_err vulkan_err = {0};
	struct ll_err cuda_err = {0};
	ll_cu_device device;
	bool has_vulkan = try_vulkan(card, &vulkan_err);
	bool has_cuda = !ll_card_cuda_device(card, NULL, &device, &cuda_err);
	if (has_vulkan)
		ll_doctor_say(doctor, LL_FINDING_OK, card, check, NULL, "vulkan (50 MiB on an H200)%s",
			      has_cuda ? _(", or cuda (263 MiB)") : "");
	else if (has_cuda && vulkan_err.code)
		ll_doctor_say(doctor, LL_FINDING_WARN, card, check, vulkan_err.hint[0] ? vulkan_err.hint : NULL,
			      "cuda (263 MiB on an H200), not vulkan (50 MiB): %s", vulkan_err.text);
	else if (has_cuda)
		ll_doctor_say(doctor, LL_FINDING_OK, card, check, NULL, "cuda");
	else if (doctor->has_no_cuda)
		ll_doctor_say(doctor, LL_FINDING_FAIL, card, check, NULL,
			      "none: CUDA cannot be used, see the finding cuda");
	else if (card->is_mig)
		/* CUDA shows the first slice unless it is told otherwise. The others can be held too, so this is a
		 * warning only. */
		ll_doctor_say(doctor, LL_FINDING_WARN, card, check,
			      N_("to hold this slice, set CUDA_VISIBLE_DEVICES to its UUID for that command"),
			      "CUDA shows one slice to a process, and it shows another one to this process");
	else
		ll_doctor_say_err(doctor, LL_FINDING_FAIL, card, check, &cuda_err);
}

void ll_doctor_check_card(struct ll_doctor *doctor, const struct ll_card *card)
{
	if (card->fault) {
		ll_doctor_say(doctor, LL_FINDING_FAIL, card, "card",
			      ll_doctor_advice(card, N_("see the kernel log: dmesg | grep -i -e nvrm -e xid"),
					       N_("loadline-simctl card N gone off brings a simulated card back")),
			      "does not answer: %s", strerror(-card->fault));
		return;
	}
	ll_doctor_say(doctor, LL_FINDING_OK, card, "card", NULL, "%s, %s, %s", card->name, card->pci, card->uuid);
	check_compute_mode(doctor, card);
	if (card->has_slices) {
		ll_doctor_say(doctor, LL_FINDING_WARN, card, "mig",
			      N_("name its slices (`loadline status` lists them), or turn MIG off"),
			      "on: only its slices can be held");
		return;
	}
	check_persistence(doctor, card);
	check_gpm(doctor, card);
	check_heat(doctor, card);
	check_payload(doctor, card);
	ll_doctor_check_claims(doctor, card);
}
