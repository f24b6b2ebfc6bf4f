# What an earlier run of the same programs did the other way, by slices or by space: counted by loadlined, kept by the jobs'
# monitors, told by status and doctor.
load helper

export NEEDS=tests/e2e/launcher

setup_file() {
	export LAUNCHER=$LOADLINE_BUILD/tests/e2e/launcher
}

teardown_mps() {
	timeout 120 "$LOADLINE" --sim mps stop --force --within 10s >/dev/null 2>&1 || true
}

# both WAY: a program of each kind beside the other.
both() {
	start one --sim run --by "$1" --tenant one -- "$LAUNCHER" 2
	start two --sim run --by "$1" --tenant two -- "$LAUNCHER" 3
}

# together SECONDS: have both been beside each other for so long?
together() {
	status_has "map(select(.claim and .company_seconds != null and .company_seconds >= $1)) | length == 2"
}

end_both() {
	stop one
	stop two
}

file() {
	cat "$T/world/earlier"
}

# has_records WAY COUNT
has_records() {
	[ "$(grep -c "	$1	" "$T/world/earlier")" -eq "$2" ]
}

@test "status and doctor say what an earlier run did the other way, and that programs by space share a fault domain" {
	both slices
	wait_for 60 together 6
	status_has 'map(select(.claim)) | all(.[]; .other_way == null and .company_launches > 0)'
	end_both
	wait_for 60 has_records slices 2
	file | grep -q "	launcher 2	launcher 3$"
	loadline --sim mps start
	both space
	wait_for 60 together 6
	loadline --sim status --long >"$T/status"
	loadline --sim doctor --no-trial >"$T/doctor" || true
	local beside="launcher 2 beside launcher 3: by slices it completed [0-9.]* times as many launches a second on [0-9-]*; programs that share by slices share no fault domain"
	grep -q "^  tenant one: $beside" "$T/status"
	grep -q "sharing: one: $beside" "$T/doctor"
	status_has 'map(select(.claim and .tenant == "two")) | .[0].other_way | .by == "slices" and .times > 0 and .beside == "launcher 2"'
	end_both
	wait_for 60 has_records space 2
	teardown_mps
	# The same by slices again: the file has both ways, and this run needs not be long.
	both slices
	wait_for 60 together 1
	loadline --sim status --long >"$T/status"
	grep -q "^  tenant two: launcher 3 beside launcher 2: by space it completed [0-9.]* times as many launches a second on .*; programs that share by space share a fault domain$" "$T/status"
	stop two
	# The file decides for --by auto, where it has both ways: here slices are told to be better, beside a program by slices.
	sed -i -E 's/(.*	slices	)[0-9.]+	[0-9]+	launcher 3	/\110.000	90000	launcher 3	/' "$T/world/earlier"
	loadline --sim mps start
	wait_for 60 status_has 'map(select(.claim)) | length == 1'
	start two --sim run --by auto --tenant two -- "$LAUNCHER" 3
	wait_for 60 grep -q "INFO shares the card by slices: beside launcher 2 it completed [0-9.]* times as many launches a second so on [0-9-]* as by space$" "$T/two.err"
	stop two
	# Beside nobody nothing is known: as ever.
	stop one
	wait_for 60 status_has 'map(select(.claim)) | length == 0'
	start two --sim run --by auto --tenant two -- "$LAUNCHER" 3
	wait_for 60 grep -q "INFO shares the card by space, as a client of the MPS daemon at $T/world/mps/pipe$" "$T/two.err"
	stop two
	teardown_mps
}

@test "a damaged file is said by doctor, and put aside by the next job that has something to keep" {
	printf 'loadline earlier 1\nnonsense\n' >"$T/world/earlier"
	loadline --sim doctor --no-trial >"$T/doctor" || true
	grep -q "^warn: .*$T/world/earlier: is damaged" "$T/doctor"
	both slices
	wait_for 60 together 6
	end_both
	wait_for 60 has_records slices 2
	grep -q nonsense "$T/world/earlier.damaged"
	loadline --sim doctor --no-trial >"$T/doctor" || true
	grep -q "^warn: .*$T/world/earlier.damaged" "$T/doctor"
}
