# loadline trace as its user sees it. CUPTI is a library of the tests' own, over what the simulated driver ran.
load helper

export NEEDS=tests/trace/traced
TRACED=$LOADLINE_BUILD/tests/trace/traced

# Where the records go meanwhile; nothing may be left there.
own_temporary_folder() {
	mkdir -p "$T/tmp"
	export TMPDIR=$T/tmp
}

use_cupti() {
	own_temporary_folder
	export LOADLINE_CUPTI=$LOADLINE_BUILD/tests/trace/libcupti.so.13
}

without_cupti() {
	own_temporary_folder
	export LOADLINE_CUPTI=$T/there-is-none
}

# trace ARG...: runs it; what it printed is in $T/trace.out and .err, its status in $status.
trace() {
	start trace --sim trace "$@"
	finish trace
}

# rows FILE KIND: how many rows of that kind a table has.
rows() {
	awk -F, -v kind="$2" 'NR > 1 && $21 == kind' "$1" | wc -l
}

# bats test_tags=main
@test "each process has a table, all have one picture, and both have every event" {
	use_cupti
	trace --json -o "$T/table_%p.csv" -o "$T/all.json" -- "$TRACED" fork=2 kernels=60:100000:3 copies=4:65536 \
		memsets=5:4096 end=exit
	[ "$status" -eq 0 ]
	local tables=("$T"/table_*.csv) table
	[ "${#tables[@]}" -eq 2 ]
	for table in "${tables[@]}"; do
		[ "$(rows "$table" kernel)" -eq 60 ]
		[ "$(rows "$table" copy)" -eq 8 ]
		[ "$(rows "$table" memset)" -eq 5 ]
		[ "$(rows "$table" allocation)" -eq 2 ]
		[ "$(rows "$table" free)" -eq 2 ]
		# In order, on three streams, as they were launched.
		awk -F, 'NR > 1 { if ($1 < last) exit 1; last = $1 }' "$table"
		[ "$(awk -F, 'NR > 1 && $21 == "kernel" { print $18 }' "$table" | sort -u | wc -l)" -eq 3 ]
		[ "$(awk -F, '$21 == "kernel" { print $2","$3","$4","$5","$6","$7","$8","$19 }' "$table" | sort -u |
			sed 's/^[0-9]*,//' | sort -u)" = 2,3,4,32,2,1,work_ns ]
	done
	jq -e '[.traceEvents[] | select(.ph == "X")] | (map(select(.cat == "kernel")) | length) == 120
		and (map(select(.cat == "copy")) | length) == 16 and (map(.pid) | unique | length) == 2' "$T/all.json"
	jq -e '[.traceEvents[] | select(.ph == "M" and .name == "process_name") | .pid] | unique | length == 2' "$T/all.json"
	has trace 'select(.event == "process") | .kernels == 60 and .copies == 8 and .memsets == 5 and .by == "cupti"
		and .to_card_bytes == 262144 and .from_card_bytes == 262144 and .peak_memory_bytes == 65536'
	has trace 'select(.event == "kernel") | .calls == 120 and .processes == 2 and .name == "work_ns"'
	has trace 'select(.event == "summary") | .events == 2 * 77 and .dropped_by_cupti == 0 and .exit_status == 0'
}

@test "device times agree with what the kernels were asked to take" {
	use_cupti
	trace --json -- "$TRACED" kernels=50:2000000
	has trace 'select(.event == "kernel") | .min_seconds == 0.002 and .max_seconds == 0.002 and .total_seconds == 0.1'
	# A single stream: the busy time is the kernels' sum.
	has trace 'select(.event == "process") | .busy_seconds == 0.1'
}

@test "by events the same program gives the same rows, each as long as its kernel at least" {
	without_cupti
	trace --by events --json -o "$T/all.csv" -- "$TRACED" kernels=50:2000000 copies=4:65536 memsets=5:4096
	[ "$status" -eq 0 ]
	[ "$(rows "$T/all.csv" kernel)" -eq 50 ]
	[ "$(rows "$T/all.csv" copy)" -eq 8 ]
	[ "$(rows "$T/all.csv" memset)" -eq 5 ]
	[ "$(rows "$T/all.csv" allocation)" -eq 2 ]
	has trace 'select(.event == "kernel") | .calls == 50 and .name == "work_ns" and .min_seconds >= 0.00199'
	has trace 'select(.event == "process") | .by == "events"'
}

