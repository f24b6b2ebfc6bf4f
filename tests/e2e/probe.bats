# loadline probe: the words where the model says so, what it says when it cannot, and that nothing is left behind.
# Kernels are long, so that a loaded machine's late launches do not part what the model runs together.
load helper

LONG=(--kernel 20ms --each 3 --runs 3)
# Of one cell, which takes more than a minute: whatever a test does beside it, it does in its midst.
LINGERING=(--grid tiny --priority equal --connections 8 --kernel 500ms --each 64)
# probe NAME ARG...: its output is in $T/NAME.out. Folders that it makes are in $T.
probe() {
	local name=$1
	shift
	TMPDIR=$T loadline --sim probe "$@" >"$T/$name.out" 2>"$T/$name.err" || {
		status=$?
		show
		return "$status"
	}
}

# linger PARALLEL ARG...: a probe in the midst of its measuring.
linger() {
	wait_for 60 shows '.util_percent == 0'
	TMPDIR=$T start probe --sim probe "${LINGERING[@]}" --parallel "$@"
	wait_for 60 shows '.util_percent > 10'
}

# word NAME FILTER: the words of the cells that the filter lets through.
word() {
	json "$1" "select(.event == \"cell\" and ($2)) | .word" | sort -u | xargs
}

children_of() {
	cat "/proc/$(pid_of "$1")/task/$(pid_of "$1")/children" 2>/dev/null
}

# Processes of this test's probe, and its daemon's, which has the folder in its environment.
left_over() {
	local file
	while read -r file; do
		tr '\0' ' ' 2>/dev/null <"${file%environ}cmdline" | grep -E 'probe-worker|nvidia-cuda-mps|loadline.* probe'
	done < <(grep -lzsxF "LOADLINE_SIM_DIR=$LOADLINE_SIM_DIR" /proc/[0-9]*/environ)
	compgen -G "$T/loadline-probe.*"
}

nothing_is_left() {
	[ -z "$(left_over)" ]
}

# bats test_tags=main
@test "streams, processes and full grids have their words, with the card's own times" {
	probe a --parallel streams,processes --under default --priority equal --connections 8 "${LONG[@]}" --json
	[ "$(word a '.parallel == "streams" and .grid == "tiny"')" = concurrent ]
	[ "$(word a '.parallel == "streams" and .grid == "full"')" = serialised ]
	[ "$(word a '.parallel == "processes"')" = time-sliced ]
	has a 'select(.parallel == "processes" and .grid == "tiny") | .slice_us.median > 2080 and .slice_us.median < 2100'
	# 140 us, and 30 on each side for the state of kernels that fill the card
	has a 'select(.parallel == "processes" and .grid == "full") | .switch_us.median > 190 and .switch_us.median < 210'
	has a 'select(.parallel == "streams" and .grid == "full") | .sms == 132 and .overlap_percent.median < 5'
	has a 'select(.event == "cell") | (.kernels | length) == 6 and (.kernels[0].end_ns - .kernels[0].start_ns) >= 19999000'
	has a 'select(.event == "card") | .simulated and .sm_count == 132 and .card == 0'
}

@test "threads run together in streams of their own, and wait for each other in the legacy one" {
	probe a --parallel threads,per-thread,legacy --under default --priority equal --grid tiny --connections 8 "${LONG[@]}" --json
	[ "$(json a 'select(.event == "cell") | [.parallel, .word] | join(" ")' | xargs)" = "threads concurrent per-thread concurrent legacy serialised" ]
}

@test "one hardware queue keeps small kernels of two streams apart" {
	probe a --parallel streams --under default --priority equal --grid tiny --connections 1,8 "${LONG[@]}" --json
	[ "$(word a '.connections == 1')" = serialised ]
	[ "$(word a '.connections == 8')" = concurrent ]
	has a 'select(.event == "statement" and .about == "connections") | .text | test("1: serialised.*8: concurrent")'
}

