# Memory that a program's processes share counts against its limit as long as one of them has it.
load evict_helper

export NEEDS="python3"

used_mib() {
	"$LOADLINE_BUILD/sim/loadline-simctl" show | sed -n 's/^card 0 .* %, \([0-9]*\).*/\1/p'
}

# What the claims of the tenant are charged, in MiB.
charged_mib() {
	loadline --sim status --json | jq -s '[.[] | select(.claim) | .memory_bytes] | add / 1048576 | floor'
}

# shares WAY OPTION...: under 2300 MiB two rounds of 500 MiB come about, beside two contexts, and the next is refused.
shares() {
	local way=$1
	shift
	open_steps rounds
	# A program in the background has no standard input unless it opens one.
	start_program rounds sh -c 'exec <"$0"; exec "$@"' "$T/rounds.in" "$LOADLINE" --sim run --mem 2300M "$@" -- \
		python3 "$BATS_TEST_DIRNAME/sharing_rounds.py" "$way" 500 4
	wait_for 60 grep -q "^shared" "$T/rounds.out"
	cat "$T/rounds.out" "$T/rounds.err"
	grep -qx "shared 2 2" "$T/rounds.out"
	[ "$(used_mib)" -ge 2000 ]
	[ "$(used_mib)" -le 2400 ]
	[ "$(charged_mib)" -ge 2000 ]
	[ "$(charged_mib)" -le 2300 ]
	stop rounds KILL
	rm "$T/rounds.in"
	wait_for 60 has_no_claim
}

has_no_claim() {
	[ "$(loadline --sim status --json | jq -s '[.[] | select(.claim)] | length')" -eq 0 ]
}

@test "physical memory that its maker releases first counts while another process maps it" {
	needs_preload
	shares vmm
	shares vmm --strict
	shares vmm --evictable
}

@test "memory of legacy IPC that its maker frees first counts while another process has it open" {
	needs_preload
	shares legacy
	shares legacy --strict
	shares legacy --evictable
}
