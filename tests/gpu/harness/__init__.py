"""The measurements of tests/gpu/run. figures.py is the arithmetic, part_*.py are the parts, the rest is what they use."""
