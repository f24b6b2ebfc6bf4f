# loadline mps: the daemon, what its clients may use, and every trap on the way, on the simulated MPS.
# shellcheck disable=SC2030,SC2031
load helper

setup_file() {
	export LAUNCHER=$LOADLINE_BUILD/tests/e2e/launcher SIMCTL=$LOADLINE_BUILD/sim/loadline-simctl
}

# A daemon must not outlive its test's world.
teardown() {
	kill_programs
	wait
	"$SIMCTL" mps heal 2>/dev/null || true
	timeout 120 "$LOADLINE" --sim mps stop --force --within 10s >/dev/null 2>&1 || true
	rm -rf "$T"
}
mps() {
	loadline --sim mps "$@"
}

# mps_fails STATUS TEXT ARG...
mps_fails() {
	local expected=$1 text=$2
	shift 2
	fails_with "$expected" "$text" --sim mps "$@"
}

# report FILTER: does it give anything but null and false over the lines of `mps status --json`?
report() {
	mps status --json | jq -s -e "[.[] | $1] | any" >/dev/null
}

mode_of() {
	loadline --sim status -i "$1" --json | jq -r 'select(has("card")) | .compute_mode'
}

# client NAME [ARG]...: a program on MPS that launches kernels for ever, and has a context.
client() {
	local name=$1
	shift
	eval "$(mps env)"
	start_program "$name" env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$@" "$SIMCTL" busy 0
	wait_for 60 grep -q 'pid' "$T/$name.out"
	unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

need_root() {
	[ "$(id -u)" -eq 0 ] || skip "compute modes are root's to change"
}

need_launcher() {
	[ -x "$LAUNCHER" ] || skip "nothing can be preloaded in this build"
}

# bats test_tags=main
@test "start, status, stop: a daemon with its limits, and nothing left" {
	mps start --compute 50% --mem 8G
	report '.daemon and .compute_percent == 50 and .memory_limit_bytes == 8589934592 and .exclusive == false'
	mps stop
	mps_fails 1 "no MPS daemon runs at $T/world/mps/pipe" status
	mps_fails 1 "no MPS daemon" stop
	[ -z "$(ls "$T/world/mps/pipe")" ]
	[ -z "$(find "$T/world/mps" -name '*.record*')" ]
}

@test "a server for a user is there at once" {
	mps start --user "$(id -u)"
	report ".server and .user_id == $(id -u)"
	mps stop
}

@test "a daemon that runs is not started again" {
	mps start
	mps_fails 1 "runs at $T/world/mps/pipe already" start
	report '.daemon'
}

@test "only the chosen cards are shown to clients" {
	scenario 'cards 3'
	mps start -i 0,2
	[ "$(mps status --json | jq -r 'select(has("daemon")) | .card_uuids | length')" -eq 2 ]
	mps set --mem 4G -i 2
	mps_fails 2 "card 1 is not visible" set --mem 4G -i 1
	mps_fails 125 "card 1: the MPS daemon at $T/world/mps/pipe does not show it" run -i 1 -- true
}

@test "a percentage is said in SMs when a daemon is started" {
	run -0 mps start --compute 3%
	[[ $output == *"3 % of card 0's 132 SMs: 8 for each client, which is 6.1 %: MPS gives no client fewer"* ]]
}

# bats test_tags=main
@test "limits reach new clients only, and set says who has to be restarted" {
	mps start
	client old
	run -0 mps set --compute 25% --mem 4G
	[[ $output == *"until they are restarted: $(pid_of old)"* ]]
	[[ $output == *"25 % of card 0's 132 SMs: 32 for each client, because MPS rounds down to pairs of SMs"* ]]
	report '.server and .compute_percent == 25'
	report '.daemon and .compute_percent == 25 and .memory_limit_bytes == 4294967296'
}

# bats test_tags=main
@test "clients are listed, and kill takes one of them off" {
	mps start
	client first
	client second
	[ "$(mps clients --json | jq -s 'length')" -eq 2 ]
	[[ $(mps clients) == *"$(pid_of first)"* ]]
	mps kill "$(pid_of first)"
	wait_for 60 eval '[ "$(mps clients --json | wc -l)" -eq 1 ]'
	[ "$(mps clients --json | jq .client)" -eq "$(pid_of second)" ]
	is_running second
	mps_fails 1 "process 1 is no client" kill 1
}

@test "stop does not take a card from clients unless forced" {
	mps start
	client worker
	mps_fails 4 "MPS has clients: $(pid_of worker)" stop
	is_running worker
	report ".client == $(pid_of worker)"
	mps stop --force
	mps_fails 1 "no MPS daemon" status
}

@test "a client of two cards is named once" {
	scenario "cards 2"
	mps start
	client worker
	[ "$(mps clients | grep -c "$(pid_of worker)")" -eq 2 ]
	mps_fails 4 "MPS has clients: $(pid_of worker)" stop
	# shellcheck disable=SC2154
	[ "$(grep -o "$(pid_of worker)" <<<"$stderr" | wc -l)" -eq 1 ]
}

@test "a start that has no time says that, and nothing stays" {
	mps_fails 1 "no answer in time" start --within 1us
	mps_fails 1 "no MPS daemon runs" status
}

@test "a start that is interrupted leaves no daemon without its limits, and no mode" {
	need_root
	loadline --sim status >/dev/null
	"$SIMCTL" mps hang set_default_active_thread_percentage 5s
	start interrupted --sim mps start --exclusive --compute 30%
	wait_for 60 grep -q "Cmd:set_default_active" "$LOADLINE_SIM_DIR/mps/log/control.log"
	[ "$(mode_of 0)" = exclusive-process ]
	stop interrupted TERM
	[ "$status" -eq 143 ]
	grep -q "loadline: interrupted" "$T/interrupted.err"
	mps_fails 1 "no MPS daemon runs" status
	[ "$(mode_of 0)" = default ]
}

@test "terminate_client that hangs is bounded, reported, and not made up for by force" {
	mps start
	client victim
	"$SIMCTL" mps hang terminate_client 1h
	mps_fails 1 "client $(pid_of victim) was not ended: MPS: terminate_client: no answer in time" \
		kill "$(pid_of victim)" --within 1s
	# shellcheck disable=SC2154
	[[ $stderr == *"nothing else was done"* ]]
	is_running victim
	"$SIMCTL" mps heal
	# The command that hung may be carried out before this one.
	run mps kill "$(pid_of victim)"
	echo "$output"
	[[ $status -eq 0 || $output == *"is no longer a client"* ]]
	wait_for 60 eval '[ -z "$(mps clients --json)" ]'
}

@test "kill comes again when the daemon is busy with another" {
	mps start
	client first
	client second
	"$SIMCTL" mps hang terminate_client 3s count 1
	local server
	server=$(mps status --json | jq 'select(has("status")) | .server')
	start_program busy env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" CUDA_MPS_PIPE_DIRECTORY="$T/world/mps/pipe" \
		sh -c "echo terminate_client $server $(pid_of first) | $LOADLINE_BUILD/sim/nvidia-cuda-mps-control"
	wait_for 60 grep -q terminate_client "$T/world/mps/log/control.log"
	mps kill "$(pid_of second)"
	finish busy
	grep -q "Another client is being terminated" "$T/world/mps/log/control.log"
	[ "$(cat "$T/busy.out")" = 0 ]
	wait_for 60 eval '[ -z "$(mps clients --json)" ]'
}

@test "a quit without an answer is followed by another one" {
	mps start
	"$SIMCTL" mps hang quit 1h count 1
	mps stop --within 20s
	[ "$(pgrep -c -f "nvidia-cuda-mps-control.*$T" || true)" -eq 0 ]
}

@test "a daemon that hangs is ended by force alone, and that is said" {
	mps start
	"$SIMCTL" mps hang get_server_list 1h
	"$SIMCTL" mps hang quit 1h
	mps_fails 1 "no answer in time" stop --within 1s
	[[ $stderr == *--force* ]]
	run -0 mps stop --force --within 4s
	[[ $output == *"signals ended it"* ]]
}

@test "where no daemon runs none hangs, however short the time" {
	local time
	for time in 0 1ms; do
		mps_fails 1 "no MPS daemon at $T/world/mps/pipe" stop --within "$time"
		mps_fails 1 "no MPS daemon at $T/world/mps/pipe" stop --force --within "$time"
		mps_fails 1 "no MPS daemon runs at $T/world/mps/pipe; start one: loadline --sim mps start" kill 17 --within "$time"
	done
	mps start
	mps_fails 1 "no answer in time" stop --within 0
	mps stop
}

@test "status calls the server of MPS by what it is" {
	mps start
	start client --sim mps run -- "$SIMCTL" busy 0 kernel 1ms for 60s
	wait_for 60 shows 'select(has("process")) | .mps_server and .governed == false'
	loadline --sim status --long | grep -qE "^  pid [0-9]+  MPS server, [0-9]+ MiB, age [0-9]+ s, last kernel .*$"
	loadline --sim status | grep -qE "^0/- .* MPS server +[^ ].* +[0-9]+ s +[0-9]+ MiB "
	run ! eval 'loadline --sim status | grep -q "nvidia-cuda-mps.*ungoverned"'
	stop client KILL
}

@test "exclusive mode is set with --exclusive alone, and put back" {
	need_root
	scenario 'cards 2'
	mps start -i 1 --exclusive
	[ "$(mode_of 0)" = default ]
	[ "$(mode_of 1)" = exclusive-process ]
	report '.daemon and .exclusive'
	run -0 mps stop
	[[ $output == *"restored on 1 card"* ]]
	[ "$(mode_of 1)" = default ]
}

@test "a card in exclusive mode already is left in it" {
	need_root
	"$SIMCTL" card 0 mode exclusive
	mps start --exclusive
	mps stop
	[ "$(mode_of 0)" = exclusive-process ]
}

@test "a card that somebody uses is not put into exclusive mode" {
	need_root
	start_program other env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$SIMCTL" busy 0
	wait_for 60 grep -q pid "$T/other.out"
	mps_fails 4 "process $(pid_of other) uses it" start --exclusive
	[ "$(mode_of 0)" = default ]
	mps_fails 1 "no MPS daemon" status
}

@test "a daemon that was killed leaves a card that doctor finds and stop mends" {
	need_root
	mps start --exclusive
	"$SIMCTL" mps die daemon
	run loadline --sim doctor --no-trial
	[[ $output == *"in exclusive mode"*"loadline --sim mps stop"* ]]
	mps_fails 1 "in exclusive mode for a daemon that is gone: \`loadline --sim mps stop\` restores their mode" status
	run -0 mps stop
	[[ $output == *"restored on 1 card"* ]]
	[ "$(mode_of 0)" = default ]
	run loadline --sim doctor --no-trial
	[[ $output != *"loadline mps stop"* ]]
}

# as_nobody WORD...: without root, in a world of its own.
as_nobody() {
	[ "$(id -u)" -eq 0 ] || skip "needs root, to be somebody else"
	command -v setpriv >/dev/null || skip "no setpriv"
	mkdir -p "$T/nobody/world" "$T/nobody/run"
	chmod 711 "$T"
	chmod -R go-w "$T/nobody"
	chown -R 65534:65534 "$T/nobody"
	env LOADLINE_SIM_DIR="$T/nobody/world" XDG_RUNTIME_DIR="$T/nobody/run" \
		setpriv --reuid 65534 --regid 65534 --clear-groups "$LOADLINE" --sim "$@"
}

@test "a record that is garbled is said, and nothing is started over it" {
	need_root
	mps start --exclusive
	local record
	record=$(compgen -G "$LOADLINE_SIM_DIR/mps/*.record")
	echo garbled >"$record"
	mps_fails 1 "$record: is garbled; look at the cards' compute modes" stop
	run loadline --sim doctor --no-trial
	[[ $output == *"$record: is garbled"* ]]
	mps_fails 1 "$record: is garbled" start
	rm "$record"
	mps start
	mps stop
}

# bats test_tags=main
@test "all of it works without root, but for compute modes" {
	as_nobody version >/dev/null 2>&1 || skip "the build folder is not open to others"
	as_nobody mps start --compute 50%
	[ "$(as_nobody mps status --json | jq -r 'select(has("daemon")) | .compute_percent')" = 50 ]
	as_nobody mps stop
	run as_nobody mps start --exclusive
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"only root may change its compute mode; start without --exclusive"* ]]
	run as_nobody mps start --user 0
	[ "$status" -eq 1 ]
	[[ $output == *"only root may start a server for another user"* ]]
	run as_nobody mps stop
	[[ $output == *"no MPS daemon"* ]]
}

