# The files of doc/recipes.md do what the page says, on the simulated card: each is taken from the page, and what it starts has the
# limits that it names. Stand-ins take the places of srun, of cron and of the programs.
export NEEDS="sim/loadline-simctl jq"
load helper

# block TITLE NUMBER: the lines of that code block under the heading.
block() {
	awk -v title="## $1" -v wanted="$2" '
		/^## / {is_in = $0 == title}
		/^```/ {is_open = !is_open; count += is_in && is_open; next}
		is_in && is_open && count == wanted' "$BATS_TEST_DIRNAME/../../doc/recipes.md"
}

# stand_in NAME COMMAND
stand_in() {
	printf '#!/bin/sh\n%s\n' "$2" >"$T/bin/$1"
	chmod 755 "$T/bin/$1"
}

make_stand_ins() {
	mkdir "$T/bin"
	stand_in loadline "exec $LOADLINE --sim \"\$@\""
	stand_in python "exec $LOADLINE_BUILD/sim/loadline-simctl busy 0 kernel 1ms memory 64M for 300s"
	stand_in jupyter 'exec python'
	stand_in srun 'exec "$@"'
	export PATH=$T/bin:$PATH
}

# limited GIB [FILTER]: a program of the simulator is there under that limit.
limited() {
	shows "select(has(\"claim\") and .memory_limit_bytes == $1 * 1073741824 and (${2:-true}))"
}

setup_recipe() {
	loadline --sim version || skip "no simulator in this build"
	make_stand_ins
}

@test "Jupyter: the kernel's file starts it under its limits, and SIGINT reaches it" {
	setup_recipe
	local words
	mapfile -t words < <(block Jupyter 1 | jq -r '.argv[]')
	[ "${words[-1]}" = '{connection_file}' ]
	block Jupyter 1 | jq -e '.display_name and .language == "python"'
	start_program kernel env --default-signal=INT "${words[@]/'{connection_file}'/$T/connection.json}"
	wait_for 60 limited 20 '.evictable_bytes != null'
	stop kernel INT
	wait_for 60 shows_none 'select(has("claim"))'
}

@test "Jupyter: one limit for a server" {
	setup_recipe
	start_program server bash -c "$(block Jupyter 2)"
	wait_for 60 limited 40
	stop server
}

@test "VS Code: what is started in the terminal has its limits" {
	setup_recipe
	local path words name
	name=$(block 'VS Code' 1 | jq -er '.["terminal.integrated.defaultProfile.linux"]')
	path=$(block 'VS Code' 1 | jq -er --arg name "$name" '.["terminal.integrated.profiles.linux"][$name].path')
	mapfile -t words < <(block 'VS Code' 1 | jq -r --arg name "$name" '.["terminal.integrated.profiles.linux"][$name].args[]')
	start_program terminal bash -c 'exec "$@" <<<"exec python train.py"' bash "$path" "${words[@]}"
	wait_for 60 limited 20
	stop terminal
}

@test "Slurm: the job's script starts the program under its limits" {
	setup_recipe
	block Slurm 1 >"$T/job.sh"
	start_program job bash "$T/job.sh"
	wait_for 60 limited 20 '.compute_cap_percent == 50'
	pkill -P "$(pid_of job)"
	finish job
}

@test "systemd: the settings file gives the unit's command its options" {
	setup_recipe
	local words LOADLINE_ARGS LOADLINE_COMMAND
	LOADLINE_ARGS=$(block systemd 1 | sed -n 's/^LOADLINE_ARGS=//p')
	LOADLINE_COMMAND=$(block systemd 1 | sed -n 's/^LOADLINE_COMMAND=//p')
	words=$(sed -n 's/^ExecStart=[^ ]*\///p' "$LOADLINE_BUILD/packaging/loadline-run@.user.service")
	words=${words//%i/serve}
	# Words, as systemd splits them.
	# shellcheck disable=SC2206
	words=(${words/\$LOADLINE_ARGS -- \$LOADLINE_COMMAND/$LOADLINE_ARGS -- $LOADLINE_COMMAND})
	start_program unit env "${words[@]}"
	wait_for 60 limited 20 '.tenant == "serve" and .class == "high"'
	stop unit
}

@test "cron: the line starts the program under its limits, with cron's own environment" {
	setup_recipe
	local line
	[ "$(block cron 1 | head -n 1)" = 'PATH=/usr/local/bin:/usr/bin:/bin' ]
	line=$(block cron 1 | sed -n '2s/^0 2 \* \* \* //p')
	[ -n "$line" ]
	# A percent sign without a backslash ends a command of cron; one with it is the sign alone.
	[[ ! $line =~ [^\\]% ]]
	start_program cron env -i HOME="$T" LOGNAME=ann SHELL=/bin/sh PATH="$T/bin:/usr/bin:/bin" LOADLINE_SIM_DIR="$LOADLINE_SIM_DIR" \
		/bin/sh -c "${line//\\%/%}"
	wait_for 60 limited 20 '.class == "low" and .compute_cap_percent == 50'
	[ -e "$T/night.log" ]
	stop cron
}
