# The queue for the cards of a machine: who waits, for whom, and which cards a job gets.
# shellcheck disable=SC2034,SC2153 # others and warn are for, FIRST and SECOND are of queue_helper.bash
load queue_helper

# bats test_tags=main
@test "a job gets cards of its own, a second one those that are left, and a third one waits for the first" {
	start_queue
	run_as "$FIRST" first --cards 2 --time 2h
	wait_for 60 grep -q "cards=GPU-.*,GPU-" "$T/first.out"
	queue '.[0].queued | .state == "running" and .tenant == "research" and .cards == [0, 1] and .time_seconds == 7200'
	# Others are told the number of the queue, not the command.
	as "$SECOND" "$LOADLINE" --sim status --json | jq -s -e "any(.[].job?; .tenant == \"job-$(number_of 0)\")"
	run_as "$FIRST" second --cards 2 --time 1h
	wait_for 60 grep -q "cards=GPU-" "$T/second.out"
	queue '[.[].queued.cards] == [[0, 1], [2, 3]]'
	run_as "$FIRST" third --cards 4 --time 1h
	wait_for 60 says third "is number 1 in the queue; waits for job"
	wait_for 60 queue '.[2].queued | .state == "waiting" and .position == 1 and .waits_for.kind == "job" and (.start - .since > 7000)'
	stop first TERM
	stop second TERM
	wait_for 60 grep -q "cards=GPU-" "$T/third.out"
	says third "starts"
}

# bats test_tags=main
@test "a job reads its cards as numbers, as status shows them" {
	start_queue
	run_as "$FIRST" first --cards 2 --time 2h
	wait_for 60 grep -q "cards=GPU-.*,GPU-" "$T/first.out"
	run -0 as "$FIRST" "$LOADLINE" --sim run --cards 2 --time 1h -- python3 "$BATS_TEST_DIRNAME/numbers.py"
	[ "$output" = "2,3 in PCI order" ]
	run -0 as "$FIRST" env CUDA_VISIBLE_DEVICES=5 "$LOADLINE" --sim run -i 5 --mem 4G -- python3 "$BATS_TEST_DIRNAME/numbers.py"
	[ "$output" = "5 in any order" ]
}

# bats test_tags=main
@test "shared cards: the job gets the card with the least memory left, and no card is promised twice" {
	start_queue
	run_as "$FIRST" large --mem 60G
	wait_for 60 grep -q "cards=GPU-" "$T/large.out"
	run_as "$FIRST" medium --mem 40G
	wait_for 60 grep -q "cards=GPU-" "$T/medium.out"
	run_as "$SECOND" small --mem 10G
	wait_for 60 grep -q "cards=GPU-" "$T/small.out"
	queue '[.[].queued.cards] == [[4], [5], [4]]'
	# 100 GiB are research's guarantee: of the rest the course has up to its limit of 60 GiB.
	run_as "$SECOND" other --mem 60G
	sleep 1
	refuses "$SECOND" 125 "no place is free now" run --mem 60G --no-wait -- true
	queue 'length == 4'
}

# bats test_tags=main
@test "what can never start is refused at once, with its reason" {
	start_queue
	refuses "$FIRST" 125 "time: 11 h asked for, 10 h allowed for each user" run --time 11h -- true
	refuses "$FIRST" 125 "cards: no group has so many cards" run --cards 5 -- true
	refuses "$SECOND" 125 "memory: 70 GiB asked for, 60 GiB allowed for each user, 0 GiB in use" run --mem 70G -- true
	refuses "$SECOND" 125 "the rest is guaranteed to others: it would never start" run --cards 3 -- true
	refuses "$SECOND" 125 "class: high asked for, tenant course may use low" run --class high -- true
}

