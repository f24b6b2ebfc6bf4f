# loadline hold with bad input: a clear error, the right exit code, nothing left behind.
load helper
hold_fails() {
	local code=$1 text=$2
	shift 2
	fails_with "$code" "$text" --sim hold --for 5s "$@"
	[[ $(loadline --sim status --json) != *'"claim"'* ]]
}

@test "targets out of range or not numbers" {
	for target in 0 101 100 abc -5 '' 50W nan inf 5e1x; do
		hold_fails 2 "--target" "--target=$target"
	done
	hold_fails 2 "--idle-target" --idle-target 0
	hold_fails 2 "watts" --metric power --target 50%
	hold_fails 2 "no target" --metric power
}

@test "unknown card, metric, mode, payload, option" {
	hold_fails 3 "no card '7'" -i 7
	hold_fails 2 "--metric" --metric speed
	hold_fails 2 "--mode" --mode share
	hold_fails 2 "--payload" --payload opengl
	hold_fails 2 "--no-such-option" --no-such-option
	hold_fails 2 "unexpected word" word
}

@test "curves that are none" {
	hold_fails 2 "triangle" --curve triangle:20-80@60s
	hold_fails 2 "--curve" --curve sine:80-20@60s
	hold_fails 2 "--curve" --curve sine:0-80@60s
	hold_fails 2 "--curve" --curve sine:20-80@0s
	hold_fails 2 "only one of them" --curve sine:20-80@60s --target 50%
}

@test "a replay file that is missing, empty or garbled is named with its line" {
	hold_fails 2 "$T/none.csv: No such file" --curve "replay:$T/none.csv"
	: >"$T/empty.csv"
	hold_fails 2 "$T/empty.csv" --curve "replay:$T/empty.csv"
	printf 'time_s,target\n0,20\n1,thirty\n' >"$T/bad.csv"
	hold_fails 2 "$T/bad.csv:3" --curve "replay:$T/bad.csv"
	printf 'time_s,target\n1,20\n0,30\n' >"$T/back.csv"
	hold_fails 2 "$T/back.csv:3" --curve "replay:$T/back.csv"
	hold_fails 2 "$T" --curve "replay:$T"
}

@test "no driver" {
	[ ! -e /proc/driver/nvidia ] || skip "there is a driver here"
	fails_with 3 "no NVIDIA driver" hold --for 5s
}

@test "a driver without a call that hold needs is named" {
	scenario "missing nvmlDeviceGetSamples"
	hold_fails 3 "nvmlDeviceGetSamples"
}

@test "a card without GPM says which metrics remain" {
	scenario "card 0 gpm off"
	hold_fails 3 "util" --metric sm
	hold_fails 3 "power" --metric occupancy
	scenario "missing nvmlGpmSampleGet"
	hold_fails 3 "util" --metric sm
}

@test "a card that cannot tell the tensor pipes' or the memory's use is refused" {
	scenario "card 0 capability 8.0"
	hold_fails 3 "no GPM" --metric tensor
	hold_fails 3 "no GPM" --metric dram
	scenario "card 0 gpm-tensor off"
	hold_fails 3 "does not give the tensor reading" --metric tensor
	fails_with 3 "hold another metric" --sim hold --metric tensor --dry-run
	scenario "card 0 gpm-dram off"
	hold_fails 3 "does not give the dram reading" --metric dram
	hold_fails 2 "only the cuda payload" --metric tensor --payload vulkan
}

@test "the buffer of dram: at most an eighth of the free memory, and within --max-memory" {
	scenario "card 0 used 138G"
	hold_fails 1 "reads a buffer of 240 MiB" --metric dram
	scenario "card 0 used 138G for 2s"
	start hold --sim hold --json --metric dram --wait 60s
	wait_for 60 has hold 'select(.event == "fault" and (.text | contains("reads a buffer of 240 MiB")))'
	wait_for 60 has hold 'select(.event == "sample" and .dram_percent > 40)'
	stop hold
	scenario "card 0 sm 16" # its context takes less than the buffer while it is made
	hold_fails 4 "metric dram's buffer" --metric dram --max-memory 400M
}

