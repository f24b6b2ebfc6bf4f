"""Stamps of a program's work on the card's clock, which all processes on a card share: a kernel of a microsecond before each
batch, and one behind it. They run in the thread's current context, whoever made it, and are those of stranger.ptx."""
import ctypes

import driver

THREADS = 32
WAIT_WITHIN_S = 10


class Stamps:
    """most: how many batches have stamps, from start() on. stream: a function that tells the stream of the work."""

    def __init__(self, most, stream):
        self.most = most
        self.stream = stream
        self.kernel = driver.load("stranger.ptx", b"spin_ns_stranger")
        self.host, self.address = driver.map_host(2 * max(1, most) * driver.RECORD_BYTES)
        self.put(0)  # the first launch of a kernel loads it
        driver.wait(self.stream())
        self.left = self.taken = 0

    def put(self, at):
        values = (ctypes.c_uint64 * 5)(0, self.address + at * driver.RECORD_BYTES, 0, 0, at)
        parameters = (ctypes.c_void_p * 5)(*(ctypes.addressof(values) + 8 * i for i in range(5)))
        driver.call("cuLaunchKernel", self.kernel, 1, 1, 1, THREADS, 1, 1, 0, self.stream(), parameters, None)

    def start(self):
        """The next batches have stamps."""
        self.left, self.taken = self.most, 0

    def around(self, queue):
        """The queue of beat.run, with stamps."""
        def stamped():
            if not self.left:
                return queue()
            self.left -= 1
            self.put(2 * self.taken)
            found = queue()
            self.put(2 * self.taken + 1)
            self.taken += 1
            return found
        return stamped

    def rows(self):
        """[start of the batch, its end] in ns of each batch since start(), once the card has finished them."""
        driver.wait(self.stream())
        words = (ctypes.c_uint64 * (2 * self.taken * driver.RECORD_BYTES // 8)).from_address(self.host)
        step = driver.RECORD_BYTES // 8
        return [[words[2 * at * step], words[(2 * at + 1) * step + 1]] for at in range(self.taken)]
