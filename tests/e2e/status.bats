# loadline status: cards, claims, and what it says when it cannot.
load helper
hold_is() {
	shows ".class == \"hold\" and .state == \"$1\""
}

@test "an idle card is one line, and one object with numbers" {
	loadline --sim status >"$T/status.out"
	[ "$(wc -l <"$T/status.out")" -eq 2 ]
	grep -q '^card  *name  *util' "$T/status.out"
	grep -q '^0  *.*simulated.* 0 %' "$T/status.out"
	loadline --sim status --json >"$T/json.out"
	[ "$(wc -l <"$T/json.out")" -eq 1 ]
	has json '.card == 0 and .util_percent == 0 and .claims == 0 and .simulated and .compute_mode == "default"'
	has json '(.uuid | startswith("GPU-")) and (.memory_total_bytes > 0) and (.power_watts > 0) and (.temperature_celsius > 0)'
}

@test "cards come in order, and -i chooses among them" {
	scenario "cards 3"
	[ "$(loadline --sim status --json | jq -c .card | xargs)" = "0 1 2" ]
	[ "$(loadline --sim status -i 2,0 --json | jq -c .card | xargs)" = "0 2" ]
	[ "$(loadline --sim status -i 1-2 --json | jq -c .card | xargs)" = "1 2" ]
	uuid=$(loadline --sim status -i 1 --json | jq -r .uuid)
	pci=$(loadline --sim status -i 1 --json | jq -r .pci)
	[ "$(loadline --sim status -i "$uuid" --json | jq .card)" -eq 1 ]
	[ "$(loadline --sim status -i "$pci" --json | jq .card)" -eq 1 ]
	[ "$(loadline --sim status -i all --json | jq .card | wc -l)" -eq 3 ]
}

@test "unknown cards are 3, unreadable lists are 2" {
	fails_with 3 "no card '9': there is 0 (" --sim status -i 9
	fails_with 3 "no card 'GPU-nope'" --sim status -i GPU-nope
	fails_with 3 "no card 'nonsense'" --sim status -i nonsense
	fails_with 2 "'3-1'" --sim status -i 3-1
	fails_with 2 "'0,'" --sim status -i 0, || fails_with 2 "missing" --sim status -i 0,
}

@test "no driver is 3, with what to do" {
	[ ! -e /proc/driver/nvidia ] || skip "there is a driver here"
	fails_with 3 "no NVIDIA driver: libnvidia-ml.so.1" status
	# shellcheck disable=SC2154
	[[ $stderr == *"install the driver, or try --sim"* ]]
}

@test "a driver that lacks a call we need is 3 and named" {
	scenario "driver 470.57.02 cuda 11.4" "missing nvmlDeviceGetUtilizationRates"
	fails_with 3 "driver 470.57.02 lacks nvmlDeviceGetUtilizationRates" --sim status
}

@test "what a card does not tell is null and a dash" {
	scenario "missing nvmlDeviceGetTotalEnergyConsumption" "fail nvmlDeviceGetTemperature NVML_ERROR_NOT_SUPPORTED"
	loadline --sim status --json >"$T/json.out"
	has json '.energy_joules == null and .temperature_celsius == null and .power_watts > 0'
	loadline --sim status | grep -q ' -  '
}

@test "a lost card is shown beside the others" {
	scenario "cards 2" "card 0 gone on"
	loadline --sim status --json >"$T/json.out"
	has json '.card == 0 and .fault != null and .util_percent == null'
	has json '.card == 1 and .fault == null and .util_percent == 0'
	fails_with 3 "card 0: does not answer" --sim status -i 0
}

@test "slices are shown under their card" {
	scenario "card 0 mig 2"
	loadline --sim status >"$T/status.out"
	grep -q '^0 .* MIG' "$T/status.out"
	grep -q '^0:0 ' "$T/status.out"
	grep -q '^0:1 ' "$T/status.out"
	loadline --sim status --json >"$T/json.out"
	has json '.card == 0 and .slice == 1 and (.uuid | startswith("MIG-"))'
}