# bats test_tags=main
@test "MPS runs processes together, halves of the card side by side, and its daemon is gone afterwards" {
	probe a --parallel processes --under default,mps,mps:50% --priority equal --connections 8 "${LONG[@]}" --json
	[ "$(word a '.under == "default"')" = time-sliced ]
	[ "$(word a '.under == "mps" and .grid == "tiny"')" = concurrent ]
	[ "$(word a '.under == "mps:50%" and .grid == "full"')" = concurrent ]
	has a 'select(.under == "mps:50%" and .grid == "full") | .sms == 66 and .sms_together == 132'
	has a 'select(.event == "memory" and .under == "mps") | .each_bytes > 0 and .first_bytes > .each_bytes'
	has a 'select(.event == "statement" and .about == "mps-price") | .text | test("MiB of the card")'
	nothing_is_left
}

@test "a card in exclusive mode refuses the second process, with the driver's words" {
	scenario "card 0 mode exclusive"
	probe a --parallel streams,processes --priority equal --grid tiny --connections 8 --under default,exclusive "${LONG[@]}" --json
	[ "$(word a '.parallel == "processes" and .under == "exclusive"')" = refused ]
	has a 'select(.word == "refused") | .refusal == "make a context: CUDA_ERROR_DEVICE_UNAVAILABLE (46)"'
	[ "$(word a '.parallel == "streams" and .under == "exclusive"')" = concurrent ]
	has a 'select(.under == "default") | .word == null and .not_measured == "the card is in exclusive-process mode"'
	has a 'select(.event == "statement" and .about == "exclusive") | .text | test("a second process is refused")'
}

@test "a mode is changed only when asked, and put back" {
	probe a --parallel processes --under exclusive --grid tiny --priority equal --connections 8 --runs 1
	grep -q "not measured: the card is in default mode; --set-exclusive" "$T/a.out"
	[ "$(id -u)" -eq 0 ] || skip "changing a mode needs root"
	probe b --parallel processes --under exclusive --set-exclusive --grid tiny --priority equal --connections 8 --runs 1 --json
	[ "$(word b true)" = refused ]
	shows '.compute_mode == "default"'
}

@test "a mode that cannot be changed is told in its cells, and the others are measured" {
	scenario "fail nvmlDeviceSetComputeMode NVML_ERROR_NO_PERMISSION"
	probe a --parallel processes --under exclusive,default --set-exclusive --grid tiny --priority equal --connections 8 "${LONG[@]}" --json
	has a 'select(.under == "exclusive") | .not_measured | test("set exclusive-process mode: .*NVML error 4")'
	[ "$(word a '.under == "default"')" = time-sliced ]
}

@test "a driver that makes no context is refused in every cell, which is a result" {
	scenario "fail cuCtxCreate_v2 CUDA_ERROR_OUT_OF_MEMORY"
	probe a --parallel streams,processes --under default --connections 8 --runs 1 --json
	[ "$(word a true)" = refused ]
	has a 'select(.event == "cell") | .refusal == "make a context: CUDA_ERROR_OUT_OF_MEMORY (2)"'
}

@test "where no MPS daemon can be started the cells say why" {
	TMPDIR=$T/nowhere loadline --sim probe --parallel processes --under mps --grid tiny --connections 8 --runs 1 --json >"$T/a.out"
	has a 'select(.event == "cell") | .word == null and (.not_measured | test("no private MPS daemon: .*No such file"))'
	TMPDIR=$T loadline --sim probe --parallel processes --under mps:1% --grid tiny --connections 8 "${LONG[@]}" --json >"$T/b.out"
	[ "$(word b true)" = concurrent ]
	scenario "card all sm 16"
	TMPDIR=$T loadline --sim probe --parallel processes --under mps:5% --grid tiny --connections 8 --runs 1 --json >"$T/c.out"
	has c 'select(.event == "cell") | .not_measured == "5 % of 16 SMs are less than one"'
	nothing_is_left
}

@test "a MIG slice is a card of its own, a prohibited card takes nobody" {
	scenario "card 0 mig 2"
	probe a -i 0:1 --parallel processes --under default,mps --grid tiny --priority equal --connections 8 "${LONG[@]}" --json
	[ "$(word a '.under == "default"')" = time-sliced ]
	scenario "card 0 mode prohibited"
	probe b --parallel processes --grid tiny --priority equal --connections 8 --runs 1 --json
	[ "$(json b 'select(.event == "cell") | .not_measured' | sort -u)" = "the card is in prohibited mode" ]
	nothing_is_left
}

