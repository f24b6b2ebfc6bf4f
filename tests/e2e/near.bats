# `run --cpus near`: the command runs on the CPUs near its cards. In a mount namespace a folder stands for /sys/bus/pci: CPU 0 and
# node 0 are near card 0, CPU 1 and node 1 near card 1.
export NEEDS=tests/e2e/launcher
load helper

# describe PCI-DEVICE CPUS [NODE]
describe() {
	mkdir -p "$T/pci/devices/$1"
	echo "$2" >"$T/pci/devices/$1/local_cpulist"
	[ -z "${3-}" ] || echo "$3" >"$T/pci/devices/$1/numa_node"
}

needs_near() {
	unshare -m true 2>/dev/null || skip "no mount namespaces here"
	taskset -c 0,1 true 2>/dev/null || skip "CPUs 0 and 1 are not allowed here"
	echo "cards 2" >"$T/two"
	describe 0000:18:00.0 0,2-8191 0
	describe 0000:28:00.0 1 1
}

# cpus_of CPUS ARG...: on which CPUs the command of a run with these options may run, if it may run on these.
cpus_of() {
	unshare -m sh -c 'mount --bind "$0" /sys/bus/pci && exec taskset -c "$@"' "$T/pci" "$1" "$LOADLINE" --sim="${SCENARIO-$T/two}" \
		--log-level info run "${@:2}" -- sh -c 'cat /proc/self/status; [ ! -e /proc/self/numa_maps ] || cat /proc/self/numa_maps' >"$T/shown" 2>"$T/said" || return
	cat "$T/said" >&2
	sed -n 's/^Cpus_allowed_list:.//p' "$T/shown"
}

warns() {
	grep -q "WARN --cpus near: $1; the command may use all its CPUs$" "$T/said"
}

@test "--cpus near binds the command to the CPUs near its cards, and prefers the memory there" {
	needs_near
	[ "$(cpus_of 0,1 -i 1 --cpus near)" = 1 ]
	[ "$(cpus_of 0,1 -i 0 --cpus near)" = 0 ]
	grep -q "INFO --cpus near: the command runs on CPUs 0$" "$T/said"
	if grep -q ' default \| prefer' "$T/shown"; then
		grep -q "INFO --cpus near: the command prefers memory of node 0$" "$T/said"
		grep -q ' prefer[^ ]*:0 ' "$T/shown"
	fi
}

@test "--cpus near of a MIG slice: what is near its card" {
	needs_near
	[ "$(SCENARIO=mig cpus_of 0,1 -i 0:1 --cpus near)" = 0 ]
}

@test "without --cpus near, and if all CPUs of the command are near its cards, nothing is changed" {
	needs_near
	[ "$(cpus_of 0,1 -i 0)" = 0-1 ]
	[ "$(cpus_of 0,1 -i 0 --cpus all)" = 0-1 ]
	[ "$(cpus_of 0,1 --cpus near)" = 0-1 ] # both cards, so both CPUs
	grep -q "INFO --cpus near: all CPUs of the command are near its cards$" "$T/said"
	run ! grep WARN "$T/said"
}

@test "--cpus near takes no CPU that the command was not allowed, and takes none away if none is near or the kernel does not say" {
	needs_near
	[ "$(cpus_of 1 -i 0 --cpus near)" = 1 ]
	warns "none of the CPUs near the cards is allowed here"
	describe 0000:18:00.0 0-1 -1
	[ "$(cpus_of 0,1 -i 0 --cpus near)" = 0-1 ]
	warns "the kernel does not say which CPUs are near card 0"
	# A kernel without NUMA.
	rm "$T/pci/devices/0000:18:00.0/numa_node"
	[ "$(cpus_of 0,1 -i 0 --cpus near)" = 0-1 ]
	warns "the kernel does not say which CPUs are near card 0"
	# It names some CPUs, and no node.
	describe 0000:18:00.0 0
	[ "$(cpus_of 0,1 -i 0 --cpus near)" = 0 ]
	grep -q "INFO --cpus near: no memory node is preferred: " "$T/said"
	describe 0000:18:00.0 0-x
	[ "$(cpus_of 0,1 -i 0 --cpus near)" = 0-1 ]
	warns "card 0: local_cpulist: 0-x"
	rm -r "$T/pci/devices/0000:18:00.0"
	[ "$(cpus_of 0,1 -i 0 --cpus near)" = 0-1 ]
	warns "card 0: /sys/bus/pci/devices/0000:18:00.0/local_cpulist: No such file or directory"
	run loadline --sim="$T/two" run --cpus far -- true
	[ "$status" -eq 125 ]
}
