# shellcheck disable=SC2030,SC2031 # each test is a subshell, and sets its own address
# loadline-exporter: metrics of the system's loadlined for Prometheus, against a real promtool and a real Prometheus.
export NEEDS="jq python3 sim/loadline-simctl"
load helper
load jobs_helper
load service_helper

EXPORTER=61236 # an ordinary user, as the unit's
CLIENT=$BATS_TEST_DIRNAME/metrics_client.py
PACKAGING=$BATS_TEST_DIRNAME/../../packaging/prometheus

# write_config [LINE]...: two cards by memory, two tenants.
write_config() {
	config_file "$@" <<-END
		version: 1
		visibility: {others: ${others-user-and-share}, commands: own}
		cards: [{name: parts, cards: "0-1", give: memory}]
		tenants:
		  - {name: research, members: {users: ["$FIRST"]}, guarantee: [{of: parts, memory: 20G}]}
		  - {name: course, members: {users: ["*"]}, limit: [{of: parts, memory: 40G, compute: 150%}]}
		defaults: {memory: 16G}
	END
}

# begin_service [COMMAND...]: the system's loadlined of user nobody with accounts, by way of the command, and its sensor.
begin_service() {
	echo "cards 2" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	open_world
	mkdir "$T/state"
	chown nobody "$T/state"
	[ -e "$T/conf/loadline.yaml" ] || write_config 'serve: {metrics: "127.0.0.1:9409"}'
	start_daemon "$@"
	start_sensor_as
}

start_daemon() {
	start_program service "$@" "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf" --state "$T/state"
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep -q "the system.s: it governs"'
}
# begin_exporter [UID]: serves at a port that the kernel chooses; $address.
begin_exporter() {
	start_as "${1-$EXPORTER}" exporter "$LOADLINE_BUILD/src/exporter/loadline-exporter" --listen 127.0.0.1:0
	wait_for 60 grep -q "serves at 127.0.0.1:0, port " "$T/exporter.err"
	address=127.0.0.1:$(sed -n 's/.*serves at 127.0.0.1:0, port //p' "$T/exporter.err")
}

# get [PATH]: of the exporter. What was served within a second is served again.
get() {
	"$CLIENT" get "$address" "${1-/metrics}"
}

# is METRIC VALUE, or with labels: is 'METRIC{gpu="0"' VALUE, which are any labels that begin so.
is() {
	get >"$T/scrape" && awk -v name="$1" -v value="$2" 'index($0, name) == 1 && $NF == value {found = 1} END {exit !found}' "$T/scrape"
}

# value METRIC: of the series whose line begins so.
value() {
	get | awk -v name="$1" 'index($0, name) == 1 {print $NF; exit}'
}

# busy_as UID NAME WORD...: a job of the user that works on a card, until it is killed.
busy_as() {
	local uid=$1 name=$2
	shift 2
	start_as "$uid" "$name" "$LOADLINE" --sim run --mem 8G -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 "$@" for 300s
	wait_for 60 grep -q "^busy: pid" "$T/$name.out"
}

