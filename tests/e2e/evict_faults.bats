# What goes wrong while memory leaves the card, is away, or returns. A program keeps every byte, or hears of it.
# shellcheck disable=SC2030,SC2031,SC2154 # run sets output, status and stderr for the lines that follow it
load evict_helper

export NEEDS="tests/e2e/evict_worker python3 sim/loadline-simctl"

@test "a host without memory refuses, and the program goes on; it can leave when there is some" {
	needs_preload
	poor_host 100
	start_poor one --keep --bytes 70M
	fails_with 4 "tenant one: the host has memory for 64 of the 7" --sim evict one
	start_worker two --bytes 30M
	loadline --sim evict two
	loadline --sim resume two
	poor_host 900
	loadline --sim evict one
	loadline --sim resume one
	ends_well one
	ends_well two
}

# ---- kills ----

# dies: tenant one is killed; others can be evicted.
dies() {
	kill -KILL "$(pid_of one)" || true
	finish one
	fault heal
	wait_for 60 shows_none 'select(.tenant == "one")'
	start_worker two --bytes 35M
	loadline --sim evict two
	loadline --sim resume two
	ends_well two
}

@test "a program that is killed amid its way out leaves others whole" {
	needs_preload
	start_worker one --bytes 35M
	fault hang cuMemcpyDtoHAsync_v2 1000s count 1
	start evict --sim evict one
	wait_for 60 said one leaving
	kill -KILL "$(pid_of one)"
	finish evict
	[ "$status" -eq 1 ]
	grep -q "tenant one: the program has ended" "$T/evict.err"
	dies
}

@test "a program that is killed while it is away is gone" {
	needs_preload
	start_worker one --bytes 35M
	loadline --sim evict one
	dies
}

@test "a program that is killed amid its way back is gone" {
	needs_preload
	start_worker one --bytes 35M
	loadline --sim evict one
	fault hang cuMemCreate 1000s count 1
	start resume --sim resume one
	wait_for 60 is_now one returning
	dies
	finish resume
	[ "$status" -eq 1 ]
}

@test "a program whose loadlined is killed is evicted by the next one" {
	needs_preload
	start_worker one --bytes 4M
	end_daemon KILL
	loadline --sim evict one
	loadline --sim resume one
	ends_well one
}

# ends_between: loadlined is killed, and the monitors, which would start another, come to that one later: monitors_go_on.
ends_between() {
	mapfile -t monitors < <(pids_of_monitors)
	kill -STOP "${monitors[@]}"
	end_daemon KILL
	until_served no
}

monitors_go_on() {
	kill -CONT "${monitors[@]}"
}

# socket_of_world: the pattern of the name that this world's loadlined has in /proc/net/unix.
socket_of_world() {
	printf '@loadline/[0-9]*/%x-%x-[0-9a-f]*$' "$(stat -c %d "$LOADLINE_SIM_DIR")" "$(stat -c %i "$LOADLINE_SIM_DIR")"
}

# is_served SOCKET: somebody has that name.
is_served() {
	grep -q "$1" /proc/net/unix
}

# until_served yes|no: looks all the time, by one program each time, because who waits for the monitors does so for a
# second.
until_served() {
	# shellcheck disable=SC2034 # of too_late
	local served='' began=$SECONDS allowed=20 socket
	socket=$(socket_of_world)
	until [ "$served" = "$1" ]; do
		! too_late
		! is_served "$socket" && served=no || served=yes
	done
}

@test "a program is found although its loadlined was started just now, and does not know it yet" {
	needs_preload
	start_worker one --bytes 4M
	wait_for 60 is_settled
	for command in "evict one" "resume one" "suspend one" "resume one"; do
		ends_between
		# shellcheck disable=SC2086
		start command --sim $command
		until_served yes # the command has started it
		start status --sim status --json
		monitors_go_on
		finish command
		[ "$status" -eq 0 ] || { show; false; }
		finish status
		jq -se 'any(.[]; .tenant == "one")' <"$T/status.out"
	done
	ends_between
	start set --sim set one --mem 1G
	monitors_go_on
	finish set
	[ "$status" -eq 0 ]
	ends_well one
}

is_settled() {
	shows 'select(.tenant == "one") | .state == "running"'
}

