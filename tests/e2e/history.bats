# The jobs that have ended: how, when, what they used and asked for, and who sees them.
# shellcheck disable=SC2153 # FIRST and SECOND are of queue_helper.bash
load queue_helper

# past FILTER: true for the array of all jobs that ended, as root sees them?
past() {
	loadline --sim history --json | jq -s -e "$1" >"$T/past.out"
}

# ends UID ARG...: of run; waits for its end.
ends() {
	local uid=$1
	shift
	run as "$uid" "$LOADLINE" --sim run "$@"
}

@test "each job that ended is there, with what it asked for and how it ended" {
	STATE=$T/state
	start_queue
	ends "$FIRST" --mem 8G --time 30m -- sh -c 'exit 3'
	run_as "$FIRST" killed --cards 2
	wait_for 60 grep -q "cards=GPU-" "$T/killed.out"
	killed=$(number_of 0)
	run_as "$FIRST" waiting --cards 4
	wait_for 60 says waiting "in the queue"
	waiting=$(number_of 1)
	loadline --sim queue cancel "$waiting"
	stop killed KILL
	run_as "$SECOND" canceled --mem 4G
	wait_for 60 grep -q "cards=GPU-" "$T/canceled.out"
	canceled=$(number_of 0)
	as "$SECOND" "$LOADLINE" --sim queue cancel "$canceled"
	finish canceled
	start_as "$SECOND" late "$LOADLINE" --sim run --mem 4G --time 2s -- \
		sh -c 'trap : USR1; trap "exit 0" TERM; while :; do sleep 0.1; done'
	finish late
	wait_for 60 past 'length == 5'
	loadline --sim history
	past '[.[].end] | . == (sort | reverse)'
	past '.[-1] | .uid == '"$FIRST"' and .tenant == "research" and .cards == "4" and .asked_cards == 1 and
		.asked_memory_bytes == 8589934592 and .asked_time_seconds == 1800 and .class == "normal" and
		.came <= .start and .start <= .end and .gpu_seconds == 0'
	past 'map(select(.number == '"$killed"'))[0] | .cards == "0,1" and .asked_cards == 2 and (.state == "killed" or .state == "ended")'
	past 'map(select(.number == '"$waiting"'))[0] | .how == "canceled by root" and .state == "canceled" and .start == null and .cards == null and .by_uid == 0'
	past 'map(select(.number == '"$canceled"'))[0] | .how == "canceled by '"$SECOND"'"'
	past '.[0] | .how == "out of time" and .state == "time" and .asked_time_seconds == 2'
	# A kernel that tells the status of a process that has ended: Linux 6.13.
	if past '.[-1].state != "ended"'; then
		past '.[-1] | .how == "exit 3" and .state == "failed" and .exit_status == 3'
		past 'map(select(.number == '"$killed"'))[0].how == "killed by SIGKILL"'
	fi
	[ "$(loadline --sim history --state time --json | jq .number)" -eq "$(jq -n "$canceled + 1")" ]
	[ "$(loadline --sim history --tenant course --json | jq -s length)" -eq 2 ]
	[ "$(loadline --sim history -u "$FIRST" --json | jq -s length)" -eq 3 ]
	[ "$(loadline --sim history --until 1h)" = "no job ended in this time" ]
	[ "$(loadline --sim history --last 2 --json 2>"$T/last.err" | jq -s length)" -eq 2 ]
	grep -q "the last 2 jobs alone" "$T/last.err"
	[ "$(loadline --sim history --csv | head -1 | cut -d, -f1-4)" = "number,user,uid,tenant" ]
	[ "$(loadline --sim history --csv | wc -l)" -eq 6 ]
	run -2 loadline --sim history -u nobody-of-this-name
	# The next loadlined knows them too.
	restart_loadlined
	wait_for 60 past 'length == 5'
}

@test "a job that submit started has its status, and one that was refused memory ran out of it" {
	STATE=$T/state
	start_queue
	export XDG_STATE_HOME=$T/jobs
	install -d -o "$FIRST" "$T/jobs"
	cd "$T/jobs"
	number=$(as "$FIRST" "$LOADLINE" --sim submit --mem 8G -- sh -c 'exit 7')
	wait_for 60 past 'any(.[]; .number == '"$number"' and .how == "exit 7")'
	run as "$FIRST" "$LOADLINE" --sim run --mem 2G -- /usr/bin/python3 -c '
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuInit(0)
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context)
raise SystemExit(9 if cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(3 << 30)) == 2 else 1)'
	[ "$status" -eq 9 ]
	wait_for 60 past 'length == 2 and (.[0] | .memory_byte_seconds > 0 and (.state == "memory" or .state == "ended"))'
}

@test "users see their own jobs, and with others: all those of all without hidden commands" {
	STATE=$T/state
	start_queue
	ends "$FIRST" --mem 8G -- true
	ends "$SECOND" --mem 8G -- true
	wait_for 60 past '[.[].command] == ["true", "true"]'
	as "$SECOND" "$LOADLINE" --sim history --json | jq -s -e '[.[].uid] == ['"$SECOND"']'
	as "$SECOND" "$LOADLINE" --sim history | grep "Your own jobs"
	[ -z "$(as "$SECOND" "$LOADLINE" --sim history -u "$FIRST" --json)" ]
	sed -i 's/others: user-and-share/others: all/' "$T/conf/loadline.yaml"
	kill -HUP "$(pid_of service)"
	wait_for 60 eval 'as "$SECOND" "$LOADLINE" --sim history --json | jq -s -e "[.[] | [.uid, .command]] == [[$SECOND, \"true\"], [$FIRST, null]]"'
}

@test "a job has the name that its user gave it, in the queue and later" {
	# shellcheck disable=SC2034 # of start_loadlined
	STATE=$T/state
	start_queue
	refuses "$FIRST" 125 "--name" run --name 'a b' --mem 4G -- true
	run_as "$FIRST" first --name 训练-1 --cards 4
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$FIRST" second --name second --cards 1
	wait_for 60 says second "in the queue"
	queue '[.[].queued.name] == ["训练-1", "second"]'
	loadline --sim queue | grep -q " 训练-1  "
	# Others are not told it, as the command.
	as "$SECOND" "$LOADLINE" --sim queue --json | jq -s -e '[.[].queued.name] == [null, null]'
	restart_loadlined
	wait_for 60 queue '[.[].queued.name] == ["训练-1", "second"]'
	stop second TERM
	stop first TERM
	install -d -o "$FIRST" "$T/jobs"
	cd "$T/jobs"
	XDG_STATE_HOME=$T/jobs as "$FIRST" "$LOADLINE" --sim submit --name third --mem 4G -- true
	wait_for 60 past '[.[].name] | sort == ["second", "third", "训练-1"]'
	loadline --sim history | grep -q " 训练-1  "
}
