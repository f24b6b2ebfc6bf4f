# loadline doctor: what it finds, and its exit status.
load helper
# doctor ARG...: without the trial of limits; its JSON in $T/doctor.out, its status in $status.
doctor() {
	status=0
	loadline --sim doctor --no-trial --json "$@" >"$T/doctor.out" 2>"$T/doctor.err" || status=$?
}

finding() {
	json doctor "select(.check == \"$1\") | .finding"
}

# bats test_tags=main
@test "a sound machine: 0, nothing fails, every check says its name" {
	doctor
	[ "$status" -eq 0 ]
	has doctor '.event == "summary" and .can_hold and .fails == 0'
	for check in driver cuda vulkan "runtime folder" "pid namespace" mps card "compute mode" persistence gpm slowdown payload claims pool; do
		[ -n "$(finding "$check")" ] || {
			echo "no check '$check'"
			false
		}
	done
	[ -z "$(json doctor 'select(.finding == "fail")')" ]
}

# bats test_tags=main
@test "each line says level, what, detail" {
	loadline --sim doctor --no-trial >"$T/text.out"
	run ! grep -vE '^(ok|warn|fail): [^:]+: .|^holds can run here' "$T/text.out"
	grep -q '^ok: driver: simulated ' "$T/text.out"
	grep -q '^ok: card 0: compute mode: default$' "$T/text.out"
}

# bats test_tags=main
@test "eight cards: what is well is one line, and what is not names its card" {
	loadline --sim=h100x8 doctor --no-trial >"$T/text.out"
	grep -x "ok: cards 0-7: card, compute mode, persistence, gpm, slowdown, payload, claims" "$T/text.out"
	run ! grep -E "^ok: card [0-9]" "$T/text.out"
	[ "$(wc -l <"$T/text.out")" -le 20 ]
	loadline --sim=h100x8 doctor --no-trial -i 3 | grep -x "ok: card 3: compute mode: default"
	scenario "cards 4" "card 1 gpm off" "card 2 mode exclusive"
	loadline --sim doctor --no-trial >"$T/text.out" || true
	grep -q "^warn: card 1: gpm: " "$T/text.out"
	grep -q "^fail: card 2: compute mode: " "$T/text.out"
	grep -x "ok: cards 0-3: card, persistence, slowdown, payload, claims" "$T/text.out"
	grep -x "ok: cards 0-1,3: compute mode" "$T/text.out"
	grep -x "ok: cards 0,2-3: gpm" "$T/text.out"
	# For scripts nothing changes.
	[ "$(loadline --sim doctor --no-trial --json | jq -s '[.[] | select(.check == "persistence")] | length')" -eq 4 ]
}

@test "the host's memory for evicted programs" {
	loadline --sim doctor --no-trial >"$T/text.out"
	grep -Eq '^(ok|warn): pool: for programs. memory off the card [0-9.]+ [GM]iB: what the (host has|control group allows) now, but for a sixteenth$' "$T/text.out"
}

@test "looking makes nothing" {
	doctor
	[ -z "$(ls "$T/run")" ]
	has doctor '.check == "loadlined" and (.detail | startswith("none runs"))'
	doctor
	has doctor '.check == "loadlined" and (.detail | startswith("none runs"))'
}

# bats test_tags=main
@test "no driver: 3, and still says why" {
	[ ! -e /proc/driver/nvidia ] || skip "there is a driver here"
	run --separate-stderr loadline doctor
	[ "$status" -eq 3 ]
	[[ $output == "fail: driver: no NVIDIA driver: libnvidia-ml.so.1: "*"install the driver, or try --sim"* ]]
	[[ $output == *"device node"* ]]
	[ "$(grep -c "no NVIDIA driver" <<<"$output")" -eq 1 ]
	# shellcheck disable=SC2154
	is_silent
}

@test "no card: 3" {
	scenario "cards 0"
	doctor
	[ "$status" -eq 3 ]
	has doctor '.event == "summary" and .can_hold == false'
}

# bats test_tags=main
@test "an exclusive card fails with the way out" {
	scenario "card 0 mode exclusive"
	doctor
	[ "$status" -eq 1 ]
	[ "$(finding "compute mode")" = fail ]
	has doctor '.check == "compute mode" and .advice == "loadline-simctl card all mode default"'
	fails_with 4 "exclusive" --sim hold --for 1s
}

