# Who has a name of a card's holds and is none: he keeps no hold from the card, and hides none (hold/hold_socket.c).
load helper

export NEEDS="python3"

HOLD=(--sim hold --target 10% --resume-after 300ms --json)

# As nobody it binds the names that a hold of the card may have: without a number, as the holds of earlier versions, and
# with one. It answers nothing, or junk, or the packet that a true hold has sent.
make_sitter() {
	cat >"$T/sitter.py" <<-'END'
		import os, pwd, select, socket, sys
		nobody = pwd.getpwnam("nobody")
		os.setgroups([])
		os.setgid(nobody.pw_gid)
		os.setuid(nobody.pw_uid)
		mode, names, packet = sys.argv[1], sys.argv[2:-1], bytes.fromhex(sys.argv[-1])
		listeners = []
		for name in names:
		    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		    listener.bind("\0" + name)
		    listener.listen(8)
		    listeners.append(listener)
		print("sits", flush=True)
		kept = []
		while True:
		    for listener in select.select(listeners, [], [])[0]:
		        connection, _ = listener.accept()
		        kept.append(connection)
		        try:
		            if mode != "silent":
		                connection.send(b"I hold it." if mode == "junk" else packet)
		        except OSError:
		            pass  # who asked has not waited for it
	END
	cat >"$T/ask.py" <<-'END'
		import socket, sys
		asker = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		asker.connect("\0" + sys.argv[1])
		print(asker.recv(4096).hex())
	END
}

name_of_hold() {
	sed -n 's/.* 00010000 .* @\(loadline-hold.*\)/\1/p' /proc/net/unix | grep -F -e "$1"
}

# The world's part of the name is that of this test's folder.
world_of_hold() {
	printf '%x' "$(stat -c %i "$T/world")"
}

@test "who sits on a name of a card's holds, and is no hold, keeps no hold from it" {
	local name common packet mode kind
	[ "$(id -u)" -eq 0 ] || skip "only root can be another user"
	make_sitter
	start hold "${HOLD[@]}"
	wait_for 60 has hold 'select(.event == "sample" and .state == "holding")'
	name=$(name_of_hold "-$(world_of_hold)-")
	packet=$(python3 "$T/ask.py" "$name")
	stop hold
	common=${name%/????????????}
	for mode in silent junk answer; do
		start_program sitter python3 "$T/sitter.py" "$mode" "$common" "$common/0123456789ab" "$packet"
		wait_for 20 grep -q sits "$T/sitter.out"
		start hold "${HOLD[@]}"
		wait_for 60 has hold 'select(.event == "sample" and .state == "holding")'
		kind="card 0: pid $(pid_of sitter) of user nobody has a name of its holds, and no context there"
		grep -qF "$kind" "$T/hold.err"
		loadline --sim status | grep -qF "$kind"
		loadline --sim status --json | jq -s -e --argjson pid "$(pid_of hold)" \
			'[.[] | select(.claim == "0/hold") | .pid] == [$pid]'
		fails_with 4 "card 0: pid $(pid_of hold) already holds it" "${HOLD[@]}" --for 1s
		stop hold
		[ "$status" -eq 0 ]
		stop sitter
	done
}
