"""What a process and its children use, from /proc."""
import os

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def read_stat(pid):
    """(parent, own CPU seconds, CPU seconds of children that have ended), or None."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1]), (int(fields[11]) + int(fields[12])) * TICK_S, (int(fields[13]) + int(fields[14])) * TICK_S


def family(pid):
    """The process and all that descend from it, those that live."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := read_stat(name)):
            parents.setdefault(stat[0], []).append(int(name))
    found = [pid]
    for member in found:
        found += parents.get(member, [])
    return found


def thread_seconds(pid):
    """CPU time of the threads that live, to the nanosecond where the kernel tells it: stat counts whole ticks."""
    total_ns = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as schedstat:
                total_ns += int(schedstat.read().split()[0])
    except (OSError, ValueError, IndexError):
        pass
    return total_ns / 1e9


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def threads(pid):
    """Of the family: {(pid, thread): (name, CPU seconds, how often it went to sleep)}, of the threads that live."""
    found = {}
    for member in family(pid):
        try:
            names = os.listdir(f"/proc/{member}/task")
        except OSError:
            continue
        for thread in names:
            folder = f"/proc/{member}/task/{thread}"
            times = read_text(folder + "/schedstat").split()
            sleeps = [line.split()[1] for line in read_text(folder + "/status").splitlines()
                      if line.startswith("voluntary_ctxt_switches:")]
            if times and sleeps:
                found[member, int(thread)] = (read_text(folder + "/comm").strip(), int(times[0]) / 1e9, int(sleeps[0]))
    return found


def thread_uses(before, after, seconds):
    """From two answers of threads(): rows of those that ran, the dearest first."""
    rows = []
    for key, (name, cpu_s, sleeps) in after.items():
        _, cpu_before_s, sleeps_before = before.get(key, (name, 0, 0))
        if cpu_s > cpu_before_s:
            rows.append({"pid": key[0], "thread": key[1], "name": name,
                         "cpu_percent": round(100 * (cpu_s - cpu_before_s) / seconds, 4),
                         "sleeps_per_second": round((sleeps - sleeps_before) / seconds, 2)})
    return sorted(rows, key=lambda row: -row["cpu_percent"])


def cpu_seconds(pid):
    """User and system time of the family, of threads and members that have ended too. Neither source says too much."""
    members = [(member, read_stat(member)) for member in family(pid)]
    return sum(max(stat[1], thread_seconds(member)) + stat[2] for member, stat in members if stat)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def status_kib(pid, key):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
            return sum(int(line.split()[1]) for line in status if line.startswith(key + ":"))
    except OSError:
        return 0


def rss_mib(pid):
    """(anonymous, total) resident memory of the family. Pages that two of them share count twice in the total."""
    members = family(pid)
    return tuple(sum(status_kib(member, key) for member in members) / 1024 for key in ("RssAnon", "VmRSS"))
