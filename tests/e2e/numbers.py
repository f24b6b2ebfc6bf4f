"""Reads CUDA_VISIBLE_DEVICES as programs do that take it for numbers (vLLM, DeepSpeed, Ray, gpustack), and ends if it has others."""
import os

visible = os.environ.get("CUDA_VISIBLE_DEVICES")
numbers = "all" if visible is None else ",".join(str(int(word)) for word in visible.split(","))
print(numbers, "in PCI order" if os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" else "in any order")
