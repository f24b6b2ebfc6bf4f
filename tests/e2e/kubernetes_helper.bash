# kubernetes_helper.bash - what the tests of loadline-kubelet use besides helper.bash and service_helper.bash.
# shellcheck disable=SC2034 # the tests read them

PLUGIN=$LOADLINE_BUILD/src/kubelet/loadline-kubelet
CARD=GPU-10ad11fe-0200-4200-8200-00000000000

# start_loadlined: the system's loadlined with the configuration, and its sensor.
start_loadlined() {
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	wait_for 60 serves
	start_sensor_as
}

# describe: as loadlined's service does.
describe() {
	loadline --sim cdi generate --folder "$T/cdi" --config "$T/conf"
}

# begin_node: what a node has before the plugin or the driver is started.
begin_node() {
	[ "$(id -u)" -eq 0 ] || skip "loadlined of all users is root's here"
	/usr/bin/python3 -c 'import grpc' 2>/dev/null || skip "needs python3-grpcio"
	config_file
	scenario "cards 2"
	open_world
	start_loadlined
	describe
}

start_plugin() {
	start_program plugin "$PLUGIN" --devices "$T/cdi/loadline-cut.json" --kubelet "${1-$T/kubelet/plugins}"
}

# ---- the kubelet of kubelet_peer.py ----

# start_peer [PROGRAM FOLDER]: its answers are read by ask.
start_peer() {
	mkdir -p "$T/kubelet/plugins"
	rm -f "$T/kubelet/state.json"
	coproc PEER { exec /usr/bin/python3 "$BATS_TEST_DIRNAME/${1-kubelet_peer.py}" "${2-$T/kubelet/plugins}" 2>"$T/peer.err" 3>&-; }
	# A subshell has no descriptors of coproc's own.
	exec {PEER_IN}>&"${PEER[1]}" {PEER_OUT}<&"${PEER[0]}"
	PEER_NUMBER=$PEER_PID
}

end_peer() {
	exec {PEER_IN}>&- {PEER_OUT}<&-
	kill -KILL "$PEER_NUMBER"
	wait "$PEER_NUMBER" 2>/dev/null || true
}

# ask WORD...: prints the answer.
ask() {
	local answer
	echo "$*" >&"$PEER_IN"
	read -r -t 60 answer <&"$PEER_OUT"
	echo "$answer"
}

# state FILTER: of what the plugin has told the kubelet.
state() {
	jq -e -r "$1" "$T/kubelet/state.json"
}

# registered N: so many resources are, and each has told its devices.
registered() {
	[ "$(state '[.[] | select(.devices | length > 0)] | length')" -eq "$1" ]
}

# ---- the card ----

