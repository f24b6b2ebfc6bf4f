# The command lines of doc/*.md, each on the simulated driver (doc_lines.py).
export NEEDS="python3 sim/loadline-simctl"
load helper

# doc_lines UIDS PAGE...: as an ordinary user, as the reader of a page is, or as several.
doc_lines() {
	local as=()
	[ "$(id -u)" -ne 0 ] || as=(--as "$1")
	chmod 755 "$T"
	python3 "$BATS_TEST_DIRNAME/doc_lines.py" ${as[@]+"${as[@]}"} "${@:2}" >"$T/lines.out" || {
		cat "$T/lines.out"
		return 1
	}
}

# were_run COUNT: at least so many lines.
were_run() {
	[ "$(sed -n 's/^\([0-9]*\) lines were run, .*/\1/p' "$T/lines.out")" -ge "$1" ]
}

# A page in a folder of its own; doc_lines.py runs its lines.
try_page() {
	cat >"$T/page.md"
	run python3 "$BATS_TEST_DIRNAME/doc_lines.py" "$T/page.md"
	echo "$output"
}

@test "each command line of the pages in doc works" {
	loadline --sim version || skip "no simulator in this build"
	doc_lines 61234 "$BATS_TEST_DIRNAME"/../../doc/*.md
	sed 's/^/# /' "$T/lines.out" >&3
	were_run 70
}

@test "three ordinary users of one machine each walk through the page for a department" {
	loadline --sim version || skip "no simulator in this build"
	[ "$(id -u)" -eq 0 ] || skip "only root can be several users"
	doc_lines 61234,61235,61236 "$BATS_TEST_DIRNAME/../../doc/department.md"
	were_run 15
}

@test "the day of the page about lending: the guest borrows, sleeps when the lab is back, and goes on" {
	loadline --sim version || skip "no simulator in this build"
	[ "$(id -u)" -eq 0 ] || skip "only root can be several users"
	doc_lines 61234,61235,61236 "$BATS_TEST_DIRNAME"/../../doc/lend{,.zh}.md
	were_run 10
}

@test "a line that fails, and a line that is neither run nor marked, fail the check of a page" {
	loadline --sim version || skip "no simulator in this build"
	try_page <<-'END'
		| I want to | command |
		|---|---|
		| see it | `loadline status --bogus` |
		| stop it | `loadline evict nobody` |
		| install it | `sudo make install` |

		    loadline status

		```
		docker run IMAGE loadline run -- ./a
		```
	END
	[ "$status" -eq 1 ]
	[ "$(grep -c '^error: ' <<<"$output")" -eq 4 ]
	grep -q 'error: page.md:3: exit status 2: loadline status --bogus' <<<"$output"
	grep -q 'error: page.md:4: exit status 1: loadline evict nobody' <<<"$output"
	grep -q 'error: page.md:5: neither run nor marked with a reason: sudo make install' <<<"$output"
	grep -q 'error: page.md:10: neither run nor marked with a reason: docker run' <<<"$output"
	grep -q '^3 lines were run, 0 were not' <<<"$output"
}

@test "marked lines are counted, and a line may need another before it" {
	loadline --sim version || skip "no simulator in this build"
	try_page <<-'END'
		| I want to | command |
		|---|---|
		| install it | `sudo make install` <!-- not run: needs root --> |
		| choose a card | `loadline run -i 3 -- ./a` <!-- on: h200x8 --> |

		<!-- not run: needs docker -->
		```
		docker run IMAGE \
		    loadline run -- ./a
		loadline status --bogus   # within it
		```

		<!-- before: loadline run --tenant night -- ./render -->

		    $ loadline set night --compute 50%
		    card 0, night: compute none -> 50 %
	END
	[ "$status" -eq 0 ]
	grep -q '^2 lines were run, 3 were not' <<<"$output"
	grep -q '^not run: page.md:3: sudo make install (needs root)' <<<"$output"
	grep -q '^not run: page.md:8: docker run IMAGE loadline run -- ./a (needs docker)' <<<"$output"
}
