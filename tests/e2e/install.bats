# make install: what lands where, and that it runs from there.
load helper

setup_file() {
	ROOT=$(mktemp -d "${TMPDIR:-/tmp}/loadline-root.XXXXXX")
	export ROOT
	DESTDIR=$ROOT meson install -C "$LOADLINE_BUILD" --no-rebuild --quiet
	PREFIX=$ROOT$(meson introspect --buildoptions "$LOADLINE_BUILD" | jq -r '.[] | select(.name == "prefix").value')
	export PREFIX
}

teardown_file() {
	rm -rf "$ROOT"
}

# settings UNIT: each setting of its sample, as an administrator would have it without the comment.
settings() {
	sed -n 's/^#\([A-Z_]*=\)/\1/p' "$PREFIX/share/loadline/default/$1"
}

@test "the installed program runs" {
	[ "$("$PREFIX/bin/loadline" version)" = "$(loadline version)" ]
}

@test "its translations are found where they are installed" {
	[ -e "$LOADLINE_BUILD/po/zh_CN/LC_MESSAGES/loadline.mo" ] || skip "this build has no translations"
	[ -s "$PREFIX/share/locale/zh_CN/LC_MESSAGES/loadline.mo" ]
	env -u LC_MESSAGES LANG=zh_CN.UTF-8 "$PREFIX/bin/loadline" --help | grep -qx '帮助:'
}

@test "every command has an installed manual page" {
	for command in $(loadline --help | awk '/^Global options/ {exit} /^  [a-z]/ {print $1}'); do
		grep -q "^\.TH LOADLINE-${command^^} 1" "$PREFIX/share/man/man1/loadline-$command.1"
	done
	grep -q '^\.TH LOADLINE 1' "$PREFIX/share/man/man1/loadline.1"
	grep -q '^\.TH LOADLINE.YAML 5' "$PREFIX/share/man/man5/loadline.yaml.5"
}

@test "completions and the systemd units are installed" {
	bash -n "$PREFIX/share/bash-completion/completions/loadline"
	[ -s "$PREFIX/share/zsh/site-functions/_loadline" ]
	[ -s "$PREFIX/share/fish/vendor_completions.d/loadline.fish" ]
	grep -qx "ExecStart=${PREFIX#"$ROOT"}/bin/loadline hold .*" "$PREFIX/lib/systemd/system/loadline-hold.service"
	grep -qx "ExecStart=${PREFIX#"$ROOT"}/bin/loadline mps start .*" "$PREFIX/lib/systemd/system/loadline-mps.service"
	grep -qx "ExecStart=${PREFIX#"$ROOT"}/lib/loadline/loadlined --system" "$PREFIX/lib/systemd/system/loadlined.service"
	grep -qx "ListenSequentialPacket=/run/loadline/socket" "$PREFIX/lib/systemd/system/loadlined.socket"
	grep -qx "ExecStart=${PREFIX#"$ROOT"}/lib/loadline/loadline-keeper" "$PREFIX/lib/systemd/system/loadline-keeper.service"
	grep -qx "ExecStart=${PREFIX#"$ROOT"}/lib/loadline/loadline-sensor" "$PREFIX/lib/systemd/system/loadline-sensor.service"
	# Only this unit may open the driver, which tells the devices of containers.
	grep -qx "ExecStartPost=-+${PREFIX#"$ROOT"}/bin/loadline cdi generate --folder /run/cdi" "$PREFIX/lib/systemd/system/loadline-sensor.service"
	[ "$(grep -c "cdi generate" "$PREFIX/lib/systemd/system/loadlined.service")" = 0 ]
	grep -qx "ExecStart=${PREFIX#"$ROOT"}/lib/loadline/loadline-exporter" "$PREFIX/lib/systemd/system/loadline-exporter.service"
	[ -s "$PREFIX/share/loadline/prometheus/loadline.rules.yml" ]
	grep -q "^ExecStopPost=.* exec ${PREFIX#"$ROOT"}/lib/loadline/loadline-keeper fence off'$" "$PREFIX/lib/systemd/system/loadline-keeper.service"
	grep -qx "ListenSequentialPacket=/run/loadline/keeper" "$PREFIX/lib/systemd/system/loadline-keeper.socket"
	grep -qx "ExecStart=${PREFIX#"$ROOT"}/bin/loadline run .*" "$PREFIX/lib/systemd/system/loadline-run@.service"
	cmp "$PREFIX/lib/systemd/system/loadline-run@.service" "$PREFIX/lib/systemd/user/loadline-run@.service"
	grep -q "^u loadline " "$PREFIX/lib/sysusers.d/loadline.conf"
	grep -qx "ExecStop=${PREFIX#"$ROOT"}/bin/loadline mps stop .*" "$PREFIX/lib/systemd/system/loadline-mps.service"
}

