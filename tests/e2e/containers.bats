# Containers that name a device of loadline (doc/containers.md), with podman and crun. Their file system is that of this machine,
# /usr alone. loadlined runs outside, as the system's.
export NEEDS="tests/e2e/launcher podman crun"
load helper
load jobs_helper
load service_helper

# runc mounts no path with "..".
LOADLINE_BUILD=$(realpath "$LOADLINE_BUILD") LOADLINE=$(realpath "$LOADLINE")

podman_here() {
	unshare --mount --propagation private bash -c "$MACHINE" - "$T/cdi" "${podman[@]}" "$@"
}

# contain [OPTION]... COMMAND...: as root, a container of the image; options end at the image.
contain() {
	podman_here run --rm --network none --ulimit nproc=1024:1024 --ulimit nofile=1024:1024 \
		--annotation run.oci.hooks.stderr="$T/hook.err" \
		-v "${USR-/usr}:/usr:ro" -v "$LOADLINE_BUILD:$LOADLINE_BUILD:ro" -v "$T/world:$T/world" -e LOADLINE_SIM_DIR \
		-e LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$@"
}

SHARE=(--device loadline.dev/share=default)

# What the driver tells a program of the card's memory.
TOTAL='"$0" status --json | sed -n "s/.*\"memory_total_bytes\":\([0-9]*\).*/\1/p"'

setup_containers() {
	local link
	[ "$(id -u)" -eq 0 ] || skip "the containers of this test are root's"
	[ -x "$LOADLINE_BUILD/src/monitor/loadline-inside" ] || skip "this build has no static programs"
	! ldd "$LOADLINE_BUILD/src/monitor/loadline-inside" >/dev/null 2>&1 || skip "this build has no static programs"
	open_world
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody "$@"
	wait_for 60 serves
	mkdir -p "$T/image"/{usr,etc,proc,dev,sys,tmp,run,var} "$T/store" "$T/podman" "$T/cdi" /run/cdi
	for link in bin lib lib64 sbin; do
		ln -s "usr/$link" "$T/image/$link"
	done
	tar -C "$T/image" -cf "$T/image.tar" .
	podman=(podman --runtime crun --root "$T/store" --runroot "$T/podman" --storage-driver vfs --cgroup-manager cgroupfs
		--events-backend file)
	podman_here import -q "$T/image.tar" loadline-test >/dev/null 2>&1 || skip "podman stores no image here"
	contain loadline-test true 2>"$T/refused" || skip "no container starts here: $(tail -1 "$T/refused")"
	loadline --sim cdi generate --folder "$T/cdi" ${CONFIG+--config "$CONFIG"}
}

eval "$(declare -f teardown | sed '1s/teardown/teardown_of_helper/')"
teardown() {
	[ -z "${podman-}" ] || timeout 120 "${podman[@]}" rm --all --force --time 0 >/dev/null 2>&1 || true
	remove_groups
	teardown_of_helper
}

# refused TEXT COMMAND...: the container does not start, and the hook says why.
refused() {
	local text=$1
	shift
	: >"$T/hook.err"
	run ! "$@"
	grep -q -- "$text" "$T/hook.err"
}

@test "a container that names a share is a job of its own, whatever its environment" {
	setup_containers
	[ "$(contain "${SHARE[@]}" --annotation loadline.dev/mem=3G loadline-test sh -c "$TOTAL" "$LOADLINE")" = 3221225472 ]
	[ "$(contain "${SHARE[@]}" --annotation loadline.dev/mem=3G -e LD_PRELOAD= -e LOADLINE_RUN=id=1 loadline-test \
		env -i LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" LOADLINE_SIM_DIR="$LOADLINE_SIM_DIR" sh -c "$TOTAL" "$LOADLINE")" = 3221225472 ]
	# Read-only; with the processes of the machine in sight; with two devices, which are one job.
	[ "$(contain "${SHARE[@]}" --device loadline.dev/card=0 --read-only --pid host --annotation loadline.dev/mem=3G loadline-test \
		sh -c "$TOTAL" "$LOADLINE")" = 3221225472 ]
	wait_for 60 shows_none 'select(has("job"))'
}

