# loadline status --decisions: how loadlined decided that a card is shared.
load helper

export NEEDS="bench/c/pace"

# waiter NAME: a program of that tenant that waits for each of its launches.
waiter() {
	start "$1" --sim run --tenant "$1" -- sh -c 'echo 200 | "$0" sync --kernel-us 500' "$LOADLINE_BUILD/bench/c/pace"
}

decisions_have() {
	loadline --sim status --decisions --json | jq -es "$@" >/dev/null
}

@test "decisions tell how two programs were measured" {
	waiter one
	waiter two
	wait_for 150 decisions_have 'any(.[]; .moves and any(.moves[]; . == "verdict"))'
	loadline --sim status --decisions --json >"$T/decisions.out"
	loadline --sim status --decisions >"$T/text.out"
	# The state comes first, and then each decision once.
	jq -es '.[0].decisions.replays and (.[0].decisions.first as $first | [.[1:][].decision] == [range($first; $first + length - 1)])' "$T/decisions.out"
	jq -es '.[1:] | all(.[]; .card == 0 and (.uuid | startswith("GPU-")) and .at_ns > 0)' "$T/decisions.out"
	jq -es 'map(select(.moves) | .moves[]) | index("mix") < index("begins") and index("begins") < index("measures") and
		index("measures") < index("verdict")' "$T/decisions.out"
	jq -es 'map(select(.moves and any(.moves[]; . == "verdict")))[0] |
		(.jobs | map(.tenant) | sort) == ["one", "two"] and (.why == "pays" or .why == "pays_not") and
		all(.jobs[]; .completed > 0 and .slices_per_second >= 0 and .visits_per_second >= 0)' "$T/decisions.out"
	grep -Eq "^20[0-9-]+ [0-9:.]+  card 0  slices  another mix of programs" "$T/text.out"
	grep -Eq "  card 0  (slices|visits)  verdict: visits (pay|do not pay), [0-9.]+ times the progress by slices$" "$T/text.out"
	grep -Eq "^    one: [0-9.]+ launches/s by slices.*, [0-9.]+ launches/s by visits" "$T/text.out"
}

long_tells() {
	loadline --sim status --long | grep -Eq "$1"
}

@test "status says of each tenant how it is shared, how much it has, and why" {
	waiter one
	wait_for 60 status_has 'any(.[]; .claim and .regime == "alone" and .why == "nobody else uses the card" and .share_percent > 0)'
	waiter two
	wait_for 150 status_has 'map(select(.claim)) | length == 2 and all(.[]; .measured_seconds_ago != null and
		(.regime == "visits" or .regime == "slices") and (.why | contains("measured")) and .share_seconds > 0)'
	wait_for 60 long_tells "^  tenant one: (visits|slices), [0-9]+ % of the card's time in the last [0-9.]+ s, "
	loadline --sim set one --compute 5%
	wait_for 60 status_has 'any(.[]; .tenant == "one" and .why == "held to 5 % by its cap")'
}

# flood NAME CLASS: a program of that tenant and class that keeps ten kernels queued.
flood() {
	start "$1" --sim run --tenant "$1" --class "$2" -- sh -c 'echo 200 | "$0" flood' "$LOADLINE_BUILD/bench/c/pace"
}

@test "decisions tell which time slices the lower class has" {
	flood batch low
	flood serve high
	wait_for 150 decisions_have 'map(select(.lever == "slices")) | length > 1'
	loadline --sim status --decisions --json >"$T/decisions.out"
	jq -es 'map(select(.lever == "slices")) | .[0].slice_ms == 0.5 and (.[1].slice_ms == 0.25 or .[1].slice_ms == 1) and
		all(.[]; .class == "high" and (.jobs | length == 1 and .[0].tenant == "serve")) and
		(.[1].jobs[0] | .held_launches > 0 and .open_launches > 0)' "$T/decisions.out"
	loadline --sim status --decisions >"$T/text.out"
	grep -Eq "  card 0  class high  lower classes have time slices of [0-9.]+ ms$" "$T/text.out"
	grep -Eq "^    serve: [0-9.]+ times as slow as alone, 1.30 is accepted: " "$T/text.out"
	status_has 'any(.[]; .tenant == "batch" and .slice_ms != null) and any(.[]; .tenant == "serve" and .slice_ms == 8)'
	loadline --sim status --long | grep -Eq "^  tenant batch: slices, .*, time slices of [0-9.]+ ms$"
}

@test "decisions tell how long the lower class is held, and why, where it cannot be taken off the card" {
	export LOADLINE_SIM_SCENARIO=$BATS_TEST_DIRNAME/../../sim/scenarios/no-off
	flood batch low
	flood serve high
	wait_for 150 decisions_have 'any(.[]; .lever == "found")'
	loadline --sim status --decisions --json >"$T/decisions.out"
	loadline --sim status --decisions >"$T/text.out"
	jq -es '.[0].decisions.first as $first | [.[1:][].decision] == [range($first; $first + length - 1)]' "$T/decisions.out"
	jq -es 'map(.lever // empty) | .[0] == "sparse" and index("sparse") < index("dense") and index("dense") < index("found")' "$T/decisions.out"
	jq -es 'map(select(.lever == "found"))[0] | .class == "high" and .lower_held >= 0.02 and .lower_held <= 0.98 and
		.busy > 0.1 and .weighed_s >= 0.25 and .was_known == false and .card == 0 and .at_ns > 0 and
		(.jobs | length == 1 and all(.[]; .tenant == "serve" and .slowdown_permille == 1300 and .completed > 0 and
			.held_launches >= 20 and .held_s >= 0.04 and .open_s >= 0.04 and .open_launches >= 0))' "$T/decisions.out"
	grep -Eq "^20[0-9-]+ [0-9:.]+  card 0  class high  lower classes are held for 100 % of its time, (as before|before 0 %): it seldom has work" "$T/text.out"
	grep -Eq "  card 0  class high  lower classes are held for [0-9]+ % of its time, before 50 %: its speeds are known$" "$T/text.out"
	grep -Eq "^    serve: [0-9.]+ times as slow as alone, 1.30 is accepted: [0-9.]+ launches/s while they are held, [0-9.]+ while not$" "$T/text.out"
}

@test "who knows a tenant's decisions does not know the token of its job" {
	waiter one
	waiter two
	wait_for 60 decisions_have 'any(.[]; .jobs and (.jobs | length) == 2)'
	local id
	for id in $(loadline --sim status --decisions --json | jq '.jobs // [] | .[].id'); do
		[ "$id" -le 2 ]
	done
}

@test "without jobs there are no decisions, and an unknown card is 3" {
	[ -z "$(loadline --sim status --decisions)" ]
	[ -z "$(loadline --sim status --decisions --json)" ]
	fails_with 3 "no card '9'" --sim status --decisions -i 9
}
