# Pods of a whole Kubernetes from 1.34 on simulated cards: API server, scheduler, controller manager and kubelet as they are. In
# $LOADLINE_KUBE/cluster (~/.cache/loadline-kube/cluster) it wants kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and
# kubectl, as kubernetes-server-linux-amd64.tar.gz of https://dl.k8s.io/VERSION/ has them, and etcd from 3.5, of etcd's release or
# Debian 13's package etcd-server; and beside it, in bin, containerd, which tools/get_kubelet gets. Without them it is skipped.
export NEEDS="src/kubelet/loadline-kubelet tests/e2e/launcher runc busybox openssl"
load helper
load service_helper
load kubernetes_helper

KUBE=${LOADLINE_KUBE:-$HOME/.cache/loadline-kube}
PACKAGING=$BATS_TEST_DIRNAME/../../packaging/kubernetes
GIB=$((1 << 30))
HALF=$((71577 << 20))

TENANTS='version: 1
tenants: [{name: all, members: {kubernetes-namespaces: ["*"]}}]'
CLAIMS=$TENANTS'
kubernetes: [{resource: loadline.dev/any, claims: true}]'

kube() {
	HOME=$T nsenter -t "$NODE" -n "$KUBE/cluster/kubectl" --kubeconfig "$T/node/admin.json" "$@"
}

# begin: loadlined, whose configuration is standard input, its sensor and a cluster of one node.
begin() {
	local program
	[ "$(id -u)" -eq 0 ] || skip "a kubelet is root's"
	for program in cluster/{kube-apiserver,kube-controller-manager,kube-scheduler,kubelet,kubectl,etcd} bin/containerd; do
		[ -x "$KUBE/$program" ] || skip "no $program in $KUBE: the head of kubernetes_cluster.bats says where it is from"
	done
	start_machine
	start_cluster
	kube create namespace research
	kube create namespace prod
	# NVIDIA's operator makes this class.
	kube create -f - <<<'{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: nvidia}, handler: runc}'
	kube apply -f "$PACKAGING/dra.yaml"
	wait_for 60 kube get serviceaccount -n research default
}

start_cluster() {
	start_node "$KUBE/cluster:$KUBE/bin" cluster
	describe_node
	wait_for 100 kube wait --for=condition=Ready node/node1 --timeout=20s
}

# start_there NAME ARG...: loadline-kubelet on the node.
start_there() {
	local name=$1
	shift
	start_program "$name" nsenter -t "$NODE" -m -n -p -u env LOADLINE_SIM_DIR="$LOADLINE_SIM_DIR" "$PLUGIN" "$@"
}

# start_driver: of claims, with the service account of dra.yaml, and so with its rights.
start_driver() {
	mkdir -p "$T/account"
	cp "$T/node/keys/ca.crt" "$T/account"
	kube create token -n kube-system loadline-claims >"$T/account/token"
	start_there driver --claims --node node1 --api "$(jq -r '.clusters[0].cluster.server' "$T/node/admin.json")" --account "$T/account"
	wait_for 60 slice 'length == 2'
	wait_for 60 grep -q "registered" "$T/driver.err"
}

# end_there NAME [SIGNAL]
end_there() {
	kill -"${2-TERM}" "$(tr -d ' ' <"/proc/$(pid_of "$1")/task/$(pid_of "$1")/children")"
	finish "$1"
}

# slice FILTER: of the devices of the node's ResourceSlice.
slice() {
	kube get resourceslice node1-gpu.loadline.dev -o json | jq -e ".spec.devices | $1"
}

# template NAME REQUEST...: a claim's.
template() {
	local name=$1
	shift
	kube create -f - <<<"{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: $name, namespace: research},
		spec: {spec: {devices: {requests: [$*]}}}}"
}

# one NAME MEMORY COMPUTE [MORE]: a request of one part.
one() {
	echo "{name: $1, exactly: {deviceClassName: loadline, ${4-}capacity: {requests: {memory: $2, compute: \"$3\"}}}}"
}

# On a real node a container has its cards alone.
USE="export CUDA_VISIBLE_DEVICES=\$NVIDIA_VISIBLE_DEVICES; exec $LOADLINE_BUILD/tests/e2e/launcher 2"
REST="exec sleep 1000"

# claiming NAME TEMPLATE COMMAND [FILTER]: a pod with a claim. FILTER changes it.
claiming() {
	pod_object "$1" research '{}' "$3" | jq --arg template "$2" '.spec.resourceClaims = [{name: "part", resourceClaimTemplateName: $template}] |
		.spec.containers[0].resources = {claims: [{name: "part", request: "main"}]} | '"${4-.}" | kube create -f -
}

# phase NAME PHASE: is the pod in it?
phase() {
	[ "$(kube get pod -n research "$1" -o "jsonpath={.status.phase}")" = "$2" ]
}

# waits NAME: the scheduler has no place for the pod.
waits() {
	kube get pod -n research "$1" -o json | jq -e '.status.phase == "Pending" and any(.status.conditions[]; .type == "PodScheduled" and .reason == "Unschedulable")'
}