# bats test_tags=main
@test "without CUPTI, and with one of an unknown version, it traces by events and says so" {
	without_cupti
	trace --json -- "$TRACED" kernels=10:100000
	[ "$status" -eq 0 ]
	grep -q "no libcupti was found: tracing by events" "$T/trace.err"
	has trace 'select(.event == "process") | .by == "events" and .kernels == 10'
	use_cupti
	FAKE_CUPTI_VERSION=200000 trace --json -- "$TRACED" kernels=10:100000
	grep -q "API version 200000, which is not known: tracing by events" "$T/trace.err"
	has trace 'select(.event == "process") | .by == "events" and .kernels == 10'
}

@test "under --sim the CUPTI of a toolkit is not looked for, wherever it is" {
	own_temporary_folder
	mkdir -p "$T/toolkit/extras/CUPTI/lib64" "$T/python/bin" "$T/python/lib/python3.11/site-packages/nvidia/cuda_cupti/lib"
	cp "$LOADLINE_BUILD/tests/trace/libcupti.so.13" "$T/toolkit/extras/CUPTI/lib64"
	cp "$LOADLINE_BUILD/tests/trace/libcupti.so.13" "$T/python/lib/python3.11/site-packages/nvidia/cuda_cupti/lib"
	cp "$TRACED" "$T/python/bin/traced"
	local way
	for way in CUDA_HOME="$T/toolkit" CUDA_PATH="$T/toolkit" LD_LIBRARY_PATH="$T/toolkit/extras/CUPTI/lib64" PATH="$T/python/bin:$PATH"; do
		echo "$way"
		start_program trace env "$way" "$LOADLINE" --sim trace --json -- "$T/python/bin/traced" kernels=10:100000
		finish trace
		[ "$status" -eq 0 ]
		has trace 'select(.event == "process") | .by == "events" and .kernels == 10'
	done
	LOADLINE_CUPTI=$T/toolkit/extras/CUPTI/lib64/libcupti.so.13 trace --json -- "$TRACED" kernels=10:100000
	has trace 'select(.event == "process") | .by == "cupti" and .kernels == 10'
}

@test "a process in which CUPTI refuses is traced by events, or not at all with --by cupti" {
	use_cupti
	export FAKE_CUPTI_REFUSE=39
	trace --json -- "$TRACED" kernels=10:100000
	has trace 'select(.event == "process") | .by == "events" and .kernels == 10 and
		(.cupti_refusal | contains("MULTIPLE_SUBSCRIBERS"))'
	trace --by cupti -- "$TRACED" kernels=10:100000
	[ "$status" -eq 125 ]
	grep -q "MULTIPLE_SUBSCRIBERS.*it has no device times" "$T/trace.err"
	[ "$(tail -n 1 "$T/trace.err")" = "loadline: --by cupti: CUPTI refused 1 of 1 processes, which have no device times; the notes above say why; or trace by events, as without --by" ]
	trace --by cupti --json -- "$TRACED" fork=2 kernels=10:100000
	[ "$status" -eq 125 ]
	grep -q "refused 2 of 2 processes.*cupti_refusal says why" "$T/trace.err"
	without_cupti
	fails_with 125 "--by cupti: no libcupti was found" --sim trace --by cupti -- "$TRACED" kernels=1:1
}

@test "records of older versions are read, and a CUPTI without a clock of ours" {
	use_cupti
	FAKE_CUPTI_VERSION=14 FAKE_CUPTI_NO_CLOCK=1 trace --json -o "$T/old.csv" -- "$TRACED" kernels=20:100000 copies=1:4096
	has trace 'select(.event == "process") | .by == "cupti" and .kernels == 20 and .copies == 2'
	# On the same axis: after the command began, and before it ended.
	has trace 'select(.event == "card") | .busy_percent > 0'
	awk -F, 'NR > 1 && ($1 < 0 || $1 > 60e9) { exit 1 }' "$T/old.csv"
}

# bats test_tags=main
@test "what CUPTI drops and what is over --max-events is counted and said" {
	use_cupti
	FAKE_CUPTI_KEEP=30 trace --json -- "$TRACED" kernels=100:10000
	has trace 'select(.event == "summary") | .events == 30 and .dropped_by_cupti == 70'
	# What it drops after its last buffer was handed over, which is each 200 ms, counts too.
	FAKE_CUPTI_KEEP=30 trace --json -- "$TRACED" kernels=60:30000000
	has trace 'select(.event == "summary") | .events == 30 and .dropped_by_cupti == 30'
	FAKE_CUPTI_TIMELESS=4 trace --json -- "$TRACED" kernels=20:10000
	has trace 'select(.event == "summary") | .events == 16 and .dropped_by_cupti == 4'
	trace --max-events 25 -o "$T/some.csv" -- "$TRACED" kernels=100:10000
	[ "$status" -eq 0 ]
	grep -q "75 events over --max-events" "$T/trace.err"
	[ "$(rows "$T/some.csv" kernel)" -eq 25 ]
}

