# The page for people that loadline-exporter writes into the folder of serve.page. page_browser.bats looks at it in a browser.
# shellcheck disable=SC2154 # status and output are those of bats
export NEEDS="jq python3 sim/loadline-simctl"
load helper
load jobs_helper
load service_helper
load page_helper

@test "the files appear, everybody may read them, and the data say of cards, tenants, jobs and the queue what loadlined says" {
	begin_page
	wait_for 60 data '.up and (.cards | length) == 2 and .sensor_silent_seconds < 15'
	busy_as "$FIRST" first 50% kernel 5ms memory 1G
	wait_for 60 data '[.jobs[] | select(.tenant == "research" and .card == 0 and .memory_limit_bytes == 8 * 1024 * 1024 * 1024)] | length == 1'
	wait_for 60 data 'any(.queue[]; .state == "running" and .tenant == "research" and .cards == [0])'
	data 'any(.tenants[]; .tenant == "research" and .guaranteed_memory_bytes == 4 * 1024 * 1024 * 1024 and .used_memory_bytes == 8 * 1024 * 1024 * 1024 and .running == 1)'
	data 'any(.tenants[]; .tenant == "course" and .limit_compute_percent == 150 and .running == 0)'
	wait_for 60 data '.cards[0].util_percent > 20 and .cards[0].memory_bytes >= 1024 * 1024 * 1024 and .cards[0].synthetic == false and .cards[1].memory_bytes == 0'
	[ "$(cd "$T/www/page" && find . -type f | sort | tr '\n' ' ')" = "./data.js ./index.html ./page.css ./page.js ./uPlot.LICENSE ./uPlot.css ./uPlot.iife.js " ]
	[ "$(stat -c %a "$T/www/page")" = 755 ]
	[ "$(stat -c %a "$T/www/page"/* | sort -u)" = 644 ]
	# What the page loads is there, and nothing from elsewhere.
	grep -o '\(src\|href\)="[^"]*"' "$T/www/page/index.html" | grep -v '"data:,"' | sed 's/.*="\(.*\)"/\1/' >"$T/loads"
	[ "$(wc -l <"$T/loads")" -eq 4 ]
	while read -r file; do [ -s "$T/www/page/$file" ]; done <"$T/loads"
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep -x "ok: page: written in $T/www/page"'
}

@test "a reader in a loop never sees half a file" {
	begin_page
	# SIGHUP makes the exporter write at once.
	cat >"$T/reader.py" <<-'END'
		import json, os, signal, sys
		path, pid, seen = sys.argv[1], int(sys.argv[2]), set()
		while len(seen) < 30:
		    with open(path) as file:
		        seen.add(os.fstat(file.fileno()).st_mtime_ns)
		        text = file.read()
		    assert text.startswith("loadline_data = ") and text.endswith(";\n")
		    json.loads(text[len("loadline_data = "):-2])
		    os.kill(pid, signal.SIGHUP)
	END
	timeout 300 python3 "$T/reader.py" "$T/www/page/data.js" "$(pid_of exporter)"
	stop exporter
	[ "$(find "$T/www/page" -name '.*.new')" = "" ]
}

@test "the folder follows the configuration at SIGHUP, and without the key nothing is written" {
	begin_page
	install -d -o "$EXPORTER" "$T/www/other"
	write_config "serve: {page: $T/www/other}"
	reload
	wait_for 60 [ -e "$T/www/other/data.js" ]
	[ -e "$T/www/other/index.html" ]
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep -x "ok: page: written in $T/www/other"'
	# A file with faults changes nothing.
	echo "nonsense: 1" >>"$T/conf/loadline.yaml"
	kill -HUP "$(pid_of exporter)"
	wait_for 60 grep -q "the configuration has faults" "$T/exporter.err"
	rm "$T/www/other/data.js"
	kill -HUP "$(pid_of exporter)"
	wait_for 60 [ -e "$T/www/other/data.js" ]
	write_config
	reload
	wait_for 60 eval '! loadline --sim doctor --no-trial | grep "page:"'
	wait_for 60 grep -q "no page is written" "$T/exporter.err"
}

@test "doctor and the exporter say why a page is not written, once, and it is written when that has gone" {
	begin_loadlined
	chown 0 "$T/www"
	begin_exporter
	wait_for 60 grep -q "the page in $T/www/page: Permission denied" "$T/exporter.err"
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep "^warn: page: not written in $T/www/page: No such file or directory"'
	mkdir "$T/www/page"
	kill -HUP "$(pid_of exporter)"
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep "^warn: page: not written in $T/www/page: No such file or directory"'
	kill -HUP "$(pid_of exporter)"
	chown "$EXPORTER" "$T/www/page"
	wait_for 60 grep -q "the page in $T/www/page is written" "$T/exporter.err"
	[ "$(grep -c "WARN the page in" "$T/exporter.err")" -eq 1 ]
	loadline --sim doctor --no-trial | grep -x "ok: page: written in $T/www/page"
	# Long ago.
	stop exporter
	touch -d "10 minutes ago" "$T/www/page/data.js"
	loadline --sim doctor --no-trial | grep "^warn: page: not written in $T/www/page for 60[0-9] s"
	# A link that somebody else may have put there is not followed.
	mkdir "$T/www/target"
	chown "$EXPORTER" "$T/www/target" "$T/www"
	ln -s target "$T/www/linked"
	write_config "serve: {page: $T/www/linked}"
	begin_exporter
	wait_for 60 grep -q "the page in $T/www/linked: no folder, or a symbolic link" "$T/exporter.err"
	[ -z "$(ls -A "$T/www/target")" ]
}

