# evict_helper.bash - what the tests of eviction share, beside helper.bash.
load helper

# needs_preload: skips where a sanitizer must be the first library of a program.
needs_preload() {
	loadline --sim run -- true 2>/dev/null || skip "nothing can be preloaded in this build"
}

# start_worker NAME ARG...: tenant NAME, which works with its memory until `ends_well NAME`.
start_worker() {
	local name=$1
	shift
	start "$name" --sim run --tenant "$name" --evictable -- "$LOADLINE_BUILD/tests/e2e/evict_worker" --seconds 1000s "$@"
	wait_for 60 has "$name" 'select(.event == "ready")'
}

# ends_well NAME: it ends by itself, and every word of its memory is right.
ends_well() {
	stop "$1" TERM
	# shellcheck disable=SC2154
	[ "$status" -eq 0 ] || {
		show
		return 1
	}
	has "$1" 'select(.event == "end" and .wrong == 0)'
}

# said NAME STATE [TIMES]: loadlined's log says so of the program, so often: here, stopping, stopped, leaving, away,
# returning.
said() {
	[ "$(grep -c "tenant $1: is $2\$" "$LOADLINE_SIM_DIR/loadlined.log")" -ge "${3-1}" ]
}

# is_now NAME STATE: the last that it said.
is_now() {
	[[ $(grep "tenant $1: is " "$LOADLINE_SIM_DIR/loadlined.log" | tail -n 1) == *": is $2" ]]
}

# end_daemon SIGNAL: to loadlined. A job's monitor starts another one.
end_daemon() {
	local file folder name
	while read -r file; do
		folder=${file%/environ}
		read -r name 2>/dev/null <"$folder/comm" || continue
		[ "$name" != loadlined ] || kill "-$1" "${folder##*/}"
	done < <(grep -lsF "LOADLINE_SIM_DIR=$T/world" /proc/[0-9]*/environ)
}

# pids_of PROGRAM: of this test's world.
pids_of() {
	local file folder name
	while read -r file; do
		folder=${file%/environ}
		read -r name 2>/dev/null <"$folder/comm" || continue
		[ "$name" != "$1" ] || echo "${folder##*/}"
	done < <(grep -lsF "LOADLINE_SIM_DIR=$T/world" /proc/[0-9]*/environ)
}

# poor_host MIB: what start_poor and the programs see of the host's memory: so much is left of 1 GiB.
poor_host() {
	printf 'MemTotal: 1048576 kB\nMemAvailable: %d kB\n' $(($1 * 1024)) >"$T/meminfo"
}

# start_poor NAME ARG...: as start_worker, on such a host.
start_poor() {
	local name=$1
	shift
	[ "$(id -u)" -eq 0 ] || skip "only root may show a program another host"
	start_program "$name" unshare -m sh -c 'mount --bind "$0" /proc/meminfo && exec "$@"' "$T/meminfo" "$LOADLINE" \
		--sim run --tenant "$name" --evictable -- "$LOADLINE_BUILD/tests/e2e/evict_worker" --seconds 1000s "$@"
	wait_for 60 has "$name" 'select(.event == "ready")'
}

# open_steps NAME: $T/NAME.in, in which the program NAME will be told what to do.
open_steps() {
	mkfifo "$T/$1.in"
	# Open for writing too, so that the program does not see an end.
	# shellcheck disable=SC2034
	exec {steps_fd}<>"$T/$1.in"
}

# start_steps NAME [ARG...]: tenant NAME, which does what it is told.
start_steps() {
	local name=$1
	shift
	open_steps "$name"
	# A program in the background has no standard input unless it opens one.
	start_program "$name" sh -c 'exec <"$0"; exec "$@"' "$T/$name.in" "$LOADLINE" --sim run --tenant "$name" --evictable "$@" -- \
		python3 "$BATS_TEST_DIRNAME/evict_steps.py"
}

# start_until_told NAME COMMAND...: the program, whose standard input is $T/NAME.in: bench/c/evictee with --until-eof works until
# end_of, however long a busy host takes for what the test does meanwhile.
start_until_told() {
	local name=$1
	shift
	rm -f "$T/$name.in" # an earlier one's has its end in it
	open_steps "$name"
	# A program in the background has no standard input unless it opens one.
	start_program "$name" sh -c 'exec <"$0"; exec "$@"' "$T/$name.in" "$@"
}

# end_of NAME...: told before anybody waits for one of them: one that is away returns when another one ends.
end_of() {
	local name
	for name; do
		echo >"$T/$name.in"
	done
}

# tell NAME STEP: and waits for nothing.
tell() {
	echo "$2" >>"$T/$1.told"
	echo "$2" >"$T/$1.in"
}

# does NAME STEP...: tells it, and waits until it has done all that it was ever told.
does() {
	local name=$1 step
	shift
	for step; do
		tell "$name" "$step"
	done
	wait_for 60 has_lines "$name" "$(wc -l <"$T/$name.told")"
	if grep -v ' ok$' "$T/$name.out"; then
		show
		return 1
	fi
}

has_lines() {
	[ "$(wc -l <"$T/$1.out")" -ge "$2" ]
}

# fault WORD...: of the simulator.
fault() {
	"$LOADLINE_BUILD/sim/loadline-simctl" "$@"
}

# freeze NAME [TENANT PROCESSES]: freeze_process of it, when loadlined knows that the memory of the tenant's processes can leave.
freeze() {
	wait_for 60 said "${2-$1}" here "${3-1}"
	freeze_process "$(pid_of "$1")"
}

# used_mib: the card's memory in use.
used_mib() {
	loadline --sim status --json | jq -s 'map(select(.memory_bytes)) | .[0].memory_bytes / 1048576 | floor'
}

# uses_below MIB, uses_from MIB: of the card's memory.
uses_below() {
	[ "$(used_mib)" -lt "$1" ]
}

uses_from() {
	[ "$(used_mib)" -ge "$1" ]
}

# small_card [BYTES]: the only one. The context of a program takes 277 MiB of it.
small_card() {
	printf 'cards 1\ncard 0 memory %s\ncard 0 sm 8\n' "${1-750M}" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
}

# moved NAME WHAT: "evicted" or "resumed".
moved() {
	grep -q "tenant $1: $2: " "$LOADLINE_SIM_DIR/loadlined.log"
}
