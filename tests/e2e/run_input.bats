# loadline run with what it cannot do: a clear error, 125 for its own, 126 and 127 for the command, nothing left behind.
load helper
# refuses TEXT ARG...: 125, one line besides what it waits for on a busy host, and no tenant stays. A job that was refused late ends a moment after its command: its monitor
# tells loadlined.
refuses() {
	local text=$1
	shift
	fails_with 125 "$text" --sim run "$@"
	# shellcheck disable=SC2154
	[ "$(grep -vc '^loadline: waits for ' <<<"$stderr")" -eq 1 ]
	[ -z "$output" ]
	wait_for 60 shows_none 'has("tenant_row")'
}

# compiles FILE OPTION...: a program that ends with 0.
compiles() {
	local file=$1
	shift
	command -v cc >/dev/null || skip "no compiler"
	printf 'int main(void) { return 0; }\n' | cc -x c - -o "$file" "$@" 2>"$T/cc.err"
}

@test "nonsense limits" {
	for size in 0 -5 abc 10X '' 1e9 nan 99999999999999999999; do
		refuses "--mem" "--mem=$size" -- true
	done
	refuses "--mem: '2GB': GB: write G or GiB" --mem 2GB -- true
	refuses "--mem-request: '512mb': MB: write M or MiB" --mem-request 512mb --mem 2g -- true
	for share in 0 101% 0% -5 abc '' 25W nan; do
		refuses "--compute" "--compute=$share" -- true
	done
	refuses "--compute: '0.25': 0.25 % or 25 %?; say 0.25% or 25%" --compute 0.25 -- true
	for weight in 0 -1 101 abc 2% '' 0.001; do
		refuses "--weight" "--weight=$weight" -- true
	done
	refuses "--class: 'urgent': not one of high, normal, low" --class urgent -- true
	refuses "--count-context" --count-context=perhaps -- true
	for time in 0 abc 10s:stop 10s: :kill ''; do
		refuses "--max-kernel" "--max-kernel=$time" -- true
	done
	for name in '' 'a b' 'a;b' a/b "$(printf 'x%.0s' {1..64})"; do
		refuses "--tenant" "--tenant=$name" -- true
	done
	refuses "--tenant: 'a?b': not a name: U+001B is not printable" --tenant $'a\033b' -- true
	refuses "--tenant: 'a?b': not a name: U+202E is not printable" --tenant $'a\u202eb' -- true
	refuses "--tenant: 'caf': not a name: byte 0xe9 is not UTF-8" --tenant $'caf\xe9' -- true
	refuses "--frob: unknown option; try 'loadline --sim run --help'" --frob -- true
	refuses "--mem: needs a value (SIZE)" --mem
	refuses "run: no command to run; try 'loadline --sim run --help'"
	refuses "run: no command to run" --mem 3G --
}

@test "a limit that no card can keep" {
	refuses "--mem: card 0 has only" --mem 200T -- true
	refuses "--mem: card 0 has only" --mem 200G -- true
	loadline --sim run --mem 100G -- true
}

@test "a limit below what a context takes says the smallest that works" {
	refuses "give at least --mem 528M, or --count-context=no" --mem 100M -- true
	refuses "--mem: a program's context alone takes" --mem 527M -- true
	loadline --sim run --mem 528M -- true
	loadline --sim run --mem 1M --count-context=no -- true
}

@test "an unknown, silent or sliced card" {
	refuses "no card '9': there is 0 (" -i 9 -- true
	refuses "no card 'GPU-nope'" -i GPU-nope -- true
	refuses "'3-1'" -i 3-1 -- true
	scenario "cards 2" "card 0 gone on"
	refuses "card 0: does not answer" -i 0 -- true
	loadline --sim run -- true
	scenario "card 0 mig 2"
	refuses "card 0: is in MIG mode: only its slices can be used; choose a slice, like -i 0:0" -i 0 -- true
	refuses "CUDA shows a program one MIG slice" -- true
	loadline --sim run -i 0:0 -- true
}

@test "no driver" {
	[ ! -e /proc/driver/nvidia ] || skip "there is a driver here"
	fails_with 125 "no NVIDIA driver: libnvidia-ml.so.1" run -- true
}

@test "no such command is 127" {
	fails_with 127 "no-such-command: command not found" --sim run -- no-such-command
	fails_with 127 "$T/nothing: command not found" --sim run -- "$T/nothing"
	fails_with 127 ": command not found" --sim run -- ''
	run -127 env PATH= "$LOADLINE" --sim run -- true
	[[ $output == "loadline: true: command not found" ]]
}

