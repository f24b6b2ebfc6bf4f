# The command line itself: help, version, mistakes, manual pages, completions.
# shellcheck disable=SC2030,SC2031 # bats runs each test in a process of its own
load helper

commands() {
	loadline --help | awk '/^Global options/ {exit} /^  [a-z]/ {print $1}'
}

# bats test_tags=main
@test "help names every command, and every command has help" {
	for command in $(commands); do
		loadline "$command" --help | grep -q "^Usage: loadline $command"
		[ "$(loadline help "$command")" = "$(loadline "$command" -h)" ]
	done
	loadline --help | grep -q '^Usage: loadline'
	[ "$(commands | wc -l)" -ge 2 ]
}

@test "help groups the commands as the README does" {
	local title count=0
	while read -r title; do
		[ "$title" = Help ] || grep -qx "## $title" "$BATS_TEST_DIRNAME/../../README.md"
		count=$((count + 1))
	done < <(loadline --help | awk '/^Global options/ {exit} /^[A-Z].*:$/ {sub(/:$/, ""); print}')
	[ "$count" -eq 4 ]
}

# bats test_tags=main
@test "version is a name and three numbers" {
	[[ $(loadline --version) =~ ^loadline\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
	[ "$(loadline version)" = "$(loadline --version)" ]
}

# bats test_tags=main
@test "mistakes end with 2 and say what to do" {
	fails_with 2 "no command; try 'loadline --help'"
	fails_with 2 "frobnicate: unknown command; try 'loadline --help'" frobnicate
	fails_with 2 "--frob: unknown option; try 'loadline --help'" --frob version
	fails_with 2 "--frob: unknown option; try 'loadline version --help'" version --frob
	fails_with 2 "-z: unknown option" version -z
	fails_with 2 "extra: unexpected word" version extra
	fails_with 2 "--log-level: 'loud': not one of error, warn, info, debug" --log-level loud version
	fails_with 2 "--log-level: needs a value (LEVEL)" --log-level
	fails_with 2 "--version: takes no value" --version=1
	fails_with 2 "nosuch: unknown command; try 'loadline help --help'" help nosuch
	fails_with 2 "--completion: 'csh': not one of" help --completion csh
}

@test "a global option after the command says where it goes" {
	fails_with 2 "--sim goes before the command; write 'loadline --sim COMMAND'" hold --sim
	fails_with 2 "--log-level goes before the command; write 'loadline --log-level=warn COMMAND'" mps start --log-level=warn
	fails_with 2 "--sim goes before the command" mps --sim start
	fails_with 125 "--sim goes before the command" run --sim -- true
	fails_with 2 "--version goes before the command" status --version
}

@test "a misspelt name is told the nearest one, of the same command" {
	fails_with 2 "--tarket: unknown option; did you mean --target?" hold --tarket=30%
	fails_with 2 "--hepl: unknown option; did you mean --help?" status --hepl
	fails_with 2 "--target: unknown option; try 'loadline status --help'" status --target
	fails_with 2 "--sin: unknown option; did you mean --sim?" --sin status
	fails_with 2 "stauts: unknown command; did you mean 'loadline status'?" stauts
	fails_with 2 "mps stat: unknown command; did you mean 'loadline mps start'?" mps stat
	fails_with 2 "mps frobnicate: unknown command; use one of: start, " mps frobnicate
	fails_with 2 "hodl: unknown command; did you mean 'hold'?" help hodl
}

@test "a name that other programs give to an option or a command is answered with loadline's own" {
	local command option name
	while read -r command option name; do
		# shellcheck disable=SC2086
		fails_with 2 "$option: unknown option; did you mean $name?" ${command//_/ } $option 1
	done <<-END
		hold --gpu --cards
		hold --gpus --cards
		probe --gpus --cards
		mps_start --devices --cards
		hold --memory --max-memory
		set --memory --mem
		mps_set --memory --mem
		hold --duration --for
		hold --time --for
	END
	fails_with 125 "--memory: unknown option; did you mean --mem?" run --memory=2g -- true
	fails_with 125 "--name: unknown option; did you mean --tenant?" mps run --name x -- true
	fails_with 125 "--time: unknown option; did you mean --for?" trace --time 5s
	fails_with 2 "--name: unknown option; try 'loadline status --help'" status --name x
	for name in -v -V; do
		fails_with 2 "$name: unknown option; did you mean --version?" $name
		fails_with 2 "$name: unknown option; write 'loadline --version'" status $name
	done
	for name in ps list ls; do
		fails_with 2 "$name: unknown command; did you mean 'loadline status'?" $name
		fails_with 2 "mps $name: unknown command; did you mean 'loadline mps clients'?" mps $name
	done
}

@test "what loadline starts for itself is no command, and says so to who types it" {
	fails_with 2 "hold-worker: is for loadline itself, which starts it for each card; use 'loadline hold'" hold-worker
	fails_with 2 "limit-trial: is for loadline itself; use 'loadline doctor'" limit-trial
	[ "$({ loadline --help; loadline help --completion bash; loadline help --completion zsh; } | grep -cE 'hold-worker|limit-trial')" -eq 0 ]
}

# bats test_tags=main
@test "an error is one line on stderr and nothing on stdout" {
	run --separate-stderr loadline frobnicate
	[ -z "$output" ]
	# shellcheck disable=SC2154
	[ "${#stderr_lines[@]}" -eq 1 ]
}

# cannot_print ARG...: where standard output is full, and where it is closed, loadline ends with 1 and says so last. $before
# is a command of loadline that is run first.
cannot_print() {
	local where why ends
	for where in '>/dev/full' '>&-'; do
		[ "$where" = '>&-' ] && why="Bad file descriptor" || why="No space left on device"
		ends=0
		# shellcheck disable=SC2086
		[ -z "${before-}" ] || loadline $before || true
		timeout 300 bash -c "\"\$LOADLINE\" \"\$@\" $where" bash "$@" 2>"$T/cannot.err" || ends=$?
		echo "$* $where: $ends $(cat "$T/cannot.err")"
		[ "$ends" -eq 1 ]
		[ "$(tail -n 1 "$T/cannot.err")" = "loadline: standard output: $why" ]
	done
}

# bats test_tags=main
@test "output that cannot be written is an error, with its reason" {
	[ -w /dev/full ] || skip "no /dev/full"
	cannot_print --help
	cannot_print hold --help
	cannot_print run --help
	cannot_print help
	cannot_print help --man hold
	cannot_print help --completion bash
	cannot_print version
	cannot_print --version
}

# bats test_tags=main
@test "an output that cannot be written is 1 in every command, and named" {
	[ -w /dev/full ] || skip "no /dev/full"
	loadline --sim version || skip "no simulator in this build"
	fails_with 1 "record /dev/full: No space left" --sim hold --for 300ms --record /dev/full
	fails_with 1 "--kernel-log: /dev/full: No space left" --sim hold --for 2s --kernel-log /dev/full
	fails_with 1 "--kernel-log: $T/none/x: No such file" --sim hold --for 300ms --kernel-log "$T/none/x"
	fails_with 1 "--svg: $T/none/x: No such file" --sim probe --svg "$T/none/x"
	loadline --sim mps start
	local command
	for command in "hold --for 300ms" "hold --for 300ms --json" status "status --json" "status --watch=0.1" "doctor --no-trial" \
		"doctor --no-trial --json" "trace -i 0 --for 10ms --json" "mps status" "mps status --json" "mps env" \
		"mps clients" "mps set --mem 8G" "probe --experiment first" "probe --experiment first --json"; do
		# shellcheck disable=SC2086
		cannot_print --sim $command
	done
	before="--sim mps stop --force" cannot_print --sim mps start
	before="--sim mps start" cannot_print --sim mps stop --force
	cannot_print --sim=list
	run bash -c "\"\$LOADLINE_BUILD/sim/loadline-simctl\" show 2>&1 >/dev/full"
	[ "$status" -eq 1 ]
	[ "$output" = "loadline-simctl: standard output: No space left on device" ]
	start job --sim run --tenant job -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms for 60s
	wait_for 60 shows 'select(has("claim") and .tenant == "job")'
	cannot_print --sim set job --weight 2
}

@test "a closed standard output is closed to the program of run too, and no file takes its place" {
	loadline --sim version || skip "no simulator in this build"
	[ -x "$LOADLINE_BUILD/tests/e2e/launcher" ] || skip "nothing can be preloaded in this build"
	run bash -c "\"\$LOADLINE\" --sim run -- sh -c 'echo lost' >&-"
	[ "$status" -ne 0 ]
	[ "$(grep -rls lost "$T/world" "$T/run" | wc -l)" -eq 0 ]
}

@test "manual pages render without a warning and hold every option" {
	command -v man >/dev/null || skip "no man"
	for command in '' $(commands); do
		# shellcheck disable=SC2086
		loadline help --man $command >"$T/page.1"
		warnings=$(LC_ALL=C.UTF-8 man --warnings=w -E UTF-8 -l -Tutf8 "$T/page.1" 2>&1 >"$T/page.txt")
		[ -z "$warnings" ] || {
			echo "$command: $warnings"
			false
		}
		grep -q 'EXIT STATUS' <(col -bx <"$T/page.txt" 2>/dev/null || cat "$T/page.txt")
		grep -c '^\.TH LOADLINE' "$T/page.1"
	done
}

@test "completions parse in their shells" {
	loadline help --completion bash | bash -n
	command -v zsh >/dev/null && loadline help --completion zsh >"$T/_loadline" && zsh -n "$T/_loadline"
	command -v fish >/dev/null && loadline help --completion fish >"$T/loadline.fish" && fish -n "$T/loadline.fish"
	true
}

# bats test_tags=main
@test "bash completes commands, options and values" {
	complete_words loadline vers | grep -qx version
	complete_words loadline --log-level = de | grep -qx debug
	complete_words loadline --log-level wa | grep -qx warn
	complete_words loadline help --comp | grep -qx -- --completion
	complete_words loadline help ver | grep -qx version
	[ -z "$(complete_words loadline version --comp)" ]
}

@test "bash completes programs and file names behind --" {
	mkdir "$T/files"
	touch "$T/files/train.py"
	cd "$T/files"
	local command
	for command in run trace "mps run"; do
		# shellcheck disable=SC2086
		[ "$(complete_words loadline $command -- python3 --mem tr)" = train.py ]
		# shellcheck disable=SC2086
		[ "$(complete_words loadline $command -- tr | sort -u | grep -cxE 'train.py|true')" -eq 2 ]
	done
	[ -z "$(complete_words loadline run tr)" ]
	[ -z "$(complete_words loadline set -- tr)" ]
}

@test "bash completes what stands behind --sim" {
	local command
	for command in "--sim" "--sim = h200" "--sim = status" "--log-level = trace"; do
		# shellcheck disable=SC2086
		[ "$(complete_words loadline $command ru)" = run ]
		# shellcheck disable=SC2086
		complete_words loadline $command status --wat | grep -qx -- --watch
	done
	[ "$(complete_words loadline --sim = h2 | xargs)" = "h200 h200x8" ]
	[ "$(cd "$T/run" && complete_words loadline --sim = | sort | xargs)" = "h100x8 h200 h200x8 list mig no-off slices-committed slices-ignored" ]
	touch "$T/train.py"
	[ "$(complete_words loadline --sim = "$T/tra")" = "$T/train.py" ]
	[ -z "$(complete_words loadline --sim h2)" ]
	complete_words loadline --sim = h200 --log-level = de | grep -qx debug
	complete_words loadline --sim mps start --cards = al | grep -qx all
}

# zsh_completes LINE EXPECTED: TAB makes EXPECTED of LINE, and zsh has no complaint.
zsh_completes() {
	local completed
	completed=$(T=$T "$BATS_TEST_DIRNAME/zsh_complete" "$1" 2>"$T/zsh.err")
	echo "$1: $completed"
	cat "$T/zsh.err"
	[ "$completed" = "$2" ]
	[ "$(grep -cE 'bad math|error|not found' "$T/zsh.err")" -eq 0 ]
}

@test "zsh completes programs and their words behind --" {
	command -v zsh >/dev/null || skip "no zsh"
	mkdir "$T/files"
	touch "$T/files/train.py"
	cd "$T/files"
	local command
	for command in run trace "mps run" "--sim run" "--sim=h200 trace" "run --mem 2g" "mps run -i 0"; do
		zsh_completes "loadline $command -- python3 tra" "loadline $command -- python3 train.py "
		zsh_completes "loadline $command -- ./tra" "loadline $command -- ./train.py "
		zsh_completes "loadline $command -- tail --verb" "loadline $command -- tail --verbose "
		zsh_completes "loadline $command -- mktem" "loadline $command -- mktemp "
	done
	zsh_completes "loadline run -- tail -- tra" "loadline run -- tail -- train.py "
}

@test "zsh completes commands, options and scenarios" {
	command -v zsh >/dev/null || skip "no zsh"
	zsh_completes "loadline stat" "loadline status "
	zsh_completes "loadline help vers" "loadline help version "
	zsh_completes "loadline --sim ru" "loadline --sim run "
	zsh_completes "loadline --sim=h1" "loadline --sim=h100x8 "
	zsh_completes "loadline --sim=h200 mps start --excl" "loadline --sim=h200 mps start --exclusive "
	zsh_completes "loadline run -i al" "loadline run -i all "
}

# fish_completes LINE EXPECTED: fish offers that, without the descriptions.
fish_completes() {
	[ "$(fish -c 'source $argv[1]; complete -C $argv[2]' "$T/loadline.fish" "$1" | cut -f 1 | xargs)" = "$2" ]
}

@test "fish completes commands, scenarios, and files behind --" {
	command -v fish >/dev/null || skip "no fish"
	export HOME=$T PATH=${LOADLINE%/*}:$PATH
	loadline help --completion fish >"$T/loadline.fish"
	touch "$T/train.py"
	cd "$T"
	fish_completes "loadline --sim ru" run
	fish_completes "loadline --sim=h200 ru" run
	fish_completes "loadline --sim=h2" "--sim=h200 --sim=h200x8"
	fish_completes "loadline --log-level de" debug
	fish_completes "loadline --sim run -- python3 tra" train.py
}

# bats test_tags=main
@test "words of before are taken and not shown" {
	run_by() {
		loadline --sim run "$@" -- sh -c 'echo "${CUDA_MPS_PIPE_DIRECTORY-none}"'
	}
	if loadline --sim run -- true 2>/dev/null; then
		[ "$(run_by --by time --priority low)" = none ]
		[ "$(run_by --by slices --class low)" = none ]
	fi
	fails_with 125 "--by: 'visits': not one of slices, space, auto" --sim run --by visits -- true
	loadline run --help >"$T/help"
	loadline set --help >>"$T/help"
	run ! grep -qE -e "--priority|One of time" "$T/help"
	[ -z "$(complete_words loadline run --prio)" ]
}

@test "bash completes the classes of set" {
	[ "$(complete_words loadline set job --class '' | xargs)" = "high normal low" ]
}

@test "bash completes the commands of a group, each with its own options" {
	[ "$(complete_words loadline mps st | sort | xargs)" = "start status stop" ]
	complete_words loadline mps start --excl | grep -qx -- --exclusive
	complete_words loadline mps start --cards al | grep -qx all
	[ -z "$(complete_words loadline mps stop --excl)" ]
	[ -z "$(complete_words loadline mps status --comp)" ]
	complete_words loadline --sim mps kill --ti | grep -qx -- --timeout
}

# bats test_tags=main
@test "a scenario that is not there is a bad value" {
	loadline --sim version || skip "no simulator in this build"
	run loadline --sim=no-such-scenario version
	[ "$status" -eq 2 ]
	[[ $output == *"scenario 'no-such-scenario'"* ]]
}

# bats test_tags=main
@test "--sim=NAME: scenarios that are shipped" {
	loadline --sim version || skip "no simulator in this build"
	local name
	[ "$(loadline --sim=list | awk '{print $1}' | xargs)" = "h100x8 h200 h200x8 mig no-off slices-committed slices-ignored" ]
	[ "$(loadline --sim=list | awk 'NF < 3' | wc -l)" -eq 0 ]
	[ "$(loadline --sim=list)" = "$(loadline --sim=list status)" ]
	while read -r name; do
		loadline --help | grep -qw "$name"
		complete_words loadline --sim = "$name" | grep -qx "$name"
		loadline "--sim=$name" version
	done < <(loadline --sim=list | awk '{print $1}')
	cards() {
		loadline "--sim=$1" status --json | jq -s -r "[.[] | select(has(\"uuid\"))] | $2"
	}
	[ "$(cards h200 'length, .[0].name')" = $'1\nNVIDIA H200' ]
	[ "$(cards h200x8 'length, ([.[].name] | unique[])')" = $'8\nNVIDIA H200' ]
	[ "$(cards h100x8 'length, ([.[].name] | unique[]), .[0].memory_total_bytes / 1048576')" = $'8\nNVIDIA H100 80GB HBM3\n81559' ]
	[ "$(cards mig '[.[] | select(.slice != null)] | length, .[0].name')" = $'7\nNVIDIA H200 MIG 1g.18gb' ]
	# Without a name the cards stay.
	[ "$(loadline --sim status --json | jq -s 'length')" -eq 8 ]
}

@test "--sim: a file is meant before a scenario of that name, a folder is not" {
	loadline --sim version || skip "no simulator in this build"
	cd "$T"
	mkdir mig
	loadline --sim=mig version
	rmdir mig
	printf 'cards 3\n' >mig
	[ "$(loadline --sim=mig status --json | jq -s length)" -eq 3 ]
	fails_with 2 "--sim: scenario '$T': Is a directory" "--sim=$T" version
	fails_with 2 "--sim: scenario 'nosuch': No such file or directory; name a file, or one of h100x8, h200, h200x8, mig, no-off, slices-committed, slices-ignored" --sim=nosuch status
}

@test "--sim: what is advised has --sim too, and no way to change a real card" {
	loadline --sim version || skip "no simulator in this build"
	fails_with 3 "; \`loadline --sim status -i all\` lists the cards" --sim status -i 77
	fails_with 1 "; \`loadline --sim status\` shows them" --sim set nobody --mem 1G
	fails_with 2 "; try 'loadline --sim status --help'" --sim status --target
	fails_with 2 "; write 'loadline --sim COMMAND'" --sim status --sim
	"$LOADLINE_BUILD/sim/loadline-simctl" card 0 mode prohibited
	fails_with 4 "; set the default mode: loadline-simctl card all mode default" --sim hold -i 0 --for 100ms
	fails_with 2 "; try 'loadline status --help'" status --target
}

@test "--sim=NAME: every command that is printed has it" {
	loadline --sim version || skip "no simulator in this build"
	[ -x "$LOADLINE_BUILD/tests/e2e/launcher" ] || skip "nothing can be preloaded in this build"
	command -v python3 >/dev/null || skip "no python3"
	local command lost='import ctypes, resource
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0)'
	: >"$T/said"
	while read -r command; do
		# shellcheck disable=SC2086
		timeout 120 "$LOADLINE" --sim=h200 $command >>"$T/said" 2>&1 </dev/null || true
	done <<-END
		status -i 77
		set nobody --mem 1G
		status --targe
		statsu
		top
		run --memory 2g -- true
		run --help
		mps --help
		mps status
		run --by space -- true
		trace -i 0 -o $T/x.json
		mps start
		mps start
		mps start --mem 1G
		mps stop
		doctor --no-trial
		probe --experiment slice
		probe --experiment slice --json
		hold -i 77
		evict nobody
		hold-worker
	END
	printf '#!/bin/sh\n' >"$T/docker"
	chmod +x "$T/docker"
	loadline --sim=h200 run -- "$T/docker" run image >>"$T/said" 2>&1
	loadline --sim=h200 run --mem 1G -- python3 -c "$lost" >>"$T/said" 2>&1
	# At the beginning of an example, in backquotes or quotes, behind a colon: a command, not a word of a sentence.
	tr '\n' ' ' <"$T/said" | grep -oE "(   |[\`'(\"]|: |-- )loadline +(--[^ ]* +)?(status|doctor|hold|run|set|evict|suspend|resume|trace|mps|probe|help|version|COMMAND)" >"$T/commands"
	[ "$(grep -c -- '--sim=h200 ' "$T/commands")" -ge 30 ]
	[ "$(grep -cv -- '--sim=h200 ' "$T/commands")" -eq 0 ]
	grep -qF 'loadline --sim=h200 run` (CUDA error 800' "$T/said"
	grep -q 'put loadline inside: .*loadline --sim=h200 run' "$T/said"
}

@test "--sim: the simulated MPS is found before any other" {
	loadline --sim version || skip "no simulator in this build"
	[ -x "$LOADLINE_BUILD/tests/e2e/launcher" ] || skip "nothing can be preloaded in this build"
	export CUDA_MPS_PIPE_DIRECTORY=$T/pipe CUDA_MPS_LOG_DIRECTORY=$T/log
	local control=nvidia-cuda-mps-control
	run loadline --sim run -- sh -c "$control -d && echo get_default_active_thread_percentage | $control; echo quit | $control"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = 100.0 ]
	grep -q "Exit" "$T/log/control.log"
}

@test "--sim: a folder that is not there or cannot be used is one line, with what to do" {
	loadline --sim version || skip "no simulator in this build"
	[ -x "$LOADLINE_BUILD/tests/e2e/launcher" ] || skip "nothing can be preloaded in this build"
	: >"$T/file"
	mkdir -m 777 "$T/open" "$T/open/loadline-sim"
	chmod 777 "$T/open/loadline-sim"
	# One of root's that is open to all is a world for all users.
	[ "$(id -u)" -ne 0 ] || chown 1 "$T/open/loadline-sim"
	unset LOADLINE_SIM_DIR
	one_line() {
		fails_with "$@"
		# shellcheck disable=SC2154
		[ "$(grep -c . <<<"$stderr")" -eq 1 ]
	}
	local folder command
	for folder in "$T/none" "$T/file" "$T/open" "$T/$(printf 'x%.0s' {1..150})/$(printf 'x%.0s' {1..150})"; do
		export XDG_RUNTIME_DIR=$folder
		for command in status "hold --for 100ms" "mps start" "mps status" "mps env" "set x --mem 1G" "evict x" "probe" "trace -i 0 --for 10ms"; do
			case $command in trace*) status=125 ;; *) status=3 ;; esac
			# shellcheck disable=SC2086
			one_line $status "simulated world: " --sim $command
			[[ $stderr == *"; set XDG_RUNTIME_DIR to a folder of your own, or unset it" ]]
		done
		one_line 125 "simulated world: " --sim run -- true
	done
	# A program that uses the simulated driver without loadline has the line from the driver.
	run --separate-stderr env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE_BUILD/tests/e2e/launcher"
	[[ $stderr == *"loadline-sim: simulated world: "*"; set XDG_RUNTIME_DIR to a folder of your own, or unset it" ]]
	export XDG_RUNTIME_DIR=$T/run LOADLINE_SIM_DIR=$T/none/at/all
	one_line 3 "simulated world: make $T/none/at/all: No such file or directory; set LOADLINE_SIM_DIR to a folder of your own" --sim status
	export LOADLINE_SIM_DIR=$T/world
	printf 'cards 1\nfrobnicate\n' >"$T/scenario"
	one_line 3 "scenario $T/scenario:2: " --sim="$T/scenario" status
}

@test "a program without its simulator says so" {
	cp "$LOADLINE" "$T/loadline"
	run "$T/loadline" --sim version
	[ "$status" -eq 3 ]
	[[ $output == "loadline: --sim: no simulated driver beside $T"*"; apt install loadline-sim, or install all of loadline" ]]
	run "$T/loadline" --sim=list
	[ "$status" -eq 3 ]
	[[ $output == *"; apt install loadline-sim, or install all of loadline" ]]
}

@test "a loadline without the programs of probe, top and trace says so, and finds them in its own folder" {
	cp "$LOADLINE" "$T/loadline"
	LOADLINE=$T/loadline fails_with 1 "loadline-probe is not beside this program, nor in ../lib/loadline; install all of the package loadline" probe --list
	LOADLINE=$T/loadline fails_with 125 "loadline-trace is not beside this program" trace -- true
	LOADLINE=$T/loadline fails_with 1 "loadline-top is not beside this program" top --plain
	"$T/loadline" help probe | grep -q '^Usage: loadline probe '
	cp "$LOADLINE_BUILD"/src/cli/loadline-{probe,trace} "$T"
	diff <("$T/loadline" probe --list) <(loadline probe --list)
	diff <("$T/loadline" trace --help) <(loadline help trace)
}

# bats test_tags=main
@test "a zero is not taken for an option that was not given, and a time without its other end is told" {
	fails_with 2 "--for: '0s': must be more than 0" hold --for 0s --dry-run
	fails_with 2 "--idle-after: '0': must be more than 0" hold --idle-after 0 --dry-run
	fails_with 2 "--max-memory: '0': must be more than 0" hold --max-memory 0 --dry-run
	fails_with 125 "--time: '0': must be more than 0" run --time 0 -- true
	fails_with 2 "--timeout: '0s': must be more than 0" submit --wait 0s -- true
	fails_with 2 "--timeout: '0': must be more than 0" evict --wait 0 job
	fails_with 2 "--timeout: '0': must be more than 0" resume --timeout 0 job
	fails_with 2 "--timeout: '0': must be more than 0" submit wait --timeout 0 1
	fails_with 2 "--pid: '0'" evict --pid 0
	fails_with 125 "--for: '0': must be more than 0" trace --for 0
	fails_with 2 "--since 2999-01-01 is in the future" report --since 2999-01-01
	fails_with 2 "--since 2999-01-01 is in the future" history --since 2999-01-01
	fails_with 2 "--until 2020-01-01 is before --since 2020-02-01" report --since 2020-02-01 --until 2020-01-01
}

@test "closed standard descriptors are not taken for what is opened next" {
	loadline --sim version || skip "no simulator in this build"
	# Those that print end with 1.
	local command
	for command in status "doctor --no-trial" "hold --for 300ms" "mps start" "mps status" "mps stop --within 5s" "hold --dry-run"; do
		echo "$command"
		run -1 timeout 120 bash -c "exec \"$LOADLINE\" --sim $command <&- >&- 2>&-"
	done
	run -0 timeout 120 bash -c "exec \"$LOADLINE\" --sim trace -o $T/trace.json -- $LOADLINE_BUILD/sim/loadline-simctl busy 0 count 3 >/dev/null <&- 2>&-"
	jq -e . "$T/trace.json" >/dev/null
}

# bats test_tags=main
@test "every command of the README is one, and has the options that the README gives it" {
	loadline --sim version || skip "no simulator in this build"
	awk '/^```/ {on = !on} on && /^loadline / {sub(/ [#|].*| -- COMMAND.*/, ""); print}' \
		"$BATS_TEST_DIRNAME/../../README.md" >"$T/commands"
	[ "$(wc -l <"$T/commands")" -ge 10 ]
	while read -r _ words; do
		# shellcheck disable=SC2086
		loadline $words --help >/dev/null
	done <"$T/commands"
}

@test "help --man shows the page on a terminal, by man and its pager, and is roff elsewhere" {
	mkdir "$T/bin"
	printf '#!/bin/sh\necho "shown by man $*"\nhead -n 1\ncat >/dev/null\n' >"$T/bin/man"
	chmod 755 "$T/bin/man"
	cat >"$T/terminal.py" <<-'PY'
		import os, pty, sys
		sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
	PY
	PATH=$T/bin:$PATH python3 "$T/terminal.py" "$LOADLINE" help --man hold </dev/null >"$T/page"
	grep -q "^shown by man -l -" "$T/page"
	grep -q '^\.TH' "$T/page"
	[ "$(wc -l <"$T/page")" -eq 2 ]
	run ! grep -q '^\.SH' "$T/page"
	# Without man the source is better than nothing.
	printf '#!/bin/sh\nexit 1\n' >"$T/bin/man"
	PATH=$T/bin:$PATH python3 "$T/terminal.py" "$LOADLINE" help --man hold </dev/null >"$T/page"
	grep -q "there is no man to show it" "$T/page"
	grep -q '^\.SH' "$T/page"
	loadline help --man hold | grep -q '^\.SH'
}