@test "cards, tenants, jobs and the queue are told, and promtool has nothing to say but of dcgm-exporter's own names" {
	begin_service
	begin_exporter
	wait_for 60 is loadline_sensor_up 1
	wait_for 60 is loadline_queue_up 1 # before any job has asked
	busy_as "$FIRST" first 50% kernel 5ms memory 1G
	wait_for 60 is 'loadline_tenant_jobs_running{tenant="research"}' 1
	[ "$(get /healthz)" = ok ]
	is loadline_up 1
	is loadline_accounts_up 1
	is loadline_queue_up 1
	is 'loadline_tenant_jobs_running{tenant="course"}' 0
	is 'loadline_tenant_guaranteed_memory_bytes{tenant="research",group="parts"}' $((20 << 30))
	is 'loadline_tenant_requested_memory_bytes{tenant="research",group="parts"}' $((8 << 30))
	is 'loadline_tenant_limit_compute_ratio{tenant="course",group="parts"}' 1.5
	wait_for 60 is 'loadline_card_lost{gpu="1"' 0
	wait_for 60 eval '[ "$(value "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"" | cut -d. -f1)" -ge 30 ]'
	[ "$(value 'DCGM_FI_DEV_FB_USED{gpu="0"' | cut -d. -f1)" -ge 1024 ]
	[ "$(value 'DCGM_FI_DEV_FB_USED{gpu="1"')" = 0 ]
	grep -q "^loadline_job_memory_limit_bytes{job_number=\"[0-9]*\",tenant=\"research\",uid=\"$FIRST\",gpu=\"0\",UUID=\"GPU-[^\"]*\"} $((8 << 30))\$" "$T/scrape"
	# Each family has a help and a type, once.
	[ "$(grep -c '^# HELP' "$T/scrape")" -eq "$(grep -c '^# TYPE' "$T/scrape")" ]
	[ -z "$(grep '^# TYPE' "$T/scrape" | sort | uniq -d)" ]
	command -v promtool >/dev/null || skip "no promtool (Debian's package prometheus)"
	promtool check metrics <"$T/scrape" 2>&1 | { grep -v "^DCGM_FI_DEV_[A-Z_]* label names should be written in 'snake_case'" || true; } >"$T/found"
	cat "$T/found"
	[ ! -s "$T/found" ]
}

@test "the counters of a tenant are those of the accounts, and never go back while loadlined lives" {
	begin_service
	begin_exporter
	busy_as "$FIRST" first kernel 5ms sleep 1ms memory 1G
	local before=0 went_back='' changes=0
	wait_for 60 has_grown
	[ -z "$went_back" ]
	stop first KILL
	wait_for 60 jobs_are 0
	wait_for 60 eval 'near used_seconds used && near granted_seconds granted && near idle_held_seconds idle_held'
	jq -n -e "$(value 'loadline_tenant_gpu_used_seconds_total{tenant="research"}') > 5" >/dev/null
	[ "$(value 'loadline_tenant_gpu_used_seconds_total{tenant="course"}')" = 0 ]
}

# has_grown: has the tenant's counter changed eight times, and is it more than 5 s? Or has it gone back: $went_back.
has_grown() {
	local now
	now=$(value 'loadline_tenant_gpu_used_seconds_total{tenant="research"}')
	[ -n "$now" ] || return
	jq -n -e "$now >= $before" >/dev/null || went_back="from $before to $now"
	[ "$now" = "$before" ] || changes=$((changes + 1))
	before=$now
	[ -n "$went_back" ] || { [ "$changes" -ge 8 ] && jq -n -e "$before > 5" >/dev/null; }
}

# near KEY METRIC: is it within a millisecond what the report says?
near() {
	local told
	told=$(loadline report --by tenant --json "$T/state/accounts.db" | jq -s "[.[] | select(.tenant == \"research\") | .$1] | add // 0")
	jq -n -e "$(value "loadline_tenant_gpu_$2_seconds_total{tenant=\"research\"}") - $told | fabs < 0.001" >/dev/null
}

@test "a scrape has no command and no name of a job, and with others: nothing no job, also if root serves it" {
	others=nothing write_config 'serve: {metrics: "127.0.0.1:9409"}'
	begin_service
	begin_exporter
	cp "$LOADLINE_BUILD/sim/loadline-simctl" "$T/secretword"
	start_as "$FIRST" first env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE" --sim run --mem 8G -- "$T/secretword" busy 0 50% for 300s
	wait_for 60 is 'loadline_tenant_jobs_running{tenant="research"}' 1
	wait_for 60 eval '[ "$(value "loadline_tenant_memory_used_bytes{tenant=\"research\"}")" -gt 0 ]'
	get >"$T/scrape"
	run ! grep -q "loadline_job_\|uid=\|secretword" "$T/scrape"
	stop exporter
	begin_exporter 0
	get >"$T/scrape"
	is 'loadline_tenant_jobs_running{tenant="research"}' 1
	run ! grep -q "loadline_job_\|uid=\|secretword" "$T/scrape"
	others=user-and-share write_config 'serve: {metrics: "127.0.0.1:9409"}'
	kill -HUP "$(pid_of service)"
	wait_for 60 eval 'get | grep -q "^loadline_job_memory_used_bytes{.*uid=\"$FIRST\""'
	get >"$T/scrape"
	run ! grep -q secretword "$T/scrape"
}

