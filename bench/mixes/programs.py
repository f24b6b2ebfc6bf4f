"""The kinds of programs: the command of each, its options, and the values of each option that a seed draws from. Pure.

A program is written KIND or KIND:OPTION=VALUE,OPTION=VALUE. An option that is not named has the value that the kind's file gives.

Sizes are those of small programs: a step takes less than 30 ms, so that a window has many of it, and a program takes less than 4 GiB
of the card. Requests come often enough that no window is without one, and seldom enough that a kind alone is busy less than half
of the time."""
import json
import os
import sys
from collections import namedtuple

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kinds")
OTHERS = ("jax", "cupy", "numba", "triton")  # kinds that have a file each

CHOICES = {
    # trainings
    "vit_train": {"batch": (8, 32, 64), "width": (192, 384, 512), "loaders": (1, 2, 4)},
    "gpt_train": {"batch": (4, 8, 16), "width": (256, 512, 768)},
    "gpt_accumulate": {"batch": (1, 2, 4), "width": (256, 512, 768), "each": (4, 8, 16)},
    "resnet_small": {"batch": (2, 4, 8, 16), "side": (32, 64)},
    "resnet_large": {"batch": (64, 128, 192), "side": (32, 64)},
    "mlp_float": {"batch": (32, 128, 512), "width": (64, 256, 1024)},
    "lstm_train": {"batch": (16, 32, 64), "width": (256, 512, 1024)},
    "recommend": {"batch": (512, 2048, 8192), "rows": (1 << 18, 1 << 20, 1 << 21)},
    "graph_network": {"nodes": (5000, 20000, 50000), "width": (64, 128, 256)},
    "reinforce": {"batch": (4, 16, 64), "width": (64, 128, 512)},
    # inference
    "generate": {"batch": (1, 4, 16), "layers": (6, 12), "tokens": (100, 200)},
    "prefill": {"prompt": (300, 600, 900), "layers": (6, 12), "tokens": (8, 16, 32)},
    "stream_text": {"batch": (1, 4), "layers": (6, 12), "pause_ms": (2, 4, 8)},
    "decode_graph": {"batch": (1, 8, 32), "width": (512, 768, 1024)},
    "graph_waited": {"batch": (1, 8, 32), "width": (512, 768, 1024)},
    "compiled": {"batch": (4, 16, 64), "width": (192, 384, 768)},
    "batches": {"batch": (16, 64, 128), "width": (192, 384, 768)},
    "requests_short": {"batch": (4, 16), "every_ms": (25, 50, 100)},
    "requests_long": {"tokens": (3, 6), "every_ms": (100, 125, 150)},
    "diffusion": {"batch": (1, 4, 8), "width": (64, 128), "side": (32, 64)},
    # computing
    "matmul": {"size": (2048, 4096, 8192)},
    "long_kernels": {"size": (4096, 6144, 8192)},
    "streams": {"count": (2, 4, 8, 16), "size": (1 << 18, 1 << 20)},
    "scan": {"steps": (50, 100, 200), "width": (128, 256, 512)},
    "copy_back": {"size": (512, 1024, 2048)},
    "copy_in": {"mib": (16, 64, 128)},
    "wait_each": {"size": (32, 1 << 18, 1 << 20)},
    "host_bursts": {"host_ms": (4, 8, 16), "kernels": (20, 40, 80)},
    "elementwise": {"mib": (32, 128, 512)},
    "solve": {"batch": (1, 8, 32), "size": (128, 256, 512)},
    # other frameworks
    "jax": {"batch": (128, 512, 1024), "width": (512, 1024, 2048)},
    "cupy": {"size": (1 << 19, 1 << 21, 1 << 23)},
    "numba": {"size": (512, 1024, 2048), "sweeps": (20, 50, 100)},
    "triton": {"rows": (2048, 8192, 16384), "width": (512, 1024, 2048)},
}

# words: its command without options. choices: {option: values}.
Kind = namedtuple("Kind", "words choices")


def kind_of(name):
    python = os.environ.get("LOADLINE_TORCH_PYTHON", sys.executable)
    script = os.path.join(FOLDER, f"with_{name}.py" if name in OTHERS else "with_torch.py")
    return Kind([python, script] + ([] if name in OTHERS else [name]), CHOICES.get(name, {}))


def read(path):
    """{name: Kind} of a file {"NAME": {"words": ["COMMAND", "WORD"], "choices": {"OPTION": [VALUE, VALUE]}}}."""
    with open(path, encoding="utf-8") as text:
        return {name: Kind(told["words"], told.get("choices", {})) for name, told in json.load(text).items()}


def words_of(kind, options):
    """The command of a kind with these options."""
    return kind.words + [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def parse(program):
    """The command of a program as it is written."""
    name, _, text = program.partition(":")
    return words_of(kind_of(name), dict(word.split("=", 1) for word in text.split(",") if word))
