#!/usr/bin/env python3
"""Every law of tools/check_interposer finds its offender, and nothing else: small libraries, each with one offence in
it, made by the compiler that CC names."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
CC = shlex.split(os.environ.get("CC", "cc"))

loader = importlib.machinery.SourceFileLoader("check_interposer", str(ROOT / "tools/check_interposer"))
laws = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_interposer", loader))
loader.exec_module(laws)

HEAD = """#include <dirent.h>
#include <dlfcn.h>
#include <err.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>
#line 1
"""
LAWFUL = HEAD + """__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name)
{
	(void)handle;
	return malloc(strlen(name)); /* never exit(1), abort() or printf("exit(1)") */
}
"""
ANY = "shim/offender.c"

# What a body calls, and so needs.
NEEDS = {
    "alarm": "alarm(1);",
    "chdir": 'if (chdir("/")) return;',
    "clearenv": "clearenv();",
    "closefrom": "closefrom(3);",
    "daemon": "if (daemon(0, 0)) return;",
    "dup2": "dup2(7, 1);",
    "dup3": "dup3(7, 1, 0);",
    "__environ": "extern char **__environ; *__environ = NULL;",
    "err": 'err(1, "no");',
    "execv": 'execv("/bin/true", NULL);',
    "exit": "exit(1);",
    "fchmod": "fchmod(3, 0600);",
    "fork": "fork();",
    "fputs": 'fputs("text", NULL);',
    "longjmp": "static jmp_buf place; longjmp(place, 1);",
    "mallopt": "mallopt(M_MMAP_MAX, 0);",
    "malloc_trim": "malloc_trim(0);",
    "mlockall": "mlockall(MCL_FUTURE);",
    "nice": "if (nice(1)) return;",
    "on_exit": "on_exit(NULL, NULL);",
    "pause": "pause();",
    "pthread_cancel": "pthread_cancel(pthread_self());",
    "pthread_exit": "pthread_exit(NULL);",
    "pthread_kill": "pthread_kill(pthread_self(), SIGTERM);",
    "pthread_setaffinity_np": "cpu_set_t set; pthread_setaffinity_np(pthread_self(), sizeof set, &set);",
    "putenv": 'putenv((char *)"A=B");',
    "quick_exit": "quick_exit(1);",
    "raise": "raise(SIGTERM);",
    "sched_setaffinity": "cpu_set_t set; sched_setaffinity(0, sizeof set, &set);",
    "sched_setscheduler": "sched_setscheduler(0, SCHED_IDLE, NULL);",
    "setenv": 'setenv("A", "B", 1);',
    "setpgid": "setpgid(0, 0);",
    "setpriority": "setpriority(PRIO_PROCESS, 0, 1);",
    "setrlimit": "setrlimit(RLIMIT_CORE, NULL);",
    "setsid": "setsid();",
    "sigaction": "sigaction(SIGBUS, NULL, NULL);",
    "signal": "signal(SIGPIPE, SIG_IGN);",
    "sleep": "sleep(1);",
    "stderr": "void *file = stderr;",
    "syslog": 'syslog(LOG_ERR, "text");',
    "system": 'if (system("true")) return;',
    "tgkill": "tgkill(1, 1, SIGTERM);",
    "umask": "umask(0);",
    "unsetenv": 'unsetenv("A");',
    "vfork": "vfork();",
    "wait": "wait(NULL);",
}

# What may be done, but not there.
PLACES = {
    "_exit": ("_exit(1);", "shim/time/watch.c"),
    "__cxa_atexit": ("extern int __cxa_atexit(void); __cxa_atexit();", "libc_nonshared.a"),
    "kill": ("kill(getpid(), SIGKILL);", "shim/time/watch.c"),
    "opendir": ('opendir("/");', "shim/residency/obstacles.c"),
    "pthread_atfork": ("pthread_atfork(ll_fork_block, ll_fork_unblock, run_items_in_child);", "base/guest.c"),
    "pwrite": ('int where = 1; if (pwrite(where, "text", 4, 0)) return;', "shim/memory/exported_table.c and trace/writer.c"),
    "syscall": ("syscall(SYS_gettid);", "base/process.c and protocol/page.c and shim/link/link.c and shim/time/driver_calls.c "
                "and shim/time/thread_barrier.c"),
    "write": ('int where = 1; if (write(where, "text", 4)) return;', "shim/say.c"),
}

# What may be done there, but not so.
CALLS = [
    ("shim/time/watch.c", "kill", "kill(getppid(), SIGKILL);"),
    ("shim/time/watch.c", "kill", "kill(getpid(), SIGTERM);"),
    ("shim/time/watch.c", "kill", "#define END(pid) kill (pid, 9)"),
    ("shim/time/watch.c", "_exit", "_exit(0);"),
    ("shim/say.c", "write", 'if (write(1, "text", 4)) return;'),
    ("shim/time/agent.c", "prctl", "prctl(PR_SET_DUMPABLE, 0);"),
    ("shim/time/agent.c", "pthread_sigmask", "pthread_sigmask(SIG_UNBLOCK, NULL, NULL);"),
    ("shim/device_state.c", "atexit", "atexit(in_child);"),
    ("protocol/page.c", "syscall", "syscall(SYS_exit_group, 1);"),
    ("protocol/page.c", "syscall", "syscall(\n\tSYS_write, 1, NULL, 0);"),
    ("protocol/page.c", "syscall", "int pid = 1, word = 1; syscall(SYS_tgkill, pid, (pid_t)(uint32_t)word, SIGTERM);"),
    ("protocol/page.c", "__asm__", '__asm__ volatile("nop");'),
    ("shim/interpose/real.c", "dlopen", 'dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);'),
    ("trace/writer.c", "fcntl", "fcntl(0, F_SETFL, O_NONBLOCK);"),
    (ANY, "abort", "abort();"),
    (ANY, "assert", "assert(1);"),
    (ANY, "__builtin_unreachable", "if (getpid() == 1) __builtin_unreachable();"),
    (ANY, "asm", 'asm("nop");'),
    (ANY, "environ", "int environ = 0;"),
]

BEGINNINGS = {
    "__attribute__((constructor)) void begin(void) {}": ".init_array",
    "__attribute__((__constructor__(200))) void begin(void) {}": ".init_array",
    "__attribute__((destructor)) void end(void) {}": ".fini_array",
    "#define SOME(x) __attribute__((con##x))\nSOME(structor) void begin(void) {}": ".init_array",
    'void begin(void) {}\n__attribute__((section(".init_array"), used)) static void *first = begin;': ".init_array",
    'void begin(void) {}\n__attribute__((section(".ctors"), used)) static void *first = begin;': ".ctors",
    '__attribute__((section(".init"), used)) static void begin(void) {}': ".init",
    "static void one(void) {}\nvoid *choose(void) { return one; }\n"
    '__attribute__((ifunc("choose"))) void chosen(void);\nvoid begin(void) { chosen(); }': "it chooses a function then",
}

# The offending part and what the linker is told, by the complaint.
LIBRARIES = {
    "exports extra, which is no hook": ('__attribute__((visibility("default"))) void extra(void) {}', []),
    "has a search path of its own": ("", ["-Wl,-rpath,/tmp"]),
    "GNU_STACK can be written and run": ("", ["-Wl,-z,execstack"]),
    "needs system, and none of its sources does": ("", ["-Wl,-u,system"]),
    "binds late": ("", ["-Wl,-z,lazy"]),
    "needs libm.so.6": ("", ["-Wl,--no-as-needed", "-lm"]),
    "needs fcntl64 of GLIBC_2.28": ("", ["-Wl,-u,fcntl64"]),
    "(RELRO)": ("", ["-Wl,-z,norelro"]),
    "is loaded or unloaded (INIT)": ("void begin(void) {}", ["-Wl,-init,begin"]),
    "is loaded or unloaded (FINI)": ("void end(void) {}", ["-Wl,-fini,end"]),
}


def function(number, body):
    return f"void ll_offend_{number}(void) {{ {body} }}\n"


class Library:
    """A build folder with that library in it, of lawful code and one more file. What was compiled once is kept."""

    compiled = {}

    def __init__(self, folder):
        self.root = pathlib.Path(folder)
        self.commands = []
        (self.root / "src/abi").mkdir(parents=True)
        for name in ("cuda.def", "nvml.def"):
            (self.root / "src/abi" / name).write_text("")
        (self.root / "build/src/shim").mkdir(parents=True)
        self.compile("shim/lawful.c", LAWFUL)

    def compile(self, name, text):
        source = self.root / "src" / name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
        output = f"{name.replace('/', '_')}.o"
        if (name, text) not in self.compiled:
            self.compiled[name, text] = self.make_object(source, output)
        (self.root / "build" / output).write_bytes(self.compiled[name, text])
        self.commands.append({"directory": str(self.root / "build"), "file": str(source), "output": output})

    def make_object(self, source, output):
        subprocess.run([*CC, "-c", "-w", "-O0", "-fno-builtin", "-std=gnu11", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden", "-I",
                        self.root / "src", source, "-o", self.root / "build" / output], check=True)
        return (self.root / "build" / output).read_bytes()

    def link(self, *options):
        return self.link_files([row["output"] for row in self.commands], options)

    def link_archive(self, *options):
        """As meson does it: the objects are in a thin archive, in a folder of the build."""
        (self.root / "build/parts").mkdir()
        for row in self.commands:
            (self.root / "build" / row["output"]).rename(self.root / "build/parts" / row["output"])
            row["output"] = "parts/" + row["output"]
        subprocess.run(["ar", "csrT", "parts/libparts.a", *(row["output"] for row in self.commands)], check=True,
                       cwd=self.root / "build")
        return self.link_files(["-Wl,--whole-archive", "parts/libparts.a", "-Wl,--no-whole-archive"], options)

    def link_files(self, files, options):
        build = self.root / "build"
        (build / "compile_commands.json").write_text(json.dumps(self.commands))
        library = build / laws.LIBRARY
        subprocess.run([*CC, "-shared", *files, "-o", library, "-Wl,-z,relro,-z,now", "-Wl,-z,noexecstack",
                        f"-Wl,-Map,{library.with_suffix('.map')}", *options], check=True, cwd=build)
        return laws.Linked(self.root, build)


class Laws(unittest.TestCase):
    maxDiff = None
    allowed = laws.Allowed((ROOT / laws.ALLOW).read_text())

    def complaints(self, source=None, text="", link=()):
        with tempfile.TemporaryDirectory() as folder:
            library = Library(folder)
            if source:
                library.compile(source, HEAD + text)
            return list(laws.check(library.link(*link), self.allowed))

    def test_what_is_lawful_is_left_alone(self):
        self.assertEqual(self.complaints("shim/time/watch.c", function(0, "kill(getpid(), SIGKILL);")), [])
        self.assertEqual(self.complaints("shim/time/driver_calls.c", function(0, "syscall(SYS_gettid);")), [])

    def test_what_is_not_in_the_list(self):
        text = "".join(function(i, body) for i, body in enumerate(NEEDS.values()))
        wanted = [f"src/{ANY}: needs {symbol}, which is not in {laws.ALLOW}" for symbol in sorted(NEEDS)]
        found = [line for line in self.complaints(ANY, text) if line.startswith("src/")]
        self.assertEqual(found, wanted)

    def test_what_is_in_the_list_for_others(self):
        text = "void ll_fork_block(void) {}\nvoid ll_fork_unblock(void) {}\nvoid run_items_in_child(void) {}\n"
        text += "".join(function(i, body) for i, (body, _) in enumerate(PLACES.values()))
        found = [line for line in self.complaints(ANY, text) if "needs" in line]
        self.assertEqual(found, [f"src/{ANY}: needs {symbol}, which is for {place} alone"
                                 for symbol, (_, place) in sorted(PLACES.items())])

    def test_calls_that_are_not_as_in_the_list(self):
        for i, (source, name, body) in enumerate(CALLS):
            with self.subTest(body):
                text = laws.without_comments("\n" + (body if body.startswith("#") else function(i, body)))
                self.assertEqual(list(laws.check_sources({source: text}, self.allowed)),
                                 [f"src/{source}:2: {name} is not as in {laws.ALLOW}"])

    def test_an_address_instead_of_a_call(self):
        self.assertEqual(list(laws.check_sources({"shim/time/watch.c": "void *end = kill;\n"}, self.allowed)),
                         ["src/shim/time/watch.c:1: names kill and does not call it there"])

    def test_a_header_of_a_linked_file(self):
        with tempfile.TemporaryDirectory() as folder:
            library = Library(folder)
            (library.root / "src/shim/inside.h").write_text("#define LL_END() __builtin_trap()\n")
            library.compile(ANY, '#include "shim/inside.h"\n')
            self.assertEqual(list(laws.check(library.link(), self.allowed)),
                             [f"src/shim/inside.h:1: __builtin_trap is not as in {laws.ALLOW}"])

    def test_what_is_not_linked_is_not_looked_at(self):
        with tempfile.TemporaryDirectory() as folder:
            library = Library(folder)
            library.compile("base/child.c", HEAD + function(0, "exit(1);"))
            left_out = library.commands.pop()
            linked = library.link()
            self.assertNotIn("base/child.c", linked.objects.values())
            library.commands.append(left_out)
            self.assertIn(f"src/base/child.c: needs exit, which is not in {laws.ALLOW}",
                          list(laws.check(library.link(), self.allowed)))

    def test_objects_of_an_archive_are_found_with_every_linker(self):
        for linker in filter(lambda name: shutil.which("ld." + name), ("bfd", "lld")):
            with self.subTest(linker), tempfile.TemporaryDirectory() as folder:
                linked = Library(folder).link_archive("-fuse-ld=" + linker)
                self.assertEqual(linked.objects, {"parts/shim_lawful.c.o": "shim/lawful.c"})

    def test_instructions(self):
        found = self.complaints(ANY, function(1, "__builtin_trap();") + function(2, "__builtin_trap();"))
        for i in 1, 2:
            self.assertRegex("\n".join(found), rf"runs \w+ in ll_offend_{i}")

    @unittest.skipUnless(os.uname().machine == "x86_64", "an instruction of x86-64")
    def test_system_calls_past_libc(self):
        found = self.complaints(ANY, function(0, '__asm__("syscall");'))
        self.assertIn(f"{pathlib.Path(laws.LIBRARY).name}: runs syscall in ll_offend_0", found)

    def test_beginnings_and_ends(self):
        for text, complaint in BEGINNINGS.items():
            with self.subTest(text):
                self.assertIn(complaint, "\n".join(line for line in self.complaints(ANY, text) if "is loaded" in line))

    def test_the_library(self):
        for complaint, (text, link) in LIBRARIES.items():
            with self.subTest(complaint):
                found = self.complaints(ANY, text, link)
                self.assertEqual([complaint in line for line in found], [True], found)

    def test_a_list_with_rows_for_nothing(self):
        allowed = laws.Allowed("# Some.\nmalloc strlen\nbare: shim/gone.c\n\nopen\n")
        self.assertEqual(list(laws.check_list({"shim/lawful.c": "malloc(strlen(name)); bare()"}, allowed)),
                         ["no reason above 'open'", "bare is for shim/gone.c, which is not linked", "nothing uses open"])

    def test_names_that_headers_make(self):
        for symbol, name in {"__read_chk": "read", "open64": "open", "__open64_2": "open", "__isoc23_strtoul": "strtoul",
                             "__pread64_chk": "pread", "__snprintf_chk": "snprintf"}.items():
            with self.subTest(symbol):
                self.assertEqual(self.allowed.plain(symbol), name)


if __name__ == "__main__":
    unittest.main()
