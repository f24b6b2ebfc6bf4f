# The accounts of the system's loadlined, against what the simulated cards know, and through kills, full disks and wrong
# clocks.
export NEEDS="jq sim/loadline-simctl"
load helper
load jobs_helper
load service_helper

DATABASE=state/accounts.db

# begin_service: two cards, whose contexts take no time; the system's loadlined runs as nobody, and keeps accounts.
begin_service() {
	[ -e "$T/scenario" ] || printf '%s\n' "cards 2" "card all context-time 0" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	open_world
	mkdir "$T/state"
	chown nobody "$T/state"
	serve "$@"
}

# serve [COMMAND...]: starts it, by way of the command.
serve() {
	start_program service "$@" "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --state "$T/state"
	wait_for 60 serves
}

serves() {
	loadline --sim doctor --no-trial | grep -q "^ok: loadlined: version .*, pid [0-9]*: .*, $T/world/system/socket (the system's"
}

# sense NUMBER: starts the sensor, which reports so many cards and slices.
sense() {
	start_sensor_as
	wait_for 60 grep -q "the sensor reports $1 cards" "$T/world/loadlined.log"
}

# busy_as UID NAME CARD WORD...: a tenant NAME that works on the card (simctl's words), until it is killed.
busy_as() {
	local uid=$1 name=$2 card=$3
	shift 3
	start_as "$uid" "$name" "$LOADLINE" --sim run -i "$card" --tenant "$name" \
		-- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 "$@" for 300s
	wait_for 60 grep -q "^busy: pid" "$T/$name.out"
}

# truth CARD KEY, counted CARD KEY [DATABASE]: a number of the simulator, and of the accounts.
truth() {
	"$LOADLINE_BUILD/sim/loadline-simctl" totals | jq "select(.card == $1) | .$2"
}

counted() {
	local uuid
	uuid=$("$LOADLINE_BUILD/sim/loadline-simctl" totals | jq -r "select(.card == $1) | .uuid")
	loadline report --by card --json "${3-$T/$DATABASE}" | jq -s "[.[] | select(.card == \"$uuid\") | .$2] | add // 0"
}

# agree CARD PROGRAMS [PART]: the accounts of the card are those of the simulator, GPU seconds within PART. The library charges
# a context, 528 MiB, before the card has it: contexts take no time in these worlds, so that only the host's time is between.
# The programs must have been ended by SIGTERM: then they free their memory themselves. The memory of a killed program ends in
# the world with the last step before its death, and in the accounts when loadlined sees the death, some 30 ms later on a
# busy host. What is compared is in the test's log.
agree() {
	local used held edge=$((100000000 * $2))
	used=$(truth "$1" kernel_seconds)
	held=$(truth "$1" memory_byte_seconds)
	printf '# card %s: GPU seconds %.3f, in truth %.3f; memory %.5g byte-seconds, in truth %.5g\n' "$1" \
		"$(counted "$1" used_seconds)" "$used" "$(counted "$1" memory_byte_seconds)" "$held" >&3
	near "$(counted "$1" used_seconds)" "$used" "${3-0.02}"
	near "$(counted "$1" memory_byte_seconds)" "$held" 0.001 "$edge"
}

# near VALUE TRUTH PART [MORE]
near() {
	jq -n -e "($1 - $2 | fabs) <= $2 * $3 + ${4-0} and $2 > 0" >/dev/null || {
		echo "$1 is not within $3 of $2"
		return 1
	}
}

# has_counted CARD SECONDS: so many GPU seconds are in the file.
has_counted() {
	jq -n -e "$(counted "$1" used_seconds) >= $2" >/dev/null
}

@test "GPU seconds and memory-seconds are those of the simulated cards" {
	begin_service
	# By time slices: a program learns some ms late, on a busy host, that it has company, and counts the other's slices until
	# then. The kernels are so long that this is little.
	busy_as "$FIRST" first 0 work 500ms sleep 500ms memory 4G
	busy_as "$FIRST" beside 0 work 300ms sleep 200ms memory 1G
	busy_as "$SECOND" second 1 kernel 20ms sleep 1ms memory 10G
	wait_for 60 has_counted 1 15
	stop first
	stop beside
	stop second
	wait_for 60 jobs_are 0
	stop service
	agree 0 2 0.08
	agree 1 1
	loadline report --json "$T/$DATABASE" >"$T/tenants.out"
	has tenants 'select(.tenant == "first") | .used_seconds > 1 and .lent_seconds == null and .joules == null'
}

@test "kill -9 of loadlined loses at most 10 s, and the next one counts nothing twice" {
	local used truth
	begin_service
	busy_as "$FIRST" first 0 kernel 5ms sleep 1ms memory 4G
	wait_for 60 has_counted 0 5
	for _ in 1 2; do
		sleep 5 # somewhere between two writes
		truth=$(truth 0 kernel_seconds)
		stop service KILL
		used=$(counted 0 used_seconds)
		echo "# lost by kill -9: $(jq -n "$truth - $used") GPU seconds" >&3
		jq -n -e "$truth - $used <= 10" >/dev/null
		serve
		wait_for 60 has_counted 0 "$truth" # it goes on where the file ended
	done
	wait_for 60 has_counted 0 "$(jq -n "$(truth 0 kernel_seconds) + 1")"
	stop first
	wait_for 60 jobs_are 0
	stop service
	agree 0 1
}

