# bench/mixes/regret.py on the simulated card: programs of no framework, every way to share, and the table of it.
load helper
export NEEDS="bench/c/pace python3"

MIXES=$BATS_TEST_DIRNAME/../../bench/mixes

# regret ARG...: a short call, whose file is $T/found.json.
regret() {
	jq -n --arg pace "$LOADLINE_BUILD/bench/c/pace" --argjson more "${MORE-{\}}" \
		'{flood: [$pace, "flood"], short: [$pace, "flood", "--kernel-us", "50"], eager: [$pace, "eager"]} | map_values({words: .}) + $more' \
		>"$T/programs.json"
	LD_LIBRARY_PATH=$LOADLINE_BUILD/sim PATH=${FIRST-}$LOADLINE_BUILD/sim:$PATH python3 "$MIXES/regret.py" --machine here \
		--json "$T/found.json" --programs "$T/programs.json" --logs "$T/logs" --minutes 5 --seconds 0.1 --rest 0.01 --lead 0.1 --again 0.05 "$@"
}

@test "a call measures mixes of its pool in every way, and the table has them" {
	regret --rounds 2 --mixes 2 --seed 3
	jq -e '.mixes | length == 2 and all(.fault == null and (.rounds | length == 2))' "$T/found.json"
	jq -e '.mixes | all(.members as $who | .rounds | all(all(.[]; length == ($who | length) and all(.rate > 0))))' "$T/found.json"
	jq -e '.mixes | all(.rounds[0] | has("native") and has("run") and has("mps") and (has("visits") or has("held-0.5")))' "$T/found.json"
	jq -e '.machine == "here" and (.kinds | length == 3)' "$T/found.json"
	python3 "$MIXES/regret.py" --report "$T/found.json" "$T/found.json" --json "$T/table.json" >"$T/table.md"
	grep -q "^| all, $((2 * $(jq '.mixes | length' "$T/found.json"))) mixes" "$T/table.md"
	jq -e '.rows | any(.figure | test("plain MPS"))' "$T/table.json"
}

@test "programs have their weights, classes and ways while a mix is measured, and none of it after" {
	local real=$LOADLINE
	printf '#!/bin/sh\necho "$@" >>%s\nexec %s "$@"\n' "$T/said" "$real" >"$T/loadline"
	chmod +x "$T/loadline"
	LOADLINE=$T/loadline regret --rounds 2 --mixes 6 --seed 3 --ways open,visits,run,held-0.5
	local kind
	for kind in flood short eager; do
		[ "$(grep "^set run-$kind --weight" "$T/said" | tail -n 1)" = "set run-$kind --weight 1 --class normal" ]
	done
	jq -e '.mixes | any(.members | any(.weight > 1)) and any(.members | any(.level != "normal"))' "$T/found.json"
	local asked
	asked=$(jq -r '[.mixes[].members[] | "set run-\(.kind) --weight \(.weight) --class \(.level)"] | unique[]' "$T/found.json")
	while read -r kind; do
		grep -qxF "$kind" "$T/said"
	done <<<"$asked"
	grep -q -- "--sharing slices" "$T/said"
	grep -q -- "--sharing visits" "$T/said"
	grep -q -- "--sharing held-0.5" "$T/said"
	[ "$(grep -- "--sharing" "$T/said" | tail -n 1 | grep -c "sharing measured")" = 1 ]
}

@test "mixes that a user names have their classes while they are measured" {
	printf '#!/bin/sh\necho "$@" >>%s\nexec %s "$@"\n' "$T/said" "$LOADLINE" >"$T/loadline"
	chmod +x "$T/loadline"
	jq -n --arg pace "$LOADLINE_BUILD/bench/c/pace" \
		'{flood: [$pace, "flood"], eager: [$pace, "eager"]} | map_values({words: .})' >"$T/programs.json"
	LOADLINE=$T/loadline LD_LIBRARY_PATH=$LOADLINE_BUILD/sim PATH=$LOADLINE_BUILD/sim:$PATH python3 "$MIXES/compare.py" \
		eager@high+flood@low eager+flood --ways native,run --rounds 2 --seconds 0.1 --rest 0.01 --lead 0.1 \
		--programs "$T/programs.json" --logs "$T/logs" --json "$T/found.json" >"$T/out"
	grep -q "^eager@high+flood@low  alone/s: " "$T/out"
	[ "$(grep -c "^  run " "$T/out")" = 2 ]
	jq -e '.rounds | length == 2 and all(length == 2 and all(.native.eager.rate > 0 and .run.flood.rate > 0 and .alone.flood.rate > 0))' "$T/found.json"
	grep "^set" "$T/said" | sort | uniq -c | sed 's/^ *//' | diff - <(
		printf '%s\n' "1 set run-eager --class high" "3 set run-eager --class normal" "1 set run-flood --class low" "3 set run-flood --class normal")
	run python3 "$MIXES/compare.py" eager@top+flood
	[ "$status" -ne 0 ]
	[[ $output == *"a class is high, normal or low"* ]]
}