delete() {
	kube delete pod -n research --wait=false "$@"
}

none_failed() {
	kube get pods -A -o json | jq -e 'all(.items[]; .status.phase != "Failed")'
}

# card_of NAME: the number of the card of the pod's claim, or of its size.
card_of() {
	kube get resourceclaims -n research -o json | jq -e --arg pod "$1" '.items[] | select(any(.status.reservedFor[]?; .name == $pod)) |
		.status.allocation.devices.results[0].device[-1:] | tonumber - 1'
}

# has_job MEMORY PERCENT: a job has these limits of a card.
has_job() {
	shows 'select(.memory_limit_bytes == '"$1"' and .compute_cap_percent == '"$2"')'
}

# sum_limits: until it is killed, what jobs may have of each card.
sum_limits() {
	while :; do
		loadline --sim status --json | jq -c -s '[.[] | select(has("compute_cap_percent")) | {uuid, mib: (.memory_limit_bytes / 1048576),
			percent: .compute_cap_percent, job: (.job_number // .tenant_row)}] | unique | group_by(.uuid) |
			map({mib: (map(.mib) | add), percent: (map(.percent) | add)})'
	done
}

within_cards() {
	stop sums
	jq -e -s 'flatten | length > 0 and all(.mib <= 143155 and .percent <= 100)' "$T/sums.out"
}

@test "claims have what they ask for, by the scheduler: to the byte and to the percent; what does not fit waits, and no pod fails" {
	local file
	begin <<<"$CLAIMS"
	for file in "$PACKAGING"/*.yaml; do
		[ "${file##*/}" != kueue.yaml ] || continue # its kinds are Kueue's own
		kube apply --dry-run=server --validate=strict -f "$file"
	done
	start_driver
	# The template of the documentation: 37 % and 13 GiB.
	kube create --dry-run=client -o json -f "$PACKAGING/claim.yaml" | jq 'select(.kind == "ResourceClaimTemplate")' | kube create -f -
	template most "$(one main 100Gi 70)"
	cp "$BATS_TEST_DIRNAME/card_memory.py" "$T"
	# A context has 528 MiB.
	claiming bytes small "$LOADLINE --sim status --json; python3 $T/card_memory.py context alloc $((13312 - 528)) alloc 1"
	wait_for 100 phase bytes Succeeded
	grep '^{' "$T/out/bytes" | jq -e -s 'any(.[]; .memory_total_bytes == '"$((13 * GIB))"')'
	[ "$(tail -n 3 "$T/out/bytes" | tr '\n' ' ')" = "context ok alloc ok alloc 2 " ]
	claiming part small "$USE"
	wait_for 100 has_job $((13 * GIB)) 37
	wait_for 100 has_part "$(card_of part)" 0.355 0.385
	jq -e -s 'all(. <= 0.385)' "$T/parts"
	echo "# $(tail -n 1 "$T/parts") of the card's time" >&3
	claiming most1 most "$REST"
	wait_for 100 phase most1 Running
	[ "$(card_of most1)" -ne "$(card_of part)" ]
	claiming most2 most "$REST"
	wait_for 100 waits most2
	none_failed
	delete part
	wait_for 100 phase most2 Running
	delete most1 most2
	# Containers of one pod, alternatives, two cards, another name of the whole.
	template two "$(one main 10Gi 20)" "," "$(one more 30Gi 40)"
	template either "{name: main, firstAvailable: [{name: big, deviceClassName: loadline, capacity: {requests: {memory: 200Gi}}},
		{name: little, deviceClassName: loadline, capacity: {requests: {memory: 3Gi, compute: \"7\"}}}]}"
	template pair "$(one main 5Gi 9 "count: 2, ")"
	claiming two two "$REST" '.spec.containers += [.spec.containers[0] | .name = "second" | .resources.claims[0].request = "more"]'
	claiming either either "$REST"
	claiming pair pair "$REST"
	wait_for 100 has_job $((10 * GIB)) 20
	wait_for 100 has_job $((30 * GIB)) 40
	wait_for 100 has_job $((3 * GIB)) 7
	wait_for 100 has_job $((5 * GIB)) 9
	status_has '[.[] | select(has("tenant_row") and .compute_cap_percent == 9).uuid] | sort == ["'"${CARD}1"'", "'"${CARD}2"'"]'
	none_failed
}

@test "claims hold when a pod is deleted without grace, kubelet, driver or API server are started again, a card is lost, the node starts anew" {
	local uid
	begin <<<"$CLAIMS"
	start_driver
	template most "$(one main 100Gi 70)"
	template small "$(one main 13Gi 20)"
	claiming other most "$REST"
	wait_for 100 phase other Running
	claiming first most "trap '' TERM; $REST"
	wait_for 100 phase first Running
	# The scheduler gives its part to the next at once, before its containers have ended.
	start_program sums sum_limits
	delete first --grace-period=0 --force
	claiming next most "$REST"
	wait_for 100 phase next Running
	within_cards
	none_failed
	delete other
	claiming stays small "$REST" '.spec.restartPolicy = "Always"'
	wait_for 100 has_job $((13 * GIB)) 20
	# A kubelet that starts removes the slice.
	uid=$(kube get resourceslice node1-gpu.loadline.dev -o "jsonpath={.metadata.uid}")
	in_node sh -c 'kill -KILL "$(cat /run/kubelet.pid)"'
	wait_for 100 eval '[ "$(kube get resourceslice node1-gpu.loadline.dev -o "jsonpath={.metadata.uid}")" != "'"$uid"'" ] && slice "length == 2"'
	in_node sh -c 'kill -KILL "$(cat /run/kube-apiserver.pid)"'
	end_there driver KILL
	wait_for 100 kube get --raw /readyz
	start_driver
	has_job $((13 * GIB)) 20
	claiming later small "$REST"
	wait_for 100 phase later Running
	none_failed
	# A card that is lost, or drained, has no new claims; those that have it keep it.
	simctl card 0 gone on
	wait_for 100 slice 'map(.name) == ["gpu-10ad11fe-0200-4200-8200-000000000002"]'
	delete next later
	claiming elsewhere small "$REST"
	wait_for 100 phase elsewhere Running
	[ "$(card_of elsewhere)" -eq 1 ]
	simctl card 0 gone off
	wait_for 100 slice 'length == 2'
	delete elsewhere
	# Nothing is left but disks.
	end_node
	kill -KILL "$(pid_of service)"
	finish service
	rm -f "$T/world/system/socket"
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	wait_for 60 serves
	start_cluster
	start_driver
	wait_for 100 has_job $((13 * GIB)) 20
	wait_for 100 eval 'kube get pod -n research stays -o json | jq -e ".status.phase == \"Running\" and .status.containerStatuses[0].restartCount > 0"'
}

# halves N [SIZE]: a Deployment of so many pods with a half each.
halves() {
	pod_object half research '{"loadline.dev/half": 1}' "$USE" | jq --argjson count "$1" '{apiVersion: "apps/v1", kind: "Deployment", metadata: {name: "half", namespace: "research"},
		spec: {replicas: $count, selector: {matchLabels: {app: "half"}}, template: {metadata: {labels: {app: "half"}},
			spec: (.spec | .restartPolicy = "Always" | .runtimeClassName = "nvidia")}}}' | kube apply -f -
}

# halves_are PHASE N
halves_are() {
	[ "$(kube get pods -n research -l app=half --field-selector="status.phase=$1" -o name | wc -l)" -eq "$2" ]
}

can_have() {
	[ "$(kube get node node1 -o 'jsonpath={.status.allocatable.loadline\.dev/half}')" = "$1" ]
}

@test "sizes: pods that do not fit wait, and none fails; without grace, with a lost card, a quota, and claims beside them" {
	begin <<<"$TENANTS
kubernetes:
  - {resource: loadline.dev/half, memory: 50%, compute: 50%}
  - {resource: loadline.dev/any, claims: true, memory: 50%, compute: 50%}"
	start_there plugin
	start_driver
	wait_for 100 can_have 2
	halves 3
	wait_for 100 halves_are Running 2
	wait_for 100 status_has '[.[] | select(has("claim") and .memory_limit_bytes == '"$HALF"' and .compute_cap_percent == 50 and .gpu_seconds > 0.5).uuid] | sort == ["'"${CARD}1"'", "'"${CARD}2"'"]'
	halves_are Pending 1
	# The container has its device once, by the field of names and by the annotation.
	template small "$(one main 13Gi 20)"
	claiming part small "$REST"
	wait_for 100 has_job $((13 * GIB)) 20
	start_program sums sum_limits
	delete --grace-period=0 --force "$(kube get pods -n research -l app=half --field-selector=status.phase=Running -o 'jsonpath={.items[0].metadata.name}')"
	wait_for 100 halves_are Running 2
	wait_for 100 status_has '[.[] | select(has("claim") and .compute_cap_percent == 50)] | length == 2'
	within_cards
	halves_are Pending 1
	none_failed
	simctl card 1 gone on
	wait_for 100 can_have 1
	simctl card 1 gone off
	wait_for 100 can_have 2
	# A kubelet that starts knows no device until the plugin has told it again.
	in_node sh -c 'kill -KILL "$(cat /run/kubelet.pid)"'
	wait_for 100 eval '[ "$(grep -c "half: registered" "$T/plugin.err")" -ge 2 ]'
	wait_for 100 can_have 2
	kube create quota few -n research --hard=requests.loadline.dev/half=2,loadline.deviceclass.resource.k8s.io/devices=1
	run -1 claiming more small "$REST" '.spec.containers[0].resources.requests = {"loadline.dev/half": 1} | .spec.containers[0].resources.limits = {"loadline.dev/half": 1}'
	[[ $output == *"exceeded quota: few"* ]]
	claiming more small "$REST"
	wait_for 100 eval 'kube get events -n research -o json | jq -e "any(.items[]; .involvedObject.name == \"more\" and (.message | contains(\"exceeded quota: few\")))"'
	phase more Pending
}
