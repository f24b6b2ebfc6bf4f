# loadline-kubelet as a driver of ResourceClaims, with a kubelet (dra_peer.py) and an API server (kubernetes_api.py) of ours; containers
# that name the devices of its claims are podman's, on simulated cards.
export NEEDS="src/kubelet/loadline-kubelet tests/e2e/launcher podman crun curl openssl"
load helper
load service_helper
load kubernetes_helper

DEVICE=gpu-10ad11fe-0200-4200-8200-00000000000
GIB=$((1 << 30))

CLAIMS='version: 1
tenants: [{name: all, members: {kubernetes-namespaces: [lab]}}]
kubernetes: [{resource: loadline.dev/any, claims: true}]'

begin() {
	begin_node
	mkdir -p "$T/kubelet" "$T/api/account" "$T/api/claims/lab"
	make_certificate
	start_api
	start_peer dra_peer.py "$T/kubelet"
	start_driver
	wait_for 60 ask_ok register
}

# make_certificate: of the API server, which is its own authority.
make_certificate() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=api -addext "subjectAltName=IP:127.0.0.1" \
		-keyout "$T/api/key.pem" -out "$T/api/account/ca.crt" 2>"$T/openssl.err"
	cat "$T/api/key.pem" "$T/api/account/ca.crt" >"$T/api/server.pem"
	echo of-the-account | tee "$T/api/account/token" >"$T/api/token"
}

start_api() {
	start_program api /usr/bin/python3 "$BATS_TEST_DIRNAME/kubernetes_api.py" "$T/api"
	wait_for 60 api_listens
}

api_listens() {
	[ -s "$T/api/port" ] && [ "$(post '{}')" -gt 0 ]
}

start_driver() {
	start_program plugin env no_proxy=127.0.0.1 "$PLUGIN" --claims --node node1 --devices "$T/cdi/loadline-claims.json" --kubelet "$T/kubelet" \
		--account "$T/api/account" --api "https://127.0.0.1:$(<"$T/api/port")"
}

ask_ok() {
	ask "$@" | jq -e 'has("error") | not'
}

# slice FILTER: of the ResourceSlice of the node.
slice() {
	jq -e -r '.["node1-gpu.loadline.dev"] | '"$1" "$T/api/slices.json"
}

# claim NAME UID RESULT...: a claim in namespace lab that is allocated: each RESULT is request, card, memory and compute.
claim() {
	local name=$1 uid=$2 results=()
	shift 2
	while [ $# -gt 0 ]; do
		results+=("$(jq -n --arg request "$1" --arg device "$DEVICE$2" --arg memory "$3" --arg compute "$4" '{request: $request,
			driver: "gpu.loadline.dev", pool: "node1", device: $device, shareID: "a671734a-e8e5-11e4-8fde-42010af09327",
			consumedCapacity: {memory: $memory, compute: $compute}}')")
		shift 4
	done
	printf '%s\n' "${results[@]}" | jq -s --arg name "$name" --arg uid "$uid" '{apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim",
		metadata: {name: $name, namespace: "lab", uid: $uid}, spec: {devices: {requests: []}}, status: {allocation: {devices: {results: .}}}}' \
		>"$T/api/claims/lab/$name.json"
}

# change NAME FILTER: of a claim.
change() {
	jq "$2" "$T/api/claims/lab/$1.json" >"$T/changed.json"
	mv "$T/changed.json" "$T/api/claims/lab/$1.json"
}

# refused NAME UID TEXT: the claim is not prepared, and that is why.
refused() {
	ask prepare lab "$1" "$2" | tee "$T/answer"
	jq -e --arg uid "$2" --arg text "$3" '.[$uid].error | contains($text)' "$T/answer"
	[ ! -e "$T/cdi/loadline-claim-$2.json" ]
}

prepared() {
	ask prepare lab "$1" "$2" | tee "$T/answer"
	jq -e --arg uid "$2" '.[$uid].devices | length > 0' "$T/answer"
}

unprepared() {
	[ "$(ask unprepare lab "$1" "$2")" = "{\"$2\": {}}" ]
	[ ! -e "$T/cdi/loadline-claim-$2.json" ]
}

