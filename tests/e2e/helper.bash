# helper.bash - what every end-to-end test uses. Each test has a folder of its own, $T, with a simulated world and a
# runtime folder in it, so that tests can run side by side and leave nothing behind.
#
#     load helper
#     @test "hold settles" {
#             start hold --sim hold --target 30% --json
#             wait_for 60 has hold 'select(.event == "settle")'
#             stop hold INT
#             [ "$status" -eq 0 ]
#     }
# What all tests of a file need, and not every build or machine has, the file names in NEEDS: files of the build, under
# its folder, and commands.
bats_require_minimum_version 1.5.0

PROCESSORS=$(nproc)

: "${LOADLINE:?run these through meson test}"

setup() {
	T=$(mktemp -d "${TMPDIR:-/tmp}/loadline-test.XXXXXX")
	mkdir -m 700 "$T/run" "$T/world"
	mkfifo "$T/silence"
	export LOADLINE_SIM_DIR=$T/world XDG_RUNTIME_DIR=$T/run
	# meson puts the simulator's folder in front for programs that link it; here only --sim may.
	unset LD_LIBRARY_PATH LOADLINE_SIM_SCENARIO LOADLINE_RUN LOADLINE_TRACE CUDA_INJECTION64_PATH LOADLINE_SHIM LD_PRELOAD CUDA_VISIBLE_DEVICES CUDA_MPS_PIPE_DIRECTORY
	# Messages are looked at in English.
	export LANG=${LC_ALL:-${LANG-}} LC_MESSAGES=C
	unset LC_ALL LANGUAGE
	# bats takes a skip in setup_file for a failure, so what a whole file needs is looked for here.
	local need
	for need in ${NEEDS-}; do
		[ -e "$LOADLINE_BUILD/$need" ] || command -v "$need" >/dev/null || skip "this build or machine has no $need"
	done
}

# kill_programs: all that start and start_program have started and that still run. The number of a program that has ended may
# be any other program's by now.
kill_programs() {
	local pid
	for pid in $(jobs -rp); do
		kill -KILL "$pid" 2>/dev/null || true
	done
}

