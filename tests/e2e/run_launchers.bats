# Commands that have the work started by somebody else: run says that its limits do not reach it, and --strict does not start
# them.
load helper

names='docker podman nerdctl docker-compose podman-compose ctr crictl lxc incus apptainer singularity enroot srun sbatch salloc flux
	qsub bsub condor_submit kubectl oc ssh mosh pdsh systemd-run machinectl screen tmux at batch'

# write_program NAME: one that says that it was started.
write_program() {
	mkdir -p "$T/bin"
	printf '#!/bin/sh\necho started >>"$T/started"\n' >"$T/bin/$1"
	chmod +x "$T/bin/$1"
	export T
	[[ $PATH == "$T/bin:"* ]] || PATH=$T/bin:$PATH
}

was_started() {
	[ -s "$T/started" ] && rm "$T/started"
}

@test "run says that its limits do not reach what others start, and starts the command" {
	for name in $names; do
		write_program "$name"
		run --separate-stderr loadline --sim run --mem 2G -- "$name" run image
		[ "$status" -eq 0 ]
		was_started
		# shellcheck disable=SC2154
		[ "$(wc -l <<<"$stderr")" -eq 1 ]
		[[ $stderr == *"limits do not reach into what $name starts: "*"; put loadline inside: "*"loadline --sim run ... -- COMMAND"* ]]
	done
}

@test "under --strict they are not started" {
	for name in $names; do
		write_program "$name"
		fails_with 125 "limits do not reach into what $name starts: " --sim run --strict --mem 2G -- "$name" run image
		run ! was_started
	done
	# Nor within a tenant that is strict.
	fails_with 125 "limits do not reach into what srun starts: " --sim run --strict -- "$LOADLINE" --sim run -- srun x
	run ! was_started
	run --separate-stderr loadline --sim run --strict --allow-ungoverned -- docker run image
	[ "$status" -eq 0 ]
	[[ $stderr == *"limits do not reach into what docker starts: "* ]]
	was_started
}

@test "they are known behind programs that run another command" {
	write_program docker
	write_program sudo
	printf '#!/bin/sh\n[ "$1" != -u ] || shift 2\nexec "$@"\n' >"$T/bin/sudo"
	for words in "env A=b" "env -u A" "nice -n 3" nohup "timeout 60" "setsid -w" "stdbuf -oL" "sudo -u someone" "env nice timeout -s KILL 60 nohup"; do
		read -ra wrapper <<<"$words"
		run --separate-stderr loadline --sim run -- "${wrapper[@]}" docker run image
		[ "$status" -eq 0 ]
		[[ $stderr == *"limits do not reach into what docker starts: "* ]]
		was_started
		fails_with 125 "limits do not reach into what docker starts: " --sim run --strict -- "${wrapper[@]}" docker run image
		run ! was_started
	done
}

@test "other commands are started without a word" {
	write_program dockerize
	run --separate-stderr loadline --sim run --strict -- dockerize docker
	[ "$status" -eq 0 ]
	is_silent
	was_started
}

@test "one that cannot be governed itself is refused with the form that works" {
	command -v cc >/dev/null || skip "no compiler"
	mkdir "$T/bin"
	echo 'int main(void) { return 0; }' >"$T/main.c"
	cc -static "$T/main.c" -o "$T/bin/kubectl" || skip "no static C library"
	PATH=$T/bin:$PATH
	fails_with 125 "limits do not reach into what kubectl starts: the node's kubelet starts it; put loadline inside: kubectl exec POD -- loadline --sim run ... -- COMMAND" \
		--sim run -- kubectl exec pod
	loadline --sim run --allow-ungoverned -- kubectl exec pod
}

@test "loadline inside a tmux session limits what runs there" {
	command -v tmux >/dev/null || skip "no tmux"
	export TMUX_TMPDIR=$T
	start_program server env -u TMUX tmux -D -f /dev/null
	session() {
		tmux new-session -d "$1"
	}
	wait_for 60 session "sleep 60"
	# From outside the limits do not reach it, and run said so.
	loadline --sim run --mem 2G -- tmux new-session -d "python3 '$BATS_TEST_DIRNAME/card_memory.py' context alloc 3000 >'$T/outside.out' 2>&1" 2>"$T/said.err"
	grep -q "limits do not reach into what tmux starts: " "$T/said.err"
	session "'$LOADLINE' --sim run --mem 2G -- python3 '$BATS_TEST_DIRNAME/card_memory.py' context alloc 3000 >'$T/inside.out' 2>&1"
	wait_for 60 grep -q "^alloc 2$" "$T/inside.out"
	tmux kill-server
}
