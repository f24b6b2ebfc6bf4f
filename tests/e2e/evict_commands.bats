# evict, suspend and resume at a terminal: what they say of what was so before, how far they are, and what an interruption
# leaves behind.
load evict_helper

export NEEDS="python3"

@test "what was so before is said to be so, in text and in JSON" {
	needs_preload
	start_worker one --bytes 4M
	id=$(loadline --sim status --json | jq -r 'select(.tenant == "one") | .claim')
	while read -r command before after; do
		run -0 loadline --sim "$command" one
		echo "$command: $output"
		case $before in
		new) [[ $output == "$after $id, tenant one: "*" in "*" s" ]] ;;
		*) [ "$output" = "$id, tenant one: ${after//_/ }" ] ;;
		esac
	done <<-'END'
		resume old was_neither_evicted_nor_suspended
		suspend new suspended
		suspend old was_already_suspended
		evict new evicted
		evict old was_already_evicted
		resume new resumed
		resume old was_neither_evicted_nor_suspended
	END
	loadline --sim evict one --json | jq -e '.event == "evicted" and .already == false'
	loadline --sim evict one --json | jq -e '.event == "evicted" and .already == true'
	loadline --sim resume one --json | jq -e '.event == "resumed" and .already == false'
	loadline --sim resume one --json | jq -e '.event == "resumed" and .already == true'
	ends_well one
}

# interrupted COMMAND...: starts it, ends it by TERM when loadlined has been asked, and lets the program one answer.
interrupted() {
	freeze one
	start command --sim "$@"
	wait_for 60 is_now one "$EXPECTED"
	kill -TERM "$(pid_of command)"
	wait_for 60 grep -q "^loadline: interrupted" "$T/command.err"
	kill -CONT "$(pid_of one)"
	finish command
	cat "$T/command.err"
}

@test "an evict that is interrupted puts the program back" {
	needs_preload
	start_worker one --bytes 4M
	EXPECTED=stopping interrupted evict one
	[ "$status" -eq 143 ]
	grep -qx "loadline: interrupted: putting back; once more ends it at once" "$T/command.err"
	[[ $(tail -n 1 "$T/command.err") == "loadline: interrupted: 0/"*", tenant one: as before" ]]
	[ ! -s "$T/command.out" ]
	shows 'select(has("claim")) | .tenant == "one" and .state == "running"'
	# One that was suspended is suspended again.
	loadline --sim suspend one
	fault hang cuMemcpyDtoHAsync_v2 2s count 1
	start command --sim evict one
	wait_for 60 is_now one leaving
	kill -TERM "$(pid_of command)"
	finish command
	[ "$status" -eq 143 ]
	loadline --sim suspend one | grep -q "was already suspended"
	loadline --sim resume one
	ends_well one
}

@test "a suspend that is interrupted lets the program go on" {
	needs_preload
	start_worker one --bytes 4M
	EXPECTED=stopping interrupted suspend one
	[ "$status" -eq 143 ]
	shows 'select(has("claim")) | .tenant == "one" and .state == "running"'
	ends_well one
}

@test "what was evicted before stays evicted when an evict is interrupted" {
	needs_preload
	start one --sim run --tenant pair --evictable -- "$LOADLINE_BUILD/tests/e2e/evict_worker" --seconds 1000s --bytes 4M
	start two --sim run --tenant pair --evictable -- "$LOADLINE_BUILD/tests/e2e/evict_worker" --seconds 1000s --bytes 4M
	wait_for 60 has one 'select(.event == "ready")'
	wait_for 60 has two 'select(.event == "ready")'
	id=$(loadline --sim status --json | jq -r "select(.pid == $(pid_of one)) | .claim")
	other=$(loadline --sim status --json | jq -r "select(.pid == $(pid_of two)) | .claim")
	loadline --sim evict "$id"
	freeze two pair 2
	start command --sim evict "$other"
	wait_for 60 grep -q "claim ${other#*/}, tenant pair: is stopping$" "$LOADLINE_SIM_DIR/loadlined.log"
	kill -TERM "$(pid_of command)"
	wait_for 60 grep -q "^loadline: interrupted" "$T/command.err"
	kill -CONT "$(pid_of two)"
	finish command
	[ "$status" -eq 143 ]
	shows "select(.pid == $(pid_of one)) | .state == \"evicted\""
	shows "select(.pid == $(pid_of two)) | .state == \"running\""
	loadline --sim resume "$id"
	ends_well one
	ends_well two
}

