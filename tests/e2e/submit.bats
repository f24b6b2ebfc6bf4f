# Submitted jobs: they leave the terminal, wait in the queue if there is one, and are known by their numbers.
# shellcheck disable=SC2034,SC2153 # others is for, FIRST and SECOND are of queue_helper.bash
load queue_helper

own_setup() {
	export XDG_STATE_HOME=$T/state
	mkdir -p "$XDG_STATE_HOME"
	cd "$T" || return
}

# state_of NUMBER FILTER
state_of() {
	loadline --sim submit list --json | jq -s -e ".[].submitted | select(.number == $1) | $2" >/dev/null
}

@test "without a queue the job runs at once, keeps its folder and environment, and its output and status are known" {
	own_setup
	mkdir work
	number=$(cd work && WORD=seen loadline --sim submit --mem 8G -- sh -c 'echo "$WORD in $PWD"; echo bad >&2; exit 3' 2>"$T/submit.err")
	[ "$number" -eq 1 ]
	run -3 loadline --sim submit wait 1
	[ "$(sort work/loadline-1.out)" = "$(printf 'bad\nseen in %s' "$T/work")" ]
	grep -qF "job 1: its output goes to $T/work/loadline-1.out" "$T/submit.err"
	run loadline --sim submit log 1
	[[ $output == *"seen in $T/work"* ]]
	state_of 1 '.state == "ended" and .status == 3 and .end >= .start and .command == "sh -c echo \"$WORD in $PWD\"; echo bad >&2; exit 3"'
	[ "$(loadline --sim submit -o second-%j.log -- true 2>/dev/null)" -eq 2 ]
	loadline --sim submit wait 2
	[ -e second-2.log ]
	run -3 loadline --sim submit wait 2 1
}

