# jobs_helper.bash - what the tests of jobs use besides helper.bash.

# pids NAME: of this test's processes with that name in ps. One that waits for its parent to read its status has ended.
pids() {
	local file folder name
	while read -r file; do
		folder=${file%/environ}
		read -r name 2>/dev/null <"$folder/comm" || continue
		[ "$name" != "$1" ] || has_ended "${folder##*/}" || echo "${folder##*/}"
	done < <(grep -lsF "LOADLINE_SIM_DIR=$T/world" /proc/[0-9]*/environ)
}

# has_pids NAME NUMBER
has_pids() {
	[ "$(pids "$1" | wc -l)" -eq "$2" ]
}

# jobs_are NUMBER: loadlined knows so many that use no CUDA.
jobs_are() {
	status_has "[.[] | select(.job)] | length == $1"
}

# job TENANT FILTER: of the job's object, from loadlined.
job() {
	loadline --sim status --json | jq -r -e "select(.job.tenant == \"$1\").job | $2"
}

# lacks TEXT COMMAND...: the command's output does not have it.
lacks() {
	local text=$1 output
	shift
	output=$("$@")
	[[ $output != *"$text"* ]]
}
