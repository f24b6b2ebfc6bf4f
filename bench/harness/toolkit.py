"""CUDA's compiler, where the machine has one."""
import os
import shutil

from .lab import Missing, Trouble

FOLDERS = "/usr/local/cuda/bin:/opt/cuda/bin"


def find_nvcc():
    found = shutil.which("nvcc", path=os.pathsep.join([os.environ.get("PATH", ""), FOLDERS]))
    if not found:
        raise Missing("no nvcc")
    return os.path.realpath(found)


def build(lab, source, program, *words):
    """Its path, in the logs folder."""
    nvcc, target = find_nvcc(), lab.log(program)
    libraries = os.path.join(os.path.dirname(os.path.dirname(nvcc)), "lib64")
    status, _, err = lab.run(f"nvcc-{program}", [nvcc, "-O2", "-o", target, source, "-Xlinker", f"-rpath={libraries}",
                                                 *words], timeout=180)
    if status:
        raise Trouble(f"nvcc {os.path.basename(source)}: {err.strip()[-100:]}")
    return target
