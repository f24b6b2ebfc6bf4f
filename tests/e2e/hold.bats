# loadline hold on the simulated card: it reaches its targets, gets out of the way, comes back and cleans up.
load helper

scenario() {
	printf '%s\n' "$@" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
}

simctl() {
	"$LOADLINE_BUILD/sim/loadline-simctl" "$@"
}

hold() {
	start hold --sim hold --json "$@"
}

# samples N: that many samples after settling have been printed.
samples() {
	[ "$(json hold 'select(.event == "sample" and .time_s > 1.2) | .time_s' | wc -l)" -ge "$1" ]
}

summary() {
	json hold 'select(.event == "summary")'
}

@test "holds 50 % by default, settles, and says so in its summary" {
	hold
	wait_for 20 samples 20
	stop hold INT
	[ "$status" -eq 0 ]
	expect '$s.mean_util_percent > 49 and $s.mean_util_percent < 51' --argjson s "$(summary)"
	expect '$s.settle_seconds != null and $s.yields == 0 and $s.synthetic_busy_seconds > 1' --argjson s "$(summary)"
	expect '$s.payload == "cuda" and $s.memory_bytes > 200e6 and $s.memory_bytes <= 268 * 1048576' --argjson s "$(summary)"
	expect '$s.energy_joules > 0 and $s.synthetic' --argjson s "$(summary)"
}

@test "reaches low and high targets" {
	for target in 5 30 95; do
		hold --target "$target%"
		wait_for 20 samples 15
		stop hold
		expect '$median > $t - 2 and $median < $t + 2' --argjson t "$target" --argjson median \
			"$(json hold 'select(.event == "sample" and .time_s > 1) | .util_percent' | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}')"
	done
}

@test "follows a square wave" {
	hold --curve square:20-80@4s
	wait_for 30 samples 40
	stop hold
	low=$(json hold 'select(.event == "sample" and .target_percent == 20 and .time_s > 1) | .util_percent' | sort -n | uniq -c | sort -rn | awk 'NR == 1 {print $2}')
	high=$(json hold 'select(.event == "sample" and .target_percent == 80) | .util_percent' | sort -n | uniq -c | sort -rn | awk 'NR == 1 {print $2}')
	expect '$low >= 19 and $low <= 21 and $high >= 79 and $high <= 81' --argjson low "$low" --argjson high "$high"
}

@test "replays a recording" {
	printf 'time_s,target\n0,20\n2,70\n' >"$T/curve.csv"
	hold --curve "replay:$T/curve.csv"
	wait_for 20 has hold 'select(.event == "sample" and .target_percent == 70 and .util_percent >= 69 and .util_percent <= 71)'
	has hold 'select(.event == "sample" and .target_percent == 20)'
	stop hold
}

@test "holds 60 % after long idleness, by default" {
	hold --idle-after 2s
	wait_for 20 has hold 'select(.event == "sample" and .idle_target and .target_percent == 60 and .util_percent >= 59)'
	stop hold
}

@test "holds SM utilisation, occupancy and power" {
	hold --metric sm --target 40%
	wait_for 20 has hold 'select(.event == "settle")'
	stop hold
	expect '$s.mean_sm_percent > 38 and $s.mean_sm_percent < 42' --argjson s "$(summary)"
	hold --metric occupancy --target 30%
	wait_for 20 has hold 'select(.event == "settle")'
	stop hold
	hold --metric power --target 200W
	wait_for 60 has hold 'select(.event == "sample" and .power_watts > 196 and .power_watts < 204)'
	stop hold
}

@test "yields to foreign work, keeps away while it lasts, and comes back" {
	hold --resume-after 500ms
	wait_for 20 samples 2
	start_program stranger "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms
	wait_for 20 has hold 'select(.event == "yield" and (.sensor == "late" or .sensor == "gap" or .sensor == "process" or .sensor == "memory"))'
	wait_for 20 has hold 'select(.event == "sample" and .foreign and .own_util_percent == 0)'
	stop stranger
	wait_for 20 has hold 'select(.event == "resume")'
	stop hold
	expect '$s.yields >= 1 and $s.mean_util_percent > 48 and $s.mean_util_percent < 52' --argjson s "$(summary)"
}

# sleeps PID: how often the process's first thread has gone to sleep.
sleeps() {
	awk '$1 == "voluntary_ctxt_switches:" {print $2}' "/proc/$1/task/$1/status"
}

nvml_calls() {
	simctl show | awk '$1 == "nvml:" {print $2}'
}

# sample_after SECONDS: there is a sample of later than this.
sample_after() {
	has hold "select(.event == \"sample\" and .time_s > $1)"
}

last_sample() {
	json hold 'select(.event == "sample") | .time_s' | tail -n 1
}

@test "yielded, it sleeps: few driver calls and wake-ups, none of its worker, and no window is lost" {
	hold
	wait_for 20 samples 2
	start_program stranger "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 5ms
	wait_for 20 has hold 'select(.event == "yield")'
	yielded=$(json hold 'select(.event == "yield") | .time_s' | head -n 1)
	wait_for 30 sample_after "$yielded + 2.5"
	worker=$(pgrep -P "$(pid_of hold)")
	from=$(last_sample) calls=$(nvml_calls) main=$(sleeps "$(pid_of hold)") payload=$(sleeps "$worker")
	wait_for 60 sample_after "$from + 7"
	span="$(last_sample) - $from"
	# Read every 4 s are 6 to 9 values; 2 wake-ups a second and more are what it had.
	expect "\$calls <= 6 + 3 * ($span)" --argjson calls $(($(nvml_calls) - calls))
	expect "\$sleeps <= 2 + ($span)" --argjson sleeps $(($(sleeps "$(pid_of hold)") - main))
	[ "$(sleeps "$worker")" -eq "$payload" ]
	json hold 'select(.event == "sample") | .time_s' | awk 'NR > 1 && $1 - last > 0.3 {print "no window between", last, $1; lost = 1} {last = $1} END {exit lost}'
	is_running stranger
	stop hold
}