@test "slice, switch, preemption and an idle context are stated with their spread" {
	# A run in which a busy host starts one of the two too late tells nothing.
	probe a --experiment slice,preemption,idle --runs 9 --json
	has a 'select(.event == "slice") | .runs == 9 and .slice_us.runs >= 3 and .slice_us.median > 2085 and .slice_us.median < 2095'
	has a 'select(.event == "slice") | .switch_us.median > 135 and .switch_us.median < 145 and .slice_us.p5 <= .slice_us.p95'
	has a 'select(.event == "preemption") | .high_wait_us.median < .equal_wait_us.median and .high_wait_us.runs >= 3'
	has a 'select(.event == "idle") | .alone_us.median > 8000 and .memory_bytes > 500000000'
	[ "$(json a 'select(.event == "statement") | .about' | xargs)" = "slice preemption idle-context" ]
	[ "$(json a 'select(.event == "cell")')" = "" ]
}

@test "of 512 numbers, 2 blocks of 128 threads write the first 256" {
	probe a --experiment first --json
	has a 'select(.event == "first") | .written == 256 and .in_order and .blocks == 2 and .threads == 128 and .enough_written == 512'
	has a 'select(.event == "first") | .numbers == ([range(256)] + [range(256) | -1])'
	probe b --experiment first
	grep -q "256 of 512 were written, the first ones" "$T/b.out"
}

# bats test_tags=main
@test "the table has a row for each cell and statements with their commands" {
	probe a --parallel processes --under default --connections 8 --kernel 20ms --runs 2
	[ "$(grep -c '^processes under default:$' "$T/a.out")" -eq 1 ]
	[ "$(grep -cE '^  (tiny|full) +(equal|different) +8 ' "$T/a.out")" -eq 4 ]
	grep -q "^contexts  *One context at a time" "$T/a.out"
	grep -q '[$] loadline --sim probe --parallel processes' "$T/a.out"
	grep -q "smallest step seen was 352 ns" "$T/a.out"
}

@test "nothing that is printed is wider than 80 columns, and commands on several lines are one for a shell" {
	probe a --under default,mps:30% --kernel 2ms --runs 1
	probe b --experiment slice,preemption,idle --runs 2
	probe c --experiment first
	probe d --list
	scenario "fail cuCtxCreate_v2 CUDA_ERROR_OUT_OF_MEMORY"
	probe e --parallel streams --grid tiny --runs 1 || true
	for name in a b c d e; do
		awk -v name="$name" 'length > 80 { print name ": " $0; wide = 1 } END { exit wide }' "$T/$name.out"
	done
	grep -A 1 '[$] loadline.* \\$' "$T/a.out" | head -n 2 | sed 's/^  [$] //' >"$T/command"
	[ "$(wc -l <"$T/command")" -eq 2 ]
	sed -i '$ s/$/ --list/; s/^loadline/"$LOADLINE"/' "$T/command"
	bash "$T/command" >"$T/list.out"
	grep -q "cells$" "$T/list.out"
}

# bats test_tags=main
@test "the picture is well-formed, with a bar for every stretch" {
	command -v python3 >/dev/null || skip "no python3"
	probe a --parallel streams,processes --under default --grid tiny --connections 8 --kernel 20ms --runs 1 --svg "$T/a.svg"
	python3 - "$T/a.svg" <<-'END'
		import sys, xml.etree.ElementTree as tree
		space = "{http://www.w3.org/2000/svg}"
		root = tree.parse(sys.argv[1]).getroot()
		assert root.tag == space + "svg" and root.find(space + "title").text.startswith("Who was on the card when")
		panels = [g for g in root.iter(space + "g") if g.get("class") == "panel"]
		assert len(panels) == 4, len(panels)
		for panel in panels:
		    bars = [r for r in panel.iter(space + "rect") if r.get("class") in ("p0", "p1")]
		    assert len(bars) >= 16 and all(float(b.get("width")) > 0 for b in bars)
		    assert all(128 <= float(b.get("x")) <= 937 for b in bars)
		texts = "".join(root.itertext())
		assert "time-sliced" in texts and "concurrent" in texts and "ms on the card" in texts
	END
}

