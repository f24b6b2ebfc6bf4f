# Pods of a real kubelet on simulated cards: tools/get_kubelet makes its programs. kubernetes.bats has the rest of loadline-kubelet.
export NEEDS="src/kubelet/loadline-kubelet tests/e2e/launcher runc busybox"
load helper
load service_helper
load kubernetes_helper

NODE_BIN=${LOADLINE_KUBE:-$HOME/.cache/loadline-kube}/bin

plugin_is_known() {
	grep -q "registered" "$T/plugin.err"
}

start_node_plugin() {
	start_program plugin nsenter -t "$NODE" -m -n -p -u env LOADLINE_SIM_DIR="$LOADLINE_SIM_DIR" "$PLUGIN"
	wait_for 60 plugin_is_known
}

# begin: loadlined, whose configuration is standard input, its sensor, a node and the plugin.
begin() {
	[ "$(id -u)" -eq 0 ] || skip "a kubelet is root's"
	[ -x "$NODE_BIN/kubelet" ] || skip "no kubelet in $NODE_BIN: tools/get_kubelet makes one"
	start_machine
	start_node "$NODE_BIN"
	describe_node
	start_node_plugin
}

# pod NAME NAMESPACE LIMITS COMMAND [FILTER]: a pod of one container, whose output is in $T/out/NAME; as the jq filter makes it.
pod() {
	pod_object "$@" | jq "${5-.}" >"$T/node/$1.json"
	mv "$T/node/$1.json" "$T/node/pods/$1.json"
}

# annotated NAME NAMESPACE SIZE KEY VALUE COMMAND
annotated() {
	pod "$1" "$2" '{"loadline.dev/'"$3"'": 1}' "$6" '.metadata.annotations["loadline.dev/'"$4"'"] = "'"$5"'"'
}

# kubelet_says TEXT: since its start.
kubelet_says() {
	grep -q -- "$1" "$T/node/log/kubelet.log"
}

# pod_fails NAME TEXT: what the kubelet has of it.
pod_fails() {
	in_node python3 -c 'import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:10255/pods").read().decode())' |
		jq -e --arg name "$1-node1" --arg text "$2" '.items[] | select(.metadata.name == $name).status.message | contains($text)'
}

# has_limit NAMESPACE BYTES: a claim of the namespace has this limit, and launches.
has_limit() {
	shows 'select(has("claim") and .project == "'"$1"'" and .memory_limit_bytes == '"$2"' and .gpu_seconds > 0 and .proof == "cgroup")'
}

nvidia_is_told() {
	in_node "$LOADLINE" --sim doctor --no-trial | grep "^warn: kubernetes: NVIDIA's device plugin (nvidia-gpu.sock) serves the kubelet"
}

SIZES='version: 1
tenants:
  - {name: serving, members: {kubernetes-namespaces: [prod]}}
  - {name: research, members: {kubernetes-namespaces: [lab, home]}}
kubernetes:
  - {resource: loadline.dev/half, memory: 50%, compute: 50%}
  - {resource: loadline.dev/quarter, memory: 25%, compute: 25%, class: low, count: 2}'
HALF=$((71577 << 20))
QUARTER=$((35788 << 20))

@test "pods have the limits of their sizes, whatever their environment, each its tenant; more than there is does not start" {
	begin <<<"$SIZES"
	pod one prod '{"loadline.dev/half": 1}' "env; env -i LOADLINE_SIM_DIR=$T/world LD_LIBRARY_PATH=$LOADLINE_BUILD/sim $LOADLINE_BUILD/tests/e2e/launcher 2"
	pod two lab '{"loadline.dev/quarter": 1}' "LOADLINE_RUN=id=1 $LOADLINE_BUILD/tests/e2e/launcher 2"
	wait_for 60 has_limit prod "$HALF"
	wait_for 60 has_limit lab "$QUARTER"
	loadline --sim status --json | jq -e -s '[.[] | select(has("claim")) | [.tenant, .class]] | sort == [["research", "low"], ["serving", "normal"]]'
	# By the kubelet, and then by the device, which the runtime knows.
	grep -q "^NVIDIA_VISIBLE_DEVICES=${CARD}[12]$" "$T/out/one"
	# Beside NVIDIA's plugin, which serves its socket; one that is left behind is none.
	in_node "$LOADLINE" --sim doctor --no-trial | grep "^ok: kubernetes: loadline-kubelet alone"
	start_program nvidia in_node python3 -c "import signal, socket
s = socket.socket(socket.AF_UNIX); s.bind('/var/lib/kubelet/device-plugins/nvidia-gpu.sock'); s.listen(); signal.pause()"
	wait_for 60 nvidia_is_told
	# It cannot have more of the card than its size.
	pod memory home '{"loadline.dev/half": 1}' "$LOADLINE --sim status --json"
	wait_for 60 grep -q "\"memory_total_bytes\":$HALF," "$T/out/memory"
	pod third lab '{"loadline.dev/half": 1}' "true"
	wait_for 60 pod_fails third "Requested: 1, Available: 0"
	pod both lab '{"loadline.dev/quarter": 2}' "true"
	wait_for 60 pod_fails both "a container has one loadline.dev/quarter, and not 2"
	pod stranger nowhere '{"loadline.dev/quarter": 1}' "true"
	wait_for 60 kubelet_says "namespace nowhere is in no tenant"
	[ ! -e "$T/out/third" ] && [ ! -e "$T/out/both" ] && [ ! -e "$T/out/stranger" ]
	# A pod that ends leaves its cut.
	rm "$T/node/pods/one.json"
	wait_for 60 shows_none 'select(has("claim") and .project == "prod")'
	pod again prod '{"loadline.dev/half": 1}' "$LOADLINE_BUILD/tests/e2e/launcher 2"
	wait_for 60 has_limit prod "$HALF"
}

