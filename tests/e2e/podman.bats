# Programs in containers of podman on the simulated card, and the system's loadlined outside. The container's file system is
# that of this machine, /usr alone, so no image is loaded from the network.
export NEEDS="tests/e2e/launcher podman"
load helper
load jobs_helper
load service_helper

# in_container COMMAND...: as root. The limits of descriptors and processes are those that any machine allows.
in_container() {
	"${podman[@]}" run --rm --network none --ulimit nproc=1024:1024 --ulimit nofile=1024:1024 \
		-v /usr:/usr:ro -v "$LOADLINE_BUILD:$LOADLINE_BUILD:ro" -v "$T/world:$T/world" -e LOADLINE_SIM_DIR \
		"${container_options[@]}" loadline-test "$@"
}

# make_image: skips the test if no container starts here. crun needs control groups of version 2; runc takes others too.
make_image() {
	local link runtime
	[ "$(id -u)" -eq 0 ] || skip "the containers of this test are root's"
	mkdir -p "$T/image"/{usr,etc,proc,dev,sys,tmp,run,var} "$T/store" "$T/podman"
	for link in bin lib lib64 sbin; do
		ln -s "usr/$link" "$T/image/$link"
	done
	tar -C "$T/image" -cf "$T/image.tar" .
	container_options=()
	for runtime in crun runc; do
		command -v "$runtime" >/dev/null || continue
		podman=(podman --runtime "$runtime" --root "$T/store" --runroot "$T/podman" --storage-driver vfs --cgroup-manager cgroupfs)
		"${podman[@]}" import -q "$T/image.tar" loadline-test >/dev/null 2>&1 || continue
		in_container true 2>"$T/refused" && return
	done
	skip "no container starts here: $(tail -1 "$T/refused")"
}

# What podman has mounted is in the way of the removal of $T.
eval "$(declare -f teardown | sed '1s/teardown/teardown_of_helper/')"
teardown() {
	[ -z "${podman-}" ] || timeout 120 "${podman[@]}" rm --all --force --time 0 >/dev/null 2>&1 || true
	teardown_of_helper
}

serve() {
	open_world
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep -q "(the system.s: it governs the programs of all users)"'
}

@test "a program in a container is governed by the system's loadlined, beside one outside" {
	serve
	make_image
	start outer --sim run --tenant outer --mem 4G -- "$LOADLINE_BUILD/tests/e2e/launcher" 2
	container_options=(--name inner)
	start_program inner in_container "$LOADLINE" --sim run --tenant inner --mem 2G -- "$LOADLINE_BUILD/tests/e2e/launcher" 2
	wait_for 60 shows 'select(has("claim") and .tenant == "inner" and .memory_limit_bytes == 2147483648 and .gpu_seconds > 0)'
	shows 'select(has("claim") and .tenant == "outer" and .memory_limit_bytes == 4294967296)'
	has_pids loadlined 1
	loadline --sim set inner --mem 1G
	wait_for 60 shows 'select(has("claim") and .tenant == "inner" and .memory_limit_bytes == 1073741824)'
	"${podman[@]}" kill --signal KILL inner
	finish inner
	wait_for 60 shows_none 'select(has("claim") and .tenant == "inner")'
	is_running outer
}
