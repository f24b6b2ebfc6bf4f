# Jobs of a real Slurm on simulated cards: each is held to its part of a card, or is refused.
# shellcheck disable=SC2153 # slurm_helper.bash sets NODE and NODES
export NEEDS="src/slurm/spank_loadline.so slurmctld slurmd srun munged"
load helper
load jobs_helper
load service_helper
load slurm_helper

eval "$(declare -f teardown | sed '1s/teardown/teardown_of_helper/')"
teardown() {
	end_slurm
	teardown_of_helper
	remove_slurm_groups
}

# What a program of the job can have: the last word is where it ends.
memory() {
	echo "python3 $BATS_TEST_DIRNAME/card_memory.py context $*"
}

@test "a job with shards has its part of the card without an option, by srun, sbatch and arrays; options make it less, and no more" {
	start_slurm
	# 4 of 16: a quarter of 140.4 GiB is 35.1 GiB, with the context.
	# shellcheck disable=SC2046
	run -0 srun --gres=shard:4 $(memory alloc 34000 alloc 3000 card)
	[[ $output == *"alloc ok"*"alloc 2"*"card 359"* ]]
	run -0 srun --gres=shard:4 --ll-mem=20G --ll-compute=10% --ll-weight=2 --ll-class=low sh -c 'echo $LOADLINE_RUN'
	[[ $output == *";mem=21474836480;"*";compute=100;weight=2000;"*";place=$(world "$NODE")/system/socket;"* ]]
	[[ $(srun --gres=gpu:1 sh -c 'echo $LOADLINE_RUN') == *";mem=0;"*";compute=0;"* ]]
	run -1 srun --gres=shard:4 --ll-mem=40G true
	[[ $output == *"loadline: the step is refused: --ll-mem=40G: 4 of 16 shards are 359"*" MiB of the card"* ]]
	run -1 srun --ll-mem=40G true
	[[ $output == *"limits without a card: ask Slurm for one"* ]]
	# At submission.
	for try in srun sbatch salloc; do
		[ "$try" = sbatch ] && words=(--wrap true) || words=(true)
		run ! "$try" --gres=shard:4 --ll-mem=20 "${words[@]}"
		echo "$output"
		[[ $output == *"loadline: --ll-mem: '20': "* ]]
		"$try" --help | grep -q -- --ll-compute=SHARE
	done
	cat >"$T/out/job.sh" <<-'EOF'
		#!/bin/sh
		#SBATCH --gres=shard:2
		#SBATCH --ll-compute=5%
		echo "$SLURM_ARRAY_TASK_ID $LOADLINE_RUN"
		srun sh -c 'echo step $LOADLINE_RUN'
	EOF
	sbatch --wait --uid=games --array=1-2 --output="$T/out/%a" --chdir="$T/out" "$T/out/job.sh"
	for i in 1 2; do
		grep "^$i id=.*;compute=50;" "$T/out/$i"
		grep "^step id=.*;compute=50;" "$T/out/$i"
		! grep error "$T/out/$i"
	done
	[ "$(cut -d';' -f2 "$T/out"/[12] | sort -u | wc -l)" -eq 2 ]
	[ "$(salloc --quiet --gres=shard:1 srun sh -c 'echo $LOADLINE_RUN' | grep -o "compute=[0-9]*")" = compute=62 ]
	# Without a card and without an option nothing is done, and the node is as before.
	[ -z "$(srun sh -c 'echo $LOADLINE_RUN$LD_PRELOAD')" ]
	wait_for 60 has_no_jobs "$NODE"
	wait_for 60 is_empty "$T/state"
	wait_for 60 eval 'sinfo -h -o %T | grep -q "^idle$"'
}

# is_drained TEXT: the node, and Slurm's reason has the text.
is_drained() {
	scontrol show node "$NODE" >"$T/node"
	grep -q "State=.*DRAIN" "$T/node" && grep -q "Reason=.*$1" "$T/node"
}

# again: the node takes jobs, and the one that waits begins. Slurm lets a job that was queued again wait for two minutes.
again() {
	local job
	job=$(squeue -h -o %i)
	scontrol update nodename="$NODE" state=resume
	scontrol release "$job"
	# Slurm knows by the second which of the two runs a credential is for.
	scontrol update job="$job" starttime=now+2
}

