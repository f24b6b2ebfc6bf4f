# loadlined's sensor: what an ordinary user is told of programs without the library, and what happens if the sensor hangs.
load helper
load jobs_helper
load service_helper

# start_sensed [UID [SECONDS]]: the system's loadlined as nobody, and its sensor.
start_sensed() {
	open_world
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep -q "the system.s: it governs"'
	start_sensor_as "$@"
}

# start_stranger NAME WORD...: a program of root's on card 0 without the library.
start_stranger() {
	local name=$1
	shift
	start_program "$name" env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 "$@"
}

# told NAME FILTER: what an ordinary user's status tells of the program.
told() {
	as "$FIRST" "$LOADLINE" --sim status --json |
		jq -s -e "any(.[] | select(has(\"process\") and .pid == $(pid_of "$1")); $2)" >/dev/null
}

@test "a program without the library: its last kernel is known while it is alone on the card, and at least later" {
	start_sensed
	start_stranger first 50% kernel 5ms for 300s memory 5G
	wait_for 60 eval 'as "$FIRST" "$LOADLINE" --sim doctor --no-trial | grep "^ok: sensor: 1 cards and slices, 1 processes on them$"'
	as "$FIRST" "$LOADLINE" --sim doctor --no-trial | grep "^ok: fence: none: every program may open the cards"
	wait_for 60 told first '.last_kernel == "running" and .user == "root" and .memory_bytes > 5e9'
	sleep 2 # the sensor has seen it alone on the card while it works
	freeze_process "$(pid_of first)"
	wait_for 60 told first '.last_kernel == "ago" and .last_kernel_seconds >= 2 and .last_kernel_seconds < 60'
	# Another program works: whose work that is, nobody can tell.
	start_stranger second 50% kernel 5ms for 300s
	wait_for 60 told first '.last_kernel == "unknown"'
	as "$FIRST" "$LOADLINE" --sim status | grep "unknown: card busy"
	freeze_process "$(pid_of second)"
	wait_for 60 told first '.last_kernel == "at_least" and .last_kernel_seconds >= 2'
	kill -CONT "$(pid_of first)" "$(pid_of second)"
}

@test "a sensor that hangs does not hang loadlined, which says since when; the next one reports" {
	start_sensed
	start_stranger first 10% for 300s
	wait_for 60 status_has '[.[] | select(has("process"))] | length == 1'
	start_as_job
	wait_for 60 eval 'as "$FIRST" "$LOADLINE" --sim status --json | jq -s -e "any(.[]; .daemon.sensor_silent_seconds? != null)"'
	freeze_process "$(pid_of sensor)"
	wait_for 60 eval 'as "$FIRST" "$LOADLINE" --sim status | grep "^loadlined: its sensor has said nothing for [0-9]* s$"'
	stop sensor KILL
	start_sensor_as
	wait_for 60 eval '! as "$FIRST" "$LOADLINE" --sim status | grep "its sensor has said nothing"'
}

start_as_job() {
	start_as "$FIRST" job "$LOADLINE" --sim run --tenant quiet -- sleep 300
	wait_for 60 jobs_are 1
}

@test "an ordinary user cannot be the sensor" {
	start_sensed "$FIRST"
	start_as_job
	wait_for 60 test -s "$T/sensor.err"
	show
	loadline --sim status --json | jq -s -e 'any(.[]; .daemon and .daemon.sensor_silent_seconds == null)'
	loadline --sim doctor --no-trial | grep "has ended [0-9]* connections"
}

@test "memory of a job that its page does not have is a mismatch, in a word and a sentence" {
	start_sensed
	# One process with the library, and one that has dropped it.
	start job --sim run --tenant team --mem 10G -- bash -c \
		'env -u LD_PRELOAD LD_LIBRARY_PATH="$1/sim" "$1/sim/loadline-simctl" busy 0 5% for 300s memory 6G & exec "$1/sim/loadline-simctl" busy 0 5% for 300s memory 1G' - "$LOADLINE_BUILD"
	wait_for 60 shows 'select(has("claim") and .mismatch == "memory" and .driver_memory_bytes > 7e9)'
	as "$FIRST" "$LOADLINE" --sim status | grep "^tenant team: MISMATCH on card 0: its processes report 1.* GiB of memory, and the driver counts [78].* GiB"
	as "$FIRST" "$LOADLINE" --sim status | grep -E " team +mismatch "
	grep "tenant team, card GPU-.*: the driver counts" "$T/world/loadlined.log"
}

@test "what a job need not be charged for is no mismatch" {
	start_sensed
	start honest --sim run --tenant honest --mem 10G --count-context=no -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 5% for 300s memory 1G
	wait_for 60 shows 'select(has("claim") and .tenant == "honest" and .driver_memory_bytes > 1e9)'
	# Another job, whose mismatch is found after as many reports.
	# shellcheck disable=SC2016
	start job --sim run --tenant team --mem 10G -- bash -c \
		'env -u LD_PRELOAD LD_LIBRARY_PATH="$1/sim" "$1/sim/loadline-simctl" busy 0 5% for 300s memory 6G & exec "$1/sim/loadline-simctl" busy 0 5% for 300s memory 1G' - "$LOADLINE_BUILD"
	wait_for 60 shows 'select(has("claim") and .tenant == "team" and .mismatch == "memory")'
	shows 'select(has("claim") and .tenant == "honest" and .mismatch == null)'
	run ! grep "tenant honest, card GPU-.*: the driver counts" "$T/world/loadlined.log"
}

