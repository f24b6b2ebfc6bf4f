/* The scenario language: what it takes, and how it says what is wrong. */
#include <errno.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "card/command.h"
#include "card/defaults.h"
#include "card/meter.h"
#include "card/scenario.h"
#include "card/world.h"
#include "test.h"

static struct sim_world *w;

static int new_world(void **state)
{
	(void)state;
	w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w == MAP_FAILED)
		return -1;
	sim_world_init(w, UINT64_C(1000000000), 0);
	return 0;
}

static int free_world(void **state)
{
	(void)state;
	return munmap(w, sizeof *w);
}

TEST_EACH(new_world, free_world);

static int apply(const char *text, struct ll_err *err)
{
	char path[] = "/tmp/loadline-scenario.XXXXXX";
	struct sim_scenario scenario;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	int rc = sim_scenario_load(path, &scenario, err);
	unlink(path);
	if (rc < 0)
		return rc;
	rc = sim_scenario_apply(&scenario, w, err);
	sim_scenario_fini(&scenario);
	return rc;
}

TEST(takes_what_the_readme_shows)
{
	struct ll_err err;
	assert_int_equal(apply("# two cards, one of them odd\n"
			       "\n"
			       "cards 2\n"
			       "driver 535.104.05 cuda 12.2\n"
			       "card 1 name NVIDIA H100 PCIe   # with blanks\n"
			       "card 1 sm 114\r\n"
			       "card 1 memory 80G\n"
			       "card 1 uuid GPU-01234567-89ab-cdef-0123-456789abcdef\n"
			       "card 1 pci 0001:af:00.0\n"
			       "card all slice 1ms\n"
			       "card 0 used 10G\n"
			       "card 0 mode exclusive-process\n"
			       "cuda-order 1 0\n"
			       "kernel matmul* 2.5ms\n"
			       "missing nvmlGpmSampleGet\n"
			       "at 2s fail nvml* NVML_ERROR_UNKNOWN for 3s\n"
			       "at 5s card 1 temperature 95 over 10s\n"
			       "at 9s card 0 xid 79",
			       &err),
			 0);
	assert_int_equal(w->card_count, 2);
	assert_int_equal(w->cuda_version, 12020);
	assert_string_equal(w->driver_version, "535.104.05");
	assert_string_equal(w->cards[1].name, "NVIDIA H100 PCIe");
	assert_int_equal(w->cards[1].sm_count, 114);
	assert_int_equal(w->cards[1].memory_bytes, UINT64_C(80) << 30);
	assert_int_equal(w->cards[1].pci_domain, 1);
	assert_int_equal(w->cards[1].pci_bus, 0xaf);
	assert_int_equal(w->cards[0].slice_ns, 1000000);
	assert_int_equal(w->cards[0].foreign_bytes, UINT64_C(10) << 30);
	assert_int_equal(w->cuda_order[0], 1);
	assert_int_equal(sim_kernel_length_ns(w, "matmul_4096", 1), 2500000);
	assert_int_equal(sim_kernel_length_ns(w, "other", 1), 1);
	assert_string_equal(w->hidden[0], "nvmlGpmSampleGet");
	assert_int_equal(w->events[2].at_ns, w->born_ns + UINT64_C(9000000000));
}

TEST(an_error_names_file_and_line)
{
	struct ll_err err;
	assert_fails(apply("cards 2\n\ncard 2 used 1G\n", &err), -EINVAL, ":3: ");
	assert_fails(apply("cards 2\ncrads 3\n", &err), -EINVAL, ":2: 'crads': no such command");
	assert_fails(sim_scenario_load("/nonexistent/x", &(struct sim_scenario){0}, &err), -EINVAL, "/nonexistent/x");
}

