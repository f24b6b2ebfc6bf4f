# loadline-keeper without rights: it serves its own user in a simulated world, and cannot move anything.
# tools/check_service has it with rights.
load helper
load jobs_helper
load service_helper

USER_ID=61234

setup_file() {
	export KEEPER=$LOADLINE_BUILD/src/keeper/loadline-keeper KEEPER_CALL=$LOADLINE_BUILD/tests/daemon/keeper_call
}

# plain COMMAND...: as a user without rights.
plain() {
	if [ "$(id -u)" -eq 0 ]; then
		setpriv --reuid "$USER_ID" --regid "$USER_ID" --clear-groups "$@"
	else
		"$@"
	fi
}

# start_plain NAME COMMAND...
start_plain() {
	local name=$1
	shift
	if [ "$(id -u)" -eq 0 ]; then
		start_program "$name" setpriv --reuid "$USER_ID" --regid "$USER_ID" --clear-groups "$@"
	else
		start_program "$name" "$@"
	fi
}

start_service() {
	chmod 755 "$T"
	chmod 777 "$T/world"
	start_plain service "$LOADLINE_BUILD/src/daemon/loadlined" --system
	wait_for 60 doctor_says "the system's: it governs the programs of all users"
}

start_keeper() {
	grep -q ' cgroup2 ' /proc/self/mounts || skip "no control groups of version 2 are mounted"
	mkdir -p "$T/world/system"
	start_plain keeper "$KEEPER"
	wait_for 60 [ -S "$T/world/system/keeper" ]
}

doctor_says() {
	plain "$LOADLINE" --sim doctor --no-trial | grep -qF "$1"
}

proof_of() {
	plain "$LOADLINE" --sim status --json | jq -r "select(.job.tenant == \"$1\").job.proof"
}

@test "the keeper tells its options, and refuses others" {
	"$KEEPER" --help | grep -q '^usage: loadline-keeper'
	"$KEEPER" --version | grep -q '^loadline-keeper [0-9]'
	for words in --what '--groups other' '--user' '--groups'; do
		# shellcheck disable=SC2086 # words
		run "$KEEPER" $words
		[ "$status" -eq 2 ]
		[[ $output == 'usage: loadline-keeper'* ]]
	done
	run "$KEEPER" --user nobody-at-all
	[ "$status" -eq 1 ]
	[ "$output" = 'loadline-keeper: there is no user nobody-at-all' ]
}

@test "without a keeper a job is known by its token, and doctor says so" {
	[ -x "$LOADLINE_BUILD/tests/e2e/launcher" ] || skip "nothing can be preloaded in this build"
	start_service
	doctor_says 'no loadline-keeper serves it: the processes of a job are known by the job'"'"'s token only'
	start_plain job "$LOADLINE" --sim run --tenant train -- sleep 100
	wait_for 60 eval '[ "$(proof_of train)" = token ]'
	plain "$LOADLINE" --sim status | grep -qx 'no loadline-keeper serves: jobs are known by their tokens only'
}

@test "a keeper that cannot place a job refuses with a reason, and the job runs by its token" {
	[ -x "$LOADLINE_BUILD/tests/e2e/launcher" ] || skip "nothing can be preloaded in this build"
	start_service
	stop service
	start_keeper
	start_plain service "$LOADLINE_BUILD/src/daemon/loadlined" --system
	wait_for 60 doctor_says 'loadline-keeper serves it: the processes of a job are known by its control group'
	[ "$(stat -c %a "$T/world/system/keeper")" = 600 ]
	start_plain job "$LOADLINE" --sim run --tenant train -- sleep 100
	wait_for 60 eval '[ "$(proof_of train)" = token ]'
	grep -E 'WARN refused: place process [0-9]+, job [0-9]+-[0-9a-f]+: ' "$T"/keeper*
	stop keeper KILL
	start_plain other "$LOADLINE" --sim run --tenant other -- sleep 100
	wait_for 60 eval '[ "$(proof_of other)" = token ]'
	wait_for 60 doctor_says 'no loadline-keeper serves it'
}