@test "without loadlined, and without the plugin, no job runs: the node is drained, and the job waits" {
	start_slurm
	stop "loadlined-$NODE"
	sbatch --gres=shard:4 --output="$T/out/job" --chdir="$T/out" --wrap 'echo $LOADLINE_RUN'
	wait_for 60 is_drained "Prolog error"
	[ ! -e "$T/out/job" ]
	start_loadlined "$NODE"
	wait_for 60 doctor_says "$NODE" "^ok: sensor: 1 cards"
	again
	wait_for 60 grep -qs ";compute=250;" "$T/out/job"
	# The file of the plugin is gone.
	wait_for 60 eval '[ -z "$(squeue -h)" ]'
	cp "$T/etc/plugstack.conf" "$T/etc/kept"
	sed -i 's/spank_loadline.so/spank_none.so/' "$T/etc/plugstack.conf"
	# It stops commands too; this one is on a machine that has the plugin.
	sed 's|/plugstack.conf|/kept|' "$T/etc/slurm.conf" >"$T/etc/elsewhere.conf"
	SLURM_CONF=$T/etc/elsewhere.conf sbatch --gres=shard:4 --output="$T/out/second" --chdir="$T/out" --wrap true
	wait_for 60 is_drained "Prolog error"
	[ ! -e "$T/out/second" ]
}

# told NODE TEXT
told() {
	grep -qE "$2" "$T/loadlined-$1.err" "$T/loadlined-$1.out" "$(world "$1")/loadlined.log" 2>/dev/null
}

@test "what has lost its environment is known by its control group: steps, and logins that Slurm adopts into the job" {
	start_slurm
	# srun --export=NONE, and a variable that is taken away behind the plugin.
	[[ $(srun --gres=shard:4 --export=NONE /usr/bin/env) == *"LOADLINE_RUN=id="*";compute=250;"* ]]
	printf '%s\n' '#!/bin/sh' 'echo unset LOADLINE_RUN' >"$T/out/lose-run"
	printf '%s\n' '#!/bin/sh' 'echo unset LOADLINE_RUN' 'echo unset LD_PRELOAD' >"$T/out/lose-all"
	chmod 755 "$T/out"/lose-*
	# The library asks loadlined for the limits of its group.
	# shellcheck disable=SC2046
	run -0 srun --gres=shard:4 --task-prolog="$T/out/lose-run" $(memory alloc 34000 alloc 3000 card)
	[[ $output == *"alloc ok"*"alloc 2"*"card 359"* ]]
	# A process that ssh starts has neither parents nor variables of the job; pam_slurm_adopt puts it into the extern step.
	job=$(sbatch --parsable --uid=games --gres=shard:4 --output="$T/out/job" --chdir="$T/out" --wrap 'sleep 300')
	group=$(step_groups "$NODE" "$(id -u games)" "$job" extern)
	[ "$CGROUPS" = 1 ] || group=$group/task_special
	wait_for 60 grep -qs . "$group/cgroup.procs"
	wait_for 60 shows_on "$NODE" "(.job | type) == \"object\" and .job.tenant == \"slurm-$job\""
	# shellcheck disable=SC2016,SC2046
	run -0 bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec setpriv --reuid games --regid games --clear-groups env -i "$@"' - "$group" \
		LD_PRELOAD="$LOADLINE_BUILD/src/shim/libloadline-cuda.so:$LOADLINE_BUILD/sim/libloadline-sim-kernel.so" \
		LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" LOADLINE_SIM_DIR="$(world "$NODE")" $(memory alloc 34000 alloc 3000 card)
	[[ $output == *"alloc ok"*"alloc 2"*"card 359"* ]]
	# Without the library it cannot be held to anything: it is a process of the job without limits, and the policy says what
	# becomes of the job.
	start_program stray srun --gres=shard:4 --task-prolog="$T/out/lose-all" env LOADLINE_SIM_DIR="$(world "$NODE")" LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" \
		"$LOADLINE_BUILD/sim/loadline-simctl" busy 0 5% for 300s
	wait_for 60 told "$NODE" "mismatch: process [0-9]+ of job [0-9]+ of user 0 .* uses card GPU-.* without limits"
}