@test "a wait that is over, a canceled one, and one whose program is ended leave the queue" {
	start_queue
	run_as "$FIRST" first --cards 4 --time 2h
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	refuses "$FIRST" 125 "no place is free now" run --cards 1 --no-wait -- true
	refuses "$FIRST" 125 "the wait is over" run --cards 1 --wait 1s -- true
	run_as "$FIRST" second --cards 1
	wait_for 60 says second "is number 1 in the queue"
	refuses "$SECOND" 1 "the job is another user's" queue cancel "$(number_of 1)"
	as "$FIRST" "$LOADLINE" --sim queue cancel "$(number_of 1)"
	finish second
	[ "$status" -eq 125 ]
	says second "the job was taken out of the queue"
	run_as "$FIRST" third --cards 1
	wait_for 60 says third "is number 1 in the queue"
	stop third KILL
	wait_for 60 queue 'length == 1'
}

# bats test_tags=main
@test "an operator pauses, moves and releases jobs; --after waits for the end of a job" {
	start_queue
	run_as "$FIRST" first --cards 4 --time 2h
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$FIRST" second --cards 4 --time 1h
	wait_for 60 says second "is number 1 in the queue"
	run_as "$FIRST" third --cards 4 --time 1h
	wait_for 60 says third "is number 2 in the queue"
	refuses "$FIRST" 1 "only an operator may do that" queue move "$(number_of 2)" 1
	loadline --sim queue move "$(number_of 2)" 1
	wait_for 60 queue '[.[].queued.position] == [null, 2, 1]'
	loadline --sim queue pause "$(number_of 2)"
	wait_for 60 queue '.[2].queued.state == "paused"'
	stop first TERM
	wait_for 60 grep -q "cards=GPU-" "$T/second.out"
	run_as "$FIRST" fourth --mem 8G --after "$(number_of 0)"
	wait_for 60 says fourth "waits for the end of job"
	[ ! -s "$T/fourth.out" ]
	loadline --sim queue release "$(number_of 1)"
	stop second TERM
	wait_for 60 grep -q "cards=GPU-" "$T/third.out"
	wait_for 60 grep -q "cards=GPU-" "$T/fourth.out"
}

@test "a user pauses and releases the own waiting job, but not another's, nor what an operator has paused" {
	start_queue
	run_as "$FIRST" first --cards 4 --time 2h
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$FIRST" second --cards 4 --time 1h
	wait_for 60 says second "is number 1 in the queue"
	local number
	number=$(number_of 1)
	refuses "$SECOND" 1 "the job is another user's" queue pause "$number"
	as "$FIRST" "$LOADLINE" --sim queue pause "$number"
	wait_for 60 queue '.[1].queued | .state == "paused" and .waits_for.kind == "owner"'
	wait_for 60 says second "paused by its user"
	as "$FIRST" "$LOADLINE" --sim queue release "$number"
	wait_for 60 queue '.[1].queued.state == "waiting"'
	loadline --sim queue pause "$number"
	wait_for 60 queue '.[1].queued | .state == "paused" and .waits_for.kind == "operator"'
	as "$FIRST" "$LOADLINE" --sim queue pause "$number"
	refuses "$FIRST" 1 "an operator has paused the job" queue release "$number"
	loadline --sim queue release "$number"
	wait_for 60 queue '.[1].queued.state == "waiting"'
}

# bats test_tags=main
@test "--after of a job that nobody knows is refused, and so is one that the user may not see" {
	others=nothing
	start_queue
	run_as "$FIRST" first --cards 1 --time 2h
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	refuses "$FIRST" 125 "job 4711: unknown, or it ended too long ago" run --mem 4G --after 4711 -- true
	refuses "$FIRST" 125 ": unknown, or it ended too long ago" run --mem 4G --after "$(($(number_of 0) + 2))" -- true
	refuses "$SECOND" 125 ": unknown, or it ended too long ago" run --mem 4G --after "$(number_of 0)" -- true
	number=$(number_of 0)
	stop first TERM
	wait_for 60 queue 'length == 0'
	as "$FIRST" "$LOADLINE" --sim run --mem 4G --after "$number" -- true
}