@test "the sample settings of a unit are commented out, and name what the unit reads" {
	local unit sample
	for unit in loadline-hold loadline-mps; do
		sample=$PREFIX/share/loadline/default/$unit
		[ "$(grep -c '^[^#]' "$sample")" -eq 0 ]
		grep -qx "EnvironmentFile=-/etc/default/$unit" "$PREFIX/lib/systemd/system/$unit.service"
		diff <(sed -n 's/^Environment=\(LOADLINE_[A-Z]*\)=.*/\1/p' "$PREFIX/lib/systemd/system/$unit.service" | sort) \
			<(settings "$unit" | cut -d= -f1 | sort -u)
	done
}

@test "every setting in the samples is accepted" {
	[ -e "$LOADLINE_BUILD/sim/libcuda.so.1" ] || skip "no simulator in this build"
	printf 'cards 2\n' >"$T/scenario"
	export LOADLINE_SIM_SCENARIO=$T/scenario
	local setting LOADLINE_CARD LOADLINE_ARGS count=0
	while read -r setting; do
		LOADLINE_CARD=all LOADLINE_ARGS=
		eval "$setting"
		# Words, as systemd splits them.
		# shellcheck disable=SC2086
		loadline --sim hold --dry-run -i "$LOADLINE_CARD" $LOADLINE_ARGS
		count=$((count + 1))
	done < <(settings loadline-hold)
	while read -r setting; do
		LOADLINE_ARGS=
		eval "$setting"
		# shellcheck disable=SC2086
		loadline --sim mps start $LOADLINE_ARGS </dev/null
		loadline --sim mps stop </dev/null
		count=$((count + 1))
	done < <(settings loadline-mps)
	[ "$count" -gt 2 ]
}

@test "systemd finds nothing wrong in the unit of a program under limits" {
	command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
	local manager
	for manager in system user; do
		sed "s|^ExecStart=[^ ]*|ExecStart=$PREFIX/bin/loadline|" "$PREFIX/lib/systemd/$manager/loadline-run@.service" \
			>"$T/loadline-run@train.service"
		XDG_RUNTIME_DIR=$T systemd-analyze "--$manager" verify --man=no "$T/loadline-run@train.service"
	done
}

