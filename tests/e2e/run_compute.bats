# loadline run's limits on the card's time, as its user sees them.
# shellcheck disable=SC2030,SC2031 # bats runs each test in a process of its own
load evict_helper

export NEEDS="tests/e2e/launcher bench/c/pace"
LAUNCHER=$LOADLINE_BUILD/tests/e2e/launcher

# limited NAME OPTION...: a program of that tenant that launches kernels of 1 ms for ever.
limited() {
	local name=$1
	shift
	# "wait 1" is two words.
	# shellcheck disable=SC2086
	start "$name" --sim run --tenant "$name" "$@" -- "$LAUNCHER" ${KERNEL_MS:-1}
}

# bats test_tags=main
@test "a cap holds" {
	limited capped --compute 10%
	wait_for 60 used capped 0.02
	local began=${EPOCHREALTIME} before
	before=$(gpu_seconds capped)
	wait_for 60 used capped "$(jq -n "$before + 0.2")"
	local after
	after=$(gpu_seconds capped)
	# 30 ms may be in flight or in the account at either end.
	expect '$used <= ($ended - $began) * 0.1 + 0.03' --argjson used "$(jq -n "$after - $before")" \
		--argjson began "$began" --argjson ended "$EPOCHREALTIME"
}

# card_seconds PID: the time that the card has worked for this process, as the card counts it.
card_seconds() {
	"$LOADLINE_BUILD/sim/loadline-simctl" show | sed -n "s/.* pid $1, .* \([0-9.]*\) s on the card.*/\1/p"
}

# has_part NAME LEAST MOST: the part of the card's time that the tenant's program has for at least 2 s, as the card counts it.
has_part() {
	local pid before began=$EPOCHREALTIME
	pid=$(loadline --sim status --json | jq -r "select(has(\"claim\")) | select(.tenant == \"$1\") | .pid")
	before=$(card_seconds "$pid")
	while expect '$now - $began < 2' --argjson now "$EPOCHREALTIME" --argjson began "$began"; do
		wait_a_little
	done
	echo "$1: $(jq -n "($(card_seconds "$pid") - $before) / ($EPOCHREALTIME - $began)")"
	expect '$used / $time >= $least and $used / $time <= $most' --argjson used "$(jq -n "$(card_seconds "$pid") - $before")" \
		--argjson time "$(jq -n "$EPOCHREALTIME - $began")" --argjson least "$2" --argjson most "$3"
}

in_windows() {
	status_has "any(.[]; .tenant == \"$1\" and .regime == \"windows\")"
}

# A busy host may leave a program off the card for longer, and never on it.
# bats test_tags=main
@test "programs at their caps are off the card for a part of each period, and status says so" {
	limited small --compute 20%
	limited big --compute 40%
	wait_for 60 in_windows small
	wait_for 60 in_windows big
	has_part small 0.1 0.23
	has_part big 0.2 0.43
	loadline --sim status --long | grep -q "tenant small: windows, .*held to 20 % by its cap"
	loadline --sim status --long | grep -q "^  shared in windows: "
	stop big
	stop small
}

# bats test_tags=main
@test "a kernel that runs for a minute is held to a cap" {
	KERNEL_MS=60000 limited long --compute 25%
	wait_for 60 in_windows long
	has_part long 0.12 0.28
}

# A program that nobody takes off the card has nearly all of it.
@test "while loadlined stands still a program is on the card all the time, and in its window after that" {
	limited capped --compute 10%
	wait_for 60 in_windows capped
	local pid
	pid=$(loadline --sim status --json | jq -r 'select(has("claim")) | .pid')
	end_daemon STOP
	# It is taken off for 0.25 s more, or for 1 s, because the connection stands.
	wait_for 60 has_much_of_card "$pid"
	end_daemon CONT
	wait_for 60 has_part capped 0.02 0.13
}

# has_much_of_card PID: half of it, since the last look.
has_much_of_card() {
	local now=$EPOCHREALTIME seconds
	seconds=$(card_seconds "$1")
	local before=${last_look:-$now} had=${last_seconds:-$seconds}
	last_look=$now last_seconds=$seconds
	jq -n -e "$seconds - $had > ($now - $before) / 2 and $now > $before" >/dev/null
}

# bats test_tags=main
@test "on a card that takes no program off, a cap holds the launches" {
	echo "card 0 off no" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	local began=$EPOCHREALTIME
	limited capped --compute 10%
	wait_for 60 used capped 0.2
	# From its beginning on: nothing was tried on it meanwhile.
	expect '$now - $began > 1.5' --argjson now "$EPOCHREALTIME" --argjson began "$began"
	has_part capped 0.03 0.13
	run -1 in_windows capped
}

@test "on a card that only says that it takes programs off, that is noticed, and a cap holds the launches" {
	echo "card 0 off ignore" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	KERNEL_MS=2 limited capped --compute 25%
	wait_for 60 used capped 0.2 # in windows at first, for less than a reading of a busy host takes
	wait_for 60 status_has 'any(.[]; .tenant == "capped" and .regime != "windows")'
	has_part capped 0.1 0.28
	run -1 in_windows capped
}

# bats test_tags=main
@test "two programs that wait for each launch share by weight" {
	KERNEL_MS="wait 1" limited small --weight 1
	KERNEL_MS="wait 1" limited big --weight 10
	wait_for 60 used big 0.1
	loadline --sim set big --sharing visits
	# It would be 1 without weights.
	shares big small 3 20
}

@test "equal programs that launch ahead wait for nobody" {
	limited one
	limited two
	wait_for 60 status_has 'map(select(has("claim"))) |
		length == 2 and all(.[]; .gpu_seconds > 0.2 and .waits_for == null)'
}

