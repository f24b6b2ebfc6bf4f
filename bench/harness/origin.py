"""Where a run's figures come from: the commit of the sources, and whether the card is real."""
import os
import subprocess

from . import claims
from .store import PAGE, REAL, SIMULATED, STORE, UNKNOWN

SIMULATOR_HAS = "loadline_sim_world"  # a function of the simulated driver's libraries, and of no others


def git(root, *words):
    """What git says of the folder; None where there is no git, or no repository."""
    try:
        done = subprocess.run(["git", "-C", root, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    except OSError:
        return None
    return done.stdout.decode().strip() if done.returncode == 0 else None


def commit(root):
    """The short hash of the sources, with + where files differ from it. The store and the page do not count: a run writes
    them. Programs that were carried to a machine have no repository there: LOADLINE_COMMIT says it."""
    if git(root, "ls-files", "--error-unmatch", "bench/run") is None:
        return os.environ.get("LOADLINE_COMMIT") or UNKNOWN
    changed = git(root, "status", "--porcelain", "--untracked-files=no", "--", ".", f":!{STORE}", f":!{PAGE}")
    return git(root, "rev-parse", "--short", "HEAD") + ("+" if changed else "")


def driver_is(library, status):
    """library: the harness's own NVML; status: lines of `loadline status --json`. Both must say that the card is real: each
    finds its driver for itself."""
    told = [line["simulated"] for line in claims.parse(status) if "simulated" in line]
    if hasattr(library, SIMULATOR_HAS) or any(told):
        return SIMULATED
    return REAL if told else UNKNOWN
