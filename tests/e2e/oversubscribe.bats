# Programs whose memory together is more than the card has, and what a request (--mem-request) promises.
load evict_helper

export NEEDS="bench/c/evictee python3"

# evictee NAME BYTES [OPTION OF run]... [-- OPTION OF evictee...]: it works until end_of NAME, all the time but for short
# pauses, in which other tests have the processor.
evictee() {
	local name=$1 bytes=$2 options=()
	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	start_until_told "$name" "$LOADLINE" --sim run --evictable --tenant "$name" "${options[@]}" -- "$LOADLINE_BUILD/bench/c/evictee" \
		--bytes "$bytes" --until-eof --idle 20ms "$@"
}

is_ready() {
	has "$1" 'select(.event == "ready")'
}

# ends_right NAME: it ends, after end_of, and every word of its memory is what it must be.
ends_right() {
	wait_for 180 has "$1" 'select(.event == "end")'
	finish "$1"
	if [ "$status" -ne 0 ] || ! has "$1" 'select(.event == "end" and .wrong == 0)'; then
		echo "$1 ended with $status"
		show
		return 1
	fi
}

never_moved() {
	! grep "tenant $1: \(away\|back\)" "$LOADLINE_SIM_DIR/loadlined.log"
}

# overlapped NAME OTHER: OTHER began to return while NAME was on its way out.
overlapped() {
	awk -v name="tenant $1: is " -v other="tenant $2: is returning" '
		index($0, name) { is_leaving = index($0, name "leaving") > 0 }
		index($0, other) && is_leaving { found = 1 }
		END { exit !found }' "$LOADLINE_SIM_DIR/loadlined.log"
}

# longest_move: in seconds, of all moves.
longest_move() {
	sed -n 's/.* MiB in \([0-9.]*\) s$/\1/p' "$LOADLINE_SIM_DIR/loadlined.log" | sort -n | tail -n 1
}

@test "two programs of 60 % of the card each take turns, and both end with the right bytes" {
	small_card 750M # the contexts of two programs take 554 of it
	evictee one 118M
	wait_for 60 is_ready one
	evictee two 118M
	wait_for 60 moved one evicted
	wait_for 60 moved one resumed
	end_of one two
	ends_right one
	ends_right two
	# A turn is ten times as long as the moves that it costs, and at least 1 s. Each program waits for the other's turn
	# and for the moves around it.
	for name in one two; do
		expect '$wait <= 2 * ([1, 20 * $move] | max) + 6 * $move + 5' --argjson move "$(longest_move)" \
			--argjson wait "$(json "$name" 'select(.event == "end") | .longest_round_seconds')"
	done
}

@test "one of two that exchange returns while the other is on its way out" {
	small_card 1334M
	evictee one 470M
	wait_for 60 is_ready one
	evictee two 470M
	wait_for 120 overlapped one two
	wait_for 120 overlapped two one
}

# The three have to leave room for the fourth one's context: no program leaves for that.
@test "of four notebooks that work now and then, of which three have room, the idle ones make room for those that work" {
	small_card 1312M
	for name in a b c d; do
		evictee "$name" 60M -- --idle 2s
	done
	wait_for 60 eval '[ "$(grep -o "tenant [a-d]: evicted" "$LOADLINE_SIM_DIR/loadlined.log" | sort -u | wc -l)" -ge 2 ]'
	end_of a b c d
	for name in a b c d; do
		ends_right "$name"
	done
}

@test "two that fit are there together: nothing moves" {
	small_card
	evictee one 75M
	evictee two 75M -- --idle 1s
	wait_for 60 is_ready one
	wait_for 60 is_ready two
	sleep 4
	end_of one two
	ends_right one
	ends_right two
	never_moved '[a-z]*'
}

@test "a program does not leave for one of a class below; one of a class below leaves at once" {
	small_card
	evictee high 118M --class high -- --idle 1s
	wait_for 60 is_ready high
	evictee low 118M --class low
	wait_for 120 grep -q OUT_OF_MEMORY "$T/low.err"
	finish low
	[ "$status" -eq 1 ]
	end_of high
	ends_right high
	evictee low 118M --class low
	wait_for 60 is_ready low
	evictee high 118M --class high
	wait_for 60 is_ready high
	moved low evicted
	end_of high low
	ends_right high
	ends_right low
	never_moved high
}

