/*
 * try_runtime.cu - a program made by nvcc, under a memory limit: the trial of trial.py in CUDA's runtime, which the harness
 * builds with the static and with the shared runtime library. Usage: try_runtime --limit BYTES [--control]
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static const size_t GIB = size_t(1) << 30;
static const size_t CHUNK = size_t(1) << 28;
static const double LEAST = 0.7;

static void check(const char *what, bool is_ok, const char *text)
{
	printf("{\"event\":\"check\",\"what\":\"%s\",\"ok\":%s,\"text\":\"%s\"}\n", what, is_ok ? "true" : "false", text);
	fflush(stdout);
}

static bool is_own_error(cudaError_t status)
{
	return status == cudaErrorMemoryAllocation;
}

/* What went wrong stays no longer than until it has been read. */
static cudaError_t take(void **ret_address, size_t count)
{
	cudaError_t status = cudaMalloc(ret_address, count);
	cudaGetLastError();
	return status;
}

static void see_total(size_t limit)
{
	size_t free_bytes = 0, total = 0;
	cudaDeviceProp properties;
	char text[80];
	cudaError_t status = cudaMemGetInfo(&free_bytes, &total);
	if (status == cudaSuccess)
		status = cudaGetDeviceProperties(&properties, 0);
	snprintf(text, sizeof text, "%s, %.2f GiB", cudaGetErrorName(status), double(total) / GIB);
	check("total", status == cudaSuccess && total == limit && properties.totalGlobalMem == limit && free_bytes <= total,
	      text);
}

static void take_too_much(size_t limit)
{
	void *address = nullptr;
	cudaError_t status = take(&address, limit + GIB);
	check("too much at once", is_own_error(status), cudaGetErrorName(status));
	status = cudaMallocAsync(&address, limit + GIB, 0);
	cudaGetLastError();
	check("too much at once, stream-ordered", is_own_error(status), cudaGetErrorName(status));
}

static void fill(size_t limit)
{
	std::vector<void *> held;
	cudaError_t status = cudaSuccess;
	char text[80];
	while (status == cudaSuccess && held.size() * CHUNK <= limit) {
		void *address = nullptr;
		status = take(&address, CHUNK);
		if (status == cudaSuccess)
			held.push_back(address);
	}
	size_t got = held.size() * CHUNK;
	snprintf(text, sizeof text, "%s after %.2f GiB", cudaGetErrorName(status), double(got) / GIB);
	check("filled", is_own_error(status) && got <= limit && double(got) >= LEAST * double(limit), text);
	for (void *address : held)
		cudaFree(address);
}

__global__ void add_index(int *values, int count)
{
	int at = blockIdx.x * blockDim.x + threadIdx.x;
	if (at < count)
		values[at] += at;
}

static void go_on()
{
	const int count = 100000;
	std::vector<int> values(count, 1);
	void *held = nullptr, *address = nullptr;
	cudaError_t status = take(&held, GIB);
	if (status == cudaSuccess)
		status = take(&address, count * sizeof(int));
	if (status == cudaSuccess)
		status = cudaMemcpy(address, values.data(), count * sizeof(int), cudaMemcpyHostToDevice);
	if (status == cudaSuccess)
		add_index<<<(count + 255) / 256, 256>>>(static_cast<int *>(address), count);
	if (status == cudaSuccess)
		status = cudaMemcpy(values.data(), address, count * sizeof(int), cudaMemcpyDeviceToHost);
	bool is_right = status == cudaSuccess;
	for (int i = 0; i < count; i++)
		is_right = is_right && values[i] == 1 + i;
	check("went on", is_right, status != cudaSuccess ? cudaGetErrorName(status) : is_right ? "right" : "wrong result");
	cudaFree(address);
	cudaFree(held);
}

int main(int argc, char **argv)
{
	size_t limit = 0;
	bool is_control = false;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--control") == 0)
			is_control = true;
		else if (strcmp(argv[i], "--limit") == 0 && i + 1 < argc)
			limit = strtoull(argv[++i], nullptr, 10);
	}
	see_total(limit);
	take_too_much(limit);
	if (!is_control)
		fill(limit);
	go_on();
	puts("{\"event\":\"end\"}");
	return 0;
}
