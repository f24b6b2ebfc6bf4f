# Projects, budgets, prices and energy in the accounts of the system's loadlined, and who sees whose use.
export NEEDS="jq sqlite3 sim/loadline-simctl"
load helper
load jobs_helper
load service_helper

DATABASE=state/accounts.db

# begin_service [LINE]...: one card; the system's loadlined runs as nobody, with two tenants and these lines.
begin_service() {
	open_world
	mkdir "$T/state"
	chown nobody "$T/state"
	write_config "$@"
	serve
}

# write_config [LINE]...: budget: of the tenant research.
write_config() {
	config_file "$@" <<-END
		version: 1
		visibility: {others: ${others-user-and-share}}
		cards:
		  - {name: parts, cards: "0", give: memory, by: auto}
		tenants:
		  - name: research
		    members: {users: ["$FIRST"]}
		    ${budget:+"budget: $budget"}
		  - name: course
		    members: {users: ["$SECOND"]}
		defaults: {memory: 4G}
	END
}

serve() {
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf" --state "$T/state"
	wait_for 60 serves
}
# busy_as UID NAME ARG...: of run; a job that works on the card.
busy_as() {
	local uid=$1 name=$2
	shift 2
	[ -x "$LOADLINE_BUILD/tests/e2e/launcher" ] || skip "nothing can be preloaded in this build"
	start_as "$uid" "$name" "$LOADLINE" --sim run -i 0 "$@" \
		-- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 work 5ms sleep 5ms memory 1G for 300s
	wait_for 60 grep -q "^busy: pid" "$T/$name.out"
}

# used UID SECONDS: writes into the accounts that the user's tenant research was granted so many seconds this hour.
granted() {
	sqlite3 "$T/$DATABASE" "INSERT INTO use VALUES ($(($(date +%s) / 3600 * 3600)), 'research', $FIRST, '00000000000000aa', '', 'GPU-x', $1 * 1000000000, 0, 0, 0, NULL, NULL, NULL, NULL, NULL)"
}

# reports FILTER ARG...: a line of the report as JSON satisfies the filter.
reports() {
	local filter=$1
	shift
	loadline --sim report --json "$@" | jq -s -e "any(.[]; $filter)" >/dev/null
}

# bats test_tags=main
@test "a job's project is in status, in the accounts, and through a restart of loadlined" {
	begin_service
	busy_as "$FIRST" one --project thesis-7
	shows 'select(.project == "thesis-7" and .configured_tenant == "research")'
	loadline --sim status --long | grep -q ", project thesis-7, "
	as "$SECOND" "$LOADLINE" --sim status --json | jq -s -e 'all(.project? == null)' >/dev/null
	wait_for 60 reports '.project == "thesis-7" and .used_seconds > 0.5' --by project
	stop service KILL
	serve
	wait_for 60 reports '.project == "thesis-7" and .used_seconds > 6' --by project
	[ "$(loadline --sim report --by project --json | jq -s length)" -eq 1 ]
	stop one KILL
	run as "$FIRST" "$LOADLINE" --sim run --project "a b" -- true
	[ "$status" -eq 125 ]
	[[ $output == *"--project: 'a b': not a name: ' '"* ]]
}

@test "accounts: projects: required refuses a job without one, no refuses one with one" {
	begin_service "accounts: {projects: required}"
	run as "$FIRST" "$LOADLINE" --sim run -- true
	[ "$status" -eq 125 ]
	[[ $output == *"tenant research: project: each job names one here: loadline run --project NAME"* ]]
	as "$FIRST" "$LOADLINE" --sim run --project thesis -- true
	write_config "accounts: {projects: \"no\"}"
	kill -HUP "$(pid_of service)"
	wait_for 60 eval 'as "$FIRST" "$LOADLINE" --sim run -- true'
	run as "$FIRST" "$LOADLINE" --sim run --project thesis -- true
	[ "$status" -eq 125 ]
	[[ $output == *"project: the configuration has no projects"* ]]
}

