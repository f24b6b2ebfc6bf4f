/*
 * agent.h - the thread of a flow. While no launch comes it finds ended work, gives the turn back, keeps the claim's
 * heartbeat, and gives up reserves of memory for which the tenant's other processes ask.
 */
#ifndef LOADLINE_SHIM_TIME_AGENT_H
#define LOADLINE_SHIM_TIME_AGENT_H

struct ll_claim;
struct ll_flow;

int ll_agent_start(struct ll_flow *flow); /* starts the thread; 0 or -errno */

/* Ends the thread. Returns when it has ended, or after 0.2 s if it hangs in the driver. Then it is left as it is until
 * the process ends. */
void ll_agent_stop(struct ll_flow *flow);

/* The flow goes on with another claim in place of a lost one. */
void ll_agent_move(struct ll_flow *flow, struct ll_claim *claim);

#endif
