# What is checked when a job starts holds for each change, and at each later start.
# shellcheck disable=SC2034,SC2153,SC2154 # STATE is for queue_helper.bash; FIRST and SECOND are of service_helper.bash; status and output those of bats
load queue_helper

# work_as UID NAME ARG...: a job with a program that is on its first card.
work_as() {
	local uid=$1 name=$2
	shift 2
	start_as "$uid" "$name" "$LOADLINE" --sim run "$@" -- \
		"$LOADLINE_BUILD/sim/loadline-simctl" busy 0 5% for 300s
	wait_for 60 shows "select(has(\"claim\") and .pid == $(pid_of "$name"))"
}

@test "more memory or compute than what is left beside a job's place is refused, and what it gets is not given to others" {
	start_queue
	work_as "$FIRST" first -i 4 --mem 40G --compute 50%
	work_as "$SECOND" second -i 4 --mem 30G --compute 40%
	refuses "$FIRST" 4 "the job's place on a card has 40 GiB, and no more is left" set "$(claim_of first)" --mem 60G
	refuses "$FIRST" 4 "memory: " set "$(claim_of first)" --mem none
	refuses "$FIRST" 4 "the job's place on a card has 50%, and no more is left" set "$(claim_of first)" --compute 70%
	refuses "$FIRST" 4 "compute: " set "$(claim_of first)" --compute none
	as "$FIRST" "$LOADLINE" --sim set "$(claim_of first)" --mem 45G --compute 60%
	refuses "$FIRST" 125 "no place is free now" run -i 4 --mem 8G --no-wait -- true
	# Less leaves the place as it is: it may get so much again.
	as "$FIRST" "$LOADLINE" --sim set "$(claim_of first)" --mem 20G
	refuses "$FIRST" 125 "no place is free now" run -i 4 --mem 8G --no-wait -- true
	as "$FIRST" "$LOADLINE" --sim set "$(claim_of first)" --mem 45G
}

@test "a job without a limit of memory takes all of a shared card" {
	start_queue
	run_as "$SECOND" first -i 4 --mem 10G
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	refuses "$FIRST" 125 "no place is free now" run -i 4 --mem none --no-wait -- true
	run_as "$FIRST" second -i 5 --mem none
	wait_for 60 grep -q "cards=GPU-" "$T/second.out"
	refuses "$FIRST" 125 "no place is free now" run -i 5 --mem 8G --no-wait -- true
}

@test "a job that was let forward for a short time gets no time in which those that it overtook are planned" {
	start_queue
	run_as "$FIRST" first --cards 3 --time 2h
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$FIRST" second --cards 4 --time 1h
	wait_for 60 says second "is number 1 in the queue"
	run_as "$FIRST" third --cards 1 --time 2m
	wait_for 60 grep -q "cards=GPU-" "$T/third.out"
	refuses "$FIRST" 1 "others have the job's cards by then" set "$(number_of 2)" --time +9h
	as "$FIRST" "$LOADLINE" --sim set "$(number_of 2)" --time +1h
	# Whoever was first may, as at its start; and an operator decides for all.
	as "$FIRST" "$LOADLINE" --sim set "$(number_of 0)" --time +1h
	loadline --sim set "$(number_of 2)" --time +9h
}

@test "a job gets no time in which its card is kept for others, also after a restart of loadlined" {
	STATE=$T/state
	write_config "maintenance:" "  - {name: driver, cards: \"0-3\", from: \"$(date -d '+3 hours' '+%F %H:%M')\", for: 4h}"
	start_queue
	run_as "$FIRST" first --cards 4 --time 1h
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$FIRST" second --cards 1 --time 1h
	wait_for 60 says second "is number 1 in the queue"
	refuses "$FIRST" 1 "others have the job's cards by then" set "$(number_of 0)" --time +3h
	restart_loadlined
	wait_for 60 queue '[.[].queued | select(.) | .state] == ["running", "waiting"]'
	refuses "$FIRST" 1 "others have the job's cards by then" set "$(number_of 0)" --time +3h
	as "$FIRST" "$LOADLINE" --sim set "$(number_of 0)" --time +1h
}

@test "class high beyond the guarantee is refused to a running job as to a new one" {
	write_config
	sed -i 's/classes: \[normal, low\]/classes: [high, normal, low]/' "$T/conf/loadline.yaml"
	start_queue
	work_as "$FIRST" first -i 4 --mem 60G --class high
	work_as "$FIRST" second -i 5 --mem 60G
	refuses "$FIRST" 4 "class high" set "$(claim_of second)" --class high
	as "$FIRST" "$LOADLINE" --sim set "$(claim_of second)" --class low
}

@test "a waiting job whose user has left the tenant does not start" {
	start_queue
	run_as "$FIRST" first --cards 4 --time 2h
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$FIRST" second --cards 1 --time 1h
	wait_for 60 says second "is number 1 in the queue"
	sed -i "s/users: \[\"$FIRST\"\]/users: [\"4242\"]/" "$T/conf/loadline.yaml"
	kill -HUP "$(pid_of service)"
	wait_for 60 eval 'as "$FIRST" "$LOADLINE" --sim limits 2>&1 | grep -q "no tenant"'
	stop first TERM
	finish second
	[ "$status" -eq 125 ]
	says second "is in no tenant"
}

@test "a waiting job does not start when the budget of its tenant is spent meanwhile" {
	STATE=$T/state
	write_config
	sed -i 's/^    classes: \[normal, low\]/    budget: {gpu-hours: 0.004, per: month, then: refuse}\n&/' "$T/conf/loadline.yaml"
	start_queue
	work_as "$FIRST" first -i 0-3 --mem 8G --time 2h
	run_as "$FIRST" second --cards 1 --time 1h
	wait_for 60 says second "is number 1 in the queue"
	wait_for 60 grep -q "new jobs are refused" "$T/world/loadlined.log"
	stop first TERM
	finish second
	[ "$status" -eq 125 ]
	says second "budget: 0.004 GPU hours a month"
}

@test "a place without a job costs its user ten times its time" {
	cp "$BATS_TEST_DIRNAME/take_places.py" "$T/" # where other users may read it
	start_queue
	as "$FIRST" /usr/bin/python3 "$T/take_places.py" "$T/world/system/socket" 2
	refuses "$FIRST" 125 "no place is free now" run --cards 1 --no-wait -- true
	run_as "$FIRST" first --cards 1
	wait_for 60 says first "waits, because a place of this user was not used"
	queue '.[0].queued.waits_for.kind == "unused"'
	as "$SECOND" "$LOADLINE" --sim run --mem 4G --no-wait -- true
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
}
