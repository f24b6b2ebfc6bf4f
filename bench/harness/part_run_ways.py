"""run-ways: a memory limit holds whichever way a program comes to the driver, and whatever kind of memory it asks for. Each
way is also gone without a limit, where all of it must be granted."""
import sys

from . import claims
from .frameworks import command
from .governed import need_run, wrapped
from .lab import Missing

LIMIT_BYTES = 8 << 30
BEYOND_BYTES = LIMIT_BYTES + (1 << 20)
OUT_OF_MEMORY = 2
CUDA_WAYS = ("dlsym", "path", "default", "deepbind", "lazy", "thread", "address", "address-v2", "address-self", "fork",
             "exec", "shell", "linked")
NVML_WAYS = ("nvml", "nvml-v2")
OPENER = """import ctypes
ctypes.CDLL("libcuda.so.1")
print(next(line.split()[-1] for line in open("/proc/self/maps") if "/libcuda.so" in line))
"""


def library_path(lab):
    """Of the driver's own, which loaders find by its name."""
    status, out, _ = lab.run("ways-library", [sys.executable, "-c", OPENER])
    return out.strip() if status == 0 else "libcuda.so.1"


def words_of(lab, way, path):
    program = lab.program("bench/c/ways_linked" if way == "linked" else "bench/c/ways")
    return [program, way, str(BEYOND_BYTES), *([path] if way == "path" else [])]


def try_way(lab, way, words, limits):
    """What it told, or why it did not."""
    kind = "native" if limits is None else "run"
    status, out, err = lab.run(f"ways-{way}-{kind}", wrapped(lab, words, limits))
    told = [line for line in claims.parse(out) if line.get("event") == "way"]
    return told[0] if status == 0 and told else err.strip()[-60:] or f"exit status {status}"


def text_of(told):
    if isinstance(told, str):
        return told
    answers = {None: "", 0: ", granted", OUT_OF_MEMORY: ", refused"}
    return f"{told['total_bytes'] / (1 << 30):.2f} GiB{answers.get(told['beyond'], ', error ' + str(told['beyond']))}"


def holds(told):
    """The limit is the card's memory, more than it is out of memory, and less is granted."""
    if isinstance(told, str) or told["total_bytes"] != LIMIT_BYTES:
        return False
    return told["beyond"] in (None, OUT_OF_MEMORY) and told["within"] in (None, 0)


def report_way(lab, way, path):
    try:
        words = words_of(lab, way, path)
    except Missing as why:
        lab.report.skip(f"ways: {way}", str(why))
        return
    native, governed = try_way(lab, way, words, None), try_way(lab, way, words, ["--mem", LIMIT_BYTES])
    lab.report.keep(f"ways: {way}", {"native": native, "run": governed})
    lab.report.check(f"ways: {way}", "8.00 GiB" + (", refused" if way in CUDA_WAYS else ""),
                     f"{text_of(governed)}; native {text_of(native)}", holds(governed))


def kinds(lab, limits):
    """{kind: what the driver answered}"""
    name = "ways-kinds-" + ("native" if limits is None else "run")
    words = [*command(lab, None, "kinds.py"), str(LIMIT_BYTES)]
    _, out, _ = lab.run(name, wrapped(lab, words, limits))
    return {line["kind"]: line["status"] for line in claims.parse(out) if line.get("event") == "kind"}


def report_kinds(lab):
    native, governed = kinds(lab, None), kinds(lab, ["--mem", LIMIT_BYTES])
    lab.report.keep("ways: kinds of memory", {"native": native, "run": governed})
    for kind, answer in native.items():
        figure = f"ways: more than the limit, {kind.replace('_', ' ')}"
        if answer:
            lab.report.skip(figure, f"native: error {answer}")
        elif answer is None:
            lab.report.skip(figure, "not in this driver")
        else:
            got = governed.get(kind, "no answer")
            lab.report.check(figure, f"error {OUT_OF_MEMORY}", f"{'granted' if got == 0 else f'error {got}'}; native granted",
                             got == OUT_OF_MEMORY)
    if not native:
        lab.report.check("ways: kinds of memory", "answers", lab.tail("ways-kinds-native.err") or "none", False)


def report_ctypes(lab):
    """A Python program's own way: dlopen and dlsym by ctypes."""
    _, out, err = lab.run("ways-ctypes", wrapped(lab, command(lab, None, "total.py"), ["--mem", LIMIT_BYTES]))
    lab.report.check("ways: ctypes, cuDeviceTotalMem", str(LIMIT_BYTES), out.strip() or err.strip()[-60:],
                     out.strip() == str(LIMIT_BYTES))


def run(lab):
    need_run(lab)
    path = library_path(lab)
    with lab.report.group("ways: the limit is seen and met by every way to the driver"):
        for way in CUDA_WAYS + NVML_WAYS:
            report_way(lab, way, path)
        report_ctypes(lab)
    with lab.report.group("ways: more than the limit is refused, of every kind of memory"):
        report_kinds(lab)
