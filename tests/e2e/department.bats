# A configuration in force: users who are in a tenant, what they may have, and what they see of others.
load helper
load jobs_helper
load service_helper

STRANGER=61236

# start_service: the system's loadlined with the configuration $T/conf/loadline.yaml, started by root; it runs as nobody.
start_service() {
	open_world
	[ -e "$T/conf/loadline.yaml" ] || write_config
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	wait_for 60 serves
}

# write_config [LINE]...: lines are put at the end. Users without a name are known by their number.
write_config() {
	config_file "$@" <<-END
		version: 1
		visibility: {others: ${others-user-and-share}, commands: ${commands-own}}
		cards:
		  - {name: parts, cards: "0", give: memory, by: auto}
		tenants:
		  - name: research
		    members: {users: ["$FIRST"]}
		    guarantee: [{of: parts, memory: 40G, compute: 60%}]
		    weight: ${weight-2}
		    classes: [normal, low]
		    each-user: {memory: ${memory-20G}, running: 2}
		  - name: course
		    members: {users: ["$FIRST", "$SECOND"]}
		    classes: [low]
		    each-user: {memory: 16G, compute: 25%, running: 1}
		defaults: {memory: 16G, class: normal, evictable: true}
	END
}

# work_as UID NAME ARG...: of run; a job that works on card 0.
work_as() {
	local uid=$1 name=$2
	shift 2
	start_as "$uid" "$name" "$LOADLINE" --sim run "$@" -- \
		"$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms for 100s
	wait_for 60 shows "select(has(\"claim\") and .pid == $(pid_of "$name"))"
}

# refuses UID STATUS TEXT ARG...: loadline ends so, and says the text.
refuses() {
	local uid=$1 expected=$2 text=$3
	shift 3
	run as "$uid" "$LOADLINE" --sim "$@"
	echo "status $status: $output"
	[ "$status" -eq "$expected" ] && [[ $output == *"$text"* ]]
}

# sees UID FILTER: true for the array of all lines of the user's status?
sees() {
	as "$1" "$LOADLINE" --sim status --json | jq -s -e "$2" >"$T/seen.out"
}

# told TEXT: in the log of the service?
told() {
	grep -qF -- "$1" "$T/world/loadlined.log"
}

@test "a directory that answers late refuses no job, which says what it waits for, and keeps nobody from status" {
	local library=$LOADLINE_BUILD/tests/e2e/libslow_lookup.so
	[ -e "$library" ] || skip "nothing can be preloaded in this build"
	open_world
	write_config
	start_program service env LD_PRELOAD="$library" SLOW_LOOKUP="$T/answer" \
		"$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	wait_for 60 serves
	start_as "$FIRST" one "$LOADLINE" --sim run -- echo governed
	wait_for 60 grep -qF "the job waits: the groups of user $FIRST are being looked up" "$T/one.err"
	as "$FIRST" "$LOADLINE" --sim status >/dev/null
	is_running one
	: >"$T/answer"
	finish one
	[ "$status" -eq 0 ]
	grep -qx governed "$T/one.out"
	refuses "$STRANGER" 125 "user $STRANGER is in no tenant" run -- true
}

@test "a job gets its user's tenant and the defaults, and its limits are the user's sums" {
	start_service
	work_as "$FIRST" one
	sees "$FIRST" 'any(.[]; has("claim") and .configured_tenant == "research" and .memory_limit_bytes == 16 * 1073741824)'
	as "$FIRST" "$LOADLINE" --sim limits --json >"$T/limits.out"
	has limits 'select(.job) | .limits.class == "normal" and .limits.evictable and .limits.compute_cap_percent == null'
	refuses "$FIRST" 125 "tenant research: memory: 8 GiB asked for, 20 GiB allowed for each user, 16 GiB in use" run --mem 8G -- true
	work_as "$FIRST" two --mem 4G
	refuses "$FIRST" 125 "tenant research: running: 2 jobs allowed for each user, 2 run" run --mem 1M --count-context=no -- true
	refuses "$FIRST" 4 "tenant research: memory: 5 GiB asked for, 20 GiB allowed for each user, 16 GiB in use" set "$(claim_of two)" --mem 5G
	as "$FIRST" "$LOADLINE" --sim set "$(claim_of one)" --mem 15G
	as "$FIRST" "$LOADLINE" --sim set "$(claim_of two)" --mem 5G
	stop one KILL
	as "$FIRST" "$LOADLINE" --sim run --mem 15G -- true
}

