# What people are told of: on the terminals of their jobs, and by commands.
# shellcheck disable=SC2153 # FIRST is of service_helper.bash
load helper
load jobs_helper
load service_helper

# start_service [ARG]...: of loadlined, with the configuration $T/conf/loadline.yaml; root's runs as nobody.
start_service() {
	local user=()
	[ -e "$T/conf/loadline.yaml" ] || write_config
	[ "$(id -u)" -ne 0 ] || user=(--user nobody)
	loadline --sim status >/dev/null # root makes the world's files
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system "${user[@]}" --config "$T/conf" "$@"
	wait_for 60 serves
}
# start_sensor: loadlined makes a queue when it reports.
start_sensor() {
	local as=()
	[ "$(id -u)" -ne 0 ] || as=(setpriv --reuid "$(id -u nobody)" --regid "$(id -g nobody)" --clear-groups)
	start_program sensor "${as[@]}" env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" \
		"$LOADLINE_BUILD/src/sensor/loadline-sensor" --every 0.5
	wait_for 60 eval 'loadline --sim queue list >"$T/list.out" 2>&1'
}

# start_notify [ARG]...: commands may lie in $T/hooks.
start_notify() {
	local user=()
	[ "$(id -u)" -ne 0 ] || user=(--client nobody --user nobody)
	start_program notify "$LOADLINE_BUILD/src/notify/loadline-notify" --from "$T/hooks" "${user[@]}" "$@"
}

# write_config [LINE]...: lines are put at the end.
write_config() {
	chmod 755 "$T"
	[ "$(id -u)" -ne 0 ] || chmod 777 "$T/world"
	mkdir -p "$T/hooks" "$T/told"
	chmod 777 "$T/told"
	config_file "$@" <<-END
		version: 1
		cards:
		  - {name: parts, cards: "0", give: memory, by: auto}
		tenants:
		  - name: research
		    members: {users: ["*"]}
		reclaim: {warn: {signal: USR1, before: 3s}, stop: {signal: TERM, grace: 5s}}
	END
}

# make_hook NAME: a command that writes what it gets to $T/told/NAME; a shell script from standard input follows.
make_hook() {
	{
		printf '#!/bin/sh\ncat >>"%s"\n' "$T/told/$1"
		cat
	} >"$T/hooks/$1"
	chmod 755 "$T/hooks/$1"
}

# told NAME FILTER: has the command got such an event?
told() {
	jq -e -s "any(.[]; $2)" "$T/told/$1"
}

# journal TEXT: does loadlined's journal have it?
journal() {
	grep -qF -- "$1" "$T/world/loadlined.log"
}

notify_says() {
	grep -qF -- "$1" "$T/notify.err"
}

# told_apart SECONDS: by their times, are there at least so many between each two events that the command user has got? Their times have whole
# seconds, so what comes again after N s may be N - 1 apart.
told_apart() {
	jq -e -s --argjson least "$1" '[.[].time[:19] | strptime("%Y-%m-%dT%H:%M:%S") | mktime] | sort | [.[1:], .[:-1]] | transpose | all(.[0] - .[1] >= $least)' \
		"$T/told/user"
}

# listen_http ANSWER: a web server, which writes each request to $T/requests.out as JSON, and answers so. Its port is in $port.
listen_http() {
	cat >"$T/listen.py" <<-'END'
		import http.server, json, sys

		class Handler(http.server.BaseHTTPRequestHandler):
		    def do_POST(self):
		        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
		        print(json.dumps({"path": self.path, "headers": dict(self.headers), "body": json.loads(body)}), flush=True)
		        self.send_response(200)
		        self.end_headers()
		        self.wfile.write(sys.argv[1].encode())

		    def log_message(self, *words):
		        pass

		server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
		print(server.server_port, file=sys.stderr, flush=True)
		server.serve_forever()
	END
	start_program requests python3 "$T/listen.py" "$1"
	wait_for 60 test -s "$T/requests.err"
	read -r port <"$T/requests.err"
}

EVENT='{"event":"stopped","time":"2026-12-03T14:00:00+0100","host":"gpu1","text":"the time is over","job":12,"tenant":"research",
"uid":1001,"user":"alice","command":"python","card":3,"slice":null,"uuid":"GPU-1","dropped":0}'

