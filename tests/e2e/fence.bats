# The fence: device files of the cards open inside the control groups of jobs only. Each test has a folder of control groups of its
# own, which it takes for the machine's root. Without a driver an open that is let through ends with ENXIO.
# shellcheck disable=SC2030,SC2031 # bats runs each test in a process of its own
load helper
load service_helper

fence() {
	"$LOADLINE_BUILD/src/keeper/loadline-keeper" fence "$1" --root "$GROUPS_ROOT" "${@:2}"
}

# orders_fence true|false: what the configuration says.
orders_fence() {
	[ -d "$T/conf" ] || mkdir -m 755 "$T/conf"
	printf 'version: 1\nenforce: {devices: %s}\n' "$1" >"$T/conf/loadline.yaml"
}

# start_fence [true|false]: the keeper, as the service runs it.
start_fence() {
	orders_fence "${1:-true}"
	start_program fence "$LOADLINE_BUILD/src/keeper/loadline-keeper" --user nobody --groups folder --config "$T/conf" --root "$GROUPS_ROOT"
}

# make_groups: as a systemd has them. Skips where that cannot be done; a kernel without BPF programs for the devices of control
# groups has no fence.
make_groups() {
	[ "$(id -u)" -eq 0 ] || skip "only root makes control groups"
	local mounted name
	mounted=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
	[ -n "$mounted" ] || skip "no control groups of version 2 are mounted"
	GROUPS_ROOT=$mounted/loadline-test-$$-$BATS_TEST_NUMBER
	mkdir "$GROUPS_ROOT" 2>/dev/null || skip "no control group can be made in $mounted"
	for name in user.slice/session-1.scope system.slice/nvidia-persistenced.service system.slice/cron.service \
		loadline.slice/loadline-61234.slice/job-1.scope docker; do
		mkdir -p "$GROUPS_ROOT/$name"
	done
	mknod "$T/nvidia0" c 195 0 || skip "no device file can be made in $T"
	chmod 666 "$T/nvidia0"
	chmod 755 "$T"
	[ "$(opens user.slice/session-1.scope)" = ENXIO ] || skip "a device without a driver does not end with ENXIO here"
	fence on 2>"$T/on.err" || skip "$(cat "$T/on.err")"
	fence off
}

teardown_groups() {
	local name
	[ -z "${GROUPS_ROOT-}" ] || while [ -d "$GROUPS_ROOT" ]; do
		find "$GROUPS_ROOT" -depth -type d -exec rmdir {} + 2>/dev/null || true
	done
}

eval "$(declare -f teardown | sed '1s/teardown/teardown_programs/')"
teardown() {
	teardown_programs
	teardown_groups
}

# opens GROUP [COMMAND]...: how opening the card's file ends for a program in the group.
opens() {
	local group=$1
	shift
	(
		echo "$BASHPID" >"$GROUPS_ROOT/$group/cgroup.procs"
		exec "$@" "$LOADLINE_BUILD/tests/e2e/open_device" "$T/nvidia0"
	)
}

is_closed() {
	[ "$(opens "$@")" = EPERM ]
}

is_open() {
	[ "$(opens "$@")" = ENXIO ]
}

@test "sessions, env -i, static programs are outside; jobs and NVIDIA's services are not; off opens all" {
	make_groups
	fence on
	is_closed user.slice/session-1.scope
	is_closed user.slice/session-1.scope setpriv --reuid "$FIRST" --regid "$FIRST" --clear-groups
	is_closed user.slice/session-1.scope env -i
	is_closed docker
	is_closed system.slice/cron.service
	# A group of the user's own, below.
	mkdir "$GROUPS_ROOT/user.slice/session-1.scope/own"
	is_closed user.slice/session-1.scope/own env -i
	# open_device is a static program where the C library can be linked so: no preloaded library sees it.
	is_open loadline.slice/loadline-61234.slice/job-1.scope
	is_open loadline.slice/loadline-61234.slice/job-1.scope setpriv --reuid "$FIRST" --regid "$FIRST" --clear-groups env -i
	is_open system.slice/nvidia-persistenced.service
	fence show >"$T/show.out"
	grep -x "closed /user.slice" "$T/show.out"
	grep -x "closed /system.slice/cron.service" "$T/show.out"
	grep -x "open /loadline.slice" "$T/show.out"
	loadline --sim doctor --no-trial | grep "^ok: fence: device files of the cards (numbers 195.*) open in these control groups alone: .*/loadline.slice"
	fence off
	is_open user.slice/session-1.scope
	is_open user.slice/session-1.scope/own
	is_open system.slice/cron.service
	[ ! -e "$T/world/loadline-keeper/fence" ]
	run fence show
	[ "$status" -eq 1 ]
	# A second time, and twice.
	fence on --keep-open /docker
	fence on --keep-open /docker
	is_open docker
	is_closed user.slice/session-1.scope
	fence off
	is_open user.slice/session-1.scope
}

