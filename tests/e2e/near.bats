# `run --cpus near`: the command runs on the CPUs near its cards. near.xml describes a machine for hwloc: CPU 0 and node 0 are near card
# 0, CPU 1 and node 1 near card 1.
load helper

needs_near() {
	[ -x "$LOADLINE_BUILD/src/near/loadline-near" ] || skip "this build has no hwloc"
	[ -x "$LOADLINE_BUILD/tests/e2e/launcher" ] || skip "nothing can be preloaded in this build"
}

setup_file() {
	export HWLOC_XMLFILE=$BATS_TEST_DIRNAME/near.xml HWLOC_THISSYSTEM=1
	cat >"$BATS_FILE_TMPDIR/two" <<-END
		cards 2
	END
	export SCENARIO=$BATS_FILE_TMPDIR/two
}

# cpus_of ARG...: on which CPUs the command of a run with these options may run.
cpus_of() {
	loadline --sim="$SCENARIO" run "$@" -- sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status
}

@test "--cpus near binds the command to the CPUs near its cards, and prefers the memory there" {
	needs_near
	taskset -c 0,1 true 2>/dev/null || skip "CPUs 0 and 1 are not allowed here"
	[ "$(taskset -c 0,1 "$LOADLINE" --sim="$SCENARIO" run -i 0 --cpus near -- sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status)" = 0 ]
	[ "$(taskset -c 0,1 "$LOADLINE" --sim="$SCENARIO" run -i 1 --cpus near -- sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status)" = 1 ]
	loadline --sim="$SCENARIO" --log-level info run -i 0 --cpus near -- cat /proc/self/numa_maps >"$T/maps" 2>"$T/said"
	cat "$T/said"
	grep -q "INFO --cpus near: the command runs on CPUs 0$" "$T/said"
	if [ -s "$T/maps" ]; then
		grep -q "INFO --cpus near: the command prefers memory of node 0$" "$T/said"
		grep -q ' prefer[^ ]*:0 ' "$T/maps"
	fi
}

@test "without --cpus near, and if all CPUs of the command are near its cards, nothing is changed" {
	needs_near
	local all
	all=$(sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status)
	[ "$(cpus_of -i 0)" = "$all" ]
	[ "$(cpus_of -i 0 --cpus all)" = "$all" ]
	[ "$(cpus_of --cpus near)" = "$all" ] # both cards, so both CPUs
}

@test "--cpus near takes no CPU that the command was not allowed, and takes none away if none is near" {
	needs_near
	taskset -c 0,1 true 2>/dev/null || skip "CPUs 0 and 1 are not allowed here"
	run taskset -c 1 "$LOADLINE" --sim="$SCENARIO" run -i 0 --cpus near -- sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status
	echo "$output"
	[ "$status" -eq 0 ]
	[[ ${lines[0]} == *"WARN --cpus near: none of the CPUs near the cards is allowed here; the command may use all its CPUs" ]]
	[ "${lines[1]}" = 1 ]
	# A machine whose topology lacks the card.
	unset HWLOC_XMLFILE
	run loadline --sim="$SCENARIO" run -i 0 --cpus near -- true
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"WARN --cpus near: the topology of this machine has no PCI device 0000:18:00.0; the command may use all its CPUs" ]]
	run loadline --sim="$SCENARIO" run --cpus far -- true
	[ "$status" -eq 125 ]
}
