"""Looks whether bench/c/null_outs.def passes NULL for each out-pointer of each function that the governing library hooks, and
prints those that are missing. An out-pointer is an argument whose name begins with ret_."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def split(arguments):
    """The arguments between a function's parentheses."""
    parts, depth = [""], 0
    for letter in arguments:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def hooks():
    """{symbol: its parameters}, of what the governing library hooks"""
    found = {}
    text = (ROOT / "src/abi/cuda.def").read_text()
    for symbol, suffix, rest in re.findall(r"^LL_CUDA(?:_OPENED)?\(\w+, (\w+), \w+, \d+, (\w+), \w+, (.*?)\)\n(?=LL_|/\*|\n)", text, re.M | re.S):
        kind, parameters = split(rest)[:2]
        if kind not in ("NONE", "CALL"):
            found[symbol] = split(parameters[1:-1])
            if suffix != "none":
                found[f"{symbol}_{suffix}"] = found[symbol]
    text = (ROOT / "src/abi/nvml.def").read_text()
    for symbol, parameters in re.findall(r"^LL_NVML(?:_OPENED)?\([\w *]+, \w+, (\w+), \w+, BODY,\s*\(([^;]*?)\)\)\n", text, re.M):
        found[symbol] = split(parameters)
    return found


def tried():
    """The functions and arguments that are passed as NULL: {(symbol, number)}, by the lines of the expected answers."""
    found = set()
    for line in (ROOT / "bench/c/null_outs.txt").read_text().splitlines():
        symbol, arguments = re.match(r"(\w+)\((.*)\): ", line).groups()
        found |= {(symbol, number) for number, argument in enumerate(split(arguments)) if argument == "NULL"}
    return found


def main():
    passed = tried()
    missing = [f"{symbol}: {parameter}" for symbol, parameters in hooks().items() for number, parameter in enumerate(parameters)
               if re.search(r"\*\s*ret_\w+$", parameter) and (symbol, number) not in passed]
    print("\n".join(missing) or f"{len(passed)} arguments of {len({symbol for symbol, _ in passed})} functions are tried")
    return 1 if missing else 0


sys.exit(main())