# ---- containers ----

make_image() {
	local link
	! ldd "$LOADLINE_BUILD/src/monitor/loadline-inside" >/dev/null 2>&1 || skip "this build has no static programs"
	mkdir -p "$T/image"/{usr,etc,proc,dev,sys,tmp,run,var} /run/cdi
	for link in bin lib lib64 sbin; do
		ln -s "usr/$link" "$T/image/$link"
	done
	tar -C "$T/image" -cf "$T/image.tar" .
	podman=(podman --runtime crun --root "$T/store" --runroot "$T/podman" --storage-driver vfs --cgroup-manager cgroupfs --events-backend file)
	podman_here import -q "$T/image.tar" loadline-test >/dev/null 2>&1 || skip "podman stores no image here"
	podman_here run --rm --network none --ulimit nproc=1024:1024 --ulimit nofile=1024:1024 -v /usr:/usr:ro loadline-test true \
		2>"$T/refused" || skip "no container starts here: $(tail -1 "$T/refused")"
}

podman_here() {
	unshare --mount --propagation private bash -c "$MACHINE" - "$T/cdi" "${podman[@]}" "$@"
}

MORE=() # words of podman's

# contain DEVICE COMMAND...: a container of a pod in namespace lab, with what the driver has told the kubelet, as a runtime makes it.
contain() {
	local device=$1
	shift
	: >"$T/hook.err"
	podman_here run --rm --network none --ulimit nproc=1024:1024 --ulimit nofile=1024:1024 --device "$device" "${MORE[@]}" \
		--annotation run.oci.hooks.stderr="$T/hook.err" --annotation io.kubernetes.cri.sandbox-namespace=lab \
		--annotation io.kubernetes.cri.sandbox-name="${POD-pod}" -v /usr:/usr:ro -v "$LOADLINE_BUILD:$LOADLINE_BUILD:ro" \
		-v "$BATS_TEST_DIRNAME:$BATS_TEST_DIRNAME:ro" -v "$T/world:$T/world" -e LOADLINE_SIM_DIR -e LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" \
		loadline-test "$@"
}

eval "$(declare -f teardown | sed '1s/teardown/teardown_of_helper/')"
teardown() {
	[ -z "${podman-}" ] || timeout 120 "${podman[@]}" rm --all --force --time 0 >/dev/null 2>&1 || true
	teardown_of_helper
}

# ---- tests ----

# post OBJECT: prints the status.
post() {
	curl -s -o /dev/null -w '%{http_code}' --noproxy '*' --cacert "$T/api/account/ca.crt" -H "Authorization: Bearer of-the-account" -d "$1" \
		"https://127.0.0.1:$(<"$T/api/port")/apis/resource.k8s.io/v1/resourceslices"
}

