#!/usr/bin/env python3
"""Calls what of the driver loadline leaves alone, and says what each function took and answered: passes.py STEP, a JSON object a
line; without STEP the names of all steps. A step is a process of its own, so that one which the driver ends costs no other."""
import sys

import line
import passes_arrays
import passes_code
import passes_contexts
import passes_graphs
import passes_memory
import passes_nvml
import passes_old
import passes_shared
import passes_streams

STEPS = {step.__name__: step
         for group in (passes_memory, passes_arrays, passes_shared, passes_contexts, passes_code, passes_graphs, passes_streams,
                       passes_old, passes_nvml)
         for step in group.STEPS}

ELSEWHERE = {step.__name__: step for step in passes_shared.ELSEWHERE}

if len(sys.argv) == 1:
    print("\n".join(STEPS))
else:
    try:
        {**STEPS, **ELSEWHERE}[sys.argv[1]](*sys.argv[2:])
    except Exception as why:  # what a step needs beforehand is not there: the harness says so
        line.say(event="stopped", why=f"{type(why).__name__}: {why}"[:120])