@test "evict, suspend and resume start loadlined if nobody serves; set and status do not" {
	loadline --sim status
	fails_with 1 "nobody: no such claim or tenant" --sim set nobody --mem 1G
	! is_served "$(socket_of_world)" || false
	for command in evict suspend resume; do
		start command --sim "$command" nobody
		until_served yes
		finish command
		grep -q "nobody: no such claim or tenant" "$T/command.err"
		end_daemon KILL
		until_served no
	done
}

@test "loadlined is killed amid a move out: the program leaves all the same, and the command waits for it" {
	needs_preload
	start_worker one --bytes 4M
	fault hang cuMemcpyDtoHAsync_v2 1s count 1
	start evict --sim evict one
	wait_for 60 said one leaving
	end_daemon KILL
	finish evict
	[ "$status" -eq 0 ]
	shows 'select(.tenant == "one") | .state == "evicted"'
	loadline --sim resume one
	ends_well one
}

@test "a batch that cannot be copied brings the others back" {
	needs_preload
	start_steps one
	does one context
	for _ in {1..70}; do
		tell one "alloc 2"
	done
	does one sync
	fault fail cuMemcpyDtoHAsync_v2 CUDA_ERROR_OPERATING_SYSTEM after 64 count 1
	fails_with 4 "tenant one: the driver cannot copy its memory" --sim evict one
	wait_for 60 is_now one here
	does one check
	loadline --sim evict one
	loadline --sim resume one
	does one check
}

@test "loadlined is killed while a program is away by hand: it stays so, and the next one resumes it" {
	needs_preload
	start_worker one --bytes 4M
	loadline --sim evict one
	end_daemon KILL
	kill -TERM "$(pid_of one)"
	wait_for 60 shows 'select(.tenant == "one") | .state == "evicted"'
	is_running one
	loadline --sim resume one
	finish one
	[ "$status" -eq 0 ]
	has one 'select(.wrong == 0)'
}

@test "without a loadlined for five seconds memory comes back by itself" {
	needs_preload
	start_worker one --bytes 4M
	loadline --sim evict one
	end_daemon STOP
	kill -TERM "$(pid_of one)"
	sleep 6
	is_running one # its connection is there
	for pid in $(pids_of_monitors); do kill -STOP "$pid"; done
	end_daemon KILL
	finish one
	[ "$status" -eq 0 ]
	grep -q "^loadline: loadlined does not answer: this program's memory returns to card 0 by itself" "$T/one.err"
	has one 'select(.wrong == 0)'
	for pid in $(pids_of_monitors); do kill -KILL "$pid"; done
}

pids_of_monitors() {
	pids_of loadline-job
}

@test "loadlined is killed amid a move back: the program returns all the same" {
	needs_preload
	start_worker one --bytes 4M
	loadline --sim evict one
	fault hang cuMemcpyHtoDAsync_v2 1s count 1
	start resume --sim resume one
	wait_for 60 is_now one returning
	end_daemon KILL
	finish resume
	[ "$status" -eq 0 ]
	ends_well one
}

@test "a move goes on when the command that asked for it is killed" {
	needs_preload
	start_worker one --bytes 4M
	freeze one
	start evict --sim evict one
	wait_for 60 said one stopping
	stop evict KILL
	kill -CONT "$(pid_of one)"
	wait_for 60 said one away
	freeze one
	start resume --sim resume one
	wait_for 60 asked one
	stop resume KILL
	kill -CONT "$(pid_of one)"
	wait_for 60 is_now one here
	ends_well one
}

# ---- no room ----

@test "a program that finds no room waits for it, and is never out of memory" {
	needs_preload
	start_worker one --bytes 30M
	loadline --sim evict one
	fault card 0 used all
	start resume --sim resume one
	kill -TERM "$(pid_of one)"
	wait_for 60 uses_from 140000
	is_running resume
	is_running one
	fault card 0 used 0
	finish resume
	[ "$status" -eq 0 ]
	finish one
	[ "$status" -eq 0 ]
}

@test "room that goes while a program returns is waited for" {
	needs_preload
	start_worker one --bytes 30M
	loadline --sim evict one
	fault fail cuMemCreate CUDA_ERROR_OUT_OF_MEMORY count 20
	loadline --sim resume one
	ends_well one
}

