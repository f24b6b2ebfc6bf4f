# What guarantees leave idle is lent, and comes back with nobody killed.
# shellcheck disable=SC2034,SC2153,SC2154 # reclaim, pool, keep and requeue are for start_lending; FIRST and others are of the helpers
load lend_helper

# bats test_tags=main
@test "an owner comes back: the borrower of its memory sleeps, goes on after, and its memory is right" {
	start_lending
	work "$SECOND" guest 70G
	at_work guest
	is_at guest borrowed
	loadline --sim status --json | jq -s -e 'any(.[]; has("claim") and .class == "low" and .lending == "borrows")'
	loadline --sim status --long | grep -q ", borrows, class low, "
	local asked
	asked=$(date +%s%3N)
	work "$FIRST" owner 50G
	at_work owner
	echo "# the owner's program has its memory $(($(date +%s%3N) - asked)) ms after its command began" >&3
	is_at owner running
	is_at guest recalled
	# Its memory is in the host: it does not see the cards that are joined to its own.
	loadline --sim status --json | jq -s -e 'map(select(.lending? == "recalled")) | length == 1 and .[0].neighbour_bytes == 0'
	queue "any(.[].queued?; .name == \"guest\" and .recalled_for == $(number_of owner) and .lent)"
	says guest "sleeps, and comes back when there is room: its memory was lent and is needed for job $(number_of owner) of tenant owner"
	refuses "$SECOND" 4 "its memory was lent and is recalled" resume "$(claim_of guest)"
	ends_well owner
	wait_for 60 is_at guest borrowed
	wait_for 60 says guest "goes on: there is room for its memory again"
	ends_well guest
}

@test "a borrower that finds room of its own borrows no more, and has its class again" {
	start_lending
	work "$THIRD" third 30G
	at_work third
	is_at third borrowed
	work "$SECOND" guest 9G
	at_work guest
	is_at guest running
	as "$THIRD" "$LOADLINE" --sim set "$(claim_of third)" --mem 15G
	refuses "$THIRD" 4 "the job borrows" set "$(claim_of third)" --class normal
	stop third TERM
	work "$THIRD" again 15G
	at_work again
	is_at again running
	work "$THIRD" more 12G
	at_work more
	is_at more borrowed
	ends_well again
	wait_for 60 is_at more running
	says more "borrows no more: its tenant has room for it"
	wait_for 60 eval 'loadline --sim status --json | jq -s -e "all(.[] | select(has(\"claim\")); .class == \"normal\")"'
}

@test "an owner that would not fit touches nobody: a borrower keeps its memory for min-runtime" {
	reclaim="steps: [evict], min-runtime: 1h" start_lending
	work "$SECOND" guest 40G
	at_work guest
	work "$FIRST" owner 50G
	wait_for 60 is_at owner waiting
	is_at guest borrowed
	lacks "sleeps" cat "$T/guest.err"
	# It starts beside a borrower where it fits.
	work "$THIRD" third 20G
	at_work third
	is_at guest borrowed
	ends_well guest
	at_work owner
}

@test "what borrowers give back is nobody else's; if the owner withdraws, they go on" {
	start_lending
	work "$SECOND" guest 70G
	at_work guest
	freeze_process "$(pid_of guest)"
	work "$FIRST" owner 50G
	wait_for 60 is_at owner reserved
	wait_for 60 says owner "has its place, and starts when borrowers have left it"
	work "$SECOND" other 20G
	work "$THIRD" third 20G
	wait_for 60 is_at third reserved
	wait_for 60 is_at other waiting
	is_at owner reserved
	as "$FIRST" "$LOADLINE" --sim queue cancel "$(number_of owner)"
	finish owner
	[ "$status" -eq 125 ]
	stop third TERM
	stop other TERM
	kill -CONT "$(pid_of guest)"
	wait_for 60 is_at guest borrowed
	wait_for 60 says guest "goes on"
	ends_well guest
}

