# loadline run: it becomes the command, in an environment that governs it and all that it starts.
load helper
run_sim() {
	loadline --sim run "$@"
}

# setting KEY: of the LOADLINE_RUN in $T/env.
setting() {
	sed -n 's/^LOADLINE_RUN=//p' "$T/env" | tr ';' '\n' | sed -n "s|^$1=||p"
}

variable() {
	sed -n "s|^$1=||p" "$T/env"
}

uuid_of() {
	loadline --sim status -i "$1" --json | jq -r 'select(has("card")) | .uuid'
}

# tenant NAME [FILTER]: of those with nothing on the card.
tenant() {
	shows "select(has(\"tenant_row\") and .tenant == \"$1\") | ${2-true}"
}

no_tenant() {
	shows_none "has(\"tenant_row\") and .tenant == \"$1\""
}

@test "the command's exit status is run's" {
	for code in 0 1 7 77 125 126 127 255; do
		status=0
		run_sim -- sh -c "exit $code" || status=$?
		[ "$status" -eq "$code" ]
	done
}

@test "a command that dies of a signal dies as itself" {
	start victim --sim run -- sh -c 'kill -SEGV $$'
	finish victim
	[ "$status" -eq $((128 + 11)) ]
	start sleeper --sim run --tenant sleeper -- sleep 60
	wait_for 60 tenant sleeper
	[ "$(cat "/proc/$(pid_of sleeper)/comm")" = sleep ]
	stop sleeper TERM
	[ "$status" -eq $((128 + 15)) ]
}