@test "each card that serves is a device with consumable capacities, published as the API's schema wants it; and again when it is gone" {
	begin <<<"$CLAIMS"
	ask register | jq -e '.type == "DRAPlugin" and .name == "gpu.loadline.dev" and .versions == ["v1.DRAPlugin"] and (.endpoint | endswith("/kubelet/plugins/gpu.loadline.dev/dra.sock"))'
	wait_for 60 slice '.spec.devices | length == 2'
	slice '.spec.driver == "gpu.loadline.dev" and .spec.nodeName == "node1" and .spec.pool.name == "node1" and .spec.pool.resourceSliceCount == 1
		and (.metadata.ownerReferences == [{apiVersion: "v1", kind: "Node", name: "node1", uid: "4d5e9a5c-6f0a-4c59-9d55-0d3d8c9b7a11", controller: true}])'
	slice '.spec.devices[0] | .name == "'"${DEVICE}1"'" and .allowMultipleAllocations and .attributes.uuid.string == "'"${CARD}1"'" and
		.capacity == {memory: {value: "143155Mi", requestPolicy: {default: "143155Mi", validRange: {min: "1Mi", max: "143155Mi", step: "1Mi"}}},
			compute: {value: "100", requestPolicy: {default: "100", validRange: {min: "1", max: "100", step: "1"}}}}'
	# The server of this test refuses what Kubernetes does.
	slice . | jq 'del(.metadata.resourceVersion) | .metadata.name = "other"' >"$T/other.json"
	[ "$(post "$(jq '.spec.devices[0].shared = true' "$T/other.json")")" = 400 ]
	[ "$(post "$(jq '.spec.devices[0].name = "GPU-1"' "$T/other.json")")" = 422 ]
	[ "$(post "$(jq '.spec.devices[0].capacity.memory.requestPolicy.validRange.step = "7Mi"' "$T/other.json")")" = 422 ]
	[ "$(post "$(jq 'del(.spec.devices[0].allowMultipleAllocations)' "$T/other.json")")" = 422 ]
	[ "$(post "$(cat "$T/other.json")")" = 201 ]
	# A kubelet that was started again has removed it.
	echo '{}' >"$T/api/slices.json"
	ask_ok register
	wait_for 60 slice '.spec.devices | length == 2'
	# Not written anew without a reason.
	local generation
	generation=$(slice .spec.pool.generation)
	ask_ok register
	wait_for 60 eval 'tail -1 "$T/api/requests" | grep -q "^GET .*-gpu.loadline.dev 200$"'
	[ "$(slice .spec.pool.generation)" -eq "$generation" ]
	simctl card 0 gone on
	wait_for 60 slice '.spec.devices | map(.name) == ["'"${DEVICE}2"'"]'
	[ "$(slice .spec.pool.generation)" -gt "$generation" ]
	claim one 11111111-0000-4000-8000-000000000001 main 1 13Gi 37
	refused one 11111111-0000-4000-8000-000000000001 "card ${CARD}1 does not answer, or is drained"
}

@test "a claim of 37 % and 13 GiB has that, to the byte, whatever its pod says, and one container at a time; unprepare ends it" {
	begin <<<"$CLAIMS"
	make_image
	local uid=22222222-0000-4000-8000-000000000001 other=22222222-0000-4000-8000-000000000002
	local device=loadline.dev/claim=$uid:main
	claim part $uid main 1 13Gi 37
	prepared part $uid
	jq -e '.["'$uid'"].devices == [{requests: ["main"], pool: "node1", device: "'"${DEVICE}1"'", cdi: ["'"$device"'"]}]' "$T/answer"
	# Before it no name begins with a digit, for containerd.
	jq -e '.cdiVersion == "0.5.0"' "$T/cdi/loadline-claim-$uid.json"
	# As after a second start of the kubelet, which then names each device of a claim twice.
	MORE=(--device "$device")
	[ "$(contain "$device" "$LOADLINE" --sim status --json | jq -s '.[0].memory_total_bytes')" -eq $((13 * GIB)) ]
	MORE=()
	[ "$(contain "$device" env -i LOADLINE_RUN=id=1 LOADLINE_SIM_DIR="$LOADLINE_SIM_DIR" LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE" --sim status --json |
		jq -s '.[0].memory_total_bytes')" -eq $((13 * GIB)) ]
	# A context has 528 MiB.
	[ "$(contain "$device" python3 "$BATS_TEST_DIRNAME/card_memory.py" context alloc $((13312 - 528)) alloc 1 | tr '\n' ' ')" = "context ok alloc ok alloc 2 " ]
	POD=train start_program one contain "$device" "$LOADLINE_BUILD/tests/e2e/launcher" 2
	wait_for 60 shows 'select(has("claim") and .tenant == "all" and .memory_limit_bytes == 13 * 1073741824 and .gpu_seconds > 0.5 and .proof == "cgroup")'
	shows 'select(has("claim") and .project == "lab")'
	wait_for 100 has_part 0 0.355 0.385
	# Never more than that, and less where the host is busy.
	jq -e -s 'all(. <= 0.385)' "$T/parts"
	run ! contain "$device" true
	grep -q "the claim is in use by another container" "$T/hook.err"
	# A second claim on the same card, beside it.
	claim rest $other main 1 20Gi 60
	prepared rest $other
	[ "$(contain "loadline.dev/claim=$other:main" "$LOADLINE" --sim status --json | jq -s '.[0].memory_total_bytes')" -eq $((20 * GIB)) ]
	stop one KILL
	podman_here rm --all --force --time 0 >"$T/rm.out"
	wait_for 60 shows_none 'select(has("claim") and .project == "lab")'
	contain "$device" true
	unprepared part $uid
	run ! contain "$device" true
	[ -z "$(find "$T/cdi" -name "*$uid*")" ]
	# As often as it is asked.
	unprepared part $uid
}