@test "a borrower waits after each recall, twice as long" {
	start_lending
	work "$SECOND" guest 70G
	at_work guest
	local turn began
	for turn in 1 2 3; do
		began=$EPOCHSECONDS
		work "$FIRST" "owner$turn" 50G
		at_work "owner$turn"
		ends_well "owner$turn"
		wait_for 60 is_at guest borrowed
		[ $((EPOCHSECONDS + 1 - began)) -ge $((1 << (turn - 1))) ]
	done
	ends_well guest
}

@test "a borrower that sleeps for max-sleep is stopped, if the policy says so" {
	STATE=$T/state
	reclaim="steps: [evict, stop], max-sleep: 1s" start_lending
	work "$SECOND" guest 70G
	at_work guest
	work "$FIRST" owner 50G
	at_work owner
	wait_for 60 says guest "has slept for max-sleep"
	wait_for 60 says guest "is stopped: its room was lent, and its owner needs it"
	is_at owner running
	ends_well owner
	finish guest
	# The history has the class that it asked for, and what it borrowed; the report has it too.
	wait_for 60 eval 'loadline --sim history --json | jq -s -e "any(.[]; .name == \"guest\" and .class == \"normal\" and .number == 1 and
		.recalls == 1 and .slept_seconds >= 1 and .borrowed_memory_byte_seconds > 0 and .borrowed_gpu_seconds == .gpu_seconds)"'
	wait_for 60 eval 'loadline --sim report --json | jq -s -e "any(.[]; .tenant == \"guest\" and
		.borrowed_memory_byte_seconds > 0 and .borrowed_seconds == .used_seconds) and any(.[]; .tenant == \"owner\" and .borrowed_seconds == 0)"'
}