# bats test_tags=main
@test "a spent budget refuses new jobs with figures, running ones go on, and a restart forgets nothing" {
	budget="{gpu-hours: 0.01, per: month, then: borrow-only}"
	begin_service
	wait_for 60 eval 'as "$FIRST" "$LOADLINE" --sim limits --json | jq -s -e "any(.[].user_limits?[]?.budget; .granted_gpu_hours == 0 and .left_gpu_hours == 0.01)"'
	busy_as "$FIRST" one
	stop one KILL
	stop service TERM
	granted 29
	serve
	wait_for 60 grep -q "budget: tenant research was granted 0.00[89][0-9]* of the 0.01 GPU hours of this month" "$T/world/loadlined.log"
	busy_as "$FIRST" two
	wait_for 60 grep -q "budget: tenant research was granted .* GPU hours of this month: new jobs are refused" "$T/world/loadlined.log"
	run as "$FIRST" "$LOADLINE" --sim run -i 0 -- true
	[ "$status" -eq 125 ]
	[[ $output == *"tenant research: budget: 0.01 GPU hours a month, 0.01"*" granted; anew on 20"*"-01 (borrow-only acts as refuse)"* ]]
	as "$SECOND" "$LOADLINE" --sim run -i 0 -- true
	shows "select(has(\"claim\") and .pid == $(pid_of two))"
	as "$FIRST" "$LOADLINE" --sim limits | grep -q "^tenant research: budget 0.01 GPU hours a month, 0.01 granted, 0.00 left until .*; new jobs are refused"
	# A larger budget is in force at once.
	budget="{gpu-hours: 5, per: month, then: refuse}" write_config
	kill -HUP "$(pid_of service)"
	wait_for 60 eval 'as "$FIRST" "$LOADLINE" --sim run -i 0 -- true'
}

@test "with prices a report has costs, in each form, and only then" {
	begin_service "accounts: {currency: CNY, price-gpu-hour: 12.00, price-gib-hour: 0.04}"
	granted 7200
	sqlite3 "$T/$DATABASE" "UPDATE use SET memory_byte_s = 10.0 * 1073741824 * 3600"
	# 2 h of a card, and 10 GiB hours.
	reports '.cost == 24.4 and .currency == "CNY"'
	[ "$(loadline --sim report --csv | cut -d, -f10)" = $'cost\n24.400' ]
	loadline --sim report | head -1 | grep -q "cost CNY"
	loadline --sim report | grep -q " 24.40 "
	loadline --sim report --html "$T/costs.html"
	grep -q "<th>cost CNY</th>" "$T/costs.html"
	grep -q "<td>24.40</td>" "$T/costs.html"
	write_config
	kill -HUP "$(pid_of service)"
	wait_for 60 reports 'has("cost") | not'
	[ "$(loadline --sim report --csv | head -1)" = "tenant,granted_seconds,used_seconds,idle_held_seconds,memory_byte_seconds,joules,lent_seconds,borrowed_seconds,borrowed_memory_byte_seconds" ]
}

@test "visibility: others: all shows users the use of others, other words do not; operators see all" {
	begin_service
	granted 3600
	[ "$(as "$SECOND" "$LOADLINE" --sim report --json | wc -l)" -eq 0 ]
	[ "$(as "$FIRST" "$LOADLINE" --sim report --json | wc -l)" -eq 1 ]
	others=all write_config
	kill -HUP "$(pid_of service)"
	wait_for 60 eval '[ "$(as "$SECOND" "$LOADLINE" --sim report --json | wc -l)" -eq 1 ]'
	others=nothing write_config "operators: {users: [\"$SECOND\"]}"
	kill -HUP "$(pid_of service)"
	wait_for 60 eval 'as "$SECOND" "$LOADLINE" --sim limits --json | jq -s -e "any(.[].user_limits?[]?; .tenant == \"research\")"'
	[ "$(as "$SECOND" "$LOADLINE" --sim report --json | wc -l)" -eq 1 ]
	others=nothing write_config
	kill -HUP "$(pid_of service)"
	wait_for 60 eval '[ "$(as "$SECOND" "$LOADLINE" --sim report --json | wc -l)" -eq 0 ]'
}
