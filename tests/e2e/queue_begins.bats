# The system's loadlined with a queue begins to serve while jobs run under their users' own loadlined.
# shellcheck disable=SC2153,SC2154 # FIRST and SECOND are of service_helper.bash; status and output are those of bats
load queue_helper

# own_job UID NAME MEMORY CARD: a job that has and uses the card, under the user's own loadlined.
own_job() {
	start_as "$1" "$2" "$LOADLINE" --sim run -i "$4" --tenant team --mem "$3" -- \
		"$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms for 100s
	wait_for 60 governs "$1"
}

governs() {
	as "$1" "$LOADLINE" --sim doctor --no-trial | grep "^ok: loadlined: version .*: 1 job of 1 tenant, @loadline/$1/"
}

# is_governed NAME GIB: by the loadlined that status asks, with that limit.
is_governed() {
	shows "select(has(\"claim\") and .pid == $(pid_of "$1") and .memory_limit_bytes == $2 * 1073741824)"
}

# logged COUNT TEXT: so many lines of loadlined's log have the text.
logged() {
	[ "$(cat "$T/service.err" "$T/world/loadlined.log" | grep -cE -- "$2")" -eq "$1" ]
}

# no_bad_messages: loadlined has ended no connection as one that sent what is no message.
no_bad_messages() {
	loadline --sim doctor --no-trial >"$T/doctor" || true
	run ! grep "no message of loadline" "$T/doctor"
}

@test "jobs that ran before the service go on with their limits, also beyond those of their tenant, and the queue counts them" {
	open_world h100x8
	write_config
	own_job "$FIRST" first 10G 0
	own_job "$SECOND" second 70G 4
	start_queue
	wait_for 60 is_governed first 10
	wait_for 60 is_governed second 70
	wait_for 60 queue '[.[].queued | select(.state == "running") | .cards] | sort == [[0], [4]]'
	logged 1 "a job of user $FIRST \(.*\) ran before this service: it goes on with its limits, and counts"
	logged 1 "a job of user $SECOND \(.*\) ran before this service"
	# Their cards are not given to others: three of the four whole ones are left.
	run_as "$FIRST" third --cards 3 --time 1h
	wait_for 60 grep -q "cards=GPU-" "$T/third.out"
	queue '[.[].queued | select(.card_count == 3) | .cards] == [[1, 2, 3]]'
	# Beyond the limit of its tenant it may get less, and not more again.
	as "$SECOND" "$LOADLINE" --sim set team --mem 65G
	wait_for 60 is_governed second 65
	run ! as "$SECOND" "$LOADLINE" --sim set team --mem 70G
	[[ $output == *"tenant course"* ]]
	# The next loadlined has them too.
	restart_loadlined
	wait_for 60 is_governed first 10
	is_running second
	no_bad_messages
}

@test "a job that began after the service without it is refused and goes on outside of jobs, which is said once" {
	open_world h100x8
	write_config
	start_queue
	chmod 700 "$T/world/system" # the user's programs do not reach it
	own_job "$FIRST" late 10G 0
	chmod 755 "$T/world/system"
	wait_for 60 logged 1 "a job of user $FIRST \(.*\) has no place on the cards and is refused; what it runs goes on outside of jobs"
	wait_for 60 shows "select(has(\"process\") and .pid == $(pid_of late) and .governed == false)"
	sleep 5 # its monitor asks again each 2 s
	is_running late
	logged 1 "has no place on the cards"
	queue '. == []'
}
