"""Finding an interpreter that has a framework, and the programs that are written for it."""
import os
import shutil
import sys

from .lab import Missing

PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs")
# What shows that it is there and sees the card.
SIGNS = {
    "torch": "import torch; raise SystemExit(not torch.cuda.is_available())",
    "cupy": "import cupy; raise SystemExit(not cupy.cuda.runtime.getDeviceCount())",
    "jax": "import jax; raise SystemExit(jax.default_backend() != 'gpu')",
    "numba": "import numpy; numpy.row_stack = numpy.vstack\n"
             "from numba import cuda; raise SystemExit(not cuda.is_available())",
}


def interpreters():
    wanted = os.environ.get("LOADLINE_TORCH_PYTHON")
    names = [wanted] if wanted else [sys.executable, "python3", "/usr/bin/python3", "/usr/local/bin/python3",
                                     "/opt/conda/bin/python3"]
    return list(dict.fromkeys(path for path in map(shutil.which, names) if path))


def find_python(lab, framework):
    """The first interpreter that has it; with none named, this one."""
    if framework is None:
        return sys.executable
    if framework not in lab.pythons:
        lab.pythons[framework] = next((path for at, path in enumerate(interpreters()) if lab.run(
            f"try-{framework}-{at}", [path, "-c", SIGNS[framework]], timeout=120)[0] == 0), None)
    if lab.pythons[framework] is None:
        raise Missing(f"no {framework} that sees a card (LOADLINE_TORCH_PYTHON names an interpreter)")
    return lab.pythons[framework]


def find_torch(lab):
    return find_python(lab, "torch")


def command(lab, framework, script, *words):
    """-B: nothing is written beside the programs."""
    return [find_python(lab, framework), "-B", os.path.join(PROGRAMS, script), *map(str, words)]
