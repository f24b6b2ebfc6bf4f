#!/usr/bin/env python3
"""Checks run-passes without a card: what must fail fails, and ctypes is told what the driver's header declares."""
import ctypes
import os
import pathlib
import re
import sys
import types
import unittest

sys.dont_write_bytecode = True
BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [BENCH, os.path.join(BENCH, "programs")]
sys.modules["driver"] = types.SimpleNamespace(cuda=types.SimpleNamespace())  # there may be none here

import signatures  # noqa: E402
import structs  # noqa: E402
from harness import part_run_passes  # noqa: E402
from harness.report import FAILED, OK, SKIPPED, Report  # noqa: E402

MIB = 1 << 20
HEADER = next((path for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda")
               if home and (path := pathlib.Path(home) / "include/cuda.h").is_file()), None)
# CUDA 13.0's own sizes.
SIZES = {"CUmemAccessDesc": 12, "CUmemAllocationProp": 32, "CUDA_ARRAY_DESCRIPTOR": 24, "CUDA_ARRAY3D_DESCRIPTOR": 40,
         "CUarrayMapInfo": 96, "CUDA_RESOURCE_DESC": 144, "CUDA_TEXTURE_DESC": 104, "CUDA_KERNEL_NODE_PARAMS": 72,
         "CUDA_MEMSET_NODE_PARAMS": 40, "CUDA_HOST_NODE_PARAMS": 16, "CUDA_MEMCPY3D": 200, "CUstreamBatchMemOpParams": 48,
         "CUDA_BATCH_MEM_OP_NODE_PARAMS": 32, "CUDA_GRAPH_INSTANTIATE_PARAMS": 32, "CUgraphExecUpdateResultInfo": 24}
HANDLES = (r"CU(context|module|function|library|kernel|array|mipmappedArray|stream|event|graph|graphNode|graphExec|memoryPool|texref|"
           r"linkState|greenCtx|devResourceDesc|asyncCallback|asyncCallbackHandle|streamCallback)$")
LETTERS = {"CUdeviceptr": "d", "CUdeviceptr_v1": "u", "size_t": "z", "unsigned int": "u", "int": "i", "CUdevice": "i",
           "unsigned long long": "q", "cuuint64_t": "q", "cuuint32_t": "u", "CUmemGenericAllocationHandle": "q", "CUtexObject": "q",
           "CUsurfObject": "q", "unsigned short": "s", "unsigned char": "b", "CUmemLocation": "l", "CUipcMemHandle": "h",
           "CUipcEventHandle": "h"}


def letter(argument):
    """What a declared argument is to signatures.py; enumerations are ints."""
    kind = re.sub(r"\bconst\b|\b\w+$", "", argument.strip()).strip()
    if "*" in argument or re.match(HANDLES, kind):
        return "p"
    return LETTERS.get(kind, "i")


def declared():
    """{symbol: letters}. The last block has the oldest versions under their plain names, which mean others before."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", HEADER.read_text(), flags=re.S)
    names = dict(re.findall(r"#\s*define (cu\w+)\s+(?:__CUDA_API_PT[SD][SZ]\()?(cu\w+)\)?", text))
    own_names = text.rindex("#if defined(__CUDA_API_VERSION_INTERNAL)")
    found = {}
    for match in re.finditer(r"CUresult\s+CUDAAPI\s+(cu\w+)\s*\(([^;]*)\);", text):
        name = names.get(match[1], match[1]) if match.start() < own_names else match[1]
        found[name] = "" if match[2].strip() == "void" else "".join(map(letter, match[2].split(",")))
    return found


class Signatures(unittest.TestCase):
    @unittest.skipUnless(HEADER, "no cuda.h")
    def test_arguments_are_those_that_the_header_declares(self):
        found = declared()
        self.assertEqual(signatures.TAKEN, {name: found.get(name) for name in signatures.TAKEN})

    def test_structures_are_as_large_as_the_driver_s(self):
        kinds = {kind.__name__: kind for kind in vars(structs).values() if isinstance(kind, type)}
        self.assertEqual({name: ctypes.sizeof(kinds[name]) for name in SIZES}, SIZES)


class FakeLab:
    def __init__(self):
        self.report = Report(say=lambda line: None)


def said(status=0, taken=0, charged=0, most=2 * MIB, may_refuse=False):
    return {"event": "passes", "function": "cuX", "status": status, "times": 9, "taken_bytes": taken, "most_bytes": most,
            "charged_bytes": charged, "may_refuse": may_refuse}


class Passing(unittest.TestCase):
    def results(self, native, governed):
        lab = FakeLab()
        part_run_passes.judge(lab.report, "step", native, governed)
        return [row["result"] for row in lab.report.rows]

    def one(self, native, governed):
        return self.results([native], [governed])

    def test_what_takes_nothing_passes_and_a_block_too_many_fails(self):
        self.assertEqual(self.one(said(taken=2 * MIB), said()), [OK])
        self.assertEqual(self.one(said(taken=2 * MIB + 1), said()), [FAILED])

    def test_a_byte_of_charge_fails_where_none_is_due(self):
        self.assertEqual(self.one(said(), said(taken=1)), [FAILED])
        self.assertEqual(self.one(said(taken=64 * MIB, most=None), said(taken=64 * MIB)), [FAILED])
        self.assertEqual(self.one(said(taken=64 * MIB, most=None), said()), [OK])

    def test_a_charge_that_is_said_to_fall_has_to(self):
        self.assertEqual(self.one(said(charged=-4 * MIB), said(taken=-4 * MIB)), [OK])
        self.assertEqual(self.one(said(charged=-4 * MIB), said()), [FAILED])

    def test_a_governed_program_is_answered_as_any(self):
        self.assertEqual(self.one(said(), said(status=2)), [FAILED])
        self.assertEqual(self.one(said(status=1), said(status=1)), [SKIPPED])
        self.assertEqual(self.one(said(status=1), said()), [FAILED])
        self.assertEqual(self.one(said(status=201, may_refuse=True), said(status=201)), [OK])
        self.assertEqual(self.results([said()], []), [FAILED])

    def test_what_a_driver_has_not_is_skipped_unless_a_governed_program_has_it(self):
        self.assertEqual(self.one(said(status=801), said(status=801)), [SKIPPED])
        self.assertEqual(self.one(said(status=801), said()), [FAILED])

    def test_a_step_that_ends_early_fails_where_it_lacks_nothing(self):
        lacks, crashed = {"event": "stopped", "why": "RuntimeError: cuX: 801"}, {"event": "stopped", "why": "status -11 after cuX"}
        self.assertEqual(self.results([lacks], [lacks]), [SKIPPED])
        self.assertEqual(self.results([crashed], [crashed]), [FAILED])
        self.assertEqual(self.results([], [lacks]), [FAILED])

    def test_only_the_context_may_be_what_an_old_copy_is_refused_for(self):
        def refused(status):
            return {"event": "refused", "function": "cuX", "where": "today", "status": status}
        self.assertEqual([self.one(refused(status), refused(status)) for status in (201, 0, 1, None)],
                         [[OK], [FAILED], [FAILED], [SKIPPED]])

    def test_nvml_tells_both_the_same(self):
        def answer(value):
            return {"event": "answer", "function": "nvmlX", "status": 0, "value": value}
        self.assertEqual(self.one(answer([1]), answer([1])), [OK])
        self.assertEqual(self.one(answer([1]), answer([2])), [FAILED])


if __name__ == "__main__":
    unittest.main()
