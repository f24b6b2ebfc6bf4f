# The programs of tests/cases, and some in a shell: no limit is passed at any moment that the card or the books see, whatever
# the options; none crashes. tests/cases/README.md lists them.
load helper

export NEEDS="tests/cases/case_mix python3"

# fresh: a world of its own. What is left of the former one may still end.
fresh() {
	number=$((${number-0} + 1))
	export LOADLINE_SIM_DIR=$T/world/$number XDG_RUNTIME_DIR=$T/run/$number
	mkdir -m 700 "$LOADLINE_SIM_DIR" "$XDG_RUNTIME_DIR"
	printf '%s\n' "init-time 0" "card 0 context-time 0" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
}

# holds COMMAND... : under a limit, plainly, strictly and evictably. LIMIT: not 2 GiB. ONLY: one of the three.
holds() {
	local option failed=0
	for option in ${ONLY:---weight=1 --strict --evictable}; do
		echo "--- $option"
		fresh
		python3 "$BATS_TEST_DIRNAME/../cases/look.py" --mem "${LIMIT-2G}" "$option" -- "$@" 2>&1 || failed=1
	done
	return "$failed"
}

case_of() {
	echo "$LOADLINE_BUILD/tests/cases/case_$1"
}

@test "a constructor of a preloaded library that comes before or after ours" {
	for way in "$LOADLINE_BUILD/tests/cases/libcase_early.so:\$LD_PRELOAD" "\$LD_PRELOAD:$LOADLINE_BUILD/tests/cases/libcase_early.so"; do
		holds sh -c "LD_PRELOAD=$way exec true"
	done
}

@test "a driver that is opened by its other names, as a copy, by a link and by a descriptor" {
	holds "$(case_of doors)"
}

@test "functions that cuGetProcAddress gives for every version and flag" {
	CASE_ENDS_FULL=1 holds "$(case_of proc)"
}

@test "posix_spawn with an environment of its own and no descriptors" {
	CASE_ENDS_FULL=1 holds "$(case_of kin)" spawn
}

@test "vfork and fexecve with an environment of its own" {
	CASE_ENDS_FULL=1 holds "$(case_of kin)" vfork
}

@test "an orphan in a session of its own whose descriptors lie at other numbers" {
	CASE_ENDS_FULL=1 holds "$(case_of kin)" orphan
}

@test "two pools with gaps, two threads, thresholds and trims in between" {
	CASE_ENDS_FULL=1 holds "$(case_of pools)"
}

@test "graphs in graphs with memory nodes, launched by eight threads" {
	CASE_ENDS_FULL=1 holds "$(case_of graphs)" child
}

@test "graphs that are updated to larger ones, by eight threads" {
	CASE_ENDS_FULL=1 holds "$(case_of graphs)" update
}

@test "captured allocations, kept, freed and freed by the next launch" {
	CASE_ENDS_FULL=1 holds "$(case_of graphs)" captured
}

@test "physical memory that is mapped twice and released before" {
	CASE_ENDS_FULL=1 holds "$(case_of vmm)" twice
}

@test "physical memory whose exporter was killed, as descriptors and mapped" {
	CASE_ENDS_FULL=1 holds "$(case_of vmm)" exported
}

@test "legacy IPC opened by two, twice by one, whose maker was killed" {
	CASE_ENDS_FULL=1 holds "$(case_of ipc)"
}

@test "sixteen threads that take memory of seven kinds" {
	holds "$(case_of mix)"
}

@test "children that are forked when their parent has a context" {
	CASE_ENDS_FULL=1 holds "$(case_of after_fork)"
}

@test "processes that grow and shrink and are killed in the midst of it" {
	CASE_ENDS_FULL=1 holds "$(case_of storm)"
}

@test "contexts, resets, stacks and heaps at the limit" {
	CASE_ENDS_FULL=1 holds "$(case_of contexts)"
}

# What the driver would take, a limit may refuse for want of memory.
answers() {
	fresh
	"$@" "$(case_of arguments)" 2>&1
}

@test "wrong arguments get the driver's answers" {
	answers env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" >"$T/plain.out"
	for options in --weight=1 --strict --evictable; do
		answers "$LOADLINE" --sim run --mem 20G "$options" -- >"$T/governed.out"
		diff <(sed 's/: 0$/: 0 or 2/' "$T/plain.out") <(paste -d '\n' "$T/plain.out" "$T/governed.out" |
			awk 'NR % 2 { is_taken = /: 0$/; next } is_taken { sub(/: [02]$/, ": 0 or 2") } 1')
	done
}

@test "a crowd of 200 processes of one tenant" {
	LIMIT=120G holds "$(case_of crowd)" >"$T/crowd.out" || {
		cat "$T/crowd.out"
		return 1
	}
	[ "$(grep -c "^full: served 200, refused 0" "$T/crowd.out")" -eq 3 ]
}

@test "a program that is evicted and resumed, and ends in the midst of it" {
	for round in 1 2 3 4 5 6; do
		fresh
		mkfifo "$T/in$round"
		start_program "moved$round" sh -c 'exec "$@" <"$0"' "$T/in$round" "$LOADLINE" --sim run --mem 2G --evictable --tenant case -- "$(case_of moved)"
		exec 9>"$T/in$round"
		wait_for 60 grep -q full "$T/moved$round.out"
		(
			for _ in 1 2 3 4 5 6 7 8; do
				timeout 300 "$LOADLINE" --sim evict case || [ $? -ne 124 ] || echo hangs
				timeout 300 "$LOADLINE" --sim resume case || [ $? -ne 124 ] || echo hangs
			done
		) >"$T/steps.out" 2>"$T/steps.err" 9>&- 3>&- &
		steps=$!
		wait_for 60 grep -q . "$T/steps.out"
		read -rt "0.$((round * 7 % 10))" <>"$T/silence" || true
		exec 9>&-
		wait_for 60 has_ended "$(pid_of "moved$round")" || { "$LOADLINE" --sim resume case || true; finish "moved$round"; false; }
		finish "moved$round"
		echo "round $round: status $status: $(cat "$T/steps.out" "$T/steps.err")"
		[ "$status" -eq 0 ]
		wait "$steps"
		! grep hangs "$T/steps.out"
		read -r most <<<"$("$LOADLINE_BUILD/sim/loadline-simctl" show | sed -n 's/^card 0.*at most \([0-9]*\).*/\1/p')"
		echo "the card had $most MiB at most"
		[ "$most" -le $((2048 + 4)) ]
	done
}