@test "a hold is shown as synthetic load, with its busy seconds apart" {
	start hold --sim hold --target 40% --json
	wait_for 60 hold_is holding
	loadline --sim status --json >"$T/json.out"
	has json 'select(has("claim")) | .claim == "0/hold" and .synthetic and .pid == '"$(pid_of hold)"
	has json 'select(has("claim")) | .target_percent == 40 and .metric == "util" and .payload == "cuda"'
	has json 'select(has("claim")) | .memory_limit_bytes == null and (.memory_bytes | type) == "number"'
	has json 'select(has("card")) | .claims == 1'
	wait_for 60 shows '.synthetic_busy_seconds > 0'
	loadline --sim status --long | grep -q "0/hold  pid $(pid_of hold)  synthetic load: holding, util at 40 %, payload cuda"
	stop hold
	[ "$(loadline --sim status --json | wc -l)" -eq 1 ]
}

@test "a hold killed with kill -9 leaves no claim" {
	start hold --sim hold --json
	wait_for 60 hold_is holding
	stop hold KILL
	loadline --sim status --json | jq -s -e '.[0].claims == 0 and all(has("claim") | not)'
	wait_for 60 only_cards # the kernel ends the process that has the context a little later
}

only_cards() {
	[ "$(loadline --sim status --json | jq -s 'map(has("pid")) | any')" = false ]
}

@test "a second hold on the card is refused with the first one's pid" {
	start hold --sim hold --json
	wait_for 60 hold_is holding
	fails_with 4 "card 0: pid $(pid_of hold) already holds it" --sim hold --for 1s
	stop hold
}

@test "a loadlined that does not answer is told after the cards are shown" {
	[ -x "$LOADLINE_BUILD/tests/e2e/launcher" ] || skip "nothing can be preloaded in this build"
	start job --sim run --tenant job -- sleep 100
	wait_for 60 shows 'has("daemon")'
	daemon=$(loadline --sim status --json | jq 'select(has("daemon")).daemon.pid')
	kill -STOP "$daemon"
	run --separate-stderr loadline --sim status -i 0 --json
	[ "$status" -eq 1 ]
	[ "$(head -n 1 <<<"$output" | jq .card)" -eq 0 ]
	[ "$(tail -n 1 <<<"$output" | jq -r .daemon.answer)" = silent ]
	[[ $stderr == "loadline: loadlined, pid $daemon, does not answer; "* ]]
	kill -CONT "$daemon"
	loadline --sim status
}

# A line each of the text and of the JSON about programs under limits. Nothing can be preloaded under a sanitizer.
needs_shim() {
	loadline --sim run -- true 2>/dev/null || skip "nothing can be preloaded in this build"
}

busy() {
	echo "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 "$@"
}

@test "a governed program's line has its tenant's limits, its time, and the card's own figure" {
	needs_shim
	# shellcheck disable=SC2046
	start job --sim run --mem 8G --compute 60% --weight 3 --class high --slowdown 1.1 --tenant job -- $(busy kernel 1ms for 60s)
	wait_for 60 shows 'select(has("claim") and .gpu_seconds > 0.2)'
	shows 'select(has("claim")) | .tenant == "job" and .class == "high" and .memory_limit_bytes == 8589934592 and .compute_cap_percent == 60 and .weight == 3 and .by == "slices" and .slowdown_target == 1.1 and .pid == '"$(pid_of job)"
	shows 'select(has("claim")) | .tenant_gpu_seconds > 0.2 and (.tenant_memory_bytes | type) == "number" and .waits_for == null'
	shows 'select(has("claim")) | .card_memory_bytes > 500000000 and .card_memory_bytes < .memory_bytes + 8388608'
	loadline --sim status --long | grep -qE "pid $(pid_of job)  job: running, class high, [0-9.]+ [MG]iB \\(the card counts [0-9.]+ [MG]iB\\) of 8.0 GiB, compute 60 %, weight 3, slowdown target 1.1, GPU time "
	shows_none 'has("process")'
	stop job
}