@test "sums of tenants are told to users only if serve.metrics is configured" {
	write_config
	begin_service
	begin_exporter
	is loadline_up 0
	get >"$T/scrape"
	run ! grep -q loadline_tenant "$T/scrape"
	wait_for 60 grep -q "neither serve.metrics nor serve.page is configured" "$T/exporter.err"
	loadline --sim doctor --no-trial | grep -x "ok: metrics: not served: serve.metrics is not configured"
	write_config 'serve: {metrics: "127.0.0.1:9409"}'
	kill -HUP "$(pid_of service)"
	wait_for 60 is loadline_up 1
}

@test "the address follows the configuration at SIGHUP: none, a socket file, another one, a file with faults" {
	write_config
	begin_service
	address=unix:$T/serve/one
	mkdir -m 777 "$T/serve"
	start_as "$EXPORTER" exporter "$LOADLINE_BUILD/src/exporter/loadline-exporter" --config "$T/conf"
	wait_for 60 grep -q "serve.metrics is not configured; nothing is served" "$T/exporter.err"
	configure_address "$T/serve/one"
	wait_for 60 is loadline_up 1
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep -x "ok: metrics: served at unix:$T/serve/one"'
	echo "nonsense: 1" >>"$T/conf/loadline.yaml"
	kill -HUP "$(pid_of exporter)"
	wait_for 60 grep -q "metrics are served as before" "$T/exporter.err"
	is loadline_up 1
	configure_address "$T/serve/two"
	address=unix:$T/serve/two
	wait_for 60 is loadline_up 1
	wait_for 60 [ ! -e "$T/serve/one" ]
	# Where it cannot serve it says so, and goes on as before.
	configure_address "$T/nowhere/three"
	wait_for 60 grep -q "nowhere/three: No such file or directory; metrics are served at unix:$T/serve/two as before" "$T/exporter.err"
	wait_for 60 is loadline_up 1
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep "^warn: metrics: not served: unix:$T/nowhere/three: No such file or directory"'
	stop exporter
	[ "$status" -eq 0 ]
	[ ! -e "$T/serve/two" ]
}

configure_address() {
	write_config "serve: {metrics: \"unix:$1\"}"
	kill -HUP "$(pid_of service)" "$(pid_of exporter)"
}

@test "a port in use is an error with its reason, and a bad address is one of usage" {
	begin_service
	begin_exporter
	run "$LOADLINE_BUILD/src/exporter/loadline-exporter" --listen "$address"
	[ "$status" -eq 1 ]
	[[ $output == *"loadline-exporter: metrics: $address: address already in use; another program listens there: choose another port" ]]
	run "$LOADLINE_BUILD/src/exporter/loadline-exporter" --listen nowhere
	[ "$status" -eq 2 ]
	run "$LOADLINE_BUILD/src/exporter/loadline-exporter" --bad
	[ "$status" -eq 2 ]
	is loadline_up 1
}

@test "while loadlined is away or stopped, loadline_up is 0 within seconds; then it is 1 again" {
	begin_service
	begin_exporter
	wait_for 60 is loadline_up 1
	kill -STOP "$(pid_of service)"
	wait_for 60 is loadline_up 0
	# Each reply comes within the 10 s that Prometheus waits.
	sleep 1.1
	get 2>"$T/took" >/dev/null
	grep -q "^status 200 after [0-5]\.[0-9]* s$" "$T/took"
	run ! get /healthz
	[[ ${lines[0]} == "loadlined does not reply" ]]
	# Who asks for the health makes no scrape wait: what was just found out holds for both, also for who asks twice a second.
	sleep 1.1
	get >/dev/null
	sleep 0.6
	run ! get /healthz
	sleep 0.6
	wait_for 60 eval '"$CLIENT" get "$address" /healthz /metrics >"$T/both" && grep -qx "loadline_exporter_reply_seconds 0" "$T/both"'
	grep -q "^loadlined does not reply" "$T/both"
	kill -CONT "$(pid_of service)"
	wait_for 60 is loadline_up 1
	stop service KILL
	wait_for 60 is loadline_up 0
	get >"$T/scrape"
	run ! grep -q "loadline_tenant\|DCGM_" "$T/scrape"
	[ "$(grep -c . "$T/exporter.err")" -lt 20 ] # not a line for each scrape
	start_daemon
	wait_for 60 is loadline_up 1
}