@test "a resume that is interrupted says that the program returns when there is room" {
	needs_preload
	start_worker one --bytes 30M
	loadline --sim evict one
	fault card 0 used all
	start command --sim resume one
	wait_for 60 grep -q "tenant one: is to be resumed" "$LOADLINE_SIM_DIR/loadlined.log"
	kill -TERM "$(pid_of command)"
	finish command
	[ "$status" -eq 143 ]
	[[ $(tail -n 1 "$T/command.err") == "loadline: interrupted: 0/"*", tenant one: returns as soon as the card has room for it" ]]
	fault card 0 used 0
	wait_for 60 is_now one here
	ends_well one
}

@test "a second signal ends the command at once" {
	needs_preload
	start_worker one --bytes 4M
	freeze one
	start command --sim evict one
	wait_for 60 is_now one stopping
	kill -TERM "$(pid_of command)"
	wait_for 60 grep -q "^loadline: interrupted" "$T/command.err"
	kill -TERM "$(pid_of command)"
	finish command
	[ "$status" -eq 143 ]
	kill -CONT "$(pid_of one)"
	# The first signal has put it back: that was asked for before it was said.
	wait_for 60 shows 'select(has("claim")) | .state == "running" and .resident_bytes == .memory_bytes'
	ends_well one
}

@test "on a terminal a line says how far it is, and Ctrl-C puts the program back" {
	needs_preload
	start_worker one --bytes 4M
	cat >"$T/terminal.py" <<'PY'
import os, pty, signal, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
frozen = int(sys.argv[1])
seen, end = b"", time.time() + 60
def read_until(part):
    global seen
    try:
        while part not in seen and time.time() < end:
            seen += os.read(fd, 65536)
    except OSError:
        pass
    assert part in seen, seen
read_until(b"evicting 0/0, tenant one")
os.write(fd, b"\003")
read_until(b"interrupted: putting back")
os.kill(frozen, signal.SIGCONT)
try:
    while chunk := os.read(fd, 65536):
        seen += chunk
except OSError:
    pass
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert status == 130, (status, seen)
assert seen.decode().rstrip().endswith("loadline: interrupted: 0/0, tenant one: as before"), seen
PY
	freeze one
	python3 "$T/terminal.py" "$(pid_of one)" "$LOADLINE" --sim evict one
	shows 'select(has("claim")) | .tenant == "one" and .state == "running"'
	ends_well one
}

@test "the line of a resume that waits says what is on the card again" {
	needs_preload
	start_worker one --bytes 30M
	loadline --sim evict one
	fault card 0 used all
	cat >"$T/terminal.py" <<'PY'
import os, pty, re, subprocess, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
seen, end = b"", time.time() + 60
while not re.search(rb"resuming 0/0, tenant one: 0 of (3[0-9] MiB on the card, [0-9.]+ s|29 MiB on the card: is away, and waits for room)", seen) and time.time() < end:
    seen += os.read(fd, 65536)
assert time.time() < end, seen[-500:]
subprocess.run([sys.argv[1], "card", "0", "used", "0"], check=True)
try:
    while chunk := os.read(fd, 65536):
        seen += chunk
except OSError:
    pass
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, seen[-500:]
assert re.search(rb"\r\033\[Kresumed 0/0, tenant one: [^\r]*\r\n$", seen), seen[-500:]
PY
	python3 "$T/terminal.py" "$LOADLINE_BUILD/sim/loadline-simctl" "$LOADLINE" --sim resume one
	ends_well one
}

@test "what is no terminal gets no line that is written over" {
	needs_preload
	start_worker one --bytes 4M
	fault hang cuMemcpyDtoHAsync_v2 1s count 1
	run --separate-stderr loadline --sim evict one
	# shellcheck disable=SC2154
	[[ $stderr != *$'\r'* ]]
	loadline --sim resume one
	ends_well one
}