@test "a script without its interpreter is 127, with one that cannot be run 126" {
	printf '#!/no/such/interpreter -x\n' >"$T/script"
	printf '#!%s\n' "$T/script" >"$T/script-of-a-script"
	printf '#!sh\n' >"$T/by-path"
	printf '#!/bin/sh\r\n' >"$T/dos"
	: >"$T/plain"
	chmod 644 "$T/plain"
	printf '#!%s\n' "$T/plain" >"$T/by-plain"
	printf '#!%s\n' "$T" >"$T/by-folder"
	chmod +x "$T/script" "$T/script-of-a-script" "$T/by-path" "$T/dos" "$T/by-plain" "$T/by-folder"
	for option in '' --allow-ungoverned; do
		fails_with 127 "$T/script: its interpreter: /no/such/interpreter: command not found" --sim run $option -- "$T/script"
	done
	fails_with 127 "$T/script: its interpreter: /no/such/interpreter: command not found" --sim run -- "$T/script-of-a-script"
	fails_with 127 "$T/by-path: its interpreter: ./sh: command not found" --sim run -- "$T/by-path"
	fails_with 127 "remove the carriage return at the end of its first line" --sim run -- "$T/dos"
	fails_with 126 "$T/by-plain: its interpreter: $T/plain: Permission denied" --sim run -- "$T/by-plain"
	fails_with 126 "$T/by-folder: its interpreter: $T: Is a directory" --sim run -- "$T/by-folder"
	fails_with 127 "$T/script: its interpreter: /no/such/interpreter: command not found" --sim trace -o "$T/trace.json" -- "$T/script"
	printf '#!\necho plain\n' >"$T/no-name"
	chmod +x "$T/no-name"
	[ "$(loadline --sim run -- "$T/no-name")" = plain ]
}

@test "a command that cannot be run is 126" {
	: >"$T/plain"
	chmod 644 "$T/plain"
	fails_with 126 "$T/plain: Permission denied" --sim run -- "$T/plain"
	fails_with 126 "$T: Is a directory" --sim run -- "$T"
	PATH=$T:$PATH fails_with 126 "plain: Permission denied" --sim run -- plain
}

@test "a library that is not there" {
	LOADLINE_SHIM=$T/none.so refuses "LOADLINE_SHIM=$T/none.so: No such file or directory; unset it" -- true
	LOADLINE_SHIM=$LOADLINE_BUILD/build.ninja refuses "is not a library" -- true
	mkdir "$T/a folder"
	cp "$LOADLINE" "$T/a folder/loadline"
	run --separate-stderr env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$T/a folder/loadline" run -- true
	[ "$status" -eq 125 ]
	[[ $stderr == "loadline: libloadline-cuda.so is not beside this program"*"; install all of loadline"* ]]
	cp "$(loadline --sim run -- sh -c 'echo ${LD_PRELOAD%%:*}')" "$T/a folder/x.so"
	LOADLINE_SHIM="$T/a folder/x.so" refuses "no blank or colon" -- true
	mkdir "$T/older"
	cp "$T/a folder/x.so" "$T/older/libloadline-cuda.so"
	LD_PRELOAD=libm.so.6:$T/older/libloadline-cuda.so refuses "LD_PRELOAD has another libloadline-cuda.so: $T/older/libloadline-cuda.so; take it out" -- true
}

@test "a loadlined that does not answer: limits are refused, and what asked for none runs with a word" {
	start job --sim run -- sleep 60
	wait_for 60 shows 'has("daemon")'
	daemon=$(loadline --sim status --json | jq 'select(has("daemon")).daemon.pid')
	kill -STOP "$daemon"
	for options in "--mem 1G" --evictable; do
		# shellcheck disable=SC2086 # two words
		fails_with 125 "limits cannot be put in force: loadlined does not answer; --allow-ungoverned runs it" --sim run $options -- true
		[ "$(head -n 1 <<<"$stderr")" = "loadline: waits for loadlined to answer" ]
	done
	[ "$(loadline --sim run -- echo over 2>"$T/warning")" = over ]
	grep -q "loadlined does not answer; the command runs ungoverned" "$T/warning"
	[ "$(loadline --sim run --allow-ungoverned --mem 1G -- echo over 2>"$T/warning")" = over ]
	kill -CONT "$daemon"
	loadline --sim run --mem 1G -- true
}