# A control program that is a script: what it says for each command is in the cases given.
fake() {
	mkdir -p "$T/fake"
	printf '#!/bin/sh\nread -r c\ncase $c in\n%s\n*) echo "Unknown command: $c" ;;\nesac\n' "$1" \
		>"$T/fake/nvidia-cuda-mps-control"
	chmod +x "$T/fake/nvidia-cuda-mps-control"
	mkdir -p "$T/world/mps/pipe"
	chmod 700 "$T/world/mps" "$T/world/mps/pipe"
	touch "$T/world/mps/pipe/control"
}

# faked WORD...: loadline on the simulated driver with that control program.
faked() {
	LD_LIBRARY_PATH=$T/fake:$LOADLINE_BUILD/sim "$LOADLINE" "$@"
}

@test "a server of another user is told, and no client of ours waits for it" {
	need_root
	command -v setpriv >/dev/null || skip "no setpriv"
	start_program other setpriv --reuid 65534 --clear-groups sleep 100
	wait_for 60 eval '[ "$(stat -c %u "/proc/$(pid_of other)")" = 65534 ]'
	fake "get_server_list) echo $(pid_of other) ;;
get_server_status*) echo ACTIVE ;;
get_client_list*) echo 4711 ;;
get_*percentage*) echo 100.0 ;;"
	run -0 faked mps status
	[[ $output == *"serves user 65534"* ]]
	run faked doctor --no-trial
	[[ $output == *"serves user 65534"* ]]
	run -125 faked mps run -- true
	[[ $output == *"serves user 65534: a client of yours would wait"* ]]
}

