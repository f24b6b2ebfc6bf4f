# loadline set: limits of what runs, changed from outside.
load helper

start_busy() {
	local name=$1
	shift
	start "$name" --sim run --tenant "$name" "$@" -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms for 60s
	wait_for 60 claim "$name"
}

# claim NAME [FILTER]: of the tenant's claim.
claim() {
	shows "select(has(\"claim\") and .tenant == \"$1\") | ${2-true}"
}

number_of() {
	loadline --sim status --json | jq -r "select(has(\"claim\") and .tenant == \"$1\") | .claim"
}

tenant() {
	shows "select(has(\"tenant_row\") and .tenant == \"$1\") | ${2-true}"
}

@test "by claim and by name, each limit alone, and away again" {
	start_busy job --mem 10G
	loadline --sim set "$(number_of job)" --compute 30%
	claim job '.compute_cap_percent == 30 and .memory_limit_bytes == 10737418240 and .weight == 1'
	loadline --sim set job --mem 2G
	claim job '.compute_cap_percent == 30 and .memory_limit_bytes == 2147483648 and .weight == 1'
	loadline --sim set job --weight 4 --compute none
	claim job '.compute_cap_percent == null and .memory_limit_bytes == 2147483648 and .weight == 4'
	loadline --sim set job --mem none
	claim job '.memory_limit_bytes == null'
	is_running job
}

@test "bash completes the claims and tenants that can be set" {
	start_busy job
	start hold --sim hold --json
	wait_for 60 has hold 'select(.event == "sample")'
	[ "$(complete_words "$LOADLINE" --sim set "" | xargs)" = "$(number_of job) job" ]
	[ "$(complete_words "$LOADLINE" --sim set jo)" = job ]
	complete_words "$LOADLINE" --sim set --we | grep -qx -- --weight
}

@test "a tenant without a claim has no number that could be taken for one, and is set by name" {
	start waiting --sim run --tenant waiting -- sleep 60
	wait_for 60 tenant waiting
	start_busy job
	tenant waiting '(.tenant_row | type) == "number"'
	loadline --sim set waiting --weight 2
	tenant waiting '.weight == 2'
	claim job '.weight == 1'
}

@test "a memory limit below what a program has touches nothing" {
	start job --sim run --tenant job -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms memory 2G for 60s
	wait_for 60 claim job '.gpu_seconds > 0'
	loadline --sim set job --mem 1G
	seconds=$(gpu_seconds job)
	wait_for 60 claim job ".memory_limit_bytes == 1073741824 and .gpu_seconds > $seconds + 0.2"
	is_running job
}

@test "below a memory limit that was lowered nothing new is had, by no process of the tenant" {
	busy="$LOADLINE_BUILD/sim/loadline-simctl busy 0 20%"
	start job --sim run --tenant job -- sh -c "$busy memory 1G for 60s & while [ ! -e $T/go ]; do sleep 0.02; done; exec $busy memory 1M for 60s"
	wait_for 60 claim job '.tenant_memory_bytes > 1e9'
	first=$(loadline --sim status --json | jq 'select(has("claim")) | .pid')
	loadline --sim set job --mem 1G
	touch "$T/go"
	finish job
	[ "$status" -ne 0 ]
	grep -q CUDA_ERROR_OUT_OF_MEMORY "$T/job.err"
	claim job ".pid == $first and .memory_bytes > 1e9"
	kill -KILL "$first"
}

@test "a tenant that has nothing on the card yet" {
	start early --sim run --tenant early -- sleep 60
	wait_for 60 tenant early
	loadline --sim set early --mem 5G
	tenant early '.memory_limit_bytes == 5368709120'
}

two_cards() {
	printf 'cards 2\n' >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
}

