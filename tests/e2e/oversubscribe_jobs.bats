# Jobs of several processes, or over several cards, whose memory together is more than the cards have.
load evict_helper

export NEEDS="bench/c/evictee"

# job NAME BYTES CARD...: a tenant with a process on each card that is named, which has so much memory, and works until
# end_of NAME.
job() {
	local name=$1 bytes=$2
	shift 2
	# shellcheck disable=SC2016
	start_until_told "$name" "$LOADLINE" --sim run --evictable --tenant "$name" -- bash -c 'status=0
	for card in "${@:3}"; do
		CUDA_VISIBLE_DEVICES=$card "$1" --bytes "$2" --until-eof --idle 20ms <&0 &
	done
	while [ -n "$(jobs -r)" ]; do wait -n || status=1; done
	exit $status' job "$LOADLINE_BUILD/bench/c/evictee" "$bytes" "$@"
}

are_ready() {
	[ "$(grep -c '"event":"ready"' "$T/$1.out")" -eq "${2-2}" ]
}

# ends_right NAME [PROCESSES]: all of them end, after end_of, and every word of their memory is what it must be.
ends_right() {
	finish "$1"
	if [ "$status" -ne 0 ] || [ "$(json "$1" 'select(.event == "end" and .wrong == 0) | .event' | wc -l)" -ne "${2-2}" ]; then
		echo "$1 ended with $status"
		show
		return 1
	fi
}

# went_together TENANT [PROCESSES]: none of it has begun to leave before all were quiet, and none has gone on before all
# had begun to return. The last one alive leaves alone.
went_together() {
	awk -v name="tenant $1: is " -v end="tenant $1: has ended" -v count="${2-2}" '
		index($0, end) { count-- }
		index($0, name) {
			state = substr($0, index($0, name) + length(name))
			if (state == "stopped")
				quiet++
			else if (state == "away")
				away++
			else if (state == "returning" && away)
				away--
			else if (state == "here")
				quiet = 0
			if ((state == "leaving" && count > 1 && quiet < count) || (state == "here" && away))
				bad = bad "\n" NR ": " $0
		}
		END { print bad; exit bad != "" }' "$LOADLINE_SIM_DIR/loadlined.log"
}

# process_of NAME N: the number of the job's Nth process, from 1.
process_of() {
	pgrep -P "$(pid_of "$1")" evictee | sed -n "$2p"
}

two_cards() {
	printf 'cards 2\ncard 0 memory %s\ncard 1 memory %s\ncard 0 sm 8\ncard 1 sm 8\n' "$1" "$1" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
}

@test "two jobs of two processes that do not fit together take turns, each as a whole, and end with the right bytes" {
	small_card 1304M # 196 beside the contexts
	job one 59M 0 0
	wait_for 60 are_ready one
	job two 59M 0 0
	wait_for 60 moved one evicted
	wait_for 60 moved one resumed
	end_of one two
	ends_right one
	ends_right two
	went_together one
	went_together two
}

@test "two jobs over two cards take turns on both together, and end with the right bytes" {
	two_cards 750M
	job one 118M 0 1
	wait_for 60 are_ready one
	job two 118M 1 0
	wait_for 60 moved one evicted
	end_of one two
	ends_right one
	ends_right two
	went_together one
	went_together two
}

@test "a job over two cards leaves both for one that lacks room on one of them" {
	two_cards 750M
	job wide 118M 0 1
	wait_for 60 are_ready wide
	job narrow 118M 0
	wait_for 60 moved wide evicted
	end_of wide narrow
	ends_right wide
	ends_right narrow 1
	went_together wide
}

@test "a program on two cards leaves both, and returns to both" {
	two_cards 750M
	start_steps both
	does both "card 0" "alloc 118" "card 1" "alloc 118"
	job narrow 118M 0
	wait_for 60 are_ready narrow 1
	end_of narrow
	ends_right narrow 1
	does both check
	moved both evicted
	went_together both
}

@test "processes of one job that do not fit together take turns" {
	small_card
	job one 118M 0 0
	wait_for 60 moved one evicted
	end_of one
	ends_right one
}

@test "one process killed in the middle: the others of its job and the other job end with the right bytes" {
	small_card 1304M
	job one 59M 0 0
	wait_for 60 are_ready one
	job two 59M 0 0
	wait_for 60 moved one evicted
	kill -KILL "$(process_of one 1)"
	end_of one two
	finish one
	[ "$status" -eq 1 ]
	[ "$(json one 'select(.event == "end" and .wrong == 0) | .event' | wc -l)" -eq 1 ]
	ends_right two
}

@test "loadlined killed in the middle: both jobs end with the right bytes" {
	small_card 1304M
	job one 59M 0 0
	wait_for 60 are_ready one
	job two 59M 0 0
	wait_for 60 said one leaving
	end_daemon KILL
	wait_for 60 said two leaving
	end_daemon KILL
	end_of one two
	ends_right one
	ends_right two
}

@test "while one process of a job does not answer the others stay, and go on" {
	small_card 1304M
	job one 59M 0 0
	wait_for 60 are_ready one
	wait_for 60 said one here 2
	freeze_process "$(process_of one 1)"
	job two 59M 0 0
	wait_for 60 grep -q "tenant one: cannot be evicted: the program does not answer" "$LOADLINE_SIM_DIR/loadlined.log"
	wait_for 60 said one here
	[ "$(grep -c "tenant one: is leaving$" "$LOADLINE_SIM_DIR/loadlined.log")" -eq 0 ]
	kill -CONT "$(process_of one 1)"
	end_of one two
	ends_right one
	ends_right two
}
