"""run-programs: unmodified programs of the usual frameworks under a memory limit and a cap: they see it as the card's memory, meet
it as their own error, and go on. Beside each the same program without a limit, which meets the card's own end: alone, for some
take all that there is before they are refused."""
import os
import shutil
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

from . import claims, toolkit
from .frameworks import PROGRAMS, command
from .governed import Program, need_run, wrapped
from .lab import Missing, Trouble

LIMIT_BYTES = 8 << 30
CAP = "50%"
AT_ONCE = 4
WITHIN_S = 240
ALLOCATORS = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")  # the names of today and of before
NVCC = "nvcc"
TOLD = ("total", "filled")


def torch_with(setting):
    return {name: setting for name in ALLOCATORS}


def jax_with(preallocates):
    return {"XLA_PYTHON_CLIENT_PREALLOCATE": preallocates}


# name: (framework, program and its options, environment)
TRIALS = {
    "torch": ("torch", ("try_torch.py",), torch_with("expandable_segments:False")),
    "torch, expandable segments": ("torch", ("try_torch.py",), torch_with("expandable_segments:True")),
    "torch, cudaMallocAsync": ("torch", ("try_torch.py",), torch_with("backend:cudaMallocAsync")),
    "torch, compiled": ("torch", ("try_torch.py", "--mode", "compile"), {}),
    "torch, CUDA graph": ("torch", ("try_torch.py", "--mode", "graph"), {}),
    "jax, preallocating": ("jax", ("try_jax.py",), jax_with("true")),
    "jax, on demand": ("jax", ("try_jax.py",), jax_with("false")),
    "cupy": ("cupy", ("try_cupy.py",), {}),
    "numba": ("numba", ("try_numba.py",), {}),
    "nvcc, static runtime": (NVCC, ("-cudart", "static"), {}),
    "nvcc, shared runtime": (NVCC, ("-cudart", "shared"), {}),
}

Result = namedtuple("Result", "is_ok text")


def judge(status, out, err):
    """By what it printed, by that it came to its end, and by its exit status. Of what went well only a little is told."""
    lines = claims.parse(out)
    checks = [line for line in lines if line.get("event") == "check"]
    is_ok = bool(checks) and all(line["ok"] for line in checks)
    text = "; ".join(f"{line['what']}: {line['text']}" for line in checks if not line["ok"] or (
        is_ok and line["what"] in TOLD))
    if status or not any(line.get("event") == "end" for line in lines):
        complaint = err.strip().splitlines()[-1][:80] if err.strip() else "says nothing"
        return Result(False, f"{text}; ended with {status}: {complaint}".lstrip("; "))
    return Result(is_ok, text)


def words_of(lab, name):
    framework, words, _ = TRIALS[name]
    if framework == NVCC:
        return [toolkit.build(lab, os.path.join(PROGRAMS, "try_runtime.cu"), f"try_runtime-{words[-1]}", *words)]
    return command(lab, framework, *words)


def card_bytes(lab):
    """What a program without a limit sees as the card's memory: CUDA's word, which is less than NVML's."""
    status, out, err = lab.run("card-bytes", command(lab, None, "total.py"))
    if status:
        raise Trouble(f"the card's memory: {err.strip()[-80:]}")
    return int(out)


def start_name(name, kind):
    return f"programs-{name.replace(', ', '-').replace(' ', '-')}-{kind}"


def run_one(lab, name, words, total):
    """total: of the card, for one without a limit; None: under the limit."""
    if total is not None:
        command_line, kind = [*words, "--limit", str(total), "--control"], "native"
    else:
        command_line = wrapped(lab, [*words, "--limit", str(LIMIT_BYTES)], ["--mem", LIMIT_BYTES, "--compute", CAP])
        kind = "run"
    return judge(*lab.run(start_name(name, kind), command_line, TRIALS[name][2], WITHIN_S))


def find_all(lab):
    """{name: command} of those that this machine has; the others get their row."""
    found = {}
    for name in TRIALS:
        try:
            found[name] = words_of(lab, name)
        except (Missing, Trouble) as why:
            lab.report.skip(f"programs: {name}", str(why))
    return found


def report_smi(lab):
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    bare = lab.run("programs-smi-native", query)[1].split()
    status, out, err = lab.run("programs-smi-run", wrapped(lab, query, ["--mem", LIMIT_BYTES]))
    want = str(LIMIT_BYTES >> 20)
    lab.report.check("programs: nvidia-smi, memory of the card", f"{want} MiB",
                     f"{' '.join(out.split()) or err.strip()[-60:]}; native {' '.join(bare)}",
                     status == 0 and bool(out.split()) and out.split()[0] == want)


def report_processes(lab):
    """The tenant's own process, beside one that is not the tenant's."""
    name = "programs: NVML's processes inside"
    beside = Program(lab, "programs-beside", command(lab, None, "loop_spin.py")).wait_ready()
    words = command(lab, None, "processes_inside.py")
    told = []
    for kind, command_line in (("native", words), ("run", wrapped(lab, words, ["--mem", LIMIT_BYTES]))):
        _, out, err = lab.run(f"programs-processes-{kind}", command_line)
        told += claims.parse(out) or [{"why": err.strip()[-60:]}]
    beside.end()
    native, inside = told
    lab.report.keep(name, {"native": native, "run": inside})
    if "why" in native or len(native["nvml"]) < 2:
        lab.report.skip(name, f"native: {native.get('why') or native['nvml']}")
    elif "why" in inside:
        lab.report.check(name, "its own alone", inside["why"], False)
    else:
        lab.report.check(name, "its own alone", f"{len(inside['nvml'])} of {len(native['nvml'])}",
                         [pid for pid, _ in inside["nvml"]] == [inside["pid"]])
        lab.report.info("programs: nvidia-smi's processes inside", f"{len(inside['smi'])} of {len(native['smi'])}")


def run(lab):
    need_run(lab)
    total = card_bytes(lab)
    found = find_all(lab)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = {name: pool.submit(run_one, lab, name, words, None) for name, words in found.items()}
    for name, words in found.items():
        result, control = running[name].result(), run_one(lab, name, words, total)
        lab.report.keep(f"programs: {name}", {"run": result._asdict(), "native": control._asdict()})
        beside = "native ok" if control.is_ok else f"native fails too: {control.text}"
        lab.report.check(f"programs: {name}", "sees, meets, goes on", f"{result.text}; {beside}", result.is_ok)
    if shutil.which("nvidia-smi"):
        report_smi(lab)
        report_processes(lab)
    else:
        lab.report.skip("programs: nvidia-smi", "no nvidia-smi")