@test "control groups of version 2: a job is known by its group, and the fence keeps Slurm's jobs open, who have the cards that Slurm gives" {
	CGROUPS=2
	start_slurm
	open_card=("$LOADLINE_BUILD/tests/e2e/open_device" "$T/dev/nvidia0")
	chmod 755 "$T/dev"
	chmod 666 "$T/dev/nvidia0"
	printf '%s\n' '#!/bin/sh' 'echo unset LOADLINE_RUN' >"$T/out/lose-run"
	chmod 755 "$T/out/lose-run"
	# shellcheck disable=SC2046
	run -0 srun --gres=shard:4 --task-prolog="$T/out/lose-run" $(memory alloc 34000 alloc 3000 card)
	[[ $output == *"alloc ok"*"alloc 2"*"card 359"* ]]
	# Slurm's own devices: without a driver an open that is let through ends with ENXIO.
	[ "$(srun --gres=shard:1 "${open_card[@]}")" = ENXIO ]
	[ "$(srun "${open_card[@]}")" = EPERM ]
	# The fence as it closes this machine's services, in the slice of Slurm's scope.
	fence=("$LOADLINE_BUILD/src/keeper/loadline-keeper" fence)
	slice=$GROUPS_MOUNT/system.slice
	mkdir "$slice/cron-$$.service"
	job=$(sbatch --parsable --gres=shard:1 --output=/dev/null --chdir="$T/out" --wrap 'sleep 300')
	wait_for 60 grep -qs . "$(step_groups "$NODE" 0 "$job" batch)/task_0/cgroup.procs"
	LOADLINE_SIM_DIR=$(world "$NODE") "${fence[@]}" on --root "$slice"
	run -0 "${fence[@]}" show --root "$slice"
	[[ $output == *"closed /cron-$$.service"* && $output == *"open /${NODE}_slurmstepd.scope"* ]]
	[ "$(bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$slice/cron-$$.service" "${open_card[@]}")" = EPERM ]
	[ "$(srun --gres=shard:1 "${open_card[@]}")" = ENXIO ]
	[ "$(srun "${open_card[@]}")" = EPERM ]
	on "$NODE" loadline --sim doctor --no-trial | grep "^ok: fence: .*/${NODE}_slurmstepd.scope"
	# A group that has a program of Slurm's and is none of its scope: it is named, by doctor too, and the others are closed.
	LOADLINE_SIM_DIR=$(world "$NODE") run -1 "${fence[@]}" on --root "$slice/${NODE}_slurmstepd.scope"
	[[ $output == *"has a program for devices that lets no other be beside it, such as Slurm's: keep that group open (--keep-open)"* ]]
	on "$NODE" loadline --sim doctor --no-trial >"$T/doctor" || true
	grep "^fail: fence: not closed everywhere: control groups: /job_" "$T/doctor"
	"${fence[@]}" off --root "$slice"
	rmdir "$slice/cron-$$.service"
	scancel "$job"
	wait_for 60 has_no_jobs "$NODE"
}

# ran_twice JOB: both runs are in the accounts.
ran_twice() {
	on "$NODE" loadline --sim history --json >"$T/history"
	jq -s -e --arg name "slurm-$1" '[.[] | select(.name == $name)] | length == 2 and all(.[]; .project == "thesis" and .uid == 5)' "$T/history"
}

# seconds_of JOB: of GPU time.
seconds_of() {
	on "$NODE" loadline --sim status --json | jq "select(has(\"claim\") and .tenant == \"slurm-$1\").gpu_seconds"
}

# used_card NODE PROJECT: by the accounts.
used_card() {
	on "$1" loadline --sim report --by project --json | jq -s -e --arg name "$2" 'any(.[]; .project == $name and .used_seconds > 0)'
}

# ended NODE JOB: Slurm's epilog has run, and the history of loadlined's accounts has the job.
ended() {
	on "$1" loadline --sim history --json | jq -s -e --arg name "slurm-$2" 'any(.[]; .name == $name and .end)' >/dev/null
}

