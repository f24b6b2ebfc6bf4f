load helper

# What an evictable program is told of its memory, and what keeps it on the card.
needs_library() {
	[ -e "$LOADLINE_BUILD/src/shim/libloadline-cuda.so" ] || skip "this build has no library to preload"
}

# attributes NAME WAY [OPTION]...: the program in that way, run with these options; it reads lines from descriptor 7.
attributes() {
	mkfifo "$T/$1.in"
	exec 7<>"$T/$1.in"
	start_program "$1" bash -c 'exec "${@:2}" <"$1"' bash "$T/$1.in" \
		"$LOADLINE" --sim run "${@:3}" -- "$LOADLINE_BUILD/bench/c/attributes" "$2"
	wait_for 60 grep -q ready "$T/$1.out"
}

# go_on NAME COUNT: gives it a line, and waits until it is ready for the COUNTth time.
go_on() {
	echo >&7
	wait_for 60 is_ready "$1" "$2"
}

is_ready() {
	[ "$(grep -c ready "$T/$1.out")" -ge "$2" ]
}

native() {
	LD_LIBRARY_PATH=$LOADLINE_BUILD/sim "$LOADLINE_BUILD/bench/c/attributes" "$@"
}

@test "the driver's answers on an address are the same in an evictable program" {
	needs_library
	native >"$T/native"
	loadline --sim run --evictable -- "$LOADLINE_BUILD/bench/c/attributes" 2>"$T/told" >"$T/evictable"
	[ "$(wc -l <"$T/native")" -gt 1000 ]
	diff "$T/native" "$T/evictable"
	# The driver shares plain memory, and that of pools not.
	[ "$(grep ^ipc "$T/evictable" | sort -u)" = $'ipc capable: 0 0; handle: 1\nipc capable: 0 1; handle: 0' ]
}

@test "cards that enabled access use memory of before and after, and memory that has left and returned" {
	scenario "cards 2" "card all peers on"
	needs_library
	native peers >"$T/native" < <(echo)
	attributes peers peers --evictable
	wait_for 60 loadline --sim evict 0/0
	loadline --sim resume 0/0
	echo >&7
	finish peers
	[ "$status" -eq 0 ]
	diff "$T/native" "$T/peers.out"
}

@test "status says what of an evictable program's memory is on the card, can be moved, and is pinned" {
	needs_library
	attributes job buffer --evictable --tenant job
	wait_for 60 shows 'select(has("claim") and .evictable_bytes == 16777216)'
	shows 'select(has("claim")) | .state == "running" and .resident_bytes == .memory_bytes and .pinned_bytes == .memory_bytes - 16777216'
	loadline --sim evict 0/0
	shows 'select(has("claim")) | .state == "evicted" and .evictable_bytes == 16777216 and .resident_bytes == .pinned_bytes and .memory_bytes == .pinned_bytes + 16777216 and .moves == 1 and .host_bytes == 16777216'
	loadline --sim status --long | grep -qE "job: evicted, .* on the card \\(evictable: 16 MiB, pinned: [0-9]+ MiB, ready in the host: [0-9]+ MiB\\)"
	loadline --sim resume 0/0
	shows 'select(has("claim")) | .state == "running" and .resident_bytes == .memory_bytes and .moves == 2'
	loadline --sim suspend 0/0
	shows 'select(has("claim")) | .state == "stopped" and .resident_bytes == .memory_bytes'
	loadline --sim resume 0/0
	stop job
}

@test "status has no such figures for a program that is not evictable" {
	needs_library
	attributes job buffer
	shows 'select(has("claim")) | .state == "running" and .resident_bytes == null and .evictable_bytes == null and .pinned_bytes == null and .host_bytes == null and .moves == null'
	run loadline --sim status --long
	[[ $output != *evictable* ]]
	stop job
}

@test "a program that gave its memory to another device as a DMA buffer is not evicted until it frees that" {
	scenario "card 0 dma-buffers on"
	needs_library
	attributes job buffer --evictable
	grep -q "buffer: 0" "$T/job.out"
	fails_with 4 "as a DMA buffer" --sim evict 0/0
	shows 'select(has("claim")) | .state == "running" and .resident_bytes == .memory_bytes'
	go_on job 2
	loadline --sim evict 0/0
	shows 'select(has("claim")) | .state == "evicted"'
	loadline --sim resume 0/0
	stop job
}

@test "a program whose stream waits for a value that it has to write is not evicted, and the reason is said" {
	needs_library
	attributes job wait --evictable
	grep -q "wait: 0" "$T/job.out"
	fails_with 4 "a stream may wait for a value that the program has to write" --sim evict 0/0
	go_on job 2
	grep -q "end: 0" "$T/job.out"
	loadline --sim evict 0/0
	shows 'select(has("claim")) | .state == "evicted"'
	loadline --sim resume 0/0
	stop job
}
