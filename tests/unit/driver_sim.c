/*
 * The driver folder on the simulated driver: enumeration, mapping, readings, faults.
 */
#include <errno.h>
#include <math.h>

#include "test.h"

#include "base/clock.h"
#include "base/scope.h"
#include "driver/gpm.h"
#include "driver/readings.h"
#include "driver_world.h"

enum { DEADLINE_S = 20 };

static struct ll_driver *open_driver(void)
{
	struct ll_driver *driver = NULL;
	CHECK_OK(ll_driver_open(&driver, err));
	return driver;
}

static const struct ll_card *first_card(struct ll_driver *driver)
{
	const struct ll_card *cards;
	CHECK(ll_driver_cards(driver, &cards) >= 1);
	return &cards[0];
}

static void look_at_two_cards(void)
{
	struct ll_driver *driver = open_driver();
	const struct ll_card *cards;
	CHECK(ll_driver_cards(driver, &cards) == 2);
	const char *world = getenv("LOADLINE_SIM_DIR");
	const char *folder = ll_driver_sim_folder(driver);
	CHECK(world && folder && !strcmp(folder, world));
	CHECK(!strcmp(cards[0].name, "First") && !strcmp(cards[1].name, "Second"));
	CHECK(cards[0].index == 0 && cards[1].index == 1 && !strcmp(cards[1].label, "1"));
	CHECK(!strcmp(cards[0].pci, "0000:11:00.0") && cards[0].pci_bus == 0x11);
	CHECK(cards[0].sm_count == 132);
	CHECK(cards[0].memory_bytes > UINT64_C(100) << 30);
	CHECK(ll_cards_find_uuid(driver, cards[1].uuid) == &cards[1]);
	CHECK(!ll_cards_find_uuid(driver, "GPU-none"));
	CHECK(ll_card_whole(&cards[1]) == &cards[1]);
	ll_driver_close(driver);
}

TEST(cards_come_in_pci_order)
{
	in_world("cards 2\ncard 0 name First\ncard 0 pci 0000:11:00.0\ncard 1 name Second\ncard 1 pci 0000:22:00.0\n",
		 look_at_two_cards);
}

static void find_cuda_devices(void)
{
	struct ll_driver *driver = open_driver();
	const struct ll_card *cards;
	const struct ll_cuda *cuda;
	size_t count = ll_driver_cards(driver, &cards);
	CHECK(count == 3);
	for (size_t i = 0; i < count; i++) {
		ll_cu_device device;
		char name[64];
		CHECK_OK(ll_card_cuda_device(&cards[i], &cuda, &device, err));
		CHECK(!cuda->cuDeviceGetName(name, sizeof name, device));
		CHECK(!strcmp(name, cards[i].name));
	}
	ll_driver_close(driver);
}

TEST(cuda_devices_are_found_by_uuid_whatever_cudas_order)
{
	in_world("cards 3\ncard 0 name A\ncard 1 name B\ncard 2 name C\ncuda-order 2 0 1\n", find_cuda_devices);
}

TEST_IN_WORLD("cards 2\n", card_hidden_from_cuda_is_named_so)
{
	struct ll_driver *driver;
	const struct ll_card *cards;
	ll_cu_device device;
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	driver = open_driver();
	CHECK(ll_driver_cards(driver, &cards) == 2);
	CHECK_OK(ll_card_cuda_device(&cards[1], NULL, &device, err));
	CHECK_FAILS(ll_card_cuda_device(&cards[0], NULL, &device, err), -ENODEV,
		    "hidden from CUDA by CUDA_VISIBLE_DEVICES=1");
	ll_driver_close(driver);
}

