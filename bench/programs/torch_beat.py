"""A batch of PyTorch work, an event to wait for it, and stamps on the card's clock."""
import ctypes

import torch


def batch(step, count):
    """What beat.run wants, from a function that queues one iteration."""
    def queue():
        for _ in range(count):
            step()
        event = torch.cuda.Event()
        event.record()
        return count, event.synchronize
    return queue


def stamps(most):
    """For beat.run, once PyTorch has a context; None: the program has none."""
    if not most:
        return None
    from stamps import Stamps  # it loads the driver's library, which other programs leave to PyTorch
    return Stamps(most, lambda: ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