# bats test_tags=main
@test "queue cancel --user takes all jobs of that user out, those that run and those that wait, and no others" {
	start_queue
	run_as "$FIRST" first --cards 2 --time 2h
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$FIRST" second --cards 4 --time 1h
	wait_for 60 says second "is number 1 in the queue"
	run_as "$SECOND" other --mem 4G
	wait_for 60 grep -q "cards=GPU-" "$T/other.out"
	refuses "$SECOND" 1 "the job is another user's" queue cancel --user "$FIRST"
	queue 'length == 3'
	refuses 0 2 "queue cancel: jobs or --user, not both" queue cancel --user "$FIRST" 1
	refuses 0 1 "user 61236: no jobs in the queue" queue cancel --user 61236
	loadline --sim queue cancel --user "$FIRST"
	finish second
	[ "$status" -eq 125 ]
	finish first
	wait_for 60 queue "length == 1 and .[0].queued.uid == $SECOND"
	is_running other
	as "$SECOND" "$LOADLINE" --sim queue cancel --user "$SECOND"
	finish other
}

# bats test_tags=main
@test "drain --stop stops the jobs on the cards as at the end of their time, and no others" {
	start_queue
	run_as "$FIRST" first --cards 1
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$FIRST" second --cards 1
	wait_for 60 grep -q "cards=GPU-" "$T/second.out"
	refuses "$FIRST" 1 "only an operator may drain a card" queue drain 0 --stop
	refuses 0 2 "--stop: acts at once" queue drain 0 --stop --at 22:00
	refuses 0 2 "--undo: stops no job" queue drain 0 --stop --undo
	loadline --sim queue drain 0 --stop
	wait_for 60 has_ended first
	wait_for 60 queue 'any(.[].window; .cards == [0] and .to == null)'
	is_running second
	loadline --sim queue drain 0 --undo
}

@test "a drained card gets no job, and its own goes on" {
	start_queue
	run_as "$FIRST" first --cards 1
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	refuses "$FIRST" 1 "only an operator may drain a card" queue drain 0
	loadline --sim queue drain 0-2
	wait_for 60 queue 'any(.[].window; .cards == [0, 1, 2] and .to == null)'
	is_running first
	run_as "$FIRST" second --cards 2
	wait_for 60 says second "cards of whole are drained or in maintenance; start unknown"
	loadline --sim queue drain 1,2 --undo
	wait_for 60 grep -q "cards=GPU-" "$T/second.out"
	queue '.[1].queued.cards == [1, 2]'
}

# bats test_tags=main
@test "drain --at 22:00 means the next time at which it is so late, and a date that is past or in no calendar is refused" {
	local bad at
	start_queue
	at=$(date -d '+3 hours' +%H:%M)
	loadline --sim queue drain 1 --at "$at"
	wait_for 60 queue "any(.[].window; .cards == [1] and (.from - now | . > 10000 and . < 10900))"
	at=$(date -d '-3 hours' +%H:%M)
	loadline --sim queue drain 2 --at "$at"
	wait_for 60 queue "any(.[].window; .cards == [2] and (.from - now | . > 75400 and . < 75700))"
	for bad in "2020-12-12 22:00" "$(date -d '-1 minute' '+%F %H:%M')" "2027-02-31 10:00" "2027-12-12 25:00" 25:00 22 tomorrow; do
		refuses 0 2 "--at: '$bad'" queue drain 3 --at "$bad"
	done
	refuses 0 2 "--undo: acts at once" queue drain 1 --undo --at 22:00
	queue 'all(.[].window; .cards != [3])'
}

# bats test_tags=main
@test "a program without a handler runs to the end of its time, and one that wishes a signal gets it before" {
	warn='{before: 2s}'
	start_queue
	start_program plain as "$FIRST" "$LOADLINE" --sim run --mem 8G --time 5s -- \
		sh -c 'trap "echo stopped; exit 3" TERM; echo started; while :; do sleep 0.1; done'
	start_program wishes as "$FIRST" "$LOADLINE" --sim run --mem 8G --time 5s --signal USR1@3s -- \
		sh -c 'trap "echo warned" USR1; trap "echo stopped; exit 4" TERM; echo started; while :; do sleep 0.1; done'
	finish plain
	[ "$status" -eq 3 ]
	finish wishes
	[ "$status" -eq 4 ]
	[ "$(cat "$T/wishes.out")" = "$(printf 'started\nwarned\nstopped')" ]
	refuses "$FIRST" 125 "signal: 60 s before the end of 30 s" run --time 30s --signal USR1 -- true
	refuses "$FIRST" 125 "--signal: 'KILL@1s': not one of" run --time 30s --signal KILL@1s -- true
}