@test "a claim is a row with its process, user, tenant, state, memory, time and command" {
	needs_shim
	# shellcheck disable=SC2046
	start job --sim run --mem 8G --tenant 名字 -- $(busy kernel 1ms for 60s)
	wait_for 60 shows 'select(has("claim") and .gpu_seconds > 0.2)'
	loadline --sim status >"$T/status.out"
	grep -qE "^claim +job +pid +user +tenant +state +last kernel +age +memory +share +time +command$" "$T/status.out"
	grep -qE "^0/[0-9]+ +[0-9]+ +$(pid_of job) +$(id -un) +名字 +running +now +[0-9]+ s +0.[0-9]/8.0 GiB +([0-9]+ %|-) +[0-9.]+ s +loadline-simctl busy 0 kernel 1ms for 60s$" "$T/status.out"
	shows '.tenant == "名字" and .user == "'"$(id -un)"'" and .command == "loadline-simctl busy 0 kernel 1ms for 60s"'
	# The same where the environment has no language.
	LC_ALL=C loadline --sim status | grep -q " 名字  "
	loadline --sim set 名字 --mem 9G
	shows '.tenant == "名字" and .memory_limit_bytes == 9 * 1073741824'
	fails_with 1 "名: no such claim or tenant" --sim set 名 --mem 1G
	stop job
	shows '.tenant == "名字" and .claims == 0' || shows_none '.tenant == "名字"'
}

@test "the limits of each program stand in its row, also in 80 columns: compute cap and class beside memory" {
	needs_shim
	# shellcheck disable=SC2046
	start small --sim run --tenant small --mem 8G --compute 25% --class low -- $(busy kernel 1ms for 60s)
	wait_for 60 shows 'select(has("claim") and .tenant == "small" and .gpu_seconds > 0.2)'
	for width in 200 80; do
		COLUMNS=$width python3 -c 'import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if not pid:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(os.environ["COLUMNS"]), 0, 0))
    os.execv(sys.argv[1], sys.argv[1:])
try:
    while chunk := os.read(fd, 65536):
        os.write(1, chunk)
except OSError:
    pass' "$LOADLINE" --sim status >"$T/row.out"
		grep -E " small +[a-z ]+, ≤25 %, low .*/8\.0 GiB " "$T/row.out"
	done
	loadline --sim set small --compute none --class normal
	loadline --sim status >"$T/row.out"
	grep -E " small +running  .*/8\.0 GiB " "$T/row.out"
	run ! grep -E "low|≤" "$T/row.out"
}

@test "a program that a signal has stopped is not told to run, with and without work on the card" {
	needs_shim
	# shellcheck disable=SC2046
	start job --sim run --tenant worker -- $(busy kernel 1ms for 60s)
	start idle --sim run --tenant idler -- sleep 60
	wait_for 60 shows 'has("claim") and .tenant == "worker" and .state == "running"'
	wait_for 60 shows '.job.tenant == "idler" and .job.state == "running"'
	freeze_process "$(pid_of job)"
	kill -STOP "$(pid_of idle)"
	wait_for 60 shows 'has("claim") and .tenant == "worker" and .state == "stopped"'
	wait_for 60 shows '.job.tenant == "idler" and .job.state == "stopped"'
	loadline --sim status | grep -qE "^0/[0-9]+ .* worker +stopped "
	loadline --sim status --long | grep -q " worker: stopped, "
	kill -CONT "$(pid_of job)" "$(pid_of idle)"
	wait_for 60 shows 'has("claim") and .tenant == "worker" and .state == "running"'
	wait_for 60 shows '.job.tenant == "idler" and .job.state == "running"'
}

@test "a command with bytes that are no UTF-8 is shown, and its JSON is JSON" {
	name=$T/$'caf\xe9\033"训练'
	cp "$LOADLINE_BUILD/sim/loadline-simctl" "$name"
	start_program stranger env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$name" busy 0 20% for 60s
	wait_for 60 shows 'select(has("process")) | .command == "caf??\"训练 busy 0 20% for 60s"'
	loadline --sim status | grep -qF 'caf??"训练 busy 0 20% for 60s'
	stop stranger KILL
}