@test "a daemon that speaks another protocol is recognised by what it answers" {
	fake ''
	run -1 faked mps status
	[[ $output == *"another protocol than version 2 (MPS v3)"* ]]
	run -125 faked mps run -- true
	[[ $output == *"MPS v3"* ]]
	run faked doctor --no-trial
	[[ $output == *"MPS v3"* ]]
}

@test "nobody is ended for having the number that a daemon of another PID namespace tells" {
	start_program bystander sleep 100
	fake "get_server_list) echo $(pid_of bystander) ;;
get_server_status*) echo ACTIVE ;;
get_*) ;;
quit|shutdown_server*) ;;"
	run -1 faked mps stop --force --within 500ms
	[[ $output == *"still runs"* ]]
	is_running bystander
}

@test "a program that only calls itself a server of MPS is none, and is not ended" {
	mkdir -m 700 "$T/world/mps" "$T/world/mps/pipe"
	CUDA_MPS_PIPE_DIRECTORY=$T/world/mps/pipe start_program bystander bash -c 'exec -a nvidia-cuda-mps-server sleep 100'
	wait_for 60 grep -q nvidia-cuda-mps-server "/proc/$(pid_of bystander)/cmdline"
	mps_fails 1 "no MPS daemon" stop --force --within 1s
	is_running bystander
}