@test "a program that waits for room when loadlined is killed returns by the next one" {
	needs_preload
	start_worker one --bytes 30M
	loadline --sim evict one
	fault fail cuMemCreate CUDA_ERROR_OUT_OF_MEMORY
	start resume --sim resume one
	wait_for 60 grep -q "tenant one: finds no room" "$LOADLINE_SIM_DIR/loadlined.log"
	end_daemon KILL
	wait_for 60 said one returning 2
	fault heal
	finish resume
	[ "$status" -eq 0 ]
	ends_well one
}

@test "programs that wait for room return in the order in which they were resumed" {
	needs_preload
	for name in one two three; do
		start_worker "$name" --bytes 30M
		loadline --sim evict "$name"
	done
	free=$((143155 - $(used_mib))) # the driver keeps a part
	fault card 0 used all
	for name in two three one; do
		start "resume_$name" --sim resume "$name"
		wait_for 60 asked "$name"
	done
	# 256 MiB are left to others. There is room for one program more. They take turns then.
	fault card 0 used $((free - 256 - 50))M
	for name in one two three; do
		finish "resume_$name"
		[ "$status" -eq 0 ]
	done
	[ "$(sed -n '/one: is to be resumed/,$ s/.*tenant \(.*\): is returning/\1/p' "$LOADLINE_SIM_DIR/loadlined.log" | head -n 3 | tr '\n' ' ')" = "two three one " ]
	fault card 0 used 0
	for name in one two three; do
		ends_well "$name"
	done
}

asked() {
	grep -q "tenant $1: is to be resumed" "$LOADLINE_SIM_DIR/loadlined.log"
}

# ---- the card is lost ----

@test "a program whose card is lost on its way out hears of it, and so does the command" {
	needs_preload
	start_worker one --bytes 4M
	freeze one
	start evict --sim evict one
	wait_for 60 said one stopping
	fault card 0 xid 31 pid "$(pid_of one)"
	kill -CONT "$(pid_of one)"
	finish evict
	[ "$status" -ne 0 ]
	finish one
	[ "$status" -eq 1 ]
}

@test "a program whose card is lost while it is away hears of it, and so does the command" {
	needs_preload
	start_worker one --bytes 4M
	loadline --sim evict one
	# The program looks at its card once a second, and would end before the command comes.
	freeze one
	start resume --sim resume one
	wait_for 60 asked one
	fault card 0 xid 31 pid "$(pid_of one)"
	fault fail cuMemCreate CUDA_ERROR_LAUNCH_FAILED count 1
	kill -CONT "$(pid_of one)"
	finish resume
	[ "$status" -eq 4 ]
	grep "tenant one: the card is lost to it" "$T/resume.err"
	finish one
	[ "$status" -eq 1 ]
}

@test "programs whose card is gone hear of it from the driver" {
	needs_preload
	start_worker one --bytes 4M
	loadline --sim evict one
	fault card 0 gone on
	wait_for 60 has_ended "$(pid_of one)"
	finish one
	[ "$status" -eq 1 ]
}

# ---- forks, threads, kernels ----

@test "a child that is forked amid a move does not hold the memory" {
	needs_preload
	start_steps one
	does one context
	empty=$(used_mib)
	does one "alloc 10" "alloc 20"
	fault hang cuMemcpyDtoHAsync_v2 1s after 1 count 1
	start evict --sim evict one
	wait_for 60 said one leaving
	does one fork
	finish evict
	[ "$status" -eq 0 ]
	wait_for 60 uses_below $((empty + 1))
	loadline --sim resume one
	does one check
}

@test "a thread that stays in the driver is named, and the program goes on until it is out" {
	needs_preload
	start_steps one
	does one context "alloc 3"
	fault hang cuMemcpyDtoH_v2 10s count 1
	tell one check
	wait_for 60 is_in_call cuMemcpyDtoH_v2
	fails_with 4 "tenant one: its thread $(pid_of one) is inside cuMemcpyDtoH_v2" --sim evict one --wait 100ms
	run -0 loadline --sim evict one --wait 60s
	loadline --sim resume one
	does one check
}

