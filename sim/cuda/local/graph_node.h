/*
 * graph_node.h - nodes of graphs: checks their parameters, and copies the data behind their pointers.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_GRAPH_NODE_H
#define LOADLINE_SIM_CUDA_LOCAL_GRAPH_NODE_H

#include "cuda/local/graph.h"

/* Makes a node with these parameters. It is in no graph, and has no dependencies. The status says what is wrong with
 * the parameters. */
ll_cu_result sim_node_new(const struct ll_cu_graph_node_params *params, struct ll_cu_graph_node **ret_node);

/* Gives a node other parameters of the same type. On failure the node keeps the old ones. */
ll_cu_result sim_node_set(struct ll_cu_graph_node *node, const struct ll_cu_graph_node_params *params);

/* Makes a copy of a graph with its nodes and edges. Each node's `original` points to the node of which it is a copy.
 * NULL: out of memory. */
struct ll_cu_graph *sim_graph_clone(const struct ll_cu_graph *graph);

#endif
