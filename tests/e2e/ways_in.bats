# What make hold and the container image run before loadline itself.
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
