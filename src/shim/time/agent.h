/*
 * agent.h - the thread of a flow. While the program makes no launch, the agent finds work that has ended, gives the
 * turn back and writes the claim's heartbeat. If another process of the tenant needs memory, the agent gives up the
 * memory that this process keeps in reserve.
 */
#ifndef LOADLINE_SHIM_TIME_AGENT_H
#define LOADLINE_SHIM_TIME_AGENT_H

struct ll_claim;
struct ll_flow;

int ll_agent_start(struct ll_flow *flow); /* starts the thread; 0 or -errno */

/* Ends the thread. Returns when the thread has ended, or after 0.2 s if the thread hangs in the driver. In the second
 * case the thread goes on until the process ends. */
void ll_agent_stop(struct ll_flow *flow);

/* Replaces the flow's lost claim by another claim. */
void ll_agent_move(struct ll_flow *flow, struct ll_claim *claim);

#endif