@test "a user names one of the own tenants, and only that" {
	start_service
	as "$FIRST" "$LOADLINE" --sim run --tenant course -- true
	refuses "$FIRST" 125 "user $FIRST is not in a tenant serving, but in research, course" run --tenant serving -- true
	refuses "$SECOND" 125 "user $SECOND is not in a tenant research, but in course" run --tenant research -- true
	refuses "$STRANGER" 125 "user $STRANGER is in no tenant" run -- true
	refuses "$STRANGER" 125 "user $STRANGER is in no tenant" run --allow-ungoverned -- true
	# The lower class is what a job gets that does not say.
	work_as "$SECOND" pupil
	sees "$SECOND" 'any(.[]; has("claim") and .class == "low" and .compute_cap_percent == 25)'
	refuses "$SECOND" 125 "tenant course: running: 1 jobs allowed for each user, 1 run" run -- true
	stop pupil KILL
	refuses "$SECOND" 125 "tenant course: class: normal asked for, tenant course may use low" run --class normal -- true
	refuses "$SECOND" 125 "tenant course: compute: 30% asked for, 25% allowed for each user, 0% in use" run --compute 30% -- true
}

@test "a file with faults does not come into force: not at the start, and not at SIGHUP" {
	write_config "nonsense: 1"
	open_world
	run "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	echo "$status: $output"
	[ "$status" -eq 2 ]
	[[ $output == *"$T/conf/loadline.yaml:17:1: unknown key 'nonsense'"* ]]
	write_config
	start_service
	work_as "$FIRST" one --mem 16G
	write_config "nonsense: 1"
	kill -HUP "$(pid_of service)"
	wait_for 60 told "the former configuration stays in force"
	as "$FIRST" "$LOADLINE" --sim doctor --no-trial >"$T/doctor.out" || true
	grep -q "^warn: configuration: .* not in force since .*: $T/conf/loadline.yaml:17:1: " "$T/doctor.out"
	loadline --sim status >"$T/status.out"
	grep -q "the configuration on the disk is not in force since .*: $T/conf/loadline.yaml:17:1: " "$T/status.out"
	refuses "$SECOND" 125 "is not in a tenant research" run --tenant research -- true
	# One that shrinks a limit below what a job has ends no job.
	memory=8G write_config
	kill -HUP "$(pid_of service)"
	wait_for 60 told "user $FIRST has more than tenant research now allows each user; no job is ended"
	as "$FIRST" "$LOADLINE" --sim doctor --no-trial >"$T/doctor.out" || true
	grep -q "^ok: configuration: in force since " "$T/doctor.out"
	shows "select(has(\"claim\") and .pid == $(pid_of one) and .memory_limit_bytes == 16 * 1073741824)"
	refuses "$FIRST" 125 "16 GiB in use" run --mem 1G -- true
	as "$FIRST" "$LOADLINE" --sim status >"$T/status.out"
	grep -q "tenant research: you have more than each user may have now: memory 16 GiB of 8 GiB; no job is ended" "$T/status.out"
}

# The kernel shows command lines to all users (/proc), so the job's own program is looked at by what loadlined says.
@test "of others a user sees what the configuration says" {
	start_service
	start_as "$FIRST" one "$LOADLINE" --sim run -- sleep 100
	wait_for 60 sees "$SECOND" "any(.[].job; .uid == $FIRST and .configured_tenant == \"research\" and .command == null and .cgroup == null and .tenant == \"job-1\")"
	sees "$FIRST" "any(.[].job; .uid == $FIRST and .command == \"sleep\")"
	# status does not read it from /proc either.
	work_as "$FIRST" two --mem 1G
	shows_command() { as "$1" "$LOADLINE" --sim status --json | jq -s -e "any(.[]; .pid? == $(pid_of two) and (.command | startswith(\"loadline-simctl\")))"; }
	wait_for 60 sees "$SECOND" "any(.[]; .pid? == $(pid_of two) and .command == null)"
	shows_command "$FIRST"
	commands=tenant write_config
	reload
	wait_for 60 sees "$SECOND" "any(.[].job; .uid == $FIRST and .command == null)"
	commands=all write_config
	reload
	wait_for 60 sees "$SECOND" "any(.[].job; .uid == $FIRST and .command == \"sleep\")"
	shows_command "$SECOND"
	others=nothing write_config
	reload
	wait_for 60 sees "$SECOND" "all(.[]; has(\"job\") | not)"
	sees "$SECOND" "all(.[]; has(\"process\") | not)" # nor as programs outside of jobs
	as "$SECOND" "$LOADLINE" --sim status | grep -q "^programs of other users are not shown"
	lacks "programs of other users" "$LOADLINE" --sim status
	sees "$FIRST" "any(.[]; has(\"job\"))"
	sees 0 "any(.[]; has(\"job\"))"
}

