# loadline explain: why a card or a job is slow or idle, on staged causes. A program goes through phases by its own clock, so that
# the parts differ by as much on a busy host.
# shellcheck disable=SC2154 # status and output are those of bats
load evict_helper
load queue_helper

export NEEDS="tests/e2e/causes bench/c/evictee"

setup_file() {
	export CAUSES=$LOADLINE_BUILD/tests/e2e/causes
}

# stage NAME CARD [OPTION OF run]... -- PHASE...: tenant NAME goes through these phases.
stage() {
	local name=$1 card=$2 options=()
	shift 2
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	start "$name" --sim run -i "$card" --tenant "$name" "${options[@]}" -- "$CAUSES" "$@"
}

# explained NAME FILTER: is it so of the tenant's job?
explained() {
	loadline --sim explain "$1" --json | jq -e "select(has(\"job\") and .tenant == \"$1\") | $2" >/dev/null
}

# names NAME CAUSE [FILTER]: is it the largest, and large, and is this so of it?
names() {
	wait_for 60 explained "$1" ".known_seconds >= 4 and (.causes[0] | .cause == \"$2\" and .percent >= 20 and (${3-true}))"
}

# names_both NAME LARGER SMALLER: in this order, once several rounds of the phases are in the minute?
names_both() {
	wait_for 150 explained "$1" ".known_seconds >= 40 and [.causes[:2][].cause] == [\"$2\", \"$3\"]"
}

# bats test_tags=main
@test "two programs that are held up by their host, one that copies, one without work, and one at its cap" {
	scenario "cards 5"
	stage host 0 -- host:1000
	stage copies 1 -- copies:1000
	stage idle 2 -- work:300 once idle:100000
	stage cap 3 --compute 20% -- work:1000
	stage compute 4 -- work:300 once compute:100000
	names host host
	names compute host
	names copies copies
	names idle no-work
	names cap cap '.times_at_most > 2 and (.advice | test("loadline set cap --compute"))'
	wait_for 60 explained cap '.work_percent < 40'
	loadline --sim explain >"$T/explain"
	grep -q "^card 2: works for jobs [0-9]* % of the last [0-9]* s" "$T/explain"
	grep -q "^ *[0-9]* %  the program launches nothing" "$T/explain"
	grep -q "^ *end it, or start it with --evictable" "$T/explain"
	loadline --sim explain cap >"$T/explain"
	grep -q "^ *[0-9]* %  waits for its share of time: its cap is 20 %" "$T/explain"
	run ! grep -q "tenant host\|^card" "$T/explain"
	fails_with 1 "no job, tenant, claim or group of cards 'nobody'" --sim explain nobody
	fails_with 2 "one job" --sim explain host cap
}

@test "programs that share a card, a higher class, and clocks that are held down, with the name of who has the card" {
	scenario "cards 3"
	stage one 0 -- work:1000
	stage two 0 -- work:1000
	stage high 1 --class high -- work:1000
	stage low 1 --class low -- work:1000
	stage hot 2 -- work:1000
	simctl card 2 slowdown on
	names one shared '.for == "two" and .times_at_most > 1.3 and (.text | test("tenant two has the card"))'
	names two shared '.for == "one"'
	names low class '.for == "high" and (.text | test("higher class: tenant high"))'
	names hot clocks '.text | test("thermal.*[0-9]+ of 1980 MHz")'
	# The number of a claim, and of the job.
	loadline --sim explain "$(loadline --sim status --json | jq -r 'select(.claim and .tenant == "hot").claim')" | grep -q "tenant hot"
	loadline --sim explain "$(loadline --sim status --json | jq 'select(.claim and .tenant == "low").job_number')" | grep -q "tenant low"
}

@test "clients of MPS" {
	loadline --sim mps start
	stage one 0 --by space -- work:1000
	stage two 0 --by space -- work:1000
	names one mps '.for == "two"'
	names two mps '.for == "one"'
	stop one
	stop two
	timeout 120 "$LOADLINE" --sim mps stop --force --within 10s
}

# claim_at_work NAME: the number of the tenant's claim that has work.
claim_at_work() {
	loadline --sim status --json | jq -r "select(.claim and .tenant == \"$1\" and .has_work).claim"
}

@test "an evicted program, one that is suspended in the midst of its kernels, and one process of several" {
	needs_preload
	scenario "cards 3"
	stage gone 0 --evictable -- work:1000
	start several --sim run -i 1 --tenant several --evictable -- sh -c '"$0" work:1000 once idle:1000000 & exec "$0" work:1000' "$CAUSES"
	wait_for 60 shows 'select(.claim and .tenant == "gone") | .gpu_seconds > 0'
	loadline --sim evict gone
	names gone evicted
	stage stopped 2 -- work:1000
	wait_for 60 shows 'select(.claim and .tenant == "stopped") | .gpu_seconds > 0'
	loadline --sim suspend stopped
	names stopped evicted
	wait_for 60 status_has 'map(select(.claim and .tenant == "several" and .gpu_seconds > 0)) | length == 2'
	wait_for 60 status_has 'map(select(.claim and .tenant == "several" and .has_work)) | length == 1'
	loadline --sim suspend "$(claim_at_work several)"
	names several process '.text | test("one process is suspended or evicted.*pid [0-9]+")'
}