@test "a process that is killed, or ends without its handlers, has what it did" {
	use_cupti
	trace --json -- "$TRACED" kernels=100:10000 end=_exit
	[ "$status" -eq 0 ]
	has trace 'select(.event == "process") | .kernels == 100'
	without_cupti
	trace --json -- "$TRACED" kernels=100:10000 end=_exit
	has trace 'select(.event == "process") | .by == "events" and .kernels == 100'
	use_cupti
	start trace --sim trace --json -- "$TRACED" kernels=100:10000 hold="$T/held"
	wait_for 60 test -e "$T/held"
	local traced
	traced=$(pgrep -P "$(pid_of trace)" -x traced)
	# What it did has been flushed when its file has grown to hold it all: 96 bytes each.
	wait_for 60 eval "find '$TMPDIR' -path '*loadline-trace-*/$traced-*' -size +9k 2>/dev/null | grep -q ."
	kill -KILL "$traced"
	finish trace
	[ "$status" -eq 137 ]
	has trace 'select(.event == "process") | .kernels == 100'
	has trace 'select(.event == "summary") | .exit_status == 137'
}

@test "Ctrl-C ends the command, not the summary; other signals are passed on" {
	use_cupti
	start trace --sim trace --json -- "$TRACED" kernels=10:10000 hold="$T/held"
	wait_for 60 test -e "$T/held"
	kill -TERM "$(pid_of trace)"
	finish trace
	[ "$status" -eq 143 ]
	has trace 'select(.event == "summary") | .exit_status == 143'
	rm "$T/held"
	start trace --sim trace --json -- "$TRACED" kernels=10:10000 hold="$T/held"
	wait_for 60 test -e "$T/held"
	kill -USR1 "$(pid_of trace)"
	finish trace
	[ "$status" -eq 138 ]
	[ -z "$(ls "$TMPDIR")" ]
}

@test "what a trace that was killed left goes with the next one, what another one uses does not" {
	use_cupti
	start killed --sim trace -- "$TRACED" kernels=3:1000 hold="$T/there"
	wait_for 60 test -e "$T/there"
	local left used=$TMPDIR/loadline-trace-in-use young=$TMPDIR/loadline-trace-young
	left=$(compgen -G "$TMPDIR/loadline-trace-*")
	read -ra program <<<"$(cat "/proc/$(pid_of killed)/task/$(pid_of killed)/children")"
	stop killed KILL
	kill -KILL "${program[@]}"
	[ -n "$(ls "$left")" ]
	mkdir "$used" "$young"
	touch -d "10 minutes ago" "$left" "$used"
	flock -s "$used" "$LOADLINE" --sim trace -- true
	[ ! -e "$left" ]
	[ -d "$used" ]
	[ -d "$young" ]
}

@test "C++ names are those of the source, quoted where they have a comma" {
	ldconfig -p | grep -q libstdc++.so.6 || skip "no C++ library here"
	use_cupti
	trace --json -o "$T/names.csv" -o "$T/names.json" -- "$TRACED" mangled=3:1000
	has trace 'select(.event == "kernel") | .name == "void work_nested<3>(float*)" and .calls == 3'
	grep -q ',void work_nested<3>(float\*),' "$T/names.csv"
	jq -e '[.traceEvents[] | select(.name == "void work_nested<3>(float*)")] | length == 3' "$T/names.json"
}

@test "children of Python's multiprocessing, which end by _exit, and what comes after an exec, are in it" {
	use_cupti
	cat >"$T/tree.py" <<-'EOF'
		import ctypes, multiprocessing, os, sys

		def work(bytes):
		    cuda = ctypes.CDLL("libcuda.so.1")
		    context, address = ctypes.c_void_p(), ctypes.c_uint64()
		    assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
		    for _ in range(5):
		        assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(bytes)) == 0

		for how in ("fork", "spawn"):
		    if __name__ == "__main__":
		        child = multiprocessing.get_context(how).Process(target=work, args=(4096,))
		        child.start()
		        child.join()
		        assert child.exitcode == 0
		if __name__ == "__main__":
		    work(8192)
		    os.execv(sys.argv[1], [sys.argv[1], "kernels=7:1000"])
	EOF
	trace --json -o "$T/tree_%p.csv" -- python3 "$T/tree.py" "$TRACED"
	[ "$status" -eq 0 ]
	has trace 'select(.event == "summary") | .processes == 3'
	[ "$(json trace 'select(.event == "process" and .peak_memory_bytes == 20480) | .pid' | wc -l)" -eq 2 ]
	has trace 'select(.event == "process" and .kernels == 7)'
}