# sample NAME [SED]...: a copy of the sample, filled in.
sample() {
	local name=$1
	shift
	sed "${@/#/-e}" "$BATS_TEST_DIRNAME/../../packaging/notify/$name" >"$T/$name"
	chmod 755 "$T/$name"
}

# as_user COMMAND...: for start_program: as a user of jobs. Root's tests take another user.
as_user() {
	[ "$(id -u)" -ne 0 ] || set -- setpriv --reuid "$FIRST" --regid "$FIRST" --clear-groups "$@"
	exec "$@"
}

@test "the end of a job's time is told on its terminal, and to a command as JSON" {
	write_config 'notify:' '  - {events: [time-ending, stopped], to: tty}' \
		"  - {events: [time-ending, stopped], command: $T/hooks/user}"
	make_hook user </dev/null
	start_service
	start_notify
	start_sensor
	printf '#!/bin/sh\ntrap : USR1\nwhile :; do sleep 0.2; done\n' >"$T/job"
	chmod 755 "$T/job"
	start_program terminal as_user script -qefc "$LOADLINE --sim run --mem 1G --time 5s -- $T/job" /dev/null
	finish terminal
	tr -d '\r' <"$T/terminal.out" | grep -Ex 'loadline: the time of job [0-9]+ ends in [1-3] s'
	tr -d '\r' <"$T/terminal.out" | grep -Ex 'loadline: job [0-9]+ is stopped: its time is over; it is killed if it has not ended in 5 s'
	wait_for 60 told user '.event == "stopped"'
	told user '.event == "time-ending" and .tenant == "research" and .command == "job" and (.job > 0) and .card == null and .dropped == 0'
	told user ".uid == $([ "$(id -u)" -eq 0 ] && echo "$FIRST" || id -u)"
	[ "$(wc -l <"$T/told/user")" -eq 2 ]
	journal 'time-ending: the time of job'
}

@test "without a word in the configuration the end of a job's time is told on its terminal; a list of events for terminals replaces that" {
	write_config
	start_service
	start_sensor
	printf '#!/bin/sh\ntrap : USR1\nwhile :; do sleep 0.2; done\n' >"$T/job"
	chmod 755 "$T/job"
	start_program silent as_user "$LOADLINE" --sim run --mem 1G --time 3s -- "$T/job"
	finish silent
	grep -Eq 'loadline: job [0-9]+ is stopped: its time is over' "$T/silent.err"
	write_config 'notify:' '  - {events: [idle-holder], to: tty}'
	kill -HUP "$(pid_of service)"
	start_program other as_user "$LOADLINE" --sim run --mem 1G --time 3s -- "$T/job"
	finish other
	lacks "is stopped" cat "$T/other.err"
}

@test "a job whose errors go to a pipe, to a file, or to the log of submit is told there, and writes on behind it" {
	write_config 'notify:' '  - {events: [time-ending], to: tty}'
	start_service
	start_sensor
	start_program piped sh -c "exec 2>&1; \"\$@\" | cat" sh "$LOADLINE" --sim run --mem 1G --time 5s -- \
		sh -c 'trap "" USR1; sleep 4; echo after >&2; sleep 60'
	start_program appended sh -c 'exec "$@" 2>>"'"$T"'/log"' sh "$LOADLINE" --sim run --mem 1G --time 5s -- \
		sh -c 'trap "" USR1; echo before >&2; sleep 4; echo after >&2; sleep 60'
	XDG_STATE_HOME=$T/state loadline --sim submit --mem 1G --time 5s --output "$T/submitted" -- \
		sh -c 'trap "" USR1; sleep 60'
	wait_for 60 grep -Eq '^loadline: the time of job [0-9]+ ends in [1-3] s$' "$T/submitted"
	finish piped
	finish appended
	grep -Eq '^loadline: the time of job [0-9]+ ends in [1-3] s$' "$T/piped.out"
	[ "$(sed -E 's/^(loadline: the time).*/\1/' "$T/log")" = $'before\nloadline: the time\nafter' ]
}

