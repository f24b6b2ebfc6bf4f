# loadline config: check, show, diff, schema. The findings themselves are in tests/unit/config.
load helper

EXAMPLE=$BATS_TEST_DIRNAME/../../packaging/loadline-example.yaml

# checks FILE STATUS ARG...: config check ends so; its output is in $output.
checks() {
	local file=$1 wanted=$2
	shift 2
	run loadline "$@" config check "$file"
	echo "$output"
	[ "$status" -eq "$wanted" ]
}

@test "the department's example has no fault, on eight cards and on none" {
	run loadline config check --file-only "$EXAMPLE"
	[ "$status" -eq 0 ]
	[ "${lines[-1]}" = "0 faults, 1 warning; groups of cards: 3, tenants: 4" ]
	[[ ${lines[0]} == "$EXAMPLE: warning: accepted, not in force in this version: cards.by, "* ]]
	loadline --sim=h100x8 version || skip "no simulator in this build"
	checks "$EXAMPLE" 0 --sim=h100x8
	[[ $output != *"fault: "* && $output != *"no driver"* ]]
}

@test "a signal before the end of each job's time is warned of, SIGTERM is not" {
	printf 'version: 1\nreclaim: {warn: {signal: USR1, before: 60s}}\n' >"$T/usr1.yaml"
	run loadline config check --file-only "$T/usr1.yaml"
	[ "$status" -eq 0 ]
	[[ $output == *"$T/usr1.yaml:2:"*"warn: SIGUSR1 ends each program that does not handle it"* ]]
	printf 'version: 1\nreclaim: {warn: {signal: TERM, before: 60s}}\n' >"$T/term.yaml"
	run loadline config check --file-only "$T/term.yaml"
	[ "$status" -eq 0 ]
	[[ $output != *"SIGTERM"* ]]
}

@test "on another machine its cards are not there, and memory does not fit: by how much, and where" {
	loadline --sim=h100x8 version || skip "no simulator in this build"
	checks "$EXAMPLE" 1 --sim
	[[ $output == *"$EXAMPLE:11:27: fault: cards: not on this machine: 4, 5, 6"* ]]
	sed 's/memory: 120G/memory: 190G/' "$EXAMPLE" >"$T/new.yaml"
	checks "$T/new.yaml" 1 --sim=h100x8
	[[ $output == *"new.yaml:26:60: fault: guarantees in group parts: 250 GiB, and its cards have "*" GiB too much"* ]]
	[ "$(grep -c 'fault: ' <<<"$output")" -eq 1 ]
}

@test "MIG slices are cards of their own" {
	loadline --sim=mig version || skip "no simulator in this build"
	printf 'version: 1\ncards:\n  - {name: a, cards: "0:0,0:1", give: card}\n  - {name: b, cards: "%s", give: memory}\n' '0:2,0:3,0:4,0:5,0:6' >"$T/good.yaml"
	checks "$T/good.yaml" 0 --sim=mig
	sed 's/,0:6"/,0:7"/' "$T/good.yaml" >"$T/bad.yaml"
	checks "$T/bad.yaml" 1 --sim=mig
	[[ $output == *"bad.yaml:4:22: fault: cards: not on this machine: 0:7"* ]]
	[[ $output == *"bad.yaml:3:3: fault: cards: of this machine, and in no group: 0:6"* ]]
	printf 'version: 1\ncards: [{name: a, cards: "0", give: card}]\n' >"$T/whole.yaml"
	checks "$T/whole.yaml" 1 --sim=mig
	[[ $output == *"whole.yaml:2:26: fault: cards: card 0 is in MIG mode: name its slices, such as \"0:0\""* ]]
}

