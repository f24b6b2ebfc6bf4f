# `loadline top`: one frame as text, and the terminal with its keys.
# shellcheck disable=SC2153,SC2154 # FIRST and SECOND are of service_helper.bash; status and output are those of bats
load queue_helper
load evict_helper

# plain [ARG]...: one frame.
plain() {
	loadline --sim top --plain "$@"
}

# start_pace NAME: tenant NAME, which always has a kernel.
start_pace() {
	start_program pace "$LOADLINE" --sim run --tenant "$1" -- sh -c 'while echo 50; do sleep 0.05; done | "$0" sync --kernel-us 5000' \
		"$LOADLINE_BUILD/bench/c/pace"
}

# terminal COLUMNS LINES: a shell in a terminal of that size.
terminal() {
	command -v tmux >/dev/null || skip "this machine has no tmux"
	tmux -S "$T/tmux" -f /dev/null new-session -d -x "$1" -y "$2" env PS1='$ ' TERM=screen-256color bash --norc
	sees '^\$'
}

# type_keys KEY...: as tmux names them.
type_keys() {
	tmux -S "$T/tmux" send-keys "$@"
}

# type_line TEXT: and Enter.
type_line() {
	type_keys -l -- "$1"
	type_keys Enter
}

# sees PATTERN: waits until a line of the terminal has it.
sees() {
	wait_for 60 on_screen "$1" || {
		tmux -S "$T/tmux" capture-pane -p
		return 1
	}
}

on_screen() {
	tmux -S "$T/tmux" capture-pane -p >"$T/screen" && grep -q -e "$1" "$T/screen"
}

is_off_screen() {
	tmux -S "$T/tmux" capture-pane -p >"$T/screen" && ! grep -q -e "$1" "$T/screen"
}

# start_top [ARG]...: in the terminal; what stty says is told before and after.
start_top() {
	type_line "clear; stty -a >$T/before; \"\$LOADLINE\" --sim top $*; echo ended \$?; stty -a >$T/after"
	sees '^h help'
}

# is_as_before: the terminal, after top has ended with that status.
is_as_before() {
	sees "^ended $1\$"
	wait_for 60 test -s "$T/after"
	cmp "$T/before" "$T/after"
	[ "$(tmux -S "$T/tmux" display-message -p '#{alternate_on} #{cursor_flag}')" = "0 1" ]
	# it does what a terminal does
	type_line 'echo one two'
	sees '^one two$'
}

@test "a frame as text has the cards, the tenants and the jobs, and no byte for a terminal" {
	needs_preload
	start_worker train
	start_pace 训练任务
	start hold --sim hold --target 10% --json
	wait_for 60 has hold 'select(.event)'
	wait_for 60 shows 'select(.tenant == "训练任务" and has("claim") and .gpu_seconds > 0.2)'
	COLUMNS=80 plain >"$T/frame"
	cat "$T/frame"
	grep -qE '^0 +\(simulated\) .* [0-9]+/140 GiB [0-9]+/700 W +[0-9]+ C +3$' "$T/frame"
	grep -qE '^train +1 ' "$T/frame"
	grep -qE '^训练任务 +1 .* [1-9][0-9]* %' "$T/frame"
	grep -qE '^0/hold +[^ ]+ +synthetic ' "$T/frame"
	grep -qE '^[0-9]+ +[^ ]+ +train +[a-z]' "$T/frame"
	run ! grep -q $'[\001-\010\013-\037]' "$T/frame"
	[ "$(python3 "$BATS_TEST_DIRNAME/columns.py" width <"$T/frame")" -le 80 ]
	# a wide name moves no column
	python3 - "$T/frame" <<-'END'
		import sys, unicodedata
		def column(line, word):
		    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line[: line.index(word)])
		lines = open(sys.argv[1]).read().splitlines()
		begin = next(i for i, line in enumerate(lines) if line.startswith("job "))
		rows = lines[begin + 1 :]
		assert len(rows) == 3, rows
		at = column(lines[begin], "memory") + len("memory")
		ends = [column(row, "iB ") + 2 for row in rows if "iB " in row]
		assert len(ends) >= 2, rows
		assert all(end == at for end in ends), (at, ends)
	END
	# a card's history is that of the driver: the first frame of top has it
	wait_for 60 eval "plain --every 500ms -i 0 | grep -qE '^0 .* % +[▁▂▃▄▅▆▇█]{4,} '"
	[ "$(plain --filter train | grep -cE '^[0-9]+ ')" -eq 2 ] # of the card, and of the job
	plain --filter nobody | grep -qx 'no job has this text'
	ends_well train
}

