# Memory of evictable programs that other processes open (cuIpcGetMemHandle).
load evict_helper

export NEEDS="tests/e2e/evict_worker python3"

# says NAME STEP ANSWER: what it answers to the step.
says() {
	tell "$1" "$2"
	wait_for 60 has_lines "$1" "$(wc -l <"$T/$1.told")"
	tail -n 1 "$T/$1.out" | grep -qx "${2%% *} $3"
}

@test "another governed program opens what an evictable one shares, and that does not move meanwhile" {
	needs_preload
	start_steps one
	does one context "alloc 3" "small 4096" "share 1 $T/large" "share 2 $T/small"
	start_steps two
	does two context "open 1 3 $T/large" "open 1 3 $T/large" close "open 2 0 $T/small"
	fails_with 4 "it shares memory of the card" --sim evict one
	# Opened memory goes nowhere when the program that opened it is moved.
	does two "alloc 3"
	loadline --sim evict two
	loadline --sim resume two
	does two check "open 1 3 $T/large" close close close
	does one free free
	wait_for 60 loadline --sim evict one
	loadline --sim resume one
}

@test "a handle is refused by its own process, and when what it is of has been freed" {
	needs_preload
	start_steps one
	does one context "alloc 3" "share 1 $T/handle"
	says one "open 1 3 $T/handle" 201
	says one free ok
	start_steps two
	does two context
	says two "open 1 3 $T/handle" 1
	grep -q "cannot be opened: nobody shares it" "$T/two.err"
}

@test "an ungoverned process cannot open it, and a program that ends shares no more" {
	needs_preload
	start_steps one
	does one context "alloc 3" "share 1 $T/handle"
	printf 'context\nopen 1 3 %s\n' "$T/handle" |
		LD_LIBRARY_PATH=$LOADLINE_BUILD/sim python3 "$BATS_TEST_DIRNAME/evict_steps.py" >"$T/native"
	[ "$(tail -n 1 "$T/native")" = "open 1" ]
	stop one KILL
	start_steps two
	does two context
	says two "open 1 3 $T/handle" 1
}

@test "what is shared is told to the next loadlined" {
	needs_preload
	start_steps one
	does one context "alloc 3" "share 1 $T/handle"
	end_daemon KILL
	start_steps two
	does two context "open 1 3 $T/handle"
}