@test "commands that fail, hang, or are not root's alone: each is said in the journal, and others go on" {
	write_config 'notify:' "  - {events: [config], command: $T/hooks/fails}" "  - {events: [config], command: $T/hooks/hangs}" \
		"  - {events: [config], command: $T/hooks/open}" "  - {events: [config], command: /bin/true}" \
		"  - {events: [config], command: $T/hooks/missing}" "  - {events: [config], command: $T/hooks/link}" \
		"  - {events: [config], command: $T/hooks/good}"
	make_hook fails <<<'exit 3'
	make_hook hangs <<<"sleep 300 & echo \$! >$T/told/left; sleep 300"
	make_hook open </dev/null
	chmod 777 "$T/hooks/open"
	ln -s /bin/false "$T/hooks/link"
	make_hook good </dev/null
	start_service
	start_notify --deadline 1
	echo 'nonsense: 1' >>"$T/conf/loadline.yaml"
	kill -HUP "$(pid_of service)"
	wait_for 60 told good '.event == "config" and .job == null and .user == null and (.text | test("stays in force: .*nonsense"))'
	wait_for 60 notify_says "config: $T/hooks/fails failed with status 3"
	wait_for 60 notify_says "config: $T/hooks/hangs did not end in time"
	notify_says "config: not told: $T/hooks/open: others than its owner may write to it"
	notify_says "config: not told: $(realpath /bin/true): not in a folder for such commands"
	notify_says "config: not told: $(realpath /bin/false): not in a folder for such commands"
	notify_says "config: not told: $T/hooks/missing: No such file or directory"
	# What the command has left ends with it.
	wait_for 60 has_ended "$(cat "$T/told/left")"
	[ ! -e "$T/told/open" ]
	sed -i '/^nonsense/d' "$T/conf/loadline.yaml"
	kill -HUP "$(pid_of service)"
	wait_for 60 told good '.text == "the configuration has no faults any more"'
}

# faulty_reloads FROM TO: so many reloads with a fault, each of which is seen in the journal before the next.
faulty_reloads() {
	local number
	for ((number = $1; number <= $2; number++)); do
		kill -HUP "$(pid_of service)"
		wait_for 60 reloads_are "$number"
	done
}

reloads_are() {
	[ "$(grep -c "config: the former configuration stays in force" "$T/world/loadlined.log")" -eq "$1" ]
}

notify_in_doctor() {
	loadline --sim doctor --no-trial | grep loadline-notify
}

@test "events wait for loadline-notify, and those beyond 128 are dropped, which is said with the next one" {
	write_config 'notify:' "  - {events: [config], command: $T/hooks/oncall}"
	make_hook oncall </dev/null
	start_service
	echo 'nonsense: 1' >>"$T/conf/loadline.yaml"
	faulty_reloads 1 131
	journal "notify: events wait: loadline-notify does not listen"
	[ "$(grep -c "notify: events are dropped: 128 wait" "$T/world/loadlined.log")" -eq 1 ]
	notify_in_doctor | grep '^warn: loadlined: no loadline-notify serves it: 128 events wait for the commands of `notify`'
	start_notify
	wait_for 60 eval '[ "$(wc -l <"$T/told/oncall")" -eq 128 ]'
	faulty_reloads 132 132
	wait_for 60 told oncall '.dropped == 3'
	journal "notify: 3 events were dropped"
	[ "$(wc -l <"$T/told/oncall")" -eq 129 ]
	serves # so doctor has asked it
	run ! notify_in_doctor
	notify_says "3 events before this one were dropped"
	# It starts anew, and loadlined finds it.
	stop notify
	start_notify
	faulty_reloads 133 133
	wait_for 60 eval '[ "$(wc -l <"$T/told/oncall")" -eq 130 ]'
}

@test "a damaged database of the accounts is told, and one that is empty or was removed" {
	write_config 'notify:' "  - {events: [database], command: $T/hooks/oncall}"
	make_hook oncall </dev/null
	mkdir -m 777 "$T/state"
	chmod 777 "$T/state"
	echo "this is no database, and longer than the header of one, which has a hundred bytes and begins with SQLite" >"$T/state/accounts.db"
	chmod 666 "$T/state/accounts.db"
	start_notify
	start_service --state "$T/state"
	wait_for 60 told oncall '.event == "database" and (.text | test("was damaged; it is .*accounts.db.damaged"))'
	stop service
	: >"$T/state/accounts.db"
	rm -f "$T/state"/accounts.db-*
	: >"$T/told/oncall"
	start_service --state "$T/state"
	wait_for 60 told oncall '.event == "database" and (.text | test("accounts.db was missing or empty; the accounts begin now"))'
	: >"$T/told/oncall"
	rm "$T/state/accounts.db"
	start_program busy as_user "$LOADLINE" --sim run --mem 8G -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 50% kernel 5ms memory 1G for 300s
	wait_for 60 told oncall '.event == "database" and (.text | test("was missing or empty"))'
	[ -s "$T/state/accounts.db" ]
}

