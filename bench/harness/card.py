"""NVML as a third process sees it, through ctypes: readings that do not come from the program that is measured."""
import ctypes
import threading
import time

MIB = 1 << 20
GPU_UTILIZATION_SAMPLES = 1
GPM_METRICS = {"graphics": 1, "sm": 2, "occupancy": 3, "tensor": 5, "dram": 10}


class MemoryV2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [(n, ctypes.c_ulonglong) for n in ("total", "reserved", "free", "used")]


class MemoryV1(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class Reading(ctypes.Structure):
    _fields_ = [("time_us", ctypes.c_ulonglong), ("value", ctypes.c_uint), ("rest", ctypes.c_uint)]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("a", ctypes.c_uint), ("b", ctypes.c_uint)]


class GpmMetric(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("status", ctypes.c_int), ("value", ctypes.c_double),
                ("names", ctypes.c_char_p * 3)]


class GpmMetrics(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("count", ctypes.c_uint), ("earlier", ctypes.c_void_p),
                ("later", ctypes.c_void_p), ("metrics", GpmMetric * 333)]


class NvmlError(Exception):
    pass


class Nvml:
    """The library; held open all the time, since opening it can cut a window of NVML's utilisation in two."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as error:
            raise NvmlError(f"no driver: {error}") from None
        self.call("nvmlInit_v2")

    def call(self, name, *args):
        function = getattr(self.library, name, None)
        if function is None:
            raise NvmlError(f"{name}: not in this driver")
        status = function(*args)
        if status:
            raise NvmlError(f"{name}: NVML error {status}")

    def text(self, name, *args):
        buffer = ctypes.create_string_buffer(96)
        self.call(name, *args, buffer, 96)
        return buffer.value.decode(errors="replace")

    def driver(self):
        return self.text("nvmlSystemGetDriverVersion")

    def count(self):
        count = ctypes.c_uint()
        self.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return count.value


class Card:
    def __init__(self, nvml, index):
        self.nvml = nvml
        self.index = index
        self.handle = ctypes.c_void_p()
        nvml.call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(self.handle))
        self.name = nvml.text("nvmlDeviceGetName", self.handle)

    def number(self, function, *args):
        value = ctypes.c_uint()
        self.nvml.call(function, self.handle, *args, ctypes.byref(value))
        return value.value

    def memory(self):
        memory = MemoryV2(version=ctypes.sizeof(MemoryV2) | 2 << 24)
        try:
            self.nvml.call("nvmlDeviceGetMemoryInfo_v2", self.handle, ctypes.byref(memory))
        except NvmlError:
            memory = MemoryV1()
            self.nvml.call("nvmlDeviceGetMemoryInfo", self.handle, ctypes.byref(memory))
        return memory

    def used_mib(self):
        return self.memory().used / MIB

    def watts(self):
        return self.number("nvmlDeviceGetPowerUsage") / 1000

    def joules(self):
        value = ctypes.c_ulonglong()
        self.nvml.call("nvmlDeviceGetTotalEnergyConsumption", self.handle, ctypes.byref(value))
        return value.value / 1000

    def compute_mode(self):
        return self.number("nvmlDeviceGetComputeMode")

    def processes(self):
        """{pid: bytes of the card} of those that the driver tells."""
        found = {}
        for kind in ("Compute", "Graphics"):
            processes = (Process * 128)()
            count = ctypes.c_uint(128)
            try:
                self.nvml.call(f"nvmlDeviceGet{kind}RunningProcesses_v3", self.handle, ctypes.byref(count), processes)
            except NvmlError:
                continue
            found.update((one.pid, one.used) for one in processes[:count.value])
        return found

    def utilisation_since(self, after_us):
        """(time_us, percent) of the samples after that time of the wall clock."""
        count, kind, readings = ctypes.c_uint(256), ctypes.c_int(), (Reading * 256)()
        try:
            self.nvml.call("nvmlDeviceGetSamples", self.handle, GPU_UTILIZATION_SAMPLES, ctypes.c_ulonglong(after_us),
                           ctypes.byref(kind), ctypes.byref(count), readings)
        except NvmlError:
            return []
        return [(r.time_us, r.value) for r in readings[:count.value] if r.time_us > after_us]

    def settled_mib(self, within_s=3.0):
        """Used memory once it has not changed for 0.3 s."""
        last, since, end = self.used_mib(), time.monotonic(), time.monotonic() + within_s
        while time.monotonic() < end and time.monotonic() - since < 0.3:
            time.sleep(0.02)
            now = self.used_mib()
            if now != last:
                last, since = now, time.monotonic()
        return last


class Watch:
    """A thread that reads something every so often. Use it in a with statement; what it read stays in `values`."""

    every_s = 0.2

    def __init__(self, card):
        self.card = card
        self.values = []
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.loop, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()

    def loop(self):
        while not self.ending.wait(self.every_s):
            self.read()
        self.read()

    def read(self):
        raise NotImplementedError


class UtilWatch(Watch):
    """(end of the window on the wall clock in seconds, percent). A call costs 1.5 ms in the driver: one a second."""

    every_s = 1.0

    def __init__(self, card):
        super().__init__(card)
        self.last_us = int(time.time() * 1e6)

    def read(self):
        if self.ending.is_set():
            time.sleep(0.25)  # the last window shows up late
        for time_us, percent in sorted(self.card.utilisation_since(self.last_us)):
            self.values.append((time_us / 1e6, percent))
            self.last_us = time_us

    def between(self, from_s, until_s):
        return [percent for time_s, percent in self.values if from_s <= time_s <= until_s]


class MemoryWatch(Watch):
    """(wall clock, MiB used), about every 2 ms."""

    every_s = 0.002

    def read(self):
        self.values.append((time.time(), self.card.used_mib()))


class PowerWatch(Watch):
    """(wall clock, watts)."""

    def read(self):
        self.values.append((time.time(), self.card.watts()))


class GpmMeter:
    """{metric: percent} between two moments, of which one may be the end of the window before."""

    def __init__(self, card):
        self.card = card
        self.samples = [self.new_sample(), self.new_sample()]
        self.begin()

    def new_sample(self):
        sample = ctypes.c_void_p()
        self.card.nvml.call("nvmlGpmSampleAlloc", ctypes.byref(sample))
        return sample

    def take(self, which):
        self.card.nvml.call("nvmlGpmSampleGet", self.card.handle, self.samples[which])

    def begin(self):
        self.take(0)

    def end(self):
        self.take(1)
        metrics = GpmMetrics(version=1, count=len(GPM_METRICS))
        metrics.earlier, metrics.later = self.samples
        for at, wanted in enumerate(GPM_METRICS.values()):
            metrics.metrics[at].id = wanted
        self.card.nvml.call("nvmlGpmMetricsGet", ctypes.byref(metrics))
        self.samples.reverse()
        return {name: metrics.metrics[at].value for at, name in enumerate(GPM_METRICS)}


class GpmWatch(Watch):
    """(end on the wall clock, {metric: percent}) over windows of a second."""

    every_s = 1.0

    def __init__(self, card):
        super().__init__(card)
        self.meter = GpmMeter(card)

    def read(self):
        if self.ending.is_set():
            return
        percent = self.meter.end()
        self.values.append((time.time(), percent))
