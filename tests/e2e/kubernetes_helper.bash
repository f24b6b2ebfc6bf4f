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
