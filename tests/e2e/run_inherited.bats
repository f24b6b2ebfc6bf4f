# Programs that lost LOADLINE_RUN and kept the library: they are held to the limits of the tenant that they were started in, or
# a line says that they are not governed.
load helper

# $T/ask: a program that asks for 3000 MiB. $T/clean COMMAND: runs it in an environment made anew, with what a program needs
# here besides its tenant. $T/closed COMMAND: without the descriptors that it would inherit.
setup_file() {
	export MEMORY=$BATS_TEST_DIRNAME/card_memory.py
}

write_programs() {
	cat >"$T/ask" <<-'END'
		#!/bin/bash
		exec python3 "$MEMORY" context alloc 3000
	END
	cat >"$T/clean" <<-'END'
		#!/bin/bash
		for name in LD_PRELOAD LD_LIBRARY_PATH LOADLINE LOADLINE_SIM_DIR XDG_RUNTIME_DIR HOME PATH MEMORY T; do
			kept+=("$name=${!name}")
		done
		exec env -i "${kept[@]}" "$@"
	END
	cat >"$T/closed" <<-'END'
		#!/bin/bash
		for fd in /proc/self/fd/*; do
			fd=${fd##*/}
			((fd < 3 || fd == 255)) || eval "exec $fd>&-"
		done
		exec "$@"
	END
	# Its parent has ended when the command begins.
	cat >"$T/orphan" <<-'END'
		#!/bin/bash
		setsid bash -c 'while [ -d "/proc/$0" ]; do :; done; exec "$@"' $$ "$@" &
	END
	chmod +x "$T/ask" "$T/clean" "$T/closed" "$T/orphan"
	export T
}

# governed NAME SCRIPT [OPTION]...: what the shell runs is refused 3000 MiB of its tenant's 2 GiB, and nothing else is said.
governed() {
	loadline --sim run --mem 2G --tenant "$1" "${@:3}" -- bash -c "$2" >"$T/$1.out" 2>"$T/$1.err"
	wait_for 60 grep -q alloc "$T/$1.out"
	[ "$(cat "$T/$1.out")" = $'context ok\nalloc 2' ]
	[ ! -s "$T/$1.err" ]
}

# bats test_tags=main
@test "a program whose environment was made anew stays in its tenant" {
	write_programs
	governed variable 'env -u LOADLINE_RUN $T/ask'
	governed inside 'unset LOADLINE_RUN; $T/ask'
	governed all '$T/clean $T/ask; :'
	governed chain 'exec $T/clean bash -c "exec nice env -u HOME \$T/ask"'
	governed parent '$T/clean $T/closed $T/ask; :'
	governed parents '$T/clean bash -c "\$T/closed bash -c \"\\\$T/clean \\\$T/ask; :\"; :"; :'
	governed session '$T/clean $T/closed setsid -w $T/ask; :'
	governed strict '$T/clean $T/ask; :' --strict
	governed evictable '$T/clean $T/ask; :' --evictable
}

@test "a program whose parent has ended stays in its tenant by its descriptor" {
	write_programs
	governed orphan '$T/orphan $T/clean $T/ask'
	governed twice '$T/orphan $T/clean $T/orphan $T/ask'
}

@test "a program that Python starts with an environment of its own stays in its tenant" {
	# Python closes the descriptors.
	write_programs
	cat >"$T/start.py" <<-'END'
		import os, subprocess, sys
		kept = {name: os.environ[name] for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "LOADLINE_SIM_DIR", "PATH", "HOME", "MEMORY")}
		depth, ask = int(sys.argv[1]), sys.argv[2]
		words = [sys.executable, __file__, str(depth - 1), ask] if depth else [ask]
		sys.exit(subprocess.run(words, env=kept).returncode)
	END
	for depth in 0 1 3; do
		governed "python$depth" "python3 \$T/start.py $depth \$T/ask"
	done
}

@test "run within a tenant whose variable was lost is within the tenant" {
	write_programs
	run --separate-stderr loadline --sim run --mem 2G --tenant outer -- bash -c \
		'$T/clean "$LOADLINE" --sim run --mem 9G -- true; echo $?; echo "$LOADLINE_RUN"; $T/clean "$LOADLINE" --sim run -- printenv LOADLINE_RUN'
	# shellcheck disable=SC2154
	[[ $stderr == *"already governed, as tenant outer"* ]]
	[ "${lines[0]}" = 125 ]
	[ "${lines[1]}" = "${lines[2]}" ]
}

# alone COMMAND...: with the library and without a tenant; $status, $output and $stderr are its.
alone() {
	run --separate-stderr env LD_PRELOAD="$LOADLINE_BUILD/src/shim/libloadline-cuda.so" LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$@"
}

not_governed='loadline: this program is not governed: LOADLINE_RUN is not set, and neither a descriptor nor a parent process nor a control group shows a tenant; only `loadline run` sets limits'

# bats test_tags=main
@test "a program that has the library and no tenant runs, and says once that it is not governed" {
	alone python3 "$MEMORY" context alloc 3000 context
	[ "$status" -eq 0 ]
	[ "$output" = $'context ok\nalloc ok\ncontext ok' ]
	[ "$stderr" = "$not_governed" ]
	# It says so where it makes a context, and nowhere else.
	alone python3 "$MEMORY" card list
	[ "$status" -eq 0 ]
	is_silent
	alone ls /
	is_silent
}

@test "a program of a tenant that cannot be found says that it is not governed" {
	write_programs
	loadline --sim run --mem 2G --strict -- bash -c '$T/clean $T/closed $T/orphan $T/ask' >"$T/lost.out" 2>"$T/lost.err"
	wait_for 60 grep -q alloc "$T/lost.out"
	[ "$(cat "$T/lost.err")" = "$not_governed" ]
}

# bats test_tags=main
@test "damaged settings are refused" {
	write_programs
	for damage in 's/mem=/mrm=/' 's/;mem=[0-9]*//' 's/mem=/mem=-/' 's/;mem=[0-9]*/&&/' 's/strict=0/strict=2/' 's/^/future=1;/'; do
		loadline --sim run --mem 2G -- bash -c "export LOADLINE_RUN=\$(sed '$damage' <<<\"\$LOADLINE_RUN\")
			python3 \$MEMORY context; unset LOADLINE_RUN; \$T/ask" >"$T/bad.out" 2>"$T/bad.err" || true
		# Without the damaged variable the descriptor has the settings.
		[ "$(cat "$T/bad.out")" = $'context 800\ncontext ok\nalloc 2' ]
		[ "$(wc -l <"$T/bad.err")" -eq 1 ]
		grep -q "LOADLINE_RUN: garbled" "$T/bad.err"
	done
}