# is_in_call FUNCTION: has the call come whose fault of the simulator was for one?
is_in_call() {
	! fault show | grep -q "^fault of $1:"
}

@test "a program that allocates while it becomes quiet is evicted all the same" {
	needs_preload
	start_steps one
	does one context "alloc 3"
	fault hang cuMemCreate 2s count 1
	tell one "alloc 200"
	wait_for 60 is_in_call cuMemCreate
	run -0 loadline --sim evict one --wait 60s
	[[ $output == *" 204 MiB in "* ]]
	loadline --sim resume one
	does one check
}

@test "a kernel that does not end is said, and the program is evicted when it has ended" {
	needs_preload
	start_steps one
	does one context "alloc 3" wait
	fails_with 4 "tenant one: its work on the card does not end" --sim evict one --wait 200ms
	threads=$(find "/proc/$(pid_of one)/task" -mindepth 1 -maxdepth 1 | wc -l)
	fails_with 4 "its work on the card does not end" --sim evict one --wait 200ms
	# No thread is left for each attempt.
	[ "$(find "/proc/$(pid_of one)/task" -mindepth 1 -maxdepth 1 | wc -l)" -le "$threads" ]
	does one go
	loadline --sim evict one --wait 60s
	loadline --sim resume one
	does one check
}

@test "a card that takes no program off: a suspend waits for the end of the kernel" {
	needs_preload
	"$LOADLINE_BUILD/sim/loadline-simctl" card 0 off no
	start_steps one
	does one context "alloc 3" wait
	fails_with 4 "its work on the card does not end" --sim suspend one --wait 200ms
	does one go
	loadline --sim suspend one --wait 60s
	loadline --sim resume one
	does one check
}

@test "a kernel is suspended in its midst, and goes on later; it is evicted when it has ended" {
	needs_preload
	start_steps one
	does one context "alloc 3" "kernel 4"
	run -0 --separate-stderr loadline --sim suspend one --wait 200ms
	[[ $output == "suspended 0/0, tenant one: "* ]]
	# It has not ended four seconds later, and the program cannot leave yet.
	sleep 4.5
	fails_with 4 "tenant one: its work on the card does not end" --sim evict one --wait 200ms
	shows 'select(.tenant == "one" and .state == "stopped")'
	sleep 4.5
	loadline --sim evict one --wait 60s
	loadline --sim resume one
	does one check
	tell one "kernel 2"
	loadline --sim suspend one
	loadline --sim resume one
	does one check
}

@test "who ends a program that is suspended in a kernel does not wait for it" {
	needs_preload
	for name in TERM KILL; do
		start_steps "$name"
		does "$name" context "alloc 3" "kernel 1000"
		loadline --sim suspend "$name"
		stop "$name" "$name"
		wait_for 60 shows_none 'select(has("claim"))'
	done
}

# moves ARG...: done, or refused with the word for it. Never is the program stopped until the time of the command is over.
moves() {
	run timeout 300 "$LOADLINE" --sim "$@"
	echo "$output"
	[ "$status" -eq 0 ] || [[ $status -eq 4 && $output == *"a host function of its streams does not end while its threads are stopped"* ]]
}

@test "a program whose host functions need the thread that launches is evicted and suspended, or refused at once" {
	needs_preload
	mkfifo "$T/in"
	exec 8<>"$T/in"
	# shellcheck disable=SC2016
	start_program one sh -c 'exec 8>&-; exec "$LOADLINE" --sim run --evictable --tenant one -- "$0" <"$1"' \
		"$LOADLINE_BUILD/tests/cases/case_hostlock" "$T/in"
	wait_for 60 grep -q full "$T/one.out"
	for step in evict resume evict resume suspend resume suspend resume evict resume evict resume; do
		moves "$step" one
	done
	exec 8>&-
	finish one
	[ "$status" -eq 0 ]
}

