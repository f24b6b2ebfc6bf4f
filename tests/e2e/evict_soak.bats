# Hundreds of evictions of programs at work, and every word of their memory compared.
load evict_helper

export NEEDS="tests/e2e/evict_worker tests/e2e/evict_soak"

# soak EVICTIONS SEED: of four programs of random sizes and work, all at once.
soak() {
	local evictions=$1 seed=$2 socket name claims
	RANDOM=$seed
	echo "seed $seed"
	start_mover --pool 128M
	for name in one two three four; do
		start_worker "$name" --bytes $((RANDOM % 4000 + 4))K --threads $((RANDOM % 3 + 1)) --mixed --seed $((seed + RANDOM))
	done
	socket=$(find "$T" -name '*.mover')
	mapfile -t claims < <(loadline --sim status --json | jq -r 'select(has("claim")) | .claim | split("/")[1]')
	run "$LOADLINE_BUILD/tests/e2e/evict_soak" "${socket%/*}" "$(basename "$socket" .mover)" "$evictions" "$seed" \
		"${claims[@]}"
	tail -n 5 <<<"$output"
	[ "$status" -eq 0 ] || {
		show
		return 1
	}
	for name in one two three four; do
		ends_well "$name"
	done
	stop mover TERM
	[ "$status" -eq 0 ]
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