@test "class and weight by a pod's annotations are in force within its tenant's rights, else the pod fails; so does a limit" {
	begin <<<'version: 1
tenants:
  - {name: serving, members: {kubernetes-namespaces: [prod]}, classes: [normal, low]}
  - {name: research, members: {kubernetes-namespaces: ["*"]}, classes: [normal]}
kubernetes:
  - {resource: loadline.dev/quarter, memory: 25%, compute: 25%, count: 3}
  - {resource: loadline.dev/spare, memory: 25%, class: low}'
	local launcher=$LOADLINE_BUILD/tests/e2e/launcher
	annotated one prod quarter class low "$launcher 2"
	annotated two lab quarter weight 3 "$launcher 2"
	wait_for 60 has_limit prod "$QUARTER"
	wait_for 60 shows 'select(has("claim") and .tenant == "serving" and .class == "low")'
	wait_for 60 shows 'select(has("claim") and .tenant == "research" and .class == "normal" and .weight == 3)'
	annotated proud lab quarter class low true
	annotated large lab quarter mem 100G true
	annotated slip lab quarter priority high true
	annotated other prod spare class normal true
	wait_for 60 kubelet_says "class: low asked for, tenant research may use normal"
	wait_for 60 kubelet_says "annotation loadline.dev/mem: a pod has what its size gives it"
	wait_for 60 kubelet_says "annotation loadline.dev/priority: a pod has"
	wait_for 60 kubelet_says "annotation loadline.dev/class: the size gives class low"
	[ ! -e "$T/out/proud" ] && [ ! -e "$T/out/large" ] && [ ! -e "$T/out/slip" ] && [ ! -e "$T/out/other" ]
}

@test "pods go on when the kubelet, the plugin or loadlined is started again; none starts while its limits would not be in force" {
	begin <<<"$SIZES"
	pod one prod '{"loadline.dev/half": 1}' "$LOADLINE_BUILD/tests/e2e/launcher 2"
	wait_for 60 has_limit prod "$HALF"
	: >"$T/plugin.err"
	in_node sh -c 'kill "$(cat /run/kubelet.pid)"'
	wait_for 60 plugin_is_known
	has_limit prod "$HALF"
	in_node sh -c 'kill -KILL $(pidof loadline-kubelet)'
	finish plugin
	start_node_plugin
	pod two lab '{"loadline.dev/half": 1}' "$LOADLINE_BUILD/tests/e2e/launcher 2"
	wait_for 60 has_limit lab "$HALF"
	has_limit prod "$HALF"
	kill "$(pid_of service)"
	finish service
	pod three home '{"loadline.dev/quarter": 1}' "echo started"
	wait_for 60 kubelet_says "PreStartContainer.*loadlined"
	[ ! -e "$T/out/three" ]
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	wait_for 60 has_limit lab "$HALF"
	wait_for 60 has_limit prod "$HALF"
	wait_for 60 grep -q started "$T/out/three"
}

# Whether the kubelet has a half of a card to give: a pod that asks for it begins, or is turned away.
TRIES=0
decided() {
	grep -q began "$T/out/try$TRIES" || pod_fails "try$TRIES" "Available: 0"
}
half_is_had() {
	pod try$((++TRIES)) home '{"loadline.dev/half": 1}' "echo began"
	wait_for 60 decided
	rm "$T/node/pods/try$TRIES.json"
	[ -e "$T/out/try$TRIES" ]
}

