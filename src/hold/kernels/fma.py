#!/usr/bin/env python3
"""fma.py SPIN.PTX FMA.PTX: the power payload's kernel, spin.ptx with multiply-adds between two reads of the clock.

The sums stay in registers, so memory and caches stay idle; the warps of a full SM get through one round in some
microseconds, so holes are seen as sharply as by the bare kernel. The store after the loop never happens, but
the compiler cannot know that and keeps the sums.
"""
import sys

CHAINS = 8  # independent sums a thread: enough to hide an FMA's latency
ROUNDS = 32

spin = open(sys.argv[1]).read()
sums = [f"%acc{i}" for i in range(CHAINS)]
registers = "\t.reg .f32 " + ", ".join(sums) + ", %mul, %add;\n\t.reg .pred %never;\n"
start = "".join(f"\tcvt.rn.f32.u32 {s}, %t;\n" for s in sums)
start += "\tmov.f32 %mul, 0f3F7FFFFE;\n\tmov.f32 %add, 0f3F800001;\n"
work = "".join(f"\tfma.rn.f32 {s}, {s}, %mul, %add;\n" for _ in range(ROUNDS) for s in sums)
keep = "".join(f"\tadd.f32 %acc0, %acc0, {s};\n" for s in sums[1:])
keep += "\tsetp.eq.f32 %never, %acc0, 0fFF800000;\n\t@%never st.volatile.global.u32 [%stopaddr], %seq;\n"

out = spin.replace(".visible .entry spin_ns(", ".visible .entry spin_ns_fma(")
out = out.replace("\t.reg .pred %leader", registers + "\t.reg .pred %leader", 1)
out = out.replace("SPIN:\n", start + "\nSPIN:\n", 1)
out = out.replace("\t// WORK: kernels/fma.py puts its multiply-adds here\n", work, 1)
out = out.replace("DONE:\n", "DONE:\n" + keep, 1)
assert out.count("fma.rn.f32") == CHAINS * ROUNDS and "%never" in out
open(sys.argv[2], "w").write(out)