@test "a row fits 80 and 40 columns, and simulated cards are called so" {
	cat >"$T/terminal.py" <<'PY'
import fcntl, os, pty, struct, sys, termios
width = int(sys.argv[1])
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    os.execv(sys.argv[2], sys.argv[2:])
seen = b""
try:
    while chunk := os.read(fd, 65536):
        seen += chunk
except OSError:
    pass
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
lines = seen.decode().replace("\r", "").split("\n")
print("\n".join(lines))
assert status == 0, status
assert all(len(line) <= width for line in lines), lines
assert any("(simulated)" in line for line in lines), lines
assert any(line.startswith("claim ") for line in lines), lines
assert any("ungoverned" in line for line in lines), lines
assert any("loadline-s" in line for line in lines), lines
PY
	# shellcheck disable=SC2046
	start_program stranger env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" $(busy 20% for 60s)
	wait_for 60 shows 'has("process")'
	for width in 80 40; do
		python3 "$T/terminal.py" "$width" "$LOADLINE" --sim status
	done
	stop stranger KILL
}

# row KIND NAME FILTER: what status says of the tenant NAME fits; KIND: claim, tenant_row.
row() {
	loadline --sim status --json | jq -es "any(.[]; has(\"$1\") and .tenant == \"$2\" and ($3))" >/dev/null
}

@test "the last kernel of each program is told, of one without the library by what the card did" {
	needs_shim
	# shellcheck disable=SC2046
	start_program stranger env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" $(busy kernel 1s sleep 100s for 100s)
	wait_for 60 shows 'select(has("process")) | .last_kernel == "unknown" and .last_kernel_seconds == null and .process_age_seconds < 60'
	# The kernel ran for a second, so it ended at least so long after the start of the program.
	wait_for 60 shows 'select(has("process")) | .last_kernel == "at_least" and .last_kernel_seconds >= 1'
	shows 'select(has("process")) | .process_age_seconds - .last_kernel_seconds >= 1'
	loadline --sim status | grep -qE "^0/- .* ungoverned +≥ [0-9]+ s +[0-9]+ s "
	loadline --sim status --long | grep -qE ": ungoverned, .*, last kernel ≥ [0-9]+ s ago$"
	# An earlier status saw that the card had no work for longer, up to the age of the program.
	kept=$(echo "$T"/world/idle-GPU-*)
	sed -E 's/ [0-9]{20} / 00000000000000000001 /' "$kept" >"$T/kept"
	cat "$T/kept" >"$kept"
	shows 'select(has("process")) | .last_kernel == "at_least" and .process_age_seconds - .last_kernel_seconds < 0.5'
	# That of another boot says nothing.
	sed -E 's/^[0-9a-f]{8}/xxxxxxxx/' "$T/kept" >"$kept"
	shows 'select(has("process")) | .process_age_seconds - .last_kernel_seconds >= 1'
	# shellcheck disable=SC2046
	start job --sim run --tenant job -- $(busy kernel 1ms sleep 100s for 100s)
	wait_for 60 shows 'select(has("claim")) | .last_kernel == "ago" and .last_kernel_seconds > 0.5 and .last_kernel_seconds < .process_age_seconds'
	loadline --sim status --long | grep -qE " job: running, .*, age [0-9]+ s, last kernel [0-9]+ s ago$"
	# shellcheck disable=SC2046
	start busy --sim run --tenant busy -- $(busy kernel 1ms for 100s)
	wait_for 60 shows 'select(has("claim") and .tenant == "busy") | .last_kernel == "running" and .last_kernel_seconds == 0'
	wait_for 60 shows 'select(has("process")) | .last_kernel == "unknown"'
	loadline --sim status | grep -q "^0/- .* unknown: card busy  .* kernel 1s sleep 100s"
}

@test "a program whose memory lock is held does not stall status" {
	[ -e "$LOADLINE_BUILD/tests/e2e/libstaller.so" ] || skip "nothing can be preloaded in this build"
	needs_shim
	# shellcheck disable=SC2046
	start_program stranger env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" $(busy 20% for 60s)
	# shellcheck disable=SC2046
	start job --sim run --tenant job -- $(busy kernel 1ms for 60s)
	wait_for 60 shows 'has("process")'
	wait_for 60 shows 'has("claim")'
	shows 'select(has("process")) | .command == "loadline-simctl busy 0 20% for 60s"'
	LOADLINE_TEST_STALLED="$(pid_of stranger) $(pid_of job)" LD_PRELOAD=$LOADLINE_BUILD/tests/e2e/libstaller.so \
		timeout 120 "$LOADLINE" --sim status --json >"$T/json.out"
	has json 'select(has("process")) | .command == "[loadline-simctl]" and .user == "'"$(id -un)"'"'
	has json 'select(has("claim")) | .command == "loadline-simctl" and .tenant == "job"'
	# With --watch too, again and again.
	LOADLINE_TEST_STALLED=$(pid_of stranger) LD_PRELOAD=$LOADLINE_BUILD/tests/e2e/libstaller.so \
		start watch --sim status --json --watch=0.1
	wait_for 60 counts watch 3 '.command == "[loadline-simctl]"'
	stop watch INT
	[ "$status" -eq 0 ]
}

