#!/usr/bin/env python3
"""wide.py spin|fma SPIN.PTX OUT.PTX: the kernels of many blocks, made from spin.ptx.

spin  the same kernel with its stop word in a variable of the module: thousands of warps that look for it in host memory
      would keep the bus busy.
fma   also multiply-adds between two reads of the clock, for the power metric. The sums stay in registers, so memory
      and caches stay idle; the warps of a full SM get through one round in some microseconds, so holes are seen as
      sharply as by the bare kernel. The store after the loop never happens, but the compiler cannot know that and
      keeps the sums.
"""
import sys

CHAINS = 8  # independent sums a thread: enough to hide an FMA's latency
ROUNDS = 32

STOP_WORD = """\t// STOP WORD: kernels/wide.py puts the module's own here
\tand.b64 %stopaddr, %rec, -4096;
\tadd.u64 %stopaddr, %stopaddr, 4032;
"""
WORK = "\t// WORK: kernels/wide.py puts its multiply-adds here\n"


def replace(text, old, new):
    assert text.count(old) == 1, old
    return text.replace(old, new)


def widen(text, name):
    text = replace(text, ".visible .entry spin_ns(",
                   ".visible .global .align 4 .u32 stop_epoch = 0;\n\n.visible .entry " + name + "(")
    return replace(text, STOP_WORD, "\tmov.u64 %stopaddr, stop_epoch;\n")


def add_multiply_adds(text):
    sums = [f"%acc{i}" for i in range(CHAINS)]
    registers = "\t.reg .f32 " + ", ".join(sums) + ", %mul, %add;\n\t.reg .pred %never;\n"
    start = "".join(f"\tcvt.rn.f32.u32 {s}, %t;\n" for s in sums)
    start += "\tmov.f32 %mul, 0f3F7FFFFE;\n\tmov.f32 %add, 0f3F800001;\n"
    work = "".join(f"\tfma.rn.f32 {s}, {s}, %mul, %add;\n" for _ in range(ROUNDS) for s in sums)
    keep = "".join(f"\tadd.f32 %acc0, %acc0, {s};\n" for s in sums[1:])
    keep += "\tsetp.eq.f32 %never, %acc0, 0fFF800000;\n\t@%never st.volatile.global.u32 [%stopaddr], %seq;\n"
    text = replace(text, "\t.reg .pred %leader", registers + "\t.reg .pred %leader")
    text = replace(text, "\nSPIN:\n", "\n" + start + "\nSPIN:\n")
    text = replace(text, WORK, work)
    return replace(text, "\nDONE:\n", "\nDONE:\n" + keep)


kind, source, target = sys.argv[1:]
spin = open(source).read()
out = widen(spin, "spin_ns_wide") if kind == "spin" else add_multiply_adds(widen(spin, "spin_ns_fma"))
open(target, "w").write(out)