@test "a client that goes before it is taken off is no client any more, and is asked for once" {
	fake "get_server_list) echo 17 ;;
get_server_status*) echo ACTIVE ;;
get_client_list*) echo 4711 ;;
get_*) ;;
terminate_client*) echo asked >>$T/asked; echo 201 ;;"
	mkdir -p "$T/world/mps/pipe"
	run faked mps kill 4711
	[ "$status" -ne 0 ]
	[[ $output == *"process 4711 is no longer a client"* ]]
	[ "$(wc -l <"$T/asked")" -eq 1 ]
}

@test "a client that is gone after a try without an answer was taken off by that try" {
	fake "get_server_list) echo 17 ;;
get_server_status*) echo ACTIVE ;;
get_client_list*) echo 4711 ;;
get_*) ;;
terminate_client*) echo asked >>$T/asked; [ \$(wc -l <$T/asked) -gt 1 ] && echo 201 || sleep 20 ;;"
	mkdir -p "$T/world/mps/pipe"
	run -0 faked mps kill 4711 --within 3s
	[[ $output == *"client 4711 is off MPS"* ]]
	[ "$(wc -l <"$T/asked")" -eq 2 ]
}

@test "a daemon that holds another limit than it was told is not believed" {
	fake 'get_server_list) ;;
set_default_active*) echo 0 ;;
get_default_active*) echo 100.0 ;;
get_*) ;;'
	run -1 faked mps set --compute 25%
	[[ $output == *"asked for 25, the daemon holds '100.0'"* ]]
}