@test "a card without GPM warns and names the metrics that remain" {
	scenario "card 0 gpm off"
	doctor
	[ "$status" -eq 0 ]
	[ "$(finding gpm)" = warn ]
	has doctor '.check == "gpm" and (.advice | contains("util and power remain"))'
}

@test "a card whose GPM lacks a reading warns and names it" {
	scenario "card 0 gpm-dram off"
	doctor
	[ "$(finding gpm)" = warn ]
	has doctor '.check == "gpm" and (.detail | contains("does not give the dram reading"))'
}

@test "a finding names its card once, and does not send to doctor" {
	scenario "card 0 gpm off" "fail cuInit CUDA_ERROR_UNKNOWN"
	loadline --sim doctor --no-trial >"$T/text.out" || true
	grep -q '^warn: card 0: gpm: no GPM' "$T/text.out"
	run ! grep "card 0.*card 0" "$T/text.out"
	run ! grep "loadline doctor" "$T/text.out"
}

@test "a card that slows down warns" {
	scenario "card 0 slowdown on"
	doctor
	[ "$status" -eq 0 ]
	[ "$(finding slowdown)" = warn ]
}

@test "a lost card fails, and the other one is still looked at" {
	scenario "cards 2" "card 0 gone on"
	doctor
	[ "$status" -eq 1 ]
	has doctor '.card == 0 and .check == "card" and .finding == "fail"'
	has doctor '.card == 1 and .check == "payload" and .finding == "ok"'
	doctor -i 1
	[ "$status" -eq 0 ]
}

@test "a card hidden from CUDA fails and says by what" {
	scenario "cards 2"
	export CUDA_VISIBLE_DEVICES=0
	doctor -i 1
	[ "$status" -eq 1 ]
	has doctor '.check == "payload" and .finding == "fail" and (.detail | contains("CUDA_VISIBLE_DEVICES=0"))'
	doctor -i 0
	[ "$status" -eq 0 ]
}

@test "an MPS folder without a daemon warns" {
	export CUDA_MPS_PIPE_DIRECTORY=$T/nowhere
	doctor
	[ "$status" -eq 0 ]
	[ "$(finding mps)" = warn ]
}

@test "a CUDA library without a call we need fails, because nothing else can hold" {
	scenario "missing cuLaunchKernel"
	doctor
	[ "$status" -eq 1 ]
	has doctor '.check == "cuda" and .finding == "warn" and (.detail | contains("cuLaunchKernel"))'
	has doctor '.check == "payload" and .finding == "fail" and (.detail | contains("see the finding cuda"))'
	[ "$(grep -c cuLaunchKernel "$T/doctor.out")" -eq 1 ]
}

@test "a hold is told, and one that does not answer" {
	start hold --sim hold --json
	wait_for 60 has hold '.event == "sample"'
	doctor
	has doctor '.check == "claims" and .finding == "ok" and (.detail | contains("1 live (1 synthetic)"))'
	kill -STOP "$(pid_of hold)"
	doctor
	has doctor '.check == "claims" and .finding == "warn" and (.detail | contains("does not answer"))'
	kill -CONT "$(pid_of hold)"
	stop hold KILL
	doctor
	has doctor '.check == "claims" and (.detail | contains("0 live (0 synthetic)"))'
}

@test "unknown cards are 3" {
	doctor -i 7
	[ "$status" -eq 3 ]
	grep -q "^loadline: no card '7'" "$T/doctor.err"
}

# trial [OPTION OF RUN]: with it. Nothing can be preloaded under a sanitizer.
trial() {
	LOADLINE_SHIM='' loadline --sim run "$@" -- true 2>/dev/null || skip "nothing can be preloaded in this build"
	status=0
	loadline --sim doctor --json >"$T/doctor.out" 2>"$T/doctor.err" || status=$?
}