TEST_IN_WORLD("cards 2\ncard 0 mig 3\n", slices_are_cards_of_their_own)
{
	struct ll_driver *driver = open_driver();
	const struct ll_card *cards;
	LL_SCOPE_FREE const struct ll_card **chosen = NULL;
	size_t count = ll_driver_cards(driver, &cards);
	double percent;
	CHECK(count == 5);
	CHECK(cards[0].has_slices && !cards[0].is_mig);
	CHECK(cards[1].is_mig && cards[1].parent == &cards[0] && !strcmp(cards[1].label, "0:0"));
	CHECK(!strcmp(cards[3].label, "0:2") && !strcmp(cards[3].pci, cards[0].pci));
	CHECK(!strncmp(cards[1].uuid, "MIG-", 4) && strcmp(cards[1].uuid, cards[2].uuid) != 0);
	CHECK(cards[1].sm_count < cards[4].sm_count);
	CHECK(!strcmp(cards[4].label, "1") && !cards[4].has_slices);
	CHECK_OK(ll_cards_select(driver, "all", &chosen, &count, err));
	CHECK(count == 4 && chosen[0] == &cards[1]);
	CHECK_FAILS(ll_read_util(&cards[1], &percent, err), -ENOSYS, "card 0:0");
	ll_driver_close(driver);
}

static void open_without_required(void)
{
	struct ll_driver *driver = NULL;
	CHECK_FAILS(ll_driver_open(&driver, err), -ENOSYS,
		    "libnvidia-ml.so.1 of driver 470.57.02 lacks nvmlDeviceGetUtilizationRates");
	CHECK(!driver);
}

TEST(missing_required_function_is_named_with_the_driver)
{
	in_world("driver 470.57.02 cuda 11.4\nmissing nvmlDeviceGetUtilizationRates\n", open_without_required);
}

TEST_IN_WORLD("missing cuLaunchKernel\n", nvml_works_without_a_usable_cuda)
{
	struct ll_driver *driver = open_driver();
	const struct ll_cuda *cuda = NULL;
	CHECK_FAILS(ll_driver_cuda(driver, &cuda, err), -ENOSYS, "lacks cuLaunchKernel");
	CHECK(!cuda);
	ll_driver_close(driver);
}

static void read_without_optional(void)
{
	struct ll_driver *driver = open_driver();
	const struct ll_card *card = first_card(driver);
	struct ll_process_list processes = {0};
	struct ll_memory memory;
	struct ll_power power;
	unsigned slowdown;
	uint64_t energy_mj;
	CHECK_FAILS(ll_read_energy(card, &energy_mj, err), -ENOSYS, "energy: driver 470.57.02 cannot tell");
	CHECK_FAILS(ll_gpm_check(card, err), -ENOSYS, "util and power remain");
	CHECK_OK(ll_read_power(card, &power, err));
	CHECK(!power.is_instant && power.watts > 0 && power.watts == power.average_watts);
	CHECK_OK(ll_read_memory(card, &memory, err));
	CHECK_OK(ll_read_processes(card, LL_PROCESS_ALL, &processes, err));
	CHECK_OK(ll_read_slowdown(card, &slowdown, err));
	ll_process_list_fini(&processes);
	ll_driver_close(driver);
}

TEST(older_driver_is_read_by_its_older_calls)
{
	in_world("driver 470.57.02 cuda 11.4\n"
		 "missing nvmlDeviceGetTotalEnergyConsumption nvmlGpmSampleGet nvmlDeviceGetMemoryInfo_v2\n"
		 "missing nvmlDeviceGetFieldValues nvmlDeviceGetComputeRunningProcesses_v3\n"
		 "missing nvmlDeviceGetGraphicsRunningProcesses_v3 nvmlDeviceGetMPSComputeRunningProcesses_v3\n"
		 "missing nvmlDeviceGetCurrentClocksEventReasons\n",
		 read_without_optional);
}