# What systemd makes of ExecStart= with these settings: words of a variable without braces are split.
@test "the unit of a program under limits starts it with the limits of its settings file" {
	[ -e "$LOADLINE_BUILD/sim/libcuda.so.1" ] || skip "no simulator in this build"
	local words LOADLINE_ARGS LOADLINE_COMMAND
	words=$(sed -n 's/^ExecStart=[^ ]*loadline //p' "$PREFIX/lib/systemd/user/loadline-run@.service")
	LOADLINE_ARGS="--mem 10G --compute 50%"
	LOADLINE_COMMAND="$PREFIX/lib/loadline/sim/loadline-simctl busy 0 kernel 1ms memory 1G for 60s"
	words=${words//%i/train}
	words=${words//\$LOADLINE_ARGS/$LOADLINE_ARGS}
	words=${words//\$LOADLINE_COMMAND/$LOADLINE_COMMAND}
	# shellcheck disable=SC2086
	"$PREFIX/bin/loadline" --sim $words 3>&- &
	local pid=$!
	wait_for 60 shows 'select(.tenant? == "train" and .memory_limit_bytes == 10737418240 and .compute_cap_percent == 50)'
	kill "$pid"
	wait "$pid" || true
}

@test "the installed program starts the installed simulated MPS" {
	[ -e "$LOADLINE_BUILD/sim/libcuda.so.1" ] || skip "no simulator in this build"
	"$PREFIX/bin/loadline" --sim mps start
	"$PREFIX/bin/loadline" --sim mps stop
}

@test "the installed program preloads the installed library" {
	[ -e "$LOADLINE_BUILD/sim/libcuda.so.1" ] || skip "no simulator in this build"
	[ "$("$PREFIX/bin/loadline" --sim run -- sh -c 'echo $LD_PRELOAD')" = "$PREFIX/lib/loadline/libloadline-cuda.so:$PREFIX/lib/loadline/sim/libloadline-sim-kernel.so" ]
}

@test "the installed program traces with the installed libraries" {
	[ -e "$LOADLINE_BUILD/sim/libcuda.so.1" ] || skip "no simulator in this build"
	local words
	words=$(LOADLINE_CUPTI=/none "$PREFIX/bin/loadline" --sim trace -- sh -c 'echo $LD_PRELOAD' 2>/dev/null)
	[ "$words" = "$PREFIX/lib/loadline/libloadline-trace.so:$PREFIX/lib/loadline/libloadline-events.so:$PREFIX/lib/loadline/sim/libloadline-sim-kernel.so" ]
}

@test "the installed program probes" {
	[ -e "$LOADLINE_BUILD/sim/libcuda.so.1" ] || skip "no simulator in this build"
	"$PREFIX/bin/loadline" --sim probe --experiment first --json | jq -e 'select(.event == "first")'
}

@test "the installed program finds the installed simulator" {
	[ -e "$LOADLINE_BUILD/sim/libcuda.so.1" ] || skip "no simulator in this build"
	"$PREFIX/bin/loadline" --sim version
	[ -e "$PREFIX/lib/loadline/sim/libnvidia-ml.so.1" ]
}

# uninstall FOLDER PREFIX: as `make install DESTDIR=FOLDER PREFIX=PREFIX` is undone.
uninstall() {
	make -s -C "$BATS_TEST_DIRNAME/../.." uninstall BUILD="$LOADLINE_BUILD" DESTDIR="$1" PREFIX="$2"
}

@test "make uninstall removes what make install installed, and nothing else" {
	local prefix=${PREFIX#"$ROOT"}
	cp -a "$ROOT" "$T/root"
	echo mine >"$T/root$prefix/bin/loadline-mine"
	echo mine >"$T/root$prefix/lib/loadline/mine"
	uninstall "$T/root" "$prefix"
	diff <(cd "$T/root" && find . ! -type d | sort) - <<-END
		.$prefix/bin/loadline-mine
		.$prefix/lib/loadline/mine
	END
	[ "$(find "$T/root" -name '*loadline' -type d)" = "$T/root$prefix/lib/loadline" ]
	[ ! -e "$T/root$prefix/lib/loadline/sim" ]
	rm "$T/root$prefix/lib/loadline/mine"
	[[ $(uninstall "$T/root" "$prefix") == "0 files removed from "* ]]
	[ ! -e "$T/root$prefix/lib/loadline" ]
}

@test "make uninstall takes the prefix that it is given" {
	mkdir "$T/root"
	cp -a "$PREFIX" "$T/root/other prefix"
	cp -a "$PREFIX" "$T/root/kept"
	uninstall "$T/root" "/other prefix"
	[ -z "$(find "$T/root/other prefix" ! -type d)" ]
	diff -r "$PREFIX" "$T/root/kept"
}

@test "make install-user installs for one user, and the program, its pages and completions work from there" {
	local to="$T/home/.local" man
	HOME=$T/home "$BATS_TEST_DIRNAME/../../tools/install_user" "$LOADLINE_BUILD" >"$T/said"
	grep -q "^loadline is in $to/bin, which is not in PATH: " "$T/said"
	[ "$("$to/bin/loadline" version)" = "$(loadline version)" ]
	[ -z "$(find "$to" -path '*/systemd/system*' -o -name sysusers.d)" ]
	grep -qx "ExecStart=$to/bin/loadline run .*" "$to/share/systemd/user/loadline-run@.service"
	bash -n "$to/share/bash-completion/completions/loadline"
	[ -s "$to/share/fish/vendor_completions.d/loadline.fish" ]
	if command -v manpath >/dev/null; then
		man=$(env -u MANPATH PATH="$to/bin:$PATH" man -w loadline-run)
		[ "$man" = "$to/share/man/man1/loadline-run.1" ]
	fi
	[ -e "$LOADLINE_BUILD/sim/libcuda.so.1" ] || skip "no simulator in this build"
	[ "$("$to/bin/loadline" --sim run -- sh -c 'echo $LD_PRELOAD')" = "$to/lib/loadline/libloadline-cuda.so:$to/lib/loadline/sim/libloadline-sim-kernel.so" ]
	uninstall "" "$to"
	[ "$(find "$to" ! -type d)" = "$to/share/systemd/user/loadline-run@.service" ]
}
