# loadline hold --mode fill on the simulated card: it is at its target at once, and again after a program comes or ends.
load helper

fill() {
	start hold --sim hold --json --mode fill --target "$1%"
}

HELD='lines | select(.event == "sample" and .state == "holding" and .duty_percent > 0)'

# level TARGET [FROM]: the mean of five samples one after another, which is a second, is within 4 points. Those are later than
# FROM, the time of a sample.
level() {
	look hold "foreach ($HELD | select(.time_s > ${2-0})) as \$sample ([]; (. + [\$sample.util_percent])[-5:];
		select(length == 5 and (add / 5 - $1 | fabs) <= 4))"
}

last_sample() {
	json hold 'select(.event == "sample") | .time_s' | tail -n 1
}

# A host that stands still for a moment launches too little in one window, and makes up for it in the next. So it is a second
# that may not be over.
@test "fill on an idle card is never over its target, and settles" {
	for target in 30 60 90; do
		fill "$target"
		wait_for 60 has hold 'select(.event == "settle")'
		wait_for 60 look hold "foreach ($HELD) as \$sample (0; . + 1; select(. >= 15))"
		stop hold
		jq -s -e "[.[] | select(.event == \"sample\" and .state == \"holding\") | .util_percent] |
			[.[0:20] | range(0; length - 4) as \$at | .[\$at:\$at + 5] | add / 5] | max <= $target + 5" "$T/hold.out" >/dev/null || {
			show
			false
		}
	done
}

# One that waits for each kernel, one of long bursts, one that serves short requests: each takes about a third of the card.
@test "fill is back at its target after a program comes, and after it ends, and says so" {
	for work in "kernel 3ms sleep 7ms" "kernel 30ms sleep 70ms" "kernel 1ms sleep 2ms"; do
		fill 60
		wait_for 60 has hold 'select(.event == "settle")'
		wait_for 60 level 60
		came=$(last_sample)
		# shellcheck disable=SC2086 # words
		start_program program "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 $work
		wait_for 60 look hold "$HELD | select(.time_s > $came and .own_util_percent < 45)"
		wait_for 60 level 60 "$(last_sample)"
		ended=$(last_sample)
		stop program
		wait_for 60 look hold "$HELD | select(.time_s > $ended and .own_util_percent > 55)"
		wait_for 60 level 60 "$(last_sample)"
		stop hold
		# "settled" once, and again only after the level was left.
		jq -s -e '[.[].event | select(. == "settle" or . == "leave")] |
			all(range(length) as $at | .[$at] == (if $at % 2 == 0 then "settle" else "leave" end); .)' "$T/hold.out" >/dev/null || {
			show
			false
		}
		[ "$(grep -cE "settled (after|again)" "$T/hold.err")" -eq "$(json hold 'select(.event == "settle") | 1' | wc -l)" ]
		[ "$(grep -c "left the level: util [0-9]* % (target 60 %)" "$T/hold.err")" -eq "$(json hold 'select(.event == "leave") | 1' | wc -l)" ]
	done
}

# Each kernel of the hold comes late by the switch from the other context.
@test "fill keeps the mean beside a program of many small kernels, and never yields" {
	start_program program "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 500us sleep 2ms
	fill 60
	wait_for 60 tops_up
	is_running program
	stop hold
	[ "$(json hold 'select(.event == "summary") | .yields')" -eq 0 ]
}

# tops_up: the mean of 25 samples in a row, 5 s, is near 60 %.
tops_up() {
	json hold 'select(.event == "sample") | .util_percent' | tail -n 25 |
		jq -s -e 'length == 25 and (add / 25 | . >= 56 and . <= 64)' >/dev/null
}
