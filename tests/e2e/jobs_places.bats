# Where loadlined is reached, and what ends it: control groups, namespaces, users.
load helper
load jobs_helper

# make_group: a control group of version 2, or the test is skipped. It is $group.
make_group() {
	local root
	root=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/mounts | head -n 1)
	[ -n "$root" ] || skip "no control groups of version 2"
	group=$root/loadline-test-$$-$BATS_TEST_NUMBER
	mkdir "$group" 2>/dev/null || skip "no control group can be made here"
	[ -e "$group/cgroup.kill" ] || { rmdir "$group" && skip "groups cannot be ended here (Linux before 5.14)"; }
	sh -c "echo \$\$ >$group/cgroup.procs" 2>/dev/null || { rmdir "$group" && skip "no process can be put into a group here"; }
}

# In it: COMMAND... in the group.
in_group() {
	sh -c "echo \$\$ >$group/cgroup.procs && exec \"\$@\"" sh "$@"
}

remove_group() {
	wait_for 60 rmdir "$group"
}

@test "if the control group of the first job is ended, the others' monitors start loadlined again" {
	make_group
	start_program first in_group "$LOADLINE" --sim run --tenant first -- sleep 100
	wait_for 60 jobs_are 1
	start second --sim run --tenant second -- sleep 100
	start third --sim run --tenant third -- sleep 100
	wait_for 60 jobs_are 3
	grep -q "${group##*/}" "/proc/$(pids loadlined)/cgroup"
	loadline --sim doctor --no-trial | grep -q "^ok: loadlined: it is in control group /${group##*/}, and ends with it"
	echo 1 >"$group/cgroup.kill"
	wait_for 60 jobs_are 2
	[ "$(loadline --sim status --json | jq -r 'select(.job).job.tenant' | sort | xargs)" = "second third" ]
	lacks "${group##*/}" cat "/proc/$(pids loadlined)/cgroup"
	remove_group
}

# frozen_and_back: says what is expected while loadlined, with the first job, is frozen, and thaws it.
frozen_and_back() {
	loadline --sim status | grep -q "^loadlined, pid [0-9]*, has not answered within 1 s"
	[ "$(loadline --sim status --json | jq -r 'select(.daemon).daemon.answer')" = silent ]
	loadline --sim doctor --no-trial | grep -q "^fail: loadlined: pid [0-9]* does not answer within 1 s; it is stopped, or frozen"
	[ "$(timeout 120 "$LOADLINE" --sim run -- echo over)" = over ]
	start second --sim run --tenant second -- sleep 100
	"$@"
	wait_for 60 jobs_are 2
}

@test "while the group of loadlined is frozen, commands say so and run goes on; then all is known" {
	make_group
	start_program first in_group "$LOADLINE" --sim run --tenant first -- sleep 100
	wait_for 60 jobs_are 1
	echo 1 >"$group/cgroup.freeze"
	wait_for 60 grep -q 'frozen 1' "$group/cgroup.events"
	frozen_and_back eval "echo 0 >$group/cgroup.freeze"
	echo 1 >"$group/cgroup.kill"
	remove_group
}

# end_group: its processes leave before the group goes. A monitor may have started another loadlined meanwhile.
end_group() {
	local pid
	while read -r pid; do
		kill -KILL "$pid"
	done <"$group/cgroup.procs"
	rmdir "$group"
}

@test "the same with the freezer of version 1" {
	local root
	root=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup [^ ]*\bfreezer\b.*/\1/p' /proc/mounts | head -n 1)
	[ -n "$root" ] || skip "no freezer of version 1"
	group=$root/loadline-test-$$-$BATS_TEST_NUMBER
	mkdir "$group" 2>/dev/null || skip "no control group can be made here"
	start_program first in_group "$LOADLINE" --sim run --tenant first -- sleep 100
	wait_for 60 jobs_are 1
	echo FROZEN >"$group/freezer.state"
	wait_for 60 grep -q FROZEN "$group/freezer.state"
	frozen_and_back eval "echo THAWED >$group/freezer.state"
	wait_for 60 end_group
}

# bats test_tags=main
@test "a job in a PID namespace of its own is known outside, and its end too" {
	unshare --pid --fork --mount-proc true 2>/dev/null || skip "no new PID namespace here"
	start outer --sim run --tenant outer -- sleep 100
	wait_for 60 jobs_are 1
	start_program inner unshare --pid --fork --mount-proc --kill-child "$LOADLINE" --sim run --tenant inner -- sleep 100
	wait_for 60 jobs_are 2
	# Numbers of processes are those outside.
	pid=$(loadline --sim status --json | jq -r 'select(.job.tenant == "inner").job.pid')
	[ "$(cat "/proc/$pid/comm")" = sleep ]
	stop inner KILL
	wait_for 60 jobs_are 1
}