@test "with version 1 alone the keeper says so and refuses, loadlined says so once, and jobs run by their tokens" {
	[ -x "$LOADLINE_BUILD/tests/e2e/launcher" ] || skip "nothing can be preloaded in this build"
	[ "$(id -u)" -eq 0 ] || skip "only root can unmount control groups"
	start_service
	stop service
	start_program keeper "${WITHOUT_VERSION_2[@]}" \
		setpriv --reuid "$USER_ID" --regid "$USER_ID" --clear-groups "$KEEPER"
	wait_for 60 [ -S "$T/world/system/keeper" ]
	grep -q 'WARN no control groups of version 2 are mounted: every request is refused' "$T"/keeper*
	run plain "$KEEPER_CALL" "$T/world/system/keeper" 2 "$USER_ID" 1 $$
	[ "$output" = "refused -95: no control groups of version 2 are mounted" ]
	start_plain service "$LOADLINE_BUILD/src/daemon/loadlined" --system
	wait_for 60 doctor_says 'loadline-keeper refuses, since it needs control groups of version 2'
	for name in train other; do
		start_plain "$name" "$LOADLINE" --sim run --tenant "$name" -- sleep 100
		wait_for 60 eval '[ "$(proof_of $name)" = token ]'
	done
	plain "$LOADLINE" --sim status | grep -qx 'no loadline-keeper serves: jobs are known by their tokens only'
	[ "$(grep -c 'no control group' "$T/world/loadlined.log")" -eq 1 ]
	grep -q 'WARN jobs have no control groups, and are known by their tokens only: .*version 2' "$T/world/loadlined.log"
}

@test "a keeper that never answers is said to do so, and the job runs by its token" {
	[ -x "$LOADLINE_BUILD/tests/e2e/launcher" ] || skip "nothing can be preloaded in this build"
	start_service
	stop service
	start_keeper
	start_plain service "$LOADLINE_BUILD/src/daemon/loadlined" --system
	wait_for 60 doctor_says 'loadline-keeper serves it: the processes of a job are known by its control group'
	kill -STOP "$(pid_of keeper)"
	start_plain job "$LOADLINE" --sim run --tenant train -- sh -c 'echo begins; exec sleep 100'
	wait_for 60 grep -q begins "$T/job.out"
	grep -q 'WARN job [0-9]* of uid [0-9]* has no control group, and is known by its token only: loadline-keeper does not answer' \
		"$T/world/loadlined.log"
	[ "$(proof_of train)" = token ]
	doctor_says 'no loadline-keeper serves it'
	plain "$LOADLINE" --sim status | grep -qx 'no loadline-keeper serves: jobs are known by their tokens only'
	kill -CONT "$(pid_of keeper)"
}

@test "the keeper refuses what is not in its list" {
	start_service
	start_keeper
	local socket=$T/world/system/keeper
	plain "$KEEPER_CALL" "$socket" 1 0 0 | grep -q '^ok '
	while read -r reason words; do
		# shellcheck disable=SC2086 # words
		run plain "$KEEPER_CALL" "$socket" $words
		echo "$words: $output"
		[ "$status" -eq 1 ]
		[[ $output == "refused ${reason//_/ }"* ]]
	done <<-END
		-95:_there_is_no_request_99 99 0 1
		-95:_there_is_no_request_0 0 0 1
		-22:_no_job_is_named 6 0 0
		-71:_a_pidfd_is_missing 2 0 1
		-95:_there_is_no_request_4 4 0 1
		-71:_the_request_takes_no_descriptor 6 0 1 $$
		-22:_signal_1_is_not_allowed 9 0 1 0 1
		-22:_pid_1_cannot_belong_to_a_job 2 0 1 1
		-1:_the_process_is_not_of_uid_4242 2 4242 1 $$
		-2:_the_job_has_no_group 9 0 1 0 9
	END
}
