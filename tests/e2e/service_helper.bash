# service_helper.bash - what the tests of the system's loadlined use besides helper.bash: several users, who have no account.
# shellcheck disable=SC2034 # the tests read them

FIRST=61234
SECOND=61235

# as UID COMMAND...
as() {
	local uid=$1
	shift
	setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}

# start_as UID NAME COMMAND...: start_program of that user.
start_as() {
	local uid=$1 name=$2
	shift 2
	start_program "$name" setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}

# start_sensor_as [UID [SECONDS]]: the sensor, which reports when it connects, and then each so many seconds; nobody's, twice a second.
start_sensor_as() {
	start_as "${1-$(id -u nobody)}" sensor env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE_BUILD/src/sensor/loadline-sensor" --every "${2-0.5}"
}

# start_capable_sensor: with the capability that its unit gives it, by which it knows programs of others in containers and by their paths.
start_capable_sensor() {
	start_program sensor setpriv --reuid nobody --regid nogroup --clear-groups --inh-caps +sys_ptrace --ambient-caps +sys_ptrace \
		env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE_BUILD/src/sensor/loadline-sensor" --every 0.5
}

# serves: is the program `service` the loadlined that commands ask?
serves() {
	loadline --sim doctor --no-trial | grep -q "^ok: loadlined: version .*, pid $(pid_of service): "
}

# config_file [LINE]...: the configuration in $T/conf: standard input, and then the lines.
config_file() {
	mkdir -p "$T/conf"
	chmod 755 "$T/conf"
	cat >"$T/conf/loadline.yaml"
	[ $# -eq 0 ] || printf '%s\n' "$@" >>"$T/conf/loadline.yaml"
}

# open_world [CARDS]: a simulated world that all users may use; root makes its files. CARDS: as in --sim=CARDS. Without root
# the test is skipped.
open_world() {
	[ "$(id -u)" -eq 0 ] || skip "only root can be several users"
	chmod 755 "$T"
	chmod 777 "$T/world"
	loadline --sim"${1:+=$1}" status >/dev/null
}

# claim_of NAME: of the program, such as 0/17.
claim_of() {
	loadline --sim status --json | jq -r "select(has(\"claim\") and .pid == $(pid_of "$1")) | .claim"
}

# "${WITHOUT_VERSION_2[@]}" COMMAND...: where no control groups of version 2 are mounted.
# shellcheck disable=SC2016 # the inner shell expands it
WITHOUT_VERSION_2=(unshare --mount bash -c '
	for mounted in $(awk "\$3 == \"cgroup2\" { print \$2 }" /proc/self/mounts); do
		umount --lazy "$mounted" || exit 99
	done
	exec "$@"' -)

# start_keeper: with its rights, after loadlined; without control groups of version 2 the test is skipped. The groups of jobs
# are below the keeper's own. A test file with it has a teardown that calls remove_groups.
start_keeper() {
	local mounted
	mounted=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
	GROUPS_ROOT=$mounted/loadline-test-$$-$BATS_TEST_NUMBER
	mkdir "$GROUPS_ROOT" 2>/dev/null || skip "no control group of version 2 can be made here"
	# shellcheck disable=SC2016
	start_program keeper bash -c 'echo $$ >"$1/cgroup.procs" && exec "$2" --user nobody --groups folder' - "$GROUPS_ROOT" \
		"$LOADLINE_BUILD/src/keeper/loadline-keeper"
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep -q "loadline-keeper serves it"'
}

# remove_groups: what is left in them is ended first.
remove_groups() {
	[ -z "${GROUPS_ROOT-}" ] || while [ -d "$GROUPS_ROOT" ]; do
		echo 1 2>/dev/null >"$GROUPS_ROOT/cgroup.kill" || true
		find "$GROUPS_ROOT" -depth -type d -exec rmdir {} + 2>/dev/null || true
	done
}

# Of a shell in a mount namespace, MACHINE FOLDER COMMAND...: the folder is /run/cdi. crun takes control groups of version 1 or of
# version 2, not both at once, so version 2 is out of its sight where version 1 is mounted.
# shellcheck disable=SC2016,SC2034 # it is for that shell; the tests of containers read it
MACHINE='
	if grep -q " cgroup " /proc/self/mounts; then
		for mounted in $(awk "\$3 == \"cgroup2\" { print \$2 }" /proc/self/mounts); do umount --lazy "$mounted"; done
	fi
	mount --bind "$1" /run/cdi
	shift
	exec "$@"'