# bats test_tags=main
@test "limits are shown to hold on each card, and the trial leaves nothing" {
	scenario "cards 2"
	trial
	for card in 0 1; do
		has doctor ".card == $card and .check == \"memory limit\" and .finding == \"ok\" and (.detail | startswith(\"in force: \"))"
		has doctor ".card == $card and .check == \"compute limit\" and .finding == \"ok\" and (.detail | startswith(\"in force: \"))"
	done
	has doctor '.check == "open ways" and .finding == "ok" and (.detail | test("env -i.*dlmopen.*RTLD_DEEPBIND"))'
	has doctor '.event == "summary" and .can_hold and .can_limit'
	[ "$status" -eq 0 ]
	loadline --sim status --json | jq -s -e 'all(has("card"))'
}

# ways FINDING: that finding names every way to the driver, and the others that are told.
ways() {
	local finding=$1 way
	shift
	for way in dlsym "a dlsym found by dlvsym" "a dlsym found in libc" "$@"; do
		has doctor ".check == \"ways to the driver\" and .finding == \"$finding\" and (.detail | contains(\"$way\"))"
	done
}

@test "a limit is tried by every way to the driver" {
	trial
	ways ok cuGetProcAddress cuGetProcAddress_v2 "a libcuda.so.1 that forwards" "an environment without LOADLINE_RUN"
	[ "$status" -eq 0 ]
	# a driver that lacks a way has none there
	scenario "missing cuGetProcAddress cuGetProcAddress_v2"
	trial
	ways ok "an environment without LOADLINE_RUN"
	[ "$(json doctor 'select(.check == "ways to the driver") | .detail | test("cuGetProcAddress|forwards|not tried")')" = false ]
	# those that could not be tried are named
	scenario "fail cuDevicePrimaryCtxRetain CUDA_ERROR_UNKNOWN"
	trial
	ways warn "not tried: a libcuda.so.1 that forwards, an environment without LOADLINE_RUN"
	[ "$status" -eq 0 ]
}

# On a busy host the ratio may not be clear.
# bats test_tags=main
@test "time slices and off are tried on an idle card, and each card says what it does" {
	loadline --sim run -- true || skip "nothing can be preloaded in this build"
	local card
	for card in "slices obey" "slices commit" "off no" "slices ignore"; do
		scenario "card 0 $card"
		loadline --sim doctor --json >"$T/doctor.out" || true
		json doctor 'select(.check == "time slices") | .finding + ": " + .detail' | tee -a "$T/said"
	done
	grep -Eq "^ok: set by programs themselves: slices of 4 : 1 gave [0-9.]+ : 1; off the card in [0-9.]+ ms and on again in [0-9.]+ ms; [0-9]+ kernels, all results right|^warn: not clear" "$T/said"
	grep -Eq "^ok: .* : 1 after a preemption;|^warn: not clear" "$T/said"
	grep -Eq "takes no program off the card|^warn: not clear" "$T/said"
	grep -Eq "^warn: slices of 4 : 1 gave (0.[89]|1.[012])[0-9]* : 1, so this card or driver ignores them|^warn: not clear" "$T/said"
	# Beside other work nothing would be measured.
	start busy --sim run --tenant busy -- "$LOADLINE_BUILD/tests/e2e/launcher" 1
	wait_for 60 used busy 0.1
	loadline --sim doctor --json >"$T/doctor.out" || true
	has doctor '.check == "time slices" and .finding == "ok" and .detail == "not tried: processes on the card: 1"'
}

# bats test_tags=main
@test "limits that do not hold fail, and prevent no hold" {
	cp "$(loadline --sim run -- sh -c 'echo ${LD_PRELOAD%%:*}')" "$T/other.so" || skip "nothing can be preloaded in this build"
	printf 'int nothing;\n' | cc -x c - -shared -fPIC -o "$T/other.so" || skip "no compiler"
	export LOADLINE_SHIM=$T/other.so
	trial
	[ "$status" -eq 1 ]
	has doctor '.check == "memory limit" and .finding == "fail" and (.detail | startswith("not in force: "))'
	has doctor '.check == "compute limit" and .finding == "fail" and (.detail | startswith("not in force: "))'
	ways fail cuGetProcAddress cuGetProcAddress_v2 "a libcuda.so.1 that forwards" "an environment without LOADLINE_RUN"
	has doctor '.event == "summary" and .can_hold and (.can_limit | not)'
	run loadline --sim doctor
	[[ $output == *"limits do not hold here"* ]]
	# a host that is slow to hear of each kernel's end holds nobody back
	"$LOADLINE_BUILD/sim/loadline-simctl" hang cuCtxSynchronize 10ms
	trial
	"$LOADLINE_BUILD/sim/loadline-simctl" heal
	has doctor '.check == "compute limit" and .finding == "fail" and (.detail | startswith("not in force: "))'
}

