# page_helper.bash - what the tests of the page use, besides service_helper.bash.
# shellcheck disable=SC2119,SC2154 # FIRST is of service_helper.bash

EXPORTER=61236 # an ordinary user, as the unit's
HOSTILE='<img src=x onerror=alert(1)>' # the name of a program

# write_config [LINE]...: two cards by memory, three tenants, and a page in $T/www/page.
write_config() {
	config_file "$@" <<-END
		version: 1
		visibility: {others: ${others-user-and-share}, commands: ${commands-own}}
		cards: [{name: parts, cards: "0-1", give: memory}]
		tenants:
		  - {name: research, members: {users: ["$FIRST"]}, guarantee: [{of: parts, memory: 4G}]}
		  - {name: course, members: {users: ["$SECOND"]}, guarantee: [{of: parts, memory: 20G}], limit: [{of: parts, memory: 40G, compute: 150%}]}
		  - {name: serving, members: {users: [nobody]}, guarantee: [{of: parts, memory: 60G}]}
		defaults: {memory: 16G}
	END
}

# begin_loadlined: the system's loadlined of user nobody with a page in its configuration, and its sensor.
begin_loadlined() {
	echo "cards 2" >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	open_world
	install -d -o "$EXPORTER" "$T/www"
	[ -e "$T/conf/loadline.yaml" ] || write_config "serve: {page: $T/www/page}"
	start_program service "$LOADLINE_BUILD/src/daemon/loadlined" --system --user nobody --config "$T/conf"
	wait_for 60 eval 'loadline --sim doctor --no-trial | grep -q "the system.s: it governs"'
	start_sensor_as
}

# begin_exporter [UID]
# shellcheck disable=SC2120 # a test passes one
begin_exporter() {
	start_as "${1-$EXPORTER}" exporter "$LOADLINE_BUILD/src/exporter/loadline-exporter" --config "$T/conf"
}

begin_page() {
	begin_loadlined
	begin_exporter
	wait_for 60 [ -e "$T/www/page/data.js" ]
}

# data FILTER: true for the data?
data() {
	sed 's/^loadline_data = //; s/;$//' "$T/www/page/data.js" | jq -e "$1" >/dev/null
}

# reload: both read the configuration again.
reload() {
	kill -HUP "$(pid_of service)" "$(pid_of exporter)"
}

# busy_as UID NAME WORD...: a job of the user that works on a card, until it is killed.
busy_as() {
	local uid=$1 name=$2
	shift 2
	start_as "$uid" "$name" "$LOADLINE" --sim run --mem 8G -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 "$@" for 300s
	wait_for 60 grep -q "^busy: pid" "$T/$name.out"
}

# full_scene: the page of a machine in use: jobs of two users, one beyond its guarantee, one that waits, a synthetic load, a program whose name is HTML,
# a day's history of an earlier exporter.
full_scene() {
	commands=all write_config "serve: {page: $T/www/page}"
	begin_loadlined
	earlier_history
	wait_for 60 eval 'loadline --sim queue list >/dev/null'
	begin_exporter
	busy_as "$FIRST" first 40% kernel 5ms memory 1G
	cp "$LOADLINE_BUILD/sim/loadline-simctl" "$T/$HOSTILE"
	start_as "$SECOND" second env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE" --sim run --mem 30G --compute 100% -- "$T/$HOSTILE" busy 0 kernel 1ms memory 2G for 300s
	wait_for 60 grep -q "^busy: pid" "$T/second.out"
	start_as "$FIRST" third "$LOADLINE" --sim run --mem 120G -- sleep 300
	wait_for 60 data '(.jobs | length) == 3'
	start_as "$FIRST" fourth "$LOADLINE" --sim run --mem 120G -- sleep 300
	start_as "$SECOND" hold "$LOADLINE" --sim hold -i 1 --target 30%
	wait_for 60 data '.up and (.jobs | length) == 3 and any(.queue[]; .state == "waiting" and .why.rule) and .cards[1].synthetic and .cards[1].synthetic_percent > 0'
}

# earlier_history: what an exporter wrote until a minute ago, for both cards.
earlier_history() {
	install -d -o "$EXPORTER" "$T/www/page"
	loadline --sim status --json | jq -s -c --argjson now "$(date +%s)" '
		[.[] | select(has("card"))] | {history: {end: (($now / 60 | floor) * 60 - 60), step: 60, cards: (map({key: .uuid, value: {
			util: [range(1400) | if . > 400 and . < 500 then null else (50 + 45 * ((. / 90) | sin) | floor) end],
			synthetic: [range(1400) | if . % 300 < 60 then 20 else 0 end],
			memory: [range(1400) | (. / 20 | floor)]}}) | from_entries)}}' | sed 's/^/loadline_data = /; s/$/;/' >"$T/www/page/data.js"
	chown "$EXPORTER" "$T/www/page/data.js"
}
