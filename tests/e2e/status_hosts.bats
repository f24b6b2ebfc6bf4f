# loadline status --host: several machines by ssh, for which a script stands.
load helper

# The last words are those that a shell gets there. "gpu1" and "gpu2" are this machine's simulated world.
setup_ssh() {
	cat >"$T/ssh" <<'SH'
#!/bin/bash
printf '%s\n' "$*" >>"$T/asked"
while [ "$1" != -- ]; do shift; done
host=$2
shift 2
case $host in
gpu*) exec "$LOADLINE" --sim "${@:2}" ;;
ann@old) # as before the last kernel was told
	"$LOADLINE" --sim "${@:2}" | jq -c 'del(.last_kernel, .last_kernel_seconds, .process_age_seconds)' ;;
dead) echo "ssh: connect to host dead port 22: No route to host" >&2; exit 255 ;;
mute) exit 255 ;;
none) echo "bash: line 1: loadline: command not found" >&2; exit 127 ;;
slow) echo $$ >"$T/slow.pid"; sleep 100 ;;
banner) echo "Welcome to banner"; exec "$LOADLINE" --sim "${@:2}" ;;
empty) exit 0 ;;
other) echo '{"claim":"0/1"}' ;;
evil) printf '{"card":0,"uuid":"x","name":"a\\u001b[31mb\\nc"}\n{"process":"0/1","pid":7,"command":"\\u0007ls","user":5,"last_kernel":"ago","last_kernel_seconds":-1e300,"memory_bytes":1e300}\n' ;;
cut) printf '{"card":0,"uuid":"x"}\n{"claim":"0/1' ;;
failing) "$LOADLINE" --sim "${@:2}"; printf 'a warning\nloadline: loadlined, pid 7, does not \033[1manswer\n\n' >&2; exit 1 ;;
many) head -c 20000000 /dev/zero ;;
esac
SH
	chmod +x "$T/ssh"
	export T LOADLINE_SSH=$T/ssh
}

# failed HOST: why.
failed() {
	jq -r "select(has(\"failed\") and .host == \"$1\").failed" "$T/json.out"
}

@test "machines are asked at once and shown in one table, and those that fail with the reason" {
	setup_ssh
	start_program stranger env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 20% for 100s
	wait_for 60 shows 'has("process")'
	run loadline status --host gpu1,dead,gpu2 --host none
	echo "$output"
	[ "$status" -eq 1 ]
	[[ ${lines[0]} =~ ^host\ +card\ +name\ +util ]]
	[[ ${lines[1]} =~ ^gpu1\ +0\ +NVIDIA.*\(simulated\) ]]
	[[ ${lines[2]} =~ ^gpu2\ +0\ +NVIDIA ]]
	grep -qE "^host +claim +job +pid +user +tenant +state +last kernel +age +memory" <<<"$output"
	grep -qE "^gpu1 +0/- +- +$(pid_of stranger) +$(id -un) +- +ungoverned +.* loadline-simctl busy 0 20% for 100s$" <<<"$output"
	grep -qE "^gpu2 +0/- +- +$(pid_of stranger) " <<<"$output"
	grep -q "^host dead: ssh: connect to host dead port 22: No route to host$" <<<"$output"
	grep -q "^host none: there is no loadline$" <<<"$output"
	[ "$(grep -c -- "^-o BatchMode=yes -o ConnectTimeout=10 -- [a-z0-9]* loadline status --json$" "$T/asked")" -eq 4 ]
	loadline status --host gpu1
}

@test "JSON lines have their machine, and a line for each machine says whether it failed" {
	setup_ssh
	run --separate-stderr loadline status --json --host gpu1,ann@old,mute,banner,empty,other,cut,failing,many
	[ "$status" -eq 1 ]
	# shellcheck disable=SC2154
	is_silent
	echo "$output" >"$T/json.out"
	jq -e 'has("host")' "$T/json.out" >/dev/null
	[ "$(failed gpu1)" = null ]
	[ "$(failed ann@old)" = null ]
	[ "$(failed mute)" = "ssh failed, and did not say why" ]
	for name in banner empty other cut many; do
		[ "$(failed $name)" = "its answer is not that of loadline" ]
	done
	[ "$(failed failing)" = "loadline: loadlined, pid 7, does not ?[1manswer" ]
	[ "$(jq -r 'select(has("card")).host' "$T/json.out" | xargs)" = "gpu1 ann@old failing" ]
}

@test "an older loadline is shown without what it does not tell" {
	setup_ssh
	start_program stranger env LD_LIBRARY_PATH="$LOADLINE_BUILD/sim" "$LOADLINE_BUILD/sim/loadline-simctl" busy 0 20% for 100s
	wait_for 60 shows 'has("process")'
	run loadline status --host ann@old
	echo "$output"
	[ "$status" -eq 0 ]
	grep -qE "^ann@old +0/- +- +$(pid_of stranger) +$(id -un) +- +ungoverned +- +- +[0-9]+ MiB " <<<"$output"
	grep -q "^host ann@old: an older loadline, which does not tell all$" <<<"$output"
	[ "$(loadline status --json --host ann@old | jq -c 'select(has("older"))')" = '{"host":"ann@old","failed":null,"older":true}' ]
}

@test "one that does not answer in time is ended and listed, and does not keep the others" {
	setup_ssh
	run --separate-stderr loadline status --json --host slow,gpu1 --timeout 3s
	[ "$status" -eq 1 ]
	# shellcheck disable=SC2154
	[[ $stderr == "loadline: waits for the answers of slow,gpu1, for 3 s at most" ]]
	echo "$output" >"$T/json.out"
	[ "$(failed slow)" = "no answer within 3 s" ]
	[ "$(failed gpu1)" = null ]
	has_ended "$(<"$T/slow.pid")"
}

@test "what a machine says cannot write to the terminal" {
	setup_ssh
	run loadline status --host evil
	[ "$status" -eq 0 ]
	echo "$output" | cat -v
	grep -qF 'a?[31mb?c' <<<"$output"
	grep -qE '^evil +0/- +- +7 .* \?ls$' <<<"$output"
	run ! grep -q $'[\033\007]' <<<"$output"
}

@test "names that ssh or a shell could take for something else are refused" {
	setup_ssh
	for name in -oProxyCommand=x 'a b' 'a;b' '$(x)' '' a,,b 'a/b' 'ann@-x' "a'b"; do
		fails_with 2 "--host: " status --host="$name"
	done
	fails_with 2 "--host goes with --json and --timeout alone" status --host gpu1 -i 0
	fails_with 2 "--host goes with --json and --timeout alone" status --host gpu1 --watch
	fails_with 2 "--timeout: a time from 0.1s on" status --host gpu1 --within 0
	LOADLINE_SSH=no-such-program fails_with 1 "no-such-program: No such file or directory" status --host gpu1
	LOADLINE_SSH=$T/nothing fails_with 1 "$T/nothing: No such file or directory" status --host gpu1
	[ ! -e "$T/asked" ]
}