@test "without the library no limit can hold" {
	LOADLINE_SHIM=$T/none.so trial
	[ "$status" -eq 1 ]
	has doctor '.check == "limits" and .finding == "fail" and (.detail | contains("No such file"))'
	has doctor '.event == "summary" and .can_hold and (.can_limit | not)'
}

@test "a library of another version of the page is found out" {
	other=$LOADLINE_BUILD/tests/e2e/libother_version.so
	[ -e "$other" ] || skip "nothing can be preloaded in this build"
	LD_PRELOAD=$other trial
	[ "$status" -eq 1 ]
	has doctor '.check == "memory limit" and .finding == "fail" and (.detail | test("^the trial failed: no contexts .*: the page of the job: "))'
	has doctor '.event == "summary" and .can_hold and (.can_limit | not)'
}

# bats test_tags=main
@test "where loadlined does not answer, run refuses limits and none is in force" {
	loadline --sim run -- true || skip "nothing can be preloaded in this build"
	start tenant --sim run --tenant tenant -- sleep 60
	wait_for 60 shows 'has("daemon")'
	daemon=$(loadline --sim status --json | jq 'select(has("daemon")).daemon.pid')
	kill -STOP "$daemon"
	fails_with 125 "limits cannot be put in force: loadlined does not answer" --sim run --mem 1G -- true
	for option in "" --no-trial; do
		status=0
		loadline --sim doctor --json $option >"$T/doctor.out" || status=$?
		[ "$status" -eq 1 ]
		has doctor '.check == "loadlined" and .finding == "fail" and (.detail | contains("does not answer"))'
		has doctor '.event == "summary" and .can_hold and (.can_limit | not)'
		[ -z "$(finding "memory limit")$(finding "compute limit")" ]
	done
	kill -CONT "$daemon"
	stop tenant
	trial
	json doctor 'select(.finding == "fail")'
	[ "$status" -eq 0 ]
	has doctor '.check == "memory limit" and .finding == "ok"'
}

@test "a trial that cannot run is told with its reason" {
	scenario "fail cuCtxCreate* CUDA_ERROR_OUT_OF_MEMORY"
	trial
	[ "$status" -eq 1 ]
	has doctor '.check == "memory limit" and .finding == "fail" and (.detail | contains("CUDA_ERROR_OUT_OF_MEMORY"))'
}

@test "no trial where it would be in the way, without a driver, and where it is not wanted" {
	scenario "card 0 mode exclusive"
	trial
	has doctor '.check == "limits" and .finding == "ok" and (.detail | startswith("skipped: "))'
	doctor
	[ -z "$(finding limits)$(finding "memory limit")" ]
	[ ! -e /proc/driver/nvidia ] || return 0
	run loadline doctor
	[[ $output == *"ok: limits: skipped: no driver"* ]]
}

@test "a mode that is MPS's is ended by MPS's command alone" {
	[ "$(id -u)" -eq 0 ] || skip "only root changes a compute mode"
	loadline --sim mps start --exclusive
	doctor
	[ "$status" -eq 0 ]
	has doctor '.check == "compute mode" and .finding == "warn" and (.advice | contains("hold --mps"))'
	"$LOADLINE_BUILD/sim/loadline-simctl" mps die daemon
	doctor
	[ "$status" -eq 1 ]
	has doctor '.check == "compute mode" and .finding == "fail" and (.advice | contains("`loadline --sim mps stop`"))'
	loadline --sim mps stop
	doctor
	has doctor '.check == "compute mode" and .finding == "ok"'
}

@test "a trial that finds no memory advises to free some, and does not judge the limits" {
	scenario "card 0 used all"
	trial
	[ "$status" -eq 1 ]
	has doctor '.check == "memory limit" and (.detail | endswith("CUDA_ERROR_OUT_OF_MEMORY (2)")) and (.advice | startswith("free memory"))'
	run loadline --sim doctor
	[[ $output != *"does not hold programs"* ]]
	[[ $output == *"it is not known whether limits hold here"* ]]
}

