# What a program under `loadline run --mem` may have of a card, and what it is told of it.
load helper

export NEEDS=python3

program() {
	echo "python3 $BATS_TEST_DIRNAME/card_memory.py"
}

# governed SIZE STEP...: the program under that limit; its lines are in $lines.
governed() {
	local size=$1
	shift
	# shellcheck disable=SC2046
	run -0 "$LOADLINE" --sim run --mem "$size" -- $(program) "$@"
}

@test "a program is refused what passes its limit, its context included" {
	governed 1G context alloc 400 alloc 100 free alloc 100
	[ "${lines[*]}" = "context ok alloc ok alloc 2 free ok alloc 2" ]
}

@test "two of the library in one program charge once" {
	cp "$("$LOADLINE" --sim run -- sh -c 'echo ${LD_PRELOAD%%:*}')" "$T/another.so"
	for preload in "$T/another.so" "libm.so.6:$T/another.so"; do
		export LD_PRELOAD=$preload
		governed 1G context alloc 400 alloc 100 free alloc 100 info list
		[ "${lines[*]}" = "context ok alloc ok alloc 2 free ok alloc 2 info $((1024 - 528 - 400)) 1024 list 1" ]
	done
	unset LD_PRELOAD
}

@test "contexts may be left out of the limit" {
	# shellcheck disable=SC2046
	run -0 "$LOADLINE" --sim run --mem 100M --count-context no -- $(program) context alloc 100 alloc 1
	[ "${lines[*]}" = "context ok alloc ok alloc 2" ]
}

@test "the card is shown as large as the limit" {
	governed 2G card context alloc 100 info card list
	[ "${lines[0]}" = "card 2048 0 2048" ]
	[ "${lines[3]}" = "info $((2048 - 528 - 100)) 2048" ]
	[ "${lines[4]}" = "card 2048 628 $((2048 - 628))" ]
	[ "${lines[5]}" = "list 1" ]
}

@test "a program started by exec has a part of the same limit" {
	governed 1500M context alloc 300 child context alloc 200 card alloc 100
	[ "${lines[*]}" = "context ok alloc ok context ok alloc 2 card 1500 1356 144 alloc ok" ]
}

@test "a process has a part of the same limit however it is started" {
	for way in posix_spawn fork mp-fork mp-spawn mp-forkserver; do
		governed 1500M card by "$way" context alloc 300 child context alloc 200 info alloc 100
		[ "${lines[*]}" = "card 1500 0 1500 context ok alloc ok context ok alloc 2 info 144 1500 alloc ok" ]
	done
}

@test "a program that is killed gives everything back" {
	mkfifo "$T/in"
	export -f program
	(
		exec 3<>"$T/in"
		# shellcheck disable=SC2046
		exec "$LOADLINE" --sim run --mem 1200M --tenant both -- sh -c '
			'"$(program)"' context alloc 500 wait <&3 & echo $! >"'"$T"'/inner"
			wait; '"$(program)"' context alloc 500'
	) >"$T/tree.out" 2>"$T/tree.err" 3>&- &
	echo $! >"$T/tree.pid"
	started+=(tree)
	wait_for 60 grep -q waiting "$T/tree.out"
	kill -KILL "$(cat "$T/inner")"
	finish tree
	[ "$(tail -n 2 "$T/tree.out" | tr '\n' ' ')" = "context ok alloc ok " ]
}

# holds_nothing: no claim, and nothing of the tenant's on the card.
holds_nothing() {
	loadline --sim status --json >"$T/status.out" && ! jq -e 'select(has("claim"))' "$T/status.out" &&
		jq -s -e 'all(.[]; .memory_bytes == null or .memory_bytes < 100000000)' "$T/status.out"
}

@test "a program that becomes another one without CUDA is charged no longer" {
	for option in --weight=1 --evictable; do
		start job --sim run --mem 2G "$option" --tenant job -- sh -c \
			"python3 $BATS_TEST_DIRNAME/become.py 1200 sleep 300 & echo \$! >$T/become; until [ -e $T/go ]; do sleep 0.1; done; until $(program) context alloc 1400 | grep 'alloc ok'; do sleep 0.1; done; wait"
		wait_for 60 test -s "$T/become"
		wait_for 60 grep -qx sleep "/proc/$(cat "$T/become")/comm"
		wait_for 60 holds_nothing
		touch "$T/go"
		wait_for 60 grep -q "alloc ok" "$T/job.out"
		! has_ended "$(cat "$T/become")"
		stop job KILL
		kill -KILL "$(cat "$T/become")"
		wait_for 60 shows_none 'has("tenant_row")'
		rm "$T/become" "$T/go"
	done
}

@test "a program without a memory limit sees the card as it is" {
	# shellcheck disable=SC2046
	run -0 "$LOADLINE" --sim run -- $(program) context info
	read -r _ free total <<<"${lines[1]}"
	[ "$total" -gt 100000 ]
	[ "$free" -gt 100000 ]
}
