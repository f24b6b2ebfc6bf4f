# queue_helper.bash - what the tests of the queue use, and all that it loads.
# shellcheck disable=SC2120,SC2119,SC2154 # the tests pass lines; status and output are those of bats
load helper
load jobs_helper
load service_helper

# start_service: the system's loadlined of eight cards with the configuration $T/conf/loadline.yaml.
start_service() {
	open_world h100x8
	[ -e "$T/conf/loadline.yaml" ] || write_config
	start_loadlined
}

# start_loadlined: with its state in $STATE, if that is set.
start_loadlined() {
	[ -z "${STATE-}" ] || [ -e "$STATE" ] || install -d -o nobody -m 700 "$STATE"
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf" ${STATE:+--state "$STATE"}
}

# restart_loadlined: kill -9, and another one, which serves.
restart_loadlined() {
	stop service KILL
	start_loadlined
	wait_for 60 serves
}

# start_sensor: when it has reported, there is a queue.
start_sensor() {
	start_sensor_as
	wait_for 60 has_queue
}

# has_queue: a sensor has reported. One that ran before loadlined was restarted comes back by itself.
has_queue() {
	loadline --sim queue list >"$T/list.out" 2>&1
}

# start_queue: the same with a sensor.
start_queue() {
	start_service
	start_sensor
}

# write_config [LINE]...: lines are put at the end. Users without a name are known by their number.
write_config() {
	config_file "$@" <<-END
		version: 1
		visibility: {others: ${others-user-and-share}, commands: own}
		cards:
		  - {name: whole, cards: "0-3", give: card}
		  - {name: parts, cards: "4-6", give: memory, by: auto}
		tenants:
		  - name: research
		    members: {users: ["$FIRST"]}
		    guarantee: [{of: whole, cards: 2}, {of: parts, memory: 100G}]
		    classes: [normal, low]
		    each-user: {max-time: 10h, queued: 3}
		  - name: course
		    members: {users: ["$SECOND"]}
		    classes: [low]
		    each-user: {memory: 60G, running: 3}
		defaults: {memory: 16G, time: 1h}
		reclaim: {warn: ${warn-{signal: USR1, before: 2s\}}, stop: {signal: TERM, grace: 2s}}
	END
}

# run_as UID NAME ARG...: of run; a job that tells its cards' UUIDs and does nothing for a long time.
run_as() {
	local uid=$1 name=$2
	shift 2
	start_as "$uid" "$name" "$LOADLINE" --sim run "$@" -- \
		sh -c 'uuids=$("$LOADLINE" --sim status -i "$CUDA_VISIBLE_DEVICES" --json 2>/dev/null | jq -r "select(has(\"card\")).uuid" | paste -sd,)
			echo "cards=$uuids"
			exec sleep 300'
}

# queue FILTER: true for the array of all lines of the queue?
queue() {
	loadline --sim queue list --json | jq -s -e "$1" >"$T/queue.out"
}

# number_of INDEX: of the queued job, from 0.
number_of() {
	loadline --sim queue list --json | jq -s ".[$1].queued.number"
}

# says NAME TEXT: on stderr.
says() {
	grep -qF -- "$2" "$T/$1.err"
}

# refuses UID STATUS TEXT ARG...: loadline ends so, and says the text.
refuses() {
	local uid=$1 expected=$2 text=$3
	shift 3
	run as "$uid" "$LOADLINE" --sim "$@"
	echo "status $status: $output"
	[ "$status" -eq "$expected" ] && [[ $output == *"$text"* ]]
}

# submit_as UID ARG...: prints the number. Each user has a folder for logs and records.
submit_as() {
	local uid=$1
	shift
	[ -e "$T/home-$uid" ] || install -d -o "$uid" -g "$uid" -m 700 "$T/home-$uid"
	(cd "$T/home-$uid" && exec setpriv --reuid "$uid" --regid "$uid" --clear-groups \
		env XDG_STATE_HOME="$T/home-$uid" "$LOADLINE" --sim submit "$@" 2>>"$T/submit-$uid.err")
}

# state_as UID NUMBER FILTER
state_as() {
	submit_as "$1" list --json | jq -s -e ".[].submitted | select(.number == $2) | $3" >/dev/null
}