@test "the sample for mail writes to the user of the event, and to the administrators of one without" {
	printf '#!/bin/sh\necho "$@" >>%s\ncat >>%s\n' "$T/words" "$T/mail.txt" >"$T/sendmail"
	chmod 755 "$T/sendmail"
	sample mail "s|^SENDMAIL = .*|SENDMAIL = \"$T/sendmail\"|"
	"$T/mail" <<<"$EVENT"
	grep -qx "To: alice@example.com" "$T/mail.txt"
	grep -qx "Subject: \[gpu1\] stopped: the time is over" "$T/mail.txt"
	grep -qx "job: 12" "$T/mail.txt"
	[ "$(cat "$T/words")" = "-t -oi" ]
	jq '.user = null | .job = null' <<<"$EVENT" | "$T/mail"
	grep -qx "To: gpu-admin@example.com" "$T/mail.txt"
	printf '#!/bin/sh\nexit 75\n' >"$T/sendmail"
	run "$T/mail" <<<"$EVENT"
	[ "$status" -eq 75 ]
}

@test "the samples for DingTalk, Feishu and WeCom send what these take, signed, and fail if it is refused" {
	listen_http '{"errcode":0,"code":0}'
	sample dingtalk "s|^URL = .*|URL = \"http://127.0.0.1:$port/robot/send?access_token=1\"|" 's|^SECRET = .*|SECRET = "SEC1"|'
	sample feishu "s|^URL = .*|URL = \"http://127.0.0.1:$port/hook\"|" 's|^SECRET = .*|SECRET = "SEC1"|'
	sample wecom "s|^URL = .*|URL = \"http://127.0.0.1:$port/send?key=1\"|" 's|^MENTIONS_USER = .*|MENTIONS_USER = True|'
	"$T/dingtalk" <<<"$EVENT"
	"$T/feishu" <<<"$EVENT"
	"$T/wecom" <<<"$EVENT"
	has requests '.body.msgtype == "text" and .body.text.content == "loadline gpu1, stopped: the time is over (alice)" and (.path | test("access_token=1&timestamp=[0-9]{13}&sign=."))'
	has requests '.body.msg_type == "text" and .body.content.text == "loadline gpu1, stopped: the time is over (alice)" and .body.sign'
	has requests '.body.text.mentioned_list == ["alice"]'
	# The signatures, computed by another program.
	local now sign
	now=$(json requests '.path | capture("timestamp=(?<t>[0-9]+)").t' | head -n 1)
	sign=$(printf '%s\n%s' "$now" SEC1 | openssl dgst -sha256 -hmac SEC1 -binary | base64)
	[ "$(json requests '.path | capture("sign=(?<s>.+)").s' | head -n 1 | python3 -c 'import urllib.parse; print(urllib.parse.unquote(input()))')" = "$sign" ]
	now=$(json requests '.body.timestamp // empty')
	sign=$(printf '' | openssl dgst -sha256 -hmac "$now"$'\n'SEC1 -binary | base64)
	[ "$(json requests '.body.sign // empty')" = "$sign" ]
	stop requests
	listen_http '{"errcode":310000,"code":19024}'
	local name
	for name in dingtalk feishu wecom; do
		sed -i "s|127.0.0.1:[0-9]*|127.0.0.1:$port|" "$T/$name"
		run "$T/$name" <<<"$EVENT"
		[ "$status" -ne 0 ]
		[[ $output == *refuses* ]]
	done
}

@test "the sample for a web address posts the event as it is" {
	command -v curl >/dev/null || skip "this machine has no curl"
	listen_http ok
	sample webhook "s|^URL=.*|URL=http://127.0.0.1:$port/events|" 's|^HEADER=.*|HEADER="Authorization: Bearer 1"|'
	"$T/webhook" <<<"$EVENT"
	has requests '.path == "/events" and .headers.Authorization == "Bearer 1" and .body.job == 12 and .body.event == "stopped"'
	stop requests
	run "$T/webhook" <<<"$EVENT"
	[ "$status" -ne 0 ]
}

