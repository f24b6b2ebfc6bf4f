# The processes that loadline starts for itself keep no descriptor of the process that started loadline: who waits for the
# end of a pipe does not wait for them.
load evict_helper

# start_marked NAME ARG...: loadline in the background, with descriptor 7 besides its outputs, as a shell's `exec 7<>file`
# gives it.
start_marked() {
	local name=$1
	shift
	start_program "$name" sh -c 'exec 7<>"$0"; exec "$@"' "$T/$name.mark" "$LOADLINE" "$@"
}

# find_helpers NAME PATTERN: the processes of this test whose command line, with blanks between its words, matches. NAME's
# own is none of them.
find_helpers() {
	local own file pid words
	own=$(pid_of "$1")
	while read -r file; do
		pid=${file//[!0-9]/}
		words=$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") || continue
		[ "$pid" = "$own" ] || [[ ! $words =~ $2 ]] || echo "$pid"
	done < <(grep -lsF "XDG_RUNTIME_DIR=$T/run" /proc/[0-9]*/environ)
}

has_helper() {
	[ -n "$(find_helpers "$1" "$2")" ]
}

# keeps_nothing NAME PATTERN [COUNT]: waits for such helpers, so many, and looks at the descriptors of each. None of them is
# NAME's output or its mark, or inherited from the test.
keeps_nothing() {
	wait_for 60 look_at_helpers "$@"
	echo "kept: $kept"
	[ -z "$kept" ]
}

# Those that end meanwhile are not counted. kept: what one of them keeps.
look_at_helpers() {
	local name=$1 pattern=$2 pid fds count=0
	kept=
	for pid in $(find_helpers "$name" "$pattern"); do
		kill -STOP "$pid"
		fds=$(find "/proc/$pid/fd" -type l -printf '%f %l\n' 2>/dev/null) || true
		kill -CONT "$pid"
		[ -n "$fds" ] || continue
		count=$((count + 1))
		echo "$pid $(tr '\0' ' ' <"/proc/$pid/cmdline"): $fds"
		[[ $fds != *"$T/$name."* && $fds != *"bats"* ]] || kept=$fds
	done
	[ "$count" -ge "${3-1}" ]
}

@test "at the end of a test, only programs that still run are killed: another program may have an ended one's number" {
	start_program short true
	start_program long sleep 60
	finish short
	# shellcheck disable=SC2317 # kill_programs calls it
	kill() {
		echo "$@" >>"$T/killed"
		builtin kill "$@"
	}
	kill_programs
	unset -f kill
	[ "$(cat "$T/killed")" = "-KILL $(pid_of long)" ]
	finish long
	[ "$status" -eq 137 ]
}

@test "a hold's process keeps nothing" {
	start_marked hold --sim hold --target 30% --json
	wait_for 60 has hold 'select(.event == "settle")'
	keeps_nothing hold " hold-worker "
	stop hold
}

@test "the probe's processes and its keeper keep nothing" {
	# Its first run has 64 s of kernels: however slow the look is, the probe and its processes are there.
	start_marked probe --sim probe --parallel processes --each 64 --kernel 500ms --json
	keeps_nothing probe " probe-worker "
	keeps_nothing probe "^$LOADLINE --sim probe "
	stop probe INT
}

@test "MPS's daemon keeps nothing" {
	start_marked mps --sim mps start
	finish mps
	keeps_nothing mps "nvidia-cuda-mps-control"
	loadline --sim mps stop
}

@test "doctor's trial keeps nothing" {
	needs_preload
	fault hang cuMemHostRegister_v2 30s # the trial waits in it; it would end before a slow look
	start_marked doctor --sim doctor
	keeps_nothing doctor "^loadline limit-trial "
	stop doctor
}

@test "the process that tries CUPTI keeps nothing" {
	needs_preload
	mkfifo "$T/libcupti.so.13"
	export LOADLINE_CUPTI=$T/libcupti.so.13
	# Whoever opens the library waits for somebody who writes into it.
	start_marked trace --sim trace -- true
	keeps_nothing trace "^$LOADLINE --sim trace "
	true >"$T/libcupti.so.13"
	finish trace
	[ "$status" -eq 0 ]
}
