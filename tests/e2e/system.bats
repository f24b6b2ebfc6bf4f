# The system's loadlined and two ordinary users on one simulated card: who governs, and what each sees and may do.
load helper
load jobs_helper
load service_helper

# start_service: the system's loadlined, started by root; it runs as nobody. All may be in the world.
start_service() {
	open_world
	serve_again
}

serve_again() {
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody
	wait_for 60 serves
}

serves() {
	loadline --sim doctor --no-trial | grep -q "^ok: loadlined: version .*, pid $(pid_of service): .*, $T/world/system/socket (the system's: it governs the programs of all users)"
}

# run_as UID NAME ARG...: of run.
run_as() {
	local uid=$1 name=$2
	shift 2
	start_as "$uid" "$name" "$LOADLINE" --sim run "$@"
}

# busy_as UID NAME [ARG]...: a tenant `team` that works on card 0.
busy_as() {
	local uid=$1 name=$2
	shift 2
	run_as "$uid" "$name" --tenant team "$@" -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms for 100s
	wait_for 60 shows "select(has(\"claim\") and .pid == $(pid_of "$name"))"
}

# refused_as UID TEXT ARG...: loadline ends with an error that has the text.
refused_as() {
	local uid=$1 text=$2
	shift 2
	run as "$uid" "$LOADLINE" --sim "$@"
	echo "status $status: $output"
	[ "$status" -ne 0 ] && [[ $output == *"$text"* ]]
}

@test "where the system's serves it governs the jobs of all, and status and doctor say so" {
	start_service
	as "$FIRST" "$LOADLINE" --sim doctor --no-trial | grep -q "(the system's: it governs the programs of all users)"
	run_as "$FIRST" first -- sleep 100
	run_as "$SECOND" second -- sleep 100
	wait_for 60 jobs_are 2
	has_pids loadlined 1
	loadline --sim status | grep -q "^loadlined: the system's, for all users ($T/world/system/socket)"
	# What an administrator sees to does not stand under each user's.
	as "$FIRST" "$LOADLINE" --sim status >"$T/status.out"
	run ! grep -E "keeper|socket|for all users" "$T/status.out"
	as "$FIRST" "$LOADLINE" --sim status --json | jq -s -e '[.[] | select(.job).job.uid] | sort == [61234, 61235]'
	as "$SECOND" "$LOADLINE" --sim status --json | jq -s -e '.[] | select(.daemon).daemon | .system and .answer == "serves"'
	# A file is reached from other network namespaces too.
	[ "$(unshare --net "$LOADLINE" --sim status --json | jq -r 'select(.job).job.pid' | wc -l)" -eq 2 ]
}

# is_with NAME GIB: the program is shown, with that limit and with GPU time.
is_with() {
	shows "select(has(\"claim\") and .pid == $(pid_of "$1") and .memory_limit_bytes == $2 * 1073741824 and .gpu_seconds > ${3-0})"
}

seconds_of() {
	loadline --sim status --json | jq -r "select(has(\"claim\") and .pid == $(pid_of "$1")) | .gpu_seconds"
}

@test "without it each user has one of its own; when it serves, that one makes room, and its jobs go on with their limits" {
	start_service
	stop service
	run_as "$FIRST" first --tenant team --mem 10G --evictable -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms for 100s
	wait_for 60 has_pids loadlined 1
	wait_for 60 eval 'as "$FIRST" "$LOADLINE" --sim doctor --no-trial | grep "^ok: loadlined: version .*: 1 job of 1 tenant, @loadline/$FIRST/"'
	as "$FIRST" "$LOADLINE" --sim set team --mem 9G
	serve_again
	wait_for 60 is_with first 9
	wait_for 60 has_pids loadlined 1
	wait_for 60 is_with first 9 "$(seconds_of first)"
	as "$FIRST" "$LOADLINE" --sim set team --mem 8G
	is_with first 8
	# Its memory's connections have moved too.
	as "$FIRST" "$LOADLINE" --sim evict team
	shows "select(has(\"claim\") and .pid == $(pid_of first) and .state == \"evicted\")"
	as "$FIRST" "$LOADLINE" --sim resume team
	# A program that the job starts now is of the job, and so is what that program allocates.
	as "$FIRST" env "$(tr '\0' '\n' <"/proc/$(pid_of first)/environ" | grep ^LOADLINE_RUN=)" "$LOADLINE" --sim run -- true
}

