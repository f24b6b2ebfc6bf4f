# slurm_helper.bash - a real Slurm beside helper.bash and service_helper.bash: munged, slurmctld and slurmd of this machine, with the
# files of doc/slurm.md, on simulated cards; each node has a loadlined and a sensor of its own.

# Version of control groups in which Slurm's jobs are.
CGROUPS=${SLURM_CGROUPS:-1}

PLUGIN=$LOADLINE_BUILD/src/slurm/spank_loadline.so

# doc_file NAME: the file as doc/slurm.md has it.
doc_file() {
	awk -v first="# /etc/slurm/$1" '
		$0 == first { inside = 1; found = 1 }
		/^```/ { inside = 0 }
		inside { print }
		END { exit !found }' "$BATS_TEST_DIRNAME/../../doc/slurm.md"
}

# world NODE: the folder of its simulated world.
world() {
	echo "$T/world/$1"
}

# on NODE COMMAND...: in its world.
on() {
	LOADLINE_SIM_DIR=$(world "$1") "${@:2}"
}

# doctor_says NODE TEXT
doctor_says() {
	on "$1" loadline --sim doctor --no-trial | grep -q "$2"
}

# What goes in front of a program of the nodes: nothing, or what boot sets.
BOOT=()

# boot: a machine of its own begins, with another boot id and young clocks, on which nodes run from now on. All of its processes end at once
# when the program `machine` is killed.
boot() {
	local up
	read -r up _ </proc/uptime
	cat /proc/sys/kernel/random/uuid >"$T/boot_id"
	# shellcheck disable=SC2016
	start_program machine unshare --mount --pid --time "--boottime=-$((${up%.*} - 5))" "--monotonic=-$((${up%.*} - 5))" --fork --kill-child --mount-proc \
		bash -c 'mount --bind "$0" /proc/sys/kernel/random/boot_id && echo booted && while sleep 1000; do :; done' "$T/boot_id"
	wait_for 60 grep -q booted "$T/machine.out"
	BOOT=(nsenter --target "$(pgrep -P "$(pid_of machine)")" --mount --pid --time)
}

# loadline ARG...: on the machine on which the nodes are.
loadline() {
	"${BOOT[@]}" "$LOADLINE" "$@"
}

# start_loadlined NODE
start_loadlined() {
	[ -d "$T/accounts-$1" ] || install -d -o nobody "$T/accounts-$1"
	on "$1" start_program "loadlined-$1" "${BOOT[@]}" "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --state "$T/accounts-$1" ${CONFIG:+--config "$CONFIG"}
	wait_for 60 doctor_says "$1" "(the system.s: it governs the programs of all users)"
}

start_sensor() {
	on "$1" start_program "sensor-$1" "${BOOT[@]}" setpriv --reuid nobody --regid nogroup --clear-groups env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE_BUILD/src/sensor/loadline-sensor" --every 0.5
}

# node_is NODE STATE
node_is() {
	sinfo -h -N -n "$1" -o %T | grep -qx "$2"
}

# run_slurmd NODE: version 2 is refused by it where version 1 has hierarchies.
run_slurmd() {
	local preload=("${BOOT[@]}")
	[ "$CGROUPS" = 1 ] || preload+=(env LD_PRELOAD="$LOADLINE_BUILD/tests/e2e/libonly_version_2.so")
	start_program "slurmd-$1" "${preload[@]}" slurmd -D -N "$1"
}

# job_group NODE UID JOB: the folder of the control group in which all processes of the job are.
job_group() {
	if [ "$CGROUPS" = 1 ]; then
		echo "/sys/fs/cgroup/freezer/slurm_$1/uid_$2/job_$3"
	else
		echo "$GROUPS_MOUNT/system.slice/$1_slurmstepd.scope/job_$3"
	fi
}

# step_groups NODE UID JOB STEP: of the step's processes.
step_groups() {
	local below=
	[ "$CGROUPS" = 1 ] || below=/user
	echo "$(job_group "$1" "$2" "$3")/step_$4$below"
}

# is_frozen NODE UID JOB STEP
is_frozen() {
	local group
	group=$(step_groups "$@")
	if [ "$CGROUPS" = 1 ]; then
		grep -q FROZEN "$group/freezer.state"
	else
		grep -q "frozen 1" "$group/cgroup.events"
	fi
}

start_slurmd() {
	run_slurmd "$1"
	wait_for 60 node_is "$1" idle
}

# write_slurm NODE...: the files of a cluster whose nodes have CARDS cards each (1 unless told) of SHARDS shards (16). Without root, or
# where a process cannot have control groups of its own, the test is skipped.
write_slurm() {
	local node file card cards=${CARDS:-1}
	local gres=gpu:h200:$cards,shard:$((cards * ${SHARDS:-16}))
	[ "$(id -u)" -eq 0 ] || skip "only root's slurmd can run jobs of several users"
	# slurmctld looks the submitting machine up for ten seconds otherwise, and a step waits a minute before it says again that it has ended.
	getent ahosts "$(hostname)" >/dev/null || skip "this machine's own name, $(hostname), has no address: /etc/hosts"
	if [ "$CGROUPS" = 1 ]; then
		[ -w /sys/fs/cgroup/freezer ] || skip "Slurm needs control groups here: version 1 with a freezer"
	else
		GROUPS_MOUNT=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
		mkdir -p "$GROUPS_MOUNT/system.slice" 2>/dev/null || skip "Slurm needs control groups here: version 2"
	fi
	NODES=()
	PORT=$((20000 + $$ % 4000 * 10))
	chmod 755 "$T"
	chmod 755 "$T/world"
	mkdir -m 755 "$T/etc" "$T/munge"
	mkdir "$T/spool" "$T/dev" "$T/slurmctld"
	head -c 128 /dev/urandom >"$T/munge/key"
	chmod 400 "$T/munge/key"
	for ((card = 0; card < cards; card++)); do
		mknod "$T/dev/nvidia$card" c 195 "$card"
	done
	mkdir -m 777 "$T/out"
	doc_file prolog.sh | sed "s|/run/loadline/|$T/world/\$SLURMD_NODENAME/system/|; s|/etc/slurm|$T/etc|" >"$T/etc/prolog.sh"
	sed -i '1{h;d}; 2{G}' "$T/etc/prolog.sh"
	chmod 755 "$T/etc/prolog.sh"
	for file in slurm.conf gres.conf cgroup.conf plugstack.conf; do
		doc_file "$file" | sed "s|/etc/slurm|$T/etc|g; s|/dev/nvidia\[0-7\]|$T/dev/nvidia[0-$((cards - 1))]|; s|Name=shard Count=128|Name=shard Count=${gres##*:}|" >"$T/etc/$file"
	done
	sed -i "/^NodeName/d; /^PartitionName/d" "$T/etc/slurm.conf"
	sed -i "s|spank_loadline.so|$PLUGIN loadline=$LOADLINE state=$T/state sim=$T/world/%n|" "$T/etc/plugstack.conf"
	printf '%s\n' "CgroupPlugin=cgroup/v$CGROUPS" >>"$T/etc/cgroup.conf"
	[ "$CGROUPS" = 1 ] || printf '%s\n' IgnoreSystemd=yes "CgroupMountpoint=$GROUPS_MOUNT" >>"$T/etc/cgroup.conf"
	cat >>"$T/etc/slurm.conf" <<-EOF
		ClusterName=test
		SlurmctldHost=$(hostname -s)(127.0.0.1)
		AuthInfo=socket=$T/munge/socket
		SlurmUser=root
		SlurmctldPort=$PORT
		SlurmctldPidFile=$T/slurmctld/pid
		SlurmdPidFile=$T/spool/%n.pid
		SlurmdSpoolDir=$T/spool/%n
		StateSaveLocation=$T/slurmctld
		SlurmdParameters=config_overrides
		SwitchType=switch/none
		MpiDefault=none
		JobAcctGatherType=jobacct_gather/none
		SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1
		PlugStackConfig=$T/etc/plugstack.conf
		SlurmdTimeout=300
	EOF
	for node; do
		NODES+=("$node-$$")
		echo "NodeName=$node-$$ NodeHostname=localhost NodeAddr=127.0.0.1 Port=$((++PORT)) CPUs=16 RealMemory=1000 Gres=$gres" >>"$T/etc/slurm.conf"
	done
	echo "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=YES" >>"$T/etc/slurm.conf"
	export SLURM_CONF=$T/etc/slurm.conf
}

# start_slurm [NODE]...: one node, n1, unless told.
start_slurm() {
	[ $# -gt 0 ] || set -- n1
	write_slurm "$@"
	start_written_slurm
}

# start_node NODE: what loadline has on it.
start_node() {
	on "$1" loadline --sim status >/dev/null
	start_loadlined "$1"
	start_sensor "$1"
	wait_for 60 doctor_says "$1" "^ok: sensor: ${CARDS:-1} cards"
}

# start_written_slurm: the cluster of write_slurm.
start_written_slurm() {
	local node
	start_program munged munged -F --socket="$T/munge/socket" --key-file="$T/munge/key" --log-file="$T/munge/log" \
		--pid-file="$T/munge/pid" --seed-file="$T/munge/seed"
	start_program slurmctld slurmctld -D -i
	for node in "${NODES[@]}"; do
		mkdir -m 777 "$(world "$node")"
		start_node "$node"
	done
	wait_for 60 eval 'scontrol ping | grep -q UP'
	for node in "${NODES[@]}"; do
		start_slurmd "$node"
	done
	# shellcheck disable=SC2034 # the tests read it
	NODE=${NODES[0]}
}

# end_slurm: jobs are ended, so that Slurm removes their control groups; what it leaves is removed when all have ended.
end_slurm() {
	[ -n "${NODES-}" ] || return 0
	timeout 10 scancel --user=root --signal=KILL --full 2>/dev/null || true
	timeout 10 scancel --user=root 2>/dev/null || true
}

remove_slurm_groups() {
	local node
	for node in "${NODES[@]}"; do
		find /sys/fs/cgroup/*/"slurm_$node" ${GROUPS_MOUNT:+"$GROUPS_MOUNT/system.slice/${node}_slurmstepd.scope"} -depth -type d -exec rmdir {} + 2>/dev/null || true
	done
	[ -z "${GROUPS_MOUNT-}" ] || rmdir "$GROUPS_MOUNT/system.slice" 2>/dev/null || true
}

# shows_on NODE FILTER: an object of status is so.
shows_on() {
	on "$1" loadline --sim status --json | jq -s -e "any(.[]; $2)" >/dev/null
}

# has_no_jobs NODE: no job is in loadlined's list.
has_no_jobs() {
	on "$1" loadline --sim status --json | jq -s -e '[.[] | select(has("claim") or has("job"))] == []' >/dev/null
}

# is_empty FOLDER
is_empty() {
	[ -z "$(ls "$1")" ]
}
