"""What the functions take that the driver's header declares, a letter for each argument: ctypes would pass a number as an
int and a wrong one ends the program on a real card. selftest_passes.py compares with cuda.h where that is installed."""
import ctypes

import driver


class Location(ctypes.Structure):
    """CUmemLocation, which is passed by value."""
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Handle(ctypes.Structure):
    """CUipcMemHandle and CUipcEventHandle, which are passed by value."""
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


LETTERS = {"p": ctypes.c_void_p, "d": ctypes.c_uint64, "z": ctypes.c_size_t, "q": ctypes.c_uint64, "i": ctypes.c_int,
           "u": ctypes.c_uint, "s": ctypes.c_ushort, "b": ctypes.c_ubyte, "l": Location, "h": Handle}

# p: a pointer or a handle of the driver; d: a device address, or a handle of 64 bits; z: size_t; q: 64 bits; i, u: 32 bits
TAKEN = {
    "cuArray3DCreate_v2": "pp", "cuArray3DGetDescriptor": "pp", "cuArray3DGetDescriptor_v2": "pp", "cuArrayCreate_v2": "pp",
    "cuArrayGetDescriptor": "pp", "cuArrayGetDescriptor_v2": "pp", "cuArrayGetMemoryRequirements": "ppi",
    "cuArrayGetPlane": "ppu", "cuArrayGetSparseProperties": "pp", "cuCheckpointProcessCheckpoint": "ip",
    "cuCheckpointProcessLock": "ip", "cuCheckpointProcessRestore": "ip", "cuCheckpointProcessUnlock": "ip",
    "cuCtxAttach": "pu", "cuCtxCreate": "pui", "cuCtxCreate_v2": "pui", "cuCtxDetach": "p", "cuCtxRecordEvent": "pp",
    "cuCtxResetPersistingL2Cache": "", "cuCtxSetCurrent": "p", "cuCtxSetFlags": "u", "cuCtxSynchronize": "",
    "cuCtxWaitEvent": "pp", "cuDevResourceGenerateDesc": "ppu", "cuDevSmResourceSplitByCount": "ppppuu",
    "cuDeviceGetDevResource": "ipi", "cuDeviceGetMemPool": "pi", "cuDevicePrimaryCtxGetState": "ipp",
    "cuDevicePrimaryCtxRetain": "pi", "cuDevicePrimaryCtxSetFlags": "iu", "cuDevicePrimaryCtxSetFlags_v2": "iu",
    "cuDeviceRegisterAsyncNotification": "ippp", "cuDeviceSetGraphMemAttribute": "iip",
    "cuDeviceUnregisterAsyncNotification": "ip", "cuEventCreate": "pu", "cuEventDestroy": "p", "cuEventDestroy_v2": "p",
    "cuEventRecord": "pp", "cuEventRecordWithFlags": "ppu", "cuFuncLoad": "p", "cuGetExportTable": "pp",
    "cuGraphAddBatchMemOpNode": "pppzp", "cuGraphAddChildGraphNode": "pppzp", "cuGraphAddEmptyNode": "pppz",
    "cuGraphAddEventRecordNode": "pppzp", "cuGraphAddEventWaitNode": "pppzp", "cuGraphAddHostNode": "pppzp",
    "cuGraphAddKernelNode": "pppzp", "cuGraphAddKernelNode_v2": "pppzp", "cuGraphAddMemcpyNode": "pppzpp",
    "cuGraphAddMemsetNode": "pppzpp", "cuGraphClone": "pp", "cuGraphConditionalHandleCreate": "pppuu",
    "cuGraphCreate": "pu", "cuGraphExecUpdate": "pppp", "cuGraphExecUpdate_v2": "ppp", "cuGraphInstantiate": "ppppz",
    "cuGraphInstantiateWithFlags": "ppq", "cuGraphInstantiateWithParams": "ppp", "cuGraphInstantiate_v2": "ppppz",
    "cuGreenCtxCreate": "ppiu", "cuGreenCtxRecordEvent": "pp", "cuGreenCtxWaitEvent": "pp", "cuInit": "u",
    "cuIpcCloseMemHandle": "d", "cuIpcGetEventHandle": "pp", "cuIpcGetMemHandle": "pd", "cuIpcOpenEventHandle": "ph",
    "cuIpcOpenMemHandle": "phu", "cuIpcOpenMemHandle_v2": "phu", "cuKernelGetFunction": "pp", "cuLibraryGetGlobal": "pppp",
    "cuLibraryGetKernel": "ppp", "cuLibraryGetManaged": "pppp", "cuLibraryGetModule": "pp", "cuLibraryLoadData": "ppppuppu",
    "cuLibraryLoadFromFile": "ppppuppu", "cuLinkAddData": "pipzpupp", "cuLinkAddData_v2": "pipzpupp",
    "cuLinkAddFile": "pipupp", "cuLinkAddFile_v2": "pipupp", "cuLinkComplete": "ppp", "cuLinkCreate": "uppp",
    "cuLinkCreate_v2": "uppp", "cuLinkDestroy": "p", "cuMemAddressReserve": "pzzdq", "cuMemAdvise": "dzii",
    "cuMemAdvise_v2": "dzil", "cuMemAllocHost": "pu", "cuMemAllocHost_v2": "pz", "cuMemAllocManaged": "pzu",
    "cuMemAlloc_v2": "pz", "cuMemCreate": "pzpq", "cuMemDiscardAndPrefetchBatchAsync": "ppzppzqp",
    "cuMemDiscardBatchAsync": "ppzqp", "cuMemFreeHost": "p", "cuMemGetAccess": "ppd", "cuMemGetAddressRange": "ppu",
    "cuMemGetAddressRange_v2": "ppd", "cuMemGetAllocationGranularity": "ppi",
    "cuMemGetAllocationPropertiesFromHandle": "pq", "cuMemGetHandleForAddressRange": "pdziq", "cuMemGetInfo_v2": "pp",
    "cuMemGetMemPool": "ppi", "cuMemHostAlloc": "pzu", "cuMemHostGetDevicePointer": "ppu",
    "cuMemHostGetDevicePointer_v2": "ppu", "cuMemHostGetFlags": "pp", "cuMemHostRegister": "pzu",
    "cuMemHostRegister_v2": "pzu", "cuMemHostUnregister": "p", "cuMemMap": "dzzqq", "cuMemMapArrayAsync": "pup",
    "cuMemPoolCreate": "pp", "cuMemPoolGetAccess": "ppp", "cuMemPoolSetAccess": "ppz", "cuMemPrefetchAsync": "dzip",
    "cuMemPrefetchAsync_v2": "dzlup", "cuMemPrefetchBatchAsync": "ppzppzqp", "cuMemRangeGetAttribute": "pzidz",
    "cuMemRangeGetAttributes": "pppzdz", "cuMemRelease": "q", "cuMemSetAccess": "dzpz", "cuMemcpy2D": "p",
    "cuMemcpy2DAsync": "pp", "cuMemcpy2DUnaligned": "p", "cuMemcpy3D": "p", "cuMemcpy3DAsync": "pp",
    "cuMemcpyAtoA": "pupuu", "cuMemcpyAtoD": "upuu", "cuMemcpyAtoH": "ppuu", "cuMemcpyAtoHAsync": "ppuup",
    "cuMemcpyDtoA": "puuu", "cuMemcpyDtoD": "uuu", "cuMemcpyDtoDAsync": "uuup", "cuMemcpyDtoH": "puu",
    "cuMemcpyDtoHAsync": "puup", "cuMemcpyHtoA": "pupu", "cuMemcpyHtoAAsync": "pupup", "cuMemcpyHtoD": "upu",
    "cuMemcpyHtoDAsync": "upup", "cuMemsetD16": "usu", "cuMemsetD2D16": "uusuu", "cuMemsetD2D32": "uuuuu",
    "cuMemsetD2D8": "uubuu", "cuMemsetD32": "uuu", "cuMemsetD8": "ubu", "cuMipmappedArrayCreate": "ppu",
    "cuMipmappedArrayGetLevel": "ppu", "cuMipmappedArrayGetMemoryRequirements": "ppi",
    "cuMipmappedArrayGetSparseProperties": "pp", "cuModuleGetFunction": "ppp", "cuModuleGetGlobal": "pppp",
    "cuModuleGetGlobal_v2": "pppp", "cuModuleLoad": "pp", "cuModuleLoadData": "pp", "cuModuleLoadDataEx": "ppupp",
    "cuModuleLoadFatBinary": "pp", "cuStreamAddCallback": "pppu", "cuStreamAttachMemAsync": "pdzu",
    "cuStreamBatchMemOp": "pupu", "cuStreamBatchMemOp_v2": "pupu", "cuStreamCreate": "pu",
    "cuStreamCreateWithPriority": "pui", "cuStreamSynchronize": "p", "cuStreamWaitEvent": "ppu",
    "cuStreamWaitValue32": "pduu", "cuStreamWaitValue32_v2": "pduu", "cuStreamWaitValue64": "pdqu",
    "cuStreamWaitValue64_v2": "pdqu", "cuStreamWriteValue32": "pduu", "cuStreamWriteValue32_v2": "pduu",
    "cuStreamWriteValue64": "pdqu", "cuStreamWriteValue64_v2": "pdqu", "cuSurfObjectCreate": "pp",
    "cuSurfObjectDestroy": "q", "cuTexObjectCreate": "pppp", "cuTexObjectDestroy": "q", "cuTexRefCreate": "p",
    "cuTexRefDestroy": "p",
}


def find(name):
    """The function with its arguments' types; None: not in this driver."""
    function = getattr(driver.cuda, name, None)
    if function is not None:
        function.argtypes = [LETTERS[letter] for letter in TAKEN[name]]
    return function