@test "containers have limits of their own, also over a restart of loadlined, and end as jobs" {
	setup_containers
	start_program one contain --name one "${SHARE[@]}" --annotation loadline.dev/mem=2G loadline-test "$LOADLINE_BUILD/tests/e2e/launcher" 2
	start_program two contain --name two "${SHARE[@]}" --annotation loadline.dev/mem=4G loadline-test "$LOADLINE_BUILD/tests/e2e/launcher" 2
	has_two() {
		shows 'select(has("claim") and .memory_limit_bytes == 2147483648 and .gpu_seconds > 0 and .proof == "cgroup")' &&
			shows 'select(has("claim") and .memory_limit_bytes == 4294967296 and .gpu_seconds > 0 and .proof == "cgroup")'
	}
	wait_for 60 has_two
	kill "$(pid_of service)"
	finish service
	refused "does not serve" contain "${SHARE[@]}" loadline-test true
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody
	wait_for 60 has_two
	podman_here kill --signal KILL one
	finish one
	wait_for 60 shows_none 'select(has("claim") and .memory_limit_bytes == 2147483648)'
	shows 'select(has("claim") and .memory_limit_bytes == 4294967296)'
	is_running two
}

# What a program of NVML is told of the card: its memory, and how many programs compute on it.
SEEN='import ctypes
nvml, card = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
memory, count, rows = (ctypes.c_uint64 * 3)(), ctypes.c_uint(16), (ctypes.c_uint64 * 64)()
assert not nvml.nvmlInit_v2() and not nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(card))
assert not nvml.nvmlDeviceGetMemoryInfo(card, memory)
assert not nvml.nvmlDeviceGetComputeRunningProcesses_v3(card, ctypes.byref(count), rows)
print(memory[0], count.value)'

# sees NAME TEXT: NVML in that container.
sees() {
	[ "$(podman_here exec "$1" /usr/bin/python3 -c "$SEEN")" = "$2" ]
}

@test "containers of one tenant and of two run at once: each is its own job, and NVML inside has its limit and its programs alone" {
	config_file <<-'END'
		version: 1
		tenants:
		  - {name: research, members: {users: [root]}}
		  - {name: teaching, members: {users: [root]}}
	END
	CONFIG=$T/conf
	setup_containers --config "$T/conf"
	local row name tenant bytes
	for row in one:research:2 two:research:3 three:teaching:4; do
		IFS=: read -r name tenant bytes <<<"$row"
		start_program "$name" contain --name "$name" --device "loadline.dev/share=$tenant" --annotation "loadline.dev/mem=${bytes}G" \
			loadline-test "$LOADLINE_BUILD/tests/e2e/launcher" 2
	done
	for row in one:research:2 two:research:3 three:teaching:4; do
		IFS=: read -r name tenant bytes <<<"$row"
		is_running "$name"
		wait_for 100 shows "select(has(\"claim\") and .configured_tenant == \"$tenant\" and .memory_limit_bytes == $((bytes << 30)) and .gpu_seconds > 0)"
	done
	status_has "[.[] | select(has(\"claim\"))] | length == 3 and (map(.job_number) | unique | length == 3)"
	sees one "$((2 << 30)) 1"
	sees two "$((3 << 30)) 1"
	sees three "$((4 << 30)) 1"
	for name in one two three; do
		podman_here kill --signal KILL "$name"
		finish "$name"
	done
	wait_for 60 shows_none 'select(has("job"))'
}

@test "podman inside loadline run: the container is a job of its own, and the job outside keeps its limit" {
	setup_containers
	start outer --sim run --tenant outer --mem 4G -- "$LOADLINE_BUILD/tests/e2e/launcher" 2
	{
		declare -p podman T
		printf 'MACHINE=%q\n' "$MACHINE"
		declare -f podman_here contain
	} >"$T/podman.sh"
	# shellcheck disable=SC2016 # the inner shell expands it
	start inner --sim run --tenant between --mem 5G -- bash -c '. "$1/podman.sh"
		contain --name inner --device loadline.dev/share=default --annotation loadline.dev/mem=3G loadline-test "$2" 2' - "$T" \
		"$LOADLINE_BUILD/tests/e2e/launcher"
	wait_for 100 shows 'select(has("claim") and .memory_limit_bytes == 3221225472 and .gpu_seconds > 0 and .proof == "cgroup")'
	shows 'select(has("claim") and .tenant == "outer" and .memory_limit_bytes == 4294967296)'
	shows_none 'select(has("claim") and .tenant == "between")'
	podman_here kill --signal KILL inner
	finish inner
}

