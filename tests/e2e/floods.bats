# One user floods the system's loadlined, and another one goes on: status answers, and run starts.
# shellcheck disable=SC2153,SC2154 # FIRST and SECOND are of service_helper.bash; status and output are those of bats
load queue_helper

# The tests measure times.
export BATS_NO_PARALLELIZE_WITHIN_FILE=true

# start_service_of_two: the user FIRST may have all that is not promised to SECOND, and to other tenants.
start_service_of_two() {
	config_file <<-END
		version: 1
		visibility: {others: user-and-share, commands: own}
		cards:
		  - {name: parts, cards: "0-7", give: memory, by: auto}
		tenants:
		  - {name: flooding, members: {users: ["$FIRST"]}}
		  - {name: other, members: {users: ["$SECOND"]}, guarantee: [{of: parts, memory: 100G}]}
		$(for i in {1..12}; do echo "  - {name: t$i, members: {users: [\"6130$i\"]}, guarantee: [{of: parts, memory: 10G}]}"; done)
		defaults: {memory: 16G, time: 1h}
	END
	start_queue
}

# flood WAY [COUNT]: by FIRST, from here on.
flood() {
	start_as "$FIRST" flood \
		"$LOADLINE_BUILD/tests/e2e/flood" "$T/world/system/socket" "$@"
	wait_for 60 grep -q ready "$T/flood.out"
}

# times NAME COUNT COMMAND...: how many ms each call takes as SECOND, in $T/NAME.out. Each must succeed.
times() {
	local name=$1 count=$2 begun i
	shift 2
	for ((i = 0; i < count; i++)); do
		begun=${EPOCHREALTIME/./}
		timeout 300 setpriv --reuid "$SECOND" --regid "$SECOND" --clear-groups "$@" >"$T/call" 2>"$T/call.err"
		echo $(((${EPOCHREALTIME/./} - begun) / 1000))
	done >"$T/$name.out"
	echo "$name: $(sort -n "$T/$name.out" | tr '\n' ' ')ms"
}

# idles: the times to compare with, beside as much work that is none of loadlined's.
idles() {
	flood idle
	times idle 11 "$LOADLINE" --sim status
	stop flood KILL
}

# goes_on: each status answers, most of them within 2 s, as far as this machine is that fast, and each run starts. Who waits for a
# flood to end waits for minutes. A quiet machine of two processors takes 0.2 s, a busy one up to 1.6 s.
goes_on() {
	times status 11 "$LOADLINE" --sim status
	run ! grep -h "does not answer" "$T/call" "$T/call.err"
	loadline --sim status | grep -q "the system's, for all users"
	times start 8 "$LOADLINE" --sim run --mem 1G -- true
	expect '$is | sort | .[8] <= ([2000, 10 * ($idle | sort | .[5])] | max)' \
		--argjson is "$(jq -s -c . "$T/status.out")" --argjson idle "$(jq -s -c . "$T/idle.out")"
}

@test "another user's status and run are served while one connects and closes, in a loop" {
	start_service_of_two
	idles
	flood connect
	goes_on
}

@test "the same while one has as many connections as loadlined lets in, and they say nothing" {
	start_service_of_two
	idles
	flood silent 20000
	goes_on
}

@test "the same while one says HELLO and closes, in a loop" {
	start_service_of_two
	idles
	flood hello
	goes_on
}

@test "the same while one has as many connections as loadlined lets in, and they have said HELLO" {
	start_service_of_two
	idles
	flood keep 20000
	goes_on
}

@test "the same while 800 jobs of one wait in the queue, and others come and go" {
	start_service_of_two
	idles
	flood queue 800
	goes_on
}