@test "copies that a program queues are not its work, and not why another one on the card is slow" {
	scenario "cards 1"
	stage feed 0 -- feed:1000
	stage host 0 -- host:1000
	names host host
	wait_for 60 explained feed '.known_seconds >= 10'
	explained feed '.work_percent < 75 and ([.causes[].cause] | index("copies"))'
}

@test "a program that waits for room for its memory" {
	needs_preload
	small_card 750M # the contexts of two programs take 554 of it
	local name
	for name in one two; do
		start "$name" --sim run --evictable --tenant "$name" -- "$LOADLINE_BUILD/bench/c/evictee" --bytes 118M --seconds 1000s --idle 20ms
	done
	names one memory '.for == "two" and (.text | test("memory is full; tenant two has"))'
}

@test "a job in the queue, and what of a tenant's cards stands idle in whose hands" {
	start_queue
	start_as "$FIRST" first "$LOADLINE" --sim run --cards 2 --time 2h -- "$CAUSES" work:300 once idle:1000000
	wait_for 60 queue 'map(select(.queued.state == "running")) | length == 1'
	run_as "$FIRST" second --cards 4 --time 1h
	wait_for 60 queue 'map(select(.queued.state == "waiting")) | length == 1'
	as "$FIRST" "$LOADLINE" --sim explain --json >"$T/explain.out"
	has explain '.job and .causes[0].cause == "queue" and (.causes[0].text | test("waits in the queue"))'
	idle_in_hands() {
		as "$FIRST" "$LOADLINE" --sim explain research --json |
			jq -e 'select(.group == "research") | .idle_percent > 50 and
				(.idle[] | .hands == "no-work" and .idle_percent > 30 and (.jobs | length == 1))'
	}
	wait_for 60 idle_in_hands
	as "$FIRST" "$LOADLINE" --sim explain >"$T/explain"
	grep -q "^tenant research: [0-9]* cards, idle [0-9]* % of the last minute$" "$T/explain"
	grep -q "^ *[0-9]* %  jobs have them, and launch nothing: job [0-9]* of $FIRST ([0-9]* %)$" "$T/explain"
	# Four cards by card: two have the job, nobody has the others, and the second job waits for four.
	as "$FIRST" "$LOADLINE" --sim explain whole --json | jq -s -e "length == 1 and (.[0] | .card_group == \"whole\" and .cards == 4 and
		any(.idle[]; .hands == \"nobody\" and .idle_percent >= 50) and any(.idle[]; .hands == \"no-work\") and
		.waiting_jobs == [$(number_of 1)])"
	as "$FIRST" "$LOADLINE" --sim explain parts --json | jq -e \
		'.idle[0].hands == "nobody" and .guaranteed_unused == [{tenant: "research", cards: null, memory_bytes: 107374182400}]'
	as "$FIRST" "$LOADLINE" --sim explain parts | grep -qx " *guaranteed to tenant research, which does not use it: 100 GiB"
}

@test "pairs without others: the larger first" {
	scenario "cards 5"
	stage a 0 -- host:9000 idle:3000
	stage b 1 -- idle:9000 host:3000
	stage c 2 -- idle:9000 copies:3000
	stage d 3 -- host:3000 copies:1000
	stage e 4 -- copies:3000 host:1000
	names_both a host no-work
	names_both b no-work host
	names_both c no-work copies
	names_both d host copies
	names_both e copies host
}

@test "pairs with others, and at a cap: the larger first" {
	scenario "cards 6"
	stage a 0 -- work:4000 host:600
	stage other 0 -- work:1000
	stage b 1 -- host:6000 work:1500
	stage another 1 -- work:1000
	stage c 2 --compute 20% -- work:9000 idle:3000
	stage d 3 --compute 20% -- idle:9000 work:3000
	stage e 4 --class low -- work:3000 copies:1000
	stage high 4 --class high -- work:1000
	stage f 5 --compute 20% -- host:6000 work:1500
	names_both a shared host
	names_both b host shared
	names_both c cap no-work
	names_both d no-work cap
	names_both e class copies
	names_both f host cap
}

@test "pairs with clocks that are held down: the larger first" {
	scenario "cards 2"
	stage a 0 -- host:6000 work:3000
	stage b 1 -- work:5000 host:500
	simctl card 0 slowdown on
	simctl card 1 slowdown on
	names_both a host clocks
	names_both b clocks host
}
