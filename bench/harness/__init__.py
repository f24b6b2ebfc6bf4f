"""The measurements of bench/run. figures.py is the arithmetic, part_*.py are the parts, the rest is what they use."""
