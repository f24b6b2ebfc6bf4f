"""A batch of PyTorch work, and an event to wait for it."""
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
