#!/usr/bin/env python3
"""wide.py KIND SPIN.PTX OUT.PTX: the kernels of many blocks, made from spin.ptx. KIND is one of:

spin    the same kernel with its stop word in a variable of the module: thousands of warps that look for it in host memory
        would keep the bus busy.
fma     also multiply-adds between two reads of the clock, for the power metric. The sums stay in registers, so memory
        and caches stay idle; the warps of a full SM get through one round in some microseconds, so holes are seen as
        sharply as by the bare kernel.
tensor  products of matrices on the tensor cores between two reads of the clock. Every matrix is zero, so that
        the card draws as little power as possible. The zero is read from memory, so that the compiler cannot know it.
        A product needs its whole warp, so the first lane reads the clock and the stop word for all of them.
dram    reads of a buffer that is larger than the L2 cache, which the parameters buffer and buffer_bytes name. All warps
        together read it from one end to the other, again and again. A launch begins at a place of its own: what the
        launch before it read last may still be in the cache.

What fma, tensor and dram compute is stored under a condition that never holds; the compiler cannot know that and keeps
the work. A round of tensor or dram takes longer than one of fma: these two look at the stop word every 8 rounds.
"""
import sys

CHAINS = 8  # independent sums of a thread (fma), products of a warp (tensor): enough to hide an instruction's latency
FMA_ROUNDS = 32
TENSOR_ROUNDS = 8
LOADS = 8  # of 16 bytes, of a thread, on their way at once
WARP_BYTES = LOADS * 32 * 16  # what a warp reads in one round
GOLDEN = "0x9E3779B9"  # 2^32 / 1.618: the fractions of its multiples are spread evenly

STOP_WORD = """\t// STOP WORD: kernels/wide.py puts the module's own here
\tand.b64 %stopaddr, %rec, -4096;
\tadd.u64 %stopaddr, %stopaddr, 4032;
"""
WORK = "\t// WORK: kernels/wide.py puts its multiply-adds here\n"
LEADER = "\t.reg .pred %leader"


def replace(text, old, new, count=1):
    assert text.count(old) == count, old
    return text.replace(old, new)


def widen(text, name):
    text = replace(text, ".visible .entry spin_ns(",
                   ".visible .global .align 4 .u32 stop_epoch = 0;\n\n.visible .entry " + name + "(")
    return replace(text, STOP_WORD, "\tmov.u64 %stopaddr, stop_epoch;\n")


def add_work(text, registers, start, work, keep, kept="%stopaddr"):
    """start: before the first round. keep: sets %never from what was computed. kept: where it would be stored."""
    keep += f"\t@%never st.volatile.global.u32 [{kept}], %seq;\n"
    text = replace(text, LEADER, registers + "\t.reg .pred %never;\n" + LEADER)
    text = replace(text, "\nSPIN:\n", "\n" + start + "\nSPIN:\n")
    text = replace(text, WORK, work)
    return replace(text, "\nDONE:\n", "\nDONE:\n" + keep)


def add_variable(text, name):
    return replace(text, ".visible .entry", f".visible .global .align 4 .b32 {name} = 0;\n\n.visible .entry")


def fill_sms(text):
    """The registers are shared out so that a block of 1024 threads fits."""
    return replace(text, "\n{\n", "\n\t.maxntid 1024, 1, 1\n{\n")


def look_every_8_rounds(text):
    return replace(text, "\tand.b32 %t, %turn, 63;\n", "\tand.b32 %t, %turn, 7;\n")


def add_multiply_adds(text):
    sums = [f"%acc{i}" for i in range(CHAINS)]
    registers = "\t.reg .f32 " + ", ".join(sums) + ", %mul, %add;\n"
    start = "".join(f"\tcvt.rn.f32.u32 {s}, %t;\n" for s in sums)
    start += "\tmov.f32 %mul, 0f3F7FFFFE;\n\tmov.f32 %add, 0f3F800001;\n"
    work = "".join(f"\tfma.rn.f32 {s}, {s}, %mul, %add;\n" for _ in range(FMA_ROUNDS) for s in sums)
    keep = "".join(f"\tadd.f32 %acc0, %acc0, {s};\n" for s in sums[1:])
    keep += "\tsetp.eq.f32 %never, %acc0, 0fFF800000;\n"
    return add_work(text, registers, start, work, keep)


def tell_warp(name, words):
    """The first lane's value becomes that of all lanes."""
    if words == 1:
        return f"\tshfl.sync.idx.b32 {name}, {name}, 0, 31, -1;\n"
    told = "".join(f"\tshfl.sync.idx.b32 {half}, {half}, 0, 31, -1;\n" for half in ("%low", "%high"))
    return f"\tmov.b64 {{%low, %high}}, {name};\n{told}\tmov.b64 {name}, {{%low, %high}};\n"


