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

@test "the installed program runs" {
	[ "$("$PREFIX/bin/loadline" version)" = "$(loadline version)" ]
}

@test "every command has an installed manual page" {
	for command in $(loadline --help | awk '/^Commands:/ {on = 1; next} /^$/ {on = 0} on && /^  [a-z]/ {print $1}'); do
		grep -q "^\.TH LOADLINE-${command^^} 1" "$PREFIX/share/man/man1/loadline-$command.1"
	done
	grep -q '^\.TH LOADLINE 1' "$PREFIX/share/man/man1/loadline.1"
}

@test "completions and the systemd units are installed" {
	bash -n "$PREFIX/share/bash-completion/completions/loadline"
	[ -s "$PREFIX/share/zsh/site-functions/_loadline" ]
	[ -s "$PREFIX/share/fish/vendor_completions.d/loadline.fish" ]
	grep -qx "ExecStart=${PREFIX#"$ROOT"}/bin/loadline hold .*" "$PREFIX/lib/systemd/system/loadline-hold.service"
	grep -qx "ExecStart=${PREFIX#"$ROOT"}/bin/loadline mps start .*" "$PREFIX/lib/systemd/system/loadline-mps.service"
	grep -qx "ExecStop=${PREFIX#"$ROOT"}/bin/loadline mps stop .*" "$PREFIX/lib/systemd/system/loadline-mps.service"
}

@test "the installed program starts the installed simulated MPS" {
	[ -e "$LOADLINE_BUILD/sim/libcuda.so.1" ] || skip "no simulator in this build"
	"$PREFIX/bin/loadline" --sim mps start
	"$PREFIX/bin/loadline" --sim mps stop
}

@test "the installed program preloads the installed library" {
	[ -e "$LOADLINE_BUILD/sim/libcuda.so.1" ] || skip "no simulator in this build"
	[ "$("$PREFIX/bin/loadline" --sim run -- sh -c 'echo $LD_PRELOAD')" = "$PREFIX/lib/loadline/libloadline-cuda.so" ]
}

@test "the installed program traces with the installed libraries" {
	[ -e "$LOADLINE_BUILD/sim/libcuda.so.1" ] || skip "no simulator in this build"
	local words
	words=$(LOADLINE_CUPTI=/none "$PREFIX/bin/loadline" --sim trace -- sh -c 'echo $LD_PRELOAD' 2>/dev/null)
	[ "$words" = "$PREFIX/lib/loadline/libloadline-trace.so:$PREFIX/lib/loadline/libloadline-cuda.so" ]
}

@test "the installed program finds the installed simulator" {
	[ -e "$LOADLINE_BUILD/sim/libcuda.so.1" ] || skip "no simulator in this build"
	"$PREFIX/bin/loadline" --sim version
	[ -e "$PREFIX/lib/loadline/sim/libnvidia-ml.so.1" ]
}