@test "what does not fit, names no device of this driver, or is another claim now is refused with a sentence" {
	begin <<<"$CLAIMS"
	local a=33333333-0000-4000-8000-00000000000a b=33333333-0000-4000-8000-00000000000b
	claim one $a main 1 100Gi 50
	refused missing $a 'resourceclaims.resource.k8s.io "missing" not found'
	refused one $b "another claim has that name now"
	change one '.status.allocation.devices.results[0].driver = "gpu.nvidia.com"'
	refused one $a "the claim has no device of gpu.loadline.dev"
	change one 'del(.status.allocation)'
	refused one $a "the claim is not allocated"
	claim one $a main 7 100Gi 50
	refused one $a "has device ${DEVICE}7, which is not here now"
	claim one $a main 1 200Gi 50
	refused one $a "request main consumes 200Gi of memory, and ${DEVICE}1 has less"
	claim one $a main 1 much 50
	refused one $a "request main consumes no amount of memory"
	claim one $a main 1 10Gi 50
	change one '.status.allocation.devices.config = [{source: "FromClaim", requests: [], opaque: {driver: "gpu.loadline.dev", parameters: {}}}]'
	refused one $a "parameters for gpu.loadline.dev, which takes none"
	claim one $a main 1 100Gi 50
	prepared one $a
	# The next one of a card comes before the last one's end.
	claim two $b main 1 50Gi 50
	refused two $b "it does not fit in card ${CARD}1: of 143155 MiB and 100% other claims have 102400 MiB and 50%, and this one wants 51200 MiB and 50%"
	claim two $b main 1 10Gi 51
	refused two $b "it does not fit"
	# Another card's, and a list of alternatives, of which a container names the request alone; two requests are two devices.
	claim two $b main/second 2 50Gi 50 more 1 10Gi 50
	prepared two $b
	jq -e '.["'$b'"].devices | map([.requests[0], .device, .cdi[0]]) == [["main", "'"${DEVICE}2"'", "loadline.dev/claim='$b':main:second"], ["more", "'"${DEVICE}1"'", "loadline.dev/claim='$b':more"]]' "$T/answer"
	# Without a capacity the device is the claim's alone.
	unprepared two $b
	unprepared one $a
	claim one $a main 1 1Gi 1
	change one 'del(.status.allocation.devices.results[0].consumedCapacity)'
	prepared one $a
	jq -e '.devices[0].containerEdits.hooks[0].args | join(" ") | contains("--mem 150108897280B --compute 100.000%")' "$T/cdi/loadline-claim-$a.json"
	# Several at once; a claim's failure is not the other's.
	claim two $b main 2 1Gi 1
	ask prepare lab one $a lab missing $b | jq -e '(.["'$a'"].devices | length == 1) and (.["'$b'"].error | contains("not found"))'
	ask prepare lab ../../nodes $b | jq -e '.["'$b'"].error | contains("cannot be one")'
	[[ $(ask call NodePrepareResources ffffff) == *"cannot be read"* ]]
	[[ $(ask call NodeWatchResources 00) == *"UNIMPLEMENTED"* ]]
	# Two cards with one size are one device.
	claim both $b main 1 0 0 main 2 0 0
	change both '.status.allocation.devices.results |= map(.consumedCapacity = {memory: "20Gi", compute: "30"})'
	unprepared one $a
	prepared both $b
	jq -e '.["'$b'"].devices | map([.device, (.cdi | length)]) == [["'"${DEVICE}1"'", 1], ["'"${DEVICE}2"'", 0]]' "$T/answer"
	jq -e '.devices | length == 1 and (.[0].containerEdits.hooks[0].args | join(" ") | contains("--cards '"${CARD}1,${CARD}2"'"))' "$T/cdi/loadline-claim-$b.json"
}