@test "no job starts that would not end before maintenance" {
	write_config "maintenance:" "  - {name: driver, cards: \"0-3\", from: \"$(date -d '+3 hours' '+%F %H:%M')\", for: 4h}"
	start_queue
	refuses "$FIRST" 125 "no place is free now" run --cards 1 --time 5h --no-wait -- true
	run_as "$FIRST" brief --cards 1 --time 2h
	wait_for 60 grep -q "cards=GPU-" "$T/brief.out"
	run_as "$FIRST" lengthy --cards 1 --time 4h
	wait_for 60 queue '.[1].queued | .state == "waiting" and .start - .since > 6 * 3600'
}

@test "a loadlined that was late leaves a job over its time the grace" {
	start_queue
	start_as "$FIRST" first "$LOADLINE" --sim run --mem 8G --time 2s -- \
		sh -c 'trap : USR1; trap "sleep 0.5; echo ended; exit 3" TERM; echo started; while :; do sleep 0.1; done'
	wait_for 60 grep -q started "$T/first.out"
	freeze_process "$(pid_of service)"
	sleep 5 # the end of the time and the grace
	kill -CONT "$(pid_of service)"
	finish first
	[ "$status" -eq 3 ]
	grep -q ended "$T/first.out"
}

# bats test_tags=main
@test "a job over its time is warned, then ended, then killed; more time puts that off" {
	start_queue
	start_as "$FIRST" first "$LOADLINE" --sim run --mem 8G --time 4s -- \
		sh -c 'trap "echo warned" USR1; trap "echo stopped" TERM; echo "cards=$CUDA_VISIBLE_DEVICES"; while :; do sleep 0.2; done'
	wait_for 60 grep -q warned "$T/first.out"
	wait_for 60 grep -q stopped "$T/first.out"
	finish first
	[ "$status" -eq 137 ]
	wait_for 60 queue 'length == 0'
	start_as "$FIRST" second "$LOADLINE" --sim run --mem 8G --time 8s -- \
		sh -c 'trap "echo stopped; exit 3" TERM; echo started; while :; do sleep 0.2; done'
	wait_for 60 grep -q started "$T/second.out"
	as "$FIRST" "$LOADLINE" --sim set "$(number_of 0)" --time +1h
	queue '.[0].queued.time_seconds == 3608'
	refuses "$FIRST" 1 "more than max-time allows" set "$(number_of 0)" --time +20h
	sleep 9
	is_running second
	as "$FIRST" "$LOADLINE" --sim queue cancel "$(number_of 0)"
	finish second
	[ "$status" -eq 3 ]
}

@test "without a queue, run is as before, and what only a queue can do is refused" {
	run loadline --sim run --mem 8G -- true
	[ "$status" -eq 0 ]
	for option in "--time 1h" "--timeout 1m" "--no-wait" "--after 3" "--cards 2" "-i auto"; do
		# shellcheck disable=SC2086 # an option and its value
		run loadline --sim run --mem 8G $option -- true
		[ "$status" -eq 125 ]
		[[ $output == *"this machine has no queue for its cards"* ]]
	done
	run loadline --sim queue list
	[ "$status" -ne 0 ]
	[[ $output == *"this machine has no queue"* ]]
}

@test "a job that registers without a place is refused, and without a queue it is accepted" {
	cp "$BATS_TEST_DIRNAME/register_job.py" "$T/" # where other users may read it
	start_queue
	run as "$FIRST" /usr/bin/python3 "$T/register_job.py" "$T/world/system/socket"
	echo "$output"
	[[ $output == "refused -116 the job has no place on the cards"* ]]
	stop service TERM
	write_config
	sed -i '/^cards:/,/parts/d; s/guarantee: .*//' "$T/conf/loadline.yaml"
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	wait_for 60 eval '[[ $(as "$FIRST" /usr/bin/python3 "$T/register_job.py" "$T/world/system/socket") == accepted ]]'
}

