# What a department's machine must bear: MIG slices as cards, a card that is lost, a configuration below what is in use.
# shellcheck disable=SC2153 # FIRST and SECOND are of service_helper.bash
load queue_helper

# has_said TEXT: in loadlined's log.
has_said() {
	grep -qF -- "$1" "$T/service.err" "$T/world/loadlined.log" 2>/dev/null
}

# start_on SCENARIO: the service and the sensor in that world.
start_on() {
	[ "$(id -u)" -eq 0 ] || skip "only root can be several users"
	chmod 755 "$T"
	chmod 777 "$T/world"
	loadline --sim="$1" status >/dev/null
	start_loadlined
	start_sensor
}

write_mig_config() {
	config_file <<-END
		version: 1
		cards:
		  - {name: small, cards: "0:0,0:1,0:2", give: card}
		  - {name: shared, cards: "0:3,0:4,0:5,0:6", give: memory}
		tenants:
		  - {name: research, members: {users: ["$FIRST"]}, guarantee: [{of: small, cards: 1}], limit: [{of: small, cards: 2}]}
		  - {name: course, members: {users: ["$SECOND"]}, each-user: {memory: 10G}}
		defaults: {memory: 4G, time: 1h}
	END
}

@test "MIG slices are cards: jobs get them whole and by memory, within the limits" {
	write_mig_config
	start_on mig
	loadline --sim config check "$T/conf"
	run_as "$FIRST" whole --cards 1
	wait_for 60 grep -qx "cards=MIG-.*" "$T/whole.out"
	queue '.[0].queued | .state == "running" and .tenant == "research" and (.cards | length == 1)'
	run_as "$FIRST" second --cards 1
	wait_for 60 grep -qx "cards=MIG-.*" "$T/second.out"
	[ "$(cat "$T/whole.out")" != "$(cat "$T/second.out")" ]
	# A third slice is beyond the tenant's limit.
	refuses "$FIRST" 125 "limit" run --cards 3 -- true
	run_as "$SECOND" part --mem 8G
	wait_for 60 grep -qx "cards=MIG-.*" "$T/part.out"
	refuses "$SECOND" 125 "10 GiB allowed for each user" run --mem 12G -- true
	# The ends of the slices' names: the group's first three, and the other's.
	[ "$(sort "$T/whole.out" "$T/second.out" | cut -c 7-33 | xargs)" = "MIG-10ad11fe-0200-4200-8201 MIG-10ad11fe-0200-4200-8202" ]
	grep -q "^cards=MIG-10ad11fe-0200-4200-820[4-7]-[0-9a-f]*$" "$T/part.out"
	queue '[.[].queued.state] == ["running", "running", "running"]'
	queue '[.[].queued.cards[0]] | unique | length == 3 and all(.[]; test("^[0-9]:[0-9]$"))'
	loadline --sim queue | grep -q " research  sh  *0:[0-9]  .*  running  "
	stop whole TERM
	wait_for 60 as "$FIRST" "$LOADLINE" --sim run --cards 1 --no-wait -- true
}

@test "a card that falls off the bus gets no job, its job is no hindrance, and it is used again when it is back" {
	write_config
	start_queue
	run_as "$FIRST" lost -i 0 --cards 1
	wait_for 60 grep -q "cards=GPU-" "$T/lost.out"
	LOADLINE_SIM_DIR=$T/world "$LOADLINE_BUILD/sim/loadline-simctl" card 0 gone on
	wait_for 60 has_said "1 of them lost"
	refuses "$FIRST" 125 "" run -i 0 --no-wait -- true
	run_as "$FIRST" other --cards 1
	wait_for 60 grep -q "cards=GPU-" "$T/other.out"
	queue '[.[] | select(.queued).queued.cards] == [[0], [1]]'
	loadline --sim queue list | grep "^card 0: gets no jobs (lost)"
	stop lost TERM
	LOADLINE_SIM_DIR=$T/world "$LOADLINE_BUILD/sim/loadline-simctl" card 0 gone off
	wait_for 60 lacks "card 0: gets no jobs" loadline --sim queue list
	run_as "$FIRST" again -i 0
	wait_for 60 grep -q "cards=GPU-" "$T/again.out"
}

@test "a configuration below what is in use ends no job, is logged, and gives nothing more until the jobs are within it" {
	write_config
	start_queue
	run_as "$SECOND" first --mem 40G
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$SECOND" second --mem 20G
	wait_for 60 grep -q "cards=GPU-" "$T/second.out"
	sed -i 's/each-user: {memory: 60G, running: 3}/each-user: {memory: 30G, running: 3}/' "$T/conf/loadline.yaml"
	kill -HUP "$(cat "$T/service.pid")"
	# The user gets nothing more, and waits for the own jobs.
	wait_for 60 eval 'as "$SECOND" "$LOADLINE" --sim limits | grep "30 GiB"'
	wait_for 60 has_said "user 61235 has more than tenant course now allows each user; no job is ended"
	queue 'length == 2 and all(.[]; .queued.state == "running")'
	refuses "$SECOND" 125 "no place is free now" run --mem 1G --no-wait -- true
	refuses "$SECOND" 125 "30 GiB allowed" run --mem 31G -- true
	stop first TERM
	stop second TERM
	wait_for 60 as "$SECOND" "$LOADLINE" --sim run --mem 30G --no-wait -- true
}
