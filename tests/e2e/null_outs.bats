# Where the driver writes, a program passes NULL: it gets the driver's answer, whatever limits it has.
load helper

export NEEDS="bench/c/null_outs src/shim/libloadline-cuda.so"

# answers FILE COMMAND...: bench/c/null_outs, run by that command, on a card that needs no time.
answers() {
	local file=$1
	shift
	printf '%s\n' "init-time 0" "card 0 context-time 0" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	"$@" "$LOADLINE_BUILD/bench/c/null_outs" >"$file" 2>"$T/told"
}

# same EXPECTED FILE: the same calls with the same answers. Where the driver ends the process, any answer will do. A line that
# the card could not give, or that its driver does not export, says nothing of the simulator.
same() {
	diff <(sed 's/: .*//' "$1") <(sed 's/: .*//' "$2")
	diff <(grep -vE ': (signal|cannot be tried|not exported)' "$1") \
		<(paste -d '\n' "$1" "$2" | awk 'NR % 2 { skips = /: (signal|cannot be tried|not exported)/; next } !skips')
}

expected() {
	echo "$BATS_TEST_DIRNAME/../../bench/c/null_outs.txt"
}

@test "the simulator takes NULL where the driver does, and refuses it as the driver does" {
	answers "$T/sim" env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim"
	same "$(expected)" "$T/sim"
}

@test "a governed program gets the driver's answers to NULL" {
	for limits in "" "--mem 20G" "--mem 20G --strict" "--mem 20G --evictable" "--mem 20G --compute 50%"; do
		echo "limits: $limits"
		# shellcheck disable=SC2086
		answers "$T/governed" "$LOADLINE" --sim run $limits --
		same "$(expected)" "$T/governed"
	done
}

@test "a program traced by events gets the driver's answers to NULL" {
	answers "$T/traced" "$LOADLINE" --sim trace --by events -o "$T/trace.json" --
	same "$(expected)" "$T/traced"
}

@test "each out-pointer of each hooked function is tried" {
	run -0 python3 "$BATS_TEST_DIRNAME/null_outs.py"
}