# bats test_tags=main
@test "idle time goes to its causes" {
	use_cupti
	trace --json -- "$TRACED" kernels=1:1000000 spin=1500000000
	computed=$(sed -n 's/^computed //p' "$T/trace.out")
	# On a busy host the program waits for a processor too.
	has trace 'select(.event == "card") | .main_idle_cause == if .host_compute_percent > .waiting_percent then "host compute" else "waiting" end'
	has trace 'select(.event == "card") | .host_compute_percent > 45 * '"$computed"' - 3'
	trace --json -- "$TRACED" kernels=1:1000000 sleep=1500000000
	has trace 'select(.event == "card") | .main_idle_cause == "waiting" and .waiting_percent > 40'
	trace --json -- "$TRACED" kernels=1:1000000 io=1500000000 kernels=1:1000000
	has trace 'select(.event == "card") | .main_idle_cause == "I/O wait" and .io_wait_percent > 40'
	has trace 'select(.event == "process") | .kernels == 2'
	trace --json -- "$TRACED" nccl=20:10000000 kernels=5:10000000
	has trace 'select(.event == "card") | (.communication_percent / .busy_percent) as $share | $share > 0.79 and $share < 0.81'
	# The parts are the whole.
	has trace 'select(.event == "card") | (.busy_percent + .host_compute_percent + .io_wait_percent + .copies_percent +
		.gate_wait_percent + .waiting_percent) as $sum | $sum > 99.9 and $sum < 100.1'
}

@test "a governed program's waits are in the trace, whichever of the two was started first" {
	use_cupti
	# Where a program goes off the card for its cap, its kernels only seem to take longer.
	echo "card 0 off no" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	# 2.5 s, most of which are waits, so that a program that starts and ends slowly on a busy host waits mostly too.
	trace --json -o "$T/gate.csv" -o "$T/gate.json" -- "$LOADLINE" run --compute 20% -- "$TRACED" kernels=250:2000000
	[ "$status" -eq 0 ]
	has trace 'select(.event == "card") | .main_idle_cause == "gate wait" and .gate_wait_percent > 40'
	# How many launches wait depends on the host: a thread that wakes late finds tokens for several launches.
	has trace 'select(.event == "process") | .kernels == 250 and .gate_waits > 20 and .gate_seconds > 0.3 and .by == "cupti"'
	local waits
	waits=$(jq 'select(.event == "process") | .gate_waits' "$T/trace.out")
	[ "$(rows "$T/gate.csv" gate)" -eq "$waits" ]
	jq -e --argjson waits "$waits" '[.traceEvents[] | select(.cat == "gate")] | length == $waits' "$T/gate.json"
	without_cupti
	start trace --sim run --compute 20% -- "$LOADLINE" trace --json -- "$TRACED" kernels=50:2000000
	finish trace
	[ "$status" -eq 0 ]
	has trace 'select(.event == "process") | .kernels == 50 and .gate_waits > 10 and .by == "events"'
	# A launch is timed behind the gate, so its wait is not in its kernel's time.
	trace --json -- "$LOADLINE" run --compute 20% -- "$TRACED" kernels=150:2000000
	[ "$status" -eq 0 ]
	has trace 'select(.event == "process") | .kernels == 150 and .gate_waits > 10 and .busy_seconds < .gate_seconds and
		.gate_seconds > 0.2 and .by == "events"'
	trace -- "$LOADLINE" run -- sh -c 'echo $LD_PRELOAD'
	[ "$(sed 's:[^\:]*/::g' "$T/trace.out")" = libloadline-trace.so:libloadline-cuda.so:libloadline-events.so:libloadline-sim-kernel.so ]
}

@test "the overlap of two processes is told" {
	use_cupti
	trace --json -- "$TRACED" fork=2 kernels=150:5000000
	has trace 'select(.event == "card") | .processes == 2 and .overlap_seconds > 0.1 and
		.overlap_seconds <= .kernel_sum_seconds / 2'
}

# bats test_tags=main
@test "names of outputs" {
	use_cupti
	# Without %p, several processes get theirs before the suffix; one keeps the name as it is.
	trace -o "$T/plain.csv" -- "$TRACED" fork=2 kernels=3:1000
	[ "$(find "$T" -name 'plain-*.csv' | wc -l)" -eq 2 ]
	[ ! -e "$T/plain.csv" ]
	trace -o "$T/one.csv" -o "$T/100%%.json" -- "$TRACED" kernels=3:1000
	[ -e "$T/one.csv" ]
	[ -e "$T/100%.json" ]
	fails_with 125 "neither .csv nor .json" --sim trace -o "$T/x.txt" -- "$TRACED"
	fails_with 125 "only %p and %% are known" --sim trace -o "$T/x%d.csv" -- "$TRACED"
	fails_with 125 "a .json has all processes" --sim trace -o "$T/x%p.json" -- "$TRACED"
	fails_with 1 "No such file or directory" --sim trace -o "$T/none/x.csv" -- touch "$T/ran"
	[ ! -e "$T/ran" ]
}

