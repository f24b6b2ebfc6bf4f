# loadline hold on the simulated card: it reaches its targets, gets out of the way, comes back and cleans up.
load helper
hold() {
	start hold --sim hold --json "$@"
}

# samples N: that many samples have been printed while it held, but for those of its beginning.
samples() {
	counts hold "$1" 'select(.event == "sample" and .state == "holding" and .time_s > 1.2)'
}

HELD='lines | select(.event == "sample" and .state == "holding")'

# level FIELD TARGET BAND [FILTER]: the median of 15 samples one after another is that close to the target. The first ones
# need not be: on a busy machine a window is missed by any number of points, and the hold makes up for it.
level() {
	look hold "foreach ($HELD | ${4-.}) as \$sample ([]; (. + [\$sample.$1])[-15:];
		select(length == 15 and (sort[7] - $2 | fabs) < $3))"
}

# steady NUMBER LOW HIGH FILTER: so many samples one after another are in the band, of those that the filter lets through.
steady() {
	look hold "foreach ($HELD | $4) as \$sample (0;
		if \$sample.util_percent >= $2 and \$sample.util_percent <= $3 then . + 1 else 0 end; select(. >= $1))"
}

# judge PROGRAM: is it true of the $summary and the $samples of a hold that has ended?
judge() {
	jq -s -e "(map(select(.event == \"summary\"))[0]) as \$summary |
		map(select(.event == \"sample\" and .state == \"holding\")) as \$samples | $1" "$T/hold.out" >/dev/null || {
		echo "not so: $1"
		show
		return 1
	}
}

summary() {
	json hold 'select(.event == "summary")'
}

@test "holds 50 % by default, settles, and says so in its summary" {
	hold
	wait_for 120 level util_percent 50 1.5
	wait_for 120 has hold 'select(.event == "settle" and .settle_seconds > 0)'
	stop hold INT
	[ "$status" -eq 0 ]
	# Settled are five samples in the band and all since then, and of those is the mean; else it is of all samples.
	judge '([$samples[] | .util_percent] | (.[-1] - 50 | fabs) <= 1) as $is_settled |
		$is_settled == ($summary.settle_seconds != null) and
		if $is_settled then ($summary.mean_util_percent - 50 | fabs) <= 1 and $summary.max_abs_error_percent <= 1
		else $summary.max_abs_error_percent > 1 end'
	judge '$summary.synthetic_busy_seconds > 1'
	# The simulated card waits for the host: on one that stands still for 0.1 s a kernel starts late, as beside a stranger.
	[ "$(grep "yielding" "$T/hold.err" | grep -cvE "own kernel started [0-9]{3,}\.[0-9]+ ms late")" -eq 0 ]
	judge '$summary.payload == "cuda" and $summary.memory_bytes > 200e6 and $summary.memory_bytes <= 268 * 1048576'
	judge '$summary.energy_joules > 0 and $summary.synthetic and $summary.simulated and all($samples[]; .simulated)'
}

@test "it says that it has settled once, and again only after it has left the level" {
	hold --mode ignore
	wait_for 60 has hold 'select(.event == "settle" and (.text | test("^settled after [0-9.]+ s$")))'
	worker=$(pgrep -P "$(pid_of hold)")
	freeze_process "$worker"
	wait_for 60 has hold 'select(.event == "leave" and (.text | test("^left the level: util [0-9]+ % .target 50 %.$")))'
	kill -CONT "$worker"
	wait_for 60 has hold 'select(.event == "settle" and (.text | test("^settled again, [0-9.]+ s after the first kernel$")))'
	stop hold
	jq -s -e '[.[].event | select(. == "settle" or . == "leave")] |
		all(range(length) as $at | .[$at] == (if $at % 2 == 0 then "settle" else "leave" end); .)' "$T/hold.out"
	# The log and the JSON lines say the same.
	[ "$(grep -cE ": (settled after|settled again|left the level)" "$T/hold.err")" -eq "$(json hold 'select(.event == "settle" or .event == "leave") | 1' | wc -l)" ]
}

@test "reaches low and high targets" {
	for target in 5 30 95; do
		hold --target "$target%"
		wait_for 120 level util_percent "$target" 2
		stop hold
	done
}

@test "follows a square wave" {
	hold --curve square:20-80@4s
	wait_for 180 steady 4 19 21 'select(.target_percent == 20)'
	wait_for 180 steady 4 79 81 'select(.target_percent == 80)'
	stop hold
}

@test "replays a recording" {
	printf 'time_s,target\n0,20\n2,70\n' >"$T/curve.csv"
	hold --curve "replay:$T/curve.csv"
	wait_for 60 has hold 'select(.event == "sample" and .target_percent == 70 and .util_percent >= 69 and .util_percent <= 71)'
	has hold 'select(.event == "sample" and .target_percent == 20)'
	stop hold
}

@test "holds 60 % after long idleness, by default" {
	hold --idle-after 2s
	wait_for 60 has hold 'select(.event == "sample" and .idle_target and .target_percent == 60 and .util_percent >= 59)'
	stop hold
}

@test "holds SM utilisation, occupancy and power" {
	hold --metric sm --target 40%
	wait_for 120 has hold 'select(.event == "settle")'
	wait_for 120 level sm_percent 40 2
	stop hold
	judge '($summary.mean_sm_percent - 40 | fabs) < 8'
	hold --metric occupancy --target 30%
	wait_for 120 has hold 'select(.event == "settle")'
	stop hold
	hold --metric power --target 200W
	wait_for 60 has hold 'select(.event == "sample" and .power_watts > 196 and .power_watts < 204)'
	stop hold
}

@test "holds the tensor pipes and the memory bandwidth" {
	hold --metric tensor --target 30%
	wait_for 120 has hold 'select(.event == "settle")'
	wait_for 120 level tensor_percent 30 2
	has hold 'select(.event == "sample" and .dram_percent == 0)'
	stop hold
	judge '$summary.payload == "cuda" and ($summary.mean_tensor_percent - 30 | fabs) < 8'
	hold --metric dram --target 40%
	wait_for 120 has hold 'select(.event == "settle")'
	wait_for 120 level dram_percent 40 2
	# The context, and four times the cache of 60 MiB.
	judge '[$samples[].memory_bytes] | max - (262 + 240) * 1048576 | fabs < 4 * 1048576'
	stop hold
	judge '($summary.mean_dram_percent - 40 | fabs) < 8'
	simctl show | grep -q "card 0.* 0.0 MiB used"
}

@test "a level of the tensor pipes or the memory that the card does not reach is said" {
	scenario "card 0 tensor-reach 55" "card 0 dram-reach 70"
	hold --metric tensor --target 80%
	wait_for 60 has hold 'select(.event == "fault" and (.text | test("tensor target 80 % is above what payload cuda reaches here .about [0-9]+ %.")))'
	wait_for 60 has hold 'select(.event == "sample" and .tensor_percent > 53 and .tensor_percent <= 56)'
	stop hold
	hold --metric dram --target 90%
	wait_for 60 has hold 'select(.event == "fault" and (.text | test("dram target 90 % is above what payload cuda reaches here .about [0-9]+ %.")))'
	wait_for 60 has hold 'select(.event == "sample" and .dram_percent > 67 and .dram_percent <= 71)'
	stop hold
}

@test "reads no memory beside foreign work, and gives its buffer back after --release-after" {
	hold --metric dram --target 40% --resume-after 500ms --release-after 500ms
	wait_for 60 samples 2
	start_program stranger "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms
	wait_for 60 has hold 'select(.event == "yield")'
	wait_for 60 has hold 'select(.event == "release")'
	wait_for 60 has hold 'select(.event == "sample" and .memory_bytes == 0 and .dram_percent == 0)'
	stop stranger
	wait_for 60 has hold 'select(.event == "resume")'
	resumed=$(json hold 'select(.event == "resume") | .time_s' | tail -n 1)
	wait_for 120 level dram_percent 40 2 "select(.time_s > $resumed)"
	stop hold
	[ "$status" -eq 0 ]
}

@test "yields to foreign work, keeps away while it lasts, and comes back" {
	hold --resume-after 500ms
	wait_for 60 samples 2
	start_program stranger "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms
	wait_for 60 has hold 'select(.event == "yield" and (.sensor == "late" or .sensor == "gap" or .sensor == "process" or .sensor == "memory"))'
	wait_for 60 has hold 'select(.event == "sample" and .foreign and .own_util_percent == 0)'
	stop stranger
	wait_for 60 has hold 'select(.event == "resume")'
	resumed=$(json hold 'select(.event == "resume") | .time_s' | tail -n 1)
	wait_for 120 level util_percent 50 2 "select(.time_s > $resumed)"
	stop hold
	# Windows of the stranger are no part of what was held.
	judge '$summary.yields >= 1 and $summary.samples <= ($samples | length) and ($summary.mean_util_percent - 50 | fabs) < 10'
}

# These leave no pause. On a busy host one may, and a kernel of the hold that finds the card free for a moment counts as held time.
@test "yielding the whole time, it names the program and the way out, and ends with 0" {
	ln -s "$LOADLINE_BUILD/sim/loadline-simctl" "$T/train"
	start_program train "$T/train" busy 0 kernel 20ms
	start_program second "$T/train" busy 0 kernel 20ms
	wait_for 60 grep -q busy "$T/train.out"
	wait_for 60 grep -q busy "$T/second.out"
	start hold --sim hold --for 3s --metrics-listen 127.0.0.1:0
	wait_for 60 grep -q "metrics on port" "$T/hold.err"
	port=$(grep -o 'metrics on port [0-9]*' "$T/hold.err" | grep -o '[0-9]*$')
	wait_for 60 fetch "$port" /metrics 'loadline_yields_total{.*} [1-9]'
	wait_for 60 fetch "$port" /metrics 'loadline_yielded_seconds_total{.*} [12]'
	finish hold
	[ "$status" -eq 0 ]
	grep -qE "synthetic load, yielded (the whole|2\.[0-9] of) [23]\.[0-9] s to train \(pid ($(pid_of train)|$(pid_of second))\) and 1 other; --mode fill adds to it" "$T/hold.out"
	grep -q "yielding to foreign work" "$T/hold.err"
	stop second
	hold --for 2s
	finish hold
	[ "$status" -eq 0 ]
	judge "\$summary.yields >= 1 and \$summary.yielded_seconds >= 0.9 * \$summary.seconds and \$summary.yielded_to == {name: \"train\", pid: $(pid_of train), others: 0}"
	judge '$summary.yielded_seconds >= 2 and $summary.yielded_seconds < 8 and $summary.exit_code == 0'
}

@test "it names a governed program by its tenant" {
	loadline --sim run -- true 2>/dev/null || skip "nothing can be preloaded in this build"
	start program --sim run --tenant night-run -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 20ms
	wait_for 60 grep -q busy "$T/program.out"
	hold --for 2s
	finish hold
	[ "$status" -eq 0 ]
	judge '$summary.yields >= 1 and $summary.yielded_to.name == "night-run" and $summary.yielded_to.others == 0'
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
	wait_for 60 samples 2
	start_program stranger "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 5ms
	wait_for 60 has hold 'select(.event == "yield")'
	yielded=$(json hold 'select(.event == "yield") | .time_s' | head -n 1)
	wait_for 60 sample_after "$yielded + 2.5"
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
	wait_for 60 samples 2
	start_program stranger "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms
	wait_for 60 has hold 'select(.event == "release")'
	wait_for 60 has hold 'select(.event == "sample" and .memory_bytes == 0)'
	stop stranger
	wait_for 60 has hold 'select(.event == "resume")'
	stop hold
	[ "$status" -eq 0 ]
}

@test "fill tops the card up beside foreign work" {
	start_program stranger "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 2ms sleep 8ms
	hold --mode fill --target 60%
	wait_for 120 has hold 'select(.event == "sample" and .time_s > 4 and .util_percent >= 57 and .util_percent <= 63)'
	is_running stranger
	stop hold
	judge '$summary.yields == 0'
}

@test "ignore keeps holding beside foreign work" {
	hold --mode ignore
	wait_for 60 samples 2
	start_program stranger "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms
	wait_for 60 has hold 'select(.event == "sample" and .util_percent > 90 and .state == "holding")'
	stop hold
	judge '$summary.yields == 0'
}

@test "holds several cards in one process" {
	scenario "cards 2"
	hold -i all --target 30%
	wait_for 120 has hold 'select(.event == "settle" and .card == 0)'
	wait_for 120 has hold 'select(.event == "settle" and .card == 1)'
	start_program stranger "$LOADLINE_BUILD/sim/loadline-simctl" busy 1 kernel 1ms
	wait_for 60 has hold 'select(.event == "yield" and .card == 1)'
	stop hold
	[ "$(summary | wc -l)" -eq 2 ]
	[ -z "$(json hold 'select(.event == "yield" and .card == 0)')" ]
}

@test "SIGTERM and SIGINT end it at once, with a summary and nothing left" {
	for signal in TERM INT; do
		hold
		wait_for 60 samples 2
		before=$SECONDS
		stop hold "$signal"
		# A status of 0 says that nothing had to be killed for being late. The machine may be busy.
		[ "$status" -eq 0 ]
		in_time "$before" 10
		[ "$(summary | wc -l)" -eq 1 ]
		shows_none 'has("claim")'
		shows 'has("card") and .memory_bytes == 0'
	done
}

@test "kill -9 leaves no claim and no kernel running" {
	hold
	wait_for 60 samples 2
	stop hold KILL
	shows_none 'has("claim")'
	wait_for 60 shows 'has("card") and .util_percent + .memory_bytes == 0'
	hold
	wait_for 60 samples 1
	stop hold
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
	shows 'has("card") and .memory_bytes == 0'
}

@test "status shows the hold as synthetic, by name, target and state" {
	hold --target 40%
	wait_for 60 samples 2
	run -0 loadline --sim status
	[[ $output == *synthetic* ]]
	wait_for 60 shows "has(\"claim\") and .pid == $(pid_of hold) and .state == \"holding\" and .payload == \"cuda\""
	stop hold
}

@test "serves Prometheus metrics and health" {
	start hold --sim hold --metrics-listen 127.0.0.1:0 --for 60s
	wait_for 60 grep -q "metrics on port" "$T/hold.err"
	port=$(grep -o 'metrics on port [0-9]*' "$T/hold.err" | grep -o '[0-9]*$')
	wait_for 60 fetch "$port" /metrics 'loadline_util_ratio{.*simulated="true"}'
	wait_for 60 fetch "$port" /healthz ok
	stop hold
}

# fetch PORT PATH TEXT: a GET whose answer contains TEXT.
fetch() {
	exec 9<>"/dev/tcp/127.0.0.1/$1"
	printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&9
	timeout 120 cat <&9 | grep -q "$3"
}

@test "SIGHUP ends it like SIGTERM, with a summary" {
	# Of tests that run under nohup it would keep that the signal is ignored.
	start_program hold env --default-signal=HUP "$LOADLINE" --sim hold --json --target 40%
	wait_for 60 samples 2
	stop hold HUP
	[ "$status" -eq 0 ]
	has hold '.event == "summary"'
	loadline hold --help | tr -s ' \n' ' ' | grep -q "SIGHUP end it at once, with a summary. A terminal that closes sends SIGHUP"
}

@test "under nohup it goes on when its terminal ends" {
	start_program hold nohup "$LOADLINE" --sim hold --json --record "$T/run.csv"
	wait_for 60 test -s "$T/run.csv"
	kill -HUP "$(pid_of hold)"
	wait_for 60 records_more_than $(($(wc -l <"$T/run.csv") + 5))
	is_running hold
	stop hold
	[ "$status" -eq 0 ]
}

# records_more_than NUMBER: lines.
records_more_than() {
	[ "$(wc -l <"$T/run.csv")" -gt "$1" ]
}

@test "the live display says that a card is simulated, and takes a new width within its next frames" {
	cat >"$T/terminal.py" <<'PY'
import fcntl, os, pty, re, struct, sys, termios, time
def resize(terminal, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
def widest(text):
    whole = text[text.index(b"\n"):text.rindex(b"\n")] # what was read begins and ends anywhere in a line, or in a colour
    plain = re.sub(rb"\x1b\[[?0-9;]*[A-Za-z]|\r", b"", whole).decode()
    return max(len(line) for line in plain.split("\n") if " INFO " not in line) # the log's lines stand above the display
def read_until(done):
    seen, end = b"", time.time() + 60
    while not done(seen):
        assert time.time() < end, seen[-300:]
        seen += os.read(fd, 65536)
    return seen
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    resize(1, 100)
    os.execv(sys.argv[1], sys.argv[1:])
seen = read_until(lambda seen: b"holding" in seen and seen.count(b"\x1b[?25l") > 4)
assert b"(simulated)" in seen, seen[-300:]
resize(fd, 40)
read_until(lambda seen: b"\x1b[H\x1b[2J" in seen)
narrow = read_until(lambda seen: seen.count(b"\x1b[?25l") > 3)
assert widest(narrow) < 40, narrow[-300:]
os.write(fd, b"\x03")
read_until(lambda seen: b"settled" in seen or b"no kernel ran" in seen)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
PY
	python3 "$T/terminal.py" "$LOADLINE" --sim hold --for 100s
}