reload() {
	kill -HUP "$(pid_of service)"
}

@test "admins change all jobs, operators move them, and each act is logged" {
	write_config "admins: {users: [\"$SECOND\"]}" "operators: {users: [\"$STRANGER\"]}"
	start_service
	work_as "$FIRST" one --mem 10G
	as "$SECOND" "$LOADLINE" --sim set "$(claim_of one)" --mem 12G --reason "the demo at two"
	shows "select(has(\"claim\") and .pid == $(pid_of one) and .memory_limit_bytes == 12 * 1073741824)"
	told "user $SECOND (uid $SECOND), as an admin, sets limits of job 1 (loadline-simctl) of user $FIRST, tenant research: the demo at two"
	refuses "$STRANGER" 1 "another user" set "$(claim_of one)" --mem 1G
	as "$STRANGER" "$LOADLINE" --sim evict --reason "room for 名字" "$(claim_of one)"
	told "user $STRANGER (uid $STRANGER), as an operator, evicts job 1 (loadline-simctl) of user $FIRST, tenant research: room for 名字"
	as "$STRANGER" "$LOADLINE" --sim resume "$(claim_of one)"
	told "as an operator, resumes job 1 (loadline-simctl) of user $FIRST, tenant research: no reason given"
}

@test "limits tells the tenants of a user, what is allowed, what is in use and what is left" {
	start_service
	work_as "$FIRST" one --mem 12G
	as "$FIRST" "$LOADLINE" --sim limits --json >"$T/limits.out"
	has limits 'select(has("user")).user_limits[0] | .tenant == "research" and .first and .classes == ["normal", "low"] and .limits.memory_bytes == 20 * 1073741824 and .used.memory_bytes == 12 * 1073741824 and .left.memory_bytes == 8 * 1073741824 and .used.jobs == 1 and .left.jobs == 1 and .limits.compute_percent == null'
	has limits 'select(has("user")).user_limits[1] | .tenant == "course" and (.first | not) and .limits.compute_percent == 25'
	has limits 'select(has("user")).user_limits[0].parts | . == [{of: "parts", guarantee: {cards: null, memory_bytes: 42949672960, compute_percent: 60}, limit: {cards: null, memory_bytes: null, compute_percent: null}, used: null}]'
	as "$FIRST" "$LOADLINE" --sim limits >"$T/limits.out"
	grep -q "^user $FIRST: in the tenants research (a job without --tenant is there), course" "$T/limits.out"
	grep -q "^tenant research: weight 2, classes normal, low" "$T/limits.out"
	grep -q "^research  *memory  *20 GiB  *12 GiB  *8 GiB" "$T/limits.out"
	grep -q "^research  *parts  *memory  *40 GiB" "$T/limits.out"
	as "$STRANGER" "$LOADLINE" --sim limits >"$T/limits.out"
	grep -q "^user $STRANGER: in no tenant of this machine" "$T/limits.out"
}

@test "a restarted service has the jobs with their tenants" {
	start_service
	work_as "$FIRST" one --tenant research --mem 18G
	stop service KILL
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	wait_for 60 sees "$FIRST" 'any(.[]; has("claim") and .configured_tenant == "research" and .memory_limit_bytes == 18 * 1073741824)'
	refuses "$FIRST" 125 "18 GiB in use" run --mem 8G -- true
}

# start_department: the service with a configuration for eight cards, and its sensor.
start_department() {
	open_world h100x8
	config_file
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	wait_for 60 serves
	start_sensor_as
	wait_for 60 eval 'as "$FIRST" "$LOADLINE" --sim doctor --no-trial | grep "^ok: sensor: 8 cards"'
}