@test "a static program is refused, unless ungoverned is allowed" {
	compiles "$T/static" -static || skip "no static C library"
	refuses "limits cannot be put in force: $T/static: it is linked statically, and calls nothing that could be intercepted; --allow-ungoverned runs it" -- "$T/static"
	loadline --sim run --allow-ungoverned -- "$T/static" 2>"$T/warning"
	grep -q "linked statically" "$T/warning"
	if compiles "$T/static-pie" -static-pie; then
		refuses "linked statically" -- "$T/static-pie"
	fi
}

@test "half a program is 126, and not given to the shell" {
	compiles "$T/plain"
	for size in 4 20 63 64 100 500; do
		head -c "$size" "$T/plain" >"$T/half"
		chmod +x "$T/half"
		for option in '' --allow-ungoverned; do
			fails_with 126 "$T/half: Exec format error: the file is incomplete, or not a program" --sim run $option -- "$T/half"
		done
	done
	printf '#!%s\n' "$T/half" >"$T/script"
	chmod +x "$T/script"
	fails_with 126 "$T/half: Exec format error" --sim run -- "$T/script"
}

@test "a program with more rights than its user is refused" {
	compiles "$T/plain"
	loadline --sim run -- "$T/plain"
	cp "$T/plain" "$T/setuid"
	chmod u+s "$T/setuid"
	refuses "it is a set-uid program" -- "$T/setuid"
	loadline --sim run --allow-ungoverned -- "$T/setuid"
	cp "$T/plain" "$T/setgid"
	chmod g+xs "$T/setgid"
	refuses "it is a set-gid program" -- "$T/setgid"
	cp "$T/plain" "$T/capable"
	if command -v setcap >/dev/null && setcap cap_net_raw+ep "$T/capable" 2>/dev/null; then
		refuses "its file has capabilities" -- "$T/capable"
	fi
}

@test "a script is as its interpreter" {
	compiles "$T/static" -static || skip "no static C library"
	printf '#!%s\n' "$T/static" >"$T/script"
	printf '#! %s -x\n' "$T/script" >"$T/script of a script"
	printf '#!/usr/bin/env static\n' >"$T/by-env"
	chmod +x "$T/script" "$T/script of a script" "$T/by-env"
	refuses "limits cannot be put in force: $T/static: " -- "$T/script"
	refuses "limits cannot be put in force: $T/static: " -- "$T/script of a script"
	PATH=$T:$PATH refuses "/static: it is linked statically" -- "$T/by-env"
	printf '#!%s\n' "$T/loop" >"$T/loop"
	chmod +x "$T/loop"
	refuses "interpreters are scripts themselves" -- "$T/loop"
}

@test "a program for another machine or C library is refused" {
	compiles "$T/plain"
	cp "$T/plain" "$T/other"
	printf '\026\000' | dd of="$T/other" bs=1 seek=18 conv=notrunc status=none
	refuses "it is a program for another machine" -- "$T/other"
	cp "$T/plain" "$T/narrow"
	printf '\001' | dd of="$T/narrow" bs=1 seek=4 conv=notrunc status=none
	refuses "it is a 32-bit program" -- "$T/narrow"
	compiles "$T/foreign" -Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1
	refuses "it uses another C library than loadline" -- "$T/foreign"
	printf '#!%s\n' "$T/foreign" >"$T/script"
	chmod +x "$T/script"
	refuses "$T/foreign: it uses another C library than loadline" -- "$T/script"
}

# tells_preload COMPILER OPTION...: $T/foreign prints what is preloaded into it.
tells_preload() {
	printf '%s\n' '#include <stdio.h>' '#include <stdlib.h>' 'int main(void) {' \
		'const char *list = getenv("LD_PRELOAD"); printf("[%s]\n", list ? list : ""); return 0; }' >"$T/foreign.c"
	"$@" "$T/foreign.c" -o "$T/foreign"
}

# is_left_alone: $T/foreign is refused, and with --allow-ungoverned and under trace it runs without our libraries, which its
# loader could not load.
is_left_alone() {
	refuses "limits cannot be put in force: $T/foreign: it uses another C library than loadline; --allow-ungoverned runs it" -- "$T/foreign"
	[ "$(loadline --sim run --allow-ungoverned -- "$T/foreign" 2>"$T/warning")" = "[]" ]
	[ "$(grep -c . "$T/warning")" -eq 1 ]
	grep -q "it uses another C library than loadline" "$T/warning"
	for by in auto cupti; do
		LOADLINE_CUPTI=$LOADLINE_BUILD/tests/trace/libcupti.so.13 loadline --sim trace --by "$by" -- "$T/foreign" >"$T/traced" 2>"$T/summary"
		[ "$(head -n 1 "$T/traced")" = "[]" ]
	done
}

