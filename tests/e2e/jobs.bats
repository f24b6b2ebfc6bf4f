# Jobs: run's command, its monitor (loadline-job), and loadlined, which keeps the books.
load helper
load jobs_helper

has_job() {
	job "$1" "select(.state == \"running\")" >/dev/null
}

has_no_job() {
	! has_job "$1"
}

@test "run makes a job: loadlined knows its limits, its process and its monitor, and forgets it at the end" {
	start job --sim run --tenant train --mem 2G --compute 25% --weight 2 --class low -- sleep 100
	wait_for 60 has_job train
	[ "$(job train '.pid')" -eq "$(pid_of job)" ]
	[ "$(job train '.monitor_pid')" -eq "$(pids loadline-job)" ]
	[ "$(job train '.limits | [.memory_bytes, .compute_cap_percent, .weight, .class, .slowdown_target, .by] | @csv')" = '2147483648,25,2,"low",1.3,"slices"' ]
	[ "$(job train '[.command, .tenant_is_named, .processes, .uid] | @csv')" = "\"sleep\",true,1,$(id -u)" ]
	[ "$(loadline --sim status --json | jq -r 'select(.daemon).daemon | [.answer, .jobs, .tenants] | @csv')" = '"serves",1,1' ]
	stop job
	wait_for 60 has_no_job train
	wait_for 60 has_pids loadline-job 0
}

@test "jobs of one --tenant are one tenant, a run without a name is its own" {
	start one --sim run --tenant team -- sleep 100
	start two --sim run --tenant team -- sleep 100
	start three --sim run -- sleep 100
	start four --sim run -- sleep 100
	wait_for 60 jobs_are 4
	status_has '[.[] | select(.daemon).daemon | .jobs, .tenants] == [4, 3]'
	status_has '[.[] | select(.job.tenant_is_named == false)] | length == 2'
}

@test "no descriptor of loadlined but the standard ones goes to what it starts" {
	local pid info
	start job --sim run -- sleep 100
	wait_for 60 jobs_are 1
	has_pids loadlined 1
	for pid in $(pids loadlined); do
		for info in /proc/"$pid"/fdinfo/*; do
			[ "${info##*/}" -gt 2 ] || continue
			# O_CLOEXEC
			awk '$1 == "flags:" { exit substr($2, length($2) - 6, 1) !~ /[2367]/ }' "$info" || {
				ls -l "/proc/$pid/fd/${info##*/}"
				return 1
			}
		done
	done
}

@test "status shows a job that does not use CUDA, and without loadlined nothing of jobs; it starts none" {
	loadline --sim status >"$T/before"
	has_pids loadlined 0
	[ "$(loadline --sim status --json | jq -s 'map(select(.daemon or .job)) | length')" -eq 0 ]
	start job --sim run --tenant idle -- sleep 100
	wait_for 60 has_job idle
	loadline --sim status | grep -qE "^[0-9a-f]+ +$(pid_of job) .* idle +running +sleep$"
	# Jobs belong to no card.
	lacks sleep loadline --sim status -i 0
}

@test "loadlined ends two seconds after the last job, and the next run starts it" {
	loadline --sim run -- true
	has_pids loadlined 1
	wait_for 60 has_pids loadlined 0
	start job --sim run --tenant again -- sleep 100
	wait_for 60 has_job again
}

@test "loadlined that is killed is there again, with all jobs" {
	local old
	for name in a b c; do
		start "$name" --sim run --tenant "$name" -- sleep 100
		wait_for 60 has_job "$name"
	done
	old=$(pids loadlined)
	kill -KILL "$old"
	wait_for 60 jobs_are 3
	[ "$(pids loadlined)" -ne "$old" ]
}

@test "a monitor that is killed is replaced, and the job is known all the time" {
	local old
	start job --sim run --tenant kept -- sleep 100
	wait_for 60 has_job kept
	old=$(pids loadline-job)
	kill -KILL "$old"
	has_job kept
	wait_for 60 status_has "any(.[]; .job.monitor_pid > 0 and .job.monitor_pid != $old)"
	stop job
	wait_for 60 has_no_job kept
}

@test "a command that runs inside a job belongs to it" {
	start job --sim run --tenant outer -- "$LOADLINE" run -- sleep 100
	wait_for 60 has_job outer
	jobs_are 1
	has_pids loadline-job 1
}

@test "x=\$(loadline run ...) ends with the command" {
	local begin=$SECONDS
	[ "$(timeout 120 "$LOADLINE" --sim run -- echo over 2>&1)" = over ]
	in_time "$begin" 15
	has_pids loadlined 1
}

@test "a run that cannot have loadlined runs ungoverned, with a word, and not under limits" {
	# A loadline without loadlined and loadline-job beside it.
	cp -r "$LOADLINE" "$T/loadline"
	mkdir "$T/src" && cp -r "$LOADLINE_BUILD/src/shim" "$T/src/" && cp -r "$LOADLINE_BUILD/sim" "$T/sim"
	run --separate-stderr "$T/loadline" --sim run -- echo over
	# shellcheck disable=SC2154
	echo "$output $stderr"
	[ "$status" -eq 0 ] && [ "$output" = over ]
	[[ $stderr == *"WARN loadlined and loadline-job are not beside this program"*"; the command runs ungoverned" ]]
	run --separate-stderr "$T/loadline" --sim run --mem 1G -- echo over
	[ "$status" -eq 125 ] && [ -z "$output" ]
	[[ $stderr == "loadline: limits cannot be put in force: loadlined and loadline-job are not beside"* ]]
}
