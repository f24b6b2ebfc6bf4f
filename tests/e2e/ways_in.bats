# Ways in: of a program to the driver, past or through the library's hooks, and what make hold and the container image run
# before loadline itself.
load helper

bin_with_fake_loadline() {
	mkdir -p "$T/bin"
	printf '#!/bin/sh\necho "$$" "$@"\n' >"$T/bin/loadline"
	chmod +x "$T/bin/loadline"
}

source_folder() {
	cd "$BATS_TEST_DIRNAME/../.." && pwd
}

@test "the container's entry becomes loadline and holds the chosen card" {
	bin_with_fake_loadline
	PATH=$T/bin:$PATH LOADLINE_CARD=2-3 start_program entry "$(source_folder)/packaging/container-entry" --target 30%
	finish entry
	[ "$(cat "$T/entry.out")" = "$(pid_of entry) hold -i 2-3 --target 30%" ]
}

@test "the container's entry runs any other command" {
	bin_with_fake_loadline
	PATH=$T/bin:$PATH start_program entry "$(source_folder)/packaging/container-entry" doctor --json
	finish entry
	[ "$(cat "$T/entry.out")" = "$(pid_of entry) doctor --json" ]
}

@test "the container's entry takes the simulator like loadline itself" {
	bin_with_fake_loadline
	PATH=$T/bin:$PATH start_program entry "$(source_folder)/packaging/container-entry" --sim hold --for 1s
	finish entry
	[ "$(cat "$T/entry.out")" = "$(pid_of entry) --sim hold --for 1s" ]
}

@test "make hold says that it takes the simulator when there is no driver" {
	if "$(source_folder)/tools/has_card"; then skip "there is a real card"; fi
	bin_with_fake_loadline
	run "$(source_folder)/tools/hold" "$T/bin/loadline" --for 1s
	[[ ${lines[0]} == "Holding a simulated card ("*"). Ctrl-C ends it." ]]
	[[ ${lines[1]} == *" --sim hold --for 1s" ]]
}

@test "make hold takes the card that a driver shows" {
	[ -e "$LOADLINE_BUILD/sim/libnvidia-ml.so.1" ] || skip "no simulator in this build"
	bin_with_fake_loadline
	LD_LIBRARY_PATH=$LOADLINE_BUILD/sim run "$(source_folder)/tools/hold" "$T/bin/loadline" --for 1s
	[[ ${lines[0]} =~ ^Holding\ the\ real\ card:\ 1\ card\(s\),\ driver\ [0-9.]+\.\ Ctrl-C\ ends\ it\.$ ]]
	[[ ${lines[1]} == *[0-9]" hold --for 1s" ]]
}

# ---- of a program to the driver ----

# reaches WAY [VARIABLE=VALUE]...: the program gets no more than its limit by that way, whatever the options.
reaches() {
	local way=$1 option
	shift
	[ -x "$LOADLINE_BUILD/tests/e2e/reach" ] || skip "nothing can be preloaded in this build"
	for option in --weight=1 --strict --evictable; do
		# shellcheck disable=SC2016
		loadline --sim run --mem 2G "$option" -- env LD_PRELOAD_FIRST= "$@" sh -c '
			LD_PRELOAD=$LD_PRELOAD_FIRST$LD_PRELOAD exec "$0" "$@"' "$LOADLINE_BUILD/tests/e2e/reach" "$way" 128 32 \
			>"$T/reach.out" 2>"$T/reach.err" || true
		echo "$way $option $*: $(cat "$T/reach.out" "$T/reach.err")"
		[ "$(cat "$T/reach.out")" = "allocated_mib 1408 last 2 card_mib 2048" ]
	done
}

@test "a limit holds for a program that looks the driver's functions up by dlsym" {
	reaches dlsym
}

@test "a limit holds whichever dlsym a program has found" {
	for handle in default next libc.so.6 libdl.so.2; do
		reaches "dlsym@$handle"
		reaches "dlvsym@$handle"
		reaches "dlvsym@dlsym@$handle"
	done
}

@test "a limit holds for both versions of cuGetProcAddress" {
	for way in proc1 proc2 proc1@proc2; do
		reaches "$way"
	done
}

@test "a limit holds behind a preloaded library that stands in front of dlsym" {
	for way in dlsym dlsym@libc.so.6 dlvsym@next proc1 proc2; do
		reaches "$way" "LD_PRELOAD_FIRST=$LOADLINE_BUILD/tests/e2e/libfaker.so:"
	done
}

@test "a limit holds for the functions of another library that libcuda.so.1 only forwards to" {
	mkdir "$T/forward"
	ln -s "$LOADLINE_BUILD/src/cli/libforward.so" "$T/forward/libcuda.so.1"
	for way in proc1 proc2 proc1@proc2; do
		reaches "$way" "LD_LIBRARY_PATH=$T/forward:$LOADLINE_BUILD/sim" \
			"LOADLINE_FORWARD_TO=$LOADLINE_BUILD/sim/libcuda.so.1"
	done
}
