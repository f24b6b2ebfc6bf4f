# helper.bash - what every end-to-end test uses. Each test has a folder of its own, $T, with a simulated world and a
# runtime folder in it, so that tests can run side by side and leave nothing behind.
#
#     load helper
#     @test "hold settles" {
#             start hold --sim hold --target 30% --json
#             wait_for 10 has hold 'select(.event == "settle")'
#             stop hold INT
#             [ "$status" -eq 0 ]
#     }
# What all tests of a file need, and not every build or machine has, the file names in NEEDS: programs of the build, under
# its folder, and commands.
bats_require_minimum_version 1.5.0

: "${LOADLINE:?run these through meson test}"

setup() {
	T=$(mktemp -d "${TMPDIR:-/tmp}/loadline-test.XXXXXX")
	mkdir -m 700 "$T/run" "$T/world"
	export LOADLINE_SIM_DIR=$T/world XDG_RUNTIME_DIR=$T/run
	# meson puts the simulator's folder in front for programs that link it; here only --sim may.
	unset LD_LIBRARY_PATH LOADLINE_SIM_SCENARIO LOADLINE_RUN LOADLINE_TRACE CUDA_INJECTION64_PATH LOADLINE_SHIM LD_PRELOAD CUDA_VISIBLE_DEVICES CUDA_MPS_PIPE_DIRECTORY
	started=()
	# bats takes a skip in setup_file for a failure, so what a whole file needs is looked for here.
	local need
	for need in ${NEEDS-}; do
		[ -x "$LOADLINE_BUILD/$need" ] || command -v "$need" >/dev/null || skip "this build or machine has no $need"
	done
}

teardown() {
	local name
	for name in "${started[@]}"; do
		kill -KILL "$(pid_of "$name")" 2>/dev/null || true
	done
	wait
	rm -rf "$T"
}

# loadline ARG...: the program under test.
loadline() {
	"$LOADLINE" "$@"
}

# start NAME ARG...: loadline in the background; its output is in $T/NAME.out and $T/NAME.err.
start() {
	local name=$1
	shift
	start_program "$name" "$LOADLINE" "$@"
}

# start_program NAME PROGRAM ARG...: the same for any other program.
start_program() {
	local name=$1
	shift
	"$@" >"$T/$name.out" 2>"$T/$name.err" 3>&- &
	echo $! >"$T/$name.pid"
	started+=("$name")
}

pid_of() {
	cat "$T/$1.pid"
}

is_running() {
	kill -0 "$(pid_of "$1")" 2>/dev/null
}

# stop NAME [SIGNAL]: sends it (TERM unless told) and waits; $status is the exit status then.
stop() {
	kill -"${2-TERM}" "$(pid_of "$1")" 2>/dev/null || true
	finish "$1"
}

# finish NAME: waits until it ends by itself; $status is the exit status then.
finish() {
	status=0
	wait "$(pid_of "$1")" || status=$?
}

# wait_for SECONDS CONDITION...: until the command succeeds; fails, and shows what was printed, after the deadline, and
# at once when it waits for the output (has) of a program that has ended.
wait_for() {
	local deadline=$((SECONDS + $1)) seconds=$1
	shift
	until "$@" >/dev/null 2>&1; do
		if [ "$1" = has ] && ! is_running "$2" && ! "$@" >/dev/null 2>&1; then
			echo "$2 ended before: $*"
			show
			return 1
		fi
		if ((SECONDS > deadline)); then
			echo "not within $seconds s: $*"
			show
			return 1
		fi
		sleep 0.02
	done
}

# show: what every program printed, for a failed test's log.
show() {
	local file
	for file in "$T"/*.out "$T"/*.err; do
		[ -s "$file" ] || continue
		echo "--- ${file##*/}"
		tail -n 20 "$file"
	done
}

# json NAME FILTER: the results of a jq filter over NAME's JSON lines, one a line; a last line still being written is left out.
json() {
	jq -R -c -r "fromjson? | $2" "$T/$1.out"
}

# has NAME FILTER: does the filter give anything but null and false?
has() {
	jq -R "fromjson? | $2" "$T/$1.out" | grep -qvxE 'null|false'
}

# shows FILTER: does the filter give anything but null and false for a line of `loadline status --json`?
shows() {
	loadline --sim status --json | jq -s -e "[.[] | $1] | any" >/dev/null
}

# expect EXPRESSION [JQ OPTION]...: jq arithmetic on $actual and the like; shows what it compared when false.
#     expect '$mean >= 49 and $mean <= 51' --argjson mean "$mean"
expect() {
	local expression=$1
	shift
	jq -n -e "$@" "$expression" >/dev/null || {
		echo "not so: $expression with $*"
		show
		return 1
	}
}

# fails_with STATUS TEXT ARG...: loadline ends with that status and an error that begins with "loadline:" and contains
# TEXT. For bad usage (2) and no card (3) nothing stands before it on stderr; a command that ran may have logged.
fails_with() {
	local expected=$1 text=$2 told=()
	shift 2
	# bats takes 127 for a slip of the test, unless told.
	[ "$expected" -ne 127 ] || told=(-127)
	run "${told[@]}" --separate-stderr timeout 20 "$LOADLINE" "$@"
	# shellcheck disable=SC2154
	echo "status $status, stdout '$output', stderr '$stderr'"
	[ "$status" -eq "$expected" ]
	case $expected in
	2 | 3) [[ $stderr == loadline:*"$text"* ]] ;;
	*) [[ $'\n'$stderr == *$'\n'loadline:*"$text"* ]] ;;
	esac
}
