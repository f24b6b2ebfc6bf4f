#!/usr/bin/env python3
"""What ptxas makes of the kernels of `loadline hold`: it takes them, a block fits on an SM as often as the hold counts on, and
the work is still there. Skipped (77) where there is no ptxas."""
import functools
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "src/hold/kernels"
PTXAS = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
TARGETS = (80, 90, 100)
REGISTERS = 65536  # of an SM
THREADS = {"spin": 2048, "fma": 2048, "tensor": 1024, "dram": 1024}  # on an SM at once, as src/hold/drive.c launches them
# The low 12 bits of an instruction, which no manual gives: seen in what ptxas 13.0 made of these kernels.
HMMA, LDG = 0x23C, 0x981
SEEN_IN = (80, 90)


def read_opcodes(cubin):
    """Of the one kernel in it: an ELF file whose section .text.NAME has instructions of 16 bytes."""
    table = struct.unpack_from("<Q", cubin, 0x28)[0]
    count, names = struct.unpack_from("<HH", cubin, 0x3C)
    sections = [struct.unpack_from("<IIQQQQ", cubin, table + 64 * i) for i in range(count)]
    for name, _, _, _, offset, size in sections:
        if cubin.startswith(b".text.", sections[names][4] + name):
            return [struct.unpack_from("<H", cubin, at)[0] & 0xFFF for at in range(offset, offset + size, 16)]
    raise AssertionError("no kernel in what ptxas made")


@functools.cache
def assemble(kind, target):
    """(registers of a thread, opcodes); None: this ptxas does not know the target."""
    with tempfile.TemporaryDirectory() as folder:
        ptx, cubin = pathlib.Path(folder, "kernel.ptx"), pathlib.Path(folder, "kernel.cubin")
        subprocess.run([sys.executable, KERNELS / "wide.py", kind, KERNELS / "spin.ptx", ptx], check=True)
        done = subprocess.run([PTXAS, "-v", f"-arch=sm_{target}", "-o", cubin, ptx], capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        if done.returncode and "gpu-name" in said:
            return None
        assert done.returncode == 0, said
        assert " 0 bytes spill stores, 0 bytes spill loads" in said, said
        return int(re.search(r"Used (\d+) registers", said).group(1)), read_opcodes(cubin.read_bytes())


class Assembled(unittest.TestCase):
    def assembled(self, kind):
        """By target."""
        every = {target: assemble(kind, target) for target in TARGETS}
        known = {target: made for target, made in every.items() if made}
        self.assertTrue(known, "ptxas knows none of the targets")
        return known

    def test_as_many_threads_fit_on_an_sm_as_are_launched(self):
        for kind, threads in THREADS.items():
            for target, (registers, _) in self.assembled(kind).items():
                handed_out = (registers + 7) // 8 * 8
                self.assertLessEqual(handed_out * threads, REGISTERS, f"{kind}, sm_{target}")

    def test_every_product_of_tensor_is_made(self):
        made = self.assembled("tensor")
        for target in set(SEEN_IN) & set(made):
            self.assertEqual(made[target][1].count(HMMA), 64, f"sm_{target}")

    def test_the_eight_loads_of_dram_are_on_their_way_at_once(self):
        made = self.assembled("dram")
        for target, (registers, opcodes) in made.items():
            self.assertGreaterEqual(registers, 8 * 4 + 10, f"sm_{target}: no room for what eight loads of 16 bytes bring")
            if target in SEEN_IN:
                self.assertGreaterEqual(opcodes.count(LDG), 8, f"sm_{target}")


if not PTXAS:
    print("skipped: no ptxas (it comes with the CUDA toolkit)")
    sys.exit(77)
unittest.main()
