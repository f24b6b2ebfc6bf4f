# Several programs of a tenant, which may wait for each other: they are stopped together, and then leave.
load evict_helper

export NEEDS="python3"

# start_ranks ARG...: two programs of tenant ranks, one and two, and a mover with these arguments.
start_ranks() {
	needs_preload
	start_mover -i 0 "$@"
	start_steps one --tenant ranks
	start_steps two --tenant ranks
	does one context "alloc 30"
	does two context "alloc 20"
}

# first_line TEXT: where the mover's log has it first.
first_line() {
	grep -n -m 1 "$1" "$T/mover.err" | cut -d : -f 1
}

last_line() {
	grep -n "$1" "$T/mover.err" | tail -n 1 | cut -d : -f 1
}

@test "programs of a tenant are stopped together before any leaves, and return together" {
	start_ranks
	run -0 loadline --sim evict ranks
	[ "$(grep -c "^evicted 0/[01], tenant ranks: " <<<"$output")" -eq 2 ]
	[ "$(last_line "tenant ranks: is stopped$")" -lt "$(first_line "tenant ranks: is leaving$")" ]
	run -0 loadline --sim resume ranks
	[ "$(grep -c "^resumed 0/[01], tenant ranks: " <<<"$output")" -eq 2 ]
	does one check
	does two check
}

@test "while one cannot stop the others go on for a moment, and all are asked again" {
	start_ranks
	does two "kernel 2"
	loadline --sim evict ranks
	[ "$(grep -c "claim 0, tenant ranks: is stopped$" "$T/mover.err")" -ge 2 ]
	[ "$(grep -c "claim 0, tenant ranks: is here$" "$T/mover.err")" -ge 1 ]
	loadline --sim resume ranks
	does one check
	does two check
}

@test "if one does not stop at all they all go on" {
	start_ranks
	does two "kernel 1000"
	fails_with 4 "1, tenant ranks: " --sim evict ranks --wait 600ms
	does one check
	[ "$(grep -c "is leaving$" "$T/mover.err")" -eq 0 ]
}

@test "one of the programs that was suspended or evicted by hand stays as it was if the others cannot stop" {
	start_ranks
	loadline --sim evict 0/0
	start_steps three --tenant ranks
	does three context "alloc 10"
	does two "kernel 1000"
	fails_with 4 "1, tenant ranks: " --sim evict ranks --wait 300ms
	does three check
	[[ $(grep "claim 0, tenant ranks: is " "$T/mover.err" | tail -n 1) == *": is away" ]]
	loadline --sim resume 0/0
	does one check
}

@test "suspend stops them together too" {
	start_ranks
	run -0 loadline --sim suspend ranks
	[ "$(grep -c "^suspended 0/[01], tenant ranks: " <<<"$output")" -eq 2 ]
	[ "$(grep -c "tenant ranks: is stopped$" "$T/mover.err")" -eq 2 ]
	loadline --sim resume ranks
	does one check
	does two check
}

@test "a program that was stopped with others and cannot leave goes on" {
	start_ranks --pool 64M
	does one "alloc 10"
	does two "alloc 20"
	fails_with 4 "tenant ranks: the pool of 64 MiB has no room" --sim evict ranks
	[ "$(grep -c "tenant ranks: is away$" "$T/mover.err")" -eq 1 ]
	[[ $(grep "tenant ranks: is " "$T/mover.err" | tail -n 1) == *": is here" ]]
	loadline --sim resume ranks
	does one check
	does two check
}

@test "programs of a tenant on two cards leave both" {
	needs_preload
	printf 'cards 2\n' >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	start_mover -i 0
	start_steps one --tenant ranks
	does one context "alloc 30"
	CUDA_VISIBLE_DEVICES=1 start_steps two --tenant ranks
	does two context "alloc 20"
	run -0 loadline --sim evict ranks
	[[ $output == *"evicted 0/0, tenant ranks: "* ]]
	[[ $output == *"evicted 1/0, tenant ranks: "* ]]
	loadline --sim resume ranks
	does one check
	does two check
}