@test "of two that start at once one starts it" {
	start one --sim mps start --exclusive
	start two --sim mps start --exclusive
	finish one
	local first=$status
	finish two
	[ $((first == 0)) -ne $((status == 0)) ]
	grep -q "already" "$T/one.err" "$T/two.err"
	report '.daemon'
}

@test "a wrong pipe directory is said in one sentence, with the right one" {
	mps start
	mkdir -m 700 "$T/other"
	export CUDA_MPS_PIPE_DIRECTORY=$T/other
	mps_fails 1 "no MPS daemon runs at $T/other, where CUDA_MPS_PIPE_DIRECTORY points; one runs at " status
	mps_fails 1 "no MPS daemon runs at $T/other" env
	mps_fails 125 "no MPS daemon runs at $T/other" run -- true
	unset CUDA_MPS_PIPE_DIRECTORY
	report '.daemon'
}

@test "a folder that others may write is not used" {
	mkdir -m 777 "$T/open"
	chmod 777 "$T/open"
	export CUDA_MPS_PIPE_DIRECTORY=$T/open
	mps_fails 1 "others may write it" start
	export CUDA_MPS_PIPE_DIRECTORY=relative/path
	mps_fails 2 "not an absolute path" start
	CUDA_MPS_PIPE_DIRECTORY=/tmp/$(printf 'x%.0s' {1..120})
	mps_fails 1 "longer than" start
}

@test "a daemon that somebody else started is shown, set and ended like our own" {
	scenario 'cards 2'
	loadline --sim status >/dev/null
	mkdir -m 700 "$T/world/mps"
	mkdir -m 700 "$T/world/mps/pipe" "$T/world/mps/log"
	env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" CUDA_VISIBLE_DEVICES=1 CUDA_MPS_PIPE_DIRECTORY="$T/world/mps/pipe" \
		CUDA_MPS_LOG_DIRECTORY="$T/world/mps/log" "$LOADLINE_BUILD/sim/nvidia-cuda-mps-control" -d
	local second
	second=$(loadline --sim status -i 1 --json | jq -r 'select(has("card")) | .uuid')
	report ".daemon and .card_uuids == [\"$second\"]"
	mps set --compute 25% --mem 4G
	mps_fails 2 "card 0 is not visible" set --mem 4G -i 0
	mps_fails 1 "already" start
	mps stop
	mps_fails 1 "no MPS daemon" status
}

@test "env is for eval" {
	mps_fails 1 "start one: loadline --sim mps start" env
	mps start
	(eval "$(mps env)" && [ "$CUDA_MPS_PIPE_DIRECTORY" = "$T/world/mps/pipe" ])
}

@test "a server in FAULT is shown, and takes no client" {
	mps start
	client hit
	"$SIMCTL" mps fault for 1h
	wait_for 60 report '.server and .status == "fault"'
	report '.warning // "" | contains("FAULT")'
	run loadline --sim doctor --no-trial
	[[ $output == *"FAULT"* ]]
	mps_fails 125 "is in FAULT" run -- true
}

@test "static partitions are shown where the driver has them" {
	mps start
	report '.daemon and .has_static_partitions == false'
	mps stop
	unset LOADLINE_SIM_SCENARIO
	rm -rf "$T/world"
	mkdir -m 700 "$T/world"
	scenario 'driver 590.44.01 cuda 13.1'
	mps start
	report '.daemon and .has_static_partitions'
}

@test "variables that the driver would misunderstand are refused" {
	mps start
	CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=200 mps_fails 125 "not above 0 and at most 100" run -- true
	CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2G,7=2G mps_fails 125 "card '7' is not visible" run -- true
	CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=lots mps_fails 125 "is not CARD=SIZE" run -- true
}