@test "a tenant on several cards, by name or by claim, on all of them" {
	two_cards
	start both --sim run --tenant both -- sh -c "'$LOADLINE_BUILD/sim/loadline-simctl' busy 0 20% for 60s & exec '$LOADLINE_BUILD/sim/loadline-simctl' busy 1 20% for 60s"
	wait_for 60 status_has 'map(select(has("claim"))) | length == 2'
	loadline --sim set both --mem 7G
	status_has 'map(select(has("claim") and .memory_limit_bytes == 7516192768)) | length == 2'
	loadline --sim set "$(loadline --sim status -i 1 --json | jq -r 'select(has("claim")) | .claim')" --mem 8G
	loadline --sim status -i 0 --json | jq -e 'select(has("claim")) | .memory_limit_bytes == 8589934592'
	loadline --sim status -i 1 --json | jq -e 'select(has("claim")) | .memory_limit_bytes == 8589934592'
	loadline --sim status --json | jq 'select(has("claim")) | .pid' | xargs kill -KILL
}

@test "nobody of that name or number is 1" {
	fails_with 1 "nobody: no such claim or tenant; \`loadline --sim status\` shows them" --sim set nobody --mem 1G
	fails_with 1 "0/3: no such claim or tenant" --sim set 0/3 --mem 1G
	fails_with 1 "7/0: no such claim or tenant" --sim set 7/0 --mem 1G
	fails_with 1 "0/x: no such claim or tenant" --sim set 0/x --mem 1G
	fails_with 1 "0/999: no such claim or tenant" --sim set 0/999 --mem 1G
	fails_with 1 "all/0: no such claim or tenant" --sim set all/0 --mem 1G
	start_busy job
	fails_with 1 "no such claim or tenant" --sim set 0/77 --mem 1G
}

@test "a memory limit below what is in use is set, and said" {
	start job --sim run --tenant job --mem 8G -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms memory 3G for 60s
	wait_for 60 shows 'select(has("claim") and .tenant == "job" and .memory_bytes > 3 * 1073741824)'
	loadline --sim set job --mem 2G >"$T/set.out" 2>"$T/set.err"
	grep -E "card 0, job: has 3\.[0-9]+ GiB, more than the new limit: it keeps that, and gets no more until it has less" "$T/set.err"
	grep -q "memory 8.0 GiB -> 2.0 GiB" "$T/set.out"
	loadline --sim set job --mem 7G 2>"$T/set.err"
	[ ! -s "$T/set.err" ]
}

@test "a name that several have" {
	start one --sim run --tenant twin -- sleep 60
	start two --sim run --tenant twin -- sleep 60
	wait_for 60 status_has 'map(select(.tenant == "twin")) | length == 2'
	fails_with 1 "twin: several jobs have this name; choose one by the number of a claim" --sim set twin --mem 1G
}

@test "a synthetic load is refused" {
	start hold --sim hold --json
	wait_for 60 has hold '.event == "sample"'
	number=$(loadline --sim status --json | jq -r 'select(has("claim")) | .claim')
	fails_with 4 "$number: is a synthetic load, which has no limits" --sim set "$number" --mem 1G
	stop hold
}

@test "bad values are 2 and change nothing" {
	start job --sim run --tenant job --mem 4G -- sleep 60
	wait_for 60 tenant job
	for option in --mem=0 --mem=-1 --mem=abc --mem=200T --compute=0 --compute=101% --compute=abc --weight=0 --weight=101 --weight=none --slowdown=0.9 --slowdown=11; do
		fails_with 2 "${option%%=*}" --sim set job "$option"
		fails_with 2 "${option%%=*}" --sim set job --weight 3 "$option"
	done
	fails_with 2 "set: nothing to set; give --mem, --mem-request, --compute, --weight, --class, --slowdown, --sharing or --time" --sim set job
	fails_with 2 "set: no claim named" --sim set --mem 1G
	fails_with 2 "set: one claim at a time" --sim set job other --mem 1G
	tenant job '.memory_limit_bytes == 4294967296 and .compute_cap_percent == null and .weight == 1'
}

@test "no driver is 3" {
	[ ! -e /proc/driver/nvidia ] || skip "there is a driver here"
	fails_with 3 "no NVIDIA driver" set job --mem 1G
}