@test "a job is one of loadlined from its prolog to its end: accounts, suspended, queued again, cancelled, slurmd killed amid it" {
	start_slurm
	submit=(sbatch --parsable --uid=games --account=thesis --gres=shard:4 --chdir="$T/out" --output=/dev/null --wrap)
	busy="exec $LOADLINE_BUILD/sim/loadline-simctl busy 0 kernel 1ms for 300s"
	job=$("${submit[@]}" "$busy")
	wait_for 60 shows_on "$NODE" ".tenant? == \"slurm-$job\" and has(\"claim\") and .gpu_seconds > 0"
	# Suspended, it is stopped by Slurm, and goes on.
	scontrol suspend "$job"
	# One that is resumed before all of it is frozen stays so: Slurm's own race.
	for step in batch extern; do
		wait_for 60 is_frozen "$NODE" "$(id -u games)" "$job" "$step"
	done
	used=$(seconds_of "$job")
	scontrol resume "$job"
	wait_for 60 shows_on "$NODE" ".tenant? == \"slurm-$job\" and has(\"claim\") and .gpu_seconds > $used"
	# slurmd is killed and comes again; the job goes on, and its end is noticed.
	stop "slurmd-$NODE" KILL
	run_slurmd "$NODE"
	wait_for 60 eval 'squeue -h -j "$job" -o %t | grep -q R'
	wait_for 60 shows_on "$NODE" ".tenant? == \"slurm-$job\" and has(\"claim\")"
	# It runs again under its number, with another process that stands for it.
	read -r before _ <"$T/state/$job"
	scontrol requeue "$job"
	wait_for 60 has_no_jobs "$NODE"
	has_ended "$before"
	wait_for 60 eval 'squeue -h -j "$job" -o %t | grep -q PD'
	# Slurm knows by the second which of the two runs a credential is for.
	scontrol update job="$job" starttime=now+2
	wait_for 60 shows_on "$NODE" ".tenant? == \"slurm-$job\" and has(\"claim\") and .gpu_seconds > 0"
	scancel --signal=KILL --full "$job"
	wait_for 60 ended "$NODE" "$job"
	wait_for 60 has_no_jobs "$NODE"
	wait_for 20 ran_twice "$job" || { cat "$T/history"; false; }
	wait_for 60 is_empty "$T/state"
	wait_for 60 used_card "$NODE" thesis
}

@test "job_submit.lua gives a job of the shared partition a shard, and no whole card; Slurm's file of jobs and loadline's accounts have the same number" {
	write_slurm n1
	doc_file job_submit.lua | sed '1d; s/"shared"/"all"/' >"$T/etc/job_submit.lua"
	printf '%s\n' JobSubmitPlugins=lua JobCompType=jobcomp/filetxt "JobCompLoc=$T/slurmctld/jobs" >>"$SLURM_CONF"
	echo "PartitionName=cards Nodes=ALL MaxTime=INFINITE" >>"$SLURM_CONF"
	start_written_slurm
	as_user=(setpriv --reuid games --regid games --clear-groups srun --chdir="$T/out") # srun has no --uid from Slurm 24.05 on
	# shellcheck disable=SC2046
	run -0 "${as_user[@]}" $(memory alloc 5000 alloc 4500)
	echo "$output"
	[ "$output" = "$(printf 'context ok\nalloc ok\nalloc 2')" ] # a shard is 8,985 MiB
	run ! "${as_user[@]}" --gres=gpu:1 true
	[[ $output == *"partition all gives cards in shards: --gres=shard:N"* ]]
	"${as_user[@]}" -p cards --gres=gpu:1 true
	job=$(sbatch --parsable --wait --uid=games --chdir="$T/out" --account=thesis --output=/dev/null --wrap "exec $LOADLINE_BUILD/sim/loadline-simctl busy 0 kernel 1ms for 1s")
	grep "^JobId=$job .* JobState=COMPLETED " "$T/slurmctld/jobs"
	wait_for 60 has_used "$job"
}