@test "run starts a client that has a claim, with its share of the SMs" {
	need_launcher
	mps start
	start job --sim mps run --tenant job --compute 25% --mem 20G -- "$LAUNCHER" 1
	wait_for 60 shows 'select(has("claim") and .tenant == "job" and .gpu_seconds > 0)'
	shows 'select(has("claim") and .tenant == "job") | .by == "space" and .mps_compute_percent == 25 and .compute_cap_percent == null'
	[[ $(loadline --sim status --long) == *"on MPS with 25 % of the SMs"* ]]
	report ".client == $(pid_of job)"
	grep -qz '^CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25$' "/proc/$(pid_of job)/environ"
	fails_with 4 "shares card 0 by space" --sim set job --compute 50%
	run -0 loadline --sim set job --mem 10G --weight 2
	[[ $output == *"WARN --weight is not in force between clients of MPS"*"--compute gives a client its part of the SMs"* ]]
	run -0 loadline --sim mps run --weight 2 -- true
	[[ $output == *"WARN --weight is not in force between clients of MPS"* ]]
	run -0 loadline --sim run --by auto --weight 2 -- true
	[[ $output == *"WARN --weight is not in force between clients of MPS"* ]]
	run -0 loadline --sim run --by slices --weight 2 -- true
	[[ $output != *"--weight"* ]]
}

# bats test_tags=main
@test "run --by space needs no mps start: it starts a daemon, which stays, and the next one finds it" {
	need_launcher
	run -0 loadline --sim run --by space --compute 25% -- env
	[[ $output == *"INFO no MPS daemon ran: started one, process "*"it stays until \`loadline --sim mps stop\`"* ]]
	[[ $output == *"CUDA_MPS_PIPE_DIRECTORY=$T/world/mps/pipe"* ]]
	daemon=$(mps status --json | jq -r 'select(has("daemon")) | .daemon')
	[ "$(ps -o ppid= -p "$daemon" | tr -d ' ')" -eq 1 ]
	run -0 loadline --sim mps run -- true
	[[ $output != *"started one"* ]]
	[ "$(mps status --json | jq -r 'select(has("daemon")) | .daemon')" -eq "$daemon" ]
	report 'has("daemon") and (.cgroup | startswith("/"))'
	mps stop
	fails_with 1 "no MPS daemon runs" --sim mps status
	# By auto none is started.
	run -0 loadline --sim run --by auto -- true
	fails_with 1 "no MPS daemon runs" --sim mps status
}

@test "of many that need a daemon at once one starts it" {
	need_launcher
	for i in 1 2 3 4 5; do
		start "client$i" --sim run --by space -- true
	done
	for i in 1 2 3 4 5; do
		finish "client$i"
		[ "$status" -eq 0 ]
	done
	[ "$(cat "$T"/client?.err | grep -c "started one")" -eq 1 ]
}

@test "run --by space takes the daemon that this user has started elsewhere" {
	need_launcher
	CUDA_MPS_PIPE_DIRECTORY=$T/mine loadline --sim mps start
	run -0 loadline --sim run --by space -- env
	[[ $output != *"started one"* ]]
	[[ $output == *"CUDA_MPS_PIPE_DIRECTORY=$T/mine"* ]]
	CUDA_MPS_PIPE_DIRECTORY=$T/mine loadline --sim mps stop
}

@test "run --by space is the same, and corrects the total" {
	need_launcher
	mps start
	run -0 loadline --sim run --by space --compute 25% --mem 20G -- \
		python3 "$BATS_TEST_DIRNAME/card_memory.py" context info card
	echo "$output"
	[[ $output == *20480*20480* ]]
	[[ $output == *"INFO 25 % of card 0's 132 SMs: 32 for each client, "* ]]
	run -0 loadline --sim run --by space --compute 3% -- true
	[[ $output == *"WARN 3 % of card 0's 132 SMs: 8 for each client, which is 6.1 %: MPS gives no client fewer"* ]]
	run -0 loadline --sim run --by space -- env
	[[ $output != *SMs* ]]
	[[ $output == *"CUDA_MPS_PIPE_DIRECTORY=$T/world/mps/pipe"* ]]
	[[ $output != *CUDA_MPS_ACTIVE_THREAD_PERCENTAGE* ]]
}

# load_code JOB OPTION...: a program whose code uses dynamic parallelism (children.py), under run with these options.
load_code() {
	local job=$1
	shift
	# shellcheck disable=SC2086
	run --separate-stderr -0 loadline --sim run "$@" -- python3 "$BATS_TEST_DIRNAME/children.py" $job
}

# who_told CODE: the functions of the lines that it was told in, and nothing else on standard error. Each process has one line.
who_told() {
	local end=": CUDA error $1: MPS loads no code that launches kernels from kernels (dynamic parallelism); run this program without MPS, by slices"
	# shellcheck disable=SC2154
	while IFS= read -r line; do
		line=${line%"$end"}
		echo "${line#loadline: }"
	done <<<"$stderr"
}