@test "a program into which nothing can be preloaded is refused by events, tried by CUPTI, and no word is about limits" {
	local program
	program=$(readlink -f "$(command -v su)") || skip "no su"
	[ -u "$program" ] || skip "su is not set-uid"
	without_cupti
	fails_with 125 "cannot be traced by events: $program: it is a set-uid program" --sim trace -- "$program" --version
	# shellcheck disable=SC2154
	[[ $stderr != *ungoverned* ]]
	use_cupti
	trace -- "$program" --version
	[ "$status" -eq 0 ]
	grep -q "WARN tracing by CUPTI only: $program: it is a set-uid program" "$T/trace.err"
}

# bats test_tags=main
@test "the command's status is trace's own" {
	use_cupti
	trace -- sh -c 'exit 7'
	[ "$status" -eq 7 ]
	grep -q "no process of the command used CUDA" "$T/trace.err"
	[ -z "$(ls "$TMPDIR")" ]
	fails_with 127 "command not found" --sim trace -- there-is-no-such-command
	touch "$T/plain"
	fails_with 126 "" --sim trace -- "$T/plain"
	fails_with 125 "no command to run" --sim trace
	fails_with 125 "a command is traced until it ends" --sim trace --for 1s -- true
	fails_with 125 "no card" --sim trace -i 9 -- true
}

@test "the library that goes into programs needs libc alone, and exports nothing but its ways in and out" {
	local library=$LOADLINE_BUILD/src/trace/libloadline-trace.so
	readelf -dW "$library" | grep -qE "NEEDED.*libc\."
	# Of which these two are parts.
	run ! sh -c "readelf -dW '$library' | grep NEEDED | grep -vE 'lib(c|pthread|dl)\.so'"
	[ "$(nm -D --defined-only "$library" | awk '{ print $3 }' | sort | xargs)" = \
		"InitializeInjection _Exit _exit loadline_launch_waited loadline_trace_at_end loadline_trace_is_by_cupti quick_exit" ]
}

@test "-i keeps what happens on other cards out" {
	use_cupti
	echo "cards 2" >"$T/two"
	start trace --sim="$T/two" trace --json -i 1 -o "$T/other.csv" -- "$TRACED" kernels=3:1000
	finish trace
	[ "$status" -eq 0 ]
	[ "$(rows "$T/other.csv" kernel)" -eq 0 ]
	start trace --sim="$T/two" trace --json -i 0 -o "$T/own.csv" -- "$TRACED" kernels=3:1000
	finish trace
	[ "$(rows "$T/own.csv" kernel)" -eq 3 ]
}

@test "an output that cannot be written is an error after the command" {
	use_cupti
	ln -s /dev/full "$T/full.json"
	trace -o "$T/full.json" -- "$TRACED" kernels=3:1000
	[ "$status" -eq 1 ]
	grep -q "^loadline: -o: .*full.json: No space left on device" "$T/trace.err"
	fails_with 1 "-o: /there/is/none.json: No such file" --sim trace -o /there/is/none.json -- "$TRACED" kernels=3:1000
	[ -z "$(ls "$TMPDIR")" ]
	TMPDIR=/there/is/none fails_with 125 "No such file or directory" --sim trace -- true
}

@test "without a command it shows who is on a card, and what is missing" {
	start stranger --sim run -- "$TRACED" kernels=1:1000 hold="$T/held"
	wait_for 60 test -e "$T/held"
	start trace --sim trace -i 0 --for 300ms --json
	finish trace
	[ "$status" -eq 0 ]
	has trace 'select(.event == "card") | .processes == 1 and .has_timeline == false'
	has trace 'select(.event == "stranger") | .name == "traced" and (.missing | contains("not started under loadline trace"))'
	fails_with 125 "only a command that was started under trace has a timeline" --sim trace -i 0 -o "$T/x.csv"
}

# A thread of the driver's library took SIGCHLD in half of such runs, and trace waited for ever.
@test "the end of a command is seen whichever thread the driver has started" {
	for _ in {1..10}; do
		timeout -s KILL 60 "$LOADLINE" --sim trace -i 0 -- true
	done
}