@test "a program has the options that a seed drew in all ways, and the table says them" {
	printf '#!/bin/sh\necho "$@" >>%s\nexec %s "$@"\n' "$T/started" "$LOADLINE_BUILD/bench/c/pace" >"$T/noted"
	chmod +x "$T/noted"
	MORE=$(jq -n --arg noted "$T/noted" '{flood: {words: [$noted, "flood"], choices: {kernel_us: [20, 50, 100, 200], depth: [2, 10]}},
		eager: {words: [$noted, "eager"], choices: {pause_us: [5, 10, 20, 40]}}}')
	regret --rounds 2 --mixes 1 --seed 3
	jq -r '.options | "flood --depth \(.flood.depth) --kernel-us \(.flood.kernel_us)", "eager --pause-us \(.eager.pause_us)"' "$T/found.json" |
		sort >"$T/drawn"
	sort "$T/started" | uniq -c | sed 's/^ *//' | diff - <(sed 's/^/4 /' "$T/drawn") # native, run, mps, space
	jq -e '.options as $drawn | .mixes | all(.members | all(.options == $drawn[.kind]))' "$T/found.json"
	jq -e '.mixes[0].members | any(.options != {})' "$T/found.json"
	python3 "$MIXES/regret.py" --report "$T/found.json" --json "$T/table.json"
	jq -e --slurpfile found "$T/found.json" '.mixes[0].mix as $said | $found[0].mixes[0].members |
		all(. as $one | .options | to_entries | all("\(.key)=\(.value)" as $word | $said | contains($word)))' "$T/table.json"
	sort -u "$T/started" >"$T/once"
	regret --rounds 2 --mixes 1 --seed 3
	sort -u "$T/started" | diff - "$T/once"
}

@test "a program that ends costs its mix and no other, and one that does not start costs none" {
	printf '#!/bin/sh\necho "{\\"event\\": \\"ready\\"}"\nread -r _\n' >"$T/brief"
	chmod +x "$T/brief"
	MORE=$(jq -n --arg brief "$T/brief" '{brief: {words: [$brief]}, never: {words: ["false"]}}')
	regret --rounds 2 --mixes 6 --seed 3 --ways native,run >"$T/out"
	jq -e '.not_started == ["never"]' "$T/found.json"
	jq -e '[.mixes[] | select(.fault)] | length == 1 and (.[0].members | any(.kind == "brief")) and (.[0].fault | test("brief"))' "$T/found.json"
	jq -e '.mixes | last | .fault == null' "$T/found.json"
	python3 "$MIXES/regret.py" --report "$T/found.json" | grep "^Not measured: .*brief"
}

@test "a card without room starts fewer kinds" {
	# Each program takes 2000 MiB of a card that has 30000.
	mkdir "$T/first"
	FIRST=$T/first:
	cat >"$T/first/nvidia-smi" <<-'EOF'
		#!/bin/sh
		count=$(grep -lsF "$0-counted" /proc/[0-9]*/environ | xargs -r -n 1 dirname | while read -r p; do cat "$p/comm"; done | grep -c '^pace$')
		case "$*" in
		*memory.used,memory.total*) echo "$((count * 2000)), 30000" ;;
		*memory.used*) echo "$((count * 2000))" ;;
		*) echo "NVIDIA H100, 580.1" ;;
		esac
	EOF
	chmod +x "$T/first/nvidia-smi"
	MORE=$(jq -n --arg pace "$LOADLINE_BUILD/bench/c/pace" '[range(5) | {key: "more\(.)", value: {words: [$pace, "flood"]}}] | from_entries')
	COUNTED=$T/first/nvidia-smi-counted regret --rounds 2 --mixes 1 --seed 3 --ways native,run >"$T/out"
	cat "$T/out"
	jq -e '.kinds | length == 6' "$T/found.json"
	grep -q "has no room for: [a-z0-9]*, [a-z0-9]*$" "$T/out"
	jq -e '.card == "NVIDIA H100" and .driver == "580.1"' "$T/found.json"
}

@test "the questions to the card have answers of the simulated one" {
	LD_LIBRARY_PATH=$LOADLINE_BUILD/sim PATH=$LOADLINE_BUILD/sim:$PATH python3 "$BATS_TEST_DIRNAME/../../bench/run" --build "$LOADLINE_BUILD" \
		--logs "$T/logs" --quick 40 --json "$T/found.json" share-questions
	jq -e '[.rows[] | select(.result == "-")] | length == 19' "$T/found.json"
	jq -e '.rows | last | .measured == "spans, depths, services" and .result == "ok"' "$T/found.json"
	jq -e '.rows | all(.result != "FAIL")' "$T/found.json"
}
