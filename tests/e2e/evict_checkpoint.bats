# evict, suspend and resume of programs that are not evictable: by the driver's checkpoint, or by the card.
load evict_helper

export NEEDS=bench/c/evictee

# world LINE...: one card of 1600 MiB, and these lines of a scenario.
world() {
	printf '%s\n' "cards 1" "card 0 memory 1600M" "card 0 sm 8" "$@" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
}

# begin NAME COMMAND...: an evictee that works until ends_right NAME.
begin() {
	start_until_told "$@"
	wait_for 60 has "$1" 'select(.event == "ready")'
}

# plain NAME [--keep]: a program without the library. With --keep it has the same memory all the time.
plain() {
	begin "$1" env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE_BUILD/bench/c/evictee" --bytes 300M --idle 20ms --until-eof "${@:2}"
}

ends_right() {
	end_of "$1"
	wait_for 180 has "$1" 'select(.event == "end")'
	finish "$1"
	[ "$status" -eq 0 ]
	has "$1" 'select(.event == "end" and .wrong == 0)'
}

@test "a program without the library leaves the card, and goes on after resume" {
	world
	plain job --keep
	before=$(used_mib)
	loadline --sim evict --pid "$(pid_of job)" --json >"$T/evict.out"
	has evict '.event == "evicted" and .by == "checkpoint" and .bytes > 300 * 1048576'
	[ "$(used_mib)" -lt $((before - 300)) ]
	run -0 "$LOADLINE" --sim evict --pid "$(pid_of job)"
	[ -z "$(json job 'select(.event == "end")')" ]
	run -0 "$LOADLINE" --sim resume --pid "$(pid_of job)"
	[[ $output == "resumed pid $(pid_of job): "*"by the driver's checkpoint" ]]
	ends_right job
}

@test "suspend leaves the memory on the card" {
	world
	plain job --keep
	before=$(used_mib)
	loadline --sim suspend --pid "$(pid_of job)"
	[ "$(used_mib)" -ge "$before" ]
	loadline --sim resume --pid "$(pid_of job)"
	loadline --sim resume --pid "$(pid_of job)"
	ends_right job
}

@test "a claim that is not evictable leaves by the checkpoint" {
	world
	begin job "$LOADLINE" --sim run --tenant job -- "$LOADLINE_BUILD/bench/c/evictee" --bytes 300M --idle 20ms --until-eof
	loadline --sim evict job --json >"$T/evict.out"
	has evict '.tenant == "job" and .by == "checkpoint"'
	loadline --sim resume job
	ends_right job
}

# is_state STATE: says status so of the tenant job, and that it neither has the card nor waits for it, unless it runs?
is_state() {
	shows "select(has(\"claim\") and .tenant == \"job\") | .state == \"$1\" and (.state == \"running\" or (.has_turn or .waits_for != null or .over_cap | not))" &&
		loadline --sim status | grep -q " job  *$1  " &&
		loadline --sim status --long | grep -q " job: $1, "
}

# works: the program job goes on with its kernels.
works() {
	local before
	before=$(loadline --sim status --json | jq 'select(.tenant == "job") | .gpu_seconds')
	wait_for 60 shows "select(.tenant == \"job\") | .gpu_seconds > $before"
}

start_job() {
	start job --sim run --tenant job "$@" -- "$LOADLINE_BUILD/bench/c/evictee" --bytes 300M --idle 20ms --seconds 1000s
	wait_for 60 has job 'select(.event == "ready")'
}

@test "where the card takes programs off, suspend needs no checkpoint: at once in the midst of a kernel, and for the next loadlined too" {
	needs_preload
	open_steps one
	start_program one sh -c 'exec <"$0"; exec "$@"' "$T/one.in" "$LOADLINE" --sim run --tenant one -- python3 "$BATS_TEST_DIRNAME/evict_steps.py"
	does one context "alloc 3" "kernel 4"
	run -0 --separate-stderr loadline --sim suspend one --timeout 60s
	# shellcheck disable=SC2154
	[[ $output == "suspended 0/0, tenant one: "* && $output$stderr != *checkpoint* ]]
	shows 'select(.tenant == "one" and has("claim")) | .state == "stopped"'
	run -0 loadline --sim suspend one
	[[ $output == *"was already suspended" ]]
	# A loadlined that takes over keeps it off. Its kernel would have ended meanwhile.
	end_daemon KILL
	wait_for 60 shows 'select(.tenant == "one" and has("claim")) | .state == "stopped"'
	sleep 4.5
	shows 'select(.tenant == "one" and has("claim")) | .state == "stopped" and .gpu_seconds < 4'
	run -0 --separate-stderr loadline --sim resume one
	[[ $output == "resumed 0/0, tenant one: "* && $output$stderr != *checkpoint* ]]
	run -0 loadline --sim resume one
	[[ $output == *"was neither evicted nor suspended" ]]
	does one check
	# One whose threads do not run cannot leave the card: said, and it goes on.
	freeze_process "$(pid_of one)"
	fails_with 4 "its threads do not run: it is stopped, or hangs" --sim suspend one --timeout 200ms
	kill -CONT "$(pid_of one)"
	does one check
	# It is let on for the checkpoint, which waits for the end of its work.
	tell one "kernel 2"
	loadline --sim suspend one
	loadline --sim evict one --timeout 60s
	run -0 loadline --sim resume one
	[[ $output == *"by the driver's checkpoint" ]]
	does one check
}