@test "nothing is preloaded into a program of another C library" {
	command -v cc >/dev/null || skip "no compiler"
	tells_preload cc
	cp -L "$(ldd "$T/foreign" | awk '$1 ~ /ld-linux/ {print $1}')" "$T/ld-other.so.1"
	tells_preload cc "-Wl,--dynamic-linker=$T/ld-other.so.1"
	[ "$("$T/foreign")" = "[]" ]
	is_left_alone
}

# AddressSanitizer's library ends a program in which it is not the first.
@test "a program built with AddressSanitizer: run says how to start it, and starts it so" {
	command -v cc >/dev/null || skip "no compiler"
	tells_preload cc -fsanitize=address || skip "this compiler has no AddressSanitizer"
	library=$(ldd "$T/foreign" | awk '$1 ~ /^libasan/ {print $1}')
	[ -n "$library" ] || skip "AddressSanitizer is not a library of its own here"
	export ASAN_OPTIONS=detect_leaks=0 # loadline frees nothing before it becomes the program
	refuses "$T/foreign: it is built with AddressSanitizer, whose library must be the first; LD_PRELOAD=$library loadline run" -- "$T/foreign"
	[ "$(LD_PRELOAD=$library timeout 300 "$LOADLINE" --sim run --mem 4G -- "$T/foreign")" = "[$library:$LOADLINE_BUILD/src/shim/libloadline-cuda.so:$LOADLINE_BUILD/sim/libloadline-sim-kernel.so]" ]
	[ "$(loadline --sim run --allow-ungoverned -- "$T/foreign" 2>"$T/warning")" = "[]" ]
	# GnuTLS, which libmicrohttpd needs, hangs before main under a preloaded AddressSanitizer.
	run ! grep -e microhttpd -e gnutls <(ldd "$LOADLINE")
}

@test "nothing is preloaded into a program of musl" {
	command -v musl-gcc >/dev/null || skip "no musl-gcc"
	tells_preload musl-gcc
	is_left_alone
	musl-gcc -static "$T/foreign.c" -o "$T/static"
	refuses "limits cannot be put in force: $T/static: it is linked statically" -- "$T/static"
}

@test "settings that are not ours" {
	LOADLINE_RUN=garbage refuses "LOADLINE_RUN: garbled; only \`loadline --sim run\` sets it: unset it" -- true
}

@test "a program that may open no more descriptors is told why its card is refused" {
	command -v python3 >/dev/null || skip "no python3"
	run --separate-stderr loadline --sim run --mem 2g -- python3 -c 'import ctypes, resource
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
device, context = ctypes.c_int(), ctypes.c_void_p()
assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device) == 800'
	echo "$output $stderr"
	[ "$status" -eq 0 ]
	[ "$(grep -vc '^loadline: waits for ' <<<"$stderr")" -eq 1 ]
	[[ $stderr == "loadline: no contexts on card 0 under the limits of \`loadline --sim run\` (CUDA error 800, not permitted): "*"Too many open files"* ]]
}

# unable TEXT: an installation whose loadlined cannot start, in $T/unable; it prints the text.
unable() {
	mkdir -p "$T/unable/src/daemon"
	cp "$LOADLINE" "$T/unable/loadline"
	ln -s "$LOADLINE_BUILD/sim" "$T/unable/sim"
	ln -s "$LOADLINE_BUILD/src/shim" "$LOADLINE_BUILD/src/monitor" "$T/unable/src"
	printf '#!/bin/sh\necho "first" >&2\necho "%s" >&2\nexit 127\n' "$1" >"$T/unable/src/daemon/loadlined"
	chmod +x "$T/unable/src/daemon/loadlined"
}

@test "a loadlined that cannot start: its error is shown, at once" {
	unable "loadlined: error while loading shared libraries: libuv.so.1: cannot open shared object file"
	LOADLINE=$T/unable/loadline refuses "limits cannot be put in force: loadlined cannot start: loadlined: error while loading shared libraries: libuv.so.1: cannot open shared object file; --allow-ungoverned" --mem 4G -- true
	run -0 --separate-stderr "$T/unable/loadline" --sim run -- echo over
	# shellcheck disable=SC2154
	[ "$output" = over ]
	[[ $stderr == *"loadlined cannot start: loadlined: error while loading shared libraries"*"; the command runs ungoverned" ]]
}
