# loadline-kubelet, with a kubelet of ours (kubelet_peer.py): what it offers, answers and survives. kubernetes_node.bats has a
# real kubelet.
export NEEDS="src/kubelet/loadline-kubelet"
load helper
load service_helper
load kubernetes_helper

begin() {
	begin_node
	start_peer
	start_plugin
}

HALVES='version: 1
tenants: [{name: all, members: {kubernetes-namespaces: ["*"]}}]
kubernetes:
  - {resource: loadline.dev/half, memory: 50%, compute: 50%}
  - {resource: example.com/quarter, memory: 25%, compute: 25%, class: low, count: 2}'

@test "each size is a resource; its devices are the cuts of each card, and a card is filled before another" {
	begin <<<"$HALVES"
	wait_for 60 registered 2
	state '.["loadline.dev/half"] | .endpoint == "loadline-half.sock" and .registered_options == {"1": 1, "2": 1} and .options == {"1": 1, "2": 1}'
	wait_for 60 state '.["loadline.dev/half"].devices == {"'"${CARD}1.half.1"'": "Healthy", "'"${CARD}2.half.1"'": "Healthy"}'
	wait_for 60 state '.["example.com/quarter"].devices | length == 4 and all(. == "Healthy")'
	[ "$(ask prefer example.com/quarter 1 "${CARD}1.quarter.1" "${CARD}1.quarter.2" "${CARD}2.quarter.2")" = "[\"${CARD}2.quarter.2\"]" ]
	[ "$(ask prefer example.com/quarter 2 "${CARD}1.quarter.1" "${CARD}2.quarter.1" "${CARD}2.quarter.2")" = "[\"${CARD}1.quarter.1\", \"${CARD}2.quarter.1\"]" ]
	[ "$(ask prefer example.com/quarter 1)" = "[]" ]
}

@test "a container gets its device, the library and no card but by the device; what cannot be is refused" {
	begin <<<"$HALVES"
	wait_for 60 registered 2
	ask allocate loadline.dev/half "${CARD}2.half.1" | tee "$T/answer"
	jq -e '.envs == {"NVIDIA_VISIBLE_DEVICES": "void"} and .annotations == {"cdi.k8s.io/loadline_half": "loadline.dev/cut='"${CARD}2.half.1"'"}
		and .cdi == ["loadline.dev/cut='"${CARD}2.half.1"'"] and (.mounts | all(.read_only == 1))
		and ([.mounts[].container] | contains(["/etc/ld.so.preload", "/opt/loadline/probe", "/run/loadline"]))' "$T/answer"
	# All that is mounted is there; nothing else is.
	while read -r path; do
		[ -e "$path" ]
	done < <(jq -r '.mounts[].host' "$T/answer")
	# The device says to the runtime what it has.
	jq -e '.devices[] | select(.name == "'"${CARD}2.half.1"'").containerEdits | .env == ["NVIDIA_VISIBLE_DEVICES='"${CARD}2"'"]
		and (.hooks[0].args | join(" ") | contains("--cards '"${CARD}2"' --resource loadline.dev/half --mem 71577M --compute 50%"))' "$T/cdi/loadline-cut.json"
	jq -e '.devices[] | select(.name == "'"${CARD}2.quarter.1"'").containerEdits.hooks[0].args | join(" ") | contains("--compute 25% --class low")' \
		"$T/cdi/loadline-cut.json"
	[[ $(ask allocate example.com/quarter "${CARD}1.quarter.1" "${CARD}1.quarter.2") == *"a container has one example.com/quarter, and not 2"* ]]
	[[ $(ask allocate loadline.dev/half "${CARD}1.quarter.1") == *"loadline.dev/half has no device ${CARD}1.quarter.1 now"* ]]
	[[ $(ask call loadline.dev/half Allocate ffffff) == *"cannot be read"* ]]
	[[ $(ask call loadline.dev/half Deallocate 00) == *"UNIMPLEMENTED"* ]]
	[ "$(ask start loadline.dev/half "${CARD}1.half.1")" = "{}" ]
	[[ $(ask start loadline.dev/half "${CARD}1.half.7") == *"no device"* ]]
}

