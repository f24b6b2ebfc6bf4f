# loadline hold while things break: it recovers or ends cleanly, and says what happened.
load helper
hold() {
	start hold --sim hold --json --resume-after 300ms "$@"
	wait_for 60 has hold 'select(.event == "sample" and .util_percent > 40)'
}

fault() {
	has hold "select(.event == \"fault\" and (.text | test(\"$1\")))"
}

# holds_again: a sample near the target that is newer than the moment of the call before.
mark() {
	marked=$(json hold 'select(.event == "sample") | .time_s' | tail -1)
	counted=$(json hold 'select(.event == "sample") | 1' | wc -l)
}
holds_again() {
	has hold "select(.event == \"sample\" and .time_s > $marked + 0.5 and .util_percent >= 48 and .util_percent <= 52)"
}

@test "a context lost by an Xid: said, and held again" {
	hold
	simctl card 0 xid 31 pid "$(loadline --sim status --json | jq 'select(has("claim")) | .pid')" || simctl card 0 xid 31
	mark
	wait_for 60 fault "lost|Xid"
	wait_for 90 holds_again
	stop hold
	[ "$status" -eq 0 ]
}

@test "a card whose GPM loses the held reading is not held any longer" {
	start hold --sim hold --json --metric tensor --target 30%
	wait_for 60 has hold 'select(.event == "sample" and .tensor_percent > 20)'
	simctl card 0 gpm-tensor off
	wait_for 60 has hold 'select(.event == "summary")'
	finish hold
	[ "$status" -eq 3 ]
	grep -q "no longer gives the tensor reading" "$T/hold.err"
}

@test "a card whose GPM no longer answers is not held any longer" {
	start hold --sim hold --json --metric sm --target 30%
	wait_for 60 has hold 'select(.event == "sample" and .sm_percent > 20)'
	simctl fail nvmlGpmSampleGet NVML_ERROR_UNKNOWN
	wait_for 60 has hold 'select(.event == "summary")'
	finish hold
	[ "$status" -eq 3 ]
	grep -q "GPM no longer answers" "$T/hold.err"
}

@test "a context lost while yielded: its process sleeps, and is called to say so" {
	for scenario in "" "missing nvmlEventSetCreate"; do
		rm -rf "$T/world"
		mkdir -m 700 "$T/world"
		printf '%s\n' "$scenario" >"$T/scenario"
		LOADLINE_SIM_SCENARIO=$T/scenario hold
		start_program stranger "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 5ms
		wait_for 60 has hold 'select(.event == "sample" and .state == "yielded")'
		simctl card 0 xid 31 pid "$(pgrep -P "$(pid_of hold)")"
		wait_for 60 fault "context lost"
		stop stranger
		stop hold
	done
}

@test "a payload process that is killed: said, and no kernel is left" {
	hold
	kill -KILL "$(pgrep -P "$(pid_of hold)")"
	wait_for 60 fault "payload process ended"
	[ -z "$(pgrep -P "$(pid_of hold)")" ]
	stop hold
	[ "$status" -eq 0 ]
}

# Lavapipe stands for two cards here: what NVML says of them is the simulator's, so the samples mean nothing.
hold_vulkan() {
	local icd
	icd=$(compgen -G '/usr/share/vulkan/icd.d/lvp_icd*.json' | head -1)
	[ -n "$icd" ] || skip "no lavapipe"
	printf 'cards 2\n' >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario VK_DRIVER_FILES=$icd VK_ICD_FILENAMES=$icd LOADLINE_VULKAN_DEVICE=cpu
	start hold --sim hold -i all --json --payload vulkan --mode ignore
	wait_for 60 both sample 'select(.state != "opening")' # a payload that ends before is an error
}

# both EVENT [FILTER]: each card has had one.
both() {
	local filter=${2:-.}
	has hold "select(.card == 0 and .event == \"$1\") | $filter" && has hold "select(.card == 1 and .event == \"$1\") | $filter"
}

@test "cards that run Vulkan share one payload process, and when it is killed both come back at once" {
	hold_vulkan
	[ "$(pgrep -P "$(pid_of hold)" | wc -l)" -eq 1 ]
	kill -KILL "$(pgrep -P "$(pid_of hold)")"
	wait_for 60 both fault
	wait_for 60 both resume # a card at fault waits 30 s
	[ "$(pgrep -P "$(pid_of hold)" | wc -l)" -eq 1 ]
	stop hold
	[ "$status" -eq 0 ]
	[ "$(json hold 'select(.event == "summary")' | wc -l)" -eq 2 ]
}

@test "a card that is gone ends the hold with an error, not a hang" {
	hold
	simctl card 0 gone on
	wait_for 60 fault "."
	wait_for 60 ended
	finish hold
	[ "$status" -eq 1 ]
	grep -q "gone" "$T/hold.err"
}

ended() {
	! is_running hold
}

@test "a card that is gone for a moment is held again" {
	hold
	simctl card 0 gone on
	wait_for 60 fault "."
	simctl card 0 gone off
	mark
	wait_for 90 holds_again
	stop hold
}

# The context is sound all the while, so that a reading is the first to see it.
@test "a card that NVML takes for gone, for less than 10 s, is held again" {
	hold
	simctl fail 'nvmlDevice*' NVML_ERROR_GPU_IS_LOST for 3s
	wait_for 60 fault "card gone"
	mark
	wait_for 90 holds_again
	stop hold
	[ "$status" -eq 0 ]
}

