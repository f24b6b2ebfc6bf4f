# What holds a place is ended with the job: not its first process alone.
# shellcheck disable=SC2153,SC2154 # FIRST and SECOND are of service_helper.bash; status and output are those of bats
load queue_helper

eval "$(declare -f teardown | sed '1s/teardown/teardown_programs/')"
teardown() {
	[ ! -e "$T/detached" ] || end_detached
	teardown_programs
	remove_groups
}

# leave_detached [VARIABLE=VALUE]: text of a shell that leaves a process which has lost the job's environment and
# descriptors, and does not end by SIGTERM.
leave_detached() {
	cat >"$T/detached.sh" <<-END
		for fd in /proc/\$\$/fd/*; do
			[ "\${fd##*/}" -le 2 ] || eval "exec \${fd##*/}>&-"
		done
		trap : TERM
		echo \$\$ >"$T/detached"
		while :; do sleep 0.1; done
	END
	echo "setsid env -i PATH=$PATH bash -c '. $T/detached.sh' </dev/null >/dev/null 2>&1 &"
}

# detached: its number.
detached() {
	cat "$T/detached"
}

end_detached() {
	local pid
	pid=$(detached)
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
}

detached_ends() {
	wait_for "$1" eval 'has_ended "$(detached)"'
}

# begin: a queue, in which nothing is sent before the end of a job's time.
begin() {
	write_config
	sed -i 's/^reclaim:.*/reclaim: {stop: {signal: TERM, grace: 2s}}/' "$T/conf/loadline.yaml"
	start_queue
}

# detached_as UID NAME TEXT ARG...: a job that runs the text in a shell.
detached_as() {
	local uid=$1 name=$2 text=$3
	shift 3
	install -m 666 /dev/null "$T/detached"
	start_as "$uid" "$name" "$LOADLINE" --sim run "$@" -- bash -c "$text"
	wait_for 60 eval '[ -s "$T/detached" ]'
}

has_proof() {
	loadline --sim status --json | jq -s -e "any(.[].job?; .proof == \"$1\")" >/dev/null
}

@test "the end of a job's time ends its whole control group, also what has detached itself and takes no SIGTERM" {
	begin
	start_keeper
	detached_as "$FIRST" first "$(leave_detached) exec sleep 300" --cards 4 --time 6s
	wait_for 60 has_proof cgroup
	run_as "$SECOND" second --mem 8G
	detached_ends 30
	finish first
	wait_for 60 queue '[.[].queued.card_count] == [1]'
	is_running second
	run_as "$FIRST" third --cards 4
	wait_for 60 grep -q "cards=GPU-" "$T/third.out"
}

@test "a job whose first process has ended is canceled with what it has left" {
	begin
	start_keeper
	detached_as "$FIRST" first "$(leave_detached) sleep 1; exit 0" --cards 4 --time 2h
	finish first
	[ "$status" -eq 0 ]
	queue '.[0].queued | .state == "running" and .card_count == 4'
	as "$FIRST" "$LOADLINE" --sim queue cancel "$(number_of 0)"
	detached_ends 20
	wait_for 60 queue 'length == 0'
}

@test "without a keeper the monitor ends all that it finds of the job" {
	begin
	# shellcheck disable=SC2016
	detached_as "$FIRST" first "setsid sh -c 'trap : TERM; echo \$\$ >$T/detached; while :; do sleep 0.1; done' & exec sleep 300" \
		--cards 4 --time 4s
	detached_ends 30
	wait_for 60 queue 'length == 0'
}

@test "without a keeper the place is given back after the grace, and what is left of the job gets no card" {
	begin
	# shellcheck disable=SC2016
	detached_as "$FIRST" first "trap : TERM; echo \$\$ >$T/detached; while [ ! -e $T/use ]; do sleep 0.1; done
		$LOADLINE_BUILD/sim/loadline-simctl busy 0 kernel 1ms for 1s; echo used=\$?; sleep 300" -i 0-3 --mem 8G --time 2h
	kill -STOP "$(pids loadline-job)"
	run_as "$FIRST" second --cards 4 --time 1h
	wait_for 60 says second "is number 1 in the queue"
	as "$FIRST" "$LOADLINE" --sim queue cancel "$(number_of 0)"
	wait_for 60 grep -q "cards=GPU-" "$T/second.out"
	queue '[.[].queued | .state] == ["running"]'
	is_running first
	touch "$T/use"
	wait_for 60 grep -q "^used=" "$T/first.out"
	says first "the job has ended"
}
