#!/usr/bin/env python3
"""CONTRIBUTING.md's steps lead to a build that runs, to a command, a hook that programs meet, a metric and a call of the
simulated driver: this follows them in a copy of the tree, and builds once. A step that is left out is found by the check that
the page names for it."""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEVICE = 7  # the number of the card, as the hook has it
BUILT = ["loadline", "src/cli/loadline-trace", "src/trace/libloadline-trace.so", "src/trace/preload/libloadline-events.so",
         "src/daemon/loadlined", "src/monitor/loadline-job", "src/shim/libloadline-cuda.so", "sim/libcuda.so.1",
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
CONFIG = 2  # what the new call of the simulated driver answers
CALL = f"""
ll_cu_result cuCtxGetCacheConfig(enum ll_cu_func_cache *ret_config)
{{
	SIM_ENTER();
	*ret_config = (enum ll_cu_func_cache){CONFIG};
	return LL_CUDA_SUCCESS;
}}
"""
CALLER = """
import ctypes
cuda, config, function = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuCtxGetCacheConfig(ctypes.byref(config)) == 0
for version in (3010, 13000):
    assert cuda.cuGetProcAddress_v2(b"cuCtxGetCacheConfig", ctypes.byref(function), version, ctypes.c_uint64(0), None) == 0
    print(bool(function), config.value)
"""
HEADINGS = ["Add a command", "Hook a function of the driver", "Add a metric", "Add a call to the simulated driver"]


def section(heading, page="CONTRIBUTING.md"):
    page = (ROOT / page).read_text()
    return re.search(rf"^##+ {heading}\n(.*?)^##", page, re.M | re.S)[1]


def files_named(heading):
    """The files that the page names below a heading."""
    return set(re.findall(r"`((?:src|sim|tests|tools)/[\w./]+)`", section(heading)))


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


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
        return subprocess.run([self.root / "build/loadline", *words], env=self.env(), capture_output=True, text=True, check=True).stdout

    def start(self, *words):
        return subprocess.Popen([self.root / "build/loadline", *words], env=self.env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def env(self):
        (self.root / "world").mkdir(exist_ok=True)
        return {**os.environ, "LOADLINE_SIM_DIR": str(self.root / "world")}


def has_repository():
    return subprocess.run(["git", "-C", ROOT, "rev-parse"], capture_output=True, check=False).returncode == 0


class Steps(unittest.TestCase):
    def test_a_command_a_hook_a_metric_and_a_call_are_added_by_the_steps_of_the_page(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = Copy(folder)
            self.add_command(copy)
            self.add_hook(copy)
            self.add_metric(copy)
            self.add_call(copy)
            copy.build()
            self.assertIn("H200", copy.loadline("--sim", "status"))
            self.assertEqual(copy.loadline("hello"), "hello\n")
            self.assertIn("say hello", copy.loadline("--help"))
            program = ["--sim", "run", "--", sys.executable, "-c", PROGRAM]
            self.assertEqual(copy.loadline(*program), f"{DEVICE}\n")
            self.assertEqual(copy.loadline("--sim", "trace", "--by", "events", "--", sys.executable, "-c", CALLER),
                             f"False {CONFIG}\nTrue {CONFIG}\n")
            self.assertRegex(self.metrics_of(copy), r"(?m)^loadline_command_ratio\{.*\} [0-9.]+$")

    def test_each_list_of_steps_has_five_at_most_and_the_files_that_it_names_are_there(self):
        for heading in ["Build and test", *HEADINGS]:
            steps = re.findall(r"^(\d)\. ", section(heading), re.M)
            self.assertIn(steps, [list("123"), list("1234"), list("12345")], heading)
            for name in files_named(heading):
                made_by_the_step = "NAME" in name
                self.assertTrue(made_by_the_step or (ROOT / name).exists(), f"{heading}: {name}")

    def test_the_commands_of_the_first_build_are_those_of_the_makefile(self):
        makefile = (ROOT / "Makefile").read_text()
        for target in re.findall(r"`make (\w+)`", section("Build and test")):
            self.assertRegex(makefile, rf"(?m)^[\w -]*\b{target}\b[\w -]*:", target)
        self.assertIn("`meson setup build && ninja -C build`", section("Build and test"))

    def test_the_page_has_each_room_of_the_source(self):
        named = set(re.findall(r"`(src/[\w/]+)`", section("Rooms", "doc/internals.md")))
        rooms = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("*.h")}
        commands = {room for room in rooms if room.startswith("src/cli/")} - named
        self.assertEqual(rooms - commands - {"src/shim"}, named - {"src/cli/NAME"})

    def metrics_of(self, copy):
        """The page that a hold serves, as soon as it has the new metric."""
        port, deadline, text = free_port(), time.monotonic() + 60, ""
        hold = copy.start("--sim", "hold", "--metrics-listen", f"127.0.0.1:{port}")
        while "loadline_command_ratio{" not in text and time.monotonic() < deadline and hold.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
                    text = page.read().decode()
            except urllib.error.URLError:
                pass  # it does not listen yet
            time.sleep(0.05)
        hold.terminate()
        hold.wait()
        return text

    def add_command(self, copy):
        named = files_named("Add a command")
        self.assertLessEqual({"src/cli/options/commands.def", "src/cli/meson.build", "tools/check_arrows"}, named)
        copy.add("src/cli/hello/cmd_hello.c", COMMAND)
        copy.edit("src/cli/options/commands.def", "LL_COMMAND(help)\n", "LL_COMMAND(hello)\nLL_COMMAND(help)\n")
        copy.edit("src/cli/meson.build", "cli_sources += files('set/", "cli_sources += files('hello/cmd_hello.c')\ncli_sources += files('set/")
        self.assertFalse(copy.check("check_arrows"))
        copy.edit("tools/check_arrows", "ROOMS_OF_CLI = {", 'ROOMS_OF_CLI = {"cli/hello": [], ')
        self.assertTrue(copy.check("check_arrows"))

    def add_hook(self, copy):
        named = files_named("Hook a function of the driver")
        self.assertLessEqual({"src/abi/cuda.def"}, named)
        row = "(cuDeviceGet, cuDeviceGet, required, 0, none, NONE, "
        copy.edit("src/abi/cuda.def", f"{row}NONE,", f"{row}BODY_NO_CARD,")
        copy.add("src/shim/hooks/hook_context.c", HOOK)
        self.assertFalse(copy.check("make_coverage", "--check"))
        copy.edit("tests/coverage/coverage_others.def", " cuDeviceGet ", " ")
        copy.edit("tests/coverage/coverage_told.def", "LL_COVER(cuMemGetInfo_v2,",
                  'LL_COVER(cuDeviceGet, cuda_reports, reported, "another one",\n'
                  f'\t "{TEST}")\nLL_COVER(cuMemGetInfo_v2,')
        self.assertTrue(copy.check("make_coverage"))
        self.assertTrue(copy.check("make_coverage", "--check"))

    def add_metric(self, copy):
        self.assertIn("src/hold/command/metrics.c", files_named("Add a metric"))
        self.assertIn("double command;", (copy.root / "src/hold/hold.h").read_text())
        copy.edit("src/hold/command/metrics.c", '\tFAMILY("loadline_sm_ratio"',
                  '\tFAMILY("loadline_command_ratio", "gauge", "Duty that the hold ordered.", row->status.command);\n'
                  '\tFAMILY("loadline_sm_ratio"')

    def add_call(self, copy):
        named = files_named("Add a call to the simulated driver")
        self.assertLessEqual({"src/abi/cuda.def", "sim/cuda/unmodelled.def"}, named)
        copy.edit("src/abi/cuda.def", "/* contexts */\n",
                  "/* contexts */\nLL_CUDA(cuCtxGetCacheConfig, cuCtxGetCacheConfig, required, 3020, none, NONE, NONE, "
                  "(enum ll_cu_func_cache *ret_config), (ret_config))\n")
        copy.edit("sim/cuda/unmodelled.def", "SIM_UNMODELLED(cuCtxGetCacheConfig)\n", "")
        copy.add("sim/cuda/context.c", CALL)


if not has_repository():
    print("skipped: no repository, whose files could be copied")
    sys.exit(77)
unittest.main()