@test "a terminal that cannot place text, and what is none, are refused with a sentence" {
	fails_with 1 "top: standard input and output are not a terminal; \`loadline --sim top --plain\` prints one frame" --sim top
	terminal 80 24
	type_line '"$LOADLINE" --sim top --every 1ms; TERM=dumb "$LOADLINE" --sim top; echo "status $?"'
	sees '^status 1$'
	tmux -S "$T/tmux" capture-pane -p -J | grep -q "^loadline: --every: less than 100ms"
	tmux -S "$T/tmux" capture-pane -p -J | grep -q "^loadline: top: the terminal 'dumb' cannot place text; "
	type_line 'TERM=no-such-terminal "$LOADLINE" --sim top; echo "status $?"'
	sees "is not known here"
}

@test "at three sizes the terminal shows what fits, and at the end it is as it was" {
	local size
	needs_preload
	start_worker train
	terminal 80 24
	start_top --every 200ms
	for size in "120 40" "40 10" "80 24"; do
		tmux -S "$T/tmux" resize-window -x "${size% *}" -y "${size#* }"
		sees '^h help'
		sees '^[0-9]* *.*train'
		[ "$(python3 "$BATS_TEST_DIRNAME/columns.py" width <"$T/screen")" -le "${size% *}" ]
	done
	tmux -S "$T/tmux" resize-window -x 20 -y 5
	sees '^too small'
	tmux -S "$T/tmux" resize-window -x 80 -y 24
	sees '^h help'
	type_keys h
	sees '^q *quit'
	type_keys x
	sees '^job *user'
	type_keys q
	is_as_before 0
	start_top
	type_keys C-c
	is_as_before 0
	start_top
	kill -TERM "$(pids loadline-top)"
	is_as_before 143
	ends_well train
}

@test "Ctrl-Z gives the terminal back, and fg shows the frame again" {
	terminal 80 24
	start_top
	type_keys C-z
	sees 'Stopped'
	type_line "stty -a | cmp - $T/before && echo same"
	sees '^same$'
	type_line fg
	sees '^h help'
	sees '^card *name'
	# stopped by a signal that it does not see
	kill -STOP "$(pids loadline-top)"
	sees 'Stopped'
	type_line 'clear; fg'
	sees '^card *name'
	sees '^h help'
	type_keys q
	sees '^\$'
	type_line "stty -a | cmp - $T/before && echo same again"
	sees '^same again$'
}

@test "kill asks first, n does nothing, and y ends the program" {
	needs_preload
	start_worker train
	terminal 80 24
	start_top
	sees '^[0-9].*train '
	type_keys k
	sees '^end job [0-9]* of train: SIGTERM to process [0-9]*? y/n$'
	type_keys n
	sees '^nothing was changed$'
	type_keys k
	sees '^end job [0-9]* of train'
	type_keys Escape
	sees '^nothing was changed$'
	is_running train
	type_keys k
	sees '^end job [0-9]* of train'
	type_keys y
	sees '^SIGTERM was sent$'
	finish train
	[ "$status" -eq 0 ]
	has train 'select(.event == "end" and .wrong == 0)'
	sees '^no job$'
	type_keys k
	type_keys q
	is_as_before 0
}

