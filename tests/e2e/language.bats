# Help and messages in Chinese; and what never changes with the language.
load helper

export NEEDS=po/zh_CN/LC_MESSAGES/loadline.mo

# in_language "NAME=VALUE..." ARG...: loadline under these variables of the locale alone.
in_language() {
	local variables=$1
	shift
	# shellcheck disable=SC2086
	env -u LANG -u LC_MESSAGES $variables "$LOADLINE" "$@"
}

chinese() {
	in_language LANG=zh_CN.UTF-8 "$@"
}

# make_locale NAME: installs it for this test alone.
make_locale() {
	mkdir -p "$T/locales"
	[ -e "/usr/share/i18n/locales/$1" ] || skip "this machine has no source of the locale $1 (package locales)"
	localedef -i "$1" -f UTF-8 "$T/locales/$1.UTF-8"
	export LOCPATH=$T/locales
}

busy() {
	start "$1" --sim run --tenant "$@" -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms for 60s
}

@test "a message and the help are in Chinese where no such locale is installed" {
	run chinese
	[ "$output" = "loadline: 没有给出命令; 试试 'loadline --help'" ]
	[ "$status" -eq 2 ]
	chinese run --help | grep -qx '  -h, --help              打印这份帮助，然后退出。'
}

@test "LANGUAGE names the language, and without a locale, in C or in another character set it is English" {
	local variables
	for variables in "LANG=C.UTF-8 LANGUAGE=zh_CN" "LC_ALL=zh_CN.utf8" "LC_MESSAGES=zh_CN.UTF-8" "LANG=zh_CN.UTF-8 LANGUAGE=de:zh_CN"; do
		echo "$variables"
		in_language "$variables" --help | grep -qx '帮助:'
	done
	for variables in "LANGUAGE=zh_CN" "LANG=C LANGUAGE=zh_CN" "LANG=zh_CN.GBK" "LANG=zh_CN.UTF-8 LANGUAGE=en:zh_CN" \
		"LANG=zh_CN.UTF-8 LC_ALL=C" "LANG=../../zh_CN.UTF-8" "LANG=fr_FR.UTF-8"; do
		echo "$variables"
		in_language "$variables" --help | grep -qx 'Help:'
	done
}

@test "an installed locale says the same, by the C library" {
	make_locale zh_CN
	for words in --help "run --help" "--bogus" "mps status --bogus"; do
		# shellcheck disable=SC2086
		chinese $words >"$T/libc" 2>&1 || true
		# shellcheck disable=SC2086
		LOCPATH=/nonexistent chinese $words >"$T/own" 2>&1 || true
		grep -q '[^ -~]' "$T/own"
		cmp "$T/libc" "$T/own"
	done
}

@test "without its translations the program speaks English" {
	cp "$LOADLINE" "$T/loadline"
	run env LANG=zh_CN.UTF-8 LC_MESSAGES=zh_CN.UTF-8 "$T/loadline"
	[ "$output" = "loadline: no command; try 'loadline --help'" ]
}

@test "errors begin with the program's name, keep the user's words and end with the same status" {
	local words
	while read -r words; do
		echo "$words"
		local rc=0 chinese_rc=0
		# shellcheck disable=SC2086
		loadline $words 2>"$T/english" || rc=$?
		# shellcheck disable=SC2086
		chinese $words 2>"$T/chinese" || chinese_rc=$?
		[ "$rc" -ne 0 ]
		[ "$chinese_rc" -eq "$rc" ]
		grep -q '^loadline: ' "$T/chinese"
		run ! cmp -s "$T/english" "$T/chinese"
	done <<-'END'
		bogus
		hold --target 200%
		--sim run --mem abc true
		--sim run --mem 900G true
		--sim run -- /nonexistent/program
		--sim set nobody --mem 1G
		--sim evict nobody
		--sim hold -i 7
		--sim mps status
		--sim=nowhere status
	END
	# The process with the context finds it out, and the hold says it.
	run chinese --sim hold --max-memory 100M
	grep -q '^loadline: 卡 0: .*，超过 --max-memory 100 MiB; 请提高 --max-memory' <<<"$output"
	run chinese --sim run --mem abc true
	[[ $output == "loadline: --mem: 'abc': 不是大小"* ]]
	[[ $output == *"'loadline --sim run --help'"* ]]
}

@test "the help of every main command fits 80 columns, none of it left in English" {
	local command
	for command in run set evict suspend resume hold status top doctor mps help version \
		"mps start" "mps stop" "mps set" "mps status" "mps clients" "mps kill" "mps run" "mps env"; do
		echo "$command"
		# shellcheck disable=SC2086
		chinese $command --help >"$T/help"
		[ "$("$BATS_TEST_DIRNAME/columns.py" width <"$T/help")" -le 80 ]
		# Commands stand in quotes, or on the lines of the usage, of examples and of a loop.
		run grep -E '[a-z]+ [a-z]+ [a-z]+' <(sed -e "s/[\`'][^\`']*[\`']//g" -e '/loadline /d' -e '/^ *for host in /d' "$T/help")
		[ "$output" = "" ]
	done
	[ "$(chinese --help | "$BATS_TEST_DIRNAME/columns.py" width)" -le 80 ]
}