@test "each group of cards has its own limits, and a whole card has no default of memory" {
	start_department <<-END
		version: 1
		cards:
		  - {name: whole, cards: "0-1", give: card}
		  - {name: parts, cards: "2-7", give: memory}
		tenants:
		  - name: lab
		    members: {users: ["*"]}
		    guarantee: [{of: whole, cards: 1}, {of: parts, memory: 10G}]
		    limit: [{of: whole, cards: 1}, {of: parts, memory: 30G}]
		    classes: [high, normal, low]
		    each-user: {memory: 40G}
		defaults: {memory: 12G}
	END
	start_as "$FIRST" one "$LOADLINE" --sim run -i 0 -- sleep 100
	wait_for 60 sees "$FIRST" "any(.[].job; .uid == $FIRST and .limits.memory_bytes == null)"
	refuses "$SECOND" 125 "no place is free now" run -i 1 --no-wait -- true
	as "$FIRST" "$LOADLINE" --sim run -i 2 -- "$LOADLINE" --sim limits --json >"$T/limits.out"
	has limits 'select(.job) | .limits.memory_bytes == 12 * 1073741824'
	refuses "$FIRST" 125 "more than the tenant's limit: it would never start" run -i 2,3,4 -- true
	refuses "$FIRST" 125 "memory: 11 GiB asked for, 10 GiB allowed for class high of tenant lab in group parts" run -i 2 --class high --mem 11G -- true
	as "$FIRST" "$LOADLINE" --sim run -i 2 --class high --mem 10G -- true
	as "$FIRST" "$LOADLINE" --sim status >"$T/status.out"
	grep -q "^tenant lab: 1 job; guaranteed in whole: 1, asked for there: 1; guaranteed in parts: 10 GiB, asked for there: 0 GiB" "$T/status.out"
}

@test "the department of the example is governed on eight cards" {
	config_file <"$BATS_TEST_DIRNAME/../../packaging/loadline-example.yaml"
	open_world h100x8
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	wait_for 60 serves
	# Nobody of its groups is on this machine: all are guests, whose jobs are of class low.
	as "$FIRST" "$LOADLINE" --sim run -i 4 -- "$LOADLINE" --sim limits --json >"$T/limits.out"
	has limits 'select(.job) | .limits.class == "low" and .limits.memory_bytes == 16 * 1073741824'
	refuses "$FIRST" 125 "class: high asked for, tenant guest may use low" run --class high -- true
}

# gpu_ms NAME...: of each the card's time, in ms, all at the same moment.
gpu_ms() {
	local name pids=()
	for name in "$@"; do pids+=("$(pid_of "$name")"); done
	loadline --sim status --json | jq -s --arg pids "${pids[*]}" '. as $all | ($pids | split(" "))[] | tonumber as $pid |
		first($all[] | select(has("claim") and .pid == $pid)) | .gpu_seconds * 1000 | floor'
}

# share_so EXPRESSION NAME...: of what they use together, in thousandths ($parts), each has that, in one of ten stretches: in
# some a busy host leaves one of them aside. What is shared in another way is so in each.
share_so() {
	local expression=$1 i before after
	shift
	for i in {1..10}; do
		before=$(gpu_ms "$@" | jq -s -c .)
		read -rt 2 <>"$T/silence" || true
		after=$(gpu_ms "$@" | jq -s -c .)
		jq -n -c -e --argjson before "$before" --argjson after "$after" \
			"[range(\$after | length) | \$after[.] - \$before[.]] | (add as \$sum | map(1000 * . / ([\$sum, 1] | max))) as \$parts |
			(\"$i: \\(\$parts)\" | debug) | $expression" && return
	done
	return 1
}

@test "two jobs of a tenant have the tenant's weight together" {
	weight=1 memory=40G write_config
	start_service
	work_as "$FIRST" one --mem 4G
	work_as "$FIRST" two --mem 4G
	work_as "$SECOND" pupil --class low --mem 4G
	loadline --sim set "$(claim_of one)" --class low --sharing visits
	loadline --sim set "$(claim_of two)" --class low --sharing visits
	loadline --sim set "$(claim_of pupil)" --compute 100%
	share_so '$parts[2] >= 420 and $parts[2] <= 580 and $parts[0] >= 180 and $parts[1] >= 180' one two pupil
	# One that ends leaves its part to the other of the tenant.
	stop two KILL
	share_so '$parts[0] >= 420 and $parts[0] <= 580' one pupil
}