def keep_warps_together(text):
    text = replace(text, LEADER, "\t.reg .b32 %low, %high;\n" + LEADER)
    for name in ("%start", "%now"):
        read = f"\tmov.u64 {name}, %globaltimer;\n"
        text = replace(text, read, read + tell_warp(name, 2))
    read = "\tld.volatile.global.u32 %stop, [%stopaddr];\n"
    text = replace(text, read, read + tell_warp("%stop", 1), 2)
    return text.replace("\t@%p bra ", "\t@%p bra.uni ").replace("\tbra DONE", "\tbra.uni DONE")


def add_products(text):
    sums = [[f"%acc{i}_{j}" for j in range(4)] for i in range(CHAINS)]
    every = [s for four in sums for s in four]
    registers = "\t.reg .f32 " + ", ".join(every) + ";\n\t.reg .b32 %zero;\n"
    start = "\tld.volatile.global.b32 %zero, [zero];\n" + "".join(f"\tmov.f32 {s}, 0f00000000;\n" for s in every)
    work = "".join("\tmma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{0}}}, {{{1}}}, {{{2}}}, {{{0}}};\n".format(
        ", ".join(four), ", ".join(["%zero"] * 4), ", ".join(["%zero"] * 2)) for _ in range(TENSOR_ROUNDS) for four in sums)
    keep = "".join(f"\tadd.f32 %acc0_0, %acc0_0, {s};\n" for s in every[1:])
    keep += "\tsetp.eq.f32 %never, %acc0_0, 0fFF800000;\n"
    text = replace(text, ".target sm_50", ".target sm_80")
    text = fill_sms(add_variable(text, "zero"))
    return look_every_8_rounds(keep_warps_together(add_work(text, registers, start, work, keep)))


def add_reads(text):
    values = [[f"%v{i}_{j}" for j in range(4)] for i in range(LOADS)]
    every = [v for four in values for v in four]
    registers = "\t.reg .b32 " + ", ".join(every) + ", %sum;\n" \
                "\t.reg .u32 %chunk, %chunks, %warps, %lane;\n\t.reg .u64 %buffer, %bytes, %at;\n"
    start = f"""\
\tld.param.u64 %buffer, [buffer];
\tld.param.u64 %bytes, [buffer_bytes];
\tdiv.u64 %bytes, %bytes, {WARP_BYTES};
\tcvt.u32.u64 %chunks, %bytes;
\tmov.u32 %lane, %laneid;
\tmad.wide.u32 %buffer, %lane, 16, %buffer;
\tmov.u32 %warps, %ntid.x;
\tshr.u32 %warps, %warps, 5;
\tmov.u32 %t, %tid.x;
\tshr.u32 %t, %t, 5;
\tmad.lo.u32 %t, %b, %warps, %t;
\tmov.u32 %chunk, %nctaid.x;
\tmul.lo.u32 %warps, %warps, %chunk;
\tmul.lo.u32 %chunk, %seq, {GOLDEN};
\tmul.hi.u32 %chunk, %chunk, %chunks;
\tadd.u32 %chunk, %chunk, %t;
\trem.u32 %chunk, %chunk, %chunks;
\tmov.u32 %sum, 0;
"""
    start += "".join(f"\tmov.b32 {v}, 0;\n" for v in every)
    # What a round reads is used in the next one: so all its loads are on their way at once.
    use = "".join(f"\txor.b32 %sum, %sum, {v};\n" for v in every)
    work = use + f"\tmad.wide.u32 %at, %chunk, {WARP_BYTES}, %buffer;\n"
    work += "".join(f"\tld.global.cs.v4.b32 {{{', '.join(four)}}}, [%at+{i * 512}];\n" for i, four in enumerate(values))
    work += "\tadd.u32 %chunk, %chunk, %warps;\n\trem.u32 %chunk, %chunk, %chunks;\n"
    # Memory that is not zero could give this sum: it is stored where nobody looks.
    keep = use + "\tsetp.eq.u32 %never, %sum, 0x5F3759DF;\n"
    text = replace(text, ".param .u64 epoch_seq)",
                   ".param .u64 epoch_seq,\n\t.param .u64 buffer, .param .u64 buffer_bytes)")
    text = fill_sms(add_variable(text, "kept"))
    return look_every_8_rounds(add_work(text, registers, start, work, keep, "kept"))


ADD = {"spin": lambda text: text, "fma": add_multiply_adds, "tensor": add_products, "dram": add_reads}

kind, source, target = sys.argv[1:]
spin = open(source).read()
out = ADD[kind](widen(spin, "spin_ns_wide" if kind == "spin" else "spin_ns_" + kind))
open(target, "w").write(out)