@test "the command has run's standard streams, arguments and folder" {
	mkdir "$T/folder"
	cd "$T/folder"
	[ "$(echo in | run_sim -- sh -c 'cat; pwd; echo "$0 $#" "$@"' zero 'a b' -i --mem '')" = "in
$T/folder
zero 4 a b -i --mem " ]
	run --separate-stderr run_sim -- sh -c 'echo out; echo err >&2'
	[ "$output" = out ]
	# shellcheck disable=SC2154
	[ "$stderr" = err ]
}

@test "options end at -- and at the first word" {
	[ "$(run_sim -- echo -i --mem)" = "-i --mem" ]
	[ "$(run_sim --weight 2 echo --mem 5)" = "--mem 5" ]
	[ "$(run_sim sh -c 'echo "$1"' zero --help)" = "--help" ]
	run_sim --help | grep -q '^Usage: loadline --sim run'
}

@test "the environment has the limits, the cards and the library" {
	run_sim --mem 20G --compute 25% --weight 2.5 --class low --slowdown 1.25 --tenant night --count-context=no --max-kernel 10s:kill -- \
		env >"$T/env"
	[ "$(setting mem)" -eq $((20 << 30)) ]
	[ "$(setting compute)" -eq 250 ]
	[ "$(setting weight)" -eq 2500 ]
	[ "$(setting slowdown)" -eq 1250 ]
	[ "$(setting tenant)" = night ]
	[ "$(setting context)" -eq 0 ]
	[ "$(setting max-kernel)" -eq 10000000000 ]
	[ "$(setting kill)" -eq 1 ]
	[ "$(setting folder)" = "$T/world" ]
	[[ $(setting id) =~ ^[0-9a-f]+$ ]]
	run_sim -i 0 -- env | grep -qx "CUDA_VISIBLE_DEVICES=0"
	[[ $(variable LD_PRELOAD) == /*/libloadline-cuda.so* ]]
}

@test "without options there are no limits, and a name is made" {
	run_sim -- sh -c 'echo $$; exec env' >"$T/env"
	[ "$(setting mem) $(setting compute) $(setting weight) $(setting context) $(setting max-kernel)" = "0 0 1000 1 0" ]
	[ "$(setting tenant)" = "sh-$(head -n 1 "$T/env")" ]
	mkdir "$T/bin"
	printf '#!/bin/sh\nexec env\n' >"$T/bin/a b;c"
	chmod +x "$T/bin/a b;c"
	run_sim -- "$T/bin/a b;c" >"$T/env"
	[[ $(setting tenant) =~ ^a_b_c-[0-9]+$ ]]
	run_sim -- env >"$T/other"
	[ "$(grep -o 'id=[0-9a-f]*' "$T/env")" != "$(grep -o 'id=[0-9a-f]*' "$T/other")" ]
}

@test "what was to be preloaded before still is, in front of the library" {
	library=$(LD_PRELOAD='' run_sim -- sh -c 'echo $LD_PRELOAD')
	[ "$(LD_PRELOAD=libm.so.6 run_sim -- sh -c 'echo $LD_PRELOAD')" = "libm.so.6:$library" ]
	[ "$(LD_PRELOAD=libm.so.6:$library run_sim -- sh -c 'echo $LD_PRELOAD')" = "libm.so.6:$library" ]
}

@test "LOADLINE_SHIM names another library" {
	cp "$(run_sim -- sh -c 'echo ${LD_PRELOAD%%:*}')" "$T/other.so"
	[ "$(LOADLINE_SHIM=$T/other.so run_sim -- sh -c 'echo ${LD_PRELOAD%%:*}')" = "$T/other.so" ]
	cd "$T"
	[ "$(LOADLINE_SHIM=other.so run_sim -- sh -c 'echo ${LD_PRELOAD%%:*}')" = "$T/other.so" ]
}

@test "-i chooses cards, in PCI order" {
	scenario "cards 4"
	for list in 2 0,3 1-2 all; do
		run_sim -i "$list" -- env >"$T/env"
		[ "$(variable CUDA_VISIBLE_DEVICES)" = "$(loadline --sim status -i "$list" --json | jq -r 'select(has("card")) | .card' | paste -sd,)" ]
		[ "$(variable CUDA_DEVICE_ORDER)" = PCI_BUS_ID ]
	done
}

# cuda_cards COMMAND...: the UUIDs of CUDA's cards, in CUDA's order, as a program that the command starts sees them.
cuda_cards() {
	"$@" python3 -c 'import ctypes, uuid
cuda = ctypes.CDLL("libcuda.so.1")
count = ctypes.c_int()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
for device in range(count.value):
    name = ctypes.create_string_buffer(16)
    assert cuda.cuDeviceGetUuid(name, device) == 0
    print("GPU-%s" % uuid.UUID(bytes=name.raw))'
}

@test "without -i the program sees the cards in the order in which it would have seen them" {
	command -v python3 >/dev/null || skip "no python3"
	scenario "cards 3" "card 2 name fast" "cuda-order 2 0 1"
	plain=$(LD_LIBRARY_PATH=$LOADLINE_BUILD/sim cuda_cards env)
	[ "$plain" = "$(printf '%s\n' "$(uuid_of 2)" "$(uuid_of 0)" "$(uuid_of 1)")" ]
	[ "$(cuda_cards run_sim --)" = "$plain" ]
	[ "$(cuda_cards run_sim -- "$LOADLINE" --sim run --)" = "$plain" ]
	[ "$(CUDA_DEVICE_ORDER=PCI_BUS_ID cuda_cards run_sim --)" = "$(uuid_of all)" ]
	[ "$(cuda_cards run_sim -i all --)" = "$(uuid_of all)" ]
	[ "$(cuda_cards run_sim -i 1-2 --)" = "$(uuid_of 1-2)" ]
	[ "$(cuda_cards run_sim -i 1-2 -- "$LOADLINE" --sim run --)" = "$(uuid_of 1-2)" ]
	[ "$(CUDA_VISIBLE_DEVICES=1,0 cuda_cards run_sim --)" = "$(printf '%s\n' "$(uuid_of 0)" "$(uuid_of 2)")" ]
	[ "$(CUDA_VISIBLE_DEVICES=1,0 cuda_cards run_sim -i 2 --)" = "$(uuid_of 2)" ]
	[ "$(CUDA_VISIBLE_DEVICES=1,0 cuda_cards run_sim -i 0,2 --)" = "$(printf '%s\n' "$(uuid_of 0)" "$(uuid_of 2)")" ]
}

# Programs such as vLLM, DeepSpeed and Ray read the variable as numbers, and end if it has UUIDs.
@test "CUDA_VISIBLE_DEVICES has numbers, and the user's own if they name the same cards" {
	scenario "cards 4" "cuda-order 2 0 1 3"
	for visible in 0 1,0 3,2,1,0; do
		for options in "" "--mem 4G" "--compute 50%" "--evictable"; do
			# shellcheck disable=SC2086 # several words
			[ "$(CUDA_VISIBLE_DEVICES=$visible run_sim $options -- python3 "$BATS_TEST_DIRNAME/numbers.py")" = "$visible in any order" ]
		done
	done
	# CUDA's 0 is card 2: the chosen cards are fewer than those that the user named, or the same.
	[ "$(CUDA_VISIBLE_DEVICES=0,3 run_sim -i 2-3 -- python3 "$BATS_TEST_DIRNAME/numbers.py")" = "0,3 in any order" ]
	[ "$(CUDA_VISIBLE_DEVICES=0,3 run_sim -i 2 -- python3 "$BATS_TEST_DIRNAME/numbers.py")" = "2 in PCI order" ]
	[ "$(CUDA_VISIBLE_DEVICES=$(uuid_of 3),$(uuid_of 1) run_sim -i 1 -- python3 "$BATS_TEST_DIRNAME/numbers.py")" = "1 in PCI order" ]
	[ "$(run_sim -i 1-3 -- "$LOADLINE" --sim run -i 3 -- python3 "$BATS_TEST_DIRNAME/numbers.py")" = "3 in PCI order" ]
	[ "$(run_sim -i 1-3 -- "$LOADLINE" --sim run -- python3 "$BATS_TEST_DIRNAME/numbers.py")" = "1,2,3 in PCI order" ]
	[ "$(run_sim -- python3 "$BATS_TEST_DIRNAME/numbers.py")" = "all in any order" ]
}

@test "without -i a card that does not answer is hidden from the program" {
	scenario "cards 3" "card 1 gone on"
	run_sim -- env >"$T/env"
	[ "$(variable CUDA_VISIBLE_DEVICES)" = "$(uuid_of 0),$(uuid_of 2)" ]
}

@test "cards that were hidden before stay hidden" {
	scenario "cards 4"
	export CUDA_DEVICE_ORDER=PCI_BUS_ID
	CUDA_VISIBLE_DEVICES=3,1 run_sim -- env >"$T/env"
	[ "$(variable CUDA_VISIBLE_DEVICES)" = 3,1 ]
	CUDA_VISIBLE_DEVICES=3,1 run_sim -i 1 -- env >"$T/env"
	[ "$(variable CUDA_VISIBLE_DEVICES)" = 1 ]
	CUDA_VISIBLE_DEVICES=$(uuid_of 3),$(uuid_of 0) run_sim -i 0,2-3 -- env >"$T/env" && return 1
	CUDA_VISIBLE_DEVICES=$(uuid_of 3),$(uuid_of 0) run_sim -- env >"$T/env"
	[ "$(variable CUDA_VISIBLE_DEVICES)" = "$(uuid_of 3),$(uuid_of 0)" ]
	CUDA_VISIBLE_DEVICES=$(uuid_of 2) run_sim -- env >"$T/env"
	[ "$(variable CUDA_VISIBLE_DEVICES)" = "$(uuid_of 2)" ]
	CUDA_VISIBLE_DEVICES=3,1 fails_with 125 "hidden from CUDA by CUDA_VISIBLE_DEVICES=3,1" --sim run -i 0 -- true
	CUDA_VISIBLE_DEVICES='' fails_with 125 "CUDA_VISIBLE_DEVICES=" --sim run -- true
}

@test "the tenant is on the chosen cards, with its limits, and goes with its last process" {
	scenario "cards 2"
	start job --sim run -i 1 --mem 3G --compute 40% --weight 2 --class high --tenant job -- sleep 60
	wait_for 60 tenant job '.memory_limit_bytes == 3221225472 and .compute_cap_percent == 40 and .weight == 2 and .class == "high" and .uuid == "'"$(uuid_of 1)"'"'
	[ "$(loadline --sim status --json | jq -s 'map(select(has("tenant_row"))) | length')" -eq 1 ]
	loadline --sim status --long | grep -q '^  tenant job: nothing on the card, class high, 0 MiB of 3.0 GiB, compute 40 %, weight 2, '
	stop job KILL
	wait_for 60 no_tenant job
}

@test "a tenant lives as long as anything of its process tree" {
	start tree --sim run --tenant tree -- sh -c "sh -c 'echo \$\$ >$T/child; exec sleep 60' & exit 0"
	finish tree
	[ "$status" -eq 0 ]
	wait_for 60 test -s "$T/child"
	tenant tree
	kill -KILL "$(cat "$T/child")"
	wait_for 60 no_tenant tree
}

@test "a governed program that starts run stays in its tenant" {
	run_sim --mem 5G --tenant outer -- sh -c '"$LOADLINE" --sim run -- env' >"$T/env"
	[ "$(setting tenant) $(setting mem)" = "outer $((5 << 30))" ]
	run_sim --tenant outer -- sh -c 'echo "$LOADLINE_RUN"; exec "$LOADLINE" --sim run -- sh -c "echo \$LOADLINE_RUN"' >"$T/out"
	[ "$(sort -u "$T/out" | wc -l)" -eq 1 ]
	[ "$(run_sim -- sh -c '"$LOADLINE" --sim run -- sh -c "echo \$LD_PRELOAD"' | tr ':' '\n' | grep -c libloadline-cuda)" -eq 1 ]
}

@test "a governed program may choose among its cards but not its limits" {
	scenario "cards 3"
	[ "$(run_sim -i 0,2 -- "$LOADLINE" --sim run -i 2 -- sh -c 'echo $CUDA_VISIBLE_DEVICES')" = 2 ]
	fails_with 125 "hidden from CUDA" --sim run -i 0,2 -- "$LOADLINE" --sim run -i 1 -- true
	for option in --mem=9G --mem=1G --compute=10% --weight=2 --class=high --tenant=inner --count-context=no --max-kernel=1s; do
		fails_with 125 "already governed, as tenant outer: its limits hold for all programs that it starts; leave the limits out" \
			--sim run --tenant outer -- "$LOADLINE" --sim run "$option" -- true
	done
}

@test "scripts run, with and without a first line, and through env" {
	printf '#!/bin/sh\necho sh $LOADLINE_RUN\n' >"$T/first"
	printf 'echo plain $LOADLINE_RUN\n' >"$T/plain"
	printf '#!/usr/bin/env bash\necho env $LOADLINE_RUN\n' >"$T/env-script"
	chmod +x "$T/first" "$T/plain" "$T/env-script"
	[[ $(run_sim "$T/first") == "sh id="* ]]
	[[ $(run_sim "$T/plain") == "plain id="* ]]
	[[ $(run_sim "$T/env-script") == "env id="* ]]
	cd "$T"
	[[ $(run_sim ./first) == "sh id="* ]]
	[[ $(PATH=$T:$PATH run_sim first) == "sh id="* ]]
}

@test "an allocation past the limit fails in the program, and the program says so itself" {
	busy=("$LOADLINE_BUILD/sim/loadline-simctl" busy 0 kernel 1ms count 10)
	run_sim --mem 2G -- "${busy[@]}" memory 1G
	run ! loadline --sim run --mem 2G -- "${busy[@]}" memory 2G
	[[ $output == *CUDA_ERROR_OUT_OF_MEMORY* ]]
	run_sim --mem 2G --count-context=no -- "${busy[@]}" memory 2G
	run_sim --mem 528M -- "${busy[@]}"
}

@test "a program's claim is its tenant's, and is gone with it" {
	start busy --sim run --mem 4G --tenant worker -- "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 20% for 60s
	has_claim() {
		shows "select(has(\"claim\")) | .tenant == \"worker\" and .memory_limit_bytes == 4294967296 and .pid == $(pid_of busy) and .state == \"running\""
	}
	wait_for 60 has_claim
	loadline --sim status --long | grep -q "^  0/[0-9]*  pid $(pid_of busy)  worker: running, class normal, "
	stop busy KILL
	# loadlined hears of an end a moment later than the shell.
	has_nothing() {
		[ "$(loadline --sim status --json | wc -l)" -eq 1 ]
	}
	wait_for 60 has_nothing
}
