"""Code and the variables of modules, which no account is charged for, and the linker."""
import struct
import tempfile
from ctypes import byref, c_size_t, c_uint64, c_void_p

from taken import MIB, MOST, by, card, need, place, to

VARIABLE = 16 * MIB
OFTEN = 100
TIMES, LINKS = 4, 10
TEXT = f"""
.version 7.4
.target sm_50
.address_size 64
.visible .global .align 8 .b8 large[{VARIABLE}];
.visible .entry nothing() {{ ret; }}
""".encode() + b"\0"
MANAGED_TEXT = b"""
.version 7.4
.target sm_50
.address_size 64
.visible .global .attribute(.managed) .align 8 .b8 shared[4096];
.visible .entry nothing() { ret; }
\0"""
OTHER_TEXT = TEXT.replace(b"large", b"other").replace(b"nothing", b"none")
PTX = 1     # CUjitInputType
SM_75 = 75  # the least that a toolkit of CUDA 13 makes


def fat_binary():
    """The text in the wrapping that CUDA's fatbinary gives it, uncompressed."""
    text = TEXT + bytes(-len(TEXT) % 8)
    entry = struct.pack("<HHIQIIHHIIIQQQQQ", 1, 0x101, 80, len(text), 0, 64, 4, 7, SM_75, 0, 0, 0x11, 0, 0, 72, 0)
    return struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(entry) + len(text)) + entry + text


def module_of(text):
    module = c_void_p()
    need("cuModuleLoadData", byref(module), text)
    return module


def library_of(text):
    library = c_void_p()
    need("cuLibraryLoadData", byref(library), text, None, None, 0, None, None, 0)
    return library


def modules():
    card()
    made, function = (c_void_p * TIMES)(), c_void_p()
    with tempfile.NamedTemporaryFile(suffix=".ptx") as out:
        out.write(TEXT.rstrip(b"\0"))
        out.flush()
        path = out.name.encode()
        by("cuModuleLoad", TIMES, lambda call, at: call(place(made, at), path), None)
    by("cuModuleLoadData", TIMES, lambda call, at: call(place(made, at), TEXT), None)
    by("cuModuleLoadDataEx", TIMES, lambda call, at: call(place(made, at), TEXT, 0, None, None), None)
    need("cuModuleGetFunction", byref(function), module_of(TEXT), b"nothing")
    by("cuFuncLoad", OFTEN, lambda call, _: call(function), None)


def fat_modules():
    card()
    made, image = (c_void_p * TIMES)(), fat_binary()
    by("cuModuleLoadFatBinary", TIMES, lambda call, at: call(place(made, at), image), None)


def libraries():
    card()
    made = (c_void_p * TIMES)()
    by("cuLibraryLoadData", TIMES, lambda call, at: call(place(made, at), TEXT, None, None, 0, None, None, 0), None)
    with tempfile.NamedTemporaryFile(suffix=".ptx") as out:
        out.write(TEXT.rstrip(b"\0"))
        out.flush()
        path = out.name.encode()
        by("cuLibraryLoadFromFile", TIMES, lambda call, at: call(place(made, at), path, None, None, 0, None, None, 0), None)


def variables():
    """Where the driver puts off loading, the first question loads the variable."""
    card()
    module, library, address, size = module_of(TEXT), library_of(TEXT), c_uint64(), c_size_t()
    most = VARIABLE + MOST
    for name, code in (("cuModuleGetGlobal_v2", module), ("cuLibraryGetGlobal", library)):
        by(name, OFTEN, lambda call, _, code=code: call(byref(address), byref(size), code, b"large"), most)
    by("cuModuleGetGlobal", OFTEN, lambda call, _: call(byref(address), byref(size), module, b"large"), most, may_refuse=True)


def managed_variables():
    card()
    library, address, size = library_of(MANAGED_TEXT), c_uint64(), c_size_t()
    by("cuLibraryGetManaged", OFTEN, lambda call, _: call(byref(address), byref(size), library, b"shared"))


def functions():
    """Where the driver puts off loading, this may be when it loads."""
    card()
    module, library, found, kernel = module_of(TEXT), library_of(TEXT), c_void_p(), c_void_p()
    by("cuModuleGetFunction", OFTEN, lambda call, _: call(byref(found), module, b"nothing"), None)
    by("cuLibraryGetKernel", OFTEN, lambda call, _: call(byref(kernel), library, b"nothing"), None)
    by("cuLibraryGetModule", OFTEN, lambda call, _: call(byref(found), library), None)
    by("cuKernelGetFunction", OFTEN, lambda call, _: call(byref(found), kernel), None)


def links():
    card()
    made, code, size = (c_void_p * LINKS)(), c_void_p(), c_size_t()
    by("cuLinkCreate_v2", LINKS, lambda call, at: call(0, None, None, place(made, at)))
    with tempfile.NamedTemporaryFile(suffix=".ptx") as out:
        out.write(OTHER_TEXT.rstrip(b"\0"))
        out.flush()
        path = out.name.encode()
        by("cuLinkAddData_v2", LINKS, lambda call, at: to(made[at], call, PTX, TEXT, len(TEXT), b"text", 0, None, None))
        by("cuLinkAddFile_v2", LINKS, lambda call, at: to(made[at], call, PTX, path, 0, None, None))
    by("cuLinkComplete", LINKS, lambda call, at: to(made[at], call, byref(code), byref(size)))
    by("cuLinkDestroy", LINKS, lambda call, at: to(made[at], call))


def older_links():
    """The oldest names of the same."""
    card()
    link = c_void_p()
    by("cuLinkCreate", 1, lambda call, _: call(0, None, None, byref(link)))
    if not link:
        return
    with tempfile.NamedTemporaryFile(suffix=".ptx") as out:
        out.write(OTHER_TEXT.rstrip(b"\0"))
        out.flush()
        path = out.name.encode()
        by("cuLinkAddData", 1, lambda call, _: call(link, PTX, TEXT, len(TEXT), b"text", 0, None, None), may_refuse=True)
        by("cuLinkAddFile", 1, lambda call, _: call(link, PTX, path, 0, None, None), may_refuse=True)
    need("cuLinkDestroy", link)


STEPS = (modules, fat_modules, libraries, variables, managed_variables, functions, links, older_links)