@test "evict and resume say what they wait for, and --timeout of resume ends its wait" {
	needs_preload
	start_steps one
	does one context "alloc 3" wait
	start evict --sim evict one --timeout 1000s
	wait_for 60 grep -q "^loadline: evicting 0/[0-9]*, tenant one: 0 of [0-9]* MiB off the card: \(waits for its work on the card to end\|makes memory of the host ready\)" "$T/evict.err"
	is_running evict
	does one go
	finish evict
	[ "$status" -eq 0 ]
	fault card 0 used all
	fails_with 4 "tenant one: there is no room for it yet: it returns as soon as the card has room" --sim resume one --timeout 3s
	[[ $stderr == "loadline: resuming 0/"*", tenant one: "*"waits for room on the card"* ]]
	fault card 0 used 0
	wait_for 60 is_now one here
	does one check
}

@test "--timeout of resume is for room alone: memory that is on its way back is waited for" {
	needs_preload
	start_steps one
	does one context "alloc 3"
	loadline --sim evict one
	fault hang cuMemcpyHtoDAsync_v2 5s count 1
	run -0 loadline --sim resume one --timeout 2s
	[[ $output == *"resumed 0/0, tenant one: "* ]]
	does one check
}

@test "a program that is stopped does not hold the command, nor others" {
	needs_preload
	start_worker one --bytes 4M
	start_worker two --bytes 4M
	freeze one
	start evict --sim evict one --wait 100ms
	loadline --sim evict two
	loadline --sim resume two
	finish evict
	[ "$status" -eq 4 ]
	grep -q "tenant one: the program does not answer" "$T/evict.err"
	kill -CONT "$(pid_of one)"
	wait_for 60 is_now one here
	loadline --sim evict one
	loadline --sim resume one
	ends_well one
	ends_well two
}

@test "an evict that cannot be leaves a suspended program suspended" {
	needs_preload
	poor_host 100
	start_poor one --keep --bytes 70M
	loadline --sim suspend one
	fails_with 4 "the host has memory for 64 of the 7" --sim evict one
	kill -TERM "$(pid_of one)"
	wait_for 60 is_now one stopped
	is_running one
	loadline --sim resume one
	finish one
	[ "$status" -eq 0 ]
}

# ---- calls while it is away ----

@test "calls wait while the memory is away, and then work" {
	needs_preload
	for name in alloc free export peer sync fork; do
		start_steps "$name"
		does "$name" context "alloc 3" "alloc 1"
	done
	for name in alloc free export peer sync fork; do
		loadline --sim evict "$name"
		before=$(wc -l <"$T/$name.out")
		case $name in
		alloc) tell alloc "alloc 2" ;;
		fork) does fork fork && tell fork check ;;
		*) tell "$name" "$name" ;;
		esac
		wait_for 60 waits "$name"
		[ "$(wc -l <"$T/$name.out")" -le $((before + 1)) ]
	done
	for name in alloc free export peer sync fork; do
		loadline --sim resume "$name"
		wait_for 60 has_lines "$name" "$(wc -l <"$T/$name.told")"
		[[ $name == peer ]] || does "$name" check
	done
}

# waits NAME: it has read what it was told, and does not go on.
waits() {
	[ "$(cut -d ' ' -f 3 "/proc/$(pid_of "$1")/stat")" = S ]
}

# ---- two at once ----

@test "two evictions at once are one, and a resume ends an evict that waits" {
	needs_preload
	start_worker one --bytes 4M
	start_worker two --bytes 4M
	freeze one
	start first --sim evict one --wait 60s
	start second --sim evict one --wait 60s
	wait_for 60 said one stopping
	loadline --sim evict two
	kill -CONT "$(pid_of one)"
	finish first
	[ "$status" -eq 0 ]
	finish second
	[ "$status" -eq 0 ]
	loadline --sim resume one
	loadline --sim resume two
	freeze one
	start third --sim evict one --wait 60s
	wait_for 60 is_now one stopping
	start resume --sim resume one
	finish third
	[ "$status" -eq 1 ]
	grep -q "another command has asked for something else meanwhile" "$T/third.err"
	kill -CONT "$(pid_of one)"
	finish resume
	[ "$status" -eq 0 ]
	ends_well one
	ends_well two
}

@test "a program that is suspended and resumed at once keeps its memory" {
	needs_preload
	start_worker one --bytes 4M
	freeze one
	start suspend --sim suspend one
	wait_for 60 said one stopping
	start resume --sim resume one
	finish suspend
	[ "$status" -eq 1 ]
	kill -CONT "$(pid_of one)"
	finish resume
	[ "$status" -eq 0 ]
	ends_well one
}

