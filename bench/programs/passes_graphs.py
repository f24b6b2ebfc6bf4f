"""Graphs: descriptions on the host, and what the driver keeps for those that are ready to be launched."""
import ctypes
from ctypes import byref, c_int, c_uint64, c_void_p

import structs
from taken import allocate, by, card, need, place

GRAPHS, NODES = 100, 100
HOST_SIDE, CARD_SIDE = 1, 2  # CUmemorytype
COUNT = 4096
WRITE_32 = 2
USED_HIGH = 1                # CUgraphMem_attribute
HOST_CALL = ctypes.CFUNCTYPE(None, c_void_p)
host_memory = (ctypes.c_ubyte * COUNT)()
heard = HOST_CALL(lambda _: None)


def new_graph():
    graph = c_void_p()
    need("cuGraphCreate", byref(graph), 0)
    return graph


def kernel_node(card_):
    return structs.KernelNode(function=card_.kernel, grid_x=1, grid_y=1, grid_z=1, block_x=32, block_y=1, block_z=1,
                              parameters=ctypes.addressof(card_.parameters))


def graph_of_kernels(card_, count=10):
    graph, node = new_graph(), c_void_p()
    for _ in range(count):
        need("cuGraphAddKernelNode_v2", byref(node), graph, None, 0, byref(kernel_node(card_)))
    return graph


def whole_graphs():
    made = graph_of_kernels(card()), (c_void_p * GRAPHS)()
    by("cuGraphCreate", GRAPHS, lambda call, at: call(place(made[1], at), 0))
    by("cuGraphClone", GRAPHS, lambda call, at: call(place(made[1], at), made[0]))


def nodes():
    here = card()
    where, event, node = allocate(COUNT), c_void_p(), c_void_p()
    need("cuEventCreate", byref(event), 0)
    write = structs.MemOp(operation=WRITE_32, address=where)
    kernel, host = kernel_node(here), structs.HostNode(function=ctypes.cast(heard, c_void_p))
    fill = structs.MemsetNode(address=where, element=1, width=COUNT, height=1)
    copy = structs.Copy3D(src_kind=HOST_SIDE, src_host=ctypes.addressof(host_memory), dst_kind=CARD_SIDE, dst_device=where,
                          src_pitch=COUNT, src_height=1, dst_pitch=COUNT, dst_height=1, width=COUNT, height=1, depth=1)
    batch = structs.MemOpNode(context=here.context, count=1, operations=ctypes.addressof(write))
    for name, words in {
            "cuGraphAddKernelNode_v2": (byref(kernel),), "cuGraphAddKernelNode": (byref(kernel),),
            "cuGraphAddMemcpyNode": (byref(copy), here.context), "cuGraphAddMemsetNode": (byref(fill), here.context),
            "cuGraphAddHostNode": (byref(host),), "cuGraphAddChildGraphNode": (graph_of_kernels(here),),
            "cuGraphAddEmptyNode": (), "cuGraphAddEventRecordNode": (event,), "cuGraphAddEventWaitNode": (event,),
            "cuGraphAddBatchMemOpNode": (byref(batch),)}.items():
        graph = new_graph()
        by(name, NODES, lambda call, _, graph=graph, words=words: call(byref(node), graph, None, 0, *words))
    graph, handle = new_graph(), c_uint64()
    by("cuGraphConditionalHandleCreate", NODES, lambda call, _: call(byref(handle), graph, here.context, 0, 0))


def ready_graphs():
    """Told, not judged: it is for nobody's account."""
    graph, node = graph_of_kernels(card()), c_void_p()
    made, params = (c_void_p * GRAPHS)(), structs.InstantiateParams()
    for name, words in {"cuGraphInstantiateWithFlags": (0,), "cuGraphInstantiateWithParams": (byref(params),),
                        "cuGraphInstantiate_v2": (byref(node), None, 0), "cuGraphInstantiate": (byref(node), None, 0)}.items():
        by(name, GRAPHS, lambda call, at, words=words: call(place(made, at), graph, *words), None)


def changed_graphs():
    graph, ready, node, result, info = (graph_of_kernels(card()), c_void_p(), c_void_p(), c_int(), structs.UpdateResult())
    need("cuGraphInstantiateWithFlags", byref(ready), graph, 0)
    by("cuGraphExecUpdate_v2", GRAPHS, lambda call, _: call(ready, graph, byref(info)))
    by("cuGraphExecUpdate", GRAPHS, lambda call, _: call(ready, graph, byref(node), byref(result)))


def marks_of_graph_memory():
    card()
    nothing = c_uint64()
    by("cuDeviceSetGraphMemAttribute", GRAPHS, lambda call, _: call(0, USED_HIGH, byref(nothing)))


STEPS = (whole_graphs, nodes, ready_graphs, changed_graphs, marks_of_graph_memory)