# who_answered CODE: the functions that the program saw answer with it.
who_answered() {
	# shellcheck disable=SC2154
	sed -n "s/ $1\$//p" <<<"$output"
}

@test "a client of MPS that cannot load code with dynamic parallelism is told why, once" {
	load_code twice
	[ "${lines[*]}" = "0 0 0 0 0 0 0 0" ]
	is_silent
	mps start
	load_code twice --by space
	[ "${lines[*]}" = "0 0 0 0 811 811 811 811" ]
	[ "$(who_told 811)" = cuModuleLoadData ]
	# Older drivers have no error for it; another reason for "not supported" is nobody's guess without MPS.
	"$SIMCTL" fail cuModuleLoadDataEx CUDA_ERROR_NOT_SUPPORTED
	load_code twice --by space
	[ "$(who_told 801)" = cuModuleLoadData ]
	load_code twice --by slices
	is_silent
}

@test "a client of MPS is told whichever function needs a library's code with dynamic parallelism first" {
	scenario "init-time 0" "card all context-time 0"
	load_code ways
	[ -z "$(who_answered 811)" ]
	is_silent
	mps start
	load_code ways --by space
	[ "$(who_answered 811)" = "$(who_told 811)" ]
	for name in cuLibraryGetModule cuLibraryGetGlobal cuKernelGetFunction cuLaunchKernel cuLaunchKernelEx_ptsz cuGraphAddKernelNode_v2; do
		who_told 811 | grep -qx "$name"
	done
}

@test "every hook of a function that may need code tells it, whether the gate is open or the program waits its turn" {
	scenario "init-time 0" "card all context-time 0" "driver 620.10 cuda 13.4"
	# A driver that does not say whether it has MPS: nobody else has this error.
	load_code old --by slices --compute 50%
	[ "$(who_answered 811 | wc -l)" -eq "$(python3 "$BATS_TEST_DIRNAME/children.py" hooked | wc -l)" ]
	[ "$(who_answered 811)" = "$(who_told 811)" ]
	load_code faults --by slices --compute 50%
	is_silent
	mps start
	load_code faults --by space
	[ "$(who_answered 811 | wc -l)" -eq "$(python3 "$BATS_TEST_DIRNAME/children.py" hooked | wc -l)" ]
	[ "$(who_answered 811)" = "$(who_told 811)" ]
	# What only loads code has no other reason for "not supported"; launches and questions have many.
	load_code "faults CUDA_ERROR_NOT_SUPPORTED" --by space
	[ "$(who_told 801)" = "$(python3 "$BATS_TEST_DIRNAME/children.py" loading)" ]
}

@test "two equal programs by space do not wait for each other" {
	need_launcher
	mps start
	start one --sim run --by space --tenant one --compute 50% -- "$LAUNCHER" 5
	start two --sim run --by space --tenant two --compute 50% -- "$LAUNCHER" 5
	for name in one two; do
		wait_for 60 used "$name" 0.1
		shows "select(has(\"claim\") and .tenant == \"$name\") | .waits_for == null"
	done
}

# by_space NAME OPTION...: a program on MPS that launches kernels of 1 ms for ever.
by_space() {
	local name=$1
	shift
	start "$name" --sim run --by space --tenant "$name" "$@" -- "$LAUNCHER" 1
}

@test "clients wait for nobody, whatever their weights and classes" {
	need_launcher
	mps start
	by_space light --weight 1
	by_space heavy --weight 10
	by_space low --class low
	by_space high --class high
	wait_for 60 status_has 'map(select(has("claim"))) |
		length == 4 and all(.[]; .gpu_seconds > 0.3 and .waits_for == null)'
}

# way_of NAME OPTION...: what --by auto makes of it.
way_of() {
	local name=$1
	shift
	run -0 loadline --sim run --by auto --tenant "$name" "$@" -- env
}