# ---- descriptors ----

@test "a program without free descriptors is evicted all the same, and returns" {
	needs_preload
	start_steps one
	does one context "alloc 3" "alloc 5" "alloc 3" "alloc 3" "alloc 3" "descriptors 0"
	loadline --sim evict one
	loadline --sim resume one
	does one "descriptors -1" check
}

@test "an allocation that the driver refuses although the card has room is out of memory, and that is said" {
	needs_preload
	start_steps one
	does one context "alloc 3"
	fault fail cuMemCreate CUDA_ERROR_OUT_OF_MEMORY
	tell one "alloc 3"
	wait_for 60 grep -q "^alloc 2$" "$T/one.out"
	grep -q "card 0 has room, and the driver refuses an allocation of 3 MiB" "$T/one.err"
	fault heal
	tell one "alloc 3"
	tell one check
	wait_for 60 grep -q "^check ok$" "$T/one.out"
}

# no_room_for_both MIB: of a card others have so much, and the contexts of two programs leave some 780 MiB besides.
# Program one has 160 MiB in allocations of 2.
no_room_for_both() {
	needs_preload
	printf 'cards 1\ncard 0 memory 1334M\ncard 0 sm 8\n' >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	start_steps one
	does one context
	for _ in {1..80}; do
		tell one "alloc 2"
	done
	does one sync
	start_steps two
	does two context
	fault card 0 used "$1M"
	# A program that is leaving has freed nothing yet when others are granted its room.
	fault hang cuMemcpyDtoHAsync_v2 500ms count 1
}

# granted_early MIB: the allocation of program two was granted before the memory of program one had left.
granted_early() {
	grep "tenant two: room for $1 MiB: \|tenant one: is away" "$LOADLINE_SIM_DIR/loadlined.log" >"$T/order"
	grep -m 1 . "$T/order" | grep -q "granted, while others leave"
}

@test "an allocation takes its room piece by piece, while others leave" {
	no_room_for_both 300
	does two "alloc 420"
	granted_early 420
	does two check
	does one check
}

@test "a small allocation, which has no pieces, is granted when its room is there" {
	no_room_for_both 560
	for _ in {1..180}; do
		tell two "alloc 1"
	done
	wait_for 60 grep -q "tenant two: room for 2 MiB: granted" "$LOADLINE_SIM_DIR/loadlined.log"
	does two check
	does one check
	[ "$(grep -c "tenant two: room for 2 MiB: granted, while others leave" "$LOADLINE_SIM_DIR/loadlined.log")" -eq 0 ]
}

@test "loadlined is killed while an allocation waits for room: the next one is asked for it, and gives it" {
	needs_preload
	small_card
	start_steps one
	does one context "alloc 120" wait # it cannot leave
	start_steps two
	does two context
	tell two "alloc 90"
	wait_for 60 grep -q "tenant two: an allocation of 90 MiB waits for room" "$LOADLINE_SIM_DIR/loadlined.log"
	# A program reads the card before it tells the next loadlined what it is. It asks for room every 50 ms meanwhile.
	fault hang cuMemGetInfo_v2 300ms
	end_daemon KILL
	wait_for 60 asked_twice
	fault heal
	does one go
	does two check
}

asked_twice() {
	[ "$(grep -c "tenant two: an allocation of 90 MiB waits for room" "$LOADLINE_SIM_DIR/loadlined.log")" -eq 2 ]
}

@test "an allocation whose room does not come after all gives up its pieces, and asks again" {
	no_room_for_both 300
	# Of the second batch. Without it there is room for the first piece of two.
	fault fail cuMemcpyDtoHAsync_v2 CUDA_ERROR_OPERATING_SYSTEM after 40 count 1
	does two "alloc 440"
	granted_early 440
	grep -q "tenant one: cannot be evicted" "$LOADLINE_SIM_DIR/loadlined.log"
	[ "$(grep -c "tenant two: an allocation of .* waits for room" "$LOADLINE_SIM_DIR/loadlined.log")" -ge 2 ]
	does two check
	does one check
}

