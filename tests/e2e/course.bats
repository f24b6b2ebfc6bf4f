# A course: many short jobs of many users on one card, killed at any time and started again at once.
load queue_helper

STUDENTS="61241 61242 61243 61244 61245 61246"
TASKS=6

start_course() {
	[ -x "$LOADLINE_BUILD/tests/e2e/launcher" ] || skip "nothing can be preloaded in this build"
	open_world h200
	mkdir "$T/tasks"
	chmod 777 "$T/tasks"
	config_file <<-END
		version: 1
		cards:
		  - {name: course, cards: "0", give: memory, by: slices}
		tenants:
		  - name: students
		    members: {users: ["*"]}
		    guarantee: [{of: course, memory: 72G, compute: 100%}]
		    limit: [{of: course, memory: 72G}]
		    classes: [low]
		    each-user: {memory: 16G, running: 1, queued: 4, max-time: 4h}
		defaults: {memory: 16G, time: 1h}
	END
	STATE=$T/state start_loadlined
	start_sensor
}

# study UID: one student, whose tasks hold 8 GiB and are killed at a random time. Each writes its process id when it has its place.
study() {
	local uid=$1 task pid
	for task in $(seq "$TASKS"); do
		setpriv --reuid "$uid" --regid "$uid" --clear-groups "$LOADLINE" --sim run --time 10m -- \
			sh -c "echo \$\$ >$T/tasks/$uid.$task; exec '$LOADLINE_BUILD/sim/loadline-simctl' busy 0 kernel 1ms memory 8G for 100s" \
			>>"$T/tasks/$uid.out" 2>&1 &
		pid=$!
		for _ in $(seq 600); do
			[ ! -s "$T/tasks/$uid.$task" ] || break
			sleep 0.1
		done
		[ -s "$T/tasks/$uid.$task" ] || return 1
		sleep "0.$((RANDOM % 9))"
		kill -9 "$(cat "$T/tasks/$uid.$task")"
		wait "$pid" || true
	done
}

@test "a course: short jobs that are killed and started again; each gets its place, and no two hold the same memory" {
	start_course
	local uid pids=() most=0 now
	for uid in $STUDENTS; do
		study "$uid" &
		pids+=($!)
	done
	while kill -0 "${pids[@]}" 2>/dev/null; do
		now=$(loadline --sim queue list --json | jq -s '[.[].queued | select(.state == "running")] | length')
		[ "$now" -le "$most" ] || most=$now
		[ "$now" -le 4 ] # of 16 GiB each in the 72 GiB of the course
		sleep 0.2
	done
	for uid in "${pids[@]}"; do
		wait "$uid"
	done
	[ "$most" -ge 2 ]
	[ "$(cat "$T"/tasks/*.[0-9]* | wc -l)" -eq $((6 * TASKS)) ]
	wait_for 60 eval 'loadline --sim queue list | grep -q "no job runs or waits"'
	wait_for 60 status_has '[.[] | select(has("claim"))] | length == 0'
	# Each student is in the accounts.
	stop service TERM
	[ "$(loadline report --by user --json "$T/state/accounts.db" | jq -s '[.[] | select(.granted_seconds > 0)] | length')" -eq 6 ]
}
