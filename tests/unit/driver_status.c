#include <errno.h>

#include "test.h"

#include "driver/gpm.h"
#include "driver/internal.h"
#include "driver/readings.h"

TEST(nvml_statuses_map_to_what_a_caller_does_next)
{
	assert_int_equal(ll_nvml_errno(LL_NVML_SUCCESS), 0);
	assert_int_equal(ll_nvml_errno(LL_NVML_ERROR_GPU_IS_LOST), -ENODEV);
	assert_int_equal(ll_nvml_errno(LL_NVML_ERROR_NOT_SUPPORTED), -ENOSYS);
	assert_int_equal(ll_nvml_errno(LL_NVML_ERROR_FUNCTION_NOT_FOUND), -ENOSYS);
	assert_int_equal(ll_nvml_errno(LL_NVML_ERROR_NO_PERMISSION), -EPERM);
	assert_int_equal(ll_nvml_errno(LL_NVML_ERROR_UNKNOWN), -EIO);
	assert_int_equal(ll_nvml_errno((ll_nvml_result)12345), -EIO);
}

TEST(cuda_statuses_map_to_what_a_caller_does_next)
{
	assert_int_equal(ll_cuda_errno(LL_CUDA_SUCCESS), 0);
	assert_int_equal(ll_cuda_errno(LL_CUDA_ERROR_OUT_OF_MEMORY), -ENOMEM);
	assert_int_equal(ll_cuda_errno(LL_CUDA_ERROR_NOT_READY), -EAGAIN);
	assert_int_equal(ll_cuda_errno(LL_CUDA_ERROR_DEVICE_UNAVAILABLE), -EBUSY);
	assert_int_equal(ll_cuda_errno(LL_CUDA_ERROR_LAUNCH_FAILED), -EIO);
}

static ll_cu_result fake_error_name(ll_cu_result status, const char **ret_text)
{
	if (status != LL_CUDA_ERROR_OUT_OF_MEMORY)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_text = "CUDA_ERROR_OUT_OF_MEMORY";
	return LL_CUDA_SUCCESS;
}

TEST(texts_name_the_status_and_its_number)
{
	struct ll_cuda cuda = {.cuGetErrorName = fake_error_name};
	struct ll_err err;
	char text[LL_STATUS_TEXT_SIZE];
	assert_string_equal(ll_cuda_status_text(&cuda, LL_CUDA_ERROR_OUT_OF_MEMORY, text),
			    "CUDA_ERROR_OUT_OF_MEMORY (2)");
	assert_string_equal(ll_cuda_status_text(&cuda, (ll_cu_result)4711, text), "CUDA error 4711");
	assert_string_equal(ll_cuda_status_text(NULL, LL_CUDA_ERROR_UNKNOWN, text), "CUDA error 999");
	assert_string_equal(ll_nvml_status_text(NULL, LL_NVML_ERROR_UNKNOWN, text), "NVML error 999");
	assert_fails(ll_cuda_fail(&cuda, LL_CUDA_ERROR_OUT_OF_MEMORY, &err, "card %d: open", 0), -ENOMEM,
		     "card 0: open: CUDA_ERROR_OUT_OF_MEMORY (2)");
	assert_true(err.hint[0]);
}

TEST(uuids_are_read_strictly)
{
	static const uint8_t expected[16] = {0x8f, 0x6a, 0x3f, 0x3e, 0x00, 0x11, 0x22, 0x33,
					     0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xBb};
	static const char *const bad[] = {"",
					  "GPU-",
					  "8f6a3f3e-0011-2233-4455-66778899aabb",
					  "GPU-8f6a3f3e-0011-2233-4455-66778899aab",
					  "GPU-8f6a3f3e-0011-2233-4455-66778899aabbc",
					  "GPU-8f6a3f3e-0011-2233-4455-66778899aabx",
					  "MIG-GPU-8f6a3f3e-0011-2233-4455-66778899aabb/1/0"};
	uint8_t bytes[16] = {0};
	assert_int_equal(ll_uuid_parse("GPU-8f6a3f3e-0011-2233-4455-66778899aabb", bytes), 0);
	assert_memory_equal(bytes, expected, sizeof bytes);
	assert_int_equal(ll_uuid_parse("MIG-8F6A3F3E-0011-2233-4455-66778899AABB", bytes), 0);
	assert_memory_equal(bytes, expected, sizeof bytes);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(ll_uuid_parse(bad[i], bytes), -EINVAL);
	assert_memory_equal(bytes, expected, sizeof bytes);
}

TEST(slowdowns_are_listed)
{
	char text[64];
	char shorter[8];
	assert_string_equal(ll_slowdown_text(0, text, sizeof text), "none");
	assert_string_equal(ll_slowdown_text(LL_SLOWDOWN_POWER_BRAKE | LL_SLOWDOWN_THERMAL, text, sizeof text),
			    "thermal, power brake");
	assert_string_equal(ll_slowdown_text(LL_SLOWDOWN_HARM, shorter, sizeof shorter), "thermal");
}

TEST(faults_have_texts)
{
	assert_non_null(strstr(ll_xid_text(79), "fallen off the bus"));
	assert_non_null(strstr(ll_xid_text(99999), "catalogue"));
}

TEST(names_are_the_command_lines)
{
	assert_string_equal(ll_gpm_metric_name(LL_GPM_OCCUPANCY), "occupancy");
	assert_string_equal(ll_compute_mode_text(LL_MODE_EXCLUSIVE_PROCESS), "exclusive-process");
}