@test "evict, resume, suspend and set do what their commands do, each after a question" {
	needs_preload
	start_worker train
	terminal 80 24
	start_top --every 300ms
	sees '^[0-9].*train '
	type_keys e
	sees '^evict the memory of job [0-9]* of train? y/n'
	type_keys y
	sees '^evicted 0/0, tenant train: '
	sees '^[0-9]* .* evicted '
	is_now train away
	type_keys e
	sees '^resume job [0-9]* of train? y/n'
	type_keys y
	sees '^resumed 0/0, tenant train: '
	type_keys p
	sees '^suspend job [0-9]* of train? y/n'
	type_keys y
	sees '^suspended 0/0, tenant train: '
	type_keys p
	sees '^resume job [0-9]* of train? y/n'
	type_keys y
	sees '^resumed 0/0, tenant train: '
	type_keys s
	sees '^options of set, such as --compute 30%: _$'
	type_keys -l -- '--compute 300%x'
	type_keys BSpace BSpace BSpace
	type_keys -l -- '%'
	sees ': --compute 30%_$'
	type_keys Enter
	sees '^set job [0-9]* of train: --compute 30%? y/n$'
	type_keys y
	sees '^card 0, train: compute none -> 30 %$'
	shows 'select(.tenant == "train" and .compute_limit_percent == 30)' || loadline --sim status | grep -q '≤30 %'
	type_keys s
	type_keys -l -- '--mem much'
	type_keys Enter
	sees 'y/n$'
	type_keys y
	sees "^--mem:* *.*much"
	type_keys q
	is_as_before 0
	ends_well train
}

@test "a filter and the order are typed, and no colour is shown if NO_COLOR says so" {
	needs_preload
	start_worker train
	start_worker other
	terminal 100 30
	start_top
	sees '^[0-9].*train '
	tmux -S "$T/tmux" capture-pane -p -e >"$T/coloured"
	grep -q $'\033\\[36m' "$T/coloured"
	type_keys / t r a i n Enter
	sees 'only "train"'
	wait_for 60 is_off_screen '^[0-9]* .* other '
	type_keys / C-u Enter
	sees '^[0-9].* other '
	type_keys o
	sees 'by memory'
	type_keys q
	is_as_before 0
	type_line "export NO_COLOR=1"
	start_top
	sees '^[0-9].*train '
	tmux -S "$T/tmux" capture-pane -p -e >"$T/plain"
	run ! grep -q $'\033\\[3[0-79]*[0-7]m' "$T/plain"
	type_keys q
	is_as_before 0
	ends_well train
	ends_well other
}

@test "jobs of the queue have their place, a waiting one tells why, and is kept and taken out by keys" {
	start_queue
	run_as "$FIRST" first --cards 4 --time 1h
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	run_as "$FIRST" second --cards 1
	wait_for 60 queue 'map(.queued // empty) | length == 2'
	local waiting
	waiting=$(loadline --sim queue list --json | jq -s 'map(.queued | select(.state == "waiting"))[0].number')
	plain >"$T/frame"
	cat "$T/frame"
	grep -qE "^$waiting +$FIRST +research +waiting .* #1 [0-9]" "$T/frame"
	grep -qE "^research +1 +1 .* 2 cards\$" "$T/frame"
	grep -qE '^[0-9]+ +'"$FIRST"' +research .* → ' "$T/frame"
	terminal 110 40
	start_top --every 300ms
	type_keys End
	sees '^.*cards.* wanted'
	type_keys p
	sees "^keep job $waiting of research from starting? y/n"
	type_keys y
	sees '^done$'
	sees "^$waiting .* paused "
	type_keys k
	sees "^take job $waiting of research out of the queue? y/n"
	type_keys y
	sees '^done$'
	wait_for 60 is_off_screen "^$waiting .*research"
	type_keys q
	is_as_before 0
	finish second
	[ "$status" -ne 0 ]
}

@test "what the configuration hides of other users is not in a frame" {
	others=nothing write_config
	start_queue
	run_as "$FIRST" first --cards 1
	wait_for 60 grep -q "cards=GPU-" "$T/first.out"
	as "$FIRST" "$LOADLINE" --sim top --plain >"$T/own"
	as "$SECOND" "$LOADLINE" --sim top --plain >"$T/others"
	cat "$T/own" "$T/others"
	grep -qE "^[0-9]+ +$FIRST +research " "$T/own"
	run ! grep -qE "$FIRST|research" "$T/others"
	grep -qx 'no job' "$T/others"
}

@test "ncurses is loaded by top alone" {
	run ! grep -q ncurses <(ldd "$LOADLINE")
	grep -q ncursesw <(ldd "$LOADLINE_BUILD/src/cli/loadline-top")
}