# bats test_tags=main
@test "programs that launch ahead share by weight too, by their time slices" {
	limited small --weight 1
	limited big --weight 3
	wait_for 60 status_has 'any(.[]; .tenant == "small" and .slice_ms == 2) and any(.[]; .tenant == "big" and .slice_ms == 6)'
	shares big small 2 4
	stop big
	wait_for 60 status_has 'any(.[]; .tenant == "small" and .slice_ms == null)'
}

@test "weights that are not in force are said" {
	limited small --weight 1
	limited big --weight 3
	wait_for 60 status_has 'any(.[]; .tenant == "big" and .slice_ms == 6)'
	run loadline --sim status --long
	[[ $output != *"weights are not in force"* ]]
	loadline --sim set big --sharing slices
	wait_for 60 eval 'loadline --sim status --long | grep -q "^  weights are not in force now: all have the same time slices$"'
}

@test "on a card that keeps its own slices they share by weight by visits" {
	echo "card 0 slices ignore" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	limited small --weight 1
	limited big --weight 3
	wait_for 150 status_has 'any(.[]; .sharing == "visits")'
	shares big small 2 4
}

@test "on a card that takes no program off they share by weight by visits" {
	echo "card 0 off no" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	limited small --weight 1
	limited big --weight 3
	# It is measured. On a busy host the programs leave the card idle: then it is measured again after 10 and 30 s.
	wait_for 150 status_has 'any(.[]; .sharing == "visits")'
	shares big small 2 4
	loadline --sim status --long | grep -q "^  shared by visits: measured, "
	stop big
	wait_for 60 status_has 'any(.[]; .sharing == "slices")'
}

@test "programs that wait for each long kernel are not held for each other" {
	for name in one two; do
		start "$name" --sim run --tenant "$name" -- sh -c 'echo 60 | "$0" sync --kernel-us 5000' "$LOADLINE_BUILD/bench/c/pace"
	done
	wait_for 60 status_has 'any(.[]; .sharing == "slices" and .visits_gain != null)'
	loadline --sim status --long | grep -q "^  shared by time slices: measured, visits give "
}

@test "caps beside each other hold" {
	limited small --compute 20%
	limited big --compute 50%
	wait_for 60 used small 0.1
	wait_for 60 used big 0.1
	shares big small 2 3.2
}

@test "a weight that is changed counts from then on" {
	KERNEL_MS="wait 1" limited one
	KERNEL_MS="wait 1" limited two
	wait_for 60 used one 0.1
	wait_for 60 used two 0.1
	loadline --sim set two --weight 4 --sharing visits
	shares two one 2.2 6
}

@test "a program that has had visits is charged nothing while it rests" {
	local name before
	for name in one two; do
		start "$name" --sim run --tenant "$name" --weight "$([ "$name" = one ] && echo 1 || echo 3)" -- \
			sh -c '{ echo 3; sleep 60; } | python3 -B "$0" --kernel-us 2000' "$BATS_TEST_DIRNAME/../../bench/programs/loop_spin.py"
	done
	wait_for 60 used one 0.1
	wait_for 60 used two 0.1
	loadline --sim set one --sharing visits
	loadline --sim set two --sharing visits
	for name in one two; do
		wait_for 60 grep -q '"done"' "$T/$name.out"
	done
	# The last batch is charged when its event is seen. An agent that has nothing to do looks once a second.
	sleep 0.3
	before=$(jq -n "$(gpu_seconds one) + $(gpu_seconds two)")
	sleep 2.5
	expect '$after <= $before + 0.1' --argjson after "$(jq -n "$(gpu_seconds one) + $(gpu_seconds two)")" --argjson before "$before"
}

# The driver's trace tells when a program's kernels had the card: here kernels of fifteen time slices each.
# bats test_tags=main
@test "a program that shares a card is charged the time of its kernels, however long they are" {
	KERNEL_MS=1 limited neighbour
	wait_for 60 used neighbour 0.5
	start long --sim run --tenant long -- sh -c '"$0" 30 150 && echo done && exec sleep 300' "$LAUNCHER"
	wait_for 120 grep -q "done" "$T/long.out"
	expect '$charged > 3.8 and $charged < 5.2' --argjson charged \
		"$(loadline --sim status --json | jq 'select(has("tenant_row") and .tenant == "long") | .gpu_seconds')"
}

@test "a kernel that never ends is shown by status" {
	KERNEL_MS=1000000 limited stuck --max-kernel 200ms
	wait_for 60 shows 'select(has("claim") and .tenant == "stuck" and (.note // "" | test("runs? for")))'
	is_running stuck
}

@test "what a neighbour has of the card is not a kernel's own time" {
	KERNEL_MS=1 limited neighbour
	wait_for 60 used neighbour 0.2
	start slow --sim run --tenant slow --max-kernel 600ms:kill -- "$LAUNCHER" 400 6
	finish slow
	[ "$status" -eq 0 ]
}

# bats test_tags=main
@test "a kernel that never ends ends its program when that was asked for" {
	KERNEL_MS=1000000 limited stuck --max-kernel 200ms:kill
	finish stuck
	[ "$status" -eq 137 ]
}

@test "so does one in the first process of a PID namespace, which no signal of its own ends" {
	own=(unshare --pid --fork --kill-child)
	"${own[@]}" true || skip "no PID namespace can be made here"
	start_program stuck timeout 300 "${own[@]}" "$LOADLINE" --sim run --tenant stuck --max-kernel 200ms:kill -- "$LAUNCHER" 1000000
	finish stuck
	[ "$status" -eq 137 ]
}