# bats test_tags=main
@test "a restarted loadlined knows which cards its running jobs have, and waiting jobs ask again" {
	start_queue
	run_as "$FIRST" first --cards 4 --time 2h
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$FIRST" second --cards 1 --time 1h
	wait_for 60 says second "is number 1 in the queue"
	stop service KILL
	sleep 5 # the monitor of the first job tries rarely by now, and the second command twice a second
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	wait_for 60 queue '[.[].queued | [.state, .card_count]] | sort == [["running", 4], ["waiting", 1]]'
	[ ! -s "$T/second.out" ]
	stop first TERM
	wait_for 60 grep -q "cards=GPU-" "$T/second.out"
}

@test "without a sensor run says that there is no queue, and starts; options of the queue are refused with that reason" {
	start_service
	run_as "$FIRST" first --mem 4G
	wait_for 60 grep -q "^cards=" "$T/first.out"
	says first "starts without a place: the sensor does not report the cards, so this machine has no queue"
	run -125 as "$FIRST" "$LOADLINE" --sim run --mem 4G --time 1h -- true
	[[ $output == *"--time: the sensor does not report the cards"* ]]
	run -3 as "$FIRST" "$LOADLINE" --sim queue list
	[[ $output == *"the sensor does not report the cards"* ]]
}

# saved FILTER: does the stored state have it?
saved() {
	jq -e "$1" "$STATE/queue.json" >/dev/null
}

@test "a restarted loadlined has the drained cards, the time of its running jobs, and the order and pauses of the waiting ones" {
	STATE=$T/state
	start_queue
	loadline --sim queue drain 2
	loadline --sim queue drain 3 --at "$(date -d '+3 hours' '+%F %H:%M')"
	run_as "$FIRST" first --cards 2 --time 2h
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	first=$(number_of 0)
	as "$FIRST" "$LOADLINE" --sim set "$first" --time +1h
	began=$(loadline --sim queue list --json | jq -s '.[0].queued.start')
	for name in second third fourth; do
		run_as "$FIRST" "$name" --cards 2 --time 1h
		wait_for 60 says "$name" "in the queue"
	done
	second=$(number_of 1) third=$(number_of 2) fourth=$(number_of 3)
	loadline --sim queue pause "$second"
	loadline --sim queue move "$fourth" 1
	wait_for 60 saved "([.jobs[].position] == [0, 0, 0, 1]) and ([.jobs[].is_paused] == [false, true, false, false]) and (.drains | length == 2)"
	restart_loadlined
	wait_for 60 queue "[.[].queued | [.number, .state]] == [[$first, \"running\"], [$second, \"paused\"], [$third, \"waiting\"], [$fourth, \"waiting\"], [null, null], [null, null]]"
	queue ".[0].queued | .time_seconds == 10800 and .start == $began and .cards == [0, 1]"
	queue '.[3].queued.position == 1'
	queue '[.[].window | select(.to == null and . != null) | .cards] | sort == [[2], [3]]'
	stop first TERM
	wait_for 60 grep -q "cards=GPU-" "$T/fourth.out"
	[ ! -s "$T/second.out" ] && [ ! -s "$T/third.out" ]
}

@test "a restarted loadlined counts on: the use of users, and a time that ends while it is away" {
	STATE=$T/state
	start_queue
	run_as "$FIRST" first --mem 8G --time 15s
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	wait_for 60 saved ".use[] | select(.tenant == \"research\" and .uid == $FIRST).use_ns > 50000000"
	before=$(jq '.use[0].use_ns' "$STATE/queue.json")
	last=$(jq .last_job "$STATE/queue.json")
	restart_loadlined
	finish first
	# 8 of 80 GiB for 13 s, when the warning ends it, and not from the start of loadlined on.
	wait_for 60 saved "(.jobs == []) and .use[0].use_ns > $before and .use[0].use_ns > 1200000000 and .use[0].use_ns < 2000000000 and .last_job >= $last"
	stop service TERM
	start_loadlined
	wait_for 60 queue 'length == 0'
	run_as "$FIRST" next --mem 8G
	wait_for 60 queue ".[0].queued.number > $last"
}