@test "a submitted borrower that is stopped goes back into the queue under its number, and is started again" {
	STATE=$T/state
	requeue=1 pool=10G reclaim="steps: [evict, stop]" start_lending
	local guest log after
	guest=$(submit_as "$SECOND" --name guest --mem 40G --signal USR1@1s -- bash -c '
		trap "echo saves" USR1
		trap "echo ends; exit 0" TERM
		[ "${LOADLINE_RESTART_COUNT-}" ] || (trap "" TERM USR1; exec sleep 1000) & # it is killed after the grace
		echo "restart ${LOADLINE_RESTART_COUNT-none} of $0 on ${CUDA_VISIBLE_DEVICES}"
		while sleep 0.1; do :; done')
	log=$T/home-$SECOND/loadline-$guest.out
	wait_for 60 grep -q "^restart none of bash on " "$log"
	is_at guest borrowed
	after=$(submit_as "$SECOND" --mem 1G --after "$guest" -- echo after)
	work "$FIRST" owner 50G
	at_work owner
	[ "$(grep -E '^(saves|ends)$' "$log" | paste -sd,)" = saves,ends ]
	grep -qF "job $guest goes back into the queue, and is started again when it has room" "$log"
	wait_for 60 is_at guest waiting
	[ "$(number_of guest)" -eq "$guest" ]
	state_as "$SECOND" "$guest" '.state == "waiting" and .restarts == 1'
	wait_for 60 eval "loadline --sim history --state requeued --json | jq -s -e '[.[].number] == [$guest]'"
	restart_loadlined
	wait_for 60 has_queue
	wait_for 60 is_at guest waiting
	ends_well owner
	wait_for 60 grep -q "^restart 1 of bash on " "$log"
	is_at guest borrowed
	state_as "$SECOND" "$after" '.state == "waiting"'
	submit_as "$SECOND" stop "$guest"
	submit_as "$SECOND" wait "$guest" "$after"
	state_as "$SECOND" "$guest" '.state == "ended" and .status == 0 and .restarts == 1'
}

@test "a stopped borrower whose user cancels it, or ends it with submit stop, is not started again" {
	requeue=1 pool=10G reclaim="steps: [stop]" start_lending
	local name number
	for name in canceled ended; do
		number=$(submit_as "$SECOND" --name "$name" --mem 40G -- sh -c 'trap "" TERM; while sleep 0.1; do :; done')
		wait_for 60 is_at "$name" borrowed
		work "$FIRST" owner 50G
		wait_for 60 grep -qF "job $number is stopped" "$T/home-$SECOND/loadline-$number.out"
		if [ "$name" = canceled ]; then
			as "$SECOND" "$LOADLINE" --sim queue cancel "$number"
		else
			submit_as "$SECOND" stop "$number"
		fi
		run -137 submit_as "$SECOND" wait "$number"
		state_as "$SECOND" "$number" '.state == "ended" and .restarts == 0'
		at_work owner
		ends_well owner
	done
}

@test "memory that the pool does not hold is lent with stop alone, and its borrower is stopped" {
	requeue=1 pool=10G reclaim="steps: [evict]" start_lending
	work "$SECOND" guest 40G
	wait_for 60 is_at guest waiting
	requeue=1 reclaim="steps: [evict, stop]" pool=10G write_lending
	kill -HUP "$(pid_of service)"
	at_work guest
	is_at guest borrowed
	work "$FIRST" owner 50G
	wait_for 60 says guest "is stopped, because its room was lent and is needed for job "
	wait_for 60 says guest "is not started again: \`loadline submit\` alone can do that"
	finish guest
	at_work owner
}

@test "with kill a borrower ends at once" {
	pool=10G reclaim="steps: [kill]" start_lending
	work "$SECOND" guest 40G
	at_work guest
	work "$FIRST" owner 50G
	finish guest
	[ "$status" -eq 137 ]
	at_work owner
}

@test "observe tells what would be lent, lends nothing, and refuses what a loan alone could start" {
	STATE=$T/state
	reclaim="steps: [evict], observe: true" start_lending
	refuses "$SECOND" 125 "the rest is guaranteed to others: it would never start" run --mem 20G -- true
	work "$SECOND" first 8G
	at_work first
	is_at first running
	work "$SECOND" second 8G
	wait_for 60 is_at second waiting
	wait_for 60 grep -qF "reclaim: job $(number_of second) would start now with what others do not use" "$T/world/loadlined.log"
	is_at second waiting
	ends_well first
	ends_well second
	wait_for 60 eval 'loadline --sim history --json | jq -s -e "any(.[]; .name == \"second\" and .lendable_seconds > 0) and
		any(.[]; .name == \"first\" and .lendable_seconds == 0)"'
}

# tried TENANT POLICY FILTER: the line of the tenant under the policy, as of the last `config try`.
tried() {
	jq -s -e --arg tenant "$1" --arg policy "$2" "any(.[]; .tenant == \$tenant and .policy == \$policy and ($3))" "$T/try.out" >"$T/tried.out"
}

@test "config try runs the history again: without loans the guest's job is refused, and nobody is recalled" {
	STATE=$T/state
	start_lending
	refuses "$FIRST" 1 "loadlined tells you of your own jobs alone" config try --from "$T/conf" "$T/conf"
	loadline --sim config try --from "$T/conf" "$T/conf" 2>"$T/try.err" && false
	grep -q "no job of this time ran" "$T/try.err"
	local asked=$EPOCHSECONDS until
	work "$SECOND" guest 70G
	at_work guest
	until=$((EPOCHSECONDS - asked + 5))
	work "$FIRST" owner 50G
	at_work owner
	ends_well owner
	wait_for 60 is_at guest borrowed
	# It runs so long that it is there at the owner's arrival also if it had begun at once.
	until=$((until + EPOCHSECONDS))
	wait_for 60 eval '[ "$EPOCHSECONDS" -ge '"$until"' ]'
	ends_well guest
	wait_for 60 eval 'loadline --sim history --json | jq -s -e "length == 2"'
	sed 's/^reclaim:.*/reclaim: {}/' "$T/conf/loadline.yaml" >"$T/none.yaml"
	loadline --sim config try --json --from "$T/conf" "$T/none.yaml" >"$T/try.out"
	tried guest in_force '.jobs == 1 and .refused == 0 and .recalls == 1 and .gib_hours > 0 and .borrowed_gib_hours == .gib_hours'
	tried owner in_force '.jobs == 1 and .refused == 0 and .wait_median_seconds <= 1 and .borrowed_gib_hours == 0'
	tried guest try '.jobs == 1 and .refused == 1 and .gib_hours == 0 and .wait_median_seconds == null'
	tried owner try '.jobs == 1 and .recalls == 0 and .wait_median_seconds == 0'
	loadline --sim config try --from "$T/conf" "$T/none.yaml" | grep -Eq "^guest +in force +1 +0[.]0 "
}

# loan KEY: of the guest, of the group `parts`.
loan() {
	as "$SECOND" "$LOADLINE" --sim limits --json | jq -s "map(.user_limits? // [] | .[])[0].loans[] | select(.of == \"parts\").$1"
}

@test "limits tells what a user may borrow now, and borrows" {
	start_lending
	local before gib=1073741824
	before=$(loan may_borrow_bytes)
	[ "$before" -gt $((75 * gib)) ]
	work "$SECOND" guest 30G
	at_work guest
	is_at guest borrowed
	[ "$(loan borrowed_bytes)" -eq $((30 * gib)) ]
	[ "$(loan may_borrow_bytes)" -eq $((before - 30 * gib)) ]
	as "$SECOND" "$LOADLINE" --sim limits | grep -Eq "^ *guest +parts +.*30 GiB$"
	# No more than that: a job of so much borrows at once, and nothing is left.
	work "$SECOND" rest "$(loan may_borrow_bytes)B"
	at_work rest
	is_at rest borrowed
	[ "$(loan may_borrow_bytes)" -eq 0 ]
}

@test "without steps nothing is lent" {
	reclaim="max-sleep: 6m" start_lending
	[ -z "$(loan of)" ]
	refuses "$SECOND" 125 "the rest is guaranteed to others: it would never start" run --mem 20G -- true
}

@test "what the owner keeps free is not lent: its first job starts at once" {
	keep="keep-free: 30G" start_lending
	work "$SECOND" large 60G
	work "$SECOND" small 45G
	at_work small
	is_at small borrowed
	is_at large waiting
	work "$FIRST" owner 30G
	at_work owner
	is_at small borrowed
}

@test "a user whose starts fail again and again recalls nobody for a while" {
	start_lending
	work "$SECOND" guest 70G
	at_work guest
	local turn
	for turn in 1 2 3; do
		run as "$FIRST" "$LOADLINE" --sim run --mem 50G -- false
		[ "$status" -eq 1 ]
		wait_for 60 is_at guest borrowed
	done
	grep -q "failed as the ones before: for a while no borrower is recalled for its user" "$T/world/loadlined.log"
	work "$FIRST" owner 50G
	wait_for 60 is_at owner waiting
	is_at guest borrowed
	# Others recall it.
	work "$THIRD" third 20G
	at_work third
	is_at guest recalled
}

@test "a restarted loadlined knows who borrows and who sleeps" {
	STATE=$T/state
	start_lending
	work "$SECOND" guest 70G
	at_work guest
	work "$FIRST" owner 50G
	at_work owner
	restart_loadlined
	wait_for 60 has_queue
	wait_for 60 is_at owner running
	wait_for 60 is_at guest recalled
	ends_well owner
	wait_for 60 is_at guest borrowed
	ends_well guest
}

@test "a job of two processes sleeps whole, and goes on whole" {
	start_lending
	start_as "$SECOND" guest "$LOADLINE" --sim run --name guest --mem 70G -- sh -c '
		"$LOADLINE_BUILD/tests/e2e/evict_worker" --seconds 1000s --bytes 64M & one=$!
		"$LOADLINE_BUILD/tests/e2e/evict_worker" --seconds 1000s --bytes 64M --seed 7 & other=$!
		trap "kill $one $other" TERM
		wait $one; wait $one; first=$?; wait $other && exit $first'
	both_ready() { [ "$(jq -s 'map(select(.event == "ready")) | length' "$T/guest.out")" -eq 2 ]; }
	wait_for 60 both_ready
	work "$FIRST" owner 50G
	at_work owner
	is_at guest recalled
	loadline --sim status --json | jq -s -e 'map(select(has("claim") and .state == "evicted" and .lending == "recalled")) | length == 2'
	ends_well owner
	wait_for 60 is_at guest borrowed
	ends_well guest
}

@test "a job with processes on two cards sleeps whole for one of them, and goes on whole" {
	config_file <<-END
		version: 1
		host-memory: {for-eviction: 400G}
		cards: [{name: whole, cards: "0-1", give: card}]
		tenants:
		  - {name: owner, members: {users: ["$FIRST"]}, guarantee: [{of: whole, cards: 2}]}
		  - {name: guest, members: {users: ["$SECOND"]}}
		reclaim: {steps: [evict]}
	END
	start_queue
	start_as "$SECOND" guest "$LOADLINE" --sim run --name guest --cards 2 -- sh -c '
		for card in ${CUDA_VISIBLE_DEVICES%,*} ${CUDA_VISIBLE_DEVICES#*,}; do
			CUDA_VISIBLE_DEVICES=$card "$LOADLINE_BUILD/tests/e2e/evict_worker" --seconds 1000s --bytes 64M &
			pids="$pids $!"
		done
		trap "kill $pids" TERM
		for pid in $pids; do wait $pid; wait $pid || exit; done'
	wait_for 60 eval '[ "$(jq -s "map(select(.event == \"ready\")) | length" "$T/guest.out")" -eq 2 ]'
	is_at guest borrowed
	start_as "$FIRST" owner "$LOADLINE" --sim run --name owner --cards 1 -- \
		"$LOADLINE_BUILD/tests/e2e/evict_worker" --seconds 1000s --bytes 64M
	at_work owner
	is_at guest recalled
	loadline --sim status --json | jq -s -e 'map(select(has("claim") and .state == "evicted")) | length == 2'
	ends_well owner
	wait_for 60 is_at guest borrowed
	ends_well guest
}

@test "a synthetic load is in the way of no loan and of no claim, and comes back after both" {
	start_lending
	start_program hold "$LOADLINE" --sim hold -i 0 --target 50% --resume-after 300ms --json
	wait_for 60 has hold 'select(.event == "sample" and .util_percent > 30)'
	work "$SECOND" guest 70G
	at_work guest
	is_at guest borrowed
	wait_for 60 has hold 'select(.event == "yield")'
	work "$FIRST" owner 50G
	at_work owner
	is_at owner running
	is_at guest recalled
	ends_well owner
	wait_for 60 is_at guest borrowed
	ends_well guest
	wait_for 60 eval '[ "$(jq -r "select(.event == \"yield\" or .event == \"resume\").event" "$T/hold.out" | tail -n 1)" = resume ]'
	stop hold TERM
}

# sample: a line of $T/samples with the time in ms, and the bytes of the jobs that have their memory, of those that borrowers leave
# it to, and of all.
sample() {
	loadline --sim queue list --json | jq -s -r '
		def bytes(f): [.[].queued? | select(.state | f) | .memory_bytes] | add // 0;
		"\(now * 1000 | floor) \(bytes(. == "running" or . == "borrowed" or . == "starting")) \(bytes(. == "reserved")) \(bytes(true))"' \
		>>"$T/samples"
}

# used: thousandths of min(card, demand) that jobs had, by the samples; that with what borrowers were leaving; and how many samples.
used() {
	awk -v card="$(loadline --sim status -i 0 --json | jq -s '[.[].memory_total_bytes? // empty][0]')" '
		NR > 1 { time = $1 - before; most = $4 < card ? $4 : card; had += time * $2; left += time * $3; wanted += time * most }
		{ before = $1 }
		END { printf "%d %d %d\n", 1000 * had / wanted, 1000 * (had + left) / wanted, NR }' "$T/samples"
}

# start_in_ms UID NAME MEM: work, and how long it takes from the command on until the program has its memory.
start_in_ms() {
	local asked
	asked=$(date +%s%3N)
	work "$@"
	at_work "$2"
	took=$(($(date +%s%3N) - asked))
}

# Five jobs of the guest fill the card, and a switch each 8 s takes three of them or one off it, or gives it back. An owner is to
# have its memory within 2 s. Where the host is late, it may take three times as long as a job for which nobody leaves.
@test "demand switched at random: owners wait no longer than they may, 0.95 of the card is used, and all memory is right" {
	start_lending
	local guests=(guest{1..5}) name took until longest=0 bare=0 used left count starts=()
	for name in "${guests[@]}"; do
		work "$SECOND" "$name" 15800M
	done
	for name in "${guests[@]}"; do
		at_work "$name"
	done
	# All the time, also while borrowers leave. It ends with the file.
	: >"$T/sampling"
	while [ -e "$T/sampling" ]; do
		sample || true
	done 3>&- &
	local -A is_on=()
	local sampler=$! end=$((EPOCHSECONDS + 40))
	RANDOM=7
	while [ "$EPOCHSECONDS" -lt "$end" ]; do
		set -- "$FIRST" owner 47400M
		[ $((RANDOM % 2)) -eq 0 ] || set -- "$THIRD" third 15800M
		until=$(($(date +%s%3N) + 8000))
		if [ -n "${is_on[$2]-}" ]; then
			ends_well "$2"
			is_on[$2]=
		else
			start_in_ms "$@"
			[ "$took" -le "$longest" ] || longest=$took
			is_on[$2]=1
			starts+=("$took")
			start_in_ms "$THIRD" bare 1G
			starts[-1]+=" ($took)"
			[ "$took" -le "$bare" ] || bare=$took
			ends_well bare
		fi
		while [ "$(date +%s%3N)" -lt "$until" ]; do
			sleep 0.1
		done
	done
	rm "$T/sampling"
	wait "$sampler"
	read -r used left count <<<"$(used)"
	echo "# waits of owners (of a job right behind it for which nobody leaves), in ms: ${starts[*]}; used: 0.$used of min(card, demand), 0.$left with what borrowers were leaving; $count samples" >&3
	[ "$longest" -le 2000 ] || [ "$longest" -le $((3 * bare)) ]
	[ "$left" -ge 950 ]
	for name in owner third; do
		[ -z "${is_on[$name]-}" ] || ends_well "$name"
	done
	for name in "${guests[@]}"; do
		wait_for 300 is_at "$name" borrowed
		ends_well "$name"
	done
}

@test "the measurement of lending runs on a simulated card" {
	scenario "card 0 memory 8G"
	open_world
	LD_PRELOAD=$LOADLINE_BUILD/sim/libloadline-sim-kernel.so LD_LIBRARY_PATH=$LOADLINE_BUILD/sim run \
		python3 "$BATS_TEST_DIRNAME/../../bench/run" --build "$LOADLINE_BUILD" --logs "$T/logs" --json "$T/found.json" lend
	# How long things take is a matter of the host.
	jq -e '[.rows[].figure] | any(contains("flood")) and any(contains("suspend and resume")) and all(contains("could not go on") | not)' "$T/found.json"
	jq -e '.rows[] | select(.figure | contains("wrong words")) | .result == "ok"' "$T/found.json"
}