# busy_job NAME [OPTION]... -- WORD...: a job of `run` that uses card 0 as simctl's busy does.
busy_job() {
	local name=$1 options=()
	shift
	[ -x "$LOADLINE_BUILD/tests/e2e/launcher" ] || skip "nothing can be preloaded in this build"
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	start_program "$name" as_user "$LOADLINE" --sim run "${options[@]}" -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 "$@"
	wait_for 60 grep -q "^busy: pid" "$T/$name.out"
}

@test "a job that holds memory and launches nothing is told, again only after a while, and one that works is not" {
	write_config 'idle-holder: {memory: 2G, idle: 2s, again: 6s}' 'notify:' "  - {events: [idle-holder], command: $T/hooks/user}" \
		'  - {events: [idle-holder], to: tty}'
	make_hook user </dev/null
	start_service
	start_notify
	busy_job small --tenant research -- memory 1G kernel 1ms sleep 200s
	busy_job worker --tenant research -- memory 3G kernel 1ms sleep 20ms
	busy_job holder --tenant research -- memory 3G kernel 1ms sleep 200s
	wait_for 60 eval '[ "$(grep -c . "$T/told/user")" -ge 2 ]'
	told_apart 5
	jq -e -s 'all(.[]; .text | test("^job [0-9]+ holds 3\\.[0-9] GiB of memory, and has had no work for [0-9]+ s$"))' "$T/told/user"
	[ "$(jq -s 'map(.job) | unique | length' "$T/told/user")" -eq 1 ]
	grep -q "^loadline: job [0-9]* holds 3" "$T/holder.err"
	lacks "loadline: job" cat "$T/small.err" "$T/worker.err"
}

@test "a tenant whose jobs use little of what they hold is told once in the time, and one that works is not" {
	write_config 'notify:' "  - {events: [low-use], command: $T/hooks/user}"
	sed -i 's|^reclaim:|  - {name: course, members: {users: ["*"]}}\n&|' "$T/conf/loadline.yaml"
	make_hook user </dev/null
	start_service
	start_notify
	# Kernels are so long that it does not matter what a busy host takes between two of them.
	busy_job worker --tenant course -- kernel 1s
	busy_job lazy --tenant research -- kernel 100ms sleep 1900ms
	# The time begins when both work.
	wait_for 60 used course 1
	wait_for 60 used research 0.1
	echo 'low-use: {mean: 30%, over: 6s, of: tenant}' >>"$T/conf/loadline.yaml"
	kill -HUP "$(pid_of service)"
	wait_for 60 eval '[ "$(grep -c . "$T/told/user")" -ge 2 ]'
	jq -e -s 'all(.[]; .event == "low-use" and .tenant == "research" and .job == null)' "$T/told/user"
	jq -e -s 'all(.[].text; capture("^the jobs of tenant research have used (?<use>[0-9.]+) % of the card time that they held in the last 6 s$").use | tonumber | . > 1 and . < 10)' "$T/told/user"
	told_apart 5
	sed -i 's|of: tenant|of: user|' "$T/conf/loadline.yaml"
	kill -HUP "$(pid_of service)"
	stop worker
	wait_for 60 told user '.event == "low-use" and .tenant == null and (.uid != null)'
}

@test "a kernel that does not end is told, and the job is stopped where that is configured" {
	# The simulated card is threads of this host: one that stands still for as long lets no kernel end.
	write_config 'endless-kernel: {after: 8s, action: report}' 'notify:' \
		"  - {events: [endless-kernel, stopped], command: $T/hooks/user}"
	make_hook user </dev/null
	start_service
	start_notify
	start_sensor
	busy_job short --mem 1G --time 1h -- kernel 100ms
	busy_job endless --mem 1G --time 1h -- kernel 300s
	wait_for 60 told user '.event == "endless-kernel" and .card == 0 and (.text | test("has had work on card GPU-.* for ([89]|1[0-3]) s, and none of it has been completed$"))'
	sleep 9
	cat "$T/told/user"
	[ "$(wc -l <"$T/told/user")" -eq 1 ]
	is_running endless
	sed -i 's|action: report|action: stop|' "$T/conf/loadline.yaml"
	kill -HUP "$(pid_of service)"
	busy_job another --mem 1G --time 1h -- kernel 300s
	wait_for 60 has_ended "$(pid_of another)"
	told user '.event == "stopped" and (.text | test("is stopped: a kernel of it does not end"))'
	is_running short
}