# look_at CARD: sets AGE, the world's in seconds, and USED, for how long programs were on the card, both by the card's counters.
look_at() {
	read -r AGE USED < <("$LOADLINE_BUILD/sim/loadline-simctl" show | awk -v card="card $1," '
		/^world / { age = $(NF - 2) }
		/^context / && index($0, card) && match($0, /[0-9.]+ s on the card/) { used += substr($0, RSTART) }
		END { print age, used + 0 }')
}

# has_part CARD LEAST MOST: the part of the card's time in which programs were on it, over 10 s.
has_part() {
	local age used
	look_at "$1"
	age=$AGE used=$USED
	until look_at "$1" && expect '$now - $began >= 10' --argjson now "$AGE" --argjson began "$age"; do
		wait_a_little
	done
	jq -n "($USED - $used) / ($AGE - $age)" | tee "$T/part" >>"$T/parts"
	jq -e ". >= $2 and . <= $3" "$T/part"
}

# ---- a node of kubernetes_node.bash, which is NODE ----

# A kubelet mounts no path with "..".
LOADLINE_BUILD=$(realpath "$LOADLINE_BUILD") LOADLINE=$(realpath "$LOADLINE")
GROUP=loadline-test-$$

eval "$(declare -f teardown | sed '1s/teardown/teardown_without_node/')"
teardown() {
	end_node
	teardown_without_node
	remove_node_groups
}

check_node() {
	[ -w /sys/fs/cgroup/freezer ] || skip "the kubelet needs control groups of version 1 here"
	! ldd "$LOADLINE_BUILD/src/monitor/loadline-inside" >/dev/null 2>&1 || skip "this build has no static programs"
}

# start_machine: loadlined, whose configuration is standard input, its sensor, two cards, and the images of a node.
start_machine() {
	check_node
	config_file
	scenario "cards 2"
	open_world
	start_loadlined
	make_images
}

# image NAME ENTRYPOINT FOLDER: an image of one layer.
image() {
	tar -C "$3" -cf "$T/layer.tar" .
	printf '{"architecture": "amd64", "os": "linux", "config": {"Entrypoint": %s, "Env": ["PATH=/bin"]}, "rootfs": {"type": "layers", "diff_ids": ["sha256:%s"]}, "history": []}' \
		"$2" "$(sha256sum "$T/layer.tar" | cut -d' ' -f1)" >"$T/c.json"
	printf '[{"Config": "c.json", "RepoTags": ["loadline.dev/%s:1"], "Layers": ["layer.tar"]}]' "$1" >"$T/manifest.json"
	tar -C "$T" -cf "$T/node/images/$1.tar" c.json manifest.json layer.tar
}

make_images() {
	local link
	mkdir -p "$T/node/images" "$T/image"/{usr,dev,etc,proc,sys,tmp,run,var,pause} "$T/out"
	for link in bin lib lib64 sbin; do
		ln -s "usr/$link" "$T/image/$link"
	done
	cp "$(command -v busybox)" "$T/image/pause/sleep"
	image usr '[]' "$T/image"
	image pause '["/pause/sleep", "2147483647"]' "$T/image"
}

# start_node BIN [cluster]: as kubernetes_node.bash wants them.
start_node() {
	local folder
	for folder in /sys/fs/cgroup/*/; do
		mkdir "$folder$GROUP" 2>/dev/null || true
	done
	rm -f "$T/node/up"
	start_program node unshare -m --propagation private -n -p -u --fork --kill-child --mount-proc bash "$BATS_TEST_DIRNAME/kubernetes_node.bash" \
		"$T/node" "$1" "/$GROUP" "${2-node}"
	wait_for 100 [ -e "$T/node/up" ]
	wait_for 60 [ -S "$T/node/lib/kubelet/device-plugins/kubelet.sock" ]
	NODE=$(tr -d ' ' <"/proc/$(pid_of node)/task/$(pid_of node)/children")
}

# in_node COMMAND...
in_node() {
	nsenter -t "$NODE" -m -n -p -u "$@"
}

describe_node() {
	in_node env LOADLINE_SIM_DIR="$LOADLINE_SIM_DIR" "$LOADLINE" --sim cdi generate --folder /run/cdi --config "$T/conf"
}

end_node() {
	local pid
	pid=$([ -e "$T/node.pid" ] && pid_of node) || return 0
	kill -KILL "$pid" 2>/dev/null || true
	wait_for 60 has_ended "$pid"
}

remove_node_groups() {
	local folder
	for folder in /sys/fs/cgroup/*/"$GROUP"; do
		[ ! -d "$folder" ] || wait_for 30 remove_group "$folder"
	done
}

remove_group() {
	find "$1" -depth -type d -exec rmdir {} + 2>/dev/null
	[ ! -d "$1" ]
}

# pod_object NAME NAMESPACE LIMITS COMMAND: prints a pod of one container, whose output is in $T/out/NAME.
pod_object() {
	jq -n --arg name "$1" --arg namespace "$2" --argjson limits "$3" --arg command "exec >>$T/out/$1 2>&1; $4" --arg t "$T" --arg build "$LOADLINE_BUILD" '
		{apiVersion: "v1", kind: "Pod", metadata: {name: $name, namespace: $namespace},
		 spec: {hostNetwork: true, restartPolicy: "Never", terminationGracePeriodSeconds: 1,
			containers: [{name: "main", image: "loadline.dev/usr:1", imagePullPolicy: "Never", command: ["/bin/sh", "-c", $command],
				env: [{name: "LOADLINE_SIM_DIR", value: "\($t)/world"}, {name: "LD_LIBRARY_PATH", value: "\($build)/sim"}],
				resources: {limits: $limits},
				volumeMounts: [{name: "usr", mountPath: "/usr"}, {name: "build", mountPath: $build}, {name: "t", mountPath: $t}]}],
			volumes: [{name: "usr", hostPath: {path: "/usr"}}, {name: "build", hostPath: {path: $build}}, {name: "t", hostPath: {path: $t}}]}}'
}