@test "groups that appear are closed; a kill leaves it closed; SIGTERM and off open it" {
	make_groups
	start_fence
	wait_for 60 is_closed user.slice/session-1.scope
	mkdir "$GROUPS_ROOT/machine.slice" "$GROUPS_ROOT/system.slice/new.service"
	wait_for 60 is_closed machine.slice
	wait_for 60 is_closed system.slice/new.service
	# Killed, it leaves the fence closed. The next one goes on, and opens it when it is ended.
	stop fence KILL
	is_closed user.slice/session-1.scope
	fence show
	start_fence
	wait_for 60 grep -q "WARN the fence is closed (enforce.devices)" "$T/fence.err"
	is_closed user.slice/session-1.scope
	stop fence TERM
	[ "$status" -eq 0 ]
	is_open user.slice/session-1.scope
	is_open machine.slice
	[ ! -e "$T/world/loadline-keeper/fence" ]
	# Killed, and opened by hand.
	start_fence
	wait_for 60 is_closed machine.slice
	stop fence KILL
	fence off
	is_open machine.slice
	[ ! -e "$T/world/loadline-keeper/fence" ]
}

@test "the fence follows the configuration at SIGHUP and at a start, and one with faults changes nothing" {
	make_groups
	start_fence
	wait_for 60 is_closed user.slice/session-1.scope
	orders_fence false
	kill -HUP "$(pid_of fence)"
	wait_for 60 is_open user.slice/session-1.scope
	[ ! -e "$T/world/loadline-keeper/fence" ]
	orders_fence true
	kill -HUP "$(pid_of fence)"
	wait_for 60 is_closed user.slice/session-1.scope
	orders_fence nonsense
	kill -HUP "$(pid_of fence)"
	wait_for 60 grep -q "the configuration has faults; the fence stays as it is" "$T/fence.err"
	mkdir "$GROUPS_ROOT/machine.slice"
	wait_for 60 is_closed machine.slice
	# With faults the next one goes on with what it finds.
	stop fence KILL
	start_fence nonsense
	wait_for 60 grep -q "WARN the fence is closed (enforce.devices)" "$T/fence.err"
	stop fence KILL
	is_closed user.slice/session-1.scope
	start_fence false
	wait_for 60 is_open user.slice/session-1.scope
	[ ! -e "$T/world/loadline-keeper/fence" ]
}

@test "only root may change the fence, and a folder of anything else is refused" {
	[ "$(id -u)" -eq 0 ] || skip "only root makes control groups"
	make_groups
	run setpriv --reuid "$FIRST" --regid "$FIRST" --clear-groups "$LOADLINE_BUILD/src/keeper/loadline-keeper" fence on --root "$GROUPS_ROOT"
	[ "$status" -eq 1 ]
	[[ $output == *"only root may change the fence"* ]]
	run "$LOADLINE_BUILD/src/keeper/loadline-keeper" fence on --root "$T"
	[ "$status" -eq 1 ]
	[[ $output == *"not a folder of control groups of version 2"* ]]
	run "$LOADLINE_BUILD/src/keeper/loadline-keeper" fence on --keep-open nonsense --root "$GROUPS_ROOT"
	[ "$status" -eq 2 ]
}

@test "with version 1 alone, and where all processes are in the root group, the fence says so and refuses" {
	make_groups
	for word in show on off; do
		run "${WITHOUT_VERSION_2[@]}" "$LOADLINE_BUILD/src/keeper/loadline-keeper" fence "$word"
		[ "$status" -eq 3 ]
		[ "$output" = "loadline-keeper: no control groups of version 2 are mounted" ]
	done
	orders_fence true
	start_program fence "${WITHOUT_VERSION_2[@]}" "$LOADLINE_BUILD/src/keeper/loadline-keeper" --user nobody --config "$T/conf"
	wait_for 60 grep -q "ERROR the fence: no control groups of version 2 are mounted; what is closed stays so" "$T/fence.err"
	stop fence TERM
	[ "$status" -eq 0 ]
	run "$LOADLINE_BUILD/src/keeper/loadline-keeper" fence on --root "$GROUPS_ROOT/loadline.slice/loadline-61234.slice/job-1.scope"
	[ "$status" -eq 3 ]
	[[ $output == *"all processes are in the root group, which cannot be fenced" ]]
	[ ! -e "$T/world/loadline-keeper/fence" ]
}

@test "doctor: a fence that the configuration orders and that is not there is a failure, and none is fine where none is ordered" {
	open_world
	mkdir -m 755 "$T/conf"
	printf 'version: 1\nenforce: {devices: true}\n' >"$T/conf/loadline.yaml"
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	wait_for 60 eval 'loadline --sim doctor --no-trial >"$T/doctor"; grep -q "^ok: loadlined: version" "$T/doctor"'
	grep "^fail: fence: none, although the configuration orders one" "$T/doctor"
	grep -qx "limits do not hold here" "$T/doctor"
	printf 'version: 1\nenforce: {devices: false}\n' >"$T/conf/loadline.yaml"
	kill -HUP "$(pid_of service)"
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep "^ok: fence: none"'
}