teardown() {
	local name left=('')
	kill_programs
	# Programs start others: a tenant of several processes, loadlined, which keeps the simulated world alone. They are
	# known by their environment. One that has ended since the look is no failure. One may have been started since: a
	# monitor whose loadlined was killed first starts another, which would go on in the world of the next test.
	while [ ${#left[@]} -gt 0 ]; do
		mapfile -t left < <(grep -lsF -e "XDG_RUNTIME_DIR=$T/run" -e "LOADLINE_SIM_DIR=$T/world" /proc/[0-9]*/environ)
		for name in "${left[@]}"; do
			kill -KILL "${name//[!0-9]/}" 2>/dev/null || true
		done
	done
	wait
	rm -rf "$T"
}

# loadline ARG...: the program under test.
loadline() {
	"$LOADLINE" "$@"
}

# scenario LINE...: of the simulated world that is made next (sim/README.md).
scenario() {
	printf '%s\n' "$@" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
}

# simctl WORD...: tells the simulator.
simctl() {
	"$LOADLINE_BUILD/sim/loadline-simctl" "$@"
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
	# Now, and not when the new process comes to it: else a test may take what an earlier program of this name wrote for
	# what this one writes, and send it a signal before it can take one.
	: >"$T/$name.out"
	: >"$T/$name.err"
	"$@" >"$T/$name.out" 2>"$T/$name.err" 3>&- &
	echo $! >"$T/$name.pid"
}

pid_of() {
	local pid
	read -r pid <"$T/$1.pid"
	echo "$pid"
}

is_running() {
	! has_ended "$(pid_of "$1")"
}

# has_ended PID: bash may learn late that a program has ended, when it waits for another: until then it is a zombie.
has_ended() {
	local stat
	! read -r stat 2>/dev/null <"/proc/$1/stat" || [[ $stat == *") Z "* ]]
}

# stop NAME [SIGNAL]: sends it (TERM unless told) and waits; $status is the exit status then.
stop() {
	kill -"${2-TERM}" "$(pid_of "$1")" 2>/dev/null || true
	finish "$1"
}

# stands PID: is each of its threads stopped? The signal is sent before they are: one that runs on another processor can take a lock.
stands() {
	local stat
	for stat in /proc/"$1"/task/*/stat; do
		read -r stat 2>/dev/null <"$stat" || continue
		[[ ${stat##*) } == [TZX]* ]] || return 1
	done
}

# freeze_process PID: SIGSTOP, but not while the process holds the simulator's lock, which would stop everybody.
freeze_process() {
	kill -STOP "$1"
	until wait_for 60 stands "$1" && timeout 5 "$LOADLINE_BUILD/sim/loadline-simctl" show >/dev/null; do
		kill -CONT "$1"
		kill -STOP "$1"
	done
}

# finish NAME: waits until it ends by itself; $status is the exit status then. What has not ended after five minutes hangs.
finish() {
	local pid
	pid=$(pid_of "$1")
	wait_for 300 has_ended "$pid"
	status=0
	wait "$pid" || status=$?
}

# wait_for SECONDS CONDITION...: until the command succeeds; fails, and shows what was printed, after the deadline, and
# at once when it waits for the output (has) of a program that has ended. has and shows wait by themselves in here: they
# start jq once, not once a look. So a condition that something is absent is shows_none, not `! shows`.
wait_for() {
	local began=$SECONDS allowed=$1 pause=0.02 ended=
	shift
	until "$@" >/dev/null 2>&1; do
		if [ -n "${ended-}" ]; then
			echo "$ended ended before: $*"
			show
			return 1
		fi
		if too_late; then
			echo "not within $((SECONDS - began)) s: $*"
			show
			return 1
		fi
		wait_a_little
	done
}

# too_late: has the wait since $began taken more than the $allowed seconds? They are those of a host that is free. It has more time by
# as many times as there are programs for each processor.
too_late() {
	local load
	((SECONDS - began > allowed)) || return 1
	read -r load _ </proc/loadavg
	((SECONDS - began > allowed * (1 + ${load%.*} / PROCESSORS)))
}

# in_time BEGAN SECONDS: from that $SECONDS until now it took no longer, on a host that is free.
in_time() {
	local began=$1 allowed=$2
	! too_late
}

# wait_a_little: from 20 ms up to 160 ms, longer each time, without a process for it.
wait_a_little() {
	read -rt "$pause" <>"$T/silence" || true
	case $pause in
	0.02) pause=0.04 ;;
	0.04) pause=0.08 ;;
	*) pause=0.16 ;;
	esac
}

# show: what every program printed, for a failed test's log.
show() {
	local file
	for file in "$T"/*.out "$T"/*.err "$LOADLINE_SIM_DIR/loadlined.log"; do
		[ -s "$file" ] || continue
		echo "--- ${file##*/}"
		tail -n 20 "$file"
	done
}

# json NAME FILTER: the results of a jq filter over NAME's JSON lines, one a line; a last line still being written is left out.
json() {
	jq -R -c -r "fromjson? | $2" "$T/$1.out"
}

# has NAME FILTER: does the filter give anything but null and false for a line?
has() {
	look "$1" "lines | ($2)? | select(.)"
}

# counts NAME NUMBER FILTER: does it so often?
counts() {
	look "$1" "foreach (lines | ($3)? | select(.)) as \$line (0; . + 1; select(. >= $2))"
}

# look NAME PROGRAM: does the jq program give anything over NAME's `lines`? Under wait_for it is told each new line until it
# does, or the program NAME has ended, which is then in $ended.
look() {
	local program="def lines: inputs | fromjson?; $2 | halt"
	if [ -z "${allowed-}" ]; then
		jq -R -n -e "$program" "$T/$1.out" >/dev/null
		return
	fi
	local pid
	pid=$(pid_of "$1")
	if timeout "$allowed" jq -R -n -e "$program" \
		< <(exec tail -n +1 -s 0.2 -f --pid "$pid" "$T/$1.out" 2>/dev/null) >/dev/null; then
		return 0
	fi
	! has_ended "$pid" || ended=$1
	return 1
}

# shows FILTER: does the filter give anything but null and false for a line of `loadline status --json`?
shows() {
	status_has "any(.[] | ($1)?; .)"
}

# shows_none FILTER: for no line?
shows_none() {
	status_has "any(.[] | ($1)?; .) | not"
}

# status_has PROGRAM: does the jq program give true for the array of those lines? Under wait_for one jq is asked about each
# next status until it does.
status_has() {
	if [ -n "${allowed-}" ]; then
		(ask_until_true "try ($1) catch false")
	else
		"$LOADLINE" --sim status --json | jq -s -e "$1" >/dev/null
	fi
}

# In a subshell: a jq that ends at once, because the program is wrong, ends it by SIGPIPE.
ask_until_true() {
	local lines answer
	coproc JUDGE { exec jq --unbuffered "$1"; }
	until too_late; do
		lines=$("$LOADLINE" --sim status --json)
		echo "[${lines//$'\n'/,}]" >&"${JUDGE[1]}"
		read -r answer <&"${JUDGE[0]}" || return 1
		[ "$answer" != true ] || return 0
		wait_a_little
	done
	return 1
}

# gpu_seconds NAME...: of each tenant, at one moment.
gpu_seconds() {
	local name filter=empty
	for name; do
		filter+=", ([.[] | select(has(\"claim\") and .tenant == \"$name\") | .gpu_seconds] | add // 0)"
	done
	loadline --sim status --json | jq -s "[$filter] | join(\" \")" -r
}

# shares ONE OTHER RATIO-LOW RATIO-HIGH: of the card's time ONE gets so many times what OTHER gets, in the middle one of five
# spans in each of which ONE gets 0.3 s. A busy host may keep a program from its next launch through one of them.
shares() {
	local one other one_later other_later ratios=()
	read -r one other <<<"$(gpu_seconds "$1" "$2")"
	while [ ${#ratios[@]} -lt 5 ]; do
		wait_for 60 used "$1" "$(jq -n "$one + 0.3")"
		read -r one_later other_later <<<"$(gpu_seconds "$1" "$2")"
		ratios+=("$(jq -n "($one_later - $one) / ([$other_later - $other, 0.0001] | max)")")
		one=$one_later other=$other_later
	done
	expect '($ratios | sort | .[2]) as $ratio | $ratio > $low and $ratio < $high' --argjson low "$3" --argjson high "$4" \
		--argjson ratios "$(jq -s -c . <<<"${ratios[*]}")"
}

used() {
	shows "select(has(\"claim\") and .tenant == \"$1\" and .gpu_seconds >= $2)"
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
	run "${told[@]}" --separate-stderr timeout 300 "$LOADLINE" "$@"
	# shellcheck disable=SC2154
	echo "status $status, stdout '$output', stderr '$stderr'"
	[ "$status" -eq "$expected" ]
	case $expected in
	2 | 3) [[ $stderr == loadline:*"$text"* ]] ;;
	*) [[ $'\n'$stderr == *$'\n'loadline:*"$text"* ]] ;;
	esac
}

# is_silent: nothing is on the standard error of what `run` has run, but for what a busy host makes a command say: that it still waits.
is_silent() {
	! grep -qv -e "^loadline: waits for " -e "^$" <<<"$stderr"
}

# start_lost_tenant: tenant "stray" on card 0, which is not held to its limits until the program `stray` is stopped.
start_lost_tenant() {
	local uuid
	uuid=$(loadline --sim status -i 0 --json | jq -r .uuid)
	start stray --sim run --allow-ungoverned --tenant stray -- "$LOADLINE_BUILD/tests/e2e/lost_tenant" "$uuid"
	wait_for 60 grep -q ready "$T/stray.out"
}

# complete_words WORD...: what bash offers for the last word.
complete_words() {
	bash -c 'source <("$LOADLINE" help --completion bash)
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_loadline
		printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}