@test "a container does not start when its limits would not be in force" {
	setup_containers
	refused "is a static program" contain "${SHARE[@]}" loadline-test "$LOADLINE_BUILD/src/monitor/loadline-job"
	run contain "${SHARE[@]}" --annotation loadline.dev/allow-ungoverned=true loadline-test "$LOADLINE_BUILD/src/monitor/loadline-job"
	[ "$status" -eq 2 ]
	refused "there is no such one" contain "${SHARE[@]}" --annotation loadline.dev/memory=3G loadline-test true
	refused "only 143771 MiB" contain "${SHARE[@]}" --annotation loadline.dev/mem=900G loadline-test true
	# The library is not where the loader looks for it, or the loader is not told of it.
	cp "$T/cdi/loadline-share.json" "$T/whole.json"
	jq '.containerEdits.mounts |= map(select(.containerPath != "/etc/ld.so.preload"))' "$T/whole.json" >"$T/cdi/loadline-share.json"
	run ! contain "${SHARE[@]}" loadline-test true
	jq '.containerEdits.mounts |= map(select(.containerPath | endswith("libloadline-cuda.so") | not))' "$T/whole.json" \
		>"$T/cdi/loadline-share.json"
	run ! contain "${SHARE[@]}" loadline-test true
	# The socket is another folder.
	jq '.containerEdits.mounts |= map(if .containerPath == "/run/loadline" then .hostPath = "/usr/share" else . end)' "$T/whole.json" \
		>"$T/cdi/loadline-share.json"
	run ! contain "${SHARE[@]}" loadline-test true
	cp "$T/whole.json" "$T/cdi/loadline-share.json"
	contain "${SHARE[@]}" loadline-test true
}

@test "by runc too the container is a job, and the engine's error says why another does not start" {
	command -v runc >/dev/null || skip "no runc"
	setup_containers
	podman[2]=runc
	contain loadline-test true 2>"$T/refused" || skip "no container of runc starts here: $(tail -1 "$T/refused")"
	[ "$(contain "${SHARE[@]}" --annotation loadline.dev/mem=3G loadline-test sh -c "$TOTAL" "$LOADLINE")" = 3221225472 ]
	run ! contain "${SHARE[@]}" --annotation loadline.dev/mem=900G loadline-test true
	[[ $output == *"only 143771 MiB"* ]]
}

@test "an image of musl starts without the library, and is a job" {
	command -v musl-gcc >/dev/null || skip "no musl-gcc (package musl-tools)"
	setup_containers
	mkdir -p "$T/musl"/{bin,lib,usr,etc,proc,dev,sys,tmp,run,var}
	cp -L /lib/ld-musl-*.so.1 "$T/musl/lib"
	printf '#include <stdio.h>\n#include <unistd.h>\nint main(void) { puts("begun"); fflush(stdout); return pause(); }\n' >"$T/musl.c"
	musl-gcc -o "$T/musl/bin/waits" "$T/musl.c"
	tar -C "$T/musl" -cf "$T/musl.tar" .
	podman_here import -q "$T/musl.tar" loadline-musl >/dev/null
	start_program musl contain --name musl "${SHARE[@]}" loadline-musl /bin/waits
	wait_for 60 grep -q begun "$T/musl.out"
	grep -q "the program has musl" "$T/hook.err"
	shows 'select(has("job")) | .job.command == "waits"'
	podman_here kill --signal KILL musl
	finish musl
}

# tools/check_old_system runs it, with loadline built for that system in LOADLINE_OLD_SYSTEM/build.
@test "the library is in force in an image with an older glibc" {
	[ -n "${LOADLINE_OLD_SYSTEM-}" ] || skip "tools/check_old_system runs it"
	setup_containers
	[ "$(USR=$LOADLINE_OLD_SYSTEM/usr contain "${SHARE[@]}" --annotation loadline.dev/mem=3G -v "$LOADLINE_OLD_SYSTEM/build:/build:ro" \
		-e LD_LIBRARY_PATH=/build/sim loadline-test sh -c "$TOTAL" /build/loadline)" = 3221225472 ]
}

@test "without loadlined a container starts if the configuration lets it" {
	config_file <<-'END'
		version: 1
		enforce: {containers: false}
	END
	CONFIG=$T/conf
	setup_containers
	contain "${SHARE[@]}" loadline-test true
	kill "$(pid_of service)"
	finish service
	contain "${SHARE[@]}" loadline-test true
	grep -q "starts ungoverned" "$T/hook.err"
}

# A user without root has control groups of version 2, in a group that is the user's; they are mounted alone where the machine has
# version 1 too.
# shellcheck disable=SC2016 # the inner shells expand it
ROOTLESS='
	if grep -q " cgroup " /proc/self/mounts; then
		umount --lazy /sys/fs/cgroup
		mount -t cgroup2 none /sys/fs/cgroup
	fi
	mount --bind "$1" /run/cdi
	group=$2 user=$3
	shift 3
	echo $$ >"/sys/fs/cgroup/$group/shell/cgroup.procs"
	exec setpriv --reuid "$user" --regid "$user" --clear-groups "$@"'