@test "a loadlined that was started in a PID namespace ends with it, and is started again outside" {
	unshare --pid --fork --mount-proc true 2>/dev/null || skip "no new PID namespace here"
	start_program inner unshare --pid --fork --mount-proc --kill-child "$LOADLINE" --sim run --tenant inner -- sleep 100
	wait_for 60 jobs_are 1
	start outer --sim run --tenant outer -- sleep 100
	wait_for 60 jobs_are 2
	stop inner KILL
	wait_for 60 status_has '[.[] | select(.job).job | .tenant, .pid_is_local] == ["outer", true]'
}

@test "root in a user namespace has the loadlined of the user outside" {
	unshare --user --map-root-user true 2>/dev/null || skip "no new user namespace here"
	start outer --sim run --tenant outer -- sleep 100
	wait_for 60 jobs_are 1
	start_program inner unshare --user --map-root-user "$LOADLINE" --sim run --tenant inner -- sleep 100
	wait_for 60 jobs_are 2
	has_pids loadlined 1
}

@test "in a network namespace of its own a program has its own loadlined, and doctor says so" {
	unshare --net true 2>/dev/null || skip "no new network namespace here"
	start outer --sim run --tenant outer -- sleep 100
	wait_for 60 jobs_are 1
	start_program inner unshare --net "$LOADLINE" --sim run --tenant inner -- sleep 100
	wait_for 60 has_pids loadlined 2
	jobs_are 1
	unshare --net "$LOADLINE" --sim doctor --no-trial | grep -q "^warn: loadlined: this network namespace is not the machine's"
	lacks "this network namespace" loadline --sim doctor --no-trial
}

# binder NAME: binds loadlined's abstract name, says so, and waits.
binder() {
	python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("\0" + sys.argv[1])
s.listen()
print("bound", flush=True)
time.sleep(1000)' "$1"
}

place() {
	loadline --sim run -- true
	loadline --sim doctor --no-trial | sed -n 's/^ok: loadlined: version .*, @//p'
}

@test "if another user has the name, nothing is told to that user, run refuses limits, and status and doctor say who it is" {
	[ "$(id -u)" -eq 0 ] || skip "only root can be two users"
	local name
	name=$(place)
	[ -n "$name" ]
	wait_for 60 has_pids loadlined 0
	export -f binder
	start_program other setpriv --reuid 61234 --regid 61234 --clear-groups bash -c "binder $name"
	wait_for 60 grep -q bound "$T/other.out"
	[ "$(timeout 120 "$LOADLINE" --sim run -- echo over 2>"$T/warning")" = over ]
	grep -q "another user has the name of loadlined, @$name; the command runs ungoverned" "$T/warning"
	fails_with 125 "limits cannot be put in force: another user has the name of loadlined, @$name" --sim run --mem 1G -- true
	loadline --sim status | grep -q "^loadlined: user 61234 has its name @$name: jobs are not shown"
	loadline --sim doctor --no-trial | grep -q "^fail: loadlined: user 61234 has its name, @$name; it cannot be started"
}

@test "doctor names other users whose loadlined governs programs on this machine" {
	[ "$(id -u)" -eq 0 ] || skip "only root can be two users"
	local name
	name=$(place)
	export -f binder
	start_program other setpriv --reuid 61234 --regid 61234 --clear-groups bash -c "binder ${name/#loadline\/0/loadline\/61234}"
	wait_for 60 grep -q bound "$T/other.out"
	loadline --sim doctor --no-trial | grep -q "^warn: loadlined: one of user 61234 governs programs on this machine too"
}

# bats test_tags=main
@test "doctor: none runs; then its version, jobs, and what it could not reset" {
	loadline --sim doctor --no-trial | grep -q "^ok: loadlined: none runs; \`loadline --sim run\` starts one"
	start_program job sh -c "ulimit -n 1000; exec \"\$@\"" sh "$LOADLINE" --sim run -- sleep 100
	wait_for 60 jobs_are 1
	loadline --sim doctor --no-trial >"$T/doctor"
	grep -q "^ok: loadlined: version .*, pid $(pids loadlined): 1 job of 1 tenant, @loadline/" "$T/doctor"
	grep -q "^warn: loadlined: it keeps from the shell or job that started it: at most so many open files (ulimit -Hn): 1000" "$T/doctor"
}
