/* ipc: memory of one process is opened by two others, by one of them twice; its maker frees a part and is killed; each
 * of the two takes all that it gets, lets go of what it opened, and takes again. */
#include <sys/mman.h>

#include "case.h"

enum { BLOCKS = 6, TAKERS = 2 };

static struct board {
	struct ll_cu_ipc_mem_handle handles[BLOCKS];
	_Atomic int made, opened, freed, full;
} * board;

static void wait_until(_Atomic int *value, int least)
{
	for (int i = 0; *value < least; i++) {
		NEED(i < 60000);
		usleep(1000);
	}
}

static void make(void)
{
	ll_cu_deviceptr blocks[BLOCKS];
	begin();
	for (int i = 0; i < BLOCKS; i++) {
		TRY(cuMemAlloc_v2(&blocks[i], 50 * MIB));
		TRY(cuIpcGetMemHandle(&board->handles[i], blocks[i]));
	}
	board->made = 1;
	wait_until(&board->opened, TAKERS);
	for (int i = 0; i < BLOCKS; i += 2)
		TRY(cuMemFree_v2(blocks[i]));
	board->freed = 1;
	kill(getpid(), SIGKILL);
}

static void take(bool is_second)
{
	ll_cu_deviceptr opened[BLOCKS], again;
	begin();
	wait_until(&board->made, 1);
	for (int i = 0; i < BLOCKS; i++) {
		TRY(cuIpcOpenMemHandle_v2(&opened[i], board->handles[i], LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
		if (is_second &&
		    cuIpcOpenMemHandle_v2(&again, board->handles[i], LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == 0)
			TRY(cuIpcCloseMemHandle(again));
	}
	board->opened++;
	wait_until(&board->freed, 1);
	fill();
	for (int i = is_second; i < BLOCKS; i += 3)
		TRY(cuIpcCloseMemHandle(opened[i]));
	fill();
	board->full++;
	stay();
}

int main(void)
{
	pid_t pids[TAKERS + 1];
	board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(board != MAP_FAILED);
	for (int i = 0; i <= TAKERS; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		if (i < TAKERS)
			take(i == 1);
		else
			make();
		_exit(0);
	}
	wait_until(&board->full, TAKERS);
	puts("full");
	fflush(stdout);
	for (int i = 0; i < TAKERS; i++)
		join(pids[i]);
	return 0;
}