@test "how jobs ended is known to the next loadlined, also if a job ends while there is none" {
	STATE=$T/state
	start_queue
	run_as "$FIRST" first --mem 8G
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	first=$(number_of 0)
	stop first TERM
	wait_for 60 saved ".ended[] | select(.number == $first)"
	restart_loadlined
	refuses "$FIRST" 125 "job $first" run --mem 8G --after-ok "$first" -- true
	run_as "$FIRST" second --mem 8G
	wait_for 60 grep -q "cards=GPU-" "$T/second.out"
	second=$(number_of 0)
	wait_for 60 saved ".jobs[] | select(.number == $second and .has_run)"
	stop service KILL
	stop second TERM
	start_loadlined
	wait_for 60 saved ".ended[] | select(.number == $second and .has_run)"
}

@test "after a reboot no job is there, and drained cards stay drained; a damaged state is put aside" {
	STATE=$T/state
	start_queue
	loadline --sim queue drain 2
	run_as "$FIRST" first --mem 8G
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	first=$(number_of 0)
	wait_for 60 saved ".jobs[] | select(.number == $first and .has_run)"
	stop service KILL
	stop first KILL
	jq -c '.boot = "another"' "$STATE/queue.json" >"$T/queue.json"
	cat "$T/queue.json" >"$STATE/queue.json"
	start_loadlined
	wait_for 60 queue 'length == 1 and .[0].window.cards == [2]'
	saved ".ended[] | select(.number == $first and .has_run and (.has_status | not))"
	stop service KILL
	echo '{"version": 1,' >"$STATE/queue.json"
	start_loadlined
	wait_for 60 queue 'length == 0'
	[ -e "$STATE/queue.json.damaged" ]
}

@test "a job of class high that is beyond the guarantee with others waits for them, and the others start" {
	write_config
	sed -i 's/classes: \[normal, low\]/classes: [high, normal, low]/' "$T/conf/loadline.yaml"
	start_queue
	run_as "$FIRST" first --mem 60G --class high
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$FIRST" second --mem 60G --class high
	wait_for 60 says second "is number 1 in the queue"
	refuses "$FIRST" 125 "no place is free now" run --mem 60G --class high --no-wait -- true
	as "$FIRST" "$LOADLINE" --sim run --mem 40G --class high --no-wait -- true
	run_as "$FIRST" third --mem 60G
	wait_for 60 grep -q "cards=GPU-" "$T/third.out"
	[ ! -s "$T/second.out" ]
	stop first TERM
	wait_for 60 grep -q "cards=GPU-" "$T/second.out"
}

@test "what run cannot start is refused before it waits, and a place that it cannot use is free at once" {
	start_queue
	refuses "$FIRST" 125 "a program's context alone takes some 528 MiB of card" run --mem 500M -- true
	queue 'length == 0'
	CUDA_MPS_PIPE_DIRECTORY=$T/none refuses "$FIRST" 125 "no MPS daemon" run --mem 4G --by space -- true
	wait_for 3 queue 'length == 0'
}

@test "a job that asks while loadlined is restarted asks the next one" {
	start_queue
	kill -STOP "$(pid_of service)"
	run_as "$FIRST" first --cards 2 --time 2h
	wait_for 60 says first "waits for a place in the queue, which loadlined does not give yet"
	stop service KILL
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	wait_for 60 grep -q "cards=GPU-.*,GPU-" "$T/first.out"
	queue '.[0].queued | .state == "running" and .card_count == 2'
}

