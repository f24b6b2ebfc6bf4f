# loadline limits: what a user, or a job, may have, has, and finds left.
load helper

GIB=1073741824

# told FILTER: does the filter give anything but null and false for a line of `loadline limits --json`?
told() {
	loadline --sim limits --json | jq -s -e "any(.[] | ($1)?; .)" >/dev/null
}

needs_shim() {
	loadline --sim run -- true 2>/dev/null || skip "nothing can be preloaded in this build"
}

two_cards() {
	export LOADLINE_SIM_SCENARIO=$T/scenario
	echo "cards 2" >"$T/scenario"
}

busy() {
	echo "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 "$@"
}

@test "without jobs it says that no limits of users are in force, and what is left" {
	loadline --sim limits >"$T/limits.out"
	grep -q "^user $(id -un): no limits of users are in force, since this machine has no configuration;" "$T/limits.out"
	grep -q "^no job of this user runs$" "$T/limits.out"
	grep -qE "^0 +NVIDIA H200 +0 % +[0-9.]+ GiB +0 MiB +[0-9.]+ GiB +0$" "$T/limits.out"
	told '.user == "'"$(id -un)"'" and has("user_limits") and .user_limits == null and .inside_job == null'
	told '.card == 0 and .memory_free_bytes > 1e11 and .memory_promised_bytes == 0 and .memory_promisable_bytes > 1e11 and .jobs == 0'
}

@test "a user is told the limits of each job, what it has, and what is left on each card" {
	two_cards
	needs_shim
	# shellcheck disable=SC2046
	start job --sim run -i 0 --mem 8G --mem-request 4G --compute 60% --weight 3 --class high --tenant train -- $(busy kernel 1ms memory 2G for 100s)
	wait_for 60 told "has(\"use\") and .memory_bytes >= 2 * $GIB and .gpu_seconds > 0"
	wait_for 60 told '.card == 0 and .jobs == 1' # that of needs_shim has ended
	loadline --sim limits --json >"$T/json.out"
	has json "has(\"job\") and .tenant == \"train\" and (.as_it_began | not) and .limits.memory_bytes == 8 * $GIB and .limits.memory_request_bytes == 4 * $GIB"
	has json 'has("job") and .limits.compute_cap_percent == 60 and .limits.weight == 3 and .limits.class == "high"'
	has json "has(\"use\") and .on_card == \"0\" and .memory_left_bytes == 8 * $GIB - .memory_bytes and .claims == 1"
	has json ".card == 0 and .memory_promised_bytes == 4 * $GIB"
	has json '.card == 1 and .memory_promised_bytes == 0 and .jobs == 0'
	[ "$(jq -s '(.[] | select(.card == 1).memory_promisable_bytes) - (.[] | select(.card == 0).memory_promisable_bytes)' "$T/json.out")" -eq $((4 * GIB)) ]
	loadline --sim limits >"$T/limits.out"
	grep -qE "^[0-9a-f]+ +train +high +8.0 GiB +4.0 GiB +60 % +3 +loadline-simctl$" "$T/limits.out"
	grep -qE "^0 +train +2.[0-9] GiB +5.[0-9] GiB +([0-9]+ %|-) +[0-9.]+ s +1$" "$T/limits.out"
	# Those of now, not those of the beginning.
	loadline --sim set train --mem 9G
	told "has(\"job\") and .limits.memory_bytes == 9 * $GIB"
}

@test "inside a job it tells that job alone, with what the card itself has left" {
	two_cards
	needs_shim
	# shellcheck disable=SC2046
	start other --sim run -i 1 --tenant other -- $(busy memory 1G kernel 1ms for 100s)
	start_program stranger env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE_BUILD/sim/loadline-simctl" busy 1 1% memory 135G for 100s
	wait_for 60 shows 'select(has("process")) | .memory_bytes > 1.4e11'
	loadline --sim run -i 1 --mem 10G --tenant inner -- "$LOADLINE" limits --json >"$T/json.out"
	[ "$(jq -s -c '[.[] | keys_unsorted[0]]' "$T/json.out")" = '["user","job","card","use"]' ]
	[ "$(jq -r 'select(has("user")).inside_job' "$T/json.out")" = "$(jq -r 'select(has("job")).job' "$T/json.out")" ]
	has json "has(\"job\") and .tenant == \"inner\" and .limits.memory_bytes == 10 * $GIB"
	# NVML tells a program under a limit that the card is as large as the limit, and as free.
	has json ".card == 1 and .memory_free_bytes < 9 * $GIB and .memory_promisable_bytes > 100 * $GIB"
	has json "has(\"use\") and .on_card == \"1\" and .memory_left_bytes < 9 * $GIB and .memory_limit_bytes == 10 * $GIB"
	loadline --sim run -i 1 --mem 10G --tenant inner -- "$LOADLINE" limits >"$T/limits.out"
	head -n 1 "$T/limits.out" | grep -q "^this job, with its limits on each card$"
	run ! grep -q other "$T/limits.out"
	# Without an environment the job is found all the same.
	loadline --sim run -i 1 --mem 10G --tenant inner -- env -i LOADLINE_SIM_DIR="$LOADLINE_SIM_DIR" XDG_RUNTIME_DIR="$XDG_RUNTIME_DIR" \
		"$LOADLINE" --sim limits --json >"$T/json.out"
	has json 'has("job") and .tenant == "inner"'
}

@test "a job that loadlined does not tell of has the limits with which it began" {
	needs_shim
	start job --sim run --mem 3G --class low --tenant outer -- sh -c 'until [ -e "$1" ]; do sleep 0.1; done; exec "$2" limits --json' sh "$T/go" "$LOADLINE"
	wait_for 60 shows 'has("job")'
	daemon=$(loadline --sim status --json | jq 'select(has("daemon")).daemon.pid')
	kill -STOP "$daemon"
	touch "$T/go"
	finish job
	kill -CONT "$daemon"
	[ "$status" -eq 1 ]
	has job "has(\"job\") and .tenant == \"outer\" and .as_it_began and .limits.memory_bytes == 3 * $GIB and .limits.class == \"low\""
	has job '.card == 0 and has("memory_promised_bytes") and .memory_promised_bytes == null and .memory_promisable_bytes == null and .jobs == null'
	grep -q "loadlined, pid $daemon, does not answer" "$T/job.err"
}
