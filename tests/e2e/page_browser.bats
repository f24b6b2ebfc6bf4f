# The page of loadline-exporter in a headless Chromium, opened as a file. With LOADLINE_PICTURES=FOLDER its pictures are kept there.
# shellcheck disable=SC2154 # FIRST and others are of the helpers
export NEEDS="jq python3 chromium sim/loadline-simctl"
load helper
load jobs_helper
load service_helper
load page_helper

# of npm; has no other packages
AXE='axe-core@4.14.1'

# scene: $SCENE, the files of a machine in use, which the first test makes.
scene() {
	SCENE=$BATS_FILE_TMPDIR/page
	[ ! -d "$SCENE" ] || return 0
	full_scene
	cp -r "$T/www/page" "$T/scene"
	mv "$T/scene" "$SCENE"
}

# written SECONDS: the data were written so long ago.
written() {
	sed -i "s/\"at\":[0-9]*,\"every/\"at\":$(($(date +%s) - $1)),\"every/" "$SCENE/data.js"
}

# look_at_page LANGUAGE WIDTH [OPTION]...: $found: what page_look.py says. The page has said nothing on its console.
look_at_page() {
	local language=$1 width=$2
	shift 2
	found=$(timeout 300 "$BATS_TEST_DIRNAME/page_look.py" "file://$SCENE/index.html" --profile "$T/chromium" --language "$language" --width "$width" \
		${LOADLINE_PICTURES:+--picture "$LOADLINE_PICTURES/$language-$width.png"} "$@")
	found '.console == [] and .width == $width' --argjson width "$width"
}

# found FILTER [JQ OPTION]...
found() {
	jq -e "${@:2}" "$1" <<<"$found" >/dev/null || {
		echo "not so: $* in $found"
		return 1
	}
}

@test "the page is drawn in English and in Chinese, wide and narrow: all that the data say, no error, nothing wider than the window" {
	scene
	local language width
	for language in en-US zh-CN; do
		for width in 1280 390; do
			written 1
			look_at_page "$language" "$width"
			found '.charts == 2 and .overflows == false and .state == ""'
			found '.text | contains("serving") and contains("research") and contains("140.4 GiB")'
			case $language in
			en-US) found '.language == "en" and .heading == "Cards" and (.text | contains("synthetic load") and contains("of which synthetic") and contains("borrower"))' ;;
			zh-CN) found '.language == "zh-CN" and .heading == "卡" and (.text | contains("合成负载") and contains("借用者") and (contains("borrower") | not))' ;;
			esac
		done
	done
}

@test "command lines are hidden until somebody wants them, and a name that is HTML is a text" {
	scene
	written 1
	look_at_page en-US 1280
	found '.text | contains($name) | not' --arg name "$HOSTILE"
	look_at_page en-US 1280 --click "#commands"
	found '(.text | contains($name)) and .images == 0' --arg name "$HOSTILE"
}

@test "data that are old, of a loadlined that is silent, or not there, are said to be" {
	scene
	written 600
	look_at_page en-US 1280
	found '.state | startswith("The data are old: they were written 10 min ago")'
	written -600
	look_at_page en-US 1280
	found '.state | contains("clock of this computer is 9 min behind") or contains("clock of this computer is 10 min behind")'
	written 1
	cp "$SCENE/data.js" "$T/data.js"
	sed -i 's/"up":true,"error":null/"up":false,"error":"<b>nobody<\/b> serves"/' "$SCENE/data.js"
	look_at_page en-US 1280
	mv "$T/data.js" "$SCENE/data.js"
	found '.state == "loadlined does not reply: <b>nobody</b> serves"'
}

@test "axe-core finds no violation, in both languages, wide and narrow, with old data too" {
	scene
	command -v npm >/dev/null || skip "no npm, which fetches axe-core"
	local axe=$LOADLINE_BUILD/axe-core
	if [ ! -e "$axe/package/axe.js" ]; then
		mkdir -p "$axe"
		(cd "$axe" && timeout 120 npm pack --silent "$AXE" && tar -xzf axe-core-*.tgz) >"$T/npm.out" 2>&1 || skip "npm cannot fetch $AXE: $(tail -n 1 "$T/npm.out")"
	fi
	local language width
	for language in en-US zh-CN; do
		for width in 1280 390; do
			written $((width == 390 ? 600 : 1))
			look_at_page "$language" "$width" --click "#commands" --axe "$axe/package/axe.js"
			found '.passes > 20 and .violations == []'
		done
	done
	look_at_page en-US 1280 --dark --axe "$axe/package/axe.js"
	found '.isDark and .passes > 20 and .violations == []'
}

@test "an open page shows what is written later, without being loaded again" {
	scene
	written 1
	change() {
		sed 's/"up":true,"error":null/"up":false,"error":"nobody serves"/' "$SCENE/data.js" >"$T/changed.js"
		sed "s/\"at\":[0-9]*,\"every/\"at\":$(date +%s),\"every/" "$T/changed.js" >"$SCENE/.new"
		cp "$SCENE/data.js" "$T/before.js"
		mv "$SCENE/.new" "$SCENE/data.js"
	}
	start_program look timeout 300 "$BATS_TEST_DIRNAME/page_look.py" "file://$SCENE/index.html" --profile "$T/chromium" --until "nobody serves"
	# The browser makes its folder before it opens the page; either way the page is open with one of the two, and ends with the second.
	wait_for 60 [ -d "$T/chromium/Default" ]
	change
	finish look
	mv "$T/before.js" "$SCENE/data.js"
	[ "$status" -eq 0 ]
	jq -e '.console == [] and .state == "loadlined does not reply: nobody serves"' "$T/look.out"
}
