# Several programs of a tenant, which may wait for each other: they are stopped together, and then leave.
load evict_helper

export NEEDS="bench/c/evictee python3"

# start_ranks NAME...: programs of tenant ranks, which do what they are told. The first is claim 0, and so on. Program NAME
# sees the cards of CARDS_NAME.
start_ranks() {
	local name
	needs_preload
	for name; do
		open_steps "$name"
	done
	# shellcheck disable=SC2016
	start ranks --sim run --tenant ranks --evictable -- bash -c 'for name in "${@:3}"; do
		cards=CARDS_$name
		CUDA_VISIBLE_DEVICES=${!cards-0,1} python3 "$2" <"$1/$name.in" >"$1/$name.out" 2>&1 &
	done
	wait' ranks "$T" "$BATS_TEST_DIRNAME/evict_steps.py" "$@"
	for name; do
		does "$name" context "alloc 20"
	done
}

# first_line TEXT: where loadlined's log has it first.
first_line() {
	grep -n -m 1 "$1" "$LOADLINE_SIM_DIR/loadlined.log" | cut -d : -f 1
}

last_line() {
	grep -n "$1" "$LOADLINE_SIM_DIR/loadlined.log" | tail -n 1 | cut -d : -f 1
}

# is_claim_now N STATE: the last that loadlined's log says of it.
is_claim_now() {
	[[ $(grep "claim $1, tenant ranks: is " "$LOADLINE_SIM_DIR/loadlined.log" | grep -v "is to be" | tail -n 1) == *": is $2" ]]
}

# has_gone_on N: could it be stopped, and did it go on, because another one could not?
has_gone_on() {
	grep "claim $1, tenant ranks: is " "$LOADLINE_SIM_DIR/loadlined.log" | grep -A 1000 ": is stopped$" | grep -q ": is here$"
}

@test "programs of a tenant are stopped together before any leaves, and return together" {
	start_ranks one two
	run -0 loadline --sim evict ranks
	[ "$(grep -c "^evicted 0/[01], tenant ranks: " <<<"$output")" -eq 2 ]
	[ "$(last_line "tenant ranks: is stopped$")" -lt "$(first_line "tenant ranks: is leaving$")" ]
	run -0 loadline --sim resume ranks
	[ "$(grep -c "^resumed 0/[01], tenant ranks: " <<<"$output")" -eq 2 ]
	does one check
	does two check
}

@test "while one cannot stop the others go on for a moment, and all are asked again" {
	start_ranks one two
	does two wait
	start command --sim evict ranks --wait 1000s
	wait_for 60 has_gone_on 0
	does two go
	finish command
	[ "$status" -eq 0 ]
	[ "$(grep -c "claim 0, tenant ranks: is stopped$" "$LOADLINE_SIM_DIR/loadlined.log")" -ge 2 ]
	loadline --sim resume ranks
	does one check
	does two check
}

@test "an evict of several that is interrupted lets them all go on" {
	start_ranks one two
	does two "kernel 100"
	start command --sim evict ranks --wait 100s
	wait_for 60 grep -q "claim 0, tenant ranks: is stopped$" "$LOADLINE_SIM_DIR/loadlined.log"
	kill -TERM "$(pid_of command)"
	finish command
	[ "$status" -eq 143 ]
	cat "$T/command.err"
	[ "$(tail -n 1 "$T/command.err")" = "loadline: interrupted: 2 programs: as before" ]
	status_has 'map(select(has("claim"))) | length == 2 and all(.state == "running")'
	does one check
}

@test "if one does not stop at all they all go on" {
	start_ranks one two
	does two "kernel 1000"
	fails_with 4 "1, tenant ranks: " --sim evict ranks --wait 600ms
	does one check
	[ "$(grep -c "is leaving$" "$LOADLINE_SIM_DIR/loadlined.log")" -eq 0 ]
}

@test "a program that was evicted by hand before stays away if the others cannot stop" {
	start_ranks one two three
	loadline --sim evict 0/0
	does two "kernel 1000"
	fails_with 4 "1, tenant ranks: " --sim evict ranks --wait 300ms
	does three check
	is_claim_now 0 away
	loadline --sim resume 0/0
	does one check
}

@test "suspend stops them together too" {
	start_ranks one two
	run -0 loadline --sim suspend ranks
	[ "$(grep -c "^suspended 0/[01], tenant ranks: " <<<"$output")" -eq 2 ]
	# On a busy host one may need another try: all go on, and are stopped again.
	is_claim_now 0 stopped
	is_claim_now 1 stopped
	loadline --sim resume ranks
	does one check
	does two check
}

@test "programs of a tenant on two cards leave both" {
	printf 'cards 2\n' >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario CARDS_two=1
	start_ranks one two
	run -0 loadline --sim evict ranks
	[[ $output == *"evicted 0/0, tenant ranks: "* ]]
	[[ $output == *"evicted 1/0, tenant ranks: "* ]]
	loadline --sim resume ranks
	does one check
	does two check
}

@test "when another program needs the room, all of a job leave as soon as all can, and return together" {
	small_card 964M # 133 beside the contexts of three
	start_ranks one two
	does two wait
	start other --sim run --evictable --tenant other -- "$LOADLINE_BUILD/bench/c/evictee" --bytes 110M --seconds 3s --idle 20ms
	wait_for 60 has_gone_on 0
	does two go
	wait_for 60 grep -q "claim 0, tenant ranks: is leaving$" "$LOADLINE_SIM_DIR/loadlined.log"
	[ "$(last_line "tenant ranks: is stopped$")" -lt "$(first_line "tenant ranks: is leaving$")" ]
	wait_for 60 has other 'select(.event == "end" and .wrong == 0)'
	does one check
	does two check
	[ "$(last_line "tenant ranks: is returning$")" -lt "$(last_line "tenant ranks: is here$")" ]
}
