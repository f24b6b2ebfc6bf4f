# Jobs of two users on a Slurm of several nodes, with slurmd, loadlined and jobs killed amid it.
# shellcheck disable=SC2153 # slurm_helper.bash sets NODE and NODES
export NEEDS="src/slurm/spank_loadline.so slurmctld slurmd srun munged python3"
load helper
load service_helper
load slurm_helper

eval "$(declare -f teardown | sed '1s/teardown/teardown_of_helper/')"
teardown() {
	teardown_of_helper
	remove_slurm_groups
}

# SLURM_SOAK: number of jobs and of nodes, each of which has eight cards, and for how many seconds jobs are submitted.
@test "jobs at random are held to their shards, whatever is killed: none is lost that nobody killed, and nothing is left" {
	local jobs nodes seconds names seed=${SOAK_SEED:-$RANDOM}
	[ -n "${SLURM_SOAK-}" ] || skip "it takes minutes, and Slurm itself may lose a node in it: SLURM_SOAK='JOBS NODES'"
	read -r jobs nodes seconds <<<"$SLURM_SOAK 86400"
	mapfile -t names < <(seq -f n%g "$nodes")
	scenario "cards 8"
	CARDS=8 write_slurm "${names[@]}"
	printf '%s\n' MinJobAge=86400 >>"$SLURM_CONF"
	echo "seed $seed"
	# The first process takes the status of those whose parents are killed, as init does.
	# shellcheck disable=SC2016
	run unshare --mount --pid --fork --kill-child --mount-proc bash -c 'python3 "$@" & wait $!' - "$BATS_TEST_DIRNAME/slurm_soak.py" \
		"$T" "$LOADLINE_BUILD" "$LOADLINE" "$jobs" "${seconds%% *}" "$seed" "${NODES[@]}"
	echo "$output"
	[ "$status" -eq 0 ]
}
