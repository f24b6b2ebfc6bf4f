# The README's commands, in its order, as a newcomer types them one after the other on the simulated driver. What runs until it
# is ended is ended before the next line, but not before those that look at it or change it.
export NEEDS=tests/e2e/launcher
load helper

# holds: is there a claim of a hold? runs: of a program?
holds() {
	shows 'select(has("claim") and .synthetic)'
}

runs() {
	shows 'select(has("claim") and (.synthetic | not))'
}

is_clear() {
	shows_none 'select(has("claim"))'
}

# begin COMMAND: in a process group of its own, as a shell with job control has it; SIGINT is not ignored there.
begin() {
	: >"$T/line.out"
	python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.setpgid(0, 0)
os.execvp("bash", ["bash", "-c", sys.argv[1]])' "$1" >"$T/line.out" 2>"$T/line.err" 3>&- &
	group=$!
	echo "$group" >"$T/line.pid"
}

# end: Ctrl-C for what runs in the foreground.
end() {
	[ -z "$group" ] || kill -INT -- "-$group" 2>/dev/null || true
	[ -z "$group" ] || finish line
	group=
	wait_for 60 is_clear
}

follow() {
	local line=$1 program="$LOADLINE_BUILD/sim/loadline-simctl busy 0 kernel 1ms memory 64M"
	case $line in
	*" set "* | *" evict "* | *" status" | *" limits" | *" explain") ;;
	*) end ;;
	esac
	[[ $line == *--sim* ]] || line="loadline --sim${line#loadline}"
	case $line in
	*" trace "*) line=${line/COMMAND/$program for 1s} ;;
	*) line=${line/COMMAND/$program for 300s} ;;
	esac
	echo "$ $line"
	case $line in
	*" hold"* | *" run "*)
		begin "$line"
		case $line in *" hold"*) wait_for 60 holds ;; *) wait_for 60 runs ;; esac
		;;
	*) timeout 120 bash -c "$line" ;;
	esac
	case $line in *" evict "*) timeout 120 bash -c "${line/evict/resume}" ;; esac
}

# lines PAGE: "run COMMAND" or "not run COMMAND" for each command of its code blocks. A block behind a comment
# <!-- not run: REASON --> is not run. Of a console's block the lines after a dollar are commands.
lines() {
	awk '
		/^<!-- not run: .* -->$/ {is_left_out = 1; next}
		/^```/ {
			is_open = !is_open
			is_console = /^```console/
			if (!is_open)
				is_left_out = 0
			next
		}
		is_open && (!is_console || sub(/^\$ /, "")) && sub(/ *(#.*)?$/, "") && length {print (is_left_out ? "not run " : "run ") $0}' "$1"
}

# lines_to_run PAGE: fails for a command that no test runs and that has no reason.
lines_to_run() {
	lines "$1" | sed -n 's/^run //p'
	! lines "$1" | grep '^run ' | grep -v '^run loadline '
}

@test "a README has no command that is neither run nor marked with a reason, and both have the same" {
	local page pages=("$BATS_TEST_DIRNAME"/../../README{,.zh}.md)
	for page in "${pages[@]}"; do
		lines_to_run "$page"
		echo "# ${page##*/}: $(lines "$page" | grep -c '^run ') commands are run, $(lines "$page" | grep -c '^not run ') are not" >&3
	done
	diff <(lines "${pages[0]}") <(lines "${pages[1]}")
	printf '%s\n' '```' 'make it' '```' '<!-- not run: x -->' '```console' '$ docker run' 'out' '```' >"$T/page.md"
	[ "$(lines "$T/page.md")" = $'run make it\nnot run docker run' ]
	run lines_to_run "$T/page.md"
	[ "$status" -ne 0 ]
}

@test "each command works in the order of the README" {
	loadline --sim version || skip "no simulator in this build"
	command -v python3 >/dev/null || skip "no python3"
	local group='' line count=0
	cd "$T"
	export PATH=${LOADLINE%/*}:$PATH
	while read -r line <&4; do
		follow "$line"
		count=$((count + 1))
	done 4< <(lines_to_run "$BATS_TEST_DIRNAME/../../README.md")
	end
	loadline --sim mps stop --force
	[ "$count" -ge 18 ]
	jq -e .traceEvents all.json >/dev/null
	grep -q '<svg' a.svg
}

@test "the picture of status has the shape of what the command says" {
	loadline --sim version || skip "no simulator in this build"
	command -v python3 >/dev/null || skip "no python3"
	"$BATS_TEST_DIRNAME/../../tools/make_status_picture" --compare --build "$LOADLINE_BUILD"
}