TEST(every_kind_of_nonsense_is_refused)
{
	static const char *const lines[] = {
	    "cards",
	    "cards -1",
	    "cards 99",
	    "cards 1 2",
	    "driver",
	    "driver 580 cuda",
	    "driver 580 cuda 13",
	    "card",
	    "card 0",
	    "card 0 used",
	    "card 0 used 10X",
	    "card 0 used 1G for",
	    "card 0 used 1G until 3s",
	    "card 1 used 1G",
	    "card x used 1G",
	    "card 0 colour red",
	    "card 0 mode sometimes",
	    "card 0 mode default twice",
	    "card 0 temperature hot",
	    "card 0 temperature 90 within 3s",
	    "card 0 gpm maybe",
	    "card 0 xid 0",
	    "card 0 xid 31 CUDA_ERROR_NO_SUCH",
	    "card 0 xid 31 700 pid",
	    "card 0 uuid GPU-1",
	    "card 0 pci 18:00",
	    "card 0 capability nine",
	    "card 0 mig 9",
	    "card 0 slice 5",
	    "card 0 slice 5parsecs",
	    "card 0 sm 0",
	    "card 0 power-limit many",
	    "cuda-order 0 0",
	    "cuda-order",
	    "missing",
	    "kernel",
	    "kernel x",
	    "kernel x soon",
	    "fail",
	    "fail cuInit",
	    "fail cuInit CUDA_ERROR_MADE_UP",
	    "fail cuInit 2 for",
	    "fail cuInit 2 until 3s",
	    "fail cuInit 2 count 0",
	    "hang cuInit",
	    "heal a b",
	    "suspend",
	    "at",
	    "at 3s",
	    "at soon cards 1",
	    "at 3s cards 2",
	    "at 3s at 4s heal",
	    "at 3s card 0 used lots",
	    "at 3s nonsense",
	};
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		struct ll_err err = {0};
		/* "slice 5" is five seconds: a bare number is a duration too. */
		int expected = strcmp(lines[i], "card 0 slice 5") == 0 ? 0 : -EINVAL;
		if (apply(lines[i], &err) != expected)
			fail_msg("'%s' gave '%s'", lines[i], err.text);
	}
	char long_line[400];
	memset(long_line, 'x', sizeof long_line);
	long_line[sizeof long_line - 1] = '\0';
	struct ll_err err;
	assert_fails(apply(long_line, &err), -EINVAL, "longer than");
}

TEST(what_programs_could_not_see_change_is_for_scenarios_only)
{
	struct ll_err err;
	static const char *const lines[] = {"cards 2", "driver 470.1 cuda 11.4", "card 0 sm 10", "card 0 name X",
					    "card 0 mig 2"};
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		assert_fails(sim_command_run(w, lines[i], SIM_COMMAND_LIVE, &err), -EINVAL, "only in a scenario");
	assert_int_equal(sim_command_run(w, "card 0 used 1G", SIM_COMMAND_LIVE, &err), 0);
	/* A check changes nothing. */
	assert_int_equal(sim_command_run(w, "card 0 used 2G", SIM_COMMAND_CHECK, &err), 0);
	assert_int_equal(w->cards[0].foreign_bytes, UINT64_C(1) << 30);
}

TEST(waiting_commands_and_faults_have_bounds)
{
	struct ll_err err;
	for (int i = 0; i < SIM_EVENTS; i++)
		assert_int_equal(sim_command_run(w, "at 1s heal", SIM_COMMAND_START, &err), 0);
	assert_fails(sim_command_run(w, "at 1s heal", SIM_COMMAND_START, &err), -ENOSPC, "wait already");
	for (int i = 0; i < SIM_FAULTS; i++)
		assert_int_equal(sim_command_run(w, "fail cuInit 2", SIM_COMMAND_START, &err), 0);
	assert_fails(sim_command_run(w, "fail cuInit 2", SIM_COMMAND_START, &err), -ENOSPC, "faults at once");
	assert_int_equal(sim_command_run(w, "heal", SIM_COMMAND_START, &err), 0);
	assert_int_equal(sim_command_run(w, "fail cuInit 2", SIM_COMMAND_START, &err), 0);
}