# A busy machine gives the program less, and so never more than this.
@test "a cap that is set holds a running program within 100 ms" {
	start_busy job
	loadline --sim set job --compute 10%
	local begin=$EPOCHREALTIME before after
	before=$(gpu_seconds job)
	wait_for 60 claim job ".gpu_seconds >= $before + 0.25"
	after=$(gpu_seconds job)
	# 100 ms of the whole card, and 30 ms that may be in flight or in the account, before a tenth of the time.
	expect '$used <= 0.1 + 0.03 + ($ended - $began) * 0.1' --argjson used "$(jq -n "$after - $before")" \
		--argjson began "$begin" --argjson ended "$EPOCHREALTIME"
	loadline --sim set job --compute none
	after=$(gpu_seconds job)
	# Half a second more than the cap would have let it.
	wait_for 60 claim job ".gpu_seconds > $after + 0.5 + (now - $EPOCHREALTIME) * 0.1"
}

@test "the class is changed while it runs" {
	start_busy job
	claim job '.class == "normal"'
	for class in low high normal; do
		loadline --sim set job --class "$class"
		claim job ".class == \"$class\""
		loadline --sim set job --priority normal # the word of before
		claim job '.class == "normal"'
		loadline --sim set job -p "$class"
		claim job ".class == \"$class\" and .weight == 1 and .compute_cap_percent == null"
	done
	fails_with 2 "--class: 'urgent': not one of high, normal, low" --sim set job --class urgent --weight 3
	claim job '.class == "normal" and .weight == 1'
}

# Both have launches queued all the time, however long their hosts wait for a busy machine. The one of the higher class
# accepts no slowdown, so the other is held for nearly all of the time.
@test "a class that is changed counts: the one beneath has what is left, and a minimum" {
	local name
	for name in one two; do
		start "$name" --sim run --tenant "$name" -- "$LOADLINE_BUILD/tests/e2e/launcher" wait 1
		wait_for 60 used "$name" 0.1
	done
	loadline --sim set one --class high --slowdown 1
	loadline --sim set two --class low
	# It would be 1 without classes. The other has 2 % of the time, half of it while the part is not known yet, and what
	# one leaves while its host lets the queue run dry.
	shares one two 2 10000
}

@test "it says what it changed: a line for each card, the old value and the new one" {
	two_cards
	start both --sim run --tenant both --mem 10G -- sleep 60
	wait_for 60 status_has 'map(select(.tenant == "both")) | length == 2'
	[ "$(loadline --sim set both --mem 2G)" = "card 0, both: memory 10.0 GiB -> 2.0 GiB
card 1, both: memory 10.0 GiB -> 2.0 GiB" ]
	[ "$(loadline --sim set both --mem none --compute 30% --weight 2.5 --class low)" = "$(for card in 0 1; do
		echo "card $card, both: memory 2.0 GiB -> none, compute none -> 30 %, weight 1 -> 2.5, class normal -> low"
	done)" ]
	[ "$(loadline --sim set both --compute none | head -n 1)" = "card 0, both: compute 30 % -> none" ]
	[ "$(loadline --sim set both --slowdown 1.5 | head -n 1)" = "card 0, both: slowdown 1.3 -> 1.5" ]
	[ "$(loadline --sim set both --sharing slices --slowdown 2 | head -n 1)" = "card 0, both: slowdown 1.5 -> 2, sharing measured -> slices" ]
	tenant both '.slowdown_target == 2'
}

@test "a limit below 1 MiB is not told as 0" {
	start tiny --sim run --tenant tiny --mem 1B --count-context=no -- sleep 60
	wait_for 60 tenant tiny
	loadline --sim status --long | grep -q "tenant tiny: nothing on the card, class normal, 0 MiB of 1 B, "
	[ "$(loadline --sim set tiny --mem 1023B)" = "card 0, tiny: memory 1 B -> 1023 B" ]
	[ "$(loadline --sim set tiny --mem 1K)" = "card 0, tiny: memory 1023 B -> 1 KiB" ]
	[ "$(loadline --sim set tiny --mem 1023K)" = "card 0, tiny: memory 1 KiB -> 1023 KiB" ]
	[ "$(loadline --sim set tiny --mem 1M)" = "card 0, tiny: memory 1023 KiB -> 1 MiB" ]
}
