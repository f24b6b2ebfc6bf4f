# Hundreds of evictions of programs at work, and every word of their memory compared.
load evict_helper

export NEEDS="tests/e2e/evict_worker tests/e2e/evict_soak"

# soak EVICTIONS SEED: of four programs of random sizes and work, all at once.
soak() {
	local evictions=$1 seed=$2 name
	RANDOM=$seed
	echo "seed $seed"
	for name in one two three four; do
		start_worker "$name" --bytes $((RANDOM % 4000 + 4))K --threads $((RANDOM % 3 + 1)) --mixed --seed $((seed + RANDOM))
	done
	run "$LOADLINE_BUILD/tests/e2e/evict_soak" "$evictions" "$seed"
	tail -n 5 <<<"$output"
	[ "$status" -eq 0 ] || {
		show
		return 1
	}
	for name in one two three four; do
		ends_well "$name"
	done
}

@test "programs at work that are evicted at random lose no byte" {
	needs_preload
	if [ -n "${LOADLINE_TEST_LONG-}" ]; then
		for round in {1..10}; do
			soak 1000 "$((${SOAK_SEED:-$RANDOM} + round))"
		done
	else
		soak 300 "${SOAK_SEED:-$RANDOM}"
	fi
}