@test "the tables of status are aligned, and its long lines are in Chinese" {
	busy train --mem 20G
	busy 夜间训练 --weight 2
	wait_for 60 shows 'select(has("claim") and .tenant == "train")'
	wait_for 60 shows 'select(has("claim") and .tenant == "夜间训练")'
	chinese --sim status >"$T/status"
	cat "$T/status"
	[ "$(sed -n '1s/ .*//p' "$T/status")" = 卡 ]
	sed '/^$/,$d' "$T/status" | "$BATS_TEST_DIRNAME/columns.py" table
	sed '1,/^$/d' "$T/status" | "$BATS_TEST_DIRNAME/columns.py" table
	chinese --sim status --long >"$T/long"
	cat "$T/long"
	grep -q '租户 train: ' "$T/long"
	grep -q 'train: .*, 优先级 normal, .* / 20.0 GiB, .*GPU 时间 [0-9.]* s' "$T/long"
	chinese --sim set train --mem 30G | grep -qx '卡 0, train: 显存 20.0 GiB -> 30.0 GiB'
}

@test "JSON is equal byte for byte in every language" {
	make_locale zh_CN
	make_locale de_DE
	"$LOADLINE" --sim=h200 mps start 3>&-
	local language name words
	for language in LANG=C LANG=zh_CN.UTF-8 LC_ALL=de_DE.UTF-8 "LANG=C.UTF-8 LANGUAGE=zh_CN"; do
		name=$T/${language//[^a-zA-Z]/_}.json
		while read -r words; do
			# shellcheck disable=SC2086
			in_language "$language" --sim $words 2>&1 || true
		done >"$name" <<-'END'
			status --json
			doctor --json --no-trial
			hold --json --dry-run --target 37.5%
			hold --json --dry-run --curve sine:20.5-80@60s
			hold --json --target 37.5% -i 9
			mps status --json
		END
		# The card's energy and the host's memory change from one moment to the next.
		sed -i -e 's/"energy_joules":[0-9]*\.[0-9]*,/"energy_joules":0.5,/' -e '/"check":"pool"/s/[0-9.]* [GM]iB/1.5 GiB/' "$name"
		grep -c '^{' "$name"
		diff "$T/LANG_C.json" "$name"
	done
	"$LOADLINE" --sim mps stop
	# An error of the process with the context is English too.
	chinese --sim hold --json --max-memory 100M >"$T/hold.out" || true
	has hold 'select(.event == "summary") | .exit_reason | startswith("card 0: a CUDA context takes")'
}

@test "what a hold in Chinese tells others is English" {
	start_program held env -u LC_MESSAGES LANG=zh_CN.UTF-8 "$LOADLINE" --sim hold --metrics-listen 127.0.0.1:0
	wait_for 60 shows '.state == "holding" and .synthetic'
	grep -q ' INFO 卡 0: ' "$T/held.err"
	chinese --sim status --json >"$T/status"
	local port
	port=$(sed -n 's/.* INFO .*端口 \([0-9]*\)$/\1/p' "$T/held.err")
	exec 5<>"/dev/tcp/127.0.0.1/$port"
	printf 'GET /metrics HTTP/1.0\r\n\r\n' >&5
	cat <&5 >"$T/metrics"
	exec 5>&-
	grep -q '^loadline_' "$T/metrics"
	run ! grep -q '[^ -~[:cntrl:]]' "$T/status" "$T/metrics"
}

@test "numbers and CSV do not change with the language" {
	make_locale zh_CN
	make_locale de_DE
	local language
	loadline --sim hold --target 37.5% --for 2s --record "$T/english.csv"
	for language in zh_CN de_DE; do
		in_language "LC_ALL=$language.UTF-8" --sim hold --target 37.5% --for 2s --record "$T/$language.csv" >"$T/$language.out" 2>&1
		cmp <(head -n 1 "$T/english.csv") <(head -n 1 "$T/$language.csv")
		[ "$(wc -l <"$T/$language.csv")" -gt 1 ]
		# 13 fields: names, words, or numbers with a point.
		run grep -vE '^[0-9.]+,[0-9TZ:.-]+,0,GPU-[0-9a-f-]+,util,percent(,(-?[0-9]+(\.[0-9]+)?)?){6},[a-z]+$' <(tail -n +2 "$T/$language.csv")
		[ "$output" = "" ]
		grep -qE '(37\.5|37,5) %' "$T/$language.out"
		run ! grep -q '37,5' "$T/$language.out"
	done
	grep -q ' INFO 卡 0: ' "$T/zh_CN.out"
}

@test "manual pages and completions stay English" {
	local words
	for words in "--man" "--man run" "--man mps" "--completion bash" "--completion zsh" "--completion fish"; do
		# shellcheck disable=SC2086
		cmp <(loadline help $words) <(chinese help $words)
	done
}

@test "a program that run starts finds its environment as it was, and the library speaks English" {
	local variables='^(LANG|LANGUAGE|LC_|LOCPATH)'
	[ "$(chinese --sim run -- env | grep -E "$variables")" = "LANG=zh_CN.UTF-8" ]
	# The library's own line, about a page that does not fit it.
	run env LANG=zh_CN.UTF-8 LC_MESSAGES=zh_CN.UTF-8 LOADLINE_RUN=garbled LD_PRELOAD="$LOADLINE_BUILD/src/shim/libloadline-cuda.so" \
		LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms for 10ms
	echo "$output"
	[[ $output == *loadline:* ]]
	run ! grep -q '[^ -~]' <<<"$output"
}