@test "exit statuses: 0 with warnings, 1 with faults or without a file, 2 for bad usage" {
	printf 'version: 1\nqueue: {wait: 3h}\n' >"$T/good.yaml"
	printf 'version: 1\nqueue: {wait: 3}\n' >"$T/bad.yaml"
	checks "$T/good.yaml" 0
	checks "$T/bad.yaml" 1
	[[ $output == *"$T/bad.yaml:2:15: fault: wait: "* ]]
	checks "$T/none.yaml" 1
	[[ $output == *"$T/none.yaml: No such file or directory"* ]]
	run loadline config check "$T/good.yaml" "$T/bad.yaml"
	[ "$status" -eq 2 ]
	run loadline config check --bogus
	[ "$status" -eq 2 ]
	run loadline config diff
	[ "$status" -eq 2 ]
	run -1 loadline config show "$T/bad.yaml"
	run -1 loadline config diff --from "$T/good.yaml" "$T/bad.yaml"
}

@test "JSON: one line for each finding, and one for all" {
	printf 'version: 1\nqueu: {}\nqueue: {wait: 3}\nslurm: {fence: shard}\n' >"$T/bad.yaml"
	loadline config check --file-only --json "$T/bad.yaml" >"$T/out" && false
	[ "$(jq -s 'length' "$T/out")" -eq 4 ]
	jq -se '.[1] == {level: "fault", file: "'"$T/bad.yaml"'", line: 2, column: 1, text: "unknown key '\''queu'\'': did you mean '\''queue'\''?"}' "$T/out"
	jq -se '.[-1] == {faults: 2, warnings: 1, cards_compared: false}' "$T/out"
}

@test "show prints a file that means the same, and says what is not in force" {
	loadline config show "$EXAMPLE" >"$T/shown.yaml"
	[[ $(head -1 "$T/shown.yaml") == "# Not in force in this version: cards.by, "* ]]
	[ "$(loadline config diff --from "$EXAMPLE" "$T/shown.yaml")" = "no difference" ]
	loadline config show "$T/shown.yaml" | cmp - "$T/shown.yaml"
	loadline config show --origin "$T/shown.yaml" | cmp - <(loadline config show --origin "$T/shown.yaml")
	loadline config show --json "$EXAMPLE" >"$T/shown.json"
	jq -e '.configuration.tenants[0].guarantee[1] == {of: "parts", memory_bytes: 128849018880, compute_percent: 150}' "$T/shown.json"
	jq -e '.configuration.queue.half_life_s == 604800 and (.not_in_force | index("cards.by") and (index("reclaim.stop.requeue") | not) and (index("reclaim.steps") | not) and (index("queue") | not) and (index("tenants.budget") | not) and (index("tenants") | not))' "$T/shown.json"
}

@test "each value's place: a file's line, a drop-in's, or the default" {
	mkdir -p "$T/etc/loadline.d"
	printf 'version: 1\nqueue: {wait: 3h, half-life: 2d}\n' >"$T/etc/loadline.yaml"
	printf 'queue:\n  wait: 4h\n' >"$T/etc/loadline.d/10-wait.yaml"
	loadline config show --origin "$T/etc" >"$T/out"
	cat "$T/out"
	grep -Eqx "  half-life: 2d +# $T/etc/loadline.yaml:2:30" "$T/out"
	grep -Eqx "  wait: 4h +# $T/etc/loadline.d/10-wait.yaml:2:9" "$T/out"
	grep -Eqx "  backfill: true +# default" "$T/out"
	loadline config show --origin --json "$T/etc" | jq -e '.configuration.queue | .backfill.file == null and .wait_s.line == 2'
	printf 'queue: {wiat: 4h}\n' >"$T/etc/loadline.d/20.yaml"
	checks "$T/etc" 1
	[[ $output == *"$T/etc/loadline.d/20.yaml:1:9: fault: unknown key 'wiat': did you mean 'wait'?"* ]]
}