@test "who waits for whom is told" {
	needs_shim
	for weight in 1 2; do
		# shellcheck disable=SC2046
		start "of-$weight" --sim run --tenant "of-$weight" --weight "$weight" -- $(busy kernel 2ms for 60s)
	done
	wait_for 60 status_has 'map(select(has("claim"))) | length == 2 and
		((.[0].waits_for == .[1].claim and .[1].has_turn) or (.[1].waits_for == .[0].claim and .[0].has_turn))'
	waits_in_text() {
		loadline --sim status --long | grep -qE 'GPU time .*, last kernel now, waits for 0/[0-9]+$'
	}
	wait_for 60 waits_in_text
	wait_for 60 row claim of-1 '.waited_seconds.turn > 0.1 and .waited_seconds.cap == 0'
}

@test "memory over time, and waits by their cause, also of processes that have ended" {
	needs_shim
	# shellcheck disable=SC2016
	start capped --sim run --tenant capped --compute 20% --evictable -- sh -c '"$1" busy 0 kernel 5ms memory 2G for 60s; sleep 60' \
		sh "$LOADLINE_BUILD/sim/loadline-simctl"
	# It has had all of its memory since its beginning, or nearly.
	wait_for 60 row claim capped '.waited_seconds.cap > 0.3 and .memory_gib_seconds > 2'
	row claim capped '(.memory_gib_seconds / (.memory_bytes / pow(2; 30) * .age_seconds)) as $part | $part > 0.3 and $part < 1.1'
	row claim capped '.waited_seconds.move == 0 and .tenant_memory_gib_seconds >= .memory_gib_seconds'
	loadline --sim suspend capped
	sleep 0.3
	loadline --sim resume capped
	wait_for 60 row claim capped '.waited_seconds.move > 0.2'
	pkill -KILL -P "$(pid_of capped)"
	wait_for 60 row tenant_row capped '.waited_seconds.cap > 0.3 and .waited_seconds.move > 0.2'
	row tenant_row capped '.memory_gib_seconds > 2'
}

@test "a process without a claim is ungoverned, and said to have dropped the library where it did" {
	export LD_LIBRARY_PATH=$LOADLINE_BUILD/sim
	# shellcheck disable=SC2046
	start_program stranger $(busy 20% for 60s)
	unset LD_LIBRARY_PATH
	wait_for 60 shows 'select(has("process")) | .governed == false and .started_in_tenant == null and .memory_bytes > 1e8 and .pid == '"$(pid_of stranger)"
	loadline --sim status --long | grep -q "^  pid $(pid_of stranger)  loadline-simctl: ungoverned, [0-9]* MiB, age [0-9]* s, last kernel .*$"
	stop stranger KILL
	needs_shim
	# shellcheck disable=SC2046
	start dropped --sim run --tenant leaver -- env -u LD_PRELOAD $(busy 20% for 60s)
	wait_for 60 shows 'select(has("process")) | .started_in_tenant == "leaver" and .pid == '"$(pid_of dropped)"
	loadline --sim status --long | grep -q "loadline-simctl: ungoverned (started in tenant leaver, without its library), "
	stop dropped KILL
	# Nothing of its environment is left but where the simulated driver is.
	# shellcheck disable=SC2046
	start bare --sim run --tenant bare -- env -i LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" LOADLINE_SIM_DIR="$LOADLINE_SIM_DIR" $(busy 20% for 60s)
	wait_for 60 shows 'select(has("process")) | .started_in_tenant == "bare" and .pid == '"$(pid_of bare)"
}