@test "gives the memory back after --release-after, and takes it again" {
	hold --resume-after 500ms --release-after 500ms
	wait_for 20 samples 2
	start_program stranger "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms
	wait_for 20 has hold 'select(.event == "release")'
	wait_for 20 has hold 'select(.event == "sample" and .memory_bytes == 0)'
	stop stranger
	wait_for 20 has hold 'select(.event == "resume")'
	stop hold
	[ "$status" -eq 0 ]
}

@test "fill tops the card up beside foreign work" {
	start_program stranger "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 2ms sleep 8ms
	hold --mode fill --target 60%
	wait_for 40 has hold 'select(.event == "sample" and .time_s > 4 and .util_percent >= 57 and .util_percent <= 63)'
	is_running stranger
	stop hold
	expect '$s.yields == 0' --argjson s "$(summary)"
}

@test "ignore keeps holding beside foreign work" {
	hold --mode ignore
	wait_for 20 samples 2
	start_program stranger "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms
	wait_for 20 has hold 'select(.event == "sample" and .util_percent > 90 and .state == "holding")'
	stop hold
	expect '$s.yields == 0' --argjson s "$(summary)"
}

@test "holds several cards in one process" {
	scenario "cards 2"
	hold -i all --target 30%
	wait_for 20 has hold 'select(.event == "settle" and .card == 0)'
	wait_for 20 has hold 'select(.event == "settle" and .card == 1)'
	start_program stranger "$LOADLINE_BUILD/sim/loadline-simctl" busy 1 kernel 1ms
	wait_for 20 has hold 'select(.event == "yield" and .card == 1)'
	stop hold
	[ "$(summary | wc -l)" -eq 2 ]
	expect '$n == 0' --argjson n "$(json hold 'select(.event == "yield" and .card == 0)' | wc -l)"
}

@test "SIGTERM and SIGINT end it within a second, with a summary and nothing left" {
	for signal in TERM INT; do
		hold
		wait_for 20 samples 2
		before=$(date +%s%N)
		stop hold "$signal"
		after=$(date +%s%N)
		[ "$status" -eq 0 ]
		[ "$(summary | wc -l)" -eq 1 ]
		expect '($after - $before) < 3e9' --argjson before "$before" --argjson after "$after" # a loaded machine
		[ "$(loadline --sim status --json | jq -s 'map(select(has("claim"))) | length')" -eq 0 ]
		expect '$used == 0' --argjson used "$(loadline --sim status --json | jq .memory_bytes)"
	done
}

@test "kill -9 leaves no claim and no kernel running" {
	hold
	wait_for 20 samples 2
	stop hold KILL
	[ "$(loadline --sim status --json | jq -s 'map(select(has("claim"))) | length')" -eq 0 ]
	wait_for 20 is_idle
	hold
	wait_for 20 samples 1
	stop hold
}

is_idle() {
	[ "$(loadline --sim status --json | jq '.util_percent + .memory_bytes')" -eq 0 ]
}

@test "--for ends by itself, --record writes a CSV that can be replayed" {
	start hold --sim hold --for 2s --record "$T/run.csv" --log-every 500ms
	finish hold
	[ "$status" -eq 0 ]
	grep -q "synthetic load" "$T/hold.out"
	grep -q "holding util at 50 %" "$T/hold.err"
	head -1 "$T/run.csv" | grep -q '^time_s,'
	[ "$(wc -l <"$T/run.csv")" -ge 5 ]
}

@test "--dry-run says what it would do and does nothing" {
	run -0 loadline --sim hold --dry-run --target 30%
	[[ $output == *"would hold util at 30 %"* && $output == *synthetic* ]]
	[ "$(loadline --sim status --json | jq .memory_bytes)" -eq 0 ]
}

@test "status shows the hold as synthetic, by name, target and state" {
	hold --target 40%
	wait_for 20 samples 2
	run -0 loadline --sim status
	[[ $output == *synthetic* ]]
	claim=$(loadline --sim status --json | jq -c 'select(has("claim"))')
	expect '$c.pid == $pid and $c.state == "holding" and $c.payload == "cuda"' --argjson c "$claim" --argjson pid "$(pid_of hold)"
	stop hold
}

@test "serves Prometheus metrics and health" {
	start hold --sim hold --metrics-listen 127.0.0.1:0 --for 60s
	wait_for 20 grep -q "metrics on port" "$T/hold.err"
	port=$(grep -o 'metrics on port [0-9]*' "$T/hold.err" | grep -o '[0-9]*$')
	wait_for 20 fetch "$port" /metrics loadline_util_ratio
	wait_for 20 fetch "$port" /healthz ok
	stop hold
}

# fetch PORT PATH TEXT: a GET whose answer contains TEXT.
fetch() {
	exec 9<>"/dev/tcp/127.0.0.1/$1"
	printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&9
	timeout 5 cat <&9 | grep -q "$3"
}