@test "a picture that cannot be written costs nothing, and an old one stays until there is a new one" {
	fails_with 1 "--svg: $T/nowhere/a.svg: No such file" --sim probe --svg "$T/nowhere/a.svg"
	fails_with 2 "--svg: the picture is of the matrix" --sim probe --svg "$T/a.svg" --experiment slice
	echo old >"$T/old.svg"
	scenario "fail cuLaunchKernel CUDA_ERROR_LAUNCH_FAILED after 1"
	fails_with 1 "CUDA_ERROR_LAUNCH_FAILED" --sim probe --under default --svg "$T/old.svg"
	[ "$(cat "$T/old.svg")" = old ]
	scenario "fail cuLaunchKernel CUDA_ERROR_LAUNCH_FAILED after 2"
	fails_with 1 "CUDA_ERROR_LAUNCH_FAILED" --sim probe --under default --svg "$T/new.svg"
	[ ! -e "$T/new.svg" ]
}

@test "--list shows the cells and needs no card" {
	loadline probe --list >"$T/a.out"
	grep -qx "126 cells" "$T/a.out"
	loadline probe --list --under mps:30% --grid tiny --parallel per-thread --json >"$T/b.out"
	[ "$(json b '[.under, .connections]' | xargs)" = "[mps:30%,1] [mps:30%,8] [mps:30%,32]" ]
}

# bats test_tags=main
@test "bad usage is 2, no card is 3" {
	fails_with 2 "--parallel: 'fibres': not one of" --sim probe --parallel fibres
	fails_with 2 "--under: 'mps:0%'" --sim probe --under mps:0%
	fails_with 2 "--under: 'mps:101%'" --sim probe --under mps:101%
	fails_with 2 "--under: 'x': not a percentage" --sim probe --under mps:x
	fails_with 2 "--connections: '33'" --sim probe --connections 8,33
	fails_with 2 "--count: '1'" --sim probe --count 1
	fails_with 2 "--count times --each" --sim probe --count 16 --each 9
	fails_with 2 "--kernel: 1us to 500ms" --sim probe --kernel 1s
	fails_with 2 "no such cell" --sim probe --parallel per-thread --priority different
	fails_with 2 "--experiment: 'all'" --sim probe --experiment all
	fails_with 2 "leaves out the matrix" --sim probe --experiment slice --grid tiny
	LOADLINE=$LOADLINE_BUILD/src/cli/loadline-probe fails_with 2 "is for loadline itself" probe-worker
	fails_with 3 "no card '7'" --sim probe -i 7
	scenario "cards 2"
	fails_with 2 "probe looks at one card at a time" --sim probe -i 0,1
	scenario "cards 0"
	fails_with 3 "" --sim probe
	[ -e /proc/driver/nvidia ] || fails_with 3 "no NVIDIA driver" probe
}

@test "Ctrl-C ends processes and daemon and leaves nothing" {
	linger processes --under mps --svg "$T/a.svg"
	[ -n "$(left_over)" ]
	stop probe INT
	[ "$status" -eq 130 ]
	nothing_is_left
	[ ! -e "$T/a.svg" ]
	linger processes --under default
	stop probe TERM
	[ "$status" -eq 143 ]
	nothing_is_left
}

@test "a probe that is killed leaves no daemon, no folder and no mode" {
	linger processes --under mps
	[ -n "$(left_over)" ]
	stop probe KILL
	[ "$status" -eq 137 ]
	wait_for 60 nothing_is_left
	[ "$(id -u)" -eq 0 ] || return 0
	linger streams --under exclusive --set-exclusive
	shows '.compute_mode == "exclusive-process"'
	stop probe KILL
	[ "$status" -eq 137 ]
	wait_for 60 shows '.compute_mode == "default"'
	wait_for 60 nothing_is_left
}

@test "a process of the probe that is killed ends it with an error, and nothing is left" {
	linger streams --under mps
	read -ra workers <<<"$(children_of probe)"
	kill -KILL "${workers[@]}"
	finish probe
	[ "$status" -eq 1 ]
	grep -q "loadline: the probe's process 0 died of signal 9" "$T/probe.err"
	nothing_is_left
}

@test "a reader that goes away ends it, and nothing is left" {
	TMPDIR=$T loadline --sim probe --under mps --runs 1 2>"$T/a.err" | head -n 3 >"$T/a.out"
	[ "$(wc -l <"$T/a.out")" -eq 3 ]
	grep -q "standard output: Broken pipe" "$T/a.err"
	nothing_is_left
}