@test "a job that has moved moves back if the service ends, and again when it serves" {
	start_service
	stop service
	busy_for_user
	serve_again
	wait_for 60 is_with first 10
	stop service KILL
	wait_for 60 eval 'as "$FIRST" "$LOADLINE" --sim doctor --no-trial | grep "^ok: loadlined: version .*: 1 job of 1 tenant, @loadline/$FIRST/"'
	serve_again
	wait_for 60 is_with first 10
	wait_for 60 is_with first 10 "$(seconds_of first)"
	wait_for 60 has_pids loadlined 1
}

busy_for_user() {
	run_as "$FIRST" first --tenant team --mem 10G -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms for 100s
	wait_for 60 eval 'as "$FIRST" "$LOADLINE" --sim doctor --no-trial | grep "^ok: loadlined: version .*: 1 job of 1 tenant, @loadline/$FIRST/"'
}

@test "a socket that another user could have made is not used, and doctor says so" {
	start_service
	chmod 777 "$T/world/system"
	as "$FIRST" "$LOADLINE" --sim doctor --no-trial >"$T/doctor"
	grep -q "^warn: loadlined: $T/world/system/socket, where uid .* serves, cannot be trusted and is not used" "$T/doctor"
	grep -q "^ok: loadlined: none runs" "$T/doctor"
}

@test "tenants of one name and two users have limits of their own, which the owner and root may change" {
	start_service
	busy_as "$FIRST" first --mem 10G
	busy_as "$SECOND" second --mem 4G
	as "$FIRST" "$LOADLINE" --sim status --json >"$T/seen.out"
	has seen "select(has(\"claim\") and .pid == $(pid_of first) and .memory_limit_bytes == 10 * 1073741824)"
	has seen "select(has(\"claim\") and .pid == $(pid_of second) and .memory_limit_bytes == 4 * 1073741824)"
	as "$FIRST" "$LOADLINE" --sim set team --mem 8G
	wait_for 60 shows "select(has(\"claim\") and .pid == $(pid_of first) and .memory_limit_bytes == 8 * 1073741824)"
	shows "select(has(\"claim\") and .pid == $(pid_of second) and .memory_limit_bytes == 4 * 1073741824)"
	refused_as "$FIRST" "is a job of user $SECOND" set "$(claim_of second)" --mem 1G
	refused_as "$FIRST" "is a job of user $SECOND" set "$SECOND/team" --mem 1G
	fails_with 1 "several jobs have this name" --sim set team --mem 1G
	loadline --sim set "$SECOND/team" --mem 1G
	shows "select(has(\"claim\") and .pid == $(pid_of second) and .memory_limit_bytes == 1073741824)"
	shows "select(has(\"claim\") and .pid == $(pid_of first) and .memory_limit_bytes == 8 * 1073741824)"
}

@test "a user can neither evict, suspend nor resume another's program" {
	start_service
	busy_as "$FIRST" first --evictable
	local command
	for command in evict suspend resume; do
		refused_as "$SECOND" "is a job of user $FIRST" "$command" team
		refused_as "$SECOND" "is a job of user $FIRST" "$command" "$(claim_of first)"
	done
	shows "select(has(\"claim\") and .pid == $(pid_of first) and .state == \"running\")"
	as "$FIRST" "$LOADLINE" --sim suspend team
	as "$FIRST" "$LOADLINE" --sim resume team
	loadline --sim suspend "$FIRST/team"
	loadline --sim resume "$FIRST/team"
}

@test "what is promised to one user another cannot have" {
	start_service
	run_as "$FIRST" first --mem-request 100G -- sleep 100
	wait_for 60 jobs_are 1
	refused_as "$SECOND" "cannot be promised" run --mem-request 100G -- true
	as "$SECOND" "$LOADLINE" --sim run --mem-request 10G -- true
}

@test "while the service is away programs go on; then it has all jobs, with their limits" {
	start_service
	busy_as "$FIRST" first --mem 10G
	busy_as "$SECOND" second --mem 4G
	stop service KILL
	is_running first
	is_running second
	serve_again
	wait_for 60 shows "select(has(\"claim\") and .pid == $(pid_of first) and .memory_limit_bytes == 10 * 1073741824 and .gpu_seconds > 0)"
	wait_for 60 shows "select(has(\"claim\") and .pid == $(pid_of second) and .memory_limit_bytes == 4 * 1073741824 and .gpu_seconds > 0)"
	has_pids loadlined 1
}

@test "it is not started twice, nor without its user, nor in a folder that others may write" {
	start_service
	run -1 "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody
	[[ $output == "loadlined: "*"another loadlined"* ]]
	stop service
	run -1 "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody-of-that-name
	[[ $output == "loadlined: there is no user nobody-of-that-name; make one"* ]]
	chmod 777 "$T/world/system"
	run -1 "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody
	[[ $output == "loadlined: $T/world/system: uid 0's, mode 0777: others could take loadlined's place there" ]]
}