@test "a user's container is a job of that user, who must be in the tenant; behind a closed fence it does not start" {
	config_file <<-'END'
		version: 1
		tenants:
		  - {name: research, members: {users: ["61234"]}}
		  - {name: others, members: {users: ["61235"]}}
	END
	CONFIG=$T/conf
	setup_containers --config "$T/conf"
	local mounted parent
	mounted=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
	parent=loadline-test-$$-$BATS_TEST_NUMBER
	GROUPS_ROOT=$mounted/$parent
	mkdir -p "$GROUPS_ROOT/shell" 2>/dev/null || skip "no control group of version 2 can be made here"
	mkdir -p "$T/home/.config/containers" "$T/xdg" "$T/user"
	echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$T/home/.config/containers/policy.json"
	chown -R "$FIRST" "$GROUPS_ROOT" "$T/home" "$T/xdg" "$T/user"
	chmod 700 "$T/xdg"
	chmod -R a+rX "$T/image.tar" "$T/cdi"
	user_podman() {
		HOME=$T/home XDG_RUNTIME_DIR=$T/xdg unshare --mount --propagation private bash -c "$ROOTLESS" - "$T/cdi" "$parent" "$FIRST" \
			podman --runtime crun --root "$T/user/store" --runroot "$T/user/run" --storage-driver vfs --cgroup-manager cgroupfs \
			--events-backend file "$@"
	}
	user_contain() {
		user_podman run --rm --network none --pids-limit 0 --cgroup-parent "/$parent/containers" --ulimit nproc=1024:1024 \
			--ulimit nofile=1024:1024 --annotation run.oci.hooks.stderr="$T/user/hook.err" -v /usr:/usr:ro \
			-v "$LOADLINE_BUILD:$LOADLINE_BUILD:ro" -v "$T/world:$T/world" -e LOADLINE_SIM_DIR -e LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$@"
	}
	user_podman import -q "$T/image.tar" loadline-test >/dev/null 2>&1 || skip "podman stores no image of a user here"
	user_contain loadline-test true 2>"$T/refused" || skip "no container of a user starts here: $(tail -1 "$T/refused")"
	[ "$(user_contain --device loadline.dev/share=research --annotation loadline.dev/mem=3G loadline-test sh -c "$TOTAL" "$LOADLINE")" = 3221225472 ]
	run ! user_contain --device loadline.dev/share=others loadline-test true
	grep -q "others" "$T/user/hook.err"
	# The root of the fence is this test's group, and its state has the names below.
	local fence=("$LOADLINE_BUILD/src/keeper/loadline-keeper" fence on --root "$GROUPS_ROOT")
	"${fence[@]}" 2>"$T/on.err" || skip "the fence: $(cat "$T/on.err")"
	run ! user_contain --device loadline.dev/share=research loadline-test true
	grep -q "no card opens in the container's group, /$parent/containers" "$T/user/hook.err"
	user_contain loadline-test true
	"${fence[@]}" --keep-open /containers
	sed -i "s,/containers,/$parent/containers," "$T/world/loadline-keeper/fence"
	user_contain --device loadline.dev/share=research loadline-test true
}

@test "a container of a pod has its size and nothing else: its namespace names the tenant, and annotations change no limit" {
	local uuid=GPU-10ad11fe-0200-4200-8200-000000000001
	config_file <<-'END'
		version: 1
		tenants: [{name: research, members: {kubernetes-namespaces: [lab]}}]
		kubernetes: [{resource: loadline.dev/half, memory: 50%, compute: 50%, count: 2}]
	END
	CONFIG=$T/conf
	setup_containers --config "$T/conf"
	local half=(--device "loadline.dev/cut=$uuid.half.1") lab=(--annotation io.kubernetes.cri.sandbox-namespace=lab)
	[ "$(contain "${half[@]}" "${lab[@]}" --annotation loadline.dev/project=p loadline-test sh -c "$TOTAL" "$LOADLINE")" = $((71577 << 20)) ]
	[ "$(contain "${half[@]}" "${lab[@]}" loadline-test sh -c 'echo "$NVIDIA_VISIBLE_DEVICES"')" = "$uuid" ]
	refused "a pod has what its size gives it" contain "${half[@]}" "${lab[@]}" --annotation loadline.dev/mem=100G loadline-test true
	refused "a pod has what its size gives it" contain "${half[@]}" "${lab[@]}" --annotation loadline.dev/allow-ungoverned=true loadline-test true
	refused "takes two sizes" contain "${half[@]}" --device "loadline.dev/cut=$uuid.half.2" "${lab[@]}" loadline-test true
	refused "takes two sizes" contain "${half[@]}" --device loadline.dev/card=0 "${lab[@]}" loadline-test true
	refused "namespace other is in no tenant" contain "${half[@]}" --annotation io.kubernetes.cri.sandbox-namespace=other loadline-test true
	refused "does not tell the namespace" contain "${half[@]}" loadline-test true
	refused "the runtime does not tell the pod.s annotations" contain "${half[@]}" "${lab[@]}" --annotation io.kubernetes.cri.sandbox-id=none loadline-test true
}
