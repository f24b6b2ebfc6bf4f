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