@test "nothing hidden is in the files: no command, with others: nothing no job, and as an operator nothing at all" {
	begin_page
	cp "$LOADLINE_BUILD/sim/loadline-simctl" "$T/secretword"
	start_as "$FIRST" first env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE" --sim run --mem 8G --name secretname -- "$T/secretword" busy 0 50% kernel 5ms for 300s
	wait_for 60 grep -q "^busy: pid" "$T/first.out"
	wait_for 60 data '(.jobs | length) == 1 and (.queue | length) == 1 and .jobs[0].user == "'"$FIRST"'" and .jobs[0].command == null'
	run ! grep -rq "secret" "$T/www/page"
	others=nothing write_config "serve: {page: $T/www/page}"
	reload
	wait_for 60 data '.up and .hides_others and .jobs == [] and .queue == [] and any(.tenants[]; .tenant == "research" and .running == 1)'
	run ! grep -rq "secret\|$FIRST" "$T/www/page"
	# With commands for all they are there, and the page hides them until somebody wants them (page_browser.bats).
	commands=all write_config "serve: {page: $T/www/page}"
	reload
	wait_for 60 data '.jobs[0].command == "secretword"'
	# Root is an operator, who is told all.
	commands=own write_config "serve: {page: $T/www/page}"
	kill -HUP "$(pid_of service)"
	stop exporter
	rm -r "$T/www/page"
	begin_exporter 0
	wait_for 60 data '.up == false and .jobs == [] and .cards == [] and (.error | contains("runs as an operator"))'
	run ! grep -rq "secret" "$T/www/page"
}

@test "sums of tenants are told to users where a page is configured, and not otherwise" {
	write_config
	begin_loadlined
	install -d -o "$EXPORTER" "$T/www/page"
	run ! sums_are_told
	write_config "serve: {page: $T/www/page}"
	kill -HUP "$(pid_of service)"
	wait_for 60 sums_are_told
}

# sums_are_told: to any user.
sums_are_told() {
	start_as "$EXPORTER" metrics "$LOADLINE_BUILD/src/exporter/loadline-exporter" --listen "unix:$T/www/socket"
	wait_for 60 [ -S "$T/www/socket" ]
	"$BATS_TEST_DIRNAME/metrics_client.py" get "unix:$T/www/socket" /metrics >"$T/scrape"
	stop metrics
	grep -q "^loadline_up 1" "$T/scrape"
}

@test "the day's history goes on after the exporter and loadlined were started anew, and a loadlined that is gone is said" {
	begin_loadlined
	earlier_history
	begin_exporter
	wait_for 60 data '.up and (.history.cards | length) == 2 and ([.history.cards[].util | length] | min) >= 1400'
	data '.history.cards[.cards[0].uuid].util[0] == 50 and .history.cards[.cards[0].uuid].util[450] == null'
	stop exporter
	# Another user's file is not believed.
	chown nobody "$T/www/page/data.js"
	begin_exporter
	wait_for 60 eval '[ "$(stat -c %u "$T/www/page/data.js")" = "$EXPORTER" ]'
	data '[.history.cards[].util | length] | max < 3'
	stop service KILL
	kill -HUP "$(pid_of exporter)"
	wait_for 60 data '.up == false and (.error | length) > 0 and .cards == [] and (.history | has("cards"))'
}

@test "a synthetic load is marked as one, and a job's work is not" {
	begin_page
	start_as "$SECOND" hold "$LOADLINE" --sim hold -i 1 --target 30%
	busy_as "$FIRST" first 50% kernel 5ms memory 1G
	wait_for 60 data '.cards[1].synthetic and .cards[1].synthetic_percent > 10 and .cards[0].synthetic == false and .cards[0].synthetic_percent == 0 and .cards[0].util_percent > 10'
	# It is said where jobs are hidden, too; how much of the use is its own is not known then.
	others=nothing write_config "serve: {page: $T/www/page}"
	reload
	wait_for 60 data '.hides_others and .cards[1].synthetic and .cards[1].synthetic_percent == null and .cards[1].util_percent > 10'
	stop hold
	wait_for 60 data '.cards[1].synthetic == false'
}

@test "an address of an older version is a warning that says what the key is now, and loadlined starts" {
	write_config 'serve: {page: "unix:/run/loadline/page.sock"}'
	run "$LOADLINE" config check "$T/conf/loadline.yaml"
	[ "$status" -eq 0 ]
	[[ $output == *"warning: page: 'unix:/run/loadline/page.sock': an address, where the page was to be served. Now it is the folder"* ]]
	begin_loadlined
	begin_exporter
	wait_for 60 grep -q "no page is written" "$T/exporter.err"
	write_config 'serve: {page: here}'
	run "$LOADLINE" config check "$T/conf/loadline.yaml"
	[ "$status" -ne 0 ]
	[[ $output == *"'here': not an absolute path"* ]]
}
