# loadline hold beside other holds, and beside programs that loadlined knows.
load helper
load jobs_helper

HOLD=(--sim hold --target 10% --resume-after 300ms --json)

can_preload() {
	loadline --sim run -- true 2>/dev/null || skip "nothing can be preloaded in this build"
}

# busy NAME WORD...: a governed program that says when it is on the card.
busy() {
	local name=$1
	shift
	start "$name" --sim run --tenant "$name" -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 "$@"
	wait_for 60 grep -q busy "$T/$name.out"
}

# yields NUMBER: the hold has yielded so often to a program whose page said that it has work.
yields() {
	counts hold "$1" 'select(.event == "yield" and .sensor == "governed")'
}

daemon_is_other_than() {
	has_pids loadlined 1 && [ "$(pids loadlined)" != "$1" ]
}

@test "of holds that start at once one gets the card, and the others say who has it" {
	local name winners
	for _ in 1 2 3; do
		winners=0
		for name in a b c d; do
			start "$name" "${HOLD[@]}" --for 3s
		done
		for name in a b c d; do
			finish "$name"
			case $status in
			0) winners=$((winners + 1)) ;;
			4) grep -qE "card 0: pid [0-9]+ already holds it" "$T/$name.err" ;;
			*) false ;;
			esac
		done
		[ "$winners" -eq 1 ]
	done
}

@test "a hold of several cards takes all of them or none" {
	echo "cards 2" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	start second "${HOLD[@]}" -i 1
	wait_for 60 has second 'select(.event == "sample")'
	run --separate-stderr loadline "${HOLD[@]}" -i all --for 1s
	[ "$status" -eq 4 ]
	# shellcheck disable=SC2154
	[[ $stderr == *"card 1: pid $(pid_of second) already holds it"* ]]
	run -0 loadline "${HOLD[@]}" -i 0 --for 300ms
	stop second
}

@test "the card of a killed hold can be held at once" {
	for _ in 1 2 3 4 5; do
		start hold "${HOLD[@]}"
		wait_for 60 has hold 'select(.event == "sample" and .state == "holding")'
		stop hold KILL
		run -0 loadline "${HOLD[@]}" --for 100ms
	done
}

@test "a stopped hold keeps its card, and status and doctor say that it does not answer" {
	start hold "${HOLD[@]}"
	wait_for 60 has hold 'select(.event == "sample" and .state == "holding")'
	kill -STOP "$(pid_of hold)"
	run --separate-stderr loadline "${HOLD[@]}" --for 1s
	[ "$status" -eq 4 ]
	[[ $stderr == *"card 0: pid $(pid_of hold) already holds it"* ]]
	loadline --sim status --long | grep -q "pid $(pid_of hold)  synthetic load: .*does not answer"
	kill -CONT "$(pid_of hold)"
	wait_for 60 shows 'select(.class == "hold") | .state == "holding"'
	stop hold
	[ "$status" -eq 0 ]
}

@test "a hold starts no loadlined, and keeps none from ending" {
	start hold "${HOLD[@]}"
	wait_for 60 has hold 'select(.event == "sample" and .state == "holding")'
	has_pids loadlined 0
	loadline --sim run -- sleep 1
	wait_for 60 has_pids loadlined 0
	is_running hold
	stop hold
	[ "$status" -eq 0 ]
}

@test "work of a governed program is seen by its page" {
	can_preload
	busy program kernel 10ms sleep 2s
	start hold "${HOLD[@]}"
	wait_for 120 yields 2
	stop hold
	[ "$status" -eq 0 ]
	has hold '.event == "summary" and .yielded_to.name == "program"'
	[ -z "$(json hold 'select(.event == "fault")')" ]
}

@test "a hold outlives loadlined, joins the next one, and sees the work of old and new programs" {
	can_preload
	local old
	busy program kernel 10ms sleep 2s
	start hold "${HOLD[@]}"
	wait_for 60 yields 1
	for _ in 1 2 3; do
		old=$(pids loadlined)
		kill -KILL "$old"
		wait_for 60 daemon_is_other_than "$old"
	done
	wait_for 60 yields 2
	stop program
	busy later kernel 10ms sleep 2s
	wait_for 60 yields 4
	stop hold
	[ "$status" -eq 0 ]
	has hold '.event == "summary" and .yielded_to.name == "later"'
}
