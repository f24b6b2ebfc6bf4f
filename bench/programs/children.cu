/*
 * children.cu - a kernel that launches others one after the other on the card, for loop_children.py.
 */
__global__ void work_ns(unsigned long long length)
{
	unsigned long long begin, now;
	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
	do
		asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
	while (now - begin < length);
}

__global__ void parent(int children, unsigned long long length)
{
	for (int i = 0; i < children; i++)
		work_ns<<<1, 32>>>(length);
}

extern "C" int launch_parent(int children, unsigned long long length)
{
	parent<<<1, 1>>>(children, length);
	return cudaGetLastError();
}

extern "C" int new_mark(cudaEvent_t *ret_mark)
{
	cudaError_t status = cudaEventCreateWithFlags(ret_mark, cudaEventDisableTiming);
	return status == cudaSuccess ? cudaEventRecord(*ret_mark, 0) : status;
}

extern "C" int wait_mark(cudaEvent_t mark)
{
	cudaError_t status = cudaEventSynchronize(mark);
	cudaError_t destroyed = cudaEventDestroy(mark);
	return status == cudaSuccess ? destroyed : status;
}
