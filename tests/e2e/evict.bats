# `loadline evict`, `resume` and `suspend`.
load evict_helper

export NEEDS="tests/e2e/evict_worker python3"

@test "evict takes the memory off the card, and resume brings every byte back to the same addresses" {
	needs_preload
	start_steps one
	does one context
	empty=$(used_mib)
	does one "alloc 30" "small 700" "alloc 3" check
	[ "$(used_mib)" -ge $((empty + 34)) ]
	run -0 --separate-stderr loadline --sim evict one
	[[ $output == "evicted 0/0, tenant one: 36 MiB in "*" s" ]]
	wait_for 60 uses_below $((empty + 1))
	tell one check
	run -0 --separate-stderr loadline --sim resume one
	[[ $output == "resumed 0/0, tenant one: 36 MiB in "*" s" ]]
	does one "alloc 1" check free free check
	[ "$(grep -c "check ok" "$T/one.out")" -eq 4 ]
}

@test "memory of cuMemAllocAsync leaves the card and comes back, but for what is freed" {
	needs_preload
	start_steps one
	does one context
	empty=$(used_mib)
	does one keep "async 30" "async 3" "alloc 3" "async 20" unasync sync check
	[ "$(used_mib)" -ge $((empty + 58)) ]
	does one "pool $((64 << 20))"
	run -0 --separate-stderr loadline --sim evict one
	[[ $output == "evicted 0/0, tenant one: 38 MiB in "*" s" ]]
	wait_for 60 uses_below $((empty + 1))
	tell one check
	run -0 loadline --sim resume one
	does one "pool $((64 << 20))" "async 20" check free free unasync sync
	does one "pool $((64 << 20))" trim "pool $((32 << 20))" check
	[ "$(grep -c "check ok" "$T/one.out")" -eq 4 ]
}

@test "memory of cuMemAllocAsync waits for room on the card, as any other" {
	needs_preload
	printf 'cards 1\ncard 0 memory 1600M\ncard 0 sm 8\n' >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	start_steps one
	does one context
	start_steps two
	does two context keep
	# The contexts leave some 780 MiB. Memory of others has no pages that a busy host must zero.
	fault card 0 used 766M
	does one "async 150" sync
	does two "async 70" "async 85" check unasync "async 80" check
	said one away
	does one check
	does two check
}

@test "a program at work is evicted and resumed, and goes on where it was" {
	needs_preload
	start_worker one --bytes 8M --threads 2 --mixed
	for _ in 1 2 3; do
		run -0 --separate-stderr loadline --sim evict one --json
		[ "$(jq -r '[.event, .claim, .tenant, .bytes >= 8388608, .seconds > 0] | join(" ")' <<<"$output")" = \
			"evicted 0/0 one true true" ]
		run -0 --separate-stderr loadline --sim resume 0/0 --json
		[ "$(jq -r '[.event, .claim, .tenant] | join(" ")' <<<"$output")" = "resumed 0/0 one" ]
	done
	ends_well one
}

@test "a program stays away until it is resumed, and status tells of it meanwhile" {
	needs_preload
	start_worker one --bytes 4M
	loadline --sim evict one
	kill -TERM "$(pid_of one)"
	run -0 loadline --sim status
	[[ $output == *"one "*"evicted "* ]]
	shows 'select(.tenant == "one")'
	is_now one away
	is_running one
	loadline --sim resume one
	finish one
	[ "$status" -eq 0 ]
}

@test "evict twice and resume twice are as once" {
	needs_preload
	start_worker one --bytes 4M
	loadline --sim resume one
	loadline --sim evict one
	loadline --sim evict one
	loadline --sim resume one
	loadline --sim resume one
	[ "$(grep -c "is away$" "$LOADLINE_SIM_DIR/loadlined.log")" -eq 1 ]
	[ "$(grep -c ": resumed: " "$LOADLINE_SIM_DIR/loadlined.log")" -le 2 ]
	ends_well one
}

@test "suspend stops a program whose memory stays on the card, and it can be evicted then" {
	needs_preload
	start_worker one --bytes 30M --keep
	full=$(used_mib)
	run -0 --separate-stderr loadline --sim suspend one
	[[ $output == "suspended 0/0, tenant one: "* ]]
	[ "$(used_mib)" -eq "$full" ]
	kill -TERM "$(pid_of one)"
	loadline --sim evict one
	wait_for 60 uses_below $((full - 29))
	is_running one
	run -0 loadline --sim resume one
	finish one
	[ "$status" -eq 0 ]
	has one 'select(.wrong == 0)'
}

@test "a suspended program goes on when it is resumed" {
	needs_preload
	start_worker one --bytes 4M
	loadline --sim suspend one
	loadline --sim suspend one
	loadline --sim resume one
	ends_well one
}

@test "the name of a tenant means all of its processes" {
	needs_preload
	start both --sim run --tenant both --evictable -- sh -c '"$@" & first=$!; "$@"; wait "$first"' sh \
		"$LOADLINE_BUILD/tests/e2e/evict_worker" --bytes 4M --seconds 1000s
	wait_for 60 counts both 2 'select(.event == "ready")'
	run -0 loadline --sim evict both
	[ "${#lines[@]}" -eq 2 ]
	said both away 2
	run -0 loadline --sim resume both
	[ "${#lines[@]}" -eq 2 ]
	for pid in $(loadline --sim status --json | jq 'select(.tenant == "both") | .pid'); do
		kill -TERM "$pid"
	done
	finish both
	[ "$status" -eq 0 ]
	counts both 2 'select(.event == "end" and .wrong == 0)'
}

@test "a child that was forked is a program of its own, and evictable" {
	needs_preload
	start_steps one
	does one descend context "alloc 3"
	run -0 loadline --sim evict one
	[ "${#lines[@]}" -eq 1 ]
	said one away
	loadline --sim resume one
	does one check
}

@test "what is not there is refused" {
	fails_with 1 "no such claim or tenant" --sim evict 0/0
	fails_with 1 "nobody: no such claim or tenant" --sim evict nobody
	fails_with 2 "name one claim" --sim evict
	fails_with 2 "name one claim" --sim resume 0/0 0/1
}

@test "a program without any memory is evicted too, and memory that it cannot give stays" {
	needs_preload
	start_steps one
	does one context
	loadline --sim evict one
	tell one "alloc 1"
	loadline --sim resume one
	does one check
	[ "$(cat "$T/one.out")" = $'context ok\nalloc ok\ncheck ok' ]
}