@test "diff is by meaning, not by text" {
	printf '%s\n' 'version: 1' 'cards: [{name: a, cards: "0-2", give: memory}]' 'tenants:' \
		'  - {name: x, members: {users: [x, y]}, keep-free: 0, guarantee: [{of: a, memory: 1G}]}' \
		'  - {name: y, members: {groups: [y]}, weight: 2}' '  - {name: z, members: {groups: [z]}}' >"$T/old.yaml"
	printf '%s\n' '# the same' 'tenants:' \
		'  - {members: {users: [y, "x"]}, name: x, weight: 1, keep-free: 0, guarantee: [{memory: 1024M, of: a}]}' \
		'  - {name: y, members: {groups: [y]}, weight: 2}' '  - {name: z, members: {groups: [z]}}' \
		'cards: [{name: a, cards: "0,1,2", give: memory}]' 'version: 1' >"$T/same.yaml"
	[ "$(loadline config diff --from "$T/old.yaml" "$T/same.yaml")" = "no difference" ]
	printf '%s\n' 'version: 1' 'cards: [{name: a, cards: "0-2", give: memory}]' 'tenants:' \
		'  - {name: y, members: {groups: [y]}, weight: 3}' \
		'  - {name: x, members: {users: [x, y]}, keep-free: 0, guarantee: [{of: a, memory: 2G}]}' \
		'  - {name: w, members: {groups: [w]}}' 'queue: {wait: 90m}' >"$T/new.yaml"
	run -0 loadline config diff --from "$T/old.yaml" "$T/new.yaml"
	echo "$output"
	[ "${lines[0]}" = "  tenants[x].guarantee: [{of: a, memory: 1G}] -> [{of: a, memory: 2G}]" ]
	[ "${lines[1]}" = "  tenants[y].weight: 2 -> 3" ]
	[[ ${lines[2]} == "- tenants[z]: {name: z, "* ]]
	[[ ${lines[3]} == "+ tenants[w]: {name: w, "* ]]
	[ "${lines[4]}" = "  tenants: order: x, y, z -> y, x, w" ]
	[ "${lines[5]}" = "+ queue.wait: 90m" ]
	[ "${#lines[@]}" -eq 6 ]
}

@test "the table of keys is the manual page and the schema too" {
	loadline help --man loadline.yaml >"$T/page"
	loadline config schema >"$T/schema"
	grep -q '^\.TH LOADLINE.YAML 5' "$T/page"
	local key
	for key in $(jq -r '.properties | keys[]' "$T/schema") 'tenants[].each\-user.max\-time' 'reclaim.stop.grace'; do
		grep -qxF "\\fB${key//-/\\-}\\fR" "$T/page" || grep -qxF "\\fB$key\\fR" "$T/page"
	done
	jq -e '.properties.tenants.items.properties.weight | .minimum == 1 and .maximum == 1000' "$T/schema"
	jq -e '.properties.cards.items.required == ["name", "cards", "give"]' "$T/schema"
	# The example is valid by the schema, where there is a validator.
	if python3 -c 'import jsonschema, yaml' 2>/dev/null; then
		python3 -c 'import json, jsonschema, sys, yaml; jsonschema.validate(yaml.safe_load(open(sys.argv[1])), json.load(open(sys.argv[2])))' "$EXAMPLE" "$T/schema"
	fi
}

@test "the findings are in Chinese, JSON is not" {
	[ -e "$LOADLINE_BUILD/po/zh_CN/LC_MESSAGES/loadline.mo" ] || skip "this build has no translations"
	printf 'version: 1\nqueu: {}\n' >"$T/bad.yaml"
	env -u LANG -u LC_MESSAGES LANG=zh_CN.UTF-8 "$LOADLINE" config check "$T/bad.yaml" >"$T/out" && false
	grep -qF ":2:1: 错误: 未知的键 'queu': 是不是想写 'queue'?" "$T/out"
	env -u LANG -u LC_MESSAGES LANG=zh_CN.UTF-8 "$LOADLINE" config check --json "$T/bad.yaml" >"$T/out" && false
	grep -qF "unknown key" "$T/out"
}