@test "a sensor that hangs leaves no old values of cards" {
	begin_service
	begin_exporter
	wait_for 60 is loadline_sensor_up 1
	get | grep -q "^DCGM_FI_DEV_FB_USED"
	freeze_process "$(pid_of sensor)"
	wait_for 60 is loadline_sensor_up 0
	run ! grep -q "^DCGM_\|^loadline_card" "$T/scrape"
	is loadline_up 1
}

@test "a thousand connections that say nothing, and a hundred that read nothing, keep nobody from a scrape" {
	begin_service
	begin_exporter
	wait_for 60 is loadline_up 1
	ulimit -n 4096 2>/dev/null || skip "no 4096 descriptors here"
	start_client silent 1000
	get 2>"$T/took" >/dev/null
	grep -q "^status 200 after [0-5]\.[0-9]* s$" "$T/took"
	stop silent KILL
	start_client deaf 100
	get 2>"$T/took" >/dev/null
	grep -q "^status 200 after [0-5]\.[0-9]* s$" "$T/took"
	# loadlined does not know of them, and the exporter's memory is bounded.
	[ "$(value loadline_connections)" -lt 10 ]
	[ "$(awk '/^VmHWM/ {print $2}' "/proc/$(pid_of exporter)/status")" -lt 65536 ] || [ ! -e "$LOADLINE_BUILD/tests/e2e/libwalljump.so" ]
	# They are closed after 10 s.
	wait_for 60 eval '[ "$(find "/proc/$(pid_of exporter)/fd" -lname "socket:*" | wc -l)" -lt 10 ]'
	is loadline_up 1
}

# start_client KIND NUMBER: connections that stay until it is stopped.
start_client() {
	mkfifo "$T/$1.in"
	start_program "$1" bash -c 'exec "$@" <>"$0"' "$T/$1.in" "$CLIENT" "$1" "$address" "$2"
	wait_for 60 grep -q "^open $2$" "$T/$1.out"
}

@test "a full disk of the accounts is told, and a clock that is set back makes no counter go back" {
	[ -e "$LOADLINE_BUILD/tests/e2e/libwalljump.so" ] || skip "not built with this sanitizer"
	unshare -m true || skip "no mount namespaces here"
	echo 0 >"$T/jump"
	begin_service unshare -m sh -c 'mount -t tmpfs -o size=256k,mode=777 none "$1"; dd if=/dev/zero of="$1/ballast" bs=1k count=1000 status=none; shift; exec "$@"' \
		sh "$T/state" env LD_PRELOAD="$LOADLINE_BUILD/tests/e2e/libwalljump.so" WALLJUMP_FILE="$T/jump"
	begin_exporter
	busy_as "$FIRST" first kernel 5ms sleep 1ms memory 1G
	start_as "$SECOND" waiting "$LOADLINE" --sim run --mem 1000G -- true || true
	wait_for 60 is loadline_accounts_up 0
	rm "/proc/$(pid_of service)/root$T/state/ballast"
	wait_for 60 is loadline_accounts_up 1
	is loadline_accounts_rows_lost_total 0
	wait_for 60 eval 'jq -n -e "$(value "loadline_tenant_gpu_used_seconds_total{tenant=\"research\"}") > 1"'
	local before
	before=$(value 'loadline_tenant_gpu_used_seconds_total{tenant="research"}')
	echo -1000000 >"$T/jump"
	wait_for 60 eval 'jq -n -e "$(value "loadline_tenant_gpu_used_seconds_total{tenant=\"research\"}") > $before + 5"'
	jq -n -e "$(value 'loadline_tenant_gpu_used_seconds_total{tenant="research"}') < $before + 60" >/dev/null
}