@test "of a card that is lost no pod gets a part until it is back; a pod of another card goes on" {
	begin <<<"$SIZES"
	# NVIDIA's runtime, which is not here, shows a container its card alone.
	local work="export CUDA_VISIBLE_DEVICES=\${NVIDIA_VISIBLE_DEVICES##*,}; echo \$CUDA_VISIBLE_DEVICES; $LOADLINE_BUILD/tests/e2e/launcher 2; echo ended \$?"
	pod one prod '{"loadline.dev/half": 1}' "$work"
	wait_for 60 has_limit prod "$HALF"
	half_is_had
	pod two lab '{"loadline.dev/half": 1}' "$work"
	wait_for 60 has_limit lab "$HALF"
	local index used
	index=$(($(sed -n "1s/.*\([12]\)\$/\1/p" "$T/out/one") - 1))
	simctl card "$index" gone on
	wait_for 60 grep "^ended [1-9]" "$T/out/one"
	# It has ended, and its half is free, but it is not given.
	while half_is_had; do :; done
	used=$(gpu_seconds research)
	wait_for 60 used research "$(jq -n "$used + 0.5")"
	run ! grep ended "$T/out/two"
	simctl card "$index" gone off
	until half_is_had; do :; done
}

@test "a node that is started again has its pods again, with their limits, and nothing of before" {
	begin <<<"$SIZES"
	local filter='.spec.restartPolicy = "Always"'
	pod one prod '{"loadline.dev/half": 1}' "echo began; $LOADLINE_BUILD/tests/e2e/launcher 2" "$filter"
	pod two lab '{"loadline.dev/quarter": 1}' "echo began; $LOADLINE_BUILD/tests/e2e/launcher 2" "$filter"
	wait_for 60 has_limit prod "$HALF"
	wait_for 60 has_limit lab "$QUARTER"
	# As by a loss of power: what is on the disk stays, /run is empty.
	end_node
	kill -KILL "$(pid_of service)" "$(pid_of sensor)"
	finish service
	finish sensor
	finish plugin
	remove_node_groups
	rm -r "$T/world/system" "$T/out"/*
	start_loadlined
	shows_none 'select(has("claim") or has("tenant_row"))'
	start_node "$NODE_BIN"
	describe_node
	start_node_plugin
	wait_for 60 has_limit prod "$HALF"
	wait_for 60 has_limit lab "$QUARTER"
	loadline --sim status --json | jq -e -s '[.[] | select(has("claim"))] | length == 2'
	# All else is free.
	half_is_had
}

@test "each container of a pod has its own size, and its own row in the metrics" {
	begin <<<"$SIZES"
	pod one prod '{"loadline.dev/half": 1}' "$LOADLINE_BUILD/tests/e2e/launcher 2" \
		'.spec.containers += [.spec.containers[0] | .name = "side" | .resources.limits = {"loadline.dev/quarter": 1}]'
	wait_for 60 has_limit prod "$HALF"
	wait_for 60 has_limit prod "$QUARTER"
	start_program exporter "$LOADLINE_BUILD/src/exporter/loadline-exporter" --listen 127.0.0.1:0
	wait_for 60 grep -q "serves at 127.0.0.1:0, port " "$T/exporter.err"
	local rows
	rows=$(python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())' \
		"http://127.0.0.1:$(sed -n 's/.*serves at 127.0.0.1:0, port //p' "$T/exporter.err")/metrics" | grep "^loadline_job_memory_limit_bytes")
	grep "namespace=\"prod\",pod=\"one-node1\",container=\"main\"} $HALF\$" <<<"$rows"
	grep "namespace=\"prod\",pod=\"one-node1\",container=\"side\"} $QUARTER\$" <<<"$rows"
}

@test "a pod without a request that has a card all the same is told, and ended as the policy says" {
	begin <<<"$SIZES
ungoverned: {action: kill, after: 1s}"
	start_keeper
	stop sensor
	start_capable_sensor
	pod stranger lab '{}' "$LOADLINE_BUILD/sim/loadline-simctl busy 0 kernel 1ms for 300s; echo status \$?"
	pod guest lab '{"loadline.dev/quarter": 1}' "$LOADLINE_BUILD/tests/e2e/launcher 2"
	wait_for 60 grep "ungoverned: process [0-9]* of user 0 (loadline-simctl) uses card GPU-.* outside of jobs" "$T/world/loadlined.log"
	wait_for 60 grep -x "status 137" "$T/out/stranger"
	wait_for 60 has_limit lab "$QUARTER"
	remove_groups
}

@test "pods come and go while plugin, loadlined and kubelet are killed: each has its size, none fails by us, nothing is left" {
	begin <<<"$SIZES"
	kill "$(pid_of service)"
	in_node sh -c 'kill $(pidof loadline-kubelet)'
	finish service
	finish plugin
	rm -f "$T/world/system/socket"
	pod template prod '{}' true
	mv "$T/node/pods/template.json" "$T/template.json"
	export T NODE PLUGIN
	start_program many nsenter -t "$NODE" -n /usr/bin/python3 "$BATS_TEST_DIRNAME/kubernetes_many.py" \
		"${LOADLINE_PODS:-8}" "${LOADLINE_SEED:-$RANDOM}"
	wait_for $((${LOADLINE_PODS:-8} * 60)) has_ended "$(pid_of many)"
	finish many
	cat "$T/many.err" "$T/many.out"
	[ "$status" -eq 0 ]
	echo "# $(tail -n 1 "$T/many.out")" >&3
}
