#!/usr/bin/env python3
"""Arrays by CuPy: a transform, some elementwise kernels, a sum that the host reads each 10 rounds."""
import cupy

import pulse


class Marks:
    def mark(self):
        event = cupy.cuda.Event(disable_timing=True)
        event.record()
        return event

    def is_reached(self, event):
        return event.done


options = pulse.arguments(size=1 << 21)
data = cupy.random.rand(options.size, dtype=cupy.float32)
count = 0


def step():
    global count
    spectrum = cupy.fft.rfft(data)
    back = cupy.fft.irfft(spectrum * 0.5, n=data.size)
    total = cupy.sqrt(back * back + 1).sum()
    count += 1
    if count % 10 == 0:
        float(total)


pulse.warm_up(step)
cupy.cuda.Device().synchronize()
pulse.run(pulse.Steps(step, Marks()))