@test "NVML that fails for a while is lived through" {
	hold
	simctl fail nvmlDeviceGetSamples NVML_ERROR_UNKNOWN for 3s
	wait_for 60 fault "utilisation"
	mark
	wait_for 90 holds_again
	stop hold
	[ "$status" -eq 0 ]
}

@test "NVML that fails for good stops a load that could not see" {
	hold --mode fill
	simctl fail nvmlDeviceGetSamples NVML_ERROR_UNKNOWN
	wait_for 60 fault "stopped"
	stop hold
	[ "$status" -eq 0 ]
}

# bats test_tags=main
@test "too hot: stops, and goes on when it is cool" {
	hold --max-temperature 70
	simctl card 0 temperature 75
	wait_for 60 fault "too hot"
	simctl card 0 temperature 40
	mark
	wait_for 90 holds_again
	stop hold
}

@test "a card that is too hot at the start: said once" {
	loadline --sim status >"$T/status.out" # makes the world
	simctl card 0 temperature 85
	start hold --sim hold --json
	wait_for 60 fault "stopped: 8[0-9] C is too hot"
	shows 'has("claim") and .state == "released"'
	[ "$(json hold 'select(.event == "fault") | 1' | wc -l)" -eq 1 ]
	stop hold
	[ "$status" -eq 0 ]
	[ "$(json hold 'select(.event == "summary") | .yields')" -eq 0 ]
}

@test "a card that slows itself down is left alone" {
	hold
	simctl card 0 slowdown on
	wait_for 60 fault "slows itself down"
	simctl card 0 slowdown off
	stop hold
	[ "$status" -eq 0 ]
}

# hangs: has a call been caught by the fault?
hangs() {
	simctl show >"$T/shown" && ! grep -q "^fault of" "$T/shown"
}

@test "a hanging driver call does not keep it from ending" {
	hold
	simctl hang nvmlDeviceGetSamples 120s count 1
	wait_for 60 hangs
	# What the hold cannot see ends, and the card is idle.
	wait_for 60 shows 'has("card") and .util_percent == 0'
	before=$SECONDS
	stop hold
	[ "$status" -eq 1 ]
	in_time "$before" 30
	grep -q "hang" "$T/hold.err"
}

@test "suspend and resume" {
	hold
	simctl suspend 3s
	mark
	wait_for 90 holds_again
	stop hold
	[ "$status" -eq 0 ]
}

# jump SECONDS: where the wall clock is. At once: a file that is being written would be a jump to 0 and another from there.
jump() {
	echo "$1" >"$T/jump.new"
	mv "$T/jump.new" "$T/jump"
}

# From now on the wall clock is what jump says.
set_wall_clock() {
	jump 0
	export LD_PRELOAD=$LOADLINE_BUILD/tests/e2e/libwalljump.so WALLJUMP_FILE=$T/jump
}

@test "a wall clock that jumps, both ways" {
	[ -e "$LOADLINE_BUILD/tests/e2e/libwalljump.so" ] || skip "not built with this sanitizer"
	set_wall_clock
	hold
	jump 7200
	mark
	wait_for 90 holds_again
	jump -86400
	mark
	wait_for 90 holds_again
	unset LD_PRELOAD
	stop hold
	[ "$status" -eq 0 ]
	expect '$s.yields == 0' --argjson s "$(json hold 'select(.event == "summary")')"
}

@test "a wall clock that jumps twice between two readings" {
	[ -e "$LOADLINE_BUILD/tests/e2e/libwalljump.so" ] || skip "not built with this sanitizer"
	set_wall_clock
	hold
	mark
	freeze_process "$(pid_of hold)"
	jump 7200
	# The card goes on, and stamps its samples by that clock.
	for _ in 1 2 3 4 5; do
		loadline --sim status >/dev/null
		sleep 0.1
	done
	jump -86400
	kill -CONT "$(pid_of hold)"
	wait_for 60 sees_on
	unset LD_PRELOAD
	stop hold
	[ "$status" -eq 0 ]
}

# sees_on: ten samples more of this hour than at the call of mark before.
sees_on() {
	[ "$(json hold 'select(.event == "sample" and .time_s < 3600) | 1' | wc -l)" -ge $((counted + 10)) ]
}
@test "what ends a hold is said once" {
	scenario "missing cuLaunchKernel"
	run -3 loadline --sim hold --for 5s
	[ "$(grep -c cuLaunchKernel <<<"$output")" -eq 1 ]
	[[ $output == *"loadline: "*cuLaunchKernel* ]]
}

@test "of several cards the log says what ended one, and the last line which one it was" {
	scenario "cards 2" "card 1 memory 400M"
	start hold --sim hold -i all --payload cuda
	wait_for 60 grep -q "ERROR card 1: " "$T/hold.err"
	stop hold INT
	cat "$T/hold.err"
	[ "$status" -ne 0 ]
	[ "$(grep -c "ERROR card 1: " "$T/hold.err")" -eq 1 ]
	[ "$(tail -n 1 "$T/hold.err")" = "loadline: card 1: ended with an error; the log says why" ]
}