@test "a program that an older loadline governs is called so" {
	local other=$LOADLINE_BUILD/tests/e2e/libother_version.so
	[ -e "$other" ] || skip "nothing can be preloaded in this build"
	# Such a program has mapped a file of that name.
	cp "$other" "$T/GPU-1.ledger"
	# shellcheck disable=SC2046
	start_program older env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" LD_PRELOAD="$T/GPU-1.ledger" $(busy 20% for 60s)
	wait_for 60 shows 'select(has("process")) | .older_loadline and (.governed | not)'
	loadline --sim status --long | grep -q "^  pid $(pid_of older)  loadline-simctl: governed by an older loadline, "
	loadline --sim status | grep -q "$(pid_of older) .* older loadline "
	loadline --sim doctor --no-trial | grep -q "^warn: card 0: claims: pid $(pid_of older) is governed by an older loadline"
	stop older KILL
}

@test "a hold's own process is nobody's stranger" {
	start hold --sim hold --json
	wait_for 60 hold_is holding
	wait_for 60 shows 'select(has("card")) | .processes > 0'
	shows_none 'has("process")'
	stop hold
}

@test "--watch prints one reading after the other, with shares from the second on, until Ctrl-C" {
	needs_shim
	# shellcheck disable=SC2046
	start job --sim run --tenant job -- $(busy kernel 1ms for 120s)
	wait_for 60 shows 'select(has("claim") and .gpu_seconds > 0.1)'
	start_program watch python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$LOADLINE" --sim status --long --watch=0.3
	wait_for 60 grep -q "of the last" "$T/watch.out"
	wait_for 60 eval '[ "$(grep -c "^card " "$T/watch.out")" -ge 3 ]'
	stop watch INT
	[ "$status" -eq 0 ]
	[ ! -s "$T/watch.err" ]
	run ! grep -q $'\033' "$T/watch.out"
	[ "$(grep -m 1 -n "of the last" "$T/watch.out" | cut -d: -f 1)" -gt 3 ]
	grep -qE 'job: running, .*, GPU time [0-9.]+ s \(tenant: [0-9]+ % of the last [0-9.]+ s\)' "$T/watch.out"
	start watch --sim status --json -w0.3
	wait_for 60 has watch 'select(has("claim")) | .recent_seconds >= 0.3 and .recent_percent > 10'
	stop watch TERM
	[ "$status" -eq 0 ]
	loadline --sim status --json | jq -e 'select(has("claim")) | .recent_percent == null'
	fails_with 2 "--watch: '0': not a number of seconds" --sim status --watch=0
	fails_with 2 "--watch: 'x': not a number of seconds" --sim status --watch=x
}

@test "--watch on a narrow terminal draws over itself, and no line is wider" {
	cat >"$T/terminal.py" <<'PY'
import fcntl, os, pty, re, signal, struct, sys, termios, time
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 70, 0, 0))
    os.execv(sys.argv[1], sys.argv[1:])
seen, end = b"", time.time() + 60
while seen.count(b"\033[H") < 3 and time.time() < end:
    seen += os.read(fd, 65536)
os.write(fd, b"\003")
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
lines = re.sub(rb"\033\[[0-9]*[HJK]|\r", b"", seen).split(b"\n")
assert status == 0, status
assert seen.count(b"\033[2J") == 1 and seen.count(b"\033[J") >= 2, seen
assert all(len(line) <= 70 for line in lines), lines
assert any(b"0/140 GiB" in line and b"77/700 W" in line for line in lines), lines
assert any(b"(simulated)" in line for line in lines), lines
PY
	python3 "$T/terminal.py" "$LOADLINE" --sim status --watch=0.2
}

@test "a claim's line says for how long its tenant has not been held to its limits" {
	start_lost_tenant
	loadline --sim status --json >"$T/json.out"
	has json 'select(has("claim")) | .tenant == "stray" and (.lost_seconds | type) == "number" and .lost_seconds < 60'
	loadline --sim status --long | grep -q ', NOT HELD TO ITS LIMITS for [0-9]* s: a process has lost its claim$'
	stop stray KILL
	start hold --sim hold --target 10% --json
	wait_for 60 has hold 'select(.event == "settle")'
	loadline --sim status --json >"$T/json.out"
	has json 'select(has("claim")) | has("lost_seconds") and .lost_seconds == null'
}