@test "jobs that wait are told by tenant, and a drained card" {
	begin_service
	begin_exporter
	wait_for 60 eval 'loadline --sim queue list >/dev/null 2>&1'
	loadline --sim queue drain 0
	wait_for 60 is 'loadline_card_out_of_use{gpu="0"' 1
	is 'loadline_card_out_of_use{gpu="1"' 0
	grep -q '^loadline_card_drained{gpu="0",UUID="GPU-[^"]*",reason="operator"} 1$' "$T/scrape"
	loadline --sim queue drain 1
	start_as "$FIRST" waiting "$LOADLINE" --sim run --mem 8G -- true
	wait_for 60 is 'loadline_tenant_jobs_waiting{tenant="research"}' 1
	is loadline_queue_jobs 1
	sleep 2
	wait_for 60 eval '[ "$(value loadline_queue_oldest_wait_seconds)" -ge 1 ]'
	[ "$(value 'loadline_tenant_jobs_waiting{tenant="course"}')" = 0 ]
	loadline --sim queue drain 1 --undo
	wait_for 60 is loadline_queue_jobs 0
}

@test "the rules are right, and each alert fires when it must and not before" {
	command -v promtool >/dev/null || skip "no promtool (Debian's package prometheus)"
	promtool check rules "$PACKAGING/loadline.rules.yml"
	sed "s#RULES#$(realpath "$PACKAGING/loadline.rules.yml")#" "$BATS_TEST_DIRNAME/prometheus_rules.yml" >"$T/rules.yml"
	promtool test rules "$T/rules.yml"
	# Each alert has a case.
	diff <(sed -n 's/^ *- alert: //p' "$PACKAGING/loadline.rules.yml" | sort) \
		<(sed -n 's/.*alertname: \([A-Za-z]*\).*/\1/p' "$T/rules.yml" | sort -u)
}

@test "Prometheus scrapes it; every query of the dashboard and the rules is of metrics that are there" {
	command -v prometheus >/dev/null || skip "no prometheus (Debian's package prometheus)"
	begin_service
	begin_exporter
	local port expression name
	busy_as "$FIRST" first 50% kernel 5ms memory 1G
	wait_for 60 eval 'loadline --sim queue drain 1'
	port=$("$CLIENT" port)
	cat >"$T/prometheus.yml" <<-END
		global: {scrape_interval: 1s, evaluation_interval: 1s}
		rule_files: [$(realpath "$PACKAGING/loadline.rules.yml")]
		scrape_configs:
		  - {job_name: loadline, static_configs: [{targets: ["$address"]}]}
	END
	promtool check config "$T/prometheus.yml"
	start_program prometheus prometheus --config.file="$T/prometheus.yml" --storage.tsdb.path="$T/tsdb" --web.listen-address="127.0.0.1:$port"
	wait_for 60 eval '[ "$("$CLIENT" query "127.0.0.1:$port" "loadline_up == 1")" = 1 ]'
	wait_for 60 eval '[ "$("$CLIENT" query "127.0.0.1:$port" "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} > 30")" = 1 ]'
	"$CLIENT" queries "$PACKAGING/loadline-dashboard.json" "$PACKAGING/loadline.rules.yml" >"$T/queries"
	[ "$(grep -c . "$T/queries")" -ge 30 ]
	while read -r expression; do
		"$CLIENT" query "127.0.0.1:$port" "$expression" >/dev/null
	done <"$T/queries"
	while read -r name; do
		[ "$("$CLIENT" query "127.0.0.1:$port" "$name")" -ge 1 ] || {
			echo "no series $name"
			false
		}
	done < <(grep -oE '(loadline|DCGM)_[A-Za-z_]+' "$T/queries" | sort -u)
	# Each panel has data, but for rates that need a minute.
	while read -r expression; do
		[ "$("$CLIENT" query "127.0.0.1:$port" "$expression")" -ge 1 ] || [[ $expression == *\[* ]] || {
			echo "no data: $expression"
			false
		}
	done < <("$CLIENT" queries "$PACKAGING/loadline-dashboard.json")
}
