/*
 * agent.h - the thread that looks after a flow when no launch comes: it finds ended work, gives the turn back, keeps
 * the claim alive, and gives up reserves of memory that the tenant's other processes ask for.
 */
#ifndef LOADLINE_SHIM_TIME_AGENT_H
#define LOADLINE_SHIM_TIME_AGENT_H

struct ll_claim;
struct ll_flow;

int ll_agent_start(struct ll_flow *flow); /* -errno */

/* Comes back when it has ended, and after 0.2 s if it hangs in the driver: then it is left to the end of the process.
 */
void ll_agent_stop(struct ll_flow *flow);

/* The flow goes on with another claim, in place of one that was lost. */
void ll_agent_move(struct ll_flow *flow, struct ll_claim *claim);

#endif