@test "what the checkpoint has evicted or suspended is said to be so, and is resumed by it though the program is evictable" {
	needs_preload
	world
	for way in "" --evictable; do
		# shellcheck disable=SC2086
		start_job $way
		is_state running
		# By its claim, if that is not evictable; else the program would do it.
		by=(job)
		[ -z "$way" ] || by=(--pid "$(pid_of job)")
		loadline --sim evict "${by[@]}"
		is_state "evicted (checkpoint)"
		run -0 loadline --sim evict job
		[[ $output == *"was already evicted" ]]
		run -0 --separate-stderr loadline --sim resume job
		[[ $output == "resumed 0/"*", tenant job: "*"by the driver's checkpoint" ]]
		is_state running
		works
		loadline --sim suspend "${by[@]}"
		[ -z "$way" ] && is_state stopped || is_state suspended
		run -0 loadline --sim suspend job
		[[ $output == *"was already suspended" ]]
		loadline --sim evict job
		is_state "evicted (checkpoint)"
		run -0 loadline --sim resume --pid "$(pid_of job)"
		[[ $output == *"by the driver's checkpoint" ]]
		is_state running
		works
		run -0 loadline --sim resume job
		[[ $output == *"was neither evicted nor suspended" ]]
		stop job KILL
	done
}

@test "what has left by itself returns by itself, though its process is named; and what both have, by both" {
	needs_preload
	world
	start_job --evictable
	loadline --sim evict job
	is_state evicted
	run -0 --separate-stderr loadline --sim resume --pid "$(pid_of job)" --json
	jq -e '.by == "program" and .already == false' <<<"$output"
	works
	loadline --sim evict job
	loadline --sim evict --pid "$(pid_of job)"
	is_state "evicted (checkpoint)"
	loadline --sim resume job
	is_state running
	works
}

@test "what another tool has put away by the checkpoint is brought back by resume" {
	needs_preload
	world
	start_job --evictable
	cat >"$T/tool.py" <<'PY'
import ctypes, sys
cu, pid = ctypes.CDLL(sys.argv[1]), int(sys.argv[2])
assert cu.cuInit(0) == 0
assert cu.cuCheckpointProcessLock(pid, None) == 0
assert cu.cuCheckpointProcessCheckpoint(pid, None) == 0
PY
	LD_LIBRARY_PATH=$LOADLINE_BUILD/sim python3 "$T/tool.py" "$LOADLINE_BUILD/sim/libcuda.so.1" "$(pid_of job)"
	run -0 --separate-stderr loadline --sim resume job
	[[ $output == "resumed 0/"*"by the driver's checkpoint" ]]
	works
}

@test "a claim that follows one which the checkpoint had evicted is not said to be evicted" {
	needs_preload
	world
	start_job
	loadline --sim evict job
	stop job KILL
	start_job
	is_state running
}

@test "a driver without the checkpoint: refused, and the program goes on" {
	world "driver 550.54.14 cuda 12.4"
	plain job
	fails_with 1 "this driver has no checkpoint: it is older than 570" --sim evict --pid "$(pid_of job)"
	ends_right job
	begin job "$LOADLINE" --sim run --tenant job -- "$LOADLINE_BUILD/bench/c/evictee" --bytes 300M --idle 20ms --until-eof
	fails_with 1 "is not evictable: this driver has no checkpoint" --sim evict job
	ends_right job
}

@test "a checkpoint that the driver refuses: said, and the program goes on" {
	world "fail cuCheckpointProcessCheckpoint CUDA_ERROR_NOT_SUPPORTED"
	plain job
	fails_with 4 "the driver cannot take its memory off the card: CUDA_ERROR_NOT_SUPPORTED" --sim evict --pid "$(pid_of job)"
	ends_right job
	plain job
	"$LOADLINE_BUILD/sim/loadline-simctl" fail cuCheckpointProcessLock CUDA_ERROR_NOT_READY count 1
	fails_with 4 "its work on the card does not end" --sim suspend --pid "$(pid_of job)"
	ends_right job
}

@test "no room to return: said, and it waits until there is" {
	world
	plain job
	loadline --sim evict --pid "$(pid_of job)"
	"$LOADLINE_BUILD/sim/loadline-simctl" card 0 used all
	fails_with 4 "the card has no room for its memory: it waits" --sim resume --pid "$(pid_of job)"
	"$LOADLINE_BUILD/sim/loadline-simctl" card 0 used 0
	loadline --sim resume --pid "$(pid_of job)"
	ends_right job
}

@test "a process that does not use CUDA, and bad usage" {
	world
	fails_with 1 "the driver's checkpoint does not know the process" --sim evict --pid $$
	fails_with 2 "or give --pid" --sim evict
	fails_with 2 "or give --pid" --sim evict job --pid $$
}