TEST_IN_WORLD("", every_reading_of_an_idle_card_makes_sense)
{
	struct ll_driver *driver = open_driver();
	const struct ll_card *card = first_card(driver);
	struct ll_process_list processes = {0};
	struct ll_memory memory;
	struct ll_power power;
	struct ll_temperature temperature;
	struct ll_clocks clocks;
	enum ll_compute_mode mode;
	unsigned slowdown;
	uint64_t energy_mj;
	double value;
	bool is_on;
	CHECK_OK(ll_read_util(card, &value, err));
	CHECK(value == 0);
	CHECK_OK(ll_read_memory(card, &memory, err));
	CHECK(memory.total_bytes >= memory.used_bytes + memory.free_bytes);
	CHECK_OK(ll_read_processes(card, LL_PROCESS_ALL, &processes, err));
	CHECK(processes.count == 0);
	CHECK_OK(ll_read_power(card, &power, err));
	CHECK(power.is_instant && power.watts > 10);
	CHECK_OK(ll_read_power_limit(card, &value, err));
	CHECK(value > power.watts);
	CHECK_OK(ll_read_energy(card, &energy_mj, err));
	CHECK_OK(ll_read_temperature(card, &temperature, err));
	CHECK(temperature.celsius > 0 && temperature.slowdown_celsius > temperature.celsius);
	CHECK(temperature.shutdown_celsius > temperature.slowdown_celsius);
	CHECK_OK(ll_read_clocks(card, &clocks, err));
	CHECK(clocks.sm_mhz > 0 && clocks.memory_mhz > 0);
	CHECK_OK(ll_read_slowdown(card, &slowdown, err));
	CHECK(!(slowdown & LL_SLOWDOWN_HARM));
	CHECK_OK(ll_read_compute_mode(card, &mode, err));
	CHECK(mode == LL_MODE_DEFAULT);
	CHECK_OK(ll_read_persistence(card, &is_on, err));
	ll_process_list_fini(&processes);
	ll_driver_close(driver);
}

TEST_IN_WORLD("card 0 mode exclusive\ncard 0 slowdown on\n", mode_and_slowdown_are_seen)
{
	struct ll_driver *driver = open_driver();
	const struct ll_card *card = first_card(driver);
	enum ll_compute_mode mode;
	unsigned slowdown;
	CHECK_OK(ll_read_compute_mode(card, &mode, err));
	CHECK(mode == LL_MODE_EXCLUSIVE_PROCESS);
	CHECK_OK(ll_read_slowdown(card, &slowdown, err));
	CHECK(slowdown & LL_SLOWDOWN_HARM);
	ll_driver_close(driver);
}

static void read_with_faults(void)
{
	struct ll_driver *driver = open_driver();
	const struct ll_card *card = first_card(driver);
	struct ll_temperature temperature;
	struct ll_memory memory;
	uint64_t energy_mj;
	double value;
	CHECK_FAILS(ll_read_util(card, &value, err), -ENODEV, "card 0: utilisation: card gone");
	CHECK_FAILS(ll_read_temperature(card, &temperature, err), -EPERM, "temperature");
	CHECK_FAILS(ll_read_energy(card, &energy_mj, err), -EIO, "energy");
	CHECK_FAILS(ll_read_energy(card, &energy_mj, err), -EIO, "energy");
	CHECK_OK(ll_read_energy(card, &energy_mj, err));
	CHECK_OK(ll_read_memory(card, &memory, err));
	ll_driver_close(driver);
}

TEST(failing_readings_say_what_a_caller_can_do)
{
	in_world("fail nvmlDeviceGetUtilizationRates NVML_ERROR_GPU_IS_LOST\n"
		 "fail nvmlDeviceGetTemperature NVML_ERROR_NO_PERMISSION\n"
		 "fail nvmlDeviceGetTotalEnergyConsumption NVML_ERROR_UNKNOWN count 2\n",
		 read_with_faults);
}

TEST_IN_WORLD("cards 2\ncard 0 gone on\n", lost_card_does_not_hide_or_renumber_the_others)
{
	struct ll_driver *driver = open_driver();
	LL_SCOPE_FREE const struct ll_card **chosen = NULL;
	size_t count;
	CHECK_OK(ll_cards_select(driver, "all", &chosen, &count, err));
	CHECK(count == 1 && chosen[0]->index == 1);
	CHECK_FAILS(ll_cards_select(driver, "0", &chosen, &count, err), -ENODEV, "card 0: does not answer");
	ll_driver_close(driver);
}

TEST_IN_WORLD("cards 0\n", driver_without_cards_is_an_error)
{
	struct ll_driver *driver = NULL;
	CHECK_FAILS(ll_driver_open(&driver, err), -ENODEV, "no card");
}