@test "an exclusive-process or prohibited card is refused" {
	scenario "card 0 mode exclusive"
	hold_fails 4 "lock every other program out"
	scenario "card 0 mode prohibited"
	hold_fails 4 "prohibited"
}

@test "a card in MIG mode is refused by name, its slices are held by GPM alone" {
	scenario "card 0 mig 2"
	hold_fails 3 "MIG" -i 0
	hold_fails 3 "--metric sm" -i 0:0
	start hold --sim hold -i 0:0 --metric sm --target 40% --json
	wait_for 60 has hold 'select(.event == "sample" and .sm_percent > 30)'
	stop hold
	[ "$status" -eq 0 ]
}

@test "-i all: every card that cannot be held is named, and left out only on request" {
	scenario "cards 4" "card 1 mode prohibited" "card 3 gone on"
	hold_fails 3 "2 of 4 cards cannot be held" -i all
	# shellcheck disable=SC2154
	[[ $stderr == *"card 3: does not answer"*"card 1: compute mode is prohibited"* ]]
	hold_fails 4 "1 of 2 cards cannot be held" -i 1,2
	start hold --sim hold -i all --skip-unusable
	wait_for 60 grep -q "card 0: settled" "$T/hold.err"
	wait_for 60 grep -q "card 2: settled" "$T/hold.err"
	stop hold
	[ "$status" -eq 0 ]
	grep "card 1: compute mode is prohibited.*not held" "$T/hold.err"
	grep "card 3: does not answer.*not held" "$T/hold.err"
	[ "$(grep -c "synthetic load, held" "$T/hold.out")" -eq 2 ]
	scenario "cards 2" "card 0 mode prohibited" "card 1 mode prohibited"
	hold_fails 4 "2 of 2 cards cannot be held" -i all --skip-unusable
}

@test "more power than the card may take" {
	hold_fails 2 "power limit is 700 W" --metric power --target 99999W
	hold_fails 2 "cannot reach 800 W" --metric power --target 200W --idle-target 800W
}

@test "no memory for a context: fails, or waits with --wait" {
	scenario "card 0 used all"
	hold_fails 1 "MEMORY"
	scenario "card 0 used all for 2s"
	start hold --sim hold --json --wait 60s
	wait_for 60 has hold 'select(.event == "fault")'
	wait_for 60 has hold 'select(.event == "sample" and .util_percent > 40)'
	stop hold
	[ "$status" -eq 0 ]
}

@test "--max-memory below what a context takes" {
	hold_fails 4 "--max-memory" --max-memory 300M
	hold_fails 2 "--max-memory: less than 1 MiB" --max-memory 1048575B
}

@test "a metrics port in use, or none" {
	start first --sim hold --metrics-listen 127.0.0.1:0
	wait_for 60 grep -q "metrics on port" "$T/first.err"
	port=$(grep -o 'metrics on port [0-9]*' "$T/first.err" | grep -o '[0-9]*$')
	fails_with 1 "already in use" --sim hold --for 5s --metrics-listen "127.0.0.1:$port"
	stop first
	hold_fails 2 "metrics:" --metrics-listen nonsense:port
}

@test "a second hold on the same card is refused and the first goes on" {
	start first --sim hold --json
	wait_for 60 has first 'select(.event == "sample" and .util_percent > 40)'
	fails_with 4 "already holds it" --sim hold --for 5s
	is_running first
	stop first
	[ "$status" -eq 0 ]
}

@test "a record that cannot be written" {
	hold_fails 1 "$T/no/such/folder" --record "$T/no/such/folder/run.csv"
}

@test "options that do not go together" {
	hold_fails 2 "--mps" --mps --payload vulkan
	hold_fails 2 "--curve" --metric power --curve sine:20-80@60s
}