@test "a job whose loadlined is killed between its place and its registration asks the next one for a place" {
	start_queue
	run_as "$FIRST" first --cards 4 --time 2h
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$FIRST" second --cards 4 --time 1h
	wait_for 60 says second "is number 1 in the queue"
	# Its monitor takes the place that it gets, and it does not come for it.
	kill -STOP "$(pid_of second)"
	stop first TERM
	wait_for 60 queue '.[0].queued.state == "starting"'
	restart_loadlined
	wait_for 60 has_queue
	kill -CONT "$(pid_of second)"
	wait_for 60 grep -q "cards=GPU-.*,GPU-" "$T/second.out"
	[ "$(grep -c "WARN the job has lost its place on the cards, and asks for another one" "$T/second.err")" -eq 1 ]
	queue '.[0].queued | .state == "running" and .card_count == 4'
	# So too if it comes too late, for which it waits longer.
	run_as "$FIRST" third --cards 4 --time 1h
	wait_for 60 says third "is number 1 in the queue"
	kill -STOP "$(pid_of third)"
	stop second TERM
	wait_for 60 queue '.[0].queued.state == "starting"'
	wait_for 60 queue 'length == 0'
	kill -CONT "$(pid_of third)"
	wait_for 60 says third "waits, because a place of this user was not used"
	says third "the job has lost its place on the cards, and asks for another one"
}

# on_terminal COLUMNS FILE COMMAND...: what the command writes on a terminal of that width.
on_terminal() {
	local columns=$1 file=$2
	shift 2
	script -qec "stty cols $columns rows 40; $*" /dev/null | tr -d '\r' >"$file"
}

# bats test_tags=main
@test "queue alone is a table, which says by which rule each job waits" {
	start_queue
	run_as "$SECOND" running --cards 2 --time 1h
	wait_for 60 grep -q "cards=GPU-" "$T/running.out"
	run_as "$SECOND" part --mem 50G
	wait_for 60 grep -q "cards=GPU-" "$T/part.out"
	# Two cards are empty, and kept for research.
	run_as "$SECOND" guest --cards 1
	wait_for 60 says guest "guarantee of research on whole: 2 cards kept, 0 left, 1 wanted"
	run_as "$SECOND" limited --mem 20G
	wait_for 60 says limited "limit of each user of course: 60 GiB, 50 GiB in use, 20 GiB wanted"
	run_as "$FIRST" owner --cards 4 --time 2h
	wait_for 60 says owner "too few free cards of whole: 4 cards wanted, 2 free"
	loadline --sim queue >"$T/table"
	cat "$T/table"
	[ "$(head -1 "$T/table" | xargs)" = "job user tenant name cards memory state since start end why it waits" ]
	grep -Eq "^[0-9]+ +$SECOND +course +sh +0,1 +- +running +[-0-9: ]+ +- +[-0-9: ]+ +-$" "$T/table"
	grep -Eq "^[0-9]+ +$SECOND +course +sh +1 wanted +16 GiB +waiting .* guarantee of research on whole: 2 cards kept, 0 left, 1 wanted$" "$T/table"
	"$BATS_TEST_DIRNAME/columns.py" table <"$T/table"
	queue '[.[].queued | select(.why != null).why | [.rule, .of, .cards, .wanted, .limit, .in_use, .kept, .free]] == [
		["guarantee", "research", "whole", 1, null, null, 2, 0],
		["user-limit", "course", "parts", 21474836480, 64424509440, 53687091200, null, null],
		["room", null, "whole", 4, null, null, null, 2]]'
	on_terminal 80 "$T/narrow" "$LOADLINE" --sim queue
	cat "$T/narrow"
	[ "$("$BATS_TEST_DIRNAME/columns.py" width <"$T/narrow")" -le 80 ]
	grep -q "^  guarantee of research on whole: 2 cards kept, 0 left, 1 wanted" "$T/narrow"
	# The same by the name of the command, and with what is asked for alone.
	loadline --sim queue list | cmp - "$T/table"
	[ "$(loadline --sim queue -u "$SECOND" --state waiting --json | jq -s '([.[].queued.uid] | unique == ['"$SECOND"']) and length == 2')" = true ]
	[ "$(loadline --sim queue --user "$SECOND" | tail -n +2 | wc -l)" -eq 4 ]
	[ "$(loadline --sim queue --tenant research | tail -n +2 | wc -l)" -eq 1 ]
	[ "$(loadline --sim queue --tenant research --state running)" = "no job runs or waits" ]
}