@test "a job whose monitor was stopped over a restart of loadlined, and that ended meanwhile, has its time" {
	local monitor
	begin_service
	busy_as "$FIRST" first 0 kernel 5ms sleep 1ms memory 4G
	wait_for 60 has_counted 0 2
	monitor=$(pids loadline-job)
	kill -STOP "$monitor"
	stop service KILL
	serve
	wait_for 60 eval "jq -n -e \"\$(truth 0 kernel_seconds) > $(truth 0 kernel_seconds) + 5\" >/dev/null"
	stop first
	kill -CONT "$monitor"
	wait_for 60 has_ended "$monitor"
	wait_for 60 has_counted 0 "$(jq -n "$(truth 0 kernel_seconds) * 0.98")"
	jq -n -e "$(counted 0 granted_seconds) >= $(counted 0 used_seconds)" >/dev/null
	stop service
	near "$(counted 0 used_seconds)" "$(truth 0 kernel_seconds)" 0.02
}

@test "a user's report has the own jobs, root's has all, in each form" {
	local number
	begin_service
	busy_as "$FIRST" first 0 kernel 5ms memory 1G
	busy_as "$SECOND" second 1 kernel 5ms memory 1G
	wait_for 60 eval 'loadline --sim report --json | jq -s -e "length == 2" >/dev/null'
	[ "$(as "$FIRST" "$LOADLINE" --sim report --json | jq -r .tenant)" = first ]
	[ "$(as "$SECOND" "$LOADLINE" --sim report --by user --json | jq .uid)" -eq "$SECOND" ]
	as "$FIRST" "$LOADLINE" --sim report | grep -q "^Your own jobs"
	loadline --sim report --by tenant | grep -q "^total "
	loadline --sim report --by card --csv | head -1 | grep -q "^card,granted_seconds,used_seconds,"
	number=$(loadline --sim status --json | jq 'select(.claim and .tenant == "first").job_number')
	[ "$(as "$FIRST" "$LOADLINE" --sim report --by job --json | jq .number)" = "$number" ]
	as "$FIRST" "$LOADLINE" --sim report --by job | grep -q "^$number "
	as "$FIRST" "$LOADLINE" --sim report --by job --csv | grep -q ",$number\$"
	[ "$(loadline --sim report --by day --csv | wc -l)" -ge 2 ]
	[ "$(loadline --sim report --since 2020-01-01 --until "2020-02-01 10:00")" = "Nothing was used in this time." ]
	loadline --sim report --html "$T/all.html"
	grep -q "<svg" "$T/all.html"
	run grep -E "https?:|<script|<link|src=" "$T/all.html"
	[ "$status" -ne 0 ]
	python3 -c 'import html.parser, sys; html.parser.HTMLParser().feed(open(sys.argv[1], encoding="utf-8").read())' "$T/all.html"
	mkdir -m 777 "$T/page"
	as "$FIRST" "$LOADLINE" --sim report --html "$T/page/own.html"
	run grep -c second "$T/page/own.html"
	[ "$output" = 0 ]
	run as "$FIRST" "$LOADLINE" report "$T/$DATABASE"
	[ "$status" -eq 1 ]
}

@test "a granted card without work is idle-held, and a share of compute is granted as such" {
	begin_service
	start_as "$FIRST" first "$LOADLINE" --sim run -i 0 --tenant first --compute 25% \
		-- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms sleep 100s memory 2G
	wait_for 60 grep -q "^busy: pid" "$T/first.out"
	wait_for 60 eval 'jq -n -e "$(counted 0 idle_held_seconds) > 5"'
	stop first KILL
	wait_for 60 jobs_are 0
	stop service
	loadline report --json "$T/$DATABASE" >"$T/all.out"
	has all '.used_seconds < 0.1 and (.granted_seconds * 4 - .idle_held_seconds | fabs) < 1.5'
}

@test "the energy of a card is divided among the jobs on it, and all of it is that of the card's counter" {
	local before busy idle all real part
	begin_service
	sense 2
	sleep 1 # a second reading
	before=$(truth 0 joules)
	busy_as "$FIRST" first 0 kernel 5ms sleep 2ms memory 1G
	busy_as "$SECOND" holder 0 kernel 1ms sleep 100s memory 2G
	wait_for 60 has_counted 0 12
	stop first KILL
	stop holder KILL
	wait_for 60 jobs_are 0
	real=$(jq -n "$(truth 0 joules) - $before")
	sleep 2 # the readings after the jobs' end
	stop service
	loadline report --json "$T/$DATABASE" >"$T/tenants.out"
	busy=$(jq 'select(.tenant == "first") | .joules' "$T/tenants.out")
	idle=$(jq 'select(.tenant == "holder") | .joules' "$T/tenants.out")
	all=$(counted 0 joules)
	echo "# joules: first $busy, holder $idle; in truth $real" >&3
	near "$all" "$(jq -n "$busy + $idle")" 0.001
	# Before the first job and after the last one the card rests for a second or two, which is nobody's.
	near "$all" "$real" 0.03 200
	# The pauses of the first job are too short to be idle-held: their energy is the other's.
	part=$(jq 'select(.tenant == "first") | .used_seconds / .granted_seconds' "$T/tenants.out")
	echo "# the first job used $part of its time" >&3
	near "$busy" "$(jq -n "$all * $part")" 0.15
	# Nothing runs on the other card.
	[ "$(counted 1 joules)" = 0 ]
	loadline report "$T/$DATABASE" | grep -q "energy kWh"
}

