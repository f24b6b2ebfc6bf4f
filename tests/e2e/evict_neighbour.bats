# Memory that goes to a neighbour card while nobody uses it, and on to the host when somebody does.
load evict_helper

export NEEDS="tests/e2e/evict_worker python3 sim/loadline-simctl"

# cards LINE...: two cards.
cards() {
	printf '%s\n' "cards 2" "$@" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
}

# beside_mib: memory of card 1 in use.
beside_mib() {
	loadline --sim status --json | jq -s 'map(select(.card == 1 and .memory_total_bytes)) | .[0].memory_bytes / 1048576 | floor'
}

has_beside() {
	[ "$(beside_mib)" -ge "$1" ]
}

has_none_beside() {
	[ "$(beside_mib)" -lt "$1" ]
}

# logged TEXT: by the mover.
logged() {
	grep -q "$1" "$T/mover.err"
}

# start_beside ARG...: program one has 33 MiB in two allocations, and a mover with these arguments.
start_beside() {
	needs_preload
	[ -v LOADLINE_SIM_SCENARIO ] || cards "card all peers on"
	start_mover -i 0 "$@"
	start_steps one
	does one context "alloc 30" "alloc 3"
	empty=$(beside_mib)
}

# is_evicted_beside: the memory is on card 1 now.
is_evicted_beside() {
	loadline --sim evict one
	has_beside $((empty + 33))
	logged "tenant one: away: .*, on card 1$"
}

# comes_back: with every byte.
comes_back() {
	loadline --sim resume one
	does one check
	wait_for 10 has_none_beside $((empty + 1))
}

@test "memory goes to the neighbour, and comes back from there" {
	start_beside
	used=$(used_mib)
	for _ in 1 2 3; do
		is_evicted_beside
		wait_for 10 uses_below $((used - 32))
		comes_back
	done
}

@test "a mover that shall use no neighbour moves memory to the host" {
	start_beside --no-neighbour
	loadline --sim evict one
	has_none_beside $((empty + 1))
	comes_back
}

@test "a program at work goes to the neighbour and back, and goes on where it was" {
	needs_preload
	cards "card all peers on"
	start_mover -i 0
	start_worker one --bytes 100M --threads 2 --mixed
	for _ in 1 2 3 4; do
		loadline --sim evict one
		loadline --sim resume one
	done
	[ "$(grep -c "tenant one: away: .*, on card 1$" "$T/mover.err")" -eq 4 ]
	ends_well one
}

@test "cards that do not reach each other are no neighbours" {
	cards
	start_beside
	loadline --sim evict one
	has_none_beside $((empty + 1))
	comes_back
}

# ---- who uses the neighbour ----

@test "memory goes on to the host when a stranger takes memory of the neighbour" {
	start_beside
	is_evicted_beside
	fault card 1 used 1G
	wait_for 20 has_none_beside $((empty + 1025))
	logged "card 1 is wanted: 34 MiB go on to the host"
	fault card 1 used 0
	comes_back
}

@test "memory goes on to the host when a governed program comes to the neighbour" {
	start_beside
	is_evicted_beside
	start two --sim run --tenant two -i 1 -- "$LOADLINE_BUILD/tests/e2e/evict_worker" --bytes 4M --seconds 1000s
	wait_for 60 has two 'select(.event == "ready")'
	wait_for 20 logged "card 1 is wanted"
	wait_for 20 is_stored_by_host
	loadline --sim resume one
	does one check
	loadline --sim evict one
	[ "$(grep -c "tenant one: away: .*, on card 1$" "$T/mover.err")" -eq 1 ]
	ends_well two
	comes_back
}

is_stored_by_host() {
	doctor_says "serves the card" && ! doctor_says "on neighbours"
}

# doctor_says TEXT: of the mover of card 0.
doctor_says() {
	loadline --sim doctor -i 0 --no-trial | grep "card 0: mover: " | grep -q "$1"
}