@test "a user who may not open the cards sees what the sensor tells of them" {
	start_sensed
	start_stranger first 50% kernel 5ms for 300s memory 5G
	start job --sim run --tenant team --mem 10G -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 5% for 300s memory 1G
	wait_for 60 shows 'select(has("claim") and .tenant == "team")'
	# As behind the fence: the driver's library cannot open the cards.
	"$LOADLINE_BUILD/sim/loadline-simctl" fail nvmlInit_v2 4
	wait_for 60 told first '.memory_bytes > 5e9'
	as "$FIRST" "$LOADLINE" --sim status
	as "$FIRST" "$LOADLINE" --sim status --json >"$T/seen.out"
	has seen 'select(has("card") and .fault == "Permission denied" and .memory_bytes > 5e9 and (.name | startswith("NVIDIA H200")))'
	has seen "select(has(\"claim\") and .tenant == \"team\" and .pid == $(pid_of job))"
	has seen "select(has(\"process\") and .pid == $(pid_of first) and .user == \"root\" and .memory_bytes > 5e9)"
	as "$FIRST" "$LOADLINE" --sim limits
	# A job is made with the cards that the sensor lists; inside it they open.
	start_as "$FIRST" late "$LOADLINE" --sim run -i 0 --tenant late --mem 4G -- \
		"$LOADLINE_BUILD/sim/loadline-simctl" busy 0 5% for 300s
	wait_for 60 eval 'as "$FIRST" "$LOADLINE" --sim status --json | jq -s -e "any(.[]; has(\"claim\") and .tenant == \"late\" and .memory_limit_bytes == 4294967296)"'
	as "$FIRST" "$LOADLINE" --sim set late --mem 5G
	"$LOADLINE_BUILD/sim/loadline-simctl" heal
}

eval "$(declare -f teardown | sed '1s/teardown/teardown_programs/')"
teardown() {
	teardown_programs
	remove_groups
}

# start_policy ACTION: loadlined with that action for ungoverned programs, and a keeper.
start_policy() {
	[ "$(id -u)" -eq 0 ] || skip "only root can be two users"
	# Programs of root's that nobody else may write to are left alone by their path.
	install -m 755 "$LOADLINE_BUILD/sim/loadline-simctl" "$T/left-alone"
	cat >"$T/loadline.yaml" <<-END
		version: 1
		cards: [{name: all, cards: "0", give: memory}]
		tenants: [{name: guests, members: {users: ["*"]}}]
		ungoverned: {action: $1, after: 1s, allow: [$T/left-alone]}
		reclaim: {stop: {signal: TERM, grace: 2s}}
	END
	loadline config check --file-only "$T/loadline.yaml"
	chmod 644 "$T/loadline.yaml"
	open_world
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/loadline.yaml"
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep -q "the system.s: it governs"'
	start_keeper
	start_capable_sensor
}

# start_outside UID NAME PROGRAM: a program of that user on card 0 without the library.
start_outside() {
	start_as "$1" "$2" env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$3" busy 0 5% for 300s
	wait_for 60 shows "select(has(\"process\") and .pid == $(pid_of "$2"))"
}

@test "ungoverned: a program outside of jobs is ended, also root's in a container; jobs, allowed programs and root's are not" {
	start_policy kill
	# shellcheck disable=SC2016
	start_as "$FIRST" job "$LOADLINE" --sim run --mem 10G -- env -i bash -c \
		'LOADLINE_SIM_DIR=$2 LD_LIBRARY_PATH="$1/sim" exec "$1/sim/loadline-simctl" busy 0 5% for 300s' - "$LOADLINE_BUILD" "$LOADLINE_SIM_DIR"
	wait_for 60 shows "select(has(\"process\") and .pid == $(pid_of job))"
	wait_for 60 shows "select(has(\"process\") and .pid == $(pid_of job) and .started_in_tenant != null)"
	start_outside "$FIRST" allowed "$T/left-alone"
	start_outside 0 root "$LOADLINE_BUILD/sim/loadline-simctl"
	start_outside "$FIRST" stray "$LOADLINE_BUILD/sim/loadline-simctl"
	wait_for 60 eval '! is_running stray'
	show
	grep "ungoverned: process $(pid_of stray) of user $FIRST (loadline-simctl) uses card GPU-.* outside of jobs" "$T/world/loadlined.log"
	grep "ungoverned: process $(pid_of stray) of user $FIRST (loadline-simctl) gets SIGKILL" "$T/world/loadlined.log"
	start_outside "$FIRST" second "$LOADLINE_BUILD/sim/loadline-simctl"
	wait_for 60 eval '! is_running second'
	start_program contained unshare --pid --fork --mount-proc --kill-child env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 5% for 300s
	wait_for 60 grep "ungoverned: process [0-9]* of user 0 (loadline-simctl) gets SIGKILL" "$T/world/loadlined.log"
	wait_for 60 eval '! is_running contained'
	is_running allowed
	is_running root
	is_running job
	run grep "process $(pid_of allowed) " "$T/world/loadlined.log"
	[ "$status" -eq 1 ]
	run grep "process $(pid_of root) .* gets" "$T/world/loadlined.log"
	[ "$status" -eq 1 ]
}