@test "a program within its request is not moved for others; for it others leave" {
	small_card
	evictee promised 75M --mem-request 400M -- --idle 1s
	wait_for 60 is_ready promised
	evictee greedy 175M --class high
	wait_for 120 grep -q OUT_OF_MEMORY "$T/greedy.err"
	finish greedy
	[ "$status" -eq 1 ]
	kill -KILL "$(pid_of promised)"
	finish promised
	# Room that it gives up for a moment it might not get again.
	evictee greedy 150M -- --keep
	wait_for 60 is_ready greedy
	evictee promised 75M --mem-request 400M
	wait_for 60 is_ready promised
	moved greedy evicted
	end_of promised greedy
	ends_right promised
	ends_right greedy
	never_moved promised
}

@test "a program whose room is taken waits in order, and goes on" {
	small_card
	evictee waits 118M
	wait_for 60 is_ready waits
	loadline --sim evict waits
	evictee promised 118M --mem-request 450M
	wait_for 60 is_ready promised
	start resume --sim resume waits
	wait_for 60 grep -q "tenant waits: is to be resumed" "$LOADLINE_SIM_DIR/loadlined.log"
	end_of promised waits
	ends_right promised
	finish resume
	[ "$status" -eq 0 ]
	ends_right waits
	never_moved promised
}

@test "an allocation that waits for room when loadlined is killed waits for the next one" {
	small_card
	evictee first 118M
	wait_for 60 is_ready first
	# Its turn begins anew, so that it is there when loadlined is killed.
	loadline --sim evict first
	loadline --sim resume first
	evictee second 118M
	wait_for 60 grep -q "tenant second: an allocation of .* waits for room" "$LOADLINE_SIM_DIR/loadlined.log"
	end_daemon KILL
	end_of second
	ends_right second
	moved first evicted
}

@test "an allocation waits for whole blocks of the card's memory: with less it would be refused again" {
	start_steps one
	does one context
	fault card 0 used all
	tell one "alloc 3"
	wait_for 60 grep -q "tenant one: an allocation of 4 MiB waits for room" "$LOADLINE_SIM_DIR/loadlined.log"
}

# bats test_tags=main
@test "requests beyond the card are refused, unless it is said that they may be" {
	small_card 1600M
	start first --sim run --mem-request 1G --mem 1500M --tenant first -- sleep 60
	wait_for 60 shows 'select(.tenant == "first") | .memory_request_bytes == 1073741824'
	fails_with 4 "--mem-request: card 0: 1024 MiB cannot be promised" --sim run --mem-request 1G -- true
	fails_with 125 "--mem-request: card 0 has only 1600 MiB" --sim run --mem-request 2G -- true
	loadline --sim run --mem-request 1G --overcommit -- true
	loadline --sim run --mem-request 500M -- true
	start second --sim run --evictable --tenant second -- sleep 60
	wait_for 60 shows 'select(.tenant == "second")'
	fails_with 4 "--mem-request: card 0: 1024 MiB cannot be promised" --sim set second --mem-request 1G
	shows 'select(.tenant == "second") | .memory_request_bytes == null'
	[ "$(loadline --sim set second --mem-request 500M)" = "card 0, second: memory request none -> 500 MiB" ]
	fails_with 2 "more than the limit" --sim set second --mem 400M
	loadline --sim status --long | grep "tenant second" | grep -q "promised 500 MiB"
	stop first
	wait_for 60 loadline --sim run --mem-request 1G -- true
}

@test "a program that can be evicted is told that all up to its limit is free" {
	small_card 1600M
	info() {
		loadline --sim run --mem 1400M "$@" -- python3 "$BATS_TEST_DIRNAME/card_memory.py" context info | tail -n 1
	}
	local alone
	alone=$(info --evictable)
	evictee other 400M
	wait_for 60 is_ready other
	[ "$(info --evictable)" = "$alone" ]
	read -r _ free total <<<"$(info)"
	[ "$total" -eq 1400 ]
	[ "$free" -lt "$(cut -d' ' -f2 <<<"$alone")" ]
}
