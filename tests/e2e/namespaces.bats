# A simulated world that programs of several PID namespaces are in, as containers are without --pid=host.
export NEEDS=tests/e2e/launcher
load helper

# inside COMMAND...: in a PID namespace of its own, with its own /proc.
inside() {
	timeout 300 unshare --pid --fork --mount-proc --kill-child "$@"
}

can_unshare() {
	inside true 2>/dev/null || skip "no new PID namespace here"
	loadline --sim version
}

run_words() {
	words=("$LOADLINE" --sim run --tenant "$1" --mem 4G -- "$LOADLINE_BUILD/tests/e2e/launcher" "${@:2}")
}

# contexts NUMBER: so many are in the world, as seen from outside.
contexts() {
	[ "$("$LOADLINE_BUILD/sim/loadline-simctl" show | grep -c '^context')" -eq "$1" ]
}

start_outer() {
	run_words outer 2
	start_program outer "${words[@]}"
	wait_for 60 contexts 1
}

goes_on() {
	is_running outer
	wait_for 60 used outer "$(gpu_seconds outer | jq '. + 0.1')"
}

@test "programs inside and outside share a card, and both end well" {
	can_unshare
	start_outer
	run_words first 2 300
	inside "${words[@]}"
	run_words second 2 300
	inside "${words[@]}"
	goes_on
	contexts 1
}

@test "programs of two namespaces beside each other share a card" {
	can_unshare
	run_words one 2
	start_program one unshare --pid --fork --mount-proc --kill-child "${words[@]}"
	wait_for 60 contexts 1
	run_words two 2 300
	inside "${words[@]}"
	is_running one
	wait_for 60 used one 0.2
	contexts 1
}

@test "a program without loadline, and one whose /proc is that of the namespace above" {
	can_unshare
	start_outer
	inside env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE_BUILD/tests/e2e/launcher" 2 100
	timeout 300 unshare --pid --fork --kill-child env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE_BUILD/tests/e2e/launcher" 2 100
	run_words above 2 100
	timeout 300 unshare --pid --fork --kill-child "${words[@]}"
	goes_on
	contexts 1
}

@test "what looks from inside leaves the programs outside alone" {
	can_unshare
	start_outer
	local command
	for command in "status" "status --json" "doctor --no-trial" "run --tenant short -- true" "hold --for 300ms" "probe --experiment first"; do
		# shellcheck disable=SC2086
		inside "$LOADLINE" --sim $command
	done
	[ "$(inside "$LOADLINE" --sim status --json | jq -s -r '[.[] | select(has("claim") and .tenant == "outer")] | length')" -eq 1 ]
	# As with the driver, no process outside is named inside.
	[ "$(inside "$LOADLINE" --sim status --json | jq -s -r '.[0].processes')" -eq 0 ]
	goes_on
	contexts 1
}

@test "a program that is killed inside leaves nothing, and is seen outside by its pid there" {
	can_unshare
	start_outer
	run_words inner 2
	start_program inner unshare --pid --fork --mount-proc --kill-child "${words[@]}"
	wait_for 60 contexts 2
	local pid
	pid=$("$LOADLINE_BUILD/sim/loadline-simctl" show | sed -n 's/^context .* pid \([0-9]*\),.*/\1/p' | grep -vx "$(pid_of outer)")
	tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q launcher
	[ "$(loadline --sim status --json | jq -s -r '.[0].processes')" -eq 2 ]
	kill -KILL "$pid"
	finish inner
	wait_for 60 contexts 1
	goes_on
}

@test "a program outside that is killed leaves nothing to those inside" {
	can_unshare
	start_outer
	run_words inner 2
	start_program inner unshare --pid --fork --mount-proc --kill-child "${words[@]}"
	wait_for 60 contexts 2
	stop outer KILL
	wait_for 60 contexts 1
	is_running inner
	wait_for 60 used inner "$(gpu_seconds inner | jq '. + 0.1')"
}

@test "a hold yields to a program of another namespace, and holds again" {
	can_unshare
	start hold --sim hold --target 50% --resume-after 300ms --json
	wait_for 60 has hold 'select(.event == "settle")'
	inside env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE_BUILD/tests/e2e/launcher" 2 500
	wait_for 60 has hold 'select(.event == "yield")'
	wait_for 60 has hold 'select(.event == "resume")'
	stop hold INT
	[ "$status" -eq 0 ]
}

@test "a program of another time namespace is told why it cannot be in the world" {
	can_unshare
	unshare --time --fork --boottime 3600 --monotonic 3600 true 2>/dev/null || skip "no new time namespace here"
	start_outer
	run --separate-stderr timeout 300 unshare --time --fork --monotonic 3600 "$LOADLINE" --sim status
	# shellcheck disable=SC2154
	echo "$output $stderr"
	[ "$status" -eq 3 ]
	[[ $stderr == "loadline: simulated world $LOADLINE_SIM_DIR: its programs are in another time namespace; choose another world with LOADLINE_SIM_DIR" ]]
	goes_on
}