@test "ungoverned: stop ends a program that takes no SIGTERM, after the grace" {
	start_policy stop
	start_outside "$FIRST" stray "$LOADLINE_BUILD/sim/loadline-simctl"
	freeze_process "$(pid_of stray)"
	wait_for 60 grep "ungoverned: process $(pid_of stray) .* gets SIGTERM" "$T/world/loadlined.log"
	wait_for 60 eval '! is_running stray'
}

@test "ungoverned: report ends nothing" {
	start_policy report
	start_outside "$FIRST" stray "$LOADLINE_BUILD/sim/loadline-simctl"
	wait_for 60 grep "ungoverned: process $(pid_of stray) of user $FIRST" "$T/world/loadlined.log"
	sleep 12 # in which stop or kill would have ended it
	is_running stray
	run grep "gets SIG" "$T/world/loadlined.log"
	[ "$status" -eq 1 ]
}

@test "ungoverned: a process in one report alone, which may be that of a job that ends or begins, is not told" {
	start_policy report
	stop sensor KILL
	start_stranger stray 5% for 300s
	start_sensor_as "$(id -u nobody)" 8
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep "^ok: sensor: 1 cards and slices, 1 processes on them$"'
	run grep "ungoverned: process" "$T/world/loadlined.log"
	[ "$status" -eq 1 ]
	wait_for 60 grep "ungoverned: process $(pid_of stray) of user 0" "$T/world/loadlined.log"
}

@test "mismatch: a process of a job that has dropped the library is logged, and ended if configured" {
	start_policy report
	sed -i 's/^ungoverned:.*/mismatch: {action: stop}/' "$T/loadline.yaml"
	kill -HUP "$(pid_of service)"
	# shellcheck disable=SC2016
	start_as "$FIRST" job "$LOADLINE" --sim run --mem 10G -- env -i bash -c \
		'LOADLINE_SIM_DIR=$2 LD_LIBRARY_PATH="$1/sim" exec "$1/sim/loadline-simctl" busy 0 5% for 300s' - "$LOADLINE_BUILD" "$LOADLINE_SIM_DIR"
	wait_for 60 eval '! is_running job'
	show
	grep "mismatch: process $(pid_of job) of job .* of user $FIRST .* uses card GPU-.* without limits" "$T/world/loadlined.log"
	grep "stopped: job .* is stopped: a process of it uses a card without limits" "$T/world/loadlined.log"
}

@test "mismatch: a job is stopped, not the program of the moment: its shell starts no other one" {
	start_policy report
	# Without a queue the job has no place, and its control group is ended all the same.
	sed -i 's/^ungoverned:.*/mismatch: {action: stop}/; /^cards:/d' "$T/loadline.yaml"
	kill -HUP "$(pid_of service)"
	# shellcheck disable=SC2016
	start_as "$FIRST" job "$LOADLINE" --sim run --mem 10G -- env -i bash -c \
		'trap : TERM; export LOADLINE_SIM_DIR=$2 LD_LIBRARY_PATH="$1/sim"; while :; do "$1/sim/loadline-simctl" busy 0 5% for 300s; done' - \
		"$LOADLINE_BUILD" "$LOADLINE_SIM_DIR"
	wait_for 60 eval '! is_running job'
	wait_for 60 shows_none 'select(has("process"))'
}

@test "after a restart of loadlined the sensor reports at once, not at its next round" {
	start_sensed "$(id -u nobody)" 600
	wait_for 60 grep -q "the sensor reports 1 cards" "$T/world/loadlined.log"
	sleep 1 # a connection that ends within a second was refused
	stop service KILL
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody
	wait_for 60 eval '[ "$(grep -c "the sensor reports 1 cards" "$T/world/loadlined.log")" -eq 2 ]'
}

# loads_driver OPTION...: a run that loads NVIDIA's library itself.
loads_driver() {
	LD_DEBUG=files loadline --sim run "$@" -- true 2>"$T/loaded"
	grep -q "calling init: .*libnvidia-ml" "$T/loaded"
}

@test "run needs no driver where the sensor lists the cards; it opens it for a list of the user's, and without a sensor" {
	start_sensed
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep "^ok: sensor: 1 cards"'
	run ! loads_driver --mem 2G
	CUDA_VISIBLE_DEVICES=0 loads_driver --mem 2G
	stop sensor
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep "sensor: .*\(no sensor\|silent\|nothing\)"'
	loads_driver --mem 2G
}
