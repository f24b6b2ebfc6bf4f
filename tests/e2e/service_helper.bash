# service_helper.bash - what the tests of the system's loadlined use besides helper.bash: several users, who have no account.
# shellcheck disable=SC2034 # the tests read FIRST and SECOND

FIRST=61234
SECOND=61235

# as UID COMMAND...
as() {
	local uid=$1
	shift
	setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}

# open_world [CARDS]: a simulated world that all users may use; root makes its files. CARDS: as in --sim=CARDS. Without root
# the test is skipped.
open_world() {
	[ "$(id -u)" -eq 0 ] || skip "only root can be several users"
	chmod 755 "$T"
	chmod 777 "$T/world"
	loadline --sim"${1:+=$1}" status >/dev/null
}
