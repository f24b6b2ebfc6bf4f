# lend_helper.bash - a department that lends: what its tests use, and all that it loads.
# shellcheck disable=SC2120,SC2119,SC2154 # status and output are those of bats; the variables are the tests'
load queue_helper

THIRD=61236

# write_lending: one card of 80 GB by memory, of which the owner ($FIRST) is guaranteed 50 GiB and the third tenant
# ($THIRD) 20 GiB. The guest ($SECOND) is guaranteed nothing. $reclaim, $pool, $keep and $requeue change that.
write_lending() {
	config_file <<-END
		version: 1
		visibility: {others: user-and-share, commands: own}
		host-memory: {for-eviction: ${pool-400G}}
		cards:
		  - {name: parts, cards: "0", give: memory}
		  - {name: rest, cards: "1-7", give: card}
		tenants:
		  - name: owner
		    members: {users: ["$FIRST"]}
		    guarantee: [{of: parts, memory: 50G, compute: 60%}]
		    classes: [normal, low]
		    ${keep-}
		  - name: guest
		    members: {users: ["$SECOND"]}
		    classes: [normal, low]
		  - name: third
		    members: {users: ["$THIRD"]}
		    guarantee: [{of: parts, memory: 20G}]
		    classes: [normal, low]
		defaults: {memory: 16G, time: 1h}
		reclaim: {${reclaim-steps: [compute, evict-idle, evict]}, stop: {signal: TERM, grace: 2s${requeue+, requeue: true}}}
	END
}

# start_lending: loadlined with that.
start_lending() {
	write_lending
	open_world h100x8
	start_loadlined
	start_sensor
}

# work UID NAME MEM: a job of that name with so much memory, whose program uses 64 MiB all the time, and knows what must be in them.
work() {
	start_as "$1" "$2" "$LOADLINE" --sim run --name "$2" --mem "$3" -- \
		"$LOADLINE_BUILD/tests/e2e/evict_worker" --seconds 1000s --bytes 64M
}

# at_work NAME: waits until its program has its memory.
at_work() {
	wait_for 60 has "$1" 'select(.event == "ready")'
}

# number_of NAME: of the last job of that name in the queue.
number_of() {
	loadline --sim queue list --json | jq -s --arg name "$1" '[.[].queued? | select(.name == $name)][-1].number'
}

# is_at NAME STATE: of that job in `queue list`.
is_at() {
	loadline --sim queue list --json | jq -s -e --arg name "$1" --arg state "$2" \
		'[.[].queued? | select(.name == $name)][-1].state == $state' >"$T/at.out"
}

# ends_well NAME: it ends by itself, and every word of its memory is right.
ends_well() {
	stop "$1" TERM
	[ "$status" -eq 0 ] && has "$1" 'select(.event == "end")' && ! has "$1" 'select(.event == "end" and .wrong != 0)'
}