@test "each job and each step has the cards that Slurm gives it, by their UUIDs" {
	scenario "cards 4"
	CARDS=4 start_slurm
	card=GPU-10ad11fe-0200-4200-8200-00000000000
	submit=(sbatch --parsable --uid=games --chdir="$T/out" --output=%j --wrap)
	first=$("${submit[@]}" 'echo $CUDA_VISIBLE_DEVICES; exec sleep 300' --gres=shard:12)
	wait_for 60 [ -s "$T/out/$first" ]
	second=$("${submit[@]}" 'echo $CUDA_VISIBLE_DEVICES; exec sleep 300' --gres=shard:12)
	third=$("${submit[@]}" 'echo $CUDA_VISIBLE_DEVICES
		for i in 1 2; do
			srun -n1 --exact --gres=gpu:1 sh -c "echo one \$CUDA_VISIBLE_DEVICES; sleep 3" &
		done
		wait' -n2 --gres=gpu:2)
	wait_for 60 [ -s "$T/out/$second" ]
	[ "$(cat "$T/out/$first" "$T/out/$second")" = "$(printf '%s\n' "${card}1" "${card}2")" ]
	wait_for 60 eval '[ "$(grep -c one "$T/out/$third")" -eq 2 ]'
	[ "$(head -n 1 "$T/out/$third")" = "${card}3,${card}4" ]
	[ "$(grep one "$T/out/$third" | sort)" = "$(printf 'one %s\n' "${card}3" "${card}4")" ]
	scancel "$first" "$second"
}

# write_bundle FOLDER: an OCI bundle whose image is this machine's /usr alone.
write_bundle() {
	local link
	mkdir -p "$1/rootfs"/{usr,etc,proc,dev,sys,tmp,run,var}
	for link in bin lib lib64 sbin; do
		ln -s "usr/$link" "$1/rootfs/$link"
	done
	# shellcheck disable=SC2016 # jq's own
	(cd "$1" && crun spec && jq --arg build "$(realpath "$LOADLINE_BUILD")" --arg tests "$BATS_TEST_DIRNAME" --arg world "$T/world" '
		del(.hostname) | .process.terminal = false
		| .mounts |= map(select(.destination | startswith("/sys") | not)) + [("/usr", $build, $tests, $world)
			| {source: ., destination: ., type: "none", options: ["bind"]}]
		| .linux.namespaces |= map(select(.type == "mount" or .type == "pid"))' config.json >new && mv new config.json)
	chmod -R a+rX "$1"
}

@test "a step in a container of Slurm's has its job's limits by the files of doc/slurm.md, and without them it is refused" {
	[ -n "$(command -v crun)" ] || skip "no crun is here"
	write_slurm n1
	local file bundle=$T/bundle
	write_bundle "$bundle"
	mkdir "$T/cdi"
	mkdir -p /run/cdi
	echo "$MACHINE" >"$T/etc/machine"
	for file in oci.conf container.sh; do
		doc_file "$file" | sed "s|/etc/slurm|$T/etc|; s|/run/cdi|$T/cdi|; s|crun -|unshare --mount --propagation private bash $T/etc/machine $T/cdi crun -|" >"$T/etc/$file"
	done
	sed -i '1d' "$T/etc/container.sh"
	chmod 755 "$T/etc/container.sh"
	start_written_slurm
	on "$NODE" loadline --sim cdi generate --folder "$T/cdi"
	run -1 srun --gres=shard:4 --container="$bundle" true
	[[ $output == *"the step is refused: its container would not have its limits: they need containers=yes in plugstack.conf, and Slurm 24.11"* ]]
	run -1 srun --gres=shard:4 --export=NONE --container="$bundle" /usr/bin/true
	[[ $output == *"the step is refused: its container"* ]]
	srun --container="$bundle" true
	sed -i 's/$/ containers=yes/' "$T/etc/plugstack.conf"
	if [[ $(slurmd -V) < "slurm-wlm 24.11" ]]; then
		run -1 srun --gres=shard:4 --container="$bundle" true
		[[ $output == *"the step is refused: its container"* ]]
		return
	fi
	# shellcheck disable=SC2046
	run -0 srun --gres=shard:4 --container="$bundle" $(memory alloc 34000 alloc 3000 card)
	echo "$output"
	[[ $output == *"alloc ok"*"alloc 2"*"card 359"* && $output != *"ld.so"* ]]
	# Its environment says nothing of the job.
	# shellcheck disable=SC2046
	run -0 srun --gres=shard:4 --container="$bundle" env -i LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" LOADLINE_SIM_DIR="$(world "$NODE")" $(memory alloc 34000 alloc 3000 card)
	[[ $output == *"alloc ok"*"alloc 2"*"card 359"* ]]
	printf '%s\n' '#!/bin/sh' "exec $(memory alloc 34000 alloc 3000 card)" >"$T/out/job.sh"
	sbatch --wait --gres=shard:4 --container="$bundle" --output="$T/out/batch" "$T/out/job.sh"
	[[ $(<"$T/out/batch") == *"alloc ok"*"alloc 2"*"card 359"* ]]
	# Without the library in it, it does not start.
	jq 'del(.containerEdits.mounts[] | select(.containerPath == "/etc/ld.so.preload"))' "$T/cdi/loadline-share.json" >"$T/cdi/less"
	mv "$T/cdi/less" "$T/cdi/loadline-share.json"
	run ! srun --gres=shard:4 --container="$bundle" echo started
	[[ $output != *started* ]]
}

# write_lending: the files of doc/slurm.md that lend, on a card of 800 MiB.
write_lending() {
	printf 'cards 1\ncard 0 memory 800M\ncard 0 sm 8\n' >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	SHARDS=32 write_slurm n1
	sed -i "s|\$| $(doc_file "plugstack.conf, lending" | sed -n 's/^required spank_loadline.so //p')|" "$T/etc/plugstack.conf"
	sed -i "s/ OverSubscribe=YES//" "$SLURM_CONF" # two partitions of one node have it both, or none
	doc_file "slurm.conf, lending" | sed "/^NodeName/d; s/Nodes=[^ ]*/Nodes=ALL/" >>"$SLURM_CONF"
}

start_lending() {
	write_lending
	start_written_slurm
}

# work NAME BYTES OPTION...: a job whose program uses so much memory all the time, and knows what must be in it.
work() {
	start_program "$1" srun --job-name="$1" "${@:3}" "$LOADLINE_BUILD/tests/e2e/evict_worker" --seconds 1000s --bytes "$2"
}

# number_of NAME: of the job.
number_of() {
	squeue -h -n "$1" -o %i
}

# is_away NAME: the memory of its program is not on the card.
is_away() {
	shows_on "$NODE" "has(\"claim\") and .tenant == \"slurm-$(number_of "$1")\" and .state == \"evicted\""
}

# ends_well NAME: every word of its memory is right.
ends_well() {
	scancel --signal=TERM "$(number_of "$1")"
	finish "$1"
	has "$1" 'select(.event == "end")' && ! has "$1" 'select(.event == "end" and .wrong != 0)'
}

@test "more shards than a card has: a job that borrows has what others leave idle, and sleeps when one of them asks for its memory" {
	start_lending
	run -1 srun -p lent --gres=shard:4 --ll-class=high true
	[[ $output == *"the step is refused: --ll-class=high: a job that borrows is of class low"* ]]
	work guest 300M -p lent --gres=shard:15
	wait_for 60 has guest 'select(.event == "ready")'
	shows_on "$NODE" 'has("claim") and .class == "low"'
	# Not even its context, of 276 MiB, has room.
	work owner 150M --gres=shard:16
	wait_for 60 has owner 'select(.event == "ready")'
	wait_for 60 is_away guest
	run -1 srun --gres=shard:1 true
	[[ $output == *"the step is refused: card 0 has 16 shards for jobs that do not borrow, and others have 16 of them: 1 more do not fit"* ]]
	ends_well owner
	wait_for 60 eval '! is_away guest'
	ends_well guest
}

# has_used JOB: by loadline's accounts.
has_used() {
	on "$NODE" loadline --sim history --json --since 1h | jq -s -e "any(.[]; .name == \"slurm-$1\" and .gpu_seconds > 0)" >/dev/null
}

# counted NODE: the world's age, the seconds of card 0 that its only program has had, and the most memory of the card that was ever in use, MiB:
# at one moment, by the card's own account.
counted() {
	on "$1" simctl show | awk '/^world/ { age = $(NF - 2) } /^card 0/ { most = $(NF - 1) } / on the card/ { sub(/ s on the card.*/, ""); had = $NF }
		END { print age, had + 0, most }'
}

# has_much NODE SECONDS: of the card's time.
has_much() {
	local had
	read -r _ had _ <<<"$(counted "$1")"
	expect '$had >= $least' --argjson had "$had" --argjson least "$2"
}

# A host that is late keeps a program off its card, and never on it: no span may have more than a quarter, and how much less the host's lateness
# takes is measured (doc/slurm.md).
@test "4 of 16 shards are a quarter of the card's memory and time for a program that asks for all, without an option" {
	start_slurm
	local age had most before_age before_had part best=0
	cat >"$T/out/greedy" <<-EOF
		#!/bin/sh
		$(memory context alloc 32000 alloc 16000 alloc 8000 alloc 4000 alloc 2000 alloc 1000 alloc 500 alloc 250 alloc 100 alloc 50 alloc 20 alloc 10 alloc 4 alloc 2)
		exec $LOADLINE_BUILD/tests/e2e/launcher 1
	EOF
	chmod 755 "$T/out/greedy"
	start_program greedy srun --gres=shard:4 "$T/out/greedy"
	wait_for 60 has_much "$NODE" 1
	for _ in {1..5}; do
		read -r before_age before_had _ <<<"$(counted "$NODE")"
		wait_for 60 has_much "$NODE" "$(jq -n "$before_had + 2")"
		read -r age had most <<<"$(counted "$NODE")"
		part=$(jq -n "($had - $before_had) / ($age - $before_age) * 100")
		echo "# $part % of the time" >&3
		expect '$part <= 26.5' --argjson part "$part"
		best=$(jq -n "[$best, $part] | max")
	done
	echo "# $most MiB" >&3
	expect '$part >= 5 and $memory >= 23.5 and $memory <= 26.5' --argjson part "$best" --argjson memory "$(jq -n "$most / 143771 * 100")"
}

# is_over: nothing of a job is left on the node.
is_over() {
	is_empty "$T/state" && ! compgen -G "$(job_group "$NODE" 0 '*')" >/dev/null
}

# measure_start FILE GROUP: adds to the file how long an srun takes, and the processors' time of the group meanwhile, ms.
measure_start() {
	local began ended before after
	read -r before <"$2/cpuacct.usage"
	began=${EPOCHREALTIME/./}
	# shellcheck disable=SC2016
	bash -c 'echo $$ >"$1/cgroup.procs"; exec srun --gres=shard:1 true' - "$2"
	ended=${EPOCHREALTIME/./}
	wait_for 60 is_over
	read -r after <"$2/cpuacct.usage"
	echo "$(jq -n "($ended - $began) / 1000") $(jq -n "($after - $before) / 1000000")" >>"$1"
}

# quartiles FILE COLUMN
quartiles() {
	cut -d' ' -f"$2" "$1" | sort -n | awk '{ all[NR] = $1 } END { printf "%.0f (%.0f to %.0f)", all[int((NR + 1) / 2)], all[int((NR + 3) / 4)], all[int((3 * NR + 1) / 4)] }'
}

@test "a job's start with the plugin and without it: measured, in turn (SLURM_STARTS of each)" {
	[ -n "${SLURM_STARTS-}" ] || skip "a measurement: SLURM_STARTS=30"
	local group=/sys/fs/cgroup/cpuacct/slurm_start-$$ i way name
	start_slurm
	NODES+=("start-$$") # it is removed as their groups are
	mkdir "$group"
	for name in slurmctld "slurmd-$NODE" "loadlined-$NODE"; do
		pid_of "$name" >"$group/cgroup.procs"
	done
	printf '%s\n' '#!/bin/sh' >"$T/etc/prolog.sh"
	mv "$T/etc/plugstack.conf" "$T/etc/with"
	: >"$T/etc/without"
	for ((i = 0; i < SLURM_STARTS + 2; i++)); do
		for way in without with; do
			cp "$T/etc/$way" "$T/etc/plugstack.conf"
			measure_start "$T/$way.ms" "$group"
		done
		[ "$i" -ne 1 ] || rm "$T/without.ms" "$T/with.ms"
	done
	for way in without with; do
		echo "# $way: $(quartiles "$T/$way.ms" 1) ms to its end, $(quartiles "$T/$way.ms" 2) ms of processors (median, quartiles)" >&3
	done
}

# job_is JOB STATE: by slurmctld.
job_is() {
	scontrol show job "$1" | grep -q "JobState=$2 "
}

# jobs_are_on NODE TENANT...: loadlined knows these jobs, and no others.
jobs_are_on() {
	local rows
	rows=$(on "$1" loadline --sim status --json | jq -s -r '[.[] | select(has("claim") or (.job | type) == "object") | (.job.tenant? // .tenant)] | unique | join(" ")')
	[ "$rows" = "${*:2}" ]
}

# past_is NODE NUMBER FILTER: the job's rows of the history are so.
past_is() {
	on "$1" loadline --sim history --json | jq -s -e --arg name "slurm-$2" "[.[] | select(.name == \$name)] | $3" >/dev/null
}

# used_seconds NODE JOB: of the card, by the accounts.
used_seconds() {
	on "$1" loadline --sim report --by tenant --json | jq -s -e --arg name "slurm-$2" '.[] | select(.tenant == $name).used_seconds | select(. > 0)'
}

# is_lost JOB: slurmctld has noticed that its node has it no more. It looks when slurmd registers, and not for jobs of the last 20 s.
is_lost() {
	job_is "$1" RUNNING || return 0
	"${BOOT[@]}" kill -KILL "$(cat "$T/spool/$NODE.pid")"
	finish "slurmd-$NODE"
	run_slurmd "$NODE"
	wait_for 60 registers "$(date +%s)"
	return 1
}

# registers SECONDS: the slurmd of the node began then or later.
registers() {
	[ "$(date -d "$(scontrol show node "$NODE" | grep -o "SlurmdStartTime=[^ ]*" | cut -d= -f2)" +%s)" -ge "$1" ]
}

@test "a node that is started anew: its jobs end or wait again by Slurm's rule, and nothing of the former boot is taken for a job that runs" {
	unshare --time --fork --boottime 3600 true 2>/dev/null || skip "no new time namespace here"
	write_lending
	boot
	start_written_slurm
	submit=(sbatch --parsable --uid=games --chdir="$T/out" --output=/dev/null)
	busy="exec $LOADLINE_BUILD/sim/loadline-simctl busy 0 kernel 1ms for 300s"
	again=$("${submit[@]}" --gres=shard:4 --wrap "$busy")
	once=$("${submit[@]}" -n 2 --gres=shard:12 --no-requeue --wrap 'sleep 300')
	wait_for 60 jobs_are_on "$NODE" "slurm-$again" "slurm-$once"
	# Of 16 processors these have 3.
	waits=$("${submit[@]}" -n 14 --gres=shard:16 -p lent --wrap "$busy")
	# The accounts are written each 9 s.
	wait_for 60 used_seconds "$NODE" "$again"
	# slurmctld stores its state each few seconds, and as it ends.
	stop slurmctld
	stop machine KILL
	remove_slurm_groups
	rm -r "$(world "$NODE")/system"
	boot
	# What `state=` has is on a disk here, and its numbers are another process's now.
	# shellcheck disable=SC2016
	"${BOOT[@]}" sh -c 'sleep 1000 >/dev/null & read -r stat </proc/$!/stat; set -- $stat; echo "$1 ${22}"' >"$T/other"
	for job in "$again" "$once"; do
		sed -i "1s/.*/$(cat "$T/other")/" "$T/state/$job"
	done
	start_program slurmctld slurmctld -D
	wait_for 60 eval 'scontrol ping | grep -q UP'
	start_node "$NODE"
	run_slurmd "$NODE"
	wait_for 120 is_lost "$again"
	wait_for 120 is_lost "$once"
	job_is "$once" NODE_FAIL
	wait_for 60 jobs_are_on "$NODE" "slurm-$waits"
	scontrol update job="$again" starttime=now+2
	wait_for 60 jobs_are_on "$NODE" "slurm-$again" "slurm-$waits"
	wait_for 60 eval '[ "$(on "$NODE" loadline --sim status --json | jq -s "[.[] | select(has(\"claim\"))] | length")" -eq 2 ]'
	# The process whose numbers were in the files lives, and has no shards; those that run have theirs.
	"${BOOT[@]}" kill -0 "$(cut -d' ' -f1 "$T/other")"
	srun --gres=shard:12 true
	run ! srun --immediate=3 --gres=shard:13 true
	[[ $output == *"Unable to allocate resources"* ]]
	# Without loadline the end of a job of the former boot is known after a minute.
	wait_for 120 past_is "$NODE" "$once" 'length == 1 and .[0].state == "ended" and .[0].why == "no loadlined saw its end"'
	past_is "$NODE" "$again" 'length == 1 and .[0].gpu_seconds > 0'
}