TEST_IN_WORLD("", every_sample_is_given_once_and_in_order)
{
	struct ll_driver *driver = open_driver();
	struct ll_util_reader reader;
	struct ll_util_sample samples[8];
	size_t total = 0;
	uint64_t last_ns = ll_wall_ns();
	uint64_t deadline_ns = ll_now_ns() + DEADLINE_S * LL_NS_PER_S;
	ll_util_reader_init(&reader, first_card(driver));
	while (total < 4) {
		size_t count;
		CHECK(ll_now_ns() < deadline_ns);
		CHECK_OK(ll_util_reader_next(&reader, samples, 8, &count, err));
		for (size_t i = 0; i < count; i++) {
			CHECK(samples[i].end_wall_ns > last_ns);
			CHECK(samples[i].window_ns > LL_NS_PER_MS);
			CHECK(samples[i].percent == 0);
			last_ns = samples[i].end_wall_ns;
		}
		total += count;
		ll_sleep_until_ns(ll_now_ns() + 20 * LL_NS_PER_MS);
	}
	ll_driver_close(driver);
}

TEST_IN_WORLD("", gpm_gives_means_over_windows_that_are_long_enough)
{
	struct ll_driver *driver = open_driver();
	struct ll_gpm *gpm = NULL;
	struct ll_gpm_reading reading;
	uint64_t deadline_ns = ll_now_ns() + DEADLINE_S * LL_NS_PER_S;
	int rc;
	CHECK_OK(ll_gpm_open(first_card(driver), &gpm, err));
	while ((rc = ll_gpm_read(gpm, &reading, NULL)) == -EAGAIN) {
		CHECK(ll_now_ns() < deadline_ns);
		ll_sleep_until_ns(ll_now_ns() + 5 * LL_NS_PER_MS);
	}
	CHECK(!rc);
	CHECK(reading.window_ns >= LL_GPM_MIN_WINDOW_NS);
	CHECK(reading.percent[LL_GPM_SM] == 0 && reading.percent[LL_GPM_GRAPHICS] == 0);
	CHECK(ll_gpm_read(gpm, &reading, NULL) == -EAGAIN);
	ll_gpm_close(gpm);
	ll_driver_close(driver);
}

TEST_IN_WORLD("card 0 gpm off\n", card_without_gpm_names_the_metrics_that_remain)
{
	struct ll_driver *driver = open_driver();
	struct ll_gpm *gpm = NULL;
	CHECK_FAILS(ll_gpm_open(first_card(driver), &gpm, err), -ENOSYS, "util and power remain");
	ll_gpm_close(gpm);
	ll_driver_close(driver);
}

TEST_IN_WORLD("card 0 gpm-tensor off\n", gpm_without_a_reading_is_known_before_it_is_needed)
{
	struct ll_driver *driver = open_driver();
	const struct ll_card *card = first_card(driver);
	CHECK_OK(ll_gpm_check_metric(card, LL_GPM_SM, err));
	CHECK_OK(ll_gpm_check_metric(card, LL_GPM_DRAM, err));
	CHECK_FAILS(ll_gpm_check_metric(card, LL_GPM_TENSOR, err), -ENOSYS, "does not give the tensor reading");
	ll_driver_close(driver);
}

TEST_IN_WORLD("at 300ms card 0 xid 31\n", fault_report_arrives_without_waiting)
{
	struct ll_driver *driver = open_driver();
	struct ll_xid_watch *watch = NULL;
	uint64_t xid = 0;
	uint64_t deadline_ns = ll_now_ns() + DEADLINE_S * LL_NS_PER_S;
	CHECK_OK(ll_xid_open(first_card(driver), &watch, err));
	while (ll_xid_poll(watch, &xid, NULL) == 0) {
		CHECK(ll_now_ns() < deadline_ns);
		ll_sleep_until_ns(ll_now_ns() + 5 * LL_NS_PER_MS);
	}
	CHECK(xid == 31);
	ll_xid_close(watch);
	ll_driver_close(driver);
}

TEST_IN_WORLD("", driver_can_be_opened_again)
{
	struct ll_driver *first = open_driver();
	char uuid[LL_UUID_SIZE];
	snprintf(uuid, sizeof uuid, "%s", first_card(first)->uuid);
	ll_driver_close(first);
	struct ll_driver *second = open_driver();
	CHECK(ll_cards_find_uuid(second, uuid));
	ll_driver_close(second);
}
