# Every way to the driver, thousands of times, with kills and faults.
load helper

export NEEDS="python3 bench/c/ways sim/loadline-simctl"

@test "two thousand programs by every way are held to the limit, killed or not, and leave nothing charged" {
	loadline --sim run -- true 2>/dev/null || skip "nothing can be preloaded in this build"
	local seed=${SOAK_SEED:-$RANDOM}
	echo "seed $seed"
	run loadline --sim run --mem 1G --count-context=no --tenant soak -- \
		python3 "$BATS_TEST_DIRNAME/ways_soak.py" "$LOADLINE" "$LOADLINE_BUILD/bench/c/ways" "$LOADLINE_BUILD/sim/loadline-simctl" 2000 "$seed"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$output" = "2000 programs" ]
}