@test "no slice of MIG is the wrong one, and each has its own trial" {
	scenario "cards 2" "card all mig 2"
	[ "$(loadline --sim status --json | jq -r .uuid | cut -d- -f 2- | sort | uniq -d)" = "" ]
	trial -i0:0
	[ "$status" -eq 0 ]
	[ -z "$(json doctor 'select(.finding == "fail")')" ]
	for card in 0 1; do
		for slice in 0 1; do
			has doctor ".card == $card and .slice == $slice and .check == \"memory limit\" and .finding == \"ok\""
		done
	done
	[ "$(json doctor 'select(.check == "payload") | "\(.card):\(.slice) \(.finding)"' | xargs)" = "0:0 ok 0:1 warn 1:0 ok 1:1 warn" ]
	has doctor '.slice == 1 and .check == "payload" and .finding == "warn" and (.advice | contains("for that command"))'
}

@test "a signal ends it, and the folder of the trial goes too" {
	LOADLINE_SHIM='' loadline --sim run -- true 2>/dev/null || skip "nothing can be preloaded in this build"
	scenario "init-time 10s" "hang cuMemHostRegister_v2 100s" # doctor waits for the first, then its trial for the second
	local signal
	mkdir "$T/tmp"
	export TMPDIR=$T/tmp
	for signal in INT TERM HUP; do
		# A shell's background ignores SIGINT, nohup SIGHUP.
		start_program doctor python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$LOADLINE" --sim doctor
		wait_for 120 trial_of "$(pid_of doctor)"
		stop doctor "$signal"
		[ "$status" -eq $((128 + $(kill -l "$signal"))) ]
		[ -z "$(ls "$T/tmp")" ]
		[ -z "$(pgrep -f "limit-trial" -P "$(pid_of doctor)")" ]
	done
}

# trial_of PID: its child is at it.
trial_of() {
	local child
	for child in $(pgrep -P "$1"); do
		grep -qz limit-trial "/proc/$child/cmdline" && return 0
	done
	return 1
}

@test "where the driver is simulated nothing is advised about a real one" {
	local state
	for state in "cards 0" "card 0 gone on" "card 0 mode exclusive" "card 0 mode prohibited" "card 0 slowdown on" \
		"fail nvmlInit* NVML_ERROR_DRIVER_NOT_LOADED" "fail cuInit CUDA_ERROR_SYSTEM_NOT_READY" "missing cuLaunchKernel" "missing nvmlInit_v2"; do
		rm -rf "$T/world"
		mkdir -m 700 "$T/world"
		scenario "$state"
		for command in "doctor --no-trial" "hold -i 0 --for 100ms" "hold -i 0 --mps --for 100ms" "run -i 0 -- true" "status -i 0" "mps start" "trace -i 0 --for 10ms"; do
			# shellcheck disable=SC2086
			run timeout 300 "$LOADLINE" --sim $command
			echo "$state: $command: $output"
			[[ ! $output =~ (nvidia-smi|modprobe|dmesg|persistenced|fabricmanager|cooling|/dev/nvidia|try\ --sim|driver\ 470|container) ]]
		done
		timeout 120 "$LOADLINE" --sim mps stop --force >/dev/null 2>&1 || true
	done
}

@test "a tenant that is not held to its limits fails, with what to do, until it is" {
	start_lost_tenant
	status=0
	loadline --sim doctor --no-trial --json >"$T/doctor.out" || status=$?
	[ "$status" -eq 1 ]
	has doctor '.check == "claims" and .finding == "fail" and (.detail | test("^tenant stray has not been held to its limits for [0-9]+ s: "))'
	has doctor '.check == "claims" and .finding == "fail" and (.advice | contains("`loadline --sim status`"))'
	has doctor '.event == "summary" and .can_hold and (.can_limit | not)'
	stop stray KILL
	wait_for 60 limits_hold_again # what it said of itself last is of some moments ago
}

limits_hold_again() {
	loadline --sim doctor --no-trial --json >"$T/doctor.out" && grep -q '"can_hold":true,"can_limit":true' "$T/doctor.out"
}