@test "the energy of a job on a MIG slice is unknown, and a sum has what is known" {
	printf '%s\n' "cards 2" "card 1 mig 2" >"$T/scenario"
	begin_service
	sense 4
	busy_as "$FIRST" whole 0 kernel 5ms memory 1G
	busy_as "$FIRST" sliced 1:0 kernel 5ms memory 1G
	wait_for 60 eval 'loadline --sim report --json | jq -s -e "map(select(.used_seconds > 1)) | length == 2" >/dev/null'
	stop whole KILL
	stop sliced KILL
	wait_for 60 jobs_are 0
	stop service
	loadline report --json "$T/$DATABASE" >"$T/tenants.out"
	has tenants 'select(.tenant == "sliced") | .joules == null'
	has tenants 'select(.tenant == "whole") | .joules > 0'
	[ "$(loadline report --by user --json "$T/$DATABASE" | jq .joules)" = "$(jq 'select(.tenant == "whole") | .joules' "$T/tenants.out")" ]
}

@test "a clock that is set back changes no amount" {
	[ -e "$LOADLINE_BUILD/tests/e2e/libwalljump.so" ] || skip "not built with this sanitizer"
	echo 0 >"$T/jump"
	# The amounts of all days.
	counted() {
		loadline report --since 2020-01-01 --until 2100-01-01 --by card --json "$T/$DATABASE" | jq -s "[.[] | .$2] | add // 0"
	}
	begin_service env LD_PRELOAD="$LOADLINE_BUILD/tests/e2e/libwalljump.so" WALLJUMP_FILE="$T/jump"
	busy_as "$FIRST" first 0 kernel 5ms sleep 1ms memory 1G
	wait_for 60 has_counted 0 1
	echo -1000000 >"$T/jump"
	wait_for 60 has_counted 0 9
	echo 86400 >"$T/jump"
	wait_for 60 has_counted 0 18
	stop first
	wait_for 60 jobs_are 0
	stop service
	[ "$(loadline report --since 2020-01-01 --until 2100-01-01 --by day --json "$T/$DATABASE" | wc -l)" -eq 3 ]
	agree 0 1
}

@test "a full disk is said once, use is kept in memory meanwhile, and written when there is room" {
	unshare -m true || skip "no mount namespaces here"
	begin_service unshare -m sh -c 'mount -t tmpfs -o size=256k,mode=777 none "$1" ; dd if=/dev/zero of="$1/ballast" bs=1k count=1000 status=none; shift && exec "$@"' \
		sh "$T/state"
	counted() {
		nsenter -m -t "$(pid_of service)" "$LOADLINE" report --by card --json "$T/$DATABASE" | jq -s ".[0].$2 // 0"
	}
	local inside
	inside=/proc/$(pid_of service)/root$T/state
	busy_as "$FIRST" first 0 kernel 5ms sleep 1ms memory 1G
	wait_for 60 grep -q "use is kept in memory until it can be written" "$T/world/loadlined.log"
	sleep 20
	[ "$(grep -c "use is kept in memory" "$T/world/loadlined.log")" -eq 1 ]
	rm "$inside/ballast"
	wait_for 60 grep -q "can be written again; 0 rows were lost" "$T/world/loadlined.log"
	stop first
	wait_for 60 jobs_are 0
	wait_for 60 eval 'near "$(counted 0 used_seconds)" "$(truth 0 kernel_seconds)" 0.02'
	agree 0 1
}

@test "a damaged file is moved aside and said; a newer one is left alone, and jobs run without accounts" {
	begin_service
	stop service
	head -c 8192 /dev/urandom >"$T/$DATABASE"
	serve
	wait_for 60 grep -q "was damaged; it is .*/accounts.db.damaged-.* now, and a new one was begun" "$T/world/loadlined.log"
	[ "$(find "$T/state" -name 'accounts.db.damaged-*' | wc -l)" -eq 1 ]
	busy_as "$FIRST" first 0 kernel 5ms sleep 1ms memory 1G
	wait_for 60 has_counted 0 1
	stop service
	# Byte 63 of the header is the last one of user_version.
	printf '\002' | dd of="$T/$DATABASE" bs=1 seek=63 conv=notrunc status=none
	serve
	wait_for 60 grep -q "a newer loadline has written it .*; no use is counted" "$T/world/loadlined.log"
	shows "select(has(\"claim\") and .pid == $(pid_of first))"
	fails_with 1 "a newer loadline has written it" --sim report
}