@test "a kernel that does not end stops the whole job, also what has detached itself and takes no SIGTERM" {
	write_config 'endless-kernel: {after: 3s, action: stop}'
	start_service
	start_sensor
	install -m 666 /dev/null "$T/detached"
	# shellcheck disable=SC2016
	start_program endless as_user "$LOADLINE" --sim run --mem 1G --time 1h -- \
		sh -c 'setsid sh -c "trap : TERM; echo \$\$ >$1; $0 busy 0 kernel 300s & while :; do wait; sleep 0.1; done" & wait' \
		"$LOADLINE_BUILD/sim/loadline-simctl" "$T/detached"
	wait_for 60 grep -q "^busy: pid" "$T/endless.out"
	wait_for 60 has_ended "$(cat "$T/detached")"
	wait_for 60 shows_none 'has("claim")'
	finish endless
}

# write_health [ARG]...: of loadlined; a configuration for the eight cards of h100x8, whose faults are told to $T/hooks/oncall.
write_health() {
	write_config 'health: {drain-xid: [48, 79], drain: [row-remap-failure, ecc-uncorrected], warn: [row-remap-pending, thermal-slowdown, nvlink-errors]}' \
		'notify:' "  - {events: [unhealthy, drained], command: $T/hooks/oncall}"
	sed -i 's|cards: "0"|cards: "0-7"|' "$T/conf/loadline.yaml"
	make_hook oncall </dev/null
	loadline --sim=h100x8 status >/dev/null
	start_service "$@"
	start_notify
	start_sensor
}
# drained CARD REASON: in the queue's windows, and in status?
drained() {
	loadline --sim queue list --json | jq -e -s "any(.[]; .window.cards == [$1] and .window.reason == \"$2\")" &&
		loadline --sim queue list | grep -F "card $1: gets no jobs ($2) from" &&
		loadline --sim status | grep -E "^$1 .*drained: $2" &&
		loadline --sim status --json | jq -e -s "any(.[]; .card == $1 and .drained and .drained_for == \"$2\")"
}

@test "a card with an Xid of the list is drained by itself, and the same old Xid does not drain it again" {
	write_health
	simctl card 3 xid 48
	wait_for 60 drained 3 "Xid 48"
	wait_for 60 told oncall '.event == "drained" and .card == 3 and .job == null and (.text | test("^card 3 \\(GPU-.*\\) gets no more jobs: Xid 48$"))'
	simctl card 4 xid 31 # a program's fault
	wait_for 60 journal "card 4"
	sleep 1
	loadline --sim queue list --json | jq -e -s '[.[].window.cards] == [[3]]'
	# An operator, here the administrator root, puts it back.
	[ "$(id -u)" -eq 0 ] || return 0
	loadline --sim queue drain 3 --undo
	wait_for 60 told oncall '.text | test("stops draining cards 0x8")'
	sleep 2
	loadline --sim queue list --json | jq -e -s '[.[] | select(.window)] == []'
	loadline --sim status --json | jq -e -s 'all(.[] | select(has("drained")); .drained | not)'
	simctl card 3 xid 48
	wait_for 60 drained 3 "Xid 48"
}

# has_window CARD REASON
has_window() {
	loadline --sim queue list --json | jq -e -s "any(.[]; .window.cards == [$1] and .window.reason == \"$2\")"
}

@test "a card that falls off the bus gets no jobs, and the sensor goes on reporting the others" {
	write_health
	simctl card 3 xid 79
	wait_for 60 has_window 3 "Xid 79"
	wait_for 60 has_window 3 lost
	sleep 2
	run ! grep "Broken pipe\|Connection reset" "$T/sensor.err"
	simctl card 4 xid 48
	wait_for 60 has_window 4 "Xid 48"
}