# bats test_tags=main
@test "--by auto is space where a daemon takes the program as it is asked for, else slices" {
	need_launcher
	way_of none
	[[ $output == *"INFO shares the card by slices: no MPS daemon runs at $T/world/mps/pipe"* ]]
	[[ $output != *CUDA_MPS_PIPE_DIRECTORY* ]]
	mps start --mem 8G
	way_of client --weight 2
	[[ $output == *"INFO shares the card by space, as a client of the MPS daemon at $T/world/mps/pipe"* ]]
	[[ $output == *"CUDA_MPS_PIPE_DIRECTORY=$T/world/mps/pipe"* ]]
	way_of share --compute 25%
	[[ $output == *"INFO shares the card by slices: --compute is a share of the time"* ]]
	[[ $output != *CUDA_MPS_PIPE_DIRECTORY* ]]
	way_of large --mem 9G
	[[ $output == *"INFO shares the card by slices: --mem: this MPS daemon gives a client 8192 MiB at most"* ]]
	way_of killed --max-kernel 10s:kill
	[[ $output == *"INFO shares the card by slices: a client of MPS must not be killed while its kernel runs"* ]]
	# What it starts shares as it does, and is told nothing.
	run -0 loadline --sim run --by auto -- "$LOADLINE" run --by auto -- env
	[ "$(grep -c "INFO shares" <<<"$output")" -eq 1 ]
}

# bats test_tags=main
@test "hold --mps is a client of the daemon, and refuses to be anything else" {
	scenario 'cards 2'
	fails_with 1 "--mps: no MPS daemon runs at $T/world/mps/pipe" --sim hold --mps --for 1s
	mps start -i 0
	fails_with 3 "--mps: card 1: the MPS daemon at $T/world/mps/pipe does not show it" --sim hold --mps -i 1 --for 1s
	start hold --sim hold --mps --target 30% --json
	wait_for 60 has hold 'select(.event == "sample" and .state == "holding" and .synthetic_busy_seconds > 0.1)'
	report .client
	stop hold INT
	[ "$status" -eq 0 ]
	run ! report .client
}

@test "many that ask the daemon at once have their answers one after the other" {
	need_launcher
	mps start
	for i in 1 2 3 4 5 6; do
		start "one-$i" --sim run --by space --tenant "one-$i" -- true
	done
	for i in 1 2 3 4 5 6; do
		finish "one-$i"
		[ "$status" -eq 0 ] || { show; false; }
	done
	# Somebody else's caller is waited for, too.
	start_program other flock "$T/world/mps/pipe/nvidia-cuda-mps-control.pid" sleep 0.5
	report .daemon
	stop other
}

# bats test_tags=main
@test "what cannot be had by space is refused before the command runs" {
	CUDA_MPS_PIPE_DIRECTORY=$T/nowhere fails_with 125 "no MPS daemon runs at $T/nowhere, where CUDA_MPS_PIPE_DIRECTORY points" \
		--sim run --by space -- touch "$T/ran"
	fails_with 125 "--max-kernel=10s:kill: would kill a client of MPS while its kernel runs" --sim run --by space --max-kernel 10s:kill -- touch "$T/ran"
	mps start --compute 50% --mem 8G
	fails_with 125 "gives a client 50 % of the SMs at most" --sim run --by space --compute 60% -- touch "$T/ran"
	fails_with 125 "gives a client 8192 MiB at most" --sim run --by space --mem 9G -- touch "$T/ran"
	[ ! -e "$T/ran" ]
}

# bats test_tags=main
@test "bad input is refused, and nothing starts" {
	for words in 'start --compute 0' 'start --compute 101%' 'start --mem 1' 'start --mem 1P' 'start --mem 999G' \
		'start --user nobody-of-that-name' 'start extra' 'set' 'set -i 0' 'kill' 'kill abc' 'kill 1 2' 'frobnicate' \
		'stop --within never'; do
		# shellcheck disable=SC2086
		mps_fails 2 "" $words
	done
	mps_fails 3 "" start -i 7
	mps_fails 1 "no MPS daemon" status
}

@test "help of the group and of each of its commands" {
	[[ $(loadline mps --help) == *"Usage: loadline mps COMMAND"* ]]
	for name in start stop status set clients kill env run; do
		[[ $(loadline mps "$name" --help) == "Usage: loadline mps $name"* ]]
		[ "$(loadline help mps "$name")" = "$(loadline mps "$name" --help)" ]
	done
	[[ $(loadline help --man mps) == *".SS loadline mps start"* ]]
	fails_with 2 "use one of: start, stop" mps
	fails_with 2 "mps nothing: unknown command" mps nothing
}