@test "whole cards: a container may have several; without the key there is no resource" {
	begin <<<'version: 1
kubernetes: [{resource: loadline.dev/card}]'
	wait_for 60 registered 1
	[ "$(ask allocate loadline.dev/card "${CARD}1.card.1" "${CARD}2.card.1" | jq -r .envs.NVIDIA_VISIBLE_DEVICES)" = "${CARD}1,${CARD}2" ]
	config_file <<<'version: 1'
	describe
	[ ! -e "$T/cdi/loadline-cut.json" ]
	wait_for 60 state '.["loadline.dev/card"].devices == {}'
	wait_for 60 grep -q "no size is described" "$T/plugin.err"
}

@test "sizes that do not fit in a card are refused, with the place" {
	config_file <<<"$HALVES"
	sed -i 's/count: 2/count: 3/' "$T/conf/loadline.yaml"
	run -1 loadline config check "$T/conf"
	[[ $output == *"loadline.yaml:5:5: fault: the sizes of a card take 125% of its memory: 25% too much"* ]]
	sed -i 's/count: 3/count: 2/; s/compute: 25%/compute: 30%/' "$T/conf/loadline.yaml"
	run -1 loadline config check "$T/conf"
	[[ $output == *"the sizes of a card take 110% of its compute: 10% too much"* ]]
	sed -i 's/compute: 30%, //' "$T/conf/loadline.yaml"
	loadline config check "$T/conf"
	scenario "cards 2"
	open_world
	sed -i 's/memory: 25%/memory: 26%/' "$T/conf/loadline.yaml"
	run ! describe
	[ ! -e "$T/cdi/loadline-cut.json" ]
}

@test "a lost or drained card is not healthy, and loadlined away for long is none; a container does not start then" {
	begin <<<"$HALVES"
	wait_for 60 state '.["loadline.dev/half"].devices | length == 2 and all(. == "Healthy")'
	simctl card 0 gone on
	wait_for 60 state '.["loadline.dev/half"].devices == {"'"${CARD}1.half.1"'": "Unhealthy", "'"${CARD}2.half.1"'": "Healthy"}'
	[[ $(ask start loadline.dev/half "${CARD}1.half.1") == *"card ${CARD}1 does not answer, or is drained"* ]]
	[ "$(ask start loadline.dev/half "${CARD}2.half.1")" = "{}" ]
	kill "$(pid_of service)"
	finish service
	[[ $(ask start loadline.dev/half "${CARD}2.half.1") == *"loadlined"* ]]
	# Not at once: it may be started anew.
	state '.["loadline.dev/half"].devices["'"${CARD}2.half.1"'"] == "Healthy"'
	wait_for 60 state '.["loadline.dev/half"].devices | all(. == "Unhealthy")'
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	wait_for 60 state '.["loadline.dev/half"].devices["'"${CARD}2.half.1"'"] == "Healthy"'
}

@test "a kubelet that is started again, a plugin that is, and one plugin at a time" {
	begin <<<"$HALVES"
	wait_for 60 registered 2
	run -4 "$PLUGIN" --devices "$T/cdi/loadline-cut.json" --kubelet "$T/kubelet/plugins"
	[[ $output == *"another loadline-kubelet serves here"* ]]
	end_peer
	start_peer
	wait_for 60 registered 2
	ask allocate loadline.dev/half "${CARD}1.half.1" | jq -e .cdi
	# The kubelet's folder is empty, and no kubelet: nothing is lost by waiting.
	end_peer
	rm -f "$T/kubelet/plugins/"*
	wait_for 60 [ -S "$T/kubelet/plugins/loadline-half.sock" ]
	start_peer
	wait_for 60 registered 2
	kill -KILL "$(pid_of plugin)"
	finish plugin
	wait_for 60 state '.["loadline.dev/half"].devices == {}'
	start_plugin
	wait_for 60 registered 2
	# Another configuration: other sizes, without a start of the plugin.
	config_file <<<'version: 1
kubernetes: [{resource: loadline.dev/third, memory: 33%, count: 3}]'
	describe
	wait_for 60 state '.["loadline.dev/third"].devices | length == 6'
	wait_for 60 state '.["loadline.dev/half"].devices == {}'
	kill "$(pid_of plugin)"
	finish plugin
	[ "$status" -eq 0 ]
	[ ! -S "$T/kubelet/plugins/loadline-third.sock" ]
}