@test "a driver that is started again knows its claims, also while the API server or loadlined is away" {
	begin <<<"$CLAIMS"
	local a=44444444-0000-4000-8000-00000000000a b=44444444-0000-4000-8000-00000000000b
	wait_for 60 slice '.spec.devices | length == 2'
	claim one $a main 1 100Gi 60
	claim two $b main 1 10Gi 60
	prepared one $a
	cp "$T/answer" "$T/first"
	cp "$T/cdi/loadline-claim-$a.json" "$T/first.json"
	kill -KILL "$(pid_of plugin)"
	finish plugin
	kill "$(pid_of api)"
	finish api
	start_driver
	wait_for 60 ask_ok register
	wait_for 60 grep -q "the API server at https://127.0.0.1:.*; it is tried again each 5 s" "$T/plugin.err"
	prepared one $a
	cmp "$T/answer" "$T/first"
	cmp "$T/cdi/loadline-claim-$a.json" "$T/first.json"
	refused two $b "the API server at https://127.0.0.1"
	start_api
	wait_for 60 grep -q "the API server replies" "$T/plugin.err"
	refused two $b "it does not fit"
	unprepared one $a
	prepared two $b
	unprepared two $b
	kill "$(pid_of service)"
	finish service
	refused two $b "loadlined"
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	wait_for 60 eval 'ask prepare lab two '$b' | jq -e ".[].devices"'
	# The token is read for each request.
	unprepared two $b
	echo another >"$T/api/account/token"
	refused two $b "the claim: the API server says 401: Unauthorized"
	# Somebody else with a certificate.
	kill "$(pid_of api)"
	finish api
	cp "$T/api/account/ca.crt" "$T/api/account/first.crt"
	make_certificate
	start_api
	cp "$T/api/account/first.crt" "$T/api/account/ca.crt"
	refused two $b "certificate"
	run -4 "$PLUGIN" --claims --node node1 --devices "$T/cdi/loadline-claims.json" --kubelet "$T/kubelet" --account "$T/api/account" --api https://127.0.0.1:1
	[[ $output == *"another loadline-kubelet serves here"* ]]
	run -2 "$PLUGIN" --node node1
	kill "$(pid_of plugin)"
	finish plugin
	[ "$status" -eq 0 ]
	[ -z "$(ls "$T/kubelet/plugins_registry")" ]
}

@test "an API server that keeps no shares is said; claims and sizes stand side by side on one card" {
	touch_gate() {
		mkdir -p "$T/api"
		touch "$T/api/gate-off"
	}
	touch_gate
	begin <<<'version: 1
tenants: [{name: all, members: {kubernetes-namespaces: ["*"]}}]
kubernetes:
  - {resource: loadline.dev/quarter, memory: 25%, compute: 25%}
  - {resource: loadline.dev/any, claims: true, memory: 60%, compute: 50%}'
	wait_for 60 grep -q "its feature gate DRAConsumableCapacity is off" "$T/plugin.err"
	slice '.spec.devices[0].capacity == {memory: {value: "85893Mi"}, compute: {value: "50"}}'
	jq -e '[.devices[].name] == ["'"${CARD}1.quarter.1"'", "'"${CARD}2.quarter.1"'"]' "$T/cdi/loadline-cut.json"
	# It is not written each time it is looked at.
	ask_ok register
	wait_for 60 eval 'tail -1 "$T/api/requests" | grep -q "^GET .*-gpu.loadline.dev 200$"'
	[ "$(grep -c "^P" "$T/api/requests")" -le 2 ]
	sed -i 's/memory: 60%/memory: 80%/' "$T/conf/loadline.yaml"
	run -1 loadline config check "$T/conf"
	[[ $output == *"the sizes of a card take 105% of its memory"* ]]
	sed -i 's/memory: 80%/count: 2/' "$T/conf/loadline.yaml"
	run -1 loadline config check "$T/conf"
	[[ $output == *"claims: a card has one such part"* ]]
}