@test "what the configuration hides of others is not in the reason either" {
	others=nothing start_queue
	run_as "$FIRST" owner --cards 2 --time 1h
	wait_for 60 grep -q "cards=GPU-" "$T/owner.out"
	run_as "$SECOND" first --cards 2
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$SECOND" second --cards 1
	wait_for 60 says second "in the queue"
	run_as "$FIRST" large --cards 4
	wait_for 60 says large "in the queue"
	as "$SECOND" "$LOADLINE" --sim queue --json | jq -s -e '[.[].queued] | length == 2 and all(.[]; .uid == '"$SECOND"') and
		(.[1].why | .rule == "room" and .wanted == 1 and .free == null and .of == null and .job == null)' >"$T/hidden"
	as "$FIRST" "$LOADLINE" --sim queue | grep "too few free cards of whole: 4 cards wanted$"
	queue '.[2].queued.why.free == 0'
}

# own_first GUARANTEE: a machine whose last card is of group course, and of which tenant course is guaranteed that.
own_first() {
	write_config
	sed -i "s/cards: \"4-6\", give: memory, by: auto}/&\n  - {name: course, cards: \"7\", give: memory}/
		s/of: whole, cards: 2}, {of: parts, memory: 100G}/of: whole, cards: 1}/
		s/- name: course/&\n    guarantee: [$1]/" "$T/conf/loadline.yaml"
	start_queue
}

# bats test_tags=main
@test "a job goes to the cards that its tenant is guaranteed, as long as they have room" {
	own_first "{of: course, memory: 60G}"
	run_as "$SECOND" first --mem 30G
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$FIRST" other --mem 10G
	wait_for 60 grep -q "cards=GPU-" "$T/other.out"
	run_as "$SECOND" second --mem 30G
	wait_for 60 grep -q "cards=GPU-" "$T/second.out"
	queue '[.[].queued.cards] == [[7], [4], [7]]'
	# Research is guaranteed a whole card, and nothing else: a job that says neither cards nor memory gets it.
	run_as "$FIRST" own
	wait_for 60 grep -q "cards=GPU-" "$T/own.out"
	run_as "$FIRST" more
	wait_for 60 grep -q "cards=GPU-" "$T/more.out"
	queue '[.[].queued.cards] == [[7], [4], [7], [0], [4]]'
}

# bats test_tags=main
@test "a job has one number: in queue, in status for its owner and for others, and for set and cancel" {
	start_queue
	run_as "$FIRST" first --cards 4
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$FIRST" second --cards 1
	wait_for 60 says second "in the queue"
	run_as "$FIRST" third --mem 8G
	wait_for 60 grep -q "cards=GPU-" "$T/third.out"
	first=$(number_of 0) second=$(number_of 1) third=$(number_of 2)
	queue '[.[].queued | select(.state == "running") | .job_number] == ['"$first, $third"']'
	as "$FIRST" "$LOADLINE" --sim status --json | jq -s -e '[.[].job? // empty | .number] == ['"$first, $third"']'
	as "$SECOND" "$LOADLINE" --sim status --json | jq -s -e '[.[].job? // empty | [.number, .tenant]] == [
		['"$first, \"job-$first\"], [$third, \"job-$third\"]"']'
	as "$FIRST" "$LOADLINE" --sim status | grep -Eq "^$third "
	as "$FIRST" "$LOADLINE" --sim set "$third" --weight 2
	as "$FIRST" "$LOADLINE" --sim status --json | jq -s -e '[.[].job? // empty | .limits.weight] == [1, 2]'
	refuses "$SECOND" 1 "job of user" set "$first" --weight 2
	as "$FIRST" "$LOADLINE" --sim queue cancel "$third"
	finish third
	is_running first
}
