# What the configuration hides of one user's jobs, another one learns by no way.
# shellcheck disable=SC2153,SC2154 # FIRST and SECOND are of service_helper.bash; status and output are those of bats
load queue_helper

export NEEDS="bench/c/pace"

# start_hiding: loadlined without a queue, which hides commands.
start_hiding() {
	open_world
	config_file <<-END
		version: 1
		visibility: {others: user-and-share, commands: own}
		tenants:
		  - {name: research, members: {users: ["$FIRST"]}}
	END
	start_loadlined
}

# waiter NAME: a program of FIRST without a tenant's name, which waits for each of its launches.
waiter() {
	start_as "$FIRST" "$1" "$LOADLINE" --sim run -- \
		sh -c 'echo 200 | "$0" sync --kernel-us 500' "$LOADLINE_BUILD/bench/c/pace"
}

# decisions_as UID FILTER: for the names of the jobs in the log of decisions, as that user reads it.
decisions_as() {
	as "$1" "$LOADLINE" --sim status --decisions --json | jq -es "[.[] | select(.jobs).jobs[].tenant] | $2"
}

@test "the decisions name another user's jobs by their numbers, also when they have ended, and the own ones by their commands" {
	start_hiding
	waiter one
	waiter two
	wait_for 150 decisions_as "$FIRST" 'any(startswith("sh"))'
	decisions_as "$SECOND" 'length > 0 and all(test("^job-[0-9]+$"))'
	stop one KILL
	stop two KILL
	wait_for 60 jobs_are 0
	decisions_as "$SECOND" 'length > 0 and all(test("^job-[0-9]+$"))'
	decisions_as "$FIRST" 'any(startswith("sh"))'
}

@test "a number that is another user's job in the queue is to who sees nothing of others one that no job has" {
	others=nothing write_config
	start_queue
	run_as "$FIRST" first --cards 1
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	refuses "$SECOND" 1 "there is no such job in the queue" queue cancel "$(number_of 0)"
	refuses "$SECOND" 1 "there is no such job in the queue" queue cancel 4711
}