@test "a hold on the neighbour does not keep memory away" {
	needs_preload
	cards "card all peers on"
	start hold --sim hold -i 1 --target 50
	wait_for 60 shows 'select(has("claim") and .synthetic and .state == "holding")'
	start_beside
	is_evicted_beside
	comes_back
}

@test "doctor tells what is on a neighbour" {
	start_beside
	is_evicted_beside
	doctor_says "on neighbours: 34 MiB on card 1"
	comes_back
	is_stored_by_host
}

@test "memory that is to return while it goes on to the host returns from the neighbour" {
	start_beside
	is_evicted_beside
	fault hang cuMemcpyDtoHAsync_v2 2s count 1
	fault card 1 used 1G
	wait_for 20 logged "card 1 is wanted"
	loadline --sim resume one
	does one check
}

# ---- room ----

@test "a neighbour without room is not chosen, and one whose room is gone lets the rest go to the host" {
	start_beside
	fault card 1 used all
	loadline --sim evict one
	loadline --sim resume one
	fault card 1 used 0
	fault fail cuMemCreate CUDA_ERROR_OUT_OF_MEMORY count 1
	loadline --sim evict one
	has_none_beside $((empty + 33))
	comes_back
}

@test "no eviction begins without room in the pool, though the neighbour has room" {
	start_beside --pool 64M
	does one "alloc 60"
	fails_with 4 "tenant one: the pool of 64 MiB has no room for 9" --sim evict one
	does one check
}

@test "memory goes to the neighbour at once, before its room in the pool is pinned" {
	start_beside
	fault hang cuMemHostRegister_v2 1000s
	does one "alloc 70"
	is_evicted_beside
	comes_back
	fault heal
}

@test "memory that cannot go on to the host stays on the neighbour, and that is said" {
	start_beside
	is_evicted_beside
	fault fail cuMemcpyDtoHAsync_v2 CUDA_ERROR_INVALID_VALUE
	fault card 1 used 1G
	wait_for 20 logged "MiB stay on card 1, though it is wanted: copy memory out"
	fault heal
	fault card 1 used 0
	comes_back
}

# ---- kills ----

@test "a program whose mover is killed while its memory is on the neighbour brings it back by itself" {
	start_beside
	is_evicted_beside
	kill -KILL "$(pid_of mover)"
	finish mover
	does one check
	wait_for 10 has_none_beside $((empty + 1))
}

@test "a program whose mover is killed amid its way to the neighbour keeps its memory" {
	start_beside
	does one "alloc 70" "alloc 150" "alloc 100"
	fault hang cuMemCreate 1000s after 1 count 1
	start evict --sim evict one
	wait_for 20 said one leaving
	kill -KILL "$(pid_of mover)"
	finish mover
	finish evict
	fault heal
	does one check
	wait_for 10 has_none_beside $((empty + 1))
}

@test "a program whose mover is killed while its memory goes on to the host brings it back by itself" {
	start_beside
	is_evicted_beside
	fault hang cuMemcpyDtoHAsync_v2 1000s count 1
	fault card 1 used 1G
	wait_for 20 logged "card 1 is wanted"
	kill -KILL "$(pid_of mover)"
	finish mover
	fault heal
	does one check
	wait_for 10 has_none_beside $((empty + 1025))
}

@test "a program that is killed gives its room on the neighbour back" {
	start_beside
	is_evicted_beside
	kill -KILL "$(pid_of one)"
	finish one
	wait_for 20 has_none_beside $((empty + 1))
}

@test "a program that cannot take its memory on the neighbour keeps it on its card" {
	start_beside
	fault fail cuMemImportFromShareableHandle CUDA_ERROR_OPERATING_SYSTEM after 1 count 1
	start evict --sim evict one
	finish evict
	[ "$status" -ne 0 ]
	does one check
	wait_for 10 has_none_beside $((empty + 1))
}
