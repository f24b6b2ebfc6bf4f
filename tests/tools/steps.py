#!/usr/bin/env python3
"""CONTRIBUTING.md's steps lead to a command that runs and to a hook that programs meet: this follows them in a copy of the
tree. A step that is left out is found by the check that the page names for it."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEVICE = 7  # the number of the card, as the hook has it
BUILT = ["loadline", "src/daemon/loadlined", "src/monitor/loadline-job", "src/shim/libloadline-cuda.so", "sim/libcuda.so.1",
         "sim/libnvidia-ml.so.1"]

COMMAND = """#include <stdio.h>

#include "cli/options/command.h"

static const struct ll_option options[] = {LL_OPTION_END};

static int run(void *args, const struct ll_operands *operands, struct ll_err *err)
{
	(void)args, (void)operands, (void)err;
	puts("hello");
	return 0;
}

const struct ll_command ll_command_hello = {
    .name = "hello",
    .summary = "say hello",
    .description = "Says hello.",
    .options = options,
    .run = run,
};
"""
HOOK = f"""
LL_HOOK_EXPORT ll_cu_result cuDeviceGet(ll_cu_device *ret_device, int ordinal)
{{
	ll_cu_result status = ll_real()->cuDeviceGet(ret_device, ordinal);
	if (status == LL_CUDA_SUCCESS)
		*ret_device = {DEVICE};
	return status;
}}
"""
TEST = "tests/sim/context.c: cards_come_in_cuda_s_order_and_as_the_environment_says"  # which calls the function
PROGRAM = """
import ctypes
cuda, device = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
print(device.value)
"""


def files_named(heading):
    """The files that the page names below a heading."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    section = re.search(rf"^### {heading}\n(.*?)^##", page, re.M | re.S)[1]
    return set(re.findall(r"`((?:src|tests|tools)/[\w./]+)`", section))


class Copy:
    """The tree, with steps of the page done in it."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder) / "tree"
        names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)

    def edit(self, name, old, new):
        path = self.root / name
        text = path.read_text()
        assert old in text, f"{name}: no {old!r}"
        path.write_text(text.replace(old, new, 1))

    def add(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a", encoding="utf-8") as out:
            out.write(text)

    def check(self, tool, *words):
        """Whether the tool is content with the copy."""
        return subprocess.run([self.root / "tools" / tool, *words], capture_output=True, check=False).returncode == 0

    def build(self):
        env = {**os.environ, "CCACHE_BASEDIR": str(self.root), "CCACHE_NOHASHDIR": "1", "CC": os.environ.get("CC", "cc")}
        for command in (["meson", "setup", "build", "-Dwerror=true", "-Dtests=disabled"],
                        ["ninja", "-C", "build", *BUILT]):
            done = subprocess.run(command, cwd=self.root, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            if done.returncode:
                raise AssertionError(done.stdout.decode()[-3000:])

    def loadline(self, *words):
        env = {**os.environ, "LOADLINE_SIM_DIR": str(self.root / "world")}
        (self.root / "world").mkdir(exist_ok=True)
        return subprocess.run([self.root / "build/loadline", *words], env=env, capture_output=True, text=True, check=True).stdout


def has_repository():
    return subprocess.run(["git", "-C", ROOT, "rev-parse"], capture_output=True, check=False).returncode == 0


class Steps(unittest.TestCase):
    def test_a_command_and_a_hook_are_added_by_the_steps_of_the_page(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = Copy(folder)
            self.add_command(copy)
            self.add_hook(copy)
            copy.build()
            self.assertEqual(copy.loadline("hello"), "hello\n")
            self.assertIn("say hello", copy.loadline("--help"))
            program = ["--sim", "run", "--", sys.executable, "-c", PROGRAM]
            self.assertEqual(copy.loadline(*program), f"{DEVICE}\n")

    def add_command(self, copy):
        named = files_named("Add a command")
        self.assertLessEqual({"src/cli/options/commands.def", "src/cli/meson.build", "tools/check_arrows"}, named)
        copy.add("src/cli/hello/cmd_hello.c", COMMAND)
        copy.edit("src/cli/options/commands.def", "LL_COMMAND(help)\n", "LL_COMMAND(hello)\nLL_COMMAND(help)\n")
        copy.edit("src/cli/meson.build", "cli_sources += files('set/", "cli_sources += files('hello/cmd_hello.c')\ncli_sources += files('set/")
        self.assertFalse(copy.check("check_arrows"))
        copy.edit("tools/check_arrows", '"set": ["cli/hold"]', '"set": ["cli/hold"], "hello": []')
        self.assertTrue(copy.check("check_arrows"))

    def add_hook(self, copy):
        named = files_named("Hook a function of the driver")
        self.assertLessEqual({"src/abi/cuda_functions.def", "src/shim/interpose/hooks_versions.def",
                              "src/shim/interpose/hooks_no_card.def"}, named)
        self.assertIn("cuDeviceGet", (copy.root / "src/abi/cuda_functions.def").read_text())
        copy.add("src/shim/interpose/hooks_context.def", "LL_HOOK(cuDeviceGet)\n")
        copy.edit("src/shim/interpose/hooks_no_card.def", "LL_NO_CARD(cuMemGetInfo)\n",
                  "LL_NO_CARD(cuDeviceGet)\nLL_NO_CARD(cuMemGetInfo)\n")
        copy.add("src/shim/hooks/hook_context.c", HOOK)
        self.assertFalse(copy.check("make_coverage", "--check"))
        copy.edit("tests/coverage/coverage_others.def", " cuDeviceGet ", " ")
        copy.edit("tests/coverage/coverage_told.def", "LL_COVER(cuMemGetInfo_v2,",
                  'LL_COVER(cuDeviceGet, cuda_reports, reported, "another one",\n'
                  f'\t "{TEST}")\nLL_COVER(cuMemGetInfo_v2,')
        self.assertTrue(copy.check("make_coverage"))
        self.assertTrue(copy.check("make_coverage", "--check"))


if not has_repository():
    print("skipped: no repository, whose files could be copied")
    sys.exit(77)
unittest.main()
