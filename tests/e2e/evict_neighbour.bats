# Memory that leaves its card goes to a neighbour card while nobody uses that one.
load evict_helper

export NEEDS="tests/e2e/evict_worker python3 jq"

two_cards() {
	printf '%s\n' "cards 2" "card all sm 8" "card all memory ${1-8000}M" "card all peers ${2-on}" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	needs_preload
}

# used_of CARD: MiB in use there.
used_of() {
	loadline --sim status -i "$1" --json | jq -s 'map(select(has("memory_total_bytes"))) | .[0].memory_bytes / 1048576 | floor'
}

uses_less() {
	[ "$(used_of "$1")" -lt "$2" ]
}

# is_on_neighbour NAME BYTES: status says so.
is_on_neighbour() {
	loadline --sim status -i 0 --json | jq -se --arg name "$1" --argjson bytes "$2" \
		'any(.tenant == $name and .neighbour_bytes == $bytes and (.neighbour == null) == ($bytes == 0))'
}

# away_at_neighbour: tenant one, with 36 MiB on card 1.
away_at_neighbour() {
	start_steps one
	does one context "alloc 30" "small 700" "alloc 3" check
	empty=$(used_of 1)
	run -0 --separate-stderr loadline --sim evict one
	[[ $output == "evicted 0/0, tenant one: 36 MiB in "*" s" ]]
	wait_for 60 is_on_neighbour one $((36 << 20))
	[ "$(used_of 1)" -eq $((empty + 36)) ]
}

# returns_well [MIB]: every byte, and no more than that stays behind on card 1.
returns_well() {
	loadline --sim resume one
	does one check "alloc 2" check free check
	wait_for 60 is_on_neighbour one 0
	wait_for 60 uses_less 1 $((${1-$empty} + 1))
}

# goes_on: from card 1 to the host.
goes_on() {
	wait_for 60 is_on_neighbour one 0
	wait_for 60 grep -q "tenant one: 36 MiB go on from card GPU-.* to the host: $1" "$LOADLINE_SIM_DIR/loadlined.log"
	is_now one away
}

@test "memory goes to a neighbour that nobody uses, and every byte comes back" {
	two_cards
	away_at_neighbour
	loadline --sim status -i 0 --long | grep -q "on card GPU-.*: 36 MiB"
	# It is the program's own: nothing is charged for it on that card.
	loadline --sim status -i 1 --json | jq -se 'map(select(has("claim"))) | length == 0'
	returns_well
	loadline --sim evict one
	wait_for 60 is_on_neighbour one $((36 << 20))
	returns_well
}

# bats test_tags=main
@test "memory goes to the host if the program shall not use neighbours, or sees none" {
	two_cards
	start_steps one --no-neighbour
	start_steps two -i 0
	does one context "alloc 30"
	does two context "alloc 20"
	loadline --sim evict one
	loadline --sim evict two
	is_on_neighbour one 0
	is_on_neighbour two 0
	loadline --sim resume one
	loadline --sim resume two
	does one check
	does two check
}

@test "memory goes to the host if no NVLink joins the cards" {
	two_cards 8000 off
	start_steps one
	does one context "alloc 30"
	loadline --sim evict one
	is_on_neighbour one 0
	loadline --sim resume one
	does one check
}

@test "memory goes to the host if somebody uses the neighbour, or it has no room for all of it" {
	two_cards 2100
	fault card 1 used 200M
	start_steps one
	does one context "alloc 60"
	loadline --sim evict one
	is_on_neighbour one 0
	loadline --sim resume one
	fault card 1 used 0M
	loadline --sim evict one # 2 GiB are left free there
	is_on_neighbour one 0
	loadline --sim resume one
	does one free "alloc 30"
	loadline --sim evict one
	wait_for 60 is_on_neighbour one $((30 << 20))
	loadline --sim resume one
	does one check
}

@test "a batch that finds no room on the neighbour goes to the host, and all come back" {
	two_cards
	start_steps one
	does one context "alloc 70" "alloc 70" "alloc 70"
	before=$(used_of 1)
	fault fail cuMemCreate CUDA_ERROR_OUT_OF_MEMORY after 1 count 1
	loadline --sim evict one
	wait_for 60 is_on_neighbour one $((70 << 20))
	returns_well "$before"
	fault fail cuMemSetAccess CUDA_ERROR_NOT_SUPPORTED count 1
	loadline --sim evict one
	is_on_neighbour one 0
	returns_well "$before"
}

@test "when a program comes to the neighbour, memory there goes on to the host" {
	two_cards
	away_at_neighbour
	start_steps two -i 1
	does two context "alloc 20"
	goes_on "a program has come"
	loadline --sim evict two
	loadline --sim resume one
	does one check
	loadline --sim resume two
	does two check
	stop two KILL
	loadline --sim evict one
	wait_for 60 is_on_neighbour one $((36 << 20))
}

@test "when somebody else uses the neighbour, memory there goes on to the host" {
	two_cards
	away_at_neighbour
	fault card 1 used 200M
	goes_on "somebody uses it"
	fault card 1 used 0M
	wait_for 60 uses_less 1 $((empty + 1))
	returns_well
}

@test "a synthetic load on the neighbour is not in the way" {
	two_cards
	start hold --sim hold -i 1 --target 20%
	start_steps one
	does one context "alloc 30"
	wait_for 60 shows_hold
	loadline --sim evict one
	wait_for 60 is_on_neighbour one $((30 << 20))
	loadline --sim resume one
	does one check
}

shows_hold() {
	loadline --sim status -i 1 --json | jq -se 'any(.claim == "1/hold")' && [ "$(used_of 1)" -ge 200 ]
}

@test "a program that is killed while its memory is on the neighbour leaves nothing there" {
	two_cards
	away_at_neighbour
	stop one KILL
	wait_for 60 uses_less 1 1
	start_steps two
	does two context "alloc 30"
	loadline --sim evict two
	wait_for 60 is_on_neighbour two $((30 << 20))
}

@test "the next loadlined knows what is on a neighbour, and sends it on" {
	two_cards
	away_at_neighbour
	end_daemon KILL
	wait_for 60 is_on_neighbour one $((36 << 20))
	start_steps two -i 1
	does two context
	goes_on "a program has come"
	loadline --sim resume one
	does one check
}

@test "an allocation on the neighbour waits for the room that memory of others has there" {
	two_cards 2400
	start_steps two -i 1
	does two context
	context=$(used_of 1)
	stop two KILL
	start_steps one
	does one context "alloc 100"
	loadline --sim evict one
	wait_for 60 is_on_neighbour one $((100 << 20))
	fault hang cuMemcpyDtoHAsync_v2 2s count 1
	rm "$T/two.in" "$T/two.told"
	start_steps two -i 1
	does two context
	# Beside the context 250 MiB are left, of which 100 are taken.
	fault card 1 used $((2400 - context - 250))M
	does two "alloc 200" check
	wait_for 60 is_on_neighbour one 0
	loadline --sim resume one
	does one check
}

@test "without loadlined memory comes back from the neighbour by itself, or goes on to the host if the card is full" {
	two_cards
	away_at_neighbour
	fault card 0 used all
	monitors=$(pids_of loadline-job)
	for pid in $monitors; do kill -STOP "$pid"; done
	end_daemon KILL
	tell one check
	wait_for 60 uses_less 1 $((empty + 1))
	[ "$(grep -c "check ok" "$T/one.out")" -eq 1 ]
	fault card 0 used 0M
	wait_for 60 has_lines one 6
	[ "$(grep -c "check ok" "$T/one.out")" -eq 2 ]
	for pid in $monitors; do kill -KILL "$pid"; done
}