@test "no job is submitted past the queue: it waits for a loadlined that starts, and is refused without one" {
	own_setup
	STATE=$T/state-of-service # without it the next loadlined may give the cards of a running job whose monitor is not back yet
	start_queue
	submit_as "$FIRST" --cards 4 --time 1h -- sleep 300
	wait_for 60 jq -e '.jobs[0].has_run' "$STATE/queue.json"
	stop service KILL
	start_program late bash -c "cd $T/home-$FIRST && exec setpriv --reuid $FIRST --regid $FIRST --clear-groups env XDG_STATE_HOME=$T/home-$FIRST '$LOADLINE' --sim submit --cards 4 -- echo past"
	wait_for 60 says late "the system's loadlined does not serve; the job waits for it"
	start_loadlined
	finish late
	[ "$status" -eq 0 ]
	wait_for 60 queue '[.[].queued.state] | sort == ["running", "waiting"]'
	[ ! -s "$T/home-$FIRST/loadline-$(cat "$T/late.out").out" ] || ! grep past "$T/home-$FIRST/loadline-$(cat "$T/late.out").out"
	stop service KILL
	run submit_as "$FIRST" --cards 4 -- touch "$T/home-$FIRST/ran"
	[ "$status" -eq 4 ]
	grep -q "the system's loadlined does not serve, and no job is submitted past its queue" "$T/submit-$FIRST.err"
	# At `run` somebody looks: it starts, and says so.
	start_as "$FIRST" past "$LOADLINE" --sim run --mem 4G -- echo ran
	finish past
	[ "$status" -eq 0 ]
	grep -q ran "$T/past.out"
	[ "$(grep -c "WARN the system's loadlined does not serve: the job runs past its queue" "$T/past.err")" -eq 1 ]
	# Without a sensor there is no queue, and the same holds.
	stop sensor KILL
	start_loadlined
	run submit_as "$FIRST" --mem 4G -- touch "$T/home-$FIRST/ran"
	[ "$status" -eq 4 ]
	grep -q "no job is submitted past the queue: the sensor does not report the cards" "$T/submit-$FIRST.err"
	[ ! -e "$T/home-$FIRST/ran" ]
}

@test "submit returns while the job runs, nothing waits for the job's end, and the job leads no session of the terminal" {
	own_setup
	number=$(loadline --sim submit -- sh -c 'ps -o sid= -p $$; cat; sleep 300' 2>&1 | tail -n 1)
	[ "$number" -eq 1 ]
	wait_for 60 state_of 1 '.state == "running"'
	wait_for 60 grep -q '[0-9]' loadline-1.out
	[ "$(tr -d ' ' <loadline-1.out)" != "$(ps -o sid= -p $$ | tr -d ' ')" ]
	loadline --sim submit log -f 1 >followed.out &
	loadline --sim submit stop 1
	wait $!
	cmp followed.out loadline-1.out
	run -143 loadline --sim submit wait 1
	run -1 loadline --sim submit stop 1
	[[ $output == *"job 1: does not run"* ]]
}

@test "a job that does not end at SIGTERM is killed after the grace" {
	own_setup
	loadline --sim submit -- sh -c 'trap "echo stopping" TERM; echo ready; while :; do sleep 0.2; done' 2>/dev/null
	wait_for 60 grep -q ready loadline-1.out
	loadline --sim submit stop --grace 1s 1
	run -137 loadline --sim submit wait 1
	grep -q stopping loadline-1.out
}

@test "a job whose supervisor was killed, and one of another boot, are listed as lost" {
	own_setup
	loadline --sim submit -- sleep 300 2>/dev/null
	wait_for 60 state_of 1 '.state == "running"'
	record=$(echo "$XDG_STATE_HOME"/loadline/jobs-sim-*/*-1.json)
	kill -KILL "$(jq .supervisor.pid "$record")"
	wait_for 60 state_of 1 '.state == "lost" and .status == null'
	run -1 loadline --sim submit wait 1
	[[ $output == *"job 1 is lost: its supervisor was killed"* ]]
	loadline --sim submit stop 1
	first=$(jq .first.pid "$record")
	wait_for 60 has_ended "$first"
	jq -c '.boot = "another"' "$record" >new.json
	mv new.json "$record"
	run loadline --sim submit list
	[[ $output == *"lost: the machine was started anew"* ]]
}

@test "what cannot start has no number, and its sentence" {
	own_setup
	run -127 loadline --sim submit -- "$T/nowhere"
	[[ $output == *"nowhere"* ]]
	run -2 loadline --sim submit
	[[ $output == *"submit: no command to run"* ]]
	run -2 loadline --sim submit --output x-%q -- true
	[[ $output == *"only %j and %% may follow"* ]]
	run -2 loadline --sim submit --time 1h -- true
	[[ $output == *"--time: this machine has no queue"* ]]
	run -1 loadline --sim submit wait 7
	[[ $output == *"job 7: you have not submitted it"* ]]
	[ -z "$(loadline --sim submit list --json)" ]
}

@test "the log is a new file or a plain one of the user: no link, no pipe, no file of another user" {
	own_setup
	mkdir -m 1777 shared
	cd shared || return
	echo precious >../precious
	chown "$FIRST" ../precious 2>/dev/null || true
	ln -s ../precious link.out
	ln ../precious hard.out
	mkfifo pipe.out
	echo foreign >foreign.out
	local name submit=(env XDG_STATE_HOME="$T/state" "$LOADLINE" --sim submit)
	chmod 666 -- *.out
	if [ "$(id -u)" -eq 0 ]; then
		chown "$FIRST" "$T/state" "$T/run" "$T/world" "$T"
		submit=(setpriv --reuid "$FIRST" --regid "$FIRST" --clear-groups "${submit[@]}")
	else
		rm foreign.out # nobody else is there to own it
	fi
	for name in *.out; do
		run -1 timeout -k 1 300 "${submit[@]}" -o "$name" -- echo written
		[[ $output == *"--output: $T/shared/$name: what lies there is no plain file of your own"* ]]
	done
	[ "$(cat ../precious)" = precious ]
	[ ! -e foreign.out ] || [ "$(cat foreign.out)" = foreign ]
	[ "$("${submit[@]}" -o plain.out -- echo one 2>/dev/null)" ]
	ln -s nowhere dangling
	run -1 "${submit[@]}" -o dangling -- echo written
	[ ! -e nowhere ]
	number=$("${submit[@]}" -o plain.out -- echo two 2>/dev/null)
	"${submit[@]}" wait "$number"
	[ "$(cat plain.out)" = two ]
	number=$("${submit[@]}" -o /dev/null -- echo unseen 2>/dev/null)
	"${submit[@]}" wait "$number"
}

@test "a program with the name of a subcommand is run after --, and in a job nothing is submitted" {
	own_setup
	printf '#!/bin/sh\necho own wait\n' >./wait
	chmod 755 ./wait
	PATH=$T:$PATH loadline --sim submit -- wait 2>/dev/null
	loadline --sim submit wait 1
	grep -q "own wait" loadline-1.out
	[ -x "$LOADLINE_BUILD/tests/e2e/launcher" ] || skip "nothing can be preloaded in this build"
	run -1 loadline --sim run --mem 4G -- "$LOADLINE" --sim submit -- true
	[[ $output == *"this program belongs to a job already"* ]]
}

@test "a submitted job waits in the queue, starts when it is its turn, and is stopped while it waits or runs" {
	start_queue
	first=$(submit_as "$FIRST" --cards 4 --time 2h -- sh -c 'echo "cards=$CUDA_VISIBLE_DEVICES"; exec sleep 300')
	wait_for 60 grep -qx "cards=0,1,2,3" "$T/home-$FIRST/loadline-$first.out"
	queue ".[0].queued.number == $first"
	second=$(submit_as "$FIRST" --cards 1 -- sh -c 'echo started; exit 5')
	third=$(submit_as "$FIRST" --cards 1 -- true)
	[ "$second" -gt "$first" ]
	state_as "$FIRST" "$second" '.state == "waiting"'
	submit_as "$FIRST" stop "$third"
	run -143 submit_as "$FIRST" wait "$third"
	wait_for 60 queue 'length == 2'
	state_as "$FIRST" "$third" '.state == "not run" and .status == 143'
	submit_as "$FIRST" stop "$first"
	run -5 submit_as "$FIRST" wait "$second"
	grep -q started "$T/home-$FIRST/loadline-$second.out"
	run -1 submit_as "$SECOND" wait "$second"
}

@test "the policy of the machine and --no-wait refuse with 4, and a wait that is over is told by wait" {
	start_queue
	run -4 submit_as "$FIRST" --time 11h -- true
	grep -q "time: 11 h asked for, 10 h allowed for each user" "$T/submit-$FIRST.err"
	first=$(submit_as "$FIRST" --cards 4 -- sleep 300)
	wait_for 60 state_as "$FIRST" "$first" '.state == "running"'
	run -4 submit_as "$FIRST" --cards 1 --no-wait -- true
	grep -q "no place is free now" "$T/submit-$FIRST.err"
	second=$(submit_as "$FIRST" --cards 1 --wait 1s -- true)
	run -4 submit_as "$FIRST" wait "$second"
	grep -q "job $second was not run: the wait is over" "$T/submit-$FIRST.err"
}

@test "--after-ok starts after status 0 alone, of own jobs, also if that job ended a while ago" {
	start_queue
	good=$(submit_as "$FIRST" --mem 8G -- sh -c 'sleep 2; exit 0')
	bad=$(submit_as "$FIRST" --mem 8G -- sh -c 'sleep 2; exit 3')
	after_good=$(submit_as "$FIRST" --mem 8G --after-ok "$good" -- echo started)
	after_bad=$(submit_as "$FIRST" --mem 8G --after-ok "$bad" -- echo started)
	submit_as "$FIRST" wait "$after_good"
	grep -q started "$T/home-$FIRST/loadline-$after_good.out"
	run -4 submit_as "$FIRST" wait "$after_bad"
	grep -q "job $bad ended with status 3" "$T/home-$FIRST/loadline-$after_bad.out"
	run as "$FIRST" "$LOADLINE" --sim run --mem 8G --after-ok "$good" -- echo "run started"
	[[ $output == *"run started"* ]]
	refuses "$FIRST" 125 "job $bad ended with status 3" run --mem 8G --after-ok "$bad" -- true
	refuses "$FIRST" 125 "job $after_bad was not run" run --mem 8G --after-ok "$after_bad" -- true
	refuses "$SECOND" 125 "is another user's" run --mem 8G --after-ok "$good" -- true
	refuses "$FIRST" 125 "job 9999: unknown, or it ended too long ago" run --mem 8G --after-ok 9999 -- true
}

@test "--after-ok of a job of run, and where users see nothing of others" {
	others=nothing # for write_config
	start_queue
	bad=$(submit_as "$FIRST" --mem 8G -- sh -c 'exit 3')
	submit_as "$FIRST" wait "$bad" || true
	refuses "$FIRST" 125 "job $bad ended with status 3" run --mem 8G --after-ok "$bad" -- true
	run_as "$FIRST" good --mem 8G
	wait_for 60 grep -q "cards=GPU-" "$T/good.out"
	number=$(as "$FIRST" "$LOADLINE" --sim queue list --json | jq -s '.[0].queued.number')
	stop good TERM
	# Kernels before Linux 6.15 do not tell the status to the job's monitor.
	refuses "$FIRST" 125 "job $number was ended by signal 15" run --mem 8G --after-ok "$number" -- true ||
		[[ $output == *"nobody told its status"* ]]
}
