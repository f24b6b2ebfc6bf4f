# loadline run's limits on the card's time, as its user sees them.
load helper

export NEEDS=tests/e2e/launcher
LAUNCHER=$LOADLINE_BUILD/tests/e2e/launcher

# limited NAME OPTION...: a program of that tenant that launches kernels of 1 ms for ever.
limited() {
	local name=$1
	shift
	start "$name" --sim run --tenant "$name" "$@" -- "$LAUNCHER" "${KERNEL_MS:-1}"
}

# gpu_seconds NAME...: of each tenant, at one moment.
gpu_seconds() {
	local name filter=empty
	for name; do
		filter+=", ([.[] | select(has(\"claim\") and .tenant == \"$name\") | .gpu_seconds] | add // 0)"
	done
	loadline --sim status --json | jq -s "[$filter] | join(\" \")" -r
}

# shares ONE OTHER RATIO-LOW RATIO-HIGH: while ONE gets a second of the card, it gets so many times what OTHER gets.
shares() {
	local one other one_later other_later
	read -r one other <<<"$(gpu_seconds "$1" "$2")"
	wait_for 60 used "$1" "$(jq -n "$one + 1")"
	read -r one_later other_later <<<"$(gpu_seconds "$1" "$2")"
	expect '$ratio > $low and $ratio < $high' --argjson low "$3" --argjson high "$4" \
		--argjson ratio "$(jq -n "($one_later - $one) / ($other_later - $other)")"
}

used() {
	shows "select(has(\"claim\") and .tenant == \"$1\" and .gpu_seconds >= $2)"
}

@test "a cap holds" {
	limited capped --compute 10%
	wait_for 30 used capped 0.02
	local began=${EPOCHREALTIME} before
	before=$(gpu_seconds capped)
	wait_for 60 used capped "$(jq -n "$before + 0.2")"
	local after
	after=$(gpu_seconds capped)
	# 30 ms may be in flight or in the account at either end.
	expect '$used <= ($ended - $began) * 0.1 + 0.03' --argjson used "$(jq -n "$after - $before")" \
		--argjson began "$began" --argjson ended "$EPOCHREALTIME"
}

@test "two programs share by weight" {
	limited small --weight 1
	limited big --weight 3
	wait_for 30 used small 0.1
	wait_for 30 used big 0.1
	shares big small 1.8 4.5
}

@test "a weight that is changed counts from then on" {
	limited one
	limited two
	wait_for 30 used one 0.1
	wait_for 30 used two 0.1
	loadline --sim set two --weight 4
	shares two one 2.2 6
}

@test "a kernel that never ends is shown by status" {
	KERNEL_MS=1000000 limited stuck --max-kernel 200ms
	wait_for 30 shows 'select(has("claim") and .tenant == "stuck" and (.note // "" | test("runs? for")))'
	is_running stuck
}

@test "what a neighbour has of the card is not a kernel's own time" {
	KERNEL_MS=1 limited neighbour
	wait_for 30 used neighbour 0.2
	start slow --sim run --tenant slow --max-kernel 600ms:kill -- "$LAUNCHER" 400 6
	finish slow
	[ "$status" -eq 0 ]
}

@test "a kernel that never ends ends its program when that was asked for" {
	KERNEL_MS=1000000 limited stuck --max-kernel 200ms:kill
	finish stuck
	[ "$status" -eq 137 ]
}
