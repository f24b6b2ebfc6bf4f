# loadline run on a MIG slice: the program, `status` and `set` mean the same card.
load helper

export NEEDS="tests/e2e/launcher python3"

mig() {
	printf '%s\n' "cards 2" "card 1 mig 3" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
}

program() {
	echo "python3 $BATS_TEST_DIRNAME/card_memory.py"
}

@test "a memory limit holds on a slice, and the slice is shown as large as it" {
	mig
	# shellcheck disable=SC2046
	run -0 "$LOADLINE" --sim run -i 1:2 --mem 2G --tenant sliced -- $(program) context alloc 1000 info alloc 1000
	[ "${lines[*]}" = "context ok alloc ok info $((2048 - 64 - 1000)) 2048 alloc 2" ]
	fails_with 125 "give at least --mem 64M" --sim run -i 1:2 --mem 60M -- true
}

@test "the whole card is shown to a program on a slice as its slice" {
	mig
	start stranger --sim run -i 1:0 --tenant stranger -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 20% memory 3G for 60s
	wait_for 60 shows 'select(has("claim")) | .tenant == "stranger"'
	# NVML's cards are not renumbered: card 1 is the one with the slices.
	sed 's/HandleByIndex_v2(0,/HandleByIndex_v2(1,/' "$BATS_TEST_DIRNAME/card_memory.py" >"$T/second.py"
	run -0 "$LOADLINE" --sim run -i 1:2 --mem 2G -- python3 "$T/second.py" context alloc 100 card list
	[ "${lines[*]}" = "context ok alloc ok card 2048 164 $((2048 - 164)) list 1" ]
}

@test "status shows a slice's claims, and set changes their limits" {
	mig
	mkfifo "$T/in"
	exec 9<>"$T/in"
	start sliced --sim run -i 1:1 --mem 2G --tenant sliced -- sh -c "exec $(program) context wait alloc 1000 <$T/in"
	wait_for 60 grep -q waiting "$T/sliced.out"
	wait_for 60 shows 'select(has("claim")) | .tenant == "sliced" and (.claim | startswith("1:1/")) and (.uuid | startswith("MIG-")) and .memory_limit_bytes == 2147483648'
	status_has 'map(select(has("claim"))) | length == 1'
	loadline --sim set sliced --mem 1000M
	echo go >&9
	finish sliced
	[ "$(tail -n 1 "$T/sliced.out")" = "alloc 2" ]
}

@test "a cap holds on a slice" {
	mig
	start capped --sim run -i 1:1 --compute 10% --tenant capped -- "$LOADLINE_BUILD/tests/e2e/launcher" 1
	used() {
		shows "select(has(\"claim\") and .tenant == \"capped\" and .gpu_seconds >= $1)"
	}
	wait_for 60 used 0.02
	local began=${EPOCHREALTIME} before
	before=$(loadline --sim status --json | jq -s '[.[] | select(has("claim")) | .gpu_seconds] | add')
	wait_for 60 used "$(jq -n "$before + 0.1")"
	local after
	after=$(loadline --sim status --json | jq -s '[.[] | select(has("claim")) | .gpu_seconds] | add')
	expect '$used <= ($ended - $began) * 0.1 + 0.03' --argjson used "$(jq -n "$after - $before")" \
		--argjson began "$began" --argjson ended "$EPOCHREALTIME"
}