@test "conditions of a card drain it or are told, once for each time that they come" {
	write_health
	simctl card 0 ecc-uncorrected 2
	simctl card 1 row-remap-failure on
	simctl card 2 row-remap-pending on
	simctl card 5 slowdown on
	wait_for 60 drained 0 ecc-uncorrected
	wait_for 60 drained 1 row-remap-failure
	wait_for 60 told oncall '.event == "unhealthy" and .card == 2 and (.text | test("reports row-remap-pending"))'
	wait_for 60 told oncall '.event == "unhealthy" and .card == 5 and (.text | test("reports thermal-slowdown"))'
	simctl card 6 nvlink-errors 40
	wait_for 60 told oncall '.event == "unhealthy" and .card == 6 and (.text | test("reports nvlink-errors \\(40\\)"))'
	sleep 4
	[ "$(wc -l <"$T/told/oncall")" -eq 5 ]
	loadline --sim queue list --json | jq -e -s '[.[].window.cards] | sort == [[0], [1]]'
	simctl card 5 slowdown off
	sleep 4
	simctl card 5 slowdown on
	wait_for 60 eval '[ "$(jq -s "map(select(.card == 5)) | length" "$T/told/oncall")" -eq 2 ]'
	[ "$(id -u)" -eq 0 ] || return 0
	loadline --sim queue drain 0,1 --undo
	sleep 4
	loadline --sim queue list --json | jq -e -s '[.[] | select(.window)] == []'
	simctl card 0 ecc-uncorrected 3
	wait_for 60 drained 0 ecc-uncorrected
}

@test "a condition that lasts drains a card once, also after a restart of loadlined" {
	[ "$(id -u)" -eq 0 ] || skip "an operator, here root, puts the card back"
	install -d -o nobody -m 700 "$T/state"
	write_health --state "$T/state"
	simctl card 1 row-remap-failure on
	wait_for 60 drained 1 row-remap-failure
	loadline --sim queue drain 1 --undo
	wait_for 60 eval '! has_window 1 row-remap-failure'
	stop service KILL
	start_service --state "$T/state"
	simctl card 2 ecc-uncorrected 1 # when this is told the sensor has reported the other card too
	wait_for 60 drained 2 ecc-uncorrected
	run ! has_window 1 row-remap-failure
	simctl card 1 row-remap-failure off
	simctl card 4 ecc-uncorrected 1
	wait_for 60 drained 4 ecc-uncorrected
	simctl card 1 row-remap-failure on
	wait_for 60 drained 1 row-remap-failure
}

@test "an evicted job is told on its terminal, and again when it goes on" {
	[ -x "$LOADLINE_BUILD/tests/e2e/launcher" ] || skip "nothing can be preloaded in this build"
	write_config 'notify:' '  - {events: [evicted, resumed], to: tty}' "  - {events: [evicted, resumed], command: $T/hooks/user}"
	make_hook user </dev/null
	start_service
	start_notify
	start_program worker as_user "$LOADLINE" --sim run --tenant research --evictable -- \
		"$LOADLINE_BUILD/tests/e2e/evict_worker" --seconds 1000s
	wait_for 60 has worker 'select(.event == "ready")'
	loadline --sim evict research
	wait_for 60 told user '.event == "evicted" and .tenant == "research" and (.uuid | startswith("GPU-")) and (.text | test("has left card GPU-.*: somebody evicted it$"))'
	wait_for 60 grep -Eq '^loadline: job [0-9]+ waits, and its memory' "$T/worker.err"
	loadline --sim resume research
	wait_for 60 told user '.event == "resumed"'
	wait_for 60 grep -Eq '^loadline: job [0-9]+ goes on, and its memory is back' "$T/worker.err"
}

@test "a program outside of jobs is told once, with its user, command and card" {
	write_config 'notify:' "  - {events: [ungoverned, stopped], command: $T/hooks/user}"
	make_hook user </dev/null
	start_service
	start_notify
	start_sensor
	start_program stranger as_user env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE_BUILD/sim/loadline-simctl" busy 0
	wait_for 60 told user '.event == "ungoverned" and .card == 0 and .job == null and .command == "loadline-simctl"'
	told user ".uid == $([ "$(id -u)" -eq 0 ] && echo "$FIRST" || id -u)"
	sleep 2
	[ "$(wc -l <"$T/told/user")" -eq 1 ]
}
